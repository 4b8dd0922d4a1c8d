//! The compressed data of a PNG as they lie in the file, for a GPU to decode, or the reason why only
//! the codec's decoder can (`png/decode/packed.rs` reads them).

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

/// Bytes behind the chunks that are copied too, and zeros behind the stream, so that whoever reads ahead reads them.
pub(crate) const PADDING: usize = 16;

/// A PNG's image data, ready for a GPU.
pub struct Packed {
    pub(super) head: Head,
    pub(super) memory: Buffer<u8>,
}

/// The layout of a PNG's image data, from its header.
pub struct Head {
    /// The shape of the image that decoding gives, as the decoder's `shape`.
    pub shape: Shape,
    /// Columns and rows of the image, and bits of a sample or of a palette's index: 1, 2, 4, 8 or 16.
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) bits: u8,
    pub(crate) expansion: Option<Expansion>,
    /// Bytes of the stream, from zlib's header on.
    pub(crate) len: usize,
    /// The chunks of the stream, in order, and their bytes in the file with what lies between.
    pub(crate) pieces: Vec<Piece>,
    pub(crate) span: usize,
    /// Bytes of all scanlines with their filters, of a row without, and from a sample to the one that its
    /// filter refers to.
    pub(crate) bytes: usize,
    pub(crate) row: usize,
    pub(crate) step: usize,
}

/// A chunk of a stream.
pub(crate) struct Piece {
    /// The byte of the memory at which its kind stands, four bytes before its data.
    pub at: usize,
    /// Bytes of its data, and at which byte of the stream they begin.
    pub len: usize,
    pub to: usize,
    /// The CRC that the file states.
    pub crc: u32,
}

/// A stream in the memory of its file.
#[derive(Clone, Copy)]
pub(crate) struct Stream<'a> {
    head: &'a Head,
    memory: &'a [u8],
}

impl Head {
    /// The stream in the memory that `Packed::split` gave.
    pub(crate) fn stream<'a>(&'a self, memory: &'a [u8]) -> Stream<'a> {
        Stream { head: self, memory }
    }
}

impl Stream<'_> {
    /// Bytes of the stream.
    pub fn len(&self) -> usize {
        self.head.len
    }

    /// The byte at `at`, if the stream has one there.
    pub fn byte(&self, at: usize) -> Option<u8> {
        let pieces = &self.head.pieces;
        // An empty piece begins where the next does.
        let next = pieces.partition_point(|piece| piece.to <= at);
        let piece = pieces.get(next.checked_sub(1)?)?;
        let inside = at - piece.to;
        let byte = self.memory.get(piece.at + 4 + inside);
        byte.copied().filter(|_| inside < piece.len)
    }

    /// The `len` bytes from `at` on; fewer where the stream ends.
    pub fn bytes(&self, at: usize, len: usize) -> Vec<u8> {
        (at..at + len).map_while(|at| self.byte(at)).collect()
    }
}

/// How packed pixels become samples: kernels/png_rows.cu.
pub(crate) struct Expansion {
    pub mode: u32,
    /// The pixel that is transparent, 16 bits a channel.
    pub key: u64,
    /// Red lowest, opacity highest.
    pub palette: Vec<u32>,
}

impl Packed {
    /// Bytes of compressed data.
    pub fn len(&self) -> usize {
        self.head.len
    }

    /// Whether there are none, which no PNG has.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The layout, and the memory for the job in which `decode_on_gpu` is called.
    pub fn split(&mut self) -> (&Head, &mut [u8]) {
        let len = (self.head.span + PADDING).next_multiple_of(PADDING);
        (&self.head, &mut self.memory[..len])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Depth;

    #[test]
    fn a_stream_is_what_its_chunks_hold() {
        // Chunks of 0, 3, 0, 1, 5 and 0 bytes, with 12 bytes and more between their data.
        let (mut memory, mut pieces, mut to) = (vec![0xa5; 4], Vec::new(), 0);
        for len in [0, 3, 0, 1, 5, 0] {
            pieces.push(Piece {
                at: memory.len(),
                len,
                to,
                crc: 0,
            });
            memory.extend([0xa5; 4]);
            memory.extend((to..to + len).map(|byte| byte as u8));
            memory.extend([0xa5; 8]);
            to += len;
        }
        let head = Head {
            shape: Shape {
                width: 1,
                height: 1,
                channels: 1,
                depth: Depth::Eight,
            },
            width: 1,
            height: 1,
            bits: 8,
            expansion: None,
            len: to,
            pieces,
            span: memory.len(),
            bytes: 2,
            row: 1,
            step: 1,
        };
        let stream = head.stream(&memory);
        assert_eq!(stream.bytes(0, 100), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(stream.bytes(2, 3), [2, 3, 4]);
        assert_eq!((stream.byte(8), stream.byte(9)), (Some(8), None));
        assert!(stream.bytes(9, 4).is_empty());
    }
}
