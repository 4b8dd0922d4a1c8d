//! Normalize: the range of the colour samples is stretched to the full depth, rounded exactly.
//! HABR's two kernels: minimum and maximum in one pass, then the scale with its +0.5 trick.
//!
//! Exact definition, for a sample p of a channel whose range is min..=max with d = max − min:
//! `out = lo + floor((clamp(p, min, max) − min)·(hi − lo) / d + 1/2)`, which in integers is
//! `lo + (x·(hi − lo) + ⌊d/2⌋) / d` and cannot overflow 32 bits (65535² + 32767 < 2³²).
//! The range is the samples' own, two percentiles of theirs (`--clip`), or given.
//! Alpha never counts and never changes. A flat channel (d = 0) is left as it is.

pub(super) mod lanes;

use super::histogram::{Clip, Histogram};
use super::{DeviceImage, Op, Output, Product, with_samples};
use crate::device::Work;
use crate::device::cpu::{self, LANES};
use crate::device::cuda::Arg;
use crate::device::job::Job;
use crate::image::{Depth, Image, Samples, Shape};
use crate::metadata::Effect;
use crate::ops::sum::Sum;
use crate::stats::Timeline;
use anyhow::{Result, ensure};
use lanes::{MinMaxLanes, NO_RANGE, ScaleLanes, fold_ranges, min_max_chunk, scale_all};
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
#[group(skip)]
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

    /// Leave out the darkest LOW and the brightest 100 − HIGH percent when the range is measured, as 0.1:99.9
    #[arg(long, value_name = "LOW:HIGH", conflicts_with = "range")]
    pub clip: Option<Clip>,

    /// Of which pages of a stack the range is measured: of all, so that none flickers, or of each by itself
    #[arg(long, value_name = "SCOPE", default_value = "stack")]
    pub scope: Scope,

    /// The range of a whole set of images, which takes the place of the image's own.
    #[arg(skip)]
    pub set: Option<SetRange>,
}

/// The scopes of `--scope`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Scope {
    /// Each page's own range
    Page,
    /// One range for all pages of the same kind
    #[default]
    Stack,
}

/// The range, or each colour's, of a set of images of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetRange {
    /// Samples a pixel of these images.
    pub channels: usize,
    /// Bits a sample of theirs.
    pub depth: Depth,
    /// One range for all colours, or one for each.
    pub ranges: Ranges,
    /// Whether it was measured in nothing but the image that it is for.
    pub own: bool,
}

/// Options that between them reach every branch, for the shared tests.
pub fn examples() -> [Normalize; 7] {
    let (range, to) = (
        Some(Range { min: 100, max: 201 }),
        Some(Range { min: 7, max: 250 }),
    );
    let clip = Clip::of_percent(5, 90);
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
        Normalize {
            clip: Some(clip),
            ..Default::default()
        },
        Normalize {
            clip: Some(clip),
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
pub type Ranges = Vec<(u16, u16)>;

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

    /// The ranges that need not be measured.
    fn known(&self) -> Option<Ranges> {
        let range = self.range.map(|Range { min, max }| vec![(min, max)]);
        range.or_else(|| Some(self.set.as_ref()?.ranges.clone()))
    }

    /// The words that the kernels take for known ranges: of each channel, min and full − max.
    fn words(&self, shape: &Shape, ranges: &Ranges) -> Vec<u32> {
        let each = (0..4).map(|channel| ranges[channel.min(ranges.len() - 1)]);
        each.flat_map(|(min, max)| [min.into(), (shape.depth.full() - max).into()])
            .collect()
    }

    /// The ranges in the words that the kernels keep.
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
                warnings.push(self.flat(min, scales.len(), ranges.len()));
                Scale::IDENTITY
            });
        }
        // One range serves all colours; alpha has none.
        scales.resize(shape.colours(), scales[0]);
        scales.resize(shape.channels, Scale::IDENTITY);
        (scales, warnings)
    }

    fn flat(&self, value: u16, index: usize, of: usize) -> String {
        let what = if of == 1 {
            "the image".into()
        } else {
            format!("channel {}", index + 1)
        };
        if self.clip.is_some() || self.set.as_ref().is_some_and(|set| !set.own) {
            return format!(
                "the range for {what} is empty (from {value} to {value}), and it is left as it is"
            );
        }
        format!("{what} is flat (every sample is {value}) and is left as it is")
    }
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
        if let Some(set) = &self.set {
            let same = (shape.channels, shape.depth) == (set.channels, set.depth);
            ensure!(
                same,
                "it is {} with {} bits, and the range is that of images of another kind",
                shape.kind(),
                shape.depth.bits()
            );
        }
        Ok(())
    }

    fn scales(&self) -> bool {
        true
    }

    fn effect(&self) -> Effect {
        Effect::Values
    }

    fn measuring(&self) -> Option<Box<dyn Op>> {
        if self.known().is_some() {
            return None;
        }
        // Counting takes longer, and only percentiles need it.
        Some(match self.clip {
            None => Box::new(Sum { all: true }),
            Some(_) => Box::new(Histogram),
        })
    }

    fn shares_pages(&self) -> bool {
        self.scope == Scope::Stack
    }

    fn measured(&self, shape: &Shape, found: &Product<()>) -> Option<Box<dyn Op>> {
        let ranges = match found {
            Product::Totals(totals) if self.per_channel => {
                let colours = totals.channels.iter().take(shape.colours());
                colours.filter_map(|total| total.range).collect()
            }
            Product::Totals(totals) => {
                let colours = totals.channels.iter().take(shape.colours());
                let each = colours.filter_map(|total| total.range);
                vec![each.fold((u16::MAX, 0), |a, b| (a.0.min(b.0), a.1.max(b.1)))]
            }
            Product::Counts(counts) => {
                counts.ranges(self.clip.unwrap_or(Clip::NONE), self.per_channel)
            }
            Product::Image(_) => return None,
        };
        Some(Box::new(Normalize {
            set: Some(SetRange {
                channels: shape.channels,
                depth: shape.depth,
                ranges,
                own: true,
            }),
            ..self.clone()
        }))
    }

    fn names_values(&self) -> bool {
        self.range.is_some() || self.to.is_some()
    }

    fn work(&self, shape: &Shape) -> Work {
        let bytes = shape.bytes() as u64;
        let passes = if self.known().is_some() { 2 } else { 3 };
        let counting = if self.clip.is_some() && self.set.is_none() {
            Histogram.work(shape).touched
        } else {
            0
        };
        Work {
            touched: passes * bytes + counting,
            transferred: 2 * bytes,
            compressed: 0,
        }
    }

    fn naive(&self, image: &Image) -> Output {
        let shape = image.shape();
        let mut values: Vec<u16> = match image.samples() {
            Samples::U8(samples) => samples.iter().map(|&value| value.into()).collect(),
            Samples::U16(samples) => samples.to_vec(),
        };
        // The samples of each range, in order.
        let mut sorted = vec![Vec::new(); self.measured(&shape)];
        for (i, &value) in values.iter().enumerate() {
            let channel = i % shape.channels;
            if channel < shape.colours() {
                sorted[if self.per_channel { channel } else { 0 }].push(value);
            }
        }
        sorted
            .iter_mut()
            .for_each(|samples| samples.sort_unstable());
        let clip = self.clip.unwrap_or(Clip::NONE);
        let measured = sorted.iter().map(|samples| {
            let (low, high) = clip.ranks(samples.len() as u64);
            (samples[low as usize], samples[high as usize])
        });
        let ranges = self.known().unwrap_or_else(|| measured.collect());
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
            ranges,
            warnings,
        }
    }

    fn cpu(&self, mut image: Image, timeline: &mut Timeline) -> Result<Output> {
        let shape = image.shape();
        let bytes = shape.bytes() as u64;
        let ranges = match (self.known(), self.clip) {
            (Some(ranges), _) => ranges,
            (None, Some(clip)) => {
                Histogram::count(&image, timeline).ranges(clip, self.per_channel)
            }
            (None, None) => timeline.host("minmax", bytes, || {
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
            ranges,
            warnings,
        })
    }

    fn cuda(&self, image: DeviceImage, job: &mut Job) -> Result<Output<DeviceImage>> {
        let shape = image.shape;
        let bytes = shape.bytes() as u64;
        let count = Arg::U64(shape.samples() as u64);
        let Range { min: lo, max: hi } = self.target(&shape);
        let form = shape.sample_form();
        let [minmax, scale] = job.kernels("normalize", ["minmax", "scale"], &form)?;
        let known = match (self.known(), self.clip) {
            (None, Some(clip)) => {
                Some(Histogram::count_on_gpu(&image, job)?.ranges(clip, self.per_channel))
            }
            (known, _) => known,
        };
        let words = job.words(&match &known {
            Some(ranges) => self.words(&shape, ranges),
            None => vec![u32::MAX; 8],
        })?;
        let (pixels, ranges) = (Arg::Buffer(&image.samples), Arg::Buffer(&words));
        if known.is_none() {
            let grid = job.reduction_grid(bytes);
            job.launch(&minmax, grid, bytes, &[pixels, count, ranges])?;
        }
        let args = [
            pixels,
            pixels,
            count,
            ranges,
            Arg::U32(self.per_channel.into()),
            Arg::U32(lo.into()),
            Arg::U32(hi.into()),
        ];
        let grid = u32::try_from(bytes.div_ceil(4096))?;
        job.launch(&scale, grid, 2 * bytes, &args)?;
        let ranges = match known {
            Some(ranges) => ranges,
            None => self.told(&shape, &job.read_words(&words)?),
        };
        let (_, warnings) = self.scales(&shape, &ranges);
        Ok(Output {
            product: Product::Image(image),
            ranges,
            warnings,
        })
    }
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
