//! The contract for awkward images (`docs/CONTRACT.md`): a test for each of its rows, through the
//! program as a user runs it.

use crate::support::contract::{
    chunk_of, grey, made, outcome, refused, signed, stored, tag, words,
};
use crate::support::png::Plain;
use crate::support::tiff::Build;
use crate::support::tiff_images::{picture, read};
use crate::support::{folder, run};
use gpuimg::internals::image::{Depth, Image, Samples, Shape};

const FLIP: [&str; 2] = ["flip", "horizontal"];

#[test]
fn flat_images_and_hot_pixels() {
    let flat = Build::default().file(&grey(2, [77; 4]));
    let (run, written) = outcome("in.tif", &flat, &["normalize"], "out.tif");
    assert_eq!(run.code, 0);
    let expected =
        "gpuimg: warning: in.tif: the image is flat (every sample is 77) and left unchanged\n";
    assert_eq!(run.stderr, expected);
    assert_eq!(words(&written.unwrap()), [77; 4]);
    let mut values = [0u16; 2000];
    values
        .iter_mut()
        .zip(100..)
        .for_each(|(value, i)| *value = i);
    values[999] = 60_000;
    let hot = Build::default().file(&grey(50, values));
    let all = words(&made("in.tif", &hot, &["normalize"], "out.tif"));
    assert_eq!((all[0], all[999]), (0, 65535));
    // 2099 − 100 of 60000 − 100: the picture is dark.
    assert!(all[1999] < 2200, "{}", all[1999]);
    let clipped = words(&made(
        "in.tif",
        &hot,
        &["normalize", "--clip", "0:99.9"],
        "out.tif",
    ));
    assert_eq!((clipped[0], clipped[999], clipped[1999]), (0, 65535, 65535));
}

#[test]
fn signed_samples_stay_signed() {
    let flipped = made("in.tif", &signed(), &FLIP, "out.tif");
    assert_eq!(stored(&flipped), [300, 0xfffe, 5, 0x8000]);
    assert_eq!(tag(&flipped, 339), Some(vec![2]));
    // −32768 is the least, 300 the largest: the order is that of signed numbers.
    let stretched = made("in.tif", &signed(), &["normalize"], "out.tif");
    let places = stored(&stretched).into_iter().map(|word| word as i16);
    let all: Vec<i16> = places.collect();
    assert_eq!((all[1], all[2]), (32767, -32768));
    assert!(all[0] < all[3] && all[3] < all[1], "{all:?}");
    assert_eq!(tag(&stretched, 339), Some(vec![2]));
}

#[test]
fn signed_samples_are_summed_with_their_sign() {
    let folder = folder(&[("in.tif", &signed())]);
    let run = run(folder.path(), &["sum", "--all", "in.tif"], &[]);
    let expected = "in.tif: sum -32465, min -32768, max 300, mean -8116.2500\n";
    assert_eq!(run.stdout, expected);
}

#[test]
fn signed_samples_and_formats_without_sign() {
    refused(
        "in.tif",
        &signed(),
        &FLIP,
        "out.png",
        "PNG cannot store signed samples",
    );
    refused(
        "in.tif",
        &signed(),
        &FLIP,
        "out.pgm",
        "PNM cannot store signed samples",
    );
    let png = made("in.tif", &signed(), &["normalize"], "out.png");
    assert_eq!((words(&png)[1], words(&png)[2]), (65535, 0));
}

#[test]
fn signed_bytes_stay_signed() {
    let shape = Shape::checked(3, 1, 1, Depth::Eight).unwrap();
    let image = Image::new(shape, Samples::from(vec![0xffu8, 0x80, 7]));
    let file = Build::default().tag(339, 3, &[2]).file(&image);
    let flipped = made("in.tif", &file, &FLIP, "out.tif");
    let at = tag(&flipped, 273).unwrap()[0] as usize;
    assert_eq!(&flipped[at..at + 3], [7, 0x80, 0xff]);
}

/// 0xABC, 0x123, 0xFFF in 12 bits each, and a padded end; 10 and 14 bits alike.
#[test]
fn packed_bits_keep_their_values() {
    let packed = |bytes: Vec<u8>, bits: u64, width: u64| {
        let shape = Shape::checked(bytes.len() as u64, 1, 1, Depth::Eight).unwrap();
        let image = Image::new(shape, Samples::from(bytes));
        let build = Build::default().tag(258, 3, &[bits]);
        build.tag(256, 3, &[width]).file(&image)
    };
    let twelve = packed(vec![0xab, 0xc1, 0x23, 0xff, 0xf0], 12, 3);
    let flipped = made("in.tif", &twelve, &FLIP, "out.tif");
    assert_eq!(words(&flipped), [0xfff, 0x123, 0xabc]);
    assert_eq!(tag(&flipped, 281), Some(vec![4095]));
    // To PGM, whose maxval says the same.
    let pgm = made("in.tif", &twelve, &FLIP, "out.pgm");
    assert!(pgm.starts_with(b"P5\n3 1\n4095\n"));
    // Scaled values have all bits.
    let stretched = made("in.tif", &twelve, &["normalize"], "out.tif");
    assert_eq!(tag(&stretched, 281), None);
    assert_eq!(words(&stretched)[2], 65535);
    let ten = packed(vec![0b11111111, 0b11000000, 0b00010000], 10, 2);
    assert_eq!(words(&made("in.tif", &ten, &FLIP, "out.tif")), [1, 1023]);
    let fourteen = packed(vec![0xff, 0xfc, 0, 0x10], 14, 2);
    assert_eq!(
        words(&made("in.tif", &fourteen, &FLIP, "out.tif")),
        [1, 16383]
    );
    // Fewer than 8 are scaled, as PNG's are.
    for (bits, byte, expected) in [
        (1, 0b10100000, vec![255, 0, 255]),
        (2, 0b11_01_00_00, vec![255, 85, 0]),
    ] {
        let file = packed(vec![byte], bits, 3);
        let mut flipped = words(&made("in.tif", &file, &FLIP, "out.tif"));
        flipped.reverse();
        assert_eq!(flipped, expected, "{bits}");
    }
    let four = packed(vec![0xf0, 0x10], 4, 3);
    assert_eq!(
        words(&made("in.tif", &four, &FLIP, "out.tif")),
        [17, 0, 255]
    );
}

#[test]
fn a_pgm_keeps_its_maxval_until_values_change() {
    let pgm = b"P5 2 1 4095\n\x01\x00\x0f\xff";
    let flipped = made("in.pgm", pgm, &FLIP, "out.pgm");
    assert_eq!(flipped, b"P5\n2 1\n4095\n\x0f\xff\x01\x00");
    let tiff = made("in.pgm", pgm, &FLIP, "out.tif");
    assert_eq!(tag(&tiff, 281), Some(vec![4095]));
    let stretched = made("in.pgm", pgm, &["normalize"], "out.pgm");
    assert_eq!(stretched, b"P5\n2 1\n65535\n\x00\x00\xff\xff");
}

/// A 16-bit grey PNG with these chunks before its image data.
fn png_with(width: usize, chunks: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
    let mut plain = Plain::noisy(width, 20, 16, 0);
    let owned = chunks.iter().map(|(kind, data)| (**kind, data.to_vec()));
    plain.before.extend(owned);
    plain.encoded(1)
}

/// (105 − 10)·65535/190 = 32767.5; the bounds are values of the file.
#[test]
fn ranges_of_eight_bits_that_become_sixteen_are_those_of_the_file() {
    let shape = Shape {
        width: 5,
        height: 1,
        channels: 1,
        depth: Depth::Eight,
    };
    let image = Image::new(shape, Samples::from(vec![0u8, 10, 105, 200, 255]));
    let file = Build::default().file(&image);
    let args = ["normalize", "--depth", "16", "--range", "10:200"];
    let found = words(&made("in.tif", &file, &args, "out.tif"));
    assert_eq!(found, [0, 0, 32768, 65535, 65535]);
}

/// 8 bits that become 16 are 8 still.
#[test]
fn widened_samples_say_how_many_bits_they_had() {
    let shape = Shape {
        width: 2,
        height: 1,
        channels: 1,
        depth: Depth::Eight,
    };
    let image = Image::new(shape, Samples::from(vec![3u8, 200]));
    let tiff = Build::default().file(&image);
    let widened = made(
        "in.tif",
        &tiff,
        &["flip", "horizontal", "--depth", "16"],
        "out.png",
    );
    assert_eq!(chunk_of(&widened, b"sBIT"), Some(vec![8]));
    let kept = made(
        "in.tif",
        &tiff,
        &["flip", "horizontal", "--depth", "8"],
        "out.png",
    );
    assert_eq!(chunk_of(&kept, b"sBIT"), None);
}

#[test]
fn significant_bits_stay_until_values_change() {
    let png = png_with(3, &[(b"sBIT", &[12])]);
    let turned = made("in.png", &png, &["transpose"], "out.png");
    assert_eq!(chunk_of(&turned, b"sBIT"), Some(vec![12]));
    let stretched = made("in.png", &png, &["normalize"], "out.png");
    assert_eq!(chunk_of(&stretched, b"sBIT"), None);
    let eight = made("in.png", &png, &["transpose", "--depth", "8"], "out.png");
    assert_eq!(chunk_of(&eight, b"sBIT"), None);
}

#[test]
fn white_is_zero_stays() {
    let image = grey(2, [10, 20, 30, 40]);
    let file = Build::default().tag(262, 3, &[0]).file(&image);
    let flipped = made("in.tif", &file, &FLIP, "out.tif");
    assert_eq!(tag(&flipped, 262), Some(vec![0]));
    assert_eq!(words(&flipped), [20, 10, 40, 30]);
    let stretched = made("in.tif", &file, &["normalize"], "out.tif");
    assert_eq!(tag(&stretched, 262), Some(vec![0]));
    assert_eq!(words(&stretched), [0, 21845, 43690, 65535]);
    refused(
        "in.tif",
        &file,
        &FLIP,
        "out.png",
        "cannot store grey whose 0 is white",
    );
}

#[test]
fn planes_are_interleaved() {
    let planes = picture(5, 3 * 4, 1, Depth::Sixteen);
    let file = Build {
        strip: 4,
        ..Build::default()
    };
    let tags = [(257, 4), (277, 3), (262, 2), (284, 2), (278, 4)];
    let file = tags
        .iter()
        .fold(file, |file, &(tag, value)| file.tag(tag, 3, &[value]));
    let file = file.tag(258, 3, &[16, 16, 16]).file(&planes);
    let flipped = made("in.tif", &file, &["flip", "vertical"], "out.tif");
    let (flat, there) = (words(&flipped), words_of(&planes));
    for (x, y, c) in (0..5).flat_map(|x| (0..4).flat_map(move |y| (0..3).map(move |c| (x, y, c)))) {
        assert_eq!(flat[((3 - y) * 5 + x) * 3 + c], there[(c * 4 + y) * 5 + x]);
    }
    assert_eq!(tag(&flipped, 284), Some(vec![1]));
}

fn words_of(image: &Image) -> Vec<u16> {
    match image.samples() {
        Samples::U16(words) => words.to_vec(),
        _ => panic!("16 bits were expected"),
    }
}

#[test]
fn alpha_keeps_its_meaning() {
    let image = picture(5, 4, 4, Depth::Sixteen);
    for meaning in [0, 1, 2] {
        let file = Build::default().tag(338, 3, &[meaning]).file(&image);
        let flipped = made("in.tif", &file, &FLIP, "out.tif");
        assert_eq!(tag(&flipped, 338), Some(vec![meaning as u32]));
    }
    let associated = Build::default().tag(338, 3, &[1]).file(&image);
    refused(
        "in.tif",
        &associated,
        &FLIP,
        "out.png",
        "cannot store premultiplied alpha",
    );
    let (run, _) = outcome("in.tif", &associated, &["normalize"], "out.tif");
    assert_eq!(run.code, 0);
    assert!(
        run.stderr
            .contains("warning: in.tif: the colours are premultiplied by alpha"),
        "{}",
        run.stderr
    );
}

#[test]
fn refusals_say_what_to_do() {
    let image = picture(5, 4, 1, Depth::Sixteen);
    let colour = picture(5, 4, 4, Depth::Eight);
    let build = Build::default;
    let mut cases = 0;
    for (file, words) in [
        (
            build().tag(258, 3, &[80]).tag(339, 3, &[3]).file(&image),
            "80-bit floating-point",
        ),
        (
            build().tag(258, 3, &[20]).file(&image),
            "convert it first to 32 bits",
        ),
        (
            build().tag(258, 3, &[64]).tag(339, 3, &[2]).file(&image),
            "64-bit samples",
        ),
        (
            build().tag(262, 3, &[6]).file(&colour),
            "those of its YCbCr colours",
        ),
        (build().tag(262, 3, &[8]).file(&colour), "Lab"),
        (build().tag(262, 3, &[3]).file(&image), "palette"),
    ] {
        for verb in [&["normalize"][..], &FLIP] {
            refused("in.tif", &file, verb, "out.tif", words);
            cases += 1;
        }
    }
    assert_eq!(cases, 12);
}

#[test]
fn orientation_stays_true() {
    let image = grey(3, [1, 2, 3, 4, 5, 6]);
    let file = |orientation| Build::default().tag(274, 3, &[orientation]).file(&image);
    // Values changed, pixels where they were.
    let stretched = made("in.tif", &file(6), &["normalize"], "out.tif");
    assert_eq!(tag(&stretched, 274), Some(vec![6]));
    // Turned as stored, and as shown: quarter turns leave a quarter turn what it is.
    let turned = made("in.tif", &file(6), &["rotate", "90"], "out.tif");
    assert_eq!(words(&turned), [4, 1, 5, 2, 6, 3]);
    assert_eq!(tag(&turned, 274), Some(vec![6]));
    // A mirrored image has to be turned the other way to be shown mirrored.
    let flipped = made("in.tif", &file(6), &FLIP, "out.tif");
    assert_eq!(words(&flipped), [3, 2, 1, 6, 5, 4]);
    assert_eq!(tag(&flipped, 274), Some(vec![8]));
    // Upright stays upright.
    let turned = made("in.tif", &file(1), &["rotate", "90"], "out.tif");
    assert_eq!(tag(&turned, 274), Some(vec![1]));
}

/// All eight, against the tag's definition: where the first row and column are shown.
#[test]
fn auto_orient_brings_upright() {
    // 1 2 3 / 4 5 6 as shown.
    for (orientation, width, stored) in [
        (1, 3, [1, 2, 3, 4, 5, 6]),
        (2, 3, [3, 2, 1, 6, 5, 4]),
        (3, 3, [6, 5, 4, 3, 2, 1]),
        (4, 3, [4, 5, 6, 1, 2, 3]),
        (5, 2, [1, 4, 2, 5, 3, 6]),
        (6, 2, [3, 6, 2, 5, 1, 4]),
        (7, 2, [6, 3, 5, 2, 4, 1]),
        (8, 2, [4, 1, 5, 2, 6, 3]),
    ] {
        let image = grey(width, stored);
        let file = Build::default().tag(274, 3, &[orientation]).file(&image);
        let args = ["normalize", "--range", "0:65535", "--auto-orient"];
        let upright = made("in.tif", &file, &args, "out.tif");
        assert_eq!(words(&upright), [1, 2, 3, 4, 5, 6], "{orientation}");
        assert_eq!(tag(&upright, 274), Some(vec![1]));
        // And then what was asked for.
        let args = ["flip", "horizontal", "--auto-orient"];
        let flipped = made("in.tif", &file, &args, "out.tif");
        assert_eq!(words(&flipped), [3, 2, 1, 6, 5, 4], "{orientation}");
        assert_eq!(tag(&flipped, 274), Some(vec![1]));
    }
}

#[test]
fn sizes_at_the_edge() {
    for (width, height) in [(1, 1), (1, 4099), (4099, 1), (65500, 3)] {
        let image = picture(width, height, 1, Depth::Sixteen);
        let file = Build::default().file(&image);
        for format in ["out.tif", "out.png", "out.pgm"] {
            let turned = made("in.tif", &file, &["transpose"], format);
            let back = made(format, &turned, &["transpose"], "back.tif");
            assert!(read(&back).unwrap() == image, "{width}×{height} {format}");
        }
    }
    refused("in.tif", b"", &FLIP, "out.tif", "the file is empty");
}

#[test]
fn byte_order_and_big_tiff() {
    let image = picture(13, 7, 3, Depth::Sixteen);
    for (big_endian, big_tiff) in [(false, true), (true, false), (true, true)] {
        let file = Build {
            big_endian,
            big_tiff,
            ..Build::default()
        };
        let file = file.file(&image);
        for compression in ["none", "lzw", "deflate", "zstd"] {
            let args = ["flip", "vertical", "--tiff", compression];
            let flipped = made("in.tif", &file, &args, "out.tif");
            let order = if big_endian { b"MM" } else { b"II" };
            assert_eq!(&flipped[..2], order);
            let back = made("in.tif", &flipped, &["flip", "vertical"], "out.tif");
            assert!(read(&back).unwrap() == image);
        }
    }
}

#[test]
fn more_pixels_than_allowed_are_refused() {
    let png = png_with(30, &[]);
    let args = ["normalize", "--max-pixels", "599"];
    refused(
        "in.png",
        &png,
        &args,
        "out.png",
        "30×20 pixels are more than 599 (--max-pixels allows more)",
    );
    made(
        "in.png",
        &png,
        &["normalize", "--max-pixels", "600"],
        "out.png",
    );
}

/// What is there of a truncated file, and 0 where nothing is.
#[test]
fn keep_going_takes_what_is_there() {
    let image = picture(64, 64, 1, Depth::Sixteen);
    let whole = words_of(&image);
    let mut cases = 0;
    let strips = Build {
        strip: 8,
        ..Build::default()
    };
    for compression in [1, 5, 8, 32773, 50000] {
        let build = Build {
            compression,
            ..strips.clone()
        };
        let mut file = build.file(&image);
        // The fourth strip is damaged, its length is not.
        let at = tag(&file, 273).unwrap()[3] as usize;
        let len = tag(&file, 279).unwrap()[3] as usize;
        if compression == 1 {
            continue;
        }
        file[at..at + len].fill(0xff);
        let (run, written) = outcome(
            "in.tif",
            &file,
            &["flip", "vertical", "--keep-going"],
            "out.tif",
        );
        assert_eq!(run.code, 1);
        if compression != 32773 {
            assert!(
                run.stderr
                    .contains("in.tif is damaged; missing parts are filled with 0: strip 3: "),
                "{}",
                run.stderr
            );
        }
        let mut rows = words(&written.unwrap());
        let rows: Vec<u16> = rows
            .chunks_mut(64)
            .rev()
            .flatten()
            .map(|value| *value)
            .collect();
        assert_eq!(rows[..24 * 64], whole[..24 * 64], "{compression}");
        assert_eq!(rows[32 * 64..], whole[32 * 64..], "{compression}");
        cases += 1;
    }
    assert_eq!(cases, 4);

    let mut pgm = b"P5 64 64 65535\n".to_vec();
    pgm.extend(whole.iter().flat_map(|value| value.to_be_bytes()));
    let cut = &pgm[..pgm.len() - 100 * 2 - 1];
    let (run, written) = outcome(
        "in.pgm",
        cut,
        &["flip", "horizontal", "--keep-going"],
        "out.pgm",
    );
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("truncated at byte"), "{}", run.stderr);
    let rows = words(&written.unwrap());
    let mut expected = whole.clone();
    expected[64 * 64 - 101..].fill(0);
    let flipped: Vec<u16> = expected
        .chunks(64)
        .flat_map(|row| row.iter().rev().copied())
        .collect();
    assert_eq!(rows, flipped);

    let png = made("in.pgm", &pgm, &FLIP, "out.png");
    let (run, written) = outcome(
        "in.png",
        &png[..png.len() - 500],
        &["flip", "horizontal", "--keep-going"],
        "out.pgm",
    );
    assert_eq!(run.code, 1, "{}", run.stderr);
    let rows = words(&written.unwrap());
    assert_eq!(rows.len(), 64 * 64);
    assert_eq!(rows[..32 * 64], whole[..32 * 64]);
    // Without it nothing is written.
    refused(
        "in.png",
        &png[..png.len() - 500],
        &FLIP,
        "out.pgm",
        "truncated at byte",
    );
}

/// `normalize` scaled alpha of 16 bits to the full depth, but left that of 8 bits as it was.
#[test]
fn opaque_pixels_of_eight_bits_became_transparent() {
    let header = b"P7\nWIDTH 2\nHEIGHT 1\nDEPTH 2\nMAXVAL 100\nTUPLTYPE GRAYSCALE_ALPHA\nENDHDR\n";
    let file = [&header[..], &[5, 100, 9, 50]].concat();
    let scaled = made("a.pam", &file, &["normalize"], "o.tif");
    assert_eq!(words(&scaled), [0, 255, 255, 128]);
}
