//! How a DICOM file stores samples in words.

use super::coding::Coding;
use super::colours::Colours;
use super::fragments::Fragments;
use super::header::Header;
use crate::formats::raw::{self, Order, SampleEncoding};
use crate::image::{Depth, Shape, Values};
use crate::os::Source;
use anyhow::{Context, Result, bail, ensure};
use rayon::prelude::*;

/// Samples of a piece of parallel work.
pub(super) const PIECE: usize = 128 << 10;

/// The samples in the file, and their values in memory.
#[derive(Debug)]
pub struct Stored {
    pub(super) width: u16,
    pub(super) height: u16,
    pub(super) channels: usize,
    /// Whether the samples of each channel lie together.
    pub(super) planar: bool,
    pub colours: Colours,
    /// Bits of a word.
    pub(super) allocated: u32,
    /// Bits of the sample in it.
    pub bits: u32,
    /// The number of the sample's highest bit.
    pub(super) high: u32,
    /// Whether samples have a sign in the file.
    pub(super) signed: bool,
    pub(super) order: Order,
    /// Whether the bytes of each pair are exchanged: samples of 8 bits in big-endian words of 16 (PS3.5, section 8.1.1).
    pub(super) exchanged: bool,
    /// Offset of the first frame.
    pub(super) start: u64,
    pub(super) coding: Coding,
    /// The fragments of compressed pixel data.
    pub fragments: Option<Fragments>,
    /// A value is the sample times `slope` plus `intercept`.
    pub(super) slope: i64,
    pub(super) intercept: i64,
    /// The type of values in memory.
    pub values: Values,
}

impl Stored {
    /// Reads how samples are stored.
    ///
    /// # Errors
    /// Missing elements, and values that are not supported.
    pub fn read(header: &Header, coding: Coding, start: u64) -> Result<Stored> {
        let number = |element, name: &str| {
            let number = header.number((0x28, element));
            number.with_context(|| format!("its {name} (0028,{element:04X}) is missing"))
        };
        let name = header.text((0x28, 4)).unwrap_or_default();
        let colours = Colours::from_name(&name, coding)?;
        let channels = usize::from(number(2, "SamplesPerPixel")?);
        ensure!(
            channels == colours.channels(),
            "{channels} samples per pixel are not those of {name}"
        );
        let allocated = u32::from(number(0x100, "BitsAllocated")?);
        let depth = match allocated {
            8 => Depth::Eight,
            16 => Depth::Sixteen,
            32 => Depth::ThirtyTwo,
            other => bail!("samples in {other} bits are not supported (8, 16 and 32 are)"),
        };
        let bits = u32::from(number(0x101, "BitsStored")?);
        let high = u32::from(
            header
                .number((0x28, 0x102))
                .unwrap_or((bits.max(1) - 1) as u16),
        );
        ensure!(
            (1..=allocated).contains(&bits) && high < allocated && high + 1 >= bits,
            "it is damaged: {bits} bits up to bit {high} of {allocated}"
        );
        let signed = number(0x103, "PixelRepresentation")? == 1;
        ensure!(
            !colours.are_ybr() || (allocated, bits, signed) == (8, 8, false),
            "{name} of other samples than 8 bits without sign is not supported"
        );
        ensure!(
            colours != Colours::Palette || allocated <= 16,
            "a palette for samples of {allocated} bits is not supported (8 and 16 are)"
        );
        let width = number(0x11, "Columns")?;
        let planar = channels > 1 && header.number((0x28, 6)) == Some(1);
        ensure!(
            colours != Colours::YbrPairs || width.is_multiple_of(2) && !planar,
            "{name} in planes or in rows of {width} pixels is not supported"
        );
        Ok(Stored {
            width,
            height: number(0x10, "Rows")?,
            channels,
            planar,
            colours,
            allocated,
            bits,
            high,
            signed,
            order: header.order(),
            exchanged: header.order() == Order::Big && header.pixel_words && allocated == 8,
            start,
            coding,
            fragments: None,
            slope: 1,
            intercept: 0,
            values: Values { depth, signed },
        })
    }

    /// The shape of a frame in the file.
    pub fn shape(&self) -> Result<Shape> {
        let (width, height) = (self.width.into(), self.height.into());
        Shape::checked(width, height, self.channels, self.values.depth)
    }

    pub(super) fn samples(&self) -> usize {
        usize::from(self.width) * usize::from(self.height) * self.channels
    }

    pub(super) fn word(&self) -> usize {
        self.allocated as usize / 8
    }

    /// Bytes of an uncompressed frame.
    pub fn frame_bytes(&self) -> usize {
        let samples = match self.colours {
            Colours::YbrPairs => self.samples() / 3 * 2,
            _ => self.samples(),
        };
        samples * self.word()
    }

    /// The number in a word of the file.
    #[inline(always)]
    pub(super) fn number(&self, word: &[u8]) -> i64 {
        let word = self.order.number(word) as u32;
        // Shifted to the top, the sample loses the bits above it, and its sign bit is that of 32 bits.
        let top = word << (31 - self.high);
        let down = 32 - self.bits;
        if self.signed {
            (top as i32 >> down).into()
        } else {
            (top >> down).into()
        }
    }

    /// Whether values are the words of the file, apart from byte order and sign.
    fn is_plain(&self) -> bool {
        let whole = self.bits == self.allocated && self.values.depth.bits() == self.allocated;
        whole && !self.planar && !self.exchanged && (self.slope, self.intercept) == (1, 0)
    }

    /// Fills the values of a frame from the file.
    ///
    /// # Errors
    /// A truncated file.
    pub fn fill(&self, source: &Source, page: usize, out: &mut [u8]) -> Result<()> {
        let first = page as u64 * self.frame_bytes() as u64;
        if self.planar || self.colours == Colours::YbrPairs {
            let mut frame = vec![0; self.frame_bytes()];
            self.read_words(source, &mut frame, first)?;
            if self.planar {
                return self.convert(&frame, out);
            }
            let pairs = frame.as_chunks().0.iter().zip(out.as_chunks_mut().0);
            pairs.for_each(|(&[left, right, cb, cr], out)| *out = [left, cb, cr, right, cb, cr]);
            return Ok(());
        }
        if self.is_plain() {
            let encoding = SampleEncoding {
                depth: self.values.depth,
                order: self.order,
                toggled: self.signed,
            };
            return raw::read(source, [(self.start + first, out)], |piece| {
                encoding.to_memory(piece);
                Ok(())
            });
        }
        let size = self.values.depth.bytes();
        let pieces = out.par_chunks_mut(PIECE * size).enumerate();
        let failure = pieces.map_init(Vec::new, |bytes: &mut Vec<u8>, (i, out)| {
            bytes.resize(out.len() / size * self.word(), 0);
            self.read_words(source, bytes, first + (i * PIECE * self.word()) as u64)?;
            self.convert(bytes, out)
        });
        failure.find_map_first(Result::err).map_or(Ok(()), Err)
    }

    /// Reads uncompressed words, from this byte of the pixel data on.
    ///
    /// # Errors
    /// A truncated file.
    pub(super) fn read_words(&self, source: &Source, words: &mut [u8], first: u64) -> Result<()> {
        if !self.exchanged {
            return source.read_at(words, self.start + first);
        }
        // A frame of an odd size ends, and the next one begins, within a pair.
        let before = (first % 2) as usize;
        let mut pairs = vec![0; (before + words.len()).next_multiple_of(2)];
        source.read_at(&mut pairs, self.start + first - before as u64)?;
        (pairs.as_chunks_mut::<2>().0.iter_mut()).for_each(|pair| pair.reverse());
        words.copy_from_slice(&pairs[before..][..words.len()]);
        Ok(())
    }

    /// Fills samples in memory from the words of the file, a whole frame if they are in planes.
    ///
    /// # Errors
    /// Too few words.
    pub fn convert(&self, words: &[u8], out: &mut [u8]) -> Result<()> {
        let size = self.values.depth.bytes();
        let count = out.len() / size;
        ensure!(
            words.len() >= count * self.word(),
            "it has {} of {} bytes",
            words.len(),
            count * self.word()
        );
        match self.word() {
            1 => self.spread(words.as_chunks::<1>().0, out),
            2 => self.spread(words.as_chunks::<2>().0, out),
            _ => self.spread(words.as_chunks::<4>().0, out),
        }
        Ok(())
    }

    /// `convert` for words of `N` bytes.
    fn spread<const N: usize>(&self, words: &[[u8; N]], out: &mut [u8]) {
        let zero = match (self.values.depth, self.values.signed) {
            (_, false) => 0,
            (depth, true) => 1i64 << (depth.bits() - 1),
        };
        let (slope, more) = (self.slope, self.intercept + zero);
        let sample = |word: &[u8; N]| (self.number(word) * slope + more) as u32;
        let pixels = out.len() / self.values.depth.bytes() / self.channels;
        // The word of the i-th sample in memory.
        let word = |i: usize| {
            if self.planar {
                &words[i % self.channels * pixels + i / self.channels]
            } else {
                &words[i]
            }
        };
        match self.values.depth.bytes() {
            1 => {
                let out = out.iter_mut().enumerate();
                out.for_each(|(i, out)| *out = sample(word(i)) as u8);
            }
            2 => {
                let out = out.as_chunks_mut::<2>().0.iter_mut().enumerate();
                out.for_each(|(i, out)| *out = (sample(word(i)) as u16).to_ne_bytes());
            }
            _ => {
                let out = out.as_chunks_mut::<4>().0.iter_mut().enumerate();
                out.for_each(|(i, out)| *out = sample(word(i)).to_ne_bytes());
            }
        }
    }
}
