//! Copies uncompressed samples between a file and memory, in parallel pieces, in either byte order.

use crate::files::{Source, Target};
use crate::image::{Depth, Samples};
use anyhow::Result;
use rayon::prelude::*;

/// Bytes of one read or write call: large enough that the call costs nothing, small enough that the
/// data are still in a core's cache when the byte order is changed.
const PIECE: usize = 256 << 10;

/// The order of the two bytes of a 16-bit sample in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl Order {
    /// This machine's order.
    pub const NATIVE: Order = if cfg!(target_endian = "big") {
        Order::Big
    } else {
        Order::Little
    };
}

/// Converts 16-bit samples from a file's byte order to the machine's, or back; leaves 8-bit samples
/// alone.
pub fn reorder(bytes: &mut [u8], depth: Depth, order: Order) {
    if depth == Depth::Sixteen && order != Order::NATIVE {
        for pair in bytes.as_chunks_mut::<2>().0 {
            *pair = u16::from_ne_bytes(*pair).swap_bytes().to_ne_bytes();
        }
    }
}

/// Flips the top bit of each sample, in the machine's byte order. This turns signed samples (two's
/// complement) into unsigned ones in the same order, or back: half the range is added, which modulo
/// the range is the same as subtracting it.
pub fn toggle(bytes: &mut [u8], depth: Depth) {
    match depth {
        Depth::Eight => bytes.iter_mut().for_each(|sample| *sample ^= 0x80),
        Depth::Sixteen => {
            for pair in bytes.as_chunks_mut::<2>().0 {
                *pair = (u16::from_ne_bytes(*pair) ^ 0x8000).to_ne_bytes();
            }
        }
    }
}

/// Fills each destination from its offset in the source, in parallel pieces, and runs `then` on
/// every piece while it is in cache. A piece never splits a sample of a destination that starts
/// with a whole one. Of several errors the earliest in the list is returned.
pub fn read<'a>(
    source: &Source,
    spans: impl IntoIterator<Item = (u64, &'a mut [u8])>,
    then: impl Fn(&mut [u8]) -> Result<()> + Sync,
) -> Result<()> {
    let mut pieces: Vec<(u64, &mut [u8])> = Vec::new();
    for (offset, bytes) in spans {
        let at = |piece: usize| offset + (piece * PIECE) as u64;
        pieces.extend(
            bytes
                .chunks_mut(PIECE)
                .enumerate()
                .map(|(i, piece)| (at(i), piece)),
        );
    }
    let failure = pieces.into_par_iter().find_map_first(|(offset, piece)| {
        source
            .read_at(piece, offset)
            .and_then(|()| then(piece))
            .err()
    });
    failure.map_or(Ok(()), Err)
}

/// Writes all samples to the target from `offset` on, in the given byte order, in parallel.
pub fn write(target: &Target, offset: u64, samples: &Samples, order: Order) -> Result<()> {
    write_as(target, offset, samples, order, false)
}

/// As `write`; with `toggled`, the top bit of every sample is flipped.
pub fn write_as(
    target: &Target,
    offset: u64,
    samples: &Samples,
    order: Order,
    toggled: bool,
) -> Result<()> {
    let depth = samples.depth();
    let at = |piece: usize| offset + (piece * PIECE) as u64;
    samples
        .as_bytes()
        .par_chunks(PIECE)
        .enumerate()
        .try_for_each_init(Vec::new, |turned: &mut Vec<u8>, (i, piece)| {
            if !toggled && (depth == Depth::Eight || order == Order::NATIVE) {
                return target.write_at(piece, at(i));
            }
            turned.clear();
            turned.extend_from_slice(piece);
            if toggled {
                toggle(turned, depth);
            }
            reorder(turned, depth, order);
            target.write_at(turned, at(i))
        })
}

/// As `toggle`, for all samples, in parallel.
pub fn toggle_signs(samples: &mut Samples) {
    let depth = samples.depth();
    let pieces = samples.as_bytes_mut().par_chunks_mut(PIECE);
    pieces.for_each(|piece| toggle(piece, depth));
}
