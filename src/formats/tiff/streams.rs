//! Reads the deflate or LZW strips or tiles of a page for a GPU.

use super::grid::Span;
use super::page::Page;
use super::predictor::Predictor;
use super::unpack::Method;
use crate::deflate::zlib::is_zlib;
use crate::formats::packed::{
    MAX_COMPRESSED_BYTES, MAX_INFLATED_BYTES, MOST_TILES, PADDING, Packed, TileCoding, Tiles,
    Unsuited,
};
use crate::formats::raw::{self, Order};
use crate::image::buffer::Buffer;
use crate::os::Source;

/// The most bytes of an LZW stream that a GPU decodes. The kernels count its output in 32 bits, and a damaged stream of this
/// length gives less: at most one string of 3839 bytes for each code of 9 bits.
const MAX_LZW_STREAM_BYTES: u64 = 1 << 20;

/// Bytes of a chunk that are read, at most, as by the CPU's decoder: more than it can need.
fn most(unpacked: usize) -> u64 {
    2 * unpacked as u64 + 65536
}

/// The compression of the chunks, if a GPU can decode it and the samples are those of memory, except for byte order, sign
/// and differences.
fn coding(page: &Page) -> Option<TileCoding> {
    let coding = match page.method {
        Method::Deflate => TileCoding::Zlib,
        Method::Lzw => TileCoding::Lzw,
        _ => return None,
    };
    let are_plain = page.form.is_plain()
        && page.palette.is_none()
        && page.coded.is_none()
        && !page.reversed
        && page.predictor != Some(Predictor::Bytes)
        && !page.spans.iter().any(Span::is_absent);
    are_plain.then_some(coding)
}

/// Whether a GPU can decode the chunks of the page.
pub fn are_all(page: &Page) -> bool {
    coding(page).is_some()
}

/// Reads the chunks of a page that has nothing else.
///
/// # Errors
/// An error of the file, which the CPU's decoder finds and reports too, or a limit of the kernels.
pub fn read(source: &Source, page: &Page) -> Result<Packed, Unsuited> {
    let unsuited = |error: anyhow::Error| Unsuited::new(format!("{error:#}"));
    let coding = coding(page)
        .ok_or_else(|| Unsuited::new("not all of its chunks are plain deflate or LZW data"))?;
    let bytes = page.bytes();
    if bytes > MAX_INFLATED_BYTES as u64 {
        return Err(Unsuited::image_too_large());
    }
    if page.spans.len() > MOST_TILES {
        return Err(Unsuited::new("its chunks are too many for the kernels"));
    }
    let len = |i: usize| page.spans[i].len.min(most(page.unpacked(i)));
    let all: u64 = (0..page.spans.len()).map(len).sum();
    if all > MAX_COMPRESSED_BYTES as u64 {
        return Err(Unsuited::too_much_data());
    }
    let is_long = |i: usize| len(i) > MAX_LZW_STREAM_BYTES;
    if coding == TileCoding::Lzw && (0..page.spans.len()).any(is_long) {
        return Err(Unsuited::new("an LZW strip or tile exceeds 1 MiB"));
    }
    let all = all as usize;
    let mut memory = Buffer::<u8>::any(all + 2 * PADDING).map_err(unsuited)?;
    memory[all..].fill(0);
    let (mut begins, mut at) = (Vec::with_capacity(page.spans.len()), 0);
    let mut first = 0;
    while first < page.spans.len() {
        // Chunks that follow one another in the file are read together.
        let Span { offset, .. } = page.spans[first];
        let (mut behind, begin) = (first, at);
        while page.spans.get(behind).is_some_and(|span| {
            span.offset == offset + (at - begin) as u64
                && (behind == first || len(behind - 1) == page.spans[behind - 1].len)
        }) {
            begins.push(at);
            at += len(behind) as usize;
            behind += 1;
        }
        let run = (offset, &mut memory[begin..at]);
        raw::read(source, [run], |_| Ok(())).map_err(unsuited)?;
        first = behind;
    }
    let mut heads = begins.iter().map(|&begin| memory[begin..].first_chunk());
    if coding == TileCoding::Lzw {
        // As the CPU's decoder checks it.
        if heads.any(|head| head == Some(&[0, 1])) {
            return Err(Unsuited::new("its LZW data are in the old bit order"));
        }
    } else if !heads.all(|head| head.is_some_and(is_zlib)) {
        return Err(Unsuited::new("not all of its chunks are zlib streams"));
    }
    let tiles = Tiles {
        coding,
        width: page.grid.width,
        height: page.grid.height,
        tiled: page.grid.tiled,
        differences: page.predictor.is_some(),
        big_endian: page.order == Order::Big,
        signed: page.form.signed,
    };
    let inflated = (page.unpacked(0), bytes as usize);
    let shape = page.form.shape;
    Ok(Packed::of_tiles(
        shape,
        tiles,
        memory,
        (begins, all),
        inflated,
    ))
}
