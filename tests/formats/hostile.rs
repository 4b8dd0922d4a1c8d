//! Files that lie, that end early and that are damaged: an error or the image, never a panic, and
//! never memory for pixels that are not there.

use super::dicom;
use crate::support::formats::{dictionary, gif, hdr, npy, small_exr, small_files, webp};
use crate::support::formats::{format, read, refused, written};
use crate::support::{Kind, Numbers, folder, image, run};
use gpuimg::internals::image::metadata::Metadata;
use gpuimg::internals::image::{Depth, Image};

/// Every prefix is an error, or has lost nothing but what follows the samples.
#[test]
fn truncated_at_every_byte() {
    for (id, file) in small_files() {
        let (whole, ..) = read(&file).unwrap_or_else(|error| panic!("{id}: {error:#}"));
        let mut errors = 0;
        for size in 0..file.len() {
            match read(&file[..size]) {
                Ok((image, ..)) => assert_eq!(image, whole, "{id} cut at {size}"),
                Err(_) => errors += 1,
            }
        }
        assert!(errors > 10, "{id}: {errors}");
    }
    for id in ["npy", "fits", "pam", "farbfeld", "jpeg"] {
        let (_, file) = small_files()
            .into_iter()
            .find(|(name, _)| name == id)
            .unwrap();
        // FITS is padded after its samples.
        let samples = if id == "fits" {
            2880 + 39
        } else {
            file.len() - 1
        };
        for size in 60..=samples {
            match read(&file[..size]) {
                Ok(_) => panic!("{id} cut at {size}"),
                Err(error) => {
                    let error = format!("{error:#}");
                    assert!(error.contains("truncated"), "{id} cut at {size}: {error}");
                }
            }
        }
    }
}

/// Every byte of every small file with other values: an error or an image.
#[test]
fn damaged_at_every_byte() {
    let mut cases = 0;
    for (_, file) in small_files() {
        for at in 0..file.len().min(400) {
            for value in [
                0,
                1,
                0x20,
                0x39,
                0x7F,
                0x80,
                0xFF,
                file[at] ^ 1,
                file[at] ^ 0x80,
            ] {
                let mut damaged = file.clone();
                damaged[at] = value;
                let _ = read(&damaged);
                cases += 1;
            }
        }
    }
    assert!(cases > 10_000, "{cases}");
}

/// Several edits at once, at repeatable random; `GPUIMG_MUTATIONS` says how many files of each.
#[test]
fn damaged_at_random() {
    let count = std::env::var("GPUIMG_MUTATIONS").ok();
    let count: u64 = count.and_then(|count| count.parse().ok()).unwrap_or(300);
    let mut numbers = Numbers::new(7);
    let mut read_all_the_same = 0;
    for (_, file) in small_files() {
        for _ in 0..count {
            let mut damaged = file.clone();
            for _ in 0..=numbers.next() % 6 {
                // The header more often than the samples.
                let most = [16, 64, 400, usize::MAX][(numbers.next() >> 9) as usize % 4];
                let at = (numbers.next() >> 5) as usize % damaged.len().min(most).max(1);
                let value = (numbers.next() >> 11) as u8;
                match (numbers.next() >> 7) % 5 {
                    0 | 1 if at < damaged.len() => damaged[at] = value,
                    2 if at < damaged.len() => damaged[at] ^= 1 << (value & 7),
                    3 => damaged.insert(at.min(damaged.len()), value),
                    4 if damaged.len() > 8 => {
                        damaged.remove(at);
                    }
                    _ => {}
                }
            }
            read_all_the_same += usize::from(read(&damaged).is_ok());
        }
    }
    // Not each format's: a PNG's checksums tell of nearly every change.
    assert!(
        count < 300 || read_all_the_same > 100,
        "{read_all_the_same}"
    );
}

/// Headers that promise more than there is, in the words of the user; none takes memory for it.
#[test]
fn sizes_that_are_not_there() {
    let tall = |id| {
        let page = image(3, 2, 1, Depth::Eight, Kind::Noise);
        written(format(id), &[page], &Metadata::default()).unwrap()
    };
    let mut bmp = tall("bmp");
    bmp[18..26].copy_from_slice(b"\xFF\xFF\xFF\x7F\xFF\xFF\xFF\x7F");
    refused(&bmp, "");
    let mut jpeg = tall("jpeg");
    let frame = jpeg
        .windows(2)
        .position(|pair| pair == b"\xFF\xC0")
        .unwrap();
    jpeg[frame + 5..frame + 9].copy_from_slice(b"\xFF\xFF\xFF\xFF");
    refused(&jpeg, "bytes are too few for 65535×65535 pixels");
    refused(b"qoif\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x03\0", "");
    refused(
        b"qoif\0\0\x40\0\0\0\x40\0\x03\0\xFE\x0a\x14\x1e\xC4\0\0\0\0\0\0\0\x01",
        "bytes are too few for 16384×16384 pixels",
    );
    refused(
        b"\0\0\x0A\0\0\0\0\0\0\0\0\0\xFF\xFF\xFF\xFF\x18\x20\x83\x01\x02\x03",
        "bytes are too few for 65535×65535 pixels",
    );
    let mut gif = gif(false, 0, 3);
    for place in [6, 24] {
        gif[place..place + 4].copy_from_slice(b"\xFF\xFF\xFF\xFF");
    }
    refused(&gif, "bytes are too few for 65535×65535 pixels");
}

/// The same with little address space: the message, not an abort.
#[test]
fn hostile_headers_under_a_limit_of_memory() {
    let mut files = Vec::new();
    let mut webp = webp(3);
    // The sides of a lossless WebP are 14 bits each after its signature 0x2F.
    webp[21..25].copy_from_slice(&[0xFF, 0xFF, 0xFF, 0x0F]);
    files.push(("a.webp", webp));
    files.push((
        "a.npy",
        npy(1, &dictionary("<u2", "(9999999, 9999999)"), b"x"),
    ));
    files.push((
        "a.pam",
        b"P7\nWIDTH 9999999\nHEIGHT 9999999\nDEPTH 4\nMAXVAL 9\nENDHDR\nx".to_vec(),
    ));
    files.push(("a.ff", b"farbfeld\0\xFF\xFF\xFF\0\xFF\xFF\xFFx".to_vec()));
    files.push(("a.hdr", hdr("", "-Y 99999999 +X 99999999", b"abcd")));
    files.push(("a.dcm", dicom::huge()));
    let mut exr = small_exr();
    let window = exr.windows(6).position(|name| name == b"dataWi").unwrap();
    exr[window + 29..window + 37].copy_from_slice(b"\xFF\xFF\xFF\x0F\xFF\xFF\xFF\x0F");
    files.push(("a.exr", exr));
    files.push(("a.ppm", b"P3 9999999 9999999 255 1".to_vec()));
    let named: Vec<(&str, &[u8])> = files.iter().map(|(name, file)| (*name, &**file)).collect();
    let root = folder(&named);
    for (name, _) in &files {
        let run = run(
            root.path(),
            &["sum", name, "--max-pixels", "100000000000000"],
            &[],
        );
        assert_eq!(run.code, 1, "{name}: {}", run.stderr);
        assert!(
            run.stderr
                .starts_with(&format!("gpuimg: cannot read {name}: ")),
            "{}",
            run.stderr
        );
    }
}

/// What can be read of a damaged file is taken where that is asked for, the rest being 0.
#[test]
fn keep_going_takes_what_is_there() {
    let page = image(64, 64, 1, Depth::Eight, Kind::Narrow);
    for id in ["npy", "fits", "pam", "jpeg"] {
        let file = written(
            format(id),
            std::slice::from_ref(&page),
            &Metadata::default(),
        )
        .unwrap();
        let cut = file.len()
            - if id == "fits" {
                2880 - 1216 + 1000
            } else {
                300
            };
        let root = folder(&[("a", &file[..cut])]);
        let plain = run(root.path(), &["flip", "vertical", "a", "b.png"], &[]);
        assert_eq!(plain.code, 1);
        assert!(plain.stderr.contains("truncated"), "{id}: {}", plain.stderr);
        let taken = run(
            root.path(),
            &["flip", "vertical", "a", "b.png", "--keep-going"],
            &[],
        );
        assert_eq!(taken.code, 1, "{}", taken.stderr);
        let made = std::fs::read(root.path().join("b.png"))
            .unwrap_or_else(|_| panic!("{id}: {}", taken.stderr));
        let (image, ..) = read(&made).unwrap();
        assert_eq!(image.shape(), page.shape());
        let samples = |image: &Image| image.samples().as_bytes().to_vec();
        // The first rows are the last now.
        let (rows, turned) = (samples(&page), samples(&image));
        if id != "jpeg" {
            assert_eq!(rows[..64], turned[63 * 64..], "{id}");
            assert_eq!(turned[..64], [0; 64], "{id}");
        }
    }
}

/// A damaged file may lack samples; the list of the pages that it claims took 8 GB.
#[test]
fn more_pages_than_bytes_took_memory_although_none_was_there() {
    for pages in ["999999999", "99999999999999"] {
        let raw = format!("--raw=33x2x3:u16be:{pages}");
        let root = folder(&[("a.raw", &[7; 118])]);
        let args = ["flip", "vertical", "a.raw", "b.tif", "--keep-going", &raw];
        let run = run(root.path(), &args, &[]);
        assert_eq!(run.code, 1);
        let said = "gpuimg: cannot read a.raw: truncated at byte 118 of ";
        assert!(run.stderr.starts_with(said), "{}", run.stderr);
        assert!(!root.path().join("b.tif").exists());
    }
}
