//! Processes an image that a GPU's memory cannot hold in bands, several at a time, so that the
//! upload of one band overlaps with the kernels of another and the download of a third.
//!
//! An operation's access says how it may be cut. For pointwise operations and reductions a band is
//! any run of pixels. For a permutation a band is a number of rows of the result, made from rows of
//! the image, or, if it transposes, from a part of every row. The statistic is measured before, in
//! bands as well.

use super::Task;
use crate::gpu::NoMemory;
use crate::gpu::driver::Gpu;
use crate::gpu::job::Job;
use crate::image::metadata::PixelMap;
use crate::image::{HostMemory, Image, Samples, Shape};
use crate::ops::{Access, DeviceImage, Executed, Join, OpResult, Statistic, Statistics, chain};
use crate::os::interrupt::NO_THREAD;
use crate::timing::{Limit, Timeline};
use anyhow::{Context, Result, anyhow, ensure};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use std::{panic, thread};

/// Bytes of a band: copies of this size reach the full speed of the link, and the bands of all
/// streams fit into the smallest GPU in use.
pub const BYTES: usize = 64 << 20;

/// A band that does not fit is halved, down to this many bytes; a GPU with less free memory is not
/// used.
const LEAST: usize = 64 << 10;

/// Streams: one for each direction of the link, and one for the kernels.
const LANES: usize = 3;

/// Bytes of a memory page of the system, at least.
const PAGE: usize = 4096;

/// How an image is cut: which samples of the image make which bytes of the result.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    shape: Shape,
    /// How pixels move; `None` where the result takes the image's own memory.
    turn: Option<PixelMap>,
    /// Bytes of the smallest unit that is not cut: a row of the result, or a pixel.
    unit: usize,
}

/// The input of one band of the result.
#[derive(Debug)]
pub struct Piece<'a> {
    /// The shape of the input.
    pub shape: Shape,
    /// Where its samples are; `None` where they are in the band's own memory.
    pub from: Option<Columns<'a>>,
}

/// The same range of bytes of every row.
#[derive(Debug)]
pub struct Columns<'a> {
    /// The bytes of the piece's rows, from the image's first column to its last.
    pub rows: &'a [u8],
    /// Bytes of a row.
    pub pitch: usize,
    /// The range of bytes of each row.
    pub part: Range<usize>,
}

impl Plan {
    /// Plans the bands of an image of this shape for an operation of this access. Errors: a
    /// `NoMemory` if the operation cannot be cut.
    pub fn new(shape: Shape, access: Access) -> Result<Plan> {
        let (turn, unit) = match access {
            Access::Pointwise | Access::Reduction => (None, shape.pixel_bytes()),
            Access::Permutation(turn) => {
                let to = turn.of(shape);
                (Some(turn), to.row() * to.depth.bytes())
            }
            Access::Region(_) | Access::WholeImage => {
                return Err(anyhow!("it needs the whole image at once").context(NoMemory));
            }
        };
        Ok(Plan { shape, turn, unit })
    }

    /// The input for `units` units of the result from unit `first` on; `input` holds the image's
    /// samples.
    fn piece<'a>(&self, first: usize, units: usize, input: &'a [u8]) -> Piece<'a> {
        let all = self.shape;
        let Some(turn) = self.turn else {
            let shape = Shape {
                width: units,
                height: 1,
                ..all
            };
            return Piece { shape, from: None };
        };
        let (pitch, pixel) = (all.row() * all.depth.bytes(), all.pixel_bytes());
        let across = match turn.transposed {
            true => all.width,
            false => all.height,
        };
        let first = match turn.mirror_y {
            true => across - first - units,
            false => first,
        };
        let (shape, rows, part) = match turn.transposed {
            true => (
                Shape {
                    width: units,
                    ..all
                },
                input,
                first * pixel..(first + units) * pixel,
            ),
            false => (
                Shape {
                    height: units,
                    ..all
                },
                &input[first * pitch..(first + units) * pitch],
                0..pitch,
            ),
        };
        let from = Some(Columns { rows, pitch, part });
        Piece { shape, from }
    }
}

/// A worker thread that processes bands on a GPU's stream; the tests have one without a GPU.
pub trait BandStream: Send {
    /// The numbers that a band gives.
    type Found: Join + Send;

    /// Makes one band of the result in `memory`. Errors: a `NoMemory` if a smaller band could fit.
    fn run(&mut self, piece: &Piece, memory: &mut [u8]) -> Result<Self::Found>;
}

/// The joined numbers of all bands, and the streams that were used.
pub type FoundBy<L> = (<L as BandStream>::Found, Vec<L>);

/// Fills `memory` with the result of an image's samples, in bands of about `bytes` bytes. Where the
/// plan moves no pixels, `memory` holds the samples itself and `input` is empty.
pub fn in_bands<L: BandStream>(
    plan: &Plan,
    input: &[u8],
    memory: &mut [u8],
    bytes: usize,
    stream: impl Fn() -> Result<L> + Sync,
) -> Result<FoundBy<L>> {
    let units = (bytes / plan.unit).max(1);
    // The bands that no stream has started yet.
    let left = Mutex::new(memory.chunks_mut(units * plan.unit).enumerate());
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || -> Result<(L, Vec<L::Found>)> {
        let (mut stream, mut found) = (stream()?, Vec::new());
        while let Some((index, memory)) = next() {
            let band = band(plan, input, &mut stream, index * units, memory);
            if band.is_err() {
                while next().is_some() {}
            }
            found.push(band?);
        }
        Ok((stream, found))
    };
    let ended = thread::scope(|scope| {
        // Fewer do, where a limit on threads lets no more start.
        let start = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let threads: Vec<_> = (0..LANES).map_while(start).collect();
        ensure!(!threads.is_empty(), NO_THREAD);
        let ended = threads.into_iter().map(|thread| thread.join());
        let ended = ended.map(|end| end.unwrap_or_else(|cause| panic::resume_unwind(cause)));
        ended.collect::<Result<Vec<_>>>()
    })?;
    let (streams, found): (Vec<_>, Vec<_>) = ended.into_iter().unzip();
    Ok((joined(found.into_iter().flatten())?, streams))
}

/// Processes a band that begins at unit `first`, in halves if it does not fit.
fn band<L: BandStream>(
    plan: &Plan,
    input: &[u8],
    stream: &mut L,
    first: usize,
    memory: &mut [u8],
) -> Result<L::Found> {
    let units = memory.len() / plan.unit;
    let whole = stream.run(&plan.piece(first, units, input), memory);
    let full = whole.as_ref().is_err_and(|error| error.is::<NoMemory>());
    if !full || units < 2 || memory.len() <= LEAST {
        return whole;
    }
    let (head, tail) = memory.split_at_mut(units / 2 * plan.unit);
    joined([
        band(plan, input, stream, first, head)?,
        band(plan, input, stream, first + units / 2, tail)?,
    ])
}

/// Joins the numbers of all parts.
fn joined<T: Join>(parts: impl IntoIterator<Item = T>) -> Result<T> {
    let mut parts = parts.into_iter();
    let mut all = parts.next().context("an image without parts")?;
    for part in parts {
        all.join(&part)?;
    }
    Ok(all)
}

/// One stream at a time uses each direction of the link: otherwise all bands would upload together
/// and then download together.
#[derive(Debug, Default)]
struct Link {
    up: Mutex<()>,
    down: Mutex<()>,
}

fn alone<R>(direction: &Mutex<()>, copy: impl FnOnce() -> R) -> R {
    let _mine = direction.lock().unwrap_or_else(PoisonError::into_inner);
    copy()
}

/// A stream of a GPU, and the work on each piece, which gives an image or none, and numbers.
struct GpuStream<'a, W> {
    gpu: Gpu,
    timeline: Timeline,
    link: &'a Link,
    work: &'a W,
}

impl<T, W> BandStream for GpuStream<'_, W>
where
    T: Join + Send,
    W: Fn(DeviceImage, &mut Job) -> Result<(Option<DeviceImage>, T)> + Sync,
{
    type Found = T;

    fn run(&mut self, piece: &Piece, memory: &mut [u8]) -> Result<T> {
        let (link, work) = (self.link, self.work);
        self.gpu.job(&mut [], &mut self.timeline, |job| {
            let samples = alone(&link.up, || match &piece.from {
                None => job.send(memory, memory.len(), 0..memory.len()),
                Some(from) => job.send(from.rows, from.pitch, from.part.clone()),
            })?;
            let shape = piece.shape;
            let (image, found) = work(DeviceImage { shape, samples }, job)?;
            if let Some(image) = image {
                alone(&link.down, || job.fetch(&image.samples, memory))?;
            }
            Ok(found)
        })
    }
}

/// As `in_bands`, on a GPU; host memory is pinned.
fn on_gpu<T: Join + Send>(
    plan: &Plan,
    (input, memory): (&[u8], &mut [u8]),
    bytes: usize,
    gpu: &Gpu,
    timeline: &mut Timeline,
    work: impl Fn(DeviceImage, &mut Job) -> Result<(Option<DeviceImage>, T)> + Sync,
) -> Result<T> {
    let link = Link::default();
    let stream = || {
        Ok(GpuStream {
            gpu: gpu.with_stream(true)?,
            timeline: Timeline::default(),
            link: &link,
            work: &work,
        })
    };
    let (found, streams) = in_bands(plan, input, memory, bytes, stream)?;
    let beside: Vec<Timeline> = streams.into_iter().map(|stream| stream.timeline).collect();
    timeline.join(&beside);
    Ok(found)
}

/// Measures a statistic of the image in `memory`, in bands. Errors: the GPU's.
pub fn measure(
    statistic: Statistic,
    shape: Shape,
    memory: &mut HostMemory,
    gpu: &Gpu,
    timeline: &mut Timeline,
) -> Result<Statistics> {
    pinned(memory, gpu, timeline, |memory, timeline| {
        measured(statistic, shape, memory, BYTES, gpu, timeline)
    })
}

/// As `measure`, for samples in pinned memory.
fn measured(
    statistic: Statistic,
    shape: Shape,
    memory: &mut [u8],
    bytes: usize,
    gpu: &Gpu,
    timeline: &mut Timeline,
) -> Result<Statistics> {
    if statistic == Statistic::None {
        return Ok(Statistics::None);
    }
    if statistic.needs_whole_image(&shape) {
        let why = "percentiles of samples of 32 bits are found in the whole image at once";
        return Err(anyhow!(why).context(NoMemory));
    }
    let plan = Plan::new(shape, Access::Reduction)?;
    on_gpu(&plan, (&[], memory), bytes, gpu, timeline, |image, job| {
        Ok((None, statistic.cuda(&image, job)?.on_host(job)?))
    })
}

/// Runs an operation in bands of about `bytes` bytes. The result has the same bytes as that of the
/// whole image, but lies in new memory if pixels move. Errors: the GPU's, and an operation that
/// cannot be cut.
pub fn run(
    task: &Task,
    image: Image,
    gpu: &Gpu,
    timeline: &mut Timeline,
    bytes: usize,
) -> Result<Executed> {
    let shape = image.shape();
    if chain::output(task.op, shape).depth != shape.depth {
        return Err(anyhow!("samples of 32 bits are not cut into bands").context(NoMemory));
    }
    if let Access::Region(_) = task.op.properties().access {
        // The host copies it, rather than send the whole image band by band for a part of it.
        let bound = task.op.bind(task.types, &Statistics::None)?;
        return Ok(Executed {
            result: bound.cpu(image, timeline)?,
            summary: bound.summary(),
        });
    }
    let plan = Plan::new(shape, task.op.properties().access)?;
    let mut memory = HostMemory::from(image.into_samples());
    let mut moved = match plan.turn {
        Some(turn) => {
            let mut moved = HostMemory::from(Samples::any(&turn.of(shape))?);
            // All cores touch the pages at once; the driver would touch one after the other while
            // it pins them.
            let pages = moved.par_chunks_mut(PAGE);
            pages.for_each(|page| page[0] = 0);
            Some(moved)
        }
        None => None,
    };
    let (mut found, summary) = pinned(&mut memory, gpu, timeline, |memory, timeline| {
        let own = measured(task.statistic(), shape, memory, bytes, gpu, timeline)?;
        let bound = task.op.bind(task.types, task.statistics.unwrap_or(&own))?;
        let work = |image: DeviceImage, job: &mut Job| {
            Ok(match bound.cuda(image, job)? {
                OpResult::Image(image) => (Some(image), OpResult::Image(())),
                OpResult::Totals(totals) => (None, OpResult::Totals(totals)),
                OpResult::Counts(counts) => (None, OpResult::Counts(counts)),
            })
        };
        let found = match &mut moved {
            None => on_gpu(&plan, (&[], memory), bytes, gpu, timeline, work),
            Some(moved) => pinned(moved, gpu, timeline, |moved, timeline| {
                on_gpu(&plan, (memory, moved), bytes, gpu, timeline, work)
            }),
        };
        Ok::<_, anyhow::Error>((found?, bound.summary()))
    })?;
    if let OpResult::Totals(totals) = &mut found {
        totals.shape = shape;
    }
    let image = match plan.turn.zip(moved) {
        Some((turn, moved)) => moved.into_image(turn.of(shape)),
        None => memory.into_image(shape),
    };
    Ok(Executed {
        result: found.try_map(|()| Ok(image))?,
        summary,
    })
}

/// Runs `work` on memory that is pinned for direct access by a GPU.
fn pinned<R>(
    memory: &mut [u8],
    gpu: &Gpu,
    timeline: &mut Timeline,
    work: impl FnOnce(&mut [u8], &mut Timeline) -> R,
) -> R {
    let (start, size) = (Instant::now(), memory.len() as u64);
    gpu.with_locked(memory, |memory| {
        timeline.push("pin", start, start.elapsed(), size, Limit::Host);
        work(memory, timeline)
    })
}
