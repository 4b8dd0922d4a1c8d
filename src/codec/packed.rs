//! The compressed data of a PNG in one piece of memory, for a GPU to decode, or the reason why only
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

/// Zeros behind the stream, so that whoever reads ahead reads them.
pub(super) const PADDING: usize = 16;

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
    /// Bytes of all scanlines with their filters, of a row without, and from a sample to the one that its
    /// filter refers to.
    pub(crate) bytes: usize,
    pub(crate) row: usize,
    pub(crate) step: usize,
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
        let len = (self.head.len + PADDING).next_multiple_of(PADDING);
        (&self.head, &mut self.memory[..len])
    }
}
