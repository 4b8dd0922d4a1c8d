//! Finds a format: by the extension of a name, the first bytes of a file, or `--format`.

use super::{Format, HEAD};
use crate::formats::{FORMATS, HEADERLESS, foreign};
use crate::os::Source;
use anyhow::{Context, Result, bail, ensure};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::path::Path;

/// The format of a file name, by its extension.
///
/// # Errors
/// A missing or unknown extension.
pub fn of_extension(path: &Path) -> Result<&'static Format> {
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    let extension = extension.to_lowercase();
    ensure!(
        !extension.is_empty(),
        "its name has no extension: add one, such as .png, or use --format png"
    );
    let format = all().find(|format| format.extensions.contains(&&*extension));
    format.with_context(|| {
        let known = written().flat_map(|format| format.extensions);
        let known: Vec<String> = known.map(|extension| format!(".{extension}")).collect();
        format!(
            "the extension .{extension} is not supported: use one of {}, or --format",
            known.join(", ")
        )
    })
}

/// Whether a file must be an image because of its name: its extension is that of a format that its first bytes show.
pub fn names_an_image(path: &Path) -> bool {
    of_extension(path).is_ok_and(|format| format != HEADERLESS)
}

/// The format of a file, by its first bytes.
///
/// # Errors
/// A file of no known format, an empty file, or one that cannot be read.
pub fn of_content(source: &Source) -> Result<&'static Format> {
    if source.is_store() {
        return listed(|format| format.is_folder).context("no format is a folder");
    }
    ensure!(!source.is_empty(), "the file is empty");
    let mut head = [0; HEAD];
    let length = source.read_up_to(&mut head, 0)?;
    let format = listed(|format| (format.sniff)(&head[..length]));
    if let Some(format) = format {
        return Ok(format);
    }
    match foreign::identify(source)? {
        Some(foreign) => bail!(
            "it is {}, which is not supported (see `gpuimg formats`): {}",
            foreign.name,
            foreign.advice
        ),
        None => bail!(
            "it is not a supported image format (see `gpuimg formats`; --raw reads samples without a header)"
        ),
    }
}

/// Reads the value of `--format`: a format's name or one of its extensions, in any case.
pub fn argument() -> impl TypedValueParser<Value = &'static Format> {
    let values = all().filter(|format| format.is_written());
    let values = values.map(|format| {
        PossibleValue::new(format.id)
            .aliases(format.extensions)
            .help(format.title)
    });
    PossibleValuesParser::new(values).try_map(|word| named(&word).context("no format of this name"))
}

/// The format with a name or an extension, in any case.
pub fn named(word: &str) -> Option<&'static Format> {
    let word = word.to_lowercase();
    all().find(|format| format.id == word || format.extensions.contains(&&*word))
}

/// The formats of the list that are written, for messages that name formats.
pub(super) fn written() -> impl Iterator<Item = &'static Format> {
    let formats = FORMATS.iter().copied();
    formats.filter(|format| format.is_written())
}

/// The first format of the list for which `is_it` holds.
fn listed(is_it: impl Fn(&Format) -> bool) -> Option<&'static Format> {
    FORMATS.iter().copied().find(|format| is_it(format))
}

/// The formats of the list, and samples without a header.
fn all() -> impl Iterator<Item = &'static Format> {
    FORMATS.iter().copied().chain([HEADERLESS])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Formats are looked up in `FORMATS`, so an extension or name that two formats share would
    /// hide the second one.
    #[test]
    fn formats_are_told_apart() {
        let mut dicom = [0; 132];
        dicom[128..].copy_from_slice(b"DICM");
        let mut words = HashSet::new();
        for format in FORMATS {
            assert!(words.insert(format.id), "{}", format.id);
            assert_eq!(format.id, format.id.to_lowercase());
            for extension in format.extensions {
                let path = Path::new("a.b").with_extension(extension.to_uppercase());
                assert!(of_extension(&path).is_ok_and(|found| found == *format));
            }
        }
        for (head, id) in [
            (&b"\x89PNG\r\n\x1a\n"[..], "png"),
            (b"II*\0\x08\0\0\0", "tiff"),
            (b"MM\0+\0\x08\0\0", "tiff"),
            (b"P5 1 1 1", "pnm"),
            (b"P7\nWIDTH", "pam"),
            (b"\x93NUMPY\x01\0", "npy"),
            (b"SIMPLE  =      T", "fits"),
            (b"NRRD0004\n", "nrrd"),
            (b"ObjectType = Image", "metaimage"),
            (b"\x1C\x02\0\0n+2\0", "nifti"),
            (&dicom[..], "dicom"),
            (b"farbfeld\0\0\0\x01", "farbfeld"),
            (b"\xFF\xD8\xFF\xE0", "jpeg"),
            (b"BM\x46\0\0\0", "bmp"),
            (b"\x76\x2f\x31\x01\x02\0\0\0", "exr"),
            (b"#?RGBE\nFORMAT", "hdr"),
            (b"RIFF\x24\0\0\0WEBPVP8 ", "webp"),
            (b"GIF89a\x01\0", "gif"),
            #[cfg(feature = "hdf5")]
            (b"\x89HDF\r\n\x1a\n\0\0", "hdf5"),
            #[cfg(feature = "jpeg2000")]
            (b"\xFF\x4F\xFF\x51\0\x29", "jpeg2000"),
            #[cfg(feature = "jpegxl")]
            (b"\xFF\x0A\xFA\x1F", "jpegxl"),
            (b"qoif\0\0\0\x01", "qoi"),
            (b"\0\0\x02\0\0\0\0\0\0\0\0\0\x01\0\x01\0\x18\x20", "tga"),
        ] {
            let sniffing = FORMATS.iter().filter(|format| (format.sniff)(head));
            let found: Vec<&str> = sniffing.map(|format| format.id).collect();
            assert_eq!(found, [id]);
        }
    }
}
