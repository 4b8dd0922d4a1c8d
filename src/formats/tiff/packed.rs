//! Samples whose layout in the file differs from that in memory: fewer than 8 bits, 9 to 15, or 24, the
//! most significant bit first and each row on a byte boundary (TIFF 6.0, section 3), in files of both byte
//! orders; floating point of 16 bits; one plane a channel; or one channel of several as a page.

use super::shape::Form;
use crate::formats::raw::Order;
use crate::image::{Depth, number};
use half::f16;

/// Copies a row of a chunk to its place in the image: all channels, those of one plane, or where each
/// channel is a page the one of `band`. Whole samples come in the machine's byte order and as they are
/// in memory, others as they are in the file. Samples of fewer than 8 bits are scaled to 8,
/// v·255/(2ⁿ−1) rounded, as for PNG; all others keep their values.
pub fn spread(row: &[u8], out: &mut [u8], form: &Form, order: Order, plane: usize, band: usize) {
    let (all, here) = (form.shape.channels, form.channels());
    let pixels = out.len() / form.shape.pixel_bytes();
    // The first sample of the row that is taken, how many lie from one to the next, and the place of
    // the first in the image.
    let (first, step, place) = match (form.bands(), form.planar) {
        (1, false) => (0, 1, 0),
        (1, true) => (0, 1, plane),
        (_, false) => (band, here, 0),
        (_, true) => (0, 1, 0),
    };
    let apart = if form.planar { all } else { 1 };
    let count = match form.bands() {
        1 => pixels * here,
        _ => pixels,
    };
    // Pairs of the index of a sample in the row and in the image.
    let places = (0..count).map(|i| (first + i * step, place + i * apart));
    let toggled = form.signed;
    match (form.shape.depth, form.bits) {
        (Depth::Eight, 8) => {
            for (from, to) in places {
                out[to] = row[from];
            }
        }
        (Depth::Eight, bits) => {
            let most = (1 << bits) - 1;
            put_each(Bits::new(row, bits), first, step, places, |to, value| {
                out[to] = ((value * 255 + most / 2) / most) as u8;
            });
        }
        (Depth::Sixteen, 16) => {
            let (row, out) = (row.as_chunks::<2>().0, out.as_chunks_mut::<2>().0);
            for (from, to) in places {
                out[to] = row[from];
            }
        }
        (Depth::Sixteen, bits) => {
            let out = out.as_chunks_mut::<2>().0;
            put_each(Bits::new(row, bits), first, step, places, |to, value| {
                out[to] = (value as u16).to_ne_bytes();
            });
        }
        (Depth::Float, 16) => {
            let (row, out) = (row.as_chunks::<2>().0, out.as_chunks_mut::<4>().0);
            for (from, to) in places {
                let half = f16::from_bits(order.number(&row[from]) as u16);
                out[to] = number::key(half.to_f32().to_bits()).to_ne_bytes();
            }
        }
        (Depth::ThirtyTwo, 24) => {
            let (row, out) = (row.as_chunks::<3>().0, out.as_chunks_mut::<4>().0);
            for (from, to) in places {
                let [a, b, c] = row[from];
                // Packed samples have no byte order. In the upper three bytes, so that the sign is where that of
                // 32 bits is.
                let high = u32::from_be_bytes([a, b, c, 0]);
                let value = if toggled {
                    (high as i32 >> 8) as u32 ^ number::TOP
                } else {
                    high >> 8
                };
                out[to] = value.to_ne_bytes();
            }
        }
        (Depth::ThirtyTwo | Depth::Float, _) => {
            let (row, out) = (row.as_chunks::<4>().0, out.as_chunks_mut::<4>().0);
            for (from, to) in places {
                out[to] = row[from];
            }
        }
        (Depth::Double, _) => {
            let (row, out) = (row.as_chunks::<8>().0, out.as_chunks_mut::<8>().0);
            for (from, to) in places {
                out[to] = row[from];
            }
        }
    }
}

/// Puts every `step`-th number from the `first` on to its place.
fn put_each(
    values: Bits,
    first: usize,
    step: usize,
    places: impl Iterator<Item = (usize, usize)>,
    mut put: impl FnMut(usize, u32),
) {
    match (first, step) {
        // By itself, since stepping by one takes a third longer.
        (0, 1) => values
            .zip(places)
            .for_each(|(value, (_, to))| put(to, value)),
        _ => {
            let values = values.skip(first).step_by(step);
            values
                .zip(places)
                .for_each(|(value, (_, to))| put(to, value));
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
    fn new(row: &'a [u8], bits: u32) -> Bits<'a> {
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
