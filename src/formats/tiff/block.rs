//! The samples of a strip or a tile as a file has them.

use super::effort;
use super::fields::{LONG, SHORT, field};
use super::ifd::tag;
use super::pack::{Compression, Effort, Packer};
use super::predictor::{self, Predictor};
use crate::formats::raw::{self, Order, SampleEncoding};
use crate::image::metadata::Field;
use crate::image::{Depth, Image, Shape};
use anyhow::Result;
use std::borrow::Cow;

/// How the blocks of a page are stored: compressed ones have horizontal differencing (Predictor 2, or 3 of floating point).
#[derive(Clone, Copy, Debug)]
pub struct BlockCoding {
    /// How a sample is stored.
    pub samples: SampleEncoding,
    /// Bytes in a row of a block.
    row: usize,
    channels: usize,
    compression: Compression,
    effort: Effort,
}

impl BlockCoding {
    /// The coding of blocks as wide as `shape`, with little effort.
    pub fn new(shape: &Shape, compression: Compression, order: Order, signed: bool) -> BlockCoding {
        BlockCoding {
            samples: SampleEncoding {
                depth: shape.depth,
                order,
                toggled: signed,
            },
            row: shape.row() * shape.depth.bytes(),
            channels: shape.channels,
            compression,
            effort: Effort::default(),
        }
    }

    /// The same coding for blocks with so many bytes in a row.
    pub fn with_row(self, row: usize) -> BlockCoding {
        BlockCoding { row, ..self }
    }

    /// Chooses the effort by a trial on some rows, as in memory, which are as wide as a block.
    ///
    /// # Errors
    /// Those of the compressor.
    pub fn choose_effort(&mut self, trial: &[Image]) -> Result<()> {
        let samples = trial.iter().map(|rows| {
            let rows = to_file(Cow::Borrowed(rows), self.samples.toggled);
            let mut sample = Vec::new();
            self.prepare(rows.samples().as_bytes(), &mut sample);
            sample.truncate(effort::SAMPLE);
            sample
        });
        let samples: Vec<Vec<u8>> = samples.collect();
        self.effort = effort::choose(self.compression, &samples)?;
        Ok(())
    }

    /// What the directory of a page of this shape says of its samples.
    pub fn fields(&self, shape: &Shape) -> Vec<Field> {
        let order = self.samples.order;
        let number = |tag, kind, value: u64| field(order, tag, kind, &[value]);
        let bits = vec![shape.depth.bits().into(); shape.channels];
        let mut fields = vec![
            number(tag::IMAGE_WIDTH, LONG, shape.width as u64),
            number(tag::IMAGE_LENGTH, LONG, shape.height as u64),
            field(order, tag::BITS_PER_SAMPLE, SHORT, &bits),
            number(tag::COMPRESSION, SHORT, self.compression.tag()),
            number(tag::SAMPLES_PER_PIXEL, SHORT, shape.channels as u64),
            number(tag::PLANAR_CONFIGURATION, SHORT, 1),
        ];
        if self.compression != Compression::None {
            let predictor = Predictor::for_depth(shape.depth).tag();
            fields.push(number(tag::PREDICTOR, SHORT, predictor as u64));
        }
        fields
    }

    /// Sets `out` to the bytes of rows that are stored, or that are compressed: their differences. Both are in the byte order
    /// of the file.
    fn prepare(&self, raw: &[u8], out: &mut Vec<u8>) {
        out.resize(raw.len(), 0);
        let (channels, depth) = (self.channels, self.samples.depth);
        if self.compression == Compression::None {
            out.copy_from_slice(raw);
            raw::reorder(out, depth, self.samples.order);
            return;
        }
        match Predictor::for_depth(depth) {
            Predictor::Samples => {
                predictor::apply(raw, out, self.row, channels, depth);
                raw::reorder(out, depth, self.samples.order);
            }
            // Its bytes have an order of their own.
            Predictor::Bytes => match depth {
                Depth::Double => predictor::apply_bytes::<8>(raw, out, self.row, channels),
                _ => predictor::apply_bytes::<4>(raw, out, self.row, channels),
            },
        }
    }
}

/// Samples as they are in the file, but for their byte order, where they are compressed.
pub fn to_file(mut image: Cow<Image>, signed: bool) -> Cow<Image> {
    let depth = image.shape().depth;
    if signed || depth.is_float() {
        raw::all_to_file(image.to_mut().samples_mut(), depth, signed);
    }
    image
}

/// Makes one block.
pub struct Block {
    coding: BlockCoding,
    /// With the state that is reused from block to block; none before the first.
    packer: Option<Packer>,
    /// The bytes that are compressed.
    plain: Vec<u8>,
    packed: Vec<u8>,
}

impl Block {
    /// No block yet.
    pub fn new(coding: BlockCoding) -> Block {
        Block {
            coding,
            packer: None,
            plain: Vec::new(),
            packed: Vec::new(),
        }
    }

    /// Makes the block of these samples, which are as in the file but for their byte order.
    ///
    /// # Errors
    /// No memory.
    pub fn fill(&mut self, raw: &[u8]) -> Result<()> {
        self.coding.prepare(raw, &mut self.plain);
        let packer = match &mut self.packer {
            Some(packer) => packer,
            none => none.insert(Packer::new(self.coding.compression, self.coding.effort)?),
        };
        self.packed = packer.pack(&self.plain)?;
        Ok(())
    }
}

impl AsRef<[u8]> for Block {
    fn as_ref(&self) -> &[u8] {
        &self.packed
    }
}
