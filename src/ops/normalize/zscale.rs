//! `--range zscale`: the range of IRAF's display task, as astropy's `ZScaleInterval` computes it with its defaults.
//!
//! 1000 samples are selected and sorted. A line is fitted to them, and fitted again without the samples that are far from
//! it. The slope of the line, divided by the contrast, gives a range around the median that shows the background. Samples
//! are selected from all colour channels, in the order of the file. The arithmetic is 64-bit floating point. It uses only
//! +, −, ·, / and √, always in the same order, so every machine gives the same range.
//!
//! Source: astropy, `astropy/visualization/interval.py`; IRAF, `images/tv/display`, zscale.

use crate::gpu::job::Job;
use crate::gpu::launch::zscale::Pick;
use crate::image::{Depth, Image, Samples, Shape, number};
use crate::ops::{DeviceImage, MinMax};
use crate::timing::Timeline;
use anyhow::Result;
use rayon::prelude::*;

/// The number of samples that are measured.
const SAMPLES: usize = 1000;
/// The slope of the samples is divided by this, so that the range is larger than the spread of the background.
const CONTRAST: f64 = 0.25;
/// The line is used only if at least this many samples are near it.
const MIN_SAMPLES: usize = 5;
/// The line is used only if at least one sample in this many is near it.
const ONE_IN: usize = 2;
/// Samples further from the line than this many standard deviations are left out.
const SIGMAS: f64 = 2.5;
/// How often the line is fitted, at most.
const ITERATIONS: usize = 5;

/// Every n-th sample of an image, as a sample of the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampled {
    /// Up to 1000 finite colour samples, as they are in memory, in ascending order.
    samples: Vec<u64>,
    /// How many samples of the image, alpha included, are not finite.
    pub(super) nonfinite: u64,
}

impl Sampled {
    /// The definition.
    pub fn naive(image: &Image) -> Sampled {
        let shape = image.shape();
        let samples = image.samples();
        let is_finite = |sample: &u64| match shape.depth {
            Depth::Float => number::FINITE.contains(&(*sample as u32)),
            Depth::Double => number::FINITE64.contains(sample),
            Depth::Eight | Depth::Sixteen | Depth::ThirtyTwo => true,
        };
        let is_colour = |index: &usize| index % shape.channels < shape.colours();
        let all = || (0..shape.samples()).map(|index| (index, samples.at(index)));
        let finite = all().filter(|(_, sample)| is_finite(sample));
        let colours = finite.clone().filter(|(index, _)| is_colour(index));
        let stride = (colours.clone().count() / SAMPLES).max(1);
        let selected = colours.step_by(stride).take(SAMPLES);
        let mut selected: Vec<u64> = selected.map(|(_, sample)| sample).collect();
        selected.sort_unstable();
        Sampled {
            samples: selected,
            nonfinite: (shape.samples() - finite.count()) as u64,
        }
    }

    /// The same, on all cores.
    pub fn cpu(image: &Image, timeline: &mut Timeline) -> Sampled {
        let bytes = image.shape().bytes() as u64;
        timeline.host("select", bytes, || Sampled::select(image))
    }

    /// The same, of 8 and 16 bits, from a GPU. Waits for all queued work.
    ///
    /// # Errors
    /// Those of the GPU.
    pub fn on_gpu(image: &DeviceImage, job: &mut Job) -> Result<Sampled> {
        let Shape {
            channels, depth, ..
        } = image.shape;
        let colours = image.shape.colours();
        let (stride, count) = stride(image.shape.pixels() * colours);
        let kernel = job.kernel::<Pick>(&depth.form())?;
        let mut picked = job.alloc(count * depth.bytes())?;
        let grid = u32::try_from(count.div_ceil(256))?;
        let bytes = (2 * count * depth.bytes()) as u64;
        let arguments = Pick {
            src: image.samples.view(),
            samples: image.shape.samples() as u64,
            picked: picked.view_mut(),
            count: count as u64,
            stride: stride as u64,
            channels: channels as u32,
            colours: colours as u32,
        };
        job.launch(&kernel, grid, bytes, arguments)?;
        let mut samples: Vec<u64> = match depth {
            Depth::Eight => widened(job.read_words::<u8>(&picked)?),
            _ => widened(job.read_words::<u16>(&picked)?),
        };
        samples.sort_unstable();
        Ok(Sampled {
            samples,
            nonfinite: 0,
        })
    }

    fn select(image: &Image) -> Sampled {
        match image.samples() {
            Samples::U8(samples) => select(image, samples, |_| true),
            Samples::U16(samples) => select(image, samples, |_| true),
            Samples::U32(samples) if image.shape().depth.is_float() => {
                select(image, samples, |sample| number::FINITE.contains(&sample))
            }
            Samples::U32(samples) => select(image, samples, |_| true),
            Samples::U64(samples) => {
                select(image, samples, |sample| number::FINITE64.contains(&sample))
            }
        }
    }

    /// The smallest and the largest of the samples; `None` if there are none.
    pub(super) fn extremes(&self) -> Option<MinMax<u64>> {
        let (&min, &max) = self.samples.first().zip(self.samples.last())?;
        Some(MinMax { min, max })
    }

    /// The range that zscale measures; `value` converts a sample to its value. Returns `None` if there are no samples.
    pub(super) fn range(&self, value: impl Fn(u64) -> f64) -> Option<MinMax<f64>> {
        let values: Vec<f64> = self.samples.iter().map(|&sample| value(sample)).collect();
        (!values.is_empty()).then(|| range(&values))
    }
}

/// The distance between the selected ones of `count` samples, and how many are selected.
fn stride(count: usize) -> (usize, usize) {
    let stride = (count / SAMPLES).max(1);
    (stride, count.div_ceil(stride).min(SAMPLES))
}

fn widened<T: Into<u64>>(samples: Vec<T>) -> Vec<u64> {
    samples.into_iter().map(T::into).collect()
}

/// Every n-th of the finite colour samples, n = ⌊count/1000⌋.
fn select<T: Copy + Into<u64> + Send + Sync>(
    image: &Image,
    samples: &[T],
    is_finite: impl Fn(T) -> bool + Sync,
) -> Sampled {
    let shape = image.shape();
    let colours = shape.colours();
    let pixels = samples.par_chunks_exact(shape.channels);
    let counts = pixels.map(|pixel| {
        let finite = |samples: &[T]| samples.iter().filter(|&&s| is_finite(s)).count();
        (finite(&pixel[..colours]), finite(pixel))
    });
    let (count, all) = counts.reduce(|| (0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    let (stride, _) = stride(count);
    let colour = |index: usize| samples[index / colours * shape.channels + index % colours];
    let finite = (0..shape.width * shape.height * colours)
        .map(colour)
        .filter(|&s| is_finite(s));
    let mut selected: Vec<u64> = if count == shape.width * shape.height * colours {
        let indices = (0..count).step_by(stride).take(SAMPLES);
        indices.map(|index| colour(index).into()).collect()
    } else {
        let every = finite.step_by(stride).take(SAMPLES);
        every.map(T::into).collect()
    };
    selected.sort_unstable();
    Sampled {
        samples: selected,
        nonfinite: (samples.len() - all) as u64,
    }
}

/// The range for these samples, which are in ascending order. There is at least one.
fn range(samples: &[f64]) -> MinMax<f64> {
    let count = samples.len();
    let least_kept = MIN_SAMPLES.max(count / ONE_IN);
    let grown = (count / 100).max(1);
    let mut is_bad = vec![false; count];
    let (mut kept, mut kept_before) = (count, count + 1);
    let mut slope = 0.0;
    for _ in 0..ITERATIONS {
        if kept >= kept_before || kept < least_kept {
            break;
        }
        let line = Line::fit(samples, &is_bad);
        slope = line.slope;
        let distances: Vec<f64> = (0..count).map(|i| samples[i] - line.at(i)).collect();
        let limit = SIGMAS * standard_deviation(&distances, &is_bad);
        let is_far = |distance: f64| distance < -limit || distance > limit;
        let far: Vec<bool> = (0..count)
            .map(|i| is_bad[i] || is_far(distances[i]))
            .collect();
        // Samples next to bad samples are bad too.
        is_bad = (0..count)
            .map(|i| {
                let first = i.saturating_sub(grown / 2);
                let end = (i + grown - grown / 2).min(count);
                far[first..end].contains(&true)
            })
            .collect();
        kept_before = kept;
        kept = is_bad.iter().filter(|&&is_bad| !is_bad).count();
    }
    let (min, max) = (samples[0], samples[count - 1]);
    if kept < least_kept {
        return MinMax { min, max };
    }
    let slope = slope / CONTRAST;
    let center = (count - 1) / 2;
    let median = samples[center].midpoint(samples[count / 2]);
    let below = (center as f64 - 1.0) * slope;
    let above = (count - center) as f64 * slope;
    MinMax {
        min: min.max(median - below),
        max: max.min(median + above),
    }
}

/// A line through samples at the positions 0, 1, 2….
struct Line {
    /// The mean position and the mean of the samples.
    center: (f64, f64),
    slope: f64,
}

impl Line {
    /// Fits a line by least squares, without bad samples.
    fn fit(samples: &[f64], is_bad: &[bool]) -> Line {
        let points = || {
            let points = samples.iter().zip(is_bad).enumerate();
            points
                .filter(|(_, (_, is_bad))| !**is_bad)
                .map(|(x, (y, _))| (x as f64, *y))
        };
        let count = points().count() as f64;
        let x = points().map(|(x, _)| x).sum::<f64>() / count;
        let y = points().map(|(_, y)| y).sum::<f64>() / count;
        let products: f64 = points().map(|(a, b)| (a - x) * (b - y)).sum();
        let squares: f64 = points().map(|(a, _)| (a - x) * (a - x)).sum();
        Line {
            center: (x, y),
            slope: products / squares,
        }
    }

    fn at(&self, position: usize) -> f64 {
        let (x, y) = self.center;
        y + self.slope * (position as f64 - x)
    }
}

/// The standard deviation of the distances, without those of bad samples.
fn standard_deviation(distances: &[f64], is_bad: &[bool]) -> f64 {
    let kept = || {
        let all = distances.iter().zip(is_bad);
        all.filter(|(_, is_bad)| !**is_bad).map(|(d, _)| *d)
    };
    let count = kept().count() as f64;
    let mean = kept().sum::<f64>() / count;
    let squares: f64 = kept().map(|d| (d - mean) * (d - mean)).sum();
    (squares / count).sqrt()
}
