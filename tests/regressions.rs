//! Files that once went wrong, found by fuzzing (`tests/fuzz/`), each named after what happened.

use crate::support::png::Plain;
use crate::support::tiff::Build;
use gpuimg::internals::formats::{Reader, Reading, png, tiff};
use gpuimg::internals::image::{Depth, Image, Samples, Shape};
use gpuimg::internals::os::Source;

fn refused(result: anyhow::Result<Image>, words: &str) {
    let text = format!("{:#}", result.expect_err("a damaged file"));
    assert!(text.contains(words), "{text:?} has no {words:?}");
}

fn open_png(file: &[u8]) -> anyhow::Result<Image> {
    png::decode(&Source::memory(file.to_vec()))
}

/// The png crate indexes into a palette whose length it did not check.
#[test]
fn png_palette_of_impossible_length_panicked() {
    for bits in [1, 2, 4, 8] {
        for transparent in [false, true] {
            for len in [0, 1, 2, 4, 767, 769, 771, 3000] {
                let mut plain = Plain::noisy(9, 7, bits, 3);
                plain.before.push((*b"PLTE", vec![7; len]));
                if transparent {
                    plain.before.push((*b"tRNS", vec![9; 2]));
                }
                refused(open_png(&plain.encoded(0)), "not a valid palette");
            }
        }
    }
}

/// We took the file, which others refuse: nothing says which palette holds.
#[test]
fn png_with_two_palettes_was_accepted() {
    for colour in [2, 3, 6] {
        let mut plain = Plain::noisy(9, 7, 8, colour);
        plain.before.push((*b"PLTE", vec![7; 768]));
        assert!(open_png(&plain.encoded(0)).is_ok());
        plain.before.push((*b"PLTE", vec![9; 768]));
        refused(open_png(&plain.encoded(0)), "is a second palette");
    }
}

/// Bands of a TIFF are pages, and so many overflowed the size of a strip.
#[test]
fn tiff_of_more_samples_a_pixel_than_there_are_overflowed() {
    let image = Image::new(
        Shape::checked(3, 2, 1, Depth::Sixteen).unwrap(),
        Samples::from(vec![1u16, 2, 3, 4, 5, 6]),
    );
    for most in [1 << 16, (1 << 61) + 1, u64::MAX] {
        let build = Build {
            big_tiff: true,
            ..Build::default()
        };
        let file = build.tag(277, 16, &[most]).file(&image);
        refused(
            tiff::decode(&Source::memory(file)),
            "samples per pixel, and 65535 are the most",
        );
    }
    assert!(Shape::checked(3, 2, usize::MAX, Depth::Sixteen).is_err());
}

/// Tiles reach past the image, and many may lie in the same bytes: a file of 3 KB whose image has
/// 200 KB made us unpack 200 MiB, and one of 64 KB, hundreds of GB.
#[test]
fn tiff_of_large_tiles_that_share_their_bytes_took_hours() {
    let tiles = 200;
    let shape = Shape::checked(1, 1, 1, Depth::Eight).unwrap();
    let image = Image::new(shape, Samples::from(vec![0u8]));
    let file = Build {
        compression: 8,
        tile: Some((1024, 1024)),
        ..Build::default()
    };
    let file = file
        .tag(257, 4, &[1024 * tiles])
        .tag(324, 4, &vec![8; tiles as usize])
        .tag(325, 4, &vec![1020; tiles as usize])
        .file(&image);
    assert!(file.len() < 4000);
    let read = tiff::decode(&Source::memory(file));
    refused(read, "claims 209715200 bytes of samples, more than its");
}

/// An OpenEXR file of 33×40 pixels, with a channel of half numbers and one of 32 bits.
fn openexr(compression: exr::prelude::Compression) -> Vec<u8> {
    use exr::prelude::*;
    let channels = SpecificChannels::build()
        .with_channel("A")
        .with_channel("Y")
        .with_pixel_fn(|Vec2(x, y): Vec2<usize>| (f16::from_f32(x as f32), y as f32));
    let encoding = Encoding {
        compression,
        blocks: Blocks::ScanLines,
        line_order: LineOrder::Increasing,
    };
    let layer = Layer::new((33, 40), LayerAttributes::default(), encoding, channels);
    let mut file = std::io::Cursor::new(Vec::new());
    let written = exr::prelude::Image::from_layer(layer)
        .write()
        .to_buffered(&mut file);
    written.expect("a file in memory");
    file.into_inner()
}

/// The exr crate panicked, in builds that check for overflow at least, on some damaged blocks.
#[test]
fn damaged_blocks_of_openexr_panicked() {
    use exr::prelude::Compression::{B44, B44A, PIZ, PXR24, RLE, ZIP1, ZIP16};
    let mut refused = 0;
    for compression in [B44, B44A, PIZ, PXR24, RLE, ZIP1, ZIP16] {
        let whole = openexr(compression);
        let pixels = Source::memory(whole.clone());
        let read = |source: &Source| Reader::open(source, &Reading::default())?.decode();
        read(&pixels).expect("the whole file");
        let mut random = 1u32;
        for _ in 0..200 {
            let mut damaged = whole.clone();
            // After the header, the table of offsets and the first block's position and length.
            for byte in &mut damaged[420..] {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *byte ^= (random >> 24) as u8 & (random >> 16) as u8;
            }
            refused += usize::from(read(&Source::memory(damaged)).is_err());
        }
    }
    assert!(refused > 400, "{refused}");
}

/// The counters of a DWA chunk were allocated as they are stated, and a failed allocation ended the process.
#[test]
fn counters_of_a_damaged_openexr_block_ended_the_program() {
    let whole = openexr(exr::prelude::Compression::DWAA(Some(45.0)));
    let read = |file: Vec<u8>| Reader::open(&Source::memory(file), &Reading::default())?.decode();
    read(whole.clone()).expect("the whole file");
    // The counters of the first chunk begin with its version, 2.
    let version = 2u64.to_le_bytes();
    let start = whole.windows(8).rposition(|bytes| bytes == version);
    let start = start.expect("a chunk with counters");
    for counter in [1, 6, 8, 9] {
        for stated in [1u64 << 36, 1 << 56, u64::MAX] {
            let mut damaged = whole.clone();
            damaged[start + 8 * counter..][..8].copy_from_slice(&stated.to_le_bytes());
            refused(read(damaged), "damaged");
        }
    }
}
