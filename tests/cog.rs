//! Cloud-optimized TIFF files (`--tiff-layout cog`): a file by hand, overviews, and that such a file is one image.
//! `tests/interop/cog_files.py` reads files of every type with tifffile and GDAL, and asks rio-cogeo's validator.

use crate::support::batch::pgm;
use crate::support::formats::read_pages;
use crate::support::stacks::{pages, stack};
use crate::support::tiff_images::{message, picture, written};
use crate::support::{Kind, Run, folder, image, listing, run};
use gpuimg::internals::formats::tiff::{CogEncoder, Compression};
use gpuimg::internals::formats::{Encoder, PageSurvey};
use gpuimg::internals::image::metadata::Metadata;
use gpuimg::internals::image::{Depth, Image, Samples, Shape};
use serde_json::Value;
use std::borrow::Cow;
use std::fs;
use std::path::Path;

const COMPRESSIONS: [&str; 4] = ["none", "deflate", "lzw", "zstd"];

fn gpuimg(folder: &Path, command: &str) -> Run {
    let args: Vec<&str> = command.split(' ').collect();
    run(folder, &args, &[("GPUIMG_DEVICE", "cpu")])
}

/// Runs a command that succeeds.
fn done(folder: &Path, command: &str) -> Run {
    let done = gpuimg(folder, command);
    assert_eq!(done.code, 0, "{command}: {}", done.stderr);
    done
}

/// The numbers of two bytes from an offset on.
fn shorts<const N: usize>(file: &[u8], at: usize) -> [u16; N] {
    std::array::from_fn(|i| u16::from_le_bytes([file[at + 2 * i], file[at + 2 * i + 1]]))
}

/// A LONG.
fn long(file: &[u8], at: usize) -> usize {
    u32::from_le_bytes(file[at..at + 4].try_into().expect("4 bytes")) as usize
}

/// The only value of a field, or the offset of its values, in the directory at an offset.
fn value(file: &[u8], directory: usize, tag: u16) -> Option<usize> {
    let [count] = shorts(file, directory);
    let mut entries = (0..usize::from(count)).map(|index| directory + 2 + 12 * index);
    let entry = entries.find(|&entry| shorts(file, entry) == [tag])?;
    Some(long(file, entry + 8))
}

/// 514 × 2 pixels are two tiles, and one tile of half the size, which comes first; its pixels are the means of 2 × 2:
/// (20k + 20k + 10 + 20k + 1 + 20k + 11) / 4 = 20k + 5.5, rounded half up.
#[test]
fn a_file_by_hand() {
    let shape = Shape {
        width: 514,
        height: 2,
        channels: 1,
        depth: Depth::Sixteen,
    };
    let samples: Vec<u16> = (0..2)
        .flat_map(|y| (0..514).map(move |x| 10 * x + y))
        .collect();
    let file = stack(
        &[Image::new(shape, Samples::U16(samples.into()))],
        &Metadata::default(),
    );
    let place = folder(&[("in.tif", &file)]);
    done(place.path(), "convert in.tif out.tif --tiff-layout cog");
    let file = fs::read(place.path().join("out.tif")).expect("a file");
    assert_eq!(file[..8], *b"II\x2a\0\x08\0\0\0");
    let [count] = shorts(&file, 8);
    let second = long(&file, 10 + 12 * usize::from(count));
    let fields = |directory| [254, 256, 257, 322, 323].map(|tag| value(&file, directory, tag));
    assert_eq!(fields(8), [None, Some(514), Some(2), Some(512), Some(512)]);
    assert_eq!(
        fields(second),
        [Some(1), Some(257), Some(1), Some(512), Some(512)]
    );
    let [count] = shorts(&file, second);
    assert_eq!(long(&file, second + 2 + 12 * usize::from(count)), 0);
    let tile = 512 * 512 * 2;
    let overview = value(&file, second, 324).expect("offset");
    let full = value(&file, 8, 324).expect("offsets");
    assert!(second < overview);
    assert_eq!(
        [long(&file, full), long(&file, full + 4)],
        [overview + tile, overview + 2 * tile]
    );
    assert_eq!(file.len(), overview + 3 * tile);
    let row = 512 * 2;
    assert_eq!(shorts(&file, overview), [6, 26, 46]);
    assert_eq!(shorts(&file, overview + 2 * 255), [5106, 5126, 0]);
    assert_eq!(shorts(&file, overview + row), [0, 0]);
    assert_eq!(shorts(&file, overview + tile), [0, 10, 20]);
    assert_eq!(shorts(&file, overview + tile + row), [1, 11, 21]);
    assert_eq!(shorts(&file, overview + tile + 2 * row), [0, 0]);
    assert_eq!(shorts(&file, overview + 2 * tile), [5120, 5130, 0]);
}

/// An overview whose sides are whole parts of the full size is what --fit makes of the image, with every compression.
#[test]
fn overviews_are_those_of_fit() {
    let noise = image(2052, 1028, 1, Depth::Sixteen, Kind::Noise);
    let place = folder(&[("in.tif", &stack(&[noise], &Metadata::default()))]);
    let root = place.path();
    for (page, longer) in [(1, 2052), (2, 1026), (3, 513)] {
        done(root, &format!("convert in.tif {page}.npy --fit {longer}"));
    }
    for compression in COMPRESSIONS {
        done(
            root,
            &format!("convert in.tif {compression}.tif --tiff-layout cog --tiff {compression}"),
        );
        for page in 1..=3 {
            let level = format!("convert {compression}.tif level.npy --pages {page} --overwrite");
            done(root, &level);
            let [level, fit] = ["level.npy".into(), format!("{page}.npy")]
                .map(|name: String| fs::read(root.join(name)).expect("a file"));
            assert!(level == fit, "{compression} {page}");
        }
    }
}

/// Bands of rows, whatever their height, give the file of the whole image; nothing remains of the temporary file.
#[test]
fn bands_of_rows_give_the_same_file() {
    for (width, height, channels) in [(700, 1500, 1), (513, 512, 3), (3, 2, 4)] {
        let noise = picture(width, height, channels, Depth::Sixteen);
        let place = folder(&[("in.tif", &stack(&[noise], &Metadata::default()))]);
        let root = place.path();
        for compression in COMPRESSIONS {
            let convert = format!(
                "convert in.tif out.tif --overwrite --tiff-layout cog --tiff {compression}"
            );
            done(root, &convert);
            let whole = fs::read(root.join("out.tif")).expect("a file");
            let args: Vec<&str> = convert.split(' ').chain(["--low-memory"]).collect();
            let env = [("GPUIMG_DEVICE", "cpu"), ("GPUIMG_NO_TMPFILE", "1")];
            let bands = run(root, &args, &env);
            assert_eq!((bands.code, &*bands.stderr), (0, ""), "{compression}");
            assert!(
                fs::read(root.join("out.tif")).expect("a file") == whole,
                "{compression}"
            );
            assert_eq!(listing(root), ["in.tif", "out.tif"]);
        }
    }
}

#[test]
fn a_file_is_read_back_as_one_image() {
    for channels in 1..=4 {
        let original = picture(1030, 520, channels, Depth::Eight);
        let place = folder(&[(
            "in.tif",
            &stack(std::slice::from_ref(&original), &Metadata::default()),
        )]);
        let root = place.path();
        for compression in COMPRESSIONS {
            done(
                root,
                &format!(
                    "rotate 90 in.tif cog.tif --tiff-layout cog --tiff {compression} --overwrite"
                ),
            );
            done(root, "rotate 270 cog.tif back.tif --overwrite");
            let back = fs::read(root.join("back.tif")).expect("a file");
            assert!(
                read_pages(&back).expect("a TIFF").0 == [original.clone()],
                "{channels} {compression}"
            );
        }
        let facts: Value =
            serde_json::from_str(&done(root, "info cog.tif --json").stdout).expect("JSON");
        assert_eq!(facts["pages"], 1, "{facts}");
    }
}

#[test]
fn several_pages_are_refused_with_the_way_out() {
    let two = [1, 2].map(|_| picture(7, 5, 1, Depth::Sixteen));
    let place = folder(&[("in.tif", &stack(&two, &Metadata::default()))]);
    let root = place.path();
    let refused = gpuimg(root, "convert in.tif out.tif --tiff-layout cog");
    let words = "a cloud-optimized TIFF holds one image, not 2 pages: use --split to write a file for each, or --tiff-layout strips";
    let stderr = refused.stderr;
    assert!(refused.code == 1 && stderr.contains(words), "{stderr}");
    assert_eq!(listing(root), ["in.tif"]);
    done(root, "convert in.tif out --split --tiff-layout cog");
    let parts = listing(&root.join("out"));
    assert_eq!(parts.len(), 2, "{parts:?}");
    for name in parts {
        let part = fs::read(root.join("out").join(name)).expect("a page");
        assert_eq!(pages(&part).len(), 1);
    }
}

/// A batch writes them, --resume keeps those of the same layout only, and `prove` derives the same bytes.
#[test]
fn batches_resume_and_reports_are_proven() {
    let place = folder(&[("in/a.pgm", &pgm(600, 520, 1)), ("in/b.pgm", &pgm(5, 4, 2))]);
    let root = place.path();
    let command =
        "normalize in out --format tiff --tiff-layout cog --tiff zstd --resume --report r.jsonl";
    done(root, command);
    let proof = done(root, "prove r.jsonl");
    assert!((proof.stdout + &proof.stderr).contains("2 proven by bytes"));
    let stderr = done(root, command).stderr;
    assert!(stderr.contains("2 already done"), "{stderr}");
    let other = done(root, "normalize in out --format tiff --tiff zstd --resume").stderr;
    assert!(other.contains("2 of 2 files done"), "{other}");
}

/// The rule of all TIFF files: a BigTIFF if the worst case exceeds 4 GiB, here by metadata.
#[test]
fn large_files_are_big_tiffs() {
    let original = picture(520, 3, 1, Depth::Sixteen);
    for compression in [Compression::None, Compression::Deflate] {
        let survey = PageSurvey {
            metadata_bytes: 3 << 30,
            ..original.shape().into()
        };
        let file = written(|target| {
            let mut encoder = CogEncoder::new(target, compression, &[survey])?;
            encoder.page(Cow::Borrowed(&original), &Metadata::default())?;
            Ok(encoder.length())
        });
        let file = file.expect("a file");
        assert_eq!(file[..16], *b"II\x2b\0\x08\0\0\0\x10\0\0\0\0\0\0\0");
        assert!(read_pages(&file).expect("a TIFF").0 == [original.clone()]);
    }
}

#[test]
fn an_encoder_takes_one_page() {
    let page = PageSurvey::from(picture(7, 5, 1, Depth::Sixteen).shape());
    let refused = written(|target| {
        CogEncoder::new(target, Compression::None, &[page; 3]).map(|encoder| encoder.length())
    });
    assert!(message(refused).contains("one image, not 3 pages"));
}
