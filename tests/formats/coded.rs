//! JPEG 2000, JPEG XL and JPEG-LS: lossless files of OpenJPEG and libjxl, and the example of T.87.

use crate::support::dicom::EXAMPLE;
use crate::support::formats::{JP2, JXL, RAMP, read, refused};
use gpuimg::internals::formats::FORMATS;
use gpuimg::internals::image::Samples;

#[test]
fn sixteen_bits_are_exact() {
    for file in [JP2, JXL, codestream()] {
        let (image, metadata, said) = read(file).unwrap();
        assert_eq!(*image.samples(), Samples::from(RAMP.to_vec()));
        assert_eq!((image.shape().width, image.shape().height), (5, 4));
        assert_eq!((metadata.maxval, metadata.signed), (None, false));
        assert!(said.warnings.is_empty(), "{:?}", said.warnings);
    }
}

/// A file of 40 bytes states a frame of a gigabyte: memory for it is not taken before the file has it.
#[test]
fn a_jpeg_xl_that_states_a_gigabyte() {
    let start = b"\xFF\x0A\0\0\0\x0CJXL \r\n\x87\n\0\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF";
    let end = b"\0\xFB\xFF\xC2\0\xC3\xC2\0\x07\x08\x09\x0A\x0B\x0D\x0D\x0D";
    refused(&[&start[..], end].concat(), "its data are damaged");
}

/// The codestream in the JP2 file.
fn codestream() -> &'static [u8] {
    let start = JP2.windows(4).position(|it| it == b"\xFF\x4F\xFF\x51");
    &JP2[start.unwrap()..]
}

/// The codestream with another byte at an offset.
fn with(at: usize, byte: u8) -> Vec<u8> {
    let mut file = codestream().to_vec();
    file[at] = byte;
    file
}

#[test]
fn headers_of_jpeg_2000_that_are_not_supported() {
    // The size is at bytes 8 to 15, the number of channels at 40, and the bits and steps of the first at 42.
    refused(&with(8, 0x7F), "bytes are too few for");
    refused(&with(41, 5), "5 channels is not supported");
    refused(&with(42, 23), "24 bits is not supported");
    refused(&with(43, 2), "fewer pixels than the image");
    let cut = &codestream()[..45];
    refused(&cut[..40], "end within their header");
    let palette = [&JP2[..12], b"\0\0\0\x10jp2h\0\0\0\x08pclr", &JP2[12..]].concat();
    refused(&palette, "a palette is not supported");
    let endless = [&JP2[..12], b"\0\0\0\x07jp2h", &JP2[12..]].concat();
    refused(&endless, "truncated: its box jp2h at byte 12");
}

/// A codestream whose transform is not reversible is said to be lossy.
#[test]
fn lossy_jpeg_2000_has_a_warning() {
    let coding = codestream().windows(2).position(|it| it == b"\xFF\x52");
    let transform = coding.unwrap() + 13;
    assert_eq!(codestream()[transform], 1);
    let (_, _, said) = read(&with(transform, 0)).unwrap();
    assert!(
        said.warnings[0].contains("compressed with loss"),
        "{:?}",
        said.warnings
    );
}

/// The example of T.87, as a file, after a SPIFF header, and after a comment, which makes it look like another JPEG file.
#[test]
fn jpeg_ls_files() {
    let expected = [
        0u8, 0, 90, 74, 68, 50, 43, 205, 64, 145, 145, 145, 100, 145, 145, 145,
    ];
    let commented = [b"\xFF\xD8\xFF\xFE\0\x04ab", &EXAMPLE[2..]].concat();
    let spiff = b"\xFF\xD8\xFF\xE8\0\x20SPIFF\0\x02\0\0\x01\0\0\0\x04\0\0\0\x04\x08\x08\x06\0\0\0\0\x01\0\0\0\x01";
    let described = [spiff, &EXAMPLE[2..]].concat();
    for (file, id) in [
        (EXAMPLE, "jpegls"),
        (&described, "jpegls"),
        (&commented, "jpeg"),
    ] {
        let known = FORMATS.iter().find(|format| (format.sniff)(file));
        assert_eq!(known.unwrap().id, id);
        let (image, metadata, said) = read(file).unwrap();
        assert_eq!(*image.samples(), Samples::from(expected.to_vec()));
        assert_eq!((image.shape().width, image.shape().height), (4, 4));
        assert_eq!((metadata.maxval, metadata.signed), (None, false));
        assert!(said.warnings.is_empty(), "{:?}", said.warnings);
    }
}

/// The precision is byte 6 of the file, and the size follows it.
#[test]
fn damaged_jpeg_ls_files() {
    assert_eq!(&EXAMPLE[..11], b"\xFF\xD8\xFF\xF7\0\x0B\x08\0\x04\0\x04");
    for size in 4..EXAMPLE.len() - 3 {
        assert!(read(&EXAMPLE[..size]).is_err(), "cut at {size}");
    }
    let with = |at: usize, byte: u8| {
        let mut file = EXAMPLE.to_vec();
        file[at] = byte;
        file
    };
    for at in 4..EXAMPLE.len() {
        for byte in 0..=255 {
            let _ = read(&with(at, byte));
        }
    }
    let mut large = with(7, 0x7F);
    large[9] = 0x7F;
    refused(&large, "bytes are too few for");
    refused(&with(6, 17), "JPEG of 17 bits is not supported");
    refused(&with(11, 2), "2 components are not supported");
}
