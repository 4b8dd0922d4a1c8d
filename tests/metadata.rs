//! Metadata: kept, updated, converted to the other format, or reported.

use crate::support::contract::{chunk_of, made, outcome, refused};
use crate::support::contract::{doubles, text, value};
use crate::support::png::Plain;
use crate::support::tiff::Build;
use crate::support::tiff_images::picture;
use gpuimg::internals::image::Depth;
use tiff::decoder::ifd::Value;

fn fractions(file: &[u8], number: u16) -> Vec<f64> {
    let one = |value: Value| match value {
        Value::Rational(n, d) => f64::from(n) / f64::from(d),
        other => panic!("{other:?}"),
    };
    match value(file, number).unwrap() {
        Value::List(list) => list.into_iter().map(one).collect(),
        other => vec![one(other)],
    }
}

fn png(chunks: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
    let mut plain = Plain::noisy(30, 20, 16, 2);
    let owned = chunks.iter().map(|(kind, data)| (**kind, data.to_vec()));
    plain.before.extend(owned);
    let mut file = plain.encoded(1);
    // After the image data, too.
    let end = file.len() - 12;
    let mut behind = Vec::new();
    crate::support::png::chunk(&mut behind, b"tEXt", b"Comment\0behind");
    file.splice(end..end, behind);
    file
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    crate::support::png::zlib(bytes, 6)
}

/// A little-endian Exif of one orientation and a make.
fn exif(orientation: u8) -> Vec<u8> {
    let mut data = b"II*\0\x08\0\0\0\x02\0".to_vec();
    data.extend([0x0f, 1, 2, 0, 4, 0, 0, 0, b'A', b'C', b'M', 0]);
    data.extend([0x12, 1, 3, 0, 1, 0, 0, 0, orientation, 0, 0, 0]);
    data.extend([0; 4]);
    data
}

fn rich() -> Vec<u8> {
    let phys = [&2000u32.to_be_bytes()[..], &4000u32.to_be_bytes(), &[1]].concat();
    let profile = [b"mine\0\0", &zlib(b"a profile")[..]].concat();
    let compressed = [
        b"Copyright\0\0",
        &zlib(
            "© me"
                .chars()
                .map(|c| c as u8)
                .collect::<Vec<u8>>()
                .as_slice(),
        )[..],
    ]
    .concat();
    let chrm: Vec<u8> = (1..=8u32)
        .flat_map(|i| (i * 10_000).to_be_bytes())
        .collect();
    png(&[
        (b"gAMA", &45455u32.to_be_bytes()),
        (b"cHRM", &chrm),
        (b"iCCP", &profile),
        (b"sBIT", &[10, 11, 12]),
        (b"bKGD", &[0, 1, 0, 2, 0, 3]),
        (b"pHYs", &phys),
        (b"oFFs", &[0; 9]),
        (b"tIME", &[7, 230, 1, 2, 3, 4, 5]),
        (b"tEXt", b"Description\0a rich file"),
        (b"zTXt", &compressed),
        (b"iTXt", "Author\0\0\0\0\0Zoë".as_bytes()),
        (b"tEXt", b"Creation Time\x002026:11:22 00:00:00"),
        (b"eXIf", &exif(6)),
        (b"prVa", b"safe to copy"),
        (b"prVA", b"not safe to copy"),
    ])
}

#[test]
fn a_rich_png_keeps_what_is_true() {
    let file = rich();
    let normalized = made("in.png", &file, &["normalize"], "out.png");
    for kind in [
        b"gAMA", b"cHRM", b"iCCP", b"pHYs", b"oFFs", b"tEXt", b"zTXt", b"iTXt", b"eXIf", b"prVa",
    ] {
        assert_eq!(
            chunk_of(&normalized, kind),
            chunk_of(&file, kind),
            "{}",
            kind.escape_ascii()
        );
        assert!(chunk_of(&file, kind).is_some());
    }
    for kind in [b"sBIT", b"bKGD", b"tIME", b"prVA"] {
        assert_eq!(chunk_of(&normalized, kind), None, "{}", kind.escape_ascii());
    }
    // What stood after the image data still does.
    let tail = normalized
        .windows(11)
        .position(|bytes| bytes == b"tEXtComment")
        .unwrap();
    assert!(
        tail > normalized
            .windows(4)
            .rposition(|bytes| bytes == b"IDAT")
            .unwrap()
    );

    let turned = made("in.png", &file, &["transpose"], "out.png");
    for kind in [
        b"gAMA", b"cHRM", b"iCCP", b"sBIT", b"bKGD", b"tEXt", b"zTXt", b"iTXt", b"prVa",
    ] {
        assert_eq!(
            chunk_of(&turned, kind),
            chunk_of(&file, kind),
            "{}",
            kind.escape_ascii()
        );
    }
    let swapped = [&4000u32.to_be_bytes()[..], &2000u32.to_be_bytes(), &[1]].concat();
    assert_eq!(chunk_of(&turned, b"pHYs"), Some(swapped));
    assert_eq!(chunk_of(&turned, b"oFFs"), None);
    // A mirrored quarter turn is the other one.
    assert_eq!(chunk_of(&turned, b"eXIf"), Some(exif(8)));
    let upright = made(
        "in.png",
        &file,
        &["rotate", "90", "--auto-orient"],
        "out.png",
    );
    assert_eq!(chunk_of(&upright, b"eXIf"), Some(exif(1)));
}

#[test]
fn what_is_left_out_is_told_when_asked() {
    let (run, _) = outcome(
        "in.png",
        &rich(),
        &["normalize", "-v", "--device", "cpu"],
        "out.png",
    );
    for words in [
        "chunk tIME is left out: ",
        "chunk bKGD is left out: ",
        "chunk prVA is left out: ",
    ] {
        assert!(run.stderr.contains(words), "{words}: {}", run.stderr);
    }
    assert!(!run.stderr.contains("gpIS"), "{}", run.stderr);
}

#[test]
fn from_png_to_tiff_and_back() {
    let (run, tiff) = outcome("in.png", &rich(), &["transpose", "-v"], "out.tif");
    let tiff = tiff.unwrap();
    assert_eq!(text(&tiff, 270).as_deref(), Some("a rich file"));
    assert_eq!(text(&tiff, 33432).as_deref(), Some("© me"));
    assert_eq!(text(&tiff, 315).as_deref(), Some("Zoë"));
    assert_eq!(text(&tiff, 306).as_deref(), Some("2026:11:22 00:00:00"));
    assert_eq!(text(&tiff, 271).as_deref(), Some("ACM"));
    assert_eq!(
        value(&tiff, 34675).unwrap().into_u8_vec().unwrap(),
        b"a profile"
    );
    assert_eq!(value(&tiff, 274).unwrap().into_u16().unwrap(), 8);
    assert_eq!(
        (fractions(&tiff, 282), fractions(&tiff, 283)),
        (vec![40.0], vec![20.0])
    );
    assert_eq!(fractions(&tiff, 318), [0.1, 0.2]);
    assert_eq!(fractions(&tiff, 319), [0.3, 0.4, 0.5, 0.6, 0.7, 0.8]);
    for words in [
        "chunk gAMA is left out: TIFF cannot store it",
        "how many bits are significant",
    ] {
        assert!(run.stderr.contains(words), "{words}: {}", run.stderr);
    }
    let png = made("in.tif", &tiff, &["transpose"], "out.png");
    let phys = [&2000u32.to_be_bytes()[..], &4000u32.to_be_bytes(), &[1]].concat();
    assert_eq!(chunk_of(&png, b"pHYs"), Some(phys));
    assert_eq!(
        chunk_of(&png, b"tEXt"),
        Some(b"Description\0a rich file".to_vec())
    );
    assert!(
        chunk_of(&png, b"iCCP")
            .unwrap()
            .starts_with(b"ICC profile\0\0")
    );
    let exif = chunk_of(&png, b"eXIf").unwrap();
    assert!(exif.windows(3).any(|bytes| bytes == b"ACM"));
}

fn ascii(build: Build, tag: u16, text: &str) -> Build {
    let bytes: Vec<u64> = text.bytes().chain([0]).map(u64::from).collect();
    build.tag(tag, 2, &bytes)
}

#[test]
fn a_rich_tiff_keeps_what_is_true() {
    for big_endian in [false, true] {
        let build = Build {
            big_endian,
            ..Build::default()
        };
        let texts = [
            (270, "what it shows"),
            (305, "a camera"),
            (306, "2026:11:22 00:00:00"),
            (315, "me"),
            (65000, "private"),
        ];
        let build = texts
            .iter()
            .fold(build, |build, (tag, text)| ascii(build, *tag, text));
        // Rationals one by one: the plain writer takes pairs as 8-byte numbers.
        let ratio = |n: u64, d: u64| if big_endian { n << 32 | d } else { d << 32 | n };
        let build = build
            .tag(282, 5, &[ratio(300, 1)])
            .tag(283, 5, &[ratio(72, 1)])
            .tag(296, 3, &[2])
            .tag(280, 3, &[5])
            .tag(34675, 7, &[1, 2, 3, 4, 5, 6, 7]);
        let file = build.file(&picture(6, 4, 1, Depth::Sixteen));
        for (args, (x, y)) in [
            (&["normalize"][..], (300.0, 72.0)),
            (&["rotate", "90"], (72.0, 300.0)),
            (&["flip", "vertical"], (300.0, 72.0)),
        ] {
            let out = made("in.tif", &file, args, "out.tif");
            for (tag, expected) in &texts {
                assert_eq!(text(&out, *tag).as_deref(), Some(*expected), "{args:?}");
            }
            assert_eq!(
                (fractions(&out, 282), fractions(&out, 283)),
                (vec![x], vec![y])
            );
            assert_eq!(
                value(&out, 34675).unwrap().into_u8_vec().unwrap(),
                [1, 2, 3, 4, 5, 6, 7]
            );
            assert_eq!(value(&out, 280).is_some(), args[0] != "normalize");
        }
    }
}

/// A pixel of the output lies where it lay before.
#[test]
fn places_on_the_earth_follow_turns() {
    let bits = |values: &[f64]| {
        values
            .iter()
            .map(|value| value.to_bits())
            .collect::<Vec<u64>>()
    };
    let (width, height) = (6.0, 4.0);
    let build = Build::default()
        .tag(33550, 12, &bits(&[2.0, 3.0, 0.0]))
        .tag(33922, 12, &bits(&[1.0, 1.0, 0.0, 500.0, 900.0, 0.0]))
        .tag(34735, 3, &[1, 1, 0, 0]);
    let file = build.file(&picture(6, 4, 1, Depth::Sixteen));
    let before = |x: f64, y: f64| (500.0 + 2.0 * (x - 1.0), 900.0 - 3.0 * (y - 1.0));
    let normalized = made("in.tif", &file, &["normalize"], "out.tif");
    assert_eq!(doubles(&normalized, 33550), Some(vec![2.0, 3.0, 0.0]));
    type Source = fn(f64, f64, f64, f64) -> (f64, f64);
    let cases: [(&[&str], Source); 5] = [
        (&["transpose"], |x, y, _, _| (y, x)),
        (&["flip", "horizontal"], |x, y, width, _| (width - x, y)),
        (&["rotate", "180"], |x, y, width, height| {
            (width - x, height - y)
        }),
        // The output's left column was the bottom row.
        (&["rotate", "90"], |x, y, _, height| (y, height - x)),
        (&["rotate", "270"], |x, y, width, _| (width - y, x)),
    ];
    for (args, source) in cases {
        let out = made("in.tif", &file, args, "out.tif");
        assert_eq!(doubles(&out, 33550), None);
        assert!(value(&out, 34735).is_some());
        let m = doubles(&out, 34264).unwrap();
        for (x, y) in [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (3.5, 2.25)] {
            let here = (m[0] * x + m[1] * y + m[3], m[4] * x + m[5] * y + m[7]);
            let (x, y) = source(x, y, width, height);
            assert_eq!(here, before(x, y), "{args:?}");
        }
    }
    // Several tie points are no affine map.
    let warped = Build::default()
        .tag(33922, 12, &bits(&[0.0; 12]))
        .tag(34735, 3, &[1, 1, 0, 0]);
    let file = warped.file(&picture(6, 4, 1, Depth::Sixteen));
    let (run, out) = outcome("in.tif", &file, &["transpose"], "out.tif");
    assert!(
        run.stderr
            .contains("warning: in.tif: its geolocation (GeoTIFF) is left out"),
        "{}",
        run.stderr
    );
    assert!(value(&out.unwrap(), 34735).is_none());
}

/// Points the last entry of a tag beyond the end of a file.
fn beyond(file: &mut [u8], build: &Build, number: u16) {
    let bytes = match build.big_endian {
        true => number.to_be_bytes(),
        false => number.to_le_bytes(),
    };
    let wide = if build.big_tiff { 8 } else { 4 };
    let start = match (build.big_endian, build.big_tiff) {
        (true, false) => u32::from_be_bytes(file[4..8].try_into().unwrap()).into(),
        (false, false) => u32::from_le_bytes(file[4..8].try_into().unwrap()).into(),
        (true, true) => u64::from_be_bytes(file[8..16].try_into().unwrap()),
        (false, true) => u64::from_le_bytes(file[8..16].try_into().unwrap()),
    };
    let first = start as usize + if build.big_tiff { 8 } else { 2 };
    let entry = (first..).step_by(4 + 2 * wide);
    let entry = entry.into_iter().find(|&at| file[at..at + 2] == bytes);
    let field = entry.unwrap() + 4 + wide;
    file[field..field + wide].fill(0x7f);
}

/// What the specification or many programs rely on counted as absent where it lay beyond the end.
#[test]
fn fields_beyond_the_end_were_left_out() {
    let mut cases = 0;
    for (big_endian, big_tiff) in [(false, false), (true, false), (false, true), (true, true)] {
        // More bytes than an entry holds.
        for (number, kind, count) in [
            (270, 2, 20),
            (281, 3, 9),
            (282, 5, 2),
            (283, 5, 2),
            (305, 2, 20),
            (700, 1, 20),
            (33550, 12, 3),
            (33922, 12, 6),
            (34675, 7, 20),
            (34735, 3, 8),
            (42112, 2, 20),
            (42113, 2, 20),
        ] {
            let mut build = Build {
                big_endian,
                big_tiff,
                ..Build::default()
            };
            for resolution in [282, 283] {
                build = build.tag(resolution, 5, &[300, 1]);
            }
            build = build.tag(number, kind, &vec![65; count]);
            let picture = picture(6, 4, 1, Depth::Sixteen);
            let whole = build.file(&picture);
            let mut file = whole.clone();
            beyond(&mut file, &build, number);
            let words = format!("({number}) at byte ");
            let verb = ["transpose"];
            if number == 281 {
                // Numbers are read as those of the layout are.
                refused("in.tif", &file, &verb, "out.tif", "truncated at byte");
                continue;
            }
            refused("in.tif", &file, &verb, "out.tif", &words);
            let (run, out) = outcome("in.tif", &file, &["transpose", "--keep-going"], "out.tif");
            assert_eq!(run.code, 1, "{number}: {}", run.stderr);
            let told = format!(
                "lies beyond the end ({} bytes), and is left out",
                file.len()
            );
            assert!(
                run.stderr.contains(&words) && run.stderr.contains(&told),
                "{}",
                run.stderr
            );
            let out = crate::support::formats::read(&out.unwrap()).unwrap();
            let (_, whole) = outcome("in.tif", &whole, &verb, "out.tif");
            let (whole, ..) = crate::support::formats::read(&whole.unwrap()).unwrap();
            assert!(out.0 == whole, "{number}: all pixels are there");
            cases += 1;
        }
    }
    assert_eq!(cases, 4 * 11);
}

/// Damaged private metadata are left out and reported; the image is not refused for them.
#[test]
fn damaged_metadata() {
    let mut build = Build::default().tag(34665, 4, &[0xffff_fff0]);
    build = build.tag(65001, 12, &[7; 3]);
    let mut file = build.file(&picture(6, 4, 1, Depth::Sixteen));
    // The private tag's values are said to lie beyond the end.
    let entry = file
        .windows(4)
        .rposition(|bytes| bytes == [0xe9, 0xfd, 12, 0])
        .unwrap();
    file[entry + 8..entry + 12].fill(0xff);
    let (run, out) = outcome("in.tif", &file, &["transpose"], "out.tif");
    assert_eq!(run.code, 0);
    for words in [
        "tag 34665 cannot be read and is left out",
        "tag 65001 at byte 4294967295 lies beyond the end (",
    ] {
        assert!(run.stderr.contains(words), "{words}: {}", run.stderr);
    }
    assert!(value(&out.unwrap(), 65001).is_none());
    for junk in [&b""[..], b"II*", b"MM\0*\xff\xff\xff\xff", &exif(200)] {
        let file = png(&[
            (b"eXIf", junk),
            (b"iCCP", b"x"),
            (b"zTXt", b"Author\0\0junk"),
            (b"pHYs", b"123"),
        ]);
        made("in.png", &file, &["transpose"], "out.png");
        made("in.png", &file, &["transpose"], "out.tif");
    }
}
