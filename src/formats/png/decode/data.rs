//! The image data of a PNG: reads the contents of its consecutive IDAT chunks as one stream, and
//! checks their CRCs.

use super::chunks::{Chunk, ChunkReader};
use crate::deflate::inflate::parallel::Input;
use crate::os::Source;
use anyhow::Result;
use crc32fast::Hasher;

/// The stream of IDAT bytes, read in pieces.
pub struct ImageData<'a> {
    pub chunks: ChunkReader<'a>,
    chunk: Chunk,
    hasher: Hasher,
    /// The offset in the file of the next byte.
    at: u64,
    /// Bytes of the chunk's data that are not consumed yet.
    remaining: u64,
    /// Whether `chunk` is the last one.
    last: bool,
    /// Whether to stop after the first chunk.
    single_chunk: bool,
}

impl<'a> ImageData<'a> {
    /// A stream without data. `open` or `open_single` gives it data; they reuse its buffer.
    pub fn new(source: &'a Source) -> ImageData<'a> {
        ImageData {
            chunks: ChunkReader::new(source),
            chunk: Chunk {
                kind: *b"IDAT",
                start: 0,
                len: 0,
            },
            hasher: Hasher::new(),
            at: 0,
            remaining: 0,
            last: true,
            single_chunk: true,
        }
    }

    /// Opens the stream of `chunk` and all IDAT chunks that follow it.
    pub fn open(&mut self, chunk: Chunk) {
        self.open_chunk(chunk);
        self.single_chunk = false;
    }

    /// Opens the stream of the single chunk at offset `start`.
    pub fn open_single(&mut self, start: u64) -> Result<Chunk> {
        let chunk = self.chunks.at(start)?;
        self.open_chunk(chunk);
        self.single_chunk = true;
        Ok(chunk)
    }

    fn open_chunk(&mut self, chunk: Chunk) {
        self.chunk = chunk;
        self.hasher = chunk.hasher();
        self.at = chunk.data();
        self.remaining = chunk.len.into();
        self.last = false;
    }

    /// Checks the CRC of a chunk whose data are consumed, and opens the next chunk.
    fn advance(&mut self) -> Result<()> {
        self.chunks
            .check(&self.chunk, std::mem::take(&mut self.hasher))?;
        if !self.single_chunk {
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

    /// Checks the CRC of the current chunk, after an error in its data: if the CRC is wrong, that error
    /// describes the damage better.
    pub fn check_chunk(&mut self) -> Result<()> {
        self.chunks.read_checked(&self.chunk, |_| ())
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
        while self.remaining == 0 {
            if self.last {
                return Ok(&[]);
            }
            self.advance()?;
        }
        self.chunks.window.bytes(self.at, self.remaining)
    }

    fn consume(&mut self, count: usize) -> Result<()> {
        if count > 0 {
            let bytes = self.chunks.window.bytes(self.at, count as u64)?;
            self.hasher.update(bytes);
            self.at += count as u64;
            self.remaining -= count as u64;
        }
        Ok(())
    }
}
