//! A page as a preview shows it: without alpha, and with 0 as black.

use super::error_policy::ErrorPolicy;
use super::format::{Decoder, PageSurvey};
use crate::image::metadata::{Alpha, Diagnostics, Metadata};
use crate::image::number::Number;
use crate::image::{Image, Samples, Shape, Values};
use anyhow::Result;
use rayon::prelude::*;

/// Decodes the pages of another decoder.
pub struct PreviewDecoder<'a> {
    decoder: Box<dyn Decoder + 'a>,
    /// Whether the last channel of two or four is left out.
    drops_alpha: bool,
    /// Whether 0 is white in the file.
    is_inverted: bool,
}

impl<'a> PreviewDecoder<'a> {
    /// A decoder of the same pages, and whether their values are inverted. It is the given one if previews show its pages as
    /// they are.
    ///
    /// # Errors
    /// Metadata that cannot be read.
    pub fn wrap(decoder: Box<dyn Decoder + 'a>) -> Result<(Box<dyn Decoder + 'a>, bool)> {
        let metadata = decoder.metadata(&mut Diagnostics::default())?;
        let drops_alpha = decoder.shape().has_alpha() && metadata.alpha != Alpha::Black;
        let is_inverted = metadata.white_is_zero;
        if !drops_alpha && !is_inverted {
            return Ok((decoder, false));
        }
        let preview = PreviewDecoder {
            decoder,
            drops_alpha,
            is_inverted,
        };
        Ok((Box::new(preview), is_inverted))
    }

    fn shown(&self, shape: Shape) -> Shape {
        let channels = match shape.channels {
            channels if self.drops_alpha && shape.has_alpha() => channels - 1,
            channels => channels,
        };
        Shape { channels, ..shape }
    }
}

/// The value of an inverted sample, or the value whose inverted sample has this one.
pub fn inverted(value: Number, values: Values) -> Number {
    match (values.limits(), value) {
        (Some((least, most)), Number::Whole(value)) => Number::Whole(least + most - value),
        (_, Number::Whole(value)) => Number::Whole(-value),
        (_, Number::Real(value)) => Number::Real(-value),
        (_, Number::Double(value)) => Number::Double(-value),
    }
}

/// The samples of all channels but the last.
fn without_last<T: Copy + Send + Sync>(samples: &[T], channels: usize) -> Samples
where
    Samples: From<Vec<T>>,
{
    let pixels = samples.par_chunks_exact(channels);
    let kept = pixels.flat_map_iter(|pixel| pixel[..channels - 1].iter().copied());
    kept.collect::<Vec<T>>().into()
}

impl Decoder for PreviewDecoder<'_> {
    fn pages(&self) -> usize {
        self.decoder.pages()
    }

    fn survey(&self, page: usize) -> Result<PageSurvey> {
        let whole = self.decoder.survey(page)?;
        let shape = self.shown(whole.shape);
        // Both are in memory at the same time.
        let beside = if shape == whole.shape {
            0
        } else {
            whole.shape.bytes() as u64
        };
        Ok(PageSurvey {
            shape,
            metadata_bytes: whole.metadata_bytes.saturating_add(beside),
        })
    }

    fn is_reduced(&self, page: usize) -> Result<bool> {
        self.decoder.is_reduced(page)
    }

    fn check_full(&self, page: usize) -> Result<()> {
        self.decoder.check_full(page)
    }

    fn turn_to(&mut self, page: usize) -> Result<()> {
        self.decoder.turn_to(page)
    }

    fn shape(&self) -> Shape {
        self.shown(self.decoder.shape())
    }

    fn metadata(&self, diagnostics: &mut Diagnostics) -> Result<Metadata> {
        let mut metadata = self.decoder.metadata(diagnostics)?;
        let shape = self.decoder.shape();
        if self.is_inverted {
            let values = metadata.values(shape.depth);
            metadata.white_is_zero = false;
            metadata.maxval = None;
            metadata.window = None;
            for value in &mut metadata.no_data {
                *value = inverted(*value, values);
            }
        }
        if self.shown(shape) != shape {
            metadata.alpha = Alpha::default();
            metadata.significant = None;
        }
        Ok(metadata)
    }
    fn decoding(&self) -> String {
        self.decoder.decoding()
    }

    fn decode(&mut self, policy: &ErrorPolicy) -> Result<Image> {
        let image = self.decoder.decode(policy)?;
        let (whole, shape) = (image.shape(), self.shape());
        let mut image = if shape == whole {
            image
        } else {
            let samples = match image.samples() {
                Samples::U8(samples) => without_last(samples, whole.channels),
                Samples::U16(samples) => without_last(samples, whole.channels),
                Samples::U32(samples) => without_last(samples, whole.channels),
                Samples::U64(samples) => without_last(samples, whole.channels),
            };
            Image::new(shape, samples)
        };
        if self.is_inverted {
            // For every sample type, also for the keys of floating point.
            let bytes = image.samples_mut().as_bytes_mut();
            bytes.par_iter_mut().for_each(|byte| *byte = !*byte);
        }
        Ok(image)
    }
}
