//! The order of files: that of numbers in their names, and of positions in a volume.

use crate::support::dicom::Build;
use crate::support::{folder, run_on_cpu};
use std::path::Path;

/// A PGM of one sample.
fn pgm(value: u16) -> Vec<u8> {
    [&b"P5 1 1 65535\n"[..], &value.to_be_bytes()].concat()
}

/// A DICOM file of 3 × 2 equal samples at a position along the axis of the patient.
fn slice(value: u16, position: &'static str, orientation: &'static str) -> Vec<u8> {
    let build = Build::default()
        .text((0x20, 0x32), position)
        .text((0x20, 0x37), orientation);
    build.file(&value.to_le_bytes().repeat(6), None)
}

/// The sums of the pages of an image.
fn sums(root: &Path, name: &str) -> Vec<u64> {
    let done = run_on_cpu(root, &["sum", name, "--json"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let sum = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["sum"].as_u64();
    done.stdout.lines().map(|line| sum(line).unwrap()).collect()
}

fn stack(root: &Path, args: &[&str]) -> String {
    let done = run_on_cpu(root, &[&["convert", "--stack"], args].concat());
    assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
    done.stderr
}

#[test]
fn slice_10_came_before_slice_2() {
    let files =
        [1, 2, 3, 10, 11, 12].map(|number: u16| (format!("in/IM{number}.pgm"), pgm(number)));
    let files: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(name, bytes)| (&name[..], &bytes[..]))
        .collect();
    let root = folder(&files);
    let root = root.path();
    assert_eq!(stack(root, &["in", "all.tif"]), "");
    assert_eq!(sums(root, "all.tif"), [1, 2, 3, 10, 11, 12]);
    // As a shell gives them: kept, with a warning.
    let told = stack(
        root,
        &["in/IM1.pgm", "in/IM10.pgm", "in/IM2.pgm", "typed.tif"],
    );
    assert!(
        told.contains(
            "in/IM10.pgm comes before in/IM2.pgm: the names are in the order of their letters"
        ),
        "{told}"
    );
    assert_eq!(sums(root, "typed.tif"), [1, 10, 2]);
    // An order of one's own.
    assert_eq!(
        stack(
            root,
            &["in/IM10.pgm", "in/IM1.pgm", "in/IM2.pgm", "own.tif"]
        ),
        ""
    );
    assert_eq!(sums(root, "own.tif"), [10, 1, 2]);
}

#[test]
fn slices_of_a_volume_were_in_the_order_of_their_names() {
    const AXIAL: &str = "1\\0\\0\\0\\1\\0";
    const SAGITTAL: &str = "0\\1\\0\\0\\0\\-1";
    let root = folder(&[
        ("reversed/a.dcm", &slice(1, "0\\0\\5.5", AXIAL)),
        ("reversed/b.dcm", &slice(2, "0\\0\\-2.5", AXIAL)),
        ("reversed/c.dcm", &slice(3, "0\\0\\-10", AXIAL)),
        ("sorted/a.dcm", &slice(1, "0\\0\\-10", AXIAL)),
        ("sorted/b.dcm", &slice(2, "9\\0\\-2.5", AXIAL)),
        // The normal points to −x.
        ("sagittal/a.dcm", &slice(1, "10\\0\\0", SAGITTAL)),
        ("sagittal/b.dcm", &slice(2, "-10\\0\\0", SAGITTAL)),
        // Two volumes, and images that are not parallel, have no order of their own.
        ("twice/a.dcm", &slice(1, "0\\0\\5", AXIAL)),
        ("twice/b.dcm", &slice(2, "0\\0\\4", AXIAL)),
        ("twice/c.dcm", &slice(3, "0\\0\\5", AXIAL)),
        ("mixed/a.dcm", &slice(1, "0\\0\\5", AXIAL)),
        ("mixed/b.dcm", &slice(2, "0\\0\\4", SAGITTAL)),
        ("unplaced/a.dcm", &slice(1, "0\\0\\5", AXIAL)),
        ("unplaced/b.dcm", &slice(2, "0\\0", AXIAL)),
    ]);
    let root = root.path();
    const TOLD: &str = "its slices are sorted by their positions (ImagePositionPatient)";
    for (name, pages, is_sorted) in [
        ("reversed", &[3, 2, 1][..], true),
        ("sorted", &[1, 2], false),
        ("sagittal", &[1, 2], false),
        ("twice", &[1, 2, 3], false),
        ("mixed", &[1, 2], false),
        ("unplaced", &[1, 2], false),
    ] {
        let output = format!("{name}.tif");
        let told = stack(root, &[name, &output]);
        assert_eq!(told.contains(TOLD), is_sorted, "{name}: {told}");
        let expected: Vec<u64> = pages.iter().map(|page| 6 * page).collect();
        assert_eq!(sums(root, &output), expected, "{name}");
    }
}

#[test]
fn the_output_that_was_forgotten_was_the_last_input() {
    let root = folder(&[("a.pgm", &pgm(1)), ("b.pgm", &pgm(2))]);
    let done = run_on_cpu(root.path(), &["project", "max", "a.pgm", "b.pgm"]);
    assert_eq!(done.code, 1, "{}", done.stderr);
    assert!(
        done.stderr
            .contains("b.pgm: it already exists, and it is the last name"),
        "{}",
        done.stderr
    );
    assert_eq!(std::fs::read(root.path().join("b.pgm")).unwrap(), pgm(2));
}

#[test]
fn eight_bits_of_a_dark_image_were_black_without_a_word() {
    let image = |value: u16| [&b"P5 30 20 65535\n"[..], &value.to_be_bytes().repeat(600)].concat();
    let root = folder(&[("dark.pgm", &image(3900)), ("bright.pgm", &image(4200))]);
    for (args, is_dark) in [
        (&["convert", "dark.pgm", "a.jpg"][..], true),
        (&["convert", "dark.pgm", "a.png", "--depth", "8"], true),
        (&["rotate", "90", "dark.pgm", "b.png", "--depth", "8"], true),
        (&["convert", "dark.pgm", "c.png"], false),
        (&["convert", "bright.pgm", "d.png", "--depth", "8"], false),
    ] {
        let done = run_on_cpu(root.path(), args);
        assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
        assert_eq!(
            done.stderr.contains("almost black"),
            is_dark,
            "{args:?}: {}",
            done.stderr
        );
    }
}

/// `normalize` and `preview` were told to use `normalize` or `preview`.
#[test]
fn a_dark_result_of_a_given_range_was_explained_by_the_wrong_reason() {
    let flat = [&b"P5 30 20 65535\n"[..], &[0x0F, 0x3C].repeat(600)].concat();
    let root = folder(&[("flat.pgm", &flat)]);
    for verb in [
        &["normalize", "--range", "0:65535"][..],
        &["run", "normalize --range 0:65535 + rotate 90"],
    ] {
        let words = [verb, &["--depth", "8", "flat.pgm", "a.png", "--overwrite"]].concat();
        let done = run_on_cpu(root.path(), &words);
        let advice = "almost black: its values fill little of the range (use --clip 0.1:99.9";
        assert!(done.stderr.contains(advice), "{words:?}: {}", done.stderr);
    }
    // A flat image cannot be scaled.
    let done = run_on_cpu(root.path(), &["preview", "flat.pgm", "b.jpg"]);
    assert!(!done.stderr.contains("almost black"), "{}", done.stderr);
}

#[test]
fn words_of_other_programs_are_answered() {
    let root = folder(&[("a.pgm", &pgm(1))]);
    for (line, told) in [
        (
            "convert a.pgm -rotate 90 b.png",
            "has no option -rotate: rotate is a verb",
        ),
        (
            "convert a.pgm -resize 50% b.png",
            "has no option -resize: use --fit N",
        ),
        (
            "rotate -90 a.pgm b.png",
            "has no option -90: angles are clockwise",
        ),
        ("colormap a.pgm b.png", "use gpuimg lut viridis IN OUT"),
        (
            "normalize a.pgm b.png --gamma 2",
            "use normalize --curve gamma:2.2",
        ),
        ("normalize a.pgm -rj b.png", "has no option -rj"),
        (
            "convert --raw mono12p a.pgm b.png",
            "write WIDTHxHEIGHT:TYPE, as 640x512:u16le",
        ),
        (
            "convert --raw 5x5:u16le a.pgm b.png",
            "or the width, height or type of --raw is wrong",
        ),
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let done = run_on_cpu(root.path(), &args);
        assert_ne!(done.code, 0, "{line}");
        assert!(done.stderr.contains(told), "{line}: {}", done.stderr);
    }
}
