//! Graphs: work that is recorded once, and then queued by one call as often as needed.

use super::context::Gpu;
use super::error::in_words;
use anyhow::{Context, Result};
use cudarc::driver::{CudaGraph, sys};

/// Recorded work. It may be queued as long as the memory that it uses is there.
pub(crate) struct Graph(CudaGraph);

impl Gpu {
    /// Records what `queue` queues on this stream, instead of running it.
    ///
    /// # Errors
    /// Those of `queue`, and the driver's: not every call can be recorded.
    pub(crate) fn record(&self, queue: impl FnOnce() -> Result<()>) -> Result<Graph> {
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        self.stream.begin_capture(mode).map_err(in_words)?;
        let queued = queue();
        let graph = self.stream.end_capture(sys::CUgraphInstantiate_flags(0));
        queued?;
        let graph = graph.map_err(in_words)?;
        graph.map(Graph).context("nothing was recorded")
    }
}

impl Graph {
    /// Queues the work on the stream on which it was recorded.
    ///
    /// # Safety
    /// The memory that the recorded work uses has not been given back.
    ///
    /// # Errors
    /// The driver's.
    pub(crate) unsafe fn launch(&self) -> Result<()> {
        self.0.launch().map_err(in_words)
    }
}
