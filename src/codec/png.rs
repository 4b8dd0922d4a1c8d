//! PNG (W3C PNG specification, third edition).
mod chunks;
mod data;
pub mod decode;
mod library;
