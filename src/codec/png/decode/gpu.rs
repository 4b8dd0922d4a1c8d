//! A PNG of any origin decoded on a GPU: its compressed data go up, its samples stay there. The
//! kernels are kernels/png_find.cu, png_inflate.cu, png_matches.cu, png_rows.cu and png_unfilter.cu.
//!
//! The card finds where deflate's blocks begin and decodes all at once; the host follows the chain
//! of blocks from the first to the last and mends what does not fit (`chain.rs`). All that the
//! CPU's decoder checks is checked: chunks and CRCs while the file is read (`packed.rs`), codes and
//! distances by the kernels, lengths by the chain, the Adler-32 on the card. Whatever is wrong is
//! said by the CPU's decoder, which the file then is handed to.

mod chain;
mod device;
mod packed;
mod records;

pub use device::{decode_on_gpu, decode_resident};
pub use packed::{Head, Packed};

use std::borrow::Cow;
use std::fmt;

/// Why the CPU is to decode a file, in words for those who ask.
#[derive(Debug)]
pub struct Unsuited(Cow<'static, str>);

impl Unsuited {
    fn new(why: impl Into<Cow<'static, str>>) -> Unsuited {
        Unsuited(why.into())
    }
}

impl fmt::Display for Unsuited {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}
