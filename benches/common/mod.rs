//! What the benchmarks share: images made from nothing, and what is named on their command lines.

pub mod arguments;
pub mod kinds;
