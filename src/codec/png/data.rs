//! The image data of a PNG: the bytes of its consecutive IDAT chunks as one stream, CRCs checked.

use super::chunks::{Chunk, Chunks};
use anyhow::Result;
use crc32fast::Hasher;

/// The stream of IDAT bytes, read piece by piece.
pub struct ImageData<'a> {
    chunks: Chunks<'a>,
    chunk: Chunk,
    hasher: Hasher,
    /// Byte of the file to be read next.
    at: u64,
    /// Bytes of the chunk's data not yet consumed.
    left: u64,
    /// Whether `chunk` is the last one.
    last: bool,
}

impl<'a> ImageData<'a> {
    /// The stream that starts with the data of `chunk`.
    pub fn new(chunks: Chunks<'a>, chunk: Chunk) -> ImageData<'a> {
        let mut data = ImageData {
            chunks,
            chunk,
            hasher: Hasher::new(),
            at: 0,
            left: 0,
            last: false,
        };
        data.open(chunk);
        data
    }

    fn open(&mut self, chunk: Chunk) {
        self.chunk = chunk;
        self.hasher = chunk.hasher();
        self.at = chunk.data();
        self.left = chunk.len.into();
    }

    /// Bytes that come next, as many as are at hand; none at the end of the image data.
    pub fn peek(&mut self) -> Result<&[u8]> {
        while self.left == 0 {
            if self.last {
                return Ok(&[]);
            }
            self.advance()?;
        }
        self.chunks.window.bytes(self.at, self.left)
    }

    /// Moves past the first `count` of the bytes that `peek` gave.
    pub fn consume(&mut self, count: usize) -> Result<()> {
        if count > 0 {
            let bytes = self.chunks.window.bytes(self.at, count as u64)?;
            self.hasher.update(bytes);
            self.at += count as u64;
            self.left -= count as u64;
        }
        Ok(())
    }

    /// Closes a chunk whose data are all consumed, and opens the next.
    fn advance(&mut self) -> Result<()> {
        self.chunks
            .check(&self.chunk, std::mem::take(&mut self.hasher))?;
        let next = self.chunks.at(self.chunk.end())?;
        if &next.kind == b"IDAT" {
            self.open(next);
        } else {
            self.last = true;
        }
        Ok(())
    }

    /// Byte of the file that has been reached.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// Checks the rest of the chunk being read: its CRC tells damage better than what the damaged
    /// bytes happen to mean.
    pub fn check_chunk(&mut self) -> Result<()> {
        self.chunks.each(&self.chunk, |_| ())
    }

    /// Checks all that follows: the rest of the image data and every chunk up to IEND.
    pub fn finish(&mut self) -> Result<()> {
        loop {
            let rest = self.peek()?.len();
            if rest == 0 {
                return self.chunks.finish(self.chunk.end());
            }
            self.consume(rest)?;
        }
    }
}
