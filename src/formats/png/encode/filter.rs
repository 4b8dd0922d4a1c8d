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
    /// Minus one of the pixels left, above and above left: the nearest to left + above − above left.
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

/// The filters of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filters {
    /// The filter of the first row.
    pub first: Filter,
    /// The filter of all other rows.
    pub others: Filter,
}

impl Filters {
    /// The filter None for all rows.
    pub const NONE: Filters = Filters::all(Filter::None);

    /// One filter for all rows.
    const fn all(filter: Filter) -> Filters {
        Filters {
            first: filter,
            others: filter,
        }
    }
}

/// How the filters of rows are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterChoice {
    /// These filters.
    Fixed(Filters),
    /// For each row, the filter with the smallest sum of absolute values.
    Adaptive,
}

/// The pixel to the left of the first pixel of a row. It is 0, and has up to 8 bytes.
const ZERO: [u8; 8] = [0; 8];

/// The rows of an image as bytes in memory, to be filtered.
#[derive(Clone, Copy)]
pub struct FilterSource<'a> {
    bytes: &'a [u8],
    /// Bytes of a row, without its filter type.
    pub row_bytes: usize,
    pub pixel_bytes: usize,
    /// Whether the bytes of a sample are swapped: PNG samples are big-endian.
    swap: bool,
}

impl<'a> FilterSource<'a> {
    /// The rows of `image`.
    pub fn new(image: &'a Image) -> FilterSource<'a> {
        let shape = image.shape();
        FilterSource {
            bytes: image.samples().as_bytes(),
            row_bytes: shape.row() * shape.depth.bytes(),
            pixel_bytes: shape.channels * shape.depth.bytes(),
            swap: shape.depth == Depth::Sixteen && cfg!(target_endian = "little"),
        }
    }

    fn row(&self, y: usize) -> &'a [u8] {
        &self.bytes[y * self.row_bytes..][..self.row_bytes]
    }

    /// Writes bytes `from..from + out.len()` of row `y`, filtered, without the filter type. Both
    /// ends are pixel boundaries. Up, Average and Paeth need the row above, so y > 0.
    fn filter_part(&self, filter: Filter, y: usize, from: usize, out: &mut [u8]) {
        let end = from + out.len();
        let now = &self.row(y)[from..end];
        // The first pixel of a row has zeros to its left.
        let first = if from == 0 { self.pixel_bytes } else { 0 };
        let (head, rest) = out.split_at_mut(first);
        // The range of `rest`, one pixel to the left.
        let to_the_left = from + first - self.pixel_bytes..end - self.pixel_bytes;
        let left = &self.row(y)[to_the_left.clone()];
        let above = |y: usize| &self.row(y - 1)[..end];
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
                let above_left = &above(y)[to_the_left];
                let (above_head, above) = above(y)[from..].split_at(first);
                // With zeros on the left, Paeth always predicts the pixel above.
                difference(&now[..first], above_head, head, self.swap);
                paeth(&now[first..], left, above, above_left, rest, self.swap);
            }
        }
    }

    /// Fills `out` with filtered rows from row `y` on, each with its filter type.
    pub fn filter_rows(&self, y: usize, filters: Filters, out: &mut [u8]) {
        for (row, out) in out.chunks_exact_mut(1 + self.row_bytes).enumerate() {
            let filter = if row == 0 {
                filters.first
            } else {
                filters.others
            };
            out[0] = filter as u8;
            self.filter_part(filter, y + row, 0, &mut out[1..]);
        }
    }

    /// As `filter_rows`, with filters that `choice` determines.
    pub fn filter_rows_by(&self, choice: FilterChoice, y: usize, out: &mut [u8]) {
        match choice {
            FilterChoice::Fixed(filters) => self.filter_rows(y, filters, out),
            FilterChoice::Adaptive => self.filter_rows_adaptively(y, out),
        }
    }

    /// As `filter_rows`, but each row gets the filter with the smallest sum of absolute values (the
    /// heuristic of the PNG specification, §12.7, as in libpng). For the first row only filters that
    /// need no row above are tried.
    pub fn filter_rows_adaptively(&self, y: usize, out: &mut [u8]) {
        let mut trial = vec![0; self.row_bytes];
        for (row, out) in out.chunks_exact_mut(1 + self.row_bytes).enumerate() {
            let mut least = u64::MAX;
            for filter in Filter::ALL.into_iter().take(if row == 0 { 2 } else { 5 }) {
                self.filter_part(filter, y + row, 0, &mut trial);
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

/// The sum of the absolute values of bytes, read as signed numbers.
fn magnitude(bytes: &[u8]) -> u64 {
    // The sum of 2¹⁶ bytes cannot overflow 32 bits.
    let sum = |bytes: &[u8]| -> u32 {
        bytes
            .iter()
            .map(|&byte| u32::from(byte.min(byte.wrapping_neg())))
            .sum()
    };
    bytes
        .chunks(1 << 16)
        .map(|bytes| u64::from(sum(bytes)))
        .sum()
}

/// The number of windows of a segment that `choose` tries the filters on.
const WINDOWS: usize = 8;

/// The bytes of a window.
const WINDOW_BYTES: usize = 1 << 10;

/// The filters for the first row of a segment and for the others.
///
/// The filters are tried on 8 windows of the segment. Window k = 0..8 of a segment of n rows lies in
/// row 1 + k · (n − 1) / 8 (row 0 if n = 1). It has w bytes: as many whole pixels as fit into 1024 bytes,
/// at least one and at most a row. It begins at the last pixel that begins at or before byte
/// k · (row − w) / 7. The cost of a filter is the entropy of all windows together, after filtering (`entropy`).
///
/// The first row gets Sub if it costs less than None, otherwise None. The other rows get Up, unless another
/// filter costs less by more than 1/64 of Up's cost. Then they get the cheapest; if costs are equal, None before
/// Sub before Paeth. Paeth is slow to undo, so it must cost less than Up by more than 1/16. Average is not tried,
/// because it is never much better.
pub fn choose(source: &FilterSource, rows: Range<usize>) -> Filters {
    let &FilterSource {
        row_bytes,
        pixel_bytes,
        ..
    } = source;
    let width = WINDOW_BYTES.min(row_bytes) / pixel_bytes * pixel_bytes;
    let width = width.max(pixel_bytes);
    let is_single_row = rows.len() == 1;
    let mut buffer = [0; WINDOWS * WINDOW_BYTES];
    let mut cost = |filter| {
        let windows = &mut buffer[..WINDOWS * width];
        for (k, window) in windows.chunks_exact_mut(width).enumerate() {
            let y = rows.start + usize::from(!is_single_row) + k * (rows.len() - 1) / WINDOWS;
            let from = k * (row_bytes - width) / (WINDOWS - 1) / pixel_bytes * pixel_bytes;
            source.filter_part(filter, y, from, window);
        }
        entropy(windows)
    };
    let (none, sub) = (cost(Filter::None), cost(Filter::Sub));
    let left = if sub < none {
        Filter::Sub
    } else {
        Filter::None
    };
    if is_single_row {
        return Filters::all(left);
    }
    let (up, paeth) = (cost(Filter::Up), cost(Filter::Paeth));
    let beats_up_by = |cost: u64, share: u64| cost < up - up / share;
    let others = if paeth < none.min(sub) && beats_up_by(paeth, 16) {
        Filter::Paeth
    } else if beats_up_by(none.min(sub), 64) {
        left
    } else {
        Filter::Up
    };
    Filters {
        first: left,
        others,
    }
}

/// The number of bits, times 256, that an ideal code for these bytes would need: n log n − Σ c log c over the
/// counts c of the byte values. The logarithm to base 2 is interpolated linearly between powers of two.
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

/// Bytes processed at a time. The compiler turns a loop of this fixed length into vector code.
const LANES: usize = 64;
type Lanes = [u8; LANES];

per_level! {
    highest Avx2;

    /// `a` with big-endian samples.
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

    /// x minus the mean of a and b.
    fn average(x: &[u8], a: &[u8], b: &[u8], out: &mut [u8], swap: bool) {
        zip([x, a, b], out, swap, less_mean);
    }
}

per_level! {
    highest Avx2;

    /// x minus the prediction from a, b and c.
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

/// x minus the Paeth prediction. If distances are equal, left wins over above, and above over above left.
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

/// Sets out[i] to f of byte i of all inputs, and swaps the bytes of each sample if `swap` is set. Each input is
/// as long as `out`.
#[inline(always)]
fn zip<const N: usize>(inputs: [&[u8]; N], out: &mut [u8], swap: bool, f: impl Fn([u8; N]) -> u8) {
    // There are two loops, because with a constant condition the swap compiles to one shuffle.
    if swap {
        zip_lanes::<N, true>(inputs, out, f);
    } else {
        zip_lanes::<N, false>(inputs, out, f);
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
