//! Bitmaps of fax machines (TIFF 6.0, section 11): rows of white and black runs. A row is coded on its own (modified Huffman;
//! ITU-T T.4, Group 3) or relative to the row above (two-dimensional Group 3; T.6, Group 4). The `fax` crate has the codes,
//! and decodes Group 4.

use anyhow::{Result, ensure};
use fax::BitReader;
use fax::decoder::{DecodeStatus, Group4Decoder};
use fax::maps::{Mode, black, mode, white};
use std::convert::Infallible;
use std::ops::Range;

/// Two ends of line, which end the last row; TIFF writers write none after it.
const END: &[u8] = b"\x00\x10\x01";

/// How rows are coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// Each row on its own, starting at a byte boundary (compression 2).
    Huffman,
    /// Each row on its own, after an end of line.
    Group3,
    /// After an end of line and a bit that is 1 for a row on its own, 0 for one relative to the row above.
    Group3ByTwo,
    /// Each row relative to the one above.
    Group4,
}

/// The pixels at which a row changes its colour: to black, to white and so on.
type Changes = Vec<u32>;

/// Fills rows of `row` bytes with bits that are 1 where it is black.
///
/// # Errors
/// Damaged data.
pub fn unpack(packed: &[u8], width: u32, coding: Coding, out: &mut [u8], row: usize) -> Result<()> {
    out.fill(0);
    let height = out.len() / row;
    let rows = out.chunks_exact_mut(row);
    let done = match coding {
        Coding::Group4 => group4(packed, width, rows)?,
        Coding::Huffman => huffman(packed, width, rows),
        _ => group3(packed, width, coding == Coding::Group3ByTwo, rows),
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
        paint(row, decoder.transition(), width);
        done += 1;
    }
    Ok(done)
}

/// Decodes rows that each begin with a byte, and returns how many there are.
fn huffman<'a>(packed: &[u8], width: u32, rows: impl Iterator<Item = &'a mut [u8]>) -> usize {
    // The codes of the last row are looked up in more bits than they have.
    let data = [packed, &[0; 2]].concat();
    let mut bits = fax::slice_reader(&data);
    let mut done = 0;
    for row in rows {
        let (mut changes, mut at, mut is_black) = (Changes::new(), 0, false);
        while at < width {
            let Some(run) = run(&mut bits, is_black) else {
                return done;
            };
            let end = width.min(at + run);
            add_run(&mut changes, at..end, is_black);
            at = end;
            is_black = !is_black;
        }
        paint(row, &changes, width);
        done += 1;
        let rest = bits.bits_to_byte_boundary();
        if bits.consume(rest).is_err() {
            break;
        }
    }
    done
}

/// Decodes rows of Group 3, and returns how many there are, up to the first damaged one; the rest is decoded all the same.
fn group3<'a>(
    packed: &[u8],
    width: u32,
    two_dimensional: bool,
    rows: impl ExactSizeIterator<Item = &'a mut [u8]>,
) -> usize {
    let data = [packed, END].concat();
    let mut bits = fax::slice_reader(&data);
    let height = rows.len();
    // Some writers put the end of line after each row instead of before it. Other readers begin at the first end of line, and
    // so read one row less, and a white one at the end.
    let late = bits.peek(11) != Some(0);
    let (mut done, mut damaged) = (0, None);
    let mut above = Changes::new();
    for row in rows {
        if !skip_end_of_line(&mut bits) || bits.peek(11) == Some(0) {
            break;
        }
        let mut on_its_own = true;
        if two_dimensional {
            // Another end of line follows: there are no more rows.
            if bits.peek(12) == Some(1 << 11) {
                break;
            }
            on_its_own = bits.peek(1) == Some(1);
            if bits.consume(1).is_err() {
                break;
            }
        }
        let mut changes = Changes::new();
        let whole = if on_its_own {
            row_on_its_own(&mut bits, &mut changes, width)
        } else {
            row_by_above(&mut bits, &above, &mut changes, width)
        };
        paint(row, &changes, width);
        if whole.is_none() {
            damaged = damaged.or(Some(done));
        }
        above = changes;
        done += 1;
    }
    if late && done + 1 == height {
        done += 1;
    }
    damaged.unwrap_or(done)
}

/// Skips up to the end of the next end of line, eleven zeros or more and a one; `false` if there is none.
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

/// Decodes a row, white and black runs in turn up to an end of line; the rest of the row is white. `None` if a code is
/// unknown.
fn row_on_its_own(bits: &mut impl BitReader, changes: &mut Changes, width: u32) -> Option<()> {
    let (mut at, mut is_black) = (0u32, false);
    // No code begins with nine zeros, but an end of line does, and so do zeros that fill a byte before it.
    while bits.peek(9) != Some(0) {
        let run = run_code(bits, is_black)?;
        let end = width.min(at + run);
        add_run(changes, at..end, is_black);
        at = end;
        // Longer runs are continued by the next code, of the same colour.
        is_black ^= run < 64;
    }
    Some(())
}

/// Decodes a row by the changes of the one above it (T.4, section 4.2). `None` if it is damaged.
fn row_by_above(
    bits: &mut impl BitReader,
    above: &[u32],
    changes: &mut Changes,
    width: u32,
) -> Option<()> {
    let (mut at, mut is_black) = (0u32, false);
    let mut begins = true;
    while at < width {
        // The next change above to the other colour, and the one after it. Changes to black have even indices.
        let ahead = |&i: &usize| above[i] > at || begins && above[i] == at;
        let next = (usize::from(is_black)..above.len()).step_by(2).find(ahead);
        let change = |i: usize| above.get(i).copied().unwrap_or(width);
        let (first, second) = next.map_or((width, width), |i| (change(i), change(i + 1)));
        match mode::decode(bits)? {
            Mode::Pass => {
                add_run(changes, at..second, is_black);
                at = second;
            }
            Mode::Vertical(more) => {
                let end = first.checked_add_signed(more.into())?;
                if end < at || end > width {
                    return None;
                }
                add_run(changes, at..end, is_black);
                at = end;
                is_black = !is_black;
            }
            Mode::Horizontal => {
                for is_black in [is_black, !is_black] {
                    let end = width.min(at + run(bits, is_black)?);
                    add_run(changes, at..end, is_black);
                    at = end;
                }
            }
            Mode::Extension | Mode::EOF => return None,
        }
        begins = false;
    }
    Some(())
}

/// The length of a run: codes of 64 and more are continued by the next one.
fn run(bits: &mut impl BitReader, is_black: bool) -> Option<u32> {
    let mut sum = 0u32;
    loop {
        let length = run_code(bits, is_black)?;
        sum = sum.saturating_add(length).min(u16::MAX.into());
        if length < 64 {
            return Some(sum);
        }
    }
}

fn run_code(bits: &mut impl BitReader, is_black: bool) -> Option<u32> {
    let length = if is_black {
        black::decode(bits)
    } else {
        white::decode(bits)
    };
    length.map(u32::from)
}

/// Adds a run to the changes of a row, which it ends.
fn add_run(changes: &mut Changes, run: Range<u32>, is_black: bool) {
    if !is_black || run.is_empty() {
        return;
    }
    // It continues the last run.
    if changes.last() == Some(&run.start) {
        changes.pop();
    } else {
        changes.push(run.start);
    }
    changes.push(run.end);
}

/// Sets the bits of a row of this width that are black: from the first change to the second, and so on.
fn paint(row: &mut [u8], changes: &[u32], width: u32) {
    for run in changes.chunks(2) {
        let end = run.get(1).copied().unwrap_or(width);
        for x in run[0].min(width)..end.min(width) {
            row[x as usize / 8] |= 0x80 >> (x % 8);
        }
    }
}
