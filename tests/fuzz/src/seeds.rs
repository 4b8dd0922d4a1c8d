//! Small files of every kind to start from. A target writes its seeds into the folder that
//! `FUZZ_SEEDS` names, if it is set, and leaves.

mod formats;
mod layouts;
mod runs;
mod zarr;

pub use formats::{of_formats, of_raw};
pub use runs::of_runs;
pub use zarr::of_zarr;

use crate::png_files::{self, Plain};
use crate::recipe::{self, written};
use crate::tiff_files::Build;
use gpuimg::internals::formats::{png, pnm, tiff};
use gpuimg::internals::image::{Depth, Image};
use std::path::Path;

/// Writes seeds if that was asked for, and ends the process.
pub fn write(seeds: fn() -> Vec<Vec<u8>>) {
    let Some(folder) = std::env::var_os("FUZZ_SEEDS") else {
        return;
    };
    for (i, seed) in seeds().iter().enumerate() {
        let path = Path::new(&folder).join(format!("seed-{i:03}"));
        std::fs::write(path, seed).expect("a seed can be written");
    }
    std::process::exit(0);
}

/// Recipes of small and large images of every form.
pub fn recipes() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for choice in 0..4 {
        for form in 0..16 {
            for (scale, period) in [(0x70, 0), (0x44, 1), (0xD3, 2), (0x17, 3)] {
                let noise = 3 * (form & 7);
                let mut recipe = vec![choice, form, 0x35, 3, 0x27, 9, scale, form, noise, period];
                recipe.extend([57, 1]);
                recipe.extend((0..40 * choice).map(|i: u8| i.wrapping_mul(97) >> (form & 7)));
                all.push(recipe);
            }
        }
        all.push(vec![
            choice, choice, 0xFF, 2, 0xFF, 0xFF, 0xF7, 3, 9, 0, 57, 1, 1, 2, 3, 5,
        ]);
    }
    all
}

/// A small image of a form: noise, ramps and repeats.
fn image(channels: usize, depth: Depth, width: u8, height: u8, noise: u8) -> Image {
    let kind = match depth {
        Depth::Sixteen => 0,
        Depth::Eight => 4,
        Depth::ThirtyTwo => 8,
        // No recipe makes samples of 64 bits.
        Depth::Float | Depth::Double => 12,
    };
    let form = (channels - 1) as u8 | kind;
    let head = [
        0,
        form,
        width - 1,
        0,
        height - 1,
        0,
        0x42,
        1,
        noise,
        0,
        9,
        0,
    ];
    let bytes = [&head[..], b"a few bytes to be repeated"].concat();
    recipe::image(&bytes).expect("a whole recipe").0
}

/// Images of every kind, with samples of 32 bits only where they are asked for.
fn images(wide: bool) -> Vec<Image> {
    let mut all = Vec::new();
    for channels in 1..=4 {
        for depth in Depth::ALL
            .into_iter()
            .filter(|depth| wide || !depth.is_wide())
        {
            all.push(image(channels, depth, 13, 11, 2 * channels as u8));
        }
    }
    all
}

pub fn of_png() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for image in images(false) {
        for mode in [png::Mode::Fast, png::Mode::Small, png::Mode::Store] {
            all.push(written(|target| png::encode(&image, mode, target)));
        }
    }
    let depths: [(u8, &[u8]); 5] = [
        (0, &[1, 2, 4, 8, 16]),
        (2, &[8, 16]),
        (3, &[1, 2, 4, 8]),
        (4, &[8, 16]),
        (6, &[8, 16]),
    ];
    for (colour, depths) in depths {
        for &bits in depths {
            for interlaced in [false, true] {
                let mut plain = Plain::noisy(9, 7, bits, colour);
                plain.interlaced = interlaced;
                if colour == 3 {
                    plain.before.push((*b"PLTE", vec![0x5A; 3 << bits]));
                }
                if interlaced && colour < 4 {
                    let len = [2, 0, 6, 1][usize::from(colour)];
                    plain.before.push((*b"tRNS", vec![0; len]));
                }
                all.push(plain.encoded(bits % 5));
                if bits >= 8 && colour != 3 && !interlaced {
                    for segment in [1, 3] {
                        all.push(segmented(&plain, segment));
                    }
                }
            }
        }
    }
    all
}

/// A file whose image data come in segments of so many rows, with the index.
fn segmented(plain: &Plain, rows: usize) -> Vec<u8> {
    let scanlines = plain.scanlines(|y| match y % rows {
        0 => 1,
        y => (y % 5) as u8,
    });
    let row = scanlines.len() / plain.height;
    let segments = png_files::segments(&scanlines, rows * row, true);
    let mut plain = plain.clone();
    plain.before.push(png_files::index(rows, &segments));
    let idats = png_files::idats(&segments, &scanlines);
    plain.file(idats.iter().map(Vec::as_slice))
}

pub fn of_tiff() -> Vec<Vec<u8>> {
    use tiff::Compression::*;
    let mut all = Vec::new();
    for image in images(true) {
        for compression in [None, Deflate, Lzw, Zstd] {
            all.push(written(|target| tiff::encode(&image, compression, target)));
        }
        for compression in [1, 5, 8, 32773, 50000] {
            for kind in 0..8 {
                let build = Build {
                    compression,
                    tile: (kind & 1 == 1).then_some((16, 16)),
                    strip: 4,
                    padded: kind & 2 == 2,
                    big_endian: kind & 2 == 2,
                    big_tiff: kind & 4 == 4,
                    predictor: kind & 4 == 4,
                    bytewise: kind & 6 == 6 && image.shape().depth == Depth::Float,
                    ..Build::default()
                };
                let build = match image.shape().depth {
                    Depth::Float => build.tag(339, 3, &[3]),
                    _ => build,
                };
                all.push(build.file(&image));
            }
        }
    }
    all.extend(layouts::of_layouts());
    all
}

pub fn of_pnm() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = images(false)
        .iter()
        .filter(|image| !image.shape().has_alpha())
        .map(|image| written(|target| pnm::encode(image, target)))
        .collect();
    all.push(b"P5 3 2 # a comment\n15\n\x01\x02\x03\x04\x05\x06".to_vec());
    all.push(b"P6\r2\t1\n#a\n#b\n4095\n\0\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b".to_vec());
    all.push(b"P5\n1 1\n65535\n\xFF\xFFP5\n1 1\n255\n\0".to_vec());
    all.push(b"P2 1 1 1 1".to_vec());
    all
}
