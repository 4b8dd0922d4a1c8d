//! TIFFs and PNGs as they are met: palettes, bits from the other end, animations.

use crate::support::contract::tag;
use crate::support::formats::{read, refused};
use crate::support::png::{Plain, chunk};
use crate::support::tiff::Build;
use gpuimg::internals::image::{Depth, Image, Samples, Shape};

fn indices(bits: u32, values: &[u8]) -> Image {
    let (width, height) = (values.len() as u64 / 2, 2);
    let shape = Shape::checked(width, height, 1, Depth::Eight).unwrap();
    assert!(values.iter().all(|&value| u32::from(value) < 1 << bits));
    Image::new(shape, values.to_vec().into())
}

/// A palette's TIFF: one strip of packed indices, written by hand.
fn mapped(bits: u32, width: u16, rows: &[u8], map: &[u16]) -> Vec<u8> {
    let entries: [(u16, u16, u32, u32); 9] = [
        (256, 3, 1, width.into()),
        (257, 3, 1, 2),
        (258, 3, 1, bits),
        (259, 3, 1, 1),
        (262, 3, 1, 3),
        (273, 4, 1, 8),
        (278, 3, 1, 2),
        (279, 4, 1, rows.len() as u32),
        (320, 3, map.len() as u32, 8 + rows.len() as u32),
    ];
    let map: Vec<u8> = map.iter().flat_map(|value| value.to_le_bytes()).collect();
    let directory = 8 + rows.len() + map.len();
    let mut file = [&b"II*\0"[..], &(directory as u32).to_le_bytes(), rows, &map].concat();
    file.extend((entries.len() as u16).to_le_bytes());
    for (tag, kind, count, value) in entries {
        file.extend(tag.to_le_bytes());
        file.extend(kind.to_le_bytes());
        file.extend(count.to_le_bytes());
        file.extend(value.to_le_bytes());
    }
    file.extend([0; 4]);
    file
}

/// Red, then green, then blue of all colours; times 256, 257 or 1, or with all 16 bits.
#[test]
fn palettes() {
    for (bits, rows) in [
        (1u32, &b"\xA0\x40"[..]),
        (2, b"\x44\x10"),
        (4, b"\x10\x10\x01\x00"),
        (8, b"\x01\x00\x01\x00\x01\x00"),
    ] {
        for (times, deep) in [(256, false), (257, false), (1, false), (99, true)] {
            let count = 1usize << bits;
            let mut map = vec![0u16; 3 * count];
            for (i, value) in [
                (0, 10),
                (1, 20),
                (count, 30),
                (count + 1, 40),
                (2 * count, 50),
                (2 * count + 1, 255),
            ] {
                map[i] = value * times;
            }
            let (image, metadata, _) = read(&mapped(bits, 3, rows, &map)).unwrap();
            let (a, b) = ([10, 30, 50], [20, 40, 255]);
            let expected = [b, a, b, a, b, a].concat();
            match image.samples() {
                Samples::U8(samples) => {
                    assert!(!deep);
                    let samples: Vec<u16> = samples.iter().map(|&sample| sample.into()).collect();
                    assert_eq!(samples, expected, "{bits} {times}");
                }
                Samples::U16(samples) => {
                    assert!(deep);
                    let expected: Vec<u16> = expected.iter().map(|value| value * 99).collect();
                    assert_eq!(samples[..], expected, "{bits} {times}");
                }
                Samples::U32(_) | Samples::U64(_) => panic!("8 or 16 bits were expected"),
            }
            assert_eq!((image.shape().channels, metadata.significant), (3, None));
        }
    }
    refused(
        &mapped(8, 3, b"abcdef", &[0; 767]),
        "its palette has 767 numbers where 768 are needed",
    );
    let no_map = Build::default()
        .tag(262, 3, &[3])
        .file(&indices(8, b"abcdef"));
    refused(
        &no_map,
        "the palette (ColorMap) of its palette colours is missing",
    );
}

/// FillOrder 2: every byte of the strips backwards, whatever packs them.
#[test]
fn bits_from_the_other_end() {
    let image = crate::support::image(31, 17, 1, Depth::Sixteen, crate::support::Kind::Noise);
    for compression in [1, 5, 8, 32773, 50000] {
        for order in [1, 2] {
            let build = Build {
                compression,
                strip: 4,
                ..Build::default()
            };
            let mut file = build.tag(266, 3, &[order]).file(&image);
            if order == 2 {
                let list = |number| tag(&file, number).unwrap();
                let strips: Vec<(u32, u32)> = list(273).into_iter().zip(list(279)).collect();
                for (offset, count) in strips {
                    let strip = &mut file[offset as usize..][..count as usize];
                    strip
                        .iter_mut()
                        .for_each(|byte| *byte = byte.reverse_bits());
                }
            }
            assert_eq!(read(&file).unwrap().0, image, "{compression} {order}");
        }
    }
}

/// The image of an animated PNG's own IDAT, and a warning; the frames' chunks are no metadata.
#[test]
fn animated_png() {
    let still = Plain::noisy(9, 7, 8, 2);
    let mut moving = still.clone();
    let frame = |number: u8| [&[0, 0, 0, number][..], &[0, 0, 0, 9, 0, 0, 0, 7], &[0; 14]].concat();
    moving.before.push((*b"acTL", vec![0, 0, 0, 2, 0, 0, 0, 0]));
    moving.before.push((*b"fcTL", frame(0)));
    let (expected, ..) = read(&still.encoded(1)).unwrap();
    let mut file = moving.encoded(1);
    let end = file.split_off(file.len() - 12);
    chunk(&mut file, b"fcTL", &frame(1));
    chunk(&mut file, b"fdAT", &[0, 0, 0, 2, 1, 2, 3]);
    file.extend(end);
    let (image, metadata, said) = read(&file).unwrap();
    assert_eq!(image, expected);
    assert_eq!(
        said.warnings,
        ["animated PNG: only the first frame is used"]
    );
    assert!(
        metadata.own.names().is_empty(),
        "{:?}",
        metadata.own.names()
    );
}

/// The fourth byte of a pixel was mistaken for alpha where the descriptor has none: all of the image was transparent.
#[test]
fn a_tga_without_alpha_was_transparent() {
    let header = |about| [&[0, 0, 2][..], &[0; 9], &[2, 0, 1, 0, 32, about]].concat();
    let pixels = b"\x03\x02\x01\0\x06\x05\x04\0";
    let (image, ..) = read(&[&header(0x20)[..], pixels].concat()).unwrap();
    assert_eq!(image.shape().channels, 3);
    assert_eq!(image.samples().as_bytes(), [1, 2, 3, 4, 5, 6]);
    let (image, ..) = read(&[&header(0x28)[..], pixels].concat()).unwrap();
    assert_eq!(image.samples().as_bytes(), [1, 2, 3, 0, 4, 5, 6, 0]);
}

#[test]
fn colours_of_a_bmp_were_taken_for_its_pixels() {
    let file = |start: u8| {
        let mut file = vec![b'B', b'M', 0, 0, 0, 0, 0, 0, 0, 0, start, 0, 0, 0];
        file.extend([40, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 8, 0]);
        file.extend([0; 16]);
        file.extend([2, 0, 0, 0, 0, 0, 0, 0]);
        file.extend([1, 2, 3, 0, 4, 5, 6, 0]);
        file.extend([1, 0, 0, 0]);
        file
    };
    let (image, ..) = read(&file(62)).unwrap();
    assert_eq!(image.samples().as_bytes(), [6, 5, 4, 3, 2, 1]);
    let why = "its pixels begin at byte 54, and its palette ends at byte 62";
    refused(&file(54), why);
}
