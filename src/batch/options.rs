//! What a user may say of a batch.

use super::inputs::Selection;
use super::progress::Verbosity;
use crate::limits;
use crate::memory_budget;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// How a batch is done.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Options {
    /// Which files.
    #[command(flatten)]
    pub selection: Selection,

    /// Images worked on at the same time; without it one for each core
    #[arg(short, long, value_name = "N", help_heading = "Many files")]
    pub jobs: Option<NonZeroUsize>,

    /// Memory that the images under way may take together, as 8G or 500M; without it half of what is free
    #[arg(long, value_name = "SIZE", value_parser = memory_budget::size, help_heading = "Many files")]
    pub mem_limit: Option<u64>,

    /// Write a line of JSON for every file to FILE
    #[arg(long, value_name = "FILE", help_heading = "Many files")]
    pub report: Option<PathBuf>,

    /// Go on where an earlier run into the same folder stopped: skip what is done and unchanged
    #[arg(long, help_heading = "Many files")]
    pub resume: bool,

    /// Only tell what would be done: files, pixels, memory and about how long
    #[arg(long, help_heading = "Many files")]
    pub dry_run: bool,

    /// How much is said.
    #[command(flatten)]
    pub verbosity: Verbosity,
}

impl Options {
    /// Whether something was asked for that only a batch does, even of one file.
    pub fn wanted(&self) -> bool {
        let Selection {
            include,
            exclude,
            files_from,
            shard,
        } = &self.selection;
        !include.is_empty()
            || !exclude.is_empty()
            || files_from.is_some()
            || shard.is_some()
            || self.report.is_some()
            || self.resume
            || self.dry_run
    }

    /// How many images are worked on at the same time.
    pub fn threads(&self) -> usize {
        match self.jobs {
            Some(jobs) => jobs.get(),
            None => rayon::current_num_threads(),
        }
    }

    /// The most memory that images under way take together, in bytes; one that needs more goes alone.
    pub fn memory(&self) -> u64 {
        self.mem_limit.unwrap_or_else(limits::free_memory)
    }
}
