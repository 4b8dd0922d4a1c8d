//! The operations. Each is defined once, in exact arithmetic, by a naive serial version; its
//! rayon and CUDA versions give the same bytes. Operations never print and never touch files.

pub mod depth;
pub mod normalize;
pub mod orient;
pub mod sum;

use crate::device::Work;
use crate::device::cuda::Gpu;
use crate::image::{Image, Shape};
use crate::stats::Timeline;
use anyhow::Result;
use sum::Totals;

/// One operation with its options.
pub trait Op: Sync {
    /// The word a user types.
    fn name(&self) -> &'static str;

    /// Whether the options fit an image of this shape; the error says why not.
    fn check(&self, _shape: &Shape) -> Result<()> {
        Ok(())
    }

    /// The bytes that each device would have to move for an image of this shape.
    fn work(&self, shape: &Shape) -> Work;

    /// Whether the result's values are scaled to the depth that was asked for already.
    fn scales(&self) -> bool {
        false
    }

    /// The definition: serial, plain, without regard to speed.
    fn naive(&self, image: &Image) -> Output;

    /// The same result from all cores.
    fn cpu(&self, image: Image, timeline: &mut Timeline) -> Result<Output>;

    /// The same result from a GPU.
    fn cuda(&self, image: Image, gpu: &Gpu, timeline: &mut Timeline) -> Result<Output>;
}

/// What an operation gives, and what its user should be told.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// An image or numbers.
    pub product: Product,
    /// Sentences for the user, without the file's name.
    pub warnings: Vec<String>,
}

impl From<Image> for Output {
    fn from(image: Image) -> Output {
        Output {
            product: Product::Image(image),
            warnings: Vec::new(),
        }
    }
}

/// The two kinds of result.
#[derive(Clone, Debug, PartialEq)]
pub enum Product {
    /// A new image.
    Image(Image),
    /// The totals of `sum`.
    Totals(Totals),
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
