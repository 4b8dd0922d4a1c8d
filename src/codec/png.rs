//! PNG (W3C PNG specification, third edition).
mod block_header;
mod chunks;
mod codes;
mod data;
pub mod decode;
mod deflate;
mod finder;
mod header;
mod inflate;
mod library;
mod segments;
mod speculate;
mod unfilter;
mod unfilter_simd;
