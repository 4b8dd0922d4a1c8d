//! Reads the compressed chunks of a page for a GPU: zlib streams and gzip members.

use super::codecs::Codec;
use crate::deflate::zlib::is_zlib;
use crate::formats::packed::{
    MAX_COMPRESSED_BYTES, MAX_INFLATED_BYTES, MOST_TILES, PADDING, Packed, TileCoding, Tiles,
    Unsuited,
};
use crate::formats::raw::Order;
use crate::image::Shape;
use crate::image::buffer::Buffer;
use anyhow::Result;
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The header of a gzip member without optional fields (RFC 1952, section 2.3): its signature, deflate, and no flags.
const GZIP: [u8; 4] = [0x1f, 0x8b, 8, 0];

/// Bytes of the header that the streams leave out: all but the last two of ten.
const GZIP_LEFT_OUT: usize = 8;

/// Streams of no more bytes than this have no room for a header and a trailer.
const LEAST: usize = 8;

/// The compression of chunks with these codecs, if a GPU can decode it.
pub fn coding(codecs: &[Codec]) -> Option<TileCoding> {
    match codecs {
        [Codec::Zlib] => Some(TileCoding::Zlib),
        [Codec::Gzip] => Some(TileCoding::Gzip),
        _ => None,
    }
}

/// The chunks of a page. No chunk has samples of another page.
pub struct Chunks {
    pub coding: TileCoding,
    pub shape: Shape,
    /// Rows and columns of a chunk.
    pub height: usize,
    pub width: usize,
    pub order: Order,
    pub signed: bool,
}

/// Reads the chunks. `read_chunk` returns the chunk at a row and a column as it is stored, or `None` if it is not stored.
///
/// # Errors
/// An error of the store, which the CPU's decoder finds and reports too, or a limit of the kernels.
pub fn read(
    chunks: Chunks,
    read_chunk: impl Fn(u64, u64) -> Result<Option<Vec<u8>>> + Sync,
) -> Result<Packed, Unsuited> {
    let unsuited = |error: anyhow::Error| Unsuited::new(format!("{error:#}"));
    let Chunks {
        coding,
        shape,
        height,
        width,
        order,
        signed,
    } = chunks;
    let across = shape.width.div_ceil(width);
    let count = shape.height.div_ceil(height) * across;
    if count > MOST_TILES {
        return Err(Unsuited::new("its chunks are too many for the kernels"));
    }
    let tile_bytes = height
        .saturating_mul(width)
        .saturating_mul(shape.depth.bytes());
    if tile_bytes > MAX_INFLATED_BYTES / count {
        return Err(Unsuited::image_too_large());
    }
    // A damaged store may have chunks that are far too long.
    let total = AtomicUsize::new(0);
    let read = |index: usize| {
        if total.load(Ordering::Relaxed) > MAX_COMPRESSED_BYTES {
            return Err(Unsuited::too_much_data());
        }
        let chunk = read_chunk((index / across) as u64, (index % across) as u64);
        let chunk = chunk.map_err(unsuited)?;
        let mut chunk = chunk.ok_or_else(|| Unsuited::new("not all of its chunks are stored"))?;
        total.fetch_add(chunk.len(), Ordering::Relaxed);
        let is_plain = match coding {
            TileCoding::Gzip => {
                let is_plain = chunk.starts_with(&GZIP);
                chunk.drain(..GZIP_LEFT_OUT.min(chunk.len()));
                is_plain
            }
            _ => chunk.first_chunk().is_some_and(is_zlib),
        };
        if is_plain && chunk.len() > LEAST {
            return Ok(chunk);
        }
        let why = "a chunk is not a zlib stream or a gzip member without a name";
        Err(Unsuited::new(why))
    };
    let streams: Vec<Result<_, _>> = (0..count).into_par_iter().map(read).collect();
    let streams: Vec<Vec<u8>> = streams.into_iter().collect::<Result<_, _>>()?;
    let mut len = 0;
    let mut starts = Vec::with_capacity(count);
    for stream in &streams {
        starts.push(len);
        len += stream.len();
    }
    if len > MAX_COMPRESSED_BYTES {
        return Err(Unsuited::too_much_data());
    }
    let mut memory = Buffer::<u8>::any(len + 2 * PADDING).map_err(unsuited)?;
    let mut rest = &mut memory[..];
    let mut copies = Vec::with_capacity(count);
    for stream in &streams {
        let (to, after) = rest.split_at_mut(stream.len());
        copies.push((to, stream));
        rest = after;
    }
    rest.fill(0);
    copies
        .into_par_iter()
        .for_each(|(to, stream)| to.copy_from_slice(stream));
    let tiles = Tiles {
        coding,
        width,
        height,
        tiled: true,
        differences: false,
        big_endian: order == Order::Big,
        signed,
    };
    let inflated = (tile_bytes, count * tile_bytes);
    Ok(Packed::of_tiles(
        shape,
        tiles,
        memory,
        (starts, len),
        inflated,
    ))
}
