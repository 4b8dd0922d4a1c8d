//! The command line: clap types only.

mod chain;
mod examples;
mod images;
mod mistakes;

use crate::batch::inputs::Selection;
use crate::batch::options::{Counted, Files, Gathered, Merged, Options};
use crate::bench;
use crate::device::visible::Demand;
use crate::ops::Verb as _;
use crate::ops::histogram::Histogram as Counting;
use crate::ops::project::Project;
use crate::ops::sum::Sum;
use crate::options::{Common, DeviceOption};
use clap::{ArgAction, Args, Parser, Subcommand};
use std::path::PathBuf;

pub use chain::{Step, steps};
pub use images::Images;
pub use mistakes::{misread, sentence};

/// Normalize, turn and sum 16-bit images on an NVIDIA GPU or on the CPU: the same bytes from both
///
/// Exit status: 0 done; 1 a file failed; 2 wrong usage; 3 the GPU asked for cannot be used; 130, 143 and 129 after SIGINT, SIGTERM and SIGHUP.
#[derive(Parser, Debug)]
#[command(version, disable_version_flag = true, about, max_term_width = 100, after_help = examples::ALL)]
pub struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub verb: Verb,

    /// Print the version; with --verbose behind it also the commit, the target and the GPUs that it has code for
    #[arg(short = 'V', long, action = ArgAction::Version)]
    pub version: Option<bool>,

    /// Print the licences of gpuimg and of everything that is compiled into it
    #[arg(long, action = ArgAction::Version)]
    pub licenses: Option<bool>,
}

impl Cli {
    /// What the verb demands of the GPUs; `None` if it computes nothing, or chooses among GPUs by itself.
    pub fn demand(&self) -> Option<Demand<'_>> {
        let (files, common) = match &self.verb {
            Verb::Images(images) => (&images.files, &images.common),
            Verb::Calibrate { files, common, .. } | Verb::Run { files, common, .. } => {
                (files, common)
            }
            Verb::Sum { inputs, common, .. } | Verb::Histogram { inputs, common, .. } => {
                return Some(Demand {
                    choice: common.device.choice,
                    inputs,
                    shared: true,
                });
            }
            // Images wait for one another to be added, and so one GPU serves all.
            Verb::Project { files, common, .. } => {
                return Some(Demand {
                    choice: common.device.choice,
                    inputs: &files.paths,
                    shared: false,
                });
            }
            _ => return None,
        };
        let inputs = match (&files.output, files.paths.split_last()) {
            (None, Some((_, inputs))) => inputs,
            _ => &files.paths,
        };
        Some(Demand {
            choice: common.device.choice,
            inputs,
            shared: true,
        })
    }
}

/// The subcommands.
#[derive(Subcommand, Debug)]
pub enum Verb {
    /// The operations that make images.
    #[command(flatten)]
    Images(Images),
    /// Subtract a dark frame and divide by a flat field, sample by sample, exactly rounded
    #[command(after_help = examples::CALIBRATE)]
    Calibrate {
        /// The frames and their options.
        #[command(flatten)]
        frames: Frames,
        /// The inputs and the output.
        #[command(flatten)]
        files: Files,
        /// The options of every verb that reads images.
        #[command(flatten)]
        common: Common,
    },
    /// Carry out several verbs on each image in one pass: the result of one is the input of the next, and no file lies between them
    #[command(after_help = examples::RUN, override_usage = "gpuimg run [OPTIONS] VERBS INPUT... OUTPUT")]
    Run {
        /// The verbs with their own options, + between them: normalize, transpose, rotate, flip and calibrate
        #[arg(value_name = "VERBS")]
        verbs: String,
        /// The inputs and the output.
        #[command(flatten)]
        files: Files,
        /// The options of every verb that reads images.
        #[command(flatten)]
        common: Common,
    },
    /// Make one image of many, or of the pages of a stack, pixel by pixel: their sum, mean, minimum, maximum or median
    #[command(after_help = examples::PROJECT)]
    Project {
        /// The projection with its options.
        #[command(flatten)]
        op: Project,
        /// The inputs and the output.
        #[command(flatten)]
        files: Gathered,
        /// The options of every verb that reads images.
        #[command(flatten)]
        common: Common,
    },
    /// Add up the samples, exactly, in each channel and together
    #[command(after_help = Sum::EXAMPLES, mut_arg("resume", |arg| arg.hide(true)))]
    Sum {
        /// The operation's options.
        #[command(flatten)]
        op: Sum,
        /// Print one JSON object for each file
        #[arg(long)]
        json: bool,
        /// Images to add up, each by itself, or folders of them; - is standard input
        #[arg(required_unless_present = "files_from", value_name = "INPUT")]
        inputs: Vec<PathBuf>,
        /// The options of a batch.
        #[command(flatten)]
        batch: Options,
        /// The options of every verb that reads images.
        #[command(flatten)]
        common: Common,
    },
    /// Count how often each value occurs in a whole set of images, for `normalize --range-from`
    #[command(after_help = Counting::EXAMPLES, mut_arg("resume", |arg| arg.hide(true)))]
    Histogram {
        /// Images to count together, or folders of them
        #[arg(required_unless_present = "files_from", value_name = "INPUT")]
        inputs: Vec<PathBuf>,
        /// The output.
        #[command(flatten)]
        output: Counted,
        /// The options of a batch.
        #[command(flatten)]
        batch: Options,
        /// The options of every verb that reads images.
        #[command(flatten)]
        common: Common,
    },
    /// Print what each image is: size, sample type, pages, axes and metadata
    #[command(after_help = examples::INFO)]
    Info {
        /// Images, or folders of them; - is standard input
        #[arg(required_unless_present = "files_from", value_name = "INPUT")]
        inputs: Vec<PathBuf>,
        /// Print one JSON object for each image
        #[arg(long)]
        json: bool,
        /// Decode each image and print its smallest and largest value
        #[arg(long)]
        range: bool,
        /// The files of folders.
        #[command(flatten)]
        selection: Selection,
        /// The options of every verb that reads images.
        #[command(flatten)]
        common: Common,
    },
    /// Join the histograms of the parts of a set, or their partial projections to an image
    #[command(after_help = examples::MERGE)]
    Merge {
        /// Files of `gpuimg histogram` or of `gpuimg project --partial`, one of each part, or folders of them
        #[arg(required = true, value_name = "INPUT")]
        inputs: Vec<PathBuf>,
        /// The output.
        #[command(flatten)]
        output: Counted,
        /// How an image is written.
        #[command(flatten)]
        image: Merged,
    },
    /// Compare two images sample by sample, or one image's results on the CPU and on a GPU
    #[command(visible_alias = "compare", after_help = examples::VERIFY)]
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
        /// The GPU for --devices.
        #[command(flatten)]
        device: DeviceOption,
    },
    /// List the formats that are read and written, and what their files can hold
    Formats {
        /// Print one JSON object for each format
        #[arg(long)]
        json: bool,
    },
    /// Measure the papers' kernels and the program's own on this machine, beside the published figures
    #[command(after_help = examples::BENCH)]
    Bench {
        /// The tables to run, and the form of the report.
        #[command(flatten)]
        options: bench::Options,
        /// The device.
        #[command(flatten)]
        device: DeviceOption,
    },
    /// Tell what this machine has, and what `auto` makes of it
    #[command(after_help = examples::DOCTOR)]
    Doctor {
        /// The device.
        #[command(flatten)]
        device: DeviceOption,
    },
    /// Print the completions for a shell
    #[command(alias = "completion", after_help = examples::COMPLETIONS)]
    Completions {
        /// For which: bash, zsh, fish, …
        shell: clap_complete::Shell,
    },
    /// Write the man pages, one for each verb, to a folder
    #[command(after_help = examples::MAN)]
    Man {
        /// The folder, which is made if it is missing
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
    #[arg(long, help_heading = "Many files")]
    pub across: bool,
}

/// A histogram that changes while a folder is watched.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Following {
    /// Read the FILE of --range-from again whenever it is replaced, for the files that come from then on
    #[arg(long, requires_all = ["range_from", "watch"], help_heading = "Watched folders")]
    pub follow: bool,
}
