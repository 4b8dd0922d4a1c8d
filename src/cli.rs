//! The command line: clap types only.

mod images;

use crate::batch::options::{Counted, Files, Gathered, Options};
use crate::bench;
use crate::ops::project::Project;
use crate::ops::sum::Sum;
use crate::options::Common;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

pub use images::Images;

/// Normalize, turn and sum 16-bit images on an NVIDIA GPU or on the CPU: the same bytes from both
///
/// Exit status: 0 done; 1 a file failed; 2 wrong usage; 3 the GPU asked for cannot be used.
#[derive(Parser, Debug)]
#[command(version, about, max_term_width = 100)]
pub struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub verb: Verb,

    /// The options that every subcommand has.
    #[command(flatten)]
    pub common: Common,
}

/// The subcommands.
#[derive(Subcommand, Debug)]
pub enum Verb {
    /// The operations that make images.
    #[command(flatten)]
    Images(Images),
    /// Subtract a dark frame and divide by a flat field, sample by sample, exactly rounded
    Calibrate {
        /// The frames and their options.
        #[command(flatten)]
        frames: Frames,
        /// The inputs and the output.
        #[command(flatten)]
        files: Files,
    },
    /// Make one image of many, or of the pages of a stack, pixel by pixel: their sum, mean, minimum, maximum or median
    Project {
        /// The projection with its options.
        #[command(flatten)]
        op: Project,
        /// The inputs and the output.
        #[command(flatten)]
        files: Gathered,
    },
    /// Add up the samples, exactly, in each channel and together
    Sum {
        /// The operation's options.
        #[command(flatten)]
        op: Sum,
        /// Print one JSON object for each file
        #[arg(long)]
        json: bool,
        /// Images to add up, each by itself, or folders of them; - is standard input
        #[arg(required_unless_present = "files_from")]
        inputs: Vec<PathBuf>,
        /// The options of a batch.
        #[command(flatten)]
        batch: Options,
    },
    /// Count how often each value occurs in a whole set of images, for `normalize --range-from`
    Histogram {
        /// Images to count together, or folders of them
        #[arg(required_unless_present = "files_from")]
        inputs: Vec<PathBuf>,
        /// The output.
        #[command(flatten)]
        output: Counted,
        /// The options of a batch.
        #[command(flatten)]
        batch: Options,
    },
    /// Join the histograms of the parts of a set
    Merge {
        /// Files of `gpuimg histogram`, one of each part, or folders of them
        #[arg(required = true)]
        inputs: Vec<PathBuf>,
        /// The output.
        #[command(flatten)]
        output: Counted,
    },
    /// Compare two images sample by sample, or one image's results on the CPU and on a GPU
    Verify {
        /// The images; their formats and metadata may differ
        #[arg(required = true, num_args = 1..=2, value_name = "IMAGE")]
        images: Vec<PathBuf>,
        /// Do every operation to one image on both devices
        #[arg(long)]
        devices: bool,
        /// Print one JSON object
        #[arg(long, conflicts_with = "devices")]
        json: bool,
    },
    /// Measure the papers' kernels and the program's own on this machine, beside the published figures
    Bench {
        /// The tables to run, and the form of the report.
        #[command(flatten)]
        options: bench::Options,
    },
    /// Tell what this machine has, and what `auto` makes of it
    Doctor,
    /// Print the completions for a shell
    Completions {
        /// For which: bash, zsh, fish, …
        shell: clap_complete::Shell,
    },
    /// Write the man pages, one for each verb, to a folder
    Man {
        /// The folder, which must exist
        folder: PathBuf,
    },
}

/// The frames of `calibrate`.
#[derive(Args, Clone, Debug)]
#[group(skip)]
pub struct Frames {
    /// Subtract this dark frame; of a folder, or of several pages, the mean of all
    #[arg(long, value_name = "IMAGE", required_unless_present = "flat")]
    pub dark: Option<PathBuf>,

    /// Divide by this flat field, less the dark frame, and multiply by its mean, channel by channel; of a folder, or of several pages, the mean of all
    #[arg(long, value_name = "IMAGE")]
    pub flat: Option<PathBuf>,

    /// Add this to every result, so that what lies below the dark frame is not clamped to 0
    #[arg(
        long,
        value_name = "VALUE",
        default_value_t = 0,
        allow_hyphen_values = true,
        value_parser = clap::value_parser!(i32).range(-65535..=65535)
    )]
    pub offset: i32,

    /// Then replace each sample that exceeds the median of its 8 neighbours by more than this by that median
    #[arg(long, value_name = "THRESHOLD")]
    pub hot: Option<u16>,
}

/// The source of a range for a whole set.
#[derive(Args, Clone, Debug, Default)]
pub struct WholeSet {
    /// Take the range of the set that `gpuimg histogram` counted in FILE
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "across",
        help_heading = "Many files"
    )]
    pub range_from: Option<PathBuf>,

    /// Measure all inputs first, and give all of them the same range
    #[arg(long, conflicts_with = "shard", help_heading = "Many files")]
    pub across: bool,
}
