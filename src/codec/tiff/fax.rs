//! Bitmaps of fax machines (TIFF 6.0, section 11): rows of runs of white and black, each by itself (ITU-T T.4, Group 3) or by
//! the one before (T.6, Group 4). The `fax` crate has the codes, and decodes Group 4.

use anyhow::{Result, ensure};
use fax::BitReader;
use fax::decoder::{DecodeStatus, Group4Decoder};
use fax::maps::{black, white};
use std::convert::Infallible;
use std::ops::Range;

/// Two ends of line. They end the last row, after which writers of TIFF write none, and whatever follows it.
const END: &[u8] = b"\x00\x10\x01";

/// Fills rows of `row` bytes with bits that are 1 where it is black.
///
/// # Errors
/// Damaged data.
pub fn unpack(packed: &[u8], width: u32, four: bool, out: &mut [u8], row: usize) -> Result<()> {
    out.fill(0);
    let height = out.len() / row;
    let rows = out.chunks_exact_mut(row);
    let done = match four {
        true => group4(packed, width, rows)?,
        false => group3(packed, width, rows),
    };
    ensure!(
        done == height,
        "its fax data are damaged (row {done} of {height})"
    );
    Ok(())
}

/// Decodes rows of Group 4, and returns how many there are.
fn group4<'a>(
    packed: &[u8],
    width: u32,
    rows: impl Iterator<Item = &'a mut [u8]>,
) -> Result<usize> {
    let bytes = packed.iter().copied();
    let mut decoder = Group4Decoder::new(bytes.map(Ok::<u8, Infallible>), width)?;
    let mut done = 0;
    for row in rows {
        let Ok(DecodeStatus::Incomplete) = decoder.advance() else {
            break;
        };
        // White up to the first change, black up to the second.
        for run in decoder.transition().chunks(2) {
            blacken(row, run[0]..run.get(1).copied().unwrap_or(width), width);
        }
        done += 1;
    }
    Ok(done)
}

/// Decodes rows of Group 3, and returns how many there are, up to the first damaged one; the rest is decoded all the same.
fn group3<'a>(
    packed: &[u8],
    width: u32,
    rows: impl ExactSizeIterator<Item = &'a mut [u8]>,
) -> usize {
    let data = [packed, END].concat();
    let mut bits = fax::slice_reader(&data);
    let height = rows.len();
    // Some writers end rows with the code that is to precede them. Other readers begin at the first such code, and so have a
    // row less, and a white one at the end.
    let late = bits.peek(11) != Some(0);
    let (mut done, mut damaged) = (0, None);
    for row in rows {
        if !skip_end_of_line(&mut bits) || bits.peek(11) == Some(0) {
            break;
        }
        if !group3_row(&mut bits, row, width) {
            damaged = damaged.or(Some(done));
        }
        done += 1;
    }
    if late && done + 1 == height {
        done += 1;
    }
    damaged.unwrap_or(done)
}

/// Goes on after the next end of line, eleven zeros or more and a one; `false` if there is none.
fn skip_end_of_line(bits: &mut impl BitReader) -> bool {
    let mut inside = false;
    loop {
        match bits.peek(11) {
            Some(0) => inside = true,
            Some(next) if inside && next & 1 << 10 != 0 => return bits.consume(1).is_ok(),
            Some(_) => {}
            None => return false,
        }
        if bits.consume(1).is_err() {
            return false;
        }
    }
}

/// Decodes a row, white and black runs in turn up to an end of line; what is left of the row is white. Whether all codes are
/// known.
fn group3_row(bits: &mut impl BitReader, row: &mut [u8], width: u32) -> bool {
    let (mut at, mut is_black) = (0u32, false);
    // No code begins with nine zeros, but an end of line does, and so do zeros that fill a byte before it.
    while bits.peek(9) != Some(0) {
        let run = match is_black {
            true => black::decode(bits),
            false => white::decode(bits),
        };
        let Some(run) = run.map(u32::from) else {
            return false;
        };
        let end = at.saturating_add(run);
        if is_black {
            blacken(row, at..end, width);
        }
        at = end;
        // Longer runs go on with the next code, of the same colour.
        is_black ^= run < 64;
    }
    true
}

/// Sets the bits of a run in a row of this width.
fn blacken(row: &mut [u8], run: Range<u32>, width: u32) {
    for x in run.start.min(width)..run.end.min(width) {
        row[x as usize / 8] |= 0x80 >> (x % 8);
    }
}
