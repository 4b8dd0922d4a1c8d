//! The factor of a flat field: its mean, exactly, and in the form that doubles compute with.

use crate::gpu::launch::calibrate as launch;
use crate::image::Image;
use crate::ops::cpu::{LANES, Sample};
use crate::ops::with_samples;
use anyhow::{Result, ensure};
use rayon::prelude::*;

/// The most pixels whose mean is exact in doubles.
pub const MOST_PIXELS: u64 = 1 << 36;

/// The mean of a channel of a flat field less the dark frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Factor {
    /// The sum of f − d, which is above 0: at most 2⁵².
    pub sum: u64,
    /// The number of pixels.
    pub pixels: u64,
}

impl Factor {
    /// The factor that changes nothing.
    pub const ONE: Factor = Factor { sum: 1, pixels: 1 };

    /// For the kernel: twice the mean in doubles, and the mean as a pair of numbers in single precision.
    pub fn packed(self) -> launch::Factor {
        let [whole, up, down] = self.doubles();
        let mean = self.mean();
        let high = mean as f32;
        let low = (mean - f64::from(high)) as f32;
        launch::Factor {
            whole,
            up,
            down,
            high,
            low,
        }
    }

    /// Rounded to nearest: both are below 2⁵³.
    fn mean(self) -> f64 {
        self.sum as f64 / self.pixels as f64
    }

    /// Twice the mean: its whole part, and the rest rounded up and rounded down.
    pub fn doubles(self) -> [f64; 3] {
        let (whole, rest) = (2 * self.sum / self.pixels, 2 * self.sum % self.pixels);
        // Both are below 2⁵³, and so exact.
        let (rest, pixels) = (rest as f64, self.pixels as f64);
        let nearest = rest / pixels;
        // Rounded once, so that its sign is that of the exact difference.
        let difference = nearest.mul_add(pixels, -rest);
        let up = if difference < 0.0 {
            nearest.next_up()
        } else {
            nearest
        };
        let down = if difference > 0.0 {
            nearest.next_down()
        } else {
            nearest
        };
        [whole as f64, up, down]
    }
}

/// The argument of the kernel for a flat field with the mean `sum`/`pixels`.
pub(crate) fn factor(sum: u64, pixels: u64) -> launch::Factor {
    Factor { sum, pixels }.packed()
}

/// The factors of each lane, laid out for vector instructions.
pub(super) struct Lanes {
    /// The mean, rounded to nearest.
    pub mean: [f64; LANES],
    pub whole: [f64; LANES],
    pub up: [f64; LANES],
    pub down: [f64; LANES],
    pub is_alpha: [bool; LANES],
    /// 1 for colours, 0 for alpha.
    pub counted: [u64; LANES],
}

impl Lanes {
    /// For channels with these factors. The first `colours` channels are not alpha.
    pub fn new(factors: &[Factor], colours: usize) -> Lanes {
        let doubles: Vec<[f64; 3]> = factors.iter().map(|factor| factor.doubles()).collect();
        let lane = |part: usize| std::array::from_fn(|lane| doubles[lane % factors.len()][part]);
        let means: Vec<f64> = factors.iter().map(|factor| factor.mean()).collect();
        let is_alpha = |lane: usize| lane % factors.len() >= colours;
        Lanes {
            mean: std::array::from_fn(|lane| means[lane % means.len()]),
            whole: lane(0),
            up: lane(1),
            down: lane(2),
            is_alpha: std::array::from_fn(is_alpha),
            counted: std::array::from_fn(|lane| u64::from(!is_alpha(lane))),
        }
    }
}

/// max(f − d, 1) of each sample, and the mean of f − d of each channel; without a dark frame, d is `zero`.
/// The factor of alpha changes nothing.
///
/// # Errors
/// A channel whose mean is not above 0.
pub(super) fn from_flat(
    mut flat: Image,
    dark: Option<&Image>,
    zero: u16,
) -> Result<(Image, Vec<Factor>)> {
    let shape = flat.shape();
    let row = shape.row();
    let mut sums = vec![0i64; shape.channels];
    with_samples!(flat.samples_mut(), samples => {
        let rows = samples.par_chunks_mut(row).enumerate();
        let less = |(y, flat): (usize, &mut [_])| {
            let mut sums = vec![0i64; shape.channels];
            for (x, f) in flat.iter_mut().enumerate() {
                let d = dark.map_or(zero, |dark| dark.samples().at(y * row + x) as u16);
                let difference = i32::from(Sample::value(*f)) - i32::from(d);
                sums[x % shape.channels] += i64::from(difference);
                *f = Sample::from_value(difference.max(1) as u16);
            }
            sums
        };
        let add = |mut a: Vec<i64>, b: Vec<i64>| {
            a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
            a
        };
        sums = rows.map(less).reduce(|| vec![0; shape.channels], add);
    });
    let mut factors = Vec::new();
    for (channel, &sum) in sums.iter().enumerate() {
        if channel >= shape.colours() {
            factors.push(Factor::ONE);
            continue;
        }
        ensure!(
            sum > 0,
            "its channel {} is not brighter than the dark frame (did you swap --dark and --flat?)",
            channel + 1
        );
        factors.push(Factor {
            sum: sum as u64,
            pixels: shape.pixels() as u64,
        });
    }
    Ok((flat, factors))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ⌊2xS/n⌋ in doubles against integers, for every x, with means that lie just above, at and just
    /// below whole numbers and halves, up to the most pixels.
    #[test]
    fn twice_the_product_is_exact() {
        let mut cases = 0;
        for pixels in [
            1u64,
            2,
            3,
            7,
            10,
            641,
            65_535,
            65_537,
            (1 << 22) + 1,
            MOST_PIXELS - 1,
            MOST_PIXELS,
        ] {
            for mean in [0u64, 1, 2, 255, 1000, 65_534] {
                for over in [-1i64, 0, 1, (pixels / 2) as i64, pixels as i64 / 3] {
                    let sum = (mean * pixels).checked_add_signed(over).unwrap_or(0);
                    if sum == 0 || sum > 65_535 * pixels {
                        continue;
                    }
                    let factor = Factor { sum, pixels };
                    let [whole, up, down] = factor.doubles();
                    for x in (-65_535i32..=65_535).step_by(13).chain([-1, 0, 1, 65_535]) {
                        let rest = if x < 0 { down } else { up };
                        let x = f64::from(x);
                        let found = x * whole + (x * rest).floor();
                        let exact = (2 * x as i128 * i128::from(sum)).div_euclid(pixels.into());
                        assert_eq!(found as i128, exact, "{x} · {sum} / {pixels}");
                    }
                    cases += 1;
                }
            }
        }
        assert!(cases > 250, "{cases}");
    }
}
