//! PNG (W3C PNG specification, third edition): a decoder and an encoder of our own, since PNG is
//! what users wait for; the `png` crate reads the rare kinds.

mod cuda;
mod decode;
mod encode;

pub use cuda::{Compressed, compress, device_memory};
pub use decode::{Reader, decode};
pub use encode::{Mode, encode};
