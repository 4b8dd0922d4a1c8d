//! What becomes of the samples of one channel when they are restored.

use crate::image::number::{TOP, key, of_key};
use crate::image::{Depth, Values};
use crate::metadata::{Held, Stretch};

/// The samples of one channel, and the values that they had.
#[derive(Clone, Copy, Debug)]
pub(super) struct Channel {
    /// The type of the values as they were.
    first: Values,
    /// The type of the samples as they are.
    now: Depth,
    kind: Kind,
    /// Whether samples are taken that cannot be results of the stretch.
    nearest: bool,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Stretched from one range to the other.
    Stretched {
        range: (u32, u32),
        target: (u16, u16),
        integers: bool,
    },
    /// Every value was this one.
    Flat(u32),
    /// Alpha, or a channel whose range had one value, though others may have been in it.
    Kept { alpha: bool },
}

/// Why the first values cannot be known for certain, if so, in an image with or without alpha.
pub(super) fn lost(stretch: &Stretch, has_alpha: bool) -> Option<String> {
    let (first, span) = (stretch.from, stretch.target.1 - stretch.target.0);
    let wide = |&&(min, max): &&(u32, u32)| match first.depth {
        Depth::Float => f64::from(of_key(max)) - f64::from(of_key(min)) > f64::from(span),
        _ => max - min > span.into(),
    };
    if stretch.held == Held::Clamped {
        return Some("its range was given or clipped, so values beyond it may have been clamped to it and lost".into());
    }
    if first.depth == Depth::Float && stretch.held != Held::Integers {
        return Some("it was floating point, whose values are rounded by the stretch".into());
    }
    if let Some(&(min, max)) = stretch.ranges().iter().find(wide) {
        return Some(format!(
            "several values of the range {}:{} became one of {} steps",
            first.number(min.into()),
            first.number(max.into()),
            u32::from(span) + 1
        ));
    }
    let rounded = first.depth.bytes() > stretch.to.depth.bytes();
    (has_alpha && rounded).then(|| format!("its alpha was rounded from {}", first.depth))
}

impl Channel {
    /// The channel of a page that was stretched, by its number among the colours; `None` is alpha.
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

    /// The value, as a sample in memory, that became a sample; `None` if none did.
    pub(super) fn value(&self, sample: u16) -> Option<u32> {
        match self.kind {
            Kind::Flat(value) => Some(value),
            Kind::Kept { alpha } => self.kept(sample, alpha),
            Kind::Stretched {
                range,
                target,
                integers,
            } => self.stretched(sample, range, target, integers),
        }
    }

    fn stretched(
        &self,
        sample: u16,
        (min, max): (u32, u32),
        (lo, hi): (u16, u16),
        integers: bool,
    ) -> Option<u32> {
        if !self.nearest && !(lo..=hi).contains(&sample) {
            return None;
        }
        let steps = u64::from(sample.clamp(lo, hi) - lo);
        let span = u64::from(hi - lo);
        if self.first.depth == Depth::Float {
            let (least, most) = (f64::from(of_key(min)), f64::from(of_key(max)));
            let value = match integers {
                true => least + ((most - least) * steps as f64 / span as f64 + 0.5).floor(),
                false => {
                    let (steps, span) = (steps as f64, span as f64);
                    (least * (span - steps) + most * steps) / span
                }
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

    /// A value that was not stretched, of which only the depth changed.
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
            // All values of alpha became all of the depth.
            (Depth::ThirtyTwo, _) if alpha => sample * (u32::MAX / full),
            (Depth::ThirtyTwo, _) if self.first.signed => TOP + sample,
            _ => sample,
        })
    }
}
