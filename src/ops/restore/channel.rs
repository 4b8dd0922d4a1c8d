//! The restoration of the samples of one channel.

use crate::image::metadata::{Held, Stretch};
use crate::image::number::{TOP, from_key, key};
use crate::image::{Depth, Values};

/// The samples of one channel, and their original values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Channel {
    /// The original type of the values.
    first: Values,
    /// The current type of the samples.
    now: Depth,
    kind: Kind,
    /// Whether samples are accepted that cannot result from the recorded range.
    nearest: bool,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Scaled from one range to the other.
    Stretched {
        range: (u32, u32),
        target: (u16, u16),
        integers: bool,
    },
    /// All original values were this one.
    Flat(u32),
    /// Alpha, or a channel with a range of a single value, although other values may have occurred.
    Kept { alpha: bool },
}

/// The reason why the original values cannot be restored exactly, if there is one.
pub(super) fn lost(stretch: &Stretch, has_alpha: bool) -> Option<String> {
    let (first, span) = (stretch.from, stretch.target.1 - stretch.target.0);
    let wide = |&&(min, max): &&(u32, u32)| match first.depth {
        Depth::Float => f64::from(from_key(max)) - f64::from(from_key(min)) > f64::from(span),
        _ => max - min > span.into(),
    };
    if stretch.held == Held::Clamped {
        return Some(
            "its range was given or clipped, so values outside it may have been clamped and lost"
                .into(),
        );
    }
    if first.depth == Depth::Float && stretch.held != Held::Integers {
        return Some("it was floating point, and its values were rounded".into());
    }
    if let Some(&(min, max)) = stretch.ranges().iter().find(wide) {
        return Some(format!(
            "the range {}:{} has more values than the {} steps it was scaled to",
            first.number(min.into()),
            first.number(max.into()),
            u32::from(span) + 1
        ));
    }
    let rounded = first.depth.bytes() > stretch.to.depth.bytes();
    (has_alpha && rounded).then(|| format!("its alpha was rounded from {}", first.depth))
}

impl Channel {
    /// A channel of a scaled page, by its index among the colours; `None` is alpha.
    pub(super) fn new(stretch: &Stretch, colour: Option<usize>, nearest: bool) -> Channel {
        let first = stretch.from;
        let ranges = stretch.ranges();
        let kind = colour.map_or(Kind::Kept { alpha: true }, |colour| {
            let range = *ranges.get(colour).unwrap_or(&ranges[0]);
            let flat = first.number(range.0.into()) == first.number(range.1.into());
            match (flat, stretch.held) {
                (true, Held::Clamped) => Kind::Kept { alpha: false },
                (true, _) => Kind::Flat(range.0),
                (false, held) => Kind::Stretched {
                    range,
                    target: stretch.target,
                    integers: held == Held::Integers,
                },
            }
        });
        Channel {
            first,
            now: stretch.to.depth,
            kind,
            nearest,
        }
    }

    /// The original value of a sample, as a sample in memory; `None` if no value results in it.
    pub(super) fn value(&self, sample: u16) -> Option<u32> {
        match self.kind {
            Kind::Flat(value) => Some(value),
            Kind::Kept { alpha } => self.kept(sample, alpha),
            Kind::Stretched {
                range: (min, max),
                target: (lo, hi),
                integers,
            } => self.stretched(sample, min, max, lo, hi, integers),
        }
    }

    fn stretched(
        &self,
        sample: u16,
        min: u32,
        max: u32,
        lo: u16,
        hi: u16,
        integers: bool,
    ) -> Option<u32> {
        if !self.nearest && !(lo..=hi).contains(&sample) {
            return None;
        }
        let steps = u64::from(sample.clamp(lo, hi) - lo);
        let span = u64::from(hi - lo);
        if self.first.depth == Depth::Float {
            let (least, most) = (f64::from(from_key(min)), f64::from(from_key(max)));
            let value = if integers {
                least + ((most - least) * steps as f64 / span as f64 + 0.5).floor()
            } else {
                let (steps, span) = (steps as f64, span as f64);
                (least * (span - steps) + most * steps) / span
            };
            let again = || ((value - least) * span as f64 / (most - least) + 0.5).floor();
            let is_result = self.nearest || again() == steps as f64;
            return is_result.then(|| key((value as f32).to_bits()).clamp(min, max));
        }
        let d = u64::from(max - min);
        let x = (steps * d + span / 2) / span;
        let is_result = self.nearest || (x * span + d / 2) / d == steps;
        is_result.then(|| min + x as u32)
    }

    /// A value that was not scaled; only its depth changed.
    fn kept(&self, sample: u16, alpha: bool) -> Option<u32> {
        let sample = u32::from(sample);
        let full = u32::from(self.now.full());
        Some(match (self.first.depth, self.now) {
            (Depth::Eight, Depth::Sixteen) => {
                let whole = sample.is_multiple_of(257);
                return (whole || self.nearest).then(|| (sample + 128) / 257);
            }
            (Depth::Sixteen, Depth::Eight) => sample * 257,
            (Depth::Float, _) if alpha => key((sample as f32 / full as f32).to_bits()),
            (Depth::Float, _) => key((sample as f32).to_bits()),
            // The full range of alpha became the full depth.
            (Depth::ThirtyTwo, _) if alpha => sample * (u32::MAX / full),
            (Depth::ThirtyTwo, _) if self.first.signed => TOP + sample,
            _ => sample,
        })
    }
}
