//! The images of a projection so far: sums, or the smallest or largest samples, of one image's size.
//! Many threads, and several GPUs, add images at the same time and in any order: the numbers are
//! whole, so that the result is always the same.

use super::{MOST_IMAGES, Project, Projection};
use crate::gpu::driver::{Buffer, Gpu};
use crate::gpu::job::Job;
use crate::gpu::launch::project::{Add, Lower, Raise};
use crate::gpu::{Failed, Unusable};
use crate::image::simd::per_level;
use crate::image::{HostMemory, Image, Shape, Values};
use crate::ops::cpu::Sample;
use crate::ops::with_samples;
use crate::timing::Timeline;
use anyhow::{Context, Result, bail, ensure};
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Samples that one thread adds at a time: a multiple of every channel count and of 16.
pub(super) const CHUNK: usize = 3 << 16;

/// How a sample is folded into those of earlier images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fold {
    /// Sums of 32 bits.
    Add,
    /// The smallest samples.
    Lower,
    /// The largest samples.
    Raise,
}

/// The images of a projection so far.
#[derive(Debug)]
pub struct Accumulator {
    pub(super) project: Project,
    pub(super) shape: Shape,
    /// The type of the images' samples.
    pub(super) values: Values,
    pub(super) fold: Fold,
    pub(super) images: AtomicUsize,
    /// For each chunk of the image its sums, a word each, or its samples, as many as fit into a word.
    pub(super) chunks: Vec<Mutex<Vec<u32>>>,
    /// The same of the images that were added on a GPU, by the GPU's number.
    on_gpus: Mutex<Vec<(usize, Buffer)>>,
}

impl Accumulator {
    /// For images of this shape and type of samples.
    ///
    /// # Errors
    /// Samples that cannot be projected, and a projection that needs all images at once.
    pub fn new(project: Project, shape: Shape, signed: bool) -> Result<Accumulator> {
        project.check_depth(shape.depth)?;
        if let Some(reason) = project.needs_all_images(shape.depth) {
            bail!(reason);
        }
        let fold = match project.how {
            Projection::Min => Fold::Lower,
            Projection::Max => Fold::Raise,
            Projection::Sum | Projection::Mean | Projection::Median => Fold::Add,
        };
        let chunk = |start: usize| {
            let samples = CHUNK.min(shape.samples() - start);
            let words = (samples * fold.bytes(&shape)).div_ceil(4);
            Mutex::new(vec![u32::from_ne_bytes([fold.start(); 4]); words])
        };
        Ok(Accumulator {
            project,
            shape,
            values: Values {
                depth: shape.depth,
                signed,
            },
            fold,
            images: AtomicUsize::new(0),
            chunks: (0..shape.samples()).step_by(CHUNK).map(chunk).collect(),
            on_gpus: Mutex::default(),
        })
    }

    /// Bytes that it takes for images of this shape, and that its `numbers` are.
    pub fn memory(project: Project, shape: &Shape) -> u64 {
        let sums = matches!(project.how, Projection::Sum | Projection::Mean);
        let each = if sums { 4 } else { shape.depth.bytes() as u64 };
        (shape.samples() as u64).saturating_mul(each)
    }

    /// How many images were added.
    pub fn images(&self) -> usize {
        self.images.load(Ordering::Relaxed)
    }

    /// Counts an image of the right shape.
    fn count(&self, shape: Shape) -> Result<()> {
        ensure!(shape == self.shape, "it is {shape}, not {}", self.shape);
        let before = self.images.fetch_add(1, Ordering::Relaxed);
        ensure!(before < MOST_IMAGES, TOO_MANY);
        Ok(())
    }

    /// Adds an image, on all cores of this thread's pool.
    ///
    /// # Errors
    /// An image of another shape, or one too many.
    pub fn add(&self, image: &Image, timeline: &mut Timeline) -> Result<()> {
        self.count(image.shape())?;
        timeline.host(self.project.how.name(), self.shape.bytes() as u64, || {
            with_samples!(image.samples(), samples => {
                let chunks = samples.par_chunks(CHUNK).zip(&self.chunks);
                chunks.for_each(|(samples, known)| self.fold.run(samples, &mut locked(known)));
            });
        });
        Ok(())
    }

    /// Adds an image on a GPU, where the sums stay.
    ///
    /// # Errors
    /// Those of `add`, and the GPU's.
    pub fn add_on_gpu(&self, image: Image, gpu: &Gpu, timeline: &mut Timeline) -> Result<()> {
        let shape = image.shape();
        self.count(shape)?;
        let mut memory = HostMemory::from(image.into_samples());
        gpu.job(&mut memory, timeline, |job| {
            let samples = job.upload()?;
            self.fold_on_gpu(&samples, job)
        })
    }

    /// Adds an image that is in the memory of the GPU, where the sums stay.
    ///
    /// # Errors
    /// Those of `add`, and the GPU's.
    pub fn add_buffer(
        &self,
        shape: Shape,
        samples: &Buffer,
        gpu: &Gpu,
        timeline: &mut Timeline,
    ) -> Result<()> {
        self.count(shape)?;
        gpu.job(&mut [], timeline, |job| self.fold_on_gpu(samples, job))
    }

    fn fold_on_gpu(&self, samples: &Buffer, job: &mut Job) -> Result<()> {
        // The copies of other threads continue while this one has the sums.
        job.wait_for_stream()?;
        let mut on_gpus = locked(&self.on_gpus);
        let ordinal = job.ordinal();
        let index = match on_gpus.iter().position(|(known, _)| *known == ordinal) {
            Some(index) => index,
            None => {
                let bytes = self.shape.samples() * self.fold.bytes(&self.shape);
                let mut known = job.alloc(bytes)?;
                job.fill(&mut known, self.fold.start())?;
                on_gpus.push((ordinal, known));
                on_gpus.len() - 1
            }
        };
        let launched = self
            .fold
            .launch(&self.shape, samples, &mut on_gpus[index].1, job);
        // The buffer belongs to this stream until here: the next thread, and `join_gpus`, use other streams.
        job.wait_for_stream()?;
        launched
    }

    /// Adds the numbers on the GPUs to those on the host. Must be called after all threads have added their images.
    pub(super) fn join_gpus(&mut self) -> Result<()> {
        let on_gpus = std::mem::take(&mut *locked(&self.on_gpus));
        let bytes = self.fold.bytes(&self.shape);
        for (_, buffer) in on_gpus {
            for (index, known) in self.chunks.iter().enumerate() {
                let mut known = locked(known);
                let start = index * CHUNK;
                let samples = CHUNK.min(self.shape.samples() - start);
                let mut more = vec![0u32; known.len()];
                let all = bytemuck::cast_slice_mut::<u32, u8>(&mut more);
                let read = buffer.read(start * bytes, &mut all[..samples * bytes]);
                read.map_err(|error| {
                    if buffer.is_lost() {
                        error.context(Failed).context(Unusable)
                    } else {
                        error.context(Failed)
                    }
                })?;
                match (self.fold, bytes) {
                    (Fold::Add, _) => known.iter_mut().zip(&more).for_each(|(a, b)| *a += b),
                    (fold, 1) => {
                        fold.run::<u8>(&bytemuck::cast_slice(&more)[..samples], &mut known)
                    }
                    (fold, _) => {
                        fold.run::<u16>(&bytemuck::cast_slice(&more)[..samples], &mut known);
                    }
                }
            }
        }
        Ok(())
    }
}

/// The numbers of an accumulator, to be stored in a file and merged with those of other images.
impl Accumulator {
    /// The number for every sample, in order: sums of 4 bytes, or samples; little-endian.
    ///
    /// # Errors
    /// A GPU's.
    pub fn numbers(&mut self) -> Result<Vec<u8>> {
        self.join_gpus()?;
        let each = self.fold.bytes(&self.shape);
        let mut numbers = Vec::with_capacity(self.shape.samples() * each);
        for (index, known) in self.chunks.iter().enumerate() {
            let samples = CHUNK.min(self.shape.samples() - index * CHUNK);
            let known = locked(known);
            numbers.extend_from_slice(&bytemuck::cast_slice(&known)[..samples * each]);
        }
        little_endian(&mut numbers, each);
        Ok(numbers)
    }

    /// Adds the numbers of other `images` of the same projection.
    ///
    /// # Errors
    /// Too many images, as many bytes as other images have, and sums that so many images cannot have.
    pub fn join(&mut self, mut numbers: Vec<u8>, images: usize) -> Result<()> {
        let each = self.fold.bytes(&self.shape);
        ensure!(
            numbers.len() == self.shape.samples() * each,
            "its images have another size"
        );
        let before = self.images();
        let sum = before.checked_add(images).filter(|sum| *sum <= MOST_IMAGES);
        let sum = sum.context(TOO_MANY)?;
        little_endian(&mut numbers, each);
        let most = images as u64 * u64::from(self.shape.depth.full());
        for (numbers, known) in numbers.chunks(CHUNK * each).zip(&self.chunks) {
            let mut known = locked(known);
            match (self.fold, each) {
                (Fold::Add, _) => {
                    let words = numbers.as_chunks::<4>().0.iter();
                    for (known, word) in known.iter_mut().zip(words) {
                        let word = u32::from_ne_bytes(*word);
                        ensure!(
                            u64::from(word) <= most,
                            "it is damaged: a sum exceeds the maximum for its images"
                        );
                        // At most 65535 images are known, and so 32 bits hold it.
                        *known += word;
                    }
                }
                (fold, 1) => fold.run::<u8>(numbers, &mut known),
                (fold, _) => {
                    let words = numbers.as_chunks::<2>().0.iter();
                    let words: Vec<u16> = words.map(|word| u16::from_ne_bytes(*word)).collect();
                    fold.run::<u16>(&words, &mut known);
                }
            }
        }
        self.images.store(sum, Ordering::Relaxed);
        Ok(())
    }
}

/// Numbers of `each` bytes from the machine's order to that of files, or back.
fn little_endian(numbers: &mut [u8], each: usize) {
    if cfg!(target_endian = "big") {
        numbers.chunks_mut(each).for_each(<[u8]>::reverse);
    }
}

/// The message for more images than can be counted.
pub(super) const TOO_MANY: &str = "cannot project more than 65535 images";

/// The contents of a lock. No thread can have poisoned it: nothing under it can panic.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Fold {
    /// Bytes of the number for a sample.
    fn bytes(self, shape: &Shape) -> usize {
        match self {
            Fold::Add => 4,
            Fold::Lower | Fold::Raise => shape.depth.bytes(),
        }
    }

    /// The byte that fills the memory at the start.
    fn start(self) -> u8 {
        match self {
            Fold::Add | Fold::Raise => 0,
            Fold::Lower => u8::MAX,
        }
    }

    /// Folds the samples of a chunk.
    fn run<T: Sample>(self, samples: &[T], known: &mut [u32]) {
        match self {
            Fold::Add => add(samples, known),
            Fold::Lower => lower(samples, bytemuck::cast_slice_mut(known)),
            Fold::Raise => raise(samples, bytemuck::cast_slice_mut(known)),
        }
    }

    /// Queues the kernel that adds an image.
    fn launch(
        self,
        shape: &Shape,
        samples: &Buffer,
        known: &mut Buffer,
        job: &mut Job,
    ) -> Result<()> {
        let form = shape.depth.form();
        let (src, known) = (samples.view(), known.view_mut());
        let (samples, bytes) = (shape.samples() as u64, shape.bytes() as u64);
        let grid = u32::try_from(samples.div_ceil(2048))?;
        macro_rules! launch {
            ($kernel:ident, $known:ident, $bytes:expr) => {{
                let kernel = job.kernel::<$kernel>(&form)?;
                let arguments = $kernel {
                    src,
                    samples,
                    $known: known,
                };
                job.launch(&kernel, grid, $bytes, arguments)
            }};
        }
        match self {
            Fold::Add => launch!(Add, sums, bytes + 8 * samples),
            Fold::Lower => launch!(Lower, least, 3 * bytes),
            Fold::Raise => launch!(Raise, greatest, 3 * bytes),
        }
    }
}

per_level! {
    highest Avx2;

    fn add[T: Sample](samples: &[T], sums: &mut [u32]) {
        for (sum, &sample) in sums.iter_mut().zip(samples) {
            *sum += u32::from(sample.value());
        }
    }
}

per_level! {
    highest Avx2;

    fn lower[T: Sample](samples: &[T], least: &mut [T]) {
        for (known, &sample) in least.iter_mut().zip(samples) {
            *known = sample.min(*known);
        }
    }
}

per_level! {
    highest Avx2;

    fn raise[T: Sample](samples: &[T], greatest: &mut [T]) {
        for (known, &sample) in greatest.iter_mut().zip(samples) {
            *known = sample.max(*known);
        }
    }
}
