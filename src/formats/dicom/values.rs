//! The values that samples of a DICOM file stand for: how they are rescaled, and which window of values is displayed.

use super::coding::Coding;
use super::header::Header;
use super::pixels::{PIECE, Stored};
use crate::image::metadata::Diagnostics;
use crate::image::number::Number;
use crate::image::{Depth, Values};
use crate::os::Source;
use anyhow::Result;
use rayon::prelude::*;

impl Stored {
    /// Reads how samples are rescaled to values, and chooses the type of the values; returns whether they differ from the
    /// samples. A rescaling that does not yield integers is not applied, with a warning in `diagnostics`.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn rescale(
        &mut self,
        header: &Header,
        source: &Source,
        pages: usize,
        diagnostics: &mut Diagnostics,
    ) -> Result<bool> {
        let one = |element| {
            header
                .decimals((0x28, element))
                .and_then(|all| all.first().copied())
        };
        let (slope, intercept) = (one(0x1053).unwrap_or(1.0), one(0x1052).unwrap_or(0.0));
        let differing = header.differs(&[0x1052, 0x1053]);
        if (slope, intercept) == (1.0, 0.0) && !differing {
            return Ok(false);
        }
        let whole = |number: f64| number.fract() == 0.0 && number.abs() <= 2f64.powi(30);
        let mut values = None;
        if whole(slope) && whole(intercept) && slope != 0.0 && !differing && self.channels == 1 {
            let identity = (self.slope, self.intercept);
            (self.slope, self.intercept) = (slope as i64, intercept as i64);
            values = self.narrowest_type(source, pages)?;
            if values.is_none() {
                (self.slope, self.intercept) = identity;
            }
        }
        match values {
            Some(values) => self.values = values,
            None if differing => diagnostics.warnings.push(
                "samples are read as stored: RescaleSlope and RescaleIntercept differ from \
                 frame to frame"
                    .into(),
            ),
            None => diagnostics.warnings.push(format!(
                "samples are read as stored: {slope} × sample + {intercept} (RescaleSlope, RescaleIntercept) is not always a 32-bit integer"
            )),
        }
        Ok(values.is_some())
    }

    /// The narrowest type, not narrower than the samples, that holds all possible values of samples of so many bits, or
    /// if there is none, all values of the actual samples.
    fn narrowest_type(&self, source: &Source, pages: usize) -> Result<Option<Values>> {
        let possible = if self.signed {
            (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1)
        } else {
            (0, (1i64 << self.bits) - 1)
        };
        let rescaled = |(a, b): (i64, i64)| {
            let (a, b) = (
                a * self.slope + self.intercept,
                b * self.slope + self.intercept,
            );
            (a.min(b), a.max(b))
        };
        let all = [
            (Depth::Eight, false),
            (Depth::Eight, true),
            (Depth::Sixteen, false),
            (Depth::Sixteen, true),
            (Depth::ThirtyTwo, false),
            (Depth::ThirtyTwo, true),
        ];
        let narrowest = |(min, max): (i64, i64), widest: Depth| {
            let wide = |depth: Depth| {
                depth.bits() >= self.values.depth.bits() && depth.bits() <= widest.bits()
            };
            let types = all.iter().filter(|(depth, _)| wide(*depth));
            let types = types.map(|&(depth, signed)| Values { depth, signed });
            let mut types = types.filter(|values| {
                let limits = values.limits();
                limits.is_some_and(|(least, most)| least <= min && max <= most)
            });
            types.next()
        };
        // Few programs support 32 bits, so the actual samples are inspected first.
        let possible_type = narrowest(rescaled(possible), Depth::Sixteen);
        if possible_type.is_some() || self.coding != Coding::None {
            return Ok(possible_type.or_else(|| narrowest(rescaled(possible), Depth::ThirtyTwo)));
        }
        let extremes = self.extremes(source, pages)?;
        Ok(narrowest(rescaled(extremes), Depth::ThirtyTwo))
    }

    /// The smallest and the largest sample of all frames.
    fn extremes(&self, source: &Source, pages: usize) -> Result<(i64, i64)> {
        let there = source.len().saturating_sub(self.start) / self.word() as u64;
        let count = ((self.samples() as u64).saturating_mul(pages as u64)).min(there);
        let pieces = (0..count.div_ceil(PIECE as u64)).into_par_iter();
        let each = pieces.map_init(
            Vec::new,
            |bytes: &mut Vec<u8>, piece| -> Result<(i64, i64)> {
                let first = piece * PIECE as u64;
                let samples = (count - first).min(PIECE as u64) as usize;
                bytes.resize(samples * self.word(), 0);
                self.read_words(source, bytes, first * self.word() as u64)?;
                let numbers = bytes
                    .chunks_exact(self.word())
                    .map(|word| self.number(word));
                Ok(numbers.fold((i64::MAX, i64::MIN), |(a, b), n| (a.min(n), b.max(n))))
            },
        );
        let join = |a: (i64, i64), b: (i64, i64)| Ok((a.0.min(b.0), a.1.max(b.1)));
        each.try_reduce(|| (i64::MAX, i64::MIN), join)
            .map(|(min, max)| if min > max { (0, 0) } else { (min, max) })
    }

    /// The values of pixels outside of what was recorded (PS3.3, C.7.5.1.1.2), in units of the samples in memory.
    pub fn padding(&self, header: &Header) -> Vec<Number> {
        /// The longest range of such values.
        const MOST: usize = 4096;
        let sample = |element| {
            let number = header.number((0x28, element))?;
            Some(if self.signed {
                (number as i16).into()
            } else {
                i64::from(number)
            })
        };
        let Some(padding) = sample(0x120) else {
            return Vec::new();
        };
        let limit = sample(0x121).unwrap_or(padding);
        let samples = padding.min(limit)..=padding.max(limit);
        let values = samples.map(|sample| Number::Whole(sample * self.slope + self.intercept));
        values.take(MOST).collect()
    }

    /// The smallest and the largest value of the window (PS3.3, C.11.2.1.2), in units of the samples in memory, rounded.
    pub fn window(&self, header: &Header) -> Option<(i64, i64)> {
        let first = |element| header.decimals((0x28, element))?.first().copied();
        let (center, width) = (first(0x1050)?, first(0x1051)?);
        let (min, max) = match header.text((0x28, 0x1056)).as_deref() {
            None | Some("LINEAR") => {
                let min = center - 0.5 - (width - 1.0) / 2.0;
                (min, min + width - 1.0)
            }
            Some("LINEAR_EXACT") => (center - width / 2.0, center + width / 2.0),
            Some(_) => return None,
        };
        // If the samples are not rescaled, the window is converted back to samples.
        let slope = first(0x1053).unwrap_or(1.0);
        let (slope, intercept) = if self.slope == slope as i64 && slope.fract() == 0.0 {
            (1.0, 0.0)
        } else {
            (slope, first(0x1052).unwrap_or(0.0))
        };
        let sample = |value: f64| ((value - intercept) / slope + 0.5).floor() as i64;
        let window = (sample(min), sample(max));
        let differing = header.differs(&[0x1050, 0x1051, 0x1052, 0x1053, 0x1056]);
        (!differing && slope > 0.0 && window.0 < window.1).then_some(window)
    }
}
