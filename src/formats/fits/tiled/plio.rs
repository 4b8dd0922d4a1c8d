//! PLIO_1 (standard, section 10.4.3): a list of 16-bit instructions, each with four bits of operation and twelve of data,
//! that fill runs of samples with a current value.

use anyhow::{Context, Result, bail};

/// The mark of a list whose header has a length of its own, in its third word.
const VERSION: u16 = (-100i16) as u16;

/// Decodes a list of big-endian words. Samples after the last instruction are 0.
///
/// # Errors
/// A list that is shorter than its header says, and an instruction that does not exist.
pub fn decode(packed: &[u8], out: &mut [i32]) -> Result<()> {
    out.fill(0);
    let words: Vec<u16> = (packed.as_chunks().0.iter())
        .map(|&word| u16::from_be_bytes(word))
        .collect();
    let (first, end) = instructions(&words).context("its list of runs has no header")?;
    let list = words
        .get(first..end)
        .context("its list of runs ends too early")?;
    let mut list = list.iter();
    let (mut value, mut at) = (1i32, 0);
    while let Some(&word) = list.next() {
        let (operation, data) = (word >> 12, i32::from(word & 0xFFF));
        match operation {
            0 | 4 | 5 => {
                let run = out.get_mut(at..).unwrap_or_default();
                let count = (data as usize).min(run.len());
                let run = &mut run[..count];
                match operation {
                    4 => run.fill(value),
                    5 if count == data as usize => {
                        run.iter_mut().last().map_or((), |it| *it = value)
                    }
                    _ => {}
                }
                at += data as usize;
            }
            1 => {
                let high = list.next().context("its list of runs ends too early")?;
                value = i32::from(*high) << 12 | data;
            }
            2 | 6 => value = value.wrapping_add(data),
            3 | 7 => value = value.wrapping_sub(data),
            _ => bail!("its list of runs has an unknown instruction, {word:#06x}"),
        }
        if matches!(operation, 6 | 7) {
            if let Some(sample) = out.get_mut(at) {
                *sample = value;
            }
            at += 1;
        }
    }
    Ok(())
}

/// The places of the first instruction and after the last.
fn instructions(words: &[u16]) -> Option<(usize, usize)> {
    let &[_, header, version, low, high, ..] = words else {
        // A list of the old form has a header of three words.
        let &[_, _, length, ..] = words else {
            return None;
        };
        return Some((3, length.into()));
    };
    if version == VERSION {
        Some((header.into(), usize::from(high) << 15 | usize::from(low)))
    } else {
        Some((3, version.into()))
    }
}
