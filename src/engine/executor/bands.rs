//! Processes images larger than GPU memory in bands, several at a time: the upload of one band overlaps with the kernels of
//! another and the download of a third.
//!
//! The access pattern of an operation (`Access`) determines how the image may be cut. For pointwise operations and reductions, a
//! band is a run of pixels. For a permutation, a band is some rows of the result. It is computed from rows of the image or, if
//! the permutation transposes, from a range of columns. The statistic is measured first, in bands as well.

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

/// Bytes of a band. Copies of this size reach the full speed of the link, and the bands of all streams fit into the smallest
/// GPU in use.
pub const DEFAULT_BAND_BYTES: usize = 64 << 20;

/// A band that does not fit is halved, down to this many bytes. A GPU with less free memory is not used.
const MIN_BAND_BYTES: usize = 64 << 10;

/// Streams: one for each direction of the link, and one for the kernels.
const STREAMS: usize = 3;

/// The smallest size in bytes of a memory page on any system.
const MIN_PAGE_BYTES: usize = 4096;

/// How an image is cut into bands. It maps a range of the result to the part of the input that the range is computed from.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    shape: Shape,
    /// How pixels move; `None` if they stay in place, so that the result overwrites the image.
    permutation: Option<PixelMap>,
    /// Bytes of the smallest unit that is not cut: a row of the result, or a pixel.
    unit_bytes: usize,
}

/// The input of one band of the result.
#[derive(Debug)]
pub struct BandInput<'a> {
    /// The shape of the input.
    pub shape: Shape,
    /// The part of the image with its samples; `None` if the samples are in the memory of the band's result.
    pub columns: Option<Columns<'a>>,
}

/// The same range of bytes of every row.
#[derive(Debug)]
pub struct Columns<'a> {
    /// The bytes of whole rows of the image.
    pub rows: &'a [u8],
    /// Bytes of a row.
    pub row_bytes: usize,
    /// The range of bytes of each row.
    pub range: Range<usize>,
}

/// The memory of an image that is processed in bands.
struct BandBuffers<'a> {
    /// The samples of the image; empty if `output` holds them.
    input: &'a [u8],
    /// The samples of the result.
    output: &'a mut [u8],
}

impl Cut {
    /// How an image of this shape is cut for an operation with this access pattern.
    ///
    /// # Errors
    /// A `NoMemory` if the operation cannot be cut.
    pub fn new(shape: Shape, access: Access) -> Result<Cut> {
        let (permutation, unit_bytes) = match access {
            Access::Pointwise | Access::Reduction => (None, shape.pixel_bytes()),
            Access::Permutation(map) => {
                let output = map.of(shape);
                (Some(map), output.row() * output.depth.bytes())
            }
            Access::Region(_) | Access::WholeImage => {
                return Err(anyhow!("it needs the whole image at once").context(NoMemory));
            }
        };
        Ok(Cut {
            shape,
            permutation,
            unit_bytes,
        })
    }

    /// The input for `units` units of the result, starting at unit `first`. `input` holds the image's samples.
    fn band_input<'a>(&self, first: usize, units: usize, input: &'a [u8]) -> BandInput<'a> {
        let image = self.shape;
        let Some(map) = self.permutation else {
            let shape = Shape {
                width: units,
                height: 1,
                ..image
            };
            return BandInput {
                shape,
                columns: None,
            };
        };
        // The rows of the result come from rows of the image or, transposed, from its columns.
        let extent = if map.transposed {
            image.width
        } else {
            image.height
        };
        let first = if map.mirror_y {
            extent - first - units
        } else {
            first
        };
        let row_bytes = image.row() * image.depth.bytes();
        let (shape, rows, range) = if map.transposed {
            let shape = Shape {
                width: units,
                ..image
            };
            let pixel_bytes = image.pixel_bytes();
            let range = first * pixel_bytes..(first + units) * pixel_bytes;
            (shape, input, range)
        } else {
            let shape = Shape {
                height: units,
                ..image
            };
            let rows = &input[first * row_bytes..(first + units) * row_bytes];
            (shape, rows, 0..row_bytes)
        };
        let columns = Some(Columns {
            rows,
            row_bytes,
            range,
        });
        BandInput { shape, columns }
    }
}

/// A worker thread that processes bands on a GPU's stream. Tests implement it without a GPU.
pub trait BandStream: Send {
    /// The numbers that the operation computes for a band.
    type Numbers: Join + Send;

    /// Computes one band of the result in `memory`.
    ///
    /// # Errors
    /// A `NoMemory` if a smaller band could fit.
    fn run(&mut self, input: &BandInput, memory: &mut [u8]) -> Result<Self::Numbers>;
}

/// The result of all bands.
pub struct AllBands<S: BandStream> {
    /// The merged numbers.
    pub numbers: S::Numbers,
    /// The streams that were used.
    pub streams: Vec<S>,
}

/// Computes the result of an image in bands of about `band_bytes` bytes, and writes it to `memory`. If no pixels move, `memory`
/// contains the image's samples at the start, and `input` is empty.
///
/// # Errors
/// The first error of a stream, and a system that allows no more threads.
pub fn in_bands<S: BandStream>(
    cut: &Cut,
    input: &[u8],
    memory: &mut [u8],
    band_bytes: usize,
    new_stream: impl Fn() -> Result<S> + Sync,
) -> Result<AllBands<S>> {
    let units = (band_bytes / cut.unit_bytes).max(1);
    let waiting = Mutex::new(memory.chunks_mut(units * cut.unit_bytes).enumerate());
    let next = || {
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.next()
    };
    let work = || -> Result<(S, Vec<S::Numbers>)> {
        let (mut stream, mut numbers) = (new_stream()?, Vec::new());
        while let Some((index, memory)) = next() {
            let band = run_band(cut, input, &mut stream, index * units, memory);
            if band.is_err() {
                // Takes all remaining bands, so that no stream starts another one.
                while next().is_some() {}
            }
            numbers.push(band?);
        }
        Ok((stream, numbers))
    };
    let results = thread::scope(|scope| {
        let start = |_| thread::Builder::new().spawn_scoped(scope, work);
        // One thread is enough, so it does not matter why the system refuses others.
        let threads: Vec<_> = (0..STREAMS)
            .map_while(|stream| start(stream).ok())
            .collect();
        ensure!(!threads.is_empty(), NO_THREAD);
        let results = threads.into_iter().map(|thread| thread.join());
        let results = results.map(|end| end.unwrap_or_else(|cause| panic::resume_unwind(cause)));
        results.collect::<Result<Vec<_>>>()
    })?;
    let (streams, numbers): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    Ok(AllBands {
        numbers: merge(numbers.into_iter().flatten())?,
        streams,
    })
}

/// Processes a band that begins at unit `first`. If it does not fit, its halves are processed one after the other.
fn run_band<S: BandStream>(
    cut: &Cut,
    input: &[u8],
    stream: &mut S,
    first: usize,
    memory: &mut [u8],
) -> Result<S::Numbers> {
    let units = memory.len() / cut.unit_bytes;
    let result = stream.run(&cut.band_input(first, units, input), memory);
    let is_too_large = result.as_ref().is_err_and(|error| error.is::<NoMemory>());
    if !is_too_large || units < 2 || memory.len() <= MIN_BAND_BYTES {
        return result;
    }
    let (head, tail) = memory.split_at_mut(units / 2 * cut.unit_bytes);
    merge([
        run_band(cut, input, stream, first, head)?,
        run_band(cut, input, stream, first + units / 2, tail)?,
    ])
}

/// Merges the numbers of all bands.
fn merge<T: Join>(bands: impl IntoIterator<Item = T>) -> Result<T> {
    let mut bands = bands.into_iter();
    let mut merged = bands
        .next()
        .context("internal error: an image without bands")?;
    for band in bands {
        merged.join(&band)?;
    }
    Ok(merged)
}

/// The link between host and GPU. One stream at a time uses each direction. Otherwise all bands would upload together and then
/// download together.
#[derive(Debug, Default)]
struct Link {
    up: Mutex<()>,
    down: Mutex<()>,
}

/// Runs `copy` while no other stream uses this direction of the link.
fn exclusively<R>(direction: &Mutex<()>, copy: impl FnOnce() -> R) -> R {
    let _guard = direction.lock().unwrap_or_else(PoisonError::into_inner);
    copy()
}

/// A stream of a GPU, and the work on each band. The work returns numbers, and an image if the operation produces one.
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
    type Numbers = T;

    fn run(&mut self, input: &BandInput, memory: &mut [u8]) -> Result<T> {
        let (link, work) = (self.link, self.work);
        self.gpu.job(&mut [], &mut self.timeline, |job| {
            let samples = exclusively(&link.up, || match &input.columns {
                None => job.send(memory, memory.len(), 0..memory.len()),
                Some(columns) => job.send(columns.rows, columns.row_bytes, columns.range.clone()),
            })?;
            let shape = input.shape;
            let (image, numbers) = work(DeviceImage { shape, samples }, job)?;
            if let Some(image) = image {
                exclusively(&link.down, || job.fetch(&image.samples, memory))?;
            }
            Ok(numbers)
        })
    }
}

/// A GPU that processes bands of about `band_bytes` bytes, and the timeline of the image.
struct BandRunner<'a> {
    gpu: &'a Gpu,
    band_bytes: usize,
    timeline: &'a mut Timeline,
}

impl BandRunner<'_> {
    /// Runs `work` on each band of an image whose host memory is pinned.
    fn run<T: Join + Send>(
        &mut self,
        cut: &Cut,
        buffers: BandBuffers,
        work: impl Fn(DeviceImage, &mut Job) -> Result<(Option<DeviceImage>, T)> + Sync,
    ) -> Result<T> {
        let link = Link::default();
        let new_stream = || {
            Ok(GpuStream {
                // With `true`, allocating device memory does not interrupt the other streams.
                gpu: self.gpu.with_stream(true)?,
                timeline: Timeline::default(),
                link: &link,
                work: &work,
            })
        };
        let BandBuffers { input, output } = buffers;
        let AllBands { numbers, streams } =
            in_bands(cut, input, output, self.band_bytes, new_stream)?;
        let timelines: Vec<Timeline> = streams.into_iter().map(|stream| stream.timeline).collect();
        self.timeline.join(&timelines);
        Ok(numbers)
    }

    /// Measures a statistic of samples in pinned memory.
    fn measure(
        &mut self,
        statistic: Statistic,
        shape: Shape,
        memory: &mut [u8],
    ) -> Result<Statistics> {
        if statistic == Statistic::None {
            return Ok(Statistics::None);
        }
        if statistic.needs_whole_image(&shape) {
            let reason = "the statistic needs the whole image at once";
            return Err(anyhow!(reason).context(NoMemory));
        }
        let cut = Cut::new(shape, Access::Reduction)?;
        let buffers = BandBuffers {
            input: &[],
            output: memory,
        };
        self.run(&cut, buffers, |image, job| {
            Ok((None, statistic.cuda(&image, job)?.on_host(job)?))
        })
    }

    /// Runs `work` while `memory` is pinned, so that the GPU accesses it directly.
    fn with_pinned<R>(
        &mut self,
        memory: &mut [u8],
        work: impl FnOnce(&mut Self, &mut [u8]) -> R,
    ) -> R {
        let (start, size) = (Instant::now(), memory.len() as u64);
        self.gpu.with_locked(memory, |memory| {
            self.timeline
                .push("pin", start, start.elapsed(), size, Limit::Host);
            work(self, memory)
        })
    }
}

/// Measures a statistic of the image in `memory`, in bands.
///
/// # Errors
/// Errors of the GPU, and a statistic that needs the whole image.
pub fn measure(
    statistic: Statistic,
    shape: Shape,
    memory: &mut HostMemory,
    gpu: &Gpu,
    timeline: &mut Timeline,
) -> Result<Statistics> {
    let mut runner = BandRunner {
        gpu,
        band_bytes: DEFAULT_BAND_BYTES,
        timeline,
    };
    runner.with_pinned(memory, |runner, memory| {
        runner.measure(statistic, shape, memory)
    })
}

/// Runs an operation in bands of about `band_bytes` bytes. The result has the same bytes as that of the whole image. It is in new
/// memory if pixels move.
///
/// # Errors
/// Errors of the GPU, and an operation that cannot be cut.
pub fn run(
    task: &Task,
    image: Image,
    gpu: &Gpu,
    timeline: &mut Timeline,
    band_bytes: usize,
) -> Result<Executed> {
    let shape = image.shape();
    let output = chain::output(task.op, shape);
    if output.depth != shape.depth || output.channels != shape.channels {
        // A band of the result must have as many bytes as its input.
        let reason = "an operation that changes the type of pixels is not run in bands";
        return Err(anyhow!(reason).context(NoMemory));
    }
    if let Access::Region(_) = task.op.properties().access {
        // The host copies the region, because sending the whole image to the GPU in bands would take longer.
        let bound = task.op.bind(task.types, &Statistics::None)?;
        return Ok(Executed {
            result: bound.cpu(image, timeline)?,
            summary: bound.summary(),
        });
    }
    let cut = Cut::new(shape, task.op.properties().access)?;
    let mut memory = HostMemory::from(image.into_samples());
    let moved = cut.permutation.map(|map| moved_memory(map.of(shape)));
    let mut moved = moved.transpose()?;
    let mut runner = BandRunner {
        gpu,
        band_bytes,
        timeline,
    };
    let ran = runner.with_pinned(&mut memory, |runner, memory| {
        let measured = runner.measure(task.statistic(), shape, memory)?;
        let statistics = task.statistics.unwrap_or(&measured);
        let bound = task.op.bind(task.types, statistics)?;
        let work = |image: DeviceImage, job: &mut Job| {
            Ok(match bound.cuda(image, job)? {
                OpResult::Image(image) => (Some(image), OpResult::Image(())),
                OpResult::Totals(totals) => (None, OpResult::Totals(totals)),
                OpResult::Counts(counts) => (None, OpResult::Counts(counts)),
            })
        };
        let numbers = match &mut moved {
            None => {
                let buffers = BandBuffers {
                    input: &[],
                    output: memory,
                };
                runner.run(&cut, buffers, work)
            }
            Some(moved) => runner.with_pinned(moved, |runner, output| {
                let buffers = BandBuffers {
                    input: memory,
                    output,
                };
                runner.run(&cut, buffers, work)
            }),
        };
        Ok::<_, anyhow::Error>((numbers?, bound.summary()))
    });
    let (mut numbers, summary) = ran?;
    if let OpResult::Totals(totals) = &mut numbers {
        totals.shape = shape;
    }
    let image = match cut.permutation.zip(moved) {
        Some((map, moved)) => moved.into_image(map.of(shape)),
        None => memory.into_image(shape),
    };
    Ok(Executed {
        result: numbers.try_map(|()| Ok(image))?,
        summary,
    })
}

/// Memory for an image of this shape. All cores write to its memory pages in parallel, so that the system allocates them now:
/// the driver would do so one page after the other when it pins the memory.
fn moved_memory(shape: Shape) -> Result<HostMemory> {
    let mut memory = HostMemory::from(Samples::any(&shape)?);
    let pages = memory.par_chunks_mut(MIN_PAGE_BYTES);
    pages.for_each(|page| page[0] = 0);
    Ok(memory)
}
