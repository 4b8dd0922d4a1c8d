//! The program `gpuimg`: its command line, and `main`, which runs what was typed.

mod chain;
pub(crate) mod entry;
mod examples;
mod help;
mod images;
mod mistakes;
mod typed;
mod usage;
pub(crate) mod verbs;
mod version;

use crate::batch::inputs::Selection;
use crate::batch::options::{ChannelFiles, Counted, Files, Gathered, Merged, Options};
use crate::bench;
use crate::engine::options::{Common, DeviceOption, TypedCommand};
use crate::gpu::visible::Demand;
use crate::ops::Verb as _;
use crate::ops::calibrate::{ResultType, Settings};
use crate::ops::histogram::Histogram as Counting;
use crate::ops::project::Project;
use crate::ops::sum::Sum;
use crate::os::memory_budget;
use clap::{Arg, ArgAction, Args, Parser, Subcommand};
use std::num::NonZeroUsize;
use std::path::PathBuf;

pub use entry::{main, main_with};

pub(crate) use chain::{Projected, Step, steps};
pub(crate) use entry::{print_error, status};
pub(crate) use images::Images;
pub(crate) use mistakes::{misread, sentence};

/// Normalize, rotate and sum 16-bit images on an NVIDIA GPU or on the CPU, with bit-identical results
///
/// Exit status: 0 success; 1 a file failed; 2 wrong usage; 3 the requested GPU cannot be used; 130, 143 and 129 after SIGINT, SIGTERM and SIGHUP.
#[derive(Parser, Debug)]
#[command(version, disable_version_flag = true, about, max_term_width = 100, after_help = examples::ALL)]
pub(crate) struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub verb: Verb,

    /// Print the version; with --verbose after it, also the commit, the target and the supported GPU architectures
    #[arg(short = 'V', long, action = ArgAction::Version)]
    pub version: Option<bool>,

    /// Print the licences of gpuimg and of all libraries that are compiled into it
    #[arg(long, action = ArgAction::Version)]
    pub licenses: Option<bool>,

    /// Print all verbs and their options as JSON, one object per verb
    #[arg(long, action = ArgAction::Version)]
    pub json_usage: Option<bool>,
}

impl Cli {
    /// Records the command as it was typed, for a report.
    pub fn record(&mut self, typed: TypedCommand) {
        match &mut self.verb {
            Verb::Images(images) => images.common.typed = typed,
            Verb::Calibrate { common, .. }
            | Verb::Run { common, .. }
            | Verb::Project { common, .. }
            | Verb::Combine { common, .. }
            | Verb::Sum { common, .. }
            | Verb::Histogram { common, .. } => common.typed = typed,
            Verb::Merge { image, .. } => image.typed = typed,
            // The others have no report.
            _ => {}
        }
    }

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
pub(crate) enum Verb {
    /// The operations that make images.
    #[command(flatten)]
    Images(Images),
    /// Subtract a dark frame and divide by a flat field, sample by sample, correctly rounded
    #[command(after_help = examples::CALIBRATE, override_usage = "gpuimg calibrate [OPTIONS] INPUT... OUTPUT")]
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
    /// Apply several verbs to each image in one pass, without intermediate files
    #[command(after_help = examples::RUN, override_usage = "gpuimg run [OPTIONS] VERBS INPUT... OUTPUT")]
    Run {
        /// The verbs with their own options, separated by +: normalize, convert, crop, debayer, lut, transpose, rotate, flip and calibrate; project can be the first
        #[arg(value_name = "VERBS")]
        verbs: String,
        /// The inputs and the output.
        #[command(flatten)]
        files: Files,
        /// The options of every verb that reads images.
        #[command(flatten)]
        common: Common,
    },
    /// Combine many images, or the pages of a stack, into one: the sum, mean, minimum, maximum or median of each pixel
    #[command(
        after_help = examples::PROJECT,
        override_usage = "gpuimg project [OPTIONS] PROJECTION INPUT... OUTPUT",
        mut_arg("axis", |arg| arg.conflicts_with_all(["partial", "pages"]))
    )]
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
    /// Combine grey images into RGB: one file for each channel, or each channel in its own colour
    #[command(
        after_help = examples::COMBINE,
        override_usage = "gpuimg combine [OPTIONS] RED GREEN BLUE [ALPHA] OUTPUT\n       gpuimg combine [OPTIONS] --colours C1=COLOUR,... INPUT... OUTPUT"
    )]
    Combine {
        /// The inputs and the output.
        #[command(flatten)]
        files: ChannelFiles,
        /// The options of every verb that reads images.
        #[command(flatten)]
        common: Common,
    },
    /// Add up the samples exactly, for each channel and in total
    #[command(after_help = Sum::EXAMPLES, mut_arg("resume", |arg| arg.hide(true)), mut_arg("no_journal", |arg| arg.hide(true)), mut_arg("files_from", without_results))]
    Sum {
        /// The operation's options.
        #[command(flatten)]
        op: Sum,
        /// Print one JSON object per page
        #[arg(long)]
        json: bool,
        /// Images or folders of images, each image summed separately; - is standard input
        #[arg(required_unless_present = "files_from", value_name = "INPUT")]
        inputs: Vec<PathBuf>,
        /// The options of a batch.
        #[command(flatten)]
        batch: Options,
        /// The options of every verb that reads images.
        #[command(flatten)]
        common: Common,
    },
    /// Count how often each value occurs in a set of images, for `normalize --range-from`
    #[command(after_help = Counting::EXAMPLES, mut_arg("resume", |arg| arg.hide(true)), mut_arg("no_journal", |arg| arg.hide(true)), mut_arg("files_from", without_results))]
    Histogram {
        /// Images to count together, or folders of images
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
    #[command(after_help = examples::INFO, mut_arg("files_from", without_results))]
    Info {
        /// Images, or folders of them; - is standard input
        #[arg(required_unless_present = "files_from", value_name = "INPUT")]
        inputs: Vec<PathBuf>,
        /// Print one JSON object for each image
        #[arg(long)]
        json: bool,
        /// Decode each image and print its smallest and largest value, without NaN and infinite samples
        #[arg(long)]
        range: bool,
        /// Write a page with a small picture, the facts, a histogram and warnings for each image instead; - is standard output
        #[arg(long, value_name = "SHEET.html", conflicts_with_all = ["json", "range"])]
        html: Option<PathBuf>,
        /// The files of folders.
        #[command(flatten)]
        selection: Selection,
        /// The options of every verb that reads images.
        #[command(flatten)]
        common: Common,
    },
    /// Merge the histograms of the parts of a set, or their partial projections into an image
    #[command(after_help = examples::MERGE)]
    Merge {
        /// Files written by `gpuimg histogram` or `gpuimg project --partial`, one for each part, or folders of such files
        #[arg(required = true, value_name = "INPUT")]
        inputs: Vec<PathBuf>,
        /// The output.
        #[command(flatten)]
        output: Counted,
        /// How an image is written.
        #[command(flatten)]
        image: Merged,
    },
    /// Recompute the outputs of a report, and compare them with the existing files
    #[command(after_help = examples::PROVE)]
    Prove {
        /// Files written by --report; paths in them are relative to the current folder
        #[arg(required = true, value_name = "REPORT")]
        reports: Vec<PathBuf>,
        /// How the outputs are derived.
        #[command(flatten)]
        options: Proving,
    },
    /// Compare two images sample by sample, or the results for one image on the CPU and on a GPU
    #[command(visible_alias = "compare", after_help = examples::VERIFY)]
    Verify {
        /// The images to compare; their formats and metadata may differ
        #[arg(required = true, num_args = 1..=2, value_name = "IMAGE")]
        images: Vec<PathBuf>,
        /// Run every operation on one image on both devices and compare the results
        #[arg(long)]
        devices: bool,
        /// Print one JSON object
        #[arg(long, conflicts_with = "devices")]
        json: bool,
        /// The GPU for --devices.
        #[command(flatten)]
        device: DeviceOption,
    },
    /// List the supported formats and what each can store
    Formats {
        /// Print one JSON object per format
        #[arg(long)]
        json: bool,
    },
    /// Measure the kernels of gpuimg, and of the articles that they are based on, next to the published figures
    #[command(after_help = examples::BENCH)]
    Bench {
        /// The tables to run, and the form of the report.
        #[command(flatten)]
        options: bench::Options,
        /// The device.
        #[command(flatten)]
        device: DeviceOption,
    },
    /// Show the hardware and the plan of an example
    #[command(after_help = examples::DOCTOR)]
    Doctor {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        /// The device.
        #[command(flatten)]
        device: DeviceOption,
    },
    /// Print a completion script for a shell
    #[command(alias = "completion", after_help = examples::COMPLETIONS)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages, one per verb, to a folder
    #[command(after_help = examples::MAN)]
    Man {
        /// The folder, created if missing
        folder: PathBuf,
    },
}

/// The help of `--files-from` where each input has no result.
fn without_results(option: Arg) -> Arg {
    option
        .help("Also read input names from FILE, one per line or NUL-separated; - is standard input")
}

/// How `prove` derives outputs.
#[derive(Args, Clone, Debug)]
#[group(skip)]
pub(crate) struct Proving {
    /// Print a line for each proven output, too
    #[arg(short, long)]
    pub verbose: bool,

    /// Refuse images with more pixels than this before allocating memory
    #[arg(long, value_name = "N", default_value_t = 1 << 33, value_parser = clap::value_parser!(u64).range(1..))]
    pub max_pixels: u64,

    /// Number of images to process at the same time (default: one per core, more with a GPU)
    #[arg(short, long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,

    /// Total memory for images in flight, e.g. 8G or 500M (default: half of the free memory)
    #[arg(long, value_name = "SIZE", value_parser = memory_budget::limit)]
    pub mem_limit: Option<u64>,

    /// The device.
    #[command(flatten)]
    pub device: DeviceOption,
}

/// The frames of `calibrate`.
#[derive(Args, Clone, Debug)]
#[group(skip)]
pub(crate) struct Frames {
    /// Subtract this dark frame; for a folder or a stack, the mean of all its pages
    #[arg(long, value_name = "IMAGE", required_unless_present_any = ["flat", "flat_start", "bias"])]
    pub dark: Option<PathBuf>,

    /// Subtract this bias frame from the flat field in place of the dark frame, and from the images if there is no dark frame. The dark frame and the flat field still contain it; for a folder or a stack, the mean of all its pages
    #[arg(long, value_name = "IMAGE")]
    pub bias: Option<PathBuf>,

    /// Divide by this flat field (minus the dark frame) and multiply by its mean, for each channel; for a folder or a stack, the mean of all its pages
    #[arg(long, value_name = "IMAGE")]
    pub flat: Option<PathBuf>,

    /// Divide by a flat field that changes from image to image: this one for the first image, that of --flat-end for the last, and for the others the means of both, weighted by the position in the list, or by the page of a single stack
    #[arg(
        long,
        value_name = "IMAGE",
        requires = "flat_end",
        conflicts_with = "flat"
    )]
    pub flat_start: Option<PathBuf>,

    /// The flat field of the last image, see --flat-start
    #[arg(long, value_name = "IMAGE", requires = "flat_start")]
    pub flat_end: Option<PathBuf>,

    /// Add this to every result, so that samples below the dark frame are not clamped to 0
    #[arg(
        long,
        value_name = "VALUE",
        default_value_t = 0,
        allow_hyphen_values = true,
        value_parser = clap::value_parser!(i32).range(-65535..=65535)
    )]
    pub offset: i32,

    /// Replace each sample that exceeds the median of its 8 neighbours by more than this with that median
    #[arg(long, value_name = "THRESHOLD")]
    pub hot: Option<u16>,

    /// Sample type of the results (default: as input). f32 does not round to whole numbers and does not clamp; images and frames may then be floating-point images, too
    #[arg(long, value_name = "TYPE")]
    pub to: Option<ResultType>,

    /// Give the attenuation, as for tomography: the natural logarithm of the flat field divided by the image, both minus the dark frame. Requires --flat and --to f32; an image less than 1 above the dark frame counts as 1
    #[arg(long)]
    pub log: bool,
}

impl Frames {
    /// The frames that are given.
    pub fn paths(&self) -> Vec<Option<PathBuf>> {
        let named = self.options().map(|(_, path)| path.clone());
        named.to_vec()
    }

    /// The options that name frames.
    pub fn options(&self) -> [(&'static str, &Option<PathBuf>); 5] {
        [
            ("--bias", &self.bias),
            ("--dark", &self.dark),
            ("--flat", &self.flat),
            ("--flat-start", &self.flat_start),
            ("--flat-end", &self.flat_end),
        ]
    }

    /// The options that are not frames.
    pub fn settings(&self) -> Settings {
        Settings {
            offset: self.offset,
            hot: self.hot,
            to: self.to,
            log: self.log,
        }
    }
}

/// The source of a range for a whole set.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct WholeSet {
    /// Use the range of the set that `gpuimg histogram` counted in FILE
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "across",
        help_heading = "Many files"
    )]
    pub range_from: Option<PathBuf>,

    /// Measure all inputs first and apply one range to all of them
    #[arg(long, help_heading = "Many files")]
    pub across: bool,
}

/// A histogram that changes while a folder is watched.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct Following {
    /// Reload the FILE of --range-from when it is replaced; the new range applies to files that arrive later
    #[arg(long, requires_all = ["range_from", "watch"], help_heading = "Watched folders")]
    pub follow: bool,
}
