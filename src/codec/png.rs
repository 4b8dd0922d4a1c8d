//! PNG (W3C PNG specification, third edition): a decoder and an encoder of our own, since PNG is
//! what users wait for; the `png` crate reads the rare kinds.

mod bits;
mod block;
mod decode;
mod encode;
mod filter;
mod header;
mod huffman;
mod matches;
mod ordered;
mod put_simd;
mod token;

pub use decode::decode;
pub use encode::{Mode, encode};
