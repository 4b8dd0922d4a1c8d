//! Bands: an image that a card's memory does not hold at once goes through it in parts, several at a
//! time, so that one comes while another is worked on and a third goes.
//!
//! What an operation must know of the whole image is measured before, in bands as well. Operations
//! on values and those that give numbers do with any run of pixels. A turn's bands are rows of its
//! result, for which rows of the image are sent, or parts of all rows where it is transposed.

use super::{DeviceImage, Op, Output, Product};
use crate::device::NoMemory;
use crate::device::cuda::Gpu;
use crate::device::job::Job;
use crate::image::{Image, Samples, Shape};
use crate::metadata::{Effect, Turn};
use crate::stats::{Limit, Timeline};
use anyhow::{Context, Result};
use rayon::prelude::*;
use std::iter::Enumerate;
use std::slice::ChunksMut;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use std::{panic, thread};

/// Bytes of a band: a copy of so many is as fast as a longer one, and those of all queues fit into
/// the smallest card that is in use.
pub const BYTES: usize = 64 << 20;

/// A band that does not fit is halved down to this; with less free the card is of no use.
const LEAST: usize = 64 << 10;

/// Queues: one for each direction of the link, and one for the kernels.
const QUEUES: usize = 3;

/// Bytes that the system gives at a time, at least.
const PAGE: usize = 4096;

/// Carries an image through `op` in bands of about `bytes`. The result is the same as at once, but
/// in new memory where `op` is a turn. Errors: the card's.
pub fn on_gpu(
    op: &dyn Op,
    image: Image,
    gpu: &Gpu,
    timeline: &mut Timeline,
    bytes: usize,
) -> Result<Output> {
    let shape = image.shape();
    let mut samples = image.into_samples();
    let (start, size) = (Instant::now(), shape.bytes() as u64);
    if let Effect::Turn(turn) = op.effect() {
        let to = turn.of(shape);
        let mut turned = Samples::any(&to)?;
        // By all cores at once; the driver would touch one page after the other to pin them.
        let pages = turned.as_bytes_mut().par_chunks_mut(PAGE);
        pages.for_each(|page| page[0] = 0);
        let found = gpu.with_locked(samples.as_bytes_mut(), |input| {
            gpu.with_locked(turned.as_bytes_mut(), |output| {
                timeline.push("pin", start, start.elapsed(), 2 * size, Limit::Host);
                let pass = Pass {
                    op,
                    shape,
                    from: Some((turn, input)),
                    unit: to.row() * to.depth.bytes(),
                    link: Link::default(),
                };
                pass.run(gpu, timeline, output, bytes)
            })
        })?;
        return Ok(found.map(|()| Image::new(to, turned)));
    }
    let mut found = gpu.with_locked(samples.as_bytes_mut(), |memory| {
        timeline.push("pin", start, start.elapsed(), size, Limit::Host);
        let mut pass = |op: &dyn Op| {
            let pass = Pass {
                op,
                shape,
                from: None,
                unit: shape.pixel_bytes(),
                link: Link::default(),
            };
            pass.run(gpu, timeline, memory, bytes)
        };
        let measured = match op.measuring() {
            Some(measuring) => op.measured(&shape, &pass(&*measuring)?.product),
            None => None,
        };
        pass(measured.as_deref().unwrap_or(op))
    })?;
    if let Product::Totals(totals) = &mut found.product {
        totals.shape = shape;
    }
    Ok(found.map(|()| Image::new(shape, samples)))
}

/// An operation on all bands of an image.
struct Pass<'a> {
    op: &'a dyn Op,
    shape: Shape,
    /// What it turns, and how; nothing where it works on the memory itself.
    from: Option<(Turn, &'a [u8])>,
    /// Bytes of what is not cut: a row of the result, or a pixel.
    unit: usize,
    link: Link,
}

/// Each direction is one queue's at a time: sharing it, all would come and then all go.
#[derive(Default)]
struct Link {
    up: Mutex<()>,
    down: Mutex<()>,
}

fn alone<R>(direction: &Mutex<()>, copy: impl FnOnce() -> R) -> R {
    let _mine = direction.lock().unwrap_or_else(PoisonError::into_inner);
    copy()
}

/// The bands that no queue has taken yet.
type Left<'m> = Mutex<Enumerate<ChunksMut<'m, u8>>>;

impl Pass<'_> {
    /// Does it to all of `memory`, in bands of about `bytes`.
    fn run(
        &self,
        gpu: &Gpu,
        timeline: &mut Timeline,
        memory: &mut [u8],
        bytes: usize,
    ) -> Result<Output<()>> {
        let units = (bytes / self.unit).max(1);
        let left = Mutex::new(memory.chunks_mut(units * self.unit).enumerate());
        let queues = thread::scope(|scope| {
            let queue = || self.queue(gpu, &left, units);
            let threads = [(); QUEUES].map(|()| scope.spawn(queue));
            let ended = threads.into_iter().map(|thread| thread.join());
            let ended = ended.map(|end| end.unwrap_or_else(|cause| panic::resume_unwind(cause)));
            ended.collect::<Result<Vec<_>>>()
        })?;
        let (found, beside): (Vec<_>, Vec<Timeline>) = queues.into_iter().unzip();
        timeline.join(&beside);
        join(found.into_iter().flatten())
    }

    /// One of the queues: takes a band after the other until none is left, or one fails.
    fn queue(
        &self,
        gpu: &Gpu,
        left: &Left,
        units: usize,
    ) -> Result<(Option<Output<()>>, Timeline)> {
        let mut timeline = Timeline::default();
        let mut found = Vec::new();
        let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
        let gpu = gpu.lane(true)?;
        while let Some((index, memory)) = next() {
            let band = self.band(&gpu, &mut timeline, index * units, memory);
            if band.is_err() {
                while next().is_some() {}
            }
            found.push(band?);
        }
        let found = (!found.is_empty()).then(|| join(found)).transpose()?;
        Ok((found, timeline))
    }

    /// A band that begins at unit `first`; its halves, if it does not fit.
    fn band(
        &self,
        gpu: &Gpu,
        timeline: &mut Timeline,
        first: usize,
        memory: &mut [u8],
    ) -> Result<Output<()>> {
        let whole = gpu.job(&mut [], timeline, |job| {
            let samples = alone(&self.link.up, || self.send(first, memory, job))?;
            let output = self.op.cuda(samples, job)?;
            if let Product::Image(image) = &output.product {
                alone(&self.link.down, || job.fetch(&image.samples, memory))?;
            }
            Ok(output.map(|_| ()))
        });
        let units = memory.len() / self.unit;
        let full = whole.as_ref().is_err_and(|error| error.is::<NoMemory>());
        if !full || units < 2 || memory.len() <= LEAST {
            return whole;
        }
        let (head, tail) = memory.split_at_mut(units / 2 * self.unit);
        join([
            self.band(gpu, timeline, first, head)?,
            self.band(gpu, timeline, first + units / 2, tail)?,
        ])
    }

    /// Sends what becomes the band: the band itself, or what is turned into it.
    fn send(&self, first: usize, memory: &[u8], job: &mut Job) -> Result<DeviceImage> {
        let (all, units) = (self.shape, memory.len() / self.unit);
        let Some((turn, input)) = self.from else {
            let shape = Shape {
                width: units,
                height: 1,
                ..all
            };
            let samples = job.send(memory, memory.len(), 0..memory.len())?;
            return Ok(DeviceImage { shape, samples });
        };
        let (row, pixel) = (all.row() * all.depth.bytes(), all.pixel_bytes());
        let across = if turn.transposed {
            all.width
        } else {
            all.height
        };
        let first = match turn.mirror_y {
            true => across - first - units,
            false => first,
        };
        let rows = first * row..(first + units) * row;
        let columns = first * pixel..(first + units) * pixel;
        let (shape, samples) = match turn.transposed {
            true => (
                Shape {
                    width: units,
                    ..all
                },
                job.send(input, row, columns)?,
            ),
            false => (
                Shape {
                    height: units,
                    ..all
                },
                job.send(&input[rows], row, 0..row)?,
            ),
        };
        Ok(DeviceImage { shape, samples })
    }
}

/// What was found in all parts. Ranges and warnings are the same in each.
fn join(parts: impl IntoIterator<Item = Output<()>>) -> Result<Output<()>> {
    let mut parts = parts.into_iter();
    let mut all = parts.next().context("an image without parts")?;
    for part in parts {
        all.product.join(&part.product)?;
    }
    Ok(all)
}
