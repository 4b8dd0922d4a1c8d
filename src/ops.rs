//! The operations. Each is defined once, in exact arithmetic, by a naive serial version; the rayon
//! and CUDA versions give the same bytes. Operations never print and never touch files.
//!
//! An operation has two phases. First it names the statistic that it needs from a whole image, stack
//! or set. Then it is bound to that statistic and to the sample types, and runs on an image, or on
//! any chunk of an image that its access pattern allows. `engine::executor` runs both phases; `OPS`
//! lists the operations.

pub mod area_mean;
pub mod calibrate;
pub mod chain;
pub mod clip;
pub mod combine;
pub mod convert;
pub mod counts;
pub mod cpu;
pub mod crop;
pub mod debayer;
pub mod depth;
pub mod exact;
mod extremes;
pub mod fit;
pub mod flip;
pub mod histogram;
pub mod lut;
mod min_max;
pub mod normalize;
pub mod project;
mod quotient;
pub mod restore;
pub mod rotate;
mod sample_types;
pub mod set_range;
pub mod statistics;
pub mod sum;
pub mod symmetry;
#[cfg(test)]
mod tests;
pub mod transpose;
mod verb;
pub mod wide;

use crate::gpu::Work;
use crate::gpu::driver;
use crate::gpu::job::Job;
use crate::image::metadata::{Diagnostics, Effect, Metadata, PixelMap, Stretch};
use crate::image::number::Number;
use crate::image::{Depth, Image, Region, Samples, Shape, Values};
use crate::timing::Timeline;
use anyhow::{Result, bail, ensure};
use counts::Counts;
use std::fmt;
use sum::Totals;

pub use min_max::MinMax;
pub use sample_types::{Position, SampleTypes};
pub use statistics::{Statistic, Statistics};
pub use verb::{Entry, Verb};

/// The operations, in the order in which `--help` lists them.
pub const OPS: &[Entry] = &[
    Entry::new::<normalize::Normalize>(),
    Entry::new::<normalize::Preview>(),
    Entry::new::<convert::Convert>(),
    Entry::new::<crop::Crop>(),
    Entry::new::<debayer::Debayer>(),
    Entry::new::<lut::Lut>(),
    Entry::new::<transpose::Transpose>(),
    Entry::new::<rotate::Rotate>(),
    Entry::new::<flip::Flip>(),
    Entry::new::<restore::Restore>(),
    Entry::new::<sum::Sum>(),
    Entry::new::<histogram::Histogram>(),
];

/// All operations, with options that together cover every branch, for tests.
pub fn examples() -> Vec<Box<dyn Operation>> {
    OPS.iter().flat_map(|entry| (entry.examples)()).collect()
}

/// One operation with its options.
pub trait Operation: Options + Send + Sync + fmt::Debug {
    /// Its name, and how an image may be divided and measured for it.
    fn properties(&self) -> Properties;

    /// The type of its output samples for input samples of this type, unless the user chooses another depth.
    fn output_type(&self, input: Values) -> Values {
        input
    }

    /// The channels of its result for images with this number of channels.
    fn output_channels(&self, input: usize) -> usize {
        input
    }

    /// The bytes that the bound operation must move for an image of this shape. The default reads the image once, and
    /// writes the result once.
    fn work(&self, shape: &Shape) -> Work {
        let output = match self.properties().effect {
            Effect::Numbers => 0,
            _ => chain::output(self, *shape).bytes(),
        };
        Work::moving(shape.bytes() + output)
    }

    /// Refuses images of a shape that its options do not support; the error says why. `check` also refuses depths.
    fn check_shape(&self, _shape: &Shape) -> Result<()> {
        Ok(())
    }

    /// Refuses sample types that its options do not support; the error says why.
    fn check_types(&self, _types: &SampleTypes) -> Result<()> {
        Ok(())
    }

    /// The reason why a GPU cannot run it on an image of this shape, if there is one.
    fn gpu_obstacle(&self, _shape: &Shape) -> Option<&'static str> {
        None
    }

    /// Warnings and hints about an image that the options do not suit. The image is the operation's input.
    fn diagnose(&self, _: &Image, _: &SampleTypes) -> Diagnostics {
        Diagnostics::default()
    }

    /// The operation for one file, if the metadata of its first page determine the type of the result.
    /// `first_page` reads them.
    ///
    /// # Errors
    /// The metadata do not state the type.
    fn for_file(
        &self,
        _first_page: &dyn Fn() -> Result<Metadata>,
    ) -> Result<Option<Box<dyn Operation>>> {
        Ok(None)
    }

    /// Binds the operation to sample types that `check_types` has accepted, and to the statistic that it
    /// requested.
    ///
    /// # Errors
    /// Another statistic than the requested one.
    fn bind<'a>(
        &'a self,
        types: SampleTypes,
        statistics: &'a Statistics,
    ) -> Result<Box<dyn Bound + 'a>>;
}

/// What an operation is, as far as it does not depend on the image.
#[derive(Clone, Copy, Debug)]
pub struct Properties {
    /// The name that a user types: `normalize`.
    pub name: &'static str,
    /// Which input samples each output sample depends on, which determines how an image may be divided.
    pub access: Access,
    /// How it changes the values, depth and positions that the metadata of a file describe.
    pub effect: Effect,
    /// Whether it supports 32- and 64-bit samples.
    pub wide_samples: bool,
    /// Whether a GPU supports 64-bit samples, too.
    pub doubles_on_gpu: bool,
    /// The statistic that must be measured before any part of an image is processed.
    pub statistic: Statistic,
    /// Whether that statistic is measured for each page, or for all pages of the same type together.
    pub scope: Scope,
    /// Whether each channel has its own statistic; a channel can also be a page on the channel axis of a
    /// stack.
    pub per_channel: bool,
    /// Whether it has a range that was measured on a set of images, of whose channels those that are pages are counted together.
    pub has_range_of_set: bool,
    /// Whether its result depends on the position of an image among all that are processed.
    pub needs_position: bool,
    /// Whether it yields numbers, and merging those of many small blocks is cheap: then the whole image need not be in
    /// memory.
    pub merges_cheaply: bool,
}

impl Properties {
    /// An operation on 8- and 16-bit samples that needs no statistic.
    pub const fn new(name: &'static str, access: Access, effect: Effect) -> Properties {
        Properties {
            name,
            access,
            effect,
            wide_samples: false,
            doubles_on_gpu: false,
            statistic: Statistic::None,
            scope: Scope::Page,
            per_channel: false,
            has_range_of_set: false,
            needs_position: false,
            merges_cheaply: false,
        }
    }
}

/// The options of an operation as JSON: a resumed run keeps existing outputs only if all options
/// are the same. Every operation that can be serialized has this trait.
pub trait Options {
    /// The options as a JSON object.
    ///
    /// # Errors
    /// None in practice: options are plain numbers and words.
    fn options(&self) -> Result<serde_json::Value>;
}

impl<T: serde::Serialize> Options for T {
    fn options(&self) -> Result<serde_json::Value> {
        Ok(serde_json::to_value(self)?)
    }
}

/// An operation bound to its statistic: it can run on each part of an image independently.
pub trait Bound: Sync {
    /// The definition: serial and simple, without regard to speed.
    fn naive(&self, image: &Image) -> Result<OpResult>;

    /// The same result, computed on all cores.
    fn cpu(&self, image: Image, timeline: &mut Timeline) -> Result<OpResult>;

    /// The same result from a GPU, queued on the job's stream and left in device memory.
    fn cuda(&self, image: DeviceImage, job: &mut Job) -> Result<OpResult<DeviceImage>>;

    /// The ranges, warnings and record of the result. Called after the operation has run and the statistics are on the
    /// host: some of it is known only then.
    fn summary(&self) -> Summary {
        Summary::default()
    }

    /// How many samples it has clamped so far; `None` if it counts none.
    fn clamped(&self) -> Option<u64> {
        None
    }
}

/// The input samples that one output sample depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The sample at the same position: any run of pixels can be processed independently.
    Pointwise,
    /// The result is numbers; those of any runs of pixels can be merged.
    Reduction,
    /// One sample at another position: rows of the result can be computed independently.
    Permutation(PixelMap),
    /// The samples of a rectangle, each at its place in it.
    Region(Region),
    /// Samples at any position: the image cannot be divided.
    WholeImage,
}

/// The pages over which a statistic is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
pub enum Scope {
    /// One range for each page
    Page,
    /// One range for all pages with the same channels and sample type
    #[default]
    Stack,
}

/// An image in device memory, its samples laid out as an `Image`'s are.
#[derive(Debug)]
pub struct DeviceImage {
    /// Width, height, channels and depth.
    pub shape: Shape,
    /// Device memory of exactly `shape.bytes()` bytes.
    pub samples: driver::Buffer,
}

/// The result of an operation on an image or on a part of it.
#[derive(Clone, Debug, PartialEq)]
pub enum OpResult<I = Image> {
    /// A new image.
    Image(I),
    /// The totals of `sum`.
    Totals(Totals),
    /// The counts of `histogram`.
    Counts(Counts),
}

impl<I> OpResult<I> {
    /// The same result, with its image, if it has one, replaced by the result of `change`.
    ///
    /// # Errors
    /// Those of `change`.
    pub fn try_map<J>(self, change: impl FnOnce(I) -> Result<J>) -> Result<OpResult<J>> {
        Ok(match self {
            OpResult::Image(image) => OpResult::Image(change(image)?),
            OpResult::Totals(totals) => OpResult::Totals(totals),
            OpResult::Counts(counts) => OpResult::Counts(counts),
        })
    }

    /// The image, for the next operation.
    ///
    /// # Errors
    /// Numbers.
    pub fn image(self) -> Result<I> {
        match self {
            OpResult::Image(image) => Ok(image),
            OpResult::Totals(_) | OpResult::Counts(_) => {
                bail!("sum and histogram yield numbers, so they must be the last step")
            }
        }
    }
}

/// Facts about a result, for the user and for the metadata of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// The input range of each colour channel, or one range for all, in the values of the input file. Both
    /// ends are equal for channels that were left unchanged.
    pub ranges: Vec<(Number, Number)>,
    /// Whether the ranges are printed without `--verbose`.
    pub announces: bool,
    /// How values were scaled, if the file records it.
    pub stretch: Option<Stretch>,
    /// Messages for the user, without the file's name.
    pub warnings: Vec<String>,
    /// How many samples were clamped, if they were counted.
    pub clamped: Option<u64>,
}

impl Summary {
    /// The summary of this operation and a `later` one: the ranges are those of the last operation that scaled values.
    pub fn then(mut self, later: Summary) -> Summary {
        if !later.ranges.is_empty() {
            self.ranges = later.ranges;
            self.stretch = later.stretch;
            self.announces = later.announces;
        }
        self.warnings.extend(later.warnings);
        self.clamped = sum_of(self.clamped, later.clamped);
        self
    }
}

/// The sum of two counts, of which each may be absent.
pub fn sum_of(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a.or(b).map(|_| a.unwrap_or(0) + b.unwrap_or(0))
}

/// The result of an operation on a whole image.
#[derive(Clone, Debug, PartialEq)]
pub struct Executed<I = Image> {
    /// An image or numbers.
    pub result: OpResult<I>,
    /// Ranges and warnings for the user.
    pub summary: Summary,
}

/// Numbers from chunks of an image, or from several images, that can be merged into those of the
/// whole.
pub trait Join: Sized {
    /// Adds the numbers of another chunk.
    ///
    /// # Errors
    /// The chunks were measured in different ways.
    fn join(&mut self, more: &Self) -> Result<()>;
}

impl<I> Join for OpResult<I> {
    fn join(&mut self, more: &OpResult<I>) -> Result<()> {
        match (self, more) {
            (OpResult::Totals(known), OpResult::Totals(more)) => known.join(more),
            (OpResult::Counts(known), OpResult::Counts(more)) => known.join(more)?,
            (OpResult::Image(_), OpResult::Image(_)) => (),
            _ => bail!("its parts were measured with different options"),
        }
        Ok(())
    }
}

/// The definition of a complete operation on plain samples: measures its statistic and computes the
/// result, serially.
///
/// # Errors
/// An image that the operation does not support.
pub fn naive(op: &dyn Operation, image: &Image) -> Result<Executed> {
    let statistics = op.properties().statistic.naive(image);
    let types = SampleTypes::plain_for(op, &image.shape());
    let bound = op.bind(types, &statistics)?;
    Ok(Executed {
        result: bound.naive(image)?,
        summary: bound.summary(),
    })
}

/// Refuses images of a depth or a shape that an operation does not support; the error says why.
///
/// # Errors
/// An image of such a depth or shape.
pub fn check(op: &dyn Operation, shape: &Shape) -> Result<()> {
    let Properties {
        name, wide_samples, ..
    } = op.properties();
    ensure!(
        wide_samples || !shape.depth.is_wide(),
        "{name} supports only 8- and 16-bit samples, but these are {} (use normalize to convert them)",
        shape.depth
    );
    op.check_shape(shape)
}

/// The reason why a GPU cannot run an operation on an image of this shape, if there is one.
pub fn gpu_obstacle(op: &dyn Operation, shape: &Shape) -> Option<&'static str> {
    if shape.depth == Depth::Double && !op.properties().doubles_on_gpu {
        return Some("the GPU does not support 64-bit samples");
    }
    op.gpu_obstacle(shape)
}

/// Samples of a depth from their numbers, for definitions.
pub(crate) fn samples_from(depth: Depth, numbers: impl Iterator<Item = u64>) -> Samples {
    match depth.bytes() {
        1 => numbers.map(|it| it as u8).collect::<Vec<_>>().into(),
        2 => numbers.map(|it| it as u16).collect::<Vec<_>>().into(),
        4 => numbers.map(|it| it as u32).collect::<Vec<_>>().into(),
        _ => numbers.collect::<Vec<_>>().into(),
    }
}

/// Runs the same generic code on 8-bit and 16-bit samples.
macro_rules! with_samples {
    ($samples:expr, $name:ident => $body:expr) => {
        match $samples {
            $crate::image::Samples::U8($name) => $body,
            $crate::image::Samples::U16($name) => $body,
            $crate::image::Samples::U32(_) | $crate::image::Samples::U64(_) => {
                $crate::ops::never_wide!()
            }
        }
    };
}
pub(crate) use with_samples;

/// Marks code that 32- and 64-bit samples cannot reach: `check` refuses them, or `wide` processes them.
macro_rules! never_wide {
    () => {
        unreachable!("samples of 32 or 64 bits, which this operation refuses")
    };
}
pub(crate) use never_wide;
