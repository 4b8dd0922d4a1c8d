//! Restore: restores the values from before `normalize --undo`.
//!
//! A value that is x above the minimum of its range, whose width is d, became lo + ⌊x·s/d + 1/2⌋ with
//! s = hi − lo. A sample q is restored to min + ⌊(q − lo)·d/s + 1/2⌋, the nearest value. If d ≤ s, this is the
//! original value: (q − lo)·d/s differs from x by at most d/2s ≤ 1/2, and equals x if d = s. Otherwise several
//! values became the same sample, and `--nearest` must accept a value that is only near. Alpha, and channels
//! without a range, have kept their values.

mod channel;

use super::{
    Access, Bound, DeviceImage, OpResult, Operation, Properties, SampleTypes, Statistics, Verb,
    never_wide, samples_from, with_samples,
};
use crate::gpu::job::Job;
use crate::image::metadata::{Effect, Metadata};
use crate::image::{Image, Samples, Shape, Values};
use crate::ops::cpu::{CHUNK, Sample};
use crate::timing::Timeline;
use anyhow::{Context, Result, anyhow, bail, ensure};
use channel::Channel;
use rayon::prelude::*;

/// Restore the values from before normalize --undo
#[derive(clap::Args, Clone, Debug, Default, serde::Serialize)]
#[group(skip)]
pub struct Restore {
    /// Accept the nearest value where the original is lost: outliers that were clamped, and ranges with more values than the output type
    #[arg(long)]
    pub nearest: bool,

    /// The original sample type, once the file is open.
    #[arg(skip)]
    #[serde(skip)]
    first: Option<Values>,
}

impl Verb for Restore {
    const NAME: &'static str = "restore";
    const EXAMPLES: &'static str = "Examples:\n\
\x20 gpuimg normalize --undo in.tif out.png  store the range in out.png\n\
\x20 gpuimg restore out.png again.tif        restore the samples of in.tif\n\
\x20 gpuimg restore --nearest out/ again/    a folder, with the nearest values";

    /// The file determines the depth of the result.
    const CHAINS: bool = false;

    fn operation(self) -> Box<dyn Operation> {
        Box::new(self)
    }

    /// None: it needs files with a record of their range (`tests/restore.rs`).
    fn examples() -> Vec<Box<dyn Operation>> {
        Vec::new()
    }
}

impl Operation for Restore {
    fn properties(&self) -> Properties {
        Properties {
            // `check_shape` refuses them with another reason.
            wide_samples: true,
            ..Properties::new(Restore::NAME, Access::Pointwise, Effect::Arithmetic)
        }
    }

    fn output_type(&self, input: Values) -> Values {
        self.first.unwrap_or(input)
    }

    fn check_shape(&self, shape: &Shape) -> Result<()> {
        ensure!(
            !shape.depth.is_wide(),
            "its samples are {}, but normalize writes only 8 and 16 bits",
            shape.depth
        );
        Ok(())
    }

    fn gpu_obstacle(&self, _: &Shape) -> Option<&'static str> {
        Some(NO_KERNEL)
    }

    fn for_file(
        &self,
        first_page: &dyn Fn() -> Result<Metadata>,
    ) -> Result<Option<Box<dyn Operation>>> {
        let stretch = first_page()?.stretch;
        let stretch = stretch.context(UNKNOWN)?;
        let stretch = stretch
            .map_err(|why| anyhow!("its record of the original range cannot be read: {why}"))?;
        Ok(Some(Box::new(Restore {
            first: Some(stretch.from),
            ..self.clone()
        })))
    }

    fn check_types(&self, types: &SampleTypes) -> Result<()> {
        let first = self
            .first
            .context("restore does not support statistics over several pages or files")?;
        let stretch = types.stretch.context(UNKNOWN)?;
        ensure!(
            types.depth == types.read.depth && types.written.depth == first.depth,
            "restore always writes the original depth: remove --depth"
        );
        ensure!(
            stretch.from == first,
            "it originally had {}, but page 1 had {first}, and restore gives all pages of a file the type of page 1: use --split to write a file for each page",
            stretch.from
        );
        ensure!(
            stretch.to == types.read,
            "it has {}, but its record is for {}: it was converted after normalize --undo",
            types.read,
            stretch.to
        );
        let (ranges, colours) = (stretch.ranges().len(), types.colours());
        ensure!(
            ranges == 1 || ranges == colours,
            "it has {colours} colour channels, but stores ranges for {ranges}"
        );
        if !self.nearest {
            let lost = channel::lost(&stretch, types.channels > colours);
            lost.map_or(Ok(()), |why| {
                Err(anyhow!(
                    "{why} (use --nearest to accept the nearest values)"
                ))
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

/// The reason why a GPU cannot run it.
const NO_KERNEL: &str = "the GPU does not support restore";

/// The error for a file that `normalize --undo` has not written.
const UNKNOWN: &str = "it stores no original range (only files written by normalize --undo do)";

/// Restore bound to the record of a page.
struct Restoring {
    /// The original sample type.
    to: Values,
    /// The current sample type.
    read: Values,
    channels: Vec<Channel>,
}

impl Restoring {
    /// The shape of the result for an image of this shape.
    fn shape(&self, shape: Shape) -> Shape {
        let depth = self.to.depth;
        Shape { depth, ..shape }
    }

    /// The error for a sample that cannot result from the recorded range.
    fn untrue(&self, sample: u16) -> anyhow::Error {
        anyhow!(
            "the sample value {} cannot result from the recorded range: the file was changed after normalize --undo (use --nearest to continue)",
            self.read.value(sample)
        )
    }

    /// Maps samples through a table for each channel.
    fn mapped<T: Sample, U: Copy + Send>(
        &self,
        from: &[T],
        to: &mut [U],
        tables: &[Vec<Option<u32>>],
        convert: impl Fn(u32) -> U + Sync,
    ) -> Result<()> {
        let chunks = to.par_chunks_mut(CHUNK).zip(from.par_chunks(CHUNK));
        chunks.try_for_each(|(to, from)| {
            // A chunk starts at the first channel.
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
        let values = (0..shape.samples()).map(|i| {
            let sample = image.samples().at(i) as u16;
            let value = self.channels[i % shape.channels].value(sample);
            value.ok_or_else(|| self.untrue(sample))
        });
        let values = values.collect::<Result<Vec<u32>>>()?;
        let samples = samples_from(shape.depth, values.into_iter().map(u64::from));
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
                Samples::U8(to) => self.mapped( given, to, &tables, |value| value as u8),
                Samples::U16(to) => self.mapped( given, to, &tables, |value| value as u16),
                Samples::U32(to) => self.mapped( given, to, &tables, |value| value),
                Samples::U64(_) => never_wide!(),
            })
        })?;
        Ok(OpResult::Image(Image::new(shape, samples)))
    }

    fn cuda(&self, _: DeviceImage, _: &mut Job) -> Result<OpResult<DeviceImage>> {
        bail!(NO_KERNEL)
    }
}
