//! Every format of the list: laws that hold of all of them, read from the list alone, and the
//! command's messages about them.

mod bands;
mod coded;
mod dicom;
mod fits;
mod hdf5;
pub mod hostile;
mod light;
pub mod literals;
mod lossy;
mod met;
mod nifti;
mod raw;
mod table;
mod tiled;
pub mod volumes;

use crate::support::formats::small_files;
use crate::support::formats::{format, formats_of_files, read, read_pages, written};
use crate::support::{Kind, folder, image, run};
use gpuimg::internals::formats::FORMATS;
use gpuimg::internals::formats::format::Capabilities;
use gpuimg::internals::image::metadata::Metadata;
use gpuimg::internals::image::{Depth, Image, Samples, Shape};

/// The kinds of images that a format says it can hold.
fn kinds(can: &Capabilities) -> Vec<(usize, Depth, bool)> {
    let mut kinds = Vec::new();
    for &channels in can.channels {
        for &depth in can.depths {
            kinds.push((channels, depth, false));
            if can.signed && !depth.is_float() {
                kinds.push((channels, depth, true));
            }
        }
    }
    kinds
}

/// What is written comes back sample by sample: every kind of image that the list promises, sizes
/// that go wrong, one page and three.
#[test]
fn every_format_gives_back_what_it_was_given() {
    let (mut formats, mut files) = (0, 0);
    for format in formats_of_files() {
        let can = format.capabilities;
        if !can.lossless {
            continue;
        }
        formats += 1;
        for (channels, depth, signed) in kinds(&can) {
            let metadata = Metadata {
                signed,
                ..Metadata::default()
            };
            for (width, height) in [(1, 1), (3, 2), (7, 1), (1, 7), (31, 33), (257, 129)] {
                for pages in [1, 3] {
                    if pages > 1 && !can.pages {
                        continue;
                    }
                    let page =
                        |page: usize| image(width + page, height, channels, depth, Kind::Noise);
                    // The same size, other contents.
                    let shape = page(0).shape();
                    let images: Vec<Image> = (0..pages)
                        .map(|i| Image::new(shape, crop(&page(i), &shape)))
                        .collect();
                    let file = written(format, &images, &metadata).unwrap();
                    let (back, known, _) = read_pages(&file).unwrap();
                    let what = format!("{} {shape} signed {signed}", format.id);
                    assert_eq!(known.signed, signed, "{what}");
                    match format.id {
                        "farbfeld" => assert_eq!(back, images.iter().map(rgba).collect::<Vec<_>>()),
                        _ => assert_eq!(back, images, "{what}"),
                    }
                    files += 1;
                }
            }
        }
    }
    // PNG, TIFF, PNM, PAM, NumPy, PFM, FITS, farbfeld, BMP.
    assert!(formats >= 9, "{formats}");
    assert!(files > 500, "{files}");
}

/// The first samples of an image, as many as a shape has.
fn crop(image: &Image, shape: &Shape) -> Samples {
    let bytes = image.samples().as_bytes()[..shape.bytes()].to_vec();
    match shape.depth {
        Depth::Eight => bytes.into(),
        Depth::Sixteen => {
            let words = bytes.chunks_exact(2);
            let words = words.map(|pair| u16::from_ne_bytes([pair[0], pair[1]]));
            Samples::from(words.collect::<Vec<u16>>())
        }
        Depth::ThirtyTwo | Depth::Float => {
            let words = bytes.as_chunks().0.iter();
            Samples::from(
                words
                    .map(|&four| u32::from_ne_bytes(four))
                    .collect::<Vec<u32>>(),
            )
        }
        Depth::Double => {
            let words = bytes.as_chunks().0.iter();
            Samples::from(
                words
                    .map(|&eight| u64::from_ne_bytes(eight))
                    .collect::<Vec<u64>>(),
            )
        }
    }
}

/// farbfeld's only kind of pixel, one at a time.
fn rgba(image: &Image) -> Image {
    let shape = image.shape();
    let Samples::U16(samples) = image.samples() else {
        panic!("16 bits")
    };
    let mut pixels = Vec::new();
    for pixel in samples.chunks(shape.channels) {
        let colour = |c: usize| pixel[if shape.channels < 3 { 0 } else { c }];
        let alpha = if shape.has_alpha() {
            pixel[shape.channels - 1]
        } else {
            65535
        };
        pixels.extend([colour(0), colour(1), colour(2), alpha]);
    }
    let shape = Shape {
        channels: 4,
        ..shape
    };
    Image::new(shape, pixels.into())
}

/// Pages of different sizes go into TIFF, and are refused by formats that say pages are of one kind.
#[test]
fn pages_of_two_sizes_are_refused_or_kept() {
    let pages = [(30, 20), (20, 30)].map(|(w, h)| image(w, h, 1, Depth::Sixteen, Kind::Noise));
    for format in formats_of_files().filter(|format| format.capabilities.pages) {
        let file = written(format, &pages, &Metadata::default());
        match format.id {
            "tiff" => assert_eq!(read_pages(&file.unwrap()).unwrap().0, pages),
            _ => assert_eq!(
                format!("{:#}", file.unwrap_err()),
                "page 2 is 20×30 grey, 16 bits, but the first is 30×20 grey, 16 bits: all pages of a file of this format have one shape"
            ),
        }
    }
}

#[test]
fn the_table_is_that_of_the_list() {
    let root = folder(&[]);
    let table = run(root.path(), &["formats"], &[]);
    assert_eq!((table.code, table.stderr.as_str()), (0, ""));
    let lines: Vec<&str> = table.stdout.lines().collect();
    for (format, line) in FORMATS.iter().zip(&lines[1..]) {
        let can = format.capabilities;
        assert!(line.starts_with(format.name), "{line}");
        assert_eq!(line.contains("written"), format.is_written(), "{line}");
        assert_eq!(
            line.contains("lossy"),
            !can.lossless && format.is_written(),
            "{line}"
        );
        assert_eq!(line.contains("signed"), can.signed, "{line}");
        assert_eq!(line.contains(" many "), can.pages, "{line}");
        for extension in format.extensions {
            assert!(line.contains(&format!(".{extension}")), "{line}");
        }
    }
    let json = run(root.path(), &["formats", "--json"], &[]);
    let rows: Vec<serde_json::Value> = (json.stdout.lines())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(rows.len(), FORMATS.len());
    for (format, row) in FORMATS.iter().zip(&rows) {
        let can = format.capabilities;
        assert_eq!(row["id"], format.id);
        assert_eq!(row["written"], format.is_written());
        assert_eq!(
            row["channels"].as_array().unwrap().len(),
            can.channels.len()
        );
    }
}

/// One file of every format in a folder, a text and a file of another kind: all images are taken up
/// by their content alone, planned, and come out with the same samples as by themselves.
#[test]
fn a_folder_of_all_formats() {
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    for (id, file) in small_files() {
        files.push((format!("in/{id}"), file));
    }
    let images = files.len();
    files.push(("in/notes".into(), b"P0 no image at all".to_vec()));
    files.push((
        "in/font".into(),
        b"\0\x01\0\0\0\x12\x01\0\0\x04\0\x20GDEF\0\0\0\0".to_vec(),
    ));
    let named: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(name, file)| (&**name, &**file))
        .collect();
    let root = folder(&named);
    let root = root.path();
    let plan = run(
        root,
        &["transpose", "in", "out", "--format", "tiff", "--dry-run"],
        &[],
    );
    assert_eq!(plan.code, 0, "{}{}", plan.stdout, plan.stderr);
    assert!(
        plan.stdout
            .contains(&format!("{images} files: {images} to do")),
        "{}",
        plan.stdout
    );
    let all = run(root, &["transpose", "in", "out", "--format", "tiff"], &[]);
    assert_eq!(all.code, 0, "{}", all.stderr);
    assert!(all.stderr.contains("2 × not an image"), "{}", all.stderr);
    for (name, _) in &files[..images] {
        let turned = name.replace("in/", "out/") + ".tif";
        let back = run(
            root,
            &["transpose", &turned, "back.tif", "--overwrite"],
            &[],
        );
        assert_eq!(back.code, 0, "{}", back.stderr);
        let same = run(root, &["verify", name, "back.tif"], &[]);
        assert_eq!(
            (same.code, same.stdout.as_str()),
            (0, "equal\n"),
            "{name}: {}",
            same.stderr
        );
    }
}

#[test]
fn what_cannot_be_written_is_said_before_anything_is_touched() {
    let alpha = image(3, 2, 4, Depth::Eight, Kind::Noise);
    let alpha = written(format("png"), &[alpha], &Metadata::default()).unwrap();
    let grey = image(3, 2, 1, Depth::Sixteen, Kind::Noise);
    let grey = written(format("pnm"), &[grey], &Metadata::default()).unwrap();
    let root = folder(&[
        ("alpha.png", &alpha),
        ("in/grey.pgm", &grey),
        ("in/a.webp", b"x"),
    ]);
    for (line, code, words) in [
        (
            "flip vertical in/grey.pgm a.xyz",
            2,
            "the extension .xyz is not supported: use one of .png, .tif, .tiff, .pnm",
        ),
        (
            "flip vertical in/grey.pgm a.webp",
            2,
            "cannot write a.webp: WebP is read-only (choose another with --format: png, tiff, pnm,",
        ),
        (
            "flip vertical in/grey.pgm a --format gif",
            2,
            "--format gif: expected png, tiff,",
        ),
        (
            "flip vertical in/grey.pgm a.jpg --quality 0",
            2,
            "a number from 1 to 100",
        ),
        (
            "flip vertical in/grey.pgm a.pfm",
            1,
            "cannot write a.pfm: PFM cannot store samples of 16 bits",
        ),
        (
            "flip vertical alpha.png a.ff",
            1,
            "farbfeld cannot store samples of 8 bits (--depth 16 makes them 16 bits; PNG,",
        ),
        (
            "flip vertical alpha.png a.jpg",
            1,
            "JPEG cannot store an alpha channel (PNG, TIFF,",
        ),
        (
            "flip vertical alpha.png a.fits",
            1,
            "FITS cannot store an alpha channel (PNG, TIFF,",
        ),
        (
            "flip vertical in/grey.pgm out/ --name {stem}.tga",
            1,
            "TGA is read-only",
        ),
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let run = run(root.path(), &args, &[]);
        assert_eq!(run.code, code, "{line}: {}", run.stderr);
        assert!(run.stderr.contains(words), "{line}: {}", run.stderr);
        let mut names = crate::support::listing(root.path());
        names.retain(|name| name != "out");
        assert_eq!(names, ["alpha.png", "in"], "{line}");
    }
    // A plan foresees it.
    let plan = run(
        root.path(),
        &["normalize", "in", "o", "--format", "pfm", "--dry-run"],
        &[],
    );
    assert_eq!(plan.code, 1);
    assert!(
        plan.stdout.contains("PFM cannot store samples of 16 bits"),
        "{}",
        plan.stdout
    );
    for line in [
        "flip vertical in/grey.pgm a.jpg --depth 8",
        "flip vertical in/grey.pgm a.ff",
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        assert_eq!(run(root.path(), &args, &[]).code, 0, "{line}");
    }
}
