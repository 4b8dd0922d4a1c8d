//! TIFFs as cameras, satellites, scanners and printers write them: samples that are no RGB, samples of
//! odd sizes, tiles that are not there, and chunks that are JPEGs or faxes.

use crate::support::contract::tag;
use crate::support::formats::{read, read_pages, refused};
use crate::support::{folder, run};
use gpuimg::internals::image::metadata::Alpha;
use gpuimg::internals::image::number::from_key;
use gpuimg::internals::image::{Depth, Samples};

/// An entry of a directory: tag, type, values.
type Entry<'a> = (u16, u16, &'a [u32]);

/// A TIFF of one directory, with these chunks in order as the values of the tag `places`, and their
/// lengths as those of `lengths`. A chunk without bytes is not in the file.
fn tiff(big: bool, entries: &[Entry], (places, lengths): (u16, u16), chunks: &[&[u8]]) -> Vec<u8> {
    let number = |value: u32, size: usize| match big {
        true => value.to_be_bytes()[4 - size..].to_vec(),
        false => value.to_le_bytes()[..size].to_vec(),
    };
    let size = |kind: u16| match kind {
        1 | 2 | 7 => 1,
        3 => 2,
        _ => 4,
    };
    let mut file = if big {
        b"MM\0*".to_vec()
    } else {
        b"II*\0".to_vec()
    };
    file.extend([0; 4]);
    let mut offsets = Vec::new();
    for chunk in chunks {
        offsets.push(if chunk.is_empty() {
            0
        } else {
            file.len() as u32
        });
        file.extend(*chunk);
    }
    let counts: Vec<u32> = chunks.iter().map(|chunk| chunk.len() as u32).collect();
    let mut all: Vec<Entry> = entries.to_vec();
    all.extend([(places, 4, &offsets[..]), (lengths, 4, &counts[..])]);
    all.sort_by_key(|entry| entry.0);
    let mut directory = number(all.len() as u32, 2);
    for (tag, kind, values) in all {
        let mut bytes: Vec<u8> = (values.iter())
            .flat_map(|&value| number(value, size(kind)))
            .collect();
        directory.extend(number(tag.into(), 2));
        directory.extend(number(kind.into(), 2));
        directory.extend(number(values.len() as u32, 4));
        if bytes.len() > 4 {
            directory.extend(number(file.len() as u32, 4));
            file.extend(bytes);
        } else {
            bytes.resize(4, 0);
            directory.extend(bytes);
        }
    }
    let start = number(file.len() as u32, 4);
    file[4..8].copy_from_slice(&start);
    file.extend(directory);
    file.extend([0; 4]);
    file
}

const STRIPS: (u16, u16) = (273, 279);
const TILES: (u16, u16) = (324, 325);

/// 3 × 2 pixels of five bands, of 8 bits: the tens are the band.
fn five(planar: bool) -> Vec<u8> {
    let entries: [Entry; 7] = [
        (256, 3, &[3]),
        (257, 3, &[2]),
        (258, 3, &[8; 5]),
        (262, 3, &[1]),
        (277, 3, &[5]),
        (284, 3, &[if planar { 2 } else { 1 }]),
        (338, 3, &[0; 4]),
    ];
    let sample = |pixel: u8, band: u8| 10 * band + pixel;
    let band = |band: u8| (0..6).map(|pixel| sample(pixel, band)).collect::<Vec<u8>>();
    let pixel = |pixel: u8| (0..5).map(|band| sample(pixel, band)).collect::<Vec<u8>>();
    if planar {
        let planes: Vec<Vec<u8>> = (0..5).map(band).collect();
        let planes: Vec<&[u8]> = planes.iter().map(|plane| &**plane).collect();
        tiff(false, &entries, STRIPS, &planes)
    } else {
        tiff(
            false,
            &entries,
            STRIPS,
            &[&(0..6).flat_map(pixel).collect::<Vec<u8>>()],
        )
    }
}

#[test]
fn bands_that_are_no_rgb_are_pages() {
    for planar in [false, true] {
        let (pages, _, said) = read_pages(&five(planar)).unwrap();
        assert_eq!(pages.len(), 5);
        for (band, page) in pages.iter().enumerate() {
            assert_eq!(page.shape().to_string(), "3×2 grey, 8 bits");
            let first = 10 * band as u8;
            let expected: Vec<u8> = (first..first + 6).collect();
            assert_eq!(*page.samples(), Samples::from(expected), "{planar} {band}");
        }
        assert_eq!(
            said.warnings,
            ["its 5 samples per pixel are not RGB: each is read as a grey page"]
        );
    }
    // A description of axes that pages do not have any more.
    let text: Vec<u32> = b"{\"shape\": [2, 3, 3]}\0"
        .iter()
        .map(|&byte| byte.into())
        .collect();
    let entries: [Entry; 7] = [
        (256, 3, &[3]),
        (257, 3, &[2]),
        (258, 3, &[8; 3]),
        (262, 3, &[1]),
        (270, 2, &text),
        (277, 3, &[3]),
        (338, 3, &[0; 2]),
    ];
    let (pages, metadata, said) = read_pages(&tiff(false, &entries, STRIPS, &[&[7; 18]])).unwrap();
    assert_eq!((pages.len(), metadata.own.names()), (3, vec![]));
    assert_eq!(
        said.warnings,
        [
            "its 3 samples per pixel are not RGB: each is read as a grey page, and the description of its axes is \
          left out"
        ]
    );
    let root = folder(&[("five.tif", &five(false))]);
    let sums = run(root.path(), &["sum", "five.tif", "--pages", "5"], &[]);
    assert_eq!(sums.code, 0, "{}", sums.stderr);
    assert!(sums.stdout.contains("255"), "40 + … + 45: {}", sums.stdout);
    let turned = run(
        root.path(),
        &["rotate", "90", "five.tif", "turned.tif"],
        &[],
    );
    assert_eq!(turned.code, 0, "{}", turned.stderr);
    assert!(
        turned.stderr.contains("each is read as a grey page"),
        "{}",
        turned.stderr
    );
    let pages = read_pages(&std::fs::read(root.path().join("turned.tif")).unwrap())
        .unwrap()
        .0;
    assert_eq!(pages.len(), 5);
    assert_eq!(
        *pages[4].samples(),
        Samples::from(vec![43u8, 40, 44, 41, 45, 42])
    );
    let png = run(
        root.path(),
        &["flip", "vertical", "five.tif", "out.png"],
        &[],
    );
    assert!(
        png.stderr.contains("5 pages do not fit into one PNG file"),
        "{}",
        png.stderr
    );
}

/// 2 × 1 pixels of CMYK.
fn cmyk() -> Vec<u8> {
    let entries: [Entry; 5] = [
        (256, 3, &[2]),
        (257, 3, &[1]),
        (258, 3, &[8; 4]),
        (262, 3, &[5]),
        (277, 3, &[4]),
    ];
    tiff(false, &entries, STRIPS, &[&[1, 2, 3, 4, 5, 6, 7, 8]])
}

#[test]
fn inks_are_kept_by_turns_and_refused_by_others() {
    let (_, metadata, _) = read(&cmyk()).unwrap();
    assert_eq!(metadata.alpha, Alpha::Black);
    let root = folder(&[("cmyk.tif", &cmyk())]);
    let turned = run(root.path(), &["rotate", "90", "cmyk.tif", "out.tif"], &[]);
    assert_eq!(turned.code, 0, "{}", turned.stderr);
    let file = std::fs::read(root.path().join("out.tif")).unwrap();
    assert_eq!((tag(&file, 262), tag(&file, 338)), (Some(vec![5]), None));
    let (image, metadata, _) = read(&file).unwrap();
    assert_eq!(
        *image.samples(),
        Samples::from(vec![1u8, 2, 3, 4, 5, 6, 7, 8])
    );
    assert_eq!((image.shape().width, metadata.alpha), (1, Alpha::Black));
    let only = "CMYK images can only be rotated, flipped, transposed, cropped and converted: convert to RGB first";
    for (line, words) in [
        ("normalize cmyk.tif a.tif", only),
        ("sum cmyk.tif", only),
        ("histogram cmyk.tif -o a.hist", only),
        ("project mean cmyk.tif cmyk.tif a.tif", only),
        (
            "flip vertical cmyk.tif a.png",
            "PNG cannot store CMYK colours (TIFF can; convert them to RGB first)",
        ),
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let run = run(root.path(), &args, &[]);
        assert_eq!(run.code, 1, "{line}: {}", run.stderr);
        assert!(run.stderr.contains(words), "{line}: {}", run.stderr);
    }
}

/// Half precision, in both byte orders: 1, −2, 2⁻²⁴.
#[test]
fn floating_point_of_sixteen_bits() {
    let halves: [u16; 3] = [0x3C00, 0xC000, 0x0001];
    for big in [false, true] {
        let halves = halves.map(|half| {
            if big {
                half.to_be_bytes()
            } else {
                half.to_le_bytes()
            }
        });
        let entries: [Entry; 5] = [
            (256, 3, &[3]),
            (257, 3, &[1]),
            (258, 3, &[16]),
            (262, 3, &[1]),
            (339, 3, &[3]),
        ];
        let (image, ..) = read(&tiff(big, &entries, STRIPS, &[&halves.concat()])).unwrap();
        let Samples::U32(keys) = image.samples() else {
            panic!("32 bits were expected")
        };
        let found: Vec<f32> = keys.iter().map(|&key| from_key(key)).collect();
        assert_eq!(found, [1.0, -2.0, 2f32.powi(-24)], "{big}");
    }
}

/// Integers of 24 bits, with and without sign: packed, with the most significant byte first in files of both byte orders.
#[test]
fn integers_of_twenty_four_bits() {
    for (format, least) in [(1u32, 0i64), (2, -(1 << 23))] {
        for big in [false, true] {
            let values = [least, least + 1, 0, 5, least + (1 << 24) - 1];
            let bytes = values.map(|value| (value as i32).to_be_bytes()[1..].to_vec());
            let entries: [Entry; 5] = [
                (256, 3, &[5]),
                (257, 3, &[1]),
                (258, 3, &[24]),
                (262, 3, &[1]),
                (339, 3, &[format]),
            ];
            let (image, metadata, _) =
                read(&tiff(big, &entries, STRIPS, &[&bytes.concat()])).unwrap();
            assert_eq!(
                (image.shape().depth, metadata.signed),
                (Depth::ThirtyTwo, format == 2)
            );
            let memory = values.map(|value| match format {
                1 => value as u32,
                _ => value as i32 as u32 ^ (1 << 31),
            });
            assert_eq!(
                *image.samples(),
                Samples::from(memory.to_vec()),
                "{format} {big}"
            );
        }
    }
}

/// Tiles that GDAL leaves out have the NODATA value, or 0.
#[test]
fn tiles_that_are_not_in_the_file() {
    let tile: Vec<u8> = (0..16 * 16).flat_map(|i: u16| i.to_le_bytes()).collect();
    for (nodata, value) in [(Some("-7"), -7i16), (None, 0), (Some("nonsense"), 0)] {
        let text: Vec<u32> = nodata
            .unwrap_or("")
            .bytes()
            .map(u32::from)
            .chain([0])
            .collect();
        let mut entries: Vec<Entry> = vec![
            (256, 3, &[20]),
            (257, 3, &[3]),
            (258, 3, &[16]),
            (262, 3, &[1]),
            (322, 3, &[16]),
            (323, 3, &[16]),
            (339, 3, &[2]),
        ];
        if nodata.is_some() {
            entries.push((42113, 2, &text));
        }
        let (image, metadata, said) = read(&tiff(false, &entries, TILES, &[&tile, b""])).unwrap();
        assert!(metadata.signed);
        let Samples::U16(samples) = image.samples() else {
            panic!("16 bits were expected")
        };
        let row: Vec<i16> = samples[..20].iter().map(|&s| (s ^ 0x8000) as i16).collect();
        assert_eq!(row[..16], (0..16).collect::<Vec<i16>>());
        assert_eq!(row[16..], [value; 4]);
        assert_eq!(
            said.notes,
            ["1 of 2 tiles are not in the file, and are filled with its NODATA value or 0"]
        );
    }
    // A whole strip, through the path of uncompressed strips.
    let entries: [Entry; 5] = [
        (256, 3, &[4]),
        (257, 3, &[2]),
        (258, 3, &[8]),
        (262, 3, &[1]),
        (278, 3, &[1]),
    ];
    let (image, ..) = read(&tiff(false, &entries, STRIPS, &[b"", b"abcd"])).unwrap();
    assert_eq!(*image.samples(), Samples::from(b"\0\0\0\0abcd".to_vec()));
    let huge: [Entry; 6] = [
        (256, 4, &[60_000]),
        (257, 4, &[60_000]),
        (258, 3, &[8]),
        (262, 3, &[1]),
        (322, 4, &[60_000]),
        (323, 4, &[60_000]),
    ];
    refused(
        &tiff(false, &huge, TILES, &[b""]),
        "tile 0 of 3600000000 bytes is missing",
    );
}

/// Group 4: an all white row is the bit 1; a black pixel at 2 is horizontal mode (001), 2 white (0111),
/// 1 black (010), and then the row's end by the same place as above, the bit 1.
#[test]
fn faxes_by_hand() {
    let entries = |compression: &'static [u32]| -> Vec<Entry> {
        vec![
            (256, 3, &[8]),
            (257, 3, &[2]),
            (258, 3, &[1]),
            (259, 3, compression),
            (262, 3, &[0]),
        ]
    };
    // 1 001 0111 010 1, and the end of the block.
    let four = [
        0b1001_0111,
        0b0101_0000,
        0b0000_0001,
        0b0000_0000,
        0b0001_0000,
    ];
    let (image, metadata, _) = read(&tiff(false, &entries(&[4]), STRIPS, &[&four])).unwrap();
    assert!(metadata.white_is_zero);
    let expected = [[0u8; 8], [0, 0, 255, 0, 0, 0, 0, 0]].concat();
    assert_eq!(*image.samples(), Samples::from(expected.clone()));
    // Group 3: the end of a line (000000000001) before each; 8 white (10011); 2 white, 1 black, 5 white
    // (1100).
    let three = [
        0b0000_0000,
        0b0001_1001,
        0b1000_0000,
        0b0000_1011,
        0b1010_1100,
    ];
    let (image, ..) = read(&tiff(false, &entries(&[3]), STRIPS, &[&three])).unwrap();
    assert_eq!(*image.samples(), Samples::from(expected));
    refused(
        &tiff(false, &entries(&[4]), STRIPS, &[b"\0\0"]),
        "its fax data are damaged (row 0 of 2)",
    );
    let mut raw = entries(&[3]);
    raw.push((292, 4, &[2]));
    refused(
        &tiff(false, &raw, STRIPS, &[&three]),
        "CCITT Group 3 compression with uncompressed rows is not supported",
    );
}

/// Strips that are JPEGs, with their tables in the directory or not: the samples that the JPEG itself
/// has, as the library decodes it. YCbCr becomes RGB.
#[test]
fn strips_that_are_jpegs() {
    for (channels, photometric) in [(1usize, 1u32), (3, 6)] {
        let smooth: Vec<u8> = (0..24 * 16 * channels)
            .map(|i| (i / 4 % 256) as u8)
            .collect();
        let mut jpeg = Vec::new();
        let colours = match channels {
            1 => image::ExtendedColorType::L8,
            _ => image::ExtendedColorType::Rgb8,
        };
        image::codecs::jpeg::JpegEncoder::new_with_quality(&mut jpeg, 95)
            .encode(&smooth, 24, 16, colours)
            .unwrap();
        let (expected, ..) = read(&jpeg).unwrap();
        // What stands before the frame is moved to the tables.
        let frame = jpeg
            .windows(2)
            .position(|pair| pair == b"\xFF\xC0")
            .unwrap();
        let scan = jpeg
            .windows(2)
            .position(|pair| pair == b"\xFF\xDA")
            .unwrap();
        let huffman = jpeg
            .windows(2)
            .position(|pair| pair == b"\xFF\xC4")
            .unwrap();
        let tables = [&jpeg[..frame], &jpeg[huffman..scan], b"\xFF\xD9"].concat();
        let tables: Vec<u32> = tables.iter().map(|&byte| byte.into()).collect();
        let rest = [b"\xFF\xD8", &jpeg[frame..huffman], &jpeg[scan..]].concat();
        let bits = vec![8; channels];
        let channels = [channels as u32];
        let photometric = [photometric];
        let entries: Vec<Entry> = vec![
            (256, 3, &[24]),
            (257, 3, &[16]),
            (258, 3, &bits),
            (259, 3, &[7]),
            (262, 3, &photometric),
            (277, 3, &channels),
        ];
        let (image, ..) = read(&tiff(false, &entries, STRIPS, &[&jpeg])).unwrap();
        assert_eq!(image, expected);
        let mut shared = entries.clone();
        shared.push((347, 7, &tables));
        let (image, ..) = read(&tiff(false, &shared, STRIPS, &[&rest])).unwrap();
        assert_eq!(image, expected);
        let cut = &jpeg[..jpeg.len() / 2];
        assert!(read(&tiff(false, &entries, STRIPS, &[cut])).is_err());
        let mut wrong = entries.clone();
        wrong[0] = (256, 3, &[25]);
        refused(
            &tiff(false, &wrong, STRIPS, &[&jpeg]),
            "it is a JPEG image of 24×16 pixels",
        );
    }
    let entries: [Entry; 5] = [
        (256, 3, &[1]),
        (257, 3, &[1]),
        (258, 3, &[8; 3]),
        (262, 3, &[6]),
        (277, 3, &[3]),
    ];
    refused(
        &tiff(false, &entries, STRIPS, &[b"abc"]),
        "it unpacks to 3 of 6 bytes",
    );
}
