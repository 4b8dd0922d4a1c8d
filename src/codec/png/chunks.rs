//! The PNG container: signature, chunks and their CRCs, and what stands before the image data.
//! Everything is read through one reused window, so memory does not grow with the file.

use super::data::ImageData;
use crate::files::Source;
use crate::image::{Depth, Shape};
use anyhow::{Result, bail, ensure};
use crc32fast::Hasher;
use std::fmt;

const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// Lengths and sides stay below 2³¹ (PNG specification, section 7.1).
const MOST: u32 = i32::MAX as u32;

/// Deflate makes at most 258 bytes of 2 bits.
const EXPANSION: u128 = 1032;

/// The private chunk by which our encoder tells where segments of the image data start:
/// version 1 (a byte), rows of a segment (u32), bytes of each segment's deflate data (u32 each).
const INDEX: [u8; 4] = *b"gpIS";

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
}

impl<'a> Chunks<'a> {
    /// The chunks of `source`.
    pub fn new(source: &'a Source) -> Chunks<'a> {
        Chunks {
            window: Window::new(source),
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
            chunk.end() <= size,
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
    fn data(&mut self, chunk: &Chunk) -> Result<Vec<u8>> {
        let mut data = Vec::new();
        self.each(chunk, |piece| data.extend_from_slice(piece))?;
        Ok(data)
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

/// A decoder that does not know such a chunk cannot show the image (section 5.4).
fn is_critical(kind: &[u8; 4]) -> bool {
    kind[0].is_ascii_uppercase()
}

/// The colour type of IHDR (section 11.2.1).
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    Grey,
    Rgb,
    Palette,
    GreyAlpha,
    Rgba,
}

/// What IHDR promises.
#[derive(Clone, Copy)]
pub struct Header {
    pub width: u32,
    pub height: u32,
    /// Bits a sample in the file: 1, 2, 4, 8 or 16.
    pub bits: u8,
    pub colour: Colour,
    pub interlaced: bool,
}

impl Header {
    fn parse(data: &[u8]) -> Result<Header> {
        let &[
            w0,
            w1,
            w2,
            w3,
            h0,
            h1,
            h2,
            h3,
            bits,
            colour,
            compression,
            filter,
            interlace,
        ] = data
        else {
            bail!("the header has {} bytes instead of 13", data.len());
        };
        let width = u32::from_be_bytes([w0, w1, w2, w3]);
        let height = u32::from_be_bytes([h0, h1, h2, h3]);
        ensure!(
            (1..=MOST).contains(&width) && (1..=MOST).contains(&height),
            "the header promises an impossible size ({width}×{height})"
        );
        let colour = match (colour, bits) {
            (0, 1 | 2 | 4 | 8 | 16) => Colour::Grey,
            (2, 8 | 16) => Colour::Rgb,
            (3, 1 | 2 | 4 | 8) => Colour::Palette,
            (4, 8 | 16) => Colour::GreyAlpha,
            (6, 8 | 16) => Colour::Rgba,
            _ => bail!("PNG knows no colour type {colour} with {bits} bits"),
        };
        ensure!(
            compression == 0,
            "PNG knows no compression method {compression}"
        );
        ensure!(filter == 0, "PNG knows no filter method {filter}");
        ensure!(interlace <= 1, "PNG knows no interlace method {interlace}");
        Ok(Header {
            width,
            height,
            bits,
            colour,
            interlaced: interlace == 1,
        })
    }

    /// Bits a pixel takes in the file.
    fn pixel_bits(&self) -> u32 {
        let samples = match self.colour {
            Colour::Grey | Colour::Palette => 1,
            Colour::GreyAlpha => 2,
            Colour::Rgb => 3,
            Colour::Rgba => 4,
        };
        samples * u32::from(self.bits)
    }

    /// Bytes of all scanlines, filter types included, of all passes (section 8.2).
    pub fn scanline_bytes(&self) -> Result<usize> {
        // First column and row, and steps between columns and rows.
        const ADAM7: [(u32, u32, u32, u32); 7] = [
            (0, 0, 8, 8),
            (4, 0, 8, 8),
            (0, 4, 4, 8),
            (2, 0, 4, 4),
            (0, 2, 2, 4),
            (1, 0, 2, 2),
            (0, 1, 1, 2),
        ];
        let passes = match self.interlaced {
            true => &ADAM7[..],
            false => &[(0, 0, 1, 1)],
        };
        let bytes = passes.iter().map(|&(x, y, dx, dy)| {
            let columns = self.width.saturating_sub(x).div_ceil(dx);
            let rows = self.height.saturating_sub(y).div_ceil(dy);
            let row = (u64::from(columns) * u64::from(self.pixel_bits())).div_ceil(8);
            match columns {
                0 => 0,
                _ => u128::from(row + 1) * u128::from(rows),
            }
        });
        Ok(usize::try_from(bytes.sum::<u128>())?)
    }

    /// Refuses a header that promises more than `size` bytes of file can hold.
    fn check_promise(&self, size: u64) -> Result<()> {
        let pixels = u128::from(self.width) * u128::from(self.height);
        let bytes = pixels * u128::from(self.pixel_bits()) / 8;
        ensure!(
            bytes <= EXPANSION * u128::from(size),
            "the header promises {}×{} pixels ({bytes} bytes), more than a file of {size} bytes can hold",
            self.width,
            self.height
        );
        Ok(())
    }
}

/// Everything before the image data.
pub struct Prelude {
    pub header: Header,
    /// Whether a tRNS chunk adds transparency.
    pub transparent: bool,
    /// The data of our private chunk of segment lengths.
    pub index: Option<Vec<u8>>,
    /// Byte at which the first IDAT starts.
    pub data: u64,
}

impl Prelude {
    /// Reads the chunks up to the first IDAT, and checks what they promise.
    pub fn read(source: &Source) -> Result<(Prelude, ImageData<'_>)> {
        let mut data = ImageData::new(source);
        let chunks = &mut data.chunks;
        let signed = chunks.window.array::<8>(0).is_ok_and(|b| b == SIGNATURE);
        ensure!(signed, "not a PNG");
        let mut chunk = chunks.at(8)?;
        ensure!(&chunk.kind == b"IHDR", "{chunk} stands where IHDR should");
        ensure!(
            chunk.len == 13,
            "the header has {} bytes instead of 13",
            chunk.len
        );
        let header = Header::parse(&chunks.data(&chunk)?)?;
        header.check_promise(source.len())?;
        let mut prelude = Prelude {
            header,
            transparent: false,
            index: None,
            data: 0,
        };
        let mut palette = false;
        loop {
            chunk = chunks.at(chunk.end())?;
            match &chunk.kind {
                b"IDAT" => {
                    prelude.data = chunk.start;
                    data.open(chunk);
                    return Ok((prelude, data));
                }
                b"IEND" => bail!("there is no image data before {chunk}"),
                &INDEX if u64::from(chunk.len) <= 5 + 4 * u64::from(header.height) => {
                    prelude.index = Some(chunks.data(&chunk)?);
                    continue;
                }
                b"acTL" if chunk.len == 8 => {
                    let frames = u32::from_be_bytes(chunks.window.array(chunk.data())?);
                    ensure!(
                        frames <= 1,
                        "an animation of {frames} frames; only still images are supported"
                    );
                }
                b"tRNS" => prelude.transparent = true,
                b"PLTE" => {
                    // The png crate takes a palette of any length, and panics when it uses it.
                    ensure!(
                        chunk.len.is_multiple_of(3) && (3..=3 * 256).contains(&chunk.len),
                        "{chunk} is no palette of 1 to 256 colours ({} bytes)",
                        chunk.len
                    );
                    ensure!(!palette, "{chunk} is a second palette");
                    palette = true;
                }
                kind if is_critical(kind) => bail!("{chunk} is out of place or unknown"),
                _ => {}
            }
            chunks.each(&chunk, |_| ())?;
        }
    }

    /// Whether the samples lie in the file as they do in memory, but for filters and byte order.
    pub fn is_plain(&self) -> bool {
        let Header {
            bits,
            colour,
            interlaced,
            ..
        } = self.header;
        let transparent = self.transparent && matches!(colour, Colour::Grey | Colour::Rgb);
        bits >= 8 && colour != Colour::Palette && !interlaced && !transparent
    }

    /// The shape of the decoded image: palettes expanded, tRNS as alpha, fewer than 8 bits as 8.
    pub fn shape(&self) -> Result<Shape> {
        let channels = match (self.header.colour, self.transparent) {
            (Colour::Grey, false) => 1,
            (Colour::Grey, true) | (Colour::GreyAlpha, _) => 2,
            (Colour::Rgb | Colour::Palette, false) => 3,
            (Colour::Rgb | Colour::Palette, true) | (Colour::Rgba, _) => 4,
        };
        let depth = match self.header.bits {
            16 => Depth::Sixteen,
            _ => Depth::Eight,
        };
        let Header { width, height, .. } = self.header;
        Shape::checked(width.into(), height.into(), channels, depth)
    }
}
