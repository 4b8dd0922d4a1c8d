//! Files of other projects that came out wrong (`tests/files/`), and files like them written here. The values are those that
//! other readers agree on.

use crate::formats::{read, read_pages};
use crate::support::dicom::{BIG, Build, JPEG};
use crate::support::{folder, repository, run};
use gpuimg::codec::decode;
use gpuimg::files::Source;
use gpuimg::image::{Image, Samples};
use std::fs;

/// A file of `tests/files/`.
fn file(name: &str) -> Vec<u8> {
    fs::read(repository("tests/files").join(name)).expect("a file of tests/files")
}

/// The data of the first chunk of this type in a PNG.
fn chunk(png: &[u8], kind: &[u8; 4]) -> Vec<u8> {
    let at = png.windows(4).position(|window| window == kind);
    let at = at.expect("the chunk");
    let length = u32::from_be_bytes(png[at - 4..at].try_into().expect("four bytes"));
    png[at + 4..][..length as usize].to_vec()
}

/// The names of sides were exchanged by way of a NUL, and every NUL of the packet became one of the names: those before the
/// text of an iTXt chunk, so that no reader saw an XMP packet any more.
#[test]
fn nuls_of_xmp_became_names_after_quarter_turns() {
    let png = file("xmp_tags_orientation_exiftool.png");
    let folder = folder(&[("in.png", &png)]);
    for degrees in ["90", "180", "270"] {
        let result = run(
            folder.path(),
            &["rotate", degrees, "in.png", "out.png", "--overwrite"],
            &[],
        );
        assert_eq!(result.code, 0, "{}", result.stderr);
        let turned = chunk(&fs::read(folder.path().join("out.png")).unwrap(), b"iTXt");
        assert!(turned.starts_with(b"XML:com.adobe.xmp\0\0\0\0\0<?xpacket"));
        let text = String::from_utf8(turned).unwrap();
        // Both sides are equal: their names change places and their order in the text.
        assert_eq!(text.matches("tiff:XResolution").count(), 2, "{text}");
        assert_eq!(text.matches("tiff:YResolution").count(), 2, "{text}");
        assert!(!text.contains("tiff:ImageLength"), "{text}");
    }
}

/// The samples of 8 bits of an image.
fn bytes(image: &Image) -> &[u8] {
    match image.samples() {
        Samples::U8(samples) => samples,
        _ => panic!("samples of 8 bits were expected"),
    }
}

/// The sum of the samples of the first page, which has 8 bits.
fn sum(file: &[u8]) -> u64 {
    let (image, ..) = read(file).unwrap();
    bytes(&image).iter().copied().map(u64::from).sum()
}

/// Samples of 24 bits are packed as those of 12 are, and have no byte order; those of little-endian files were read with their
/// bytes reversed.
#[test]
fn packed_samples_of_three_bytes_were_reversed() {
    let (image, ..) = read(&file("seq-1c-24b-072a9dc9.tiff")).unwrap();
    let expected: Vec<u32> = (0..256).collect();
    assert_eq!(*image.samples(), Samples::from(expected));
}

/// Samples of 8 bits in big-endian words of 16 have their bytes exchanged pair by pair; they were taken in the order of the
/// file.
#[test]
fn pairs_of_bytes_of_big_endian_dicom_were_exchanged() {
    let (image, ..) = read(&file("SC_rgb_small_odd_big_endian.dcm")).unwrap();
    assert_eq!(bytes(&image)[..3], [166, 141, 52]);
    assert_eq!(sum(&file("SC_rgb_small_odd_big_endian.dcm")), 3477);

    // Two frames of 9 samples: the second begins within a pair.
    let samples: Vec<u8> = (1..=18).collect();
    let exchanged: Vec<u8> = samples
        .chunks(2)
        .flat_map(|pair| [pair[1], pair[0]])
        .collect();
    for (channels, planar, signed) in [
        (1, false, false),
        (1, false, true),
        (3, false, false),
        (3, true, false),
    ] {
        let build = Build {
            syntax: BIG,
            columns: 9 / channels,
            rows: 1,
            channels,
            planar,
            signed,
            bits: (8, 8),
            photometric: if channels == 1 { "MONOCHROME2" } else { "RGB" },
            ..Build::default()
        };
        let build = build.text((0x28, 8), "2");
        let words = build.file(&exchanged, None);
        // The same as bytes (OB), which have no order.
        let mut plain = build.file(&samples, None);
        let at = plain
            .windows(2)
            .rposition(|kind| kind == b"OW")
            .expect("pixel data");
        plain[at + 1] = b'B';
        let (expected, ..) = read_pages(&plain).unwrap();
        let (pages, ..) = read_pages(&words).unwrap();
        assert_eq!(pages, expected, "{channels} {planar}");
        if channels == 1 && !signed {
            assert_eq!(bytes(&pages[1]), &samples[9..]);
        }
    }
    // Values that are looked at first, to choose their type.
    let build = Build {
        syntax: BIG,
        columns: 3,
        rows: 1,
        bits: (8, 8),
        ..Build::default()
    };
    let build = build
        .text((0x28, 0x1053), "100000")
        .text((0x28, 0x1052), "0");
    let (image, ..) = read(&build.file(&[2, 1, 0, 3], None)).unwrap();
    assert_eq!(
        *image.samples(),
        Samples::from(vec![100_000u32, 200_000, 300_000])
    );
}

/// A JPEG that says nothing of its colours was taken for YCbCr, although the DICOM file around it says that they are RGB.
#[test]
fn rgb_of_dicom_was_converted_as_if_it_were_ycbcr() {
    let dicom = file("SC_jpeg_no_color_transform.dcm");
    let (image, ..) = read(&dicom).unwrap();
    // 244, 244, 244; decoders differ by one.
    assert!(
        bytes(&image)[..3]
            .iter()
            .all(|sample| (243..=245).contains(sample))
    );
    assert!(sum(&dicom).abs_diff(47_967_014) < 2000, "{}", sum(&dicom));

    // The components of a JPEG without Adobe's segment, as they are or converted, and with it as it says.
    let mut jpeg = Vec::new();
    image::codecs::jpeg::JpegEncoder::new_with_quality(&mut jpeg, 100)
        .encode(
            &[255, 0, 0].repeat(64),
            8,
            8,
            image::ExtendedColorType::Rgb8,
        )
        .unwrap();
    let adobe = |transform: u8| {
        let segment = [b"\xFF\xEE\0\x0EAdobe\0\x64\0\0\0\0", &[transform][..]].concat();
        [&jpeg[..2], &segment, &jpeg[2..]].concat()
    };
    let (stored, converted) = ([76, 85, 255], [254, 0, 0]);
    for (photometric, jpeg, expected) in [
        ("RGB", jpeg.clone(), stored),
        ("YBR_FULL", jpeg.clone(), converted),
        ("YBR_FULL_422", jpeg.clone(), converted),
        ("RGB", adobe(1), converted),
        ("RGB", adobe(0), stored),
    ] {
        let build = Build {
            syntax: JPEG,
            photometric,
            channels: 3,
            bits: (8, 8),
            columns: 8,
            rows: 8,
            ..Build::default()
        };
        let (image, ..) = read(&build.file(b"", Some(&[b"", &jpeg]))).unwrap();
        let near = bytes(&image)[..3]
            .iter()
            .zip(expected)
            .all(|(a, b)| a.abs_diff(b) <= 1);
        assert!(
            near,
            "{photometric} {:?} for {expected:?}",
            &bytes(&image)[..3]
        );
    }
}

/// Rows that end with the code that is to precede them: what precedes the first such code was taken for a row, and so all lay
/// one row too low. A row that ends early is white from there on, and was black; a black row that ends in the middle of a
/// code is black.
#[test]
fn rows_of_a_fax_lay_one_too_low() {
    let image = decode(&Source::memory(file("g3aoe.tif"))).unwrap();
    let sum: u64 = bytes(&image).iter().copied().map(u64::from).sum();
    assert_eq!(sum, 77_731_905);
    let mut rows = bytes(&image)
        .chunks(1728)
        .map(|row| row.iter().filter(|&&sample| sample > 0).count());
    assert_eq!(
        rows.by_ref().take(6).collect::<Vec<_>>(),
        [0, 0, 0, 73, 95, 73]
    );
}
