//! Small files of every kind to start from. A target writes its seeds into the folder that
//! `FUZZ_SEEDS` names, if it is set, and leaves.

use crate::png_files::{self, Plain};
use crate::recipe::{self, written};
use crate::tiff_files::Build;
use gpuimg::codec::{FORMATS, encode, png, pnm, tiff};
use gpuimg::image::{Depth, Image};
use std::io::Cursor;
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
        Depth::Float => 12,
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

/// An OpenEXR file of scan lines, compressed, or of tiles.
fn light(tiles: bool) -> Vec<u8> {
    use exr::prelude::*;
    let channels = SpecificChannels::rgba(|Vec2(x, y): Vec2<usize>| {
        (x as f32, y as f32, f16::from_f32(0.5), 1f32)
    });
    let encoding = match tiles {
        true => Encoding {
            compression: Compression::PIZ,
            blocks: Blocks::Tiles(Vec2(8, 8)),
            line_order: LineOrder::Increasing,
        },
        false => Encoding::SMALL_LOSSLESS,
    };
    let layer = Layer::new((13, 11), LayerAttributes::default(), encoding, channels);
    let mut file = Cursor::new(Vec::new());
    let written = Image::from_layer(layer).write().to_buffered(&mut file);
    written.expect("memory takes every byte");
    file.into_inner()
}

/// A DICOM file of 3 × 2 pixels of 12 bits, rescaled; compressed as runs or lossless JPEG, in fragments, if its
/// syntax is that.
fn dicom(syntax: &str) -> Vec<u8> {
    let mut file = [&[0; 128][..], b"DICM"].concat();
    let mut element = |element: [u16; 2], kind: &[u8], value: &[u8]| {
        file.extend(element.map(u16::to_le_bytes).concat());
        file.extend(kind);
        file.extend((value.len() as u16).to_le_bytes());
        file.extend(value);
    };
    element([2, 0x10], b"UI", format!("{syntax}\0").as_bytes());
    for (number, value) in [
        (2, 1),
        (0x10, 2),
        (0x11, 3),
        (0x100, 16),
        (0x101, 12),
        (0x102, 11),
        (0x103, 0),
    ] {
        element([0x28, number], b"US", &u16::to_le_bytes(value));
    }
    for (number, value) in [
        (4, "MONOCHROME2 "),
        (8, "1 "),
        (0x1050, "40"),
        (0x1051, "400 "),
        (0x1052, "-1024 "),
    ] {
        element([0x28, number], b"DS", value.as_bytes());
    }
    let runs = [
        &[2, 0, 0, 0, 64, 0, 0, 0, 68][..],
        &[0; 55],
        b"\xFB\x01\x80\x80\x02\0\x01\x02\xFE\x09",
    ]
    .concat();
    // Codes of 2 bits for differences of 0, 1 and 2, and an interval of a row.
    let lossless = b"\xFF\xD8\xFF\xC3\0\x0B\x0C\0\x02\0\x03\x01\x01\x11\0\
        \xFF\xC4\0\x16\0\0\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x02\xFF\xDD\0\x04\0\x03\
        \xFF\xDA\0\x08\x01\x01\0\x04\0\0\x1C\xFF\0\xFF\xD0\xA1\xFF\0\xFF\xD9";
    let packed = match syntax {
        "1.2.840.10008.1.2.5" => Some(&runs[..]),
        "1.2.840.10008.1.2.4.70" => Some(&lossless[..]),
        _ => None,
    };
    if let Some(packed) = packed {
        file.extend(b"\xE0\x7F\x10\0OB\0\0\xFF\xFF\xFF\xFF\xFE\xFF\0\xE0\0\0\0\0\xFE\xFF\0\xE0");
        file.extend((packed.len() as u32).to_le_bytes());
        file.extend(packed);
        file.extend(b"\xFE\xFF\xDD\xE0\0\0\0\0");
    } else {
        file.extend(b"\xE0\x7F\x10\0OW\0\0\x0C\0\0\0abcdefghijkl");
    }
    file
}

/// Files of every other format: those that are written, and those that the image crate writes.
pub fn of_formats() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for image in images(true) {
        let shape = image.shape();
        for format in FORMATS {
            let can = format.capabilities();
            let takes = can.channels.contains(&shape.channels) && can.depths.contains(&shape.depth);
            if takes && can.written && !["png", "tiff", "pnm"].contains(&format.id()) {
                let options = Default::default();
                all.push(written(|target| encode(&image, *format, &options, target)));
            }
        }
        use image::ImageFormat::{Bmp, Jpeg, Qoi, Tga, WebP};
        for format in [Bmp, Jpeg, Qoi, Tga, WebP] {
            let mut file = Cursor::new(Vec::new());
            let Ok(image) = image::DynamicImage::try_from(&image) else {
                continue;
            };
            if image.write_to(&mut file, format).is_ok() {
                all.push(file.into_inner());
            }
        }
    }
    all.extend([true, false].map(light));
    all.push(b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 2 +X 3\n\x80\x40\x20\x81\x01\x02\x03\x80\0\0\0\0\x80\0\0\x01\x01\x01\x01\x02".to_vec());
    all.push(b"#?RGBE\n\n-Y 1 +X 8\n\x02\x02\0\x08\x88\x80\x08\x01\x02\x03\x04\x05\x06\x07\x08\x88\0\x88\x81".to_vec());
    let syntaxes = [
        "1.2.840.10008.1.2.1",
        "1.2.840.10008.1.2.5",
        "1.2.840.10008.1.2.4.70",
    ];
    all.extend(syntaxes.map(dicom));
    let gif = b"GIF89a\x03\0\x02\0\xF0\0\0\x0a\x14\x1e\x28\x32\x3c!\xF9\x04\x01\0\0\x01\0,\0\0\0\0\x03\0\x02\0\0\x02\x03\x44\x34\x05\0;";
    all.push(gif.to_vec());
    let dictionary = |descr, shape| {
        let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        [
            b"\x93NUMPY\x01\0",
            &(text.len() as u16).to_le_bytes()[..],
            text.as_bytes(),
            &[7; 96],
        ]
        .concat()
    };
    for descr in [
        "|u1", "|i1", "|b1", "<u2", ">i2", "<u4", ">i4", "<f4", ">f8",
    ] {
        for shape in ["(4, 3)", "(4, 3, 2)", "(2, 2, 3, 4)", "(2, 3, 7)"] {
            all.push(dictionary(descr, shape));
        }
    }
    all
}
