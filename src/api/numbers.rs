//! Numbers of an image: exact sums, and counts of its values.

use super::device::Device;
use super::error::{Error, Result};
use super::image::Image;
use super::operations::Operations;
use crate::engine::Done;
use crate::ops::Operation;
use crate::ops::counts::Counts;
use crate::ops::histogram;
use crate::ops::sum::{self, Printed};
use std::borrow::Cow;

/// An exact sum of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SumValue {
    /// Of integers.
    Whole(i128),
    /// Of floating-point numbers: the `f64` that is nearest to the exact sum.
    Real(f64),
}

/// The sum of a channel, or of all colours, and the range of its values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChannelSum {
    /// `grey`, `red`, `green`, `blue` or `alpha`; `all` for all colours together.
    pub name: &'static str,
    /// The exact sum.
    pub sum: SumValue,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// The mean.
    pub mean: f64,
}

/// What [`sum`](fn@sum) computes.
#[derive(Clone, Debug, PartialEq)]
pub struct Sums {
    /// All colours together, without alpha.
    pub total: ChannelSum,
    /// Each channel; alpha is the last.
    pub channels: Vec<ChannelSum>,
}

/// Adds up the samples of an image exactly, and finds their minimum, maximum and mean, for each channel and in total.
///
/// ```
/// use gpuimg::{Device, Image, SumValue};
/// let image = Image::new(3, 2, 1, vec![1u16, 2, 3, 4, 5, 6])?;
/// let sums = gpuimg::sum(&image, &Device::cpu())?;
/// assert_eq!(sums.total.sum, SumValue::Whole(21));
/// assert_eq!((sums.total.min, sums.total.max, sums.total.mean), (1.0, 6.0, 3.5));
/// # Ok::<(), gpuimg::Error>(())
/// ```
///
/// An image that is passed by value is not copied.
///
/// # Errors
/// NaN and infinite samples, and those of the device.
pub fn sum<'a>(image: impl Into<Cow<'a, Image>>, device: &Device) -> Result<Sums> {
    sums(image.into(), None, device)
}

/// The same, with `nan` in the place of NaN and infinite samples; 0 leaves them out of the sum.
///
/// ```
/// use gpuimg::{Device, Image, SumValue};
/// let image = Image::new(3, 1, 1, vec![1.5f32, f32::NAN, 2.0])?;
/// assert!(gpuimg::sum(&image, &Device::cpu()).is_err());
/// let sums = gpuimg::sum_with(&image, 10.0, &Device::cpu())?;
/// assert_eq!(sums.total.sum, SumValue::Real(13.5));
/// # Ok::<(), gpuimg::Error>(())
/// ```
///
/// # Errors
/// A replacement that is not finite, and those of the device.
pub fn sum_with<'a>(image: impl Into<Cow<'a, Image>>, nan: f64, device: &Device) -> Result<Sums> {
    sums(image.into(), Some(nan), device)
}

fn sums(image: Cow<Image>, nan: Option<f64>, device: &Device) -> Result<Sums> {
    sums_of(numbers(image, device, sum_operation(nan)?)?)
}

/// The operation that adds up samples.
///
/// # Errors
/// A replacement for NaN that is not finite.
pub(super) fn sum_operation(nan: Option<f64>) -> Result<Box<dyn Operation>> {
    match nan.filter(|nan| !nan.is_finite()) {
        Some(nan) => Err(Error::argument(format!(
            "the replacement for NaN is a finite number, not {nan}"
        ))),
        None => Ok(Box::new(sum::Sum { all: true, nan })),
    }
}

/// The sums of the first page of a job.
pub(super) fn sums_of(done: Done) -> Result<Sums> {
    let totals = done.results.totals.into_iter().next();
    let totals = totals.ok_or_else(|| Error::argument("there is no sum"))?;
    let mut all = totals.numbers().into_iter().map(|numbers| {
        let range = numbers.range;
        let (min, max) = range
            .as_ref()
            .map_or((0.0, 0.0), |range| (range.min.as_f64(), range.max.as_f64()));
        ChannelSum {
            name: numbers.name,
            sum: match numbers.sum {
                Printed::Whole(sum) => SumValue::Whole(sum),
                Printed::Real(sum) => SumValue::Real(sum),
            },
            min,
            max,
            mean: range.map_or(0.0, |range| range.mean),
        }
    });
    let total = all.next();
    Ok(Sums {
        total: total.ok_or_else(|| Error::argument("there is no sum"))?,
        channels: all.collect(),
    })
}

/// How often each value occurs in each channel of an image.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    counts: Counts,
}

impl Histogram {
    /// The number of channels.
    pub fn channels(&self) -> usize {
        self.counts.channels
    }

    /// The value that the first count of each channel is for: 0, or −128 or −32768 for signed samples.
    pub fn first_value(&self) -> i32 {
        self.counts.pixel_type().values.least()
    }

    /// The counts of a channel, 256 or 65536 of them, in the order of the values.
    ///
    /// # Panics
    /// A channel that does not exist.
    pub fn counts(&self, channel: usize) -> &[u64] {
        let bins = self.counts.bins.len() / self.counts.channels;
        &self.counts.bins[channel * bins..][..bins]
    }
}

/// Counts exactly how often each value occurs in each channel of an image with 8 or 16 bits.
///
/// ```
/// use gpuimg::{Device, Image};
/// let image = Image::new(3, 2, 1, vec![1u16, 2, 2, 4, 2, 6])?;
/// let histogram = gpuimg::histogram(&image, &Device::cpu())?;
/// assert_eq!(histogram.counts(0)[..7], [0, 1, 3, 0, 1, 0, 1]);
/// # Ok::<(), gpuimg::Error>(())
/// ```
///
/// An image that is passed by value is not copied.
///
/// # Errors
/// Samples of 32 and 64 bits, and those of the device.
pub fn histogram<'a>(image: impl Into<Cow<'a, Image>>, device: &Device) -> Result<Histogram> {
    histogram_of(numbers(
        image.into(),
        device,
        Box::new(histogram::Histogram),
    )?)
}

/// The histogram of a job.
pub(super) fn histogram_of(done: Done) -> Result<Histogram> {
    let counts = done.results.counts;
    let counts = counts.ok_or_else(|| Error::argument("there is no histogram"))?;
    Ok(Histogram { counts })
}

fn numbers(image: Cow<Image>, device: &Device, op: Box<dyn Operation>) -> Result<Done> {
    let name = image.name().to_path_buf();
    let pages = vec![image.into_owned().into_page()];
    let operations = Operations::new().then(op);
    let run = operations.in_memory(&name, None, device, |job| job.to_pages(pages));
    run.map(|(_, done)| done)
}
