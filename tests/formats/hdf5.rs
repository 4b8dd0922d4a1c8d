//! HDF5 and NeXus: files of h5py, whose values are known, and addresses.

use crate::support::formats::{SIGNED, STACK, read_pages, refused};
use crate::support::{Run, folder, run};
use gpuimg::internals::formats::{Reader, Reading};
use gpuimg::internals::image::Samples;
use gpuimg::internals::os::Source;
use std::path::Path;

/// Big-endian words with a sign, which memory has with half the range added.
#[test]
fn words_with_a_sign() {
    let (pages, metadata, _) = read_pages(SIGNED).unwrap();
    let values = [1, 2, -3, 4, -32768, 32767].map(|value: i32| (value + 32768) as u16);
    assert_eq!(pages[0].samples(), &Samples::U16(values.to_vec().into()));
    assert_eq!((pages.len(), metadata.signed), (1, true));
}

/// Two planes in chunks that do not divide them, with three filters; `default` and `signal` select the dataset.
#[test]
fn planes_of_chunks() {
    let (pages, metadata, _) = read_pages(STACK).unwrap();
    for (page, first) in pages.iter().zip([0, 35]) {
        let values = (first..first + 35).map(|i: u32| (i * 901 % 65536) as u16);
        let values: Vec<u16> = values.collect();
        assert_eq!(page.samples(), &Samples::U16(values.into()));
    }
    assert_eq!((pages.len(), metadata.signed), (2, false));
}

fn listed(result: &Run) -> Vec<&str> {
    result.stdout.lines().collect()
}

fn in_folder(folder: &Path, command: &str) -> Run {
    run(folder, &command.split(' ').collect::<Vec<_>>(), &[])
}

#[test]
fn an_address_selects_a_dataset() {
    let folder = folder(&[("scan.nxs", STACK)]);
    let folder = folder.path();
    let facts = in_folder(folder, "info scan.nxs");
    assert_eq!(
        listed(&facts),
        [
            "scan.nxs:/entry/data/counts: HDF5, 7×5 grey, 16 bits, 2 pages, 2355 bytes",
            "scan.nxs:/entry/data/mask: HDF5, 7×5 grey, 8 bits, 2355 bytes",
        ]
    );
    for (name, sum) in [
        ("scan.nxs:/entry/data/mask", ": sum 35"),
        ("scan.nxs:/entry/data/mask/", ": sum 35"),
        ("scan.nxs:/entry/data/counts", "page 2: sum 1639820"),
        ("scan.nxs:/entry", "page 2: sum 1639820"),
        ("scan.nxs:/", "page 2: sum 1639820"),
        ("scan.nxs", "page 2: sum 1639820"),
    ] {
        let result = in_folder(folder, &format!("sum {name}"));
        let last = result.stdout.trim();
        assert!(last.ends_with(sum), "{name}: {last}: {}", result.stderr);
    }
    let results = "convert scan.nxs:/entry/data/mask scan.nxs:/entry/data/counts out --format tif";
    assert_eq!(in_folder(folder, results).code, 0);
    for name in ["scan-entry-data-mask.tif", "scan-entry-data-counts.tif"] {
        assert!(folder.join("out").join(name).is_file(), "{name}");
    }
    let region = in_folder(folder, "crop 1,1,3x2 scan.nxs:/entry/data/mask part.npy");
    assert_eq!(region.code, 0, "{}", region.stderr);
}

/// A file of the whole name comes before an address in another.
#[test]
fn a_file_of_the_whole_name_wins() {
    let folder = folder(&[("a.h5", SIGNED), ("a.h5:/image", STACK)]);
    let result = in_folder(folder.path(), "sum a.h5:/image");
    assert!(
        result.stdout.contains("page 2: sum 1639820"),
        "{}",
        result.stderr
    );
}

#[test]
fn refusals() {
    let folder = folder(&[
        ("scan.nxs", STACK),
        ("a.h5", SIGNED),
        ("a.pgm", b"P5 1 1 1 \x01"),
    ]);
    for (name, words) in [
        (
            "scan.nxs:/entry/none",
            "it has no dataset /entry/none: its images are /entry/data/counts, /entry/data/mask",
        ),
        ("a.h5:/notes", "samples of text are not supported"),
        ("a.pgm:/image", "PNM files have no datasets"),
        ("none.h5:/image", "no such file"),
    ] {
        let result = in_folder(folder.path(), &format!("sum {name}"));
        assert!(result.stderr.contains(words), "{name}: {}", result.stderr);
        assert_eq!(result.code, 1);
    }
    refused(b"\x89HDF\r\n\x1a\n and more", "its structure is damaged");
    // A changed byte of a header.
    let at = STACK.windows(6).position(|text| text == b"signal").unwrap();
    let mut file = STACK.to_vec();
    file[at] = b'S';
    refused(&file, "a checksum");
}

/// Axes of 2¹⁸ × 2¹⁸ samples in a file of 2 KB.
#[test]
fn axes_of_more_samples_than_the_file_can_hold() {
    let axes = [2u64, 3].map(u64::to_le_bytes).concat();
    let at = SIGNED.windows(16).position(|bytes| bytes == axes).unwrap();
    let mut file = SIGNED.to_vec();
    file[at..at + 16].copy_from_slice(&[1u64 << 18, 1 << 18].map(u64::to_le_bytes).concat());
    let source = Source::memory(file);
    let error = Reader::open(&source, &Reading::default()).err().unwrap();
    let error = format!("{error:#}");
    assert!(error.contains("2064 bytes are too few"), "{error}");
}
