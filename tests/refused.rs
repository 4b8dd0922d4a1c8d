//! Files that were refused although other programs read them: of other projects (`tests/files/`), and written here. The
//! values are those that others read.

use crate::support::dicom;
use crate::support::formats::{metaimage, nrrd, read, read_pages};
use crate::support::jpeg::{ADOBE, JFIF, flat};
use crate::support::lossless::Coder;
use crate::support::tiff::Build;
use crate::support::{Kind, folder, image, png, repository, run};
use gpuimg::internals::image::metadata::Alpha;
use gpuimg::internals::image::{Depth, Image, Samples, Shape};
use std::fs;
use std::io::Write;

/// A file of `tests/files/`.
fn file(name: &str) -> Vec<u8> {
    fs::read(repository("tests/files").join(name)).expect("a file of tests/files")
}

/// The 8-bit samples of a file, and how many channels it has.
fn bytes(file: &[u8]) -> (usize, Vec<u8>) {
    let image: Image = read(file).expect("readable").0;
    match image.samples() {
        Samples::U8(samples) => (image.shape().channels, samples.to_vec()),
        _ => panic!("8 bits were expected"),
    }
}

fn sum(file: &[u8]) -> u64 {
    bytes(file).1.into_iter().map(u64::from).sum()
}

#[test]
fn tiles_listed_as_strips() {
    let grey = image(40, 20, 1, Depth::Eight, Kind::Noise);
    let build = Build {
        tile: Some((16, 16)),
        ..Build::default()
    };
    let mut tiff = build.file(&grey);
    let [a, b, c, d] = tiff[4..8] else {
        panic!("four bytes")
    };
    let directory = u32::from_le_bytes([a, b, c, d]) as usize;
    for entry in 0..usize::from(tiff[directory]) {
        let at = directory + 2 + 12 * entry;
        let tag = match u16::from_le_bytes([tiff[at], tiff[at + 1]]) {
            324 => 273u16,
            325 => 279,
            other => other,
        };
        tiff[at..at + 2].copy_from_slice(&tag.to_le_bytes());
    }
    assert_eq!(read(&tiff).expect("readable").0, grey);
}

/// A transparent grey of 255, of pixels of one bit.
#[test]
fn a_transparent_value_that_no_pixel_has() {
    let png = file("1_trns.png");
    assert_eq!((bytes(&png).0, sum(&png)), (1, 508_470));
}

#[test]
fn an_extension_of_gif_that_nobody_knows() {
    let screen = [1, 0, 1, 0, 0x80, 0, 0];
    let palette = [9, 8, 7, 255, 255, 255];
    let unknown = [0x21, 0x42, 2, 5, 6, 0];
    let image = [0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x4C, 1, 0, 0x3B];
    let gif = [b"GIF89a", &screen[..], &palette, &unknown, &image].concat();
    assert_eq!(bytes(&gif), (3, vec![255; 3]));
}

/// Before and after the image data; a critical chunk stays refused.
#[test]
fn a_wrong_crc_of_a_text() {
    let mut whole = b"\x89PNG\r\n\x1a\n".to_vec();
    let header = [0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0];
    let data = png::zlib(&[0, 7], 6);
    let chunks: [(&[u8; 4], &[u8]); 5] = [
        (b"IHDR", &header),
        (b"tEXt", b"Title\0before"),
        (b"IDAT", &data),
        (b"tEXt", b"Title\0behind"),
        (b"IEND", b""),
    ];
    let behind = 33 + 24 + 12 + data.len();
    for (kind, data) in chunks {
        png::chunk(&mut whole, kind, data);
    }
    for name in ["before", "behind"] {
        let at = whole
            .windows(6)
            .position(|six| six == name.as_bytes())
            .expect("a text");
        whole[at + 6] ^= 1;
    }
    let root = folder(&[("in.png", &whole)]);
    let told = run(root.path(), &["flip", "vertical", "in.png", "out.png"], &[]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    for place in [33, behind] {
        let warning = format!("in.png: chunk tEXt at byte {place} has a bad CRC and is left out");
        assert!(told.stderr.contains(&warning), "{}", told.stderr);
    }
    assert!(
        !fs::read(root.path().join("out.png"))
            .unwrap()
            .windows(4)
            .any(|four| four == b"tEXt")
    );
    let at = whole
        .windows(4)
        .position(|four| four == b"IDAT")
        .expect("data");
    whole[at + 5] ^= 1;
    crate::support::formats::refused(&whole, "bad CRC in chunk IDAT");
}

/// A BMP of 3 × 2 pixels of grey, with a header of so many bytes.
fn bmp(header: &[u8]) -> Vec<u8> {
    let palette: Vec<u8> = (0..=255).flat_map(|grey| [grey, grey, grey, 0]).collect();
    let pixels = [3, 4, 5, 0, 0, 1, 2, 0];
    let begins = 14 + header.len() + palette.len();
    let begins = (begins as u32).to_le_bytes();
    [b"BM", &[0; 8][..], &begins, header, &palette, &pixels].concat()
}

fn bmp_header(size: usize) -> Vec<u8> {
    let mut header = vec![0; size];
    let fields = [size as u32, 3, 2, 1 | 8 << 16];
    for (field, value) in header.chunks_exact_mut(4).zip(fields) {
        field.copy_from_slice(&value.to_le_bytes());
    }
    header
}

#[test]
fn headers_of_os2_and_none_at_all() {
    for size in [40, 64] {
        let whole = bmp(&bmp_header(size));
        assert_eq!(bytes(&whole), (1, vec![0, 1, 2, 3, 4, 5]), "{size}");
        // As a bitmap lies in a resource or in the clipboard.
        assert_eq!(
            bytes(&whole[14..]),
            (1, vec![0, 1, 2, 3, 4, 5]),
            "{size}, without the first header"
        );
    }
    let short = bytes(&bmp(&bmp_header(16))).1;
    assert_eq!(
        short,
        [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5]
    );
    // Run lengths of 24 bits, which only OS/2 had.
    let mut header = bmp_header(64);
    header[16] = 4;
    crate::support::formats::refused(&bmp(&header), "not supported");
}

/// Masks of red, green, blue and alpha after a header of 40 bytes, with the file's header and without.
#[test]
fn masks_of_four_channels_after_a_short_header() {
    let fields = [
        40u32,
        2,
        1,
        1 | 32 << 16,
        6,
        0,
        0,
        0,
        0,
        0,
        0xFF,
        0xFF00,
        0xFF_0000,
        0xFF00_0000,
    ];
    let fields: Vec<u8> = fields.into_iter().flat_map(u32::to_le_bytes).collect();
    let pixels = [1, 2, 3, 4, 5, 6, 7, 8];
    let begins = (14 + fields.len() as u32).to_le_bytes();
    let whole = [b"BM", &[0; 8][..], &begins, &fields, &pixels].concat();
    for file in [&whole[..], &whole[14..]] {
        assert_eq!(bytes(file), (4, pixels.to_vec()));
    }
}

/// More colours than pixels of 8 bits can name, all of which lie before the pixels.
#[test]
fn more_colours_than_a_bmp_can_name() {
    let mut header = bmp_header(40);
    header[32..36].copy_from_slice(&300u32.to_le_bytes());
    let colours: Vec<u8> = (0..300u32).flat_map(|i| [i as u8, 0, 9, 0]).collect();
    let pixels = [3, 4, 5, 0, 0, 1, 2, 0];
    let file = |begins: usize| {
        let begins = (begins as u32).to_le_bytes();
        [b"BM", &[0; 8][..], &begins, &header, &colours, &pixels].concat()
    };
    let (channels, found) = bytes(&file(14 + 40 + 4 * 300));
    assert_eq!((channels, &found[..6]), (3, &[9, 0, 0, 9, 0, 1][..]));
    crate::support::formats::refused(
        &file(14 + 40 + 4 * 256),
        "more colours than its pixels can have",
    );
}

/// Runs of 4 bits whose last one continues after an odd row, as writers of whole bytes make them.
#[test]
fn runs_that_go_on_after_a_row() {
    let mut header = bmp_header(40);
    header[14] = 4;
    header[16] = 2;
    let palette: Vec<u8> = (0..16).flat_map(|grey| [grey, grey, grey, 0]).collect();
    let pixels = [4, 0x34, 0, 0, 0, 4, 0x56, 0x70, 0, 0, 0, 1];
    let begins = (14 + 40 + palette.len() as u32).to_le_bytes();
    let whole = [b"BM", &[0; 8][..], &begins, &header, &palette, &pixels].concat();
    assert_eq!(bytes(&whole), (1, vec![5, 6, 7, 3, 4, 3]));
}

/// Numbers of attribute bits that do not fit the pixels.
#[test]
fn attributes_of_tga_that_do_not_fit() {
    let tga = |kind: u8, bits: u8, about: u8, pixel: usize| {
        let head = [
            0, 0, kind, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 2, 0, bits, about,
        ];
        let pixels: Vec<u8> = (0..6 * pixel as u8).collect();
        [&head[..], &pixels].concat()
    };
    let colour = [2, 1, 0, 3, 6, 5, 4, 7];
    for (about, what) in [(0x24, 4), (0x21, 1)] {
        let (channels, found) = bytes(&tga(2, 32, about, 4));
        assert_eq!(
            (channels, &found[..8]),
            (4, &colour[..]),
            "{what} of 32 bits"
        );
    }
    assert_eq!(bytes(&tga(2, 24, 0x28, 3)).1[..6], [2, 1, 0, 5, 4, 3]);
    assert_eq!(bytes(&tga(3, 16, 0x20, 2)), (2, (0..12).collect()));
    assert_eq!(bytes(&tga(3, 8, 0x28, 1)), (1, (0..6).collect()));
}

#[test]
fn compressed_samples_of_metaimage() {
    let fields = "CompressedData = True\nElementType = MET_UCHAR\n";
    let zlib = |bytes: &[u8]| png::zlib(bytes, 6);
    let packed = zlib(&[9, 8, 7, 6, 5, 4]);
    assert_eq!(bytes(&metaimage(fields, &packed)).1, [9, 8, 7, 6, 5, 4]);
    let pages = String::from_utf8(metaimage(fields, b"")).unwrap();
    let pages = pages
        .replace("NDims = 2", "NDims = 3")
        .replace("3 2", "3 2 2");
    let whole = [pages.as_bytes(), &zlib(&(0..12).collect::<Vec<u8>>())].concat();
    let (found, ..) = read_pages(&whole).unwrap();
    let second: &Samples = found[1].samples();
    assert_eq!(second, &Samples::from((6..12).collect::<Vec<u8>>()));
    for (samples, words) in [
        (
            &packed[..6],
            "its deflate data are damaged: they end too early",
        ),
        (&zlib(&[1, 2, 3]), "make less than the 6 bytes"),
        (&zlib(&[1; 7]), "make more than the 6 bytes"),
        (&[], "too few for 6 of samples"),
    ] {
        crate::support::formats::refused(&metaimage(fields, samples), words);
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    packed.write_all(bytes).expect("memory");
    packed.finish().expect("memory")
}

#[test]
fn compressed_samples_of_nrrd() {
    let fields = "type: uchar\nencoding: gzip\n";
    let expected = [9, 8, 7, 6, 5, 4];
    let packed = gzip(&expected);
    assert_eq!(bytes(&nrrd(fields, &packed)).1, expected);
    // Lines are skipped before the gzip data, bytes in what they make.
    let skipped = nrrd(
        &format!("{fields}line skip: 1\nbyte skip: 2\n"),
        &[b"a line\n", &gzip(&[&[1, 2], &expected[..]].concat())[..]].concat(),
    );
    assert_eq!(bytes(&skipped).1, expected);
    let words = "type: int16\nendian: big\nencoding: GZ\n";
    let big: Vec<u8> = (-3i16..3).flat_map(i16::to_be_bytes).collect();
    let (found, metadata, _) = read(&nrrd(words, &gzip(&big))).expect("readable");
    let keys: Vec<u16> = (0x7FFD..0x8003).collect();
    assert_eq!(
        (found.samples(), metadata.signed),
        (&Samples::from(keys), true)
    );
    for (samples, words) in [
        (&packed[..12], "its gzip data are damaged, or end too early"),
        (
            &packed[..packed.len() - 5],
            "its gzip data are damaged, or end too early",
        ),
        (
            b"no gzip data at all",
            "its gzip data are damaged, or end too early",
        ),
        (&gzip(&[1, 2, 3]), "make less than the 6 bytes"),
        (&gzip(&[1; 7]), "make more than the 6 bytes"),
        (b"", "too few for 6 of samples"),
    ] {
        crate::support::formats::refused(&nrrd(fields, samples), words);
    }
    let at_end = nrrd(&format!("{fields}byte skip: -1\n"), &packed);
    crate::support::formats::refused(
        &at_end,
        "gzip samples at the end of the file (byte skip -1)",
    );
    for encoding in ["bzip2", "hex"] {
        let other = nrrd(&format!("type: uchar\nencoding: {encoding}\n"), &packed);
        crate::support::formats::refused(
            &other,
            "(raw, gzip and ascii are): write them as gzip first",
        );
    }
    // In a file of their own.
    let head = "NRRD0004\ntype: uint8\nsizes: 3 2\nencoding: gzip\ndata file: ";
    let root = folder(&[
        ("a.raw.gz", &packed),
        ("a.nhdr", format!("{head}a.raw.gz\n").as_bytes()),
        ("b.nhdr", format!("{head}LIST\na.raw.gz\n").as_bytes()),
        ("c.nhdr", format!("{head}a%d.raw.gz 0 1 1\n").as_bytes()),
    ]);
    let sum = run(root.path(), &["sum", "a.nhdr"], &[]);
    assert_eq!(sum.stdout, "a.nhdr: sum 39\n", "{}", sum.stderr);
    for name in ["b.nhdr", "c.nhdr"] {
        let sum = run(root.path(), &["sum", name], &[]);
        assert!(
            sum.stderr.contains("samples in several files"),
            "{}",
            sum.stderr
        );
    }
}

#[test]
fn samples_of_nrrd_and_metaimage_as_text() {
    let text =
        |kind: &str, text: &str| nrrd(&format!("type: {kind}\nencoding: ascii\n"), text.as_bytes());
    assert_eq!(
        bytes(&text("uchar", "0 1 2\n253\t254 255\n")).1,
        [0, 1, 2, 253, 254, 255]
    );
    let (found, metadata, _) = read(&text("short", "-32768 -1 0 1 2 32767")).expect("readable");
    let keys = vec![0u16, 32767, 32768, 32769, 32770, 65535];
    assert_eq!(
        (found.samples(), metadata.signed),
        (&Samples::from(keys), true)
    );
    let numbers = read(&text("float", "1e-3 -0.5 nan inf -inf 7"))
        .expect("readable")
        .0;
    let raw: Vec<u8> = [1e-3, -0.5, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 7.0]
        .into_iter()
        .flat_map(f32::to_le_bytes)
        .collect();
    assert_eq!(
        numbers,
        read(&nrrd("type: float\nendian: little\n", &raw))
            .unwrap()
            .0
    );
    let meta = metaimage(
        "BinaryData = False\nElementType = MET_SHORT\n",
        b"-1 0 1 2 3 -32768 ",
    );
    let keys = vec![32767u16, 32768, 32769, 32770, 32771, 0];
    assert_eq!(
        *read(&meta).expect("readable").0.samples(),
        Samples::from(keys)
    );
    for (kind, numbers, words) in [
        (
            "uchar",
            "0 1 2 3 4 256",
            "\"256\" is not a sample of its type",
        ),
        ("uchar", "0 1 2 3 4 x", "\"x\" is not a sample of its type"),
        ("int", "0 1 2 3 4 5 6", "more numbers than samples"),
        (
            "double",
            "0 1 2 3 4      ",
            "its text ends after 5 of 6 numbers",
        ),
        ("uchar", "0 1 2 3", "truncated"),
    ] {
        crate::support::formats::refused(&text(kind, numbers), words);
    }
}

/// A JPEG whose header tells of no components, and one that is cut off, in DICOM and TIFF.
#[test]
fn messages_of_jpeg_libraries_in_other_formats() {
    let none = b"\xFF\xD8\xFF\xC0\0\x08\x08\0\x02\0\x03\0\xFF\xD9";
    let cut = b"\xFF\xD8\xFF\xC0\0\x0B\x08\0\x02";
    let build = dicom::Build {
        syntax: dicom::JPEG,
        bits: (8, 8),
        ..dicom::Build::default()
    };
    for (jpeg, words) in [
        (&none[..], "its header states no channels"),
        (&cut[..], "truncated at byte 9"),
    ] {
        crate::support::formats::refused(&build.file(b"", Some(&[b"", jpeg])), words);
        let grey = image(3, 2, 1, Depth::Eight, Kind::Noise);
        let tiff = Build::default().tag(259, 3, &[7]).with_strip(&grey, jpeg);
        crate::support::formats::refused(&tiff, words);
    }
}

/// What zstd says of damaged data are names of its own.
#[test]
fn messages_of_zstd() {
    let grey = image(16, 16, 1, Depth::Eight, Kind::Noise);
    let packed = zstd::bulk::compress(grey.samples().as_bytes(), 3).expect("memory");
    let build = Build::default().tag(259, 3, &[50_000]);
    for (strip, words) in [
        (
            &packed[..packed.len() / 2],
            "its zstd data are damaged: they end too early",
        ),
        (
            b"no zstd at all",
            "its zstd data are damaged: not a zstd frame",
        ),
    ] {
        crate::support::formats::refused(&build.with_strip(&grey, strip), words);
    }
}

/// The 128 bytes before the mark of a DICOM file are free, and some writers put the header of a TIFF there.
#[test]
fn dicom_with_the_header_of_a_tiff_before_it() {
    let mut file = dicom::Build::default().words(&[0, 1, 2, 300, 4000, 65535]);
    let expected = read(&file).expect("readable").0;
    for head in [b"II*\0\x54\x01\0\0", b"MM\0*\0\0\x01\x54"] {
        file[..8].copy_from_slice(head);
        assert_eq!(read(&file).expect("readable").0, expected);
    }
}

/// A data set without types of values where the transfer syntax has them, as pydicom's `SC_rgb_jpeg.dcm`, and the other way
/// round.
#[test]
fn types_of_values_that_the_transfer_syntax_does_not_have() {
    let samples = [0, 1, 2, 300, 4000, 65535];
    let explicit = dicom::Build::default();
    let implicit = dicom::Build {
        syntax: dicom::IMPLICIT,
        ..dicom::Build::default()
    };
    let (with, without) = (explicit.words(&samples), implicit.words(&samples));
    // The preamble, the mark, and the element of the transfer syntax.
    let (explicit, types) = with.split_at(132 + 8 + 20);
    let (implicit, no_types) = without.split_at(132 + 8 + 18);
    for file in [[explicit, no_types].concat(), [implicit, types].concat()] {
        let (found, ..) = read(&file).expect("readable");
        assert_eq!(*found.samples(), Samples::from(samples.to_vec()));
    }
}

/// All but the file's own group is deflated, and filled to an even length.
#[test]
fn deflated_data_sets_of_dicom() {
    let build = dicom::Build {
        syntax: "1.2.840.10008.1.2.1.99",
        ..dicom::Build::default()
    };
    let samples = [0, 1, 2, 300, 4000, 65535];
    let plain = build.words(&samples);
    // The preamble, the mark, and the element of the transfer syntax.
    let (head, rest) = plain.split_at(132 + 8 + 22);
    let mut deflate = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::new(6));
    deflate.write_all(rest).expect("memory");
    let mut packed = deflate.finish().expect("memory");
    for filled in 0..2 {
        packed.resize(packed.len() + filled, 0);
        let (found, ..) = read(&[head, &packed].concat()).expect("readable");
        assert_eq!(*found.samples(), Samples::from(samples.to_vec()));
    }
    for damaged in [&packed[..packed.len() / 2], b"", b"\xFF\xFF\xFF"] {
        let words = "its deflated data set is damaged, or ends too early";
        crate::support::formats::refused(&[head, damaged].concat(), words);
    }
}

/// Numbers of colours in a table of 8 or 16 bits (PS3.3, section C.7.6.3.1.5).
#[test]
fn palettes_of_dicom() {
    let palette = |build: &dicom::Build, size: [u16; 3], colours: [&[u16]; 3]| {
        let mut build = build.clone();
        for (channel, colours) in (0..).zip(colours) {
            build = build.numbers((0x28, 0x1101 + channel), b"US", &size);
            build = build.numbers((0x28, 0x1201 + channel), b"OW", colours);
        }
        build
    };
    for syntax in [dicom::EXPLICIT, dicom::IMPLICIT, dicom::BIG] {
        let build = dicom::Build {
            syntax,
            photometric: "PALETTE COLOR",
            ..dicom::Build::default()
        };
        // The first colour is that of 4 and of less, the last one that of 6 and more.
        let wide: [&[u16]; 3] = [&[1, 2, 3], &[100, 200, 300], &[65535, 0, 256]];
        let indices = [0, 4, 5, 6, 7, 65535];
        let (found, metadata, _) =
            read(&palette(&build, [3, 4, 16], wide).words(&indices)).unwrap();
        let [a, b, c] = [[1u16, 100, 65535], [2, 200, 0], [3, 300, 256]];
        let expected = Samples::from([a, a, b, c, c, c].concat());
        assert_eq!(*found.samples(), expected, "{syntax}");
        assert_eq!(metadata.maxval, None);
        // Two colours of 8 bits in a word, or one.
        let packed: [&[u16]; 3] = [&[0x0201, 3], &[0x0504, 6], &[0x0807, 9]];
        let single: [&[u16]; 3] = [&[1, 2, 3], &[4, 5, 6], &[7, 8, 9]];
        let (a, b, c) = ([1, 4, 7], [2, 5, 8], [3, 6, 9]);
        for colours in [packed, single] {
            let file = palette(&build, [3, 4, 8], colours).words(&indices);
            assert_eq!(bytes(&file), (3, [a, a, b, c, c, c].concat()), "{syntax}");
        }
        // The first colour is that of -1.
        let signed = dicom::Build {
            signed: true,
            ..build.clone()
        };
        let file = palette(&signed, [3, 65535, 8], single).words(&[32768, 65535, 0, 1, 2, 32767]);
        assert_eq!(bytes(&file), (3, [a, a, b, c, c, c].concat()), "{syntax}");
        let few = palette(&build, [4, 0, 16], wide).words(&indices);
        crate::support::formats::refused(&few, "its palette has 3 of 4 colours");
    }
}

/// The values are those of pydicom.
#[test]
fn luma_and_chroma_in_dicom() {
    let build = dicom::Build {
        photometric: "YBR_FULL",
        channels: 3,
        bits: (8, 8),
        ..dicom::Build::default()
    };
    let pixels = [
        [100, 90, 200],
        [16, 128, 128],
        [255, 255, 0],
        [0, 0, 255],
        [81, 90, 240],
        [145, 54, 34],
    ];
    let expected = [
        [201, 62, 33],
        [16, 16, 16],
        [76, 255, 255],
        [178, 0, 0],
        [238, 14, 14],
        [13, 238, 14],
    ];
    let file = build.file(&pixels.concat(), None);
    assert_eq!(bytes(&file), (3, expected.concat()));
    let planes = |channel: usize| pixels.map(|pixel| pixel[channel]);
    let planes = [planes(0), planes(1), planes(2)];
    let planar = dicom::Build {
        planar: true,
        ..build.clone()
    };
    assert_eq!(
        bytes(&planar.file(&planes.concat(), None)),
        (3, expected.concat())
    );
    let runs = dicom::Build {
        syntax: dicom::RLE,
        ..build.clone()
    };
    let heads = [3u32, 64, 71, 78].into_iter().chain([0; 12]);
    let heads = heads.flat_map(u32::to_le_bytes).collect::<Vec<u8>>();
    let segments = planes.map(|plane| [&[5], &plane[..]].concat());
    let fragment = [heads, segments.concat(), vec![0]].concat();
    let file = runs.file(b"", Some(&[b"", &fragment]));
    assert_eq!(bytes(&file), (3, expected.concat()));
    // The chroma of two pixels in two frames of a row.
    let pairs = dicom::Build {
        photometric: "YBR_FULL_422",
        columns: 2,
        rows: 1,
        ..build.clone()
    };
    let pairs = pairs.text((0x28, 8), "2");
    let frames = [100, 50, 90, 200, 0, 81, 0, 255];
    let (found, ..) = read_pages(&pairs.file(&frames, None)).expect("readable");
    assert_eq!(
        *found[0].samples(),
        Samples::from(vec![201u8, 62, 33, 151, 12, 0])
    );
    assert_eq!(
        *found[1].samples(),
        Samples::from(vec![178u8, 0, 0, 255, 34, 0])
    );
    let odd = dicom::Build {
        photometric: "YBR_FULL_422",
        ..build
    };
    crate::support::formats::refused(
        &odd.file(&[0; 12], None),
        "in rows of 3 pixels is not supported",
    );
}

/// Written by libtiff: modified Huffman, and Group 3 of two dimensions without and with filled bytes.
#[test]
fn faxes_of_huffman_codes_and_of_two_dimensions() {
    let mut expected = vec![[255u8; 40]; 6];
    expected[0] = [0; 40];
    expected[1][3..36].fill(0);
    expected[2][2..20].fill(0);
    expected[2][23..36].fill(0);
    expected[3][10..12].fill(0);
    expected[3][30] = 0;
    expected[4][9..14].fill(0);
    expected[4][25..].fill(0);
    expected[5].iter_mut().step_by(3).for_each(|bit| *bit = 0);
    let expected = expected.concat();
    let huffman = [
        0x29, 0x35, 0x84, 0x98, 0x35, 0xD3, 0xC1, 0xB0, 0x35, 0x08, 0xE0, 0x40, 0xE2, 0x00, 0x35,
        0x13, 0x02, 0xEA, 0x1F, 0x1F, 0x1F, 0x1F, 0x1F, 0x1F, 0x1F, 0x1F, 0x1F, 0x1F, 0x1F, 0x1F,
        0x1F, 0x1C,
    ];
    let two = [
        0x00, 0x19, 0x48, 0x00, 0x89, 0xAC, 0x44, 0x98, 0x00, 0xCD, 0x74, 0xF0, 0x6C, 0x00, 0x52,
        0x11, 0xC8, 0x10, 0x3C, 0x00, 0x66, 0xA2, 0x60, 0x5D, 0x40, 0x04, 0xCE, 0x38, 0x22, 0x3E,
        0x47, 0xD1, 0xC7, 0x38, 0xE7, 0x1D, 0x11, 0xF2, 0x3E, 0x47, 0xC8, 0xF8, 0x25,
    ];
    let filled = [
        0x00, 0x01, 0x94, 0x80, 0x01, 0x13, 0x58, 0x89, 0x30, 0x01, 0x9A, 0xE9, 0xE0, 0xD8, 0x00,
        0x01, 0x48, 0x47, 0x20, 0x40, 0xF0, 0x01, 0x9A, 0x89, 0x81, 0x75, 0x00, 0x01, 0x33, 0x8E,
        0x08, 0x8F, 0x91, 0xF4, 0x71, 0xCE, 0x39, 0xC7, 0x44, 0x7C, 0x8F, 0x91, 0xF2, 0x3E, 0x09,
        0x40,
    ];
    let shape = image(40, 6, 1, Depth::Eight, Kind::Noise);
    for (compression, options, strip) in [(2, 0, &huffman[..]), (3, 1, &two), (3, 5, &filled)] {
        let build = Build::default()
            .tag(258, 3, &[1])
            .tag(259, 3, &[compression]);
        let build = build.tag(292, 4, &[options]);
        let file = build.with_strip(&shape, strip);
        assert_eq!(
            bytes(&file),
            (1, expected.clone()),
            "{compression}, {options}"
        );
        let cut = build.with_strip(&shape, &strip[..strip.len() / 2]);
        crate::support::formats::refused(&cut, "its fax data are damaged");
    }
}

/// Uncompressed, and in LZW with differences; the values are those of the equations of TIFF 6.0, section 21.
#[test]
fn luma_and_chroma_in_tiff() {
    let shape = image(3, 2, 3, Depth::Eight, Kind::Noise);
    let units = [10, 20, 30, 40, 90, 200, 50, 0, 60, 0, 128, 128];
    // Two rows and two columns of pixels share chroma where nothing is said.
    let build = Build::default().tag(262, 3, &[6]);
    let expected = [
        [111, 0, 0],
        [121, 0, 0],
        [50, 50, 50],
        [131, 0, 0],
        [141, 2, 0],
        [60, 60, 60],
    ];
    let file = build.with_strip(&shape, &units);
    assert_eq!(bytes(&file), (3, expected.concat()));
    crate::support::formats::refused(
        &build.with_strip(&shape, &units[..11]),
        "it unpacks to 11 of 12 bytes",
    );
    let differences = build.clone().tag(317, 3, &[2]).tag(259, 3, &[5]);
    crate::support::formats::refused(
        &differences.with_strip(&shape, &units),
        "a predictor of subsampled YCbCr colours is not supported",
    );
    // Each pixel has its own.
    let three = vec![16u8, 128, 128, 235, 128, 128, 100, 90, 200];
    let grid = Shape {
        height: 1,
        ..shape.shape()
    };
    let samples = Image::new(grid, Samples::from(three));
    // As they lie in memory with the least significant byte first.
    let fraction = |(n, d): (u64, u64)| d << 32 | n;
    let codes = [16, 235, 128, 240, 128, 240].map(|code| fraction((code, 1)));
    for (compression, predictor) in [(1, false), (5, false), (5, true), (8, true)] {
        let build = Build {
            compression,
            predictor,
            ..build.clone()
        };
        let file = build
            .tag(530, 3, &[1, 1])
            .tag(532, 5, &codes)
            .file(&samples);
        let expected = [[0, 0, 0], [255, 255, 255], [212, 54, 21]];
        assert_eq!(
            bytes(&file),
            (3, expected.concat()),
            "{compression}, {predictor}"
        );
    }
    let shares = [2126, 7152, 722].map(|share| fraction((share, 10_000)));
    let one = Image::new(
        Shape { width: 1, ..grid },
        Samples::from(vec![10u8, 90, 200]),
    );
    let file = build.tag(530, 3, &[1, 1]).tag(529, 5, &shares).file(&one);
    assert_eq!(bytes(&file), (3, vec![123, 0, 0]));
}

/// As other bands that are no RGB.
#[test]
fn channels_beside_inks() {
    let grey = image(2, 1, 1, Depth::Eight, Kind::Noise);
    let build = Build::default().tag(277, 3, &[5]).tag(262, 3, &[5]);
    let build = build.tag(258, 3, &[8; 5]);
    let file = build.with_strip(&grey, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    let (pages, _, said) = read_pages(&file).expect("readable");
    let second = Samples::from(vec![2u8, 7]);
    assert_eq!((pages.len(), pages[1].samples()), (5, &second));
    let warning = "its 5 samples per pixel are not RGB: each is read as a grey page";
    assert!(
        said.warnings.iter().any(|line| line == warning),
        "{:?}",
        said.warnings
    );
}

/// Of 2 to 16 bits, as in DICOM; colours are RGB.
#[test]
fn lossless_jpeg_by_itself() {
    let coder = Coder {
        width: 3,
        channels: 1,
        precision: 8,
        predictor: 4,
        shift: 0,
        restart: 0,
        long: false,
        apart: false,
    };
    for (precision, channels, maxval) in [
        (8, 1, None),
        (16, 1, None),
        (16, 3, None),
        (8, 3, None),
        (12, 1, Some(4095)),
        (2, 1, Some(3)),
    ] {
        let coder = Coder {
            precision,
            channels,
            ..coder
        };
        let most = (1u32 << precision) - 1;
        let samples: Vec<u16> = (0..6 * channels as u32)
            .map(|i| ((i * 40503) & most) as u16)
            .collect();
        let jpeg = coder.file(&samples);
        let (found, metadata, _) = read(&jpeg).expect("readable");
        assert_eq!(found.shape().channels, channels);
        let expected = match precision {
            ..=8 => Samples::from(
                samples
                    .iter()
                    .map(|&sample| sample as u8)
                    .collect::<Vec<u8>>(),
            ),
            _ => Samples::from(samples),
        };
        assert_eq!(*found.samples(), expected, "{precision}, {channels}");
        assert_eq!(metadata.maxval, maxval, "{precision}");
        assert!(read(&jpeg[..jpeg.len() - 4]).is_err(), "{precision}");
        if channels == 3 {
            let adobe = b"\xFF\xEE\0\x0EAdobe\0\x64\0\0\0\0\x01";
            let ycbcr = [&jpeg[..2], adobe, &jpeg[2..]].concat();
            crate::support::formats::refused(
                &ycbcr,
                "lossless JPEG of YCbCr colours is not supported",
            );
        }
    }
}

/// Each plane is one of luma or chroma; with chroma of fewer pixels it is refused by name.
#[test]
fn planes_of_luma_and_chroma_in_tiff() {
    let shape = image(2, 1, 3, Depth::Eight, Kind::Noise);
    let build = Build::default().tag(262, 3, &[6]).tag(284, 3, &[2]);
    let planes: [&[u8]; 3] = [&[100, 60], &[90, 128], &[200, 128]];
    let file = build
        .clone()
        .tag(530, 3, &[1, 1])
        .with_strips(&shape, &planes);
    assert_eq!(bytes(&file), (3, vec![201, 62, 33, 60, 60, 60]));
    let words = "planes of chroma that have fewer pixels than that of luma are not supported";
    crate::support::formats::refused(&build.with_strips(&shape, &planes), words);
    // As images of grey, whose size decides.
    let grey = |level: u8| jpeg(&[level; 2], 1, (2, 1));
    let planes = [grey(100), grey(90), grey(200)];
    let planes = planes.each_ref().map(Vec::as_slice);
    let file = build.tag(259, 3, &[7]).with_strips(&shape, &planes);
    assert_eq!(bytes(&file), (3, [201, 62, 33].repeat(2)));
}

#[test]
fn samples_beside_indices_and_chroma() {
    let shape = image(2, 1, 1, Depth::Eight, Kind::Noise);
    for (photometric, channels, words) in [
        (
            3,
            3,
            "2 samples per pixel beside the index of its palette are not supported",
        ),
        (
            6,
            4,
            "more samples per pixel than those of its YCbCr colours are not supported",
        ),
    ] {
        let build = Build::default()
            .tag(262, 3, &[photometric])
            .tag(277, 3, &[channels as u64])
            .tag(258, 3, &vec![8; channels])
            .tag(320, 3, &[7; 768]);
        crate::support::formats::refused(&build.with_strip(&shape, &vec![0; 2 * channels]), words);
    }
}

/// A second sample beside an index is alpha, as Pillow reads it.
#[test]
fn alpha_beside_indices() {
    let shape = image(2, 1, 1, Depth::Eight, Kind::Noise);
    let build = Build::default()
        .tag(262, 3, &[3])
        .tag(277, 3, &[2])
        .tag(258, 3, &[8, 8])
        .tag(338, 3, &[2]);
    for (step, expected) in [
        (257u64, Samples::from(vec![5u8, 15, 25, 0, 9, 19, 29, 200])),
        (
            300,
            Samples::from(vec![1500u16, 4500, 7500, 0, 2700, 5700, 8700, 200 * 257]),
        ),
    ] {
        let colours: Vec<u64> = (0..768)
            .map(|i| (i % 256 + 10 * (i / 256)) % 218 * step)
            .collect();
        let file = build
            .clone()
            .tag(320, 3, &colours)
            .with_strip(&shape, &[5, 0, 9, 200]);
        let (found, metadata, _) = read(&file).expect("readable");
        assert_eq!(*found.samples(), expected);
        assert_eq!(metadata.alpha, Alpha::Independent);
    }
}

/// Floating point of 16 bits, as differences of bytes and of samples.
#[test]
fn differences_of_halves() {
    let halves = [0x3C00u16, 0xBC00, 0x7BFF, 0x0001];
    let floats = [1.0f32, -1.0, 65504.0, 5.960_464_5e-8];
    let raw: Vec<u8> = floats.into_iter().flat_map(f32::to_le_bytes).collect();
    let shape = image(4, 1, 1, Depth::Float, Kind::Noise);
    let build = Build::default().tag(339, 3, &[3]);
    let expected = read(&build.with_strip(&shape, &raw)).expect("readable").0;
    let before = |i: usize| if i == 0 { 0 } else { halves[i - 1] };
    let differences: Vec<u16> = (0..4).map(|i| halves[i].wrapping_sub(before(i))).collect();
    let planes: Vec<u8> = [8, 0]
        .iter()
        .flat_map(|shift| halves.map(|half| (half >> shift) as u8))
        .collect();
    let byte_before = |i: usize| if i == 0 { 0 } else { planes[i - 1] };
    let bytewise: Vec<u8> = (0..8)
        .map(|i| planes[i].wrapping_sub(byte_before(i)))
        .collect();
    for (big_endian, predictor, strip) in [
        (
            false,
            2,
            differences
                .iter()
                .flat_map(|half| half.to_le_bytes())
                .collect(),
        ),
        (
            true,
            2,
            differences
                .iter()
                .flat_map(|half| half.to_be_bytes())
                .collect(),
        ),
        (false, 3, bytewise.clone()),
        (true, 3, bytewise),
    ] {
        let build = Build {
            big_endian,
            ..build.clone()
        };
        let build = build.tag(258, 3, &[16]).tag(317, 3, &[predictor]);
        let strip: Vec<u8> = strip;
        let found = read(&build.with_strip(&shape, &strip)).expect("readable").0;
        assert_eq!(found, expected, "{big_endian} {predictor}");
    }
}

/// A baseline JPEG without subsampling.
fn jpeg(samples: &[u8], channels: usize, (width, height): (u32, u32)) -> Vec<u8> {
    let mut file = Vec::new();
    let colours = match channels {
        1 => ::image::ExtendedColorType::L8,
        _ => ::image::ExtendedColorType::Rgb8,
    };
    let mut encoder = ::image::codecs::jpeg::JpegEncoder::new_with_quality(&mut file, 100);
    encoder
        .encode(samples, width, height, colours)
        .expect("a JPEG");
    file
}

/// The segments of a JPEG's head as their markers and contents, and the image data after it.
fn segments(jpeg: &[u8]) -> (Vec<(u8, &[u8])>, &[u8]) {
    let (mut segments, mut rest) = (Vec::new(), &jpeg[2..]);
    loop {
        let length = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
        let (segment, more) = rest.split_at(2 + length);
        segments.push((segment[1], &segment[4..]));
        rest = more;
        if segment[1] == 0xDA {
            return (segments, &rest[..rest.len() - 2]);
        }
    }
}

/// A stream that a field points to, streams in strips, tables that the directory lists, and a head that lies elsewhere.
#[test]
fn old_style_jpeg_in_tiff() {
    for channels in [1, 3] {
        let whole = image(24, 16, channels, Depth::Eight, Kind::Noise);
        let Samples::U8(samples) = whole.samples() else {
            panic!("8 bits");
        };
        let strips = samples.chunks(24 * 8 * channels);
        let strips: Vec<Vec<u8>> = strips.map(|strip| jpeg(strip, channels, (24, 8))).collect();
        let stream = jpeg(samples, channels, (24, 16));
        let expected = bytes(&stream);
        let in_strips = strips.iter().flat_map(|strip| bytes(strip).1).collect();
        let in_strips: (usize, Vec<u8>) = (channels, in_strips);
        let photometric = if channels == 3 { 6 } else { 1 };
        let build = Build::default()
            .tag(259, 3, &[6])
            .tag(262, 3, &[photometric])
            .tag(530, 3, &[1, 1]);
        // The stream is the strip, and where it begins a field says.
        let at = build
            .clone()
            .tag(513, 4, &[0])
            .with_strip(&whole, b"")
            .len() as u64;
        let file = build.clone().tag(513, 4, &[at]).with_strip(&whole, &stream);
        assert_eq!(bytes(&file), expected);
        let two = build.clone().tag(278, 4, &[8]);
        let parts: Vec<&[u8]> = strips.iter().map(Vec::as_slice).collect();
        assert_eq!(bytes(&two.with_strips(&whole, &parts)), in_strips);
        // Data alone, and the tables of the first strip, which are those of all.
        let (head, _) = segments(&strips[0]);
        let data: Vec<&[u8]> = strips.iter().map(|strip| segments(strip).1).collect();
        let (mut lists, mut tables) = ([vec![], vec![], vec![]], Vec::new());
        let empty = |lists: &[Vec<u64>; 3], restarts: u64| {
            let build = two.clone().tag(519, 4, &lists[0]).tag(520, 4, &lists[1]);
            build
                .tag(521, 4, &lists[2])
                .tag(515, 4, &[restarts])
                .with_strips(&whole, &data)
        };
        let at = empty(&[0, 1, 2].map(|_| vec![0; channels]), 0).len();
        for &(marker, content) in &head {
            if matches!(marker, 0xDB | 0xC4) {
                assert!(content.len() > 64 || marker == 0xC4);
                let list = match (marker, content[0] >> 4) {
                    (0xDB, _) => 0,
                    (_, 0) => 1,
                    _ => 2,
                };
                lists[list].push((at + tables.len()) as u64);
                tables.extend(&content[1..]);
            }
        }
        for list in &mut lists {
            // Both kinds of chroma have the same.
            list.truncate(channels.min(2));
            if channels == 3 {
                list.push(list[1]);
            }
        }
        let file = [empty(&lists, 0), tables.clone()].concat();
        assert_eq!(bytes(&file), in_strips);
        crate::support::formats::refused(&file[..at], "lies beyond the end");
        let long = [empty(&lists, 65_536), tables.clone()].concat();
        crate::support::formats::refused(&long, "more than 65535");
        crate::support::formats::refused(
            &two.with_strips(&whole, &data),
            "convert it first (libtiff: tiffcp",
        );
        // The head after the data.
        let (_, data) = segments(&stream);
        let head = &stream[..stream.len() - data.len() - 2];
        let at = build
            .clone()
            .tag(513, 4, &[0])
            .with_strip(&whole, data)
            .len() as u64;
        let file = build.clone().tag(513, 4, &[at]).with_strip(&whole, data);
        assert_eq!(bytes(&[&file, head].concat()), expected);
        let lossless = build.tag(512, 3, &[14]).with_strip(&whole, &stream);
        crate::support::formats::refused(&lossless, "old-style JPEG (compression 6) of this form");
    }
}

/// Inks are stored inverted, as Pillow and OpenCV assume, and may be luma and chroma of what they leave.
#[test]
fn inks_in_jpeg() {
    let [none, _, ycck] = ADOBE;
    let names = b"\x01\x02\x03\x04";
    for (segments, levels, expected) in [
        (&[none][..], [5, 100, 200, 250], [250, 155, 55, 5]),
        (&[], [5, 100, 200, 250], [250, 155, 55, 5]),
        (&[JFIF], [5, 100, 200, 250], [250, 155, 55, 5]),
        (&[ycck], [100, 90, 200, 250], [201, 62, 33, 5]),
    ] {
        let jpeg = flat(&levels, names, segments);
        let (channels, found) = bytes(&jpeg);
        assert_eq!((channels, &found[..4]), (4, &expected[..]));
        let root = folder(&[("in.jpg", &jpeg)]);
        let turned = run(root.path(), &["rotate", "90", "in.jpg", "out.tif"], &[]);
        assert_eq!(turned.code, 0, "{}", turned.stderr);
        let tiff = fs::read(root.path().join("out.tif")).unwrap();
        let (written, metadata, _) = read(&tiff).expect("readable");
        assert_eq!(written.samples().as_bytes()[..4], expected);
        assert_eq!(metadata.alpha, Alpha::Black);
        for (verb, output, words) in [
            (
                &["rotate", "90"][..],
                "out.jpg",
                "JPEG cannot store CMYK colours (TIFF can; convert them",
            ),
            (
                &["normalize"],
                "other.tif",
                "CMYK images can only be rotated",
            ),
        ] {
            let refused = run(root.path(), &[verb, &["in.jpg", output]].concat(), &[]);
            assert_eq!(refused.code, 1);
            assert!(refused.stderr.contains(words), "{}", refused.stderr);
        }
    }
    // In TIFF they are not inverted.
    let shape = image(8, 8, 4, Depth::Eight, Kind::Noise);
    let build = Build::default().tag(259, 3, &[7]).tag(262, 3, &[5]);
    for segments in [&[][..], &[none], &[ycck]] {
        let file = build.with_strip(&shape, &flat(&[5, 100, 200, 250], names, segments));
        assert_eq!(bytes(&file).1[..4], [5, 100, 200, 250]);
    }
}

/// Adobe's segment cut short, as in pydicom's `SC_rgb_jpeg.dcm`, or with a transform that nobody knows: libjpeg skips it.
#[test]
fn odd_segments_of_adobe() {
    for (segment, expected) in [
        (&b"Adobe\0\0\0\0\0"[..], [201, 62, 33]),
        (b"Adobe\0\x64\0\0\0\0\x07", [201, 62, 33]),
    ] {
        let jpeg = flat(&[100, 90, 200], b"\x01\x02\x03", &[(0xEE, segment)]);
        let found = bytes(&jpeg).1;
        let apart = found.iter().zip(expected).map(|(a, b)| a.abs_diff(b));
        assert!(apart.max() <= Some(1), "{:?}", &found[..3]);
    }
}
