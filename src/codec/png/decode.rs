//! PNG file to image.

mod block_header;
mod chunks;
mod codes;
mod data;
mod deflate;
mod header;
mod inflate;
mod library;
mod prefix;
mod segments;
mod unfilter;
mod unfilter_simd;

use crate::codec::salvage::Salvage;
use crate::files::Source;
use crate::image::{Image, Shape};
use crate::metadata::{self, Metadata, Remarks};
use anyhow::{Context, Result};
use chunks::Chunks;
use data::ImageData;
use header::{Colour, Prelude};
use inflate::Inflater;
use unfilter::{Layout, Rows};

/// Bytes of image from which a second thread pays for its start.
const WORTH_A_THREAD: usize = 1 << 20;

/// A PNG whose header has been read and believed, as far as the file's size allows.
pub struct Reader<'a> {
    source: &'a Source,
    prelude: Prelude,
    /// None once it is decoded.
    data: Option<ImageData<'a>>,
    /// What decoding gives: 1–4 channels; 16 bits stay 16, fewer than 8 become 8.
    pub shape: Shape,
}

impl<'a> Reader<'a> {
    /// Reads what stands before the image data. A header that promises more than the file can hold
    /// is refused before memory is asked for. `damaged` files are welcome, or an error.
    pub fn open(source: &'a Source, damaged: bool) -> Result<Reader<'a>> {
        let (prelude, data) = Prelude::read(source, damaged)?;
        let shape = prelude.shape()?;
        Ok(Reader {
            source,
            prelude,
            data: Some(data),
            shape,
        })
    }

    /// Bytes of metadata before the image data.
    pub fn metadata_bytes(&self) -> u64 {
        let chunks = self.prelude.others.iter();
        chunks.map(|chunk| u64::from(chunk.len)).sum()
    }

    /// What the chunks say beside the samples. Chunks that cannot be read are left out: the decoder
    /// complains of them.
    pub fn metadata(&self, remarks: &mut Remarks) -> Result<Metadata> {
        let bits = self.prelude.header.bits;
        let plain = bits >= 8 && self.prelude.header.colour != Colour::Palette;
        let mut metadata = Metadata {
            significant: (bits < 8 && self.prelude.header.colour != Colour::Palette)
                .then(|| vec![bits; self.shape.channels]),
            ..Metadata::default()
        };
        let mut chunks = Chunks::new(self.source);
        let behind = chunks.behind(self.prelude.data).unwrap_or_default();
        let before = self.prelude.others.iter().map(|chunk| (false, chunk));
        for (behind, chunk) in before.chain(behind.iter().map(|chunk| (true, chunk))) {
            if let Ok(data) = chunks.data(chunk) {
                let chunk = metadata::Chunk {
                    kind: chunk.kind,
                    behind,
                    data,
                };
                super::metadata::take(&mut metadata, chunk, &self.shape, plain, remarks);
            }
        }
        Ok(metadata)
    }

    /// Decodes a PNG of any kind into 1–4 channels: 16 bits stay 16, fewer than 8 are scaled to 8
    /// (value·255/(2ⁿ−1)), palettes become RGB, and tRNS becomes an alpha channel.
    ///
    /// Every CRC, the Adler-32 and the end of the file are checked: an image is whole or an error,
    /// unless damage is to be salvaged.
    pub fn decode(&mut self, salvage: &Salvage) -> Result<Image> {
        let Reader {
            source,
            ref prelude,
            ref mut data,
            shape,
        } = *self;
        let total = prelude.header.scanline_bytes()?;
        let data = data.take().context("its image data were read before")?;
        let inflater = Inflater::new(data);
        if !prelude.is_plain() {
            salvage.take(inflater.each(total, |_| Ok(())))?;
            return library::decode(source, shape, salvage);
        }
        let mut samples = salvage.samples(&shape)?;
        let layout = Layout::of(&shape);
        if let Some(index) = &prelude.index {
            let image = samples.as_bytes_mut();
            // Whatever is wrong with the segments, the stream as a whole tells; it may even be right.
            if segments::decode(source, prelude, index, image, layout).is_ok() {
                return Ok(Image::new(shape, samples));
            }
        }
        let mut rows = Rows::new(samples.as_bytes_mut(), layout);
        let read = if total < WORTH_A_THREAD || rayon::current_num_threads() == 1 {
            inflater.each(total, |bytes| rows.push(bytes))
        } else {
            inflater.each_apart(total, |bytes| rows.push(bytes))
        };
        if read.is_err() {
            salvage.take(read)?;
            samples = salvage.samples(&shape)?;
            let mut rows = Rows::new(samples.as_bytes_mut(), layout);
            prefix::fill(source, prelude, &mut rows)?;
        }
        Ok(Image::new(shape, samples))
    }
}

/// Reads the image of a file.
pub fn decode(source: &Source) -> Result<Image> {
    Reader::open(source, false)?.decode(&Salvage::default())
}
