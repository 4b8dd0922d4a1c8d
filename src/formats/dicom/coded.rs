//! Decoders for the compressed frames of a DICOM file.

use super::coding::Coding;
use super::colours::Colours;
use super::pixels::Stored;
use crate::formats::jpeg::baseline::{Baseline, Expected};
use crate::formats::jpeg::{colours, lossless, ls, scans};
#[cfg(feature = "jpeg2000")]
use crate::formats::jpeg2000;
use crate::formats::library_errors;
use crate::formats::tiff::unpack_bits;
use crate::image::{Depth, Shape};
use anyhow::{Context, Result, anyhow, bail, ensure};

impl Stored {
    /// Decodes the words of a compressed frame to those of an uncompressed one.
    ///
    /// # Errors
    /// Damaged data.
    pub fn unpack(&self, packed: &[u8]) -> Result<Vec<u8>> {
        match self.coding {
            Coding::Rle => self.runs(packed),
            Coding::Lossless => self.lossless(packed),
            Coding::JpegLs => self.jpeg_ls(packed),
            #[cfg(feature = "jpeg2000")]
            Coding::Jpeg2000 => self.jpeg2000(packed),
            _ => self.jpeg(packed),
        }
    }

    /// Decodes runs of bytes: there is a segment for each channel and each byte of a sample, the most significant
    /// byte first (PS3.5, annex G).
    fn runs(&self, packed: &[u8]) -> Result<Vec<u8>> {
        let heads = packed.as_chunks::<4>().0.iter();
        let heads: Vec<usize> = heads
            .take(16)
            .map(|&word| u32::from_le_bytes(word) as usize)
            .collect();
        let count = self.channels * self.word();
        ensure!(
            heads.len() == 16 && heads[0] == count,
            "its runs have {} segments where {count} are needed",
            heads.first().unwrap_or(&0)
        );
        let pixels = self.samples() / self.channels;
        let mut frame = vec![0; self.frame_bytes()];
        let mut segment = vec![0; pixels];
        for i in 0..count {
            let end = if i + 1 < count {
                heads[i + 2]
            } else {
                packed.len()
            };
            let bytes = packed.get(heads[i + 1]..end);
            let bytes = bytes.with_context(|| format!("its segment {i} lies outside the data"))?;
            let filled = unpack_bits(bytes, &mut segment);
            ensure!(
                filled == pixels,
                "its segment {i} has {filled} of {pixels} bytes"
            );
            let (channel, weight) = (i / self.word(), i % self.word());
            // The least significant byte of a word is first; words are ordered by channel or by pixel.
            let first = self.word() - 1 - weight;
            let (first, step) = if self.planar {
                (channel * pixels * self.word() + first, self.word())
            } else {
                (channel * self.word() + first, self.channels * self.word())
            };
            let places = frame.iter_mut().skip(first).step_by(step);
            places
                .zip(&segment)
                .for_each(|(place, &byte)| *place = byte);
        }
        Ok(frame)
    }

    /// Decodes a JPEG image of 8 bits; its pixels are interleaved, whatever the header says.
    fn jpeg(&self, packed: &[u8]) -> Result<Vec<u8>> {
        ensure!(
            self.allocated == 8,
            "JPEG compression of samples in {} bits is not supported (8 are)",
            self.allocated
        );
        // The colours that the image states have precedence over those of the header, but a JPEG without Adobe's segment states
        // none.
        let are_ycbcr = match colours::Colours::read(packed).adobe {
            Some(transform) => transform != 0,
            None => self.colours != Colours::Rgb,
        };
        let frame = if scans::are_separate(packed) {
            scans::decode(packed, are_ycbcr, self.samples() / self.channels)?.samples
        } else {
            let expected = Expected {
                width: self.width.into(),
                height: self.height.into(),
                channels: self.channels,
                are_ycbcr,
                strict: true,
            };
            let packed = colours::without_odd_adobe(packed);
            Baseline::open(&packed, expected)
                .and_then(|mut decoder| decoder.decode())
                .map_err(|error| {
                    anyhow!(
                        "its JPEG image: {}",
                        library_errors::translate(error, packed.len() as u64)
                    )
                })?
        };
        ensure!(
            frame.len() == self.frame_bytes(),
            "the size of its JPEG image differs from that in the header"
        );
        Ok(self.to_planes(frame))
    }

    /// Decodes a lossless JPEG image of up to 16 bits.
    fn lossless(&self, packed: &[u8]) -> Result<Vec<u8>> {
        let depth = match self.allocated {
            8 => Depth::Eight,
            16 => Depth::Sixteen,
            more => {
                bail!("JPEG compression of samples in {more} bits is not supported (8 and 16 are)")
            }
        };
        let (width, height) = (self.width.into(), self.height.into());
        let shape = Shape::checked(width, height, self.channels, depth)?;
        lossless::decode(packed, &shape).map(|frame| self.to_planes(frame))
    }

    /// Decodes a JPEG 2000 image of up to 16 bits.
    #[cfg(feature = "jpeg2000")]
    fn jpeg2000(&self, packed: &[u8]) -> Result<Vec<u8>> {
        let codestream = jpeg2000::codestream_of(packed)?;
        let header = jpeg2000::Header::read(codestream)?;
        ensure!(
            (header.width, header.height) == (self.width.into(), self.height.into())
                && header.channels == self.channels,
            "the size of its JPEG 2000 image differs from that in the header"
        );
        ensure!(
            header.bits <= self.allocated,
            "its JPEG 2000 image has {} bits, and its header {}",
            header.bits,
            self.allocated
        );
        let values = header.decode(codestream)?;
        Ok(self.to_words(values.iter().map(|&value| value as u32)))
    }

    /// Decodes a JPEG-LS image.
    fn jpeg_ls(&self, packed: &[u8]) -> Result<Vec<u8>> {
        let size = ls::Size {
            width: self.width.into(),
            height: self.height.into(),
            channels: self.channels,
            bits: self.allocated.min(16),
        };
        let samples = ls::decode(packed, &size)?;
        Ok(self.to_words(samples.iter().map(|&sample| sample.into())))
    }

    /// The words of an uncompressed frame that has these numbers, those of a pixel together.
    fn to_words(&self, numbers: impl Iterator<Item = u32>) -> Vec<u8> {
        let mut frame = vec![0; self.frame_bytes()];
        for (word, number) in frame.chunks_exact_mut(self.word()).zip(numbers) {
            word.copy_from_slice(&number.to_le_bytes()[..word.len()]);
        }
        self.to_planes(frame)
    }

    /// Puts the words of a frame with interleaved channels into planes if the header says so, as `convert` expects them.
    fn to_planes(&self, frame: Vec<u8>) -> Vec<u8> {
        if !self.planar {
            return frame;
        }
        let words = frame.chunks_exact(self.word());
        let planes = (0..self.channels).map(|channel| words.clone().skip(channel));
        let placed = planes.flat_map(|plane| plane.step_by(self.channels).flatten());
        placed.copied().collect()
    }
}
