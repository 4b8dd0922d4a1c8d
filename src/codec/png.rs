//! PNG (W3C PNG specification, third edition).
mod chunks;
mod data;
pub mod decode;
mod inflate;
mod library;
mod unfilter;
mod unfilter_simd;
