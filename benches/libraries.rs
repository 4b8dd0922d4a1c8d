//! The same images in other libraries: the png, image and tiff crates, libdeflate.

use crate::Bench;
use crate::common::others::{deflate, inflate, png_decode, png_encode, scanlines};
use gpuimg::internals::formats::Format;
use gpuimg::internals::image::{Depth, Image, Samples};
use image::ImageEncoder;
use std::io::Cursor;

/// All libraries that write a format.
pub fn rows(bench: &Bench, image: &Image, format: &Format) {
    match format.id {
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
        (Samples::U32(_) | Samples::U64(_), _) => unreachable!("8 or 16 bits are measured"),
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
