//! The file around its segments.

use super::super::{INDEX, metadata};
use super::filter::Rows;
use super::{Mode, Piece};
use crate::deflate::adler;
use crate::formats::deflated::Layout;
use crate::formats::ordered::ordered;
use crate::image::Image;
use crate::image::metadata::Metadata;
use crate::os::Target;
use anyhow::Result;

/// Offset of the index chunk: after signature and IHDR.
const INDEX_AT: u64 = 8 + 25;

const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// A file as far as it is written.
pub struct File {
    frame: Frame,
    sums: Sums,
    length: u64,
}

impl File {
    /// A file of which nothing is written.
    pub fn new(layout: Layout, metadata: &Metadata) -> File {
        File {
            sums: Sums {
                adler: 1,
                data: Vec::with_capacity(layout.segments),
            },
            frame: Frame::new(layout, metadata),
            length: 0,
        }
    }

    /// Filters, compresses and writes the next rows: whole segments.
    pub fn add_rows(&mut self, image: &Image, mode: Mode, target: &Target) -> Result<()> {
        let (rows, height) = (Rows::of(image), image.shape().height);
        let (before, layout) = (self.sums.data.len(), self.frame.layout);
        self.add(height.div_ceil(layout.rows), target, |index, piece| {
            let top = (index - before) * layout.rows;
            piece.compress(&rows, top..(top + layout.rows).min(height), mode);
        })
    }

    /// Writes the next `count` segments. `fill` makes the piece of a given segment: its deflate data
    /// up to the flush at its end, and the checksum of its filtered bytes.
    pub fn add(
        &mut self,
        count: usize,
        target: &Target,
        fill: impl Fn(usize, &mut Piece) + Sync,
    ) -> Result<()> {
        let File {
            frame,
            sums,
            length,
        } = self;
        let segments = frame.layout.segments;
        let before = sums.data.len();
        let make = |index: usize, piece: &mut Piece| {
            piece.begin(before + index, frame);
            fill(before + index, piece);
            piece.end();
            Ok(())
        };
        let pass = |piece: &mut Piece, at| {
            sums.add(piece, frame);
            if at == 0 && segments > 1 {
                // Reserves space as if all segments had this length. On a disk too full for the
                // estimate the file may still fit, so a failure is ignored.
                let _ = target.reserve((piece.as_ref().len() * segments) as u64);
            }
        };
        *length = ordered(count, (target, *length), Piece::default, make, pass)?;
        Ok(())
    }

    /// Whether all segments are written.
    pub fn is_whole(&self) -> bool {
        self.sums.data.len() == self.frame.layout.segments
    }

    /// Writes what is known at the end; returns the file's length in bytes.
    pub fn finish(&self, target: &Target) -> Result<u64> {
        if self.frame.layout.segments > 1 {
            target.write_at(&self.frame.index(&self.sums.data), INDEX_AT)?;
        }
        Ok(self.length)
    }
}

/// What a file has around its image data.
pub struct Frame {
    pub layout: Layout,
    /// Chunks of metadata before and behind the image data.
    before: Vec<u8>,
    behind: Vec<u8>,
}

impl Frame {
    pub fn new(layout: Layout, metadata: &Metadata) -> Frame {
        let [before, behind] = [false, true].map(|behind| -> Vec<u8> {
            let chunks = metadata::chunks(metadata, &layout.shape, behind).into_iter();
            chunks
                .flat_map(|known| chunk(known.kind, &known.data))
                .collect()
        });
        Frame {
            layout,
            before,
            behind,
        }
    }

    /// The bytes before the first IDAT, for segments with deflate data of these lengths.
    pub fn before(&self, lengths: &[usize]) -> Vec<u8> {
        let mut bytes = self.unindexed();
        if lengths.len() > 1 {
            let index = self.index(lengths);
            bytes[INDEX_AT as usize..][..index.len()].copy_from_slice(&index);
        }
        bytes
    }

    /// As `before`, with zeros in place of the index.
    pub fn unindexed(&self) -> Vec<u8> {
        let mut bytes = header(&self.layout);
        bytes.extend(&self.before);
        bytes
    }

    /// The bytes behind the last IDAT.
    pub fn behind(&self) -> Vec<u8> {
        [&self.behind[..], &chunk(*b"IEND", &[])].concat()
    }

    /// The index chunk.
    fn index(&self, lengths: &[usize]) -> Vec<u8> {
        let mut data = vec![1];
        data.extend((self.layout.rows as u32).to_be_bytes());
        data.extend(lengths.iter().flat_map(|&len| (len as u32).to_be_bytes()));
        chunk(INDEX, &data)
    }
}

/// A chunk: length, type, data, CRC-32 of type and data.
fn chunk(kind: [u8; 4], data: &[u8]) -> Vec<u8> {
    let mut chunk = Vec::with_capacity(12 + data.len());
    chunk.extend((data.len() as u32).to_be_bytes());
    chunk.extend(kind);
    chunk.extend(data);
    let crc = crc32fast::hash(&chunk[4..]);
    chunk.extend(crc.to_be_bytes());
    chunk
}

/// The bytes before the first IDAT, with zeros in place of the index.
fn header(layout: &Layout) -> Vec<u8> {
    let shape = &layout.shape;
    let mut ihdr = Vec::with_capacity(13);
    ihdr.extend((shape.width as u32).to_be_bytes());
    ihdr.extend((shape.height as u32).to_be_bytes());
    let colour = [0, 4, 2, 6][shape.channels - 1];
    ihdr.extend([shape.depth.bits() as u8, colour, 0, 0, 0]);
    let mut header = SIGNATURE.to_vec();
    header.extend(chunk(*b"IHDR", &ihdr));
    if layout.segments > 1 {
        header.resize(header.len() + 12 + layout.index_len(), 0);
    }
    header
}

/// The running sums over all segments, in order.
struct Sums {
    /// Adler-32 of all filtered bytes so far.
    adler: u32,
    /// Bytes of each segment's deflate data so far.
    data: Vec<usize>,
}

impl Sums {
    /// Adds the next segment and completes its chunk.
    fn add(&mut self, piece: &mut Piece, frame: &Frame) {
        self.adler = adler::combine(self.adler, piece.adler, piece.raw);
        self.data.push(piece.out.len() - piece.start);
        let last = self.data.len() == frame.layout.segments;
        if last {
            let adler = self.adler.to_be_bytes();
            piece.crc.update(&adler);
            piece.out.extend(&adler);
        }
        let len = piece.out.len() - piece.at - 8;
        piece.out.patch(piece.at, &(len as u32).to_be_bytes());
        let crc = piece.crc.clone().finalize();
        piece.out.extend(&crc.to_be_bytes());
        if last {
            piece.out.extend(&frame.behind());
        }
    }
}
