//! The limit on a GPU's memory for images.

#[cfg(all(test, feature = "schedules"))]
mod schedules;

use crate::os::memory_budget;
use crate::os::sync::atomic::{AtomicUsize, Ordering};
use anyhow::{Result, anyhow};
use std::env;
use std::sync::Arc;

/// The environment variable that limits the device memory for images.
pub(super) const LIMIT: &str = "GPUIMG_DEVICE_MEMORY";

/// Bytes of device memory that may still be allocated.
#[derive(Debug)]
pub(super) struct Budget {
    whole: usize,
    left: AtomicUsize,
}

impl Budget {
    pub(super) fn new(bytes: usize) -> Arc<Budget> {
        Arc::new(Budget {
            whole: bytes,
            left: AtomicUsize::new(bytes),
        })
    }

    /// Bytes that may be allocated at the same time.
    pub(super) fn whole(&self) -> usize {
        self.whole
    }

    /// Reserves bytes; returns false if there are not so many left.
    pub(super) fn reserve(&self, bytes: usize) -> bool {
        let less = |left: usize| left.checked_sub(bytes);
        (self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less))
        .is_ok()
    }

    pub(super) fn give_back(&self, bytes: usize) {
        self.left.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// The value of the environment variable `LIMIT`, in bytes.
pub(super) fn limit() -> Result<Option<usize>> {
    let Some(text) = env::var_os(LIMIT) else {
        return Ok(None);
    };
    let text = text.to_string_lossy();
    let bytes = memory_budget::size(&text).map_err(|error| anyhow!("{LIMIT}={text}: {error}"))?;
    Ok(Some(usize::try_from(bytes)?))
}
