//! A page in bands of rows, from top to bottom.

use super::Reader;
use crate::image::{Image, Samples, Shape};
use anyhow::{Result, ensure};

/// Receives a band, and the number of its first row in the page.
pub type BandSink<'a> = dyn FnMut(usize, Image) -> Result<()> + 'a;

/// Decodes the selected page in bands of `rows` rows; the last may have fewer. `serially` is that of `Reader::rows`.
///
/// # Errors
/// Damage, which `Reader::decode` reports better, and errors of `sink`.
pub fn each_band(reader: &Reader, rows: usize, serially: bool, sink: &mut BandSink) -> Result<()> {
    let mut collector = Collector {
        page: reader.shape(),
        rows,
        top: 0,
        band: None,
    };
    reader.rows(serially, &mut |bytes| collector.push(bytes, sink))?;
    ensure!(
        collector.top == collector.page.height,
        "internal error: the decoder returned {} of {} rows",
        collector.top,
        collector.page.height
    );
    Ok(())
}

/// Collects the rows of a page in bands.
struct Collector {
    page: Shape,
    /// Rows of a band.
    rows: usize,
    /// The first row of the next band.
    top: usize,
    band: Option<PartialBand>,
}

/// A band some of whose rows are still to come.
struct PartialBand {
    shape: Shape,
    samples: Samples,
    /// Bytes of the samples so far.
    filled: usize,
}

impl Collector {
    fn push(&mut self, mut bytes: &[u8], sink: &mut BandSink) -> Result<()> {
        while !bytes.is_empty() {
            let mut band = match self.band.take() {
                Some(band) => band,
                None => self.new_band()?,
            };
            let missing = &mut band.samples.as_bytes_mut()[band.filled..];
            let (first, rest) = bytes.split_at(bytes.len().min(missing.len()));
            missing[..first.len()].copy_from_slice(first);
            bytes = rest;
            band.filled += first.len();
            if band.filled == band.shape.bytes() {
                sink(self.top, Image::new(band.shape, band.samples))?;
                self.top += band.shape.height;
            } else {
                self.band = Some(band);
            }
        }
        Ok(())
    }

    fn new_band(&self) -> Result<PartialBand> {
        let shape = Shape {
            height: self.rows.min(self.page.height - self.top),
            ..self.page
        };
        Ok(PartialBand {
            shape,
            samples: Samples::any(&shape)?,
            filled: 0,
        })
    }
}
