//! Ranges. The user types them in values of the file; the operation uses them as samples in memory.

use crate::image::number::{self, Number};
use crate::image::{Depth, Image, Samples, Values};
use crate::ops::min_max::{MinMax, Unsigned};
use crate::ops::{SampleTypes, wide};
use anyhow::{Context, Result, bail, ensure};
use rayon::prelude::*;
use std::str::FromStr;

/// A range of values, `MIN:MAX` with MIN below MAX.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Range {
    /// The smallest value.
    pub min: Number,
    /// The largest value.
    pub max: Number,
}

/// Where the input range of an image comes from.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum InputRange {
    /// These values, for every image.
    Values(Range),
    /// The display window of each file (DICOM's WindowCenter and WindowWidth).
    #[serde(serialize_with = "auto_window")]
    Window,
    /// The range that `zscale` measures.
    #[serde(serialize_with = "zscale")]
    Zscale,
    /// The range and the midtones that `stf` measures.
    #[serde(serialize_with = "stf")]
    Stf,
}

/// The value of `--range` for the window of the file.
const AUTO_WINDOW: &str = "auto-window";

/// The value of `--range` for the range of astropy's ZScaleInterval.
const ZSCALE: &str = "zscale";

/// The value of `--range` for a screen transfer function.
const STF: &str = "stf";

fn auto_window<S: serde::Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(AUTO_WINDOW)
}

fn zscale<S: serde::Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(ZSCALE)
}

fn stf<S: serde::Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(STF)
}

impl From<Range> for InputRange {
    fn from(range: Range) -> InputRange {
        InputRange::Values(range)
    }
}

impl FromStr for InputRange {
    type Err = String;

    fn from_str(text: &str) -> Result<InputRange, String> {
        match text {
            AUTO_WINDOW => Ok(InputRange::Window),
            ZSCALE => Ok(InputRange::Zscale),
            STF => Ok(InputRange::Stf),
            _ => text.parse().map(InputRange::Values),
        }
    }
}

impl InputRange {
    /// The range for a file with this window; `None` if it is measured.
    ///
    /// # Errors
    /// The window is requested, but the file has none.
    pub(super) fn resolve(self, window: Option<(i64, i64)>) -> Result<Option<Range>> {
        let window = || {
            let (min, max) = window.context(
                "the file stores no window for --range auto-window, unlike DICOM (use --range MIN:MAX)",
            )?;
            let (min, max) = (Number::Whole(min), Number::Whole(max));
            Ok(Range { min, max })
        };
        match self {
            InputRange::Values(range) => Ok(Some(range)),
            InputRange::Window => window().map(Some),
            InputRange::Zscale | InputRange::Stf => Ok(None),
        }
    }
}

impl Range {
    /// A range of whole numbers.
    pub const fn from_integers(min: i32, max: i32) -> Range {
        Range {
            min: Number::Whole(min as i64),
            max: Number::Whole(max as i64),
        }
    }

    /// Parses a range of output samples, which have at most 16 bits.
    ///
    /// # Errors
    /// Text that is not such a range.
    pub fn parse_output(text: &str) -> Result<Range, String> {
        let range = text.parse::<Range>()?;
        for number in [range.min, range.max] {
            let Number::Whole(value) = number else {
                return Err(format!("'{number}' is not a whole number"));
            };
            if !(i16::MIN.into()..=u16::MAX.into()).contains(&value) {
                return Err(format!(
                    "'{value}' is not a whole number from -32768 to 65535"
                ));
            }
        }
        Ok(range)
    }

    /// Parses a window, `CENTER:WIDTH`. Whole numbers select WIDTH values from CENTER − ⌊WIDTH/2⌋ (for an
    /// even width as in DICOM PS3.3, C.11.2.1.2.1); other numbers select CENTER − WIDTH/2 to
    /// CENTER + WIDTH/2.
    ///
    /// # Errors
    /// Text that is not a window, and a window of fewer than two values.
    pub fn parse_window(text: &str) -> Result<Range, String> {
        let (center, width) = text
            .split_once(':')
            .ok_or("expected a center and a width separated by a colon, e.g. 40:400 (--range auto-window uses the window of each file)")?;
        let whole = |text: &str| text.trim().parse::<i32>().ok().map(i64::from);
        if let Some((center, width)) = whole(center).zip(whole(width)) {
            if width < 2 {
                return Err("a window must contain at least two values".into());
            }
            let min = center - width / 2;
            return Ok(Range {
                min: Number::Whole(min),
                max: Number::Whole(min + width - 1),
            });
        }
        let real = |text: &str| {
            let value = text.trim().parse::<f64>().ok();
            value
                .filter(|value| (*value as f32).is_finite())
                .ok_or_else(|| number::not_a_value(text))
        };
        let (center, width) = (real(center)?, real(width)?);
        let (min, max) = (center - width / 2.0, center + width / 2.0);
        if min < max && (min as f32).is_finite() && (max as f32).is_finite() {
            Ok(Range {
                min: Number::Double(min),
                max: Number::Double(max),
            })
        } else {
            Err("the width of a window must be positive".into())
        }
    }

    /// A warning if no colour sample of an image lies in the range, so that the result is only black and
    /// white. `nan` replaces samples that are not finite.
    pub(super) fn warn_if_empty(
        self,
        image: &Image,
        types: &SampleTypes,
        nan: Option<f64>,
    ) -> Option<String> {
        let (channels, colours) = (types.channels, types.colours());
        let values = types.read;
        let span = match image.samples() {
            Samples::U8(samples) => {
                let range = self.samples(values).map(|sample| sample as u8);
                extremes_if_all_outside(samples, channels, colours, range, |sample| sample)
                    .map(|range| range.map(u64::from))
            }
            Samples::U16(samples) => {
                let step = values.depth.steps(types.depth);
                let range = self.samples(values).map(|sample| sample * step);
                extremes_if_all_outside(samples, channels, colours, range, |sample| sample)
                    .map(|range| range.map(|sample| u64::from(sample / step)))
            }
            Samples::U32(samples) => {
                let range = self.wide(values).map(|sample| sample as u32);
                let nan = wide::replacement(nan, values.depth).map(|sample| sample as u32);
                let value = |sample| match nan {
                    Some(nan) if wide::is_nonfinite(values.depth, sample) => nan,
                    _ => sample,
                };
                extremes_if_all_outside(samples, channels, colours, range, value)
                    .map(|range| range.map(u64::from))
            }
            Samples::U64(samples) => {
                let range = self.wide(values);
                let nan = wide::replacement(nan, values.depth);
                let value = |sample| match nan {
                    Some(nan) if !number::FINITE64.contains(&sample) => nan,
                    _ => sample,
                };
                extremes_if_all_outside(samples, channels, colours, range, value)
            }
        };
        let MinMax { min, max } = span?.map(|sample| values.number(sample));
        Some(format!(
            "no sample lies in the range {}:{}: the samples range from {min} to {max}",
            self.min, self.max
        ))
    }
}

/// The smallest and the largest `value` of the colour samples, if none lies in the range. Stops at the first sample that
/// lies in it.
fn extremes_if_all_outside<T: Unsigned + Send + Sync>(
    samples: &[T],
    channels: usize,
    colours: usize,
    range: MinMax<T>,
    value: impl Fn(T) -> T + Sync,
) -> Option<MinMax<T>> {
    let range = range.min..=range.max;
    let pixels = || {
        let pixels = samples.par_chunks_exact(channels).with_min_len(1 << 14);
        pixels.map(|pixel| &pixel[..colours])
    };
    if pixels().any(|pixel| pixel.iter().any(|&sample| range.contains(&value(sample)))) {
        return None;
    }
    let values = pixels().flat_map_iter(|pixel| pixel.iter().map(|&sample| value(sample)));
    values.map(MinMax::one).reduce_with(MinMax::merge)
}

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Range, String> {
        let (min, max) = text.split_once(':').ok_or(if text == "auto" {
            "use --auto to ignore outliers, or --range auto-window for the window of each file"
        } else {
            "expected two values separated by a colon, e.g. 0:4095"
        })?;
        let range = Range {
            min: min.parse()?,
            max: max.parse()?,
        };
        if range.min < range.max {
            Ok(range)
        } else {
            Err("the first value must be below the second".into())
        }
    }
}

impl Range {
    /// Refuses a range of `option` with values that samples of this type cannot have.
    pub(super) fn fits(self, option: &str, values: Values) -> Result<()> {
        let Some((least, most)) = values.limits() else {
            let MinMax { min, max } = self.wide(values);
            ensure!(
                min < max,
                "{option} {}:{} is a single value for {values}",
                self.min,
                self.max
            );
            return Ok(());
        };
        let (Number::Whole(min), Number::Whole(max)) = (self.min, self.max) else {
            bail!(
                "{option} {}:{} has decimals, but the samples are integers",
                self.min,
                self.max
            );
        };
        ensure!(
            least <= min && max <= most,
            "{option} {min}:{max} exceeds {least}:{most}, the range of {values}"
        );
        Ok(())
    }

    /// The range as 32- or 64-bit samples in memory. The range must fit their type.
    pub(super) fn wide(self, values: Values) -> MinMax<u64> {
        let sample = |number: Number| match (values.depth, number) {
            (Depth::Double, _) => number::key64(number.as_f64().to_bits()),
            (Depth::Float, _) => number::key(number.as_f32().to_bits()).into(),
            (_, Number::Whole(value)) if values.signed => (value as u32 ^ number::TOP).into(),
            (_, number) => (number.as_f64() as u32).into(),
        };
        self.bounds(sample)
    }

    /// The range as 8- or 16-bit samples in memory. The range must fit their type.
    pub(super) fn samples(self, values: Values) -> MinMax<u16> {
        self.bounds(|number| values.sample(number.as_f64() as i32))
    }

    /// The range with both ends converted by `sample`.
    fn bounds<T>(self, sample: impl Fn(Number) -> T) -> MinMax<T> {
        MinMax {
            min: sample(self.min),
            max: sample(self.max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Depth;

    #[test]
    fn typed_ranges_are_parsed() {
        let range = |text: &str| text.parse::<Range>();
        assert_eq!(range("0:65535"), Ok(Range::from_integers(0, 65535)));
        assert_eq!(
            range("-32768:32767"),
            Ok(Range::from_integers(-32768, 32767))
        );
        assert_eq!(range("-5 : -4"), Ok(Range::from_integers(-5, -4)));
        assert_eq!(range("0.0:1e3"), Ok(Range::from_integers(0, 1000)));
        let real = Range {
            min: Number::Double(-0.1),
            max: Number::Double(1e30),
        };
        assert_eq!(range("-0.1:1e30"), Ok(real));
        for wrong in [
            "", "5", "5:", "5:5", "9:5", "0.1:0.1", "a:b", "0:inf", "nan:1", "0:1e39",
        ] {
            assert!(range(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn values_and_samples() {
        for (depth, signed, least, most) in [
            (Depth::Eight, false, 0, 255),
            (Depth::Eight, true, -128, 127),
            (Depth::Sixteen, false, 0, 65535),
            (Depth::Sixteen, true, -32768, 32767),
        ] {
            let values = Values { depth, signed };
            assert_eq!((values.least(), values.most()), (least, most));
            assert_eq!(values.limits(), Some((least.into(), most.into())));
            assert_eq!(
                (values.sample(least), values.sample(most)),
                (0, depth.full())
            );
            assert_eq!(values.value(values.zero()), 0);
            let fits = |min, max| Range::from_integers(min, max).fits("--to", values).is_ok();
            assert!(fits(least, most) && !fits(least - 1, 0) && !fits(0, most + 1));
        }
    }
}
