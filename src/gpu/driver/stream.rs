//! A stream, and the wait for its end.

use super::context::Gpu;
use super::error::description;
use super::staging::Staging;
use anyhow::{Result, anyhow};

impl Gpu {
    /// Waits for all queued work.
    pub fn wait(&self) -> Result<()> {
        self.staging.after(|| self.wait_for_work())?;
        if self.recorder.is_some() {
            self.allocator.free_surplus();
        }
        Ok(())
    }

    /// As `wait`, without giving up staging memory.
    pub(super) fn wait_for_work(&self) -> Result<()> {
        match &self.recorder {
            Some(recorder) => recorder.submit(&self.anchor),
            None => self.wait_for_stream(),
        }
    }

    /// Queues work that cannot be recorded, on the stream. If other work is recorded, it runs before, and this work is waited for.
    pub(super) fn queue_unrecorded(&self, queue: impl FnOnce() -> Result<()>) -> Result<()> {
        let Some(recorder) = &self.recorder else {
            return queue();
        };
        recorder.submit(&self.anchor)?;
        queue()?;
        self.wait_for_stream()
    }

    /// Waits for what was queued on the stream, not for recorded work.
    pub(super) fn wait_for_stream(&self) -> Result<()> {
        self.stream
            .synchronize()
            .map_err(|error| anyhow!("{}", description(&error)))
    }

    /// Whether the GPU does not respond any more.
    pub fn is_lost(&self) -> bool {
        self.wait().and(self.wait_for_stream()).is_err()
    }

    /// The same GPU with its work queued on CUDA's default stream, as in the papers' programs.
    pub fn on_default_stream(self) -> Gpu {
        let stream = self.context.default_stream();
        Gpu {
            staging: Staging::new(stream.clone()),
            stream,
            ..self
        }
    }
}
