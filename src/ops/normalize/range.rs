//! Ranges: in the values of a file, as the user types them, and in samples in memory, as the
//! operation uses them.

use crate::image::number::{self, Number};
use crate::image::{Depth, Values};
use anyhow::{Result, bail, ensure};
use std::str::FromStr;

/// A range of values, `MIN:MAX` with MIN below MAX: whole numbers, or the 32-bit floating-point
/// numbers that are nearest to what was typed.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Range {
    /// The smallest value.
    pub min: Number,
    /// The largest value.
    pub max: Number,
}

impl Range {
    /// A range of whole numbers.
    pub const fn of_whole(min: i32, max: i32) -> Range {
        Range {
            min: Number::Whole(min as i64),
            max: Number::Whole(max as i64),
        }
    }
}

impl Range {
    /// Parses a range of results, which have 16 bits at most.
    ///
    /// # Errors
    /// Anything else.
    pub fn of_results(text: &str) -> Result<Range, String> {
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
}

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Range, String> {
        let (min, max) = text
            .split_once(':')
            .ok_or("expected two values with a colon between, as 0:4095")?;
        let value = |text: &str| {
            let whole = text.trim().parse::<i64>().ok();
            let whole = whole.filter(|value| value.unsigned_abs() <= 1 << 53);
            let real = || {
                let value = text.trim().parse::<f32>().ok()?;
                // As 1e3, which integers have too.
                Some(match value.fract() == 0.0 && value.abs() < 16_777_216.0 {
                    true => Number::Whole(value as i64),
                    false => Number::Real(value),
                })
            };
            let value = whole.map(Number::Whole).or_else(real);
            value
                .filter(|value| value.as_f32().is_finite())
                .ok_or_else(|| format!("'{text}' is no number that samples can have"))
        };
        let range = Range {
            min: value(min)?,
            max: value(max)?,
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
            return Ok(());
        };
        let (Number::Whole(min), Number::Whole(max)) = (self.min, self.max) else {
            bail!(
                "{option} {}:{} has decimals, and the samples are whole numbers",
                self.min,
                self.max
            );
        };
        ensure!(
            least <= min && max <= most,
            "{option} {min}:{max} goes beyond {least}:{most}, the values of {values}"
        );
        Ok(())
    }

    /// The range in samples of 32 bits in memory, of a type that it fits.
    pub(super) fn wide(self, values: Values) -> (u32, u32) {
        let sample = |number: Number| match (values.depth, number) {
            (Depth::Float, _) => number::key(number.as_f32().to_bits()),
            (_, Number::Real(value)) => value as u32,
            (_, Number::Whole(value)) if values.signed => value as u32 ^ number::TOP,
            (_, Number::Whole(value)) => value as u32,
        };
        (sample(self.min), sample(self.max))
    }

    /// The range in samples of 8 or 16 bits in memory, of a type that it fits.
    pub(super) fn samples(self, values: Values) -> (u16, u16) {
        let sample = |number: Number| values.sample(number.as_f64() as i32);
        (sample(self.min), sample(self.max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Depth;

    #[test]
    fn what_may_be_typed() {
        let range = |text: &str| text.parse::<Range>();
        assert_eq!(range("0:65535"), Ok(Range::of_whole(0, 65535)));
        assert_eq!(range("-32768:32767"), Ok(Range::of_whole(-32768, 32767)));
        assert_eq!(range("-5 : -4"), Ok(Range::of_whole(-5, -4)));
        assert_eq!(range("0.0:1e3"), Ok(Range::of_whole(0, 1000)));
        let real = Range {
            min: Number::Real(-0.1),
            max: Number::Real(1e30),
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
            let fits = |min, max| Range::of_whole(min, max).fits("--to", values).is_ok();
            assert!(fits(least, most) && !fits(least - 1, 0) && !fits(0, most + 1));
        }
    }
}
