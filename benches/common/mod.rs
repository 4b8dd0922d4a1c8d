//! Shared by the benchmarks: generated images, and the command line.

pub mod arguments;
pub mod kinds;
