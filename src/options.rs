//! The options that several verbs share, as they are typed.

use crate::codec;
use crate::device::Choice;
use clap::{Args, ValueEnum};

/// The options of every verb that reads images and works on them.
#[derive(Args, Debug)]
pub struct Common {
    /// The device.
    #[command(flatten)]
    pub device: DeviceOption,

    /// Tell where the time went, on standard error: as text, or as one JSON object
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "text", value_name = "FORM")]
    pub stats: Option<StatsForm>,

    /// Say which device does the work, and why, and which metadata are not carried on
    #[arg(short, long)]
    pub verbose: bool,

    /// How inputs are read.
    #[command(flatten)]
    pub reading: codec::Reading,
}

/// The device, for every verb that computes.
#[derive(Args, Clone, Copy, Debug)]
pub struct DeviceOption {
    /// Where to work: auto (the faster), cpu, gpu or gpu:N (that GPU or an error, never the CPU instead); GPUIMG_DEVICE_MEMORY=2G bounds what is taken of its memory
    #[arg(
        id = "device",
        long = "device",
        env = "GPUIMG_DEVICE",
        default_value = "auto",
        value_name = "DEVICE"
    )]
    pub choice: Choice,
}

/// The forms of `--stats`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StatsForm {
    /// A table
    Text,
    /// One JSON object
    Json,
}
