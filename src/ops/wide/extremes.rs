//! The smallest and the largest finite sample of each channel, and how many samples are no finite
//! numbers.

use super::select::{self, Channels, Half};
use super::{LANES, check_odd, double, is_odd, samples};
use crate::image::simd::per_level;
use crate::image::{Depth, Image, Shape, Values};
use crate::ops::cpu;
use crate::ops::histogram::Clip;
use crate::timing::Timeline;
use anyhow::{Result, ensure};
use std::convert::Infallible;
use std::ops::Range;

/// Two samples of each channel that has a range of its own, or of all colours: the smallest and the
/// largest finite ones, or those at two percentiles. `min > max` where none is finite.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extremes {
    /// (min, max), as samples in memory.
    pub ranges: Vec<(u64, u64)>,
    /// How many samples are NaN or infinite, alpha included.
    pub odd: u64,
    /// Whether the ranges are percentiles, which cannot be joined.
    pub percentiles: bool,
    /// Of each range between percentiles that were one sample, though there are others.
    pub collapsed: Vec<Option<Collapsed>>,
}

/// The sample that both percentiles were, and the smallest and the largest one, which are then the range.
pub type Collapsed = (u64, u64, u64);

/// The range of no sample.
const NONE: (u64, u64) = (u64::MAX, 0);

fn merge_ranges(a: (u64, u64), b: (u64, u64)) -> (u64, u64) {
    (a.0.min(b.0), a.1.max(b.1))
}

/// Whether two percentiles are one value; sign does not matter for that.
fn collapses(depth: Depth, clipped: Option<(u64, u64)>) -> bool {
    let values = Values {
        depth,
        signed: false,
    };
    clipped.is_some_and(|range| is_flat(values, range))
}

/// The range between percentiles, or the `whole` one from the smallest to the largest sample where the
/// percentiles are one value and those are not; then with the percentiles and these extremes.
fn uncollapsed(
    depth: Depth,
    clipped: Option<(u64, u64)>,
    whole: impl FnOnce() -> Option<(u64, u64)>,
) -> ((u64, u64), Option<Collapsed>) {
    let collapsed = clipped.filter(|_| collapses(depth, clipped));
    let whole = collapsed.and_then(|_| whole());
    match collapsed.zip(whole.filter(|_| !collapses(depth, whole))) {
        Some(((at, _), (min, max))) => ((min, max), Some((at, min, max))),
        None => (clipped.unwrap_or(NONE), None),
    }
}

impl Extremes {
    /// The definition: of each channel, alpha included.
    pub fn naive(image: &Image) -> Extremes {
        let shape = image.shape();
        if let Ok(samples) = double::samples(image) {
            let (ranges, odd) = double::extremes_naively(samples, shape.channels);
            return double::extremes_from_ranges(ranges, odd);
        }
        let (mut ranges, mut odd) = (vec![NONE; shape.channels], 0);
        for (i, &sample) in samples(image).unwrap_or_default().iter().enumerate() {
            let range = &mut ranges[i % shape.channels];
            if is_odd(shape.depth, sample) {
                odd += 1
            } else {
                *range = merge_ranges(*range, (sample.into(), sample.into()))
            }
        }
        Extremes {
            ranges,
            odd,
            percentiles: false,
            collapsed: Vec::new(),
        }
    }

    /// The same on all cores.
    pub fn cpu(image: &Image, timeline: &mut Timeline) -> Extremes {
        let shape = image.shape();
        if let Ok(samples) = double::samples(image) {
            let (ranges, odd) = timeline.host("minmax", shape.bytes() as u64, || {
                double::extremes(samples, shape.channels)
            });
            return double::extremes_from_ranges(ranges, odd);
        }
        let samples = samples(image).unwrap_or_default();
        let nothing = Lanes {
            min: [u32::MAX; LANES],
            max: [0; LANES],
            odd: 0,
        };
        let lanes = timeline.host("minmax", shape.bytes() as u64, || {
            cpu::reduce(samples, nothing, |chunk| extremes(chunk, shape.depth), fold)
        });
        let mut ranges = vec![NONE; shape.channels];
        for lane in 0..LANES {
            let range = &mut ranges[lane % shape.channels];
            *range = merge_ranges(*range, (lanes.min[lane].into(), lanes.max[lane].into()));
        }
        Extremes {
            ranges,
            odd: lanes.odd,
            percentiles: false,
            collapsed: Vec::new(),
        }
    }

    /// The finite samples at the percentiles of `clip`, of each colour channel or of all together, by
    /// the definition: sorted.
    pub fn percentiles_naively(image: &Image, clip: Clip, per_channel: bool) -> Extremes {
        let shape = image.shape();
        if let Ok(samples) = double::samples(image) {
            return Extremes::between_doubles(
                &shape,
                per_channel,
                |channels, clip| {
                    double::percentiles_naively(samples, shape.channels, channels, clip)
                },
                clip,
            )
            .with_odd(Extremes::naive(image).odd);
        }
        let samples = samples(image).unwrap_or_default();
        let mut each = vec![Vec::new(); if per_channel { shape.colours() } else { 1 }];
        for (i, &sample) in samples.iter().enumerate() {
            let channel = i % shape.channels;
            if channel < shape.colours() && !is_odd(shape.depth, sample) {
                each[if per_channel { channel } else { 0 }].push(sample);
            }
        }
        let found = each.into_iter().map(|mut samples| {
            samples.sort_unstable();
            let between = |clip: Clip| {
                let (low, high) = clip.ranks(samples.len() as u64);
                let at = |rank: u64| samples.get(rank as usize).map(|&sample| sample.into());
                at(low).zip(at(high))
            };
            uncollapsed(shape.depth, between(clip), || between(Clip::NONE))
        });
        let (ranges, collapsed) = found.unzip();
        Extremes {
            ranges,
            odd: Extremes::naive(image).odd,
            percentiles: true,
            collapsed,
        }
    }

    /// The same on all cores.
    pub fn percentiles(
        image: &Image,
        clip: Clip,
        per_channel: bool,
        timeline: &mut Timeline,
    ) -> Extremes {
        let shape = image.shape();
        if let Ok(samples) = double::samples(image) {
            return timeline.host("select", 8 * shape.bytes() as u64, || {
                let (_, odd) = double::extremes(samples, shape.channels);
                Extremes::between_doubles(
                    &shape,
                    per_channel,
                    |channels, clip| double::percentiles(samples, shape.channels, channels, clip),
                    clip,
                )
                .with_odd(odd)
            });
        }
        let samples = samples(image).unwrap_or_default();
        let counts = |channels, half| -> Result<_, Infallible> {
            Ok(select::counts(samples, shape.depth, channels, half))
        };
        let Ok(found) = timeline.host("select", 2 * shape.bytes() as u64, || {
            Extremes::selected(&shape, clip, per_channel, counts)
        });
        found
    }

    /// The percentiles of samples of 64 bits, which `between` finds of some channels.
    fn between_doubles(
        shape: &Shape,
        per_channel: bool,
        between: impl Fn(Range<usize>, Clip) -> Option<(u64, u64)>,
        clip: Clip,
    ) -> Extremes {
        let colours = shape.colours();
        let width = if per_channel { 1 } else { colours };
        let found = (0..colours).step_by(width).map(|first| {
            let between = |clip| between(first..first + width, clip);
            uncollapsed(shape.depth, between(clip), || between(Clip::NONE))
        });
        let (ranges, collapsed) = found.unzip();
        Extremes {
            ranges,
            odd: 0,
            percentiles: true,
            collapsed,
        }
    }

    /// These, with a count of samples that are no finite numbers.
    fn with_odd(self, odd: u64) -> Extremes {
        Extremes { odd, ..self }
    }

    /// The same of an image of this shape whose samples `counts` counts.
    ///
    /// # Errors
    /// Those of `counts`.
    pub(super) fn selected<E>(
        shape: &Shape,
        clip: Clip,
        per_channel: bool,
        mut counts: impl FnMut(Channels, Half) -> Result<Vec<u64>, E>,
    ) -> Result<Extremes, E> {
        let channels = |first, count| Channels {
            all: shape.channels,
            first,
            count,
        };
        let mut found = Extremes {
            odd: shape.samples() as u64,
            percentiles: true,
            ..Extremes::default()
        };
        let ranges = if per_channel {
            (0..shape.colours()).map(|c| channels(c, 1)).collect()
        } else {
            vec![channels(0, shape.colours())]
        };
        for channels in ranges {
            let upper = counts(channels, Half::Upper)?;
            found.odd -= upper.iter().sum::<u64>();
            let mut between = |clip| {
                let found = select::between(&upper, clip, |half| counts(channels, half))?;
                Ok(found.map(|(low, high)| (low.into(), high.into())))
            };
            let clipped = between(clip)?;
            let whole = if collapses(shape.depth, clipped) {
                between(Clip::NONE)?
            } else {
                None
            };
            let (range, collapsed) = uncollapsed(shape.depth, clipped, || whole);
            found.ranges.push(range);
            found.collapsed.push(collapsed);
        }
        if shape.has_alpha() {
            let alpha = counts(channels(shape.colours(), 1), Half::Upper)?;
            found.odd -= alpha.iter().sum::<u64>();
        }
        Ok(found)
    }

    /// Joins those of another page of the same kind.
    ///
    /// # Errors
    /// Percentiles, which cannot be joined.
    pub fn join(&mut self, more: &Extremes) -> Result<()> {
        ensure!(
            !self.percentiles && !more.percentiles,
            "percentiles of 32-bit samples are supported only for each page separately (use --scope page)"
        );
        for (known, more) in self.ranges.iter_mut().zip(&more.ranges) {
            *known = merge_ranges(*known, *more);
        }
        self.odd += more.odd;
        Ok(())
    }

    /// The ranges of the colour channels: one for each, or one for all.
    ///
    /// # Errors
    /// Samples that are no finite numbers, where nothing stands for them (`only`, a sample).
    pub fn ranges(
        &self,
        colours: usize,
        per_channel: bool,
        only: Option<u64>,
    ) -> Result<Vec<(u64, u64)>> {
        check_odd(self.odd, only.map(|_| 0.0))?;
        let each = self.ranges.iter().take(colours).copied();
        let ranges: Vec<(u64, u64)> = if per_channel || self.percentiles {
            each.collect()
        } else {
            vec![each.fold(NONE, merge_ranges)]
        };
        // Where no sample is a number, all are what stands for them.
        let only = only.unwrap_or(NONE.0);
        let some = |(min, max)| if min > max { (only, only) } else { (min, max) };
        Ok(ranges.into_iter().map(some).collect())
    }
}

/// Whether two samples are the same value: −0 is 0.
pub(super) fn is_flat(values: Values, (min, max): (u64, u64)) -> bool {
    values.number(min) == values.number(max)
}

/// Minimum and maximum of the finite samples of each lane.
#[derive(Clone, Copy)]
struct Lanes {
    min: [u32; LANES],
    max: [u32; LANES],
    odd: u64,
}

fn fold(mut a: Lanes, b: Lanes) -> Lanes {
    for lane in 0..LANES {
        a.min[lane] = a.min[lane].min(b.min[lane]);
        a.max[lane] = a.max[lane].max(b.max[lane]);
    }
    a.odd += b.odd;
    a
}

/// The extremes of a chunk. Keys of numbers that are not finite are the lowest and the highest, so the
/// extremes of all samples show whether there are any; then the chunk is inspected once more.
fn extremes(chunk: &[u32], depth: Depth) -> Lanes {
    let all = all_lanes(chunk);
    let (min, max) = (all.min.iter().min(), all.max.iter().max());
    let mut extremes = min.into_iter().chain(max);
    // A lane without a sample has an empty range.
    if extremes.any(|&sample| is_odd(depth, sample)) {
        finite_lanes(chunk, depth)
    } else {
        all
    }
}

per_level! {
    highest Avx512;

    fn all_lanes(chunk: &[u32]) -> Lanes {
        let (mut min, mut max) = ([u32::MAX; LANES], [0; LANES]);
        let (blocks, rest) = chunk.as_chunks::<LANES>();
        for (lane, &sample) in rest.iter().enumerate() {
            (min[lane], max[lane]) = (sample, sample);
        }
        for block in blocks {
            for lane in 0..LANES {
                min[lane] = min[lane].min(block[lane]);
                max[lane] = max[lane].max(block[lane]);
            }
        }
        Lanes { min, max, odd: 0 }
    }
}

fn finite_lanes(chunk: &[u32], depth: Depth) -> Lanes {
    let mut lanes = Lanes {
        min: [u32::MAX; LANES],
        max: [0; LANES],
        odd: 0,
    };
    for block in chunk.chunks(LANES) {
        for (lane, &sample) in block.iter().enumerate() {
            if is_odd(depth, sample) {
                lanes.odd += 1
            } else {
                lanes.min[lane] = lanes.min[lane].min(sample);
                lanes.max[lane] = lanes.max[lane].max(sample);
            }
        }
    }
    lanes
}
