//! RICE_1 (standard, section 10.4.1): the first sample as it is, then differences from one sample to the next, coded in
//! blocks whose first bits give the number of low bits that each difference has as they are.

use anyhow::{Context, Result, ensure};

/// How blocks are coded for samples of a size.
struct Form {
    /// Bits of the number of low bits.
    length_bits: u32,
    /// That number where differences are stored whole.
    whole: u32,
    /// Bits of a sample.
    sample_bits: u32,
}

impl Form {
    fn new(bytes: usize) -> Result<Form> {
        let (length_bits, whole, sample_bits) = match bytes {
            1 => (3, 6, 8),
            2 => (4, 14, 16),
            4 => (5, 25, 32),
            _ => {
                anyhow::bail!("RICE_1 with a BYTEPIX of {bytes} is not supported (1, 2 and 4 are)")
            }
        };
        Ok(Form {
            length_bits,
            whole,
            sample_bits,
        })
    }
}

/// Decodes samples of so many `bytes`, in blocks of `block` samples. Samples of one byte have no sign, others have one.
///
/// # Errors
/// Data that end too early, and samples of another size than 1, 2 or 4 bytes.
pub fn decode(packed: &[u8], bytes: usize, block: usize, out: &mut [i32]) -> Result<()> {
    let form = Form::new(bytes)?;
    let mut bits = Bits::new(packed);
    let mut last = bits.take(form.sample_bits)?;
    let shift = 32 - form.sample_bits;
    for block in out.chunks_mut(block) {
        let length = bits.take(form.length_bits)?;
        ensure!(
            length <= form.whole + 1,
            "a block of it has {} low bits",
            length - 1
        );
        for sample in block {
            let difference = match length.checked_sub(1) {
                None => 0,
                Some(low) if low == form.whole => bits.take(form.sample_bits)?,
                Some(low) => {
                    let high = bits.zeros()?;
                    high << low | bits.take(low)?
                }
            };
            // The lowest bit is the sign.
            let difference = difference >> 1 ^ (difference & 1).wrapping_neg();
            last = last.wrapping_add(difference);
            *sample = if bytes == 1 {
                (last & 0xFF) as i32
            } else {
                (last << shift) as i32 >> shift
            };
        }
    }
    Ok(())
}

/// Bits, the most significant of each byte first.
pub struct Bits<'a> {
    rest: &'a [u8],
    /// The next bits at the top.
    word: u64,
    count: u32,
}

impl<'a> Bits<'a> {
    /// The bits of these bytes.
    pub fn new(bytes: &'a [u8]) -> Bits<'a> {
        Bits {
            rest: bytes,
            word: 0,
            count: 0,
        }
    }

    /// Holds at least 32 bits, if there are as many.
    #[inline(always)]
    fn refill(&mut self) {
        if self.count >= 32 {
            return;
        }
        if let Some((word, rest)) = self.rest.split_first_chunk() {
            self.word |= u64::from(u32::from_be_bytes(*word)) << (32 - self.count);
            self.rest = rest;
            self.count += 32;
        } else {
            while let Some((&byte, rest)) = self.rest.split_first().filter(|_| self.count <= 56) {
                self.word |= u64::from(byte) << (56 - self.count);
                self.rest = rest;
                self.count += 8;
            }
        }
    }

    /// The next bits, up to 32, as a number.
    #[inline(always)]
    pub fn take(&mut self, bits: u32) -> Result<u32> {
        self.refill();
        self.count = self.count.checked_sub(bits).context(SHORT)?;
        let number = (self.word >> 32) as u32;
        self.word <<= bits;
        Ok(if bits == 0 { 0 } else { number >> (32 - bits) })
    }

    /// Skips the rest of a byte.
    pub fn align(&mut self) {
        self.word <<= self.count % 8;
        self.count -= self.count % 8;
    }

    /// The number of zeros before the next one, which is consumed too.
    #[inline(always)]
    fn zeros(&mut self) -> Result<u32> {
        let mut zeros = 0;
        loop {
            self.refill();
            let found = self.word.leading_zeros();
            if found < self.count {
                self.word = self.word << found << 1;
                self.count -= found + 1;
                return Ok(zeros + found);
            }
            ensure!(!self.rest.is_empty(), SHORT);
            zeros += self.count;
            (self.word, self.count) = (0, 0);
        }
    }
}

const SHORT: &str = "its data end too early";
