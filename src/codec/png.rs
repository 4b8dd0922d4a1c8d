//! PNG (W3C PNG specification, third edition): a decoder and an encoder of our own, since PNG is
//! what users wait for; the `png` crate reads the rare kinds.

mod adler;
mod cuda;
mod decode;
mod encode;
pub(super) mod metadata;

pub use cuda::{Compressed, compress, device_memory};
pub(super) use decode::Unzip;
pub use decode::{Head, Packed, Reader, Unsuited, decode, decode_on_gpu, decode_resident};
pub(super) use encode::Zip;
pub use encode::{Mode, encode, encode_with};

/// The private chunk that lets a reader inflate the segments on many threads. Ancillary, private,
/// and not safe to copy, since whoever changes IDAT must drop it. Version 1 (a byte), rows of a
/// segment (u32), and for each segment the bytes of its deflate data (u32; without zlib's header
/// and Adler-32). All big-endian.
const INDEX: [u8; 4] = *b"gpIS";
