//! Restore: gives the values back that `normalize --undo` stretched.
//!
//! A value x above the least of its range, which is d wide, became lo + ⌊x·s/d + 1/2⌋ with s = hi − lo.
//! Restored, a sample q is min + ⌊(q − lo)·d/s + 1/2⌋, the value nearest to it. Where d ≤ s that is the first
//! value: (q − lo)·d/s is not farther from x than d/2s ≤ 1/2, and is x itself where d = s. Otherwise several
//! values became the same sample, and `--nearest` must allow one that is only near. Alpha, and channels
//! without a range, have kept their values.

mod channel;

use super::{
    Access, Bound, DeviceImage, OpResult, Operation, SampleTypes, Statistics, Verb, never_wide,
    with_samples,
};
use crate::device::Work;
use crate::device::cpu::{CHUNK, Sample};
use crate::device::job::Job;
use crate::image::{Depth, Image, Samples, Shape, Values};
use crate::metadata::{Effect, Metadata};
use crate::timing::Timeline;
use anyhow::{Context, Result, anyhow, bail, ensure};
use channel::Channel;
use rayon::prelude::*;

/// Give the values back that normalize --undo has stretched
#[derive(clap::Args, Clone, Debug, Default, serde::Serialize)]
#[group(skip)]
pub struct Restore {
    /// Take the nearest values where the first ones are lost: of outliers that were clamped, and of ranges that have more values than their results
    #[arg(long)]
    pub nearest: bool,

    /// The type of the samples as they were, once the file is open.
    #[arg(skip)]
    #[serde(skip)]
    first: Option<Values>,
}

impl Verb for Restore {
    const NAME: &'static str = "restore";
    const EXAMPLES: &'static str = "Examples:\n\
\x20 gpuimg normalize --undo in.tif out.png  writes the range into out.png\n\
\x20 gpuimg restore out.png again.tif        the samples of in.tif\n\
\x20 gpuimg restore --nearest out/ again/    as near as may be, of a folder";

    /// The depth of the result is that which the file names.
    const CHAINS: bool = false;

    fn operation(self) -> Box<dyn Operation> {
        Box::new(self)
    }

    /// None: it needs files that say how they were stretched (`tests/restore.rs`).
    fn examples() -> Vec<Box<dyn Operation>> {
        Vec::new()
    }
}

impl Operation for Restore {
    fn name(&self) -> &'static str {
        Restore::NAME
    }

    fn access(&self) -> Access {
        Access::Pointwise
    }

    fn effect(&self) -> Effect {
        Effect::Arithmetic
    }

    fn work(&self, shape: &Shape) -> Work {
        let made = shape.samples() * self.made(shape.depth).bytes();
        Work::moving(shape.bytes() + made)
    }

    fn check(&self, shape: &Shape) -> Result<()> {
        ensure!(
            !shape.depth.is_wide(),
            "normalize writes samples of 8 and 16 bits, and these are {}",
            shape.depth
        );
        Ok(())
    }

    fn made(&self, depth: Depth) -> Depth {
        self.first.map_or(depth, |first| first.depth)
    }

    fn sign(&self) -> Option<bool> {
        self.first.map(|first| first.signed)
    }

    fn not_on_gpu(&self, _: &Shape) -> Option<&'static str> {
        Some(NO_KERNEL)
    }

    fn of_file(
        &self,
        first_page: &dyn Fn() -> Result<Metadata>,
    ) -> Result<Option<Box<dyn Operation>>> {
        let stretch = first_page()?.stretch;
        let stretch = stretch.context(UNKNOWN)?;
        let stretch = stretch.map_err(|why| {
            anyhow!("what it says of how its values were stretched cannot be read: {why}")
        })?;
        Ok(Some(Box::new(Restore {
            first: Some(stretch.from),
            ..self.clone()
        })))
    }

    fn fits(&self, types: &SampleTypes) -> Result<()> {
        let first = self
            .first
            .context("restore takes files by themselves, one page after the other")?;
        let stretch = types.stretch.context(UNKNOWN)?;
        ensure!(
            types.depth == types.read.depth && types.written.depth == first.depth,
            "restore gives values the depth that they had: leave --depth out"
        );
        ensure!(
            stretch.from == first,
            "it had {} before, and page 1 {first}, and a file has pages of one type: --pages takes one",
            stretch.from
        );
        ensure!(
            stretch.to == types.read,
            "it has {}, and was stretched to {}: it was converted since",
            types.read,
            stretch.to
        );
        let (ranges, colours) = (stretch.ranges().len(), types.colours());
        ensure!(
            ranges == 1 || ranges == colours,
            "it has {colours} colour channels, and says how {ranges} were stretched"
        );
        if !self.nearest {
            let lost = channel::lost(&stretch, types.channels > colours);
            lost.map_or(Ok(()), |why| {
                Err(anyhow!("{why} (--nearest gives the nearest values)"))
            })?;
        }
        Ok(())
    }

    fn bind<'a>(&'a self, types: SampleTypes, _: &'a Statistics) -> Result<Box<dyn Bound + 'a>> {
        let stretch = types.stretch.context(UNKNOWN)?;
        let channels = (0..types.channels).map(|channel| {
            let colour = channel < types.colours();
            Channel::new(&stretch, colour.then_some(channel), self.nearest)
        });
        Ok(Box::new(Restoring {
            to: stretch.from,
            channels: channels.collect(),
            read: types.read,
        }))
    }
}

/// Why a GPU does not do it.
const NO_KERNEL: &str = "no kernel restores values";

/// The sentence about a file that `normalize --undo` has not written.
const UNKNOWN: &str =
    "it does not say how its values were stretched (normalize --undo writes that)";

/// Restore bound to what a page says of itself.
struct Restoring {
    /// The type of the samples as they were.
    to: Values,
    /// The type as they are.
    read: Values,
    channels: Vec<Channel>,
}

impl Restoring {
    /// The shape of the result for an image of this shape.
    fn shape(&self, shape: Shape) -> Shape {
        let depth = self.to.depth;
        Shape { depth, ..shape }
    }

    /// The sentence about a sample that cannot be.
    fn untrue(&self, sample: u16) -> anyhow::Error {
        anyhow!(
            "a sample of {} is no result of the stretch that the file tells of: it was changed since \
             (--nearest goes on)",
            self.read.value(sample)
        )
    }

    /// Maps samples through a table for each channel.
    fn mapped<T: Sample, U: Copy + Send>(
        &self,
        (from, to): (&[T], &mut [U]),
        tables: &[Vec<Option<u32>>],
        convert: impl Fn(u32) -> U + Sync,
    ) -> Result<()> {
        let chunks = to.par_chunks_mut(CHUNK).zip(from.par_chunks(CHUNK));
        chunks.try_for_each(|(to, from)| {
            // A chunk begins with the first channel.
            let tables = tables.iter().cycle();
            for ((to, from), table) in to.iter_mut().zip(from).zip(tables) {
                let value = table[usize::from(from.value())];
                *to = convert(value.ok_or_else(|| self.untrue(from.value()))?);
            }
            Ok(())
        })
    }
}

impl Bound for Restoring {
    fn naive(&self, image: &Image) -> Result<OpResult> {
        let shape = self.shape(image.shape());
        let samples: Vec<u16> = match image.samples() {
            Samples::U8(samples) => samples.iter().map(|&sample| sample.into()).collect(),
            Samples::U16(samples) => samples.to_vec(),
            Samples::U32(_) | Samples::U64(_) => never_wide!(),
        };
        let each = samples.into_iter().zip(self.channels.iter().cycle());
        let values = each
            .map(|(sample, channel)| (channel.value(sample)).ok_or_else(|| self.untrue(sample)));
        let values = values.collect::<Result<Vec<u32>>>()?;
        let samples: Samples = match shape.depth.bytes() {
            1 => values
                .iter()
                .map(|&value| value as u8)
                .collect::<Vec<_>>()
                .into(),
            2 => values
                .iter()
                .map(|&value| value as u16)
                .collect::<Vec<_>>()
                .into(),
            _ => values.into(),
        };
        Ok(OpResult::Image(Image::new(shape, samples)))
    }

    fn cpu(&self, image: Image, timeline: &mut Timeline) -> Result<OpResult> {
        let (from, shape) = (image.shape(), self.shape(image.shape()));
        let mut samples = Samples::any(&shape)?;
        let bytes = (from.bytes() + shape.bytes()) as u64;
        timeline.host("restore", bytes, || -> Result<()> {
            let tables = self.channels.iter();
            let tables: Vec<_> = tables
                .map(|channel| {
                    let all = 0..=from.depth.full();
                    all.map(|sample| channel.value(sample)).collect::<Vec<_>>()
                })
                .collect();
            with_samples!(image.samples(), given => match &mut samples {
                Samples::U8(to) => self.mapped((given, to), &tables, |value| value as u8),
                Samples::U16(to) => self.mapped((given, to), &tables, |value| value as u16),
                Samples::U32(to) => self.mapped((given, to), &tables, |value| value),
                Samples::U64(_) => never_wide!(),
            })
        })?;
        Ok(OpResult::Image(Image::new(shape, samples)))
    }

    fn cuda(&self, _: DeviceImage, _: &mut Job) -> Result<OpResult<DeviceImage>> {
        bail!(NO_KERNEL)
    }
}
