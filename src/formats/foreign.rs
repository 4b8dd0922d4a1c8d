//! Files of formats that are not supported, recognised by their first bytes, so that the message names their format and what
//! to do. They are only looked for in a file that no supported format recognises.

use crate::os::Source;
use anyhow::Result;

/// Bytes at the beginning of a file that are inspected.
pub const HEAD: usize = 512;

/// A kind of file that is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// Its name with an article: `an MRC volume`.
    pub name: &'static str,
    /// What its user can do.
    pub advice: &'static str,
    /// Offsets in the file, and the bytes that are there.
    marks: &'static [(usize, &'static [u8])],
}

const EIGHT_BITS: &str = "convert it to PNG or TIFF first (magick in out.png)";
const MICROSCOPE: &str =
    "save it as TIFF first, with Fiji's Bio-Formats or bfconvert in out.ome.tif";
const VOLUME: &str = "save its slices as a TIFF stack first, with Fiji or ITK-SNAP";
const NUMBERS: &str = "save it as 16-bit TIFF first, with tifffile.imwrite in Python";
const UNPACK: &str = "unpack it first";
const NO_IMAGE: &str = "open it in a text editor: it may be an error message instead of an image";

const fn foreign(
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
    foreign("a NIfTI header without samples", "save header and samples as one .nii file first, with nibabel or ITK-SNAP", &[(344, b"ni1\0")]),
    foreign("a NIfTI header without samples", "save header and samples as one .nii file first, with nibabel or ITK-SNAP", &[(4, b"ni2\0")]),
    foreign("an MRC volume", VOLUME, &[(208, b"MAP ")]),
    foreign("a Zeiss CZI file", MICROSCOPE, &[(0, b"ZISRAWFILE")]),
    foreign("a Nikon ND2 file", MICROSCOPE, &[(0, b"\xda\xce\xbe\x0a")]),
    foreign("a Leica LIF file", MICROSCOPE, &[(0, b"\x70\0\0\0"), (8, b"\x2a")]),
    foreign("an OIB, ZVI or other OLE file", MICROSCOPE, &[(0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")]),
    foreign("a Gatan DM3 file", MICROSCOPE, &[(0, b"\0\0\0\x03"), (8, b"\0\0\0\x01")]),
    foreign("a Gatan DM4 file", MICROSCOPE, &[(0, b"\0\0\0\x04"), (12, b"\0\0\0\x01")]),
    foreign("an HDF5 file", NUMBERS, &[(0, b"\x89HDF\r\n\x1a\n")]),
    foreign("a MATLAB file", NUMBERS, &[(0, b"MATLAB 5.0 MAT-file")]),
    foreign("a JPEG 2000 image", "convert it to TIFF first (opj_decompress -i in -o out.tif)", &[(4, b"jP  \r\n\x87\n")]),
    foreign("a JPEG 2000 codestream", "convert it to TIFF first (opj_decompress -i in -o out.tif)", &[(0, b"\xff\x4f\xff\x51")]),
    foreign("a JPEG XL image", "convert it to PNG first (djxl in out.png)", &[(0, b"\xff\x0a")]),
    foreign("a JPEG XL image", "convert it to PNG first (djxl in out.png)", &[(4, b"JXL \r\n\x87\n")]),
    foreign("an AVIF image", EIGHT_BITS, &[(4, b"ftypavif")]),
    foreign("a HEIF image", EIGHT_BITS, &[(4, b"ftyphei")]),
    foreign("a HEIF image", EIGHT_BITS, &[(4, b"ftypmif1")]),
    foreign("a Photoshop file", "save it as TIFF first", &[(0, b"8BPS")]),
    foreign("a Fujifilm raw file", "develop it to 16-bit TIFF first (dcraw -T -6)", &[(0, b"FUJIFILMCCD-RAW")]),
    foreign("a PDF document", "extract its images first (pdfimages -all)", &[(0, b"%PDF")]),
    foreign("a gzip file", "unpack it first (gunzip)", &[(0, b"\x1f\x8b")]),
    foreign("a zip archive", "unpack it first (unzip)", &[(0, b"PK\x03\x04")]),
    foreign("a tar archive", "unpack it first (tar -xf)", &[(257, b"ustar")]),
    foreign("a bzip2 file", UNPACK, &[(0, b"BZh")]),
    foreign("an xz file", UNPACK, &[(0, b"\xfd7zXZ\0")]),
    foreign("a zstd file", UNPACK, &[(0, b"\x28\xb5\x2f\xfd")]),
    foreign("a 7-Zip archive", UNPACK, &[(0, b"7z\xbc\xaf\x27\x1c")]),
    foreign("a pointer of Git LFS, not the file itself", "fetch the file first (git lfs pull)", &[(0, b"version https://git-lfs")]),
    foreign("a web page", NO_IMAGE, &[(0, b"<!DOCTYPE")]),
    foreign("a web page", NO_IMAGE, &[(0, b"<!doctype")]),
    foreign("a web page", NO_IMAGE, &[(0, b"<html")]),
    foreign("an SVG or another XML file", NO_IMAGE, &[(0, b"<svg")]),
    foreign("an SVG or another XML file", NO_IMAGE, &[(0, b"<?xml")]),
    foreign("a histogram of gpuimg", "normalize takes it with --range-from", &[(0, b"{\"gpuimg_histogram\"")]),
];

/// The kind of a file, if its first bytes are known.
///
/// # Errors
/// A file that cannot be read.
pub fn identify(source: &Source) -> Result<Option<&'static Foreign>> {
    let mut head = [0; HEAD];
    let length = source.read_up_to(&mut head, 0)?;
    Ok(identify_head(&head[..length]))
}

/// The kind of a file that begins with these bytes, up to `HEAD`.
pub fn identify_head(head: &[u8]) -> Option<&'static Foreign> {
    let has_mark = |&(at, mark): &(usize, &[u8])| head.get(at..at + mark.len()) == Some(mark);
    KINDS.iter().find(|kind| kind.marks.iter().all(has_mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_identified_by_its_own_marks() {
        for kind in KINDS {
            let mut head = vec![b' '; HEAD];
            for (at, mark) in kind.marks {
                head[*at..at + mark.len()].copy_from_slice(mark);
            }
            let name = identify_head(&head).map(|foreign| foreign.name);
            assert_eq!(name, Some(kind.name));
            for length in 0..8 {
                assert!(
                    identify_head(&head[..length]).is_none_or(|foreign| foreign.name == kind.name)
                );
            }
        }
        assert_eq!(identify_head(b"not pixels"), None);
    }
}
