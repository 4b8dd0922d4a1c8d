//! Two percentiles, between which a range lies.

use std::str::FromStr;

/// Two percentiles, in millionths of a percent, from 0 to 10⁸.
///
/// With the N samples in order, counted from 0, the lower percentile is the sample at ⌊p·(N − 1)⌋
/// and the upper the sample at ⌈p·(N − 1)⌉: no value between two samples is invented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Clip {
    low: u64,
    high: u64,
}

impl Clip {
    /// One hundred percent.
    const WHOLE: u64 = 100_000_000;

    /// From the smallest sample to the largest.
    pub const NONE: Clip = Clip {
        low: 0,
        high: Clip::WHOLE,
    };

    /// Without the outliers: from 0.1 to 99.9 percent.
    pub const AUTO: Clip = Clip {
        low: Clip::WHOLE / 1000,
        high: Clip::WHOLE / 1000 * 999,
    };

    /// From `low` to `high` percent.
    pub fn from_percentages(low: u64, high: u64) -> Clip {
        let one_percent = Clip::WHOLE / 100;
        Clip {
            low: low * one_percent,
            high: high * one_percent,
        }
    }

    /// The ranks of both percentiles among `count` sorted samples.
    pub fn ranks(&self, count: u64) -> (u64, u64) {
        let rank = |p: u64| u128::from(p) * u128::from(count.saturating_sub(1));
        let low = rank(self.low) / u128::from(Clip::WHOLE);
        let high = rank(self.high).div_ceil(u128::from(Clip::WHOLE));
        (low as u64, high as u64)
    }
}

impl FromStr for Clip {
    type Err = String;

    fn from_str(text: &str) -> Result<Clip, String> {
        let (low, high) = text
            .split_once(':')
            .ok_or("expected two percentages separated by a colon, e.g. 0.1:99.9")?;
        let clip = Clip {
            low: percent(low)?,
            high: percent(high)?,
        };
        if clip.low < clip.high {
            Ok(clip)
        } else {
            Err("the first percentage must be below the second".into())
        }
    }
}

/// Parses a percentage into millionths of a percent.
fn percent(text: &str) -> Result<u64, String> {
    let text = text.trim().trim_end_matches('%');
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let parsed = (!whole.is_empty() && digits(whole) && digits(decimals) && decimals.len() <= 6)
        .then(|| format!("{whole}{decimals:0<6}").parse().ok())
        .flatten();
    parsed.filter(|&value| value <= Clip::WHOLE).ok_or_else(|| {
        format!("'{text}' is not a percentage from 0 to 100 with at most 6 decimals")
    })
}
