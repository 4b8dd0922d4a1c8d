//! The PNG container: signature, chunks and their CRCs (PNG specification, third edition, section 5).
//! Everything is read through one reused window, so that memory does not grow with the file.

use crate::files::Source;
use anyhow::{Result, bail, ensure};
use crc32fast::Hasher;
use std::fmt;

/// The first bytes of every PNG (PNG specification, section 5.2).
pub const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// Lengths and sides stay below 2³¹ (PNG specification, section 7.1).
pub const MOST: u32 = i32::MAX as u32;

/// Bytes of the file held at a time.
const WINDOW: u64 = 256 << 10;

/// A part of the source in memory, moved along as the reader asks for later bytes.
pub struct Window<'a> {
    source: &'a Source,
    buffer: Vec<u8>,
    start: u64,
    filled: usize,
}

impl<'a> Window<'a> {
    /// A window over `source` that has read nothing yet.
    pub fn new(source: &'a Source) -> Window<'a> {
        Window {
            source,
            buffer: vec![0; source.len().clamp(1, WINDOW) as usize],
            start: 0,
            filled: 0,
        }
    }

    /// At least one and at most `most` (≥ 1) bytes from `at` on; an error at the source's end.
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

/// Where a chunk lies in the file.
#[derive(Clone, Copy)]
pub struct Chunk {
    pub kind: [u8; 4],
    /// Byte of its length field.
    pub start: u64,
    /// Bytes of data.
    pub len: u32,
}

impl Chunk {
    /// Byte at which the data start.
    pub fn data(&self) -> u64 {
        self.start + 8
    }

    /// Byte at which the next chunk starts.
    pub fn end(&self) -> u64 {
        self.data() + u64::from(self.len) + 4
    }

    /// The CRC of its kind, to which that of its data is added.
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

/// The chunks of a PNG, one after another.
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

    /// The chunk that starts at `start`; it lies within the file.
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

    /// Reads the chunk's data, hands them on in pieces, and checks its CRC.
    pub fn each(&mut self, chunk: &Chunk, mut piece: impl FnMut(&[u8])) -> Result<()> {
        let mut hasher = chunk.hasher();
        let mut at = chunk.data();
        while at < chunk.end() - 4 {
            let bytes = self.window.bytes(at, chunk.end() - 4 - at)?;
            hasher.update(bytes);
            piece(bytes);
            at += bytes.len() as u64;
        }
        self.check(chunk, hasher)
    }

    /// Compares the CRC of all of the chunk's data with the one that it states.
    pub fn check(&mut self, chunk: &Chunk, hasher: Hasher) -> Result<()> {
        let stated = u32::from_be_bytes(self.window.array(chunk.end() - 4)?);
        ensure!(stated == hasher.finalize(), "bad CRC in {chunk}");
        Ok(())
    }

    /// All data of a chunk that is known to be small.
    pub fn data(&mut self, chunk: &Chunk) -> Result<Vec<u8>> {
        let mut data = Vec::new();
        self.each(chunk, |piece| data.extend_from_slice(piece))?;
        Ok(data)
    }

    /// The chunks behind the image data, which start at byte `start`; IEND is not one of them. Only
    /// the heads of the image data's chunks are read.
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

    /// Walks from `start` over all chunks that may follow the image data, to the end.
    pub fn finish(&mut self, start: u64) -> Result<()> {
        let mut chunk = self.at(start)?;
        loop {
            self.each(&chunk, |_| ())?;
            match &chunk.kind {
                b"IEND" => return Ok(()),
                kind if is_critical(kind) => bail!("{chunk} is out of place"),
                _ => chunk = self.at(chunk.end())?,
            }
        }
    }
}

/// A decoder that does not know such a chunk cannot show the image (PNG specification, section 5.4).
pub fn is_critical(kind: &[u8; 4]) -> bool {
    kind[0].is_ascii_uppercase()
}
