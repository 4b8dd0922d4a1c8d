//! The compressed data of a page as they are in the file, for a GPU to decode (`png/decode/packed.rs`, `tiff/streams.rs` and
//! `zarr/streams.rs` read them), or the reason why only the format's own decoder can.

use crate::image::Shape;
use crate::image::buffer::Buffer;
use std::borrow::Cow;
use std::fmt;

/// The reason why only the CPU can decode a page.
#[derive(Debug)]
pub struct Unsuited(Cow<'static, str>);

impl Unsuited {
    /// A reason, as a clause about the file: `it is interlaced`.
    pub(crate) fn new(why: impl Into<Cow<'static, str>>) -> Unsuited {
        Unsuited(why.into())
    }

    /// The inflated data exceed `MAX_INFLATED_BYTES`, or a row is too long.
    pub(crate) fn image_too_large() -> Unsuited {
        Unsuited::new("the image is larger than the 4 GiB that the GPU decodes")
    }

    /// The compressed data exceed `MAX_COMPRESSED_BYTES`.
    pub(crate) fn too_much_data() -> Unsuited {
        Unsuited::new("the compressed data exceed the 512 MiB that the GPU decodes")
    }
}

impl fmt::Display for Unsuited {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unsuited {}

/// Bytes that are copied after the data, and zeros after the streams: kernels read ahead.
pub(crate) const PADDING: usize = 16;

/// The most bytes of compressed data that a GPU decodes. Kernels count their bits in 32 bits.
pub(crate) const MAX_COMPRESSED_BYTES: usize = (1 << 29) - (1 << 16);

/// The most bytes of inflated data that a GPU decodes. Kernels count them in 32 bits.
pub(crate) const MAX_INFLATED_BYTES: usize = u32::MAX as usize - (1 << 16);

/// The most tiles of a page that a GPU decodes.
pub(crate) const MOST_TILES: usize = 1 << 16;

/// A page's compressed data, ready for a GPU.
pub struct Packed {
    pub(super) head: Head,
    pub(super) memory: Buffer<u8>,
}

/// The layout of a page's compressed data, from its header.
pub struct Head {
    /// The shape of the decoded image.
    pub shape: Shape,
    pub(crate) streams: Streams,
    pub(crate) layout: DataLayout,
}

/// What follows the last block of each deflate stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trailer {
    /// The Adler-32 of the inflated bytes, its highest byte first (RFC 1950).
    Adler,
    /// The CRC-32 of the inflated bytes and their number, the lowest byte first (RFC 1952). Nothing follows.
    Gzip,
}

/// Concatenated zlib or LZW streams, or gzip members.
pub(crate) struct Streams {
    /// Compressed bytes of all streams.
    pub len: usize,
    /// The offset of each stream in the concatenation. A stream ends where the next one starts, or before.
    pub starts: Vec<usize>,
    /// The ranges of the memory that have the streams' bytes, in order.
    pub extents: Vec<Extent>,
    /// Bytes of memory from its start to the end of the last extent.
    pub memory_bytes: usize,
    /// Inflated bytes of each stream except the last.
    pub stream_output: usize,
    /// Inflated bytes of all streams.
    pub output: usize,
    /// What follows each; LZW data have nothing.
    pub trailer: Trailer,
}

/// A range of memory that has consecutive bytes of the streams: the data of one PNG chunk, or all streams.
pub(crate) struct Extent {
    /// Its offset in the memory.
    pub at: usize,
    pub len: usize,
    /// The offset in the streams of its first byte.
    pub stream_offset: usize,
    /// The CRC that a PNG chunk states. It includes the four bytes before the extent, which are the chunk's type.
    pub crc: u32,
}

/// The form of the inflated data.
pub(crate) enum DataLayout {
    Png(Scanlines),
    Tiles(Tiles),
}

/// The scanlines of a PNG that is not interlaced.
pub(crate) struct Scanlines {
    pub width: u32,
    pub height: u32,
    /// Bits of a sample or of an index into the palette: 1, 2, 4, 8 or 16.
    pub bits: u8,
    /// How stored pixels become samples; `None` if they are samples.
    pub expansion: Option<Expansion>,
    /// Bytes of a row without its filter type.
    pub row_bytes: usize,
    /// Bytes of a pixel, at least 1: filters combine bytes that are so far apart.
    pub pixel_bytes: usize,
}

/// How stored pixels become samples.
pub(crate) struct Expansion {
    pub mode: ExpansionMode,
    /// The transparent pixel, with 16 bits per channel.
    pub key: u64,
    /// The colours, with red in the lowest byte and opacity in the highest.
    pub palette: Vec<u32>,
}

/// The kind of stored pixels, and whether the samples have an opacity.
#[derive(Clone, Copy)]
pub(crate) enum ExpansionMode {
    Grey,
    GreyWithKey,
    RgbWithKey,
    Palette,
    PaletteWithOpacity,
}

/// The compression of tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TileCoding {
    /// A zlib stream each (RFC 1950).
    Zlib,
    /// A gzip member each (RFC 1952). The streams begin with the last two of the ten bytes of its header: as long as that of zlib.
    Gzip,
    /// LZW as in TIFF 6.0, section 13.
    Lzw,
}

/// The tiles of a TIFF, or the chunks of a Zarr array, a stream each, from left to right and then down. A strip is a tile as
/// wide as the image.
pub(crate) struct Tiles {
    pub coding: TileCoding,
    pub width: usize,
    /// Rows of a tile. The last strip of an image may have fewer.
    pub height: usize,
    /// Whether these are tiles in the sense of TIFF, or chunks, which reach past the edges of the image, and not strips.
    pub tiled: bool,
    /// Whether samples are stored as differences from the sample to the left.
    pub differences: bool,
    pub big_endian: bool,
    /// Whether samples are signed integers.
    pub signed: bool,
}

/// Reads bytes of the streams in memory.
#[derive(Clone, Copy)]
pub(crate) struct StreamReader<'a> {
    streams: &'a Streams,
    memory: &'a [u8],
}

impl Streams {
    /// A reader of the streams in the memory that `Packed::split` gave.
    pub fn reader<'a>(&'a self, memory: &'a [u8]) -> StreamReader<'a> {
        StreamReader {
            streams: self,
            memory,
        }
    }

    /// The offset of the end of a stream, with everything that may follow its last block.
    pub fn end(&self, index: usize) -> usize {
        self.starts.get(index + 1).copied().unwrap_or(self.len)
    }

    /// Inflated bytes of the streams up to and including the one with this index.
    pub fn output_end(&self, index: usize) -> usize {
        if index + 1 == self.starts.len() {
            self.output
        } else {
            (index + 1) * self.stream_output
        }
    }
}

impl StreamReader<'_> {
    /// The byte at offset `at` of the streams, if they are so long.
    pub fn byte(&self, at: usize) -> Option<u8> {
        let extents = &self.streams.extents;
        // An empty extent starts where the next does.
        let next = extents.partition_point(|extent| extent.stream_offset <= at);
        let extent = extents.get(next.checked_sub(1)?)?;
        let inside = at - extent.stream_offset;
        let byte = self.memory.get(extent.at + inside);
        byte.copied().filter(|_| inside < extent.len)
    }

    /// The four bytes from offset `at` on as a number, the lowest first. Bytes after the end are 0.
    pub fn word(&self, at: usize) -> u32 {
        let bytes = [0, 1, 2, 3].map(|i| self.byte(at + i).unwrap_or(0));
        u32::from_le_bytes(bytes)
    }

    /// The `len` bytes from offset `at` on; fewer at the end of the streams.
    pub fn bytes(&self, at: usize, len: usize) -> Vec<u8> {
        (at..at + len).map_while(|at| self.byte(at)).collect()
    }
}

impl Packed {
    /// The data of tiles that inflate to `tile_bytes` each, except for a last strip, and to `output` in all. The streams are at
    /// `starts` in the memory, and `PADDING` zeros or more after the last one, which ends at `len`.
    pub(crate) fn of_tiles(
        shape: Shape,
        tiles: Tiles,
        memory: Buffer<u8>,
        (starts, len): (Vec<usize>, usize),
        (tile_bytes, output): (usize, usize),
    ) -> Packed {
        Packed {
            head: Head {
                shape,
                streams: Streams {
                    len,
                    starts,
                    extents: vec![Extent {
                        at: 0,
                        len,
                        stream_offset: 0,
                        crc: 0,
                    }],
                    memory_bytes: len,
                    stream_output: tile_bytes,
                    output,
                    trailer: match tiles.coding {
                        TileCoding::Gzip => Trailer::Gzip,
                        TileCoding::Zlib | TileCoding::Lzw => Trailer::Adler,
                    },
                },
                layout: DataLayout::Tiles(tiles),
            },
            memory,
        }
    }

    /// Bytes of compressed data.
    pub fn len(&self) -> usize {
        self.head.streams.len
    }

    /// Whether there are no compressed data, which no page has.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The layout, and the memory of the job that calls `decode_on_gpu`.
    pub fn split(&mut self) -> (&Head, &mut [u8]) {
        let len = (self.head.streams.memory_bytes + PADDING).next_multiple_of(PADDING);
        (&self.head, &mut self.memory[..len])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_read_across_its_extents() {
        // Chunks of 0, 3, 0, 1, 5 and 0 bytes, with 12 bytes and more between their data.
        let (mut memory, mut extents, mut to) = (vec![0xa5; 4], Vec::new(), 0);
        for len in [0, 3, 0, 1, 5, 0] {
            memory.extend([0xa5; 4]);
            extents.push(Extent {
                at: memory.len(),
                len,
                stream_offset: to,
                crc: 0,
            });
            memory.extend((to..to + len).map(|byte| byte as u8));
            memory.extend([0xa5; 8]);
            to += len;
        }
        let streams = Streams {
            len: to,
            starts: vec![0, 4],
            memory_bytes: memory.len(),
            extents,
            stream_output: 7,
            output: 9,
            trailer: Trailer::Adler,
        };
        assert_eq!((streams.end(0), streams.end(1)), (4, to));
        assert_eq!((streams.output_end(0), streams.output_end(1)), (7, 9));
        let stream = streams.reader(&memory);
        assert_eq!(stream.bytes(0, 100), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(stream.bytes(2, 3), [2, 3, 4]);
        assert_eq!((stream.byte(8), stream.byte(9)), (Some(8), None));
        assert!(stream.bytes(9, 4).is_empty());
    }
}
