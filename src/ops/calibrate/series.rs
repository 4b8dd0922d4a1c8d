//! A flat field that changes from image to image: with A and B those at the start and at the end of a series of n images, that
//! of image i (counted from 0) is F = ((n − 1 − i)·A + i·B) / (n − 1), sample by sample; that of the only image is A.
//!
//! For integers, F is rounded to the nearest whole number, halves up, as the mean of several frames is. In floating point, the
//! two products, their sum and the quotient are each rounded as doubles, and the result to 32 bits.

use super::{Corrections, ImageFrames, Settings, digest};
use crate::image::number::{from_key, key};
use crate::image::{Image, Samples, Values};
use crate::ops::{Position, never_wide, samples_from};
use anyhow::{Context, Result};
use rayon::prelude::*;

/// The frames of a series; the flat field is that at the start.
#[derive(Debug)]
pub(super) struct Series {
    frames: ImageFrames,
    /// The flat field at the end.
    end: Image,
}

impl Series {
    /// From the flat field of `frames` to that of the `end`.
    ///
    /// # Errors
    /// One of them is not brighter than what is subtracted from it.
    pub fn new(
        frames: ImageFrames,
        end: Image,
        settings: Settings,
        integers: Option<Values>,
    ) -> Result<Series> {
        let last = ImageFrames {
            flat: Some(end.clone()),
            ..frames.clone()
        };
        for frames in [frames.clone(), last] {
            Corrections::new(frames, settings, integers)?;
        }
        Ok(Series { frames, end })
    }

    /// The frames of the image at a position.
    ///
    /// # Errors
    /// An unknown position.
    pub fn at(&self, position: Option<Position>) -> Result<ImageFrames> {
        let position = position.context("internal error: the position of an image is unknown")?;
        let start = self.frames.flat.as_ref();
        let start = start.context("internal error: a series without a flat field")?;
        Ok(ImageFrames {
            flat: Some(interpolated(start, &self.end, position)),
            ..self.frames.clone()
        })
    }

    /// What decides the result, except for the position.
    pub fn digests(&self) -> serde_json::Value {
        serde_json::json!({
            "dark": digest(&self.frames.dark),
            "below": digest(&self.frames.below),
            "start": digest(&self.frames.flat),
            "end": crc32fast::hash(self.end.samples().as_bytes()),
        })
    }
}

/// The flat field between `start` and `end`, which have the same shape and sample type.
fn interpolated(start: &Image, end: &Image, position: Position) -> Image {
    // Positions in lists that exist, and so below 2⁴⁰: no product overflows.
    let (after, steps) = match position.count - 1 {
        0 => (0, 1),
        last => (position.index, last),
    };
    let before = steps - after;
    let whole = |a: u16, b: u16| {
        let sum = u64::from(a) * before + u64::from(b) * after;
        ((2 * sum + steps) / (2 * steps)) as u16
    };
    let real = |a: u32, b: u32| {
        let (a, b) = (f64::from(from_key(a)), f64::from(from_key(b)));
        let value = (a * before as f64 + b * after as f64) / steps as f64;
        key((value as f32).to_bits())
    };
    let samples: Samples = match (start.samples(), end.samples()) {
        (Samples::U8(a), Samples::U8(b)) => {
            let pairs = a.par_iter().zip(b.par_iter());
            let each = pairs.map(|(&a, &b)| whole(a.into(), b.into()) as u8);
            each.collect::<Vec<_>>().into()
        }
        (Samples::U16(a), Samples::U16(b)) => {
            let pairs = a.par_iter().zip(b.par_iter());
            pairs.map(|(&a, &b)| whole(a, b)).collect::<Vec<_>>().into()
        }
        (Samples::U32(a), Samples::U32(b)) => {
            let each = a.iter().zip(b.iter());
            let each = each.map(|(&a, &b)| u64::from(real(a, b)));
            samples_from(start.shape().depth, each)
        }
        _ => never_wide!(),
    };
    Image::new(start.shape(), samples)
}
