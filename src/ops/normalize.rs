//! Normalize: the range of the colour samples is stretched to the full depth, rounded exactly.
//! HABR's two kernels: minimum and maximum in one pass, then the scale with its +0.5 trick.
//!
//! Exact definition, for a sample p of a channel whose range is min..=max with d = max − min:
//! `out = lo + floor((clamp(p, min, max) − min)·(hi − lo) / d + 1/2)`, which in integers is
//! `lo + (x·(hi − lo) + ⌊d/2⌋) / d` and cannot overflow 32 bits (65535² + 32767 < 2³²).
//! The range is the samples' own, two percentiles of theirs (`--clip`), or given.
//! Alpha never counts and never changes. A flat channel (d = 0) is left as it is.

pub(super) mod lanes;
pub(super) mod range;
mod scale;

use super::histogram::{Clip, Histogram};
use super::{DeviceImage, Op, Output, Product, with_samples};
use crate::device::Work;
use crate::device::cpu;
use crate::device::cuda::Arg;
use crate::device::job::Job;
use crate::image::{Depth, Image, Samples, Shape, Values};
use crate::metadata::Effect;
use crate::ops::sum::Sum;
use crate::stats::Timeline;
use anyhow::{Result, ensure};
use lanes::{NO_RANGE, ScaleLanes, fold_lanes, fold_ranges, min_max_chunk, scale_all};
pub use range::{Meaning, Range, Ranges, Scope, SetRange};
use scale::Scale;

/// Stretch the range of values to the full depth, exactly rounded
#[derive(clap::Args, Clone, Debug, Default, serde::Serialize)]
#[group(skip)]
pub struct Normalize {
    /// Take this input range instead of the image's own minimum and maximum; values outside are clamped to it. Signed images have signed values
    #[arg(long, value_name = "MIN:MAX", allow_hyphen_values = true)]
    pub range: Option<Range>,

    /// Stretch to this output range instead of the whole depth (0:65535, or 0:255 for 8 bits; -32768:32767, or -128:127 for signed ones)
    #[arg(long, value_name = "LO:HI", allow_hyphen_values = true)]
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

    /// What the samples stand for; without it they are just numbers from 0.
    #[arg(skip)]
    #[serde(skip)]
    pub meaning: Option<Meaning>,
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

impl Normalize {
    /// How many ranges are measured.
    fn measured(&self, shape: &Shape) -> usize {
        if self.per_channel { shape.colours() } else { 1 }
    }

    fn meaning(&self, shape: &Shape) -> Meaning {
        self.meaning.unwrap_or(Meaning::plain(shape))
    }

    /// The samples that ranges are stretched to.
    fn target(&self, shape: &Shape) -> (u16, u16) {
        let written = self.meaning(shape).written;
        let whole = (0, written.depth.full());
        self.to.map_or(whole, |to| to.samples(written))
    }

    /// Whether the ranges need not be measured.
    fn knows(&self) -> bool {
        self.range.is_some() || self.set.is_some()
    }

    /// The ranges that need not be measured.
    fn known(&self, shape: &Shape) -> Option<Ranges> {
        let meaning = self.meaning(shape);
        let given = self.range.map(|range| {
            let samples = vec![range.samples(meaning.read)];
            (samples, meaning.read)
        });
        let set = self.set.as_ref();
        let (ranges, of) = given.or_else(|| set.map(|set| (set.ranges.clone(), set.values)))?;
        let step = of.depth.steps(shape.depth);
        let widened = ranges
            .into_iter()
            .map(|(min, max)| (min * step, max * step));
        Some(widened.collect())
    }

    /// The words that the kernels take for known ranges: of each channel, min and full − max.
    fn words(&self, shape: &Shape, ranges: &Ranges) -> Vec<u32> {
        let each = (0..4).map(|channel| ranges[channel.min(ranges.len() - 1)]);
        each.flat_map(|(min, max)| [min.into(), (shape.depth.full() - max).into()])
            .collect()
    }

    /// The ranges in the words that the kernels keep.
    fn found(&self, shape: &Shape, words: &[u32]) -> Ranges {
        let colours = words.chunks_exact(2).take(shape.colours());
        let each = colours.map(|pair| (pair[0] as u16, shape.depth.full() - pair[1] as u16));
        range::joined(each, self.per_channel)
    }

    /// The scale of every channel, and a warning where a range is flat.
    fn scales(&self, shape: &Shape, ranges: &Ranges) -> (Vec<Scale>, Vec<String>) {
        let (lo, hi) = self.target(shape);
        let mut warnings = Vec::new();
        let mut scales = Vec::new();
        for &(min, max) in ranges {
            scales.push(if min < max {
                Scale { min, max, lo, hi }
            } else {
                let value = self.meaning(shape).told(min, shape.depth);
                warnings.push(self.flat(value, scales.len(), ranges.len()));
                Scale::IDENTITY
            });
        }
        // One range serves all colours; alpha has none.
        scales.resize(shape.colours(), scales[0]);
        scales.resize(shape.channels, Scale::IDENTITY);
        (scales, warnings)
    }

    fn flat(&self, value: i32, index: usize, of: usize) -> String {
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

    /// The result, and what is told of it: ranges in the values of the file that was read.
    fn output<I>(
        &self,
        image: I,
        shape: &Shape,
        ranges: &Ranges,
        warnings: Vec<String>,
    ) -> Output<I> {
        let meaning = self.meaning(shape);
        let told = |sample| meaning.told(sample, shape.depth);
        Output {
            product: Product::Image(image),
            ranges: ranges.iter().map(|&(a, b)| (told(a), told(b))).collect(),
            warnings,
        }
    }
}

impl Op for Normalize {
    fn name(&self) -> &'static str {
        "normalize"
    }

    fn check(&self, shape: &Shape) -> Result<()> {
        if let Some(set) = &self.set {
            let same = (shape.channels, shape.depth) == (set.channels, set.values.depth);
            ensure!(
                same,
                "it is {} with {} bits, and the range is that of images of another kind",
                shape.kind(),
                shape.depth.bits()
            );
        }
        Ok(())
    }

    fn effect(&self) -> Effect {
        Effect::Values
    }

    fn measuring(&self) -> Option<Box<dyn Op>> {
        if self.knows() {
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
            Product::Totals(totals) => totals.ranges(self.per_channel),
            Product::Counts(counts) => {
                counts.ranges(self.clip.unwrap_or(Clip::NONE), self.per_channel)
            }
            Product::Image(_) => return None,
        };
        Some(Box::new(Normalize {
            set: Some(SetRange {
                channels: shape.channels,
                values: Values {
                    depth: shape.depth,
                    signed: self.meaning(shape).read.signed,
                },
                ranges,
                own: true,
            }),
            ..self.clone()
        }))
    }

    fn with_meaning(&self, meaning: Meaning) -> Result<Option<Box<dyn Op>>> {
        let Meaning { read, written } = meaning;
        self.range.map_or(Ok(()), |it| it.fits("--range", read))?;
        self.to.map_or(Ok(()), |it| it.fits("--to", written))?;
        if let Some(set) = self.set.as_ref().filter(|set| !set.own) {
            ensure!(
                set.values == read,
                "it has {read}, and the range is that of images of {}",
                set.values
            );
        }
        Ok(Some(Box::new(Normalize {
            meaning: Some(meaning),
            ..self.clone()
        })))
    }

    fn work(&self, shape: &Shape) -> Work {
        let bytes = shape.bytes() as u64;
        let passes = if self.knows() { 2 } else { 3 };
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
        let ranges = self.known(&shape).unwrap_or_else(|| measured.collect());
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
        self.output(Image::new(shape, samples), &shape, &ranges, warnings)
    }

    fn cpu(&self, mut image: Image, timeline: &mut Timeline) -> Result<Output> {
        let shape = image.shape();
        let bytes = shape.bytes() as u64;
        let ranges = match (self.known(&shape), self.clip) {
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
        Ok(self.output(image, &shape, &ranges, warnings))
    }

    fn cuda(&self, image: DeviceImage, job: &mut Job) -> Result<Output<DeviceImage>> {
        let shape = image.shape;
        let bytes = shape.bytes() as u64;
        let count = Arg::U64(shape.samples() as u64);
        let (lo, hi) = self.target(&shape);
        let form = shape.sample_form();
        let [minmax, scale] = job.kernels("normalize", ["minmax", "scale"], &form)?;
        let known = match (self.known(&shape), self.clip) {
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
            // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
            unsafe { job.launch(&minmax, grid, bytes, &[pixels, count, ranges]) }?;
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
        // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
        unsafe { job.launch(&scale, grid, 2 * bytes, &args) }?;
        let ranges = match known {
            Some(ranges) => ranges,
            None => self.found(&shape, &job.read_words(&words)?),
        };
        let (_, warnings) = self.scales(&shape, &ranges);
        Ok(self.output(image, &shape, &ranges, warnings))
    }
}
