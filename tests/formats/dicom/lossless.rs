//! JPEG's lossless process in DICOM files: streams written by hand, and those of a naive encoder.

use crate::support::dicom::Build;
use crate::support::formats::{BY_HAND, FIRST_ORDER, eight_bits_of_lossless, small_lossless};
use crate::support::formats::{read, read_pages, refused};
use crate::support::lossless::Coder;
use gpuimg::internals::image::Samples;

const ANY_PREDICTOR: &str = "1.2.840.10008.1.2.4.57";

#[test]
fn a_stream_by_hand() {
    let (image, metadata, _) = read(&small_lossless()).unwrap();
    assert_eq!(
        *image.samples(),
        Samples::from(vec![128u8, 129, 127, 130, 130, 131])
    );
    assert_eq!(metadata.maxval, None);
    // The image in two fragments, and two frames in one each.
    let (a, b) = BY_HAND.split_at(40);
    let (split, ..) = read(&eight_bits_of_lossless().file(b"", Some(&[b"", a, b]))).unwrap();
    assert_eq!(split, image);
    let two = eight_bits_of_lossless().text((0x28, 8), "2");
    let (pages, ..) = read_pages(&two.file(b"", Some(&[b"", BY_HAND, BY_HAND]))).unwrap();
    assert_eq!(pages, [image.clone(), image]);
}

/// The same codes for 16 bits, with another prediction: 4 is a + b − c.
#[test]
fn a_predictor_by_hand() {
    let mut stream = BY_HAND.to_vec();
    let at = |bytes: &[u8]| {
        BY_HAND
            .windows(bytes.len())
            .position(|it| it == bytes)
            .unwrap()
    };
    stream[at(b"\xFF\xC3") + 4] = 16;
    let predictor = at(b"\x01\0\0\x1C\xD0");
    stream[predictor] = 4;
    let build = Build {
        syntax: ANY_PREDICTOR,
        ..Build::default()
    };
    let (image, ..) = read(&build.file(b"", Some(&[b"", &stream]))).unwrap();
    // 32770 + 32769 − 32768 + 0, and that + 32767 − 32769 + 1.
    let expected = vec![32768u16, 32769, 32767, 32770, 32771, 32770];
    assert_eq!(*image.samples(), Samples::from(expected));
}

/// Precisions × predictors × shifts × restarts × components × codes, of samples that use all their bits.
#[test]
fn every_kind_of_stream() {
    let mut state = 1u32;
    let mut random = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    };
    let mut cases = 0;
    for precision in 2..=16 {
        for predictor in 1..=7 {
            for (index, (width, height)) in [(1, 1), (3, 2), (1, 9), (17, 1), (31, 23)]
                .into_iter()
                .enumerate()
            {
                for channels in [1, 3] {
                    let shift = [0, 0, 1, precision - 1][(random() % 4) as usize];
                    let coder = Coder {
                        width,
                        channels,
                        precision,
                        predictor,
                        shift,
                        restart: [0, 1, 2, 5][(random() % 4) as usize],
                        long: random() % 2 == 0,
                        apart: random() % 3 == 0,
                    };
                    let calm = (random() % 2 == 0) as u32 * (precision / 2);
                    let samples: Vec<u16> = (0..width * height * channels)
                        .map(|_| (random() as u16 >> (16 - precision)) >> calm >> shift << shift)
                        .collect();
                    let build = Build {
                        syntax: ANY_PREDICTOR,
                        columns: width as u16,
                        rows: height as u16,
                        channels: channels as u16,
                        photometric: if channels == 3 { "RGB" } else { "MONOCHROME2" },
                        bits: (if precision > 8 { 16 } else { 8 }, precision as u16),
                        ..Build::default()
                    };
                    let file = build.file(b"", Some(&[b"", &coder.file(&samples)]));
                    let (image, ..) = read(&file).unwrap_or_else(|error| {
                        panic!("{precision} bits, predictor {predictor}, {index}: {error:#}")
                    });
                    let expected = match precision > 8 {
                        true => Samples::from(samples),
                        false => samples
                            .iter()
                            .map(|&it| it as u8)
                            .collect::<Vec<u8>>()
                            .into(),
                    };
                    assert_eq!(
                        *image.samples(),
                        expected,
                        "{precision} bits, predictor {predictor}, shift {shift}, {width}×{height}×{channels}"
                    );
                    cases += 1;
                }
            }
        }
    }
    assert_eq!(cases, 15 * 7 * 5 * 2);
}

/// 12 bits with a sign, rescaled, and colours of a header that says planes.
#[test]
fn signs_slopes_and_planes() {
    let coder = Coder {
        width: 3,
        channels: 1,
        precision: 12,
        predictor: 1,
        shift: 0,
        restart: 0,
        long: false,
        apart: false,
    };
    let build = Build {
        syntax: FIRST_ORDER,
        bits: (16, 12),
        signed: true,
        ..Build::default()
    };
    let stream = coder.file(&[0, 0xFFF, 1, 0x800, 0x7FF, 0x234]);
    let (image, metadata, _) = read(&build.file(b"", Some(&[b"", &stream]))).unwrap();
    assert_eq!(
        *image.samples(),
        super::signed(&[0, -1, 1, -2048, 2047, 0x234])
    );
    assert!(metadata.signed);
    let rescaled = build.text((0x28, 0x1052), "-1024");
    let (image, ..) = read(&rescaled.file(b"", Some(&[b"", &stream]))).unwrap();
    assert_eq!(
        *image.samples(),
        super::signed(&[-1024, -1025, -1023, -3072, 1023, -460])
    );
    let colours = Coder {
        width: 2,
        channels: 3,
        precision: 8,
        ..coder
    };
    let stream = colours.file(&[1, 2, 3, 4, 5, 6]);
    for planar in [false, true] {
        let build = Build {
            syntax: FIRST_ORDER,
            photometric: "RGB",
            channels: 3,
            bits: (8, 8),
            columns: 2,
            rows: 1,
            planar,
            ..Build::default()
        };
        let (image, ..) = read(&build.file(b"", Some(&[b"", &stream]))).unwrap();
        assert_eq!(*image.samples(), Samples::from(vec![1u8, 2, 3, 4, 5, 6]));
    }
}

/// Each damage by its own message.
#[test]
fn what_is_wrong_is_said() {
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut stream = BY_HAND.to_vec();
        change(&mut stream);
        eight_bits_of_lossless().file(b"", Some(&[b"", &stream]))
    };
    let at = |bytes: &[u8]| {
        BY_HAND
            .windows(bytes.len())
            .position(|it| it == bytes)
            .unwrap()
    };
    let (frame, codes, scan) = (at(b"\xFF\xC3"), at(b"\xFF\xC4"), at(b"\xFF\xDA"));
    let put = |place: usize, byte: u8| with(&move |stream| stream[place] = byte);
    for (file, words) in [
        (put(1, 0xD9), "it is not a JPEG image"),
        (
            put(frame + 1, 0xC0),
            "a JPEG image of another kind (marker FFC0)",
        ),
        (
            put(frame + 4, 9),
            "JPEG samples of 9 bits are not those of 8",
        ),
        (
            put(frame + 6, 3),
            "a JPEG image of 3×3 pixels of 1 samples where 3×2 of 1",
        ),
        (put(codes + 5, 3), "a Huffman table is damaged"),
        (put(codes + 5 + 16, 17), "a Huffman table is damaged"),
        (put(codes + 4, 4), "a Huffman table has an invalid index"),
        (put(scan + 5, 2), "a scan is of an unknown component"),
        (put(scan + 6, 0x10), "a scan has no Huffman table"),
        (put(scan + 7, 8), "predictor 8"),
        (put(scan + 9, 8), "a shift of 8 bits"),
        // 11 is not a code.
        (
            put(scan + 10, 0xFC),
            "row 1: its lossless JPEG data are damaged",
        ),
        (
            with(&|stream| drop(stream.drain(scan + 12..scan + 14))),
            "row 2: its lossless JPEG data end early",
        ),
        (
            with(&|stream| stream.truncate(scan + 11)),
            "its lossless JPEG data end early",
        ),
        (
            with(&|stream| stream.truncate(scan + 3)),
            "damaged or truncated within a segment",
        ),
        (
            with(&|stream| stream.insert(scan + 11, 0)),
            "continue after the last sample",
        ),
        (with(&|stream| stream.truncate(scan + 14)), "or have no end"),
        (
            with(&|stream| drop(stream.splice(scan..scan, *b"\xFF\xDD\0\x04\0\x02"))),
            "is not a whole number of rows",
        ),
        (
            with(&|stream| drop(stream.splice(scan..scan, *b"\xFF\xDD\0\x04\0\x03"))),
            "continue after",
        ),
    ] {
        refused(&file, words);
    }
    let large = Build {
        columns: 999,
        rows: 999,
        ..eight_bits_of_lossless()
    };
    refused(&large.file(b"", Some(&[b"", BY_HAND])), "truncated: ");
    let wide = Build {
        bits: (32, 32),
        ..eight_bits_of_lossless()
    };
    refused(
        &wide.file(b"", Some(&[b"", BY_HAND])),
        "JPEG compression of samples in 32 bits is not supported (8 and 16 are)",
    );
}
