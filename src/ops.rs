//! The operations. Each is defined once, in exact arithmetic, by a naive serial version; its
//! rayon and CUDA versions give the same bytes. Operations never print and never touch files.
//!
//! An operation has two phases. It names the statistic that it needs of a whole image, stack or set;
//! bound to that and to the types of the samples, it runs on an image or on any piece of one that
//! its access allows. `exec` does that; `OPS` lists the operations.

pub mod depth;
mod extremes;
pub mod flip;
pub mod histogram;
pub mod normalize;
pub mod of_set;
pub mod rotate;
pub mod statistics;
pub mod sum;
pub mod symmetry;
pub mod transpose;
mod verb;

use crate::device::Work;
use crate::device::cuda;
use crate::device::job::Job;
use crate::image::{Depth, Image, Shape, Values};
use crate::metadata::{Effect, PixelMap};
use crate::timing::Timeline;
use anyhow::{Result, bail};
use histogram::Counts;
use std::fmt;
use sum::Totals;

pub use statistics::{Statistic, Statistics};
pub use verb::{Entry, Verb};

/// The operations, in the order in which `--help` names them.
pub const OPS: &[Entry] = &[
    Entry::of::<normalize::Normalize>(),
    Entry::of::<transpose::Transpose>(),
    Entry::of::<rotate::Rotate>(),
    Entry::of::<flip::Flip>(),
    Entry::of::<sum::Sum>(),
    Entry::of::<histogram::Histogram>(),
];

/// All operations with the options worth testing.
pub fn examples() -> Vec<Box<dyn Operation>> {
    OPS.iter().flat_map(|entry| (entry.examples)()).collect()
}

/// One operation with its options.
pub trait Operation: Options + Sync + fmt::Debug {
    /// The word a user types.
    fn name(&self) -> &'static str;

    /// Which input samples each output sample depends on, and so how an image may be cut.
    fn access(&self) -> Access;

    /// What it does to what a file's metadata speak of.
    fn effect(&self) -> Effect;

    /// The bytes that it moves in an image of this shape once it is bound.
    fn work(&self, shape: &Shape) -> Work;

    /// Refuses options that do not fit an image of this shape; the error says why.
    fn check(&self, _shape: &Shape) -> Result<()> {
        Ok(())
    }

    /// Refuses options that do not fit samples of these types; the error says why.
    fn fits(&self, _types: &SampleTypes) -> Result<()> {
        Ok(())
    }

    /// What must be measured before any piece of an image can be done.
    fn statistic(&self) -> Statistic {
        Statistic::None
    }

    /// Whether that is measured in each page by itself, or in all pages of a kind together.
    fn scope(&self) -> Scope {
        Scope::Page
    }

    /// What runs on each piece of an image with samples of these types, which fit, given the statistic
    /// that it asked for. Errors: it is given another.
    fn bind<'a>(
        &'a self,
        types: SampleTypes,
        statistics: &'a Statistics,
    ) -> Result<Box<dyn Bound + 'a>>;
}

/// The options of an operation as JSON: a resumed run goes on with another's outputs only if all of
/// them are the same. Every operation that can be serialized has them.
pub trait Options {
    /// The options.
    ///
    /// # Errors
    /// None that can occur: options are plain numbers and words.
    fn options(&self) -> Result<serde_json::Value>;
}

impl<T: serde::Serialize> Options for T {
    fn options(&self) -> Result<serde_json::Value> {
        Ok(serde_json::to_value(self)?)
    }
}

/// An operation that knows all it needs: it runs on each piece of an image by itself.
pub trait Bound: Sync {
    /// The definition: serial, plain, without regard to speed.
    fn naive(&self, image: &Image) -> Result<OpResult>;

    /// The same result from all cores.
    fn cpu(&self, image: Image, timeline: &mut Timeline) -> Result<OpResult>;

    /// The same result from a GPU, queued and left in its memory. An image has as many bytes as the
    /// input.
    fn cuda(&self, image: DeviceImage, job: &mut Job) -> Result<OpResult<DeviceImage>>;

    /// What the user should know of the result; asked once the statistics are on the host.
    fn summary(&self) -> Summary {
        Summary::default()
    }
}

/// Which input samples an output sample depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// On the sample in its own place: any run of pixels can be done by itself.
    Pointwise,
    /// The result is numbers, which those of any runs of pixels add up to.
    Reduction,
    /// On one sample in another place: rows of the result can be done by themselves.
    Permutation(PixelMap),
    /// On samples anywhere: the image cannot be cut.
    WholeImage,
}

/// Of what a statistic is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
pub enum Scope {
    /// Each page's own range
    Page,
    /// One range for all pages of the same kind
    #[default]
    Stack,
}

/// The samples that an operation works on, and what they stand for in the two files.
///
/// In memory they have the greater depth of both: 8 bits have been widened to 16, times 257, and
/// 16 bits are narrowed to 8 where they still have to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleTypes {
    /// Samples a pixel: 1 to 4, the last of 2 or 4 alpha.
    pub channels: usize,
    /// Bits a sample in memory.
    pub depth: Depth,
    /// In the file that is read.
    pub read: Values,
    /// In the file that is written.
    pub written: Values,
}

impl SampleTypes {
    /// Numbers from 0, before and after.
    pub fn plain(shape: &Shape) -> SampleTypes {
        let values = Values {
            depth: shape.depth,
            signed: false,
        };
        SampleTypes {
            channels: shape.channels,
            depth: shape.depth,
            read: values,
            written: values,
        }
    }

    /// Channels that carry colour: all but alpha.
    pub fn colours(&self) -> usize {
        self.channels - usize::from(self.channels.is_multiple_of(2))
    }

    /// What a sample in memory stood for in the file that was read.
    fn value(&self, sample: u16) -> i32 {
        self.read.value(sample / self.read.depth.steps(self.depth))
    }
}

/// An image in device memory, its samples laid out as an `Image`'s are.
#[derive(Debug)]
pub struct DeviceImage {
    /// Width, height, channels and depth.
    pub shape: Shape,
    /// As many bytes as the shape has.
    pub samples: cuda::Buffer,
}

/// What an operation makes of an image or of a piece of one.
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
    /// The same with the image, if there is one, made another by `change`. Errors: those of `change`.
    pub fn try_map<J>(self, change: impl FnOnce(I) -> Result<J>) -> Result<OpResult<J>> {
        Ok(match self {
            OpResult::Image(image) => OpResult::Image(change(image)?),
            OpResult::Totals(totals) => OpResult::Totals(totals),
            OpResult::Counts(counts) => OpResult::Counts(counts),
        })
    }
}

/// What the user should know of a result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// The range, or each colour channel's, that values were stretched from, as the file that was read
    /// means them; of those that were left as they are, both ends are the same.
    pub ranges: Vec<(i32, i32)>,
    /// Sentences for the user, without the file's name.
    pub warnings: Vec<String>,
}

/// What an operation gave for a whole image.
#[derive(Clone, Debug, PartialEq)]
pub struct Executed<I = Image> {
    /// An image or numbers.
    pub result: OpResult<I>,
    /// What the user should know of it.
    pub summary: Summary,
}

/// Numbers found in pieces of an image, or in several, that make those of all.
pub trait Join: Sized {
    /// Takes in those of another piece. Errors: the pieces are of different kinds.
    fn join(&mut self, more: &Self) -> Result<()>;
}

impl<I> Join for OpResult<I> {
    fn join(&mut self, more: &OpResult<I>) -> Result<()> {
        match (self, more) {
            (OpResult::Totals(known), OpResult::Totals(more)) => known.join(more),
            (OpResult::Counts(known), OpResult::Counts(more)) => known.join(more)?,
            (OpResult::Image(_), OpResult::Image(_)) => (),
            _ => bail!("its parts were measured in different ways"),
        }
        Ok(())
    }
}

/// The definition of a whole operation on plain samples: its statistic and then the result, serially.
/// Errors: none of an operation that is given what it asks for.
pub fn naive(op: &dyn Operation, image: &Image) -> Result<Executed> {
    let statistics = op.statistic().naive(image);
    let bound = op.bind(SampleTypes::plain(&image.shape()), &statistics)?;
    Ok(Executed {
        result: bound.naive(image)?,
        summary: bound.summary(),
    })
}

/// The bytes that an operation moves with the measuring of its statistic.
pub fn work(op: &dyn Operation, shape: &Shape) -> Work {
    let bound = op.work(shape);
    Work {
        touched: op.statistic().work(shape).touched + bound.touched,
        ..bound
    }
}

/// Runs the same generic code on 8-bit and on 16-bit samples.
macro_rules! with_samples {
    ($samples:expr, $name:ident => $body:expr) => {
        match $samples {
            $crate::image::Samples::U8($name) => $body,
            $crate::image::Samples::U16($name) => $body,
        }
    };
}
pub(crate) use with_samples;
