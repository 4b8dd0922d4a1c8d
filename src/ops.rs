//! The operations. Each is defined once, in exact arithmetic, by a naive serial version; its
//! rayon and CUDA versions give the same bytes. Operations never print and never touch files.

pub mod bands;
pub mod depth;
pub mod histogram;
pub mod normalize;
pub mod orient;
pub mod sum;

use crate::device::cuda::{self, Gpu};
use crate::device::job::Job;
use crate::device::{NoMemory, Work};
use crate::image::{Image, Shape};
use crate::metadata::Effect;
use crate::stats::Timeline;
use anyhow::{Result, bail};
use histogram::{Counts, Histogram};
use normalize::Meaning;
use std::fmt;
use sum::Totals;

/// One operation with its options.
pub trait Op: Sync + fmt::Debug {
    /// The word a user types.
    fn name(&self) -> &'static str;

    /// Whether the options fit an image of this shape; the error says why not.
    fn check(&self, _shape: &Shape) -> Result<()> {
        Ok(())
    }

    /// The bytes that each device would have to move for an image of this shape.
    fn work(&self, shape: &Shape) -> Work;

    /// What it does to what a file's metadata speak of.
    fn effect(&self) -> Effect;

    /// What must be measured in a whole image before any part of it can be done; none if nothing.
    fn measuring(&self) -> Option<Box<dyn Op>> {
        None
    }

    /// Whether that is measured in all pages of a stack together.
    fn shares_pages(&self) -> bool {
        false
    }

    /// The same with what was measured in an image, or in all pages, of a shape's kind.
    fn measured(&self, _shape: &Shape, _found: &Product<()>) -> Option<Box<dyn Op>> {
        None
    }

    /// The same for a file whose samples have this meaning, or why its options do not fit them; none
    /// where that is all the same to it.
    fn with_meaning(&self, _meaning: Meaning) -> Result<Option<Box<dyn Op>>> {
        Ok(None)
    }

    /// The definition: serial, plain, without regard to speed.
    fn naive(&self, image: &Image) -> Output;

    /// The same result from all cores.
    fn cpu(&self, image: Image, timeline: &mut Timeline) -> Result<Output>;

    /// The same result from a GPU, left in its memory. An image has as many bytes as the input.
    fn cuda(&self, image: DeviceImage, job: &mut Job) -> Result<Output<DeviceImage>>;
}

/// An image in device memory, its samples laid out as an `Image`'s are.
#[derive(Debug)]
pub struct DeviceImage {
    /// Width, height, channels and depth.
    pub shape: Shape,
    /// As many bytes as the shape has.
    pub samples: cuda::Buffer,
}

/// What came back from a card.
#[derive(Debug)]
pub struct Returned<R> {
    /// The operation's.
    pub output: Output,
    /// What was made of the resulting image while it was on the card; nothing if that was done in
    /// bands, or the result is numbers.
    pub taken: Option<R>,
    /// Whether the card's memory did not hold the image at once.
    pub in_bands: bool,
}

/// Carries an image to the card, through `op`, and back into its own memory.
pub fn on_gpu(op: &dyn Op, image: Image, gpu: &Gpu, timeline: &mut Timeline) -> Result<Output> {
    let download = |image: &DeviceImage, job: &mut Job| job.download(&image.samples);
    Ok(on_gpu_then(op, image, gpu, timeline, download)?.output)
}

/// Carries an image to the card and through `op`; `take` makes of the result there what it wants,
/// in the image's own memory, which is the output's then. What the card's memory does not hold at
/// once goes through it in bands.
pub fn on_gpu_then<R>(
    op: &dyn Op,
    mut image: Image,
    gpu: &Gpu,
    timeline: &mut Timeline,
    take: impl FnOnce(&DeviceImage, &mut Job) -> Result<R>,
) -> Result<Returned<R>> {
    match at_once(op, &mut image, gpu, timeline, take) {
        Ok((output, taken)) => Ok(Returned {
            output: output.map(|result| Image::new(result.shape, image.into_samples())),
            taken,
            in_bands: false,
        }),
        // Memory is had before anything comes down, so that the image is still as it was.
        Err(error) if error.is::<NoMemory>() => Ok(Returned {
            output: bands::on_gpu(op, image, gpu, timeline, bands::BYTES)?,
            taken: None,
            in_bands: true,
        }),
        Err(error) => Err(error),
    }
}

/// The same, all of the image at once.
fn at_once<R>(
    op: &dyn Op,
    image: &mut Image,
    gpu: &Gpu,
    timeline: &mut Timeline,
    take: impl FnOnce(&DeviceImage, &mut Job) -> Result<R>,
) -> Result<(Output<DeviceImage>, Option<R>)> {
    let shape = image.shape();
    gpu.job(image.samples_mut().as_bytes_mut(), timeline, |job| {
        let samples = job.upload()?;
        let output = op.cuda(DeviceImage { shape, samples }, job)?;
        let taken = match &output.product {
            Product::Image(image) => Some(take(image, job)?),
            Product::Totals(_) | Product::Counts(_) => None,
        };
        Ok((output, taken))
    })
}

/// What an operation gives, and what its user should be told.
#[derive(Clone, Debug, PartialEq)]
pub struct Output<I = Image> {
    /// An image or numbers.
    pub product: Product<I>,
    /// The range, or each colour channel's, that values were stretched from, as the file that was read
    /// means them; of those that were left as they are, both ends are the same.
    pub ranges: Vec<(i32, i32)>,
    /// Sentences for the user, without the file's name.
    pub warnings: Vec<String>,
}

impl<I> Output<I> {
    /// The same with the image, if there is one, made another by `change`.
    fn map<J>(self, change: impl FnOnce(I) -> J) -> Output<J> {
        Output {
            product: self.product.map(change),
            ranges: self.ranges,
            warnings: self.warnings,
        }
    }
}

impl<I> Product<I> {
    /// The same with the image, if there is one, made another by `change`.
    pub fn map<J>(self, change: impl FnOnce(I) -> J) -> Product<J> {
        match self {
            Product::Image(image) => Product::Image(change(image)),
            Product::Totals(totals) => Product::Totals(totals),
            Product::Counts(counts) => Product::Counts(counts),
        }
    }

    /// Takes in the numbers found in another part of an image, or in another page.
    pub fn join(&mut self, more: &Product<I>) -> Result<()> {
        match (self, more) {
            (Product::Totals(known), Product::Totals(more)) => known.join(more),
            (Product::Counts(known), Product::Counts(more)) => known.join(more)?,
            (Product::Image(_), Product::Image(_)) => (),
            _ => bail!("its parts were measured in different ways"),
        }
        Ok(())
    }
}

impl<I> From<Product<I>> for Output<I> {
    fn from(product: Product<I>) -> Output<I> {
        Output {
            product,
            ranges: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// The kinds of result.
#[derive(Clone, Debug, PartialEq)]
pub enum Product<I = Image> {
    /// A new image.
    Image(I),
    /// The totals of `sum`.
    Totals(Totals),
    /// The counts of `histogram`.
    Counts(Counts),
}

/// The operations that the shared tests run over, with the options worth testing. A new
/// operation adds its line here and its subcommand in `cli.rs`.
pub fn examples() -> Vec<Box<dyn Op>> {
    let mut list: Vec<Box<dyn Op>> = vec![];
    list.extend(
        normalize::examples()
            .into_iter()
            .map(|op| Box::new(op) as Box<dyn Op>),
    );
    list.extend(
        orient::Orient::ALL
            .into_iter()
            .map(|op| Box::new(op) as Box<dyn Op>),
    );
    list.push(Box::new(Histogram));
    list.extend([false, true].map(|all| Box::new(sum::Sum { all }) as Box<dyn Op>));
    list
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
