//! Files of which wrong pixels or untrue metadata came, each test named after what went wrong; and
//! metadata that were lost without a word.

use crate::support::contract::{chunk_of, grey, made, outcome, refused, tag, words};
use crate::support::contract::{doubles, text};
use crate::support::png::Plain;
use crate::support::stacks::pages;
use crate::support::tiff::Build;
use crate::support::tiff_images::picture;
use crate::support::{folder, run};
use gpuimg::internals::image::{Depth, Image, Samples, Shape};

const FLIP: [&str; 2] = ["flip", "horizontal"];

/// Rows of values of so many bits each, packed, the most significant bit first.
fn packed(rows: &[Vec<u16>], bits: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    for row in rows {
        let all: Vec<bool> = (row.iter())
            .flat_map(|value| (0..bits).rev().map(move |bit| value >> bit & 1 == 1))
            .collect();
        bytes.extend(all.chunks(8).map(|bits| {
            let bit = |(i, &bit): (usize, &bool)| u8::from(bit) << (7 - i);
            bits.iter().enumerate().map(bit).sum::<u8>()
        }));
    }
    bytes
}

/// A file of packed samples, of so many channels.
fn packed_file(rows: &[Vec<u16>], bits: u32, channels: usize, big_endian: bool) -> Vec<u8> {
    let bytes = packed(rows, bits);
    let across = bytes.len() / rows.len();
    let shape = Shape::checked(across as u64, rows.len() as u64, 1, Depth::Eight).unwrap();
    let build = Build {
        big_endian,
        strip: 2,
        ..Build::default()
    };
    let mut build = build
        .tag(256, 3, &[(rows[0].len() / channels) as u64])
        .tag(258, 3, &vec![bits.into(); channels])
        .tag(262, 3, &[if channels > 2 { 2 } else { 1 }])
        .tag(277, 3, &[channels as u64]);
    if channels.is_multiple_of(2) {
        build = build.tag(338, 3, &[2]);
    }
    build.file(&Image::new(shape, Samples::from(bytes)))
}

/// A stream of bits is the same in both byte orders; every depth from 1 to 16.
#[test]
fn packed_samples_of_big_endian_files_were_swapped() {
    let mut cases = 0;
    for bits in (1..=16).filter(|&bits| bits != 8 && bits != 16) {
        let most = (1u32 << bits) - 1;
        let rows: Vec<Vec<u16>> = (0..5)
            .map(|y| (0..7).map(move |x| ((x * 977 + y * 3571 + 1) % (most + 1)) as u16))
            .map(Iterator::collect)
            .collect();
        // Fewer than 8 bits are scaled to 8.
        let expected = |&value: &u16| match bits {
            ..8 => ((u32::from(value) * 255 + most / 2) / most) as u16,
            _ => value,
        };
        let expected: Vec<u16> = (rows.iter())
            .flat_map(|row| row.iter().rev().map(expected))
            .collect();
        for big_endian in [false, true] {
            let file = packed_file(&rows, bits, 1, big_endian);
            let flipped = made("in.tif", &file, &FLIP, "out.tif");
            assert_eq!(words(&flipped), expected, "{bits} bits, {big_endian}");
            cases += 1;
        }
    }
    assert_eq!(cases, 28);
}

/// Where whole numbers are the centres of pixels, column x of w comes to lie at w − 1 − x.
#[test]
fn points_lay_a_pixel_off_after_turns() {
    let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<u64>>();
    for big_endian in [false, true] {
        let build = Build {
            big_endian,
            ..Build::default()
        };
        let build = build
            .tag(33550, 12, &bits(&[2.0, 3.0, 0.0]))
            .tag(33922, 12, &bits(&[0.0, 0.0, 0.0, 500.0, 900.0, 0.0]))
            .tag(34735, 3, &[1, 1, 0, 2, 1024, 0, 1, 2, 1025, 0, 1, 2]);
        let file = build.file(&picture(6, 4, 1, Depth::Sixteen));
        let before = |x: f64, y: f64| (500.0 + 2.0 * x, 900.0 - 3.0 * y);
        type Source = fn(f64, f64) -> (f64, f64);
        let cases: [(&[&str], Source); 5] = [
            (&["transpose"], |x, y| (y, x)),
            (&["flip", "vertical"], |x, y| (x, 3.0 - y)),
            (&["rotate", "180"], |x, y| (5.0 - x, 3.0 - y)),
            (&["rotate", "90"], |x, y| (y, 3.0 - x)),
            (&["rotate", "270"], |x, y| (5.0 - y, x)),
        ];
        for (args, source) in cases {
            let out = made("in.tif", &file, args, "out.tif");
            let m = doubles(&out, 34264).unwrap();
            for (x, y) in [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (3.0, 2.0)] {
                let here = (m[0] * x + m[1] * y + m[3], m[4] * x + m[5] * y + m[7]);
                let (x, y) = source(x, y);
                assert_eq!(here, before(x, y), "{args:?}");
            }
        }
    }
}

/// 4095 of 4095 became 16 of 255.
#[test]
fn the_depth_ignored_what_the_maximum_is() {
    fn eight<'a>(args: &[&'a str]) -> Vec<&'a str> {
        [args, &["--depth", "8"]].concat()
    }
    let pgm = b"P5 3 1 4095\n\x00\x00\x08\x00\x0f\xff";
    let narrow = made("in.pgm", pgm, &eight(&FLIP), "out.pgm");
    assert_eq!(narrow, b"P5\n3 1\n255\n\xff\x80\x00");
    for big_endian in [false, true] {
        let file = packed_file(&[vec![0, 2048, 4095]], 12, 1, big_endian);
        let narrow = made("in.tif", &file, &eight(&FLIP), "out.tif");
        assert_eq!(words(&narrow), [255, 128, 0]);
        assert_eq!(tag(&narrow, 281), None);
    }
    // The other way: 100 of 100 is 65535.
    let pgm = b"P5 3 1 100\n\x00\x32\x64";
    let wide = made(
        "in.pgm",
        pgm,
        &["flip", "horizontal", "--depth", "16"],
        "out.pgm",
    );
    assert_eq!(wide, b"P5\n3 1\n65535\n\xff\xff\x80\x00\x00\x00");
    // Scaled values have all bits at once.
    let pgm = b"P5 3 1 4095\n\x00\x10\x00\x20\x00\x30";
    let stretched = made("in.pgm", pgm, &eight(&["normalize"]), "out.pgm");
    assert_eq!(stretched, b"P5\n3 1\n255\n\x00\x80\xff");
    // A MaxSampleValue that is not 2ⁿ − 1 describes one image, not the range.
    let image = grey(3, [0, 500, 1000]);
    let file = Build::default().tag(281, 3, &[1000]).file(&image);
    assert_eq!(
        tag(&made("in.tif", &file, &FLIP, "out.tif"), 281),
        Some(vec![1000])
    );
    let narrow = made("in.tif", &file, &eight(&FLIP), "out.tif");
    assert_eq!((words(&narrow), tag(&narrow, 281)), (vec![4, 2, 0], None));
}

/// A PGM must not have samples above its maxval.
#[test]
fn an_untrue_maximum_made_a_damaged_pgm() {
    let file = Build::default().tag(281, 3, &[4095]);
    let file = file.file(&grey(2, [60_000, 7]));
    let pgm = made("in.tif", &file, &FLIP, "out.pgm");
    assert!(pgm.starts_with(b"P5\n2 1\n65535\n"));
}

/// Colours got all 16 bits, alpha stayed at 4095 of 65535.
#[test]
fn opaque_pixels_of_twelve_bits_became_transparent() {
    let rows = [vec![10, 20, 30, 4095, 40, 50, 60, 0, 70, 80, 90, 2048]];
    let file = packed_file(&rows, 12, 4, true);
    let alpha = |file: Vec<u8>| -> Vec<u16> { words(&file).chunks(4).map(|p| p[3]).collect() };
    let stretched = made("in.tif", &file, &["normalize"], "out.tif");
    assert_eq!(alpha(stretched), [65535, 0, 32776]);
    let args = ["normalize", "--depth", "8"];
    assert_eq!(
        alpha(made("in.tif", &file, &args, "out.tif")),
        [255, 0, 128]
    );
    assert_eq!(
        alpha(made("in.tif", &file, &["rotate", "180"], "out.tif")),
        [2048, 0, 4095]
    );
}

/// Pages of `rows` rows each, of a file that lies as one image of all of them.
fn stacked(build: Build, rows: u64, all: &Image) -> Vec<u8> {
    let bytes = rows * all.shape().width as u64 * 2;
    let build = build.tag(257, 4, &[rows]).tag(278, 4, &[rows]);
    build.tag(279, 4, &[bytes]).file(all)
}

fn flipped_pages(out: &[u8], all: &Image, rows: usize) {
    let row = all.shape().width;
    let Samples::U16(all) = all.samples() else {
        panic!("16 bits");
    };
    let found = pages(out);
    assert_eq!(found.len(), all.len() / (rows * row));
    for (page, before) in found.iter().zip(all.chunks(rows * row)) {
        let rows: Vec<u16> = before.chunks(row).rev().flatten().copied().collect();
        assert_eq!(page.1, rows);
    }
}

const VERTICAL: [&str; 2] = ["flip", "vertical"];

/// MetaMorph's stacks (UIC2), ImageDepth and tifffile's: of several planes after one directory the
/// first was mistaken for all.
#[test]
fn planes_behind_one_directory_were_lost() {
    let all = picture(6, 5 * 4, 1, Depth::Sixteen);
    for big_endian in [false, true] {
        let build = || Build {
            big_endian,
            ..Build::default()
        };
        let metamorph = build().tag(33628, 4, &[1, 2]).tag(33629, 5, &[0; 4]);
        let file = stacked(metamorph, 5, &all);
        let (run, out) = outcome("in.stk.tif", &file, &VERTICAL, "out.tif");
        let expected = "gpuimg: warning: in.stk.tif: page 1: MetaMorph's own metadata (UIC, tags 33628 to \
                        33631) are left out: they hold offsets into the input file\n";
        assert_eq!((run.code, run.stderr.as_str()), (0, expected));
        flipped_pages(&out.unwrap(), &all, 5);

        let shaped = ascii(build(), 270, "{\"shape\": [4, 5, 6], \"truncated\": true}");
        let compressed = [&VERTICAL[..], &["--tiff", "lzw"]].concat();
        let out = made("in.tif", &stacked(shaped, 5, &all), &compressed, "out.tif");
        flipped_pages(&out, &all, 5);
        assert_eq!(text(&out, 270).as_deref(), Some("{\"shape\":[4,5,6]}"));

        // The strips of all planes, which lie one after the other.
        let strips = Build {
            strip: 5,
            ..build()
        };
        let file = strips.tag(257, 4, &[5]).tag(32997, 4, &[4]).file(&all);
        let out = made("in.tif", &file, &VERTICAL, "out.tif");
        flipped_pages(&out, &all, 5);
        assert_eq!(tag(&out, 32997), None);
    }
    // What cannot be read is not half read.
    let packed = Build {
        strip: 5,
        compression: 8,
        ..Build::default()
    };
    let file = packed
        .clone()
        .tag(257, 4, &[5])
        .tag(32997, 4, &[4])
        .file(&all);
    let words = "an image with ImageDepth of 4 planes in one directory";
    refused("in.tif", &file, &VERTICAL, "out.tif", words);
    let file = packed.tag(257, 4, &[5]).tag(33629, 5, &[0; 4]).file(&all);
    let words = "a MetaMorph stack of 4 planes in one directory";
    refused("in.tif", &file, &VERTICAL, "out.tif", words);
    let long = stacked(Build::default().tag(33629, 5, &[0; 9]), 5, &all);
    refused(
        "in.tif",
        &long,
        &VERTICAL,
        "out.tif",
        "(image 9 of a MetaMorph stack)",
    );
}

/// `--keep-going` made a list of as many pages as a file pretended to have.
#[test]
fn pages_that_are_not_there_took_memory() {
    let all = picture(6, 5 * 4, 1, Depth::Sixteen);
    let told = "ImageJ=1.54f\nimages=99999999999999\n";
    let file = stacked(ascii(Build::default(), 270, told), 5, &all);
    let args = ["flip", "vertical", "--keep-going"];
    let (run, out) = outcome("in.tif", &file, &args, "out.tif");
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("is damaged"), "{}", run.stderr);
    assert!(pages(&out.unwrap()).len() < 20);
}

/// The orientation of a stack's one directory was that of its first image alone.
#[test]
fn only_the_first_image_of_a_stack_was_turned_upright() {
    let all = picture(6, 5 * 2, 1, Depth::Sixteen);
    let build = ascii(Build::default(), 270, "ImageJ=1.54f\nimages=2\n");
    let file = stacked(build.tag(274, 3, &[6]), 5, &all);
    let args = ["rotate", "180", "--auto-orient"];
    let found = pages(&made("in.tif", &file, &args, "out.tif"));
    assert_eq!([found[0].0, found[1].0], [(5, 6), (5, 6)]);
}

/// A classic little-endian file with one more directory at its end, of values that fit in an entry;
/// and where that begins.
fn with_directory(mut file: Vec<u8>, fields: &[(u16, u16, u32)], data: &[u8]) -> (Vec<u8>, u32) {
    let at = file.len() as u32;
    file.extend(data);
    if file.len() % 2 == 1 {
        file.push(0);
    }
    let directory = file.len() as u32;
    file.extend((fields.len() as u16 + 1).to_le_bytes());
    let mut fields = [fields, &[(273, 4, at)]].concat();
    fields.sort_unstable();
    for (tag, kind, value) in fields {
        file.extend(tag.to_le_bytes());
        file.extend(kind.to_le_bytes());
        file.extend(1u32.to_le_bytes());
        file.extend(value.to_le_bytes());
    }
    file.extend([0; 4]);
    (file, directory)
}

/// The same, linked after the file's only page.
fn with_page(file: Vec<u8>, fields: &[(u16, u16, u32)], data: &[u8]) -> Vec<u8> {
    let first = u32::from_le_bytes(file[4..8].try_into().unwrap()) as usize;
    let count = u16::from_le_bytes(file[first..first + 2].try_into().unwrap()) as usize;
    let link = first + 2 + 12 * count;
    let (mut file, directory) = with_directory(file, fields, data);
    file[link..link + 4].copy_from_slice(&directory.to_le_bytes());
    file
}

/// GDAL writes masks of 1 bit after the image that they belong to.
#[test]
fn a_file_was_refused_for_its_mask() {
    let image = picture(8, 4, 3, Depth::Eight);
    let mask = |subfile: u32| {
        let told = [
            (256, 3, 8),
            (257, 3, 4),
            (258, 3, 1),
            (259, 3, 1),
            (262, 3, 4),
            (277, 3, 1),
        ];
        let sizes = [(278, 3, 4), (279, 4, 4), (254, 4, subfile)];
        with_page(
            Build::default().file(&image),
            &[&told[..], &sizes].concat(),
            &[0xf0; 4],
        )
    };
    // Of the image, of a smaller copy, and one that is a mask by its colours alone.
    for subfile in [4, 5, 0] {
        let (run, out) = outcome("in.tif", &mask(subfile), &VERTICAL, "out.tif");
        let expected = "gpuimg: warning: in.tif: 1 page that is a smaller copy or a mask is left out (page 2)\n";
        assert_eq!((run.code, run.stderr.as_str()), (0, expected));
        assert_eq!(pages(&out.unwrap()).len(), 1);
    }
}

/// Cameras write the full image inside a page that holds a smaller one.
#[test]
fn the_thumbnail_was_taken_for_the_image() {
    let image = picture(8, 4, 3, Depth::Eight);
    let inside = |width: u32, at: u64| {
        let file = Build::default()
            .tag(254, 4, &[1])
            .tag(330, 4, &[at])
            .file(&image);
        with_directory(
            file,
            &[(256, 3, width), (257, 3, 30), (262, 3, 32803)],
            &[0; 8],
        )
    };
    let file = |width| inside(width, inside(width, 0).1.into()).0;
    let words = "its full image, 40×30 pixels, is inside the page (SubIFD)";
    refused("in.tif", &file(40), &["normalize"], "out.tif", words);
    let sum = run(
        folder(&[("in.tif", &file(40))]).path(),
        &["sum", "in.tif"],
        &[],
    );
    assert_eq!(sum.code, 1);
    assert!(sum.stderr.contains(words), "{}", sum.stderr);
    // The smaller copy is taken if it is asked for.
    let args = ["flip", "vertical", "--pages", "1"];
    let (run, out) = outcome("in.tif", &file(40), &args, "out.tif");
    let said = "a larger image inside the page (SubIFDs) is left out";
    assert!(run.stderr.contains(said), "{}", run.stderr);
    assert!(out.is_some());
    // Inside is a smaller one.
    let (run, out) = outcome("in.tif", &file(1), &VERTICAL, "out.tif");
    let said = "smaller copies of the image inside the page (SubIFDs) are left out";
    assert!(run.stderr.contains(said), "{}", run.stderr);
    assert!(out.is_some());
}

fn ascii(build: Build, tag: u16, text: &str) -> Build {
    let bytes: Vec<u64> = text.bytes().chain([0]).map(u64::from).collect();
    build.tag(tag, 2, &bytes)
}

/// GDAL's scale, offset and statistics were true of the values before.
#[test]
fn stretched_values_kept_the_old_scale_and_statistics() {
    let told = concat!(
        "<GDALMetadata>\n",
        "  <Item name=\"STATISTICS_MINIMUM\" sample=\"0\">100</Item>\n",
        "  <Item name=\"SCALE\" sample=\"0\" role=\"scale\">0.1</Item>\n",
        "  <Item name=\"OFFSET\" sample=\"0\" role=\"offset\">-100</Item>\n",
        "  <Item name=\"UNITTYPE\" sample=\"0\" role=\"unittype\">m</Item>\n",
        "  <Item name=\"DESCRIPTION\" sample=\"0\" role=\"description\">height</Item>\n",
        "</GDALMetadata>\n"
    );
    let kept = concat!(
        "<GDALMetadata>\n",
        "  <Item name=\"DESCRIPTION\" sample=\"0\" role=\"description\">height</Item>\n",
        "</GDALMetadata>\n"
    );
    let image = picture(6, 4, 1, Depth::Sixteen);
    let file = ascii(Build::default(), 42112, told).file(&image);
    for args in [&["normalize"][..], &["flip", "vertical", "--depth", "8"]] {
        let (run, out) = outcome("in.tif", &file, args, "out.tif");
        let said = "warning: in.tif: STATISTICS_MINIMUM, SCALE, OFFSET, UNITTYPE of GDAL's metadata are left out";
        assert!(run.stderr.contains(said), "{}", run.stderr);
        assert_eq!(text(&out.unwrap(), 42112).as_deref(), Some(kept));
    }
    // Of moved pixels they are as true as before.
    let turned = made("in.tif", &file, &["rotate", "90"], "out.tif");
    assert_eq!(text(&turned, 42112).as_deref(), Some(told));
    // Nothing but what is untrue: the field goes.
    let only =
        "<GDALMetadata><Item name=\"SCALE\" sample=\"0\" role=\"scale\">2</Item></GDALMetadata>";
    let file = ascii(Build::default(), 42112, only).file(&image);
    let (run, out) = outcome("in.tif", &file, &["normalize"], "out.tif");
    assert!(
        run.stderr.contains("SCALE of GDAL's metadata is left out"),
        "{}",
        run.stderr
    );
    assert_eq!(text(&out.unwrap(), 42112), None);
}

/// 8 bits made 16 kept what is true of 8 only.
#[test]
fn a_description_still_told_of_eight_bits() {
    let told = "<OME><Pixels SizeX=\"6\" SizeY=\"4\" Type=\"uint8\"/></OME>";
    let build = ascii(ascii(Build::default(), 270, told), 42113, "7");
    let file = build.file(&picture(6, 4, 1, Depth::Eight));
    let args = ["flip", "vertical", "--depth", "16"];
    let (run, out) = outcome("in.tif", &file, &args, "out.tif");
    let out = out.unwrap();
    assert!(text(&out, 270).unwrap().contains("\"uint16\""));
    assert!(run.stderr.contains("NODATA"), "{}", run.stderr);
    assert!(run.stderr.contains("--ignore"), "{}", run.stderr);
    assert_eq!(text(&out, 42113), None);
}

/// A file of two pages, the first of which alone has a description.
fn described(told: &str) -> Vec<u8> {
    let file = ascii(Build::default(), 270, told).file(&grey(2, [1, 2, 3, 4]));
    let told = [
        (256, 3, 2),
        (257, 3, 2),
        (258, 3, 16),
        (259, 3, 1),
        (262, 3, 1),
        (277, 3, 1),
    ];
    let data: Vec<u8> = [5u16, 6, 7, 8]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    with_page(
        file,
        &[&told[..], &[(278, 3, 2), (279, 4, 8)]].concat(),
        &data,
    )
}

/// What the first page says of all was lost without a word when it was not taken.
#[test]
fn descriptions_were_lost_with_the_first_page() {
    let args = ["flip", "vertical", "--pages", "2"];
    let told = "ImageJ=1.54f\nimages=2\nslices=2\nunit=um\nspacing=2.0\n";
    let out = made("in.tif", &described(told), &args, "out.tif");
    assert_eq!(words(&out), [7, 8, 5, 6]);
    assert_eq!(
        text(&out, 270).as_deref(),
        Some("ImageJ=1.54f\nunit=um\nspacing=2.0\n")
    );

    let told = "{\"shape\": [2, 2, 2], \"PhysicalSizeX\": 0.5}";
    let out = made("in.tif", &described(told), &args, "out.tif");
    let kept: serde_json::Value = serde_json::from_str(&text(&out, 270).unwrap()).unwrap();
    assert_eq!(
        kept,
        serde_json::json!({ "shape": [2, 2], "PhysicalSizeX": 0.5 })
    );

    let ome = described("<OME><Pixels SizeX=\"2\" SizeY=\"2\" SizeZ=\"2\"/></OME>");
    let (run, out) = outcome("in.tif", &ome, &args, "out.tif");
    let said = "its description is left out: it is OME-XML";
    assert!(run.stderr.contains(said), "{}", run.stderr);
    assert_eq!(text(&out.unwrap(), 270), None);

    // What tells of the first page alone is not true of another.
    let args = ["flip", "vertical", "--pages", "2", "-v"];
    let (run, out) = outcome("in.tif", &described("the left eye"), &args, "out.tif");
    let said = "the description of page 1, which is not selected, is left out";
    assert!(run.stderr.contains(said), "{}", run.stderr);
    assert_eq!(text(&out.unwrap(), 270), None);
}

/// Labels of all images stayed where some are taken.
#[test]
fn labels_told_of_images_that_were_not_taken() {
    let all = picture(6, 5 * 2, 1, Depth::Sixteen);
    let build = ascii(Build::default(), 270, "ImageJ=1.54f\nimages=2\nslices=2\n");
    let head: &[u8] = b"JIJIlbal\x02\0\0\0a\0b\0";
    let entries: Vec<u64> = head.iter().map(|&byte| byte.into()).collect();
    let build = build.tag(50838, 4, &[12, 2, 2]).tag(50839, 1, &entries);
    let file = stacked(build, 5, &all);
    let (run, out) = outcome(
        "in.tif",
        &file,
        &["flip", "vertical", "--pages", "2"],
        "out.tif",
    );
    let said = "ImageJ's labels are left out: they describe pages that are not selected";
    assert!(run.stderr.contains(said), "{}", run.stderr);
    let out = out.unwrap();
    assert_eq!((tag(&out, 50838), words(&out).len()), (None, 30));
    let whole = made("in.tif", &file, &VERTICAL, "out.tif");
    assert_eq!(tag(&whole, 50838), Some(vec![12, 2, 2]));
}

/// Line and sample of a place on the earth, by the coefficients' definition.
fn projected(told: &[f64], place: [f64; 3]) -> (f64, f64) {
    let [p, l, h] = [0, 1, 2].map(|i| (place[i] - told[4 + i]) / told[9 + i]);
    let terms = [
        1.0,
        l,
        p,
        h,
        l * p,
        l * h,
        p * h,
        l * l,
        p * p,
        h * h, //
        p * l * h,
        l * l * l,
        l * p * p,
        l * h * h,
        l * l * p,
        p * p * p,
        p * h * h,
        l * l * h, //
        p * p * h,
        h * h * h,
    ];
    let sum = |from: usize| (0..20).map(|i| told[from + i] * terms[i]).sum::<f64>();
    let line = sum(12) / sum(32) * told[7] + told[2];
    (line, sum(52) / sum(72) * told[8] + told[3])
}

/// Rational polynomial coefficients stayed as they were when pixels moved.
#[test]
fn rational_polynomials_told_of_places_as_they_were() {
    let mut told = vec![-1.0, -1.0, 11.5, 20.25, -42.0, 147.0, 300.0];
    told.extend([10.0, 17.0, 0.07, 0.08, 970.0]);
    told.extend((0..80).map(|i| match i {
        20 | 60 => 1.0,
        _ => f64::from(i * 37 % 23 - 11) / 1000.0,
    }));
    assert_eq!(told.len(), 92);
    let places = [
        [-42.01, 147.03, 250.0],
        [-41.97, 146.95, 800.0],
        [-42.0, 147.0, 300.0],
    ];
    for big_endian in [false, true] {
        let build = Build {
            big_endian,
            ..Build::default()
        };
        let bits: Vec<u64> = told.iter().map(|value| value.to_bits()).collect();
        let file = build
            .tag(50844, 12, &bits)
            .file(&picture(40, 24, 1, Depth::Sixteen));
        type Turned = fn(f64, f64) -> (f64, f64);
        let cases: [(&[&str], Turned); 7] = [
            (&["normalize"], |line, sample| (line, sample)),
            (&["flip", "vertical"], |line, sample| (23.0 - line, sample)),
            (&["flip", "horizontal"], |line, sample| {
                (line, 39.0 - sample)
            }),
            (&["rotate", "180"], |line, sample| {
                (23.0 - line, 39.0 - sample)
            }),
            (&["transpose"], |line, sample| (sample, line)),
            // The first row becomes the last column.
            (&["rotate", "90"], |line, sample| (sample, 23.0 - line)),
            (&["rotate", "270"], |line, sample| (39.0 - sample, line)),
        ];
        for (args, turned) in cases {
            let out = doubles(&made("in.tif", &file, args, "out.tif"), 50844).unwrap();
            for place in places {
                let (line, sample) = projected(&told, place);
                let (expected, found) = (turned(line, sample), projected(&out, place));
                let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
                let same = near(expected.0, found.0) && near(expected.1, found.1);
                assert!(same, "{args:?}: {expected:?} {found:?}");
            }
        }
    }
}

/// Places in the input were copied into the output, where something else is.
#[test]
fn metadata_held_places_in_another_file() {
    let image = picture(6, 4, 1, Depth::Sixteen);
    for (number, whose) in [(33628, "MetaMorph"), (34412, "Zeiss"), (33560, "Olympus")] {
        let file = Build::default().tag(number, 4, &[8, 9]).file(&image);
        let (run, out) = outcome("in.tif", &file, &["normalize"], "out.tif");
        let said = format!("warning: in.tif: {whose}'s own metadata");
        assert!(run.stderr.contains(&said), "{}", run.stderr);
        assert_eq!(tag(&out.unwrap(), number), None);
    }
}

/// XMP has a place in TIFF and in PNG, and was lost between them.
#[test]
fn xmp_was_lost_between_tiff_and_png() {
    let packet = "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\">Zoë</x:xmpmeta>";
    let bytes: Vec<u64> = packet.bytes().map(u64::from).collect();
    let file = Build::default()
        .tag(700, 1, &bytes)
        .file(&picture(6, 4, 1, Depth::Sixteen));
    let png = made("in.tif", &file, &VERTICAL, "out.png");
    let expected = ["XML:com.adobe.xmp\0\0\0\0\0", packet].concat();
    assert_eq!(chunk_of(&png, b"iTXt"), Some(expected.into_bytes()));
    let back = made("in.png", &png, &VERTICAL, "out.tif");
    let found: Vec<u32> = packet.bytes().map(u32::from).collect();
    assert_eq!(tag(&back, 700), Some(found));
    // What is no text stays out of it.
    let file = Build::default().tag(700, 1, &[0xff; 9]);
    let file = file.file(&picture(6, 4, 1, Depth::Sixteen));
    assert_eq!(
        chunk_of(&made("in.tif", &file, &VERTICAL, "out.png"), b"iTXt"),
        None
    );
}

/// libpng ignores a tRNS that does not fit the image, so that it has no alpha.
#[test]
fn transparency_of_more_colours_than_the_palette_made_alpha() {
    let mut mapped = Plain::noisy(9, 5, 8, 3);
    mapped.samples.iter_mut().for_each(|index| *index %= 2);
    let file = |length: usize| {
        let mut plain = mapped.clone();
        plain.before.push((*b"PLTE", vec![1, 2, 3, 4, 5, 6]));
        plain.before.push((*b"tRNS", vec![100; length]));
        plain.encoded(1)
    };
    for (length, channels) in [(1, 4), (2, 4), (3, 3), (256, 3), (0, 3)] {
        let out = words(&made("in.png", &file(length), &VERTICAL, "out.png"));
        assert_eq!(out.len(), 9 * 5 * channels, "{length}");
        let pixels: Vec<&[u16]> = out.chunks(channels).collect();
        assert!(
            pixels
                .iter()
                .all(|pixel| pixel[..3] == [1, 2, 3] || pixel[..3] == [4, 5, 6])
        );
    }
    for (colour, length, channels) in [(0, 4, 1), (2, 7, 3), (0, 2, 2), (2, 6, 4)] {
        let mut plain = Plain::noisy(9, 5, 16, colour);
        plain.before.push((*b"tRNS", vec![0; length]));
        let out = words(&made("in.png", &plain.encoded(1), &VERTICAL, "out.png"));
        assert_eq!(out.len(), 9 * 5 * channels, "{colour}, {length}");
    }
}

/// A fourth band (near infrared, say) became opacity, and a second one too.
#[test]
fn a_channel_of_no_stated_meaning_became_opacity() {
    for channels in [2, 4] {
        let image = picture(5, 4, channels, Depth::Sixteen);
        let file = Build::default().tag(338, 3, &[0]).file(&image);
        let words = "PNG cannot store a last channel of unspecified meaning (TIFF can)";
        refused("in.tif", &file, &FLIP, "out.png", words);
        refused("in.tif", &file, &["normalize"], "out.png", words);
        refused(
            "in.tif",
            &file,
            &FLIP,
            "out.ppm",
            "PNM cannot store a last channel of unspecified meaning",
        );
        let kept = made("in.tif", &file, &FLIP, "out.tif");
        assert_eq!(tag(&kept, 338), Some(vec![0]));
        let (run, out) = outcome("in.tif", &file, &["normalize"], "out.tif");
        let said =
            "warning: in.tif: its last channel has an unspecified meaning and is left unchanged";
        assert!(run.stderr.contains(said), "{}", run.stderr);
        assert_eq!(tag(&out.unwrap(), 338), Some(vec![0]));
    }
}

/// Alpha is reported, and not counted.
#[test]
fn alpha_was_counted_in_the_sum() {
    let shape = Shape::checked(2, 1, 4, Depth::Eight).unwrap();
    let image = Image::new(shape, Samples::from(vec![1u8, 2, 3, 255, 4, 5, 6, 255]));
    let folder = folder(&[("in.tif", &Build::default().file(&image))]);
    let told = run(folder.path(), &["sum", "--all", "in.tif"], &[]).stdout;
    let expected = "in.tif: sum 21, min 1, max 6, mean 3.5000 (red sum 5,";
    assert!(told.starts_with(expected), "{told}");
    assert!(told.contains("alpha sum 510, min 255"), "{told}");
    let told = run(folder.path(), &["sum", "--all", "--json", "in.tif"], &[]).stdout;
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&told["sum"], &told["max"]), (&21.into(), &6.into()));
    assert_eq!(told["mean"], 3.5);
    assert_eq!(told["channels"][3]["sum"], 510);
}

/// XMP repeats the orientation and the sides, and was not updated.
#[test]
fn xmp_told_of_the_image_as_it_was() {
    let packet = |orientation: u32, x: u32, y: u32| {
        format!(
            "<x:xmpmeta><rdf:Description tiff:Orientation=\"{orientation}\" tiff:ImageWidth=\"{x}\">\
             <tiff:ImageLength>{y}</tiff:ImageLength></rdf:Description></x:xmpmeta>"
        )
    };
    let bytes: Vec<u64> = packet(6, 6, 4).bytes().map(u64::from).collect();
    let build = Build::default().tag(700, 1, &bytes).tag(274, 3, &[6]);
    let file = build.file(&picture(6, 4, 1, Depth::Sixteen));
    let told = |file: &[u8]| -> String {
        let bytes = tag(file, 700).unwrap();
        bytes.iter().map(|&byte| byte as u8 as char).collect()
    };
    let turned = told(&made("in.tif", &file, &FLIP, "out.tif"));
    assert_eq!(turned, packet(8, 6, 4));
    let args = ["flip", "vertical", "--auto-orient"];
    let upright = told(&made("in.tif", &file, &args, "out.tif"));
    // The names have traded places: 6 is now the length.
    let exchanged = |orientation| {
        let packet = packet(orientation, 6, 4).replace("tiff:ImageWidth", "#");
        let packet = packet.replace("tiff:ImageLength", "tiff:ImageWidth");
        packet.replace('#', "tiff:ImageLength")
    };
    assert_eq!(upright, exchanged(1));
    let turned = told(&made("in.tif", &file, &["rotate", "90"], "out.tif"));
    assert_eq!(turned, exchanged(6));
    let png = made("in.tif", &file, &["normalize"], "out.png");
    let flipped = made("in.png", &png, &FLIP, "out.tif");
    assert_eq!(told(&flipped), packet(8, 6, 4));
}
