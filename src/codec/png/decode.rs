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

use crate::files::Source;
use crate::image::{Image, Samples};
use anyhow::Result;
use header::Prelude;
use inflate::Inflater;
use unfilter::{Layout, Rows};

/// Bytes of image from which a second thread pays for its start.
const WORTH_A_THREAD: usize = 1 << 20;

/// Decodes a PNG of any kind into 1–4 channels: 16 bits stay 16, fewer than 8 are scaled to 8
/// (value·255/(2ⁿ−1)), palettes become RGB, and tRNS becomes an alpha channel.
///
/// Every CRC, the Adler-32 and the end of the file are checked: an image is whole or an error.
/// A header that promises more than the file can hold is refused before memory is asked for.
pub fn decode(source: &Source) -> Result<Image> {
    let (prelude, data) = Prelude::read(source)?;
    let shape = prelude.shape()?;
    let inflater = Inflater::new(data);
    if !prelude.is_plain() {
        inflater.each(prelude.header.scanline_bytes()?, |_| Ok(()))?;
        return library::decode(source, shape);
    }
    let mut samples = Samples::zeroed(&shape)?;
    let layout = Layout::of(&shape);
    if let Some(index) = &prelude.index {
        let image = samples.as_bytes_mut();
        // Whatever is wrong with the segments, the stream as a whole tells; it may even be right.
        if segments::decode(source, &prelude, index, image, layout).is_ok() {
            return Ok(Image::new(shape, samples));
        }
    }
    let total = prelude.header.scanline_bytes()?;
    let threads = idle_threads();
    if parallel::is_worth(source.len(), total, threads) {
        let mut rows = Rows::new(samples.as_bytes_mut(), layout);
        let data = prelude.image_data(source)?;
        // An error here may be one of the file or a limit of the method: the plain way tells.
        if parallel::each(data, total, threads, |bytes| rows.push(bytes)).is_ok() {
            return Ok(Image::new(shape, samples));
        }
    }
    let mut rows = Rows::new(samples.as_bytes_mut(), layout);
    if total < WORTH_A_THREAD {
        inflater.each(total, |bytes| rows.push(bytes))?;
    } else {
        inflater.each_apart(total, |bytes| rows.push(bytes))?;
    }
    Ok(Image::new(shape, samples))
}

/// Threads that may help: of a pool that this one belongs to, the others have work of their own.
fn idle_threads() -> usize {
    match rayon::current_thread_index() {
        Some(_) => 1,
        None => rayon::current_num_threads(),
    }
}
