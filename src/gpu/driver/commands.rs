//! The commands of one image, and their submission to the thread that carries them out.

use super::arguments::Packed;
use super::clock::Anchor;
use super::error::in_words;
use super::kernel::{Grid, RawKernel};
use anyhow::Result;
use cudarc::driver::sys::{self, CUdeviceptr};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// A launch or a copy that is not submitted yet.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) work: Work,
    /// The number of the job's stage that it belongs to, if its time is wanted.
    pub(super) stage: Option<usize>,
}

/// The commands of one image, in order, and the worker that waits for them.
pub(super) struct Submission {
    pub(super) commands: Vec<Command>,
    /// The first kernel that works on pixels: submissions with the same one have about the same commands.
    pub(super) kind: Option<&'static str>,
    /// The clock anchor of the GPU, if times are wanted.
    pub(super) anchor: Anchor,
    pub(super) answer: Sender<Outcome>,
}

/// The outcome of all commands of a submission: the times that were wanted, or the first error.
pub(super) type Outcome = Result<Vec<Span>, String>;

/// The time that a command took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// The stage of the job.
    pub(super) stage: usize,
    pub(super) start: Instant,
    pub(super) time: Duration,
}

/// What a command does.
#[derive(Debug)]
pub(super) enum Work {
    /// A kernel with its arguments.
    Launch {
        kernel: RawKernel,
        grid: Grid,
        arguments: Packed,
    },
    /// A copy by the copy engine.
    Copy(Copy),
}

/// Where the memory of a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    ToDevice,
    ToHost,
    OnDevice,
}

/// A copy of bytes between two addresses. Addresses of the host are those of its pointers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copy {
    pub(super) direction: Direction,
    pub(super) from: CUdeviceptr,
    pub(super) to: CUdeviceptr,
    pub(super) bytes: usize,
}

impl Copy {
    /// Queues the copy on a stream of the current context.
    ///
    /// # Safety
    /// Both addresses are those of `bytes` bytes of live memory, until the copy is done. Nothing else touches them until then but
    /// work of the same stream.
    pub(super) unsafe fn queue(&self, stream: sys::CUstream) -> Result<()> {
        let Copy {
            direction,
            from,
            to,
            bytes,
        } = *self;
        // SAFETY: the caller's.
        let queued = unsafe {
            match direction {
                Direction::ToDevice => {
                    sys::cuMemcpyHtoDAsync_v2(to, from as *const _, bytes, stream)
                }
                Direction::ToHost => sys::cuMemcpyDtoHAsync_v2(to as *mut _, from, bytes, stream),
                Direction::OnDevice => sys::cuMemcpyDtoDAsync_v2(to, from, bytes, stream),
            }
        };
        queued.result().map_err(in_words)
    }
}
