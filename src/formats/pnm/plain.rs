//! Samples that are not stored as whole bytes: decimal numbers (P2, P3), the characters 0 and 1
//! (P1), and eight pixels in a byte (P4). Bitmaps have 1 for black.

use super::header::is_space;
use crate::formats::error_policy::ErrorPolicy;
use crate::formats::format::Decoder;
use crate::formats::single::check_single;
use crate::image::metadata::{Diagnostics, Metadata};
use crate::image::{Image, Samples, Shape};
use crate::os::Source;
use anyhow::{Result, anyhow, bail, ensure};

/// Bytes that are read at once.
const BLOCK: usize = 64 << 10;

/// How samples are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// 0 or 1, with or without space between them.
    Bits,
    /// Numbers up to a maxval, with space between them.
    Numbers(u16),
    /// Bits, the first pixel in the most significant one, rows padded to whole bytes.
    PackedBits,
}

/// Decodes a file of such samples.
pub struct PlainDecoder<'a> {
    source: &'a Source,
    shape: Shape,
    text: Text,
    start: u64,
}

impl<'a> PlainDecoder<'a> {
    /// Checks that the file is long enough for the shortest possible text of the samples, unless `damaged`.
    ///
    /// # Errors
    /// A truncated file.
    pub fn open(
        source: &'a Source,
        shape: Shape,
        text: Text,
        start: u64,
        damaged: bool,
    ) -> Result<PlainDecoder<'a>> {
        let least = match text {
            Text::Bits => shape.samples() as u64,
            Text::Numbers(_) => 2 * shape.samples() as u64 - 1,
            Text::PackedBits => (shape.width.div_ceil(8) * shape.height) as u64,
        };
        let (end, len) = (start.saturating_add(least), source.len());
        ensure!(damaged || end <= len, "truncated at byte {len} of {end}");
        if text == Text::PackedBits {
            check_single(source, end, "pgm")?;
        }
        Ok(PlainDecoder {
            source,
            shape,
            text,
            start,
        })
    }

    /// Fills the samples as far as the file goes.
    fn read(&self, samples: &mut Samples) -> Result<()> {
        let mut bytes = Bytes {
            source: self.source,
            block: Vec::new(),
            at: 0,
            next: self.start,
        };
        match (self.text, samples) {
            (Text::PackedBits, Samples::U8(samples)) => {
                for row in samples.chunks_mut(self.shape.width) {
                    for pixels in row.chunks_mut(8) {
                        let bits = bytes.needed()?;
                        let values = (0..8).map(|bit| white_or_black(bits >> (7 - bit) & 1));
                        pixels
                            .iter_mut()
                            .zip(values)
                            .for_each(|(to, from)| *to = from);
                    }
                }
            }
            (Text::Bits, Samples::U8(samples)) => {
                for sample in samples.iter_mut() {
                    let byte = bytes.character()?;
                    ensure!(
                        matches!(byte, b'0' | b'1'),
                        "a pixel that is neither 0 nor 1 (byte {})",
                        bytes.next - 1
                    );
                    *sample = white_or_black(byte - b'0');
                }
            }
            (Text::Numbers(most), Samples::U8(samples)) => {
                for sample in samples.iter_mut() {
                    *sample = bytes.number(most)? as u8;
                }
            }
            (Text::Numbers(most), Samples::U16(samples)) => {
                for sample in samples.iter_mut() {
                    *sample = bytes.number(most)?;
                }
            }
            (_, Samples::U16(_) | Samples::U32(_) | Samples::U64(_)) => {
                bail!("a bitmap has 8 bits, numbers 8 or 16")
            }
        }
        let another = match bytes.character().ok() {
            Some(b'P') => matches!(bytes.byte()?, Some(b'1'..=b'7')),
            // A PNG.
            Some(0x89) => true,
            _ => false,
        };
        ensure!(
            self.text == Text::PackedBits || !another,
            "it holds several images, but plain files (P1 to P3) must hold one"
        );
        Ok(())
    }
}

/// The sample of a bit.
fn white_or_black(bit: u8) -> u8 {
    if bit == 0 { 255 } else { 0 }
}

impl Decoder for PlainDecoder<'_> {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn metadata(&self, _: &mut Diagnostics) -> Result<Metadata> {
        let maxval = match self.text {
            Text::Numbers(maxval) => Some(maxval).filter(|&most| most != self.shape.depth.full()),
            // Scaled to 8 bits.
            Text::Bits | Text::PackedBits => None,
        };
        let significant = match self.text {
            Text::Numbers(_) => None,
            Text::Bits | Text::PackedBits => Some(vec![1]),
        };
        Ok(Metadata {
            maxval,
            significant,
            ..Metadata::default()
        })
    }

    fn decode(&mut self, policy: &ErrorPolicy) -> Result<Image> {
        let mut samples = policy.samples(&self.shape)?;
        policy.accept(self.read(&mut samples))?;
        Ok(Image::new(self.shape, samples))
    }
}

/// The bytes of a file, in order.
struct Bytes<'a> {
    source: &'a Source,
    block: Vec<u8>,
    at: usize,
    /// Offset of the byte to read next.
    next: u64,
}

impl Bytes<'_> {
    /// The next byte; `None` at the end of the file.
    fn byte(&mut self) -> Result<Option<u8>> {
        if self.at == self.block.len() {
            self.block.resize(BLOCK, 0);
            let read = self.source.read_up_to(&mut self.block, self.next)?;
            self.block.truncate(read);
            self.at = 0;
        }
        let byte = self.block.get(self.at).copied();
        self.at += usize::from(byte.is_some());
        self.next += u64::from(byte.is_some());
        Ok(byte)
    }

    fn needed(&mut self) -> Result<u8> {
        let byte = self.byte()?;
        byte.ok_or_else(|| anyhow!("truncated at byte {}", self.next))
    }

    /// The next character that is no white space and in no comment.
    fn character(&mut self) -> Result<u8> {
        loop {
            match self.needed()? {
                b'#' => while !matches!(self.needed()?, b'\n' | b'\r') {},
                byte if is_space(byte) => {}
                byte => return Ok(byte),
            }
        }
    }

    /// The next number; the character after it is skipped.
    fn number(&mut self, most: u16) -> Result<u16> {
        let mut character = Some(self.character()?);
        let start = self.next - 1;
        let (mut number, mut digits) = (0u32, 0);
        while let Some(digit @ b'0'..=b'9') = character {
            number = (10 * number + u32::from(digit - b'0')).min(1 << 20);
            digits += 1;
            character = self.byte()?;
        }
        if character == Some(b'#') {
            while !matches!(self.byte()?, None | Some(b'\n' | b'\r')) {}
        } else {
            ensure!(
                digits > 0 && character.is_none_or(is_space),
                "a sample that is not a number (byte {start})"
            );
        }
        ensure!(digits > 0, "a sample that is not a number (byte {start})");
        match u16::try_from(number) {
            Ok(number) if number <= most => Ok(number),
            _ => bail!("a sample at byte {start} is above the maxval {most}"),
        }
    }
}
