//! Decodes and encodes on a GPU: PNGs of any origin, and TIFFs of deflate or LZW strips or tiles.

pub mod decode;
pub(crate) mod inflate;
mod lzw;
pub mod png;
pub(crate) mod png_crc;
