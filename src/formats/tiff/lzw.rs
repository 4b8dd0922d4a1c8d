//! LZW as in TIFF (TIFF 6.0, section 13): codes of 9 to 12 bits, highest bit first, whose width
//! grows one code early. Our own code, since a whole strip is in memory and the output itself can
//! serve as the string table: `cargo bench --bench ratios` compares it with the `weezl` crate.

use anyhow::{Result, ensure};

/// The Clear code, which empties the table.
const CLEAR: usize = 256;
/// The EndOfInformation code.
const END: usize = 257;
/// The first code for a string.
const FIRST: usize = 258;
/// Bits of the narrowest and of the widest code.
const WIDTHS: (u32, u32) = (9, 12);
/// The number of codes of the widest width.
const CODES: usize = 1 << WIDTHS.1;

/// Bits of an entry of the table below its highest byte, which has the length of the string. For a string of up to `SHORT + 1`
/// bytes, these bits are the string, its first byte lowest; for a longer one, its length and where it starts in the output.
const PAYLOAD: u32 = 56;
/// The longest string that `write_short_strings` writes; with one byte more it still fits into an entry.
const SHORT: u64 = 6;
/// The highest byte of the entry of a longer string, and of a code without a string.
const LONG: u64 = 8;
const NONE: u64 = 255;
/// Bits of the length in the entry of a longer string. No string has more bytes than there are codes.
const LENGTH: u32 = 16;
/// Codes that one word of the data holds.
const AT_ONCE: usize = 4;

/// Unpacks into `out` until it is full or the data end; returns the number of bytes. Up to eight bytes after them become 0,
/// also after an error.
///
/// # Errors
/// Codes that stand for no string, and the bit order of before TIFF 6.0.
pub fn unpack(packed: &[u8], out: &mut [u8]) -> Result<usize> {
    ensure!(
        !packed.starts_with(&[0, 1]),
        "its LZW data are in the old bit order, which is not supported"
    );
    let mut entries = [NONE << PAYLOAD; CODES];
    for (byte, entry) in entries.iter_mut().take(CLEAR).enumerate() {
        *entry = 1 << PAYLOAD | byte as u64;
    }
    let mut unpacker = LzwUnpacker {
        packed,
        out,
        bit: 0,
        filled: 0,
        entries,
        next: FIRST,
        width: WIDTHS.0,
        last: NONE << PAYLOAD,
        start: 0,
    };
    let unpacked = unpacker.write_strings();
    let filled = unpacker.filled;
    // Short strings are written as eight bytes. Of damaged data too, nothing but the strings may stay.
    out[filled..].iter_mut().take(8).for_each(|byte| *byte = 0);
    unpacked.map(|()| filled)
}

/// What is unpacked, and the table of strings.
struct LzwUnpacker<'a> {
    packed: &'a [u8],
    out: &'a mut [u8],
    /// Bits that have been read.
    bit: usize,
    /// Bytes that have been written.
    filled: usize,
    /// The strings of codes.
    entries: [u64; CODES],
    /// The code of the next new string.
    next: usize,
    /// Bits of a code.
    width: u32,
    /// The entry of the code before, and where its string starts; without a string after a Clear code.
    last: u64,
    start: usize,
}

impl LzwUnpacker<'_> {
    /// Writes strings until the output is full or the data end.
    fn write_strings(&mut self) -> Result<()> {
        while self.filled < self.out.len() {
            self.write_short_strings();
            if !self.write_string()? {
                break;
            }
        }
        Ok(())
    }

    /// Writes strings while they are short and neither the data nor the output nor the codes of this width end. Most strings of a
    /// noisy image are written here, so a code takes few instructions, and one branch that depends on it.
    fn write_short_strings(&mut self) {
        let (packed, out, entries) = (self.packed, &mut *self.out, &mut self.entries);
        let (mut bit, mut filled, mut next, width) = (self.bit, self.filled, self.next, self.width);
        let (mut last, mut start) = (self.last, self.start);
        'short: while last >> PAYLOAD <= SHORT
            && next + AT_ONCE < (1 << width) - 1
            && filled + 8 * AT_ONCE <= out.len()
            && let Some(word) = packed.get(bit / 8..).and_then(|rest| rest.first_chunk())
        {
            let mut word = u64::from_be_bytes(*word) << (bit % 8);
            for _ in 0..AT_ONCE {
                let entry = entries[(word >> (64 - width)) as usize % CODES];
                let len = entry >> PAYLOAD;
                if len > SHORT {
                    break 'short;
                }
                word <<= width;
                bit += width as usize;
                entries[next % CODES] = longer(last, entry as u8);
                next += 1;
                out[filled..filled + 8].copy_from_slice(&entry.to_le_bytes());
                (last, start) = (entry, filled);
                filled += len as usize;
            }
        }
        (self.bit, self.filled, self.next) = (bit, filled, next);
        (self.last, self.start) = (last, start);
    }

    /// Writes the string of the next code, as far as the output has space. Returns false at the end of the data.
    fn write_string(&mut self) -> Result<bool> {
        let Some(code) = code(self.packed, self.bit, self.width) else {
            return Ok(false);
        };
        self.bit += self.width as usize;
        if code == CLEAR {
            self.entries[FIRST..].fill(NONE << PAYLOAD);
            (self.next, self.width, self.last) = (FIRST, WIDTHS.0, NONE << PAYLOAD);
            return Ok(true);
        }
        if code == END {
            return Ok(false);
        }
        if self.last >> PAYLOAD != NONE && self.next < CODES {
            self.add_string(code);
        }
        self.last = self.entries[code];
        self.start = self.filled;
        ensure!(self.last >> PAYLOAD != NONE, "its LZW data are damaged");
        let len = length(self.last).min(self.out.len() - self.filled);
        let (at, end) = (self.filled, self.filled + len);
        if self.last >> PAYLOAD == LONG {
            let from = long_start(self.last);
            // The last byte may be the first one written here, if the string is being formed just now.
            self.out.copy_within(from..from + len - 1, at);
            self.out[end - 1] = self.out[from + len - 1];
        } else {
            self.out[at..end].copy_from_slice(&self.last.to_le_bytes()[..len]);
        }
        self.filled = end;
        Ok(true)
    }

    /// Adds the string of the code before and the first byte of this one. If this code is that of the new string, its first byte is
    /// that of the string before.
    fn add_string(&mut self, code: usize) {
        let first = if code == self.next {
            self.last
        } else {
            self.entries[code]
        };
        let len = length(self.last) as u64;
        self.entries[self.next] = if len <= SHORT {
            let byte = match first >> PAYLOAD {
                LONG => self.out[long_start(first)],
                _ => first as u8,
            };
            longer(self.last, byte)
        } else {
            LONG << PAYLOAD | (self.start as u64) << LENGTH | (len + 1)
        };
        self.next += 1;
        if self.next == (1 << self.width) - 1 && self.width < WIDTHS.1 {
            self.width += 1;
        }
    }
}

/// The entry of a short string and one more byte.
#[inline(always)]
fn longer(short: u64, byte: u8) -> u64 {
    short + (1 << PAYLOAD) + (u64::from(byte) << (8 * (short >> PAYLOAD)))
}

/// The length of an entry's string.
fn length(entry: u64) -> usize {
    match entry >> PAYLOAD {
        LONG => (entry % (1 << LENGTH)) as usize,
        len => len as usize,
    }
}

/// Where a long string starts in the output.
fn long_start(entry: u64) -> usize {
    ((entry % (1 << PAYLOAD)) >> LENGTH) as usize
}

/// The code of `width` bits at bit `at`, highest bit first; `None` if the data end before.
#[inline(always)]
fn code(packed: &[u8], at: usize, width: u32) -> Option<usize> {
    let byte = at / 8;
    let word = match packed.get(byte..byte + 4) {
        Some(word) => [word[0], word[1], word[2], word[3]],
        None if at + width as usize > 8 * packed.len() => return None,
        None => std::array::from_fn(|i| packed.get(byte + i).copied().unwrap_or(0)),
    };
    let bits = u32::from_be_bytes(word) << (at % 8);
    Some((bits >> (32 - width)) as usize)
}

/// Slots of the packer's hash table: few enough are used that a string is found quickly.
const SLOTS: usize = 4 * CODES;

/// Packs a strip.
pub fn pack(raw: &[u8]) -> Vec<u8> {
    let mut packed = Packed {
        bytes: Vec::with_capacity(raw.len() + raw.len() / 2 + 16),
        bits: 0,
        have: 0,
    };
    // A slot holds a string, as a code and the byte after it, and the code assigned to it; 0 is
    // free.
    let mut slots = vec![0u32; SLOTS];
    let (mut next, mut width) = (FIRST, WIDTHS.0);
    packed.put(CLEAR, width);
    if let Some((&first, rest)) = raw.split_first() {
        let mut prefix = usize::from(first);
        for &byte in rest {
            let string = (prefix << 8 | usize::from(byte)) as u32;
            let mut slot = (string.wrapping_mul(0x9e37_79b1) >> 18) as usize;
            while slots[slot] != 0 && slots[slot] >> 12 != string {
                slot = (slot + 1) % SLOTS;
            }
            if slots[slot] != 0 {
                prefix = (slots[slot] & 0xfff) as usize;
                continue;
            }
            packed.put(prefix, width);
            prefix = byte.into();
            slots[slot] = string << 12 | next as u32;
            if next == (1 << width) - 1 {
                width += 1;
            }
            next += 1;
            if next == CODES - 1 {
                packed.put(CLEAR, width);
                slots.fill(0);
                (next, width) = (FIRST, WIDTHS.0);
            }
        }
        packed.put(prefix, width);
        // The decoder adds one more string for that code, and may widen its codes.
        if next == (1 << width) - 1 {
            width += 1;
        }
    }
    packed.put(END, width);
    packed.end()
}

/// Collects codes as packed bytes, highest bit first.
struct Packed {
    bytes: Vec<u8>,
    /// Bits that are not written yet, from the lowest on, and their number.
    bits: u64,
    have: u32,
}

impl Packed {
    #[inline(always)]
    fn put(&mut self, code: usize, width: u32) {
        self.bits = self.bits << width | code as u64;
        self.have += width;
        if self.have >= 32 {
            self.have -= 32;
            let word = (self.bits >> self.have) as u32;
            self.bytes.extend_from_slice(&word.to_be_bytes());
        }
    }

    fn end(mut self) -> Vec<u8> {
        // Between 1 and 31 bits, or none.
        let left = self.bits << (63 - self.have) << 1;
        let size = self.have.div_ceil(8) as usize;
        self.bytes.extend_from_slice(&left.to_be_bytes()[..size]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weezl::BitOrder;
    use weezl::encode::Encoder;

    /// A plain decoder, whose table has each string as bytes: the bytes, and false after a code that stands for no string.
    fn plain(packed: &[u8], most: usize) -> (Vec<u8>, bool) {
        let mut out = Vec::new();
        let is_good = plain_into(packed, most, &mut out).is_some();
        out.truncate(most);
        (out, is_good)
    }

    fn plain_into(packed: &[u8], most: usize, out: &mut Vec<u8>) -> Option<()> {
        let new = || -> Vec<Vec<u8>> {
            let bytes = (0..=255).map(|byte| vec![byte]);
            bytes.chain([vec![], vec![]]).collect()
        };
        let (mut table, mut last) = (new(), Vec::new());
        let mut bit = 0;
        while out.len() < most {
            // The width grows one code early.
            let width = (table.len() + 1).ilog2().clamp(8, 11) as usize + 1;
            if bit + width > 8 * packed.len() {
                break;
            }
            let code = (bit..bit + width).fold(0, |code, at| {
                code << 1 | usize::from(packed[at / 8] >> (7 - at % 8) & 1)
            });
            bit += width;
            match code {
                CLEAR => {
                    (table, last) = (new(), Vec::new());
                    continue;
                }
                END => break,
                _ => {}
            }
            if !last.is_empty() && table.len() < CODES {
                let first = if code == table.len() {
                    &last
                } else {
                    table.get(code)?
                };
                let longer = [&last[..], &[*first.first()?]].concat();
                table.push(longer);
            }
            last = table.get(code)?.clone();
            out.extend_from_slice(&last);
        }
        Some(())
    }

    fn random(state: &mut u64) -> u64 {
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        *state >> 33
    }

    /// Bytes of few values and of many, and runs, so that strings are short and long.
    fn samples() -> Vec<Vec<u8>> {
        let mut state = 1;
        let mut all = vec![vec![], vec![7], vec![0; 70_000]];
        for values in [2, 5, 40, 256] {
            for run in [1, 3, 50] {
                let mut bytes = Vec::new();
                while bytes.len() < 40_000 {
                    let byte = (random(&mut state) % values) as u8;
                    let length = 1 + random(&mut state) % run;
                    bytes.extend((0..length).map(|_| byte));
                }
                all.push(bytes);
            }
        }
        all
    }

    /// Whether the data are unpacked to these bytes, with nothing but zeros written after them, and found to be good or damaged.
    fn unpacks_to(packed: &[u8], size: usize, (expected, is_good): &(Vec<u8>, bool)) -> bool {
        let mut out = vec![0xa5; size];
        let filled = unpack(packed, &mut out);
        let (bytes, rest) = out.split_at(expected.len());
        bytes == expected
            && rest.iter().all(|byte| [0, 0xa5].contains(byte))
            && filled.ok() == is_good.then_some(expected.len())
    }

    #[test]
    fn what_others_pack_is_unpacked_to_every_size() {
        for bytes in samples() {
            let theirs = Encoder::with_tiff_size_switch(BitOrder::Msb, 8)
                .encode(&bytes)
                .expect("packed");
            for packed in [&theirs, &pack(&bytes)] {
                let sizes = [
                    0,
                    1,
                    7,
                    8,
                    9,
                    31,
                    32,
                    33,
                    5000,
                    bytes.len(),
                    bytes.len() + 100,
                ];
                for size in sizes {
                    let expected = (bytes[..size.min(bytes.len())].to_vec(), true);
                    assert!(
                        unpacks_to(packed, size, &expected),
                        "{size} of {}",
                        bytes.len()
                    );
                }
            }
        }
    }

    /// Bits that nobody packed: a table that is full and never emptied, strings that are being formed, and codes without a string.
    #[test]
    fn codes_of_any_kind_are_unpacked_as_by_a_plain_decoder() {
        let mut state = 2;
        let (mut good, mut damaged) = (0, 0);
        for case in 0..200 {
            let (mut packed, mut next) = (
                Packed {
                    bytes: vec![],
                    bits: 0,
                    have: 0,
                },
                FIRST - 1,
            );
            packed.put(CLEAR, WIDTHS.0);
            for _ in 0..random(&mut state) % 9000 {
                let width = (next + 1).ilog2().clamp(8, 11) + 1;
                let code = match random(&mut state) % 20_000 {
                    0 => CLEAR,
                    1..=4 if case % 2 == 0 => next + 2,
                    5 if case % 4 == 0 => END,
                    6..=2000 => next,
                    2001..=9000 => random(&mut state) as usize % next.max(1),
                    _ => random(&mut state) as usize % 256,
                };
                let code = if code == END && case % 4 != 0 || next < FIRST && code > 255 {
                    65
                } else {
                    code
                };
                packed.put(code.min(CODES - 1), width);
                next = match code {
                    CLEAR => FIRST - 1,
                    _ => (next + 1).min(CODES),
                };
            }
            let packed = packed.end();
            for size in [100, 60_000, 10 << 20] {
                let expected = plain(&packed, size);
                assert!(
                    unpacks_to(&packed, size, &expected),
                    "case {case}, {size} bytes"
                );
                good += usize::from(expected.1);
                damaged += usize::from(!expected.1);
            }
        }
        assert!(good > 150 && damaged > 50, "{good} {damaged}");
    }
}
