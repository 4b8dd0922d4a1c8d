//! PNG: the encoder, and the pieces of deflate that it is made of.
mod bits;
mod block;
pub mod encode;
mod filter;
mod header;
mod huffman;
mod matches;
mod ordered;
mod put_simd;
mod token;
