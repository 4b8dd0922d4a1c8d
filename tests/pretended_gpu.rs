//! Bands on a GPU that the CPU pretends to be, with as little memory as a test wants: how images are
//! cut, halved where they do not fit, and joined again, without a GPU.

use crate::support::{Kind, SIZES, image};
use anyhow::{Result, anyhow};
use gpuimg::internals::engine::executor::bands::{BandInput, BandStream, Cut, in_bands};
use gpuimg::internals::gpu::NoMemory;
use gpuimg::internals::image::{Depth, Image, Samples, Shape};
use gpuimg::internals::ops::{
    self, Access, Executed, Join, OpResult, Operation, SampleTypes, Statistic, Statistics, naive,
};
use gpuimg::internals::timing::Timeline;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A stream of the GPU: device memory for so many bytes, and what is done with a piece there.
struct Pretended<'a, W> {
    memory: usize,
    pieces: &'a AtomicUsize,
    work: &'a W,
}

impl<T, W> BandStream for Pretended<'_, W>
where
    T: Join + Send,
    W: Fn(Image) -> Result<(Option<Image>, T)> + Sync,
{
    type Numbers = T;

    fn run(&mut self, input: &BandInput, memory: &mut [u8]) -> Result<T> {
        let sent: Vec<u8> = match &input.columns {
            None => memory.to_vec(),
            Some(columns) => (columns.rows.chunks(columns.row_bytes))
                .flat_map(|row| &row[columns.range.clone()])
                .copied()
                .collect(),
        };
        if sent.len() > self.memory {
            return Err(anyhow!("no {} bytes", sent.len()).context(NoMemory));
        }
        self.pieces.fetch_add(1, Ordering::Relaxed);
        let mut samples = Samples::zeroed(&input.shape)?;
        samples.as_bytes_mut().copy_from_slice(&sent);
        let (image, found) = (self.work)(Image::new(input.shape, samples))?;
        if let Some(image) = image {
            memory.copy_from_slice(image.samples().as_bytes());
        }
        Ok(found)
    }
}

/// A GPU with so much memory, in bands of so many bytes; what it counts are pieces.
struct PretendedGpu {
    memory: usize,
    bytes: usize,
    pieces: AtomicUsize,
}

impl PretendedGpu {
    fn new(memory: usize, bytes: usize) -> PretendedGpu {
        let pieces = AtomicUsize::new(0);
        PretendedGpu {
            memory,
            bytes,
            pieces,
        }
    }

    fn bands<T: Join + Send>(
        &self,
        cut: &Cut,
        input: &[u8],
        memory: &mut [u8],
        work: impl Fn(Image) -> Result<(Option<Image>, T)> + Sync,
    ) -> Result<T> {
        let stream = || {
            Ok(Pretended {
                memory: self.memory,
                pieces: &self.pieces,
                work: &work,
            })
        };
        Ok(in_bands(cut, input, memory, self.bytes, stream)?.numbers)
    }

    /// The whole of an operation, as `executor::bands::run` does it on a real one.
    fn run(&self, op: &dyn Operation, image: &Image) -> Result<Executed> {
        let shape = image.shape();
        let mut samples = image.samples().clone();
        let mut statistics = Statistics::None;
        let statistic = op.properties().statistic;
        if statistic != Statistic::None {
            let cut = Cut::new(shape, Access::Reduction)?;
            statistics = self.bands(&cut, &[], samples.as_bytes_mut(), |piece| {
                Ok((None, statistic.cpu(&piece, &mut Timeline::default())))
            })?;
        }
        let bound = op.bind(SampleTypes::plain(&shape), &statistics)?;
        let work = |piece: Image| {
            Ok(match bound.cpu(piece, &mut Timeline::default())? {
                OpResult::Image(image) => (Some(image), OpResult::Image(())),
                OpResult::Totals(totals) => (None, OpResult::Totals(totals)),
                OpResult::Counts(counts) => (None, OpResult::Counts(counts)),
            })
        };
        let cut = Cut::new(shape, op.properties().access)?;
        let (to, mut found) = match op.properties().access {
            Access::Permutation(turn) => {
                let to = turn.of(shape);
                let mut moved = Samples::zeroed(&to)?;
                let found = self.bands(&cut, samples.as_bytes(), moved.as_bytes_mut(), work)?;
                samples = moved;
                (to, found)
            }
            _ => (shape, self.bands(&cut, &[], samples.as_bytes_mut(), work)?),
        };
        if let OpResult::Totals(totals) = &mut found {
            totals.shape = shape;
        }
        Ok(Executed {
            result: found.try_map(|()| Ok(Image::new(to, samples)))?,
            summary: bound.summary(),
        })
    }
}

/// The operations that a GPU runs in bands: the host crops an image that the GPU does not hold.
fn cuttable() -> Vec<Box<dyn Operation>> {
    let mut all = ops::examples();
    all.retain(|op| !matches!(op.properties().access, Access::Region(_)));
    all
}

#[test]
fn bands_give_what_the_definition_says() {
    let (examples, mut cases) = (cuttable(), 0);
    for (width, height) in SIZES {
        for (channels, depth) in [(1, Depth::Sixteen), (3, Depth::Eight), (4, Depth::Sixteen)] {
            let image = image(width, height, channels, depth, Kind::Noise);
            let whole = image.shape().bytes();
            for op in &examples {
                let expected = naive(&**op, &image).expect("valid");
                // About three bands, and about eleven.
                for bytes in [whole / 3 + 1, whole / 11 + 1] {
                    let gpu = PretendedGpu::new(usize::MAX, bytes);
                    let found = gpu.run(&**op, &image).expect("memory");
                    assert!(
                        found == expected,
                        "{op:?} of {} in bands of {bytes} bytes",
                        image.shape()
                    );
                    cases += 1;
                }
            }
        }
    }
    assert_eq!(cases, SIZES.len() * 3 * 2 * examples.len());
}

/// Bands of a megabyte, and a GPU that holds 100 kB: each is halved until it fits.
#[test]
fn bands_that_do_not_fit_are_halved() {
    let image = image(1021, 640, 2, Depth::Sixteen, Kind::Noise);
    for op in cuttable() {
        let gpu = PretendedGpu::new(100_000, 1 << 20);
        let found = gpu.run(&*op, &image).expect("memory");
        assert!(found == naive(&*op, &image).expect("valid"), "{op:?}");
        let pieces = gpu.pieces.into_inner();
        assert!(pieces >= image.shape().bytes() / 100_000, "{pieces} pieces");
    }
}

#[test]
fn a_gpu_without_memory_is_an_error() {
    let image = image(640, 511, 1, Depth::Sixteen, Kind::Noise);
    for op in ops::examples() {
        let error = PretendedGpu::new(100, 1 << 20).run(&*op, &image);
        let error = error.expect_err("100 bytes do not suffice");
        assert!(error.is::<NoMemory>(), "{error:#}");
    }
}

/// A neighbourhood operation cannot be cut into bands by accident.
#[test]
fn what_needs_the_whole_image_is_not_cut() {
    let shape = Shape {
        width: 5,
        height: 4,
        channels: 1,
        depth: Depth::Eight,
    };
    let error = Cut::new(shape, Access::WholeImage).expect_err("not to be cut");
    assert!(error.is::<NoMemory>(), "{error:#}");
}
