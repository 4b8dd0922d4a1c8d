//! Stores rows past the caches. A normal store reads a cache line before it writes to it, in vain if it overwrites the whole
//! line. For an image that is larger than the caches, that is a third of all traffic, and no line of it stays cached.

use crate::image::simd::{Level, level};

/// Images of this many bytes or more are stored so: more than the caches of most machines.
const LARGE: usize = 32 << 20;

/// Bytes of a line of a cache.
const LINE: usize = 64;

/// The longest side of a tile, in pixels: the rows of a band, and the most pixels of a row that are stored at once.
pub const TILE: usize = 128;

/// The most bytes of a pixel.
const PIXEL: usize = 8;

/// Whether an image of this size is stored so.
pub fn is_worth(bytes: usize) -> bool {
    bytes >= LARGE && cfg!(target_arch = "x86_64") && level() != Level::Scalar
}

/// Rows of a band of an image, each filled from left to right.
pub struct Streamed {
    /// For each row the bytes of an incomplete line, at the end of the first `LINE` bytes, and room for the next ones.
    held: Vec<[u8; LINE + TILE * PIXEL]>,
}

impl Streamed {
    pub fn new() -> Streamed {
        Streamed {
            held: vec![[0; LINE + TILE * PIXEL]; TILE],
        }
    }

    /// Stores the bytes `new` of the row `index` from byte `start` on; the bytes before it have been stored, and the last line only
    /// if it is whole or the row's last.
    pub fn store(&mut self, index: usize, row: &mut [u8], start: usize, new: &[u8]) {
        let end = start + new.len();
        let lead = row.as_ptr().align_offset(LINE);
        let held = start.saturating_sub(lead) % LINE;
        // Bytes before the row's first whole line.
        let first = lead.saturating_sub(start).min(new.len());
        let memory = &mut self.held[index];
        let from = match held + first {
            0 => new,
            _ => {
                memory[LINE..LINE + new.len()].copy_from_slice(new);
                &memory[LINE - held..LINE + new.len()]
            }
        };
        let lines = first..first + (from.len() - first) / LINE * LINE;
        let last = end == row.len();
        let to = &mut row[start - held..end];
        to[..first].copy_from_slice(&from[..first]);
        stream(&mut to[lines.clone()], &from[lines.clone()]);
        if last {
            to[lines.end..].copy_from_slice(&from[lines.end..]);
        }
        let rest = from.len() - lines.end;
        if held + first > 0 {
            memory.copy_within(new.len()..LINE + new.len(), 0);
        } else {
            memory[LINE - rest..LINE].copy_from_slice(&new[new.len() - rest..]);
        }
    }
}

/// Makes all bytes that were stored so visible to other threads. Must be called before they read them.
pub fn finish() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction belongs to SSE, which every x86-64 processor has.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Copies whole lines; `to` begins with one.
#[cfg(target_arch = "x86_64")]
fn stream(to: &mut [u8], from: &[u8]) {
    use std::arch::x86_64::{__m128i, _mm_stream_si128};
    let (to, from) = (to.as_chunks_mut::<16>().0, from.as_chunks::<16>().0);
    for (to, from) in to.iter_mut().zip(from) {
        let to = to.as_mut_ptr().cast::<__m128i>();
        assert!(to.is_aligned());
        // SAFETY: the address is that of 16 bytes of a slice that nothing else refers to, and aligned;
        // the instruction belongs to SSE2, which every x86-64 processor has.
        unsafe { _mm_stream_si128(to, bytemuck::pod_read_unaligned(from)) };
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn stream(to: &mut [u8], from: &[u8]) {
    to.copy_from_slice(from);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_at_any_address_and_of_any_length_are_stored() {
        let new: Vec<u8> = (0..3000u32).map(|i| (i * i / 7) as u8).collect();
        for lead in [0, 1, 15, 16, 48, 63] {
            for len in [1, 5, 63, 64, 65, 200, 1000, 3000] {
                for piece in [1, 3, 64, 100, 384, 1024] {
                    let mut memory = vec![0xa5; len + 2 * LINE];
                    let at = memory.as_ptr().align_offset(LINE) + lead;
                    let row = &mut memory[at..][..len];
                    let mut streamed = Streamed::new();
                    for (i, bytes) in new[..len].chunks(piece).enumerate() {
                        streamed.store(7, row, i * piece, bytes);
                    }
                    finish();
                    assert!(row == &new[..len], "{lead} {len} {piece}");
                }
            }
        }
    }
}
