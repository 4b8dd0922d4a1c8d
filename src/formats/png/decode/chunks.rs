//! The PNG container: signature, chunks and their CRCs (PNG specification, third edition, section 5).
//! The file is read through one reused window, so that memory does not grow with the file.

use crate::os::Source;
use anyhow::{Result, ensure};
use crc32fast::Hasher;
use std::fmt;

/// The first bytes of every PNG (PNG specification, section 5.2).
pub const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// The largest length or side, 2³¹ − 1 (PNG specification, section 7.1).
pub const MOST: u32 = i32::MAX as u32;

/// Bytes of the file in memory at a time.
const WINDOW: u64 = 256 << 10;

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
            buffer: vec![0; source.len().clamp(1, WINDOW) as usize],
            start: 0,
            filled: 0,
        }
    }

    /// Between 1 and `most` (≥ 1) bytes from offset `at`; an error at the end of the source.
    pub fn bytes(&mut self, at: u64, most: u64) -> Result<&[u8]> {
        self.hold(at, 1)?;
        let held = &self.buffer[(at - self.start) as usize..self.filled];
        Ok(&held[..most.min(held.len() as u64) as usize])
    }

    /// The `N` bytes at `at`.
    pub fn array<const N: usize>(&mut self, at: u64) -> Result<[u8; N]> {
        self.hold(at, N)?;
        let mut bytes = [0; N];
        let from = (at - self.start) as usize;
        bytes.copy_from_slice(&self.buffer[from..from + N]);
        Ok(bytes)
    }

    fn hold(&mut self, at: u64, len: usize) -> Result<()> {
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
pub struct Chunks<'a> {
    pub window: Window<'a>,
    /// Whether image data may be cut off.
    pub damaged: bool,
}

impl<'a> Chunks<'a> {
    /// The chunks of `source`.
    pub fn new(source: &'a Source) -> Chunks<'a> {
        Chunks {
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
            "byte {start} should start a chunk, but its kind is {}",
            kind.escape_ascii()
        );
        ensure!(len <= MOST, "{chunk} has an impossible length ({len})");
        let size = self.window.source.len();
        ensure!(
            chunk.end() <= size || self.damaged && &kind == b"IDAT",
            "truncated at byte {size} of {} ({chunk})",
            chunk.end()
        );
        Ok(chunk)
    }

    /// Reads the chunk's data, passes them to `piece` in parts, and checks the CRC.
    pub fn each(&mut self, chunk: &Chunk, piece: impl FnMut(&[u8])) -> Result<()> {
        let hasher = self.hashed(chunk, piece)?;
        self.check(chunk, hasher)
    }

    /// Reads a chunk's data; whether its CRC is the stated one. Only a text may have another.
    pub fn is_sound(&mut self, chunk: &Chunk) -> Result<bool> {
        let hasher = self.hashed(chunk, |_| ())?;
        let sound = self.check(chunk, hasher);
        match &chunk.kind {
            b"tEXt" | b"zTXt" | b"iTXt" => Ok(sound.is_ok()),
            _ => sound.map(|()| true),
        }
    }

    fn hashed(&mut self, chunk: &Chunk, mut piece: impl FnMut(&[u8])) -> Result<Hasher> {
        let mut hasher = chunk.hasher();
        let mut at = chunk.data();
        while at < chunk.end() - 4 {
            let bytes = self.window.bytes(at, chunk.end() - 4 - at)?;
            hasher.update(bytes);
            piece(bytes);
            at += bytes.len() as u64;
        }
        Ok(hasher)
    }

    /// Compares the CRC of the chunk's data with the stored one.
    pub fn check(&mut self, chunk: &Chunk, hasher: Hasher) -> Result<()> {
        let stated = u32::from_be_bytes(self.window.array(chunk.end() - 4)?);
        ensure!(stated == hasher.finalize(), "bad CRC in {chunk}");
        Ok(())
    }

    /// All data of a chunk, which must be small.
    pub fn data(&mut self, chunk: &Chunk) -> Result<Vec<u8>> {
        let mut data = Vec::new();
        self.each(chunk, |piece| data.extend_from_slice(piece))?;
        Ok(data)
    }

    /// The chunks after the image data, which start at offset `start`, without IEND. Of IDAT chunks
    /// only the headers are read.
    pub fn behind(&self, start: u64) -> Result<Vec<Chunk>> {
        let (mut found, mut at) = (Vec::new(), start);
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
                b"IEND" => return Ok(found),
                b"IDAT" => {}
                _ => found.push(chunk),
            }
        }
    }

    /// Checks all chunks from `start` to the end of the file. Of a text with a bad CRC
    /// `metadata` warns.
    pub fn finish(&mut self, start: u64) -> Result<()> {
        let mut chunk = self.at(start)?;
        loop {
            if is_critical(&chunk.kind) {
                self.each(&chunk, |_| ())?;
                ensure!(&chunk.kind == b"IEND", "{chunk} is out of place");
                return Ok(());
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
