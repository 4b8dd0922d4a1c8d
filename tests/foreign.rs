//! Files of other projects that came out wrong (`tests/files/`), and files like them written here. The values are those that
//! other readers agree on.

use crate::support::dicom::{BIG, Build, JPEG};
use crate::support::formats::{read, read_pages};
use crate::support::jpeg::{ADOBE, JFIF, flat};
use crate::support::png::{Plain, zlib};
use crate::support::{Kind, folder, image, repository, run, tiff};
use gpuimg::internals::formats::decode;
use gpuimg::internals::image::{Depth, Image, Samples};
use gpuimg::internals::os::Source;
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
    // Values that are inspected first, to choose their type.
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

/// A JPEG that says nothing of its colours was mistaken for YCbCr, although the DICOM file around it says that they are RGB.
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

/// Rows that end with the code that is to precede them: what precedes the first such code was mistaken for a row, and so all lay
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

/// Bits, the most significant first, with a zero stuffed after bytes of ones (T.81, section B.1.1.5).
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    held: u32,
    holds: u32,
}

impl Bits {
    fn put(&mut self, value: u32, bits: u32) {
        for bit in (0..bits).rev() {
            self.held = self.held << 1 | value >> bit & 1;
            self.holds += 1;
            if self.holds == 8 {
                self.bytes.push(self.held as u8);
                if self.held as u8 == 0xFF {
                    self.bytes.push(0);
                }
                (self.held, self.holds) = (0, 0);
            }
        }
    }

    fn padded(mut self) -> Vec<u8> {
        while self.holds > 0 {
            self.put(1, 1);
        }
        self.bytes
    }
}

/// A baseline JPEG of blocks of one value each: of luma any, of chroma always the same. `sampling` is that of luma; `scans`
/// names the components of each scan.
fn blocks(
    size: (usize, usize),
    sampling: (usize, usize),
    scans: &[&[usize]],
    luma: impl Fn(usize, usize) -> u8,
) -> Vec<u8> {
    let ((width, height), (across, down)) = (size, sampling);
    let factors = [sampling, (1, 1), (1, 1)];
    let segment = |marker: u8, data: &[u8]| {
        [
            &[0xFF, marker][..],
            &(data.len() as u16 + 2).to_be_bytes(),
            data,
        ]
        .concat()
    };
    let mut file = b"\xFF\xD8".to_vec();
    file.extend(segment(0xDB, &[&[0][..], &[1; 64]].concat()));
    let [h, w] = [height, width].map(|side| (side as u16).to_be_bytes());
    let mut frame = [&[8][..], &h, &w, &[3]].concat();
    for (i, (across, down)) in factors.into_iter().enumerate() {
        frame.extend([i as u8 + 1, (across << 4 | down) as u8, 0]);
    }
    file.extend(segment(0xC0, &frame));
    // Of DC twelve codes of four bits, of AC one of one bit, the end of the block.
    let lengths =
        |at: usize, count: u8| (1..=16).map(move |bits| if bits == at { count } else { 0 });
    let dc: Vec<u8> = [0].into_iter().chain(lengths(4, 12)).chain(0..12).collect();
    let ac: Vec<u8> = [0x10].into_iter().chain(lengths(1, 1)).chain([0]).collect();
    file.extend(segment(0xC4, &dc));
    file.extend(segment(0xC4, &ac));
    for scan in scans {
        let mut head = vec![scan.len() as u8];
        scan.iter()
            .for_each(|&component| head.extend([component as u8 + 1, 0]));
        head.extend([0, 63, 0]);
        file.extend(segment(0xDA, &head));
        let (mut bits, mut last) = (Bits::default(), [128u8; 3]);
        let mut put = |component: usize, x: usize, y: usize| {
            let value = [luma(x, y), CB, CR][component];
            let difference = 8 * (i32::from(value) - i32::from(last[component]));
            last[component] = value;
            let length = 32 - difference.unsigned_abs().leading_zeros();
            bits.put(length, 4);
            let code = if difference < 0 {
                difference - 1
            } else {
                difference
            };
            bits.put(code as u32, length);
            bits.put(0, 1);
        };
        let units = |side: usize, of: usize| side.div_ceil(8 * of);
        if let &&[component] = scan {
            let (h, v) = factors[component];
            let columns = (width * h).div_ceil(across).div_ceil(8);
            let rows = (height * v).div_ceil(down).div_ceil(8);
            (0..rows * columns).for_each(|i| put(component, i % columns, i / columns));
        } else {
            // Factors count where there are several components, of this scan or another.
            let columns = units(width, across);
            for unit in 0..columns * units(height, down) {
                for &component in *scan {
                    let (h, v) = factors[component];
                    let (x, y) = (unit % columns * h, unit / columns * v);
                    (0..h * v).for_each(|i| put(component, x + i % h, y + i / h));
                }
            }
        }
        file.extend(bits.padded());
    }
    file.extend(b"\xFF\xD9");
    file
}

const CB: u8 = 100;
const CR: u8 = 180;

/// Red, green and blue (JFIF 1.02).
fn rgb(luma: u8) -> [u8; 3] {
    let (y, cb, cr) = (
        f64::from(luma),
        f64::from(CB) - 128.0,
        f64::from(CR) - 128.0,
    );
    [
        y + 1.402 * cr,
        y - 0.344_14 * cb - 0.714_14 * cr,
        y + 1.772 * cb,
    ]
    .map(|value| value.round().clamp(0.0, 255.0) as u8)
}

/// A little-endian TIFF of one strip.
fn tiff(entries: &[(u16, u16, &[u32])], strip: &[u8]) -> Vec<u8> {
    let strips: [(u16, u16, &[u32]); 2] = [(273, 4, &[8]), (279, 4, &[strip.len() as u32])];
    let mut all = [entries, &strips].concat();
    all.sort();
    let directory = (8 + strip.len()).next_multiple_of(2);
    let mut file = [b"II*\0", &(directory as u32).to_le_bytes()[..], strip].concat();
    file.resize(directory, 0);
    file.extend((all.len() as u16).to_le_bytes());
    let mut values = Vec::new();
    for (tag, kind, numbers) in &all {
        let bytes: Vec<u8> = match kind {
            3 => numbers
                .iter()
                .flat_map(|&number| (number as u16).to_le_bytes())
                .collect(),
            _ => numbers
                .iter()
                .flat_map(|number| number.to_le_bytes())
                .collect(),
        };
        file.extend([tag.to_le_bytes(), kind.to_le_bytes()].concat());
        file.extend((numbers.len() as u32).to_le_bytes());
        if bytes.len() <= 4 {
            file.extend(bytes.iter().copied().chain([0; 4]).take(4));
        } else {
            let at = directory + 2 + 12 * all.len() + 4 + values.len();
            file.extend((at as u32).to_le_bytes());
            values.extend(bytes);
        }
    }
    file.extend([0; 4]);
    file.extend(values);
    file
}

/// Where the components of a baseline JPEG lie in scans of their own and chroma has fewer rows than luma, chroma was lost;
/// with luma in the last scan the file was refused.
#[test]
fn chroma_in_scans_of_its_own_was_lost() {
    let flower = file("non_interleaved_420_64x64.jpg");
    let (image, ..) = read(&flower).unwrap();
    let near = bytes(&image)[..3]
        .iter()
        .zip([253u8, 0, 5])
        .all(|(a, b)| a.abs_diff(b) <= 2);
    assert!(near, "{:?}", &bytes(&image)[..3]);
    assert!(sum(&flower).abs_diff(1_048_192) < 4000, "{}", sum(&flower));

    let luma = |x: usize, y: usize| (60 + 40 * x + 23 * y) as u8 % 150 + 60;
    let mut cases = 0;
    for (width, height) in [(20, 20), (64, 48), (17, 33), (1, 1), (9, 40)] {
        for sampling in [(1, 1), (2, 1), (1, 2), (2, 2), (4, 1), (1, 4), (4, 2)] {
            let orders: [&[&[usize]]; 5] = [
                &[&[0, 1, 2]],
                &[&[0], &[1], &[2]],
                &[&[1], &[2], &[0]],
                &[&[0], &[1, 2]],
                &[&[2], &[0], &[1]],
            ];
            for scans in orders {
                let jpeg = blocks((width, height), sampling, scans, luma);
                let what = format!("{width}x{height} {sampling:?} {scans:?}");
                let (image, ..) = read(&jpeg).unwrap_or_else(|error| panic!("{what}: {error:#}"));
                for (i, pixel) in bytes(&image).chunks(3).enumerate() {
                    let expected = rgb(luma(i % width / 8, i / width / 8));
                    let near = pixel.iter().zip(expected).all(|(&a, b)| a.abs_diff(b) <= 2);
                    assert!(near, "{what}, pixel {i}: {pixel:?} for {expected:?}");
                }
                cases += 1;
                if (width, height) != (20, 20) {
                    continue;
                }
                // The same JPEG in other files.
                let (width, height) = (width as u32, height as u32);
                let strip = tiff(
                    &[
                        (256, 3, &[width]),
                        (257, 3, &[height]),
                        (258, 3, &[8, 8, 8]),
                        (259, 3, &[7]),
                        (262, 3, &[6]),
                        (277, 3, &[3]),
                        (278, 3, &[height]),
                    ],
                    &jpeg,
                );
                assert_eq!(read(&strip).unwrap().0, image, "TIFF {what}");
                let build = Build {
                    syntax: JPEG,
                    photometric: "YBR_FULL",
                    channels: 3,
                    bits: (8, 8),
                    columns: width as u16,
                    rows: height as u16,
                    ..Build::default()
                };
                assert_eq!(
                    read(&build.file(b"", Some(&[b"", &jpeg]))).unwrap().0,
                    image,
                    "DICOM {what}"
                );
                let stored = Build {
                    photometric: "RGB",
                    ..build
                };
                let (stored, ..) = read(&stored.file(b"", Some(&[b"", &jpeg]))).unwrap();
                let near = bytes(&stored)[..3]
                    .iter()
                    .zip([luma(0, 0), CB, CR])
                    .all(|(a, b)| a.abs_diff(b) <= 1);
                assert!(near, "{what}: {:?}", &bytes(&stored)[..3]);
            }
        }
    }
    assert_eq!(cases, 5 * 7 * 5);
    // Cut short or with a scan missing, it is refused, and never panics.
    let jpeg = blocks((20, 20), (2, 2), &[&[0], &[1], &[2]], luma);
    for end in 0..jpeg.len() {
        assert!(read(&jpeg[..end]).is_err(), "{end}");
    }
    assert!(read(&blocks((20, 20), (2, 2), &[&[0], &[1]], luma)).is_err());
}

/// The result of `flip vertical --keep-going` of a file: its status, and what is printed of it.
fn kept_going(name: &str, bytes: &[u8]) -> (i32, String) {
    let folder = folder(&[(name, bytes)]);
    let result = run(
        folder.path(),
        &["flip", "vertical", "--keep-going", name, "out.tif"],
        &[("GPUIMG_DEVICE", "cpu")],
    );
    (result.code, result.stderr)
}

/// Pages that a damaged list of pages does not reach were left out with status 0, and nothing was said of them.
#[test]
fn missing_pages_were_a_success() {
    let whole = file("multipage.tiff");
    assert_eq!(kept_going("a.tif", &whole), (0, String::new()));
    let (code, said) = kept_going("a.tif", &whole[..326]);
    assert_eq!(code, 1, "{said}");
    let expected = "pages after page 1 are missing: page 2: truncated at byte 326";
    assert!(said.contains(expected), "{said}");

    // A list that begins anew, and one that leads beyond the end: after the first page, and after the last.
    let number = |at: usize| u32::from_le_bytes(whole[at..at + 4].try_into().unwrap()) as usize;
    let next = |directory: usize| {
        let count = u16::from_le_bytes([whole[directory], whole[directory + 1]]);
        directory + 2 + 12 * usize::from(count)
    };
    let first = number(4);
    let second = number(next(first));
    let third = number(next(second));
    assert_eq!((&whole[..4], number(next(third))), (&b"II*\0"[..], 0));
    for (page, place) in [(1, next(first)), (2, next(second)), (3, next(third))] {
        for (to, what) in [
            (first, "its list of pages is a loop"),
            (99_999, "truncated at byte 816"),
        ] {
            let mut damaged = whole.clone();
            damaged[place..place + 4].copy_from_slice(&(to as u32).to_le_bytes());
            let (code, said) = kept_going("a.tif", &damaged);
            assert_eq!(code, 1, "{page} {what}");
            let expected = format!("pages after page {page} are missing: ");
            assert!(said.contains(&expected) && said.contains(what), "{said}");
        }
    }
    // Strips beyond the end, of every page, and partly.
    for (page, directory) in [first, second, third].into_iter().enumerate() {
        for at in (directory + 2..next(directory)).step_by(12) {
            if whole[at..at + 2] != 273u16.to_le_bytes() {
                continue;
            }
            for to in [815u32, 816, 99_999, u32::MAX] {
                let mut damaged = whole.clone();
                let place = if whole[at + 4] == 1 {
                    at + 8
                } else {
                    number(at + 8)
                };
                damaged[place..place + 4].copy_from_slice(&to.to_le_bytes());
                let (code, said) = kept_going("a.tif", &damaged);
                assert!(
                    code == 1 && said.contains("is damaged"),
                    "page {page} {to}: {code} {said}"
                );
            }
        }
    }
}

/// Exif data with an orientation of this type, as the only field.
fn exif(big_endian: bool, kind: u16, orientation: u8) -> Vec<u8> {
    let size = match kind {
        1 | 6 => 1,
        3 | 8 => 2,
        _ => 4,
    };
    let mut value = vec![0; size];
    let numbers: Vec<u8> = if big_endian {
        value[size - 1] = orientation;
        let numbers = [274u16.to_be_bytes(), kind.to_be_bytes(), [0, 0], [0, 1]].concat();
        [b"MM\0*\0\0\0\x08\0\x01", &numbers[..]].concat()
    } else {
        value[0] = orientation;
        let numbers = [274u16.to_le_bytes(), kind.to_le_bytes(), [1, 0], [0, 0]].concat();
        [b"II*\0\x08\0\0\0\x01\0", &numbers[..]].concat()
    };
    value.resize(4, 0);
    [&numbers[..], &value, &[0; 4]].concat()
}

/// A JPEG with a segment APP1.
fn with_segment(jpeg: &[u8], data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u16 + 2).to_be_bytes();
    [&jpeg[..2], b"\xFF\xE1", &length, data, &jpeg[2..]].concat()
}

/// A PNG of 2 × 1 pixels with these chunks.
fn png(chunks: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
    let mut plain = Plain::noisy(2, 1, 8, 0);
    plain.before = chunks
        .iter()
        .map(|(kind, data)| (**kind, data.to_vec()))
        .collect();
    plain.encoded(0)
}

/// A lossless WebP of one pixel with Exif data.
fn webp(exif: &[u8]) -> Vec<u8> {
    let mut lossless = Vec::new();
    image::codecs::webp::WebPEncoder::new_lossless(&mut lossless)
        .encode(&[1, 2, 3], 1, 1, image::ExtendedColorType::Rgb8)
        .unwrap();
    let mut chunks = b"WEBPVP8X\x0A\0\0\0\x08\0\0\0\0\0\0\0\0\0".to_vec();
    chunks.extend(&lossless[12..]);
    chunks.extend(b"EXIF");
    chunks.extend((exif.len() as u32).to_le_bytes());
    chunks.extend(exif);
    chunks.resize(chunks.len().next_multiple_of(2), 0);
    [b"RIFF", &(chunks.len() as u32).to_le_bytes()[..], &chunks].concat()
}

/// The orientation in Exif data was only seen as a number of 16 bits without sign, in PNG only in a chunk of their own, and in
/// WebP and PNG only without the head that JPEG has; in TIFF only without sign.
#[test]
fn orientations_of_other_forms_were_lost() {
    let mut jpeg = Vec::new();
    image::codecs::jpeg::JpegEncoder::new(&mut jpeg)
        .encode(&[9, 9], 2, 1, image::ExtendedColorType::L8)
        .unwrap();
    let mut files = Vec::new();
    for big in [false, true] {
        for kind in [1, 3, 4, 6, 8, 9] {
            let data = exif(big, kind, 6);
            let headed = [b"Exif\0\0", &data[..]].concat();
            let digits: String = headed.iter().map(|byte| format!("{byte:02x}")).collect();
            let (first, last) = digits.split_at(40);
            let lines = format!("\nexif\n{:8}\n{first}\n{last}\n", headed.len());
            let text = |name: &str| [name.as_bytes(), b"\0", lines.as_bytes()].concat();
            let packed = [b"Raw profile type exif\0\0", &zlib(lines.as_bytes(), 6)[..]].concat();
            files.extend([
                (format!("JPEG {big} {kind}"), with_segment(&jpeg, &headed)),
                (format!("WebP {big} {kind}"), webp(&data)),
                (format!("WebP, head {big} {kind}"), webp(&headed)),
                (format!("PNG {big} {kind}"), png(&[(b"eXIf", &data)])),
                (
                    format!("PNG, head {big} {kind}"),
                    png(&[(b"eXIf", &headed)]),
                ),
                (
                    format!("PNG, text {big} {kind}"),
                    png(&[(b"tEXt", &text("Raw profile type exif"))]),
                ),
                (
                    format!("PNG, APP1 {big} {kind}"),
                    png(&[(b"tEXt", &text("Raw profile type APP1"))]),
                ),
                (
                    format!("PNG, packed text {big} {kind}"),
                    png(&[(b"zTXt", &packed)]),
                ),
                (
                    format!("PNG, both {big} {kind}"),
                    png(&[(b"zTXt", &packed), (b"eXIf", &data)]),
                ),
            ]);
            let number: &[u32] = &[6];
            let layout: [(u16, u16, &[u32]); 6] = [
                (256, 3, &[2]),
                (257, 3, &[1]),
                (258, 3, &[8]),
                (262, 3, &[1]),
                (278, 3, &[1]),
                (274, kind, number),
            ];
            if matches!(kind, 3 | 4 | 9) && !big {
                files.push((format!("TIFF {kind}"), tiff(&layout, &[1, 2])));
            }
        }
    }
    for (what, file) in &files {
        let (image, metadata, _) = read(file).unwrap_or_else(|error| panic!("{what}: {error:#}"));
        assert_eq!(metadata.orientation, Some(6), "{what}");
        assert_eq!(image.shape().height, 1, "{what}");
        // Upright images say so, wherever they are written.
        let folder = folder(&[("in", file)]);
        for out in ["out.png", "out.tif", "out.jpg"] {
            let args = ["flip", "vertical", "--auto-orient", "in", out];
            let result = run(folder.path(), &args, &[]);
            assert_eq!(result.code, 0, "{what} {out}: {}", result.stderr);
            let (_, metadata, _) = read(&fs::read(folder.path().join(out)).unwrap()).unwrap();
            assert!(
                metadata
                    .orientation
                    .is_none_or(|orientation| orientation == 1),
                "{what} {out}"
            );
        }
    }
    assert_eq!(files.len(), 2 * 6 * 9 + 3);
    // What is no orientation.
    for data in [
        exif(false, 9, 0),
        exif(false, 9, 9),
        exif(true, 8, 255),
        exif(false, 5, 6),
        b"II*\0".to_vec(),
    ] {
        let (_, metadata, _) =
            read(&with_segment(&jpeg, &[b"Exif\0\0", &data[..]].concat())).unwrap();
        assert_eq!(metadata.orientation, None);
    }
    for text in [
        "Raw profile type exif\0",
        "Raw profile type exif\0\nexif\n 9\nzz\n",
        "Raw profile type APP1\0\nxmp\n 2\n3c3c\n",
    ] {
        let (_, metadata, _) = read(&png(&[(b"tEXt", text.as_bytes())])).unwrap();
        assert_eq!(metadata.orientation, None);
    }
}

/// A BMP of these runs, with a palette of four colours.
fn runs(bits: u16, size: (i32, i32), palette: [[u8; 3]; 4], data: &[u8]) -> Vec<u8> {
    let compression: u32 = if bits == 8 { 1 } else { 2 };
    let colours = palette.iter().flat_map(|&[r, g, b]| [b, g, r, 0]);
    let colours: Vec<u8> = colours.collect();
    let start = 54 + colours.len() as u32;
    let mut file = b"BM".to_vec();
    file.extend((start + data.len() as u32).to_le_bytes());
    file.extend([0; 4]);
    file.extend(start.to_le_bytes());
    file.extend(40u32.to_le_bytes());
    file.extend([size.0.to_le_bytes(), size.1.to_le_bytes()].concat());
    file.extend([1, 0]);
    file.extend(bits.to_le_bytes());
    for number in [compression, data.len() as u32, 0, 0, 4, 0] {
        file.extend(number.to_le_bytes());
    }
    [file, colours, data.to_vec()].concat()
}

/// Pixels that the runs of a BMP pass over have the first colour of the palette, and were black.
#[test]
fn pixels_that_runs_pass_over_were_black() {
    let colors = [[10, 20, 30], [1, 2, 3], [4, 5, 6], [7, 8, 9]];
    // From the bottom: two pixels, the row ends; one pixel, on by 2 and up by 1, one pixel; the image ends.
    let eight = [2, 1, 0, 0, 1, 2, 0, 2, 2, 1, 1, 3, 0, 1];
    // The same in halves of bytes, the first run of colours 1 and 2 in turn.
    let four = [2, 0x12, 0, 0, 1, 0x20, 0, 2, 2, 1, 1, 0x30, 0, 1];
    let expected = |second: usize| {
        let rows = [
            [0; 5],
            [0, 0, 0, 3, 0],
            [2, 0, 0, 0, 0],
            [1, second, 0, 0, 0],
        ];
        rows.concat()
            .into_iter()
            .flat_map(|index| colors[index])
            .collect::<Vec<u8>>()
    };
    for (bits, data, second) in [(8, eight, 1), (4, four, 2)] {
        let (image, ..) = read(&runs(bits, (5, 4), colors, &data)).unwrap();
        assert_eq!(bytes(&image), expected(second), "{bits}");
        // Of a palette of greys one channel.
        let greys = [[9, 9, 9], [1, 1, 1], [2, 2, 2], [3, 3, 3]];
        let (image, ..) = read(&runs(bits, (5, 4), greys, &data)).unwrap();
        let rows = [
            [9; 5],
            [9, 9, 9, 3, 9],
            [2, 9, 9, 9, 9],
            [1, second as u8, 9, 9, 9],
        ];
        assert_eq!(bytes(&image), rows.concat(), "{bits}");
        // Without the end of the image, and cut anywhere.
        let file = runs(bits, (5, 4), colors, &data);
        for end in 0..file.len() {
            assert!(read(&file[..end]).is_err(), "{bits} {end}");
        }
    }
    // Pixels one by one, padded to words; runs that continue after the end of the row, to whole bytes; no end of the image after
    // the last row.
    let data = [0, 3, 1, 2, 3, 0, 4, 3, 0, 0, 9, 2, 0, 0];
    let (image, ..) = read(&runs(8, (5, 2), colors, &data)).unwrap();
    let rows = [[2, 2, 2, 2, 2], [1, 2, 3, 3, 3]].concat();
    let expected: Vec<u8> = rows.into_iter().flat_map(|index| colors[index]).collect();
    assert_eq!(bytes(&image), expected);
    let data = [0, 3, 0x12, 0x30, 3, 0x10, 0, 0, 6, 0x23, 0, 1];
    let (image, ..) = read(&runs(4, (5, 2), colors, &data)).unwrap();
    let rows = [[2, 3, 2, 3, 2], [1, 2, 3, 1, 0]].concat();
    let expected: Vec<u8> = rows.into_iter().flat_map(|index| colors[index]).collect();
    assert_eq!(bytes(&image), expected);
    // Such that continue much further.
    for (bits, data) in [
        (4, [9, 0x12, 0, 1, 0, 0]),
        (8, [0, 9, 1, 1, 1, 1]),
        (4, [0, 9, 1, 1, 1, 1]),
    ] {
        let file = runs(
            bits,
            (5, 2),
            colors,
            &[&data[..], &[1; 8], &[0, 1]].concat(),
        );
        assert!(read(&file).is_err(), "{bits} {data:?}");
    }
    // Leaps out of the image.
    for by in [[6, 0], [0, 2], [255, 255]] {
        let data = [0, 2, by[0], by[1], 1, 1, 0, 1];
        assert!(read(&runs(8, (5, 2), colors, &data)).is_err(), "{by:?}");
    }
}

/// The fourth byte of 32 bits is alpha in files that do not count its bits, too, unless it is always 0; and the attribute bit of
/// 16 bits was left out without a word.
#[test]
fn alpha_of_a_tga_was_left_out_without_a_word() {
    let header = |map: u8, kind: u8, colours: u8, entry: u8, bits: u8, about: u8| {
        [
            0, map, kind, 0, 0, colours, 0, entry, 0, 0, 0, 0, 3, 0, 1, 0, bits, about,
        ]
    };
    let opaque = [3, 2, 1, 0, 6, 5, 4, 0, 9, 8, 7, 77];
    let nothing = [3, 2, 1, 0, 6, 5, 4, 0, 9, 8, 7, 0];
    let rgba = [1, 2, 3, 0, 4, 5, 6, 0, 7, 8, 9, 77];
    let rgb = [1, 2, 3, 4, 5, 6, 7, 8, 9];
    for (pixels, expected) in [(opaque, &rgba[..]), (nothing, &rgb)] {
        let plain = [&header(0, 2, 0, 0, 32, 0x20)[..], &pixels].concat();
        assert_eq!(bytes(&read(&plain).unwrap().0), expected);
        let packed = [
            &header(0, 10, 0, 0, 32, 0x20)[..],
            &[1],
            &pixels[..8],
            &[128],
            &pixels[8..],
        ];
        assert_eq!(bytes(&read(&packed.concat()).unwrap().0), expected);
        let mapped = [&header(1, 1, 3, 32, 8, 0x20)[..], &pixels, &[0, 1, 2]].concat();
        assert_eq!(bytes(&read(&mapped).unwrap().0), expected);
        for file in [plain, packed.concat(), mapped] {
            for end in 0..file.len() {
                assert!(read(&file[..end]).is_err());
            }
        }
    }
    for (about, warned) in [(0x20, false), (0x21, true)] {
        let file = [
            &header(0, 2, 0, 0, 16, about)[..],
            b"\xFF\x7F\xFF\xFF\0\x80",
        ]
        .concat();
        let (image, _, diagnostics) = read(&file).unwrap();
        assert_eq!(image.shape().channels, 3);
        let warning = diagnostics
            .warnings
            .iter()
            .any(|warning| warning.contains("attribute bit"));
        assert_eq!(warning, warned);
    }
}

/// The first image of an animation was blended with what is after it, which is nothing: 255 became 254, and pixels that are
/// transparent lost their colours.
#[test]
fn the_first_image_of_an_animation_was_blended() {
    let (image, ..) = read(&file("anim.webp")).unwrap();
    assert_eq!(image.shape().channels, 4);
    let (mut opaque, mut all) = (0, 0);
    for pixel in bytes(&image).chunks(4) {
        opaque += u64::from(pixel[3] == 255);
        all += pixel.iter().copied().map(u64::from).sum::<u64>();
    }
    assert_eq!((opaque, all), (3_202, 2_832_643));
}

/// Offsets of the lengths of a WebP's chunks, from one offset up to another, those inside the images of an animation included.
fn lengths(webp: &[u8], mut at: usize, end: usize) -> Vec<usize> {
    let mut all = Vec::new();
    while at + 8 <= end {
        let length = u32::from_le_bytes(webp[at + 4..at + 8].try_into().unwrap()) as usize;
        all.push(at + 4);
        if webp[at..].starts_with(b"ANMF") {
            all.extend(lengths(webp, at + 24, at + 8 + length));
        }
        at += 8 + length.next_multiple_of(2);
    }
    all
}

/// Chunks that continue after the end of the file, or of what holds them, were accepted, although the images in them were not
/// whole.
#[test]
fn chunks_past_the_end_of_a_webp_were_accepted() {
    let data = exif(false, 3, 6);
    let still = webp(&data);
    let plain = {
        let at = still.windows(4).position(|name| name == b"VP8L").unwrap();
        let length = u32::from_le_bytes(still[at + 4..at + 8].try_into().unwrap()) as usize;
        let chunk = &still[at..at + 8 + length.next_multiple_of(2)];
        [
            b"RIFF",
            &(chunk.len() as u32 + 4).to_le_bytes()[..],
            b"WEBP",
            chunk,
        ]
        .concat()
    };
    let animation = file("anim.webp");
    let mut cases = 0;
    for whole in [&plain, &still, &animation] {
        assert!(read(whole).is_ok());
        // What follows the container is none of it.
        assert!(read(&[&whole[..], b"more"].concat()).is_ok());
        let places = [vec![4], lengths(whole, 12, whole.len())].concat();
        for &at in &places {
            for by in [1u32 << 10, 1 << 20, 1 << 31] {
                let mut damaged = whole.clone();
                let length = u32::from_le_bytes(damaged[at..at + 4].try_into().unwrap()) & !1;
                let longer = length.saturating_add(by).max(whole.len() as u32);
                damaged[at..at + 4].copy_from_slice(&longer.to_le_bytes());
                assert!(read(&damaged).is_err(), "{at} of {places:?}, {by}");
                let (code, said) = kept_going("a.webp", &damaged);
                assert!(code == 1 && !said.contains("panic"), "{at}: {code} {said}");
                cases += 1;
            }
        }
        for end in (0..whole.len()).step_by(1 + whole.len() / 50) {
            assert!(read(&whole[..end]).is_err(), "{end}");
        }
    }
    assert!(cases >= 3 * (2 + 4 + 10), "{cases}");
}

/// Images that the format or our own decoder holds, and other programs do not read, were written.
#[test]
fn sides_that_are_not_read_were_written() {
    for (name, most) in [("out.jpg", 65_500), ("out.bmp", 65_535)] {
        for (side, is_written) in [(most, true), (most + 1, false)] {
            for (width, height) in [(side, 1), (1, side)] {
                let pgm = [
                    format!("P5 {width} {height} 255\n").into_bytes(),
                    vec![7; side],
                ]
                .concat();
                let folder = folder(&[("in.pgm", &pgm)]);
                let result = run(folder.path(), &["flip", "vertical", "in.pgm", name], &[]);
                assert_eq!(
                    result.code == 0,
                    is_written,
                    "{name} {side}: {}",
                    result.stderr
                );
                if is_written {
                    let again = run(folder.path(), &["flip", "vertical", name, "again.pgm"], &[]);
                    assert_eq!(again.code, 0, "{}", again.stderr);
                } else {
                    let limit = format!("{most} pixels per side (PNG and TIFF hold more)");
                    assert!(result.stderr.contains(&limit), "{}", result.stderr);
                    assert!(!folder.path().join(name).exists());
                }
            }
        }
    }
}

/// Differences of more than four samples per pixel, each of which is a grey page: those of the fifth and later ones were
/// taken from other samples, or not added up.
#[test]
fn differences_of_many_bands_were_added_up_wrongly() {
    for (depth, bands, big_endian) in [
        (Depth::Eight, 5, false),
        (Depth::Eight, 9, true),
        (Depth::Sixteen, 5, false),
        (Depth::Sixteen, 6, true),
        (Depth::ThirtyTwo, 5, true),
        (Depth::ThirtyTwo, 9, false),
    ] {
        let size = depth.bytes();
        let value = |i: usize| ((i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20).to_le_bytes();
        let values: Vec<[u8; 8]> = (0..7 * 3 * bands).map(value).collect();
        let mut strip = Vec::new();
        for (i, &value) in values.iter().enumerate() {
            let is_first = i % (7 * bands) < bands;
            let left = if is_first { [0; 8] } else { values[i - bands] };
            let difference = u64::from_le_bytes(value).wrapping_sub(u64::from_le_bytes(left));
            let mut difference = difference.to_le_bytes()[..size].to_vec();
            if big_endian {
                difference.reverse();
            }
            strip.extend(difference);
        }
        let build = tiff::Build {
            big_endian,
            ..tiff::Build::default()
        };
        let build = build
            .tag(277, 3, &[bands as u64])
            .tag(258, 3, &vec![depth.bits().into(); bands])
            .tag(317, 3, &[2]);
        let grey = image(7, 3, 1, depth, Kind::Noise);
        let (pages, ..) = read_pages(&build.with_strip(&grey, &strip)).expect("readable");
        assert_eq!(pages.len(), bands);
        for (band, page) in pages.iter().enumerate() {
            let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |n, &b| n << 8 | u32::from(b));
            let of_band = values.iter().skip(band).step_by(bands);
            let expected: Vec<u32> = of_band.map(|value| number(&value[..size])).collect();
            let found: Vec<u32> = match page.samples() {
                Samples::U8(samples) => samples.iter().map(|&sample| sample.into()).collect(),
                Samples::U16(samples) => samples.iter().map(|&sample| sample.into()).collect(),
                Samples::U32(samples) => samples.to_vec(),
                Samples::U64(_) => Vec::new(),
            };
            assert_eq!(found, expected, "{depth}, band {band} of {bands}");
        }
    }
}

/// The three ways in which a JPEG says its colours contradict one another here. Where libjpeg takes luma and chroma, the
/// library took RGB for names of components or for Adobe's segment.
#[test]
fn luma_and_chroma_of_a_jpeg_were_taken_for_rgb() {
    let (stored, converted) = ([100, 90, 200], [201, 62, 33]);
    let [none, ycbcr, ycck] = ADOBE;
    for (segments, names, expected) in [
        (&[][..], b"\x01\x02\x03", converted),
        (&[], b"RGB", stored),
        (&[], b"rgb", converted),
        (&[JFIF], b"RGB", converted),
        (&[none], b"\x01\x02\x03", stored),
        (&[none], b"RGB", stored),
        (&[ycbcr], b"RGB", converted),
        (&[ycck], b"\x01\x02\x03", converted),
        (&[JFIF, none], b"\x01\x02\x03", converted),
        (&[none, JFIF], b"RGB", converted),
    ] {
        let jpeg = flat(&[100, 90, 200], names, segments);
        let case = format!("{} {}", segments.len(), names.escape_ascii());
        let near = |file: &[u8], expected: [u8; 3]| {
            let found = bytes(&read(file).expect("readable").0)[..3].to_vec();
            let apart = found.iter().zip(expected).map(|(a, b)| a.abs_diff(b));
            assert!(
                apart.max() <= Some(1),
                "{case}: {found:?}, not {expected:?}"
            );
        };
        near(&jpeg, expected);
        // In TIFF the directory says it.
        let shape = image(8, 8, 3, Depth::Eight, Kind::Noise);
        for (photometric, expected) in [(2, stored), (6, converted)] {
            let build = tiff::Build::default().tag(259, 3, &[7]);
            let build = build.tag(262, 3, &[photometric]).tag(530, 3, &[1, 1]);
            near(&build.with_strip(&shape, &jpeg), expected);
        }
    }
}

/// A file of version 2 says in its extension area that the fourth byte is no alpha, whatever is there; Pillow's
/// `rgb32rle.tga` is such a file.
#[test]
fn what_is_no_alpha_in_a_tga_was_taken_for_it() {
    let head = [0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 32, 0x20];
    let pixels = [1, 2, 3, 4, 5, 6, 7, 8];
    let tail = |kind: u8| {
        let mut area = vec![0; 495];
        area[494] = kind;
        let footer = [&26u32.to_le_bytes()[..], &[0; 4], b"TRUEVISION-XFILE.\0"].concat();
        [&head[..], &pixels, &area, &footer].concat()
    };
    for (kind, channels) in [(0, 3), (1, 3), (2, 4), (3, 4)] {
        let (image, _, said) = read(&tail(kind)).expect("readable");
        assert_eq!(image.shape().channels, channels, "{kind}");
        assert_eq!(said.warnings.len(), 4 - channels, "{:?}", said.warnings);
        assert_eq!(bytes(&image)[..3], [3, 2, 1]);
    }
}
