//! The PNG container: signature, chunks and their CRCs (PNG specification, third edition, section 5).
//! The file is read through one reused buffer, so that memory does not grow with the file.

use crate::formats::single::check_single;
use crate::os::Source;
use anyhow::{Result, ensure};
use crc32fast::Hasher;
use std::fmt;

/// The largest length of a chunk, and the largest width and height: 2³¹ − 1 (PNG specification, section 7.1).
pub const MAX_LENGTH: u32 = i32::MAX as u32;

/// Bytes of the file in memory at a time.
const WINDOW_BYTES: u64 = 256 << 10;

/// A part of the source in memory, which moves forward as later bytes are requested.
pub struct Window<'a> {
    source: &'a Source,
    buffer: Vec<u8>,
    start: u64,
    filled: usize,
}

impl<'a> Window<'a> {
    /// An empty window over `source`.
    pub fn new(source: &'a Source) -> Window<'a> {
        Window {
            source,
            buffer: vec![0; source.len().clamp(1, WINDOW_BYTES) as usize],
            start: 0,
            filled: 0,
        }
    }

    /// Between 1 and `most` (≥ 1) bytes from offset `at`; an error at the end of the source.
    pub fn bytes(&mut self, at: u64, most: u64) -> Result<&[u8]> {
        self.load(at, 1)?;
        let loaded = &self.buffer[(at - self.start) as usize..self.filled];
        Ok(&loaded[..most.min(loaded.len() as u64) as usize])
    }

    /// The `N` bytes at `at`.
    pub fn array<const N: usize>(&mut self, at: u64) -> Result<[u8; N]> {
        self.load(at, N)?;
        let mut bytes = [0; N];
        let from = (at - self.start) as usize;
        bytes.copy_from_slice(&self.buffer[from..from + N]);
        Ok(bytes)
    }

    /// Makes sure that the window contains `len` bytes from offset `at`.
    fn load(&mut self, at: u64, len: usize) -> Result<()> {
        if at < self.start || at + len as u64 > self.start + self.filled as u64 {
            self.filled = 0;
            self.start = at;
            self.filled = self.source.read_up_to(&mut self.buffer, at)?;
            ensure!(
                self.filled >= len,
                "truncated at byte {} of at least {}",
                self.source.len(),
                at + len as u64
            );
        }
        Ok(())
    }
}

/// The position of a chunk in the file.
#[derive(Clone, Copy)]
pub struct Chunk {
    pub kind: [u8; 4],
    /// Offset of its length field.
    pub start: u64,
    /// Bytes of data.
    pub len: u32,
}

impl Chunk {
    /// Offset of its data.
    pub fn data(&self) -> u64 {
        self.start + 8
    }

    /// Offset of the next chunk.
    pub fn end(&self) -> u64 {
        self.data() + u64::from(self.len) + 4
    }

    /// A hasher that has consumed the chunk type; the CRC covers type and data (section 5.3).
    pub fn hasher(&self) -> Hasher {
        let mut hasher = Hasher::new();
        hasher.update(&self.kind);
        hasher
    }
}

impl fmt::Display for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "chunk {} at byte {}",
            self.kind.escape_ascii(),
            self.start
        )
    }
}

/// Reads the chunks of a PNG one after another.
pub struct ChunkReader<'a> {
    pub window: Window<'a>,
    /// Whether an IDAT chunk may be cut off by the end of the file.
    pub damaged: bool,
}

impl<'a> ChunkReader<'a> {
    /// The chunks of `source`.
    pub fn new(source: &'a Source) -> ChunkReader<'a> {
        ChunkReader {
            window: Window::new(source),
            damaged: false,
        }
    }

    /// The chunk that starts at offset `start`; it must lie within the file.
    pub fn at(&mut self, start: u64) -> Result<Chunk> {
        let [l0, l1, l2, l3, kind @ ..] = self.window.array::<8>(start)?;
        let len = u32::from_be_bytes([l0, l1, l2, l3]);
        let chunk = Chunk { kind, start, len };
        ensure!(
            kind.iter().all(u8::is_ascii_alphabetic),
            "expected a chunk at byte {start}, but its type is {}",
            kind.escape_ascii()
        );
        ensure!(
            len <= MAX_LENGTH,
            "{chunk} has an impossible length ({len})"
        );
        let size = self.window.source.len();
        ensure!(
            chunk.end() <= size || self.damaged && &kind == b"IDAT",
            "truncated at byte {size} of {} ({chunk})",
            chunk.end()
        );
        Ok(chunk)
    }

    /// Reads the chunk's data, passes them to `take` in parts, and checks the CRC.
    pub fn read_checked(&mut self, chunk: &Chunk, take: impl FnMut(&[u8])) -> Result<()> {
        let hasher = self.read(chunk, take)?;
        self.check(chunk, hasher)
    }

    /// Reads a chunk's data and returns whether its CRC is right. A wrong CRC is an error, except in a text chunk.
    pub fn is_sound(&mut self, chunk: &Chunk) -> Result<bool> {
        let hasher = self.read(chunk, |_| ())?;
        let sound = self.check(chunk, hasher);
        match &chunk.kind {
            b"tEXt" | b"zTXt" | b"iTXt" => Ok(sound.is_ok()),
            _ => sound.map(|()| true),
        }
    }

    /// Reads the chunk's data, passes them to `take` in parts, and returns the hasher of type and data.
    fn read(&mut self, chunk: &Chunk, mut take: impl FnMut(&[u8])) -> Result<Hasher> {
        let mut hasher = chunk.hasher();
        let mut at = chunk.data();
        while at < chunk.end() - 4 {
            let bytes = self.window.bytes(at, chunk.end() - 4 - at)?;
            hasher.update(bytes);
            take(bytes);
            at += bytes.len() as u64;
        }
        Ok(hasher)
    }

    /// Compares the CRC of the chunk's type and data with the stored one.
    pub fn check(&mut self, chunk: &Chunk, hasher: Hasher) -> Result<()> {
        let stored = u32::from_be_bytes(self.window.array(chunk.end() - 4)?);
        ensure!(stored == hasher.finalize(), "bad CRC in {chunk}");
        Ok(())
    }

    /// All data of a chunk. The chunk must be small, because the data are in memory at once.
    pub fn data(&mut self, chunk: &Chunk) -> Result<Vec<u8>> {
        let mut data = Vec::new();
        self.read_checked(chunk, |piece| data.extend_from_slice(piece))?;
        Ok(data)
    }

    /// The chunks after the image data, without IEND, and the offset of the end of the file's image. The image data start at offset
    /// `start`. Of every chunk only the header is read.
    pub fn after_image_data(&self, start: u64) -> Result<(Vec<Chunk>, u64)> {
        let (mut chunks, mut at) = (Vec::new(), start);
        loop {
            let mut head = [0; 8];
            self.window.source.read_at(&mut head, at)?;
            let [l0, l1, l2, l3, kind @ ..] = head;
            let len = u32::from_be_bytes([l0, l1, l2, l3]);
            let chunk = Chunk {
                kind,
                start: at,
                len,
            };
            at = chunk.end();
            match &kind {
                b"IEND" => return Ok((chunks, at)),
                b"IDAT" => {}
                _ => chunks.push(chunk),
            }
        }
    }

    /// Checks all chunks from `start` to the end of the file, and that no other image follows. A text with a wrong CRC is not an
    /// error here: `metadata` warns about it.
    pub fn finish(&mut self, start: u64) -> Result<()> {
        let mut chunk = self.at(start)?;
        loop {
            if is_critical(&chunk.kind) {
                self.read_checked(&chunk, |_| ())?;
                ensure!(&chunk.kind == b"IEND", "{chunk} is out of place");
                return check_single(self.window.source, chunk.end(), "png");
            }
            self.is_sound(&chunk)?;
            chunk = self.at(chunk.end())?;
        }
    }
}

/// Whether a chunk is critical: a decoder that does not know it cannot show the image (PNG
/// specification, section 5.4).
pub fn is_critical(kind: &[u8; 4]) -> bool {
    kind[0].is_ascii_uppercase()
}
