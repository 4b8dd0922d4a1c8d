//! Samples whose layout in the file differs from that in memory: fewer than 8 bits, or 9 to 15, the
//! most significant bit first and each row on a byte boundary (TIFF 6.0, section 3), or one plane a
//! channel.

use super::shape::Form;
use crate::image::Depth;

/// Copies a row of a chunk, whole samples in the machine's byte order, to its place in the image:
/// all channels, or those of one plane. Samples of fewer than 8 bits are scaled to 8, v·255/(2ⁿ−1)
/// rounded, as for PNG; 9 to 15 bits keep their values.
pub fn spread(row: &[u8], out: &mut [u8], form: &Form, plane: usize) {
    let (all, here) = (form.shape.channels, form.channels());
    // The index in the output of the row's i-th sample.
    let place = |i: usize| i / here * all + i % here + plane;
    let count = out.len() / form.shape.pixel_bytes() * here;
    match (form.shape.depth, form.bits) {
        (Depth::Eight, 8) => {
            for (i, &sample) in row.iter().take(count).enumerate() {
                out[place(i)] = sample;
            }
        }
        (Depth::Eight, bits) => {
            let most = (1 << bits) - 1;
            for (i, value) in (Bits::of(row, bits)).take(count).enumerate() {
                out[place(i)] = ((value * 255 + most / 2) / most) as u8;
            }
        }
        (Depth::ThirtyTwo | Depth::Float, _) => {
            let out = out.as_chunks_mut::<4>().0;
            for (i, &sample) in row.as_chunks::<4>().0.iter().take(count).enumerate() {
                out[place(i)] = sample;
            }
        }
        (Depth::Sixteen, bits) => {
            let out = out.as_chunks_mut::<2>().0;
            if bits == 16 {
                for (i, &sample) in row.as_chunks::<2>().0.iter().take(count).enumerate() {
                    out[place(i)] = sample;
                }
            } else {
                for (i, value) in (Bits::of(row, bits)).take(count).enumerate() {
                    out[place(i)] = (value as u16).to_ne_bytes();
                }
            }
        }
    }
}

/// Reads a row of numbers of a fixed width in bits.
struct Bits<'a> {
    bytes: std::slice::Iter<'a, u8>,
    bits: u32,
    held: u32,
    holds: u32,
}

impl<'a> Bits<'a> {
    fn of(row: &'a [u8], bits: u32) -> Bits<'a> {
        Bits {
            bytes: row.iter(),
            bits,
            held: 0,
            holds: 0,
        }
    }
}

impl Iterator for Bits<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        while self.holds < self.bits {
            self.held = self.held << 8 | u32::from(*self.bytes.next()?);
            self.holds += 8;
        }
        self.holds -= self.bits;
        Some(self.held >> self.holds & ((1 << self.bits) - 1))
    }
}
