//! The statistics that an operation can need of a whole image, stack or set before it runs on any
//! piece.

use super::extremes::{DeviceExtremes, Extremes};
use super::histogram::{Counts, Histogram};
use super::{DeviceImage, Join, Operation};
use crate::device::Work;
use crate::device::job::Job;
use crate::image::{Image, Shape};
use crate::timing::Timeline;
use anyhow::{Result, bail};

/// The kind of statistic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Statistic {
    /// No statistic.
    #[default]
    None,
    /// The smallest and the largest sample of each channel.
    MinMax,
    /// How often each value occurs in each channel.
    Histogram,
}

/// A measured statistic.
#[derive(Debug)]
pub enum Statistics {
    /// No statistic.
    None,
    /// The smallest and the largest sample of each channel.
    MinMax(Extremes),
    /// How often each value occurs in each channel.
    Histogram(Counts),
    /// The smallest and the largest sample, still in the memory of the GPU that measures them: the
    /// host can queue the operation that uses them without waiting.
    OnDevice(DeviceExtremes),
}

impl Statistic {
    /// The bytes that measuring moves in an image of this shape.
    pub fn work(self, shape: &Shape) -> Work {
        let bytes = shape.bytes() as u64;
        match self {
            Statistic::None => Work::default(),
            Statistic::MinMax => Work {
                touched: bytes,
                transferred: bytes,
                ..Work::default()
            },
            Statistic::Histogram => Histogram.work(shape),
        }
    }

    /// The definition: serial and plain.
    pub fn naive(self, image: &Image) -> Statistics {
        match self {
            Statistic::None => Statistics::None,
            Statistic::MinMax => Statistics::MinMax(Extremes::naive(image)),
            Statistic::Histogram => Statistics::Histogram(Histogram::count_naively(image)),
        }
    }

    /// The same, computed on all cores.
    pub fn cpu(self, image: &Image, timeline: &mut Timeline) -> Statistics {
        match self {
            Statistic::None => Statistics::None,
            Statistic::MinMax => Statistics::MinMax(Extremes::cpu(image, timeline)),
            Statistic::Histogram => Statistics::Histogram(Histogram::count(image, timeline)),
        }
    }

    /// The same from a GPU: min and max are queued and stay in device memory; a histogram is waited
    /// for.
    pub fn cuda(self, image: &DeviceImage, job: &mut Job) -> Result<Statistics> {
        Ok(match self {
            Statistic::None => Statistics::None,
            Statistic::MinMax => Statistics::OnDevice(DeviceExtremes::find(image, job)?),
            Statistic::Histogram => Statistics::Histogram(Histogram::count_on_gpu(image, job)?),
        })
    }
}

impl Statistics {
    /// The same statistic in host memory; waits for all queued work.
    pub fn on_host(self, job: &mut Job) -> Result<Statistics> {
        Ok(match self {
            Statistics::OnDevice(extremes) => Statistics::MinMax(extremes.read(job)?),
            known => known,
        })
    }
}

impl Join for Statistics {
    fn join(&mut self, more: &Statistics) -> Result<()> {
        match (self, more) {
            (Statistics::None, Statistics::None) => (),
            (Statistics::MinMax(known), Statistics::MinMax(more)) => known.join(more),
            (Statistics::Histogram(known), Statistics::Histogram(more)) => known.join(more)?,
            _ => bail!("its parts were measured in different ways"),
        }
        Ok(())
    }
}
