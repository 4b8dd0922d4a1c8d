//! Project: combines images of the same shape into one, pixel by pixel: their sum, mean, minimum, maximum
//! or median.
//!
//! Exact definition, for the n values v₁ … vₙ of one channel of one pixel: sum Σv; mean
//! ⌊Σv / n + 1/2⌋; minimum and maximum; median, the middle one in their order, or for an even n
//! ⌊(a + b)/2 + 1/2⌋ with a and b the two in the middle. Every channel is projected separately, alpha
//! like the others, except that a sum of images has their mean alpha: opaque stays opaque.
//!
//! Images are folded one after the other into an `Accumulator` of one image's size. A
//! median, a sigma-clipped mean (`clipped`) and every projection of floating-point images need all images at once; to
//! bound memory, they are computed for a range of samples at a time (`columns`).
//!
//! With `--to f32`, and for floating-point images, results are not rounded to whole numbers: sums are added in doubles,
//! in the order of the images, divided in doubles, and rounded once to 32 bits (`float`).

mod accumulate;
mod clipped;
mod columns;
mod finish;
mod float;
mod median;

use super::samples_from;
use super::wide::finite;
use crate::image::{Depth, Image, Shape, Values};
use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

pub use accumulate::Accumulator;
pub use clipped::Sigma;
pub use columns::project_columns;
pub use median::{median_of_buffers, median_on_gpu};

/// The most images of a projection: their sums fit into 32 bits, and their number into 16.
pub const MOST_IMAGES: usize = 65_535;

/// Pixels that are projected together: their samples in 256 images of 16 bits fit into a level-1 cache.
const WIDTH: usize = 64;

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
#[derive(clap::Args, Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
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

    /// Sample type of the result (default: as input). 16 and 32 bits are for sums: every sum fits in 32 bits; in 16 bits, 8-bit images have room for 257 times their largest value. f32 is for every projection, and does not round to whole numbers
    #[arg(long, value_name = "TYPE")]
    pub to: Option<Wide>,

    /// Mean without outliers: reject the values of a pixel that are farther than K standard deviations from their mean, up to 5 times, e.g. 3
    #[arg(long, value_name = "K")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sigma: Option<Sigma>,

    /// Replace NaN and infinite samples with VALUE (default: refuse them)
    #[arg(long, value_name = "VALUE", value_parser = finite, allow_negative_numbers = true)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nan: Option<f64>,
}

/// The sample type of `--to`.
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
    /// 32-bit floating point
    #[value(name = "f32")]
    #[serde(rename = "f32")]
    Float,
}

impl Wide {
    /// The name that a user types.
    pub fn name(self) -> &'static str {
        match self {
            Wide::Sixteen => "16",
            Wide::ThirtyTwo => "32",
            Wide::Float => "f32",
        }
    }
}

impl Project {
    /// A projection without options.
    pub fn plain(how: Projection) -> Project {
        Project {
            how,
            saturate: false,
            scale: false,
            to: None,
            sigma: None,
            nan: None,
        }
    }

    /// Refuses options that the projection does not support; the error says why.
    pub fn check(&self) -> Result<()> {
        let whole = matches!(self.to, Some(Wide::Sixteen | Wide::ThirtyTwo));
        let options = [
            ("--saturate", self.saturate),
            ("--scale", self.scale),
            ("--to 16 or 32", whole),
        ];
        for (option, given) in options {
            ensure!(
                !given || self.how == Projection::Sum,
                "{option} is for sums: a {} always fits",
                self.how.name()
            );
        }
        if let Some(to @ (Wide::ThirtyTwo | Wide::Float)) = self.to {
            ensure!(
                !(self.saturate || self.scale),
                "every sum fits in --to {}: remove --saturate and --scale",
                to.name()
            );
        }
        ensure!(
            self.sigma.is_none() || self.how == Projection::Mean,
            "--sigma is for means: use project mean"
        );
        Ok(())
    }

    /// Refuses images of a depth that the options do not support; the error says why.
    pub fn check_depth(&self, depth: Depth) -> Result<()> {
        ensure!(
            matches!(depth, Depth::Eight | Depth::Sixteen | Depth::Float),
            "its samples have {depth}: only 8- and 16-bit images and 32-bit floating point are supported (normalize --range converts them to 16 bits with one range for all)"
        );
        let whole = self.saturate || self.scale || self.output_depth(depth) != Depth::Float;
        ensure!(
            !(depth == Depth::Float && whole),
            "its samples have {depth}, and so have their sums: remove --saturate, --scale and --to"
        );
        Ok(())
    }

    /// The reason why images of this depth cannot be added one after the other, if there is one.
    pub fn needs_all_images(&self, depth: Depth) -> Option<&'static str> {
        if self.how == Projection::Median {
            Some("a median needs all images at once")
        } else if self.sigma.is_some() {
            Some("a sigma-clipped mean needs all images at once")
        } else if depth == Depth::Float {
            Some("floating-point images are added in their order")
        } else {
            None
        }
    }

    /// The reason why a GPU cannot project images of this depth, if there is one.
    pub fn gpu_obstacle(&self, depth: Depth) -> Option<&'static str> {
        if self.sigma.is_some() {
            Some("the GPU does not support sigma-clipped means")
        } else if depth == Depth::Float {
            Some("the GPU does not project floating-point images")
        } else if self.how == Projection::Median && self.to.is_some() {
            Some("the GPU rounds medians to whole numbers")
        } else {
            None
        }
    }

    /// The shape of the result for images of this shape.
    pub fn output(&self, shape: Shape) -> Shape {
        Shape {
            depth: self.output_depth(shape.depth),
            ..shape
        }
    }

    fn output_depth(&self, depth: Depth) -> Depth {
        match self.to {
            None => depth,
            Some(Wide::Sixteen) => Depth::Sixteen,
            Some(Wide::ThirtyTwo) => Depth::ThirtyTwo,
            Some(Wide::Float) => Depth::Float,
        }
    }

    /// The definition: serial and simple. `values` is the type of the images' samples, which are finite.
    ///
    /// # Errors
    /// No image, and a sum that does not fit.
    pub fn naive(&self, images: &[Image], values: Values) -> Result<Image> {
        let shape = images.first().context("no images to project")?.shape();
        let (to, mut out) = (self.output(shape), Vec::new());
        if to.depth == Depth::Float {
            return self.naive_reals(images, values);
        }
        let (mut sums, written) = (
            Vec::new(),
            Values {
                depth: to.depth,
                ..values
            },
        );
        for i in 0..shape.samples() {
            let mut column: Vec<u64> = images.iter().map(|image| image.samples().at(i)).collect();
            if let Some(sigma) = self.sigma {
                column = sigma.kept(&column);
            }
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

    /// The definition, for results in floating point.
    fn naive_reals(&self, images: &[Image], values: Values) -> Result<Image> {
        let shape = images.first().context("no images to project")?.shape();
        let to = self.output(shape);
        let mut out = Vec::new();
        for i in 0..shape.samples() {
            let column = images.iter().map(|image| image.samples().at(i));
            let mut column: Vec<u64> = column.collect();
            let is_whole = shape.depth != Depth::Float;
            if let Some(sigma) = self.sigma.filter(|_| is_whole) {
                column = sigma.kept(&column);
            }
            let is_alpha = is_alpha(&shape, i);
            // Alpha has no sign.
            let value = |sample: u64| {
                if is_alpha && is_whole {
                    sample as f64
                } else {
                    values.number(sample).as_f64()
                }
            };
            let mut column: Vec<f64> = column.into_iter().map(value).collect();
            if let Some(sigma) = self.sigma.filter(|_| !is_whole) {
                column = sigma.kept_reals(&column);
            }
            let (sum, count) = float::combined(self.how, &column);
            let result = if is_alpha && is_whole {
                sum / (count * f64::from(shape.depth.full()))
            } else if self.how == Projection::Sum && !is_alpha {
                sum
            } else {
                sum / count
            };
            out.push(u64::from(float::sample(result)));
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
