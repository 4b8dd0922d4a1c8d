//! Damaged and lying files: an error with its place, no panic, no memory for what is not there.

use super::ALL;
use crate::support::tiff::Build;
use crate::support::tiff_images::{message, picture, read, written};
use gpuimg::internals::formats::tiff;
use gpuimg::internals::image::Depth;

fn refused(file: &[u8], words: &str) {
    let text = message(read(file));
    assert!(text.contains(words), "{text:?} has no {words:?}");
}

/// Small files of every compression, in strips and in tiles, classic and big.
fn small_files() -> Vec<Vec<u8>> {
    let image = picture(9, 7, 3, Depth::Sixteen);
    let mut files: Vec<Vec<u8>> = ALL
        .iter()
        .map(|&compression| written(|target| tiff::encode(&image, compression, target)).unwrap())
        .collect();
    for compression in [1, 5, 8, 32773, 50000] {
        for tile in [None, Some((16, 16))] {
            files.push(
                Build {
                    compression,
                    tile,
                    strip: 3,
                    big_tiff: compression % 2 == 1,
                    big_endian: tile.is_some(),
                    predictor: compression > 5,
                    ..Build::default()
                }
                .file(&image),
            );
        }
    }
    files
}

#[test]
fn truncated_anywhere() {
    for file in small_files() {
        let whole = read(&file).unwrap();
        for size in 0..file.len() {
            match read(&file[..size]) {
                // What is cut off may be padding after the last tag value.
                Ok(image) => assert_eq!(image, whole),
                Err(error) if size < 2 => assert!(error.to_string().contains("not a TIFF")),
                Err(error) => {
                    let text = format!("{error:#}");
                    assert!(text.contains("truncated at byte"), "{size}: {text}");
                }
            }
        }
    }
}

/// Every bit pattern of every byte but the samples of uncompressed files: an error or an image
/// that the file's size can account for.
#[test]
fn damaged_anywhere() {
    for file in small_files() {
        for at in 0..file.len() {
            let mut damaged = file.clone();
            for flip in [0x01, 0x80, 0x10, 0xff, file[at]] {
                damaged[at] = file[at] ^ flip;
                if let Ok(image) = read(&damaged) {
                    assert!(image.shape().bytes() <= damaged.len() * 32768);
                }
            }
        }
    }
}

#[test]
fn lying_counts() {
    let image = picture(5, 4, 1, Depth::Sixteen);
    let build = || Build {
        big_tiff: true,
        ..Build::default()
    };
    let file = |tag: u16, values: &[u64]| build().tag(tag, 16, values).file(&image);
    refused(&file(256, &[1 << 40]), "too short for its");
    refused(&file(257, &[1 << 62]), "do not fit in memory");
    refused(&file(257, &[u64::MAX]), "do not fit in memory");
    refused(&file(278, &[0]), "the image is empty (5×0) (strip size)");
    refused(&file(278, &[1]), "lists 1 of 4 strips");
    refused(&file(273, &[]), "lists no strips");
    refused(&file(273, &[u64::MAX]), "truncated at byte");
    refused(&file(279, &[0]), "strip 0 is missing");
    refused(
        &file(279, &[39]),
        "strip 0 of 39 bytes is too short for its 40 bytes",
    );
    refused(&file(279, &[1 << 50]), "truncated at byte");

    let tiled = Build {
        tile: Some((16, 16)),
        ..build()
    };
    let file = |tag: u16, value: u64| tiled.clone().tag(tag, 16, &[value]).file(&image);
    refused(&file(322, 0), "(tile size)");
    refused(&file(322, 1 << 63), "(tile size)");
    refused(&file(323, 1 << 40), "tile 0 of 512 bytes is too short");
    refused(&file(325, 1), "tile 0 of 1 bytes is too short");
}

/// Many strips that share the same few bytes promise more than the file holds.
#[test]
fn overlapping_strips() {
    let image = picture(100, 1, 1, Depth::Eight);
    let height = 1000;
    let file = Build::default()
        .tag(257, 4, &[height])
        .tag(278, 4, &[1])
        .tag(273, 4, &vec![8; height as usize])
        .tag(279, 4, &vec![100; height as usize])
        .file(&image);
    refused(&file, "claims 100000 bytes of samples, more than its");
}

#[test]
fn directory_lies() {
    let image = picture(5, 4, 1, Depth::Sixteen);
    let file = Build::default().file(&image);
    let directory = file[4] as usize;
    let with = |at: usize, bytes: &[u8]| {
        let mut file = file.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    };
    refused(&with(4, &[0xff; 4]), "(directory)");
    refused(&with(4, &[0; 4]), "truncated at byte");
    refused(&with(directory, &[0, 0]), "claims 0 entries");
    refused(&with(directory, &[0xff, 0xff]), "(directory)");
    refused(&with(2, &[41]), "not a TIFF");
    let entries = (file.len() - directory - 6) / 12;
    let next = directory + 2 + 12 * entries;
    refused(&with(next, &[directory as u8]), "loop");
    refused(&with(next, &[0, 0, 1]), "page 2: truncated at byte");
    // The width with a floating-point type, then with a count that overflows.
    refused(&with(directory + 4, &[11]), "type 11");
    refused(&with(directory + 6, &[0xff; 4]), "(tag 256)");
    refused(
        &Build {
            big_tiff: true,
            ..Build::default()
        }
        .file(&image)[..15],
        "(header)",
    );
    refused(b"", "not a TIFF");
    refused(b"hello world, this is no image", "not a TIFF");
}

/// Errors of packed data name the strip; of several the first.
#[test]
fn damaged_data() {
    let image = picture(64, 64, 1, Depth::Sixteen);
    for (compression, words) in [(5, "LZW"), (8, "deflate"), (50000, "zstd")] {
        let build = Build {
            compression,
            strip: 8,
            ..Build::default()
        };
        let mut file = build.file(&image);
        let end = file.len() / 2;
        file[end / 2..end].fill(0xff);
        let text = message(read(&file));
        assert!(text.starts_with("strip ") && text.contains(words), "{text}");
        for _ in 0..20 {
            assert_eq!(message(read(&file)), text);
        }
    }
    let short = Build {
        compression: 32773,
        ..Build::default()
    };
    let file = short.tag(279, 4, &[129]).file(&image);
    assert!(message(read(&file)).starts_with("strip 0: it unpacks to "));
}
