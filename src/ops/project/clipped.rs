//! Sigma-clipped means: the mean of the values of a pixel without those that are far from the others.
//!
//! Exact definition: all values are kept at first. With the mean m and the standard deviation σ of the kept values
//! (of the population: the root of Σ(v − m)²/n), those with |v − m| > K·σ are rejected, and stay rejected. That is repeated
//! until none is rejected, at most 5 times. A round that would reject all is left out.
//!
//! For whole numbers, n·(v − m) and n²·σ² = n·Σv² − (Σv)² are whole, and K is a whole number of thousandths, so that the
//! comparison is exact. For floating point, m, σ, m − K·σ and m + K·σ are doubles, computed as they are written here, with sums
//! in the order of the images, and v is kept from m − K·σ to m + K·σ, as `astropy.stats.sigma_clip` does.
//!
//! The kept values of a pixel are those in an interval, which each round makes smaller: that needs no memory for each value, and
//! no branch.

use super::WIDTH;
use crate::image::number::from_key;
use crate::image::simd::per_level;
use crate::ops::cpu::Sample;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The most rounds.
const ROUNDS: usize = 5;

/// The largest K, in thousandths.
const MOST: u32 = 100_000;

/// How many standard deviations from the mean values are kept, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sigma(u32);

impl Sigma {
    /// The nearest double.
    fn as_f64(self) -> f64 {
        f64::from(self.0) / 1000.0
    }

    /// ⌊K·√`spread`⌋, exactly.
    fn times_root(self, spread: u64) -> u64 {
        // Both squares have less than 2⁹⁹: K has at most 17 bits, and 10⁶ less than 20.
        let most = u128::from(self.0).pow(2) * u128::from(spread);
        let fits = |root: u64| 1_000_000 * u128::from(root).pow(2) <= most;
        // Three roundings of less than 2⁻⁵³ of a number below 2³⁹: at most 1 away.
        let mut root = (self.as_f64() * (spread as f64).sqrt()) as u64;
        while !fits(root) {
            root -= 1;
        }
        while fits(root + 1) {
            root += 1;
        }
        root
    }

    /// The samples that are kept, for definitions: of whole numbers.
    pub(super) fn kept(self, samples: &[u64]) -> Vec<u64> {
        let mut kept = samples.to_vec();
        for _ in 0..ROUNDS {
            let n = kept.len() as i128;
            let sum: i128 = kept.iter().map(|&v| i128::from(v)).sum();
            let squares: i128 = kept.iter().map(|&v| i128::from(v).pow(2)).sum();
            let most = i128::from(self.0).pow(2) * (n * squares - sum * sum);
            let is_near = |v: &u64| 1_000_000 * (n * i128::from(*v) - sum).pow(2) <= most;
            let near: Vec<u64> = kept.iter().copied().filter(is_near).collect();
            if near.is_empty() || near.len() == kept.len() {
                break;
            }
            kept = near;
        }
        kept
    }

    /// The values that are kept, for definitions: of floating point.
    pub(super) fn kept_reals(self, values: &[f64]) -> Vec<f64> {
        let mut kept = values.to_vec();
        for _ in 0..ROUNDS {
            let n = kept.len() as f64;
            let mean = kept.iter().fold(0.0, |sum, v| sum + v) / n;
            let squares = kept
                .iter()
                .fold(0.0, |sum, v| sum + (v - mean) * (v - mean));
            let reach = self.as_f64() * (squares / n).sqrt();
            let is_near = |v: &f64| (mean - reach..=mean + reach).contains(v);
            let near: Vec<f64> = kept.iter().copied().filter(is_near).collect();
            if near.is_empty() || near.len() == kept.len() {
                break;
            }
            kept = near;
        }
        kept
    }
}

impl FromStr for Sigma {
    type Err = String;

    fn from_str(text: &str) -> Result<Sigma, String> {
        let number = text.trim().parse::<f64>().ok();
        let thousandths = number.map(|number| (1000.0 * number).round());
        // A decimal of three digits is the double nearest to it.
        let sigma = thousandths
            .filter(|it| (1.0..=f64::from(MOST)).contains(it))
            .map(|it| Sigma(it as u32))
            .filter(|sigma| Some(sigma.as_f64()) == number);
        sigma.ok_or_else(|| {
            format!("'{text}' is not a number from 0.001 to 100 with at most three decimals")
        })
    }
}

impl fmt::Display for Sigma {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.as_f64().fmt(f)
    }
}

/// The kept samples of each pixel: their number, sum, and sum of squares. At most 65535 samples of 16 bits.
pub(super) struct Totals {
    /// How many samples.
    pub count: [u32; WIDTH],
    /// Their sum.
    pub sum: [u32; WIDTH],
    squares: [u64; WIDTH],
}

/// The kept samples of each pixel, of whole numbers. Samples of signed images are offset, which moves all of them alike.
pub(super) fn clip<T: Sample>(stack: &[[T; WIDTH]], sigma: Sigma) -> Totals {
    let (mut low, mut high) = ([T::ZERO; WIDTH], [T::FULL; WIDTH]);
    let mut kept = totals(stack, &low, &high);
    for _ in 0..ROUNDS {
        let (mut next_low, mut next_high) = (low, high);
        for i in 0..WIDTH {
            let (n, sum) = (u64::from(kept.count[i]), u64::from(kept.sum[i]));
            // n·Σv² is below 2⁶⁴.
            let spread = n * kept.squares[i] - sum * sum;
            let (n, sum) = (n as i64, sum as i64);
            let reach = sigma.times_root(spread) as i64;
            // |n·v − sum| ≤ reach; both ends lie on the two sides of the mean, or at it.
            let least = -(reach - sum).div_euclid(n);
            let most = (sum + reach) / n;
            next_low[i] = low[i].max(T::from_value(least.max(0) as u16));
            let full = i64::from(T::FULL.value());
            next_high[i] = high[i].min(T::from_value(most.min(full) as u16));
        }
        let next = totals(stack, &next_low, &next_high);
        let mut changed = false;
        for i in 0..WIDTH {
            if next.count[i] > 0 && next.count[i] < kept.count[i] {
                changed = true;
                (low[i], high[i]) = (next_low[i], next_high[i]);
                kept.count[i] = next.count[i];
                kept.sum[i] = next.sum[i];
                kept.squares[i] = next.squares[i];
            }
        }
        if !changed {
            break;
        }
    }
    kept
}

per_level! {
    highest Avx512;

    fn totals[T: Sample](stack: &[[T; WIDTH]], low: &[T; WIDTH], high: &[T; WIDTH]) -> Totals {
        let mut totals = Totals {
            count: [0; WIDTH],
            sum: [0; WIDTH],
            squares: [0; WIDTH],
        };
        for row in stack {
            for i in 0..WIDTH {
                let keep = u32::from(low[i] <= row[i] && row[i] <= high[i]);
                let value = keep * u32::from(row[i].value());
                totals.count[i] += keep;
                totals.sum[i] += value;
                totals.squares[i] += u64::from(value * value);
            }
        }
        totals
    }
}

/// The mean of the kept samples of each pixel, of floating-point numbers as keys.
pub(super) fn clip_reals(stack: &[[u32; WIDTH]], sigma: Sigma) -> [f64; WIDTH] {
    let (mut low, mut high) = ([f64::NEG_INFINITY; WIDTH], [f64::INFINITY; WIDTH]);
    let mut kept = sums(stack, &low, &high);
    for _ in 0..ROUNDS {
        let means = kept.means();
        let squares = squares(stack, &low, &high, &means);
        let (mut next_low, mut next_high) = (low, high);
        for i in 0..WIDTH {
            let reach = sigma.as_f64() * (squares[i] / kept.count[i]).sqrt();
            next_low[i] = low[i].max(means[i] - reach);
            next_high[i] = high[i].min(means[i] + reach);
        }
        let next = sums(stack, &next_low, &next_high);
        let mut changed = false;
        for i in 0..WIDTH {
            if next.count[i] > 0.0 && next.count[i] < kept.count[i] {
                changed = true;
                (low[i], high[i]) = (next_low[i], next_high[i]);
                (kept.count[i], kept.sum[i]) = (next.count[i], next.sum[i]);
            }
        }
        if !changed {
            break;
        }
    }
    kept.means()
}

/// The number of the kept values of each pixel, and their sum.
struct Sums {
    count: [f64; WIDTH],
    sum: [f64; WIDTH],
}

impl Sums {
    fn means(&self) -> [f64; WIDTH] {
        std::array::from_fn(|i| self.sum[i] / self.count[i])
    }
}

per_level! {
    highest Avx512;

    fn sums(stack: &[[u32; WIDTH]], low: &[f64; WIDTH], high: &[f64; WIDTH]) -> Sums {
        let mut sums = Sums {
            count: [0.0; WIDTH],
            sum: [0.0; WIDTH],
        };
        for row in stack {
            for i in 0..WIDTH {
                let value = f64::from(from_key(row[i]));
                let keep = low[i] <= value && value <= high[i];
                sums.count[i] += if keep { 1.0 } else { 0.0 };
                sums.sum[i] += if keep { value } else { 0.0 };
            }
        }
        sums
    }
}

per_level! {
    highest Avx512;

    /// The sum of the squares of the distances of the kept values from their mean.
    fn squares(
        stack: &[[u32; WIDTH]],
        low: &[f64; WIDTH],
        high: &[f64; WIDTH],
        means: &[f64; WIDTH],
    ) -> [f64; WIDTH] {
        let mut squares = [0.0; WIDTH];
        for row in stack {
            for i in 0..WIDTH {
                let value = f64::from(from_key(row[i]));
                let keep = low[i] <= value && value <= high[i];
                let distance = if keep { value - means[i] } else { 0.0 };
                squares[i] += distance * distance;
            }
        }
        squares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_thousandths() {
        for (text, thousandths) in [("3", 3000), ("2.5", 2500), ("0.001", 1), ("100", 100_000)] {
            assert_eq!(text.parse(), Ok(Sigma(thousandths)));
            assert_eq!(Sigma(thousandths).to_string(), text);
        }
        for text in ["0", "-1", "100.001", "2.0001", "nan", "inf", "x", ""] {
            let error = text.parse::<Sigma>().expect_err(text);
            assert!(error.contains("0.001 to 100"), "{error}");
        }
    }

    /// The root at, just below and just above squares, up to the largest spread.
    #[test]
    fn the_root_is_exact() {
        let mut cases = 0;
        for thousandths in [1, 999, 1000, 2500, 3000, 3141, 100_000] {
            let sigma = Sigma(thousandths);
            for root in [0u64, 1, 2, 1000, 94_906_267, (1 << 32) - 2, (1 << 32) - 1] {
                for spread in [
                    (root * root).saturating_sub(1),
                    root * root,
                    root * root + 1,
                ] {
                    let found = u128::from(sigma.times_root(spread));
                    let most = u128::from(thousandths).pow(2) * u128::from(spread);
                    assert!(1_000_000 * found * found <= most, "{sigma}, {spread}");
                    assert!(
                        most < 1_000_000 * (found + 1) * (found + 1),
                        "{sigma}, {spread}"
                    );
                    cases += 1;
                }
            }
        }
        assert_eq!(cases, 7 * 7 * 3);
    }
}
