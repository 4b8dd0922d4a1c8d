//! The bits of a lossless JPEG's scan, and the Huffman codes in them (ITU-T T.81, annex F.2.2 and C.2).

use anyhow::{Context, Result, ensure};

/// Codes of up to this many bits are looked up at once; longer ones are rare.
const SHORT: u32 = 10;

/// The Huffman codes for the number of bits of a difference: 0 to 16.
pub struct Table {
    /// The length and the value of the code with which these bits begin; length 0 if it is longer or unknown.
    short: [(u8, u8); 1 << SHORT],
    /// Longer codes, padded with zeros to 16 bits, in rising order, with their lengths and values.
    long: Vec<(u16, u8, u8)>,
}

impl Table {
    /// Reads a table: the number of codes of each length, then their values; returns the bytes after it.
    ///
    /// # Errors
    /// More codes than their lengths allow, and differences of more than 16 bits.
    pub fn read(segment: &[u8]) -> Result<(Table, &[u8])> {
        let (counts, mut rest) = segment
            .split_at_checked(16)
            .context("a Huffman table is too short")?;
        let mut table = Table {
            short: [(0, 0); 1 << SHORT],
            long: Vec::new(),
        };
        // The next code, with zeros up to 16 bits.
        let mut code = 0u32;
        for (length, &count) in (1..).zip(counts) {
            let step = 1 << (16 - length);
            let (sizes, after) = rest
                .split_at_checked(count.into())
                .context("a Huffman table is too short")?;
            rest = after;
            for &size in sizes {
                ensure!(
                    code + step <= 1 << 16 && size <= 16,
                    "a Huffman table is damaged"
                );
                if length <= SHORT {
                    let places = code >> (16 - SHORT)..(code + step) >> (16 - SHORT);
                    table.short[places.start as usize..places.end as usize]
                        .fill((length as u8, size));
                } else {
                    table.long.push((code as u16, length as u8, size));
                }
                code += step;
            }
        }
        Ok((table, rest))
    }

    /// The length and the value of the code at the top of 16 bits.
    #[inline(always)]
    fn find(&self, top: u16) -> Option<(u8, u8)> {
        match self.short[usize::from(top >> (16 - SHORT))] {
            (0, _) => self.find_long(top),
            code => Some(code),
        }
    }

    #[cold]
    fn find_long(&self, top: u16) -> Option<(u8, u8)> {
        let after = self.long.partition_point(|&(code, ..)| code <= top);
        let &(code, length, size) = self.long.get(after.checked_sub(1)?)?;
        (top - code < 1 << (16 - length)).then_some((length, size))
    }
}

/// The bits of a scan, from its first byte on.
pub struct Bits<'a> {
    bytes: &'a [u8],
    /// The number of bytes that have been read.
    at: usize,
    /// Bits that have been read and not used, from the top on, and their number.
    next: u64,
    count: u32,
    /// How many of the last ones are zeros added at the end of the data or before a marker.
    added: u32,
    /// Whether there were bits that are not a code.
    damaged: bool,
}

impl<'a> Bits<'a> {
    pub fn new(bytes: &'a [u8]) -> Bits<'a> {
        Bits {
            bytes,
            at: 0,
            next: 0,
            count: 0,
            added: 0,
            damaged: false,
        }
    }

    /// The next difference, modulo 2¹⁶ (H.1.2.2). It is meaningless after the end or damage, which `check` reports.
    #[inline(always)]
    pub fn difference(&mut self, table: &Table) -> u16 {
        // A code and a difference have up to 31 bits.
        if self.count < 32 {
            self.fill();
        }
        let (length, size) = table.find((self.next >> 48) as u16).unwrap_or_else(|| {
            self.damaged = true;
            (1, 0)
        });
        self.next <<= length;
        // A difference of 16 bits is −32768, and has no bits of its own.
        let own = u32::from(size & 15);
        let value = (self.next >> 1 >> (63 - own)) as u16;
        // Those with 0 at the top are negative: one more than the complement.
        let negative = self.next >> 63 == 0;
        self.next <<= own;
        self.count -= u32::from(length) + own;
        let below = if negative { (1 << own) - 1 } else { 0 };
        value.wrapping_sub(below) | u16::from(size >> 4) << 15
    }

    /// Reads bytes until there are 32 bits or more.
    #[inline(always)]
    fn fill(&mut self) {
        let four = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk);
        if let Some(word) = four.map(|&four| u32::from_be_bytes(four)) {
            // Whether a byte is 0xFF: its complement is 0, from which 1 borrows.
            if (!word).wrapping_sub(0x0101_0101) & word & 0x8080_8080 == 0 {
                self.next |= u64::from(word) << (32 - self.count);
                self.count += 32;
                self.at += 4;
                return;
            }
        }
        self.fill_slowly();
    }

    /// Reads byte by byte, and skips the zero bytes that are stuffed after 0xFF (B.1.1.5).
    #[cold]
    fn fill_slowly(&mut self) {
        while self.count <= 56 {
            let byte = match self.bytes[self.at..] {
                [0xFF, 0, ..] => {
                    self.at += 2;
                    0xFF
                }
                [0xFF, ..] | [] => {
                    self.added += 8;
                    0
                }
                [byte, ..] => {
                    self.at += 1;
                    byte
                }
            };
            self.next |= u64::from(byte) << (56 - self.count);
            self.count += 8;
        }
    }

    /// Checks that all differences were in the data.
    ///
    /// # Errors
    /// Damaged data, and data that end early.
    pub fn check(&self) -> Result<()> {
        ensure!(!self.damaged, "its lossless JPEG data are damaged");
        ensure!(self.added <= self.count, "its lossless JPEG data end early");
        Ok(())
    }

    /// The bytes after the last difference: fill bytes and a marker.
    ///
    /// # Errors
    /// More data.
    pub fn end(&self) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        ensure!(
            self.count < self.added + 8 && matches!(rest, [0xFF, 1..=0xFF, ..]),
            "its lossless JPEG data continue after the last sample, or have no end"
        );
        Ok(rest)
    }

    /// Skips the restart marker of this number, modulo 8.
    ///
    /// # Errors
    /// Another marker, or more data.
    pub fn restart(&mut self, number: usize) -> Result<()> {
        let rest = self.end()?;
        let fill = rest.iter().take_while(|&&byte| byte == 0xFF).count();
        ensure!(
            rest.get(fill) == Some(&(0xD0 | number as u8 & 7)),
            "its restart marker {number} is missing"
        );
        *self = Bits::new(&rest[fill + 1..]);
        Ok(())
    }
}
