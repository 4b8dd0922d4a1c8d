//! The PNG encoder beside those of the png and image crates, and libdeflate on our filtered bytes.

use crate::{Row, best, on_one_and_all, target};
use gpuimg::codec::png::{Mode, encode};
use gpuimg::files::Target;
use gpuimg::image::{Depth, Image, Samples};
use image::ImageEncoder;
use std::io::Read;

/// All encoders on one image, or our own alone.
pub fn rows(image: &Image, peers: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for mode in [Mode::Fast, Mode::Small, Mode::Store] {
        let target = target();
        let (one, all, len) = on_one_and_all(|| encode(image, mode, &target).unwrap());
        rows.push(Row {
            name: format!("gpuimg {mode:?}"),
            one,
            all: Some(all),
            len: len as usize,
        });
    }
    if !peers {
        return rows;
    }
    let mut peer = |name: String, run: &dyn Fn() -> usize| {
        let (one, len) = best(run);
        rows.push(Row {
            name,
            one,
            all: None,
            len,
        });
    };
    for level in [
        png::Compression::Fastest,
        png::Compression::Fast,
        png::Compression::Balanced,
    ] {
        peer(format!("png crate {level:?}"), &|| png_crate(image, level));
    }
    peer("image crate".into(), &|| image_crate(image));
    let filtered = filtered(image);
    for level in [1, 6] {
        peer(format!("libdeflate {level}, our filter"), &|| {
            libdeflate(&filtered, level)
        });
    }
    rows
}

fn big_endian(image: &Image) -> Vec<u8> {
    match image.samples() {
        Samples::U8(samples) => samples.to_vec(),
        Samples::U16(samples) => samples
            .iter()
            .flat_map(|sample| sample.to_be_bytes())
            .collect(),
    }
}

fn png_crate(image: &Image, level: png::Compression) -> usize {
    let shape = image.shape();
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, shape.width as u32, shape.height as u32);
    encoder.set_color(
        [
            png::ColorType::Grayscale,
            png::ColorType::GrayscaleAlpha,
            png::ColorType::Rgb,
            png::ColorType::Rgba,
        ][shape.channels - 1],
    );
    encoder.set_depth(match shape.depth {
        Depth::Eight => png::BitDepth::Eight,
        Depth::Sixteen => png::BitDepth::Sixteen,
    });
    encoder.set_compression(level);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&big_endian(image)).unwrap();
    writer.finish().unwrap();
    file.len()
}

fn image_crate(image: &Image) -> usize {
    use image::ExtendedColorType::*;
    let shape = image.shape();
    let colour = match shape.depth {
        Depth::Eight => [L8, La8, Rgb8, Rgba8][shape.channels - 1],
        Depth::Sixteen => [L16, La16, Rgb16, Rgba16][shape.channels - 1],
    };
    let mut file = Vec::new();
    image::codecs::png::PngEncoder::new(&mut file)
        .write_image(
            image.samples().as_bytes(),
            shape.width as u32,
            shape.height as u32,
            colour,
        )
        .unwrap();
    file.len()
}

/// The filtered bytes of what our encoder writes.
fn filtered(image: &Image) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.png");
    let target = Target::create(&path, false).unwrap();
    let len = encode(image, Mode::Fast, &target).unwrap();
    target.commit(len).unwrap();
    let file = std::fs::read(path).unwrap();
    let mut stream = Vec::new();
    let mut at = 8;
    while at < file.len() {
        let len = u32::from_be_bytes(file[at..at + 4].try_into().unwrap()) as usize;
        if &file[at + 4..at + 8] == b"IDAT" {
            stream.extend_from_slice(&file[at + 8..at + 8 + len]);
        }
        at += 12 + len;
    }
    let mut filtered = Vec::new();
    flate2::read::ZlibDecoder::new(&stream[..])
        .read_to_end(&mut filtered)
        .unwrap();
    filtered
}

fn libdeflate(filtered: &[u8], level: i32) -> usize {
    let level = libdeflater::CompressionLvl::new(level).unwrap();
    let mut compressor = libdeflater::Compressor::new(level);
    let mut out = vec![0; compressor.zlib_compress_bound(filtered.len())];
    compressor.zlib_compress(filtered, &mut out).unwrap()
}
