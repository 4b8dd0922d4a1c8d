//! The context of a bench row: the data, the check of every result, and the clocks of host and GPU.

use super::figure::Time;
use crate::gpu::driver::launch::Arguments;
use crate::gpu::driver::{self, Facts, Gpu, Grid, Kernel, ViewMut};
use crate::gpu::launch::papers::launch::Differing;
use crate::image::buffer::Buffer;
use anyhow::{Context, Result, anyhow, ensure};
use rayon::prelude::*;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The sizes of all rows.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Bytes of the main input: far more than a level-2 cache, and a square number of 32-bit words.
    pub bytes: usize,
    /// Side of the matrix of "Transposing a matrix".
    pub side: usize,
    /// Integers in the array of "GPGPU optimisation by the example of a sum".
    pub integers: usize,
    /// Bytes of the largest transfer.
    pub transfer: usize,
    /// The most measurements of a row.
    pub runs: usize,
}

impl Sizes {
    /// The sizes for measuring.
    pub const FULL: Sizes = Sizes {
        bytes: 256 << 20,
        side: 1024,
        integers: 1 << 22,
        transfer: 256 << 20,
        runs: 15,
    };
    /// Sizes for a memory and race checker, which slows kernels down a thousandfold.
    pub const SMALL: Sizes = Sizes {
        bytes: 256 << 10,
        side: 64,
        integers: 1 << 14,
        transfer: 64 << 10,
        runs: 1,
    };

    /// A length in bytes or a side in pixels: `full` itself or, for the checker, a thirty-second of
    /// it.
    pub fn scaled(&self, full: usize) -> usize {
        match self.bytes {
            bytes if bytes >= Sizes::FULL.bytes => full,
            // Still odd or even, and large enough for several blocks of a kernel.
            _ => (full / 32).max(64) | full & 1,
        }
    }

    /// Side of the square of 32-bit words that fills the main input.
    pub fn large_side(&self) -> usize {
        (self.bytes / 4).isqrt()
    }
}

/// The shortest measurement, in seconds: shorter work is repeated within one measurement, so that
/// neither the resolution of the clock nor the latency of the first launch counts.
const LEAST: f64 = 1e-3;
/// No further measurement of a row after this time, once there are a few.
const ENOUGH: Duration = Duration::from_millis(250);
const FEWEST: usize = 3;

/// The byte that fills a row's output before the launch that is checked.
pub const POISON: u8 = 0xa5;

/// The host's data: the main input, and the sums of it that kernels must find.
pub struct Host {
    /// The sizes of all rows.
    pub sizes: Sizes,
    /// The main input: 16-bit samples from 1 to 65534, except for one 0 and one 65535.
    pub noise: Buffer<u16>,
    /// The sum of its samples, modulo 2³².
    pub sample_sum: u32,
    /// The sum of its words, modulo 2³².
    pub word_sum: u32,
}

impl Host {
    /// Makes the input.
    pub fn new(sizes: Sizes) -> Result<Host> {
        let mut noise = Buffer::<u16>::zeroed(sizes.bytes / 2)?;
        noise.par_iter_mut().enumerate().for_each(|(i, sample)| {
            let mixed = (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40;
            *sample = 1 + (mixed % 65534) as u16;
        });
        let len = noise.len();
        noise[len - 1] = 65535;
        noise[len / 4 * 3 - 1] = 0;
        let sums = noise.par_iter().map(|&sample| u32::from(sample));
        Ok(Host {
            sizes,
            sample_sum: sums.reduce(|| 0, u32::wrapping_add),
            word_sum: wrapping_sum(bytemuck::cast_slice(&noise)),
            noise,
        })
    }

    /// The main input as words of 32 bits.
    pub fn words(&self) -> &[u32] {
        bytemuck::cast_slice(&self.noise)
    }

    /// `bytes` bytes of words of the main input, repeated as often as needed.
    pub fn repeated_words(&self, bytes: usize) -> impl Iterator<Item = u32> {
        self.words().iter().copied().cycle().take(bytes / 4)
    }

    /// The sum of `repeated_words` modulo 2³².
    pub fn repeated_sum(&self, bytes: usize) -> u32 {
        let (words, count) = (self.words(), bytes / 4);
        let whole = self.word_sum.wrapping_mul((count / words.len()) as u32);
        whole.wrapping_add(wrapping_sum(&words[..count % words.len()]))
    }

    /// Times `run` on the host's clock, with twice as many measurements as on the GPU, since other
    /// programs share the host.
    pub fn time(&self, mut run: impl FnMut() -> Result<()>) -> Result<Time> {
        measure(2 * self.sizes.runs - 1, |times| {
            let start = Instant::now();
            for _ in 0..times {
                run()?;
            }
            Ok(start.elapsed().as_secs_f64())
        })
    }
}

/// The sum of words modulo 2³², with which reading kernels are checked.
pub fn wrapping_sum(words: &[u32]) -> u32 {
    words
        .par_chunks(1 << 16)
        .map(|chunk| chunk.iter().fold(0u32, |sum, &word| sum.wrapping_add(word)))
        .reduce(|| 0, u32::wrapping_add)
}

/// The transposed matrix of rows of `width` elements.
pub fn transposed<T: bytemuck::Pod + Send + Sync>(elements: &[T], width: usize) -> Vec<T> {
    let height = elements.len() / width;
    let mut out = vec![T::zeroed(); width * height];
    // Bands of rows, so that each cache line that is read serves several of them.
    out.par_chunks_mut(16 * height)
        .enumerate()
        .for_each(|(band, rows)| {
            for y in 0..height {
                for (row, x) in (16 * band..width.min(16 * band + 16)).enumerate() {
                    rows[row * height + y] = elements[y * width + x];
                }
            }
        });
    out
}

/// Element `i` of a permutation of the numbers below `n`, a power of two, that keeps no neighbours
/// together.
pub fn shuffled(i: usize, n: usize) -> usize {
    let mask = n - 1;
    let mixed = i.wrapping_mul(0x9E37_79B1) & mask;
    let mixed = mixed ^ mixed >> (n.trailing_zeros() / 2).max(1);
    mixed.wrapping_mul(0x85EB_CA6B) & mask
}

/// The GPU's data: the device, the main input in its memory, and the check of a row's output.
pub struct BenchContext<'a> {
    /// The GPU.
    pub gpu: &'a Gpu,
    /// Its properties.
    pub facts: Facts,
    /// Its number.
    pub ordinal: usize,
    /// The host's data.
    pub host: &'a Host,
    /// The main input in device memory; no row changes it.
    pub input: driver::Buffer,
    differing: Kernel<Differing<'static>>,
    /// Whether the next checked output is overwritten first, to test the check.
    pub spoil: Cell<bool>,
    kept: RefCell<HashMap<String, Rc<driver::Buffer>>>,
}

impl<'a> BenchContext<'a> {
    /// Copies the input to the GPU.
    pub fn new(gpu: &'a Gpu, ordinal: usize, host: &'a Host) -> Result<BenchContext<'a>> {
        Ok(BenchContext {
            gpu,
            facts: gpu.facts()?,
            ordinal,
            host,
            input: gpu.words(&host.noise)?,
            differing: gpu.kernel("")?,
            spoil: Cell::default(),
            kept: RefCell::default(),
        })
    }

    /// Loads one of the papers' kernels.
    pub(crate) fn kernel<A: Arguments>(&self) -> Result<Kernel<A>> {
        self.gpu.kernel("")
    }

    /// Loads one of a family of the papers' kernels.
    pub(crate) fn kernel_named<A: Arguments>(&self, name: &str) -> Result<Kernel<A>> {
        self.gpu.kernel_named(name, "")
    }

    /// Blocks of 256 threads, eight times as many as the GPU can run at once.
    pub fn filled(&self) -> Grid {
        Grid::new(8 * self.facts.multiprocessors, 256)
    }

    /// Device memory of `len` bytes, filled with `POISON`.
    pub fn poisoned(&self, len: usize) -> Result<driver::Buffer> {
        let mut buffer = self.gpu.alloc(len)?;
        self.gpu.fill(&mut buffer, POISON)?;
        Ok(buffer)
    }

    /// A copy of the beginning of the main input, for kernels that work in place.
    pub fn changeable(&self, len: usize) -> Result<driver::Buffer> {
        let mut buffer = self.gpu.alloc(len)?;
        self.gpu.copy(&self.input, &mut buffer)?;
        Ok(buffer)
    }

    /// The data named `name`, made by `make` at the first request and kept on the GPU for later
    /// rows of the same table.
    pub fn kept<T: bytemuck::Pod>(
        &self,
        name: &str,
        make: impl FnOnce() -> Vec<T>,
    ) -> Result<Rc<driver::Buffer>> {
        self.kept_buffer(name, || self.gpu.words(&make()))
    }

    /// As `kept`, of data that `make` leaves in device memory.
    pub fn kept_buffer(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<driver::Buffer>,
    ) -> Result<Rc<driver::Buffer>> {
        if let Some(buffer) = self.kept.borrow().get(name) {
            return Ok(buffer.clone());
        }
        let buffer = Rc::new(make()?);
        self.kept.borrow_mut().insert(name.into(), buffer.clone());
        Ok(buffer)
    }

    /// Frees the kept data.
    pub fn forget(&self) {
        self.kept.borrow_mut().clear();
    }

    /// Fails unless one run of `launch` makes `out` equal to `expected`, and `out` differed before:
    /// a check that cannot fail checks nothing.
    pub fn check(
        &self,
        out: &mut driver::Buffer,
        expected: &driver::Buffer,
        launch: impl FnOnce(&mut driver::Buffer) -> Result<()>,
    ) -> Result<()> {
        ensure!(
            self.differ(out, expected)? > 0,
            "the output was right before the launch"
        );
        launch(out)?;
        self.spoilt(out)?;
        match self.differ(out, expected)? {
            0 => Ok(()),
            wrong => Err(anyhow!("{wrong} of {} words are wrong", expected.len() / 4)),
        }
    }

    /// Checks as `check`, and times.
    pub fn check_and_time(
        &self,
        mut out: driver::Buffer,
        expected: &driver::Buffer,
        mut launch: impl FnMut(&mut driver::Buffer) -> Result<()>,
    ) -> Result<Time> {
        self.check(&mut out, expected, &mut launch)?;
        self.time(|| launch(&mut out))
    }

    /// Overwrites the output if this row's check is being tested.
    pub fn spoilt(&self, out: &mut driver::Buffer) -> Result<()> {
        if self.spoil.take() {
            self.gpu.fill(out, POISON)?;
        }
        Ok(())
    }

    fn differ(&self, a: &driver::Buffer, b: &driver::Buffer) -> Result<u64> {
        ensure!(a.len() == b.len(), "an output of another length");
        let mut count = self.gpu.words(&[0u64])?;
        let arguments = Differing {
            a: a.view(),
            b: b.view(),
            n: a.len() as u64 / 4,
            count: count.view_mut(),
        };
        self.gpu
            .launch_grid(&self.differing, self.filled(), arguments)
            .context("the check")?;
        Ok(self.gpu.read_words::<u64>(&count)?[0])
    }

    /// Fails unless `launch` writes all of `sums`, filled with `POISON` before, with words that add
    /// up to `expected` modulo 2³².
    pub fn check_sum(
        &self,
        sums: &mut driver::Buffer,
        expected: u32,
        launch: impl FnOnce(&mut driver::Buffer) -> Result<()>,
    ) -> Result<()> {
        self.gpu.fill(sums, POISON)?;
        launch(sums)?;
        self.spoilt(sums)?;
        let found = wrapping_sum(&self.gpu.read_words(sums)?);
        ensure!(
            found == expected,
            "what was read adds up to {found}, and not to {expected}"
        );
        Ok(())
    }

    /// Checks and times a kernel in which every thread of the grid stores one sum of the values that it read.
    pub fn summed(
        &self,
        grid: Grid,
        expected: u32,
        mut launch: impl FnMut(ViewMut) -> Result<()>,
    ) -> Result<Time> {
        let threads = grid.blocks[0] * grid.threads[0];
        let mut sums = self.gpu.alloc(4 * threads as usize)?;
        self.check_sum(&mut sums, expected, |sums| launch(sums.view_mut()))?;
        self.time(|| launch(sums.view_mut()))
    }

    /// Times `launch` on the GPU's clock (CUDA events), with many launches between two events.
    pub fn time(&self, mut launch: impl FnMut() -> Result<()>) -> Result<Time> {
        measure(self.host.sizes.runs, |times| {
            let before = self.gpu.event()?;
            for _ in 0..times {
                launch()?;
            }
            let after = self.gpu.event()?;
            self.gpu.wait()?;
            let ms = before
                .elapsed_ms(&after)
                .map_err(|error| anyhow!("the GPU's clock: {error}"))?;
            Ok(f64::from(ms) / 1e3)
        })
    }
}

/// Repeats a measurement of `run`, which repeats the work the given number of times and returns the
/// seconds.
fn measure(runs: usize, mut run: impl FnMut(usize) -> Result<f64>) -> Result<Time> {
    let start = Instant::now();
    // The first launch warms up; a single launch takes longer than its share of many, hence a
    // second.
    let mut times = 1;
    for _ in 0..2 {
        let once = (run(times)? / times as f64).max(1e-7);
        times = ((LEAST / once).ceil() as usize).clamp(1, if runs > 1 { 1000 } else { 1 });
        if once > 0.1 {
            break;
        }
    }
    let mut seconds = Vec::new();
    while seconds.len() < runs && (seconds.len() < FEWEST || start.elapsed() < ENOUGH) {
        seconds.push(run(times)? / times as f64);
    }
    Ok(Time::from_seconds(seconds))
}
