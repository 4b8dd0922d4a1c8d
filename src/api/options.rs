//! How files are read and written.

use super::error::{Error, Result};
use crate::engine::Destination;
use crate::formats::{self, FORMATS, Reading, format, zarr};
use crate::image::Depth;
use crate::os::StoreRun;
use clap::ValueEnum;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A format of image files, such as PNG or TIFF.
///
/// ```
/// use gpuimg::Format;
/// let png: Format = "png".parse()?;
/// assert_eq!((png.name(), png.extensions()), ("PNG", &["png"][..]));
/// assert!(Format::all().any(|format| format == png));
/// # Ok::<(), gpuimg::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Format(pub(super) &'static formats::Format);

impl Format {
    pub(crate) fn new(format: &'static formats::Format) -> Format {
        Format(format)
    }

    pub(crate) fn engine(self) -> &'static formats::Format {
        self.0
    }

    /// All formats that are read. Some are not written.
    pub fn all() -> impl Iterator<Item = Format> {
        FORMATS.iter().map(|format| Format(format))
    }

    /// The format of a file with this name, by its extension.
    ///
    /// # Errors
    /// A missing or unknown extension, and a format that is only read.
    pub fn of_path(path: impl AsRef<Path>) -> Result<Format> {
        let format = format::of_extension(path.as_ref());
        let format =
            format.and_then(|format| format::check_written(format).map(|()| Format(format)));
        format.map_err(Error::new)
    }

    /// Its name: `PNG`.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// The extensions of its files, in lower case; new files have the first one.
    pub fn extensions(self) -> &'static [&'static str] {
        self.0.extensions
    }

    /// Whether it is written.
    pub fn is_written(self) -> bool {
        self.0.is_written()
    }

    /// Whether a file holds several pages.
    pub fn holds_stacks(self) -> bool {
        self.0.capabilities.pages
    }

    /// The depth of an output: the one that was asked for, or 8 bits if the format has no other.
    pub(crate) fn depth(self, wanted: Option<Depth>) -> Option<Depth> {
        let has_eight_alone = self.0.capabilities.depths == [Depth::Eight];
        wanted.or(has_eight_alone.then_some(Depth::Eight))
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Format) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for Format {}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Format({})", self.name())
    }
}

/// Parses the name of a format or one of its extensions, in any case, as `--format` does.
impl FromStr for Format {
    type Err = Error;

    fn from_str(text: &str) -> Result<Format> {
        format::named(text)
            .map(Format)
            .ok_or_else(|| Error::argument(format!("no format has the name '{text}'")))
    }
}

/// How files are read. The words of the methods are those of the command line's options.
///
/// ```
/// use gpuimg::ReadOptions;
/// let options = ReadOptions::new().max_pixels(100_000_000).raw("640x480:u16le")?;
/// # Ok::<(), gpuimg::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadOptions {
    pub(crate) reading: Reading,
}

impl ReadOptions {
    /// All pages of a file of a known format with at most 2³³ pixels a page; damage is an error.
    pub fn new() -> ReadOptions {
        ReadOptions::default()
    }

    /// Only these pages of a stack, counted from 1: `3` or `2-9`.
    ///
    /// # Errors
    /// Anything else.
    pub fn pages(mut self, pages: &str) -> Result<ReadOptions> {
        self.reading.pages = Some(pages.parse().map_err(Error::argument)?);
        self.reading.axes = None;
        Ok(self)
    }

    /// Only these positions on the axes of a stack (ImageJ hyperstack, OME-TIFF or NIfTI), counted from 1: `C=1,Z=3-9`. It takes the
    /// place of [`pages`](ReadOptions::pages).
    ///
    /// # Errors
    /// Anything else.
    pub fn axes(mut self, places: &str) -> Result<ReadOptions> {
        self.reading.axes = Some(places.parse().map_err(Error::argument)?);
        self.reading.pages = None;
        Ok(self)
    }

    /// This level of a pyramid (OME-Zarr): 0 is the full size.
    pub fn level(mut self, level: usize) -> ReadOptions {
        self.reading.level = level;
        self
    }

    /// Refuses pages with more pixels than this, before memory is allocated.
    pub fn max_pixels(mut self, pixels: u64) -> ReadOptions {
        self.reading.max_pixels = pixels;
        self
    }

    /// Reads damaged files as far as possible; the other samples are 0, and the report has the damage.
    pub fn keep_going(mut self) -> ReadOptions {
        self.reading.keep_going = true;
        self
    }

    /// Reads files as samples without a header: width × height, type, and if need be pages and bytes to skip, as in
    /// `640x480:u16le:10+512`.
    ///
    /// # Errors
    /// Anything else.
    pub fn raw(mut self, layout: &str) -> Result<ReadOptions> {
        self.reading.raw = Some(layout.parse().map_err(Error::argument)?);
        Ok(self)
    }
}

/// How files are written. The words of the methods are those of the command line's options.
///
/// ```
/// use gpuimg::WriteOptions;
/// let options = WriteOptions::new().overwrite().png("small")?.tiff("zstd")?;
/// # Ok::<(), gpuimg::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions {
    pub(crate) format: Option<Format>,
    pub(crate) encoding: formats::Options,
    pub(crate) overwrite: bool,
    pub(crate) sync: bool,
}

impl WriteOptions {
    /// The format of the extension, fast PNG, TIFF without compression, JPEG of quality 90; an existing file is an error.
    pub fn new() -> WriteOptions {
        WriteOptions::default()
    }

    /// This format, whatever the extension is.
    pub fn format(mut self, format: Format) -> WriteOptions {
        self.format = Some(format);
        self
    }

    /// Replaces existing files.
    pub fn overwrite(mut self) -> WriteOptions {
        self.overwrite = true;
        self
    }

    /// Syncs each file to the disk before it gets its name, and its folder after.
    pub fn sync(mut self) -> WriteOptions {
        self.sync = true;
        self
    }

    /// The compression of PNG: `fast`, `small` or `store`.
    ///
    /// # Errors
    /// Anything else.
    pub fn png(mut self, mode: &str) -> Result<WriteOptions> {
        self.encoding.png = choice("PNG", mode)?;
        Ok(self)
    }

    /// The compression of TIFF: `none`, `deflate`, `lzw` or `zstd`.
    ///
    /// # Errors
    /// Anything else.
    pub fn tiff(mut self, compression: &str) -> Result<WriteOptions> {
        self.encoding.tiff = choice("TIFF", compression)?;
        Ok(self)
    }

    /// How the samples of a TIFF are arranged: `strips`, or `cog` for a cloud-optimized TIFF with tiles and overviews.
    ///
    /// # Errors
    /// Anything else.
    pub fn tiff_layout(mut self, layout: &str) -> Result<WriteOptions> {
        self.encoding.tiff_layout = choice("TIFF layout", layout)?;
        Ok(self)
    }

    /// The compression of OME-Zarr: `zstd`, `blosc` or `none`.
    ///
    /// # Errors
    /// Anything else.
    pub fn zarr(mut self, compression: &str) -> Result<WriteOptions> {
        self.encoding.zarr.compression = choice("OME-Zarr", compression)?;
        Ok(self)
    }

    /// The rows and columns of a chunk in an OME-Zarr, 1 to 16384.
    ///
    /// # Errors
    /// Another number.
    pub fn zarr_chunk(mut self, side: usize) -> Result<WriteOptions> {
        self.encoding.zarr.chunk = number("zarr_chunk", side, zarr::chunk_side)?;
        Ok(self)
    }

    /// The rows and columns of a shard in an OME-Zarr, a file of several chunks: a multiple of `zarr_chunk`, which is checked when
    /// an image is written.
    ///
    /// # Errors
    /// No shard has this size.
    pub fn zarr_shard(mut self, side: usize) -> Result<WriteOptions> {
        self.encoding.zarr.shard = Some(number("zarr_shard", side, zarr::shard_side)?);
        Ok(self)
    }

    /// The number of levels of an OME-Zarr, 1 to 64; without it the image is halved until it fits into one chunk.
    ///
    /// # Errors
    /// Another number.
    pub fn zarr_levels(mut self, levels: usize) -> Result<WriteOptions> {
        self.encoding.zarr.levels = Some(number("zarr_levels", levels, zarr::level_count)?);
        Ok(self)
    }

    /// How the format `raw` stores samples: `le`, `be`, or packed as `mono10p`, `mono12p`, `mono14p`, `mono10packed` or
    /// `mono12packed`.
    ///
    /// # Errors
    /// Anything else.
    pub fn raw_type(mut self, raw_type: &str) -> Result<WriteOptions> {
        self.encoding.raw_type = choice("raw", raw_type)?;
        Ok(self)
    }

    /// The quality of JPEG, 1 to 100.
    ///
    /// # Errors
    /// Another number.
    pub fn quality(mut self, quality: u8) -> Result<WriteOptions> {
        let quality = quality.to_string().parse();
        self.encoding.quality = quality.map_err(Error::argument)?;
        Ok(self)
    }

    /// The destination `path`, for a result of a depth, upright and fitted as the operations say.
    pub(super) fn destination(&self, path: &Path, format: Option<Format>) -> Destination {
        Destination {
            path: path.into(),
            folder: None,
            format: format.map(|format| format.0),
            options: self.encoding,
            overwrite: self.overwrite,
            sync: self.sync,
            depth: None,
            auto_orient: false,
            fit: None,
            low_memory: false,
            store: StoreRun::default(),
        }
    }

    /// The format of a file with this name.
    pub(super) fn format_of(&self, path: &Path) -> Result<Format> {
        let format = match self.format {
            Some(format) => format::check_written(format.0).map(|()| format),
            None => format::of_extension(path)
                .and_then(|format| format::check_written(format).map(|()| Format(format))),
        };
        let failure = || crate::engine::Failure::new("write", path);
        format.map_err(|error| Error::new(error.context(failure())))
    }
}

/// One of the values of an option of the command line.
fn choice<T: ValueEnum>(what: &str, word: &str) -> Result<T> {
    T::from_str(word, true).map_err(|_| {
        let names = T::value_variants().iter();
        let names = names.filter_map(|value| Some(value.to_possible_value()?.get_name().into()));
        let names: Vec<String> = names.collect();
        Error::argument(format!(
            "{what} cannot be written as '{word}': expected {}",
            names.join(", ")
        ))
    })
}

/// A number that the parser of the command line accepts.
fn number(
    option: &str,
    number: usize,
    parse: fn(&str) -> std::result::Result<usize, String>,
) -> Result<usize> {
    parse(&number.to_string())
        .map_err(|why| Error::argument(format!("{option}: {why}, not {number}")))
}

/// The path that stands for none.
pub(super) fn no_path() -> PathBuf {
    PathBuf::new()
}
