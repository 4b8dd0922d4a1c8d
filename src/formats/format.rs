//! The interface of a file format: how its files are recognised, what they can hold, and its
//! decoder and encoder. Each format is one file or folder and one line in `FORMATS`.

mod check;
mod lookup;

pub use check::{check, check_depth, check_output, check_pages, check_written};
pub use lookup::{argument, named, names_an_image, of_content, of_extension};

use super::Options;
use super::deflated::Deflated;
use super::error_policy::ErrorPolicy;
use super::packed::{Packed, Unsuited};
use crate::image::metadata::{Alpha, Axes, Diagnostics, Metadata, Own};
use crate::image::{Depth, Image, Region, Shape};
use crate::ops::DeviceImage;
use crate::os::{Source, Target, is_store_name};
use anyhow::{Result, bail, ensure};
use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

/// Bytes at the beginning of a file by which its format is recognised: enough that those of a gzip file show what is in it.
pub const HEAD: usize = 1024;

/// A format of image files: a row of `FORMATS`.
#[derive(Debug)]
pub struct Format {
    /// Its name in messages: `PNG`.
    pub name: &'static str,
    /// Its name for `--format`: `png`.
    pub id: &'static str,
    /// Its full name, for the help.
    pub title: &'static str,
    /// The extensions of its file names, in lower case; new files get the first one.
    pub extensions: &'static [&'static str],
    /// Whether its files are folders, which are read and written as stores.
    pub is_folder: bool,
    /// What its files can hold.
    pub capabilities: Capabilities,
    /// Whether a file that begins with these bytes, up to `HEAD`, is of this format.
    pub sniff: fn(&[u8]) -> bool,
    /// Opens a decoder, which reads the file's header. The flag allows damage: a damaged file is then
    /// opened as far as possible. Fails if the file is damaged or not supported.
    pub decoder: fn(&Source, bool) -> Result<Box<dyn Decoder + '_>>,
    /// Creates an encoder, as `create_encoder` does; `None` if the format is only read.
    pub encoder: Option<NewEncoder>,
    /// Lists the addresses of the images in a file; `None` if the files of this format have no addresses.
    pub addresses: Option<ListAddresses>,
    /// Refuses a file name that would be untrue of an image of this shape.
    pub check_name: fn(&Path, &Shape) -> Result<()>,
    /// Converts another format's metadata (the third argument) to this format's own. Calls the fourth
    /// argument with the name of everything that this format cannot store.
    pub convert_metadata: fn(&Metadata, Own, &mut dyn FnMut(String)) -> Own,
    /// Adds the text that records how values were scaled to metadata of this format. Returns whether they can store it.
    pub add_stretch: fn(&mut Own, &str) -> bool,
    /// Whether its convention is that viewers show the first row at the bottom.
    pub is_bottom_up: bool,
    /// Adds the axes along which the pages lie to metadata of this format, those of the first page; `None` if the format
    /// cannot store axes. Fails with the reason if it cannot store these.
    pub add_axes: Option<fn(&mut Own, &Axes) -> Result<()>>,
}

/// Creates an encoder for these pages.
pub type NewEncoder =
    for<'a> fn(&'a Target, &Options, &[PageSurvey]) -> Result<Box<dyn Encoder + 'a>>;

/// Lists the addresses of the images in a file.
pub type ListAddresses = fn(&Source) -> Result<Vec<String>>;

/// The size of a page, known before its pixels are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSurvey {
    /// The shape of its image.
    pub shape: Shape,
    /// Bytes of its metadata, and of all else that is in memory beside the samples.
    pub metadata_bytes: u64,
}

impl From<Shape> for PageSurvey {
    /// A page without metadata.
    fn from(shape: Shape) -> PageSurvey {
        PageSurvey {
            shape,
            metadata_bytes: 0,
        }
    }
}

impl Format {
    /// What a row need not state: a format that is only read, holds samples of any depth, and has no
    /// metadata of its own.
    pub const DEFAULTS: Format = Format {
        name: "",
        id: "",
        title: "",
        extensions: &[],
        is_folder: false,
        capabilities: Capabilities::ALL_SAMPLES,
        sniff: |_| false,
        decoder: |_, _| bail!("it has no decoder"),
        encoder: None,
        addresses: None,
        check_name: |_, _| Ok(()),
        convert_metadata: |_, own, leave_out| {
            own.names().into_iter().for_each(leave_out);
            Own::None
        },
        add_stretch: |_, _| false,
        is_bottom_up: false,
        add_axes: None,
    };

    /// Refuses a path that is not that of a file of this format, or that would be untrue of an image of this shape.
    ///
    /// # Errors
    /// The reason, and what to do.
    pub fn check_path(&self, path: &Path, shape: &Shape) -> Result<()> {
        ensure!(
            self.is_folder == is_store_name(path),
            if self.is_folder {
                "it is a folder, whose name must end in .zarr"
            } else {
                "a name that ends in .zarr is that of a Zarr store: give another name, or leave out --format"
            }
        );
        (self.check_name)(path, shape)
    }

    /// Whether files of this format are written; all formats are read.
    pub fn is_written(&self) -> bool {
        self.encoder.is_some()
    }

    /// Creates an encoder for these pages.
    ///
    /// # Errors
    /// A format that is only read, a file that cannot be written, or shapes that the format cannot hold.
    pub fn create_encoder<'a>(
        &self,
        target: &'a Target,
        options: &Options,
        pages: &[PageSurvey],
    ) -> Result<Box<dyn Encoder + 'a>> {
        match self.encoder {
            Some(new) => new(target, options, pages),
            None => bail!("{} is only read", self.name),
        }
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Format) -> bool {
        self.id == other.id
    }
}

/// What a format's files can hold.
#[derive(Clone, Copy, Debug)]
pub struct Capabilities {
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

impl Capabilities {
    /// Stacks of samples of any depth, with up to four channels and no metadata.
    pub const ALL_SAMPLES: Capabilities = Capabilities {
        lossless: true,
        pages: true,
        channels: &[1, 2, 3, 4],
        depths: &Depth::ALL,
        signed: true,
        white_is_zero: false,
        alpha: &[Alpha::Independent],
        fields: &[],
    };

    /// One image of unsigned samples of 8 or 16 bits, with up to four channels and no metadata.
    pub const UNSIGNED_PAGE: Capabilities = Capabilities {
        pages: false,
        depths: &[Depth::Eight, Depth::Sixteen],
        signed: false,
        ..Capabilities::ALL_SAMPLES
    };
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
    /// How `normalize` scaled the values.
    Stretch,
}

/// Bytes of samples in a block of a page: few enough for a core's cache, and enough that a call costs nothing.
pub const BLOCK: usize = 512 << 10;

/// What takes the pieces of a page, on any thread.
pub type BlockSink<'a> = dyn Fn(Image) -> Result<()> + Sync + 'a;

/// What takes the rows of a page: the bytes of their samples, as in memory.
pub type RowSink<'a> = dyn FnMut(&[u8]) -> Result<()> + 'a;

/// How an encoder takes a page in bands, from top to bottom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bands {
    /// The rows of every band but the last are a multiple of this.
    pub unit: usize,
    /// Rows of the page, some at a time, that it must see before it begins.
    pub trial: Vec<Range<usize>>,
}

/// The position of an image among parallel slices of a volume.
#[derive(Clone, Copy, Debug)]
pub struct SlicePosition {
    /// The direction that is perpendicular to the image, of length 1.
    pub normal: [f64; 3],
    /// The distance from the origin along this direction, in millimetres.
    pub distance: f64,
}

impl SlicePosition {
    /// Whether two slices are parallel, so that their distances can be compared.
    pub fn is_parallel(&self, other: &SlicePosition) -> bool {
        let pairs = self.normal.iter().zip(&other.normal);
        pairs.map(|(a, b)| a * b).sum::<f64>() > 0.999
    }
}

/// Decodes a file whose header has been read.
pub trait Decoder {
    /// How many images the file holds.
    fn pages(&self) -> usize {
        1
    }

    /// How many levels its pyramid has: the same pages with fewer and fewer pixels.
    fn levels(&self) -> usize {
        1
    }

    /// Selects a level that it has, and its first page. A new decoder has level 0 selected.
    ///
    /// # Errors
    /// A damaged level.
    fn select_level(&mut self, _level: usize) -> Result<()> {
        Ok(())
    }

    /// The size of a page, counted from 0; does not select the page.
    ///
    /// # Errors
    /// A damaged or unsupported page.
    fn survey(&self, _page: usize) -> Result<PageSurvey> {
        Ok(self.shape().into())
    }

    /// Whether a page is a reduced-resolution copy of another page, or a mask.
    ///
    /// # Errors
    /// A damaged page.
    fn is_reduced(&self, _page: usize) -> Result<bool> {
        Ok(false)
    }

    /// The position of the image among parallel slices of a volume, if it is one image and its file has the position.
    fn slice_position(&self) -> Option<SlicePosition> {
        None
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

    /// Whether the selected page can be given as compressed data, for others to decode.
    fn gives_packed(&self) -> bool {
        false
    }

    /// Reads the compressed data of the selected page now, since a GPU will probably decode the page: `metadata` need not look
    /// for its end in the file, and `packed` gives it.
    fn read_ahead(&mut self) {}

    /// The compressed data of the selected page, checked as far as possible without inflating
    /// them; the page can still be decoded afterwards.
    ///
    /// # Errors
    /// Why only `decode` decodes the page.
    fn packed(&self) -> Result<Packed, Unsuited> {
        Err(Unsuited::new("its format is decoded on the CPU alone"))
    }

    /// The selected page, if it is in the memory of a GPU. It can be taken once.
    fn device_image(&self) -> Option<DeviceImage> {
        None
    }

    /// Whether the selected page can be given in blocks.
    fn gives_blocks(&self) -> bool {
        false
    }

    /// Decodes the selected page in blocks of whole rows, in any order and on any thread, so that the page is never in
    /// memory as a whole. The page can still be decoded afterwards.
    ///
    /// # Errors
    /// Damage, which `decode` reports better, and errors of `sink`.
    fn blocks(&self, _sink: &BlockSink) -> Result<()> {
        bail!("its format has no blocks")
    }

    /// Whether the selected page can be given in rows from top to bottom.
    fn gives_rows(&self) -> bool {
        false
    }

    /// Decodes the selected page from top to bottom, some whole rows at a time, so that it is never in memory as a whole.
    /// The page can still be decoded afterwards. `serially` selects the method that fails only on damaged files; the other
    /// is faster, but may fail on a valid file.
    ///
    /// # Errors
    /// Damage, which `decode` reports better, and errors of `sink`.
    fn rows(&self, _serially: bool, _sink: &mut RowSink) -> Result<()> {
        bail!("its format has no rows in order")
    }

    /// Whether a region of any of its pages can be decoded without the rest of the page.
    fn gives_regions(&self) -> bool {
        false
    }

    /// Which part of the selected page `region` decodes, for messages: `3 of 64 strips`.
    fn region_parts(&self, region: &Region) -> String {
        format!("{} of {} rows", region.height, self.shape().height)
    }

    /// Bytes of memory that decoding a region of a page, counted from 0, takes beside the region and the metadata.
    ///
    /// # Errors
    /// A damaged page.
    fn region_memory(&self, _page: usize, _region: &Region) -> Result<u64> {
        Ok(0)
    }

    /// Decodes a region of the selected page, which lies in it. Damage elsewhere in the page is not noticed.
    ///
    /// # Errors
    /// Damage in the part that is decoded.
    fn region(&self, _region: &Region) -> Result<Image> {
        bail!("its format is decoded as a whole")
    }

    /// How `decode` decodes the selected page, for the plan: its parts and their compression, or the library.
    fn decoding(&self) -> String {
        "samples without compression".into()
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

    /// How it takes a page of this shape in bands; `None` if only as a whole.
    fn bands(&self, _shape: &Shape) -> Option<Bands> {
        None
    }

    /// Begins a page that comes in bands, with the samples of the rows that `bands` asks for. The file is the one that
    /// `page` writes.
    ///
    /// # Errors
    /// As `page`'s.
    fn begin(&mut self, _shape: &Shape, _metadata: &Metadata, _trial: &[Image]) -> Result<()> {
        bail!("this format takes whole pages")
    }

    /// Adds the next rows of the page that was begun.
    ///
    /// # Errors
    /// A file that cannot be written.
    fn band(&mut self, _band: Cow<Image>) -> Result<()> {
        bail!("this format takes whole pages")
    }

    /// Whether the next page is not encoded: an earlier run has finished it, or another task writes it.
    fn skips_page(&self) -> bool {
        false
    }

    /// Skips the next page, which has this shape and these metadata.
    ///
    /// # Errors
    /// As `page`'s.
    fn skip(&mut self, _shape: &Shape, _metadata: &Metadata) -> Result<()> {
        bail!("this format takes all pages")
    }

    /// Whether pages can come as deflated PNG data.
    fn takes_deflated(&self) -> bool {
        false
    }

    /// As `page`, for pixels that are already deflated.
    ///
    /// # Errors
    /// As `page`'s.
    fn deflated_page(&mut self, _page: &Deflated, _metadata: &Metadata) -> Result<()> {
        bail!("only PNG can store deflated pixels")
    }

    /// Whether pages stay in the memory of the GPU.
    fn takes_device_images(&self) -> bool {
        false
    }

    /// As `page`, for samples in the memory of a GPU.
    ///
    /// # Errors
    /// As `page`'s.
    fn device_page(&mut self, _image: DeviceImage, _metadata: &Metadata) -> Result<()> {
        bail!("internal error: the output is not in the memory of a GPU")
    }

    /// Bytes written so far; after the last page, the file's length.
    fn length(&self) -> u64;
}
