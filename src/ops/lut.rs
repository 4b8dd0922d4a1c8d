//! Lut: shows grey samples in the colours of a look-up table, as RGB of 8 bits, or of 16 with `--depth 16`.
//!
//! Exact definition. A table has 256 colours. A sample p of n bits has the colour with the index `⌊p·256 / 2ⁿ⌋`: p itself for 8
//! bits, and the upper byte of 16 bits. Signed samples are counted from their minimum. Nothing is interpolated, so that every
//! colour of the result is one of the table, and every colour stands for equally many values. matplotlib indexes its tables in
//! the same way.
//!
//! With `--depth 16`, the colours are interpolated: p is a sample of 16 bits (one of 8 bits is multiplied by 257 first),
//! i = ⌊p / 257⌋ and r = p mod 257. The result is `(257 − r)·T[i] + r·T[i + 1]`, where T is the table. That is exact: it is
//! the point p·255/65535 of the polygon through the table's colours, times 257. A sample of 8 bits has the colours of the table.
//!
//! * `gray`: (i, i, i).
//! * `viridis`, `magma`, `inferno`: those of matplotlib (`tables`).
//! * `fire`: the table of ImageJ. Its 32 colours are interpolated linearly in steps of 1/8 and rounded down; the last 7 equal
//!   the 32nd.
//! * `ironbow`: the black-blue-red-yellow palette of gnuplot (`rgbformulae 7,5,15`). With x = i/255, red is √x, green x³, and blue
//!   sin(2πx), or 0 where that is negative; each is multiplied by 255 and rounded half up. Makers of thermal cameras have similar
//!   tables under this name, which they do not publish.

mod tables;

use super::cpu::{CHUNK, Sample, reduce};
use super::{
    Access, Bound, DeviceImage, OpResult, Operation, Properties, SampleTypes, Statistics, Verb,
    never_wide, with_samples,
};
use crate::gpu::job::Job;
use crate::gpu::launch::lut as launch;
use crate::image::metadata::{Diagnostics, Effect};
use crate::image::{Depth, Image, Samples, Shape, Values};
use crate::timing::Timeline;
use anyhow::{Result, ensure};
use rayon::prelude::*;
use std::f64::consts::TAU;

/// Show grey images in the colours of a table, as RGB of 8 or 16 bits
#[derive(clap::Args, Clone, Copy, Debug, serde::Serialize)]
#[group(skip)]
pub struct Lut {
    /// The table of colours, which covers all values of the sample type
    #[arg(value_name = "NAME", ignore_case = true)]
    pub palette: Palette,
}

/// The colours of a look-up table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Palette {
    /// Black to white
    #[value(alias = "grey")]
    Gray,
    /// Dark blue, green, yellow (matplotlib)
    Viridis,
    /// Black, purple, orange, pale yellow (matplotlib)
    Magma,
    /// Black, purple, orange, bright yellow (matplotlib)
    Inferno,
    /// Black, blue, red, yellow, white (ImageJ)
    Fire,
    /// Black, blue, red, yellow (gnuplot's rgbformulae 7,5,15)
    Ironbow,
}

/// Red, green and blue of each index.
type Table = [[u8; 3]; 256];

/// The colours of ImageJ's `fire`, from which the table is interpolated.
const FIRE: [[u8; 3]; 32] = [
    [0, 0, 0],
    [0, 0, 61],
    [1, 0, 96],
    [25, 0, 130],
    [49, 0, 165],
    [73, 0, 192],
    [98, 0, 220],
    [122, 0, 227],
    [146, 0, 210],
    [162, 0, 181],
    [173, 0, 151],
    [184, 0, 122],
    [195, 0, 93],
    [207, 14, 64],
    [217, 35, 35],
    [229, 57, 5],
    [240, 79, 0],
    [252, 101, 0],
    [255, 117, 0],
    [255, 133, 0],
    [255, 147, 0],
    [255, 161, 0],
    [255, 175, 0],
    [255, 190, 0],
    [255, 205, 0],
    [255, 219, 0],
    [255, 234, 0],
    [255, 248, 35],
    [255, 255, 98],
    [255, 255, 160],
    [255, 255, 223],
    [255, 255, 255],
];

impl Palette {
    /// The table.
    pub fn table(self) -> Table {
        let listed =
            |table: &[u32; 256]| table.map(|rgb| [rgb >> 16, rgb >> 8, rgb].map(|it| it as u8));
        match self {
            Palette::Gray => std::array::from_fn(|index| [index as u8; 3]),
            Palette::Viridis => listed(&tables::VIRIDIS),
            Palette::Magma => listed(&tables::MAGMA),
            Palette::Inferno => listed(&tables::INFERNO),
            Palette::Fire => std::array::from_fn(fire),
            Palette::Ironbow => std::array::from_fn(ironbow),
        }
    }
}

/// The colour of `fire` at an index.
fn fire(index: usize) -> [u8; 3] {
    let (knot, eighths) = (index / 8, (index % 8) as u16);
    let (from, to) = (FIRE[knot], FIRE[(knot + 1).min(FIRE.len() - 1)]);
    std::array::from_fn(|colour| {
        let (from, to) = (u16::from(from[colour]), u16::from(to[colour]));
        (((8 - eighths) * from + eighths * to) / 8) as u8
    })
}

/// The colour of `ironbow` at an index. No product is near a half, so every host's `sin` gives the same table.
fn ironbow(index: usize) -> [u8; 3] {
    let x = index as f64 / 255.0;
    [x.sqrt(), x.powi(3), (TAU * x).sin()].map(|part| (255.0 * part + 0.5) as u8)
}

/// The index of the colour of a sample.
fn index<T: Sample>(sample: T) -> usize {
    usize::from(sample.value()) >> (8 * (size_of::<T>() - 1))
}

/// The colour of a value of 16 bits, interpolated between two colours of the table.
fn interpolated(table: &Table, value: u16) -> [u16; 3] {
    let (index, part) = (usize::from(value / 257), value % 257);
    let (from, to) = (table[index], table[(index + 1).min(255)]);
    std::array::from_fn(|colour| {
        (257 - part) * u16::from(from[colour]) + part * u16::from(to[colour])
    })
}

/// Samples whose largest one has an index below this are nearly black in most palettes.
const DARK: usize = 32;

/// A look-up table bound to the depth of its result, 8 or 16 bits.
struct Colours {
    table: Table,
    depth: Depth,
}

impl Colours {
    /// The shape of the result for an image of this shape.
    fn output(&self, shape: Shape) -> Shape {
        Shape {
            channels: 3,
            depth: self.depth,
            ..shape
        }
    }

    /// Writes the colours of samples.
    fn look_up<T: Sample>(&self, samples: &[T], to: &mut Samples) {
        let table = &self.table;
        match to {
            Samples::U8(to) => each(samples, to, |sample| table[index(sample)]),
            Samples::U16(to) => {
                let step = u16::MAX / T::FULL.value();
                each(samples, to, |sample| {
                    interpolated(table, sample.value() * step)
                });
            }
            Samples::U32(_) | Samples::U64(_) => never_wide!(),
        }
    }
}

impl Verb for Lut {
    const NAME: &'static str = "lut";
    const EXAMPLES: &'static str = "Examples:\n\
\x20 gpuimg lut viridis in.tif out.png              colours for the full range of the type\n\
\x20 gpuimg run 'normalize + lut fire' in/ out/     colours for the range of each image\n\
\x20 gpuimg run 'normalize --range 0:4000 + lut ironbow' in.tif out.png";

    fn operation(self) -> Box<dyn Operation> {
        Box::new(self)
    }

    /// None: it needs grey images (`tests/lut.rs`).
    fn examples() -> Vec<Box<dyn Operation>> {
        Vec::new()
    }
}

impl Operation for Lut {
    fn properties(&self) -> Properties {
        Properties::new(Lut::NAME, Access::Pointwise, Effect::Arithmetic)
    }

    fn output_type(&self, _: Values) -> Values {
        Values {
            depth: Depth::Eight,
            signed: false,
        }
    }

    fn output_channels(&self, _: usize) -> usize {
        3
    }

    fn check_shape(&self, shape: &Shape) -> Result<()> {
        ensure!(
            shape.channels == 1,
            "it is {}, but lut needs grey images (use convert --channel to take one channel)",
            shape.kind()
        );
        Ok(())
    }

    fn diagnose(&self, image: &Image, _: &SampleTypes) -> Diagnostics {
        let largest = with_samples!(image.samples(), samples => {
            index(reduce(samples, Sample::ZERO, largest, Ord::max))
        });
        let warning = "its samples have only the darkest eighth of the colours (use run 'normalize + lut …' to scale them first)";
        Diagnostics {
            warnings: Vec::from_iter((largest < DARK).then(|| warning.into())),
            ..Diagnostics::default()
        }
    }

    fn bind<'a>(&'a self, types: SampleTypes, _: &'a Statistics) -> Result<Box<dyn Bound + 'a>> {
        Ok(Box::new(Colours {
            table: self.palette.table(),
            depth: types.written.depth,
        }))
    }
}

impl Bound for Colours {
    fn naive(&self, image: &Image) -> Result<OpResult> {
        let (shape, table) = (image.shape(), &self.table);
        let values = (0..shape.pixels()).map(|pixel| image.samples().at(pixel));
        let samples: Samples = match self.depth {
            Depth::Eight => {
                let indices = values.map(|value| (value * 256) >> shape.depth.bits());
                let colours = indices.flat_map(|index| table[index as usize]);
                colours.collect::<Vec<u8>>().into()
            }
            _ => {
                // On the scale from 0 to 255, the value is index + part/full.
                let full = u64::from(shape.depth.full());
                let colours = values.flat_map(|value| {
                    let (index, part) = ((value * 255 / full) as usize, value * 255 % full);
                    let (from, to) = (table[index], table[(index + 1).min(255)]);
                    from.into_iter().zip(to).map(move |(from, to)| {
                        let weighted = u64::from(from) * (full - part) + u64::from(to) * part;
                        (257 * weighted / full) as u16
                    })
                });
                colours.collect::<Vec<u16>>().into()
            }
        };
        Ok(OpResult::Image(Image::new(self.output(shape), samples)))
    }

    fn cpu(&self, mut image: Image, timeline: &mut Timeline) -> Result<OpResult> {
        let (from, to) = (image.shape(), self.output(image.shape()));
        let mut colours = image.samples_mut().memory_for_result(&to)?;
        let moved = (from.bytes() + to.bytes()) as u64;
        timeline.host(Lut::NAME, moved, || {
            with_samples!(image.samples(), samples => self.look_up(samples, &mut colours));
        });
        Ok(OpResult::Image(Image::new(to, colours)))
    }

    fn cuda(&self, image: DeviceImage, job: &mut Job) -> Result<OpResult<DeviceImage>> {
        let (from, to) = (image.shape, self.output(image.shape));
        let form = &from.depth.form();
        let table = job.words(self.table.as_flattened())?;
        let mut colours = job.alloc(to.bytes())?;
        let (src, samples, table) = (image.samples.view(), from.pixels() as u64, table.view());
        let grid = u32::try_from(from.pixels().div_ceil(4096))?;
        let moved = (from.bytes() + to.bytes()) as u64;
        let dst = colours.view_mut();
        if self.depth == Depth::Eight {
            let kernel = job.kernel::<launch::Lut>(form)?;
            let arguments = launch::Lut {
                src,
                samples,
                dst,
                table,
            };
            job.launch(&kernel, grid, moved, arguments)?;
        } else {
            let kernel = job.kernel::<launch::Interpolated>(form)?;
            let arguments = launch::Interpolated {
                src,
                samples,
                dst,
                table,
            };
            job.launch(&kernel, grid, moved, arguments)?;
        }
        Ok(OpResult::Image(DeviceImage {
            shape: to,
            samples: colours,
        }))
    }
}

/// The largest of some samples.
fn largest<T: Sample>(samples: &[T]) -> T {
    samples.iter().fold(T::ZERO, |largest, &it| largest.max(it))
}

/// Writes the colour of each sample.
fn each<T: Sample, C: Send>(samples: &[T], to: &mut [C], colour: impl Fn(T) -> [C; 3] + Sync) {
    let (pixels, _) = to.as_chunks_mut::<3>();
    let chunks = pixels.par_chunks_mut(CHUNK).zip(samples.par_chunks(CHUNK));
    chunks.for_each(|(pixels, samples)| {
        for (pixel, &sample) in pixels.iter_mut().zip(samples) {
            *pixel = colour(sample);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host's `sin` may differ in its last bits, which changes a sample only if the product is next to a half.
    #[test]
    fn no_product_of_ironbow_is_near_a_half() {
        for index in 0..256 {
            let blue = 255.0 * (TAU * f64::from(index) / 255.0).sin();
            let from_half = (blue.max(0.0).fract() - 0.5).abs();
            assert!(from_half > 1e-3, "{index}: {blue}");
        }
    }
}
