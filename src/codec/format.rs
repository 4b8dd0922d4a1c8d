//! The interface of a file format: how its files are recognised, what they can hold, and its
//! decoder and encoder. Each format is one file or folder and one line in `FORMATS`.

use super::deflated::Deflated;
use super::error_policy::ErrorPolicy;
use super::item::Item;
use super::packed::{Packed, Unsuited};
use super::{FORMATS, Options, foreign};
use crate::files::{Source, Target};
use crate::image::{Depth, Image, Shape};
use crate::metadata::{Alpha, Diagnostics, Metadata, Own, Transform};
use anyhow::{Context, Result, bail, ensure};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::borrow::Cow;
use std::fmt;
use std::path::Path;

/// Bytes at the beginning of a file by which its format is recognised.
pub const HEAD: usize = 32;

/// A format of image files.
pub trait Format: fmt::Debug + Sync {
    /// The format's name in sentences: `PNG`.
    fn name(&self) -> &'static str;

    /// The format's name for `--format`: `png`.
    fn id(&self) -> &'static str;

    /// The format's full name, for the help.
    fn title(&self) -> &'static str;

    /// The extensions of its file names, in lower case; new files get the first one.
    fn extensions(&self) -> &'static [&'static str];

    /// Whether a file that begins with these bytes, up to `HEAD`, is of this format.
    fn sniff(&self, head: &[u8]) -> bool;

    /// Refuses a file name that would be untrue of an image of this shape.
    ///
    /// # Errors
    /// The name that would be true.
    fn check_name(&self, _path: &Path, _shape: &Shape) -> Result<()> {
        Ok(())
    }

    /// The capabilities of its files.
    fn capabilities(&self) -> Capabilities;

    /// Opens a decoder, reading the file's header. With `damaged`, a damaged file is opened as far
    /// as possible.
    ///
    /// # Errors
    /// A damaged file, or a kind of file that the format's decoder does not support.
    fn decoder<'a>(&self, source: &'a Source, damaged: bool) -> Result<Box<dyn Decoder + 'a>>;

    /// Creates an encoder for pages of these shapes and bytes of metadata. By default the format is
    /// only read.
    ///
    /// # Errors
    /// A file that cannot be written, or shapes that the format cannot hold.
    fn encoder<'a>(
        &self,
        _target: &'a Target,
        _options: &Options,
        _pages: &[(Shape, u64)],
    ) -> Result<Box<dyn Encoder + 'a>> {
        bail!("{} is only read", self.name())
    }

    /// Keeps the metadata of this format's own kind true after an operation; what cannot be kept true is
    /// left out, and `diagnostics` says so.
    fn follow(&self, _: &mut Metadata, _: &Transform, _: &mut Diagnostics) {}

    /// The metadata of this format's own kind in neutral terms; nothing of another format's.
    fn items(&self, _: &Own) -> Vec<Item> {
        Vec::new()
    }

    /// Converts metadata that only some format has (`own`) to this format's own. Calls `leave` with
    /// the name of every part that this format has no place for; by default, of all parts.
    fn adopt(&self, _: &Metadata, own: Own, leave: &mut dyn FnMut(String)) -> Own {
        own.names().into_iter().for_each(leave);
        Own::None
    }
}

impl PartialEq for dyn Format {
    fn eq(&self, other: &dyn Format) -> bool {
        self.id() == other.id()
    }
}

/// The capabilities of a format's files.
#[derive(Clone, Copy, Debug)]
pub struct Capabilities {
    /// Whether files are written; all formats are read.
    pub written: bool,
    /// Whether samples come back from a file as they were written.
    pub lossless: bool,
    /// Whether a file can hold several images.
    pub pages: bool,
    /// The channels that a pixel can have.
    pub channels: &'static [usize],
    /// The depths of samples.
    pub depths: &'static [Depth],
    /// Whether samples can be signed.
    pub signed: bool,
    /// Whether 0 can stand for white in grey images.
    pub white_is_zero: bool,
    /// The meanings that a channel beside grey or colours can have; empty if no such channel is
    /// possible.
    pub alpha: &'static [Alpha],
    /// The neutral metadata fields that the format can store.
    pub fields: &'static [Field],
}

/// Metadata that some formats cannot store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Field {
    /// The largest value that samples can have.
    Maxval,
    /// How many bits of each channel are significant.
    Significant,
    /// The symmetry that brings the image upright for display.
    Orientation,
    /// Pixels in a unit of length.
    Resolution,
    /// Texts, as a description.
    Texts,
    /// Exif data.
    Exif,
    /// An ICC profile.
    Profile,
    /// An XMP packet.
    Xmp,
    /// Keyword records of a FITS header.
    Records,
}

/// Decodes a file whose header has been read.
pub trait Decoder {
    /// How many images the file holds.
    fn pages(&self) -> usize {
        1
    }

    /// The shape of a page, counted from 0, and the size of its metadata in bytes; does not select
    /// the page.
    ///
    /// # Errors
    /// A damaged or unsupported page.
    fn survey(&self, page: usize) -> Result<(Shape, u64)>;

    /// Whether a page is a reduced-resolution copy of another page, or a mask.
    ///
    /// # Errors
    /// A damaged page.
    fn is_reduced(&self, _page: usize) -> Result<bool> {
        Ok(false)
    }

    /// Refuses a page that is a thumbnail of a larger image stored inside it, as cameras write it.
    ///
    /// # Errors
    /// The size of the full image, and what to do.
    fn check_full(&self, _page: usize) -> Result<()> {
        Ok(())
    }

    /// Selects a page, counted from 0. A new decoder has page 0 selected.
    ///
    /// # Errors
    /// A damaged or unsupported page.
    fn turn_to(&mut self, _page: usize) -> Result<()> {
        Ok(())
    }

    /// The shape of the image that `decode` gives.
    fn shape(&self) -> Shape;

    /// The page's metadata. Everything that cannot be kept is named in `diagnostics`.
    ///
    /// # Errors
    /// A file that cannot be read.
    fn metadata(&self, diagnostics: &mut Diagnostics) -> Result<Metadata>;

    /// Whether pages can be given as compressed data of a PNG, for others to decode.
    fn gives_packed(&self) -> bool {
        false
    }

    /// The compressed data of the selected page, checked as far as possible without inflating
    /// them; the page can still be decoded afterwards.
    ///
    /// # Errors
    /// Why only `decode` decodes the page.
    fn packed(&self) -> Result<Packed, Unsuited> {
        Err(Unsuited::new("it is no PNG"))
    }

    /// Decodes the selected page; called once for each page.
    ///
    /// # Errors
    /// Damage, unless the policy is to go on.
    fn decode(&mut self, policy: &ErrorPolicy) -> Result<Image>;
}

/// Encodes a file page by page.
pub trait Encoder {
    /// Adds a page. Its own metadata are already in this format's form.
    ///
    /// # Errors
    /// A file that cannot be written, and an image that the format cannot hold.
    fn page(&mut self, image: Cow<Image>, metadata: &Metadata) -> Result<()>;

    /// Whether pages can come as deflated PNG data.
    fn takes_deflated(&self) -> bool {
        false
    }

    /// As `page`, for pixels that are already deflated.
    ///
    /// # Errors
    /// As `page`'s.
    fn deflated_page(&mut self, _page: &Deflated, _metadata: &Metadata) -> Result<()> {
        bail!("deflated pixels belong into a PNG")
    }

    /// Bytes written so far; after the last page, the file's length.
    fn length(&self) -> u64;
}

/// The format of a file name, by its extension.
///
/// # Errors
/// A missing or unknown extension.
pub fn of_extension(path: &Path) -> Result<&'static dyn Format> {
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    let extension = extension.to_lowercase();
    ensure!(
        !extension.is_empty(),
        "its name has no extension to tell the format by: give it one, as .png, or say --format png"
    );
    let format = find(|format| format.extensions().contains(&&*extension));
    format.with_context(|| {
        let known = written().flat_map(|format| format.extensions());
        let known: Vec<String> = known.map(|extension| format!(".{extension}")).collect();
        format!(
            "the extension .{extension} stands for no format that is written: {} (or say --format)",
            known.join(", ")
        )
    })
}

/// The format of a file, by its first bytes.
///
/// # Errors
/// A file of no known format, an empty file, or one that cannot be read.
pub fn of_content(source: &Source) -> Result<&'static dyn Format> {
    ensure!(!source.is_empty(), "the file is empty");
    let mut head = [0; HEAD];
    let length = source.read_up_to(&mut head, 0)?;
    let format = find(|format| format.sniff(&head[..length]));
    if let Some(format) = format {
        return Ok(format);
    }
    match foreign::of(source)? {
        Some(foreign) => bail!(
            "it is {}, which is not read (`gpuimg formats` lists what is): {}",
            foreign.name,
            foreign.advice
        ),
        None => bail!("it is no image of a format that is read (`gpuimg formats` lists them)"),
    }
}

/// Reads the value of `--format`: a format's name or one of its extensions, in any case.
pub fn argument() -> impl TypedValueParser<Value = &'static dyn Format> {
    let values = written().map(|format| {
        PossibleValue::new(format.id())
            .aliases(format.extensions())
            .help(format.title())
    });
    PossibleValuesParser::new(values).try_map(|word| {
        let word = word.to_lowercase();
        let found = find(|format| format.id() == word || format.extensions().contains(&&*word));
        found.context("no format of this name")
    })
}

fn written() -> impl Iterator<Item = &'static dyn Format> {
    let formats = FORMATS.iter().copied();
    formats.filter(|format| format.capabilities().written)
}

/// Refuses to write a format that is only read.
///
/// # Errors
/// A sentence that names the formats that are written.
pub fn check_written(format: &dyn Format) -> Result<()> {
    ensure!(
        format.capabilities().written,
        "{} is only read (--format says another: {})",
        format.name(),
        listed(written().map(|format| format.id()).collect(), "or")
    );
    Ok(())
}

/// Refuses a depth that the format cannot hold.
///
/// # Errors
/// A sentence that names the formats that can, and the other depth.
pub fn check_depth(format: &dyn Format, depth: Depth) -> Result<()> {
    let other = match depth {
        Depth::Eight => 16,
        Depth::Sixteen => 8,
    };
    ensure!(
        format.capabilities().depths.contains(&depth),
        "{} has no samples of {} bits (--depth {other} makes them {other} bits; {})",
        format.name(),
        depth.bits(),
        those(|can| can.depths.contains(&depth), "has", "have")
    );
    Ok(())
}

fn find(is_it: impl Fn(&dyn Format) -> bool) -> Option<&'static dyn Format> {
    FORMATS.iter().copied().find(|format| is_it(*format))
}

/// Refuses pages of these shapes where the format cannot hold them, before anything is decoded.
///
/// # Errors
/// Those of `check_written`, `check_pages` and `check_depth`.
pub fn check_output(format: &dyn Format, shapes: &[Shape]) -> Result<()> {
    check_written(format)?;
    check_pages(format, shapes.len())?;
    (shapes.iter()).try_for_each(|shape| check_depth(format, shape.depth))
}

/// Refuses a number of pages that one file of a format cannot hold.
///
/// # Errors
/// More than one page for a format that holds one.
pub fn check_pages(format: &dyn Format, pages: usize) -> Result<()> {
    ensure!(
        pages == 1 || format.capabilities().pages,
        "{pages} pages do not go into one {} file: --pages N takes one, and {}",
        format.name(),
        those(|can| can.pages, "holds all", "hold all")
    );
    Ok(())
}

/// Refuses an image that the format cannot hold, or whose samples have a meaning that it cannot
/// express.
///
/// # Errors
/// A sentence that names the formats that can.
pub fn check(format: &dyn Format, shape: &Shape, metadata: &Metadata) -> Result<()> {
    let (name, can) = (format.name(), format.capabilities());
    ensure!(
        can.signed || !metadata.signed,
        "{name} has no signed samples ({}; normalize makes them unsigned)",
        those(|can| can.signed, "has", "have")
    );
    ensure!(
        can.white_is_zero || !metadata.white_is_zero,
        "{name} has no grey whose 0 is white ({})",
        those(|can| can.white_is_zero, "has", "have")
    );
    ensure!(
        metadata.alpha != Alpha::Associated || can.alpha.contains(&Alpha::Associated),
        "{name} has no alpha that colours are multiplied by ({})",
        those(|can| can.alpha.contains(&Alpha::Associated), "has", "have")
    );
    ensure!(
        metadata.alpha != Alpha::Unspecified || can.alpha.contains(&Alpha::Unspecified),
        "{name} has no channel of no stated meaning, which its last one is ({})",
        those(|can| can.alpha.contains(&Alpha::Unspecified), "has", "have")
    );
    // After what some alpha channels need beside, so that the formats named are those that can.
    ensure!(
        !can.alpha.is_empty() || !shape.has_alpha(),
        "{name} has no alpha channel ({})",
        those(|can| !can.alpha.is_empty(), "has", "have")
    );
    ensure!(
        can.channels.contains(&shape.channels),
        "{name} has no images of {} ({})",
        shape.kind(),
        those(|can| can.channels.contains(&shape.channels), "has", "have")
    );
    check_depth(format, shape.depth)
}

/// The formats with a capability, followed by the matching verb: `PNG and TIFF have`.
fn those(can: impl Fn(&Capabilities) -> bool, has: &str, have: &str) -> String {
    let formats = written().filter(|format| can(&format.capabilities()));
    let names: Vec<&str> = formats.map(|format| format.name()).collect();
    let verb = if names.len() == 1 { has } else { have };
    format!("{} {verb}", listed(names, "and"))
}

/// `a, b or c`.
fn listed(names: Vec<&str>, word: &str) -> String {
    match &names[..] {
        [] => "none".into(),
        [one] => (*one).into(),
        [first @ .., last] => format!("{} {word} {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Formats are looked up in `FORMATS`, so an extension or name that two formats share would
    /// hide the second one.
    #[test]
    fn formats_are_told_apart() {
        let mut words = HashSet::new();
        for format in FORMATS {
            assert!(words.insert(format.id()), "{}", format.id());
            assert_eq!(format.id(), format.id().to_lowercase());
            for extension in format.extensions() {
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
            (b"farbfeld\0\0\0\x01", "farbfeld"),
            (b"\xFF\xD8\xFF\xE0", "jpeg"),
            (b"BM\x46\0\0\0", "bmp"),
            (b"RIFF\x24\0\0\0WEBPVP8 ", "webp"),
            (b"GIF89a\x01\0", "gif"),
            (b"qoif\0\0\0\x01", "qoi"),
            (b"\0\0\x02\0\0\0\0\0\0\0\0\0\x01\0\x01\0\x18\x20", "tga"),
        ] {
            let sniffing = FORMATS.iter().filter(|format| format.sniff(head));
            let found: Vec<&str> = sniffing.map(|format| format.id()).collect();
            assert_eq!(found, [id]);
        }
    }

    #[test]
    fn sentences_list_the_formats_that_can() {
        let (pnm, png) = (&crate::codec::pnm::Pnm, &crate::codec::png::Png);
        let shape = |channels| Shape {
            width: 3,
            height: 2,
            channels,
            depth: Depth::Eight,
        };
        let told = |result: Result<()>| result.err().map(|error| error.to_string());
        let plain = Metadata::default();
        assert_eq!(
            told(check(pnm, &shape(4), &plain)).as_deref(),
            Some("PNM has no alpha channel (PNG, TIFF, PAM, NumPy, farbfeld and BMP have)")
        );
        let signed = Metadata {
            signed: true,
            ..Metadata::default()
        };
        assert_eq!(
            told(check(png, &shape(1), &signed)).as_deref(),
            Some(
                "PNG has no signed samples (TIFF, NumPy and FITS have; normalize makes them unsigned)"
            )
        );
        assert_eq!(told(check(png, &shape(4), &plain)), None);
        assert_eq!(
            told(check_pages(pnm, 2)).as_deref(),
            Some(
                "2 pages do not go into one PNM file: --pages N takes one, and TIFF, NumPy and FITS hold all"
            )
        );
        assert_eq!(told(check_pages(&crate::codec::tiff::Tiff, 2)), None);
    }
}
