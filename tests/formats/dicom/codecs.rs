//! JPEG-LS and JPEG 2000 in DICOM files: the example of the standard, and streams of CharLS and OpenJPEG.

use crate::support::dicom::{Build, EXAMPLE, JPEG_LS};
use crate::support::formats::{JP2, RAMP, read, read_pages, refused};
use gpuimg::internals::image::Samples;

const JPEG_2000: &str = "1.2.840.10008.1.2.4.90";

fn example() -> Build {
    Build {
        syntax: JPEG_LS,
        columns: 4,
        rows: 4,
        bits: (8, 8),
        ..Build::default()
    }
}

#[test]
fn the_example_of_jpeg_ls() {
    let expected = [
        0u8, 0, 90, 74, 68, 50, 43, 205, 64, 145, 145, 145, 100, 145, 145, 145,
    ];
    let expected = Samples::from(expected.to_vec());
    let (image, ..) = read(&example().file(b"", Some(&[b"", EXAMPLE]))).unwrap();
    assert_eq!(*image.samples(), expected);
    let two = example().text((0x28, 8), "2");
    let (pages, ..) = read_pages(&two.file(b"", Some(&[b"", EXAMPLE, EXAMPLE]))).unwrap();
    assert_eq!(pages, [image.clone(), image]);
}

/// The stream ends early, or a byte of it has other values: an error or an image, and never a panic.
#[test]
fn damaged_jpeg_ls() {
    let frame = |stream: &[u8]| read(&example().file(b"", Some(&[b"", stream])));
    // The last byte of the data has bits that complete it.
    for size in 0..EXAMPLE.len() - 3 {
        assert!(frame(&EXAMPLE[..size]).is_err(), "cut at {size}");
    }
    for at in 0..EXAMPLE.len() {
        for value in 0..=255 {
            let mut stream = EXAMPLE.to_vec();
            stream[at] = value;
            let _ = frame(&stream);
        }
    }
    let wide = Build {
        columns: 5,
        ..example()
    };
    refused(
        &wide.file(b"", Some(&[b"", EXAMPLE])),
        "the size of its JPEG-LS image differs from that in the header",
    );
}

/// The words of `ramp.jp2` without a sign, and the same bits with one.
#[test]
fn words_of_jpeg_2000() {
    let start = JP2.windows(4).position(|it| it == b"\xFF\x4F\xFF\x51");
    let codestream = &JP2[start.unwrap()..];
    let build = |signed| Build {
        syntax: JPEG_2000,
        columns: 5,
        rows: 4,
        signed,
        ..Build::default()
    };
    for (signed, stream) in [(false, codestream), (true, codestream), (false, JP2)] {
        let file = build(signed).file(b"", Some(&[b"", stream]));
        let (image, metadata, _) = read(&file).unwrap();
        // Memory has half the range added to samples with a sign.
        let zero = if signed { 0x8000 } else { 0 };
        let words: Vec<u16> = RAMP.iter().map(|word| word ^ zero).collect();
        assert_eq!(*image.samples(), Samples::from(words));
        assert_eq!(metadata.signed, signed);
    }
    let cut = &codestream[..codestream.len() - 10];
    refused(
        &build(false).file(b"", Some(&[b"", cut])),
        "its JPEG 2000 data are damaged",
    );
}
