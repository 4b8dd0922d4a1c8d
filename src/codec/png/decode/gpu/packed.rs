//! The compressed data of a PNG in one piece of memory, checked as far as they are not inflated.

use super::Unsuited;
use crate::buffer::Buffer;
use crate::codec::png::decode::Reader;
use crate::codec::png::decode::chunks::Chunks;
use crate::codec::png::decode::header::{Colour, Header};
use crate::codec::png::decode::inflate::is_zlib;
use crate::image::Shape;
use anyhow::Result;

/// Zeros behind the stream, so that whoever reads ahead reads them.
const PADDING: usize = 16;

/// Streams and images whose bits and bytes 32 bits can count, with some room.
const MOST_STREAM: usize = (1 << 29) - (1 << 16);
const MOST_BYTES: usize = u32::MAX as usize - (1 << 16);
const MOST_ROW: usize = 1 << 29;

/// A PNG's image data, ready for a card.
pub struct Packed {
    head: Head,
    memory: Buffer<u8>,
}

/// What is known of them beside the bytes.
pub struct Head {
    pub(super) header: Header,
    /// What decoding gives, as `Reader::shape`.
    pub shape: Shape,
    pub(super) expansion: Option<Expansion>,
    /// Bytes of the stream, from zlib's header on.
    pub(super) len: usize,
    /// Bytes of all scanlines with their filters, of a row without, and from a sample to the one that its
    /// filter refers to.
    pub(super) bytes: usize,
    pub(super) row: usize,
    pub(super) step: usize,
}

/// How packed pixels become samples: kernels/png_rows.cu.
pub(super) struct Expansion {
    pub mode: u32,
    /// The pixel that is transparent, 16 bits a channel.
    pub key: u64,
    /// Red lowest, opacity highest.
    pub palette: Vec<u32>,
}

impl Packed {
    /// Reads the image data of a file that has been opened and not decoded, and checks all that
    /// follows them. An error is one that the CPU's decoder would find too, and tell.
    pub fn read(reader: &mut Reader) -> Result<Packed, Unsuited> {
        let told = |error: anyhow::Error| Unsuited::new(format!("{error:#}"));
        let header = reader.prelude.header;
        if header.interlaced {
            return Err(Unsuited::new("it is interlaced"));
        }
        let bytes = header.scanline_bytes().map_err(told)?;
        let row = bytes / header.height as usize - 1;
        if bytes > MOST_BYTES || row > MOST_ROW {
            return Err(Unsuited::new("its image is too large for the kernels"));
        }
        let expansion = Expansion::of(reader)?;
        let room = reader.source.len().saturating_sub(reader.prelude.data) as usize;
        if room > MOST_STREAM {
            return Err(Unsuited::new("its data are too many for the kernels"));
        }
        let mut memory = Buffer::<u8>::any(room + 2 * PADDING).map_err(told)?;
        let mut data = reader.prelude.image_data(reader.source).map_err(told)?;
        let mut len = 0;
        loop {
            let piece = data.peek().map_err(told)?;
            if piece.is_empty() {
                break;
            }
            let count = piece.len();
            memory[len..len + count].copy_from_slice(piece);
            data.consume(count).map_err(told)?;
            len += count;
        }
        data.finish().map_err(told)?;
        memory[len..len + 2 * PADDING].fill(0);
        if !memory[..len].first_chunk().is_some_and(is_zlib) {
            return Err(Unsuited::new("it has no zlib stream"));
        }
        Ok(Packed {
            head: Head {
                header,
                shape: reader.shape,
                expansion,
                len,
                bytes,
                row,
                step: header.pixel_bits().div_ceil(8) as usize,
            },
            memory,
        })
    }

    /// What is known, and the memory for the job in which `decode_on_gpu` is called.
    pub fn split(&mut self) -> (&Head, &mut [u8]) {
        let len = (self.head.len + PADDING).next_multiple_of(PADDING);
        (&self.head, &mut self.memory[..len])
    }
}

impl Expansion {
    /// What the pixels of this file need; none if samples lie in the file as in memory.
    fn of(reader: &Reader) -> Result<Option<Expansion>, Unsuited> {
        let prelude = &reader.prelude;
        if prelude.is_plain() {
            return Ok(None);
        }
        let mut chunks = Chunks::new(reader.source);
        let (mut palette, mut opacity) = (Vec::new(), None);
        let mut at = 8;
        while at < prelude.data {
            let told = |error: anyhow::Error| Unsuited::new(format!("{error:#}"));
            let chunk = chunks.at(at).map_err(told)?;
            match &chunk.kind {
                b"PLTE" => palette = chunks.data(&chunk).map_err(told)?,
                b"tRNS" => opacity = Some(chunks.data(&chunk).map_err(told)?),
                _ => {}
            }
            at = chunk.end();
        }
        let odd = || Unsuited::new("its palette or its transparency is unusual");
        let pairs = |bytes: &[u8]| {
            let pair =
                |(i, pair): (usize, &[u8; 2])| u64::from(u16::from_be_bytes(*pair)) << (16 * i);
            bytes.as_chunks().0.iter().enumerate().map(pair).sum()
        };
        let (mode, key, colours) = match (prelude.header.colour, &opacity) {
            (Colour::Grey, None) => (0, 0, Vec::new()),
            (Colour::Grey, Some(key)) if key.len() == 2 => (1, pairs(key), Vec::new()),
            (Colour::Rgb, Some(key)) if key.len() == 6 => (2, pairs(key), Vec::new()),
            (Colour::Palette, opacity) => {
                let colours = palette.as_chunks::<3>().0;
                let opaque = opacity.as_deref().unwrap_or_default();
                if colours.is_empty() || opaque.len() > colours.len() {
                    return Err(odd());
                }
                let colour = |(i, &[r, g, b]): (usize, &[u8; 3])| {
                    let a = opaque.get(i).copied().unwrap_or(u8::MAX);
                    u32::from_le_bytes([r, g, b, a])
                };
                let mode = 3 + u32::from(opacity.is_some());
                (mode, 0, colours.iter().enumerate().map(colour).collect())
            }
            _ => return Err(odd()),
        };
        Ok(Some(Expansion {
            mode,
            key,
            palette: colours,
        }))
    }
}
