//! Operations on samples of 32 and 64 bits: integers, and floating point as keys that sort as the numbers do
//! (`image::number`). They are defined in exact arithmetic, as those of fewer bits are: a 32-bit
//! floating-point number is a whole number of steps of 2⁻¹⁴⁹ (`Fixed`).

pub mod double;
pub mod extremes;
pub mod fixed;
pub mod on_gpu;
pub mod scale;
mod select;
pub mod sum;

pub use extremes::Extremes;
pub use fixed::{Fixed, Fixed64};

use crate::image::{Depth, Image, Samples, number};
use crate::ops::cpu;
use anyhow::{Context, Result, ensure};

/// Samples handled together by vector code: a multiple of every channel count (1–4).
const LANES: usize = 24;

// Every chunk of samples begins at lane 0.
const _: () = assert!(cpu::LANES.is_multiple_of(LANES));

/// The key that stands for NaN and infinities: of the number that the user gives for them.
pub fn stand_in(nan: Option<f64>) -> Option<u32> {
    nan.map(|value| number::key((value as f32).to_bits()))
}

/// Whether a sample of this depth is not a finite number.
#[inline(always)]
pub fn is_odd(depth: Depth, sample: u32) -> bool {
    depth == Depth::Float && !number::FINITE.contains(&sample)
}

/// Refuses samples that are no finite numbers, unless something stands for them.
///
/// # Errors
/// How many there are, and what to do.
pub fn check_odd(odd: u64, nan: Option<f64>) -> Result<()> {
    let are = if odd == 1 { "is" } else { "are" };
    ensure!(
        odd == 0 || nan.is_some(),
        "{odd} of its samples {are} NaN or infinite (use --nan VALUE to replace them)"
    );
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

/// Parses the number that stands for NaN and infinities.
///
/// # Errors
/// What is none.
pub fn finite(text: &str) -> Result<f64, String> {
    let value = text.trim().parse::<f64>().ok();
    let value = value.filter(|value| (*value as f32).is_finite());
    value.ok_or_else(|| format!("'{text}' is not a 32-bit floating-point number"))
}
