//! Points in a stream that know their times.

use super::context::Gpu;
use super::error::description;
use anyhow::{Result, anyhow};
use cudarc::driver::CudaEvent;
use cudarc::driver::result::DriverError;
use cudarc::driver::sys::CUevent_flags_enum as Flags;
use std::time::Instant;

impl Gpu {
    /// Records a timed event in the stream.
    pub fn event(&self) -> Result<CudaEvent> {
        let record = || {
            let pooled = self.events.lock().ok().and_then(|mut events| events.pop());
            let event = match pooled {
                Some(event) => event,
                // Without the explicit flag the event would record no time.
                None => self.context.new_event(Some(Flags::CU_EVENT_DEFAULT))?,
            };
            event.record(&self.stream)?;
            Ok(event)
        };
        record().map_err(|error: DriverError| anyhow!("{}", description(&error)))
    }

    /// The clock anchor; all timed work is queued after it.
    pub fn clock_anchor(&self) -> Result<&(Instant, CudaEvent)> {
        if let Some(anchor) = self.anchor.get() {
            return Ok(anchor);
        }
        let event = self.event()?;
        self.wait()?;
        let anchor = (Instant::now(), event);
        Ok(self.anchor.get_or_init(|| anchor))
    }

    /// Returns an event that has passed to the pool.
    pub fn keep(&self, event: CudaEvent) {
        if let Ok(mut events) = self.events.lock() {
            events.push(event);
        }
    }
}
