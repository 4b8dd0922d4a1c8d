//! The GPU's clock.

use super::error::in_words;
use anyhow::{Context, Result};
use cudarc::driver::sys::CUevent_flags_enum as Flags;
use cudarc::driver::{CudaContext, CudaEvent, CudaStream};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The clock anchor of a GPU: one instant on the host's clock and the same instant on the GPU's.
pub(super) type Anchor = Arc<OnceLock<(Instant, CudaEvent)>>;

/// Events that may be recorded again. Creating an event waits for a lock that other threads' streams hold: 0.25 ms each with 16
/// threads, 18 times an image.
#[derive(Debug)]
pub(super) struct EventPool {
    context: Arc<CudaContext>,
    free: Vec<CudaEvent>,
}

impl EventPool {
    /// An empty pool.
    pub(super) fn new(context: &Arc<CudaContext>) -> EventPool {
        EventPool {
            context: context.clone(),
            free: Vec::new(),
        }
    }

    /// Records a timed event in a stream.
    ///
    /// # Errors
    /// The driver's.
    pub(super) fn record(&mut self, stream: &CudaStream) -> Result<CudaEvent> {
        let event = match self.free.pop() {
            Some(event) => event,
            // Without the explicit flag the event would record no time.
            None => (self.context.new_event(Some(Flags::CU_EVENT_DEFAULT))).map_err(in_words)?,
        };
        event.record(stream).map_err(in_words)?;
        Ok(event)
    }

    /// Takes an event back that has passed.
    pub(super) fn keep(&mut self, event: CudaEvent) {
        self.free.push(event);
    }
}

/// The time between two events that have passed, on the GPU's clock.
pub(in crate::gpu) fn elapsed(before: &CudaEvent, after: &CudaEvent) -> Result<Duration> {
    let ms = before.elapsed_ms(after).map_err(in_words);
    let ms = ms.context("the GPU's clock")?;
    Ok(Duration::from_secs_f64(f64::from(ms).max(0.0) / 1e3))
}
