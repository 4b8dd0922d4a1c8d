//! The program on the CPU, timed: the main input as an image, and what its passes must find.

use super::context::Host;
use super::figure::Time;
use crate::engine::executor;
use crate::image::{Depth, Image, Samples, Shape};
use crate::ops::{OpResult, Operation};
use crate::timing::Timeline;
use anyhow::Result;
use rayon::prelude::*;

/// The smallest and the largest sample.
pub(super) fn range(samples: &[u16]) -> (u16, u16) {
    let each = samples.par_iter().map(|&p| (p, p));
    each.reduce(|| (u16::MAX, 0), |a, b| (a.0.min(b.0), a.1.max(b.1)))
}

/// The main input as an image.
pub(super) fn image(host: &Host) -> Image {
    let width = (host.noise.len() / 2).isqrt().next_power_of_two();
    let shape = Shape {
        width,
        height: host.noise.len() / width,
        channels: 1,
        depth: Depth::Sixteen,
    };
    Image::new(shape, Samples::U16(host.noise.clone()))
}

/// Runs `op` on the CPU repeatedly; returns the time of its passes, and the last image.
pub(super) fn cpu_passes(host: &Host, op: &dyn Operation) -> Result<(Time, Option<Image>)> {
    let (mut seconds, mut last) = (Vec::new(), None);
    for _ in 0..host.sizes.runs.clamp(1, 7) {
        let image = image(host);
        let mut timeline = Timeline::default();
        let result = executor::on_cpu(op, image, &mut timeline)?.result;
        if let OpResult::Image(image) = result {
            last = Some(image);
        }
        let spans = timeline.spans();
        seconds.push(spans.iter().map(|span| span.time.as_secs_f64()).sum());
    }
    Ok((Time::from_seconds(seconds), last))
}
