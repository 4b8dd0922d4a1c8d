//! Files that users give and that no format of the list reads: recognised by their first bytes, so that
//! the refusal names what they are and what to do. It is asked only where no format knows a file.

use crate::os::Source;
use anyhow::Result;

/// Bytes of a file's beginning that are looked at.
pub const HEAD: usize = 512;

/// A kind of file that is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// Its name with an article: `a NIfTI volume`.
    pub name: &'static str,
    /// What its user can do.
    pub advice: &'static str,
    /// Where its mark stands, and the mark.
    marks: &'static [(usize, &'static [u8])],
}

const EIGHT_BITS: &str = "convert it to PNG or TIFF first (magick in out.png); most hold 8 bits";
const MICROSCOPE: &str =
    "save it as TIFF first, with Fiji's Bio-Formats or bfconvert in out.ome.tif";
const VOLUME: &str = "save its slices as a TIFF stack first, with Fiji or ITK-SNAP";
const NUMBERS: &str = "save it as 16-bit TIFF first, with tifffile.imwrite in Python";
const UNPACK: &str = "unpack it first";
const NO_IMAGE: &str = "open it, to see what it says";

const fn kind(
    name: &'static str,
    advice: &'static str,
    marks: &'static [(usize, &'static [u8])],
) -> Foreign {
    Foreign {
        name,
        advice,
        marks,
    }
}

/// The kinds, each with all of its marks; the first that fits counts.
#[rustfmt::skip]
const KINDS: &[Foreign] = &[
    kind("a NIfTI volume", VOLUME, &[(344, b"n+1\0")]),
    kind("a NIfTI volume", VOLUME, &[(344, b"ni1\0")]),
    kind("a NIfTI volume", VOLUME, &[(4, b"n+2\0")]),
    kind("an MRC volume", VOLUME, &[(208, b"MAP ")]),
    kind("a Zeiss CZI file", MICROSCOPE, &[(0, b"ZISRAWFILE")]),
    kind("a Nikon ND2 file", MICROSCOPE, &[(0, b"\xda\xce\xbe\x0a")]),
    kind("a Leica LIF file", MICROSCOPE, &[(0, b"\x70\0\0\0"), (8, b"\x2a")]),
    kind("an OIB, ZVI or other OLE file", MICROSCOPE, &[(0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")]),
    kind("a Gatan DM3 file", MICROSCOPE, &[(0, b"\0\0\0\x03"), (8, b"\0\0\0\x01")]),
    kind("a Gatan DM4 file", MICROSCOPE, &[(0, b"\0\0\0\x04"), (12, b"\0\0\0\x01")]),
    kind("an HDF5 file", NUMBERS, &[(0, b"\x89HDF\r\n\x1a\n")]),
    kind("a MATLAB file", NUMBERS, &[(0, b"MATLAB 5.0 MAT-file")]),
    kind("a JPEG 2000 image", "convert it to TIFF first (opj_decompress -i in -o out.tif)", &[(4, b"jP  \r\n\x87\n")]),
    kind("a JPEG 2000 codestream", "convert it to TIFF first (opj_decompress -i in -o out.tif)", &[(0, b"\xff\x4f\xff\x51")]),
    kind("a JPEG XL image", "convert it to PNG first (djxl in out.png)", &[(0, b"\xff\x0a")]),
    kind("a JPEG XL image", "convert it to PNG first (djxl in out.png)", &[(4, b"JXL \r\n\x87\n")]),
    kind("an AVIF image", EIGHT_BITS, &[(4, b"ftypavif")]),
    kind("a HEIF image", EIGHT_BITS, &[(4, b"ftyphei")]),
    kind("a HEIF image", EIGHT_BITS, &[(4, b"ftypmif1")]),
    kind("a Photoshop file", "save it as TIFF first", &[(0, b"8BPS")]),
    kind("a Fujifilm raw file", "develop it to 16-bit TIFF first (dcraw -T -6)", &[(0, b"FUJIFILMCCD-RAW")]),
    kind("a PDF document", "extract its images first (pdfimages -all)", &[(0, b"%PDF")]),
    kind("a gzip file", "unpack it first (gunzip)", &[(0, b"\x1f\x8b")]),
    kind("a zip archive", "unpack it first (unzip)", &[(0, b"PK\x03\x04")]),
    kind("a tar archive", "unpack it first (tar -xf)", &[(257, b"ustar")]),
    kind("a bzip2 file", UNPACK, &[(0, b"BZh")]),
    kind("an xz file", UNPACK, &[(0, b"\xfd7zXZ\0")]),
    kind("a zstd file", UNPACK, &[(0, b"\x28\xb5\x2f\xfd")]),
    kind("a 7-Zip archive", UNPACK, &[(0, b"7z\xbc\xaf\x27\x1c")]),
    kind("a pointer of Git LFS, not the file itself", "fetch the file first (git lfs pull)", &[(0, b"version https://git-lfs")]),
    kind("a web page", NO_IMAGE, &[(0, b"<!DOCTYPE")]),
    kind("a web page", NO_IMAGE, &[(0, b"<!doctype")]),
    kind("a web page", NO_IMAGE, &[(0, b"<html")]),
    kind("an SVG or another XML file", NO_IMAGE, &[(0, b"<svg")]),
    kind("an SVG or another XML file", NO_IMAGE, &[(0, b"<?xml")]),
    kind("a histogram of gpuimg", "normalize takes it with --range-from", &[(0, b"{\"gpuimg_histogram\"")]),
];

/// The kind of a file, if its beginning is known.
///
/// # Errors
/// A file that cannot be read.
pub fn of(source: &Source) -> Result<Option<&'static Foreign>> {
    let mut head = [0; HEAD];
    let length = source.read_up_to(&mut head, 0)?;
    Ok(of_head(&head[..length]))
}

/// The kind of a file that begins with these bytes, up to `HEAD`.
pub fn of_head(head: &[u8]) -> Option<&'static Foreign> {
    let there = |&(at, mark): &(usize, &[u8])| head.get(at..at + mark.len()) == Some(mark);
    KINDS.iter().find(|kind| kind.marks.iter().all(there))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_own_marks() {
        for kind in KINDS {
            let mut head = vec![b' '; HEAD];
            for (at, mark) in kind.marks {
                head[*at..at + mark.len()].copy_from_slice(mark);
            }
            let found = of_head(&head).map(|found| found.name);
            assert_eq!(found, Some(kind.name));
            for length in 0..8 {
                assert!(of_head(&head[..length]).is_none_or(|found| found.name == kind.name));
            }
        }
        assert_eq!(of_head(b"not pixels"), None);
    }
}
