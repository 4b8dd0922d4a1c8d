//! OpenEXR and Radiance HDR: files written by hand, and by the `exr` crate in its lossless compressions.

use crate::support::formats::{exr, floats, hdr, small_exr, small_hdr};
use crate::support::formats::{read, read_pages, refused};
use crate::support::{folder, run};
use exr::prelude::*;
use gpuimg::internals::image::metadata::Alpha;
use gpuimg::internals::image::{Depth, Samples};
use std::io::Cursor;

/// The samples of an image as numbers.
fn numbers(image: &gpuimg::internals::image::Image) -> Vec<f32> {
    let Samples::U32(samples) = image.samples() else {
        panic!("32 bits were expected")
    };
    let samples = samples.iter();
    samples
        .map(|&key| gpuimg::internals::image::number::from_key(key))
        .collect()
}

#[test]
fn exr_by_hand() {
    let (image, metadata, said) = read(&small_exr()).unwrap();
    assert_eq!(image.shape().to_string(), "3×2 grey, 32-bit floating point");
    assert_eq!(numbers(&image), [0.5, -1.0, 2.0, 3.0, 4e9, 1e-9]);
    assert_eq!((metadata.own.names().len(), said.warnings.len()), (0, 0));

    // 1, −2 and the smallest of half precision, 2⁻²⁴; channels are stored in the order of their names.
    let half = |words: [u16; 8]| words.map(u16::to_le_bytes).concat();
    let row = half([
        0x3C00, 0xC000, 0x0001, 0x7BFF, 0x0000, 0x8000, 0x4000, 0x3555,
    ]);
    let colours = [("A", 1), ("B", 1), ("G", 1), ("R", 1)];
    let (image, metadata, _) = read(&exr(2, &colours, &[&row])).unwrap();
    let third = f32::from(0x555_u16) / 4096.0;
    assert_eq!(
        numbers(&image),
        [2.0, 0.0, 2f32.powi(-24), 1.0, third, -0.0, 65504.0, -2.0]
    );
    assert_eq!(metadata.alpha, Alpha::Associated);

    let words = [7u32, u32::MAX, 0].map(u32::to_le_bytes).concat();
    let (image, ..) = read(&exr(3, &[("id", 0)], &[&words])).unwrap();
    assert_eq!(image.shape().depth, Depth::ThirtyTwo);
    assert_eq!(*image.samples(), Samples::from(vec![7, u32::MAX, 0]));
}

/// A chunk of a tile may claim as many bytes as the tile has: a file of 1682 bytes took 925 MB.
#[test]
fn a_tile_far_larger_than_its_image_took_its_memory() {
    use exr::prelude::{Blocks, Encoding, Image, SpecificChannels, Vec2, WritableImage};
    let channels = SpecificChannels::build().with_channel::<f32>("Y");
    let channels = channels.with_pixel_fn(|at| (at.x() as f32,));
    let encoding = Encoding {
        blocks: Blocks::Tiles(Vec2(64, 64)),
        ..Encoding::UNCOMPRESSED
    };
    let mut file = std::io::Cursor::new(Vec::new());
    let image = Image::from_encoded_channels((3, 2), encoding, channels);
    image.write().non_parallel().to_buffered(&mut file).unwrap();
    let mut file = file.into_inner();
    let (image, ..) = read(&file).unwrap();
    assert_eq!(numbers(&image), [0.0, 1.0, 2.0, 0.0, 1.0, 2.0]);
    let kind = b"tiledesc\0\x09\0\0\0";
    let size = file.windows(kind.len()).position(|bytes| bytes == kind);
    let size = size.unwrap() + kind.len();
    file[size..size + 8].copy_from_slice(b"\0\0\0\x10\x08\0\0\0");
    refused(&file, "tiles of 268435456×8 pixels for an image of 3×2");
}

#[test]
fn channels_of_exr_that_make_no_image_are_named() {
    let row = |channels: usize| floats(&vec![1.0; 3 * channels]);
    refused(
        &exr(3, &[("U", 2), ("V", 2)], &[&row(2)]),
        "channels U, V are neither grey (Y) nor RGB: write the channels that you need to a part",
    );
    refused(
        &exr(3, &[("BY", 2), ("RY", 2), ("Y", 2)], &[&row(3)]),
        "luminance with differences of colour (Y, RY, BY) is not supported: write it as RGB first",
    );
    refused(
        &exr(3, &[("B", 2), ("G", 2), ("R", 0)], &[&row(3)]),
        "channels of integers beside those of floating point are not supported",
    );
    let (image, _, said) = read(&exr(3, &[("Y", 2), ("Z", 2)], &[&row(2)])).unwrap();
    assert_eq!(image.shape().channels, 1);
    assert_eq!(
        said.warnings,
        ["channels that do not belong to the image are left out: Z"]
    );
}

/// Every lossless compression, scan lines and tiles, half and single precision, through the writer of
/// the `exr` crate.
#[test]
fn compressions_of_exr() {
    let (width, height) = (70, 45);
    let sample = |Vec2(x, y): Vec2<usize>| {
        let value = (x * 7 + y * 13) as f32 / 4.0;
        (value, -value, f16::from_f32(value + 0.5), 1.0f32)
    };
    let mut cases = 0;
    for compression in [
        Compression::Uncompressed,
        Compression::RLE,
        Compression::ZIP1,
        Compression::ZIP16,
        Compression::PIZ,
    ] {
        for blocks in [Blocks::ScanLines, Blocks::Tiles(Vec2(32, 16))] {
            let channels = SpecificChannels::rgba(sample);
            let encoding = Encoding {
                compression,
                blocks,
                line_order: LineOrder::Increasing,
            };
            let layer = Layer::new(
                (width, height),
                LayerAttributes::default(),
                encoding,
                channels,
            );
            let mut file = Cursor::new(Vec::new());
            let image = Image::from_layer(layer);
            image.write().to_buffered(&mut file).unwrap();
            let (image, ..) = read(&file.into_inner()).unwrap();
            let found = numbers(&image);
            for (i, pixel) in found.chunks(4).enumerate() {
                let (r, g, b, a) = sample(Vec2(i % width, i / width));
                assert_eq!(
                    pixel,
                    [r, g, b.to_f32(), a],
                    "{compression:?} {blocks:?} {i}"
                );
            }
            cases += 1;
        }
    }
    assert_eq!(cases, 10);
}

/// Parts are pages, each of its own size.
#[test]
fn parts_of_exr_are_pages() {
    let layer = |name: &str, width: usize| {
        let channels =
            SpecificChannels::rgb(move |Vec2(x, _): Vec2<usize>| (x as f32, width as f32, 0f32));
        let attributes = LayerAttributes::named(name);
        Layer::new((width, 3), attributes, Encoding::SMALL_LOSSLESS, channels)
    };
    let layers = Image::empty(ImageAttributes::new(IntegerBounds::from_dimensions((5, 3))))
        .with_layer(layer("a", 5))
        .with_layer(layer("b", 4));
    let mut file = Cursor::new(Vec::new());
    layers.write().to_buffered(&mut file).unwrap();
    let (pages, _, said) = read_pages(&file.into_inner()).unwrap();
    let sizes: Vec<usize> = pages.iter().map(|page| page.shape().width).collect();
    assert_eq!(sizes, [5, 4]);
    assert_eq!(numbers(&pages[1])[..6], [0.0, 4.0, 0.0, 1.0, 4.0, 0.0]);
    assert_eq!(
        said.warnings,
        ["only the stored pixels are read, a window of the 5×3 of its display"]
    );
}

#[test]
fn hdr_by_hand() {
    let (image, _, said) = read(&small_hdr()).unwrap();
    assert_eq!(image.shape().to_string(), "3×2 RGB, 32-bit floating point");
    let small = (128.0 * 2f64.powi(-135)) as f32;
    let rows = [
        1.0,
        0.5,
        0.25,
        1.0 / 256.0,
        2.0 / 256.0,
        3.0 / 256.0,
        0.0,
        0.0,
        0.0,
    ];
    assert_eq!(numbers(&image)[..9], rows);
    // The second row repeats its first pixel twice.
    assert_eq!(numbers(&image)[9..], [small, 0.0, 0.0].repeat(3));
    assert_eq!(said.warnings.len(), 0);

    // Runs by channel: of 8 pixels, all red mantissas 128, the others one by one.
    let mut row = b"\x02\x02\0\x08\x88\x80".to_vec();
    row.extend(b"\x08\x01\x02\x03\x04\x05\x06\x07\x08\x88\0\x83\x80\x05\x81\x81\x81\x81\x81");
    let (image, ..) = read(&hdr("", "-Y 1 +X 8", &row)).unwrap();
    let found = numbers(&image);
    assert_eq!(found[..3], [0.5, 1.0 / 256.0, 0.0]);
    assert_eq!(found[21..], [1.0, 16.0 / 256.0, 0.0]);
}

#[test]
fn hdr_that_cannot_be_read_as_it_stands() {
    let (_, _, said) = read(&hdr("EXPOSURE=2.5\nVIEW=-vtv\n", "-Y 1 +X 1", b"abcd")).unwrap();
    assert_eq!(
        said.warnings,
        ["samples are read as stored: they are not divided by EXPOSURE, 2.5"]
    );
    assert_eq!(said.notes, ["\"VIEW=-vtv\" is left out"]);
    refused(
        &hdr("", "+X 1 -Y 1", b"abcd"),
        "the row order \"+X 1 -Y 1\" is not supported (-Y HEIGHT +X WIDTH is)",
    );
    let other = String::from_utf8(hdr("", "-Y 1 +X 1", b"abcd")).unwrap();
    refused(
        other.replace("rgbe", "xyze").as_bytes(),
        "samples of the kind 32-bit_rle_xyze are not supported",
    );
    refused(
        &hdr("", "-Y 1 +X 4", b"abcd\x01\x01\x01\x04"),
        "row 0: it is damaged: a run of 4 at pixel 1 of 4",
    );
    refused(&hdr("", "-Y 1 +X 2", b"abcd"), "truncated at byte");
    // The longest count of all, again and again.
    let runs = [&b"abcd"[..], &b"\x01\x01\x01\0".repeat(9)].concat();
    refused(
        &hdr("", "-Y 1 +X 5", &runs),
        "it is damaged: a run of 0 at pixel 1",
    );
    refused(
        &hdr("", "-Y 99999 +X 99999", b"abcd"),
        "bytes are too few for 99999×99999",
    );
}

#[test]
fn light_through_the_verbs() {
    let root = folder(&[("a.exr", &small_exr()), ("a.hdr", &small_hdr())]);
    for (line, wanted) in [
        ("normalize a.exr a.png", 0),
        ("normalize a.hdr b.png", 0),
        ("rotate 90 a.exr c.tif", 0),
        ("flip vertical a.hdr d.pfm", 0),
        ("flip vertical a.hdr d.exr", 2),
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let run = run(root.path(), &args, &[]);
        assert_eq!(run.code, wanted, "{line}: {}", run.stderr);
    }
}
