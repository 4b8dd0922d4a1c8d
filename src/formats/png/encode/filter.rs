//! PNG filters (PNG specification, third edition, §9.2), combined with the conversion to big-endian
//! samples.

use crate::image::simd::per_level;
use crate::image::{Depth, Image};
use std::ops::Range;

/// A filter type; the value is the filter byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// The bytes unchanged.
    None = 0,
    /// Minus the pixel to the left.
    Sub = 1,
    /// Minus the pixel above.
    Up = 2,
    /// Minus the mean of left and above, rounded down.
    Average = 3,
    /// Minus the one of left, above and above left that is nearest to left + above − above left.
    Paeth = 4,
}

impl Filter {
    const ALL: [Filter; 5] = [
        Filter::None,
        Filter::Sub,
        Filter::Up,
        Filter::Average,
        Filter::Paeth,
    ];
}

/// How the filters of rows are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filling {
    /// One for the first row, one for the others.
    Fixed(Filter, Filter),
    /// One for each row, as `Rows::fill_each` does.
    Each,
}

/// The pixel to the left of the first, of up to 8 bytes.
const ZERO: [u8; 8] = [0; 8];

/// The rows of an image as bytes in memory, to be filtered.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    bytes: &'a [u8],
    /// Bytes of a row, without its filter byte.
    pub row: usize,
    /// Bytes of a pixel.
    pub pixel: usize,
    /// Whether the bytes of a sample are exchanged: PNG samples are big-endian.
    swap: bool,
}

impl<'a> Rows<'a> {
    /// The rows of `image`.
    pub fn of(image: &'a Image) -> Rows<'a> {
        let shape = image.shape();
        Rows {
            bytes: image.samples().as_bytes(),
            row: shape.row() * shape.depth.bytes(),
            pixel: shape.channels * shape.depth.bytes(),
            swap: shape.depth == Depth::Sixteen && cfg!(target_endian = "little"),
        }
    }

    fn get(&self, y: usize) -> &'a [u8] {
        &self.bytes[y * self.row..][..self.row]
    }

    /// Writes bytes `from..from + out.len()` of row `y`, filtered, without the filter byte. Both
    /// ends are pixel boundaries. Up, Average and Paeth need the row above, so y > 0.
    fn filter(&self, filter: Filter, y: usize, from: usize, out: &mut [u8]) {
        let end = from + out.len();
        let now = &self.get(y)[from..end];
        // The first pixel of a row has zeros to its left.
        let first = if from == 0 { self.pixel } else { 0 };
        let (head, rest) = out.split_at_mut(first);
        let behind = from + first - self.pixel..end - self.pixel;
        let left = &self.get(y)[behind.clone()];
        let above = |y: usize| &self.get(y - 1)[..end];
        match filter {
            Filter::None => copy(now, out, self.swap),
            Filter::Sub => {
                copy(&now[..first], head, self.swap);
                difference(&now[first..], left, rest, self.swap);
            }
            Filter::Up => difference(now, &above(y)[from..], out, self.swap),
            Filter::Average => {
                let (above_head, above) = above(y)[from..].split_at(first);
                average(&now[..first], &ZERO[..first], above_head, head, self.swap);
                average(&now[first..], left, above, rest, self.swap);
            }
            Filter::Paeth => {
                let corner = &above(y)[behind];
                let (above_head, above) = above(y)[from..].split_at(first);
                // With zeros on the left, Paeth always predicts the pixel above.
                difference(&now[..first], above_head, head, self.swap);
                paeth(&now[first..], left, above, corner, rest, self.swap);
            }
        }
    }

    /// Writes whole rows from `y` on, each with its filter byte, the first by `first` and the
    /// others by `others`; `out` is filled.
    pub fn fill(&self, y: usize, first: Filter, others: Filter, out: &mut [u8]) {
        for (row, out) in out.chunks_exact_mut(1 + self.row).enumerate() {
            let filter = if row == 0 { first } else { others };
            out[0] = filter as u8;
            self.filter(filter, y + row, 0, &mut out[1..]);
        }
    }

    /// Writes whole rows from `y` on as `filling` says.
    pub fn fill_by(&self, filling: Filling, y: usize, out: &mut [u8]) {
        match filling {
            Filling::Fixed(first, others) => self.fill(y, first, others, out),
            Filling::Each => self.fill_each(y, out),
        }
    }

    /// As `fill`, but each row gets the filter with the smallest sum of absolute values (the
    /// heuristic of the PNG specification, §12.7, as in libpng); the first row without reference to
    /// the row above.
    pub fn fill_each(&self, y: usize, out: &mut [u8]) {
        let mut trial = vec![0; self.row];
        for (row, out) in out.chunks_exact_mut(1 + self.row).enumerate() {
            let mut least = u64::MAX;
            for filter in Filter::ALL.into_iter().take(if row == 0 { 2 } else { 5 }) {
                self.filter(filter, y + row, 0, &mut trial);
                let sum = magnitude(&trial);
                if sum < least {
                    least = sum;
                    out[0] = filter as u8;
                    out[1..].copy_from_slice(&trial);
                }
            }
        }
    }
}

/// The sum of the absolute values of bytes taken as signed.
fn magnitude(bytes: &[u8]) -> u64 {
    let part = |bytes: &[u8]| -> u32 {
        bytes
            .iter()
            .map(|&byte| u32::from(byte.min(byte.wrapping_neg())))
            .sum()
    };
    bytes
        .chunks(1 << 16)
        .map(|bytes| u64::from(part(bytes)))
        .sum()
}

/// The number of windows that the choice of a filter samples, and the bytes of each.
const WINDOWS: usize = 8;
const WINDOW: usize = 1 << 10;

/// The filters for the first row of a segment and for the others.
///
/// Window k = 0..8 of a segment of n rows lies in its row 1 + k · (n − 1) / 8 (row 0 if n = 1); it
/// has w bytes, the largest number of whole pixels in 1024 bytes, at least one and at most a row,
/// and begins at the last pixel that begins at or before byte k · (row − w) / 7. A filter's cost
/// is the entropy of the bytes it makes of all windows together (`entropy`).
/// The first row has Sub if that costs less than None, else None. The others have Up, if no other
/// costs less by at least 1 in 64 of Up's cost, else the cheapest (None before Sub before Paeth).
/// Average never wins by much, and Paeth, slow to undo, must win by 1 in 16.
pub fn choose(rows: &Rows, segment: Range<usize>) -> (Filter, Filter) {
    let width = WINDOW.min(rows.row) / rows.pixel * rows.pixel;
    let width = width.max(rows.pixel);
    let lone = segment.len() == 1;
    let mut buffer = [0; WINDOWS * WINDOW];
    let mut cost = |filter| {
        let windows = &mut buffer[..WINDOWS * width];
        for (k, window) in windows.chunks_exact_mut(width).enumerate() {
            let y = segment.start + usize::from(!lone) + k * (segment.len() - 1) / WINDOWS;
            let from = k * (rows.row - width) / (WINDOWS - 1) / rows.pixel * rows.pixel;
            rows.filter(filter, y, from, window);
        }
        entropy(windows)
    };
    let (none, sub) = (cost(Filter::None), cost(Filter::Sub));
    let left = if sub < none {
        Filter::Sub
    } else {
        Filter::None
    };
    if lone {
        return (left, left);
    }
    let (up, paeth) = (cost(Filter::Up), cost(Filter::Paeth));
    let beyond = |part| up - up / part;
    if paeth < none.min(sub) && paeth < beyond(16) {
        (left, Filter::Paeth)
    } else if none.min(sub) < beyond(64) {
        (left, left)
    } else {
        (left, Filter::Up)
    }
}

/// Bits, times 256, that a code fitted to these bytes would need: n log n − Σ c log c over the
/// counts c of the byte values, with the logarithm to base 2 as a line between powers of two.
fn entropy(bytes: &[u8]) -> u64 {
    let mut counts = [0u32; 256];
    for &byte in bytes {
        counts[usize::from(byte)] += 1;
    }
    let bits = |count: u32| {
        let whole = count.max(1).ilog2();
        let part = (u64::from(count) << 8 >> whole) & 0xff;
        u64::from(count) * (u64::from(whole) << 8 | part)
    };
    let parts: u64 = counts.iter().map(|&count| bits(count)).sum();
    bits(bytes.len() as u32).saturating_sub(parts)
}

/// Bytes handled at a time: a loop of known length, which becomes vector code.
const LANES: usize = 64;
type Lanes = [u8; LANES];

per_level! {
    highest Avx2;

    /// `a` in the order of big-endian samples.
    fn copy(a: &[u8], out: &mut [u8], swap: bool) {
        zip([a], out, swap, same);
    }
}

per_level! {
    highest Avx2;

    /// a − b, byte by byte.
    fn difference(a: &[u8], b: &[u8], out: &mut [u8], swap: bool) {
        zip([a, b], out, swap, less);
    }
}

per_level! {
    highest Avx2;

    /// x less the mean of a and b.
    fn average(x: &[u8], a: &[u8], b: &[u8], out: &mut [u8], swap: bool) {
        zip([x, a, b], out, swap, less_mean);
    }
}

per_level! {
    highest Avx2;

    /// x less the prediction from a, b and c.
    fn paeth(x: &[u8], a: &[u8], b: &[u8], c: &[u8], out: &mut [u8], swap: bool) {
        zip([x, a, b, c], out, swap, less_prediction);
    }
}

// Functions and not closures: only functions can be marked for inlining, and code that is not
// inlined would not be compiled for the wider registers.
#[inline(always)]
fn same([a]: [u8; 1]) -> u8 {
    a
}

#[inline(always)]
fn less([a, b]: [u8; 2]) -> u8 {
    a.wrapping_sub(b)
}

#[inline(always)]
fn less_mean([x, a, b]: [u8; 3]) -> u8 {
    x.wrapping_sub((a & b) + (a ^ b) / 2)
}

/// On a tie left wins, then above.
#[inline(always)]
fn less_prediction([x, a, b, c]: [u8; 4]) -> u8 {
    let (left, above, corner) = (i16::from(a), i16::from(b), i16::from(c));
    let (near_a, near_b) = ((above - corner).abs(), (left - corner).abs());
    let near_c = (left + above - 2 * corner).abs();
    let b_or_c = if near_b <= near_c { b } else { c };
    let best = if near_a <= near_b && near_a <= near_c {
        a
    } else {
        b_or_c
    };
    x.wrapping_sub(best)
}

/// out[i] = f of byte i of all inputs, in the order of big-endian samples. Each input is as long
/// as `out`.
#[inline(always)]
fn zip<const N: usize>(inputs: [&[u8]; N], out: &mut [u8], swap: bool, f: impl Fn([u8; N]) -> u8) {
    // Two loops: with a constant condition the exchange compiles to one shuffle.
    match swap {
        true => zip_lanes::<N, true>(inputs, out, f),
        false => zip_lanes::<N, false>(inputs, out, f),
    }
}

#[inline(always)]
fn zip_lanes<const N: usize, const SWAP: bool>(
    inputs: [&[u8]; N],
    out: &mut [u8],
    f: impl Fn([u8; N]) -> u8,
) {
    let whole = out.len() / LANES * LANES;
    let mut at = 0;
    while at < whole {
        let mut lanes = [[0; LANES]; N];
        for k in 0..N {
            lanes[k].copy_from_slice(&inputs[k][at..at + LANES]);
        }
        out[at..at + LANES].copy_from_slice(&apply::<N, SWAP>(&lanes, &f));
        at += LANES;
    }
    let rest = &mut out[whole..];
    if !rest.is_empty() {
        let mut lanes = [[0; LANES]; N];
        for k in 0..N {
            lanes[k][..rest.len()].copy_from_slice(&inputs[k][whole..][..rest.len()]);
        }
        rest.copy_from_slice(&apply::<N, SWAP>(&lanes, &f)[..rest.len()]);
    }
}

#[inline(always)]
fn apply<const N: usize, const SWAP: bool>(
    inputs: &[Lanes; N],
    f: &impl Fn([u8; N]) -> u8,
) -> Lanes {
    let mut result = [0; LANES];
    for i in 0..LANES {
        let mut bytes = [0; N];
        for k in 0..N {
            bytes[k] = inputs[k][i];
        }
        result[i] = f(bytes);
    }
    if SWAP {
        let mut swapped = [0; LANES];
        for i in 0..LANES {
            swapped[i] = result[i ^ 1];
        }
        return swapped;
    }
    result
}
