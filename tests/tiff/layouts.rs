//! Files of every supported layout, and the names of those that are not supported.

use super::crate_reads;
use crate::support::tiff::Build;
use crate::support::tiff_images::{message, picture, read, written};
use gpuimg::internals::formats::tiff::{self, Compression};
use gpuimg::internals::image::{Depth, Image, Samples, Shape};

/// Byte for byte by hand: 3×2, 16 bits, grey, little-endian, two strips in reverse order.
#[test]
fn literal_little_endian() {
    #[rustfmt::skip]
    let file = [
        b'I', b'I', 42, 0, 20, 0, 0, 0,
        // Rows 1 and 0.
        4, 0, 5, 0, 0xff, 0xff, 1, 0, 2, 1, 0, 0x80,
        9, 0,
        0, 1, 3, 0, 1, 0, 0, 0, 3, 0, 0, 0,
        1, 1, 3, 0, 1, 0, 0, 0, 2, 0, 0, 0,
        2, 1, 3, 0, 1, 0, 0, 0, 16, 0, 0, 0,
        3, 1, 3, 0, 1, 0, 0, 0, 1, 0, 0, 0,
        6, 1, 3, 0, 1, 0, 0, 0, 1, 0, 0, 0,
        17, 1, 3, 0, 2, 0, 0, 0, 14, 0, 8, 0,
        21, 1, 3, 0, 1, 0, 0, 0, 1, 0, 0, 0,
        22, 1, 3, 0, 1, 0, 0, 0, 1, 0, 0, 0,
        23, 1, 3, 0, 2, 0, 0, 0, 6, 0, 6, 0,
        0, 0, 0, 0,
    ];
    let image = read(&file).unwrap();
    assert_eq!((image.shape().width, image.shape().height), (3, 2));
    assert_eq!(
        image.samples(),
        &Samples::U16(vec![1, 258, 32768, 4, 5, 65535].into())
    );
}

/// 3×2, 8 bits, RGB, big-endian, one tile of 4×2, packed by PackBits.
#[test]
fn literal_big_endian() {
    #[rustfmt::skip]
    let file = [
        b'M', b'M', 0, 42, 0, 0, 0, 38,
        // Row 0: 1 2 3 4 5 6 7 8 9 and padding; row 1: nine times 7 and padding; bits per sample.
        11, 1, 2, 3, 4, 5, 6, 7, 8, 9, 99, 99, 99, 248, 7, 254, 99, 0,
        0, 8, 0, 8, 0, 8,
        0, 0, 0, 0, 0, 0,
        0, 10,
        1, 0, 0, 3, 0, 0, 0, 1, 0, 3, 0, 0,
        1, 1, 0, 3, 0, 0, 0, 1, 0, 2, 0, 0,
        1, 2, 0, 3, 0, 0, 0, 3, 0, 0, 0, 26,
        1, 3, 0, 3, 0, 0, 0, 1, 0x80, 0x05, 0, 0,
        1, 6, 0, 3, 0, 0, 0, 1, 0, 2, 0, 0,
        1, 21, 0, 3, 0, 0, 0, 1, 0, 3, 0, 0,
        1, 66, 0, 3, 0, 0, 0, 1, 0, 4, 0, 0,
        1, 67, 0, 3, 0, 0, 0, 1, 0, 2, 0, 0,
        1, 68, 0, 4, 0, 0, 0, 1, 0, 0, 0, 8,
        1, 69, 0, 4, 0, 0, 0, 1, 0, 0, 0, 17,
        0, 0, 0, 0,
    ];
    let image = read(&file).unwrap();
    let row0 = [1, 2, 3, 4, 5, 6, 7, 8, 9];
    assert_eq!(
        image.samples(),
        &Samples::U8([row0, [7; 9]].concat().into())
    );
    assert_eq!((image.shape().width, image.shape().channels), (3, 3));
}

/// Byte orders × BigTIFF × compressions × predictor × strips and tiles × channels × depths.
#[test]
fn every_layout() {
    let mut cases = 0;
    for (width, height) in [(1, 1), (37, 29), (16, 48)] {
        for channels in 1..=4 {
            for depth in [Depth::Eight, Depth::Sixteen] {
                let image = picture(width, height, channels, depth);
                for compression in [1, 5, 8, 32773, 50000] {
                    for flags in 0..16 {
                        for (strip, tile) in [
                            (7, None),
                            (usize::MAX, None),
                            (0, Some((16, 16))),
                            (0, Some((48, 16))),
                        ] {
                            let build = Build {
                                big_endian: flags & 1 != 0,
                                big_tiff: flags & 2 != 0,
                                predictor: flags & 4 != 0,
                                padded: flags & 8 != 0,
                                compression,
                                strip,
                                tile,
                                ..Build::default()
                            };
                            let same = read(&build.file(&image)).unwrap() == image;
                            assert!(
                                same,
                                "{:?} {compression} {flags:b} {strip} {tile:?}",
                                image.shape()
                            );
                            cases += 1;
                        }
                    }
                }
            }
        }
    }
    assert_eq!(cases, 3 * 4 * 2 * 5 * 16 * 4);
}

/// Strings of every length up to the longest, tables that fill up, all as `weezl` packs them.
#[test]
fn long_lzw_strings() {
    let shape = Shape::checked(1201, 1409, 1, Depth::Eight).unwrap();
    for flat in [1, 3, 10, 100, 100_000, 100_000_000] {
        let samples = (0..shape.samples()).map(|i| ((i / flat) * 77 % 251) as u8);
        let image = Image::new(shape, Samples::U8(samples.collect()));
        let build = Build {
            compression: 5,
            strip: 400,
            ..Build::default()
        };
        assert!(read(&build.file(&image)).unwrap() == image, "{flat}");
        let bytes = written(|target| tiff::encode(&image, Compression::Lzw, target)).unwrap();
        assert!(read(&bytes).unwrap() == image, "{flat}");
        assert!(crate_reads(&bytes) == image.samples().as_bytes(), "{flat}");
    }
}

/// Tags that may be left out, and values that mean the same.
#[test]
fn tolerated() {
    let grey = picture(5, 4, 1, Depth::Sixteen);
    let alpha = picture(5, 4, 4, Depth::Sixteen);
    let build = Build::default;
    for (image, build) in [
        (&grey, build().tag(259, 3, &[])),
        (&grey, build().tag(277, 3, &[])),
        (&grey, build().tag(278, 3, &[])),
        (&grey, build().tag(278, 4, &[u32::MAX.into()])),
        (&grey, build().tag(279, 4, &[])),
        (&grey, build().tag(274, 3, &[1])),
        (&grey, build().tag(339, 3, &[4])),
        (&grey, build().tag(33550, 12, &[0, 0, 0])),
        (&grey, build().tag(284, 3, &[2])),
        (&grey, build().tag(262, 3, &[0])),
        (&grey, build().tag(274, 3, &[6])),
        (&alpha, build().tag(338, 3, &[0])),
        (&alpha, build().tag(338, 3, &[])),
        (&alpha, build().tag(338, 3, &[1])),
        (&alpha, build().tag(258, 3, &[16])),
        (&alpha, build().tag(339, 3, &[1, 1, 1, 1])),
    ] {
        assert_eq!(
            &read(&build.file(image)).unwrap(),
            image,
            "{:?}",
            build.tags
        );
    }
}

/// Each unsupported kind is refused by name.
#[test]
fn refusals() {
    let grey = picture(5, 4, 1, Depth::Sixteen);
    let colour = picture(5, 4, 3, Depth::Sixteen);
    let alpha = picture(5, 4, 4, Depth::Sixteen);
    let build = Build::default;
    for (image, build, words) in [
        (
            &grey,
            build().tag(258, 3, &[24]).tag(339, 3, &[3]),
            "24-bit floating-point",
        ),
        (&grey, build().tag(339, 3, &[6]), "sample format 6"),
        (&grey, build().tag(258, 3, &[20]), "20-bit"),
        (&grey, build().tag(258, 3, &[17]), "17-bit"),
        (&colour, build().tag(284, 3, &[2]), "lists 1 of 3 strips"),
        (&grey, build().tag(284, 3, &[3]), "planar configuration 3"),
        (
            &colour,
            build().tag(339, 3, &[1, 2, 1]),
            "channels of different sign",
        ),
        (&alpha, build().tag(338, 3, &[9]), "of meaning 9"),
        (
            &colour,
            build().tag(258, 3, &[8, 16, 8]),
            "different depths",
        ),
        (&grey, build().tag(262, 3, &[]), "PhotometricInterpretation"),
        (&grey, build().tag(262, 3, &[3]), "palette"),
        (&grey, build().tag(262, 3, &[5]), "1 samples per pixel"),
        (&colour, build().tag(262, 3, &[6]), "YCbCr"),
        (&colour, build().tag(262, 3, &[8]), "Lab"),
        (&grey, build().tag(262, 3, &[32803]), "interpretation 32803"),
        (&grey, build().tag(266, 3, &[3]), "fill order 3"),
        (
            &alpha,
            build().tag(262, 3, &[3]),
            "beside the index of its palette",
        ),
        (&alpha, build().tag(262, 3, &[1]), "it has several pages"),
        (&grey, build().tag(262, 3, &[2]), "1 samples per pixel"),
        (&grey, build().tag(259, 3, &[7]), "JPEG"),
        (&grey, build().tag(259, 3, &[4]), "CCITT"),
        (&grey, build().tag(259, 3, &[50001]), "WebP"),
        (&grey, build().tag(259, 3, &[1234]), "compression 1234"),
        (&grey, build().tag(317, 3, &[3]), "predictor 3"),
        (
            &grey,
            build().tag(258, 3, &[12]).tag(317, 3, &[2]),
            "predictor 2 of 12-bit",
        ),
        (&grey, build().tag(256, 3, &[]), "ImageWidth"),
        (&grey, build().tag(257, 3, &[0]), "the image is empty"),
    ] {
        let text = message(read(&build.file(image)));
        assert!(text.contains(words), "{text:?} has no {words:?}");
    }
}
