//! Files of one image that a library encodes as a whole, in memory.

use super::format::Encoder;
use crate::image::Image;
use crate::image::metadata::Metadata;
use crate::os::Target;
use anyhow::Result;
use std::borrow::Cow;

/// Writes what `encode` makes of an image.
pub struct Encoded<'a, E> {
    target: &'a Target,
    encode: E,
    length: u64,
}

impl<'a, E: FnMut(&Image, &Metadata) -> Result<Vec<u8>>> Encoded<'a, E> {
    /// An encoder for one page.
    pub fn new(target: &'a Target, encode: E) -> Encoded<'a, E> {
        Encoded {
            target,
            encode,
            length: 0,
        }
    }
}

impl<E: FnMut(&Image, &Metadata) -> Result<Vec<u8>>> Encoder for Encoded<'_, E> {
    fn page(&mut self, image: Cow<Image>, metadata: &Metadata) -> Result<()> {
        let file = (self.encode)(&image, metadata)?;
        self.length = file.len() as u64;
        self.target.reserve(self.length)?;
        self.target.write_at(&file, 0)
    }

    fn length(&self) -> u64 {
        self.length
    }
}
