//! Memory that one image leaves to the next: nothing of it shows. In debug builds all such memory is
//! poisoned before it is written (`buffer::POISON`), so that a sample left unwritten shows even where
//! the memory is new.

use crate::support::contract::words;
use crate::support::png::Plain;
use crate::support::tiff::Build;
use crate::support::tiff_images::picture;
use crate::support::{folder, run};
use gpuimg::internals::image::buffer::{Buffer, POISON};
use gpuimg::internals::image::{Depth, Image, Samples};
use std::fs;

/// Sides of images whose samples take more than the pool's smallest block (64 KiB) as 8 bits too.
const SIDES: (u64, u64) = (301, 257);

#[test]
fn memory_to_be_written_is_poisoned() {
    if !cfg!(debug_assertions) {
        return crate::support::skipped("poisoned memory: only debug builds have it");
    }
    for len in [1, 1000, 100_000, 5 << 20] {
        let bytes = Buffer::<u8>::any(len).unwrap();
        assert!(bytes.iter().all(|&byte| byte == POISON), "{len}");
    }
}

fn samples(image: &Image) -> Vec<u16> {
    match image.samples() {
        Samples::U16(words) => words.to_vec(),
        Samples::U8(bytes) => bytes.iter().map(|&byte| byte.into()).collect(),
        Samples::U32(_) | Samples::U64(_) => panic!("8 or 16 bits were expected"),
    }
}

/// Files of every layout, with what a flip makes of each (nothing: whatever is there of a damaged file,
/// and 0 elsewhere).
fn files() -> Vec<(String, Vec<u8>, Option<Vec<u16>>)> {
    let mut files = Vec::new();
    let flipped = |image: &Image| -> Vec<u16> {
        let rows = samples(image);
        let rows = rows.chunks(image.shape().row()).rev();
        rows.flatten().copied().collect()
    };
    for (channels, depth) in [(1, Depth::Eight), (3, Depth::Sixteen), (4, Depth::Sixteen)] {
        let image = picture(SIDES.0, SIDES.1, channels, depth);
        for compression in [1, 5, 8, 32773, 50000] {
            for tile in [None, Some((64, 48))] {
                for (padded, predictor) in [(false, false), (true, false), (true, compression == 5)]
                {
                    let build = Build {
                        compression,
                        tile,
                        padded,
                        predictor,
                        strip: 10,
                        big_endian: padded,
                        ..Build::default()
                    };
                    let name = format!("{:03}.tif", files.len());
                    files.push((name, build.file(&image), Some(flipped(&image))));
                }
                // Cut off in the middle: the directory claims to be before the samples.
                let build = Build {
                    compression,
                    tile,
                    strip: 10,
                    ..Build::default()
                };
                let mut file = build.file(&image);
                let counts = if tile.is_some() { 325 } else { 279 };
                let number = crate::support::contract::tag(&file, counts).unwrap().len() as u64;
                // Sparse: every chunk but the first is missing.
                let offsets = if tile.is_some() { 324 } else { 273 };
                let first = crate::support::contract::tag(&file, counts).unwrap()[0];
                let mut sizes = vec![0; number as usize];
                sizes[0] = u64::from(first);
                let mut places = vec![0; number as usize];
                places[0] = 8;
                let sparse = build.tag(counts, 4, &sizes).tag(offsets, 4, &places);
                files.push((format!("{:03}.tif", files.len()), sparse.file(&image), None));
                // Damaged in the middle.
                let middle = file.len() / 2;
                file[middle..middle + 2000].fill(0xff);
                files.push((format!("{:03}.tif", files.len()), file, None));
            }
        }
    }
    for (bits, colour, interlaced) in [(1, 0, false), (8, 2, true), (16, 6, true), (16, 0, false)] {
        let (width, height) = (SIDES.0 as usize, SIDES.1 as usize);
        let mut plain = Plain::noisy(width, height, bits, colour);
        plain.interlaced = interlaced;
        let file = plain.encoded(1);
        let cut = file[..file.len() / 2].to_vec();
        files.push((format!("{:03}.png", files.len()), file, None));
        files.push((format!("{:03}.png", files.len()), cut, None));
    }
    let mut pgm = format!("P5 {} {} 65535\n", SIDES.0, SIDES.1).into_bytes();
    pgm.extend(vec![7; (SIDES.0 * SIDES.1) as usize]);
    files.push((format!("{:03}.pgm", files.len()), pgm, None));
    files
}

/// One worker does file after file, each in the memory of the ones before, which were of all bits set;
/// alone, each gives the same.
#[test]
fn nothing_of_an_earlier_image_shows() {
    let files = files();
    let mut all: Vec<(String, Vec<u8>)> = Vec::new();
    for (name, file, _) in &files {
        // Before each, images that fill the pool.
        let shape = picture(SIDES.0, SIDES.1, 4, Depth::Sixteen).shape();
        let bright = Image::new(shape, Samples::from(vec![0xbeef_u16; shape.samples()]));
        if all.len().is_multiple_of(8) {
            all.push((
                format!("in/{name}.bright.tif"),
                Build::default().file(&bright),
            ));
        }
        all.push((format!("in/{name}"), file.clone()));
    }
    let borrowed: Vec<(&str, &[u8])> = (all.iter())
        .map(|(name, file)| (name.as_str(), file.as_slice()))
        .collect();
    let folder = folder(&borrowed);
    let args = ["flip", "vertical", "--keep-going", "--device", "cpu"];
    let together = [&args[..], &["--jobs", "1", "in", "out"]].concat();
    let found = run(folder.path(), &together, &[]);
    assert_eq!(found.code, 1, "{}", found.stderr);
    let mut cases = 0;
    for (name, _, expected) in &files {
        let out = fs::read(folder.path().join("out").join(name)).ok();
        let (input, alone) = (format!("in/{name}"), format!("alone-{name}"));
        run(folder.path(), &[&args[..], &[&input, &alone]].concat(), &[]);
        let alone = fs::read(folder.path().join(alone)).ok();
        assert!(out == alone, "{name}");
        let Some(out) = out else { continue };
        let out = words(&out);
        if let Some(expected) = expected {
            assert!(&out == expected, "{name}");
        }
        let poison = u16::from_ne_bytes([POISON; 2]);
        let unwritten = out
            .windows(8)
            .any(|eight| eight == [poison; 8] || eight == [0xbeef; 8]);
        assert!(!unwritten, "{name}");
        cases += 1;
    }
    assert_eq!(cases, files.len());
}
