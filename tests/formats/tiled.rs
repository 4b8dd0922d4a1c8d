//! FITS images in compressed tiles: tables that astropy 8.0 wrote, with the samples that it reads from them, and by hand.

use crate::support::formats::{read, read_pages, refused};
use crate::support::tiled::{self, Tiled, sample};
use crate::support::{folder, run};
use gpuimg::internals::image::metadata::Own;
use gpuimg::internals::image::{Depth, Image, Samples, number};

/// The samples of 7 × 5 pixels.
fn expected(sample: impl Fn(usize, usize) -> i32) -> Vec<i32> {
    (0..35).map(|index| sample(index % 7, index / 7)).collect()
}

/// The values of integers in memory, of which those of more than 8 bits have the top bit flipped.
fn values(image: &Image) -> Vec<i32> {
    match image.samples() {
        Samples::U8(samples) => samples.iter().map(|&sample| sample.into()).collect(),
        Samples::U16(samples) => (samples.iter())
            .map(|&sample| ((sample ^ 0x8000) as i16).into())
            .collect(),
        Samples::U32(samples) => (samples.iter())
            .map(|&sample| (sample ^ 0x8000_0000) as i32)
            .collect(),
        Samples::U64(_) => panic!("integers were expected"),
    }
}

#[test]
fn rice_of_words_in_small_tiles() {
    let (image, metadata, said) = read(&tiled::rice_words().file()).unwrap();
    assert_eq!((image.shape().width, image.shape().height), (7, 5));
    assert_eq!(values(&image), expected(sample));
    assert!(metadata.signed && said.warnings.is_empty() && said.notes.is_empty());
    // The records of the table are not those of the image.
    let Own::Fits(records) = metadata.own else {
        panic!("records were expected")
    };
    assert!(records.len() == 1 && records[0].starts_with(b"OBJECT  = 'M 31"));
}

#[test]
fn rice_of_bytes_and_of_long_words() {
    let (image, ..) = read(&tiled::rice_bytes().file()).unwrap();
    assert_eq!(values(&image), expected(|x, y| sample(x, y) & 0xFF));
    // Blocks have 32 samples, and samples 4 bytes, where nothing else is named.
    let (image, metadata, _) = read(&tiled::rice_long_words().file()).unwrap();
    assert_eq!(values(&image), expected(sample));
    assert_eq!(
        (image.shape().depth, metadata.signed),
        (Depth::ThirtyTwo, true)
    );
}

#[test]
fn gzip_with_bytes_apart() {
    let mut gzip = tiled::gzip_shuffled();
    assert_eq!(values(&read(&gzip.file()).unwrap().0), expected(sample));
    let length = gzip.data.len();
    gzip.data[length - 4..].copy_from_slice(&1_000_000_000u32.to_le_bytes());
    refused(
        &gzip.file(),
        "tile 1: its gzip data make 1000000000 bytes for 35 samples",
    );
}

#[test]
fn runs_of_plio() {
    let mut runs = tiled::plio();
    let image = read(&runs.file()).unwrap().0;
    assert_eq!(
        values(&image),
        expected(|x, y| sample(x, y).max(0) / 50 * 50)
    );
    let length = runs.data.len();
    runs.data[length - 2] = 0x90;
    refused(
        &runs.file(),
        "tile 3: its list of runs has an unknown instruction, 0x9032",
    );
}

#[test]
fn the_transform_of_hcompress() {
    let mut transform = tiled::hcompress();
    assert_eq!(
        values(&read(&transform.file()).unwrap().0),
        expected(sample)
    );
    // Smoothing is refused where it would change samples.
    transform.more = vec!["ZNAME1  = 'SMOOTH  '", "ZVAL1   =                    1"];
    assert_eq!(
        values(&read(&transform.file()).unwrap().0),
        expected(sample)
    );
    transform.data[8 + 13] = 4;
    let words = "HCOMPRESS_1 with smoothing is not supported: funpack unpacks the file";
    refused(&transform.file(), words);
}

/// 9 × 4 samples, rounded without and with dithering; the bits are those that astropy reads.
#[test]
fn rounded_floating_point() {
    for (file, first, last) in [
        (tiled::rounded().file(), 0x42c6_a4c2, 0x42c9_ed4c),
        (tiled::dithered().file(), 0x42c5_efdb, 0x42c9_4152),
    ] {
        let (image, _, said) = read(&file).unwrap();
        let Samples::U32(keys) = image.samples() else {
            panic!("32 bits were expected")
        };
        let bits: Vec<u32> = keys.iter().map(|&key| number::bits(key)).collect();
        assert_eq!(bits.len(), 36);
        assert_eq!((bits[0], bits[10], bits[35]), (first, 0, last));
        // NaN.
        assert_eq!(bits[21], 0x7fc0_0000);
        let rounded = "its samples were rounded when the file was compressed (ZQUANTIZ)";
        assert_eq!(said.notes, [rounded]);
    }
    let mut unknown = tiled::rounded();
    unknown.more = vec!["ZQUANTIZ= 'DITHER_3'"];
    refused(
        &unknown.file(),
        "quantized by the method DITHER_3 is not supported (NO_DITHER,",
    );
    let mut unscaled = tiled::rounded();
    unscaled.columns.truncate(2);
    refused(
        &unscaled.file(),
        "floating point that is compressed by RICE_1 has no scale (ZSCALE)",
    );
    let mut integers = tiled::rice_words();
    integers.more.push("ZSCALE  =                  2.0");
    refused(
        &integers.file(),
        "compressed integers with a scale (ZSCALE) are not supported",
    );
}

/// A tile that did not become shorter, in a column of its own, with descriptors of 64 bits; and a gap before the heap.
#[test]
fn tiles_that_are_stored_as_they_are() {
    let mut data = vec![0; 16];
    data.extend(35u64.to_be_bytes());
    data.extend(2u64.to_be_bytes());
    data.extend(b"gap, and two bytes of the heap");
    let heap = expected(sample).into_iter();
    data.extend(heap.flat_map(|value| (value as i16).to_be_bytes()));
    let mut stored = Tiled {
        columns: vec![("COMPRESSED_DATA", "1QB"), ("UNCOMPRESSED_DATA", "1QI(35)")],
        tile: vec![7, 5],
        table: (32, 1, 30 + 70),
        data,
        more: vec!["THEAP   =                   60"],
        ..tiled::rice_words()
    };
    assert_eq!(values(&read(&stored.file()).unwrap().0), expected(sample));
    stored.table.2 = 70;
    refused(&stored.file(), "tile 1: its data are outside the heap");
    stored.more.clear();
    stored.data[16..24].copy_from_slice(&u64::MAX.to_be_bytes());
    refused(&stored.file(), "tile 1: its data are outside the heap");
    stored.data[16..24].fill(0);
    refused(&stored.file(), "tile 1: it has no data");
}

/// Tiles with samples of two pages, of bytes as they are: 2 × 2 pixels, three pages, in tiles of 1 × 2 × 2.
#[test]
fn tiles_of_several_pages() {
    let mut data: Vec<u8> = Vec::new();
    for (count, offset) in [(4u32, 0u32), (4, 4), (2, 8), (2, 10)] {
        data.extend(count.to_be_bytes());
        data.extend(offset.to_be_bytes());
    }
    data.extend(b"acegbdfhikjl");
    let cube = Tiled {
        bitpix: 8,
        axes: vec![2, 2, 3],
        tile: vec![1, 2, 2],
        compression: "NOCOMPRESS",
        table: (8, 4, 12),
        data,
        ..tiled::gzip_shuffled()
    };
    let (pages, ..) = read_pages(&cube.file()).unwrap();
    let pages: Vec<&[u8]> = pages.iter().map(|page| page.samples().as_bytes()).collect();
    assert_eq!(pages, [b"abcd", b"efgh", b"ijkl"]);
}

#[test]
fn tables_that_are_refused() {
    let tiled = |change: fn(&mut Tiled)| {
        let mut tiled = tiled::rice_words();
        change(&mut tiled);
        tiled.file()
    };
    for (file, words) in [
        (
            tiled(|tiled| tiled.compression = "BZIP2_1"),
            "an image compressed by BZIP2_1 is not supported (RICE_1, GZIP_1,",
        ),
        (
            tiled(|tiled| tiled.tile[0] = 0),
            "its ZTILE1 is not positive",
        ),
        (
            tiled(|tiled| tiled.tile[0] = 1),
            "the table of its tiles has 4 rows for 14 tiles",
        ),
        (
            tiled(|tiled| tiled.axes[0] = 999_999_999),
            "the table of its tiles has 4 rows for 500000000 tiles",
        ),
        (
            tiled(|tiled| tiled.axes[0] = i64::MAX as usize),
            "do not fit in memory",
        ),
        (
            tiled(|tiled| tiled.bitpix = 64),
            "64-bit integers are not supported",
        ),
        (
            tiled(|tiled| tiled.bitpix = 8),
            "tile 1: its sample -300 does not fit in 8 bits",
        ),
        (
            tiled(|tiled| tiled.table.2 = 43),
            "tile 4: its data are outside the heap",
        ),
        (
            tiled(|tiled| tiled.table.2 = 4_400_000_000),
            "truncated at byte",
        ),
        (
            tiled(|tiled| tiled.table.1 = i64::MAX as usize),
            "do not fit in a file",
        ),
        (
            tiled(|tiled| tiled.table.0 = 7),
            "the columns of its table have 8 bytes, and its rows 7",
        ),
        (
            tiled(|tiled| tiled.columns[0].0 = "COMPRESSED_DOTA"),
            "its table has no COMPRESSED_DATA",
        ),
        (
            tiled(|tiled| tiled.columns[0].1 = "1Z(14)"),
            "the header's TFORM1 is \"1Z(14)\"",
        ),
        (
            tiled(|tiled| tiled.columns[0].1 = "8B"),
            "its column COMPRESSED_DATA has no arrays",
        ),
        (
            tiled(|tiled| tiled.more[1] = "ZVAL1   =                    0"),
            "the header's BLOCKSIZE (ZVAL1) is not a number that it can be",
        ),
        (
            tiled(|tiled| tiled.more[3] = "ZVAL2   =                    8"),
            "RICE_1 with a BYTEPIX of 8 is not supported",
        ),
    ] {
        refused(&file, words);
    }
}

/// Few bytes that claim a large image: an error, and no memory for it.
#[test]
fn sizes_that_are_not_there() {
    for compression in [
        "RICE_1",
        "GZIP_1",
        "GZIP_2",
        "PLIO_1",
        "HCOMPRESS_1",
        "NOCOMPRESS",
    ] {
        let huge = Tiled {
            axes: vec![900_000, 900_000],
            tile: vec![900_000, 900_000],
            compression,
            ..tiled::gzip_shuffled()
        };
        let root = folder(&[("a.fits", &huge.file())]);
        let args = ["sum", "a.fits", "--max-pixels", "100000000000000"];
        let run = run(root.path(), &args, &[]);
        assert_eq!(run.code, 1, "{compression}: {}", run.stderr);
        let words = "bytes are too few for 810000000000 samples";
        assert!(run.stderr.contains(words), "{compression}: {}", run.stderr);
    }
    // The list of the pages would take more memory than they do.
    let slices = Tiled {
        axes: vec![1, 1, 100_000_000],
        tile: vec![1, 1, 100_000_000],
        ..tiled::hcompress()
    };
    refused(&slices.file(), "bytes are too few for 100000000 pages");
}

/// Every prefix of each compression is an error, or has lost only what follows the heap; and every byte of the table and the heap
/// with other values is an error or an image.
#[test]
fn truncated_and_damaged_at_every_byte() {
    for tiled in tiled::all() {
        let file = tiled.file();
        let whole = read(&file).unwrap().0;
        let end = file.len().next_multiple_of(2880) - 2880 + tiled.data.len();
        for size in 0..file.len() {
            match read(&file[..size]) {
                Ok((image, ..)) => {
                    assert!(size >= end, "{} cut at {size} of {end}", tiled.compression);
                    assert_eq!(image, whole);
                }
                Err(error) => {
                    let cut = format!("{error:#}");
                    assert!(size < end, "{} cut at {size}: {cut}", tiled.compression);
                }
            }
        }
        for at in end - tiled.data.len()..end {
            for value in [0, 1, 0x7F, 0x80, 0xFF, file[at] ^ 1, file[at] ^ 0x80] {
                let mut damaged = file.clone();
                damaged[at] = value;
                let _ = read(&damaged);
            }
        }
    }
}
/// A damaged tile is an error, or 0 where damage is accepted; the other tiles are read.
#[test]
fn a_damaged_tile() {
    let mut damaged = tiled::rice_words().file();
    let second = b"\xFFhh\x0A\x8A\x9B\x15\x156**";
    let at = damaged
        .windows(11)
        .position(|bytes| bytes == second)
        .unwrap();
    // Now each difference has 16 bits.
    damaged[at + 2] = 0xF8;
    let root = folder(&[("a.fits", &damaged)]);
    let flip = ["flip", "vertical", "a.fits", "b.fits"];
    let plain = run(root.path(), &flip, &[]);
    assert_eq!(plain.code, 1);
    assert!(
        plain.stderr.contains("tile 2: its data end too early"),
        "{}",
        plain.stderr
    );
    assert!(!root.path().join("b.fits").exists());
    let kept = run(root.path(), &[&flip[..], &["--keep-going"]].concat(), &[]);
    assert_eq!(kept.code, 1, "{}", kept.stderr);
    let (image, ..) = read(&std::fs::read(root.path().join("b.fits")).unwrap()).unwrap();
    let flipped = expected(|x, y| match (x, 4 - y) {
        (4.., 0..3) => 0,
        (x, y) => sample(x, y),
    });
    assert_eq!(values(&image), flipped);
}
