//! Operations on samples of 32 and 64 bits: integers, and floating point as keys that sort as the numbers do
//! (`image::number`). They are defined in exact arithmetic, as those of fewer bits are: a 32-bit
//! floating-point number is a whole number of steps of 2⁻¹⁴⁹ (`Fixed`).

pub mod double;
pub mod extremes;
pub mod fixed;
mod lanes;
pub mod on_gpu;
pub mod scale;
mod select;
pub mod sum;

pub use extremes::Extremes;
pub use fixed::{Fixed, Fixed64};

use crate::image::{Depth, Image, Samples, number};
use crate::ops::cpu;
use anyhow::{Context, Result, ensure};
use rayon::prelude::*;

/// Samples handled together by vector code: a multiple of every channel count (1–4).
const LANES: usize = 24;

// Every chunk of samples begins at lane 0.
const _: () = assert!(cpu::LANES.is_multiple_of(LANES));

/// The sample that replaces NaN and infinities in samples of this depth, for the number that the user gives.
pub fn replacement(nan: Option<f64>, depth: Depth) -> Option<u64> {
    nan.map(|value| match depth {
        Depth::Double => number::key64(value.to_bits()),
        _ => number::key((value as f32).to_bits()).into(),
    })
}

/// Whether a sample of this depth is not a finite number.
#[inline(always)]
pub fn is_nonfinite(depth: Depth, sample: u32) -> bool {
    depth == Depth::Float && !number::FINITE.contains(&sample)
}

/// Refuses samples that are not finite, unless they are replaced.
///
/// # Errors
/// The number of samples, and what to do.
pub fn check_finite(nonfinite: u64, nan: Option<f64>) -> Result<()> {
    let are = if nonfinite == 1 { "is" } else { "are" };
    ensure!(
        nonfinite == 0 || nan.is_some(),
        "{nonfinite} of its samples {are} NaN or infinite (use --nan VALUE to replace them, e.g. --nan 0)"
    );
    Ok(())
}

/// Replaces the samples that are not finite, if that is asked for.
///
/// # Errors
/// The number of such samples, if they are not replaced.
pub fn make_finite(samples: &mut [u32], nan: Option<f64>) -> Result<()> {
    let is_finite = |sample: &u32| number::FINITE.contains(sample);
    let finite = samples
        .par_iter()
        .filter(|sample| is_finite(sample))
        .count();
    let nonfinite = samples.len() - finite;
    check_finite(nonfinite as u64, nan)?;
    if let Some(replacement) = replacement(nan, Depth::Float).filter(|_| nonfinite > 0) {
        let samples = samples.par_iter_mut().filter(|sample| !is_finite(sample));
        samples.for_each(|sample| *sample = replacement as u32);
    }
    Ok(())
}

/// The 32-bit samples of an image.
///
/// # Errors
/// An image of fewer bits.
pub fn samples(image: &Image) -> Result<&[u32]> {
    match image.samples() {
        Samples::U32(samples) => Some(&samples[..]),
        _ => None,
    }
    .context("its samples are not of 32 bits")
}

/// Parses the number that replaces NaN and infinities.
///
/// # Errors
/// A text that is not a 32-bit floating-point number.
pub fn finite(text: &str) -> Result<f64, String> {
    let value = text.trim().parse::<f64>().ok();
    let value = value.filter(|value| (*value as f32).is_finite());
    value.ok_or_else(|| format!("'{text}' is not a 32-bit floating-point number"))
}
