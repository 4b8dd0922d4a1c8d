//! What the program knows of a file format: how its files are recognised, what they can hold, and who
//! reads and writes them. One file or folder a format, and one line in `FORMATS`.

use super::error_policy::ErrorPolicy;
use super::{FORMATS, Options};
use crate::files::{Source, Target};
use crate::image::{Depth, Image, Shape};
use crate::metadata::{Alpha, Diagnostics, Metadata, Own};
use anyhow::{Context, Result, bail, ensure};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::borrow::Cow;
use std::fmt;
use std::path::Path;

/// A format of image files.
pub trait Format: fmt::Debug + Sync {
    /// What it is called in sentences: `PNG`.
    fn name(&self) -> &'static str;

    /// What `--format` calls it: `png`.
    fn id(&self) -> &'static str;

    /// Its name in full, for the help.
    fn title(&self) -> &'static str;

    /// The extensions of its files' names, in lower case; new files get the first.
    fn extensions(&self) -> &'static [&'static str];

    /// Whether a file that begins with these bytes, up to 8, is of this format.
    fn sniff(&self, head: &[u8]) -> bool;

    /// What its files can hold.
    fn capabilities(&self) -> Capabilities;

    /// Reads the header of a file. A file that is `damaged` is opened as far as it goes, or an error.
    ///
    /// # Errors
    /// What is wrong with the file, or not supported of the format.
    fn decoder<'a>(&self, source: &'a Source, damaged: bool) -> Result<Box<dyn Decoder + 'a>>;

    /// A file for pages of these shapes and bytes of metadata.
    ///
    /// # Errors
    /// What keeps it from being written.
    fn encoder<'a>(
        &self,
        target: &'a Target,
        options: &Options,
        pages: &[(Shape, u64)],
    ) -> Result<Box<dyn Encoder + 'a>>;

    /// Makes what another format (or this one) said in its own way such as this format has. `leave`
    /// is told of what it has no place for: here, everything.
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

/// What the files of a format can hold.
#[derive(Clone, Copy, Debug)]
pub struct Capabilities {
    /// Whether a file can hold several images.
    pub pages: bool,
    /// The depths of samples.
    pub depths: &'static [Depth],
    /// Whether samples can be signed.
    pub signed: bool,
    /// Whether grey 0 can be white.
    pub white_is_zero: bool,
    /// What a channel beside grey or colours can mean; nothing if there can be none.
    pub alpha: &'static [Alpha],
    /// The neutral fields of metadata that it has a place for.
    pub fields: &'static [Field],
}

/// A neutral field of metadata that not every format has a place for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The largest value that samples can have.
    Maxval,
    /// How many bits of each channel are significant.
    Significant,
    /// How the image is to be turned to be seen upright.
    Orientation,
    /// Pixels in a unit of length.
    Resolution,
}

/// A file whose header has been read.
pub trait Decoder {
    /// How many images the file holds.
    fn pages(&self) -> usize {
        1
    }

    /// The shape of a page, counted from 0, and how many bytes of metadata it has; the decoder does not
    /// turn to it.
    ///
    /// # Errors
    /// What is wrong with the page.
    fn survey(&self, page: usize) -> Result<(Shape, u64)>;

    /// Whether a page is a smaller copy of another, or a mask.
    ///
    /// # Errors
    /// What is wrong with the page.
    fn is_reduced(&self, _page: usize) -> Result<bool> {
        Ok(false)
    }

    /// Refuses a page that is a smaller copy of an image inside it, as cameras write it.
    ///
    /// # Errors
    /// The size of the full image, and what to do.
    fn check_full(&self, _page: usize) -> Result<()> {
        Ok(())
    }

    /// Turns to a page, counted from 0. A decoder begins at page 0.
    ///
    /// # Errors
    /// What is wrong with the page.
    fn turn_to(&mut self, _page: usize) -> Result<()> {
        Ok(())
    }

    /// The shape of the image that `decode` gives.
    fn shape(&self) -> Shape;

    /// What the page says beside its samples. `diagnostics` is told of what is not carried on.
    ///
    /// # Errors
    /// What is wrong with the file.
    fn metadata(&self, diagnostics: &mut Diagnostics) -> Result<Metadata>;

    /// Decodes the page's image, once.
    ///
    /// # Errors
    /// Damage, unless it is to be salvaged.
    fn decode(&mut self, policy: &ErrorPolicy) -> Result<Image>;
}

/// A file being written.
pub trait Encoder {
    /// Adds a page, whose metadata are such as the format has.
    ///
    /// # Errors
    /// The file's, and an image that the format cannot hold.
    fn page(&mut self, image: Cow<Image>, metadata: &Metadata) -> Result<()>;

    /// Whether pages can come as deflated PNG data.
    fn takes_deflated(&self) -> bool {
        false
    }

    /// As `page`, of one that is deflated already.
    ///
    /// # Errors
    /// As `page`'s.
    fn deflated_page(&mut self, _page: &super::png::Deflated, _metadata: &Metadata) -> Result<()> {
        bail!("deflated pixels belong into a PNG")
    }

    /// Bytes written so far; once the last page is there, the file's length.
    fn length(&self) -> u64;
}

/// The format that a file's extension stands for.
///
/// # Errors
/// An extension that no format has, or none.
pub fn of_extension(path: &Path) -> Result<&'static dyn Format> {
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    let extension = extension.to_lowercase();
    ensure!(
        !extension.is_empty(),
        "its name has no extension to tell the format by (--format says it)"
    );
    let found = find(|format| format.extensions().contains(&&*extension));
    found.with_context(|| {
        let known = FORMATS.iter().flat_map(|format| format.extensions());
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
    let mut head = [0; 8];
    let length = source.read_up_to(&mut head, 0)?;
    let found = find(|format| format.sniff(&head[..length]));
    found.with_context(|| {
        let names = FORMATS.iter().map(|format| format.name()).collect();
        format!("it is not a {} image", listed(names, "or"))
    })
}

/// Reads the value of `--format`.
pub fn argument() -> impl TypedValueParser<Value = &'static dyn Format> {
    let values = FORMATS
        .iter()
        .map(|format| PossibleValue::new(format.id()).help(format.title()));
    PossibleValuesParser::new(values).try_map(|id| {
        let found = find(|format| format.id() == id);
        found.context("no format of this name")
    })
}

fn find(is_it: impl Fn(&dyn Format) -> bool) -> Option<&'static dyn Format> {
    FORMATS.iter().copied().find(|format| is_it(*format))
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

/// Refuses an image that a format has no way to hold, or whose samples mean what it cannot say.
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
        can.depths.contains(&shape.depth),
        "{name} has no samples of {} bits ({})",
        shape.depth.bits(),
        those(|can| can.depths.contains(&shape.depth), "has", "have")
    );
    Ok(())
}

/// The formats that can do something, with a verb: `PNG and TIFF have`.
fn those(can: impl Fn(&Capabilities) -> bool, has: &str, have: &str) -> String {
    let formats = FORMATS.iter().filter(|format| can(&format.capabilities()));
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

    /// Every list of formats comes from `FORMATS`, so what two of them share would hide the second.
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
            Some("PNM has no alpha channel (PNG and TIFF have)")
        );
        let signed = Metadata {
            signed: true,
            ..Metadata::default()
        };
        assert_eq!(
            told(check(png, &shape(1), &signed)).as_deref(),
            Some("PNG has no signed samples (TIFF has; normalize makes them unsigned)")
        );
        assert_eq!(told(check(png, &shape(4), &plain)), None);
        assert_eq!(
            told(check_pages(pnm, 2)).as_deref(),
            Some("2 pages do not go into one PNM file: --pages N takes one, and TIFF holds all")
        );
        assert_eq!(told(check_pages(&crate::codec::tiff::Tiff, 2)), None);
    }
}
