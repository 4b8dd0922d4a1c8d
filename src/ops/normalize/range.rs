//! Ranges: in the values of a file, as the user types them, and in samples in memory, as the
//! operation uses them.

use crate::image::Values;
use anyhow::{Result, ensure};
use std::str::FromStr;

/// A range of values, `MIN:MAX` with MIN below MAX, from −32768 to 65535.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Range {
    /// The smallest value.
    pub min: i32,
    /// The largest value.
    pub max: i32,
}

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Range, String> {
        let (min, max) = text
            .split_once(':')
            .ok_or("expected two values with a colon between, as 0:4095")?;
        let value = |text: &str| {
            let value = text.trim().parse::<i32>().ok();
            value
                .filter(|value| (i16::MIN.into()..=u16::MAX.into()).contains(value))
                .ok_or_else(|| format!("'{text}' is not a whole number from -32768 to 65535"))
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
        let (least, most) = (values.least(), values.most());
        ensure!(
            least <= self.min && self.max <= most,
            "{option} {}:{} goes beyond {least}:{most}, the values of {values}",
            self.min,
            self.max
        );
        Ok(())
    }

    /// The range in samples in memory.
    pub(super) fn samples(self, values: Values) -> (u16, u16) {
        (values.sample(self.min), values.sample(self.max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Depth;

    #[test]
    fn what_may_be_typed() {
        let range = |text: &str| text.parse::<Range>().map(|range| (range.min, range.max));
        assert_eq!(range("0:65535"), Ok((0, 65535)));
        assert_eq!(range("-32768:32767"), Ok((-32768, 32767)));
        assert_eq!(range("-5 : -4"), Ok((-5, -4)));
        for wrong in [
            "", "5", "5:", "5:5", "9:5", "-32769:0", "0:65536", "1.5:2", "a:b",
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
            assert_eq!(
                (values.sample(least), values.sample(most)),
                (0, depth.full())
            );
            assert_eq!(values.value(values.zero()), 0);
            let fits = |min, max| Range { min, max }.fits("--to", values).is_ok();
            assert!(fits(least, most) && !fits(least - 1, 0) && !fits(0, most + 1));
        }
    }
}
