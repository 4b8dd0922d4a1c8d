//! Points in a stream that know their times.

use super::context::Gpu;
use super::recorder::Recorder;
use anyhow::Result;
use cudarc::driver::CudaEvent;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

impl Gpu {
    /// Records a timed event in the stream.
    pub fn event(&self) -> Result<CudaEvent> {
        let events = self.events.lock();
        events
            .unwrap_or_else(PoisonError::into_inner)
            .record(&self.stream)
    }

    /// The clock anchor; all timed work is queued after it.
    pub fn clock_anchor(&self) -> Result<&(Instant, CudaEvent)> {
        if let Some(anchor) = self.anchor.get() {
            return Ok(anchor);
        }
        let event = self.event()?;
        self.wait_for_stream()?;
        let anchor = (Instant::now(), event);
        Ok(self.anchor.get_or_init(|| anchor))
    }

    /// Whether work is recorded, and submitted once it is waited for.
    pub fn records(&self) -> bool {
        self.recorder.is_some()
    }

    /// The work that is recorded from now on belongs to this stage of the job, whose time is wanted.
    pub fn set_stage(&self, stage: Option<usize>) {
        if let Some(recorder) = &self.recorder {
            recorder.set_stage(stage);
        }
    }

    /// The start of each of so many stages, and its time, of the recorded work that has been waited for.
    pub fn recorded_times(&self, stages: usize) -> Vec<Option<(Instant, Duration)>> {
        let mut times = vec![None; stages];
        let spans = self.recorder.as_ref().map(Recorder::take_spans);
        for span in spans.into_iter().flatten() {
            if let Some(time) = times.get_mut(span.stage) {
                let (start, so_far) = time.unwrap_or((span.start, Duration::ZERO));
                *time = Some((start.min(span.start), so_far + span.time));
            }
        }
        times
    }

    /// Returns an event that has passed to the pool.
    pub fn keep(&self, event: CudaEvent) {
        if let Ok(mut events) = self.events.lock() {
            events.keep(event);
        }
    }
}
