//! PNG file to image.

mod block_header;
mod chunks;
mod codes;
mod data;
mod deflate;
mod finder;
mod header;
mod inflate;
mod library;
mod parallel;
mod part;
mod segments;
mod unfilter;
mod unfilter_simd;
mod zlib;

use crate::files::Source;
use crate::image::{Image, Samples, Shape};
use anyhow::Result;
use data::ImageData;
use header::Prelude;
use inflate::Inflater;
use unfilter::{Layout, Rows};

pub use zlib::Unzip;

/// Bytes of image from which a second thread pays for its start.
const WORTH_A_THREAD: usize = 1 << 20;

/// A PNG whose header has been read and believed, as far as the file's size allows.
pub struct Reader<'a> {
    source: &'a Source,
    prelude: Prelude,
    data: ImageData<'a>,
    /// What decoding gives: 1–4 channels; 16 bits stay 16, fewer than 8 become 8.
    pub shape: Shape,
}

impl<'a> Reader<'a> {
    /// Reads what stands before the image data. A header that promises more than the file can hold
    /// is refused before memory is asked for.
    pub fn open(source: &'a Source) -> Result<Reader<'a>> {
        let (prelude, data) = Prelude::read(source)?;
        let shape = prelude.shape()?;
        Ok(Reader {
            source,
            prelude,
            data,
            shape,
        })
    }

    /// Decodes a PNG of any kind into 1–4 channels: 16 bits stay 16, fewer than 8 are scaled to 8
    /// (value·255/(2ⁿ−1)), palettes become RGB, and tRNS becomes an alpha channel.
    ///
    /// Every CRC, the Adler-32 and the end of the file are checked: an image is whole or an error.
    pub fn decode(self) -> Result<Image> {
        let Reader {
            source,
            prelude,
            data,
            shape,
        } = self;
        let total = prelude.header.scanline_bytes()?;
        let inflater = Inflater::new(data);
        if !prelude.is_plain() {
            inflater.each(total, |_| Ok(()))?;
            return library::decode(source, shape);
        }
        let mut samples = Samples::any(&shape)?;
        let layout = Layout::of(&shape);
        if let Some(index) = &prelude.index {
            let image = samples.as_bytes_mut();
            // Whatever is wrong with the segments, the stream as a whole tells; it may even be right.
            if segments::decode(source, &prelude, index, image, layout).is_ok() {
                return Ok(Image::new(shape, samples));
            }
        }
        let threads = rayon::current_num_threads();
        if parallel::is_worth(source.len(), total, threads) {
            let data = prelude.image_data(source)?;
            let mut rows = Rows::new(samples.as_bytes_mut(), layout);
            // An error here may be one of the file or a limit of the method: the plain way tells.
            if parallel::each(data, total, threads, |bytes| rows.push(bytes)).is_ok() {
                return Ok(Image::new(shape, samples));
            }
        }
        let mut rows = Rows::new(samples.as_bytes_mut(), layout);
        if total < WORTH_A_THREAD || rayon::current_num_threads() == 1 {
            inflater.each(total, |bytes| rows.push(bytes))?;
        } else {
            inflater.each_apart(total, |bytes| rows.push(bytes))?;
        }
        Ok(Image::new(shape, samples))
    }
}

/// Reads the image of a file.
pub fn decode(source: &Source) -> Result<Image> {
    Reader::open(source)?.decode()
}
