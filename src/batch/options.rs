//! The options for inputs and outputs: the selection of files, the number of images at a time, and
//! the form of the results.

use super::inputs::Selection;
use super::naming::Pattern;
use super::shard::Shard;
use super::watch::options::Watching;
use crate::codec::{self, Format, format};
use crate::image::Depth;
use crate::limits;
use crate::memory_budget;
use crate::metadata::Axis;
use crate::ops::fit::Fit;
use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use std::env;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How a batch is done.
#[derive(Args, Clone, Debug, Default)]
pub struct Options {
    /// The files to process.
    #[command(flatten)]
    pub selection: Selection,

    /// Images worked on at the same time; without it one for each core
    #[arg(short, long, value_name = "N", value_parser = jobs, help_heading = "Many files")]
    pub jobs: Option<NonZeroUsize>,

    /// Memory that the images under way may take together, as 8G or 500M; without it half of what is free
    #[arg(long, value_name = "SIZE", value_parser = memory_budget::limit, help_heading = "Many files")]
    pub mem_limit: Option<u64>,

    /// Write a line of JSON for every file to FILE, behind those of earlier runs; - is standard output
    #[arg(long, value_name = "FILE", help_heading = "Many files")]
    pub report: Option<PathBuf>,

    /// Go on where an earlier run into the same folder stopped: skip what is done and unchanged
    #[arg(long, help_heading = "Many files")]
    pub resume: bool,

    /// Only tell what would be done: files, pixels, memory and about how long
    #[arg(long, help_heading = "Many files")]
    pub dry_run: bool,

    /// Whether and how folders are watched.
    #[command(flatten)]
    pub watching: Watching,

    /// The verbosity.
    #[command(flatten)]
    pub verbosity: Verbosity,
}

/// A time in seconds that an environment variable sets, for tests that cannot wait as long as users can.
pub(super) fn seconds_from(variable: &str) -> Option<Duration> {
    let seconds = env::var(variable).ok()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Parses a number of images.
fn jobs(text: &str) -> std::result::Result<NonZeroUsize, String> {
    let number = text.parse().ok();
    number.ok_or_else(|| "expected a whole number from 1 on, as 4".into())
}

impl Options {
    /// Whether an option was given that only a batch supports, even for one file.
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
            || self.watching.watch
    }

    /// Whether an option was given that keeps account of results, one a file.
    pub fn keeps_account(&self) -> bool {
        self.report.is_some()
            || self.resume
            || self.dry_run
            || self.watching.watch
            || self.selection.shard.is_some()
    }

    /// Refuses a report on standard output beside `what`, which is written there.
    ///
    /// # Errors
    /// What to do instead.
    pub fn report_beside(&self, what: &str) -> Result<()> {
        ensure!(
            self.report.as_deref() != Some(Path::new("-")),
            "--report - and {what} would share standard output: give the report a file"
        );
        Ok(())
    }

    /// The number of images processed at the same time.
    pub fn threads(&self) -> usize {
        match self.jobs {
            Some(jobs) => jobs.get(),
            None => rayon::current_num_threads(),
        }
    }

    /// The memory budget for all images in progress, in bytes; an image that needs more is
    /// processed alone.
    pub fn memory(&self) -> u64 {
        self.mem_limit.unwrap_or_else(limits::free_memory)
    }
}

/// The verbosity of a batch.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct Verbosity {
    /// Say nothing but errors
    #[arg(short, long, help_heading = "Many files")]
    pub quiet: bool,

    /// Show no progress
    #[arg(long, help_heading = "Many files")]
    pub no_progress: bool,
}

impl Verbosity {
    /// The same, but of steps that nobody needs to hear of.
    pub fn silent(self) -> Verbosity {
        Verbosity {
            quiet: true,
            no_progress: true,
        }
    }
}

/// The inputs and the output of a subcommand that makes images.
#[derive(Args, Clone, Debug)]
pub struct Files {
    /// Images to read, of any format that `gpuimg formats` lists, told by their content, or folders of them, and last the image or the folder to write, which is made; - is a standard stream
    #[arg(required_unless_present = "output", value_name = "PATH")]
    pub paths: Vec<PathBuf>,

    /// The image or the folder to write, instead of naming it last
    #[arg(short, long, value_name = "OUTPUT")]
    pub output: Option<PathBuf>,

    /// Format of the output, where its name does not tell, or of all outputs of a batch; an extension means its format
    #[arg(long, value_parser = format::argument(), ignore_case = true)]
    pub format: Option<&'static dyn Format>,

    /// Bits a sample of the output; without it they are the input's
    #[arg(long, value_name = "8|16")]
    pub depth: Option<Bits>,

    /// Bring the image upright, as its orientation tag says, before anything else, and set the tag
    /// to upright
    #[arg(long)]
    pub auto_orient: bool,

    /// Make the result smaller, its longer side of N pixels: each is the exact average of the area it covers
    #[arg(long, value_name = "N")]
    pub fit: Option<Fit>,

    /// Hold some rows of an image instead of all where that is possible, on the CPU: normalize, restore and flip horizontal between PNG, TIFF and uncompressed formats. The input is read twice
    #[arg(long)]
    pub low_memory: bool,

    /// Replace the output if it exists; it may be the input itself
    #[arg(long, short_alias = 'f', visible_alias = "force")]
    pub overwrite: bool,

    /// Have every output on the disk itself before it gets its name, and the name before it is done
    #[arg(long)]
    pub sync: bool,

    /// Write each page of a stack to a file of its own, in a folder; without --name it is called {stem}-{page:04}.{ext}
    #[arg(long, help_heading = "Many files")]
    pub split: bool,

    /// Make one stack of all inputs, each page of each behind the other, in one range
    #[arg(long, conflicts_with_all = ["split", "name"], help_heading = "Many files")]
    pub stack: bool,

    /// How results in a folder are called, with the input's {stem} and {ext}, for frames of standard input their number, {n:05} or without :05, and with --split {page}, {c}, {z} and {t}; an extension of its own decides the format. Without it {stem}.{ext}
    #[arg(long, value_name = "PATTERN", help_heading = "Many files")]
    pub name: Option<Pattern>,

    /// The options of a batch.
    #[command(flatten)]
    pub batch: Options,

    /// The compression for each format.
    #[command(flatten)]
    pub options: codec::Options,
}

/// The inputs and the output of a subcommand that makes one image of many.
#[derive(Args, Clone, Debug)]
pub struct Gathered {
    /// Images to read, of one shape, or folders of them, and last the image to write
    #[arg(required = true, value_name = "INPUT… OUTPUT")]
    pub paths: Vec<PathBuf>,

    /// Of a stack whose metadata name its axes (ImageJ's hyperstacks, OME-TIFF), project the pages along this one: one image for each place on the others
    #[arg(long, value_name = "AXIS", conflicts_with_all = ["partial", "pages"])]
    pub axis: Option<Axis>,

    /// Format of the output, where its name does not tell
    #[arg(long, value_parser = format::argument())]
    pub format: Option<&'static dyn Format>,

    /// Replace the output if it exists
    #[arg(long)]
    pub overwrite: bool,

    /// Have the output on the disk itself before it gets its name, and the name when this ends
    #[arg(long)]
    pub sync: bool,

    /// Of directories, take only files that match GLOB (path below the directory, or name alone)
    #[arg(long, value_name = "GLOB", help_heading = "Many files")]
    pub include: Vec<String>,

    /// Of directories, leave out files and folders that match GLOB
    #[arg(long, value_name = "GLOB", help_heading = "Many files")]
    pub exclude: Vec<String>,

    /// Take inputs from a list too, one a line or NUL-separated; - is standard input
    #[arg(long, value_name = "FILE", help_heading = "Many files")]
    pub files_from: Option<PathBuf>,

    /// Write what sums, smallest and largest samples are made of instead of an image, to OUTPUT.partial: gpuimg merge joins it with those of the other parts
    #[arg(long, help_heading = "Many files")]
    pub partial: bool,

    /// With --partial, take only the Ith of N parts of the inputs (from 1), split by their names; auto asks Slurm's or Kubernetes' variables
    #[arg(
        long,
        value_name = "I/N|auto",
        requires = "partial",
        help_heading = "Many files"
    )]
    pub shard: Option<Shard>,

    /// Images read at the same time; without it one for each core
    #[arg(short, long, value_name = "N", help_heading = "Many files")]
    pub jobs: Option<NonZeroUsize>,

    /// Memory that the images under way may take together, as 8G or 500M; without it half of what is free
    #[arg(long, value_name = "SIZE", value_parser = memory_budget::limit, help_heading = "Many files")]
    pub mem_limit: Option<u64>,

    /// The verbosity.
    #[command(flatten)]
    pub verbosity: Verbosity,

    /// The compression for each format.
    #[command(flatten)]
    pub options: codec::Options,
}

impl Gathered {
    /// The options as those of a batch.
    pub fn batch(&self) -> Options {
        Options {
            selection: Selection {
                include: self.include.clone(),
                exclude: self.exclude.clone(),
                files_from: self.files_from.clone(),
                shard: None,
            },
            jobs: self.jobs,
            mem_limit: self.mem_limit,
            verbosity: self.verbosity,
            ..Options::default()
        }
    }
}

/// The depths of `--depth`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Bits {
    /// 0 to 255
    #[value(name = "8")]
    Eight,
    /// 0 to 65535
    #[value(name = "16")]
    Sixteen,
}

impl From<Bits> for Depth {
    fn from(bits: Bits) -> Depth {
        match bits {
            Bits::Eight => Depth::Eight,
            Bits::Sixteen => Depth::Sixteen,
        }
    }
}

/// How `merge` writes an image.
#[derive(Args, Clone, Copy, Debug)]
pub struct Merged {
    /// The compression for each format.
    #[command(flatten)]
    pub options: codec::Options,
}

/// The output of `histogram` and `merge`.
#[derive(Args, Clone, Debug)]
pub struct Counted {
    /// File to write
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,

    /// Replace the output if it exists
    #[arg(long, short_alias = 'f', visible_alias = "force")]
    pub overwrite: bool,

    /// Have the output on the disk itself before it gets its name, and the name when this ends
    #[arg(long)]
    pub sync: bool,
}
