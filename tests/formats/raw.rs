//! `--raw`: samples without a header.

use crate::support::formats::{dictionary, npy, read, read_pages};
use crate::support::{Numbers, folder, run};
use gpuimg::internals::image::Samples;
use gpuimg::internals::image::metadata::{Metadata, Own, Value};
use std::fs;

/// Every type, by its totals: the first sample, the last and their sum tell order and sign.
#[test]
fn every_type() {
    let root = folder(&[("a.bin", b"skip\x01\0\x02\0\xFF\xFE\0\x80\x05\0\x06\0")]);
    for (raw, samples, sum, min, max) in [
        ("3x2:u16le+4", 6, 1 + 2 + 0xFEFF + 0x8000 + 5 + 6, 1, 0xFEFF),
        (
            "3x2:u16be+4",
            6,
            0x100 + 0x200 + 0xFFFE + 0x80 + 0x500 + 0x600,
            0x80,
            0xFFFE,
        ),
        ("3x2:i16le:1+4", 6, 1 + 2 - 257 - 32768 + 5 + 6, -32768, 6),
        (
            "3x2:i16be+4",
            6,
            0x100 + 0x200 - 2 + 0x80 + 0x500 + 0x600,
            -2,
            0x600,
        ),
        ("12x1:u8+4", 12, 1 + 2 + 0xFF + 0xFE + 0x80 + 5 + 6, 0, 0xFF),
        ("12x1:i8+4", 12, 1 + 2 - 1 - 2 - 128 + 5 + 6, -128, 6),
    ] {
        let made = run(
            root.path(),
            &["sum", "--all", "--json", "a.bin", "--raw", raw],
            &[],
        );
        assert_eq!(made.code, 0, "{raw}: {}", made.stderr);
        let found: serde_json::Value = serde_json::from_str(&made.stdout).unwrap();
        assert_eq!(found["sum"], sum, "{raw}: {found}");
        let of = |what: &str| found[what].clone();
        assert_eq!(
            (of("min"), of("max")),
            (min.into(), max.into()),
            "{raw}: {found}"
        );
        assert_eq!(
            found["width"].as_u64().unwrap() * found["height"].as_u64().unwrap(),
            samples
        );
    }
}

#[test]
fn pages_channels_and_what_is_wrong() {
    let root = folder(&[
        ("a.bin", &[7; 60]),
        ("in/b.bin", &[7; 12]),
        ("in/c.txt", b"no"),
    ]);
    for (line, code, words) in [
        ("sum a.bin --raw 5x4:u8", 0, "page 3"),
        ("sum a.bin --raw 5x4:u8:2", 0, "page 2"),
        ("flip vertical a.bin a.tif --raw 2x2x3:u8", 0, ""),
        ("flip vertical a.bin b.npy --raw 5x3x4:u8", 0, ""),
        (
            "transpose in out --raw 3x2:u16le --format png --include *.bin",
            0,
            "",
        ),
        (
            "sum a.bin --raw 7x4:u8",
            1,
            "60 bytes are not a whole number of pages of 28 bytes",
        ),
        ("sum a.bin --raw 5x4:u8:4", 1, "truncated at byte 60 of 80"),
        ("sum a.bin --raw 5x4:u8+70", 1, "truncated at byte 60 of 90"),
        (
            "sum a.bin --raw 9999999999x9999999999:u8",
            1,
            "do not fit in memory",
        ),
        (
            "flip vertical a.bin out3/ --raw 5x4:u8",
            1,
            "the inputs have no header, so the output needs a format of its own",
        ),
        (
            "sum a.bin --raw 5x4:f32",
            2,
            "the byte order of 'f32' is missing: use f32le or f32be",
        ),
        (
            "sum a.bin --raw 5x4:gray16",
            2,
            "unknown sample type 'gray16': expected u8, i8, or u16, i16, u32, i32, f32, f64 followed by le or be, or a camera's pixel format",
        ),
        (
            "sum a.bin --raw 5x4x3:mono8",
            2,
            "'mono8' has one channel: write WIDTHxHEIGHT:mono8",
        ),
        (
            "sum a.bin --raw 5x4:mono12p:3",
            1,
            "truncated at byte 60 of 90",
        ),
        (
            "sum a.bin --raw 9999999999x99999999:mono10p",
            1,
            "truncated at byte 60",
        ),
        ("sum a.bin --raw 5:u8", 2, "expected WIDTHxHEIGHT"),
        ("sum a.bin --raw 5x4x5:u8", 2, "expected WIDTHxHEIGHT"),
        (
            "sum a.bin --raw 0x4:u8",
            2,
            "width and height must not be 0",
        ),
        ("sum a.bin --raw 5x4:u8:0", 2, "0 pages"),
        ("sum a.bin --raw 5x4:u8:1:2", 2, "unexpected ':2'"),
        ("sum a.bin --raw 5x4:u8+x", 2, "'x' is not a number"),
        ("sum a.bin --raw 5x4", 2, "missing sample type"),
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let made = run(root.path(), &args, &[]);
        assert_eq!(made.code, code, "{line}: {}", made.stderr);
        let said = made.stdout + &made.stderr;
        assert!(said.contains(words), "{line}: {said}");
    }
    let verified = run(root.path(), &["sum", "a.tif", "--json"], &[]);
    assert_eq!(verified.stdout.lines().count(), 5, "{}", verified.stdout);
}

/// The pixels and the metadata that `--raw` gives of a file, through a TIFF.
fn camera(file: &[u8], raw: &str) -> (Vec<u16>, Metadata) {
    let root = folder(&[("a.bin", file)]);
    let done = run(
        root.path(),
        &["convert", "a.bin", "b.tif", "--raw", raw],
        &[],
    );
    assert_eq!((done.code, &*done.stderr), (0, ""), "{raw}");
    let (image, metadata, _) =
        read(&fs::read(root.path().join("b.tif")).expect("file")).expect("an image");
    let values = match image.samples() {
        Samples::U8(samples) => samples.iter().map(|&sample| sample.into()).collect(),
        Samples::U16(samples) => samples.to_vec(),
        _ => panic!("{raw}"),
    };
    (values, metadata)
}

/// Three pixels a row: the second row begins within a byte. Packed by hand, as PFNC and GigE Vision draw it.
#[test]
fn camera_pixels_by_hand() {
    let values = [0x3A5, 0x012, 0x3FF, 0x200, 0x155, 0x0AA];
    for (raw, file) in [
        (
            "3x2:mono10p",
            &[0xA5, 0x4B, 0xF0, 0x3F, 0x80, 0x55, 0xA9, 0x02][..],
        ),
        (
            "3x2:mono10packed",
            &[0xE9, 0x21, 0x04, 0xFF, 0x03, 0x80, 0x55, 0x21, 0x2A],
        ),
        (
            "3x2:mono12p",
            &[0xA5, 0x23, 0x01, 0xFF, 0x03, 0x20, 0x55, 0xA1, 0x0A],
        ),
        (
            "3x2:mono12packed",
            &[0x3A, 0x25, 0x01, 0x3F, 0x0F, 0x20, 0x15, 0xA5, 0x0A],
        ),
        (
            "3x2:mono10",
            b"\xA5\x03\x12\x00\xFF\x03\x00\x02\x55\x01\xAA\x00",
        ),
        (
            "3x2:mono16",
            b"\xA5\x03\x12\x00\xFF\x03\x00\x02\x55\x01\xAA\x00",
        ),
        (
            "3x2:Mono12",
            b"\xA5\x03\x12\x00\xFF\x03\x00\x02\x55\x01\xAA\x00",
        ),
    ] {
        let (found, metadata) = camera(file, raw);
        assert_eq!(found, values, "{raw}");
        let most = match raw {
            _ if raw.contains("10") => Some(1023),
            _ if raw.contains("12") => Some(4095),
            _ => None,
        };
        assert_eq!(metadata.maxval, most, "{raw}");
    }
    // Two pages of three pixels each, after two bytes: a page ends with its last byte.
    let file = [
        0, 0, 0xA5, 0x23, 0x01, 0xFF, 0x03, 0x00, 0x52, 0x15, 0xAA, 0x00,
    ];
    let root = folder(&[("a.bin", &file)]);
    for (page, sum) in [("1", 0x3A5 + 0x012 + 0x3FF), ("2", 0x200 + 0x155 + 0x0AA)] {
        let args = [
            "sum",
            "a.bin",
            "--json",
            "--raw",
            "3x1:mono12p+2",
            "--pages",
            page,
        ];
        let done = run(root.path(), &args, &[]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        let found: serde_json::Value = serde_json::from_str(&done.stdout).expect("JSON");
        assert_eq!(found["sum"], sum, "page {page}");
    }
}

/// The colours of the filters are in the fields of TIFF/EP: 0 red, 1 green, 2 blue.
#[test]
fn the_filters_of_a_camera_are_kept() {
    for (name, colours) in [
        ("bayerrg8", [0, 1, 1, 2]),
        ("bayergr8", [1, 0, 2, 1]),
        ("bayergb8", [1, 2, 0, 1]),
        ("BayerBG8", [2, 1, 1, 0]),
    ] {
        let (found, metadata) = camera(&[1, 2, 3, 4], &format!("2x2:{name}"));
        assert_eq!(found, [1, 2, 3, 4]);
        let Own::Tiff { fields, .. } = metadata.own else {
            panic!("{name}: no fields");
        };
        let bytes = |tag| {
            let field = fields.iter().find(|field| field.tag == tag)?;
            match &field.value {
                Value::Bytes(bytes) => Some(bytes.clone()),
                Value::Directory(_) => None,
            }
        };
        assert_eq!(bytes(33422), Some(colours.to_vec()), "{name}");
        assert_eq!(bytes(33421), Some(vec![2, 0, 2, 0]), "{name}");
    }
}

/// Every packing, in sizes that threads share, against a writer of single bits.
#[test]
fn packed_pixels_of_any_size() {
    let mut cases = 0;
    for (width, height) in [(1, 1), (3, 1), (5, 3), (131, 257)] {
        for (name, bits, pairs) in [
            ("mono10p", 10, false),
            ("mono12p", 12, false),
            ("bayerrg14p", 14, false),
            ("mono10packed", 10, true),
            ("bayergb12packed", 12, true),
        ] {
            let mut numbers = Numbers::new(width * 7 + height);
            let count = (width * height) as usize;
            let values: Vec<u16> = (0..count)
                .map(|_| (numbers.next() >> 20) as u16 & ((1 << bits) - 1))
                .collect();
            let step = if pairs { 12 } else { bits };
            let mut file = vec![0u8; (count * step).div_ceil(8)];
            for (i, value) in values.iter().enumerate() {
                for bit in 0..bits {
                    // The place of a bit: in a stream the next one; in a pair the upper eight in a byte of their own.
                    let low = bits - 8;
                    let place = match pairs {
                        false => i * bits + bit,
                        true if bit >= low => (i / 2 * 3 + i % 2 * 2) * 8 + bit - low,
                        true => (i / 2 * 3 + 1) * 8 + i % 2 * 4 + bit,
                    };
                    file[place / 8] |= ((value >> bit & 1) as u8) << (place % 8);
                }
            }
            let (found, _) = camera(&file, &format!("{width}x{height}:{name}"));
            assert!(found == values, "{width} × {height}, {name}");
            cases += 1;
        }
    }
    assert_eq!(cases, 20);
}

/// A folder of frames, scaled from their ten bits.
#[test]
fn a_folder_of_camera_frames() {
    let root = folder(&[
        ("in/1.raw", &[0xA5, 0x4B, 0xF0, 0x3F, 0x80]),
        ("in/2.raw", &[0xFF, 0x03, 0x00, 0x00, 0x00]),
    ]);
    let args = [
        "normalize",
        "in",
        "out",
        "--raw",
        "4x1:mono10p",
        "--range",
        "0:1023",
        "--format",
        "npy",
    ];
    let done = run(root.path(), &args, &[]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let found = read(&fs::read(root.path().join("out/2.npy")).expect("file"))
        .expect("an image")
        .0;
    assert_eq!(found.samples(), &Samples::U16(vec![65535, 0, 0, 0].into()));
    let args = [
        "convert",
        "in/1.raw",
        "a.npy",
        "--raw",
        "4x1:mono10p",
        "--depth",
        "8",
    ];
    assert_eq!(run(root.path(), &args, &[]).code, 0);
    let found = read(&fs::read(root.path().join("a.npy")).expect("file"))
        .expect("an image")
        .0;
    // 933, 18, 1023 and 512 of 1023.
    assert_eq!(found.samples(), &Samples::U8(vec![233, 4, 255, 128].into()));
}

/// With --keep-going, bytes after the last whole page were left out, status 0. They begin a page, whose rest is 0.
#[test]
fn bytes_after_the_last_whole_page_were_dropped() {
    let bytes = [0xBC, 0xFA, 0xDE, 0xBC, 0xFA];
    let root = folder(&[("a.bin", &bytes)]);
    for (layout, expected, message) in [
        ("2x1:mono12p", [0xABC, 0x00F], "truncated at byte 5 of 6"),
        ("4x1:u8", [0xFA, 0], "truncated at byte 5 of 8"),
    ] {
        let args = ["convert", "a.bin", "a.tif", "--raw", layout, "--overwrite"];
        let done = run(root.path(), &args, &[]);
        assert!(
            done.stderr.contains("not a whole number of pages"),
            "{}",
            done.stderr
        );
        let done = run(root.path(), &[&args[..], &["--keep-going"]].concat(), &[]);
        assert_eq!(done.code, 1, "{layout}");
        assert!(done.stderr.contains(message), "{}", done.stderr);
        let file = fs::read(root.path().join("a.tif")).expect("file");
        let (pages, ..) = read_pages(&file).expect("pages");
        let found = [0, 1].map(|at| pages[1].samples().at(at));
        assert_eq!((pages.len(), found), (2, expected), "{layout}");
    }
}

/// With --keep-going, what is missing of a page is 0.
#[test]
fn a_cut_camera_frame() {
    let root = folder(&[("a.bin", &[0xA5, 0x4B, 0xF0])]);
    let args = ["convert", "a.bin", "a.npy", "--raw", "4x1:mono10p"];
    let done = run(root.path(), &args, &[]);
    assert_eq!(done.code, 1);
    assert!(
        done.stderr.contains("truncated at byte 3 of 5"),
        "{}",
        done.stderr
    );
    let done = run(root.path(), &[&args[..], &["--keep-going"]].concat(), &[]);
    assert_eq!(done.code, 1);
    let found = read(&fs::read(root.path().join("a.npy")).expect("file"))
        .expect("an image")
        .0;
    assert_eq!(
        found.samples(),
        &Samples::U16(vec![0x3A5, 0x012, 0x00F, 0].into())
    );
}

/// The bytes of an array, of every type, with channels and pages, are those of the file; the other order reverses each sample.
#[test]
fn written_samples_are_those_of_an_array() {
    let mut cases = 0;
    for (descr, name, size) in [
        ("|u1", "u8", 1),
        ("|i1", "i8", 1),
        ("<u2", "u16", 2),
        ("<i2", "i16", 2),
        ("<u4", "u32", 4),
        ("<i4", "i32", 4),
        ("<f4", "f32", 4),
        ("<f8", "f64", 8),
    ] {
        for (shape, sides) in [("2, 3", "3x2"), ("2, 2, 3", "2x2x3"), ("2, 2, 5", "5x2")] {
            let count: usize = shape
                .split(", ")
                .map(|side| side.parse::<usize>().unwrap())
                .product();
            // The last byte keeps floating point finite.
            let samples: Vec<u8> = (0..count * size)
                .map(|i| {
                    if i % size == size - 1 {
                        0x41 + i as u8 % 8
                    } else {
                        (i * 37) as u8
                    }
                })
                .collect();
            let array = npy(1, &dictionary(descr, &format!("({shape})")), &samples);
            let root = folder(&[("in.npy", &array)]);
            let go = |args: &[&str]| {
                let done = run(root.path(), args, &[]);
                assert_eq!((done.code, &*done.stderr), (0, ""), "{args:?}");
            };
            go(&["convert", "in.npy", "out.raw"]);
            go(&[
                "convert",
                "in.npy",
                "out.bin",
                "--format",
                "raw",
                "--raw-type",
                "be",
            ]);
            let file = |name: &str| fs::read(root.path().join(name)).expect("a file");
            assert_eq!(file("out.raw"), samples, "{name} {sides}");
            let reversed: Vec<u8> = samples
                .chunks(size)
                .flat_map(|it| it.iter().rev().copied())
                .collect();
            assert_eq!(file("out.bin"), reversed, "{name} {sides}");
            for (order, input) in [("le", "out.raw"), ("be", "out.bin")] {
                let order = if size == 1 { "" } else { order };
                let raw = format!("{sides}:{name}{order}");
                go(&["convert", "--raw", &raw, input, "back.npy", "-f"]);
                assert!(file("back.npy").ends_with(&samples), "{raw}");
                cases += 1;
            }
        }
    }
    assert_eq!(cases, 48);
}

/// Packed samples come back, and what does not fit is refused before there is a file.
#[test]
fn written_camera_pixels() {
    let samples: Vec<u8> = (0..2 * 131 * 57u32)
        .flat_map(|i| (i * 89 % 1024).to_le_bytes()[..2].to_vec())
        .collect();
    let array = npy(1, &dictionary("<u2", "(2, 57, 131)"), &samples);
    let hand = b"P5 2 1 4095\n\x0a\xbc\x0d\xef";
    let root = folder(&[
        ("in.npy", &array),
        ("hand.pgm", hand),
        ("rgb.ppm", b"P6 1 1 65535\n\0\x01\0\x02\0\x03"),
        ("grey.pgm", b"P5 2 1 255\nab"),
        (
            "signed.npy",
            &npy(1, &dictionary("<i2", "(1, 1)"), b"\x01\0"),
        ),
    ]);
    let file = |name: &str| fs::read(root.path().join(name)).expect("a file");
    for (kind, bits) in [
        ("mono10p", 10),
        ("mono12p", 12),
        ("mono14p", 14),
        ("mono10packed", 12),
        ("mono12packed", 12),
    ] {
        let out = run(
            root.path(),
            &["convert", "in.npy", "a.raw", "--raw-type", kind, "-f"],
            &[],
        );
        assert_eq!((out.code, &*out.stderr), (0, ""), "{kind}");
        assert_eq!(
            file("a.raw").len(),
            2 * (131usize * 57 * bits).div_ceil(8),
            "{kind}"
        );
        let raw = format!("131x57:{kind}");
        let back = run(
            root.path(),
            &["convert", "--raw", &raw, "a.raw", "back.npy", "-f"],
            &[],
        );
        assert_eq!(back.code, 0, "{}", back.stderr);
        assert!(file("back.npy").ends_with(&samples), "{kind}");
    }
    let out = run(
        root.path(),
        &["convert", "hand.pgm", "h.raw", "--raw-type", "mono12packed"],
        &[],
    );
    assert_eq!(out.code, 0, "{}", out.stderr);
    assert_eq!(file("h.raw"), [0xAB, 0xFC, 0xDE]);
    for (input, kind, words) in [
        (
            "hand.pgm",
            "mono10p",
            "mono10p stores samples up to 1023, but the largest is 3567 (normalize --to 0:1023 scales them)",
        ),
        (
            "rgb.ppm",
            "mono12p",
            "mono12p stores grey samples of 16 bits, of which 12 are used, but page 1 is 1×1 RGB",
        ),
        ("grey.pgm", "mono12p", "but page 1 is 2×1 grey, 8 bits"),
        (
            "signed.npy",
            "mono12p",
            "mono12p cannot store signed samples",
        ),
    ] {
        let done = run(
            root.path(),
            &["convert", input, "no.raw", "--raw-type", kind],
            &[],
        );
        assert_eq!(done.code, 1, "{}", done.stderr);
        assert!(done.stderr.contains(words), "{}", done.stderr);
        assert!(!root.path().join("no.raw").exists());
    }
    let scaled = run(
        root.path(),
        &[
            "normalize",
            "--to",
            "0:1023",
            "hand.pgm",
            "n.raw",
            "--raw-type",
            "mono10p",
        ],
        &[],
    );
    assert_eq!(scaled.code, 0, "{}", scaled.stderr);
    assert_eq!(file("n.raw"), [0, 0xFC, 0x0F]);
}

/// All files of a folder are inputs, those of an extension with --include. Outputs are in the format that is asked for.
#[test]
fn a_folder_of_samples_without_a_header() {
    let root = folder(&[
        ("in/1.raw", &[1, 0, 2, 0]),
        ("in/sub/2.raw", &[3, 0, 4, 0]),
        ("in/notes.txt", b"four"),
        ("in/image.pgm", b"P5 1 1 255\na"),
    ]);
    let go = |args: &[&str]| run(root.path(), args, &[]);
    let all = [
        "flip",
        "horizontal",
        "in",
        "out",
        "--raw",
        "2x1:u16le",
        "--include",
        "*.raw",
        "--format",
        "raw",
    ];
    let done = go(&[&all[..], &["--raw-type", "be"]].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
    let file = |name: &str| fs::read(root.path().join("out").join(name)).expect("a file");
    assert_eq!(file("1.raw"), [0, 2, 0, 1]);
    assert_eq!(file("sub/2.raw"), [0, 4, 0, 3]);
    assert!(!root.path().join("out/notes.raw").exists());
    // Another order of bytes is another result.
    let again = go(&[&all[..], &["--resume"]].concat());
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert_eq!(file("1.raw"), [2, 0, 1, 0]);
    // Without --raw, nothing shows what such a file is.
    let plain = go(&["convert", "in", "plain", "--format", "raw"]);
    assert_eq!(plain.code, 0, "{}", plain.stderr);
    assert_eq!(
        fs::read(root.path().join("plain/image.raw")).expect("a file"),
        b"a"
    );
    assert!(!root.path().join("plain/1.raw").exists());
}
