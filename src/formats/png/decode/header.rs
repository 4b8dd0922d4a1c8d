//! Reads and checks the chunks before the image data of a PNG.

use super::chunks::{Chunk, ChunkReader, MAX_LENGTH, is_critical};
use super::data::ImageData;
use crate::deflate::MAX_EXPANSION;
use crate::formats::png::{INDEX, SIGNATURE};
use crate::image::{Depth, Shape};
use crate::os::Source;
use anyhow::{Result, bail, ensure};

/// The colour type of IHDR (PNG specification, section 11.2.1).
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    Grey,
    Rgb,
    Palette,
    GreyAlpha,
    Rgba,
}

/// The fields of IHDR (PNG specification, section 11.2.1).
#[derive(Clone, Copy)]
pub struct Header {
    pub width: u32,
    pub height: u32,
    /// Bits per sample in the file: 1, 2, 4, 8 or 16.
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
            (1..=MAX_LENGTH).contains(&width) && (1..=MAX_LENGTH).contains(&height),
            "the header states an impossible size ({width}×{height})"
        );
        let colour = match (colour, bits) {
            (0, 1 | 2 | 4 | 8 | 16) => Colour::Grey,
            (2, 8 | 16) => Colour::Rgb,
            (3, 1 | 2 | 4 | 8) => Colour::Palette,
            (4, 8 | 16) => Colour::GreyAlpha,
            (6, 8 | 16) => Colour::Rgba,
            _ => bail!("invalid colour type {colour} with {bits} bits"),
        };
        ensure!(compression == 0, "invalid compression method {compression}");
        ensure!(filter == 0, "invalid filter method {filter}");
        ensure!(interlace <= 1, "invalid interlace method {interlace}");
        Ok(Header {
            width,
            height,
            bits,
            colour,
            interlaced: interlace == 1,
        })
    }

    /// Bits per pixel in the file.
    pub fn pixel_bits(&self) -> u32 {
        let samples = match self.colour {
            Colour::Grey | Colour::Palette => 1,
            Colour::GreyAlpha => 2,
            Colour::Rgb => 3,
            Colour::Rgba => 4,
        };
        samples * u32::from(self.bits)
    }

    /// The passes that have pixels, in the order of the file (section 8.1). An image that is not interlaced is one pass.
    pub fn passes(&self) -> Vec<Pass> {
        let all: &[Pass] = if self.interlaced {
            &Pass::ADAM7
        } else {
            &[Pass::every(0, 0, 1, 1)]
        };
        let passes = all.iter().map(|&pass| Pass {
            columns: (self.width as usize)
                .saturating_sub(pass.x)
                .div_ceil(pass.dx),
            rows: (self.height as usize)
                .saturating_sub(pass.y)
                .div_ceil(pass.dy),
            ..pass
        });
        passes.filter(|pass| pass.columns * pass.rows > 0).collect()
    }

    /// Bytes of all scanlines, filter types included, of all passes (section 8.2).
    pub fn scanline_bytes(&self) -> Result<usize> {
        let passes = self.passes().into_iter();
        let bytes = passes.map(|pass| {
            let row = (pass.columns as u64 * u64::from(self.pixel_bits())).div_ceil(8);
            u128::from(row + 1) * pass.rows as u128
        });
        Ok(usize::try_from(bytes.sum::<u128>())?)
    }

    /// Refuses a header whose image cannot fit into a file of `size` bytes.
    fn check_size(&self, size: u64) -> Result<()> {
        let pixels = u128::from(self.width) * u128::from(self.height);
        let bytes = pixels * u128::from(self.pixel_bits()) / 8;
        ensure!(
            bytes <= u128::from(MAX_EXPANSION) * u128::from(size),
            "the header states {}×{} pixels ({bytes} bytes), more than a file of {size} bytes can hold",
            self.width,
            self.height
        );
        Ok(())
    }

    /// Whether a tRNS chunk with these values fits the image. `palette_colours` is the number of colours of the palette, if there
    /// is one.
    fn has_transparency(&self, values: &[u8], palette_colours: Option<usize>) -> bool {
        let is_sample = |pair: &[u8; 2]| u32::from(u16::from_be_bytes(*pair)) >> self.bits == 0;
        let are_samples = values.as_chunks().0.iter().all(is_sample);
        match self.colour {
            Colour::Grey => values.len() == 2 && are_samples,
            Colour::Rgb => values.len() == 6 && are_samples,
            Colour::Palette => {
                palette_colours.is_some_and(|colours| (1..=colours).contains(&values.len()))
            }
            Colour::GreyAlpha | Colour::Rgba => false,
        }
    }
}

/// The pixels of an image in every `dx`th column from column `x` on and every `dy`th row from row `y` on.
#[derive(Clone, Copy, Default)]
pub struct Pass {
    pub x: usize,
    pub y: usize,
    pub dx: usize,
    pub dy: usize,
    /// Pixels of a row of the pass.
    pub columns: usize,
    pub rows: usize,
}

impl Pass {
    /// The seven passes of an interlaced image. `columns` and `rows` are not set.
    const ADAM7: [Pass; 7] = [
        Pass::every(0, 0, 8, 8),
        Pass::every(4, 0, 8, 8),
        Pass::every(0, 4, 4, 8),
        Pass::every(2, 0, 4, 4),
        Pass::every(0, 2, 2, 4),
        Pass::every(1, 0, 2, 2),
        Pass::every(0, 1, 1, 2),
    ];

    /// A pass whose `columns` and `rows` are not set.
    const fn every(x: usize, y: usize, dx: usize, dy: usize) -> Pass {
        Pass {
            x,
            y,
            dx,
            dy,
            columns: 0,
            rows: 0,
        }
    }
}

/// The chunks before the image data.
pub struct Prelude {
    pub header: Header,
    /// Whether a tRNS chunk adds transparency.
    pub transparent: bool,
    /// The data of the private chunk with the segment lengths.
    pub index: Option<Vec<u8>>,
    /// Whether the file is an animation (section 11.3.4.1, acTL).
    pub animated: bool,
    /// The other ancillary chunks.
    pub others: Vec<Chunk>,
    /// Offset of the first IDAT chunk.
    pub data: u64,
}

/// Reads and checks the signature and the IHDR chunk.
fn read_header(chunks: &mut ChunkReader) -> Result<(Header, Chunk)> {
    let has_signature = chunks.window.array(0).is_ok_and(|bytes| bytes == SIGNATURE);
    ensure!(has_signature, "not a PNG");
    let chunk = chunks.at(SIGNATURE.len() as u64)?;
    ensure!(
        &chunk.kind == b"IHDR",
        "{chunk} found where IHDR was expected"
    );
    ensure!(
        chunk.len == 13,
        "the header has {} bytes instead of 13",
        chunk.len
    );
    let header = Header::parse(&chunks.data(&chunk)?)?;
    Ok((header, chunk))
}

/// The number of colours of a palette. The png crate accepts a palette of any length, and panics when it is used.
fn count_colours(chunk: &Chunk) -> Result<usize> {
    ensure!(
        chunk.len.is_multiple_of(3) && (3..=3 * 256).contains(&chunk.len),
        "{chunk} is not a valid palette: it has {} bytes instead of 3 for each of 1 to 256 colours",
        chunk.len
    );
    Ok(chunk.len as usize / 3)
}

impl Prelude {
    /// Reads and checks the chunks up to the first IDAT. With `damaged`, that IDAT may be cut off.
    pub fn read(source: &Source, damaged: bool) -> Result<(Prelude, ImageData<'_>)> {
        let mut data = ImageData::new(source);
        data.chunks.damaged = damaged;
        let chunks = &mut data.chunks;
        let (header, mut chunk) = read_header(chunks)?;
        header.check_size(source.len())?;
        let mut prelude = Prelude {
            header,
            transparent: false,
            index: None,
            animated: false,
            others: Vec::new(),
            data: 0,
        };
        let mut palette_colours = None;
        let mut ignored_transparency = false;
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
                    prelude.animated = frames > 1;
                }
                b"tRNS" => {
                    let values = chunks.data(&chunk)?;
                    ensure!(!ignored_transparency, "{chunk} is a second tRNS");
                    // A tRNS chunk that does not fit the image is ignored, as in libpng: other readers show no
                    // transparency either.
                    if header.has_transparency(&values, palette_colours) {
                        prelude.transparent = true;
                    } else {
                        ignored_transparency = true;
                    }
                    continue;
                }
                b"PLTE" => {
                    let colours = count_colours(&chunk)?;
                    ensure!(palette_colours.is_none(), "{chunk} is a second palette");
                    palette_colours = Some(colours);
                }
                kind if is_critical(kind) => bail!("{chunk} is out of place or unknown"),
                _ => {
                    prelude.others.push(chunk);
                    chunks.is_sound(&chunk)?;
                    continue;
                }
            }
            chunks.read_checked(&chunk, |_| ())?;
        }
    }

    /// The stream of the image data.
    pub fn image_data<'a>(&self, source: &'a Source) -> Result<ImageData<'a>> {
        let mut data = ImageData::new(source);
        let first = data.chunks.at(self.data)?;
        data.open(first);
        Ok(data)
    }

    /// Whether the samples of the file become samples in memory by undoing the filters and changing the byte order alone.
    pub fn needs_no_expansion(&self) -> bool {
        let Header { bits, colour, .. } = self.header;
        let transparent = self.transparent && matches!(colour, Colour::Grey | Colour::Rgb);
        bits >= 8 && colour != Colour::Palette && !transparent
    }

    /// The shape of the decoded image: a palette becomes RGB, tRNS becomes alpha, and fewer than 8 bits become 8.
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
