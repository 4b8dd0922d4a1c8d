//! Sums of pages that are never in memory as a whole: every row comes once, the numbers are those of the definition, and damage is
//! reported as by decoders of whole images.

use crate::support::formats::{format, written};
use crate::support::png::foreign;
use crate::support::tiff::Build;
use crate::support::{Kind, folder, image, run};
use gpuimg::internals::formats::{self, Reader, Reading};
use gpuimg::internals::image::metadata::Metadata;
use gpuimg::internals::image::{Depth, Image};
use gpuimg::internals::ops::exact::Exact;
use gpuimg::internals::ops::sum::Sum;
use gpuimg::internals::ops::{OpResult, naive};
use gpuimg::internals::os::Source;
use std::sync::Mutex;

/// Shapes of more than the 4 MiB from which on pages are taken in pieces, with rows of awkward lengths.
const SHAPES: [(usize, usize, usize, Depth); 3] = [
    (1601, 1403, 1, Depth::Sixteen),
    (1301, 1201, 3, Depth::Eight),
    (613, 1109, 4, Depth::Sixteen),
];

fn rows(image: &Image) -> Vec<Vec<u8>> {
    let row = image.shape().row() * image.shape().depth.bytes();
    let rows = image.samples().as_bytes().chunks(row);
    rows.map(<[u8]>::to_vec).collect()
}

/// The rows of all pieces, sorted; `None` where the file is not decoded so.
fn pieces(file: &[u8]) -> Option<Vec<Vec<u8>>> {
    let source = Source::memory(file.to_vec());
    let reader = Reader::open(&source, &Reading::default()).unwrap();
    let (all, width) = (Mutex::new(Vec::new()), reader.shape().width);
    if !reader.gives_blocks() {
        return None;
    }
    let taken = reader.blocks(&|piece| {
        assert_eq!(piece.shape().width, width);
        all.lock().unwrap().extend(rows(&piece));
        Ok(())
    });
    taken.unwrap();
    let mut all = all.into_inner().unwrap();
    all.sort();
    Some(all)
}

fn tiffs(image: &Image) -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    for compression in [1, 5, 8, 32773, 50000] {
        for (strip, big_endian, predictor) in [
            (usize::MAX, false, false),
            (7, true, false),
            (100, false, true),
        ] {
            // The last strip of these is all of the image.
            if compression == 1 || strip < 200 {
                files.push(Build {
                    compression,
                    strip,
                    big_endian,
                    predictor: predictor && compression != 32773,
                    ..Build::default()
                });
            }
        }
    }
    files.iter().map(|build| build.file(image)).collect()
}

#[test]
fn every_row_comes_once() {
    let mut cases = 0;
    for (width, height, channels, depth) in SHAPES {
        let image = image(width, height, channels, depth, Kind::Noise);
        let mut expected = rows(&image);
        expected.sort();
        let mut files = tiffs(&image);
        files.extend(["npy", "fits", "pam", "pnm"].iter().filter_map(|id| {
            let page = std::slice::from_ref(&image);
            written(format(id), page, &Metadata::default()).ok()
        }));
        for file in files {
            let start = String::from_utf8_lossy(&file[..8])
                .escape_debug()
                .to_string();
            for threads in [1, 3] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                let found = pool.unwrap().install(|| pieces(&file));
                assert!(
                    found.as_ref() == Some(&expected),
                    "{} {start}",
                    image.shape()
                );
                cases += 1;
            }
        }
    }
    assert!(cases >= 3 * 2 * 14, "{cases}");
}

#[test]
fn sums_are_those_of_the_definition() {
    for (width, height, channels, depth) in SHAPES {
        let image = image(width, height, channels, depth, Kind::Noise);
        let all = Sum {
            all: true,
            nan: None,
        };
        let OpResult::Totals(totals) = naive(&all, &image).unwrap().result else {
            panic!("totals")
        };
        let tiff = Build {
            compression: 8,
            strip: 33,
            ..Build::default()
        };
        let own = written(
            format("png"),
            std::slice::from_ref(&image),
            &Metadata::default(),
        );
        let root = folder(&[
            ("a.png", &foreign(&image)),
            ("b.tif", &tiff.file(&image)),
            ("c.tif", &Build::default().file(&image)),
            ("d.png", &own.unwrap()),
        ]);
        for name in ["a.png", "b.tif", "c.tif", "d.png"] {
            let run = run(
                root.path(),
                &["sum", "--all", "--json", "--device", "cpu", name],
                &[],
            );
            let line: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
            assert_eq!(line["width"], width, "{line}");
            assert_eq!(line["height"], height, "{line}");
            let told = line["channels"].as_array().unwrap();
            assert_eq!(told.len(), channels);
            for (told, total) in told.iter().zip(&totals.channels) {
                let Exact::Whole(sum) = total.sum else {
                    panic!("a whole number")
                };
                assert_eq!(told["sum"].to_string(), sum.to_string(), "{name} {line}");
                let range = (told["min"].as_u64().unwrap(), told["max"].as_u64().unwrap());
                let expected = total.range.map(|range| (range.min, range.max));
                assert_eq!(Some(range), expected, "{name}");
            }
        }
    }
}

#[test]
fn damage_is_told_as_by_those_who_decode_the_whole() {
    let image = image(1601, 1403, 1, Depth::Sixteen, Kind::Noise);
    let strips = Build {
        compression: 8,
        strip: 50,
        ..Build::default()
    };
    let pam = written(
        format("pam"),
        std::slice::from_ref(&image),
        &Metadata::default(),
    )
    .unwrap();
    let maxval = b"MAXVAL 65535";
    let at = pam
        .windows(maxval.len())
        .position(|it| it == maxval)
        .unwrap();
    let mut above = pam.clone();
    above[at + 7..at + 12].copy_from_slice(b"10000");
    for (name, file) in [
        ("a.png", foreign(&image)),
        ("a.tif", strips.file(&image)),
        ("a.pam", above),
    ] {
        let mut damaged = [file[..file.len() - 1000].to_vec(), file.clone()];
        let middle = file.len() / 2;
        damaged[1][middle] ^= 0x55;
        for (number, bytes) in damaged.iter().enumerate() {
            let root = folder(&[(name, &bytes[..])]);
            let sum = run(root.path(), &["sum", name], &[]);
            let flip = run(root.path(), &["flip", "vertical", name, "b.tif"], &[]);
            assert_eq!(
                (sum.code, &sum.stderr),
                (1, &flip.stderr),
                "{name} {number}"
            );
            assert!(
                sum.stderr.starts_with("gpuimg: cannot read a."),
                "{}",
                sum.stderr
            );
        }
    }
}

/// These are decoded as a whole, and give the same.
#[test]
fn what_is_not_taken_in_pieces() {
    let image = image(1601, 1403, 1, Depth::Sixteen, Kind::Noise);
    let tiles = Build {
        tile: Some((64, 64)),
        ..Build::default()
    };
    let own = written(
        format("png"),
        std::slice::from_ref(&image),
        &Metadata::default(),
    );
    for file in [tiles.file(&image), own.unwrap(), foreign(&image)] {
        assert!(pieces(&file).is_none());
        assert!(formats::decode(&Source::memory(file)).unwrap() == image);
    }
}
