//! Shared by the benchmarks: generated images, the command line, processor time, and libraries to compare with.

pub mod arguments;
pub mod clock;
pub mod kinds;
pub mod others;
