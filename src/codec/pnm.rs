//! PGM and PPM, binary (P5 and P6), by the Netpbm specifications pgm(5) and ppm(5).
//!
//! Samples keep their values: a maximum value (maxval) up to 255 gives an 8-bit image, a larger one
//! a 16-bit image. The maxval is kept in the metadata.

use super::Options;
use super::format::{Capabilities, Decoder, Encoder, Field, Format};
use crate::codec::error_policy::ErrorPolicy;
use crate::codec::raw::{self, Order};
use crate::files::{Source, Target};
use crate::image::{Depth, Image, Samples, Shape};
use crate::metadata::{Diagnostics, Metadata};
use anyhow::{Context, Result, anyhow, bail, ensure};
use std::borrow::Cow;
use std::path::Path;

/// Portable anymap: P5 and P6.
#[derive(Debug)]
pub struct Pnm;

impl Format for Pnm {
    fn name(&self) -> &'static str {
        "PNM"
    }

    fn id(&self) -> &'static str {
        "pnm"
    }

    fn title(&self) -> &'static str {
        "Portable anymap: P5 (grey) or P6 (RGB), binary"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["pnm", "pgm", "ppm"]
    }

    fn sniff(&self, head: &[u8]) -> bool {
        matches!(head, [b'P', b'1'..=b'7', ..])
    }

    fn check_name(&self, path: &Path, shape: &Shape) -> Result<()> {
        let extension = path.extension().unwrap_or_default();
        ensure!(
            !extension.eq_ignore_ascii_case("pgm") || shape.colours() == 1,
            "a .pgm is grey, and the image has colours: call it {}",
            path.with_extension("ppm").display()
        );
        Ok(())
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            pages: false,
            depths: &[Depth::Eight, Depth::Sixteen],
            signed: false,
            white_is_zero: false,
            alpha: &[],
            fields: &[Field::Maxval],
        }
    }

    fn decoder<'a>(&self, source: &'a Source, damaged: bool) -> Result<Box<dyn Decoder + 'a>> {
        Ok(Box::new(PnmDecoder::open(source, damaged)?))
    }

    fn encoder<'a>(
        &self,
        target: &'a Target,
        _options: &Options,
        _pages: &[(Shape, u64)],
    ) -> Result<Box<dyn Encoder + 'a>> {
        Ok(Box::new(PnmEncoder { target, length: 0 }))
    }
}

/// Encodes one image to a PNM file.
struct PnmEncoder<'a> {
    target: &'a Target,
    /// The file's length in bytes, once it is written.
    length: u64,
}

impl Encoder for PnmEncoder<'_> {
    fn page(&mut self, image: Cow<Image>, metadata: &Metadata) -> Result<()> {
        self.length = encode_with(&image, metadata, self.target)?;
        Ok(())
    }

    fn length(&self) -> u64 {
        self.length
    }
}

/// Decodes a P5 or P6 file. Refuses, with the reason, the other kinds (P1–P4, P7), a file of
/// several images, a sample above the maxval, and a file that ends early.
struct PnmDecoder<'a> {
    source: &'a Source,
    /// The shape of the decoded image.
    shape: Shape,
    maxval: u16,
    start: u64,
    /// Bytes of samples in the file.
    there: usize,
}

impl<'a> PnmDecoder<'a> {
    /// Reads and checks the header. With `damaged`, the samples may be cut off.
    fn open(source: &'a Source, damaged: bool) -> Result<PnmDecoder<'a>> {
        let mut header = Header {
            source,
            block: Vec::new(),
            start: 0,
            next: 0,
        };
        let channels = match [header.byte()?, header.byte()?] {
            [b'P', b'5'] => 1,
            [b'P', b'6'] => 3,
            [b'P', kind @ (b'1'..=b'4' | b'7')] => bail!(
                "P{} files are not supported (P5 and P6, binary PGM and PPM, are)",
                char::from(kind)
            ),
            _ => bail!("it is no PNM file"),
        };
        ensure!(
            is_space(header.character()?),
            "no space after the P5 or P6 it starts with"
        );
        let width = header.number("width")?;
        let height = header.number("height")?;
        let maxval = header.number("maxval")?;
        let maxval = u16::try_from(maxval)
            .ok()
            .filter(|&maxval| maxval > 0)
            .with_context(|| format!("a maxval of {maxval} (it must be from 1 to 65535)"))?;
        let depth = if maxval <= 255 {
            Depth::Eight
        } else {
            Depth::Sixteen
        };
        let shape = Shape::checked(width, height, channels, depth)?;

        let start = header.next;
        let end = start + shape.bytes() as u64;
        let there = source.len().saturating_sub(start).min(shape.bytes() as u64);
        ensure!(
            damaged || end <= source.len(),
            "truncated at byte {} of {end}",
            source.len()
        );
        let mut after = [0; 2];
        if end <= source.len()
            && source.read_up_to(&mut after, end)? == 2
            && matches!(after, [b'P', b'1'..=b'7'])
        {
            bail!("it holds several images (only files of one are supported)");
        }
        Ok(PnmDecoder {
            source,
            shape,
            maxval,
            start,
            there: there as usize,
        })
    }
}

impl Decoder for PnmDecoder<'_> {
    fn survey(&self, _page: usize) -> Result<(Shape, u64)> {
        Ok((self.shape, 0))
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn metadata(&self, _remarks: &mut Diagnostics) -> Result<Metadata> {
        Ok(Metadata {
            maxval: Some(self.maxval).filter(|&maxval| maxval != self.shape.depth.full()),
            ..Metadata::default()
        })
    }

    fn decode(&mut self, policy: &ErrorPolicy) -> Result<Image> {
        let (shape, depth) = (self.shape, self.shape.depth);
        let mut samples = match self.there == shape.bytes() {
            true => policy.samples(&shape)?,
            false => Samples::zeroed(&shape)?,
        };
        // Only complete samples.
        let there = self.there / depth.bytes() * depth.bytes();
        let place = (self.start, &mut samples.as_bytes_mut()[..there]);
        let read = raw::read(self.source, [place], |piece| {
            raw::reorder(piece, depth, Order::Big);
            check(piece, depth, self.maxval)
        });
        policy.take(read)?;
        if self.there < shape.bytes() {
            policy.take(Err(anyhow!(
                "truncated at byte {} of {}",
                self.start + self.there as u64,
                self.start + shape.bytes() as u64
            )))?;
        }
        Ok(Image::new(shape, samples))
    }
}

/// Decodes a PNM file.
pub fn decode(source: &Source) -> Result<Image> {
    PnmDecoder::open(source, false)?.decode(&ErrorPolicy::default())
}

/// Refuses samples, in the machine's byte order, above `maxval`.
fn check(bytes: &[u8], depth: Depth, maxval: u16) -> Result<()> {
    if maxval == depth.full() {
        return Ok(());
    }
    let top = match depth {
        Depth::Eight => bytes.iter().copied().max().map(u16::from),
        Depth::Sixteen => bytes
            .as_chunks()
            .0
            .iter()
            .map(|&pair| u16::from_ne_bytes(pair))
            .max(),
    };
    match top {
        Some(top) if top > maxval => bail!("a sample of {top} is above the maxval {maxval}"),
        _ => Ok(()),
    }
}

/// Writes P5 (grey) or P6 (RGB) and returns the file's length in bytes; refuses alpha, for which
/// PNM has no place.
pub fn encode(image: &Image, target: &Target) -> Result<u64> {
    encode_with(image, &Metadata::default(), target)
}

/// As `encode`, with a maxval.
fn encode_with(image: &Image, metadata: &Metadata, target: &Target) -> Result<u64> {
    let shape = image.shape();
    let kind = match shape.channels {
        1 => "P5",
        3 => "P6",
        _ => bail!("PNM has no alpha channel"),
    };
    let header = format!(
        "{kind}\n{} {}\n{}\n",
        shape.width,
        shape.height,
        metadata.maxval.unwrap_or(shape.depth.full())
    );
    let len = (header.len() + shape.bytes()) as u64;
    target.reserve(len)?;
    target.write_at(header.as_bytes(), 0)?;
    raw::write(target, header.len() as u64, image.samples(), Order::Big)?;
    Ok(len)
}

/// Reads the header a character at a time through a small buffer.
struct Header<'a> {
    source: &'a Source,
    /// Bytes of the source from `start` on.
    block: Vec<u8>,
    start: u64,
    /// Offset of the byte to read next.
    next: u64,
}

impl Header<'_> {
    fn byte(&mut self) -> Result<u8> {
        if self.next >= self.start + self.block.len() as u64 {
            self.block.resize(4096, 0);
            self.start = self.next;
            let read = self.source.read_up_to(&mut self.block, self.start)?;
            self.block.truncate(read);
            ensure!(
                read > 0,
                "truncated at byte {}, within the header",
                self.next
            );
        }
        let byte = self.block[(self.next - self.start) as usize];
        self.next += 1;
        Ok(byte)
    }

    /// The next character; a comment (`#` to the end of its line) counts as the end of that line.
    fn character(&mut self) -> Result<u8> {
        let mut byte = self.byte()?;
        if byte == b'#' {
            while !matches!(byte, b'\n' | b'\r') {
                byte = self.byte()?;
            }
        }
        Ok(byte)
    }

    /// Reads a decimal number, the white space before it, and the single white-space character
    /// after it.
    fn number(&mut self, name: &str) -> Result<u64> {
        let mut character = self.character()?;
        while is_space(character) {
            character = self.character()?;
        }
        let mut number: Option<u64> = None;
        while character.is_ascii_digit() {
            let digit = u64::from(character - b'0');
            let grown = number
                .unwrap_or(0)
                .checked_mul(10)
                .and_then(|tens| tens.checked_add(digit));
            number = Some(grown.with_context(|| format!("the {name} is too large"))?);
            character = self.character()?;
        }
        number
            .filter(|_| is_space(character))
            .with_context(|| format!("the {name} is not a number (byte {})", self.next - 1))
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}
