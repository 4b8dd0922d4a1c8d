//! A stream, and the wait for its end.

use super::context::Gpu;
use super::error::description;
use super::staging::Staging;
use anyhow::{Result, anyhow};

impl Gpu {
    /// Waits for all queued work.
    pub fn wait(&self) -> Result<()> {
        self.staging
            .wait()
            .map_err(|error| anyhow!("{}", description(&error)))
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
