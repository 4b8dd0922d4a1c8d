//! DICOM files written by hand.

mod codecs;
pub mod lossless;

use crate::support::dicom::{BIG, Build, EXPLICIT, IMPLICIT, JPEG, RLE};
use crate::support::formats::small_dicom;
use crate::support::formats::{read, read_pages, refused};
use crate::support::{folder, run};
use gpuimg::internals::image::metadata::{Resolution, Unit};
use gpuimg::internals::image::{Depth, Samples};

/// A file that promises many frames of many pixels.
pub fn huge() -> Vec<u8> {
    let build = Build {
        columns: u16::MAX,
        rows: u16::MAX,
        ..Build::default()
    };
    build.text((0x28, 8), "999999").words(&[0; 6])
}

fn signed(values: &[i16]) -> Samples {
    let memory = values.iter().map(|&value| value as u16 ^ 0x8000);
    Samples::from(memory.collect::<Vec<u16>>())
}

#[test]
fn three_syntaxes_by_hand() {
    for syntax in [EXPLICIT, IMPLICIT, BIG] {
        let build = Build {
            syntax,
            ..Build::default()
        };
        let (image, metadata, said) = read(&build.words(&[0, 1, 2, 300, 4000, 65535])).unwrap();
        assert_eq!(image.shape().to_string(), "3×2 grey, 16 bits");
        let expected = vec![0u16, 1, 2, 300, 4000, 65535];
        assert_eq!(*image.samples(), Samples::from(expected), "{syntax}");
        assert_eq!(
            (metadata.signed, metadata.maxval, metadata.window),
            (false, None, None)
        );
        assert_eq!(said.warnings.len(), 0);
        assert!(said.notes[0].contains("of the patient, the study and the device are left out"));
    }
}

/// 12 bits in 16: what stands above them is no part of the sample, and the sign is that of 12 bits.
#[test]
fn bits_that_are_not_stored() {
    let build = Build {
        bits: (16, 12),
        ..Build::default()
    };
    let words = [0x0000, 0x0FFF, 0xF001, 0x0800, 0x07FF, 0x1234];
    let (image, metadata, _) = read(&build.words(&words)).unwrap();
    assert_eq!(
        *image.samples(),
        Samples::from(vec![0u16, 0xFFF, 1, 0x800, 0x7FF, 0x234])
    );
    assert_eq!(metadata.maxval, Some(4095));
    let build = Build {
        signed: true,
        ..build
    };
    let (image, metadata, _) = read(&build.words(&words)).unwrap();
    assert_eq!(*image.samples(), signed(&[0, -1, 1, -2048, 2047, 0x234]));
    assert_eq!((metadata.signed, metadata.maxval), (true, None));
}

#[test]
fn hounsfield_units_are_signed_whole_numbers() {
    let build = Build {
        bits: (16, 12),
        ..Build::default()
    };
    let build = build
        .text((0x28, 0x1052), "-1024")
        .text((0x28, 0x1053), "1");
    let (image, metadata, said) = read(&build.words(&[0, 1024, 4095, 24, 1, 2])).unwrap();
    assert_eq!(
        *image.samples(),
        signed(&[-1024, 0, 3071, -1000, -1023, -1022])
    );
    assert_eq!((metadata.signed, said.warnings.len()), (true, 0));
    // Of 16 bits that could be more, what there is decides.
    let full = Build {
        bits: (16, 16),
        ..build.clone()
    };
    let (image, ..) = read(&full.words(&[0, 1024, 33791, 24, 1, 2])).unwrap();
    assert_eq!(
        *image.samples(),
        signed(&[-1024, 0, 32767, -1000, -1023, -1022])
    );
    let (image, metadata, _) = read(&full.words(&[0, 1024, 33792, 24, 1, 2])).unwrap();
    assert_eq!(
        (image.shape().depth, metadata.signed),
        (Depth::ThirtyTwo, true)
    );
    let top = |value: i32| value as u32 ^ (1 << 31);
    let expected = [-1024, 0, 32768, -1000, -1023, -1022].map(top);
    assert_eq!(*image.samples(), Samples::from(expected.to_vec()));
}

#[test]
fn values_that_are_no_whole_numbers_stay_as_they_are_stored() {
    let build = Build::default()
        .text((0x28, 0x1052), "0")
        .text((0x28, 0x1053), "0.25");
    let (image, _, said) = read(&build.words(&[0, 1, 2, 300, 4000, 65535])).unwrap();
    assert_eq!(
        *image.samples(),
        Samples::from(vec![0u16, 1, 2, 300, 4000, 65535])
    );
    assert_eq!(
        said.warnings,
        [
            "samples are read as stored: 0.25 × sample + 0 (RescaleSlope, \
          RescaleIntercept) is not always a 32-bit integer"
        ]
    );
}

#[test]
fn white_that_is_zero_frames_and_places() {
    let build = Build {
        photometric: "MONOCHROME1",
        bits: (8, 8),
        ..Build::default()
    };
    let build = build.text((0x28, 8), "2").text((0x28, 0x30), "0.5\\0.25");
    let (pages, metadata, _) = read_pages(&build.file(b"abcdefghijkl", None)).unwrap();
    assert_eq!(pages.len(), 2);
    assert_eq!(*pages[1].samples(), Samples::from(b"ghijkl".to_vec()));
    assert!(metadata.white_is_zero);
    // Half a millimetre from row to row: 20 in a centimetre.
    let resolution = metadata.resolution.unwrap();
    assert_eq!(
        (resolution.y, resolution.unit),
        ((10_000_000, 500_000), Unit::Centimetre)
    );
    assert_eq!(resolution.per_metre(), Some((4000, 2000)));
}

#[test]
fn colours_in_pixels_and_planes() {
    for planar in [false, true] {
        let build = Build {
            photometric: "RGB",
            channels: 3,
            bits: (8, 8),
            columns: 2,
            rows: 1,
            planar,
            ..Build::default()
        };
        let bytes = if planar { b"adbecf" } else { b"abcdef" };
        let (image, ..) = read(&build.file(bytes, None)).unwrap();
        assert_eq!(
            *image.samples(),
            Samples::from(b"abcdef".to_vec()),
            "{planar}"
        );
    }
}

/// Runs: 16 bits have a segment for their upper and one for their lower bytes.
#[test]
fn runs_by_hand() {
    let build = Build {
        syntax: RLE,
        ..Build::default()
    };
    let mut frame = Vec::new();
    for word in [2u32, 64, 68].into_iter().chain([0; 13]) {
        frame.extend(word.to_le_bytes());
    }
    // Six bytes of 1; then 0, 1, 2, three of 9.
    frame.extend(b"\xFB\x01\x80\x80\x02\0\x01\x02\xFE\x09");
    let (image, ..) = read(&build.file(b"", Some(&[b"", &frame]))).unwrap();
    assert_eq!(
        *image.samples(),
        Samples::from(vec![256u16, 257, 258, 265, 265, 265])
    );
    // Two frames, in three fragments by the table.
    let two = build.text((0x28, 8), "2");
    let (a, b) = frame.split_at(66);
    let second = (8 + frame.len() as u32).to_le_bytes();
    let table = [&[0; 4][..], &second].concat();
    let (pages, ..) = read_pages(&two.file(b"", Some(&[&table, &frame, a, b]))).unwrap();
    assert_eq!(pages[0], pages[1]);
    refused(
        &two.file(b"", Some(&[b"", &frame, a, b])),
        "its fragments do not say which frame they are of",
    );
}

#[test]
fn jpegs_in_fragments() {
    let mut jpeg = Vec::new();
    let smooth: Vec<u8> = (0..24 * 16 * 3).map(|i| (i / 8) as u8).collect();
    image::codecs::jpeg::JpegEncoder::new_with_quality(&mut jpeg, 95)
        .encode(&smooth, 24, 16, image::ExtendedColorType::Rgb8)
        .unwrap();
    let build = Build {
        syntax: JPEG,
        photometric: "YBR_FULL_422",
        channels: 3,
        bits: (8, 8),
        columns: 24,
        rows: 16,
        ..Build::default()
    };
    let (image, ..) = read(&build.file(b"", Some(&[b"", &jpeg]))).unwrap();
    assert_eq!(image, read(&jpeg).unwrap().0);
}

/// Frames that have windows, distances of pixels and slopes for themselves (the functional groups of enhanced images).
#[test]
fn frames_that_differ() {
    let build = Build::default().text((0x28, 8), "2");
    let nested = |file: &mut Vec<u8>, tag: (u16, u16), items: &[Vec<u8>]| {
        let items = items.iter().flat_map(|item| {
            let length = (item.len() as u32).to_le_bytes();
            [b"\xFE\xFF\0\xE0", &length[..], item].concat()
        });
        build.element(file, tag, b"SQ", &items.collect::<Vec<u8>>());
    };
    let group = |sequence: u16, texts: &[(u16, &str)]| {
        let (mut inner, mut outer) = (Vec::new(), Vec::new());
        for (element, text) in texts {
            build.element(&mut inner, (0x28, *element), b"DS", text.as_bytes());
        }
        nested(&mut outer, (0x28, sequence), &[inner]);
        outer
    };
    let whole = build.words(&[0; 12]);
    let at = whole
        .windows(4)
        .position(|tag| tag == b"\xE0\x7F\x10\0")
        .unwrap();
    let file = |frames: [Vec<u8>; 2]| {
        let mut groups = Vec::new();
        nested(&mut groups, (0x5200, 0x9230), &frames);
        [&whole[..at], &groups, &whole[at..]].concat()
    };
    let window = |center| group(0x9132, &[(0x1050, center), (0x1051, "10")]);
    let (_, metadata, _) = read_pages(&file([window("40"), window("40")])).unwrap();
    assert_eq!(metadata.window, Some((35, 44)));
    let (_, metadata, _) = read_pages(&file([window("40"), window("50")])).unwrap();
    assert_eq!(metadata.window, None);
    let spacing = |spacing| group(0x9110, &[(0x30, spacing)]);
    let half = Resolution::from_millimetres(0.25, 0.5);
    for (second, resolution) in [("0.5\\0.25", half), ("0.5\\0.75", None)] {
        let file = file([spacing("0.5\\0.25"), spacing(second)]);
        let (_, metadata, _) = read_pages(&file).unwrap();
        assert_eq!(metadata.resolution, resolution);
    }
    let slope = |slope| group(0x9145, &[(0x1052, "-5"), (0x1053, slope)]);
    let (pages, ..) = read_pages(&file([slope("1 "), slope("1 ")])).unwrap();
    assert_eq!(*pages[1].samples(), signed(&[-5; 6]));
    let (pages, _, said) = read_pages(&file([slope("1 "), slope("2 ")])).unwrap();
    assert_eq!(*pages[1].samples(), Samples::from(vec![0u16; 6]));
    assert!(
        said.warnings[0].contains("differ from frame to frame"),
        "{:?}",
        said.warnings
    );
}

/// A small copy of the image in fragments, before the image.
#[test]
fn icons_are_passed_over() {
    let mut whole = small_dicom();
    let at = whole
        .windows(4)
        .position(|tag| tag == b"\xE0\x7F\x10\0")
        .unwrap();
    let icon = b"\x88\0\0\x02SQ\0\0\xFF\xFF\xFF\xFF\xFE\xFF\0\xE0\xFF\xFF\xFF\xFF\
        \xE0\x7F\x10\0OB\0\0\xFF\xFF\xFF\xFF\xFE\xFF\0\xE0\x04\0\0\0\xFF\xD8\xFF\xD9\xFE\xFF\xDD\xE0\0\0\0\0\
        \xFE\xFF\x0D\xE0\0\0\0\0\xFE\xFF\xDD\xE0\0\0\0\0";
    whole.splice(at..at, icon.iter().copied());
    assert_eq!(read(&whole).unwrap().0, read(&small_dicom()).unwrap().0);
}

/// 20 of 32 bits, and the largest slope with 32.
#[test]
fn thirty_two_bits() {
    let build = Build {
        bits: (32, 20),
        columns: 2,
        rows: 1,
        ..Build::default()
    };
    let bytes = [0x000F_FFFFu32, 0xFFF0_0001].map(u32::to_le_bytes).concat();
    let (image, metadata, _) = read(&build.file(&bytes, None)).unwrap();
    assert_eq!(*image.samples(), Samples::from(vec![0xF_FFFFu32, 1]));
    assert_eq!(metadata.maxval, None);
    let build = Build {
        bits: (32, 32),
        ..build
    };
    let build = build.text((0x28, 0x1053), "1073741824");
    let (_, _, said) = read(&build.file(&bytes, None)).unwrap();
    assert!(
        said.warnings[0].contains("is not always a 32-bit integer"),
        "{:?}",
        said.warnings
    );
}

#[test]
fn what_is_not_supported_is_named() {
    let of = |syntax| Build {
        syntax,
        ..Build::default()
    };
    refused(
        &of("1.2.3").words(&[0; 6]),
        "the transfer syntax 1.2.3 is not supported (gdcmconv --raw or dcmdjpeg unpacks it first)",
    );
    let palette = Build {
        photometric: "PALETTE COLOR",
        ..Build::default()
    };
    refused(
        &palette.words(&[0; 6]),
        "the size of its palette (0028,1101) is missing",
    );
    let whole = small_dicom();
    refused(&whole[..whole.len() - 1], "truncated at byte");
    let at = whole
        .windows(4)
        .position(|tag| tag == b"\xE0\x7F\x10\0")
        .unwrap();
    refused(
        &whole[..at],
        "it has no pixel data (7FE0,0010): a report, a list of files, or cut off",
    );
    let many = Build::default().text((0x28, 8), "999999999");
    refused(&many.words(&[0; 6]), "truncated at byte");
}

/// A window of 400 around 40 is −160 to 239 by the standard's definition.
#[test]
fn the_window_of_the_file() {
    let build = Build {
        bits: (16, 12),
        ..Build::default()
    };
    let build = build
        .text((0x28, 0x1052), "-1024")
        .text((0x28, 0x1050), "40\\600");
    let build = build.text((0x28, 0x1051), "400\\1500");
    let ct = build.words(&[864, 1263, 0, 4095, 1064, 865]);
    assert_eq!(read(&ct).unwrap().1.window, Some((-160, 239)));
    let root = folder(&[("ct.dcm", &ct), ("plain.dcm", &small_dicom())]);
    let window = |name: &str| {
        run(
            root.path(),
            &[
                "normalize",
                "--range",
                "auto-window",
                name,
                "out.png",
                "--overwrite",
            ],
            &[],
        )
    };
    let done = window("ct.dcm");
    assert_eq!(done.code, 0, "{}", done.stderr);
    let same = run(
        root.path(),
        &["normalize", "--range=-160:239", "ct.dcm", "same.png"],
        &[],
    );
    assert_eq!(same.code, 0, "{}", same.stderr);
    let bytes = |name: &str| std::fs::read(root.path().join(name)).unwrap();
    assert_eq!(bytes("out.png"), bytes("same.png"));
    let (image, ..) = read(&bytes("out.png")).unwrap();
    let Samples::U16(samples) = image.samples() else {
        panic!("16 bits were expected")
    };
    assert_eq!(samples[..4], [0, 65535, 0, 65535]);
    let refused = window("plain.dcm");
    assert_eq!(refused.code, 1);
    assert!(
        refused
            .stderr
            .contains("the file stores no window for --range auto-window"),
        "{}",
        refused.stderr
    );
}
