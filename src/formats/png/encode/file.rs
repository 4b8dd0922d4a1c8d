//! Writes the file: the segments, and the chunks before and after them.

use super::super::{INDEX, SIGNATURE, metadata};
use super::filter::FilterSource;
use super::{Mode, SegmentEncoder};
use crate::deflate::adler;
use crate::formats::deflated::SegmentLayout;
use crate::formats::ordered::ordered;
use crate::image::Image;
use crate::image::metadata::Metadata;
use crate::os::Target;
use anyhow::Result;

/// The offset of the index chunk, which follows the signature and IHDR.
const INDEX_OFFSET: u64 = 8 + 25;

/// A file whose segments are being written.
pub struct PngFile {
    outer: OuterChunks,
    sums: RunningSums,
    length: u64,
}

impl PngFile {
    /// A file to which nothing has been written.
    pub fn new(layout: SegmentLayout, metadata: &Metadata) -> PngFile {
        PngFile {
            sums: RunningSums {
                adler: 1,
                data_lengths: Vec::with_capacity(layout.count),
            },
            outer: OuterChunks::new(layout, metadata),
            length: 0,
        }
    }

    /// Filters, compresses and writes the next rows, which must be whole segments.
    pub fn add_rows(&mut self, image: &Image, mode: Mode, target: &Target) -> Result<()> {
        let (source, height) = (FilterSource::new(image), image.shape().height);
        let (first, rows) = (self.sums.data_lengths.len(), self.outer.layout.rows);
        self.add(height.div_ceil(rows), target, |index, encoder| {
            let top = (index - first) * rows;
            encoder.compress(&source, top..(top + rows).min(height), mode);
        })
    }

    /// Writes the next `count` segments. `fill` gives the encoder of a segment its data up to the flush
    /// at the end, and the Adler-32 of its filtered bytes.
    pub fn add(
        &mut self,
        count: usize,
        target: &Target,
        fill: impl Fn(usize, &mut SegmentEncoder) + Sync,
    ) -> Result<()> {
        let PngFile {
            outer,
            sums,
            length,
        } = self;
        let segments = outer.layout.count;
        let first = sums.data_lengths.len();
        let encode = |index: usize, encoder: &mut SegmentEncoder| {
            encoder.begin(first + index, outer);
            fill(first + index, encoder);
            encoder.start_crc();
            Ok(())
        };
        let complete = |encoder: &mut SegmentEncoder, offset| {
            sums.complete(encoder, outer);
            if offset == 0 && segments > 1 {
                // Reserves space as if all segments had this length. If the disk is too full for this
                // estimate, the file may still fit, so a failure is ignored.
                let _ = target.reserve((encoder.as_ref().len() * segments) as u64);
            }
        };
        *length = ordered(
            count,
            target,
            *length,
            SegmentEncoder::default,
            encode,
            complete,
        )?;
        Ok(())
    }

    /// Whether all segments are written.
    pub fn is_complete(&self) -> bool {
        self.sums.data_lengths.len() == self.outer.layout.count
    }

    /// Writes the index, which is complete only after the last segment, and returns the file's length in bytes.
    pub fn finish(&self, target: &Target) -> Result<u64> {
        if self.outer.layout.count > 1 {
            let index = self.outer.index(&self.sums.data_lengths);
            target.write_at(&index, INDEX_OFFSET)?;
        }
        Ok(self.length)
    }
}

/// The chunks before and after the image data.
pub struct OuterChunks {
    pub layout: SegmentLayout,
    /// The metadata chunks before the image data.
    before: Vec<u8>,
    /// The metadata chunks after the image data.
    after: Vec<u8>,
}

impl OuterChunks {
    pub fn new(layout: SegmentLayout, metadata: &Metadata) -> OuterChunks {
        let chunks = |behind| -> Vec<u8> {
            let chunks = metadata::chunks(metadata, &layout.shape, behind).into_iter();
            chunks
                .flat_map(|known| chunk(known.kind, &known.data))
                .collect()
        };
        OuterChunks {
            layout,
            before: chunks(false),
            after: chunks(true),
        }
    }

    /// The bytes before the first IDAT, for segments with deflate data of these lengths.
    pub fn before(&self, lengths: &[usize]) -> Vec<u8> {
        let mut bytes = self.before_with_empty_index();
        if lengths.len() > 1 {
            let index = self.index(lengths);
            bytes[INDEX_OFFSET as usize..][..index.len()].copy_from_slice(&index);
        }
        bytes
    }

    /// As `before`, with zeros in place of the index.
    pub fn before_with_empty_index(&self) -> Vec<u8> {
        let mut bytes = header(&self.layout);
        bytes.extend(&self.before);
        bytes
    }

    /// The bytes after the last IDAT.
    pub fn after(&self) -> Vec<u8> {
        [&self.after[..], &chunk(*b"IEND", &[])].concat()
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
fn header(layout: &SegmentLayout) -> Vec<u8> {
    let shape = &layout.shape;
    let mut ihdr = Vec::with_capacity(13);
    ihdr.extend((shape.width as u32).to_be_bytes());
    ihdr.extend((shape.height as u32).to_be_bytes());
    let colour = [0, 4, 2, 6][shape.channels - 1];
    ihdr.extend([shape.depth.bits() as u8, colour, 0, 0, 0]);
    let mut header = SIGNATURE.to_vec();
    header.extend(chunk(*b"IHDR", &ihdr));
    if layout.count > 1 {
        header.resize(header.len() + 12 + layout.index_bytes(), 0);
    }
    header
}

/// The checksum and the lengths of the segments so far, in order.
struct RunningSums {
    /// The Adler-32 of all filtered bytes so far.
    adler: u32,
    /// The bytes of each segment's deflate data so far.
    data_lengths: Vec<usize>,
}

impl RunningSums {
    /// Completes the chunk of the next segment: its length, its CRC, and in the last segment the Adler-32
    /// and the chunks after it.
    fn complete(&mut self, encoder: &mut SegmentEncoder, outer: &OuterChunks) {
        self.adler = adler::combine(self.adler, encoder.adler, encoder.filtered_len);
        self.data_lengths
            .push(encoder.out.len() - encoder.data_offset);
        let last = self.data_lengths.len() == outer.layout.count;
        if last {
            let adler = self.adler.to_be_bytes();
            encoder.crc.update(&adler);
            encoder.out.extend(&adler);
        }
        let len = encoder.out.len() - encoder.chunk_offset - 8;
        encoder
            .out
            .patch(encoder.chunk_offset, &(len as u32).to_be_bytes());
        let crc = encoder.crc.clone().finalize();
        encoder.out.extend(&crc.to_be_bytes());
        if last {
            encoder.out.extend(&outer.after());
        }
    }
}
