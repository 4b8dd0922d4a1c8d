//! TGA, read by the `image` crate.

use super::{LibraryDecoder, Opened, Stream};
use crate::formats::format::{Capabilities, Decoder, Format};
use crate::image::Depth;
use crate::os::Source;
use ::image::ImageResult;
use anyhow::{Result, ensure};
use std::io::{self, Cursor, Read};

/// Truevision TGA.
pub static FORMAT: Format = Format {
    name: "TGA",
    id: "tga",
    title: "Truevision TGA",
    extensions: &["tga"],
    capabilities: Capabilities {
        depths: &[Depth::Eight],
        ..Capabilities::UNSIGNED_PAGE
    },
    sniff: is_tga,
    decoder,
    ..Format::DEFAULTS
};

fn decoder(source: &Source, _damaged: bool) -> Result<Box<dyn Decoder + '_>> {
    // A run has up to 128 pixels.
    let mut decoder = LibraryDecoder::open(source, open)?.at_most(128)?;
    decoder.warnings.extend(attribute(source)?);
    let says_none = matches!(attributes_type(source)?, Some(0 | 1));
    let warning = "the fourth bytes of its pixels are left out: its extension area says that they are not alpha";
    if says_none && decoder.shape().channels == 4 {
        decoder.warnings.push(warning.into());
    }
    if says_none || !has_alpha(source)? {
        decoder.reduce_channels(4, 3);
    }
    Ok(Box::new(decoder))
}

/// The library takes few numbers of attribute bits, which writers often leave wrong: those that a pixel of its
/// size has for alpha are put in their place. Which of them are alpha `has_alpha` decides.
fn open(mut stream: Stream) -> ImageResult<Opened> {
    let mut head = [0; 18];
    stream.read_exact(&mut head)?;
    let bits = if head[1] == 1 { head[7] } else { head[16] };
    let attributes = match (head[2] & 7, bits) {
        (3, 16) | (_, 32) => 8,
        _ => 0,
    };
    head[17] = head[17] & !15 | attributes;
    let decoder = ::image::codecs::tga::TgaDecoder::new(Cursor::new(head).chain(stream))?;
    Ok(Box::new(decoder))
}

/// The header of a TGA.
fn header(source: &Source) -> Result<[u8; 18]> {
    let mut head = [0; 18];
    source.read_up_to(&mut head, 0)?;
    Ok(head)
}

/// Whether the fourth byte of pixels or colours of 32 bits is alpha: the descriptor counts its bits (field 5.6 of the
/// specification), or one of them is not 0. Some writers leave the descriptor 0; others have nothing there, which would be
/// transparent.
fn has_alpha(source: &Source) -> Result<bool> {
    let head = header(source)?;
    Ok(head[17] & 15 > 0 || is_fourth_used(source, &head).or_else(unless_truncated)?)
}

/// What the extension area of a file of version 2 says of the fourth byte (field 24): 0 is no alpha, 1 is undefined data, and
/// larger numbers are alpha.
fn attributes_type(source: &Source) -> Result<Option<u8>> {
    let mut footer = [0; 26];
    let Some(at) = source.len().checked_sub(26) else {
        return Ok(None);
    };
    source.read_at(&mut footer, at)?;
    let [a, b, c, d, ..] = footer;
    let area = u64::from(u32::from_le_bytes([a, b, c, d]));
    let (mut kind, at) = ([0], area + 494);
    if !footer.ends_with(b"TRUEVISION-XFILE.\0") || area == 0 || at >= source.len() {
        return Ok(None);
    }
    source.read_at(&mut kind, at)?;
    Ok(Some(kind[0]))
}

/// The decoder reports a truncated file.
fn unless_truncated(error: io::Error) -> Result<bool> {
    ensure!(error.kind() == io::ErrorKind::UnexpectedEof, error);
    Ok(false)
}

/// Whether the fourth byte of a pixel or colour of 32 bits is not 0.
fn is_fourth_used(source: &Source, head: &[u8; 18]) -> io::Result<bool> {
    let number = |at: usize| u64::from(u16::from_le_bytes([head[at], head[at + 1]]));
    let (name, kind, bits) = (i64::from(head[0]), head[2], head[16]);
    let mut stream = super::stream(source);
    stream.seek_relative(18 + name)?;
    let (mut left, size) = match kind {
        1 | 9 => (number(5), head[7]),
        _ => (number(12) * number(14), bits),
    };
    if size != 32 {
        return Ok(false);
    }
    let used = |stream: &mut Stream| -> io::Result<bool> {
        let mut pixel = [0; 4];
        stream.read_exact(&mut pixel)?;
        Ok(pixel[3] != 0)
    };
    while left > 0 {
        let mut count = 1;
        if kind == 10 {
            let mut packet = [0];
            stream.read_exact(&mut packet)?;
            count = u64::from(packet[0] & 127) + 1;
            // A pixel that is repeated, or so many pixels.
            for _ in 0..if packet[0] < 128 { count } else { 1 } {
                if used(&mut stream)? {
                    return Ok(true);
                }
            }
        } else if used(&mut stream)? {
            return Ok(true);
        }
        left = left.saturating_sub(count);
    }
    Ok(false)
}

/// A sentence about the attribute bit of pixels or colours of 16 bits, which programs take for opacity or for transparency.
fn attribute(source: &Source) -> Result<Option<String>> {
    let head = header(source)?;
    let size = match head[2] {
        1 | 9 => head[7],
        _ => head[16],
    };
    let is_color = !matches!(head[2], 3 | 11);
    let warning = "the attribute bit of its pixels of 16 bits is left out: programs disagree on what it means";
    Ok((is_color && size == 16 && head[17] & 15 == 1).then(|| warning.into()))
}

/// Whether a header of 18 bytes is that of a TGA, which has no magic number: every field has to be
/// one that images have (Truevision TGA file format specification 2.0, fields 2 to 5).
fn is_tga(head: &[u8]) -> bool {
    let Some(
        &[
            _,
            map,
            kind,
            m0,
            m1,
            l0,
            l1,
            entry,
            _,
            _,
            _,
            _,
            w0,
            w1,
            h0,
            h1,
            bits,
            about,
        ],
    ) = head.first_chunk::<18>()
    else {
        return false;
    };
    let mapped = match (map, kind) {
        // Without a colour map its three fields are 0.
        (0, 2 | 10) => [m0, m1, l0, l1, entry] == [0; 5] && matches!(bits, 15 | 16 | 24 | 32),
        (0, 3 | 11) => [m0, m1, l0, l1, entry] == [0; 5] && matches!(bits, 8 | 16),
        (1, 1 | 9) => {
            let colours = u16::from_le_bytes([l0, l1]);
            (1..=4096).contains(&colours)
                && matches!(entry, 15 | 16 | 24 | 32)
                && matches!(bits, 8 | 16)
        }
        _ => false,
    };
    // The two highest bits of the descriptor are unused; up to 8 bits are alpha.
    mapped && [w0, w1] != [0; 2] && [h0, h1] != [0; 2] && about & 0xC0 == 0 && about & 15 <= 8
}
