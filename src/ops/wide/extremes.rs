//! The smallest and the largest finite sample of each channel, and how many samples are not finite.

use super::lanes::FiniteLanes;
use super::select::{self, Channels, Half};
use super::{LANES, check_finite, double, is_nonfinite, samples};
use crate::image::simd::per_level;
use crate::image::{Depth, Image, Shape, Values};
use crate::ops::clip::Clip;
use crate::ops::cpu;
use crate::ops::min_max::{MinMax, MinMaxLanes, Unsigned};
use crate::timing::Timeline;
use anyhow::{Result, ensure};
use std::convert::Infallible;
use std::ops::Range;

/// Two samples of each channel that has a range of its own, or of all colours: the smallest and the largest finite ones, or
/// those at two percentiles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extremes {
    /// As samples in memory. There is no sample where none is finite.
    pub ranges: Vec<MinMax<u64>>,
    /// How many samples are NaN or infinite, alpha included.
    pub nonfinite: u64,
    /// Whether the ranges are percentiles, which cannot be merged.
    pub percentiles: bool,
    /// For each range whose percentiles are one sample, although there are others.
    pub collapsed: Vec<Option<Collapsed>>,
}

/// Two percentiles that are the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collapsed {
    /// The sample at both percentiles.
    pub percentile: u64,
    /// The smallest and the largest sample, which become the range.
    pub whole: MinMax<u64>,
}

/// Whether two percentiles are one value; sign does not matter for that.
fn collapses(depth: Depth, clipped: Option<MinMax<u64>>) -> bool {
    let values = Values {
        depth,
        signed: false,
    };
    clipped.is_some_and(|range| is_flat(values, range))
}

/// The range between percentiles. If both percentiles are the same value, although the samples are not all equal, it is the
/// `whole` range from the smallest to the largest sample, and the second result has the percentile and this range.
fn uncollapsed(
    depth: Depth,
    clipped: Option<MinMax<u64>>,
    whole: impl FnOnce() -> Option<MinMax<u64>>,
) -> (MinMax<u64>, Option<Collapsed>) {
    let collapsed = clipped.filter(|_| collapses(depth, clipped));
    let whole = collapsed.and_then(|_| whole());
    match collapsed.zip(whole.filter(|_| !collapses(depth, whole))) {
        Some((MinMax { min, .. }, whole)) => {
            let percentile = min;
            (whole, Some(Collapsed { percentile, whole }))
        }
        None => (clipped.unwrap_or(MinMax::NONE), None),
    }
}

/// The finite samples at the percentiles of `clip` among those of some channels, by the definition: sorted. `None` if there
/// is no finite sample. `all` is the number of samples of a pixel.
pub(super) fn percentiles_naively<T: Unsigned + Into<u64>>(
    samples: &[T],
    all: usize,
    channels: Range<usize>,
    clip: Clip,
    is_nonfinite: impl Fn(T) -> bool,
) -> Option<MinMax<u64>> {
    let pixels = samples.chunks_exact(all);
    let mut finite: Vec<T> = pixels
        .flat_map(|pixel| &pixel[channels.clone()])
        .copied()
        .filter(|&sample| !is_nonfinite(sample))
        .collect();
    finite.sort_unstable();
    let (low, high) = clip.ranks(finite.len() as u64);
    Some(MinMax {
        min: (*finite.get(low as usize)?).into(),
        max: (*finite.get(high as usize)?).into(),
    })
}

impl Extremes {
    /// Those of each channel, alpha included, by the definition.
    pub(super) fn from_samples_naively<T: Unsigned + Into<u64>>(
        samples: &[T],
        channels: usize,
        is_nonfinite: impl Fn(T) -> bool,
    ) -> Extremes {
        let (mut ranges, mut nonfinite) = (vec![MinMax::NONE; channels], 0);
        for (i, &sample) in samples.iter().enumerate() {
            if is_nonfinite(sample) {
                nonfinite += 1
            } else {
                ranges[i % channels].include(sample.into());
            }
        }
        Extremes {
            ranges,
            nonfinite,
            ..Extremes::default()
        }
    }

    /// The same on all cores; `lanes` finds those of a chunk.
    pub(super) fn from_samples<T: Unsigned + Into<u64> + Send + Sync>(
        samples: &[T],
        channels: usize,
        lanes: impl Fn(&[T]) -> FiniteLanes<T> + Send + Sync,
    ) -> Extremes {
        let lanes = cpu::reduce(samples, FiniteLanes::NONE, lanes, FiniteLanes::merge);
        let ranges = lanes.range.by_channel(channels).into_iter();
        Extremes {
            ranges: ranges.map(|range| range.map(T::into)).collect(),
            nonfinite: lanes.nonfinite,
            ..Extremes::default()
        }
    }

    /// The definition: of each channel, alpha included.
    pub fn naive(image: &Image) -> Extremes {
        let Shape {
            channels, depth, ..
        } = image.shape();
        match double::samples(image) {
            Ok(samples) => Extremes::from_samples_naively(samples, channels, double::is_nonfinite),
            Err(_) => {
                let samples = samples(image).unwrap_or_default();
                Extremes::from_samples_naively(samples, channels, |sample| {
                    is_nonfinite(depth, sample)
                })
            }
        }
    }

    /// The same on all cores.
    pub fn cpu(image: &Image, timeline: &mut Timeline) -> Extremes {
        let shape = image.shape();
        timeline.host("minmax", shape.bytes() as u64, || {
            match double::samples(image) {
                Ok(samples) => {
                    Extremes::from_samples(samples, shape.channels, double::finite_lanes)
                }
                Err(_) => {
                    let samples = samples(image).unwrap_or_default();
                    let lanes = |chunk: &[u32]| extremes(chunk, shape.depth);
                    Extremes::from_samples(samples, shape.channels, lanes)
                }
            }
        })
    }

    /// The finite samples at the percentiles of `clip`, of each colour channel or of all together, by
    /// the definition: sorted.
    pub fn percentiles_naively(image: &Image, clip: Clip, per_channel: bool) -> Extremes {
        let shape = image.shape();
        let percentiles =
            Extremes::from_percentiles(&shape, clip, per_channel, |channels, clip| {
                match double::samples(image) {
                    Ok(samples) => percentiles_naively(
                        samples,
                        shape.channels,
                        channels,
                        clip,
                        double::is_nonfinite,
                    ),
                    Err(_) => {
                        let samples = samples(image).unwrap_or_default();
                        let is_nonfinite = |sample| is_nonfinite(shape.depth, sample);
                        percentiles_naively(samples, shape.channels, channels, clip, is_nonfinite)
                    }
                }
            });
        Extremes {
            nonfinite: Extremes::naive(image).nonfinite,
            ..percentiles
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
                let between =
                    |channels, clip| double::percentiles(samples, shape.channels, channels, clip);
                Extremes {
                    nonfinite: Extremes::from_samples(
                        samples,
                        shape.channels,
                        double::finite_lanes,
                    )
                    .nonfinite,
                    ..Extremes::from_percentiles(&shape, clip, per_channel, between)
                }
            });
        }
        let samples = samples(image).unwrap_or_default();
        let counts = |channels, half| -> Result<_, Infallible> {
            Ok(select::counts(samples, shape.depth, channels, half))
        };
        let Ok(selected) = timeline.host("select", 2 * shape.bytes() as u64, || {
            Extremes::selected(&shape, clip, per_channel, counts)
        });
        selected
    }

    /// The percentiles of each colour channel or of all together, which `between` finds for some channels.
    fn from_percentiles(
        shape: &Shape,
        clip: Clip,
        per_channel: bool,
        between: impl Fn(Range<usize>, Clip) -> Option<MinMax<u64>>,
    ) -> Extremes {
        let colours = shape.colours();
        let width = if per_channel { 1 } else { colours };
        let groups = (0..colours).step_by(width).map(|first| {
            let between = |clip| between(first..first + width, clip);
            uncollapsed(shape.depth, between(clip), || between(Clip::NONE))
        });
        let (ranges, collapsed) = groups.unzip();
        Extremes {
            ranges,
            nonfinite: 0,
            percentiles: true,
            collapsed,
        }
    }

    /// The percentiles of an image of this shape whose samples `counts` counts.
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
        let mut selected = Extremes {
            nonfinite: shape.samples() as u64,
            percentiles: true,
            ..Extremes::default()
        };
        let groups = if per_channel {
            (0..shape.colours()).map(|c| channels(c, 1)).collect()
        } else {
            vec![channels(0, shape.colours())]
        };
        for channels in groups {
            let upper = counts(channels, Half::Upper)?;
            selected.nonfinite -= upper.iter().sum::<u64>();
            let mut between = |clip| {
                let range = select::between(&upper, clip, |half| counts(channels, half))?;
                Ok(range.map(|range| range.map(u64::from)))
            };
            let clipped = between(clip)?;
            let whole = if collapses(shape.depth, clipped) {
                between(Clip::NONE)?
            } else {
                None
            };
            let (range, collapsed) = uncollapsed(shape.depth, clipped, || whole);
            selected.ranges.push(range);
            selected.collapsed.push(collapsed);
        }
        if shape.has_alpha() {
            let alpha = counts(channels(shape.colours(), 1), Half::Upper)?;
            selected.nonfinite -= alpha.iter().sum::<u64>();
        }
        Ok(selected)
    }

    /// Merges those of another page of the same type.
    ///
    /// # Errors
    /// Percentiles, which cannot be merged.
    pub fn join(&mut self, more: &Extremes) -> Result<()> {
        ensure!(
            !self.percentiles && !more.percentiles,
            "percentiles of 32-bit samples are supported only for each page separately (use --scope page)"
        );
        for (known, more) in self.ranges.iter_mut().zip(&more.ranges) {
            *known = known.merge(*more);
        }
        self.nonfinite += more.nonfinite;
        Ok(())
    }

    /// The ranges of the colour channels: one for each, or one for all.
    ///
    /// # Errors
    /// Samples that are not finite, without a sample that replaces them (`replacement`).
    pub fn ranges(
        &self,
        colours: usize,
        per_channel: bool,
        replacement: Option<u64>,
    ) -> Result<Vec<MinMax<u64>>> {
        check_finite(self.nonfinite, replacement.map(|_| 0.0))?;
        let each = self.ranges.iter().take(colours).copied();
        let ranges: Vec<MinMax<u64>> = if per_channel || self.percentiles {
            each.collect()
        } else {
            vec![each.fold(MinMax::NONE, MinMax::merge)]
        };
        // Without a finite sample all are replaced.
        let replaced = MinMax::one(replacement.unwrap_or(u64::MAX));
        let range = |range: MinMax<u64>| if range.is_none() { replaced } else { range };
        Ok(ranges.into_iter().map(range).collect())
    }
}

/// Whether two samples are the same value: −0 is 0.
pub(super) fn is_flat(values: Values, range: MinMax<u64>) -> bool {
    values.number(range.min) == values.number(range.max)
}

/// The extremes of a chunk. Keys of numbers that are not finite are the lowest and the highest, so the
/// extremes of all samples show whether there are any; then the chunk is inspected once more.
fn extremes(chunk: &[u32], depth: Depth) -> FiniteLanes<u32> {
    let range = all_lanes(chunk);
    let (min, max) = (range.min.iter().min(), range.max.iter().max());
    let mut extremes = min.into_iter().chain(max);
    // A lane without a sample has an empty range.
    if extremes.any(|&sample| is_nonfinite(depth, sample)) {
        finite_lanes(chunk, depth)
    } else {
        FiniteLanes {
            range,
            nonfinite: 0,
        }
    }
}

per_level! {
    highest Avx512;

    fn all_lanes(chunk: &[u32]) -> MinMaxLanes<u32, LANES> {
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
        MinMaxLanes { min, max }
    }
}

fn finite_lanes(chunk: &[u32], depth: Depth) -> FiniteLanes<u32> {
    let mut lanes = FiniteLanes::<u32>::NONE;
    for block in chunk.chunks(LANES) {
        for (lane, &sample) in block.iter().enumerate() {
            if is_nonfinite(depth, sample) {
                lanes.nonfinite += 1
            } else {
                lanes.range.min[lane] = lanes.range.min[lane].min(sample);
                lanes.range.max[lane] = lanes.range.max[lane].max(sample);
            }
        }
    }
    lanes
}
