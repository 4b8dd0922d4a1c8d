//! Files of other projects that came out wrong (`tests/files/`), and files like them written here. The values are those that
//! other readers agree on.

use crate::support::{folder, repository, run};
use std::fs;

/// A file of `tests/files/`.
fn file(name: &str) -> Vec<u8> {
    fs::read(repository("tests/files").join(name)).expect("a file of tests/files")
}

/// The data of the first chunk of this type in a PNG.
fn chunk(png: &[u8], kind: &[u8; 4]) -> Vec<u8> {
    let at = png.windows(4).position(|window| window == kind);
    let at = at.expect("the chunk");
    let length = u32::from_be_bytes(png[at - 4..at].try_into().expect("four bytes"));
    png[at + 4..][..length as usize].to_vec()
}

/// The names of sides were exchanged by way of a NUL, and every NUL of the packet became one of the names: those before the
/// text of an iTXt chunk, so that no reader saw an XMP packet any more.
#[test]
fn nuls_of_xmp_became_names_after_quarter_turns() {
    let png = file("xmp_tags_orientation_exiftool.png");
    let folder = folder(&[("in.png", &png)]);
    for degrees in ["90", "180", "270"] {
        let result = run(
            folder.path(),
            &["rotate", degrees, "in.png", "out.png", "--overwrite"],
            &[],
        );
        assert_eq!(result.code, 0, "{}", result.stderr);
        let turned = chunk(&fs::read(folder.path().join("out.png")).unwrap(), b"iTXt");
        assert!(turned.starts_with(b"XML:com.adobe.xmp\0\0\0\0\0<?xpacket"));
        let text = String::from_utf8(turned).unwrap();
        // Both sides are equal: their names change places and their order in the text.
        assert_eq!(text.matches("tiff:XResolution").count(), 2, "{text}");
        assert_eq!(text.matches("tiff:YResolution").count(), 2, "{text}");
        assert!(!text.contains("tiff:ImageLength"), "{text}");
    }
}

/// The sum that is printed of an image file; of the samples of a text of options.
fn sum(name: &str, file: &[u8]) -> String {
    let folder = folder(&[(name, file)]);
    let result = run(folder.path(), &["sum", name], &[("GPUIMG_DEVICE", "cpu")]);
    assert_eq!(result.code, 0, "{}", result.stderr);
    let line = result.stdout.lines().next().expect("a line");
    let sum = line.split_once("sum ").expect("a sum").1;
    sum.split(' ').next().expect("a number").into()
}

/// Samples of 24 bits are packed as those of 12 are, and have no byte order; those of little-endian files were read with their
/// bytes reversed.
#[test]
fn packed_samples_of_three_bytes_were_reversed() {
    assert_eq!(sum("a.tif", &file("seq-1c-24b-072a9dc9.tiff")), "32640");
}
