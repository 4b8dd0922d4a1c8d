//! Work on one image's memory: copies and launches queued in order, none waited for until a
//! result is wanted, each timed by the card's own events and told to the timeline.

use super::cuda::{Arg, Buffer, Gpu, Kernel, Pinned};
use crate::stats::{Limit, Timeline};
use anyhow::{Context, Result, anyhow};
use cudarc::driver::CudaEvent;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Fewer bytes are sent through the driver's own memory sooner than they are pinned.
const WORTH_PINNING: usize = 64 << 10;

/// The queue of one image's work.
#[derive(Debug)]
pub struct Job<'a, 'h> {
    gpu: &'a Gpu,
    host: &'a mut Pinned<'h>,
    timeline: &'a mut Timeline,
    pending: Vec<Pending>,
}

/// A copy or launch whose time is not known yet.
#[derive(Debug)]
struct Pending {
    name: &'static str,
    bytes: u64,
    limit: Limit,
    before: CudaEvent,
    after: CudaEvent,
}

impl Gpu {
    /// Runs `work` on the pinned memory of an image, and tells `timeline` what it took.
    pub fn job<R>(
        &self,
        host: &mut [u8],
        timeline: &mut Timeline,
        work: impl FnOnce(&mut Job) -> Result<R>,
    ) -> Result<R> {
        let start = Instant::now();
        let bytes = host.len() as u64;
        self.with_memory(host, host.len() >= WORTH_PINNING, |host| {
            if bytes > 0 {
                timeline.push("pin", start, start.elapsed(), bytes, Limit::Host);
            }
            // Known before anything is queued.
            self.moment()?;
            let mut job = Job {
                gpu: self,
                host,
                timeline,
                pending: Vec::new(),
            };
            let result = work(&mut job)?;
            job.settle()?;
            Ok(result)
        })
    }
}

impl Job<'_, '_> {
    /// Device memory for an image of `len` bytes.
    pub fn alloc(&mut self, len: usize) -> Result<Buffer> {
        let gpu = self.gpu;
        self.timeline.host("device memory", 0, || gpu.alloc(len))
    }

    /// Kernels of one file for one form of pixel. The driver may have to compile them first.
    pub fn kernels<const N: usize>(
        &mut self,
        file: &str,
        names: [&'static str; N],
        form: &str,
    ) -> Result<[Kernel; N]> {
        let gpu = self.gpu;
        let load = || {
            let kernels: Result<Vec<Kernel>> = names
                .iter()
                .map(|name| gpu.kernel(file, name, form))
                .collect();
            kernels?
                .try_into()
                .map_err(|_| anyhow!("kernels are missing"))
        };
        self.timeline.host("load kernels", 0, load)
    }

    /// Blocks for a pass that reduces `bytes` to a few words.
    pub fn reduction_grid(&self, bytes: u64) -> u32 {
        self.gpu.reduction_grid(bytes)
    }

    /// Device memory that holds a few words.
    pub fn words<T: bytemuck::Pod>(&mut self, words: &[T]) -> Result<Buffer> {
        self.gpu.words(words)
    }

    /// How many multiprocessors the card has, by which grids are sized that stay on it.
    pub fn multiprocessors(&self) -> u32 {
        self.gpu.multiprocessors()
    }

    /// The job's host memory, after everything queued before.
    pub fn host(&mut self) -> Result<&[u8]> {
        self.host.bytes()
    }

    /// Copies words into a buffer from byte `to` on.
    pub fn send_words<T: bytemuck::Pod>(
        &mut self,
        words: &[T],
        buffer: &Buffer,
        to: usize,
    ) -> Result<()> {
        self.gpu.send_to(bytemuck::cast_slice(words), buffer, to)
    }

    /// Reads back `count` words of a buffer from byte `from` on, after everything queued before.
    pub fn fetch_words<T: bytemuck::Pod>(
        &mut self,
        buffer: &Buffer,
        from: usize,
        count: usize,
    ) -> Result<Vec<T>> {
        let mut words = vec![T::zeroed(); count];
        self.gpu
            .fetch_from(buffer, from, bytemuck::cast_slice_mut(&mut words))?;
        Ok(words)
    }

    /// Queues a copy of the image into new device memory.
    pub fn upload(&mut self) -> Result<Buffer> {
        let mut buffer = self.alloc(self.host.len())?;
        let name = if self.host.direct() {
            "upload"
        } else {
            "upload, unpinned"
        };
        self.timed(name, self.host.len() as u64, Limit::Pcie, |job| {
            job.host.upload(&mut buffer)
        })?;
        Ok(buffer)
    }

    /// Copies a part of every row of plain memory, rows of `pitch` bytes, into new device memory.
    pub fn send(&mut self, host: &[u8], pitch: usize, part: Range<usize>) -> Result<Buffer> {
        let bytes = host.len() / pitch * part.len();
        let buffer = self.alloc(bytes)?;
        self.timed("upload", bytes as u64, Limit::Pcie, |job| {
            job.gpu.send_columns(host, pitch, part, &buffer)
        })?;
        Ok(buffer)
    }

    /// Copies `buffer` over plain memory of the same length, after everything queued before.
    pub fn fetch(&mut self, buffer: &Buffer, host: &mut [u8]) -> Result<()> {
        self.timed("download", host.len() as u64, Limit::Pcie, |job| {
            job.gpu.fetch(buffer, host)
        })
    }

    /// Queues a copy of `buffer` over the image's memory.
    pub fn download(&mut self, buffer: &Buffer) -> Result<()> {
        let name = if self.host.direct() {
            "download"
        } else {
            "download, unpinned"
        };
        self.timed(name, buffer.len() as u64, Limit::Pcie, |job| {
            job.host.download(buffer)
        })
    }

    /// Device memory of `len` bytes that are 0.
    pub fn zeroed(&mut self, len: usize) -> Result<Buffer> {
        let buffer = self.alloc(len)?;
        self.gpu.fill(&buffer, 0)?;
        Ok(buffer)
    }

    /// Copies parts of buffers, one behind the other, to the beginning of the image's memory while
    /// they fit into it; returns how many bytes of it they take, and a copy of the parts from the
    /// first that does not fit. Waits for everything queued.
    pub fn gather(&mut self, parts: &[(&Buffer, Range<usize>)]) -> Result<(usize, Vec<u8>)> {
        let mut end = 0;
        let fit = parts.iter().take_while(|(_, part)| {
            let fits = end + part.len() <= self.host.len();
            end += if fits { part.len() } else { 0 };
            fits
        });
        let (inside, outside) = parts.split_at(fit.count());
        self.timed("download", end as u64, Limit::Pcie, |job| {
            let mut at = 0;
            for (buffer, part) in inside {
                let to = at..at + part.len();
                at = to.end;
                job.host.download_part(to, buffer, part.start)?;
            }
            Ok(())
        })?;
        self.settle()?;
        let mut rest = Vec::new();
        for (buffer, part) in outside {
            let at = rest.len();
            rest.resize(at + part.len(), 0);
            self.gpu.fetch_from(buffer, part.start, &mut rest[at..])?;
        }
        Ok((end, rest))
    }

    /// Queues a kernel of `grid` blocks that must read and write `bytes` in device memory.
    pub fn launch(&mut self, kernel: &Kernel, grid: u32, bytes: u64, args: &[Arg]) -> Result<()> {
        self.timed(kernel.name, bytes, Limit::DeviceMemory, |job| {
            job.gpu.launch(kernel, grid, args)
        })
    }

    /// Waits for everything queued, and reads back the words of a small buffer.
    pub fn read_words<T: bytemuck::Pod>(&mut self, buffer: &Buffer) -> Result<Vec<T>> {
        let words = self.gpu.read_words(buffer)?;
        self.settle()?;
        Ok(words)
    }

    fn timed(
        &mut self,
        name: &'static str,
        bytes: u64,
        limit: Limit,
        queue: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let before = self.gpu.event()?;
        queue(self).with_context(|| format!("the GPU failed at {name}"))?;
        let after = self.gpu.event()?;
        self.pending.push(Pending {
            name,
            bytes,
            limit,
            before,
            after,
        });
        Ok(())
    }

    /// Waits for everything queued, and tells the timeline of it.
    fn settle(&mut self) -> Result<()> {
        self.gpu.wait()?;
        let (origin, origin_event) = self.gpu.moment()?;
        for Pending {
            name,
            bytes,
            limit,
            before,
            after,
        } in self.pending.drain(..)
        {
            let start = *origin + elapsed(origin_event, &before)?;
            self.timeline
                .push(name, start, elapsed(&before, &after)?, bytes, limit);
            self.gpu.keep(before);
            self.gpu.keep(after);
        }
        Ok(())
    }
}

/// The card's own time between two events that have passed.
fn elapsed(before: &CudaEvent, after: &CudaEvent) -> Result<Duration> {
    let ms = before
        .elapsed_ms(after)
        .map_err(|error| anyhow!("the GPU's clock: {error}"))?;
    Ok(Duration::from_secs_f64(f64::from(ms).max(0.0) / 1e3))
}
