//! PNM: literals, round trips, the `image` crate as second reader and writer, damaged files.

use crate::support::tiff_images::{message, sample_images, written};
use gpuimg::internals::formats::pnm;
use gpuimg::internals::image::{Depth, Image, Samples, Shape};
use gpuimg::internals::os::{Source, Target};
use std::path::Path;

fn read(bytes: &[u8]) -> anyhow::Result<Image> {
    pnm::decode(&Source::memory(bytes.to_vec()))
}

fn refused(bytes: &[u8], words: &str) {
    let text = message(read(bytes));
    assert!(text.contains(words), "{text:?} has no {words:?}");
}

#[test]
fn literals() {
    let grey = read(b"P5\n3 2\n255\n\x00\x01\x02\xfd\xfe\xff").unwrap();
    let expected = (3, 2, 1, Depth::Eight);
    let shape = grey.shape();
    assert_eq!(
        (shape.width, shape.height, shape.channels, shape.depth),
        expected
    );
    assert_eq!(
        grey.samples(),
        &Samples::U8(vec![0, 1, 2, 253, 254, 255].into())
    );

    let colour = read(b"P6 1 1 65535 \x01\x02\x03\x04\xff\xfe").unwrap();
    assert_eq!(
        colour.samples(),
        &Samples::U16(vec![0x0102, 0x0304, 0xfffe].into())
    );
    assert_eq!(colour.shape().channels, 3);
}

#[test]
fn headers() {
    let sample = Samples::U8(vec![b'#'].into());
    for header in [
        "P5 1 1 255 ",
        "P5\t1\r1\n255\r",
        "P5 # a comment\n1 1 # another\n#a third\n\n  255\n",
        "P5#at once\n1#cut\n1\n255#last\n",
        "P5 01 0001 00255\n",
    ] {
        let image = read(format!("{header}#").as_bytes()).unwrap();
        assert_eq!(image.samples(), &sample, "{header:?}");
    }
}

/// Samples are kept as they are, whatever the maxval; it only decides the depth.
#[test]
fn maxval() {
    let eight =
        |max: &str| read(format!("P5 2 1 {max}\n\x01\x00").as_bytes()).map(Image::into_samples);
    assert_eq!(eight("1").unwrap(), Samples::U8(vec![1, 0].into()));
    assert_eq!(eight("254").unwrap(), Samples::U8(vec![1, 0].into()));
    let sixteen =
        |max: &str| read(format!("P5 1 1 {max}\n\x01\x00").as_bytes()).map(Image::into_samples);
    assert_eq!(sixteen("256").unwrap(), Samples::U16(vec![256].into()));
    assert_eq!(sixteen("4095").unwrap(), Samples::U16(vec![256].into()));
    refused(b"P5 2 1 1\n\x01\x02", "a sample of 2 is above the maxval 1");
    refused(
        b"P5 1 1 256\n\x01\x01",
        "a sample of 257 is above the maxval 256",
    );
    refused(b"P5 1 1 0\n\x01\x01", "maxval of 0");
    refused(b"P5 1 1 65536\n\x01\x01", "maxval of 65536");
}

#[test]
fn refusals() {
    // P7 is a format of its own.
    refused(b"P7\nWIDTH 1\n", "not a PNM file");
    refused(b"hello world", "not a PNM file");
    refused(b"P8 1 1 1 ", "not a PNM file");
    refused(b"P51 1 255 a", "no space");
    refused(b"P5 0 1 255 ", "the image is empty");
    refused(b"P5 -1 1 255 a", "width is not a number");
    refused(b"P5 1 1x 255 a", "height is not a number");
    refused(b"P5 1 1 255x a", "maxval is not a number");
    refused(b"P5 99999999999999999999 1 255 a", "width is too large");
    refused(
        b"P5 9999999999999 9999999999999 255 a",
        "do not fit in memory",
    );
    refused(
        b"P5 1000000 1000000 255\n",
        "truncated at byte 23 of 1000000000023",
    );
    refused(b"P5 1 1 255 aP5 1 1 255 a", "several images");
}

/// Every prefix of a file is an error, never a panic.
#[test]
fn truncated() {
    let file = b"P6 # c\n2 2 300\n\x01\x00\x01\x00\x01\x00\x01\x00\x01\x00\x01\x00\x01\x00\x01\x00\x01\x00\x01\x00\x01\x00\x01\x00";
    assert!(read(file).is_ok());
    for size in 0..file.len() {
        assert!(
            message(read(&file[..size])).contains("truncated at byte"),
            "{size}"
        );
    }
}

#[test]
fn round_trips_and_the_image_crate() {
    let mut cases = 0;
    for image in sample_images() {
        let shape = image.shape();
        let result = written(|target| pnm::encode(&image, target));
        if shape.has_alpha() {
            assert!(message(result).contains("alpha"));
            continue;
        }
        let bytes = result.unwrap();
        assert_eq!(read(&bytes).unwrap(), image, "{shape:?}");

        let other = image::load_from_memory_with_format(&bytes, image::ImageFormat::Pnm).unwrap();
        assert_eq!(other.as_bytes(), image.samples().as_bytes(), "{shape:?}");
        cases += 1;
    }
    assert_eq!(cases, 2 * 2 * crate::support::tiff_images::SIZES.len());
}

/// Longer than one piece of parallel reading and writing, and of an odd length.
#[test]
fn large() {
    let shape = Shape::checked(1021, 1031, 3, Depth::Sixteen).unwrap();
    let samples = Samples::U16(
        (0..shape.samples())
            .map(|i| ((i * 40503) >> 3) as u16)
            .collect(),
    );
    let image = Image::new(shape, samples);
    let bytes = written(|target| pnm::encode(&image, target)).unwrap();
    assert_eq!(read(&bytes).unwrap(), image);
    let mut low = bytes.clone();
    low[13..18].copy_from_slice(b"65534");
    assert!(message(read(&low)).contains("a sample of 65535"));
}

#[test]
fn refused_before_the_target_is_touched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pgm");
    let shape = Shape::checked(1, 1, 2, Depth::Eight).unwrap();
    let image = Image::new(shape, Samples::U8(vec![1, 2].into()));
    let target = Target::create(&path, false).unwrap();
    assert!(pnm::encode(&image, &target).is_err());
    drop(target);
    assert!(!Path::exists(&path));
}
