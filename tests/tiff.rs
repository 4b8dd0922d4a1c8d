//! TIFF: literals; every kind of image through every compression, read back here and by the
//! `tiff` crate; files of every layout from a plain writer; damaged and lying files.

use crate::support::tiff_images::{SIZES, picture, read, sample_images, written};
use gpuimg::internals::formats::tiff::{self, Compression};
use gpuimg::internals::image::{Depth, Samples};
use std::io::Cursor;

mod hostile;
mod layouts;

const ALL: [Compression; 4] = [
    Compression::None,
    Compression::Deflate,
    Compression::Lzw,
    Compression::Zstd,
];

/// The samples' bytes as the `tiff` crate reads them.
fn crate_reads(bytes: &[u8]) -> Vec<u8> {
    use ::tiff::decoder::{Decoder, DecodingResult};
    let mut decoder = Decoder::new(Cursor::new(bytes)).unwrap();
    match decoder.read_image().unwrap() {
        DecodingResult::U8(samples) => samples,
        DecodingResult::U16(samples) => bytemuck::cast_slice(&samples).to_vec(),
        _ => panic!("neither 8 nor 16 bits"),
    }
}

#[test]
fn round_trips_and_the_tiff_crate() {
    let mut cases = 0;
    for image in sample_images() {
        for compression in ALL {
            let what = format!("{:?} {compression:?}", image.shape());
            let bytes = written(|target| tiff::encode(&image, compression, target)).unwrap();
            assert_eq!(read(&bytes).unwrap(), image, "{what}");
            assert_eq!(crate_reads(&bytes), image.samples().as_bytes(), "{what}");
            cases += 1;
        }
    }
    assert_eq!(cases, SIZES.len() * 4 * 2 * 4);
}

/// Several strips, the last one shorter, and strips of one long row.
#[test]
fn many_strips() {
    for (width, height) in [(1021, 1531), (600_011, 3)] {
        let image = picture(width, height, 3, Depth::Sixteen);
        for compression in ALL {
            let bytes = written(|target| tiff::encode(&image, compression, target)).unwrap();
            assert_eq!(read(&bytes).unwrap(), image, "{compression:?}");
            assert_eq!(
                crate_reads(&bytes),
                image.samples().as_bytes(),
                "{compression:?}"
            );
        }
    }
}

#[test]
fn tags_for_other_readers() {
    use ::tiff::tags::Tag;
    let image = picture(31, 7, 4, Depth::Sixteen);
    let bytes = written(|target| tiff::encode(&image, Compression::Deflate, target)).unwrap();
    let mut decoder = ::tiff::decoder::Decoder::new(Cursor::new(&bytes)).unwrap();
    assert_eq!(decoder.colortype().unwrap(), ::tiff::ColorType::RGBA(16));
    for (tag, values) in [
        (Tag::BitsPerSample, vec![16, 16, 16, 16]),
        (Tag::SampleFormat, vec![1, 1, 1, 1]),
        (Tag::ExtraSamples, vec![2]),
        (Tag::PhotometricInterpretation, vec![2]),
        (Tag::PlanarConfiguration, vec![1]),
        (Tag::Predictor, vec![2]),
        (Tag::RowsPerStrip, vec![7]),
    ] {
        assert_eq!(decoder.get_tag_u32_vec(tag).unwrap(), values, "{tag:?}");
    }
    assert!(decoder.find_tag(Tag::Orientation).unwrap().is_none());
}

/// What the `tiff` crate writes is read here.
#[test]
fn the_tiff_crate_writes() {
    use ::tiff::encoder::compression::DeflateLevel;
    use ::tiff::encoder::{Compression as Theirs, Predictor, TiffEncoder, colortype};
    let mut cases = 0;
    for theirs in [
        Theirs::Uncompressed,
        Theirs::Lzw,
        Theirs::Deflate(DeflateLevel::Fast),
        Theirs::Deflate(DeflateLevel::Best),
        Theirs::Packbits,
    ] {
        for predictor in [Predictor::None, Predictor::Horizontal] {
            for image in [
                picture(113, 127, 1, Depth::Sixteen),
                picture(257, 3, 3, Depth::Eight),
            ] {
                let (width, height) = (image.shape().width as u32, image.shape().height as u32);
                let mut bytes = Vec::new();
                let mut encoder = TiffEncoder::new(Cursor::new(&mut bytes))
                    .unwrap()
                    .with_compression(theirs)
                    .with_predictor(predictor);
                match image.samples() {
                    Samples::U16(samples) => encoder
                        .write_image::<colortype::Gray16>(width, height, samples)
                        .unwrap(),
                    Samples::U8(samples) => encoder
                        .write_image::<colortype::RGB8>(width, height, samples)
                        .unwrap(),
                    Samples::U32(_) | Samples::U64(_) => panic!("8 or 16 bits were expected"),
                }
                assert_eq!(read(&bytes).unwrap(), image, "case {cases}");
                cases += 1;
            }
        }
    }
    assert_eq!(cases, 20);
}
