//! Files of 3 × 2 pixels, written by hand from each format's specification.

use crate::support::formats::{dictionary, gif, npy};
use crate::support::formats::{format, read, read_pages, refused, written};
use crate::support::grey;
use gpuimg::internals::image::metadata::Metadata;
use gpuimg::internals::image::{Depth, Image, Samples, Shape};

fn bytes(image: &Image) -> &[u8] {
    match image.samples() {
        Samples::U8(samples) => samples,
        _ => panic!("8 bits were expected"),
    }
}

fn words(image: &Image) -> &[u16] {
    match image.samples() {
        Samples::U16(samples) => samples,
        _ => panic!("16 bits were expected"),
    }
}

fn shape(image: &Image) -> (usize, usize, usize) {
    let Shape {
        width,
        height,
        channels,
        ..
    } = image.shape();
    (width, height, channels)
}

/// Both byte orders, both signs and bool, in all three versions of the header.
#[test]
fn npy_of_every_type() {
    for version in [1, 2, 3] {
        let read = |descr, samples: &[u8]| {
            read(&npy(version, &dictionary(descr, "(2, 3)"), samples)).unwrap()
        };
        let two = |order: fn(u16) -> [u8; 2], values: [u16; 6]| values.map(order).concat();
        let values = [0, 1, 255, 256, 0x1234, 65535];
        for descr in ["<u2", "u2"] {
            let (image, metadata, _) = read(descr, &two(u16::to_le_bytes, values));
            assert_eq!((words(&image), metadata.signed), (&values[..], false));
            assert_eq!(shape(&image), (3, 2, 1));
        }
        let (image, ..) = read(">u2", &two(u16::to_be_bytes, values));
        assert_eq!(words(&image), values);
        // -32768, -1, 0, 1, 2, 32767
        let stored = [0x8000, 0xFFFF, 0, 1, 2, 0x7FFF];
        let sorted = [0, 0x7FFF, 0x8000, 0x8001, 0x8002, 0xFFFF];
        for (descr, samples) in [
            ("<i2", two(u16::to_le_bytes, stored)),
            (">i2", two(u16::to_be_bytes, stored)),
        ] {
            let (image, metadata, _) = read(descr, &samples);
            assert_eq!((words(&image), metadata.signed), (&sorted[..], true));
        }
        let (image, ..) = read("|u1", &[0, 1, 2, 3, 254, 255]);
        assert_eq!(bytes(&image), [0, 1, 2, 3, 254, 255]);
        let (image, metadata, _) = read("|i1", &[0x80, 0xFF, 0, 1, 2, 0x7F]);
        assert_eq!(bytes(&image), [0, 0x7F, 0x80, 0x81, 0x82, 0xFF]);
        assert!(metadata.signed);
        let (image, metadata, _) = read("|b1", &[0, 1, 1, 0, 0, 1]);
        assert_eq!(
            (bytes(&image), metadata.maxval),
            (&[0, 1, 1, 0, 0, 1][..], Some(1))
        );
    }
}

#[test]
fn npy_shapes() {
    let read = |axes: &str, count: u8| {
        let samples: Vec<u8> = (0..count).collect();
        let (pages, ..) = read_pages(&npy(1, &dictionary("|u1", axes), &samples)).unwrap();
        (
            pages.len(),
            shape(&pages[0]),
            bytes(&pages[pages.len() - 1])[0],
        )
    };
    assert_eq!(read("(2, 3)", 6), (1, (3, 2, 1), 0));
    assert_eq!(read("(2L, 3L)", 6), (1, (3, 2, 1), 0));
    assert_eq!(read("(2, 3, 3)", 18), (1, (3, 2, 3), 0));
    assert_eq!(read("(2, 3, 4)", 24), (1, (3, 2, 4), 0));
    assert_eq!(read("(2, 3, 5)", 30), (2, (5, 3, 1), 15));
    assert_eq!(read("(2, 3, 2, 1)", 12), (2, (2, 3, 1), 6));
    assert_eq!(read("(2, 1, 5, 3)", 30), (2, (5, 1, 3), 15));
    for (axes, why) in [
        ("(6,)", "an array of the shape [6] is not an image"),
        ("()", "an array of the shape [] is not an image"),
        ("(1, 2, 3, 5)", "is not an image"),
        ("(2, 0)", "the image is empty"),
        ("(0, 2, 5)", "the image is empty"),
        ("(2, x)", "no number where \"x\" is"),
        ("7", "not a tuple"),
        ("(99999999999, 99999999999)", "do not fit in memory"),
        ("(99999999, 99999999, 9999)", "do not fit in a file"),
        ("(99999999999999999999, 2)", "no number"),
    ] {
        refused(&npy(1, &dictionary("|u1", axes), &[0; 6]), why);
    }
}

/// A stack of narrow pages must not come back as one image with channels.
#[test]
fn narrow_pages_stay_pages() {
    for width in 1..=4 {
        let pages: Vec<Image> = (0..5)
            .map(|page| {
                let row = vec![page as u16; width * 2];
                let shape = Shape::checked(width as u64, 2, 1, Depth::Sixteen).unwrap();
                Image::new(shape, row.into())
            })
            .collect();
        let file = written(format("npy"), &pages, &Metadata::default()).unwrap();
        assert_eq!(read_pages(&file).unwrap().0, pages);
    }
}

#[test]
fn npy_refusals() {
    for (descr, why) in [
        ("<f2", "samples of the type \"<f2\" are not supported"),
        ("<i8", "integers of 8, 16 and 32 bits are"),
        ("<c16", "not supported"),
    ] {
        refused(&npy(1, &dictionary(descr, "(2, 3)"), &[0; 96]), why);
    }
    let fortran = dictionary("|u1", "(2, 3)").replace("False", "True");
    refused(&npy(1, &fortran, &[0; 6]), "numpy.ascontiguousarray");
    let fields = "{'descr': [('r', '|u1')], 'fortran_order': False, 'shape': (2, 3), }\n";
    refused(&npy(1, fields, &[0; 6]), "structures");
    refused(
        &npy(4, &dictionary("|u1", "(2, 3)"), &[0; 6]),
        "version 4.0",
    );
    refused(&npy(1, "{}", &[0; 6]), "no 'descr'");
    refused(
        b"\x93NUMPY\x02\0\xFF\xFF\xFF\xFF{",
        "a header of 4294967295 bytes",
    );
    refused(b"\x93NUMPY\x01\0\xFF\xFF{", "truncated at byte 11");
}

/// The header that NumPy itself writes, byte for byte.
#[test]
fn npy_as_numpy_writes_it() {
    let image = grey([[1, 2, 3], [4, 5, 0xABCD]]);
    let file = written(format("npy"), &[image], &Metadata::default()).unwrap();
    let mut expected =
        b"\x93NUMPY\x01\0\x76\0{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }"
            .to_vec();
    expected.resize(127, b' ');
    expected.push(b'\n');
    expected.extend(b"\x01\0\x02\0\x03\0\x04\0\x05\0\xCD\xAB");
    assert_eq!(file, expected);
}

#[test]
fn pam() {
    let head = |depth, maxval, tuple: &str| {
        format!(
            "P7\n# made by hand\nWIDTH 3\nHEIGHT 2\nDEPTH {depth}\nMAXVAL {maxval}\n{tuple}ENDHDR\n"
        )
    };
    let file = |head: String, samples: &[u8]| [head.as_bytes(), samples].concat();
    let (image, metadata, _) =
        read(&file(head(1, 255, "TUPLTYPE GRAYSCALE\n"), b"abcdef")).unwrap();
    assert_eq!((bytes(&image), shape(&image)), (&b"abcdef"[..], (3, 2, 1)));
    assert_eq!(metadata, Metadata::default());
    let (image, metadata, _) =
        read(&file(head(2, 4095, "TUPLTYPE GRAYSCALE_ALPHA\n"), &[1; 24])).unwrap();
    assert_eq!(
        (words(&image), metadata.maxval),
        (&[0x0101; 12][..], Some(4095))
    );
    assert_eq!(shape(&image), (3, 2, 2));
    for (depth, tuple) in [(3, "RGB"), (4, "RGB_ALPHA")] {
        for line in [format!("TUPLTYPE {tuple}\n"), String::new()] {
            let samples: Vec<u8> = (0..6 * depth as u8).collect();
            let (image, ..) = read(&file(head(depth, 255, &line), &samples)).unwrap();
            assert_eq!((bytes(&image), shape(&image).2), (&samples[..], depth));
        }
    }
    let (image, metadata, _) = read(&file(
        head(1, 1, "TUPLTYPE BLACKANDWHITE\n"),
        &[0, 1, 1, 0, 0, 1],
    ))
    .unwrap();
    assert_eq!((bytes(&image)[1], metadata.maxval), (1, Some(1)));
    for (head, why) in [
        (head(5, 255, ""), "pixels of 5 samples"),
        (
            head(1, 255, "TUPLTYPE RGB\n"),
            "pixels of 1 samples and of the type \"RGB\"",
        ),
        (
            head(4, 255, "TUPLTYPE CMYK\n"),
            "pixels of the type \"CMYK\"",
        ),
        (head(1, 0, ""), "a maxval of 0"),
        (head(1, 65536, ""), "a maxval of 65536"),
        (head(1, 1, ""), "a sample of 102 is above the maxval 1"),
        (head(1, 255, "COLOUR red\n"), "an unknown line: \"COLOUR\""),
        (
            head(1, 255, "").replace("HEIGHT 2\n", ""),
            "the header has no HEIGHT",
        ),
        (
            head(1, 255, "").replace("3", "-3"),
            "WIDTH is not a number: \"-3\"",
        ),
        (head(1, 255, "").replace("3", "0"), "the image is empty"),
        (
            head(1, 255, "").replace("3", "9999999999999"),
            "truncated at byte",
        ),
    ] {
        refused(&file(head, b"abcdef"), why);
    }
    refused(
        &[file(head(1, 255, ""), b"abcdef"), b"P7\n".to_vec()].concat(),
        "several images",
    );
}

/// Bitmaps have 1 for black; numbers keep their values.
#[test]
fn plain_and_packed_pnm() {
    for file in [
        &b"P1\n3 2\n101\n010\n"[..],
        b"P1 3 2\n1 0 1 0 1 0",
        b"P1 # bits\n3 2\n1#one\n0 1\n# more\n 0 10",
        b"P4\n3 2\n\xA0\x5F",
    ] {
        let (image, metadata, _) = read(file).unwrap();
        assert_eq!(
            bytes(&image),
            [0, 255, 0, 255, 0, 255],
            "{}",
            file.escape_ascii()
        );
        assert_eq!(metadata.significant, Some(vec![1]));
    }
    let (image, ..) = read(b"P4 9 1 \x7F\x80").unwrap();
    assert_eq!(bytes(&image), [255, 0, 0, 0, 0, 0, 0, 0, 0]);
    let (image, metadata, _) = read(b"P2\n3 2\n15\n0 1 2\n13 14 15").unwrap();
    assert_eq!(
        (bytes(&image), metadata.maxval),
        (&[0, 1, 2, 13, 14, 15][..], Some(15))
    );
    let (image, ..) = read(b"P2 3 2 65535 0 1 256 # two rows\n 65533 65534 65535\n").unwrap();
    assert_eq!(words(&image), [0, 1, 256, 65533, 65534, 65535]);
    // A comment may begin right after a number, and ends with the line.
    let (image, ..) = read(b"P2 3 1 255 1#7 8\n2 # 9\r3#").unwrap();
    assert_eq!(bytes(&image), [1, 2, 3]);
    let (image, ..) = read(b"P3 1 2 255 1 2 3\t4\r5\n6").unwrap();
    assert_eq!(
        (bytes(&image), shape(&image)),
        (&[1, 2, 3, 4, 5, 6][..], (1, 2, 3))
    );
    for (file, why) in [
        (&b"P1 3 1 1 0 2"[..], "neither 0 nor 1 (byte 11)"),
        (b"P1 3 1 10", "truncated at byte 9 of 10"),
        (b"P2 3 1 255 1 2 ", "truncated at byte 15 of 16"),
        (b"P2 3 1 255 1  2  ", "truncated at byte 17"),
        (
            b"P2 3 1 255 1 2 256",
            "a sample at byte 15 is above the maxval 255",
        ),
        (b"P2 3 1 255 1 2 99999999999999", "above the maxval"),
        (
            b"P2 3 1 255 1 2 x33",
            "a sample that is not a number (byte 15)",
        ),
        (
            b"P2 3 1 255 1 2 3x3",
            "a sample that is not a number (byte 15)",
        ),
        (b"P4 9 1 \x7F", "truncated at byte 8 of 9"),
        (b"P4 8 1 \x7FP4 8 1 \x7F", "several images"),
        (b"P2 2 1 255 1 2\nP5 1 1 255 a", "several images"),
        (b"P1 2 1 10 P1 2 1 10", "several images"),
        (
            b"P1 1000000 1000000 1",
            "truncated at byte 20 of 1000000000019",
        ),
        (
            b"P2 1000000 1000000 9 1",
            "truncated at byte 22 of 2000000000020",
        ),
    ] {
        refused(file, why);
    }
}

#[test]
fn farbfeld() {
    let pixels: Vec<u8> = (0..48).collect();
    let file = [&b"farbfeld\0\0\0\x03\0\0\0\x02"[..], &pixels].concat();
    let (image, metadata, _) = read(&file).unwrap();
    assert_eq!(
        (shape(&image), words(&image)[..2].to_vec()),
        ((3, 2, 4), vec![1, 0x0203])
    );
    assert_eq!(metadata, Metadata::default());
    assert_eq!(
        written(format("farbfeld"), &[image], &metadata).unwrap(),
        file
    );
    let red = Image::new(
        Shape::checked(1, 1, 3, Depth::Sixteen).unwrap(),
        vec![0xFFFFu16, 1, 2].into(),
    );
    assert_eq!(
        written(format("farbfeld"), &[red], &metadata).unwrap(),
        b"farbfeld\0\0\0\x01\0\0\0\x01\xFF\xFF\0\x01\0\x02\xFF\xFF"
    );
    refused(
        b"farbfeld\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
        "do not fit in memory",
    );
    refused(
        b"farbfeld\0\xFF\xFF\xFF\0\0\xFF\xFF",
        "truncated at byte 16 of",
    );
    refused(b"farbfeld\0\0\0\0\0\0\0\x01", "the image is empty");
}

/// 24 bits, rows from below, padded to 4 bytes; and a palette of greys.
#[test]
fn bmp() {
    let header = |bits: u8, colours: u8| {
        let start = 54 + 4 * u16::from(colours);
        let mut file = b"BM\0\0\0\0\0\0\0\0".to_vec();
        file.extend([
            start as u8,
            (start >> 8) as u8,
            0,
            0,
            40,
            0,
            0,
            0,
            3,
            0,
            0,
            0,
            2,
            0,
            0,
            0,
        ]);
        file.extend([1, 0, bits, 0]);
        file.extend([0; 16]);
        file.extend([colours, 0, 0, 0, 0, 0, 0, 0]);
        file
    };
    let mut file = header(24, 0);
    file.extend(b"\x0c\x0b\x0a\x0f\x0e\x0d\x12\x11\x10\0\0\0");
    file.extend(b"\x03\x02\x01\x06\x05\x04\x09\x08\x07\0\0\0");
    let (image, ..) = read(&file).unwrap();
    let expected: Vec<u8> = (1..=18).collect();
    assert_eq!((shape(&image), bytes(&image)), ((3, 2, 3), &expected[..]));

    for (grey, channels) in [(0x40, 1), (0x41, 3)] {
        let mut file = header(8, 2);
        file.extend(b"\x10\x10\x10\0");
        file.extend([0x40, 0x40, grey, 0]);
        file.extend(b"\x01\x00\x01\0\x00\x01\x00\0");
        let (image, ..) = read(&file).unwrap();
        assert_eq!(shape(&image), (3, 2, channels));
        let first: Vec<u8> = bytes(&image).iter().step_by(channels).copied().collect();
        assert_eq!(first, [0x10, grey, 0x10, grey, 0x10, grey]);
    }
    let grey = Image::new(
        Shape::checked(3, 2, 1, Depth::Eight).unwrap(),
        vec![9u8, 8, 7, 6, 5, 4].into(),
    );
    let file = written(
        format("bmp"),
        std::slice::from_ref(&grey),
        &Metadata::default(),
    )
    .unwrap();
    assert_eq!((&file[..2], read(&file).unwrap().0), (&b"BM"[..], grey));
}

/// Uncompressed and in runs; grey, colours from below and from above, a colour map.
#[test]
fn tga() {
    let header =
        |map: [u8; 7], bits, about| [&[0][..], &map, &[0; 4], &[3, 0, 2, 0, bits, about]].concat();
    let plain = |kind| [0, kind, 0, 0, 0, 0, 0];
    let grey = [header(plain(3), 8, 0x20), b"abcdef".to_vec()].concat();
    assert_eq!(bytes(&read(&grey).unwrap().0), b"abcdef");
    let below = [header(plain(3), 8, 0), b"defabc".to_vec()].concat();
    assert_eq!(bytes(&read(&below).unwrap().0), b"abcdef");
    let colour: Vec<u8> = (0..18).collect();
    let colour = [header(plain(2), 24, 0x20), colour].concat();
    let (image, ..) = read(&colour).unwrap();
    assert_eq!(
        (shape(&image), &bytes(&image)[..6]),
        ((3, 2, 3), &[2, 1, 0, 5, 4, 3][..])
    );
    // Four times the first pixel, then two pixels as they are.
    let runs = [
        header(plain(10), 32, 0x28),
        b"\x83\x01\x02\x03\x04\x01abcdefgh".to_vec(),
    ]
    .concat();
    let (image, ..) = read(&runs).unwrap();
    let expected = [&[3, 2, 1, 4].repeat(4)[..], b"cbadgfeh"].concat();
    assert_eq!((shape(&image), bytes(&image)), ((3, 2, 4), &expected[..]));
    let mapped = [
        header([1, 1, 0, 0, 2, 0, 24], 8, 0x20),
        b"\x01\x02\x03\x0a\x0b\x0c".to_vec(),
        b"\0\x01\0\x01\0\x01".to_vec(),
    ];
    let (image, ..) = read(&mapped.concat()).unwrap();
    assert_eq!(bytes(&image), [3, 2, 1, 12, 11, 10].repeat(3));
    // Nothing but a header that makes sense tells a TGA.
    for other in [
        &b"\0\0\x01\0\x01\0\x10\x10\0\0\x01\0\x20\0\x68\x04\0\0"[..],
        &[0; 40],
        b"\0\0\x02",
    ] {
        refused(other, "it is not a supported image format");
    }
}

/// A pixel as it is, a run, a difference (QOI specification 1.0).
#[test]
fn qoi() {
    let head = b"qoif\0\0\0\x03\0\0\0\x02\x03\0";
    // RGB 10 20 30; run of 2; difference (+1, 0, -1); luma (+2, +2, +2); the first again, by index.
    let index = (10 * 3 + 20 * 5 + 30 * 7 + 255 * 11) % 64;
    let chunks = [0xFE, 10, 20, 30, 0xC1, 0x79, 0xA2, 0x88, index as u8];
    let file = [&head[..], &chunks, &[0, 0, 0, 0, 0, 0, 0, 1]].concat();
    let (image, ..) = read(&file).unwrap();
    let expected: [[u8; 3]; 6] = [
        [10, 20, 30],
        [10, 20, 30],
        [10, 20, 30],
        [11, 20, 29],
        [13, 22, 31],
        [10, 20, 30],
    ];
    assert_eq!(
        (shape(&image), bytes(&image)),
        ((3, 2, 3), &expected.concat()[..])
    );
}

#[test]
fn gif_of_palette_and_transparency() {
    let (a, b) = ([10, 20, 30], [40, 50, 60]);
    let (image, _, diagnostics) = read(&gif(false, 0, 3)).unwrap();
    assert_eq!(
        (shape(&image), bytes(&image)),
        ((3, 2, 3), &[a, b, a, b, a, b].concat()[..])
    );
    assert!(diagnostics.warnings.is_empty());
    let (image, ..) = read(&gif(true, 0, 3)).unwrap();
    let (opaque, clear) = ([10, 20, 30, 255], [40, 50, 60, 0]);
    assert_eq!(shape(&image), (3, 2, 4));
    assert_eq!(
        bytes(&image),
        [opaque, clear, opaque, clear, opaque, clear].concat()
    );
    // An image that leaves the first column of the screen free.
    let (image, ..) = read(&gif(false, 1, 2)).unwrap();
    let (free, second) = ([0; 4], [40, 50, 60, 255]);
    assert_eq!(
        bytes(&image),
        [free, opaque, second, free, opaque, second].concat()
    );
    // Two images: the first is taken, and that is said.
    let mut two = gif(false, 0, 3);
    two.pop();
    let second = two[19..].to_vec();
    two.extend(second);
    two.push(b';');
    let (image, _, diagnostics) = read(&two).unwrap();
    assert_eq!(bytes(&image), [a, b, a, b, a, b].concat());
    assert_eq!(
        diagnostics.warnings,
        ["it is an animation, of which the first image is taken"]
    );
    refused(&gif(false, 2, 2), "");
}
