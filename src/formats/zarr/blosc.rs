//! Blosc 1 (c-blosc, `README_CHUNK_FORMAT.rst`): a header, the offsets of blocks, and in each block one stream, or one for each
//! byte of a sample. The bytes, or the bits, of samples are sorted by their place in the sample before compression.

use crate::formats::raw::Order;
use anyhow::{Context, Result, bail, ensure};
use std::ops::Range;

const HEADER: usize = 16;

/// The flags of the header.
const BYTE_SHUFFLE: u8 = 1;
const STORED: u8 = 2;
const BIT_SHUFFLE: u8 = 4;
const UNSPLIT: u8 = 16;

/// The versions of the header and of Zstandard's streams, and the number of this compression.
const VERSIONS: [u8; 2] = [2, 1];
const ZSTD: u8 = 4;

/// Bytes of a block that is written: both it and its sorted bytes fit into a core's second cache.
pub const BLOCK: usize = 256 << 10;

/// The most bytes that a buffer can have: its length is a signed number of 32 bits.
const MOST: usize = i32::MAX as usize - HEADER;

/// The largest sample whose bytes have streams of their own, and the fewest bytes of such a stream.
const MOST_SPLITS: usize = 16;
const SHORTEST_SPLIT: usize = 128;

/// The compression of streams, by its number in the header.
#[derive(Clone, Copy)]
enum Compression {
    BloscLz,
    Lz4,
    Zlib,
    Zstd,
}

/// The bytes of a Blosc buffer, `most` at most.
///
/// # Errors
/// Damage, and Snappy.
pub fn decode(bytes: &[u8], most: usize) -> Result<Vec<u8>> {
    let header = bytes
        .get(..HEADER)
        .context("its Blosc header is truncated")?;
    let number = |at: usize| Order::Little.number(&header[at..at + 4]) as usize;
    let (flags, sample, size, block_size) = (header[2], header[3], number(4), number(8));
    let sample = usize::from(sample).max(1);
    ensure!(
        size <= most,
        "its Blosc buffer has {size} bytes, more than {most}"
    );
    if flags & STORED != 0 {
        let stored = bytes.get(HEADER..HEADER + size);
        return Ok(stored.context("its Blosc buffer is truncated")?.to_vec());
    }
    let compression = match flags >> 5 {
        0 => Compression::BloscLz,
        1 => Compression::Lz4,
        2 => bail!("Blosc with Snappy is not supported"),
        3 => Compression::Zlib,
        ZSTD => Compression::Zstd,
        other => bail!("Blosc with the unknown compression {other} is not supported"),
    };
    ensure!(block_size > 0 || size == 0, "its Blosc blocks are empty");
    let mut decoded = vec![0; size];
    let mut shuffled = vec![0; block_size.min(size)];
    for (index, block) in decoded.chunks_mut(block_size.max(1)).enumerate() {
        let offset = bytes.get(HEADER + 4 * index..HEADER + 4 * index + 4);
        let offset = Order::Little.number(offset.context("its Blosc offsets are truncated")?);
        let data = bytes.get(offset as usize..);
        let data = data.context("a Blosc block starts after the end")?;
        let is_split = flags & UNSPLIT == 0
            && sample <= MOST_SPLITS
            && block_size / sample >= SHORTEST_SPLIT
            && block.len() == block_size;
        let splits = if is_split { sample } else { 1 };
        if flags & BYTE_SHUFFLE != 0 && sample > 1 {
            let shuffled = &mut shuffled[..block.len()];
            decode_block(data, splits, compression, shuffled)?;
            unshuffle_bytes(shuffled, sample, block);
        } else if flags & BIT_SHUFFLE != 0 && (block.len() / sample).is_multiple_of(8) {
            let shuffled = &mut shuffled[..block.len()];
            decode_block(data, splits, compression, shuffled)?;
            unshuffle_bits(shuffled, sample, block);
        } else {
            decode_block(data, splits, compression, block)?;
        }
    }
    Ok(decoded)
}

/// The Blosc buffer of samples of 1, 2, 4 or 8 bytes: bytes sorted by their place in a sample, blocks of `BLOCK` bytes, each a
/// stream of Zstandard of a level. Bytes that become no smaller are stored.
///
/// # Errors
/// More bytes than a buffer can have.
pub fn encode(bytes: &[u8], sample: usize, level: i32) -> Result<Vec<u8>> {
    ensure!(
        bytes.len() <= MOST,
        "a chunk of {} bytes is more than Blosc holds ({MOST} bytes); use a smaller --zarr-chunk",
        bytes.len()
    );
    let shuffle = if sample > 1 { BYTE_SHUFFLE } else { 0 };
    let mut buffer = header(bytes.len(), sample, ZSTD << 5 | UNSPLIT | shuffle);
    let blocks = bytes.chunks(BLOCK);
    buffer.resize(HEADER + 4 * blocks.len(), 0);
    let mut compressor = zstd::bulk::Compressor::new(level)?;
    let mut shuffled = vec![0; BLOCK.min(bytes.len())];
    for (index, block) in blocks.enumerate() {
        let offset = (buffer.len() as u32).to_le_bytes();
        buffer[HEADER + 4 * index..][..4].copy_from_slice(&offset);
        let shuffled = &mut shuffled[..block.len()];
        match sample {
            2 => shuffle_bytes::<2>(block, shuffled),
            4 => shuffle_bytes::<4>(block, shuffled),
            8 => shuffle_bytes::<8>(block, shuffled),
            _ => shuffled.copy_from_slice(block),
        }
        let compressed = compressor.compress(shuffled)?;
        let stream = if compressed.len() < shuffled.len() {
            &compressed[..]
        } else {
            shuffled
        };
        buffer.extend_from_slice(&(stream.len() as u32).to_le_bytes());
        buffer.extend_from_slice(stream);
    }
    if buffer.len() > HEADER + bytes.len() {
        buffer = header(bytes.len(), sample, STORED);
        buffer.extend_from_slice(bytes);
    }
    let length = (buffer.len() as u32).to_le_bytes();
    buffer[12..HEADER].copy_from_slice(&length);
    Ok(buffer)
}

/// A header without the length of the buffer, its last number.
fn header(size: usize, sample: usize, flags: u8) -> Vec<u8> {
    let mut header = vec![VERSIONS[0], VERSIONS[1], flags, sample as u8];
    for number in [size, BLOCK.min(size), 0] {
        header.extend_from_slice(&(number as u32).to_le_bytes());
    }
    header
}

/// Sorts the bytes of samples by their place in a sample.
fn shuffle_bytes<const SAMPLE: usize>(samples: &[u8], shuffled: &mut [u8]) {
    let (samples, _) = samples.as_chunks::<SAMPLE>();
    let planes = shuffled.chunks_exact_mut(samples.len().max(1));
    for (place, plane) in planes.enumerate() {
        for (byte, sample) in plane.iter_mut().zip(samples) {
            *byte = sample[place];
        }
    }
}

/// Decodes the streams of a block, each after its length. A stream that is as long as its bytes is stored.
fn decode_block(
    mut data: &[u8],
    splits: usize,
    compression: Compression,
    block: &mut [u8],
) -> Result<()> {
    for stream in block.chunks_exact_mut((block.len() / splits).max(1)) {
        let truncated = "a Blosc block is truncated";
        let (length, rest) = data.split_at_checked(4).context(truncated)?;
        let length = Order::Little.number(length) as usize;
        let (compressed, rest) = rest.split_at_checked(length).context(truncated)?;
        data = rest;
        if length == stream.len() {
            stream.copy_from_slice(compressed);
            continue;
        }
        let written = match compression {
            Compression::BloscLz => decode_blosclz(compressed, stream),
            Compression::Lz4 => lz4_flex::block::decompress_into(compressed, stream).ok(),
            Compression::Zlib => libdeflater::Decompressor::new()
                .zlib_decompress(compressed, stream)
                .ok(),
            Compression::Zstd => zstd::bulk::decompress_to_buffer(compressed, stream).ok(),
        };
        ensure!(written == Some(stream.len()), "a Blosc stream is damaged");
    }
    Ok(())
}

/// Sorts bytes that are sorted by their place in a sample by sample. Those after the last whole sample are not sorted.
fn unshuffle_bytes(shuffled: &[u8], sample: usize, out: &mut [u8]) {
    let count = out.len() / sample;
    for place in 0..sample {
        let plane = &shuffled[place * count..(place + 1) * count];
        for (samples, byte) in out.chunks_exact_mut(sample).zip(plane) {
            samples[place] = *byte;
        }
    }
    out[count * sample..].copy_from_slice(&shuffled[count * sample..]);
}

/// Sorts bits that are sorted by their place in a sample by sample.
pub fn unshuffle_bits(shuffled: &[u8], sample: usize, out: &mut [u8]) {
    let count = out.len() / sample;
    let whole = count * sample;
    out[..whole].fill(0);
    for (bit, plane) in shuffled[..whole]
        .chunks_exact((count / 8).max(1))
        .enumerate()
    {
        for (eight, samples) in plane.iter().zip(out.chunks_exact_mut(8 * sample)) {
            for (index, of_sample) in samples.chunks_exact_mut(sample).enumerate() {
                of_sample[bit / 8] |= (eight >> index & 1) << (bit % 8);
            }
        }
    }
    out[whole..].copy_from_slice(&shuffled[whole..]);
}

/// The farthest match with a distance of two bytes; farther ones have a longer code.
const FAR: usize = 8191;

/// Decodes BloscLZ (c-blosc, `blosclz.c`) and returns the number of bytes; `None` for damage.
fn decode_blosclz(data: &[u8], out: &mut [u8]) -> Option<usize> {
    let mut bytes = data.iter().copied();
    let mut at = 0;
    let mut next = bytes.next().map(|first| first & 31);
    while let Some(control) = next {
        if control < 32 {
            for _ in 0..=control {
                *out.get_mut(at)? = bytes.next()?;
                at += 1;
            }
        } else {
            let mut length = usize::from(control >> 5) + 2;
            if control >> 5 == 7 {
                loop {
                    let more = bytes.next()?;
                    length = length.checked_add(more.into())?;
                    if more < 255 {
                        break;
                    }
                }
            }
            let (high, low) = (usize::from(control & 31) << 8, usize::from(bytes.next()?));
            let distance = if high == 31 << 8 && low == 255 {
                (usize::from(bytes.next()?) << 8) + usize::from(bytes.next()?) + FAR
            } else {
                high + low
            };
            repeat(out, at..at.checked_add(length)?, distance + 1)?;
            at += length;
        }
        next = bytes.next();
    }
    Some(at)
}

/// Fills a range with the bytes so far before it, which may overlap it.
fn repeat(out: &mut [u8], range: Range<usize>, distance: usize) -> Option<()> {
    let start = range.start.checked_sub(distance)?;
    out.get(range.clone())?;
    for (from, to) in (start..).zip(range) {
        out[to] = out[from];
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blosclz_by_hand() {
        // Two literals, then a match of 3 + 2 bytes at distance 2; the first byte has the mark of the format.
        let mut out = [0; 7];
        assert_eq!(
            decode_blosclz(&[32 | 1, 7, 9, 3 << 5, 1], &mut out),
            Some(7)
        );
        assert_eq!(out, [7, 9, 7, 9, 7, 9, 7]);
        for damaged in [
            &[1, 7][..],
            &[0, 7, 3 << 5, 1],
            &[0, 7, 7 << 5, 255],
            &[6, 1, 2, 3, 4, 5, 6, 7, 8, 9],
            &[0, 7, 7 << 5, 254, 0],
        ] {
            assert_eq!(decode_blosclz(damaged, &mut [0; 5]), None, "{damaged:?}");
        }
    }

    #[test]
    fn buffers_by_hand() {
        // Too short to become smaller: stored, after a header with the versions, the flags, and three lengths.
        let stored = encode(&[1, 2, 3, 4], 2, 1).expect("encoded");
        let header = [2, 1, STORED, 2, 4, 0, 0, 0, 4, 0, 0, 0, 20, 0, 0, 0];
        assert_eq!(stored, [&header[..], &[1, 2, 3, 4]].concat());
        let mut shuffled = [0; 6];
        shuffle_bytes::<2>(&[1, 2, 3, 4, 5, 6], &mut shuffled);
        assert_eq!(shuffled, [1, 3, 5, 2, 4, 6]);
    }

    /// Blocks that are whole, cut off, and compressed or stored within one buffer.
    #[test]
    fn what_is_encoded_is_decoded() {
        let mut random = 1u32;
        let mut noise = || {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 24) as u8
        };
        for sample in [1, 2, 4, 8] {
            for size in [
                0,
                sample,
                64 * sample,
                BLOCK - sample,
                BLOCK,
                BLOCK + sample,
                3 * BLOCK + 40,
            ] {
                let noisy = 0..size / 2;
                let bytes: Vec<u8> = (0..size)
                    .map(|at| {
                        if noisy.contains(&at) {
                            noise()
                        } else {
                            (at / 999) as u8
                        }
                    })
                    .collect();
                let buffer = encode(&bytes, sample, 1).expect("encoded");
                assert!(buffer.len() <= HEADER + size, "{sample} {size}");
                assert_eq!(Order::Little.number(&buffer[12..16]), buffer.len() as u64);
                let decoded = decode(&buffer, size).expect("decoded");
                assert!(decoded == bytes, "{sample} {size}");
            }
        }
    }

    #[test]
    fn damaged_buffers_are_refused() {
        let header = |flags, size: u8, block: u8| {
            vec![2, 1, flags, 2, size, 0, 0, 0, block, 0, 0, 0, 0, 0, 0, 0]
        };
        for (bytes, words) in [
            (vec![2, 1], "header is truncated"),
            (header(STORED, 4, 4), "is truncated"),
            (header(0, 4, 0), "are empty"),
            (header(0, 4, 4), "offsets are truncated"),
            (header(2 << 5, 4, 4), "Snappy"),
            (header(7 << 5, 4, 4), "unknown compression 7"),
            (
                [header(0, 4, 4), vec![99, 0, 0, 0]].concat(),
                "after the end",
            ),
            (
                [header(0, 4, 4), vec![20, 0, 0, 0]].concat(),
                "is truncated",
            ),
            (
                [header(0, 200, 4), vec![20, 0, 0, 0]].concat(),
                "more than 100",
            ),
            (
                [header(1 << 5, 4, 4), vec![20, 0, 0, 0, 1, 0, 0, 0, 0]].concat(),
                "is damaged",
            ),
        ] {
            let error = decode(&bytes, 100).expect_err(words).to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
