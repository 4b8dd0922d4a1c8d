//! Decodes and encodes on a GPU: PNGs of any origin, and TIFFs of deflate strips or tiles.

pub mod decode;
pub(crate) mod inflate;
pub mod png;
pub(crate) mod png_crc;
