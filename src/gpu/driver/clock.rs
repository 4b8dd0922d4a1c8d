//! The GPU's clock.

use super::error::in_words;
use anyhow::{Context, Result};
use cudarc::driver::CudaEvent;
use std::time::Duration;

/// The time between two events that have passed, on the GPU's clock.
pub(in crate::gpu) fn elapsed(before: &CudaEvent, after: &CudaEvent) -> Result<Duration> {
    let ms = before.elapsed_ms(after).map_err(in_words);
    let ms = ms.context("the GPU's clock")?;
    Ok(Duration::from_secs_f64(f64::from(ms).max(0.0) / 1e3))
}
