//! Reads the compressed data of a PNG, so that a GPU can decode them. The GPU checks the data. The chunks after them are checked
//! here.

use super::PngDecoder;
use super::chunks::ChunkReader;
use super::header::Colour;
use crate::deflate::zlib::is_zlib;
use crate::formats::packed::{
    DataLayout, Expansion, ExpansionMode, Extent, Head, MAX_COMPRESSED_BYTES, MAX_INFLATED_BYTES,
    PADDING, Packed, Scanlines, Streams, Trailer, Unsuited,
};
use crate::image::buffer::Buffer;

/// The longest row that the kernels unfilter, in bytes.
const MAX_ROW_BYTES: usize = 1 << 29;

/// The most chunks that short image data may have.
const MAX_CHUNKS: usize = 1024;
/// Image data may have one chunk more for each of so many bytes.
const BYTES_PER_FURTHER_CHUNK: usize = 32;

/// Reads the image data of an opened file, and checks all chunks after them.
///
/// # Errors
/// An error in the file, which the CPU's decoder reports too, or a file that exceeds the limits of the kernels.
pub fn read(decoder: &PngDecoder) -> Result<Packed, Unsuited> {
    let header = decoder.prelude.header;
    if header.interlaced {
        return Err(Unsuited::new("it is interlaced"));
    }
    let bytes = header.scanline_bytes().map_err(unsuited)?;
    let row_bytes = bytes / header.height as usize - 1;
    if bytes > MAX_INFLATED_BYTES || row_bytes > MAX_ROW_BYTES {
        return Err(Unsuited::image_too_large());
    }
    let expansion = read_expansion(decoder)?;
    let start = decoder.prelude.data;
    let rest_of_file = decoder.source.len().saturating_sub(start) as usize;
    if rest_of_file > MAX_COMPRESSED_BYTES {
        return Err(Unsuited::too_much_data());
    }
    let mut memory = Buffer::<u8>::any(rest_of_file + 2 * PADDING).map_err(unsuited)?;
    memory[rest_of_file..].fill(0);
    let read = decoder.source.read_at(&mut memory[..rest_of_file], start);
    read.map_err(unsuited)?;
    let extents = image_data_extents(&memory[..rest_of_file])?;
    let last = extents.last();
    let memory_bytes = last.map_or(0, |extent| extent.at + extent.len + 4);
    let len = last.map_or(0, |extent| extent.stream_offset + extent.len);
    let mut chunks = ChunkReader::new(decoder.source);
    chunks
        .finish(start + memory_bytes as u64)
        .map_err(unsuited)?;
    let packed = Packed {
        head: Head {
            shape: decoder.shape,
            streams: Streams {
                len,
                starts: vec![0],
                extents,
                memory_bytes,
                stream_output: bytes,
                output: bytes,
                trailer: Trailer::Adler,
            },
            layout: DataLayout::Png(Scanlines {
                width: header.width,
                height: header.height,
                bits: header.bits,
                expansion,
                row_bytes,
                pixel_bytes: header.pixel_bits().div_ceil(8) as usize,
            }),
        },
        memory,
    };
    let zlib_header = packed.head.streams.reader(&packed.memory).bytes(0, 2);
    if !zlib_header.first_chunk().is_some_and(is_zlib) {
        return Err(Unsuited::new("it has no zlib stream"));
    }
    Ok(packed)
}

/// The reason why the GPU cannot decode the file, from an error in the file.
fn unsuited(error: anyhow::Error) -> Unsuited {
    Unsuited::new(format!("{error:#}"))
}

/// The data of the IDAT chunks at the start of `bytes`. The kernels check their CRCs.
fn image_data_extents(bytes: &[u8]) -> Result<Vec<Extent>, Unsuited> {
    let (mut extents, mut start, mut stream_offset) = (Vec::new(), 0, 0);
    let word = |at: usize| {
        let word = bytes.get(at..)?.first_chunk()?;
        Some(u32::from_be_bytes(*word))
    };
    while let Some(len) = word(start).filter(|_| bytes[start + 4..].starts_with(b"IDAT")) {
        let (at, len) = (start + 8, len as usize);
        let truncated = || Unsuited::new("its image data are truncated");
        let crc = word(at + len).ok_or_else(truncated)?;
        extents.push(Extent {
            at,
            len,
            stream_offset,
            crc,
        });
        stream_offset += len;
        start = at + len + 4;
    }
    if extents.len() > MAX_CHUNKS + stream_offset / BYTES_PER_FURTHER_CHUNK {
        return Err(Unsuited::new(format!(
            "its image data are in too many chunks ({}) for the GPU",
            extents.len()
        )));
    }
    Ok(extents)
}

/// How the pixels of this file are expanded to samples; `None` if no expansion is needed.
fn read_expansion(decoder: &PngDecoder) -> Result<Option<Expansion>, Unsuited> {
    let prelude = &decoder.prelude;
    if prelude.needs_no_expansion() {
        return Ok(None);
    }
    let unusual = || Unsuited::new("its palette or its transparency is unusual");
    let mut chunks = ChunkReader::new(decoder.source);
    let (mut palette, mut opacity) = (Vec::new(), None);
    let mut at = 8;
    while at < prelude.data {
        let chunk = chunks.at(at).map_err(unsuited)?;
        match &chunk.kind {
            b"PLTE" => palette = chunks.data(&chunk).map_err(unsuited)?,
            b"tRNS" if opacity.is_some() => return Err(unusual()),
            b"tRNS" => opacity = Some(chunks.data(&chunk).map_err(unsuited)?),
            _ => {}
        }
        at = chunk.end();
    }
    // A tRNS chunk that does not fit the image is ignored, and the shape has no alpha.
    if opacity.is_some() != prelude.transparent {
        return Err(unusual());
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
                return Err(unusual());
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
        _ => return Err(unusual()),
    };
    Ok(Some(Expansion {
        mode,
        key,
        palette: colours,
    }))
}
