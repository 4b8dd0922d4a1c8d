//! The GPU work on one image: copies and launches are queued in order, without waiting until a
//! result is needed; each is timed by the GPU's own events and recorded in the timeline.

use super::driver::launch::{Arguments, Checked};
use super::driver::{Buffer, Gpu, Kernel, Pinned, Tenant, elapsed};
use crate::timing::{Limit, Timeline};
use anyhow::{Context, Result};
use cudarc::driver::CudaEvent;
use std::any::Any;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// Fewer bytes than this are copied faster through the driver's staging memory than they are
/// pinned.
const WORTH_PINNING: usize = 64 << 10;

/// The queue of work on one image's memory.
#[derive(Debug)]
pub struct Job<'a, 'h> {
    gpu: &'a Gpu,
    host: &'a mut Pinned<'h>,
    timeline: &'a mut Timeline,
    /// Work whose time is not recorded yet.
    pending: Vec<Pending>,
    /// Whether work was queued since the host last waited.
    queued: bool,
}

/// A copy or launch whose time is not known yet.
#[derive(Debug)]
struct Pending {
    name: &'static str,
    bytes: u64,
    limit: Limit,
    /// The events around it; `None` if it was recorded (`driver::recorder`).
    events: Option<(CudaEvent, CudaEvent)>,
}

/// A range of bytes of a buffer.
#[derive(Clone, Debug)]
pub struct BufferPart<'b> {
    /// The buffer.
    pub buffer: &'b Buffer,
    /// The range.
    pub range: Range<usize>,
}

impl Gpu {
    /// Runs `work` on the pinned memory of an image, and records the times of its copies and
    /// kernels in `timeline`.
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
            if timeline.gpu_times {
                // The anchor must be recorded before anything is queued.
                self.clock_anchor()?;
            }
            let mut job = Job {
                gpu: self,
                host,
                timeline,
                pending: Vec::new(),
                queued: false,
            };
            let result = work(&mut job)?;
            job.settle()?;
            Ok(result)
        })
    }
}

impl Job<'_, '_> {
    /// Device memory of `len` bytes.
    pub fn alloc(&mut self, len: usize) -> Result<Buffer> {
        let gpu = self.gpu;
        self.timeline.host("device memory", 0, || gpu.alloc(len))
    }

    /// Device memory of at least `len` bytes, which kernels must write before they read it.
    pub fn scratch(&mut self, len: usize) -> Result<Buffer> {
        let gpu = self.gpu;
        self.timeline.host("device memory", 0, || gpu.scratch(len))
    }

    /// Loads the kernel with these arguments for one form of pixel. The driver may have to compile it first.
    pub(crate) fn kernel<A: Arguments>(&mut self, form: &str) -> Result<Kernel<A>> {
        let gpu = self.gpu;
        self.timeline
            .host("load kernels", 0, || gpu.kernel::<A>(form))
    }

    /// Blocks for a reduction of `bytes` to a few words.
    pub fn reduction_grid(&self, bytes: u64) -> u32 {
        self.gpu.reduction_grid(bytes)
    }

    /// Device memory that holds a few words.
    pub fn words<T: bytemuck::Pod>(&mut self, words: &[T]) -> Result<Buffer> {
        self.queued = true;
        self.gpu.words(words)
    }

    /// The number of multiprocessors of the GPU, for grids whose blocks all run at the same time.
    pub fn multiprocessors(&self) -> u32 {
        self.gpu.multiprocessors()
    }

    /// Bytes of the job's host memory.
    pub fn host_len(&self) -> usize {
        self.host.len()
    }

    /// The number of the GPU among all, from 0.
    pub fn ordinal(&self) -> usize {
        self.gpu.ordinal()
    }

    /// The data that are kept on this GPU for `tenant`. If there are none yet, `make` makes them, and waits for the work that it
    /// queues.
    pub fn kept<T: Any + Send + Sync>(
        &mut self,
        tenant: &Tenant,
        make: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<Arc<T>> {
        let gpu = self.gpu;
        gpu.kept(tenant, || make(self))
    }

    /// Waits for everything queued on the stream, so that other streams may use its buffers.
    pub fn wait_for_stream(&mut self) -> Result<()> {
        self.gpu.wait()?;
        self.queued = false;
        Ok(())
    }

    /// Queues a fill of every byte of a buffer.
    pub fn fill(&mut self, buffer: &mut Buffer, byte: u8) -> Result<()> {
        self.queued = true;
        self.gpu.fill(buffer, byte)
    }

    /// The job's host memory, after everything queued before.
    pub fn host(&mut self) -> Result<&[u8]> {
        self.queued = false;
        self.host.bytes()
    }

    /// Copies words into a buffer from byte `to` on.
    pub fn send_words<T: bytemuck::Pod>(
        &mut self,
        words: &[T],
        buffer: &mut Buffer,
        to: usize,
    ) -> Result<()> {
        self.queued = true;
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
        self.queued = false;
        Ok(words)
    }

    /// Waits for all queued work.
    fn wait(&mut self) -> Result<()> {
        if self.queued {
            self.gpu.wait()?;
            self.queued = false;
        }
        Ok(())
    }

    /// Queues a copy of the image into new device memory.
    pub fn upload(&mut self) -> Result<Buffer> {
        self.upload_first(self.host.len())
    }

    /// Queues a copy of the first `len` bytes of the image's memory into new device memory.
    pub fn upload_first(&mut self, len: usize) -> Result<Buffer> {
        let mut buffer = self.alloc(len)?;
        let name = if self.host.direct() {
            "upload"
        } else {
            "upload, unpinned"
        };
        self.timed(name, len as u64, Limit::Pcie, |job| {
            job.host.upload(&mut buffer)
        })?;
        Ok(buffer)
    }

    /// Copies a range of bytes of every row of plain memory, with rows of `pitch` bytes, to new
    /// device memory.
    pub fn send(&mut self, host: &[u8], pitch: usize, part: Range<usize>) -> Result<Buffer> {
        let bytes = host.len() / pitch * part.len();
        let mut buffer = self.alloc(bytes)?;
        self.timed("upload", bytes as u64, Limit::Pcie, |job| {
            job.gpu.send_columns(host, pitch, part, &mut buffer)
        })?;
        Ok(buffer)
    }

    /// Copies a rectangle of an image whose rows have `pitch` bytes: a range of bytes of each of `height` rows from row `top`
    /// on, contiguously, to new device memory.
    pub fn copy_region(
        &mut self,
        image: &Buffer,
        pitch: usize,
        top: usize,
        columns: Range<usize>,
        height: usize,
    ) -> Result<Buffer> {
        let bytes = height * columns.len();
        let mut region = self.alloc(bytes)?;
        self.timed("crop", 2 * bytes as u64, Limit::DeviceMemory, |job| {
            job.gpu.copy_region(image, pitch, top, columns, &mut region)
        })?;
        Ok(region)
    }

    /// Copies a buffer to new device memory.
    pub fn duplicate(&mut self, buffer: &Buffer) -> Result<Buffer> {
        let mut copy = self.alloc(buffer.len())?;
        self.timed(
            "copy",
            2 * buffer.len() as u64,
            Limit::DeviceMemory,
            |job| job.gpu.copy(buffer, &mut copy),
        )?;
        Ok(copy)
    }

    /// Queues a copy of a range of a buffer to another one, from byte `to` on.
    pub fn copy_part(
        &mut self,
        from: &Buffer,
        range: Range<usize>,
        buffer: &mut Buffer,
        to: usize,
    ) -> Result<()> {
        let bytes = 2 * range.len() as u64;
        self.timed("copy", bytes, Limit::DeviceMemory, |job| {
            job.gpu.copy_part(from, range, buffer, to)
        })
    }

    /// Copies `buffer` over plain memory of the same length, after all queued work.
    pub fn fetch(&mut self, buffer: &Buffer, host: &mut [u8]) -> Result<()> {
        self.timed("download", host.len() as u64, Limit::Pcie, |job| {
            job.gpu.fetch(buffer, host)
        })
    }

    /// Queues a copy of `buffer` over the beginning of the image's memory, of at least as many bytes.
    pub fn download_first(&mut self, buffer: &Buffer) -> Result<()> {
        let name = if self.host.direct() {
            "download"
        } else {
            "download, unpinned"
        };
        self.timed(name, buffer.len() as u64, Limit::Pcie, |job| {
            job.host.download_part(0..buffer.len(), buffer, 0)
        })
    }

    /// Device memory of `len` bytes that are 0.
    pub fn zeroed(&mut self, len: usize) -> Result<Buffer> {
        let gpu = self.gpu;
        self.queued = true;
        self.timeline.host("device memory", 0, || gpu.zeroed(len))
    }

    /// Queues zeros for the first `len` bytes of a buffer.
    pub fn clear(&mut self, buffer: &mut Buffer, len: usize) -> Result<()> {
        self.queued = true;
        self.gpu.fill_part(buffer, 0..len, 0)
    }

    /// Queues zeros for the bytes of a buffer from byte `from` on.
    pub fn clear_from(&mut self, buffer: &mut Buffer, from: usize) -> Result<()> {
        self.queued = true;
        let rest = from..buffer.len();
        self.gpu.fill_part(buffer, rest, 0)
    }

    /// Copies parts of buffers contiguously to the start of the image's memory, as far as they fit. Returns
    /// the number of bytes used, and the other parts, from the first that does not fit on. Waits for all
    /// queued work.
    pub fn gather(&mut self, parts: &[BufferPart]) -> Result<(usize, Vec<u8>)> {
        let mut end = 0;
        let fit = parts.iter().take_while(|BufferPart { range, .. }| {
            let fits = end + range.len() <= self.host.len();
            end += if fits { range.len() } else { 0 };
            fits
        });
        let (inside, outside) = parts.split_at(fit.count());
        self.timed("download", end as u64, Limit::Pcie, |job| {
            let mut at = 0;
            for BufferPart { buffer, range } in inside {
                let to = at..at + range.len();
                at = to.end;
                job.host.download_part(to, buffer, range.start)?;
            }
            Ok(())
        })?;
        self.settle()?;
        let mut rest = Vec::new();
        for BufferPart { buffer, range } in outside {
            let at = rest.len();
            rest.resize(at + range.len(), 0);
            self.gpu.fetch_from(buffer, range.start, &mut rest[at..])?;
        }
        Ok((end, rest))
    }

    /// Queues a kernel of `grid` blocks; `bytes` is the number of bytes that it must read and write
    /// in device memory.
    ///
    /// # Errors
    /// Those of `Gpu::launch`.
    pub(crate) fn launch<A: Checked>(
        &mut self,
        kernel: &Kernel<A>,
        grid: u32,
        bytes: u64,
        arguments: A,
    ) -> Result<()> {
        self.timed(kernel.name(), bytes, Limit::DeviceMemory, |job| {
            job.gpu.launch(kernel, grid, arguments)
        })
    }

    /// As `launch`, of a kernel that trusts the content of memory.
    ///
    /// # Safety
    /// As for `Gpu::launch_trusting`: the memory that the kernel trusts has the content that the documentation of `A` demands.
    pub(crate) unsafe fn launch_trusting<A: Arguments>(
        &mut self,
        kernel: &Kernel<A>,
        grid: u32,
        bytes: u64,
        arguments: A,
    ) -> Result<()> {
        self.timed(kernel.name(), bytes, Limit::DeviceMemory, |job| {
            let grid = kernel.grid(grid);
            // SAFETY: the caller's promise is the same.
            unsafe { job.gpu.launch_trusting(kernel, grid, arguments) }
        })
    }

    /// Waits for all queued work and copies the words of a small buffer to the host.
    pub fn read_words<T: bytemuck::Pod>(&mut self, buffer: &Buffer) -> Result<Vec<T>> {
        let words = self.gpu.read_words(buffer)?;
        self.queued = false;
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
        self.queued = true;
        if !self.timeline.gpu_times {
            return queue(self).context(name);
        }
        let events = if self.gpu.records() {
            self.gpu.set_stage(Some(self.pending.len()));
            let queued = queue(self);
            self.gpu.set_stage(None);
            queued.context(name)?;
            None
        } else {
            let before = self.gpu.event()?;
            queue(self).context(name)?;
            Some((before, self.gpu.event()?))
        };
        self.pending.push(Pending {
            name,
            bytes,
            limit,
            events,
        });
        Ok(())
    }

    /// Waits for all queued work and records its times in the timeline.
    fn settle(&mut self) -> Result<()> {
        self.wait()?;
        if self.pending.is_empty() {
            return Ok(());
        }
        let (origin, origin_event) = self.gpu.clock_anchor()?;
        let mut recorded = self.gpu.recorded_times(self.pending.len());
        for (stage, pending) in self.pending.drain(..).enumerate() {
            let Pending {
                name,
                bytes,
                limit,
                events,
            } = pending;
            let (start, time) = match events {
                Some((before, after)) => {
                    let start = *origin + elapsed(origin_event, &before)?;
                    let time = elapsed(&before, &after)?;
                    self.gpu.keep(before);
                    self.gpu.keep(after);
                    (start, time)
                }
                None => match recorded[stage].take() {
                    Some(measured) => measured,
                    None => continue,
                },
            };
            self.timeline.push(name, start, time, bytes, limit);
        }
        Ok(())
    }
}
