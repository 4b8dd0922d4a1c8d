//! The queue of a batch's worker: copies and launches are recorded, and submitted together once the worker waits for them.

use super::arguments::{Argument, List};
use super::clock::Anchor;
use super::commands::{Command, Copy, Span, Submission, Work};
use super::kernel::{Grid, RawKernel};
use super::sets::Sets;
use anyhow::{Error, Result, anyhow};
use cudarc::driver::sys::CUdeviceptr;
use std::fmt;
use std::mem;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Copies of more bytes are left to the copy engine.
const MOST_BYTES_BY_KERNEL: usize = 1 << 20;

/// Bytes for each block of the kernels that copy and fill, and the most blocks.
const BYTES_PER_BLOCK: u64 = 16 << 10;
const MOST_BLOCKS: u64 = 1024;

/// Records the commands of one worker.
pub(super) struct Recorder {
    sets: Arc<Sets>,
    /// The kernels that copy and fill small memory.
    copy: RawKernel,
    fill: RawKernel,
    recording: Mutex<Recording>,
}

struct Recording {
    commands: Vec<Command>,
    /// The stage of the commands that follow, if its time is wanted.
    stage: Option<usize>,
    spans: Vec<Span>,
}

impl Recorder {
    /// A recorder whose commands `sets` runs, with the kernels that copy and fill memory.
    pub(super) fn new(sets: Arc<Sets>, copy: RawKernel, fill: RawKernel) -> Recorder {
        Recorder {
            sets,
            copy,
            fill,
            recording: Mutex::new(Recording {
                commands: Vec::new(),
                stage: None,
                spans: Vec::new(),
            }),
        }
    }

    /// The first kernel that does more than copy or fill memory.
    fn kind(&self, commands: &[Command]) -> Option<&'static str> {
        commands.iter().find_map(|command| match &command.work {
            Work::Launch { kernel, .. } if !kernel.is(&self.copy) && !kernel.is(&self.fill) => {
                Some(kernel.name)
            }
            Work::Launch { .. } | Work::Copy(_) => None,
        })
    }

    fn recording(&self) -> MutexGuard<'_, Recording> {
        self.recording
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Records work after all that is recorded.
    ///
    /// # Safety
    /// The memory that the work touches stays, and nothing on the host touches it, until `submit` returns. Device memory may go
    /// back to the allocator of the recorder's worker, which gives it out for work that is recorded later.
    pub(super) unsafe fn record(&self, work: Work) {
        let mut recording = self.recording();
        let stage = recording.stage;
        recording.commands.push(Command { work, stage });
    }

    /// Records a copy after all that is recorded: by a kernel if it is small and `is_mapped`, so that kernels reach both sides.
    /// The copy engine takes a call of the driver for each copy.
    ///
    /// # Safety
    /// As `record`; both addresses are those of as many bytes.
    pub(super) unsafe fn copy(&self, copy: Copy, is_mapped: bool) {
        let Copy {
            from, to, bytes, ..
        } = copy;
        if bytes == 0 {
            return;
        }
        if !is_mapped || bytes > MOST_BYTES_BY_KERNEL {
            // SAFETY: the caller's.
            return unsafe { self.record(Work::Copy(copy)) };
        }
        let bytes = bytes as u64;
        // SAFETY: the caller's.
        unsafe { self.launch(&self.copy, bytes, [&from, &to, &bytes]) };
    }

    /// Records a fill of every byte of some memory.
    ///
    /// # Safety
    /// As `record`; the address is that of as many bytes.
    pub(super) unsafe fn fill(&self, to: CUdeviceptr, bytes: usize, byte: u8) {
        if bytes > 0 {
            let (bytes, byte) = (bytes as u64, u32::from(byte));
            // SAFETY: the caller's.
            unsafe { self.launch(&self.fill, bytes, [&to, &bytes, &byte]) };
        }
    }

    /// Records one of the kernels that copy and fill.
    ///
    /// # Safety
    /// As `record`; the arguments are those of the kernel.
    unsafe fn launch(&self, kernel: &RawKernel, bytes: u64, arguments: [&dyn Argument; 3]) {
        let mut list = List::default();
        arguments
            .iter()
            .for_each(|argument| argument.push_to(&mut list));
        let blocks = bytes.div_ceil(BYTES_PER_BLOCK).clamp(1, MOST_BLOCKS) as u32;
        let work = Work::Launch {
            kernel: kernel.clone(),
            grid: Grid::new(blocks, kernel.threads),
            arguments: list.pack(),
        };
        // SAFETY: the caller's.
        unsafe { self.record(work) };
    }

    /// The times of the commands that follow belong to this stage, or are not wanted.
    pub(super) fn set_stage(&self, stage: Option<usize>) {
        self.recording().stage = stage;
    }

    /// The times that have become known.
    pub(super) fn take_spans(&self) -> Vec<Span> {
        mem::take(&mut self.recording().spans)
    }

    /// Submits all recorded commands, and waits until they are done.
    ///
    /// # Errors
    /// The driver's, for any of them.
    pub(super) fn submit(&self, anchor: &Anchor) -> Result<()> {
        let recording = &mut *self.recording();
        if recording.commands.is_empty() {
            return Ok(());
        }
        let commands = mem::take(&mut recording.commands);
        let (answer, answered) = channel();
        self.sets.submit(Submission {
            kind: self.kind(&commands),
            commands,
            anchor: anchor.clone(),
            answer,
        });
        let lost = |_| Error::msg("internal error: the thread that submits work has ended");
        let outcome = answered.recv().map_err(lost)?;
        recording
            .spans
            .extend(outcome.map_err(|error| anyhow!("{error}"))?);
        Ok(())
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Recorder")
    }
}
