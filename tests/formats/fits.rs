//! FITS: headers by hand, what becomes of their records.

use crate::support::formats::{format, read, read_pages, refused, written};
use crate::support::tiled::fits_part as file;
use crate::support::{folder, grey, run};
use gpuimg::internals::image::metadata::{Metadata, Own};
use gpuimg::internals::image::{Depth, Image, Samples, Shape};

fn two_by_three<'a>(bitpix: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut records = vec![
        "SIMPLE  =                    T / conforms to FITS standard",
        bitpix,
        "NAXIS   =                    2",
        "NAXIS1  =                    3 / columns",
        "NAXIS2  =                    2 / rows",
    ];
    records.extend(more);
    records
}

const BITS_8: &str = "BITPIX  =                    8";
const BITS_16: &str = "BITPIX  =                   16 / bits";

/// Bytes and words, with and without sign; the most significant byte comes first.
#[test]
fn every_type() {
    let words = b"\x80\0\xFF\xFF\0\0\0\x01\x01\x02\x7F\xFF";
    let sorted = vec![0u16, 0x7FFF, 0x8000, 0x8001, 0x8102, 0xFFFF];
    for (zero, signed) in [
        (&[][..], true),
        (
            &[
                "BZERO   =                32768",
                "BSCALE  =                  1.0",
            ],
            false,
        ),
        (&["BZERO   =        3.2768000D+04 / offset"], false),
        (&["BSCALE  = 1", "BZERO   = 0"], true),
    ] {
        let (image, metadata, said) = read(&file(&two_by_three(BITS_16, zero), words)).unwrap();
        assert_eq!(
            image.samples(),
            &Samples::U16(sorted.clone().into()),
            "{zero:?}"
        );
        assert_eq!(
            (metadata.signed, said.warnings.len()),
            (signed, 0),
            "{zero:?}"
        );
        assert_eq!((image.shape().width, image.shape().height), (3, 2));
    }
    let bytes = vec![0u8, 1, 127, 128, 254, 255];
    for (zero, signed) in [
        (&[][..], false),
        (&["BZERO   =                 -128"], true),
    ] {
        let (image, metadata, _) = read(&file(&two_by_three(BITS_8, zero), &bytes)).unwrap();
        assert_eq!(image.samples(), &Samples::U8(bytes.clone().into()));
        assert_eq!(metadata.signed, signed);
    }
}

#[test]
fn as_it_is_written() {
    let image = grey([[0, 1, 2], [3, 32768, 65535]]);
    let written = written(format("fits"), &[image], &Metadata::default()).unwrap();
    let records = [
        "SIMPLE  =                    T",
        "BITPIX  =                   16",
        "NAXIS   =                    2",
        "NAXIS1  =                    3",
        "NAXIS2  =                    2",
        "BSCALE  =                    1",
        "BZERO   =                32768",
    ];
    assert_eq!(
        written,
        file(&records, b"\x80\0\x80\x01\x80\x02\x80\x03\0\0\x7F\xFF")
    );
}

/// A cube is a stack of pages; an empty first part leads to the first image.
#[test]
fn cubes_and_extensions() {
    let cube = [
        "SIMPLE  =                    T",
        BITS_8,
        "NAXIS   =                    4",
        "NAXIS1  =                    3",
        "NAXIS2  =                    2",
        "NAXIS3  =                    2",
        "NAXIS4  =                    1",
    ];
    let (pages, ..) = read_pages(&file(&cube, b"abcdefghijkl")).unwrap();
    let page = |samples: &[u8]| {
        let shape = Shape::checked(3, 2, 1, Depth::Eight).unwrap();
        Image::new(shape, samples.to_vec().into())
    };
    assert_eq!(pages, [page(b"abcdef"), page(b"ghijkl")]);

    let empty = [
        "SIMPLE  =                    T",
        BITS_8,
        "NAXIS   =                    0",
        "EXTEND  =                    T",
    ];
    let table = [
        "XTENSION= 'BINTABLE'",
        BITS_8,
        "NAXIS   =                    2",
        "NAXIS1  =                 3000",
        "NAXIS2  =                    1",
        "PCOUNT  =                  100",
        "GCOUNT  =                    1",
    ];
    let mut image = two_by_three(BITS_8, &["PCOUNT  = 0", "GCOUNT  = 1", "EXTNAME = 'SCI'"]);
    image[0] = "XTENSION= 'IMAGE   '           / an image";
    let parts = [
        file(&empty, b""),
        file(&table, &[7; 3100]),
        file(&image, b"abcdef"),
    ];
    let (found, metadata, said) = read(&parts.concat()).unwrap();
    assert_eq!((found, said.warnings.len()), (page(b"abcdef"), 0));
    assert!(
        matches!(&metadata.own, Own::Fits(records) if records.len() == 1),
        "{metadata:?}"
    );
    assert_eq!(said.notes, ["a part of the file is left out: table"]);
    let more = [&parts.concat()[..], &[0; 2880]].concat();
    assert_eq!(
        read(&more).unwrap().2.warnings,
        ["2880 bytes after its last part are left out"]
    );
    refused(&parts[..2].concat(), "there is no image in it");
    refused(&parts[0], "there is no image in it");
}

/// Each image is a page, whatever its depth; one that is not supported is a page, too, which other pages do not need.
#[test]
fn every_image_is_a_page() {
    let first = file(&two_by_three(BITS_8, &[]), b"abcdef");
    let extension = |bitpix, name: &str, data: &[u8]| {
        let mut records = two_by_three(bitpix, &["PCOUNT  = 0", "GCOUNT  = 1", name]);
        records[0] = "XTENSION= 'IMAGE   '";
        file(&records, data)
    };
    let second = extension(
        BITS_16,
        "EXTNAME = 'ERR     '",
        b"\0\x01\0\x02\0\x03\0\x04\0\x05\0\x06",
    );
    let third = extension(BITS_8, "EXTNAME = 'DQ      '", b"ghijkl");
    let all = [&first[..], &second, &third].concat();
    let (pages, metadata, said) = read_pages(&all).unwrap();
    let depths: Vec<Depth> = pages.iter().map(|page| page.shape().depth).collect();
    assert_eq!(depths, [Depth::Eight, Depth::Sixteen, Depth::Eight]);
    assert_eq!(pages[0].samples().as_bytes(), b"abcdef");
    let words = vec![0x8001u16, 0x8002, 0x8003, 0x8004, 0x8005, 0x8006];
    assert_eq!(pages[1].samples(), &Samples::U16(words.into()));
    assert_eq!(pages[2].samples().as_bytes(), b"ghijkl");
    assert!(
        matches!(&metadata.own, Own::Fits(records) if records[0].starts_with(b"EXTNAME = 'DQ"))
    );
    assert!(said.warnings.is_empty() && said.notes.is_empty());

    // In FITS they stay images of their own, each with its records.
    let root = folder(&[("all.fits", &all)]);
    let flip = run(
        root.path(),
        &["flip", "vertical", "all.fits", "b.fits"],
        &[],
    );
    assert_eq!(flip.code, 0, "{}", flip.stderr);
    let sides = [
        "NAXIS   =                    2",
        "NAXIS1  =                    3",
        "NAXIS2  =                    2",
    ];
    let first = ["SIMPLE  =                    T", BITS_8];
    let extended = ["EXTEND  =                    T"];
    let extension = |bitpix, name| {
        let first = ["XTENSION= 'IMAGE   '", bitpix];
        let counts = [
            "PCOUNT  =                    0",
            "GCOUNT  =                    1",
            name,
        ];
        [&first[..], &sides, &counts].concat()
    };
    let flipped = [
        file(&[&first[..], &sides, &extended].concat(), b"defabc"),
        file(
            &extension("BITPIX  =                   16", "EXTNAME = 'ERR     '"),
            b"\0\x04\0\x05\0\x06\0\x01\0\x02\0\x03",
        ),
        file(&extension(BITS_8, "EXTNAME = 'DQ      '"), b"jklghi"),
    ];
    let written = std::fs::read(root.path().join("b.fits")).unwrap();
    assert_eq!(
        written.escape_ascii().to_string(),
        flipped.concat().escape_ascii().to_string()
    );
}

#[test]
fn an_image_that_is_not_supported_is_needed_by_no_other() {
    let extension = |bitpix, name: &str, data: &[u8]| {
        let mut records = two_by_three(bitpix, &["PCOUNT  = 0", "GCOUNT  = 1", name]);
        records[0] = "XTENSION= 'IMAGE   '";
        file(&records, data)
    };
    let third = extension(BITS_8, "EXTNAME = 'DQ      '", b"ghijkl");
    let wide = extension(
        "BITPIX  =                   64",
        "EXTNAME = 'ID      '",
        &[0; 48],
    );
    let mixed = [&wide[..], &third].concat();
    let empty = file(&["SIMPLE  = T", BITS_8, "NAXIS   = 0"], b"");
    let mixed = [empty, mixed].concat();
    refused(&mixed, "page 1: 64-bit integers are not supported");
    let root = folder(&[("a.fits", &mixed)]);
    let second = ["flip", "vertical", "a.fits", "b.fits", "--pages", "2"];
    let run_second = run(root.path(), &second, &[]);
    assert_eq!(run_second.code, 0, "{}", run_second.stderr);
    let flipped = read(&std::fs::read(root.path().join("b.fits")).unwrap()).unwrap();
    assert_eq!(flipped.0.samples().as_bytes(), b"jklghi");
}

/// The second image is cut off: without it nothing is written, and with --keep-going it is 0.
#[test]
fn a_second_image_that_is_cut_off() {
    let first = file(&two_by_three(BITS_8, &[]), b"abcdef");
    let mut records = two_by_three(BITS_8, &["PCOUNT  = 0", "GCOUNT  = 1"]);
    records[0] = "XTENSION= 'IMAGE   '";
    let all = [first, file(&records, b"ghijkl")].concat();
    let root = folder(&[("cut.fits", &all[..all.len() - 2880])]);
    let flip = ["flip", "vertical", "cut.fits", "c.tif"];
    let cut = run(root.path(), &flip, &[]);
    assert!(
        cut.code == 1 && cut.stderr.contains("truncated at byte"),
        "{}",
        cut.stderr
    );
    let cut = run(root.path(), &[&flip[..], &["--keep-going"]].concat(), &[]);
    assert_eq!(cut.code, 1, "{}", cut.stderr);
    let pages = read_pages(&std::fs::read(root.path().join("c.tif")).unwrap())
        .unwrap()
        .0;
    assert_eq!(pages[0].samples().as_bytes(), b"defabc");
    assert_eq!(pages[1].samples().as_bytes(), [0; 6]);
}

#[test]
fn refusals() {
    for (bitpix, why) in [
        (
            "BITPIX  =                   64",
            "64-bit integers are not supported: convert to 32 bits",
        ),
        (
            "BITPIX  =                    9",
            "its BITPIX is not one of 8, 16",
        ),
    ] {
        refused(&file(&two_by_three(bitpix, &[]), &[0; 96]), why);
    }
    let other = |from: &str, to: &str| {
        let records: Vec<String> = (two_by_three(BITS_16, &[]).iter())
            .map(|record| record.replace(from, to))
            .collect();
        let records: Vec<&str> = records.iter().map(String::as_str).collect();
        file(&records, b"abcdefghijkl")
    };
    refused(
        &other(
            "NAXIS   =                    2",
            "NAXIS   =                 9999",
        ),
        "no NAXIS from 0 to 999",
    );
    refused(
        &other(
            "NAXIS   =                    2",
            "NAXIS   =                    3",
        ),
        "no NAXIS3",
    );
    refused(
        &other(
            "NAXIS   =                    2",
            "NAXIS   =                    1",
        ),
        "one axis",
    );
    refused(
        &other(
            "NAXIS1  =                    3",
            "NAXIS1  =                   -3",
        ),
        "no NAXIS1",
    );
    refused(
        &other(
            "NAXIS1  =                    3",
            "NAXIS1  =                    0",
        ),
        "the image is empty",
    );
    refused(
        &other("NAXIS1  =                    3", "NAXIS1  =   999999999999"),
        "truncated at byte 5760 of",
    );
    refused(
        &other(
            "NAXIS1  =                    3",
            "NAXIS1  =  9223372036854775807",
        ),
        "do not fit",
    );
    let scaled = two_by_three(BITS_16, &["BSCALE  = 'two'"]);
    refused(
        &file(&scaled, b"abcdefghijkl"),
        "the header's BSCALE is not a number",
    );
    refused(
        b"SIMPLE  =                    T",
        "truncated at byte 30 of 2880",
    );
    refused(
        &[&b"SIMPLE  ="[..], &[b' '; 2880 * 2]].concat(),
        "truncated",
    );
}

/// Records that are still true are kept in FITS; others are left out, and that is said.
#[test]
fn records_are_kept_while_they_are_true() {
    let records = two_by_three(
        BITS_16,
        &[
            "OBJECT  = 'M 31    '           / what it shows",
            "BUNIT   = 'ADU     '",
            "CRPIX1  =                  1.5",
            "CD1_2   =                 0.01",
            "CDELT2  =                 0.01",
            "CDNAME  = 'not a place'",
            "BSCALE  =                  0.5",
            "BZERO   =                  100",
            "BLANK   =               -32768",
            "COMMENT   words of the observer",
            "CHECKSUM= 'abcdefghijklmnop'",
        ],
    );
    let root = folder(&[(
        "a.fits",
        &file(&records, b"\x80\0\xFF\xFF\0\0\0\x01\x01\x02\x7F\xFF"),
    )]);
    let scale = "samples are read as stored: BSCALE and BZERO are not applied";
    let blank = "pixels without a value (BLANK, -32768) count as values";
    for (line, kept, left, words) in [
        (
            "flip vertical a.fits b.fits",
            &[
                "OBJECT", "BUNIT", "BSCALE", "BZERO", "BLANK", "COMMENT", "CDNAME",
            ][..],
            &["CRPIX1", "CD1_2", "CDELT2", "CHECKSUM"][..],
            "3 records of the header describe the previous positions and are left out (CRPIX1, …)",
        ),
        (
            "normalize a.fits b.fits",
            &["OBJECT", "CRPIX1", "CD1_2", "CDELT2", "COMMENT"],
            &["BUNIT", "BSCALE", "BZERO", "BLANK", "CHECKSUM"],
            "4 records of the header describe the previous values and are left out (BUNIT, …)",
        ),
        (
            "normalize a.fits b.png -v",
            &[],
            &[],
            "the record \"OBJECT  = 'M 31    '           / what it shows\" is left out",
        ),
    ] {
        let mut args: Vec<&str> = line.split(' ').collect();
        args.push("--overwrite");
        let made = run(root.path(), &args, &[]);
        assert_eq!(made.code, 0, "{line}: {}", made.stderr);
        for words in [words, scale, blank] {
            assert!(made.stderr.contains(words), "{line}: {}", made.stderr);
        }
        if kept.is_empty() {
            continue;
        }
        let (_, metadata, _) = read(&std::fs::read(root.path().join("b.fits")).unwrap()).unwrap();
        let Own::Fits(found) = metadata.own else {
            panic!("{line}")
        };
        let found: Vec<String> = found
            .iter()
            .map(|record| String::from_utf8_lossy(record).into())
            .collect();
        let has = |name: &&str| found.iter().any(|record| record.starts_with(*name));
        assert!(kept.iter().all(has), "{line}: {found:?}");
        assert!(!left.iter().any(has), "{line}: {found:?}");
    }
}
