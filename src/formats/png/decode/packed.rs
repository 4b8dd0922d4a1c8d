//! Reads the compressed data of a PNG for a GPU, which checks them, and checks what follows them.

use super::PngDecoder;
use super::chunks::Chunks;
use super::header::Colour;
use crate::deflate::zlib::is_zlib;
use crate::formats::packed::{
    Expansion, ExpansionMode, Head, MOST_BYTES, MOST_STREAM, PADDING, Packed, Piece, Rows,
    Scanlines, Streams, Unsuited,
};
use crate::image::buffer::Buffer;

const MOST_ROW: usize = 1 << 29;

/// Chunks of a stream, at most, and one more for each of so many bytes.
const MOST_PIECES: usize = 1024;
const SMALL_PIECE: usize = 32;

/// Reads the image data of a file that has been opened and not decoded, and checks all chunks that
/// follow them.
///
/// # Errors
/// An error of the file, which the CPU's decoder finds and reports too, or a limit of the kernels.
pub fn read(reader: &PngDecoder) -> Result<Packed, Unsuited> {
    let unsuited = |error: anyhow::Error| Unsuited::new(format!("{error:#}"));
    let header = reader.prelude.header;
    if header.interlaced {
        return Err(Unsuited::new("it is interlaced"));
    }
    let bytes = header.scanline_bytes().map_err(unsuited)?;
    let row = bytes / header.height as usize - 1;
    if bytes > MOST_BYTES || row > MOST_ROW {
        return Err(Unsuited::new("its image is too large for the kernels"));
    }
    let expansion = expansion(reader)?;
    let room = reader.source.len().saturating_sub(reader.prelude.data) as usize;
    if room > MOST_STREAM {
        return Err(Unsuited::new("its data are too many for the kernels"));
    }
    let mut memory = Buffer::<u8>::any(room + 2 * PADDING).map_err(unsuited)?;
    memory[room..].fill(0);
    let start = reader.prelude.data;
    let read = reader.source.read_at(&mut memory[..room], start);
    read.map_err(unsuited)?;
    let pieces = pieces(&memory[..room])?;
    let span = pieces.last().map_or(0, |piece| piece.at + piece.len + 4);
    let len = pieces.last().map_or(0, |piece| piece.to + piece.len);
    let mut chunks = Chunks::new(reader.source);
    chunks.finish(start + span as u64).map_err(unsuited)?;
    let packed = Packed {
        head: Head {
            shape: reader.shape,
            streams: Streams {
                len,
                begins: vec![0],
                pieces,
                span,
                each: bytes,
                bytes,
            },
            rows: Rows::Png(Scanlines {
                width: header.width,
                height: header.height,
                bits: header.bits,
                expansion,
                row,
                step: header.pixel_bits().div_ceil(8) as usize,
            }),
        },
        memory,
    };
    let begins = packed.head.streams.within(&packed.memory).bytes(0, 2);
    if !begins.first_chunk().is_some_and(is_zlib) {
        return Err(Unsuited::new("it has no zlib stream"));
    }
    Ok(packed)
}

/// The IDAT chunks with which `bytes` of a file begin. Their CRCs are the kernels' to check.
fn pieces(bytes: &[u8]) -> Result<Vec<Piece>, Unsuited> {
    let (mut pieces, mut start, mut to) = (Vec::new(), 0, 0);
    let word = |at: usize| {
        let word = bytes.get(at..)?.first_chunk()?;
        Some(u32::from_be_bytes(*word))
    };
    while let Some(len) = word(start).filter(|_| bytes[start + 4..].starts_with(b"IDAT")) {
        let (at, len) = (start + 8, len as usize);
        let truncated = || Unsuited::new("its image data are truncated");
        let crc = word(at + len).ok_or_else(truncated)?;
        pieces.push(Piece { at, len, to, crc });
        to += len;
        start = at + len + 4;
    }
    if pieces.len() > MOST_PIECES + to / SMALL_PIECE {
        return Err(Unsuited::new("its data are in too many chunks"));
    }
    Ok(pieces)
}

/// What the pixels of this file need; none if samples lie in the file as in memory.
fn expansion(reader: &PngDecoder) -> Result<Option<Expansion>, Unsuited> {
    let prelude = &reader.prelude;
    if prelude.is_plain() {
        return Ok(None);
    }
    let odd = || Unsuited::new("its palette or its transparency is unusual");
    let mut chunks = Chunks::new(reader.source);
    let (mut palette, mut opacity) = (Vec::new(), None);
    let mut at = 8;
    while at < prelude.data {
        let unsuited = |error: anyhow::Error| Unsuited::new(format!("{error:#}"));
        let chunk = chunks.at(at).map_err(unsuited)?;
        match &chunk.kind {
            b"PLTE" => palette = chunks.data(&chunk).map_err(unsuited)?,
            b"tRNS" if opacity.is_some() => return Err(odd()),
            b"tRNS" => opacity = Some(chunks.data(&chunk).map_err(unsuited)?),
            _ => {}
        }
        at = chunk.end();
    }
    // A tRNS chunk that does not fit the image is ignored, and the shape has no alpha.
    if opacity.is_some() != prelude.transparent {
        return Err(odd());
    }
    let pairs = |bytes: &[u8]| {
        let pair = |(i, pair): (usize, &[u8; 2])| u64::from(u16::from_be_bytes(*pair)) << (16 * i);
        bytes.as_chunks().0.iter().enumerate().map(pair).sum()
    };
    let (mode, key, colours) = match (prelude.header.colour, &opacity) {
        (Colour::Grey, None) => (ExpansionMode::Grey, 0, Vec::new()),
        (Colour::Grey, Some(key)) if key.len() == 2 => {
            (ExpansionMode::GreyWithKey, pairs(key), Vec::new())
        }
        (Colour::Rgb, Some(key)) if key.len() == 6 => {
            (ExpansionMode::RgbWithKey, pairs(key), Vec::new())
        }
        (Colour::Palette, opacity) => {
            let colours = palette.as_chunks::<3>().0;
            let opaque = opacity.as_deref().unwrap_or_default();
            if colours.is_empty() || opaque.len() > colours.len() {
                return Err(odd());
            }
            let colour = |(i, &[r, g, b]): (usize, &[u8; 3])| {
                let a = opaque.get(i).copied().unwrap_or(u8::MAX);
                u32::from_le_bytes([r, g, b, a])
            };
            let mode = if opacity.is_some() {
                ExpansionMode::PaletteWithOpacity
            } else {
                ExpansionMode::Palette
            };
            (mode, 0, colours.iter().enumerate().map(colour).collect())
        }
        _ => return Err(odd()),
    };
    Ok(Some(Expansion {
        mode,
        key,
        palette: colours,
    }))
}
