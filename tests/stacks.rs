//! Files of several pages: every page done, the range shared, descriptions true.

use crate::support::contract::{made, outcome, refused};
use crate::support::stacks::{pages, range, stack, stretched};
use crate::support::tiff::Build;
use crate::support::tiff_images::{picture, written};
use crate::support::{folder, run, sample};
use gpuimg::internals::formats::tiff::{Compression, TiffEncoder};
use gpuimg::internals::formats::{Encoder, PageSurvey};
use gpuimg::internals::image::metadata::{Field, Metadata, Own, Value};
use gpuimg::internals::image::{Depth, Image, Samples};
use std::borrow::Cow;
use std::fs;

fn words(image: &Image) -> Vec<u16> {
    match image.samples() {
        Samples::U16(words) => words.to_vec(),
        Samples::U8(bytes) => bytes.iter().map(|&byte| byte.into()).collect(),
        Samples::U32(_) | Samples::U64(_) => panic!("8 or 16 bits were expected"),
    }
}

#[test]
fn every_page_is_done_and_shares_the_range() {
    let file = fs::read(sample("nuclei-stack.tif")).unwrap();
    let before = pages(&file);
    assert_eq!(before.len(), 31);
    let all: Vec<u16> = before.iter().flat_map(|page| page.1.clone()).collect();
    let own = before.iter().filter(|page| range(&page.1) != range(&all));
    assert!(own.count() > 20, "the pages have ranges of their own");

    let shared = pages(&made("in.tif", &file, &["normalize"], "out.tif"));
    let alone = pages(&made(
        "in.tif",
        &file,
        &["normalize", "--scope", "page"],
        "out.tif",
    ));
    assert_eq!((shared.len(), alone.len()), (31, 31));
    for ((before, shared), alone) in before.iter().zip(shared).zip(alone) {
        assert_eq!(shared.1, stretched(&before.1, range(&all), 65535));
        assert_eq!(alone.1, stretched(&before.1, range(&before.1), 65535));
    }
    // Percentiles are those of all pages too.
    let clipped = pages(&made(
        "in.tif",
        &file,
        &["normalize", "--clip", "5:90"],
        "out.tif",
    ));
    let mut sorted = all.clone();
    sorted.sort_unstable();
    let (low, high) = (
        sorted[(all.len() - 1) * 5 / 100],
        sorted[((all.len() - 1) * 90).div_ceil(100)],
    );
    for (before, clipped) in before.iter().zip(clipped) {
        let inside: Vec<u16> = before.1.iter().map(|p| (*p).clamp(low, high)).collect();
        assert_eq!(clipped.1, stretched(&inside, (low, high), 65535));
    }
}

/// Channels that are pages were scaled from one range without a word, so that a faint one stays dark.
#[test]
fn channels_shared_a_range_without_a_word() {
    let hyperstack = crate::support::axes::file(12, crate::support::axes::HYPERSTACK);
    let slices = crate::support::axes::file(12, "ImageJ=1.54f\nimages=12\nslices=12\n");
    let place = folder(&[("in/a.tif", &hyperstack), ("s.tif", &slices)]);
    let said = "in/a.tif: its 2 channels share one range (use --per-channel for separate ranges)";
    for (args, is_said) in [
        (&["in/a.tif", "out.tif"][..], true),
        (&["in/a.tif", "out.tif", "--clip", "1:99"], true),
        (&["in", "out"], true),
        (&["in/a.tif", "out.tif", "-q"], false),
        (&["in/a.tif", "out.tif", "--per-channel"], false),
        (&["in/a.tif", "out.tif", "--scope", "page"], false),
        (&["in/a.tif", "out.tif", "--range", "0:9000"], false),
        (&["in/a.tif", "out.tif", "--axes", "C=2"], false),
        (&["s.tif", "out.tif"], false),
    ] {
        let args = [&["normalize"], args, &["--overwrite"]].concat();
        let done = run(place.path(), &args, &[]);
        assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
        let found = done.stderr.matches(said).count();
        assert_eq!(found, usize::from(is_said), "{args:?}: {}", done.stderr);
    }
    for args in [
        &["normalize", "--stack", "in", "all.tif"][..],
        &["normalize", "--split", "in/a.tif", "pages"],
    ] {
        let done = run(place.path(), args, &[]);
        let found = done.stderr.matches("its 2 channels share one range");
        assert_eq!(found.count(), 1, "{args:?}: {}", done.stderr);
    }
    let quiet = ["normalize", "--split", "in/a.tif", "again", "-q"];
    assert_eq!(run(place.path(), &quiet, &[]).stderr, "");
}

#[test]
fn geometry_of_every_page() {
    let file = fs::read(sample("nuclei-stack.tif")).unwrap();
    for compression in ["none", "deflate", "lzw", "zstd"] {
        let turned = made(
            "in.tif",
            &file,
            &["transpose", "--tiff", compression],
            "out.tif",
        );
        let back = made("in.tif", &turned, &["transpose"], "out.tif");
        let (back, file) = (pages(&back), pages(&file));
        assert_eq!(back.len(), 31);
        for (back, before) in back.iter().zip(&file) {
            assert_eq!((back.0, &back.1), (before.0, &before.1));
        }
    }
}

#[test]
fn some_pages() {
    let file = fs::read(sample("nuclei-stack.tif")).unwrap();
    let before = pages(&file);
    let some = pages(&made(
        "in.tif",
        &file,
        &["flip", "vertical", "--pages", "3-5"],
        "out.tif",
    ));
    assert_eq!(some.len(), 3);
    for (page, before) in some.iter().zip(&before[2..5]) {
        let flipped: Vec<u16> = before.1.chunks(57).rev().flatten().copied().collect();
        assert_eq!(page.1, flipped);
    }
    made("in.tif", &file, &["normalize", "--pages", "31"], "out.png");
    refused(
        "in.tif",
        &file,
        &["normalize", "--pages", "32"],
        "out.tif",
        "it has 31 pages, no page 32",
    );
    refused(
        "in.tif",
        &file,
        &["normalize"],
        "out.pgm",
        "31 pages do not fit into one PNM file",
    );
    for nonsense in ["0", "5-3", "x", "1-"] {
        let folder = folder(&[("in.tif", &file)]);
        let run = run(
            folder.path(),
            &["normalize", "--pages", nonsense, "in.tif", "out.tif"],
            &[],
        );
        assert_eq!(run.code, 2, "{nonsense}: {}", run.stderr);
    }
}

#[test]
fn sums_of_pages() {
    let images = [
        picture(5, 4, 1, Depth::Sixteen),
        picture(3, 2, 1, Depth::Sixteen),
    ];
    let folder = folder(&[("in.tif", &stack(&images, &Metadata::default()))]);
    let run = run(folder.path(), &["sum", "in.tif"], &[]);
    let sums = images
        .iter()
        .map(|image| words(image).iter().map(|&word| u64::from(word)).sum());
    let sums: Vec<u64> = sums.collect();
    let expected = format!(
        "in.tif, page 1: sum {}\nin.tif, page 2: sum {}\n",
        sums[0], sums[1]
    );
    assert_eq!(run.stdout, expected);
}

/// Pages of different sizes, channels and depths; those of one kind share a range.
#[test]
fn mixed_pages() {
    let images = [
        picture(31, 7, 1, Depth::Sixteen),
        picture(7, 31, 3, Depth::Sixteen),
        picture(9, 9, 1, Depth::Eight),
        picture(40, 2, 1, Depth::Sixteen),
    ];
    let file = stack(&images, &Metadata::default());
    let flipped = pages(&made("in.tif", &file, &["flip", "vertical"], "out.tif"));
    assert_eq!(flipped.len(), 4);
    for (page, image) in flipped.iter().zip(&images) {
        let rows = words(image);
        let rows: Vec<u16> = rows
            .chunks(image.shape().row())
            .rev()
            .flatten()
            .copied()
            .collect();
        assert_eq!(page.1, rows);
    }
    let normalized = pages(&made("in.tif", &file, &["normalize"], "out.tif"));
    let grey: Vec<u16> = [&images[0], &images[3]]
        .into_iter()
        .flat_map(words)
        .collect();
    for index in [0, 3] {
        let expected = stretched(&words(&images[index]), range(&grey), 65535);
        assert_eq!(normalized[index].1, expected);
    }
    let (colour, eight) = (words(&images[1]), words(&images[2]));
    assert_eq!(normalized[1].1, stretched(&colour, range(&colour), 65535));
    assert_eq!(normalized[2].1, stretched(&eight, range(&eight), 255));
}

fn described(build: Build, text: &str) -> Build {
    let bytes: Vec<u64> = text.bytes().chain([0]).map(u64::from).collect();
    build.tag(270, 2, &bytes)
}

/// An ImageJ stack whose directory tells of its first image alone.
#[test]
fn imagej_stack_with_one_directory() {
    let all = picture(6, 5 * 4, 1, Depth::Sixteen);
    let told = "ImageJ=1.54f\nimages=4\nslices=4\nloop=false\nmin=3.0\nmax=900.0\n";
    let build = described(Build::default(), told);
    let build = build.tag(257, 4, &[5]).tag(278, 4, &[5]).tag(279, 4, &[60]);
    let file = build.file(&all);
    let flipped = pages(&made("in.tif", &file, &["flip", "vertical"], "out.tif"));
    assert_eq!(flipped.len(), 4);
    for (page, before) in flipped.iter().zip(words(&all).chunks(30)) {
        let rows: Vec<u16> = before.chunks(6).rev().flatten().copied().collect();
        assert_eq!((page.0, &page.1), ((6, 5), &rows));
    }
    assert_eq!(flipped[0].2.as_deref(), Some(told));
    assert_eq!(flipped[1].2, None);
    // The display range follows the values.
    let normalized = pages(&made("in.tif", &file, &["normalize"], "out.tif"));
    let expected = told.replace("3.0", "0.0").replace("900.0", "65535.0");
    assert_eq!(normalized[0].2.as_deref(), Some(expected.as_str()));
    let some = pages(&made(
        "in.tif",
        &file,
        &["flip", "vertical", "--pages", "1-2"],
        "out.tif",
    ));
    let told = some[0].2.clone().unwrap();
    assert!(
        told.contains("images=2\n") && told.contains("slices=2\n"),
        "{told}"
    );
    let told = pages(&made(
        "in.tif",
        &file,
        &["transpose", "--pages", "1"],
        "out.tif",
    ));
    assert!(!told[0].2.clone().unwrap().contains("images="));
    let cut = &described(Build::default(), &told_of(9))
        .tag(257, 4, &[5])
        .tag(278, 4, &[5])
        .tag(279, 4, &[60]);
    refused(
        "in.tif",
        &cut.file(&all),
        &["normalize"],
        "out.tif",
        "(image 9 of an ImageJ stack)",
    );
}

/// Its description, which alone says how many images there are, lay beyond the end of the file.
#[test]
fn a_description_beyond_the_end_left_one_image_of_a_stack() {
    let build = described(Build::default(), &told_of(4));
    let build = build.tag(257, 4, &[5]).tag(278, 4, &[5]).tag(279, 4, &[60]);
    let mut file = build.file(&picture(6, 5 * 4, 1, Depth::Sixteen));
    let entry = file.windows(4).rposition(|bytes| bytes == [14, 1, 2, 0]);
    let field = entry.unwrap() + 8;
    file[field..field + 4].copy_from_slice(&10_000_000u32.to_le_bytes());
    let words = format!(
        "cannot read in.tif: tag ImageDescription (270) at byte 10000000 lies beyond the end ({} bytes)",
        file.len()
    );
    for verb in [
        &["flip", "vertical"][..],
        &["normalize"],
        &["project", "max"],
    ] {
        refused("in.tif", &file, verb, "out.tif", &words);
    }
}

/// Older ImageJs write the micrometre as one byte, which is no UTF-8.
#[test]
fn a_description_of_another_encoding_left_one_image_of_a_stack() {
    let mut told: Vec<u64> = told_of(4).bytes().map(u64::from).collect();
    told.extend(b"unit=\xb5m\n\0".map(u64::from));
    let build = Build::default().tag(270, 2, &told);
    let build = build.tag(257, 4, &[5]).tag(278, 4, &[5]).tag(279, 4, &[60]);
    let file = build.file(&picture(6, 5 * 4, 1, Depth::Sixteen));
    let (run, out) = outcome("in.tif", &file, &["flip", "vertical"], "out.tif");
    assert_eq!(run.code, 0, "{}", run.stderr);
    let (images, ..) = crate::support::formats::read_pages(&out.unwrap()).unwrap();
    assert_eq!(images.len(), 4);
}

fn told_of(images: usize) -> String {
    format!("ImageJ=1.54f\nimages={images}\n")
}

#[test]
fn smaller_copies_are_left_out() {
    let image = picture(8, 8, 1, Depth::Sixteen);
    let thumbnail = Metadata {
        own: Own::Tiff {
            big_endian: false,
            fields: vec![Field {
                tag: 254,
                kind: 4,
                value: Value::Bytes(vec![1, 0, 0, 0]),
            }],
        },
        ..Metadata::default()
    };
    let file = written(|target| {
        let pages = [PageSurvey::from(image.shape()); 2];
        let mut writer = TiffEncoder::new(target, Compression::None, &pages);
        writer.page(Cow::Borrowed(&image), &Metadata::default())?;
        writer.page(Cow::Owned(picture(4, 4, 1, Depth::Sixteen)), &thumbnail)?;
        Ok(writer.length())
    })
    .unwrap();
    let (run, written) = outcome("in.tif", &file, &["flip", "vertical"], "out.tif");
    assert_eq!(run.code, 0, "{}", run.stderr);
    let expected =
        "gpuimg: warning: in.tif: 1 page that is a smaller copy or a mask is left out (page 2)\n";
    assert_eq!(run.stderr, expected);
    assert_eq!(pages(&written.unwrap()).len(), 1);
    smaller_copies_were_left_out_without_a_word(&file);
}

/// Neither `--stack` nor `--split` named the pages that they left out.
fn smaller_copies_were_left_out_without_a_word(file: &[u8]) {
    let place = folder(&[("in/a.tif", file)]);
    for args in [
        &["flip", "vertical", "--stack", "in", "all.tif"][..],
        &["flip", "vertical", "--split", "in/a.tif", "pages"],
    ] {
        let done = run(place.path(), args, &[]);
        assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
        let skipped = "in/a.tif: 1 page that is a smaller copy or a mask is left out (page 2)\n";
        let found = done.stderr.matches(skipped).count();
        assert_eq!(found, 1, "{args:?}: {}", done.stderr);
    }
}

#[test]
fn a_bad_page_is_named() {
    let images = [
        picture(8, 8, 1, Depth::Sixteen),
        picture(8, 8, 1, Depth::Sixteen),
    ];
    let mut file = stack(&images, &Metadata::default());
    // The second page's BitsPerSample becomes 24.
    let entry = [2u8, 1, 3, 0, 1, 0, 0, 0, 16, 0];
    let found = file.windows(10).rposition(|bytes| bytes == entry).unwrap();
    file[found + 8] = 20;
    refused(
        "in.tif",
        &file,
        &["normalize"],
        "out.tif",
        "page 2: 20-bit samples are not supported",
    );
    made("in.tif", &file, &["normalize", "--pages", "1"], "out.tif");
}

#[test]
fn every_page_is_compared() {
    let one = [
        picture(5, 4, 1, Depth::Sixteen),
        picture(9, 3, 1, Depth::Sixteen),
    ];
    let mut other = one.clone();
    if let Samples::U16(words) = other[1].samples_mut() {
        words[10] ^= 1;
    }
    let plain = Metadata::default();
    let folder = folder(&[
        ("a.tif", &stack(&one, &plain)),
        ("b.tif", &stack(&other, &plain)),
        ("c.tif", &stack(&one[..1], &plain)),
    ]);
    let verify = |b| run(folder.path(), &["verify", "a.tif", b], &[]);
    assert_eq!(
        (verify("a.tif").stdout.as_str(), verify("a.tif").code),
        ("equal\n", 0)
    );
    let differs = verify("b.tif");
    assert!(
        differs.stdout.starts_with("page 2: 1 of 27 samples differ"),
        "{}",
        differs.stdout
    );
    assert_eq!(differs.code, 1);
    assert_eq!(
        verify("c.tif").stdout,
        "different numbers of pages: 2 and 1\n"
    );
}

/// The other pages are written, and the message has the page's number.
#[test]
fn a_damaged_page_of_a_split_is_named() {
    let file = crate::support::axes::file(3, "");
    let packed = made("in.tif", &file, &["convert", "--tiff=deflate"], "out.tif");
    let mut decoder = tiff::decoder::Decoder::new(std::io::Cursor::new(&packed)).expect("a TIFF");
    decoder.next_image().expect("a page");
    let offsets = decoder.get_tag_u32_vec(tiff::tags::Tag::StripOffsets);
    let at = offsets.expect("strips")[0] as usize;
    let mut damaged = packed.clone();
    damaged[at..at + 4].fill(0xff);
    for (args, written) in [
        (
            &["convert", "a.tif", "out", "--split"][..],
            &["a-0001.tif", "a-0003.tif"][..],
        ),
        (&["normalize", "a.tif", "out", "--split"], &[]),
        (&["convert", "a.tif", "b.tif"], &[]),
    ] {
        let place = folder(&[("a.tif", &damaged)]);
        let done = run(place.path(), args, &[]);
        assert_eq!(done.code, 1, "{}", done.stderr);
        assert!(done.stderr.contains("a.tif: page 2: "), "{}", done.stderr);
        let out = place.path().join("out");
        let names = if out.exists() {
            crate::support::listing(&out)
        } else {
            Vec::new()
        };
        assert_eq!(names, written, "{args:?}");
        assert!(!place.path().join("b.tif").exists());
    }
}
