//! Radiance HDR (Greg Ward's "Real Pixels", Graphics Gems II, and Radiance's file formats): RGB with
//! one shared exponent: a mantissa m stands for exactly m·2^(e − 136), a 32-bit float. The original program adds a half
//! to m; other readers do not, and neither does this one.
//!
//! It has a reader of its own because the `image` crate adds up the lengths of old runs without a bound.

use super::error_policy::ErrorPolicy;
use super::format::{Capabilities, Decoder, Format};
use super::library::{check_length, stream};
use crate::image::metadata::{Diagnostics, Metadata};
use crate::image::{Depth, Image, Samples, Shape, number};
use crate::os::Source;
use anyhow::{Context, Error, Result, anyhow, bail, ensure};
use std::io::{BufRead, ErrorKind, Read};

/// The most bytes of a header.
const MOST: usize = 64 << 10;

/// Radiance HDR.
pub static FORMAT: Format = Format {
    name: "Radiance HDR",
    id: "hdr",
    title: "Radiance HDR (RGBE)",
    extensions: &["hdr", "rgbe"],
    capabilities: Capabilities {
        channels: &[3],
        depths: &[Depth::Float],
        alpha: &[],
        ..Capabilities::UNSIGNED_PAGE
    },
    sniff: |head| head.starts_with(b"#?RADIANCE") || head.starts_with(b"#?RGBE"),
    decoder,
    ..Format::DEFAULTS
};

fn decoder(source: &Source, _damaged: bool) -> Result<Box<dyn Decoder + '_>> {
    let decoder = HdrDecoder::open(source)?;
    // A run of old files repeats a pixel 65,535 times for 8 bytes, one of new files 127 values for 2.
    check_length(source, &decoder.shape, 8192)?;
    Ok(Box::new(decoder))
}

struct HdrDecoder<'a> {
    source: &'a Source,
    shape: Shape,
    /// Offset of the first row.
    start: u64,
    diagnostics: Diagnostics,
}

impl<'a> HdrDecoder<'a> {
    /// Reads the header: lines up to an empty one, then the line of the sides.
    fn open(source: &'a Source) -> Result<HdrDecoder<'a>> {
        let mut input = stream(source).take(MOST as u64);
        let mut diagnostics = Diagnostics::default();
        let mut start = 0;
        let mut line = || -> Result<String> {
            let mut line = Vec::new();
            input.read_until(b'\n', &mut line)?;
            start += line.len() as u64;
            ensure!(
                line.pop() == Some(b'\n'),
                "truncated at byte {start}, within the header"
            );
            Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
        };
        loop {
            let line = line()?;
            match line.split_once('=') {
                _ if line.is_empty() => break,
                _ if line.starts_with('#') => {}
                Some(("FORMAT", "32-bit_rle_rgbe")) => {}
                Some(("FORMAT", other)) => {
                    bail!("samples of the kind {other} are not supported (32-bit_rle_rgbe is)")
                }
                Some((name @ ("EXPOSURE" | "COLORCORR"), value)) => {
                    diagnostics.warnings.push(format!(
                        "samples are read as stored: they are not divided by {name}, {value}"
                    ));
                }
                _ => diagnostics.notes.push(format!("{line:?} is left out")),
            }
        }
        let sides = line()?;
        let words: Vec<&str> = sides.split_whitespace().collect();
        let (height, width) = match words[..] {
            ["-Y", height, "+X", width] => (height, width),
            _ => bail!("the row order {sides:?} is not supported (-Y HEIGHT +X WIDTH is)"),
        };
        let side = |text: &str| -> Result<u64> {
            (text.parse().ok()).with_context(|| format!("{text:?} is not a number of pixels"))
        };
        Ok(HdrDecoder {
            source,
            shape: Shape::checked(side(width)?, side(height)?, 3, Depth::Float)?,
            start,
            diagnostics,
        })
    }
}

impl Decoder for HdrDecoder<'_> {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn metadata(&self, diagnostics: &mut Diagnostics) -> Result<Metadata> {
        diagnostics.add(&self.diagnostics);
        Ok(Metadata::default())
    }
    fn decoding(&self) -> String {
        "rows of runs".into()
    }

    fn decode(&mut self, policy: &ErrorPolicy) -> Result<Image> {
        let mut samples = Samples::any(&self.shape)?;
        let Samples::U32(keys) = &mut samples else {
            bail!("samples of 32 bits were expected");
        };
        let mut input = stream(self.source);
        std::io::copy(&mut (&mut input).take(self.start), &mut std::io::sink())?;
        let mut pixels = vec![[0; 4]; self.shape.width];
        let mut failed = false;
        for (y, out) in keys.chunks_exact_mut(self.shape.row()).enumerate() {
            if !failed && let Err(error) = row(&mut input, &mut pixels) {
                let with_row = |error| {
                    if is_end_of_file(&error) {
                        anyhow!("truncated at byte {} (row {y})", self.source.len())
                    } else {
                        anyhow!("row {y}: {error}")
                    }
                };
                policy.accept(Err(with_row(error)))?;
                failed = true;
            }
            if failed {
                out.fill(number::key(0));
                continue;
            }
            for (out, &[r, g, b, e]) in out.as_chunks_mut().0.iter_mut().zip(&pixels) {
                *out = [r, g, b].map(|mantissa| number::key(value(mantissa, e).to_bits()));
            }
        }
        Ok(Image::new(self.shape, samples))
    }
}

/// m·2^(e − 136), exactly; an exponent of 0 is 0.
fn value(mantissa: u8, exponent: u8) -> f32 {
    match exponent {
        0 => 0.0,
        // In doubles, where 2^(1 − 136) is a normal number: no value of a pixel is rounded.
        _ => (f64::from(mantissa) * 2f64.powi(i32::from(exponent) - 136)) as f32,
    }
}

fn is_end_of_file(error: &Error) -> bool {
    let error = error.downcast_ref::<std::io::Error>();
    error.is_some_and(|error| error.kind() == ErrorKind::UnexpectedEof)
}

/// Reads a row of pixels: runs of each of the four bytes, or whole pixels.
fn row(input: &mut impl Read, pixels: &mut [[u8; 4]]) -> Result<()> {
    let width = pixels.len();
    let first = four(input)?;
    let [2, 2, high @ 0..=127, low] = first else {
        return old_row(input, pixels, first);
    };
    let stated = usize::from(u16::from_be_bytes([high, low]));
    ensure!(
        stated == width,
        "it is damaged: its row has {stated} pixels where there are {width}"
    );
    for channel in 0..4 {
        let mut x = 0;
        while x < width {
            let count = usize::from(byte(input)?);
            let (count, run) = if count > 128 {
                (count - 128, Some(byte(input)?))
            } else {
                (count, None)
            };
            ensure!(
                (1..=width - x).contains(&count),
                "it is damaged: a run of {count} at pixel {x} of {width}"
            );
            for pixel in &mut pixels[x..x + count] {
                pixel[channel] = match run {
                    Some(value) => value,
                    None => byte(input)?,
                };
            }
            x += count;
        }
    }
    Ok(())
}

/// Reads a row of whole pixels, where 1, 1, 1, n repeats the pixel before n times, and each further one directly after it
/// 256 times as often.
fn old_row(input: &mut impl Read, pixels: &mut [[u8; 4]], first: [u8; 4]) -> Result<()> {
    let (mut x, mut next, mut shift) = (0, Some(first), 0);
    while x < pixels.len() {
        let pixel = match next.take() {
            Some(pixel) => pixel,
            None => four(input)?,
        };
        let left = pixels.len() - x;
        match pixel {
            [1, 1, 1, count] if x > 0 => {
                let count = usize::from(count) << shift;
                ensure!(
                    count <= left && shift < 32,
                    "it is damaged: a run of {count} at pixel {x} of {}",
                    pixels.len()
                );
                let before = pixels[x - 1];
                pixels[x..x + count].fill(before);
                x += count;
                shift += 8;
            }
            pixel => {
                pixels[x] = pixel;
                x += 1;
                shift = 0;
            }
        }
    }
    Ok(())
}

fn byte(input: &mut impl Read) -> Result<u8> {
    let mut byte = [0];
    input.read_exact(&mut byte)?;
    Ok(byte[0])
}

fn four(input: &mut impl Read) -> Result<[u8; 4]> {
    let mut four = [0; 4];
    input.read_exact(&mut four)?;
    Ok(four)
}
