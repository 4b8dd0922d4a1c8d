//! `--range stf`: the screen transfer function that PixInsight and Siril choose for an astronomical image, with the
//! same range and midtones for all channels.
//!
//! For each colour channel, M is the median of its samples p, MAD is the median of |p − M|, and D = 1.4826·MAD. All are
//! fractions of the full depth. The median of an even number of samples is the mean of the two in the middle. If MAD is
//! 0, D is 0.001, as in Siril. Means are taken over the channels:
//!
//! * The range is c…1, with c = max(0, mean of M − 2.8·D), rounded to a sample.
//! * The midtones balance is m = f(mean of M − c), where f is the midtones transfer function with the balance 1/4, the
//!   brightness that the background is to have: f(x) = 3x/(2x + 1).
//! * If M > 1/2 in all channels, the image counts as inverted: the range is 0…c with c = min(1, mean of M + 2.8·D), and
//!   m = 1 − f(c − mean of M).
//!
//! Sources: PixInsight, *ScreenTransferFunction* and its script AutoSTF; Siril, `src/filters/mtf.c`. They compute in 32-
//! and 64-bit floating point and do not round c. Here everything is computed exactly, in integers. `medians` has the definition for
//! samples of 32 and 64 bits.

use super::curve::{Curve, Fraction};
use crate::ops::MinMax;
use crate::ops::counts::Counts;

/// 2.8·1.4826 in hundred-thousandths: 2.8·D in units of `UNIT`, for each quarter of a step of MAD.
const CLIPPING: i64 = 415_128;

/// 2.8·0.001 in units of `UNIT`, for each step of the full depth. It replaces 2.8·D if MAD is 0.
const LEAST_CLIPPING: i64 = 1120;

/// Sums of medians and clippings are integers in units of 1/`UNIT` of a step between samples.
const UNIT: i64 = 400_000;

/// The range and the midtones for an image with these counts of samples.
pub(super) fn range_and_midtones(counts: &Counts) -> (MinMax<u16>, Curve) {
    let colours = counts.channels - usize::from(counts.channels.is_multiple_of(2));
    let full = i64::from(counts.depth.full());
    let channels = counts.each().take(colours).map(|bins| {
        let median = twice_the_median(bins.iter().copied().enumerate());
        let mut deviations = vec![0; 2 * bins.len()];
        for (sample, count) in bins.iter().enumerate() {
            deviations[(2 * sample).abs_diff(median)] += count;
        }
        let deviation = twice_the_median(deviations.into_iter().enumerate());
        let clipping = match deviation {
            0 => LEAST_CLIPPING * full,
            _ => CLIPPING * deviation as i64,
        };
        (median as i64, clipping)
    });
    let channels: Vec<(i64, i64)> = channels.collect();
    let count = colours as i64;
    let is_inverted = channels.iter().all(|(median, _)| *median > full);
    let sign = if is_inverted { 1 } else { -1 };
    let sum = channels.iter();
    let sum: i64 = sum
        .map(|(median, clipping)| UNIT / 2 * median + sign * clipping)
        .sum();
    let end = (2 * sum + UNIT * count).div_euclid(2 * UNIT * count);
    let end = end.clamp(0, full);
    let medians: i64 = channels.iter().map(|(median, _)| median).sum();
    // The distance x = p/q of the end from the mean of the medians. It must not be 0, even if MAD is almost 0.
    let p = (sign * (2 * count * end - medians)).max(1);
    let q = 2 * count * full;
    let range = if is_inverted {
        MinMax {
            min: 0,
            max: end as u16,
        }
    } else {
        MinMax {
            min: end as u16,
            max: full as u16,
        }
    };
    (range, midtones(p as u64, q as u64, is_inverted))
}

/// The midtones for a distance p/q of the end of the range from the mean of the medians: f(p/q) = 3p/(2p + q), or 1 − f(p/q) for
/// an inverted image.
pub(super) fn midtones(p: u64, q: u64, is_inverted: bool) -> Curve {
    let numerator = if is_inverted { q - p } else { 3 * p };
    Curve::Midtones(Fraction::new(numerator, 2 * p + q))
}

/// Twice the median: the sum of the two values in the middle, or twice the one value. Returns 0 if there are no values.
fn twice_the_median(counts: impl Iterator<Item = (usize, u64)> + Clone) -> usize {
    let total: u64 = counts.clone().map(|(_, count)| count).sum();
    let value_of_rank = |rank: u64| {
        let mut before = 0;
        let mut counts = counts.clone();
        let value = counts.find(|(_, count)| {
            before += count;
            before > rank
        });
        value.map_or(0, |(value, _)| value)
    };
    value_of_rank(total.saturating_sub(1) / 2) + value_of_rank(total / 2)
}
