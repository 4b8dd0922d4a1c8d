//! LZW as TIFF has it (TIFF 6.0, section 13): codes of 9 to 12 bits, highest bit first, a width
//! growing one code early. Own code because a whole strip is at hand and so its output can serve
//! as the string table: measured two to three times as fast as the `weezl` crate both ways.

use anyhow::{Result, bail, ensure};

/// Empties the table.
const CLEAR: usize = 256;
/// Ends the data.
const END: usize = 257;
/// First code of a string.
const FIRST: usize = 258;
/// Bits of the narrowest and the widest code.
const WIDTHS: (u32, u32) = (9, 12);
/// Codes of the widest width.
const CODES: usize = 1 << WIDTHS.1;

/// A string of the table. The output holds each where it was first formed: as long as the string
/// before it, and one byte more.
#[derive(Clone, Copy, Default)]
struct Entry {
    /// The first eight bytes, the first one lowest; enough for nearly all strings of noisy images.
    head: u64,
    /// Where it is in the output.
    start: usize,
    len: usize,
}

/// Unpacks into `out` until it is full or the data end; returns the bytes written.
pub fn unpack(packed: &[u8], out: &mut [u8]) -> Result<usize> {
    ensure!(
        !packed.starts_with(&[0, 1]),
        "its LZW data are in the old bit order, which is not supported"
    );
    let mut table = vec![Entry::default(); CODES];
    for (byte, entry) in table.iter_mut().take(256).enumerate() {
        (entry.head, entry.len) = (byte as u64, 1);
    }
    let mut codes = Codes::new(packed);
    let mut filled = 0;
    let (mut next, mut width) = (FIRST, WIDTHS.0);
    // The string before this one; of no length behind a Clear code.
    let mut last = Entry::default();
    while filled < out.len() {
        let Some(code) = codes.read(width) else {
            break;
        };
        if code == CLEAR {
            (next, width, last) = (FIRST, WIDTHS.0, Entry::default());
            continue;
        }
        if code == END {
            break;
        }
        // A code that is only now being formed begins with the string before it, and so its last
        // byte is that one's first.
        let known = if code < next { table[code] } else { last };
        if known.len == 0 || code > next {
            bail!("its LZW data are damaged");
        }
        if last.len > 0 && next < CODES {
            let grown = &mut table[next];
            *grown = last;
            grown.len += 1;
            if last.len < 8 {
                grown.head |= (known.head & 0xff) << (8 * last.len);
            }
            next += 1;
            if next == (1 << width) - 1 && width < WIDTHS.1 {
                width += 1;
            }
        } else if code >= next {
            bail!("its LZW data are damaged");
        }
        let string = table[code];
        last = Entry {
            start: filled,
            ..string
        };
        filled = write(out, filled, string);
    }
    Ok(filled)
}

/// Writes a string at `at`, as far as there is room; returns where it ends.
#[inline(always)]
fn write(out: &mut [u8], at: usize, string: Entry) -> usize {
    let end = at + string.len;
    if let Some(place) = out.get_mut(at..at + 8) {
        place.copy_from_slice(&string.head.to_le_bytes());
        if string.len <= 8 {
            return end;
        }
    }
    write_long(out, at, string)
}

/// The same for a long string, or near the end of the output.
fn write_long(out: &mut [u8], at: usize, string: Entry) -> usize {
    let end = (at + string.len).min(out.len());
    let head = string.head.to_le_bytes();
    for (byte, place) in head.iter().take(string.len).zip(&mut out[at..end]) {
        *place = *byte;
    }
    // The source may reach into what is written here by its last byte, and no further.
    let mut done = 8;
    while at + done < end {
        let size = 8.min(end - at - done);
        let from = string.start + done;
        out.copy_within(from..from + size, at + done);
        done += size;
    }
    end
}

/// Codes from the packed bytes, highest bit first.
struct Codes<'a> {
    packed: &'a [u8],
    /// Bits read ahead, from the highest on, and how many.
    bits: u64,
    have: u32,
}

impl Codes<'_> {
    fn new(packed: &[u8]) -> Codes<'_> {
        Codes {
            packed,
            bits: 0,
            have: 0,
        }
    }

    #[inline(always)]
    fn read(&mut self, width: u32) -> Option<usize> {
        if self.have < width {
            if let Some((&word, _)) = self.packed.split_first_chunk::<4>() {
                self.bits |= u64::from(u32::from_be_bytes(word)) << (32 - self.have);
                self.have += 32;
                self.packed = &self.packed[4..];
            } else {
                while let (true, Some((&byte, rest))) = (self.have <= 56, self.packed.split_first())
                {
                    self.bits |= u64::from(byte) << (56 - self.have);
                    self.have += 8;
                    self.packed = rest;
                }
                if self.have < width {
                    return None;
                }
            }
        }
        let code = self.bits >> (64 - width);
        self.bits <<= width;
        self.have -= width;
        Some(code as usize)
    }
}

/// Slots of the encoder's table of strings: at most half of them are ever taken.
const SLOTS: usize = 2 * CODES;

/// Packs a strip.
pub fn pack(raw: &[u8]) -> Vec<u8> {
    let mut packed = Packed {
        bytes: Vec::with_capacity(raw.len() + raw.len() / 2 + 16),
        bits: 0,
        have: 0,
    };
    // A slot holds a string, that is a code and the byte after it, and the code it got; 0: free.
    let mut slots = vec![0u32; SLOTS];
    let (mut next, mut width) = (FIRST, WIDTHS.0);
    packed.put(CLEAR, width);
    if let Some((&first, rest)) = raw.split_first() {
        let mut prefix = usize::from(first);
        for &byte in rest {
            let string = (prefix << 8 | usize::from(byte)) as u32;
            let mut slot = (string.wrapping_mul(0x9e37_79b1) >> 19) as usize;
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
        // The reader forms one more string from that code, and widens its codes if need be.
        if next == (1 << width) - 1 {
            width += 1;
        }
    }
    packed.put(END, width);
    packed.end()
}

/// Codes into packed bytes, highest bit first.
struct Packed {
    bytes: Vec<u8>,
    /// Bits not written yet, from the lowest on, and how many.
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
        // 1 to 31 bits or none.
        let left = self.bits << (63 - self.have) << 1;
        let size = self.have.div_ceil(8) as usize;
        self.bytes.extend_from_slice(&left.to_be_bytes()[..size]);
        self.bytes
    }
}
