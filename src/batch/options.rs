//! The options for inputs and outputs: the selection of files, the number of images at a time, and
//! the form of the results.

use super::inputs::Selection;
use super::naming::Pattern;
use super::shard::Shard;
use super::watch::options::Watching;
use crate::engine::options::TypedCommand;
use crate::formats::{self, Format, format};
use crate::image::Depth;
use crate::image::metadata::Axis;
use crate::ops::combine::ChannelColours;
use crate::ops::fit::Fit;
use crate::os::limits;
use crate::os::memory_budget::{self, MemoryBudget};
use anyhow::{Result, bail, ensure};
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

    /// Number of images to process at the same time (default: one per core, more with a GPU)
    #[arg(short, long, value_name = "N", value_parser = jobs, help_heading = "Many files")]
    pub jobs: Option<NonZeroUsize>,

    /// Total memory for images in flight, e.g. 8G or 500M (default: half of the free memory)
    #[arg(long, value_name = "SIZE", value_parser = memory_budget::limit, help_heading = "Many files")]
    pub mem_limit: Option<u64>,

    /// Append one line of JSON per file to FILE; - is standard output. A FILE that ends in .html becomes a page with a picture of each result, its status and warnings
    #[arg(long, value_name = "FILE", help_heading = "Many files")]
    pub report: Option<PathBuf>,

    /// Continue an interrupted run into the same folder: skip inputs that are done and unchanged. Results of a run with other options are replaced
    #[arg(long, help_heading = "Many files")]
    pub resume: bool,

    /// Write no .gpuimg-journal into the output folder; the run cannot be resumed
    #[arg(long, conflicts_with_all = ["resume", "watch"], help_heading = "Many files")]
    pub no_journal: bool,

    /// Show what would be done, without doing it: files, pixels, memory and approximate time
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
    number.ok_or_else(|| "expected a positive whole number, e.g. 4".into())
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

    /// Refuses a report on standard output beside `what`, which is written there.
    ///
    /// # Errors
    /// What to do instead.
    pub fn report_beside(&self, what: &str) -> Result<()> {
        ensure!(
            self.report.as_deref() != Some(Path::new("-")),
            "--report - and {what} would both use standard output: write the report to a file"
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

    /// The memory budget of a job that processes one image after the other: `--mem-limit`, or none.
    pub fn budget(&self) -> Option<MemoryBudget> {
        self.mem_limit.map(MemoryBudget::new)
    }
}

/// The verbosity of a batch.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct Verbosity {
    /// Print errors only
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
    /// Input images or folders, then the output image or folder (created if missing). Input formats are detected from content; see `gpuimg formats`. - is standard input or output
    #[arg(required_unless_present = "output", value_name = "PATH")]
    pub paths: Vec<PathBuf>,

    /// The output image or folder, instead of naming it last
    #[arg(short, long, value_name = "OUTPUT")]
    pub output: Option<PathBuf>,

    /// Output format, for names without an extension or for all outputs of a batch (default: from the extension)
    #[arg(long, value_parser = format::argument(), ignore_case = true)]
    pub format: Option<&'static Format>,

    /// The format of results in a folder, if neither an option nor a pattern of names sets it; `None` for that of each input.
    #[arg(skip)]
    pub format_in_folders: Option<&'static Format>,

    /// Output bits per sample (default: as input)
    #[arg(long, value_name = "8|16")]
    pub depth: Option<Bits>,

    /// Bring the image upright, as its orientation tag says, before anything else, and set the tag
    /// to upright
    #[arg(long)]
    pub auto_orient: bool,

    /// Shrink the result so that its longer side has N pixels, each the exact average of the area it covers
    #[arg(long, value_name = "N")]
    pub fit: Option<Fit>,

    /// Process in row bands to save memory, on the CPU; the input is read twice. For normalize, restore and flip horizontal between PNG, TIFF and uncompressed formats
    #[arg(long)]
    pub low_memory: bool,

    /// Replace existing outputs; the output may be the input itself
    #[arg(long, short_alias = 'f', visible_alias = "force")]
    pub overwrite: bool,

    /// Sync each output to disk before renaming it into place, and sync the folder after
    #[arg(long)]
    pub sync: bool,

    /// Write each page of a stack to its own file in a folder, named {stem}-{page:04}.{ext} unless --name is given
    #[arg(long, help_heading = "Many files")]
    pub split: bool,

    /// Combine all pages of all inputs into one stack, with one range
    #[arg(long, conflicts_with_all = ["split", "name"], help_heading = "Many files")]
    pub stack: bool,

    /// File name pattern for results in a folder, with {stem} and {ext} of the input, {n:05} for the number of a frame from standard input (without :05, not padded), and with --split {page}, {c}, {z} and {t}. A literal extension sets the format [default: {stem}.{ext}]
    #[arg(long, value_name = "PATTERN", help_heading = "Many files")]
    pub name: Option<Pattern>,

    /// The options of a batch.
    #[command(flatten)]
    pub batch: Options,

    /// The compression for each format.
    #[command(flatten)]
    pub options: formats::Options,
}

/// The axis along which pages are combined.
#[derive(Args, Clone, Copy, Debug)]
#[group(skip)]
pub struct Along {
    /// Project along this axis of a stack (ImageJ hyperstack, OME-TIFF or NIfTI): one image for each position on the other axes
    #[arg(long, value_name = "AXIS")]
    pub axis: Option<Axis>,
}

/// The inputs and the output of a subcommand that makes one image of many.
#[derive(Args, Clone, Debug)]
pub struct Gathered {
    /// Input images of the same size and type, or folders of images, then the output image
    #[arg(required = true, value_name = "INPUT… OUTPUT")]
    pub paths: Vec<PathBuf>,

    /// The axis along which pages are combined.
    #[command(flatten)]
    pub along: Along,

    /// Output format (default: from the extension)
    #[arg(long, value_parser = format::argument())]
    pub format: Option<&'static Format>,

    /// Output bits per sample (default: as the projection): the result is converted, as by convert --depth
    #[arg(long, value_name = "8|16", conflicts_with = "partial")]
    pub depth: Option<Bits>,

    /// Shrink the result so that its longer side has N pixels, each the exact average of the area it covers
    #[arg(long, value_name = "N", conflicts_with = "partial")]
    pub fit: Option<Fit>,

    /// Replace an existing output
    #[arg(long, short_alias = 'f', visible_alias = "force")]
    pub overwrite: bool,

    /// Sync the output to disk before renaming it into place, and sync the folder after
    #[arg(long)]
    pub sync: bool,

    /// In folders, process only files that match GLOB (the path below the folder, or the name)
    #[arg(long, value_name = "GLOB", help_heading = "Many files")]
    pub include: Vec<String>,

    /// In folders, skip files and folders that match GLOB
    #[arg(long, value_name = "GLOB", help_heading = "Many files")]
    pub exclude: Vec<String>,

    /// Also read input names from FILE, one per line or NUL-separated; - is standard input
    #[arg(long, value_name = "FILE", help_heading = "Many files")]
    pub files_from: Option<PathBuf>,

    /// Write a partial projection (sum, mean, min or max) to OUTPUT.partial instead of an image; gpuimg merge combines the parts
    #[arg(long, help_heading = "Many files")]
    pub partial: bool,

    /// With --partial, read only part I of N of the inputs (counted from 1, split by name); auto reads the variables of Slurm or Kubernetes
    #[arg(
        long,
        value_name = "I/N|auto",
        requires = "partial",
        help_heading = "Many files"
    )]
    pub shard: Option<Shard>,

    /// Append a line of JSON about the output and its inputs to FILE, which gpuimg prove reads; - is standard output
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "partial",
        help_heading = "Many files"
    )]
    pub report: Option<PathBuf>,

    /// Number of images to read at the same time (default: one per core)
    #[arg(short, long, value_name = "N", help_heading = "Many files")]
    pub jobs: Option<NonZeroUsize>,

    /// Total memory for images in flight, e.g. 8G or 500M (default: half of the free memory)
    #[arg(long, value_name = "SIZE", value_parser = memory_budget::limit, help_heading = "Many files")]
    pub mem_limit: Option<u64>,

    /// The verbosity.
    #[command(flatten)]
    pub verbosity: Verbosity,

    /// The compression for each format.
    #[command(flatten)]
    pub options: formats::Options,
}

/// The inputs and the output of `combine`.
#[derive(Args, Clone, Debug)]
pub struct ChannelFiles {
    /// Grey images of the same size, type and number of pages, one for each channel, then the output image; with --colours also a single stack. - is standard input or output
    #[arg(required_unless_present = "output", value_name = "INPUT… OUTPUT")]
    pub paths: Vec<PathBuf>,

    /// The output image, instead of naming it last
    #[arg(short, long, value_name = "OUTPUT")]
    pub output: Option<PathBuf>,

    /// Show each channel in a colour and add them up, e.g. C1=green,C2=#ff00ff. C1 is the first channel of a stack (ImageJ hyperstack, OME-TIFF or NIfTI), or the first of several files; channels of a stack without a colour are left out
    #[arg(long, visible_alias = "colors", value_name = "C1=COLOUR,…")]
    pub colours: Option<ChannelColours>,

    /// Output format (default: from the extension)
    #[arg(long, value_parser = format::argument(), ignore_case = true)]
    pub format: Option<&'static Format>,

    /// Output bits per sample (default: as input)
    #[arg(long, value_name = "8|16")]
    pub depth: Option<Bits>,

    /// Bring the image upright, as its orientation tag says, and set the tag to upright
    #[arg(long)]
    pub auto_orient: bool,

    /// Shrink the result so that its longer side has N pixels, each the exact average of the area it covers
    #[arg(long, value_name = "N")]
    pub fit: Option<Fit>,

    /// Replace an existing output
    #[arg(long, short_alias = 'f', visible_alias = "force")]
    pub overwrite: bool,

    /// Sync the output to disk before renaming it into place, and sync the folder after
    #[arg(long)]
    pub sync: bool,

    /// Append a line of JSON about the output and its inputs to FILE, which gpuimg prove reads; - is standard output
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,

    /// Show what would be done, without doing it
    #[arg(long)]
    pub dry_run: bool,

    /// Print errors only
    #[arg(short, long)]
    pub quiet: bool,

    /// The compression for each format.
    #[command(flatten)]
    pub options: formats::Options,
}

impl Gathered {
    /// The inputs and the output of `gpuimg run` whose first verb is a projection.
    ///
    /// # Errors
    /// An option for several results.
    pub fn of_run(files: &Files, along: Along) -> Result<Gathered> {
        let batch = &files.batch;
        let several = [
            ("--auto-orient", files.auto_orient),
            ("--low-memory", files.low_memory),
            ("--split", files.split),
            ("--stack", files.stack),
            ("--name", files.name.is_some()),
            ("--shard", batch.selection.shard.is_some()),
            ("--resume", batch.resume),
            ("--dry-run", batch.dry_run),
            ("--watch", batch.watching.watch),
        ];
        if let Some((option, _)) = several.into_iter().find(|(_, given)| *given) {
            bail!(
                "{option} cannot be combined with project, which makes one image: run gpuimg project on its own, and the other verbs on its result"
            );
        }
        let mut paths = files.paths.clone();
        paths.extend(files.output.clone());
        Ok(Gathered {
            paths,
            along,
            format: files.format,
            depth: files.depth,
            fit: files.fit,
            overwrite: files.overwrite,
            sync: files.sync,
            include: batch.selection.include.clone(),
            exclude: batch.selection.exclude.clone(),
            files_from: batch.selection.files_from.clone(),
            partial: false,
            shard: None,
            report: batch.report.clone(),
            jobs: batch.jobs,
            mem_limit: batch.mem_limit,
            verbosity: batch.verbosity,
            options: files.options,
        })
    }

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
#[derive(Args, Clone, Debug)]
pub struct Merged {
    /// Append a line of JSON about the image and the partial projections to FILE, which gpuimg prove reads; - is standard output
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,

    /// The compression for each format.
    #[command(flatten)]
    pub options: formats::Options,

    /// The command as it was typed, for a report.
    #[arg(skip)]
    pub typed: TypedCommand,
}

/// The output of `histogram` and `merge`.
#[derive(Args, Clone, Debug)]
pub struct Counted {
    /// File to write
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,

    /// Replace an existing output
    #[arg(long, short_alias = 'f', visible_alias = "force")]
    pub overwrite: bool,

    /// Sync the output to disk before renaming it into place, and sync the folder after
    #[arg(long)]
    pub sync: bool,
}
