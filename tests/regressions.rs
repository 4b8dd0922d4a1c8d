//! Files that once went wrong, found by fuzzing (`tests/fuzz/`), each named after what happened.

use crate::support::png::Plain;
use crate::support::tiff::Build;
use gpuimg::internals::formats::{png, tiff};
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
