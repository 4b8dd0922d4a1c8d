//! TIFF files whose samples are not stored as they are in memory: fewer bits or other types, palettes, planes, many channels, and chunks
//! that are images themselves.

use crate::tiff_files::Build;
use gpuimg::internals::image::{Depth, Image, Samples, Shape};
use std::io::Cursor;

const WIDTH: usize = 13;
const HEIGHT: usize = 11;

/// A file of the rows of one strip, or of one strip a plane, whose fields are said by `tags`.
fn file(build: Build, rows: &[u8], planes: usize, channels: u64, bits: u64) -> Vec<u8> {
    let shape = Shape {
        width: rows.len() / planes,
        height: planes,
        channels: 1,
        depth: Depth::Eight,
    };
    let image = Image::new(shape, Samples::from(rows.to_vec()));
    let build = Build { strip: 1, ..build }
        .tag(256, 3, &[WIDTH as u64])
        .tag(257, 3, &[HEIGHT as u64])
        .tag(258, 3, &vec![bits; channels as usize])
        .tag(277, 3, &[channels])
        .tag(278, 3, &[HEIGHT as u64]);
    build.file(&image)
}

/// Bytes of whole rows: small floating-point numbers where they are such, since few 64-bit ones are 32-bit ones.
fn bytes(channels: usize, bits: usize, float: bool) -> Vec<u8> {
    let row = (WIDTH * channels * bits).div_ceil(8);
    let of = |i: usize| (i * 151 >> 3) as u8;
    match (float, bits) {
        (true, 64) => (0..WIDTH * HEIGHT * channels)
            .flat_map(|i| f64::from(of(i)).to_le_bytes())
            .collect(),
        _ => (0..row * HEIGHT).map(of).collect(),
    }
}

/// A JPEG file of the size of the images here.
fn jpeg(colour: image::ExtendedColorType, channels: usize) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    let encoder = image::codecs::jpeg::JpegEncoder::new(&mut file);
    let (width, height) = (WIDTH as u32, HEIGHT as u32);
    let encoded = image::ImageEncoder::write_image(
        encoder,
        &bytes(channels, 8, false),
        width,
        height,
        colour,
    );
    encoded.expect("memory takes every byte");
    file.into_inner()
}

/// Rows of words of a fax's code, each given by its bits as text.
fn fax(row: &str) -> Vec<u8> {
    let bits: Vec<u8> = row.bytes().cycle().take(row.len() * HEIGHT).collect();
    let byte = |bits: &[u8]| {
        bits.iter()
            .enumerate()
            .fold(0, |byte, (i, bit)| byte | (bit & 1) << (7 - i))
    };
    bits.chunks(8).map(byte).collect()
}

/// Packed bits, types of samples, palettes, planes, and channels that are pages.
fn samples() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for (bits, format) in [
        (1, 1),
        (2, 1),
        (4, 1),
        (7, 1),
        (10, 1),
        (12, 1),
        (15, 1),
        (24, 1),
        (24, 2),
        (8, 2),
        (16, 2),
        (32, 2),
        (16, 3),
        (64, 3),
    ] {
        for (channels, photometric) in [(1, 1), (1, 0), (3, 2)] {
            let build =
                Build::default()
                    .tag(262, 3, &[photometric])
                    .tag(339, 3, &vec![format; channels]);
            let rows = bytes(channels, bits, format == 3);
            all.push(file(build, &rows, 1, channels as u64, bits as u64));
        }
    }
    // Bits in the other order.
    let build = Build::default().tag(262, 3, &[1]).tag(266, 3, &[2]);
    all.push(file(build, &bytes(1, 1, false), 1, 1, 1));
    for bits in [1, 2, 4, 8] {
        for factor in [1, 256, 257, 391] {
            let colours: Vec<u64> = (0..3 << bits).map(|i| i % 168 * factor).collect();
            let build = Build::default().tag(262, 3, &[3]).tag(320, 3, &colours);
            all.push(file(build, &bytes(1, bits, false), 1, 1, bits as u64));
        }
    }
    for (channels, bits) in [(3, 8), (3, 4), (4, 16), (6, 8)] {
        for planar in [1, 2] {
            let photometric = if channels == 6 { 1 } else { 2 };
            let build = Build::default()
                .tag(262, 3, &[photometric])
                .tag(284, 3, &[planar])
                .tag(
                    338,
                    3,
                    &vec![0; channels - 1 - 2 * usize::from(photometric == 2)],
                );
            let planes = if planar == 2 { channels } else { 1 };
            let rows = bytes(channels / planes, bits, false).repeat(planes);
            all.push(file(build, &rows, planes, channels as u64, bits as u64));
        }
    }
    all
}

/// Strips that are JPEG images, and rows of a fax.
fn coded() -> Vec<Vec<u8>> {
    use image::ExtendedColorType::{L8, Rgb8};
    let mut all = Vec::new();
    for (photometric, channels, colour) in [(1, 1, L8), (2, 3, Rgb8), (6, 3, Rgb8)] {
        let packed = jpeg(colour, channels);
        let build = Build::default()
            .tag(259, 3, &[7])
            .tag(262, 3, &[photometric]);
        all.push(file(build.clone(), &packed, 1, channels as u64, 8));
        // The tables alone, and the image with them again.
        let tables = packed
            .windows(2)
            .position(|pair| pair == [0xFF, 0xC0])
            .expect("a frame");
        let tables: Vec<u64> = packed[..tables]
            .iter()
            .copied()
            .chain([0xFF, 0xD9])
            .map(u64::from)
            .collect();
        all.push(file(
            build.tag(347, 7, &tables),
            &packed,
            1,
            channels as u64,
            8,
        ));
    }
    // Rows of 13 white pixels, and of 5 white, 4 black and 4 white ones. In Group 3 the end of a line stands before each; in Group 4 a
    // single 1 says that the rest is as in the row before.
    for (compression, row) in [
        (3, ["000000000001", "000011"].concat()),
        (3, ["000000000001", "1100", "011", "1011"].concat()),
        (4, "1".into()),
        (4, ["001", "1100", "011", "1"].concat()),
    ] {
        for photometric in [0, 1] {
            let build = Build::default()
                .tag(259, 3, &[compression])
                .tag(262, 3, &[photometric]);
            all.push(file(build, &fax(&row), 1, 1, 1));
        }
    }
    all
}

pub fn of_layouts() -> Vec<Vec<u8>> {
    [samples(), coded()].concat()
}
