//! What can be read of damaged image data: everything up to the first place that makes no sense.

use super::header::Prelude;
use super::unfilter::Rows;
use crate::files::Source;
use anyhow::Result;

/// Fills the rows as far as the image data can be inflated, CRCs and sums unchecked; the others are
/// left as they are.
pub fn fill(source: &Source, prelude: &Prelude, rows: &mut Rows) -> Result<()> {
    let mut stream = Vec::new();
    let mut at = prelude.data;
    loop {
        let mut head = [0; 8];
        if source.read_at(&mut head, at).is_err() || &head[4..] != b"IDAT" {
            break;
        }
        let len = u64::from(u32::from_be_bytes([head[0], head[1], head[2], head[3]]));
        let there = len.min(source.len() - at - 8);
        let start = stream.len();
        stream.resize(start + there as usize, 0);
        source.read_at(&mut stream[start..], at + 8)?;
        at += 12 + len;
    }
    // What an error leaves behind are the bytes before it, and zeros: rows of zeros, not filtered.
    let mut bytes = vec![0; prelude.header.scanline_bytes()?];
    let _ = libdeflater::Decompressor::new().zlib_decompress(&stream, &mut bytes);
    // Damaged bytes may name a filter that does not exist; the rows before stand.
    let _ = rows.push(&bytes);
    Ok(())
}
