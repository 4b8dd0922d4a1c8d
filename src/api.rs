//! The library: images, operations, devices, and reading and writing. It adds types to `engine`, `formats` and `ops`, and
//! computes nothing itself, so that its results have the bytes of the command line.

mod combine;
mod device;
mod error;
mod gpu_image;
mod image;
mod metadata;
mod numbers;
mod operations;
mod options;
mod project;
mod report;
mod stack;
mod verbs;
mod write;

pub use crate::image::metadata::{Resolution, Unit};
pub use crate::image::{Depth, Shape};
pub use combine::{combine, combine_colours};
pub use device::{Device, set_threads};
pub use error::{Error, Result};
pub use gpu_image::{GpuArray, GpuImage, GpuReader};
pub use image::{Image, Sample, SampleType, keep_memory};
pub use metadata::Metadata;
pub use numbers::{ChannelSum, Histogram, SumValue, Sums, histogram, sum, sum_with};
pub use operations::{
    BayerPattern, Calibration, Curve, DebayerMethod, Normalize, Operations, Palette, Plan,
};
pub use options::{Format, ReadOptions, WriteOptions};
pub use project::{Project, Projection, project, project_on_gpu};
pub use report::Report;
pub use stack::{Pages, Stack, decode, decode_with, read, read_with};
pub use verbs::{Argument, Verb, verbs};
pub use write::{encode, encode_stack, write, write_stack};
