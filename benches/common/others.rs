//! Pieces of the png crate and of libdeflate that several benches compare with.

use gpuimg::internals::image::{Depth, Image, Samples};
use std::io::Cursor;

/// A PNG file of the png crate's.
pub fn png_encode(image: &Image, level: png::Compression, filter: Option<png::Filter>) -> Vec<u8> {
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

/// Decodes a PNG file by the png crate.
pub fn png_decode(file: &[u8]) {
    let limits = png::Limits { bytes: usize::MAX };
    let decoder = png::Decoder::new_with_limits(Cursor::new(file), limits);
    let mut reader = decoder.read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut bytes).unwrap();
}

/// The samples in the order of bytes that PNG has.
pub fn big_endian(image: &Image) -> Vec<u8> {
    match image.samples() {
        Samples::U8(samples) => samples.to_vec(),
        Samples::U16(samples) => samples.iter().flat_map(|s| s.to_be_bytes()).collect(),
        Samples::U32(_) | Samples::U64(_) => unreachable!("8 or 16 bits are measured"),
    }
}

/// The bytes that a PNG's image data inflate to.
pub fn scanlines(file: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let stream = image_data(file);
    let mut decoder = flate2::read::ZlibDecoder::new(&stream[..]);
    std::io::Read::read_to_end(&mut decoder, &mut bytes).unwrap();
    bytes
}

/// A PNG's image data: its IDAT chunks together, a zlib stream.
pub fn image_data(file: &[u8]) -> Vec<u8> {
    let mut stream = Vec::new();
    let mut at = 8;
    while let Some(head) = file[at..].first_chunk::<8>() {
        let len = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        if head.ends_with(b"IDAT") {
            stream.extend_from_slice(&file[at + 8..][..len]);
        }
        at += 12 + len;
    }
    stream
}

/// A zlib stream of libdeflate's.
pub fn deflate(bytes: &[u8], level: i32) -> Vec<u8> {
    let level = libdeflater::CompressionLvl::new(level).unwrap();
    let mut compressor = libdeflater::Compressor::new(level);
    let mut packed = vec![0; compressor.zlib_compress_bound(bytes.len())];
    let len = compressor.zlib_compress(bytes, &mut packed).unwrap();
    packed.truncate(len);
    packed
}

/// Inflates a zlib stream of `len` bytes by libdeflate.
pub fn inflate(packed: &[u8], len: usize) {
    let mut bytes = vec![0; len];
    let mut decompressor = libdeflater::Decompressor::new();
    decompressor.zlib_decompress(packed, &mut bytes).unwrap();
}
