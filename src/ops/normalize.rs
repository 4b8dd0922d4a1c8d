//! Normalize: the range of the colour samples is stretched to the full depth, rounded exactly.
//! HABR's two kernels: minimum and maximum in one pass, then the scale with its +0.5 trick.
//!
//! Exact definition, for a sample p of a channel whose range is min..=max with d = max − min:
//! `out = lo + floor((clamp(p, min, max) − min)·(hi − lo) / d + 1/2)`, which in integers is
//! `lo + (x·(hi − lo) + ⌊d/2⌋) / d` and cannot overflow 32 bits (65535² + 32767 < 2³²).
//! Alpha never counts and never changes. A flat channel (d = 0) is left as it is.

use super::{Op, Output, Product, with_samples};
use crate::device::Work;
use crate::device::cpu::{self, LANES, Sample};
use crate::device::cuda::{Arg, Gpu};
use crate::image::{Depth, Image, Samples, Shape};
use crate::stats::Timeline;
use anyhow::{Result, ensure};
use std::str::FromStr;

/// A range of sample values, `MIN:MAX` with MIN below MAX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The smallest value.
    pub min: u16,
    /// The largest value.
    pub max: u16,
}

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Range, String> {
        let (min, max) = text
            .split_once(':')
            .ok_or("expected two values with a colon between, as 0:4095")?;
        let value = |text: &str| {
            text.trim()
                .parse::<u16>()
                .map_err(|_| format!("'{text}' is not a whole number from 0 to 65535"))
        };
        let range = Range {
            min: value(min)?,
            max: value(max)?,
        };
        if range.min < range.max {
            Ok(range)
        } else {
            Err("the first value must be below the second".into())
        }
    }
}

/// Stretch the range of values to the full depth, exactly rounded
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Normalize {
    /// Take this input range instead of the image's own minimum and maximum; values outside are clamped to it
    #[arg(long, value_name = "MIN:MAX")]
    pub range: Option<Range>,

    /// Stretch to this output range instead of the whole depth (0:65535, or 0:255 for 8 bits)
    #[arg(long, value_name = "LO:HI")]
    pub to: Option<Range>,

    /// Measure and stretch each colour channel by itself
    #[arg(long, conflicts_with = "range")]
    pub per_channel: bool,
}

/// Options that between them reach every branch, for the shared tests.
pub fn examples() -> [Normalize; 5] {
    let (range, to) = (
        Some(Range { min: 100, max: 201 }),
        Some(Range { min: 7, max: 250 }),
    );
    [
        Normalize::default(),
        Normalize {
            range,
            ..Default::default()
        },
        Normalize {
            to,
            ..Default::default()
        },
        Normalize {
            per_channel: true,
            ..Default::default()
        },
        Normalize {
            to,
            per_channel: true,
            ..Default::default()
        },
    ]
}

/// How the values of one channel are scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    from: Range,
    to: Range,
}

impl Scale {
    /// Changes nothing: 65535 steps to 65535 steps.
    const IDENTITY: Scale = {
        let all = Range {
            min: 0,
            max: u16::MAX,
        };
        Scale { from: all, to: all }
    };

    /// The definition, in exact integers.
    fn exact(&self, value: u16) -> u16 {
        let x = u32::from(value.clamp(self.from.min, self.from.max) - self.from.min);
        let d = u32::from(self.from.max - self.from.min);
        let span = u32::from(self.to.max - self.to.min);
        self.to.min + ((x * span + d / 2) / d) as u16
    }
}

/// Minimum and maximum of each channel that has a range of its own: one range for all colours, or
/// one for each. `min > max` cannot be: every channel has a sample.
type Ranges = Vec<(u16, u16)>;

impl Normalize {
    /// How many ranges are measured.
    fn measured(&self, shape: &Shape) -> usize {
        if self.per_channel { shape.colours() } else { 1 }
    }

    fn target(&self, shape: &Shape) -> Range {
        self.to.unwrap_or(Range {
            min: 0,
            max: shape.depth.full(),
        })
    }

    /// The ranges in the words that the kernels keep: of each channel, min and full − max.
    fn told(&self, shape: &Shape, words: &[u32]) -> Ranges {
        let colours = words.chunks_exact(2).take(shape.colours());
        let each = colours.map(|pair| (pair[0] as u16, shape.depth.full() - pair[1] as u16));
        if self.per_channel {
            each.collect()
        } else {
            vec![each.fold((u16::MAX, 0), |a, b| (a.0.min(b.0), a.1.max(b.1)))]
        }
    }

    /// The scale of every channel, and a warning where a range is flat.
    fn scales(&self, shape: &Shape, ranges: &Ranges) -> (Vec<Scale>, Vec<String>) {
        let mut warnings = Vec::new();
        let mut scales = Vec::new();
        for &(min, max) in ranges {
            scales.push(if min < max {
                Scale {
                    from: Range { min, max },
                    to: self.target(shape),
                }
            } else {
                warnings.push(flat(min, scales.len(), ranges.len()));
                Scale::IDENTITY
            });
        }
        // One range serves all colours; alpha has none.
        scales.resize(shape.colours(), scales[0]);
        scales.resize(shape.channels, Scale::IDENTITY);
        (scales, warnings)
    }
}

fn flat(value: u16, index: usize, of: usize) -> String {
    let what = if of == 1 {
        "the image".into()
    } else {
        format!("channel {}", index + 1)
    };
    format!("{what} is flat (every sample is {value}) and is left as it is")
}

impl Op for Normalize {
    fn name(&self) -> &'static str {
        "normalize"
    }

    fn check(&self, shape: &Shape) -> Result<()> {
        let full = shape.depth.full();
        for (option, range) in [("--range", self.range), ("--to", self.to)] {
            if let Some(Range { min, max }) = range {
                ensure!(
                    max <= full,
                    "{option} {min}:{max} goes beyond {full}, the largest value of {} bits",
                    shape.depth.bits()
                );
            }
        }
        Ok(())
    }

    fn scales(&self) -> bool {
        true
    }

    fn work(&self, shape: &Shape) -> Work {
        let bytes = shape.bytes() as u64;
        let passes = if self.range.is_some() { 2 } else { 3 };
        Work {
            touched: passes * bytes,
            transferred: 2 * bytes,
        }
    }

    fn naive(&self, image: &Image) -> Output {
        let shape = image.shape();
        let mut values: Vec<u16> = match image.samples() {
            Samples::U8(samples) => samples.iter().map(|&value| value.into()).collect(),
            Samples::U16(samples) => samples.to_vec(),
        };
        let mut ranges = vec![(u16::MAX, 0); self.measured(&shape)];
        for (i, &value) in values.iter().enumerate() {
            let channel = i % shape.channels;
            if channel < shape.colours() {
                let range = &mut ranges[if self.per_channel { channel } else { 0 }];
                *range = (range.0.min(value), range.1.max(value));
            }
        }
        if let Some(Range { min, max }) = self.range {
            ranges = vec![(min, max)];
        }
        let (scales, warnings) = self.scales(&shape, &ranges);
        for (i, value) in values.iter_mut().enumerate() {
            *value = scales[i % shape.channels].exact(*value);
        }
        let samples = match shape.depth {
            Depth::Eight => values
                .iter()
                .map(|&value| value as u8)
                .collect::<Vec<u8>>()
                .into(),
            Depth::Sixteen => values.into(),
        };
        Output {
            product: Product::Image(Image::new(shape, samples)),
            warnings,
        }
    }

    fn cpu(&self, mut image: Image, timeline: &mut Timeline) -> Result<Output> {
        let shape = image.shape();
        let bytes = shape.bytes() as u64;
        let ranges = match self.range {
            Some(Range { min, max }) => vec![(min, max)],
            None => timeline.host("minmax", bytes, || {
                let lanes = with_samples!(image.samples(), samples => cpu::reduce(samples, NO_RANGE, min_max_chunk, fold_ranges));
                fold_lanes(&lanes, &shape, self.per_channel)
            }),
        };
        let (scales, warnings) = self.scales(&shape, &ranges);
        if scales.iter().any(|&scale| scale != Scale::IDENTITY) {
            let lanes = ScaleLanes::new(&scales);
            timeline.host("scale", 2 * bytes, || {
                with_samples!(image.samples_mut(), samples => scale_all(samples, &lanes));
            });
        }
        Ok(Output {
            product: Product::Image(image),
            warnings,
        })
    }

    fn cuda(&self, mut image: Image, gpu: &Gpu, timeline: &mut Timeline) -> Result<Output> {
        let shape = image.shape();
        let bytes = shape.bytes() as u64;
        let count = Arg::U64(shape.samples() as u64);
        let Range { min: lo, max: hi } = self.target(&shape);
        let (minmax, scale) = timeline.host("load kernels", 0, || {
            let kernel = |name| gpu.kernel("normalize", name, &shape.sample_form());
            anyhow::Ok((kernel("minmax")?, kernel("scale")?))
        })?;
        // Of each channel: its minimum, and the full value less its maximum.
        let ranges = match self.range {
            Some(Range { min, max }) => [min.into(), (shape.depth.full() - max).into()].repeat(4),
            None => vec![u32::MAX; 8],
        };
        let ranges = gpu.words(&ranges)?;
        let words = gpu.job(image.samples_mut().as_bytes_mut(), timeline, |job| {
            let samples = job.upload()?;
            let (pixels, words) = (Arg::Buffer(&samples), Arg::Buffer(&ranges));
            if self.range.is_none() {
                job.launch(
                    &minmax,
                    gpu.reduction_grid(bytes),
                    bytes,
                    &[pixels, count, words],
                )?;
            }
            let per_channel = Arg::U32(self.per_channel.into());
            let args = [
                pixels,
                pixels,
                count,
                words,
                per_channel,
                Arg::U32(lo.into()),
                Arg::U32(hi.into()),
            ];
            job.launch(
                &scale,
                u32::try_from(bytes.div_ceil(4096))?,
                2 * bytes,
                &args,
            )?;
            job.download(&samples)?;
            job.read_words(&ranges)
        })?;
        let (_, warnings) = self.scales(&shape, &self.told(&shape, &words));
        Ok(Output {
            product: Product::Image(image),
            warnings,
        })
    }
}

/// Minimum and maximum of each lane: of the samples whose index leaves the same remainder.
pub(super) type MinMaxLanes = ([u16; LANES], [u16; LANES]);

/// The range of no sample at all.
pub(super) const NO_RANGE: MinMaxLanes = ([u16::MAX; LANES], [0; LANES]);

/// The range of two sets of samples together.
pub(super) fn fold_ranges(mut a: MinMaxLanes, b: MinMaxLanes) -> MinMaxLanes {
    for lane in 0..LANES {
        a.0[lane] = a.0[lane].min(b.0[lane]);
        a.1[lane] = a.1[lane].max(b.1[lane]);
    }
    a
}

#[multiversion::multiversion(targets("x86_64+avx512f+avx512bw+avx512vl", "x86_64+avx2"))]
pub(super) fn min_max_chunk<T: Sample>(samples: &[T]) -> MinMaxLanes {
    let mut min = [T::FULL; LANES];
    let mut max = [T::ZERO; LANES];
    let blocks = samples.chunks_exact(LANES);
    for (lane, &value) in blocks.remainder().iter().enumerate() {
        min[lane] = value;
        max[lane] = value;
    }
    for block in blocks {
        for lane in 0..LANES {
            min[lane] = min[lane].min(block[lane]);
            max[lane] = max[lane].max(block[lane]);
        }
    }
    (min.map(Sample::value), max.map(Sample::value))
}

fn fold_lanes(lanes: &MinMaxLanes, shape: &Shape, per_channel: bool) -> Ranges {
    let mut ranges = vec![(u16::MAX, 0); if per_channel { shape.colours() } else { 1 }];
    for lane in 0..LANES {
        let channel = lane % shape.channels;
        if channel < shape.colours() {
            let range = &mut ranges[if per_channel { channel } else { 0 }];
            *range = (range.0.min(lanes.0[lane]), range.1.max(lanes.1[lane]));
        }
    }
    ranges
}

/// The constants of each lane's scale, laid out for vector instructions.
struct ScaleLanes {
    min: [u16; LANES],
    max: [u16; LANES],
    d: [u32; LANES],
    half: [u32; LANES],
    span: [u32; LANES],
    lo: [u32; LANES],
    factor: [f32; LANES],
    uniform: bool,
}

impl ScaleLanes {
    fn new(scales: &[Scale]) -> ScaleLanes {
        let lane = |lane: usize| scales[lane % scales.len()];
        let lanes = std::array::from_fn::<Scale, LANES, _>(lane);
        let d = lanes.map(|scale| u32::from(scale.from.max - scale.from.min));
        let span = lanes.map(|scale| u32::from(scale.to.max - scale.to.min));
        ScaleLanes {
            min: lanes.map(|scale| scale.from.min),
            max: lanes.map(|scale| scale.from.max),
            d,
            half: d.map(|d| d / 2),
            span,
            lo: lanes.map(|scale| scale.to.min.into()),
            factor: std::array::from_fn(|lane| {
                (f64::from(span[lane]) / f64::from(d[lane]) * (1.0 - 1.0 / (1 << 20) as f64)) as f32
            }),
            uniform: scales.iter().all(|scale| *scale == scales[0]),
        }
    }

    /// `Scale::exact` without a division: an estimate in f32 that is right or one too small, then
    /// the integer remainder says which. The factor is 2⁻²⁰ too small, more than the three
    /// roundings of 2⁻²⁴ can make up for and, at 65535, less than 1/8 of a step; adding 2²³ rounds
    /// to the nearest integer and leaves it in the low bits of the float.
    #[inline(always)]
    fn apply<T: Sample>(&self, value: T, lane: usize) -> T {
        const SHIFT: f32 = (1 << 23) as f32;
        let clamped = value.value().clamp(self.min[lane], self.max[lane]);
        let x = u32::from(clamped - self.min[lane]);
        let estimate = (x as i32 as f32 * self.factor[lane] + SHIFT)
            .to_bits()
            .wrapping_sub(SHIFT.to_bits());
        let numerator = x
            .wrapping_mul(self.span[lane])
            .wrapping_add(self.half[lane]);
        let remainder = numerator.wrapping_sub(estimate.wrapping_mul(self.d[lane]));
        T::from_value((self.lo[lane] + estimate + u32::from(remainder >= self.d[lane])) as u16)
    }
}

fn scale_all<T: Sample>(samples: &mut [T], lanes: &ScaleLanes) {
    cpu::for_each_chunk(samples, |chunk| {
        if lanes.uniform {
            scale_uniform(chunk, lanes)
        } else {
            scale_chunk(chunk, lanes)
        }
    });
}

#[multiversion::multiversion(targets("x86_64+avx512f+avx512bw+avx512vl+avx512dq", "x86_64+avx2"))]
fn scale_uniform<T: Sample>(samples: &mut [T], lanes: &ScaleLanes) {
    for value in samples {
        *value = lanes.apply(*value, 0);
    }
}

#[multiversion::multiversion(targets("x86_64+avx512f+avx512bw+avx512vl+avx512dq", "x86_64+avx2"))]
fn scale_chunk<T: Sample>(samples: &mut [T], lanes: &ScaleLanes) {
    for block in samples.chunks_mut(LANES) {
        for (lane, value) in block.iter_mut().enumerate() {
            *value = lanes.apply(*value, lane);
        }
    }
}
