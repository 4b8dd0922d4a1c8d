//! Graphs: work that is recorded once, and then queued by one call as often as needed.

use super::context::Gpu;
use super::error::in_words;
use super::kernel::{Grid, Kernel};
use super::launch::{Checked, List};
use anyhow::{Context, Result};
use cudarc::driver::{CudaGraph, sys};
use std::ptr;

/// Recorded work. It may be queued as long as the memory that it uses is there.
pub(crate) struct Graph {
    graph: CudaGraph,
    /// Its launches and other work, in any order.
    nodes: Vec<sys::CUgraphNode>,
}

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
        let graph = graph.map_err(in_words)?.context("nothing was recorded")?;
        let mut count = 0;
        // SAFETY: the graph is live. Without memory for the nodes, the call only counts them.
        unsafe { sys::cuGraphGetNodes(graph.cu_graph(), ptr::null_mut(), &mut count) }
            .result()
            .map_err(in_words)?;
        let mut nodes = vec![ptr::null_mut(); count];
        // SAFETY: the graph is live, and there is memory for all nodes.
        unsafe { sys::cuGraphGetNodes(graph.cu_graph(), nodes.as_mut_ptr(), &mut count) }
            .result()
            .map_err(in_words)?;
        Ok(Graph { graph, nodes })
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
        self.graph.launch().map_err(in_words)
    }

    /// Gives a recorded launch of `kernel` other arguments, from the next time on that the work is queued. The launches are
    /// numbered in any order.
    ///
    /// # Errors
    /// Those of `Arguments::check`, and the driver's.
    pub(crate) fn update<A: Checked>(
        &mut self,
        launch: usize,
        kernel: &Kernel<A>,
        grid: Grid,
        arguments: A,
    ) -> Result<()> {
        let node = self.nodes.get(launch).context("no such launch")?;
        arguments.check(&kernel.launch(grid))?;
        let mut list = List::default();
        arguments.push(&mut list);
        let parameters = sys::CUDA_KERNEL_NODE_PARAMS {
            func: kernel.raw.function.cu_function(),
            gridDimX: grid.blocks[0],
            gridDimY: grid.blocks[1],
            gridDimZ: 1,
            blockDimX: grid.threads[0],
            blockDimY: grid.threads[1],
            blockDimZ: 1,
            sharedMemBytes: 0,
            kernelParams: list.pointers.as_mut_ptr(),
            extra: ptr::null_mut(),
            kern: ptr::null_mut(),
            ctx: ptr::null_mut(),
        };
        // SAFETY: the node is of this graph, and the arguments are the kernel's; the driver copies them. Who queues the work
        // vouches for their memory.
        unsafe {
            sys::cuGraphExecKernelNodeSetParams_v2(self.graph.cu_graph_exec(), *node, &parameters)
        }
        .result()
        .map_err(in_words)
    }
}
