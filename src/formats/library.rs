//! Formats that the `image` crate reads: WebP, QOI, TGA and BMP. Each is a file below; what they
//! share is here. The shape is known from the header, before memory is taken.

pub mod bmp;
pub mod qoi;
pub mod tga;
pub mod webp;

use super::embedded;
use super::error_policy::ErrorPolicy;
use super::format::{Decoder, PageSurvey};
use super::library_errors;
use super::tiff::exif;
use crate::image::metadata::{Diagnostics, Embedded, Metadata};
use crate::image::{Depth, Image, Samples, Shape};
use crate::os::Source;
use ::image::{ColorType, ImageDecoder, ImageError, ImageResult, Limits};
use anyhow::{Error, Result, anyhow, bail, ensure};
use std::io::{self, BufReader, Read, Seek, SeekFrom};

/// The bytes of a source as a stream, which is what libraries read.
pub type Stream<'a> = BufReader<Bytes<'a>>;

/// A decoder of the library, its header read.
pub type Opened<'a> = Box<dyn ImageDecoder + 'a>;

/// Bytes that a library may take beside the image: its tables, and the metadata.
const BESIDE: u64 = 64 << 20;

/// A position in a source.
#[derive(Debug)]
pub struct Bytes<'a> {
    source: &'a Source,
    at: u64,
    set: Option<SetBits>,
}

/// Bits that the library is to see set in the byte at this offset.
#[derive(Clone, Copy, Debug)]
pub struct SetBits {
    /// Offset of the byte.
    pub at: u64,
    /// The bits.
    pub bits: u8,
}

/// A stream from the beginning of the source.
pub fn stream(source: &Source) -> Stream<'_> {
    stream_with(source, None)
}

fn stream_with(source: &Source, set: Option<SetBits>) -> Stream<'_> {
    BufReader::with_capacity(64 << 10, Bytes { source, at: 0, set })
}

impl Read for Bytes<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read_up_to(buffer, self.at);
        let read = read.map_err(io::Error::other)?;
        if let Some(SetBits { at, bits }) = self.set
            && (self.at..self.at + read as u64).contains(&at)
        {
            buffer[(at - self.at) as usize] |= bits;
        }
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Bytes<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.source.len().checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// Decodes a file with the library; opened anew for each decoding.
pub struct LibraryDecoder<'a> {
    source: &'a Source,
    open: for<'s> fn(Stream<'s>) -> ImageResult<Opened<'s>>,
    shape: Shape,
    embedded: Embedded,
    /// Bytes of metadata.
    size: u64,
    /// Warnings about parts of the file that are not read.
    warnings: Vec<String>,
    /// Channels that the library returns after those of the image: two of a grey image as RGB, or an unused alpha.
    left_out: usize,
    /// Bits that are set in the bytes that the library reads.
    set_bits: Option<SetBits>,
    /// Damage that the library ignores.
    damage: Option<Error>,
    /// Fills the pixels instead of the library.
    fill: Option<Fill>,
}

/// Fills the pixels of an image of this shape, its rows from the top.
pub type Fill = fn(&Source, &Shape, &mut [u8]) -> Result<()>;

impl<'a> LibraryDecoder<'a> {
    /// Reads the header.
    ///
    /// # Errors
    /// What the library does not read, and samples that are neither of 8 nor of 16 bits.
    pub fn open(
        source: &'a Source,
        open: for<'s> fn(Stream<'s>) -> ImageResult<Opened<'s>>,
    ) -> Result<LibraryDecoder<'a>> {
        let said = |error| cause(error, source);
        let mut decoder = open(stream(source)).map_err(said)?;
        let (width, height) = decoder.dimensions();
        let (channels, depth) = match decoder.color_type() {
            ColorType::L8 => (1, Depth::Eight),
            ColorType::La8 => (2, Depth::Eight),
            ColorType::Rgb8 => (3, Depth::Eight),
            ColorType::Rgba8 => (4, Depth::Eight),
            ColorType::L16 => (1, Depth::Sixteen),
            ColorType::La16 => (2, Depth::Sixteen),
            ColorType::Rgb16 => (3, Depth::Sixteen),
            ColorType::Rgba16 => (4, Depth::Sixteen),
            other => bail!("samples of {other:?} are not supported (8 and 16 bits are)"),
        };
        let shape = Shape::checked(width.into(), height.into(), channels, depth)?;
        let embedded = Embedded {
            profile: decoder.icc_profile().map_err(said)?,
            exif: decoder
                .exif_metadata()
                .map_err(said)?
                .map(exif::without_head),
            xmp: decoder.xmp_metadata().map_err(said)?,
        };
        drop(decoder);
        Ok(LibraryDecoder {
            source,
            open,
            shape,
            size: embedded.size(),
            embedded,
            warnings: Vec::new(),
            left_out: 0,
            set_bits: None,
            damage: None,
            fill: None,
        })
    }

    /// Refuses a file that is too short for its pixels, before memory is taken: a byte makes at most
    /// `pixels` of them.
    ///
    /// # Errors
    /// Such a file.
    pub fn at_most(self, pixels: u64) -> Result<Self> {
        check_length(self.source, &self.shape, pixels)?;
        Ok(self)
    }

    /// Fills the pixels by the library.
    fn read(&self, shape: &Shape, out: &mut [u8]) -> Result<()> {
        let said = |error| cause(error, self.source);
        let mut decoder = (self.open)(stream_with(self.source, self.set_bits)).map_err(said)?;
        let mut limits = Limits::no_limits();
        limits.max_alloc = Some(
            (shape.bytes() as u64)
                .saturating_mul(2)
                .saturating_add(BESIDE),
        );
        decoder.set_limits(limits).map_err(said)?;
        decoder.read_image_boxed(out).map_err(said)
    }

    /// Keeps the first `kept` channels of an image that has `all` of them.
    fn reduce_channels(&mut self, all: usize, kept: usize) {
        if self.shape.channels == all {
            (self.shape.channels, self.left_out) = (kept, all - kept);
        }
    }
}

/// Refuses a file that is too short for its pixels, of which a byte makes at most `pixels`.
///
/// # Errors
/// Such a file.
pub fn check_length(source: &Source, shape: &Shape, pixels: u64) -> Result<()> {
    let len = source.len();
    ensure!(
        shape.pixels() as u64 <= len.saturating_mul(pixels),
        "truncated: {len} bytes are too few for {}×{} pixels",
        shape.width,
        shape.height
    );
    Ok(())
}

impl Decoder for LibraryDecoder<'_> {
    fn survey(&self, _page: usize) -> Result<PageSurvey> {
        Ok(PageSurvey {
            shape: self.shape,
            metadata_bytes: self.size,
        })
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn metadata(&self, diagnostics: &mut Diagnostics) -> Result<Metadata> {
        diagnostics.warnings.extend_from_slice(&self.warnings);
        Ok(embedded::metadata(self.embedded.clone()))
    }
    fn decoding(&self) -> String {
        "by the crate image".into()
    }

    fn decode(&mut self, policy: &ErrorPolicy) -> Result<Image> {
        if let Some(damage) = self.damage.take() {
            policy.accept(Err(damage))?;
        }
        let mut shape = self.shape;
        shape.channels += self.left_out;
        // Zeros, since not every decoder writes the pixels that a file leaves out.
        let mut samples = Samples::zeroed(&shape)?;
        let out = samples.as_bytes_mut();
        let read = match self.fill {
            Some(fill) => fill(self.source, &shape, out),
            None => self.read(&shape, out),
        };
        policy.accept(read)?;
        if let (1.., Samples::U8(read)) = (self.left_out, &samples) {
            let pixels = read.chunks_exact(shape.channels);
            let kept = pixels.flat_map(|pixel| &pixel[..self.shape.channels]);
            samples = Samples::U8(kept.copied().collect());
        }
        Ok(Image::new(self.shape, samples))
    }
}

/// An error of the library in a sentence.
fn cause(error: ImageError, source: &Source) -> Error {
    match error {
        ImageError::IoError(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            anyhow!("truncated at byte {}", source.len())
        }
        // Of a decoder that does not trust its file; ours are sentences already.
        ImageError::IoError(error) if error.kind() == io::ErrorKind::Other => anyhow!("{error}"),
        other => library_errors::translate(other, source.len()),
    }
}
