//! Debayer: computes an RGB image from the mosaic of a sensor whose pixels see one colour each (Bayer, US patent 3,971,065).
//!
//! Exact definition. The pixel in row y and column x sees the colour that the pattern gives for (y mod 2, x mod 2). That sample
//! is copied. Each of the other two colours is `clamp(⌊(Σ w·p + 8) / 16⌋)`, the sum of the samples p around the pixel with the
//! weights w of a kernel of 5×5 (`kernels`), in sixteenths and rounded half up; it is clamped to the range of the sample type.
//! Outside of the image the samples are mirrored at the border without repeating it: row −1 is row 1, and row h is row h − 2.
//! That keeps the colours in their places. Floating-point samples are added in double precision, row by row and from left to
//! right, multiplied by 1/16, rounded to their type once, and not clamped.
//!
//! * `bilinear`: the mean of the nearest 2 or 4 samples of the colour.
//! * `malvar`: the kernels of H. S. Malvar, L. He and R. Cutler, "High-quality linear interpolation for demosaicing of
//!   Bayer-patterned color images", ICASSP 2004, figure 2: the bilinear mean, corrected by the Laplacian of the colour that
//!   the pixel sees.

mod cpu;
mod kernels;

use super::{
    Access, Bound, DeviceImage, OpResult, Operation, Properties, SampleTypes, Statistics, Verb,
    samples_from,
};
use crate::gpu::Work;
use crate::gpu::job::Job;
use crate::gpu::launch::debayer as launch;
use crate::image::metadata::Effect;
use crate::image::number::{from_key, from_key64, key, key64};
use crate::image::{Depth, Image, Shape};
use crate::timing::Timeline;
use anyhow::{Result, ensure};
use kernels::{Kernel, Kernels};

/// Compute an RGB image from the Bayer mosaic of a sensor
#[derive(clap::Args, Clone, Copy, Debug, serde::Serialize)]
#[group(skip)]
pub struct Debayer {
    /// The colours of the upper left 2×2 pixels, row by row
    #[arg(value_name = "PATTERN", ignore_case = true)]
    pub pattern: Pattern,

    /// How the two missing colours of a pixel are computed
    #[arg(long, value_name = "METHOD", default_value = "bilinear")]
    pub method: Method,
}

/// The colours of the upper left 2×2 pixels, row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
pub enum Pattern {
    /// Red, green; green, blue
    #[value(name = "RGGB")]
    Rggb,
    /// Blue, green; green, red
    #[value(name = "BGGR")]
    Bggr,
    /// Green, red; blue, green
    #[value(name = "GRBG")]
    Grbg,
    /// Green, blue; red, green
    #[value(name = "GBRG")]
    Gbrg,
}

impl Pattern {
    /// The row and the column, 0 or 1, of the red pixel among the upper left 2×2. The blue one is diagonally opposite.
    fn red(self) -> (usize, usize) {
        match self {
            Pattern::Rggb => (0, 0),
            Pattern::Bggr => (1, 1),
            Pattern::Grbg => (0, 1),
            Pattern::Gbrg => (1, 0),
        }
    }
}

/// How the two missing colours of a pixel are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
pub enum Method {
    /// The mean of the nearest samples of the colour
    Bilinear,
    /// Bilinear, corrected by the other colours: sharper, with less colour at edges (Malvar, He and Cutler 2004)
    Malvar,
}

/// What a pixel sees: a colour of its row, and where the other colours are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Site {
    /// Green; the first colour number is that of the left and right neighbours, the second that of those above and below.
    Green { beside: usize, above: usize },
    /// Red or blue, and the other one, which the diagonal neighbours see.
    Colour { own: usize, opposite: usize },
}

impl Debayer {
    /// What the pixel in this row and column sees.
    fn site(&self, y: usize, x: usize) -> Site {
        let (red_row, red_column) = self.pattern.red();
        let (in_red_row, in_red_column) = (y % 2 == red_row, x % 2 == red_column);
        let (own, opposite) = if in_red_row { (0, 2) } else { (2, 0) };
        if in_red_row == in_red_column {
            Site::Colour { own, opposite }
        } else {
            Site::Green {
                beside: own,
                above: opposite,
            }
        }
    }

    /// The shape of the result for an image of this shape.
    fn output(shape: Shape) -> Shape {
        Shape {
            channels: 3,
            ..shape
        }
    }

    /// The samples of red, green and blue at a pixel, by the definition.
    fn pixel(&self, image: &Image, y: usize, x: usize) -> [u64; 3] {
        let Shape {
            width,
            height,
            depth,
            ..
        } = image.shape();
        let sample = |dy: usize, dx: usize| {
            let row = mirrored(y as isize + dy as isize - 2, height);
            let column = mirrored(x as isize + dx as isize - 2, width);
            image.samples().at(row * width + column)
        };
        let value = |kernel: &Kernel| weighted(kernel, depth, &sample);
        let own_sample = sample(2, 2);
        let Kernels {
            cross,
            horizontal,
            vertical,
            diagonal,
        } = self.method.kernels();
        let mut pixel = [0; 3];
        match self.site(y, x) {
            Site::Green { beside, above } => {
                pixel[1] = own_sample;
                pixel[beside] = value(horizontal);
                pixel[above] = value(vertical);
            }
            Site::Colour { own, opposite } => {
                pixel[own] = own_sample;
                pixel[1] = value(cross);
                pixel[opposite] = value(diagonal);
            }
        }
        pixel
    }
}

/// An index that may lie outside of `0..size`, mirrored at the border without repeating it. `size` is 2 or more.
fn mirrored(index: isize, size: usize) -> usize {
    let period = 2 * (size - 1);
    let index = index.rem_euclid(period as isize) as usize;
    index.min(period - index)
}

/// The sum of the samples around a pixel with the weights of a kernel, as a sample of a depth.
fn weighted(kernel: &Kernel, depth: Depth, sample: &dyn Fn(usize, usize) -> u64) -> u64 {
    let mut weights = Vec::new();
    for (dy, row) in kernel.iter().enumerate() {
        for (dx, &weight) in row.iter().enumerate() {
            if weight != 0 {
                weights.push((weight, sample(dy, dx)));
            }
        }
    }
    let sum = |value: fn(u64) -> f64| {
        let products = weights.iter().map(|&(w, it)| f64::from(w) * value(it));
        products.reduce(|sum, it| sum + it).unwrap_or(0.0) / 16.0
    };
    let most = match depth {
        Depth::Float => {
            let mean = sum(|it| from_key(it as u32).into()) as f32;
            return key(mean.to_bits()).into();
        }
        Depth::Double => return key64(sum(from_key64).to_bits()),
        Depth::ThirtyTwo => u32::MAX.into(),
        Depth::Eight | Depth::Sixteen => i128::from(depth.full()),
    };
    let products = (weights.iter()).map(|&(w, it)| i128::from(w) * i128::from(it));
    let sum: i128 = products.sum();
    (sum + 8).div_euclid(16).clamp(0, most) as u64
}

impl Verb for Debayer {
    const NAME: &'static str = "debayer";
    const EXAMPLES: &'static str = "Examples:\n\
\x20 gpuimg debayer RGGB raw.tif out.tif             means of neighbours\n\
\x20 gpuimg debayer GBRG raw.tif out.tif --method malvar   sharper\n\
\x20 gpuimg run 'calibrate --dark d.tif + debayer RGGB' in/ out/";

    fn operation(self) -> Box<dyn Operation> {
        Box::new(self)
    }

    /// None: it needs grey images of 2×2 pixels or more (`tests/debayer.rs`).
    fn examples() -> Vec<Box<dyn Operation>> {
        Vec::new()
    }
}

impl Operation for Debayer {
    fn properties(&self) -> Properties {
        Properties {
            wide_samples: true,
            ..Properties::new(Debayer::NAME, Access::WholeImage, Effect::Arithmetic)
        }
    }

    fn output_channels(&self, _: usize) -> usize {
        3
    }

    fn work(&self, shape: &Shape) -> Work {
        Work::moving(shape.bytes() + Debayer::output(*shape).bytes())
    }

    fn check_shape(&self, shape: &Shape) -> Result<()> {
        ensure!(
            shape.channels == 1,
            "it is {}, but the mosaic of a sensor is grey: debayer takes the image as the sensor recorded it",
            shape.kind()
        );
        ensure!(
            shape.width >= 2 && shape.height >= 2,
            "it has {}×{} pixels, in which a colour is missing: debayer needs 2×2 or more",
            shape.width,
            shape.height
        );
        Ok(())
    }

    fn gpu_obstacle(&self, shape: &Shape) -> Option<&'static str> {
        let is_wide = shape.depth.is_wide();
        is_wide.then_some("the GPU does not support debayer for 32-bit samples")
    }

    fn bind<'a>(&'a self, _: SampleTypes, _: &'a Statistics) -> Result<Box<dyn Bound + 'a>> {
        Ok(Box::new(*self))
    }
}

impl Bound for Debayer {
    fn naive(&self, image: &Image) -> Result<OpResult> {
        let shape = image.shape();
        self.check_shape(&shape)?;
        let rows = (0..shape.height).flat_map(|y| (0..shape.width).map(move |x| (y, x)));
        let samples = rows.flat_map(|(y, x)| self.pixel(image, y, x));
        let samples = samples_from(shape.depth, samples);
        Ok(OpResult::Image(Image::new(Debayer::output(shape), samples)))
    }

    fn cpu(&self, mut image: Image, timeline: &mut Timeline) -> Result<OpResult> {
        let (from, to) = (image.shape(), Debayer::output(image.shape()));
        self.check_shape(&from)?;
        let mut samples = image.samples_mut().memory_for_result(&to)?;
        let bytes = (from.bytes() + to.bytes()) as u64;
        timeline.host(Debayer::NAME, bytes, || {
            cpu::debayer(self, &image, &mut samples);
        });
        Ok(OpResult::Image(Image::new(to, samples)))
    }

    fn cuda(&self, image: DeviceImage, job: &mut Job) -> Result<OpResult<DeviceImage>> {
        let (from, to) = (image.shape, Debayer::output(image.shape));
        self.check_shape(&from)?;
        let kernel = job.kernel::<launch::Debayer>(&from.depth.form())?;
        let mut samples = job.alloc(to.bytes())?;
        let (red_y, red_x) = self.pattern.red();
        let (wide, high) = (launch::WIDE as usize, launch::HIGH as usize);
        let tiles = from.width.div_ceil(wide) * from.height.div_ceil(high);
        let arguments = launch::Debayer {
            src: image.samples.view(),
            dst: samples.view_mut(),
            width: from.width as u64,
            height: from.height as u64,
            red_x: red_x as u32,
            red_y: red_y as u32,
            malvar: (self.method == Method::Malvar).into(),
        };
        let grid = tiles.min(i32::MAX as usize) as u32;
        job.launch(&kernel, grid, (from.bytes() + to.bytes()) as u64, arguments)?;
        Ok(OpResult::Image(DeviceImage { shape: to, samples }))
    }
}
