//! Codestreams: what the header says (T.800, annex A), and the samples.

use crate::formats::raw::Order;
use crate::image::{Depth, Shape};
use crate::os::panics::catch_panic;
use anyhow::{Context, Result, ensure};
use dicom_toolkit_jpeg2000::{DecodeSettings, Image};

/// The most pixels that a byte of a codestream makes: those of an image of one colour.
pub const EXPANSION: u64 = 1 << 14;

/// Bytes of memory for a sample that is decoded: its coefficients, and the sample as floating point and as integers.
pub const SAMPLE: u64 = 20;

/// Whether bytes begin with the markers SOC and SIZ.
pub fn is_codestream(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\xFF\x4F\xFF\x51")
}

/// What the header of a codestream says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Pixels of a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Samples of a pixel.
    pub channels: usize,
    /// Bits of a sample, from 1 to 16.
    pub bits: u32,
    /// Whether samples have a sign.
    pub signed: bool,
    /// Whether it was compressed with a transform that is not reversible.
    pub is_lossy: bool,
}

/// The warning about an image that was compressed with loss.
pub const LOSSY: &str = "it was compressed with loss: other decoders give samples that differ by up to a step of quantization";

impl Header {
    /// Reads the markers SOC and SIZ.
    ///
    /// # Errors
    /// Anything else, and channels that differ in their bits or their number of pixels.
    pub fn read(codestream: &[u8]) -> Result<Header> {
        ensure!(
            is_codestream(codestream),
            "its JPEG 2000 data do not begin with the markers SOC and SIZ"
        );
        let number = |at: usize, size: usize| {
            let bytes = codestream.get(at..at + size);
            let bytes = bytes.context("its JPEG 2000 data end within their header")?;
            anyhow::Ok(Order::Big.number(bytes) as u32)
        };
        let [right, bottom, left, top] = [8, 12, 16, 20].map(|at| number(at, 4));
        let side = |end: u32, start: u32| {
            let side = end.checked_sub(start).filter(|&side| side > 0);
            side.context("the size in its JPEG 2000 header is 0 or negative")
        };
        let (width, height) = (side(right?, left?)?, side(bottom?, top?)?);
        let channels = number(40, 2)? as usize;
        ensure!(
            (1..=4).contains(&channels),
            "JPEG 2000 of {channels} channels is not supported (1 to 4 are)"
        );
        let kind = number(42, 1)?;
        for channel in 0..channels {
            let at = 42 + 3 * channel;
            ensure!(
                number(at, 1)? == kind,
                "JPEG 2000 whose channels differ in their bits is not supported"
            );
            ensure!(
                number(at + 1, 2)? == 0x0101,
                "JPEG 2000 whose channels have fewer pixels than the image is not supported"
            );
        }
        let bits = (kind & 0x7F) + 1;
        ensure!(
            bits <= 16,
            "JPEG 2000 of {bits} bits is not supported (up to 16 are)"
        );
        Ok(Header {
            width,
            height,
            channels,
            bits,
            signed: kind & 0x80 != 0,
            is_lossy: transform(codestream) == Some(0),
        })
    }

    /// The shape of the image: samples of up to 8 bits take a byte, and others two.
    ///
    /// # Errors
    /// One that does not fit in memory.
    pub fn shape(&self) -> Result<Shape> {
        let depth = if self.bits > 8 {
            Depth::Sixteen
        } else {
            Depth::Eight
        };
        Shape::checked(self.width.into(), self.height.into(), self.channels, depth)
    }

    /// Decodes the codestream with this header: the values of samples, those of a pixel together.
    ///
    /// # Errors
    /// Damaged data.
    pub fn decode(&self, codestream: &[u8]) -> Result<Vec<i32>> {
        let settings = DecodeSettings {
            strict: true,
            ..DecodeSettings::default()
        };
        let decode = || Image::new(codestream, &settings)?.decode_native();
        let decoded = catch_panic(decode).ok().and_then(Result::ok);
        let decoded = decoded
            .context("its JPEG 2000 data are damaged, or of a kind that is not supported")?
            .data;
        let samples = self.shape()?.pixels() * self.channels;
        // The library adds half of the range to all samples, also to those with a sign.
        let zero = if self.signed { 1 << (self.bits - 1) } else { 0 };
        let values: Vec<i32> = if self.bits > 8 {
            let words = decoded.as_chunks::<2>().0.iter();
            words
                .map(|&word| i32::from(u16::from_le_bytes(word)) - zero)
                .collect()
        } else {
            decoded.iter().map(|&byte| i32::from(byte) - zero).collect()
        };
        ensure!(
            values.len() == samples,
            "the size of its JPEG 2000 image differs from that in its header"
        );
        Ok(values)
    }
}

/// The number of the wavelet transform (A.6.1), of which 0 is not reversible; `None` if the header does not say it.
fn transform(codestream: &[u8]) -> Option<u8> {
    let mut rest = codestream.get(2..)?;
    loop {
        let [0xFF, marker, length @ ..] = rest else {
            return None;
        };
        let length = u16::from_be_bytes(*length.first_chunk()?);
        match marker {
            // The default coding style, and the first tile.
            0x52 => return rest.get(13).copied(),
            0x90 => return None,
            _ => rest = rest.get(2 + usize::from(length)..)?,
        }
    }
}
