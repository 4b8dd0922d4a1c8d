//! The image data of a PNG: the contents of its consecutive IDAT chunks as one stream, with CRCs
//! checked.

use super::chunks::{Chunk, Chunks};
use crate::deflate::inflate::parallel::Input;
use crate::os::Source;
use anyhow::Result;
use crc32fast::Hasher;

/// The stream of IDAT bytes, read piece by piece.
pub struct ImageData<'a> {
    pub chunks: Chunks<'a>,
    chunk: Chunk,
    hasher: Hasher,
    /// Offset in the file of the next byte.
    at: u64,
    /// Bytes of the chunk's data that are not consumed yet.
    left: u64,
    /// Whether `chunk` is the last one.
    last: bool,
    /// Whether to stop after the first chunk.
    alone: bool,
}

impl<'a> ImageData<'a> {
    /// A stream without data, to be opened later.
    pub fn new(source: &'a Source) -> ImageData<'a> {
        ImageData {
            chunks: Chunks::new(source),
            chunk: Chunk {
                kind: *b"IDAT",
                start: 0,
                len: 0,
            },
            hasher: Hasher::new(),
            at: 0,
            left: 0,
            last: true,
            alone: true,
        }
    }

    /// Opens the stream of `chunk` and all IDAT chunks that follow it.
    pub fn open(&mut self, chunk: Chunk) {
        self.open_chunk(chunk);
        self.alone = false;
    }

    /// Opens the stream of the single chunk at offset `start`.
    pub fn open_alone(&mut self, start: u64) -> Result<Chunk> {
        let chunk = self.chunks.at(start)?;
        self.open_chunk(chunk);
        self.alone = true;
        Ok(chunk)
    }

    fn open_chunk(&mut self, chunk: Chunk) {
        self.chunk = chunk;
        self.hasher = chunk.hasher();
        self.at = chunk.data();
        self.left = chunk.len.into();
        self.last = false;
    }

    /// Checks the CRC of a chunk whose data are consumed, and opens the next chunk.
    fn advance(&mut self) -> Result<()> {
        self.chunks
            .check(&self.chunk, std::mem::take(&mut self.hasher))?;
        if !self.alone {
            let next = self.chunks.at(self.chunk.end())?;
            if &next.kind == b"IDAT" {
                self.open_chunk(next);
                return Ok(());
            }
        }
        self.last = true;
        Ok(())
    }

    /// The offset in the file of the next byte.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// Checks the rest of the current chunk: a CRC error describes damage better than an error in
    /// the damaged data.
    pub fn check_chunk(&mut self) -> Result<()> {
        self.chunks.each(&self.chunk, |_| ())
    }

    /// Checks the rest of the file: the remaining image data and every chunk up to IEND.
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

impl Input for ImageData<'_> {
    fn peek(&mut self) -> Result<&[u8]> {
        while self.left == 0 {
            if self.last {
                return Ok(&[]);
            }
            self.advance()?;
        }
        self.chunks.window.bytes(self.at, self.left)
    }

    fn consume(&mut self, count: usize) -> Result<()> {
        if count > 0 {
            let bytes = self.chunks.window.bytes(self.at, count as u64)?;
            self.hasher.update(bytes);
            self.at += count as u64;
            self.left -= count as u64;
        }
        Ok(())
    }
}
