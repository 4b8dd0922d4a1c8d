//! PNG (W3C PNG specification, third edition): a decoder and an encoder of our own, since PNG is
//! what users wait for; the `png` crate reads the rare kinds.

mod bits;
mod block;
mod chunks;
mod data;
mod decode;
mod encode;
mod filter;
mod header;
mod huffman;
mod inflate;
mod library;
mod matches;
mod put_simd;
mod quick;
mod segments;
mod token;
mod unfilter;
mod unfilter_simd;

pub use decode::decode;
pub use encode::{Mode, encode};
