//! The bits of a scan, in which a bit 0 follows each byte FF (T.87, A.1).

use anyhow::{Result, bail, ensure};

/// Reads bits, the most significant first.
pub struct Bits<'a> {
    bytes: &'a [u8],
    /// The next byte.
    at: usize,
    /// The bits that were read ahead, at the top.
    ahead: u64,
    /// How many there are.
    count: u32,
}

impl<'a> Bits<'a> {
    /// The bits of a scan.
    pub fn new(bytes: &'a [u8]) -> Bits<'a> {
        Bits {
            bytes,
            at: 0,
            ahead: 0,
            count: 0,
        }
    }

    /// Reads ahead as many whole bytes as there is room for.
    fn fill(&mut self) {
        while self.count <= 48 {
            let Some(&byte) = self.bytes.get(self.at) else {
                return;
            };
            let follows_ff = self.at > 0 && self.bytes[self.at - 1] == 0xFF;
            let is_marker =
                byte == 0xFF && self.bytes.get(self.at + 1).is_none_or(|&it| it >= 0x80);
            if is_marker || (follows_ff && byte >= 0x80) {
                return;
            }
            let bits = if follows_ff { 7 } else { 8 };
            self.ahead |= u64::from(byte) << (64 - bits) >> self.count;
            self.count += bits;
            self.at += 1;
        }
    }

    /// A number of `bits` bits, at most 32.
    pub fn number(&mut self, bits: u32) -> Result<u32> {
        if bits == 0 {
            return Ok(0);
        }
        if self.count < bits {
            self.fill();
            ensure!(self.count >= bits, "its data end too early");
        }
        let number = (self.ahead >> (64 - bits)) as u32;
        self.ahead <<= bits;
        self.count -= bits;
        Ok(number)
    }

    /// How many bits 0 are before the next bit 1, which is read too: at most `most`.
    pub fn zeros(&mut self, most: u32) -> Result<u32> {
        let mut zeros = 0;
        loop {
            if self.count == 0 {
                self.fill();
                ensure!(self.count > 0, "its data end too early");
            }
            let here = self.ahead.leading_zeros().min(self.count);
            zeros += here;
            if zeros > most {
                bail!("a code of it has more than {most} zeros");
            }
            if here < self.count {
                self.number(here + 1)?;
                return Ok(zeros);
            }
            (self.ahead, self.count) = (0, 0);
        }
    }

    /// The bytes after the scan, from the next marker on.
    pub fn rest(&self) -> &'a [u8] {
        // Bytes that were read ahead contain no marker.
        let rest = &self.bytes[self.at..];
        let marker = rest
            .windows(2)
            .position(|pair| pair[0] == 0xFF && pair[1] >= 0x80);
        &rest[marker.unwrap_or(rest.len())..]
    }
}
