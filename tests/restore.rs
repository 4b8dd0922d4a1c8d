//! `normalize --undo` and `restore`: first values come back, or are refused with the reason; and what
//! the text in a file says is never believed without a look.

use crate::support::contract::{chunk_of, grey, made, outcome, refused, words};
use crate::support::formats::{format, read, read_pages, written};
use crate::support::png::chunk;
use crate::support::{Kind, Numbers, folder, image, key, run};
use gpuimg::internals::image::metadata::{Metadata, Stretch};
use gpuimg::internals::image::{Depth, Image, Samples, Shape};
use gpuimg::internals::ops::restore::Restore;
use gpuimg::internals::ops::{Operation, SampleTypes, Statistics};
use gpuimg::internals::timing::Timeline;
use std::fs;

/// A type of samples: its name, the least sample in memory that an image has, and how many follow.
type Type = (&'static str, Depth, bool, u32, u32);

const TYPES: [Type; 6] = [
    ("u8", Depth::Eight, false, 40, 150),
    ("i8", Depth::Eight, true, 60, 150),
    ("u16", Depth::Sixteen, false, 1000, 30_000),
    ("i16", Depth::Sixteen, true, 20_000, 30_000),
    ("u32", Depth::ThirtyTwo, false, 3_000_000_000, 65_000),
    ("i32", Depth::ThirtyTwo, true, 2_147_450_000, 65_000),
];

/// An image of 13 × 11 samples of noise, and alpha of any value.
fn noise(&(_, depth, _, least, count): &Type, channels: usize) -> Image {
    let shape = Shape {
        width: 13,
        height: 11,
        channels,
        depth,
    };
    let mut numbers = Numbers::new(u64::from(least) + channels as u64);
    let values = (0..shape.samples()).map(|i| {
        let number = (numbers.next() >> 20) as u32;
        match shape.has_alpha() && i % channels == channels - 1 {
            true => number & [0xff, 0xffff, 0, u32::MAX][depth.bytes() - 1],
            false => least + number % count + i as u32 % channels as u32,
        }
    });
    of(shape, values.collect())
}

fn of(shape: Shape, values: Vec<u32>) -> Image {
    let samples: Samples = match shape.depth.bytes() {
        1 => values.iter().map(|&v| v as u8).collect::<Vec<_>>().into(),
        2 => values.iter().map(|&v| v as u16).collect::<Vec<_>>().into(),
        _ => values.into(),
    };
    Image::new(shape, samples)
}

fn tiff(image: &Image, signed: bool) -> Vec<u8> {
    let metadata = Metadata {
        signed,
        ..Metadata::default()
    };
    written(format("tiff"), std::slice::from_ref(image), &metadata).expect("a TIFF")
}

/// What is read of a file that `restore` made of what `normalize --undo` made of `input`.
fn there_and_back(input: &[u8], options: &[&str], name: &str) -> (Image, bool) {
    let args = [&["normalize", "--undo", "--device", "cpu"], options].concat();
    let stretched = made("in.tif", input, &args, name);
    let again = made(name, &stretched, &["restore"], "again.tif");
    let (image, metadata, _) = read(&again).expect("an image");
    (image, metadata.signed)
}

#[test]
fn every_type_comes_back_from_every_format_with_a_place() {
    let mut cases = 0;
    for kind in TYPES {
        let (name, depth, signed, ..) = kind;
        for channels in 1..=4 {
            let has_alpha = channels % 2 == 0;
            let image = noise(&kind, channels);
            let input = tiff(&image, signed);
            for options in [
                &[][..],
                &["--per-channel"],
                &["--to", "100:65035"],
                &["--clip", "0:100"],
                &["--unsigned"],
            ] {
                let is_to = options.first() == Some(&"--to");
                if is_to && (signed || depth != Depth::Sixteen) {
                    continue;
                }
                for output in ["out.png", "out.tif", "out.fits"] {
                    // FITS is grey; alpha of 32 bits is rounded; percentiles of 32 bits are not known to be all.
                    let is_fits = output == "out.fits";
                    if is_fits && channels > 1
                        || depth.is_wide() && (has_alpha || options.first() == Some(&"--clip"))
                    {
                        continue;
                    }
                    let found = there_and_back(&input, options, output);
                    assert_eq!(found.1, signed, "{name} {options:?} {output}");
                    assert!(found.0 == image, "{name} ×{channels} {options:?} {output}");
                    cases += 1;
                }
            }
            if depth == Depth::Eight {
                let found = there_and_back(&input, &["--depth", "16"], "out.tif");
                assert!(found == (image, signed), "{name} ×{channels} --depth 16");
                cases += 1;
            }
        }
    }
    assert!(cases > 150, "{cases}");
}

#[test]
fn whole_numbers_of_floating_point_come_back_and_others_do_not() {
    let shape = Shape {
        width: 40,
        height: 3,
        channels: 1,
        depth: Depth::Float,
    };
    let image = |value: &dyn Fn(usize) -> f32| {
        of(shape, (0..shape.samples()).map(|i| key(value(i))).collect())
    };
    let whole = image(&|i| (i * 500) as f32 - 20_000.0);
    let found = there_and_back(&tiff(&whole, false), &[], "out.png");
    assert!(found.0 == whole);
    for rounded in [
        image(&|i| i as f32 * 0.25),
        image(&|i| if i == 7 { -0.0 } else { i as f32 }),
    ] {
        let input = tiff(&rounded, false);
        let stretched = made("in.tif", &input, &["normalize", "--undo"], "out.png");
        refused(
            "out.png",
            &stretched,
            &["restore"],
            "again.tif",
            "floating point",
        );
        let near = made(
            "out.png",
            &stretched,
            &["restore", "--nearest"],
            "again.tif",
        );
        let (found, ..) = read(&near).expect("an image");
        let values = |image: &Image| match image.samples() {
            Samples::U32(keys) => keys
                .iter()
                .map(|&key| gpuimg::internals::image::number::from_key(key))
                .collect::<Vec<_>>(),
            _ => panic!("other samples"),
        };
        let (first, found) = (values(&rounded), values(&found));
        let range = first.iter().copied().fold(0.0, f32::max);
        for (a, b) in first.iter().zip(&found) {
            assert!((a - b).abs() <= range / 65535.0, "{a} {b}");
        }
    }
}

#[test]
fn what_was_clamped_or_joined_is_refused_or_nearest() {
    let kind = TYPES[2];
    let image = noise(&kind, 3);
    let input = tiff(&image, false);
    let values = |file: &[u8]| words(file);
    for (options, least, most) in [
        (["--range", "5000:20000"], 5000, 20_000),
        (["--clip", "0:100"], 0, 65535),
    ] {
        let args = [&["normalize", "--undo"], &options[..]].concat();
        let stretched = made("in.tif", &input, &args, "out.png");
        if options[0] == "--range" {
            refused("out.png", &stretched, &["restore"], "again.tif", "clamped");
        }
        let near = made(
            "out.png",
            &stretched,
            &["restore", "--nearest"],
            "again.tif",
        );
        let expected = words(&input).into_iter().map(|v| v.clamp(least, most));
        assert_eq!(values(&near), expected.collect::<Vec<u16>>());
    }
    // A clip that cuts nothing off is distinguished from one that does.
    for (clip, held) in [("0:100", "inside"), ("1:99", "clamped")] {
        let args = ["normalize", "--undo", "--clip", clip];
        let stretched = made("in.tif", &input, &args, "out.png");
        let said = String::from_utf8_lossy(&stretched).contains(&format!(" {held}"));
        assert!(said, "{clip}");
    }
    // 8 bits hold 256 of 30000 values: the nearest are off by half a step at most, rounded.
    let args = ["normalize", "--undo", "--depth", "8"];
    let stretched = made("in.tif", &input, &args, "out.png");
    refused(
        "out.png",
        &stretched,
        &["restore"],
        "again.tif",
        "than the 256 steps it was scaled to",
    );
    let near = values(&made(
        "out.png",
        &stretched,
        &["restore", "--nearest"],
        "again.tif",
    ));
    let first = words(&input);
    let range = first.iter().max().unwrap() - first.iter().min().unwrap();
    for (a, b) in first.iter().zip(near) {
        assert!(
            u32::from(a.abs_diff(b)) <= u32::from(range) / 510 + 1,
            "{a} {b}"
        );
    }
}

/// 3, 5, 9 of 16 bits: 0, 65535·2/6 = 21845, 65535. What the file says of it, byte by byte.
#[test]
fn the_text_by_hand() {
    let input = tiff(&grey(3, [3, 5, 9]), false);
    let text = "1 u16 3:9 to u16 0:65535 inside";
    let undo = ["normalize", "--undo"];
    let png = made("in.tif", &input, &undo, "out.png");
    assert_eq!(words(&png), [0, 21845, 65535]);
    let data = format!("gpuimg:stretch\0{text}").into_bytes();
    assert_eq!(chunk_of(&png, b"tEXt"), Some(data));
    let tif = made("in.tif", &input, &undo, "out.tif");
    let list =
        format!("<GDALMetadata>\n  <Item name=\"GPUIMG_STRETCH\">{text}</Item>\n</GDALMetadata>\0");
    assert!(tif.windows(list.len()).any(|part| part == list.as_bytes()));
    let fits = made("in.tif", &input, &undo, "out.fits");
    let record = format!("{:<80}", format!("GPUIMG  = '{text}'"));
    assert!(fits.chunks(80).any(|part| part == record.as_bytes()));
    // Pixels are the same with it and without.
    for name in ["out.png", "out.tif", "out.fits"] {
        let plain = made("in.tif", &input, &["normalize"], name);
        let with = made("in.tif", &input, &undo, name);
        assert!(read(&plain).unwrap().0 == read(&with).unwrap().0, "{name}");
        assert!(plain.len() < with.len() || name == "out.fits");
        refused(
            name,
            &plain,
            &["restore"],
            "again.tif",
            "it stores no original range",
        );
    }
}

#[test]
fn each_page_has_its_own_range_where_it_was_measured_so() {
    let images = [
        grey(2, [10, 20, 30, 40]),
        grey(2, [500, 1000, 700, 800]),
        grey(2, [7, 7, 7, 7]),
    ];
    let input = written(format("tiff"), &images, &Metadata::default()).expect("a TIFF");
    for scope in ["page", "stack"] {
        let args = ["normalize", "--undo", "--scope", scope];
        let (told, stretched) = outcome("in.tif", &input, &args, "out.tif");
        assert_eq!(told.code, 0, "{}", told.stderr);
        let again = made("out.tif", &stretched.unwrap(), &["restore"], "again.tif");
        assert!(read_pages(&again).expect("pages").0 == images, "{scope}");
    }
    let args = ["normalize", "--undo"];
    let stretched = made("in.tif", &input, &args, "out.fits");
    let again = made("out.fits", &stretched, &["restore"], "again.tif");
    assert!(read_pages(&again).expect("pages").0 == images);
    let args = ["normalize", "--undo", "--scope", "page"];
    let (told, none) = outcome("in.tif", &input, &args, "out.fits");
    assert_eq!((told.code, none), (1, None));
    assert!(told.stderr.contains(ONE_PLACE), "{}", told.stderr);
}

const ONE_PLACE: &str = "FITS can store only one range for --undo";

/// Two HDUs of 8 and of 16 bits. The reason was untrue: a TIFF has a type for each page.
#[test]
fn pages_of_several_types_were_refused_with_an_untrue_reason() {
    let shape = |depth| Shape {
        width: 3,
        height: 2,
        channels: 1,
        depth,
    };
    let pages = [
        of(shape(Depth::Eight), vec![1, 2, 3, 4, 5, 6]),
        of(shape(Depth::Sixteen), vec![7, 300, 5, 4, 1000, 2]),
    ];
    let input = crate::support::stacks::stack(&pages, &Metadata::default());
    let undone = made("in.tif", &input, &["normalize", "--undo"], "out.tif");
    let words = "it originally had 16 bits without sign, but page 1 had 8 bits without sign, and restore gives all pages of a \
                 file the type of page 1: use --split to write a file for each page";
    refused("in.tif", &undone, &["restore"], "out.tif", words);
    let root = folder(&[("in.tif", &undone)]);
    let done = run(root.path(), &["restore", "in.tif", "out", "--split"], &[]);
    assert_eq!((done.code, &*done.stderr), (0, ""));
    for (page, name) in pages.iter().zip(["out/in-0001.tif", "out/in-0002.tif"]) {
        let file = fs::read(root.path().join(name)).expect("a file");
        assert!(read(&file).expect("an image").0 == *page, "{name}");
    }
}

/// What a file says of its pages is carried into another format as truly as what `--undo` writes.
#[test]
fn the_range_of_the_first_page_was_handed_to_all() {
    let images = [grey(2, [0, 65_535, 7, 300]), grey(2, [100, 200, 150, 120])];
    let input = written(format("tiff"), &images, &Metadata::default()).expect("a TIFF");
    let args = ["normalize", "--undo", "--scope", "page"];
    let each = made("in.tif", &input, &args, "each.tif");
    let (told, none) = outcome("each.tif", &each, &["rotate", "180"], "out.fits");
    assert_eq!((told.code, none), (1, None));
    assert!(told.stderr.contains(ONE_PLACE), "{}", told.stderr);
    // One that all pages have is kept, and one page may say what it likes.
    let all = made("in.tif", &input, &["normalize", "--undo"], "all.fits");
    let turned = made("all.fits", &all, &["rotate", "180"], "turned.fits");
    let turned = made("turned.fits", &turned, &["rotate", "180"], "again.fits");
    let again = made("again.fits", &turned, &["restore"], "again.tif");
    assert!(read_pages(&again).expect("pages").0 == images);
    let args = ["rotate", "180", "--pages", "2"];
    let one = made("each.tif", &each, &args, "one.fits");
    let one = made("one.fits", &one, &["restore"], "one.tif");
    assert!(read(&one).expect("a page").0 == grey(2, [120, 150, 200, 100]));
    // Of several files, each with one page.
    let (told, none) = outcome(
        "each.tif",
        &each,
        &["flip", "horizontal", "--stack"],
        "out.fits",
    );
    assert_eq!((told.code, none), (1, None), "{}", told.stderr);
}

#[test]
fn the_range_follows_turns_and_goes_with_other_values() {
    let image = noise(&TYPES[2], 3);
    let input = tiff(&image, false);
    let stretched = made("in.tif", &input, &["normalize", "--undo"], "out.png");
    let turned = made("out.png", &stretched, &["flip", "vertical"], "turned.tif");
    let again = made("turned.tif", &turned, &["restore"], "again.tif");
    let flipped = made("in.tif", &input, &["flip", "vertical"], "flipped.tif");
    assert_eq!(words(&again), words(&flipped));
    let chained = ["run", "normalize --undo + flip vertical"];
    let chained = made("in.tif", &input, &chained, "chained.png");
    let again = made("chained.png", &chained, &["restore"], "again.tif");
    assert_eq!(words(&again), words(&flipped));
    for verb in [
        &["normalize"][..],
        &["normalize", "--depth", "8"],
        &["flip", "vertical", "--depth", "8"],
        &["flip", "vertical", "--fit", "5"],
        &["run", "normalize --undo + normalize"],
    ] {
        let other = made("out.png", &stretched, verb, "other.png");
        refused(
            "other.png",
            &other,
            &["restore"],
            "again.tif",
            "it stores no original range",
        );
    }
    // The item beside others of GDAL's.
    let list = b"<GDALMetadata>\n  <Item name=\"SITE\">A</Item>\n</GDALMetadata>\0";
    let list: Vec<u64> = list.iter().map(|&byte| byte.into()).collect();
    let input = crate::support::tiff::Build::default().tag(42112, 2, &list);
    let input = input.file(&grey(3, [3, 5, 9]));
    let stretched = made("in.tif", &input, &["normalize", "--undo"], "out.tif");
    let again = made("out.tif", &stretched, &["restore"], "again.tif");
    let has = |file: &[u8], text: &[u8]| file.windows(text.len()).any(|part| part == text);
    assert!(has(&stretched, b"SITE") && has(&stretched, b"GPUIMG_STRETCH"));
    assert!(has(&again, b"SITE") && !has(&again, b"GPUIMG_STRETCH"));
    assert_eq!(words(&again), [3, 5, 9]);
}

#[test]
fn what_cannot_be_undone_is_refused_beforehand() {
    let input = tiff(&noise(&TYPES[2], 1), false);
    for (args, output, words) in [
        (
            &["normalize", "--undo"][..],
            "out.npy",
            "NumPy cannot store the range of --undo",
        ),
        (
            &["normalize", "--undo"],
            "out.pgm",
            "cannot store the range of --undo",
        ),
        (
            &["normalize", "--undo", "--fit", "5"],
            "out.tif",
            "--fit averages pixels",
        ),
        (
            &["run", "normalize --undo + flip h", "--depth", "8"],
            "out.tif",
            "remove ",
        ),
        (&["restore"], "out.tif", "it stores no original range"),
    ] {
        refused("in.tif", &input, args, output, words);
    }
    let input = tiff(&noise(&TYPES[0], 1), false);
    let stretched = made("in.tif", &input, &["normalize", "--undo"], "out.png");
    let (told, _) = outcome("in.tif", &input, &["run", "restore + flip h"], "out.tif");
    assert!(told.code == 2 && told.stderr.contains("cannot be a step of gpuimg run"));
    let args = ["restore", "--depth", "16"];
    refused("out.png", &stretched, &args, "again.tif", "remove --depth");
    let input = tiff(&noise(&TYPES[3], 1), true);
    let stretched = made("in.tif", &input, &["normalize", "--undo"], "out.png");
    refused("out.png", &stretched, &["restore"], "again.png", "PNG");
}

/// A PNG of three samples that says this of itself.
fn saying(text: &[u8], samples: [u16; 3]) -> Vec<u8> {
    let png = made(
        "in.tif",
        &tiff(&grey(3, samples), false),
        &["flip", "vertical"],
        "out.png",
    );
    // After the signature and IHDR.
    let mut file = png[..33].to_vec();
    chunk(&mut file, b"tEXt", &[b"gpuimg:stretch\0", text].concat());
    file.extend(&png[33..]);
    file
}

#[test]
fn false_and_hostile_texts_are_refused() {
    let samples = [0, 21845, 65535];
    let refused = |text: &[u8], words: &str| {
        let file = saying(text, samples);
        refused("in.png", &file, &["restore"], "out.tif", words);
        // Other verbs do not mind.
        let turned = made("in.png", &file, &["transpose"], "out.png");
        assert_eq!(self::words(&turned), samples);
    };
    let good = made(
        "in.png",
        &saying(b"1 u16 3:9 to u16 0:65535 inside", samples),
        &["restore"],
        "out.tif",
    );
    assert_eq!(words(&good), [3, 5, 9]);
    refused(
        b"1 u16 3:8 to u16 0:65535 inside",
        "cannot result from the recorded range",
    );
    refused(
        b"1 u16 3:9 to u16 0:65534 inside",
        "cannot result from the recorded range",
    );
    refused(
        b"1 u16 3:9 to u8 0:255 inside",
        "it was converted after normalize --undo",
    );
    refused(
        b"1 u16 3:9 to i16 -32768:32767 inside",
        "it was converted after normalize --undo",
    );
    refused(
        b"1 u16 3:9,3:9,3:9 to u16 0:65535 inside",
        "stores ranges for 3",
    );
    refused(
        b"1 u32 0:4294967295 to u16 0:65535 inside",
        "than the 65536 steps it was scaled to",
    );
    refused(
        b"1 f32 -3.4e38:3.4e38 to u16 0:65535 integers",
        "than the 65536 steps it was scaled to",
    );
    refused(b"9 u16 3:9 to u16 0:65535 inside", "cannot be read");
    refused(b"", "cannot be read");
    refused(&[0xff; 99], "cannot be read");
    refused(&[b'1'; 1 << 16], "longer than 256 bytes");
    // Nearest values of anything, however false, are in the range that it names.
    for text in [
        "1 u16 3:8 to u16 7:9 clamped",
        "1 f32 -3.4028235e38:3.4028235e38 to u16 0:65535 integers",
        "1 i32 -2147483648:2147483647 to u16 1:2 inside",
        "1 f32 0:1e-45 to u16 0:65535 integers",
        "1 u8 5:5 to u16 0:65535 clamped",
    ] {
        let file = saying(text.as_bytes(), samples);
        let near = made("in.png", &file, &["restore", "--nearest"], "out.tif");
        assert_eq!(read(&near).expect("an image").0.shape().width, 3, "{text}");
    }
}

#[test]
fn a_series_with_one_range_comes_back() {
    let images = [grey(2, [10, 20, 30, 40]), grey(2, [500, 1000, 700, 800])];
    let files = images.each_ref().map(|image| tiff(image, false));
    let folder = folder(&[("in/a.tif", &files[0]), ("in/b.tif", &files[1])]);
    let run = |args: &[&str]| {
        let run = run(folder.path(), args, &[]);
        assert_eq!(run.code, 0, "{}", run.stderr);
    };
    run(&[
        "normalize",
        "--undo",
        "--across",
        "in/",
        "out/",
        "--format",
        "png",
    ]);
    run(&["restore", "out/", "again/", "--format", "tiff", "--dry-run"]);
    run(&["restore", "out/", "again/", "--format", "tiff"]);
    for (name, image) in ["again/a.tif", "again/b.tif"].into_iter().zip(&images) {
        let file = fs::read(folder.path().join(name)).expect("made");
        assert!(read(&file).expect("an image").0 == *image, "{name}");
    }
    // Of a set that was counted elsewhere it is not known.
    run(&["histogram", "in/", "-o", "set.hist"]);
    let args = [
        "normalize",
        "--undo",
        "--range-from",
        "set.hist",
        "in/a.tif",
        "c.png",
    ];
    run(&args);
    let told = self::run(folder.path(), &["restore", "c.png", "d.tif"], &[]);
    assert!(told.stderr.contains("clamped"), "{}", told.stderr);
}

/// All samples of 8 and 16 bits, on all cores against the definition, for texts of every kind.
#[test]
fn all_cores_give_what_the_definition_says() {
    let mut cases = 0;
    for text in [
        "1 u16 0:65535 to u16 0:65535 inside",
        "1 u16 3:65000,9:9,0:1 to u16 0:65535 clamped",
        "1 u8 3:250,9:9,0:1 to u16 100:60000 inside",
        "1 i16 -5:7 to u8 0:255 inside",
        "1 u16 0:65535 to u8 3:200 clamped",
        "1 u32 7:4294967295 to u16 0:65535 clamped",
        "1 i32 -7:4294,-7:-7,0:9 to u16 0:65535 inside",
        "1 f32 -0.5:1e30,0:0,2:3 to u16 0:65535 clamped",
        "1 f32 -5:1e4 to u8 0:255 integers",
    ] {
        let stretch: Stretch = text.parse().expect("valid");
        let depth = stretch.to.depth;
        let full = u32::from(depth.full()) + 1;
        for channels in 1..=4 {
            let colours = channels - usize::from(channels % 2 == 0);
            if stretch.ranges().len() > 1 && colours != 3 {
                continue;
            }
            for nearest in [true, false] {
                let shape = Shape {
                    width: full as usize,
                    height: 1,
                    channels,
                    depth,
                };
                let values = (0..shape.samples() as u32).map(|i| i / channels as u32);
                let image = of(shape, values.collect());
                let mut restore = Restore::default();
                restore.nearest = nearest;
                let metadata = || {
                    Ok(Metadata {
                        stretch: Some(Ok(stretch)),
                        ..Metadata::default()
                    })
                };
                let op = restore
                    .for_file(&metadata)
                    .expect("known")
                    .expect("another");
                let types = SampleTypes {
                    read: stretch.to,
                    written: stretch.from,
                    stretch: Some(stretch),
                    ..SampleTypes::plain(&shape)
                };
                let bound = op.bind(types, &Statistics::None).expect("valid");
                let naive = bound.naive(&image);
                let cpu = bound.cpu(image, &mut Timeline::default());
                match (naive, cpu) {
                    (Ok(naive), Ok(cpu)) => assert!(naive == cpu, "{text} {channels}"),
                    (Err(_), Err(_)) => assert!(!nearest, "{text}"),
                    _ => panic!("{text}: only one of both is refused"),
                }
                cases += 1;
            }
        }
    }
    assert!(cases > 40, "{cases}");
}

/// The ranges are those of all channels, and `restore` took the first for that of alpha.
#[test]
fn a_channel_taken_after_normalize_kept_the_ranges_of_all() {
    let place = folder(&[]);
    let root = place.path();
    let grey_alpha = image(4, 3, 2, Depth::Sixteen, Kind::Noise);
    let file = written(format("npy"), &[grey_alpha], &Metadata::default()).expect("a file");
    fs::write(root.join("in.npy"), file).expect("written");
    for (channel, output) in [("1", "a.png"), ("2", "b.tif")] {
        let verbs = format!("normalize --undo + convert --channel {channel}");
        let chain = run(root, &["run", &verbs, "in.npy", output], &[]);
        assert_eq!(chain.code, 0, "{}", chain.stderr);
        let restored = run(root, &["restore", output, "back.npy"], &[]);
        let told = "it stores no original range";
        assert!(
            restored.code == 1 && restored.stderr.contains(told),
            "{}",
            restored.stderr
        );
    }
    // A single channel is that of the ranges.
    fs::write(root.join("one.pgm"), b"P5\n3 1\n255\n\x05\x07\x09").expect("written");
    let verbs = "normalize --undo + convert --channel 1";
    assert_eq!(
        run(root, &["run", verbs, "one.pgm", "one.png"], &[]).code,
        0
    );
    assert_eq!(run(root, &["restore", "one.png", "back.pgm"], &[]).code, 0);
    assert!(
        fs::read(root.join("back.pgm"))
            .expect("a file")
            .ends_with(b"\x05\x07\x09")
    );
}
