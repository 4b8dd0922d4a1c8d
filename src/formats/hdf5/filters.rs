//! Compressions of chunks that the library does not have: LZ4 and bitshuffle, with which detectors write, Blosc and Zstandard.

use crate::formats::raw::Order;
use crate::formats::zarr::blosc;
use anyhow::{Context, Result, bail, ensure};
use hdf5_reader::FilterRegistry;
use hdf5_reader::error::Error;
use hdf5_reader::messages::filter_pipeline::FilterDescription;
use std::io::{self, Read};

/// Decodes a chunk to `most` bytes at most, with the parameters of its filter.
type Decode = fn(chunk: &[u8], parameters: &[u32], most: usize) -> Result<Vec<u8>>;

/// The filters by their numbers in the registry of the HDF Group.
const FILTERS: [(u16, Decode); 4] = [
    (32001, |chunk, _, most| blosc::decode(chunk, most)),
    (32004, |chunk, _, most| lz4(chunk, most)),
    (32008, bitshuffle),
    (32015, |chunk, _, most| zstandard(chunk, most)),
];

/// The library's filters and these, for chunks of `most` bytes at most.
pub fn registry(most: usize) -> FilterRegistry {
    let mut registry = FilterRegistry::new();
    for (number, decode) in FILTERS {
        let filter = move |about: &FilterDescription, chunk: &[u8], _: usize| {
            let decoded = decode(chunk, &about.client_data, most);
            decoded.map_err(|error| Error::Io(io::Error::other(format!("{error:#}"))))
        };
        registry.register(number, Box::new(filter));
    }
    registry
}

/// The blocks of a chunk, each after its length, and the sizes in the header before them.
struct Blocks<'a> {
    /// Bytes of the decoded chunk.
    size: usize,
    /// Bytes of a decoded block.
    block: usize,
    rest: &'a [u8],
}

impl<'a> Blocks<'a> {
    fn new(chunk: &'a [u8], most: usize) -> Result<Blocks<'a>> {
        let (header, rest) = chunk.split_at_checked(12).context("a chunk is truncated")?;
        let size = Order::Big.number(&header[..8]);
        let block = Order::Big.number(&header[8..]) as usize;
        ensure!(
            size <= most as u64 && block > 0,
            "a chunk of {size} bytes in blocks of {block} is damaged"
        );
        Ok(Blocks {
            size: size as usize,
            block,
            rest,
        })
    }

    /// The bytes of the next block.
    fn next(&mut self) -> Result<&'a [u8]> {
        let truncated = "a block is truncated";
        let (length, rest) = self.rest.split_at_checked(4).context(truncated)?;
        let length = Order::Big.number(length) as usize;
        let (block, rest) = rest.split_at_checked(length).context(truncated)?;
        self.rest = rest;
        Ok(block)
    }
}

fn lz4(chunk: &[u8], most: usize) -> Result<Vec<u8>> {
    let mut blocks = Blocks::new(chunk, most)?;
    let mut decoded = vec![0; blocks.size];
    for out in decoded.chunks_mut(blocks.block) {
        let block = blocks.next()?;
        // One that cannot be compressed is stored.
        if block.len() == out.len() {
            out.copy_from_slice(block);
        } else {
            unpack_lz4(block, out)?;
        }
    }
    Ok(decoded)
}

fn unpack_lz4(block: &[u8], out: &mut [u8]) -> Result<()> {
    let written = lz4_flex::block::decompress_into(block, out).ok();
    ensure!(written == Some(out.len()), "an LZ4 block is damaged");
    Ok(())
}

/// Decompresses samples, and sorts their bits, which are sorted by their place in the sample. The parameters are two of the
/// version, the bytes of a sample, the samples of a block, and the compression.
fn bitshuffle(chunk: &[u8], parameters: &[u32], most: usize) -> Result<Vec<u8>> {
    let &[_, _, sample, _, compression, ..] = parameters else {
        bail!("bitshuffle without compression is not supported");
    };
    let unpack: fn(&[u8], &mut [u8]) -> Result<()> = match compression {
        2 => unpack_lz4,
        3 => unpack_zstandard,
        other => bail!("bitshuffle with the compression {other} is not supported"),
    };
    let mut blocks = Blocks::new(chunk, most)?;
    let eight = 8 * sample as usize;
    ensure!(
        (1..=16).contains(&sample) && blocks.block.is_multiple_of(eight),
        "blocks of {} bytes for samples of {sample} are damaged",
        blocks.block
    );
    let mut decoded = vec![0; blocks.size];
    let mut shuffled = vec![0; blocks.block.min(blocks.size)];
    // Samples after the last eight are stored.
    let (sorted, stored) = decoded.split_at_mut(blocks.size / eight * eight);
    for out in sorted.chunks_mut(blocks.block) {
        let shuffled = &mut shuffled[..out.len()];
        unpack(blocks.next()?, shuffled)?;
        blosc::unshuffle_bits(shuffled, sample as usize, out);
    }
    let rest = blocks.rest.get(..stored.len());
    stored.copy_from_slice(rest.context("a chunk is truncated")?);
    Ok(decoded)
}

fn unpack_zstandard(block: &[u8], out: &mut [u8]) -> Result<()> {
    let written = zstd::bulk::decompress_to_buffer(block, out).ok();
    ensure!(written == Some(out.len()), "a Zstandard block is damaged");
    Ok(())
}

fn zstandard(chunk: &[u8], most: usize) -> Result<Vec<u8>> {
    let mut decoded = Vec::new();
    let decoder = zstd::stream::read::Decoder::new(chunk)?;
    decoder.take(most as u64 + 1).read_to_end(&mut decoded)?;
    ensure!(decoded.len() <= most, "a chunk has more than {most} bytes");
    Ok(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A literal of eight samples of 16 bits in an LZ4 block, their bits sorted: the lowest bit of each sample is in the first
    /// byte. The ninth sample is stored.
    const CHUNK: &[u8] = b"\0\0\0\0\0\0\0\x12\0\0\0\x10\0\0\0\x12\xF0\x01\
        \x01\x02\x04\0\0\0\0\0\0\0\0\0\0\0\0\x80\x07\x00";

    #[test]
    fn bitshuffle_by_hand() {
        let decoded = bitshuffle(CHUNK, &[0, 4, 2, 8, 2], 100).expect("valid");
        let samples = decoded.as_chunks().0.iter();
        let samples: Vec<u16> = samples.map(|&it| u16::from_le_bytes(it)).collect();
        assert_eq!(samples, [1, 2, 4, 0, 0, 0, 0, 0x8000, 7]);
    }

    #[test]
    fn damaged_chunks_are_refused() {
        for size in 0..CHUNK.len() {
            assert!(bitshuffle(&CHUNK[..size], &[0, 4, 2, 8, 2], 100).is_err());
        }
        assert!(bitshuffle(CHUNK, &[0, 4, 2, 8, 2], 10).is_err());
        assert!(bitshuffle(CHUNK, &[0, 4, 3, 8, 2], 100).is_err());
        assert!(bitshuffle(CHUNK, &[0, 4, 2, 8], 100).is_err());
        assert!(lz4(&CHUNK[..12], 100).is_err());
        assert!(zstandard(b"(\xB5/\xFD", 100).is_err());
    }
}
