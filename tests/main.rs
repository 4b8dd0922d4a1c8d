//! The integration tests, one binary, a module a theme.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

/// Images that a card's memory does not hold at once.
mod bands;
/// Many files: folders, parts, bad files, what is said.
mod batch;
/// The tables of `bench` and the doctor.
mod bench;
/// The command as a user meets it: files, exit statuses, sentences.
mod command;
/// Awkward images: the contract of `samples/CONTRACT.md`, row by row.
mod contract;
/// Every operation against its naive definition, on the CPU and on a GPU.
mod devices;
/// Laws that the operations obey, and literals small enough to check by hand.
mod laws;
/// What files say beside their samples: kept, made true, carried over, or told.
mod metadata;
/// PNG read: every colour type, depth and filter, and hostile files.
mod png_decode;
/// PNG written, and read back by other decoders.
mod png_encode;
/// PNG files made for the tests.
mod png_files;
/// PNG from the GPU against PNG from the CPU, file by file.
mod png_gpu;
/// PNG decoded on the GPU against PNG decoded on the CPU, image by image.
mod png_gpu_decode;
/// PNM read and written.
mod pnm;
/// Ranges of values: signed ones, and such as go with another depth.
mod ranges;
/// Files that once went wrong, each named after what happened.
mod regressions;
/// Runs that are stopped, and going on.
mod resume;
/// The exact rounding of `normalize`, over all ranges.
mod rounding;
/// One range for a set of files.
mod series;
/// Files of several pages.
mod stacks;
/// TIFF read and written, and hostile files.
mod tiff;
