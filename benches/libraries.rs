//! The same images in other libraries: the png, image and tiff crates, libdeflate.

use crate::Bench;
use gpuimg::codec::Format;
use gpuimg::image::{Depth, Image, Samples};
use image::ImageEncoder;
use std::io::Cursor;

/// All libraries that write a format.
pub fn rows(bench: &Bench, image: &Image, format: &dyn Format) {
    match format.id() {
        "png" => png(bench, image),
        "tiff" => tiff(bench, image),
        "pnm" => pnm(bench, image),
        _ => {}
    }
}

fn png(bench: &Bench, image: &Image) {
    use png::{Compression::*, Filter};
    for (name, level, filter) in [
        ("Fastest", Fastest, None),
        ("Fast", Fast, None),
        ("Balanced", Balanced, None),
        // The filters that libpng and Pillow choose for many images.
        ("Fast, Paeth", Fast, Some(Filter::Paeth)),
        ("Fast, Average", Fast, Some(Filter::Avg)),
    ] {
        bench.library(
            &format!("png crate {name}"),
            || png_encode(image, level, filter),
            png_decode,
        );
    }
    bench.library(
        "image crate",
        || {
            let mut file = Vec::new();
            let encoder = image::codecs::png::PngEncoder::new(&mut file);
            image_encode(encoder, image);
            file
        },
        image_decode,
    );
    // The deflate part alone, of bytes filtered by Up.
    let up = png_encode(image, Fastest, Some(Filter::Up));
    let filtered = scanlines(&up);
    for level in [1, 6] {
        bench.library_part(
            &format!("libdeflate {level} of Up's bytes"),
            || deflate(&filtered, level),
            |packed| inflate(packed, filtered.len()),
        );
    }
}

fn png_encode(image: &Image, level: png::Compression, filter: Option<png::Filter>) -> Vec<u8> {
    use png::ColorType::*;
    let shape = image.shape();
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, shape.width as u32, shape.height as u32);
    encoder.set_color([Grayscale, GrayscaleAlpha, Rgb, Rgba][shape.channels - 1]);
    encoder.set_depth(match shape.depth {
        Depth::Sixteen => png::BitDepth::Sixteen,
        _ => png::BitDepth::Eight,
    });
    encoder.set_compression(level);
    if let Some(filter) = filter {
        encoder.set_filter(filter);
    }
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&big_endian(image)).unwrap();
    writer.finish().unwrap();
    file
}

fn png_decode(file: &[u8]) {
    let limits = png::Limits { bytes: usize::MAX };
    let decoder = png::Decoder::new_with_limits(Cursor::new(file), limits);
    let mut reader = decoder.read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut bytes).unwrap();
}

fn big_endian(image: &Image) -> Vec<u8> {
    match image.samples() {
        Samples::U8(samples) => samples.to_vec(),
        Samples::U16(samples) => samples.iter().flat_map(|s| s.to_be_bytes()).collect(),
        Samples::U32(_) => unreachable!("8 or 16 bits are measured"),
    }
}

fn image_encode(encoder: impl ImageEncoder, image: &Image) {
    use image::ExtendedColorType::*;
    let shape = image.shape();
    let colour = match shape.depth {
        Depth::Sixteen => [L16, La16, Rgb16, Rgba16],
        _ => [L8, La8, Rgb8, Rgba8],
    }[shape.channels - 1];
    let (width, height) = (shape.width as u32, shape.height as u32);
    encoder
        .write_image(image.samples().as_bytes(), width, height, colour)
        .unwrap();
}

fn image_decode(file: &[u8]) {
    let mut reader = image::ImageReader::new(Cursor::new(file));
    reader.no_limits();
    let reader = reader.with_guessed_format().unwrap();
    reader.decode().unwrap();
}

/// The bytes that a PNG's image data inflate to.
fn scanlines(file: &[u8]) -> Vec<u8> {
    let mut stream = Vec::new();
    let mut at = 8;
    while let Some(head) = file[at..].first_chunk::<8>() {
        let len = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        if head.ends_with(b"IDAT") {
            stream.extend_from_slice(&file[at + 8..][..len]);
        }
        at += 12 + len;
    }
    let mut bytes = Vec::new();
    let mut decoder = flate2::read::ZlibDecoder::new(&stream[..]);
    std::io::Read::read_to_end(&mut decoder, &mut bytes).unwrap();
    bytes
}

fn deflate(bytes: &[u8], level: i32) -> Vec<u8> {
    let level = libdeflater::CompressionLvl::new(level).unwrap();
    let mut compressor = libdeflater::Compressor::new(level);
    let mut packed = vec![0; compressor.zlib_compress_bound(bytes.len())];
    let len = compressor.zlib_compress(bytes, &mut packed).unwrap();
    packed.truncate(len);
    packed
}

fn inflate(packed: &[u8], len: usize) {
    let mut bytes = vec![0; len];
    let mut decompressor = libdeflater::Decompressor::new();
    decompressor.zlib_decompress(packed, &mut bytes).unwrap();
}

fn tiff(bench: &Bench, image: &Image) {
    use tiff::encoder::compression::DeflateLevel;
    use tiff::encoder::{Compression::*, Predictor};
    for (name, compression, predictor) in [
        ("none", Uncompressed, Predictor::None),
        (
            "deflate",
            Deflate(DeflateLevel::Fast),
            Predictor::Horizontal,
        ),
        ("lzw", Lzw, Predictor::Horizontal),
    ] {
        bench.library(
            &format!("tiff crate {name}"),
            || tiff_encode(image, compression, predictor),
            |file| {
                let decoder = tiff::decoder::Decoder::new(Cursor::new(file)).unwrap();
                let limits = tiff::decoder::Limits::unlimited();
                decoder.with_limits(limits).read_image().unwrap();
            },
        );
    }
}

fn tiff_encode(
    image: &Image,
    compression: tiff::encoder::Compression,
    predictor: tiff::encoder::Predictor,
) -> Vec<u8> {
    use tiff::encoder::{TiffEncoder, colortype::*};
    let shape = image.shape();
    let (width, height) = (shape.width as u32, shape.height as u32);
    let mut file = Vec::with_capacity(2 * shape.bytes());
    let mut encoder = TiffEncoder::new(Cursor::new(&mut file))
        .unwrap()
        .with_compression(compression)
        .with_predictor(predictor);
    match (image.samples(), shape.channels) {
        (Samples::U16(samples), 1) => encoder.write_image::<Gray16>(width, height, samples),
        (Samples::U16(samples), _) => encoder.write_image::<RGB16>(width, height, samples),
        (Samples::U8(samples), _) => encoder.write_image::<Gray8>(width, height, samples),
        (Samples::U32(_), _) => unreachable!("8 or 16 bits are measured"),
    }
    .unwrap();
    file
}

fn pnm(bench: &Bench, image: &Image) {
    // For 16 bits it writes P7, which only its own decoder reads.
    bench.library_part(
        "image crate",
        || {
            let mut file = Vec::new();
            image_encode(image::codecs::pnm::PnmEncoder::new(&mut file), image);
            file
        },
        image_decode,
    );
}
