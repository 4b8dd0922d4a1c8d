//! The compressed data of a page as they lie in the file, for a GPU to decode, or the reason why only
//! the codec's decoder can (`png/decode/packed.rs` and `tiff/streams.rs` read them).

use crate::image::Shape;
use crate::image::buffer::Buffer;
use std::borrow::Cow;
use std::fmt;

/// Why only the CPU's decoder decodes a file.
#[derive(Debug)]
pub struct Unsuited(Cow<'static, str>);

impl Unsuited {
    /// A reason, as a clause about the file: `it is interlaced`.
    pub(crate) fn new(why: impl Into<Cow<'static, str>>) -> Unsuited {
        Unsuited(why.into())
    }
}

impl fmt::Display for Unsuited {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Bytes behind the data that are copied too, and zeros behind the streams, so that whoever reads ahead reads them.
pub(crate) const PADDING: usize = 16;

/// Streams and images whose bits and bytes 32 bits can count, with some room.
pub(crate) const MOST_STREAM: usize = (1 << 29) - (1 << 16);
pub(crate) const MOST_BYTES: usize = u32::MAX as usize - (1 << 16);

/// A page's compressed data, ready for a GPU.
pub struct Packed {
    pub(super) head: Head,
    pub(super) memory: Buffer<u8>,
}

/// The layout of a page's compressed data, from its header.
pub struct Head {
    /// The shape of the image that decoding gives, as the decoder's `shape`.
    pub shape: Shape,
    pub(crate) streams: Streams,
    pub(crate) rows: Rows,
}

/// zlib streams behind one another, each from its header on.
pub(crate) struct Streams {
    /// Bytes of all.
    pub len: usize,
    /// The bytes at which they begin; each ends where the next begins, or before.
    pub begins: Vec<usize>,
    /// Their bytes in the memory, in order, and how many bytes of it they take with what lies between.
    pub pieces: Vec<Piece>,
    pub span: usize,
    /// Bytes that each makes, but for the last, and that all make.
    pub each: usize,
    pub bytes: usize,
}

/// Bytes of the streams that lie behind one another in the memory: the data of a PNG's chunk, or all.
pub(crate) struct Piece {
    /// The byte of the memory at which they begin.
    pub at: usize,
    /// How many they are, and at which byte of the streams they begin.
    pub len: usize,
    pub to: usize,
    /// The CRC that a PNG's chunk states; it includes the four bytes before.
    pub crc: u32,
}

/// How what is inflated becomes samples.
pub(crate) enum Rows {
    Png(Scanlines),
    Tiff(Chunks),
}

/// The scanlines of a PNG that is not interlaced.
pub(crate) struct Scanlines {
    /// Columns and rows of the image, and bits of a sample or of a palette's index: 1, 2, 4, 8 or 16.
    pub width: u32,
    pub height: u32,
    pub bits: u8,
    pub expansion: Option<Expansion>,
    /// Bytes of a row without its filter, and from a sample to the one that its filter refers to.
    pub row: usize,
    pub step: usize,
}

/// How packed pixels become samples.
pub(crate) struct Expansion {
    pub mode: ExpansionMode,
    /// The pixel that is transparent, 16 bits a channel.
    pub key: u64,
    /// Red lowest, opacity highest.
    pub palette: Vec<u32>,
}

/// What packed pixels are, and whether they become samples with an opacity.
#[derive(Clone, Copy)]
pub(crate) enum ExpansionMode {
    Grey,
    GreyWithKey,
    RgbWithKey,
    Palette,
    PaletteWithOpacity,
}

/// The strips or tiles of a TIFF: a stream each, from left to right and then down.
pub(crate) struct Chunks {
    /// Pixels of one; strips are as wide as the image, and the last ends with it.
    pub width: usize,
    pub height: usize,
    pub tiled: bool,
    /// Whether samples are stored as differences, and whether their first byte is the highest.
    pub differences: bool,
    pub big_endian: bool,
    /// Whether samples are integers with a sign.
    pub signed: bool,
}

/// The streams in the memory of their file.
#[derive(Clone, Copy)]
pub(crate) struct Stream<'a> {
    streams: &'a Streams,
    memory: &'a [u8],
}

impl Streams {
    /// The streams in the memory that `Packed::split` gave.
    pub fn within<'a>(&'a self, memory: &'a [u8]) -> Stream<'a> {
        Stream {
            streams: self,
            memory,
        }
    }

    /// Where a stream's bytes end, behind all that may follow its last block.
    pub fn end(&self, index: usize) -> usize {
        self.begins.get(index + 1).copied().unwrap_or(self.len)
    }

    /// The bytes that the streams up to one with this index make.
    pub fn made(&self, index: usize) -> usize {
        match index + 1 == self.begins.len() {
            true => self.bytes,
            false => (index + 1) * self.each,
        }
    }
}

impl Stream<'_> {
    /// The byte at `at`, if the streams have one there.
    pub fn byte(&self, at: usize) -> Option<u8> {
        let pieces = &self.streams.pieces;
        // An empty piece begins where the next does.
        let next = pieces.partition_point(|piece| piece.to <= at);
        let piece = pieces.get(next.checked_sub(1)?)?;
        let inside = at - piece.to;
        let byte = self.memory.get(piece.at + inside);
        byte.copied().filter(|_| inside < piece.len)
    }

    /// The `len` bytes from `at` on; fewer where the streams end.
    pub fn bytes(&self, at: usize, len: usize) -> Vec<u8> {
        (at..at + len).map_while(|at| self.byte(at)).collect()
    }
}

impl Packed {
    /// Bytes of compressed data.
    pub fn len(&self) -> usize {
        self.head.streams.len
    }

    /// Whether there are none, which no page has.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The layout, and the memory for the job in which `decode_on_gpu` is called.
    pub fn split(&mut self) -> (&Head, &mut [u8]) {
        let len = (self.head.streams.span + PADDING).next_multiple_of(PADDING);
        (&self.head, &mut self.memory[..len])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_what_its_chunks_hold() {
        // Chunks of 0, 3, 0, 1, 5 and 0 bytes, with 12 bytes and more between their data.
        let (mut memory, mut pieces, mut to) = (vec![0xa5; 4], Vec::new(), 0);
        for len in [0, 3, 0, 1, 5, 0] {
            memory.extend([0xa5; 4]);
            pieces.push(Piece {
                at: memory.len(),
                len,
                to,
                crc: 0,
            });
            memory.extend((to..to + len).map(|byte| byte as u8));
            memory.extend([0xa5; 8]);
            to += len;
        }
        let streams = Streams {
            len: to,
            begins: vec![0, 4],
            span: memory.len(),
            pieces,
            each: 7,
            bytes: 9,
        };
        assert_eq!((streams.end(0), streams.end(1)), (4, to));
        assert_eq!((streams.made(0), streams.made(1)), (7, 9));
        let stream = streams.within(&memory);
        assert_eq!(stream.bytes(0, 100), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(stream.bytes(2, 3), [2, 3, 4]);
        assert_eq!((stream.byte(8), stream.byte(9)), (Some(8), None));
        assert!(stream.bytes(9, 4).is_empty());
    }
}
