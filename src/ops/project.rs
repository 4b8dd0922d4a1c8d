//! Project: combines images of the same shape into one, pixel by pixel: their sum, mean, minimum, maximum
//! or median.
//!
//! Exact definition, for the n values v₁ … vₙ of one channel of one pixel: sum Σv; mean
//! ⌊Σv / n + 1/2⌋; minimum and maximum; median, the middle one in their order, or for an even n
//! ⌊(a + b)/2 + 1/2⌋ with a and b the two in the middle. Every channel is projected separately, alpha
//! like the others, except that a sum of images has their mean alpha: opaque stays opaque.
//!
//! Images are folded one after the other into an `Accumulator` of one image's size. A
//! median needs all images at once; to bound memory, it is computed for a range of samples at a time (`median`).

mod accumulate;
mod finish;
mod median;

use super::samples_from;
use crate::image::{Depth, Image, Shape, Values};
use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

pub use accumulate::Accumulator;
pub use median::{median, median_on_gpu};

/// The most images of a projection: their sums fit into 32 bits, and their number into 16.
pub const MOST_IMAGES: usize = 65_535;

/// How the values of a pixel are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Projection {
    /// The exact sum; an error if it does not fit
    Sum,
    /// The mean, rounded half up
    Mean,
    /// The smallest
    Min,
    /// The largest
    Max,
    /// The median; for an even number, the mean of the two middle values, rounded half up
    Median,
}

impl Projection {
    /// The name that a user types.
    pub fn name(self) -> &'static str {
        match self {
            Projection::Sum => "sum",
            Projection::Mean => "mean",
            Projection::Min => "min",
            Projection::Max => "max",
            Projection::Median => "median",
        }
    }
}

/// A projection with its options.
#[derive(clap::Args, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[group(skip)]
pub struct Project {
    /// How to combine the samples of each pixel
    #[arg(value_enum, value_name = "PROJECTION")]
    pub how: Projection,

    /// Clamp sums that exceed the sample type instead of refusing them
    #[arg(long, conflicts_with = "scale")]
    pub saturate: bool,

    /// Scale sums so that the largest magnitude becomes the largest value and 0 stays 0, correctly rounded
    #[arg(long)]
    pub scale: bool,

    /// Bits per sample of a sum (default: as input). Every sum fits in 32 bits; in 16 bits, 8-bit images have room for 257 times their largest value
    #[arg(long, value_name = "BITS")]
    pub to: Option<Wide>,
}

/// The bits of `--to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
pub enum Wide {
    /// 0 to 65535, or −32768 to 32767
    #[value(name = "16")]
    #[serde(rename = "16")]
    Sixteen,
    /// 0 to 4294967295, or −2147483648 to 2147483647
    #[value(name = "32")]
    #[serde(rename = "32")]
    ThirtyTwo,
}

impl Project {
    /// A projection without options.
    pub fn plain(how: Projection) -> Project {
        Project {
            how,
            saturate: false,
            scale: false,
            to: None,
        }
    }

    /// Refuses options that the projection does not support; the error says why.
    pub fn check(&self) -> Result<()> {
        let options = [
            ("--saturate", self.saturate),
            ("--scale", self.scale),
            ("--to", self.to.is_some()),
        ];
        for (option, given) in options {
            ensure!(
                !given || self.how == Projection::Sum,
                "{option} is for sums: a {} always fits",
                self.how.name()
            );
        }
        ensure!(
            self.to != Some(Wide::ThirtyTwo) || !(self.saturate || self.scale),
            "every sum fits in --to 32: remove --saturate and --scale"
        );
        Ok(())
    }

    /// The shape of the result for images of this shape.
    pub fn output(&self, shape: Shape) -> Shape {
        let depth = match self.to {
            None => shape.depth,
            Some(Wide::Sixteen) => Depth::Sixteen,
            Some(Wide::ThirtyTwo) => Depth::ThirtyTwo,
        };
        Shape { depth, ..shape }
    }

    /// The definition: serial and simple. `values` is the type of the images' samples.
    ///
    /// # Errors
    /// No image, and a sum that does not fit.
    pub fn naive(&self, images: &[Image], values: Values) -> Result<Image> {
        let shape = images.first().context("no images to project")?.shape();
        let (to, mut out) = (self.output(shape), Vec::new());
        let (mut sums, written) = (
            Vec::new(),
            Values {
                depth: to.depth,
                ..values
            },
        );
        for i in 0..shape.samples() {
            let mut column: Vec<u64> = images.iter().map(|image| image.samples().at(i)).collect();
            column.sort_unstable();
            let (n, total) = (column.len() as u64, column.iter().sum::<u64>());
            let mean = (2 * total + n) / (2 * n);
            let middle = (column[(column.len() - 1) / 2] + column[column.len() / 2]).div_ceil(2);
            out.push(match self.how {
                Projection::Min => column[0],
                Projection::Max => column[column.len() - 1],
                Projection::Median => middle,
                Projection::Mean => mean,
                Projection::Sum if is_alpha(&shape, i) => mean * alpha_steps(shape.depth, to.depth),
                Projection::Sum => {
                    sums.push((i, total as i64 - (n * u64::from(values.zero())) as i64));
                    0
                }
            });
        }
        let largest = sums.iter().map(|(_, sum)| sum.abs()).max().unwrap_or(0);
        let (least, most) = written.limits().context("samples are integers")?;
        for (i, sum) in sums {
            let sum = if !self.scale {
                sum
            } else if largest > 0 {
                (2 * sum * most + largest).div_euclid(2 * largest)
            } else {
                0
            };
            if !self.saturate && !(least..=most).contains(&sum) {
                bail!("a sum does not fit");
            }
            out[i] = (sum.clamp(least, most) - least) as u64;
        }
        Ok(Image::new(to, samples_from(to.depth, out.into_iter())))
    }
}

/// The factor from alpha of one depth to alpha of another with as many bits or more.
fn alpha_steps(from: Depth, to: Depth) -> u64 {
    let most = match to {
        Depth::ThirtyTwo => u32::MAX,
        _ => to.full().into(),
    };
    u64::from(most) / u64::from(from.full())
}

/// Whether sample `i` of an image is alpha.
fn is_alpha(shape: &Shape, i: usize) -> bool {
    i % shape.channels >= shape.colours()
}
