//! What can be typed: clap types only.

mod images;

use crate::batch::naming::Pattern;
use crate::batch::options::Options;
use crate::bench;
use crate::codec::{self, Format, format};
use crate::device::Choice;
use crate::image::Depth;
use crate::ops::sum::Sum;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

pub use images::Images;

/// Normalize, turn and sum 16-bit images on an NVIDIA GPU or on the CPU: the same bytes from both
///
/// Exit status: 0 done; 1 a file failed; 2 wrong usage; 3 the GPU asked for cannot be used.
#[derive(Parser, Debug)]
#[command(version, about, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,

    /// Options of every verb.
    #[command(flatten)]
    pub common: Common,
}

/// Options that every verb takes.
#[derive(Args, Debug)]
pub struct Common {
    /// Where to work: auto (the faster), cpu, gpu or gpu:N (that GPU or an error, never the CPU instead); GPUIMG_DEVICE_MEMORY=2G bounds what is taken of its memory
    #[arg(
        long,
        global = true,
        env = "GPUIMG_DEVICE",
        default_value = "auto",
        value_name = "DEVICE"
    )]
    pub device: Choice,

    /// Tell where the time went, on standard error: as text, or as one JSON object
    #[arg(long, global = true, num_args = 0..=1, require_equals = true, default_missing_value = "text", value_name = "FORM")]
    pub stats: Option<StatsForm>,

    /// Say which device does the work, and why, and which metadata are not carried on
    #[arg(short, long, global = true)]
    pub verbose: bool,

    /// How inputs are read.
    #[command(flatten)]
    pub reading: codec::Reading,
}

/// The forms of `--stats`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StatsForm {
    /// A table
    Text,
    /// One JSON object
    Json,
}

/// The verbs.
#[derive(Subcommand, Debug)]
pub enum Verb {
    /// The operations that make images.
    #[command(flatten)]
    Images(Images),
    /// Add up the samples, exactly, in each channel and together
    Sum {
        /// Its options.
        #[command(flatten)]
        op: Sum,
        /// Print one JSON object for each file
        #[arg(long)]
        json: bool,
        /// Images to add up, each by itself, or folders of them; - is standard input
        #[arg(required_unless_present = "files_from")]
        inputs: Vec<PathBuf>,
        /// How many files are done.
        #[command(flatten)]
        batch: Options,
    },
    /// Count how often each value occurs in a whole set of images, for `normalize --range-from`
    Histogram {
        /// Images to count together, or folders of them
        #[arg(required_unless_present = "files_from")]
        inputs: Vec<PathBuf>,
        /// What is written.
        #[command(flatten)]
        output: Counted,
        /// How many files are done.
        #[command(flatten)]
        batch: Options,
    },
    /// Join the histograms of the parts of a set
    Merge {
        /// Files of `gpuimg histogram`, one of each part, or folders of them
        #[arg(required = true)]
        inputs: Vec<PathBuf>,
        /// What is written.
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
        /// Which, and how they are told.
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

/// The histogram that is written.
#[derive(Args, Clone, Debug)]
pub struct Counted {
    /// File to write
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,

    /// Replace the output if it exists
    #[arg(long)]
    pub overwrite: bool,

    /// Have the output on the disk itself before it gets its name, and the name when this ends
    #[arg(long)]
    pub sync: bool,
}

/// Where the range of a whole set comes from.
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

/// The inputs and the output of a verb that makes images.
#[derive(Args, Clone, Debug)]
pub struct Files {
    /// Images to read (PNG, TIFF or PNM, told by their content) or folders of them, and last the image or the folder to write, which is made; - is a standard stream
    #[arg(required = true, value_name = "INPUT… OUTPUT")]
    pub paths: Vec<PathBuf>,

    /// Format of the output, where its name does not tell, or of all outputs of a batch
    #[arg(long, value_parser = format::argument())]
    pub format: Option<&'static dyn Format>,

    /// Bits a sample of the output; without it they are the input's
    #[arg(long, value_name = "8|16")]
    pub depth: Option<Bits>,

    /// PixelMap the image as its orientation tag says before anything else, and set the tag to upright
    #[arg(long)]
    pub auto_orient: bool,

    /// Replace the output if it exists; it may be the input itself
    #[arg(long)]
    pub overwrite: bool,

    /// Have every output on the disk itself before it gets its name, and the name before it is done
    #[arg(long)]
    pub sync: bool,

    /// How results in a folder are called, with the input's {stem} and {ext}; an extension of its own decides the format. Without it {stem}.{ext}
    #[arg(long, value_name = "PATTERN", help_heading = "Many files")]
    pub name: Option<Pattern>,

    /// How many files are done.
    #[command(flatten)]
    pub batch: Options,

    /// How each format is compressed.
    #[command(flatten)]
    pub options: codec::Options,
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
