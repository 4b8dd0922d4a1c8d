//! What the values of an image are like: range, mean, histogram, and warnings.

use crate::image::metadata::Metadata;
use crate::image::number::Number;
use crate::image::{Depth, Image, Values};
use rayon::prelude::*;

/// Bins of a histogram.
pub const BINS: usize = 64;

/// The part of the samples with the largest value of their type from which on an image is called saturated.
const SATURATED: f64 = 0.001;

/// The part of the samples in the lowest bins from which on an image is called mostly dark, and the number of these bins.
const DARK: f64 = 0.99;
const DARK_BINS: usize = BINS / 16;

/// Pixels that a thread takes at a time, at least.
const PIXELS: usize = 1 << 14;

/// The values of an image, without alpha and without values that are not finite.
#[derive(Debug)]
pub struct Survey {
    /// The smallest value.
    pub min: Number,
    /// The largest value.
    pub max: Number,
    /// The mean value.
    pub mean: f64,
    /// How many samples there are in each of equal parts of the range.
    pub bins: [u64; BINS],
    /// Samples.
    samples: u64,
    /// Samples that have the largest value of their type.
    at_most: u64,
    /// The largest value of the type; `None` for floating point.
    most: Option<i64>,
    /// Samples that are not finite.
    not_finite: u64,
}

/// The sums of a part of the pixels.
#[derive(Clone, Copy)]
struct Sums {
    /// The smallest and the largest sample in memory, whose order is that of the values.
    extremes: Option<(u64, u64)>,
    sum: f64,
    samples: u64,
    at_most: u64,
    not_finite: u64,
}

impl Survey {
    /// The survey of an image.
    pub fn new(image: &Image, metadata: &Metadata) -> Survey {
        let shape = image.shape();
        let values = metadata.values(shape.depth);
        let most = most(values, metadata.maxval);
        // A fixed division into parts keeps the rounding of sums the same on any number of threads.
        let parts = (0..shape.pixels().div_ceil(PIXELS)).into_par_iter();
        let samples_of = |part: usize| {
            let pixels = part * PIXELS..((part + 1) * PIXELS).min(shape.pixels());
            let (channels, colours) = (shape.channels, shape.colours());
            pixels.flat_map(move |pixel| pixel * channels..pixel * channels + colours)
        };
        let sums: Vec<Sums> = parts
            .clone()
            .map(|part| {
                let mut sums = Sums::NONE;
                for index in samples_of(part) {
                    sums.add(image.samples().at(index), values, most);
                }
                sums
            })
            .collect();
        let Sums {
            extremes,
            sum,
            samples,
            at_most,
            not_finite,
        } = sums.into_iter().fold(Sums::NONE, Sums::join);
        let (low, high) = extremes.unwrap_or((0, 0));
        let (min, max) = (values.number(low), values.number(high));
        // The difference of two large numbers may be infinite, but not that of their halves.
        let scale = if (max.as_f64() - min.as_f64()).is_finite() {
            1.0
        } else {
            0.5
        };
        let least = min.as_f64() * scale;
        let width = max.as_f64() * scale - least;
        let bin = |sample: u64| {
            let place = (values.number(sample).as_f64() * scale - least) / width;
            ((place * BINS as f64) as usize).min(BINS - 1)
        };
        let count = |part: usize| {
            let mut bins = [0; BINS];
            for index in samples_of(part) {
                let sample = image.samples().at(index);
                if (low..=high).contains(&sample) && extremes.is_some() {
                    bins[bin(sample)] += 1;
                }
            }
            bins
        };
        let join = |mut all: [u64; BINS], part: [u64; BINS]| {
            all.iter_mut()
                .zip(part)
                .for_each(|(all, part)| *all += part);
            all
        };
        let mean_of = |part: usize| -> f64 {
            let finite = samples_of(part).map(|index| values.number(image.samples().at(index)));
            let finite = finite.map(Number::as_f64).filter(|value| value.is_finite());
            finite.map(|value| value / samples as f64).sum()
        };
        let mean = if samples == 0 {
            0.0
        } else if sum.is_finite() {
            sum / samples as f64
        } else {
            parts
                .clone()
                .map(mean_of)
                .collect::<Vec<f64>>()
                .iter()
                .sum()
        };
        Survey {
            min,
            max,
            mean,
            bins: parts.map(count).reduce(|| [0; BINS], join),
            samples,
            at_most,
            most,
            not_finite,
        }
    }

    /// The difference of the largest and the smallest value.
    pub fn width(&self) -> f64 {
        self.max.as_f64() - self.min.as_f64()
    }

    /// What may be wrong with the image.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let share = |count: u64| count as f64 / self.samples.max(1) as f64;
        if self.not_finite > 0 {
            warnings.push(format!("{} values are not finite numbers", self.not_finite));
        }
        if self.samples > 0 && self.width() == 0.0 {
            warnings.push(format!("flat: all values are {}", self.min));
        }
        if let Some(most) = self.most
            && share(self.at_most) >= SATURATED
        {
            let percent = share(self.at_most) * 100.0;
            warnings.push(format!(
                "saturated: {percent:.1} % of the samples are {most}"
            ));
        }
        let dark: u64 = self.bins[..DARK_BINS].iter().sum();
        if self.width() > 0.0 && share(dark) >= DARK {
            let percent = share(dark) * 100.0;
            warnings.push(format!(
                "mostly dark: {percent:.1} % of the samples are in the lowest sixteenth of the range"
            ));
        }
        warnings
    }
}

impl Sums {
    const NONE: Sums = Sums {
        extremes: None,
        sum: 0.0,
        samples: 0,
        at_most: 0,
        not_finite: 0,
    };

    fn add(&mut self, sample: u64, values: Values, most: Option<i64>) {
        let number = values.number(sample);
        let value = number.as_f64();
        if !value.is_finite() {
            self.not_finite += 1;
            return;
        }
        let (low, high) = self.extremes.unwrap_or((sample, sample));
        self.extremes = Some((low.min(sample), high.max(sample)));
        self.sum += value;
        self.samples += 1;
        self.at_most += u64::from(matches!(number, Number::Whole(whole) if Some(whole) == most));
    }

    fn join(self, other: Sums) -> Sums {
        let both = self.extremes.zip(other.extremes);
        let both = both.map(|(a, b)| (a.0.min(b.0), a.1.max(b.1)));
        Sums {
            extremes: both.or(self.extremes).or(other.extremes),
            sum: self.sum + other.sum,
            samples: self.samples + other.samples,
            at_most: self.at_most + other.at_most,
            not_finite: self.not_finite + other.not_finite,
        }
    }
}

/// The largest value of integers of a type; `None` for floating point.
fn most(values: Values, maxval: Option<u16>) -> Option<i64> {
    let bits = values.depth.bits();
    let full = match values.depth {
        Depth::Float | Depth::Double => return None,
        _ if values.signed => (1i64 << (bits - 1)) - 1,
        _ => (1i64 << bits) - 1,
    };
    Some(maxval.map_or(full, i64::from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{Samples, Shape};

    fn survey(values: &[u16], channels: usize, metadata: &Metadata) -> Survey {
        let shape = Shape {
            width: values.len() / channels,
            height: 1,
            channels,
            depth: Depth::Sixteen,
        };
        let image = Image::new(shape, Samples::from(values.to_vec()));
        Survey::new(&image, metadata)
    }

    #[test]
    fn values_without_alpha() {
        let found = survey(&[0, 9, 64, 9, 32, 9, 32, 9], 2, &Metadata::default());
        let numbers = (found.min.as_f64(), found.max.as_f64(), found.mean);
        assert_eq!(numbers, (0.0, 64.0, 32.0));
        assert_eq!((found.bins[0], found.bins[32], found.bins[63]), (1, 2, 1));
        assert_eq!(found.bins.iter().sum::<u64>(), 4);
        assert!(found.warnings().is_empty());
    }

    #[test]
    fn warnings_by_hand() {
        let plain = Metadata::default();
        assert_eq!(
            survey(&[7, 7], 1, &plain).warnings(),
            ["flat: all values are 7"]
        );
        assert_eq!(
            survey(&[65535, 0, 30000, 0], 1, &plain).warnings(),
            ["saturated: 25.0 % of the samples are 65535"]
        );
        let twelve = Metadata {
            maxval: Some(4095),
            ..Metadata::default()
        };
        assert_eq!(
            survey(&[4095, 0, 2000, 0], 1, &twelve).warnings(),
            ["saturated: 25.0 % of the samples are 4095"]
        );
        let mut dark = vec![3; 199];
        dark.push(1000);
        assert_eq!(
            survey(&dark, 1, &plain).warnings(),
            ["mostly dark: 99.5 % of the samples are in the lowest sixteenth of the range"]
        );
        // 0x8000 in memory is the value 0 of signed samples.
        let signed = Metadata {
            signed: true,
            ..Metadata::default()
        };
        let found = survey(&[0x7FFF, 0x8001], 1, &signed);
        assert_eq!(
            (found.min.as_f64(), found.max.as_f64(), found.mean),
            (-1.0, 1.0, 0.0)
        );
    }

    /// The range is larger than the largest number, and the sum may be, too.
    #[test]
    fn the_largest_numbers_were_called_mostly_dark() {
        let shape = Shape {
            width: 4,
            height: 1,
            channels: 1,
            depth: Depth::Double,
        };
        for (values, mean, bins) in [
            (
                [-1e308, 0.0, 1e308, 1e308],
                0.25e308,
                [(0, 1), (32, 1), (63, 2)],
            ),
            (
                [1e308, 1e308, 1e308, -1e308],
                0.5e308,
                [(0, 1), (32, 0), (63, 3)],
            ),
        ] {
            let keys = values.map(|value| crate::image::number::key64(f64::to_bits(value)));
            let image = Image::new(shape, Samples::from(keys.to_vec()));
            let found = Survey::new(&image, &Metadata::default());
            assert!((found.mean / mean - 1.0).abs() < 1e-15, "{}", found.mean);
            for (bin, count) in bins {
                assert_eq!(found.bins[bin], count, "{bin}");
            }
            assert!(found.warnings().is_empty(), "{:?}", found.warnings());
        }
    }

    #[test]
    fn values_that_are_not_finite_do_not_count() {
        let shape = Shape {
            width: 4,
            height: 1,
            channels: 1,
            depth: Depth::Float,
        };
        let keys = [f32::NAN, 1.0, f32::INFINITY, 3.0]
            .map(|value| crate::image::number::key(value.to_bits()));
        let image = Image::new(shape, Samples::from(keys.to_vec()));
        let found = Survey::new(&image, &Metadata::default());
        assert_eq!(
            (found.min.as_f64(), found.max.as_f64(), found.mean),
            (1.0, 3.0, 2.0)
        );
        assert_eq!(found.warnings(), ["2 values are not finite numbers"]);
        assert_eq!(found.bins.iter().sum::<u64>(), 2);
    }
}
