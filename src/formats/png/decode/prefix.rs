//! Decodes damaged image data up to the first error, for `--keep-going`.

use super::header::Prelude;
use super::unfilter::Unfilterer;
use crate::os::Source;
use anyhow::Result;

/// Decodes rows as far as the image data can be inflated, without checking CRCs and Adler-32. The data
/// after the first error count as zeros.
pub fn fill(source: &Source, prelude: &Prelude, rows: &mut Unfilterer) -> Result<()> {
    let mut stream = Vec::new();
    let mut at = prelude.data;
    loop {
        let mut head = [0; 8];
        if source.read_at(&mut head, at).is_err() || &head[4..] != b"IDAT" {
            break;
        }
        let len = u64::from(u32::from_be_bytes([head[0], head[1], head[2], head[3]]));
        let available = len.min(source.len() - at - 8);
        let start = stream.len();
        stream.resize(start + available as usize, 0);
        source.read_at(&mut stream[start..], at + 8)?;
        at += 12 + len;
    }
    // After an error the buffer contains the inflated bytes and then zeros, which decode to rows of zeros
    // without a filter.
    let mut bytes = vec![0; prelude.header.scanline_bytes()?];
    let _ = libdeflater::Decompressor::new().zlib_decompress(&stream, &mut bytes);
    // A damaged filter byte may be invalid: the rows before it are kept.
    let _ = rows.push(&bytes);
    Ok(())
}
