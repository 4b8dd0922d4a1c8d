//! Undoes the filters of several rows at once.
//!
//! With Average and Paeth, every pixel depends on the one to its left, so the pixels of a single row cannot
//! fill a vector. But a pixel depends only on its left, upper and upper left neighbours, so all pixels of an
//! anti-diagonal are independent. A vector holds one pixel of each of several rows; each is one column to the
//! left of the pixel in the row above. The vector moves to the right, so its upper neighbours are its own
//! previous result, shifted by one lane. Blocks of pixels are transposed before and after.

use super::unfilter_pixels::{AVERAGE, PAETH, SUB, UP, unfilter_from};
use crate::image::simd::{Level, level};
use std::ops::Range;
use wide::{u8x16, u16x8, u32x4, u64x2};

/// The number of rows that `unfilter_group` unfilters at once: one pixel of each fits into 16 bytes.
pub fn rows_at_once(pixel_bytes: usize) -> usize {
    16 / pixel_bytes.next_power_of_two()
}

/// Unfilters rows, each by its filter type; `above` is the unfiltered row before them. Returns false
/// and does nothing if there are not `rows_at_once` rows, if they are too short, or if the SIMD
/// level is `Scalar`.
pub fn unfilter_group(filters: &[u8], pixel_bytes: usize, above: &[u8], rows: &mut [u8]) -> bool {
    match pixel_bytes {
        _ if level() == Level::Scalar => false,
        1 => group::<Bytes, 1, 16>(filters, above, rows),
        2 => group::<Pairs, 2, 8>(filters, above, rows),
        3 => group::<Quads, 3, 4>(filters, above, rows),
        4 => group::<Quads, 4, 4>(filters, above, rows),
        6 => group::<Octets, 6, 2>(filters, above, rows),
        8 => group::<Octets, 8, 2>(filters, above, rows),
        _ => false,
    }
}

/// Undoes Sub in the part of a row that whole vectors cover, and returns the length of that part in
/// bytes: 0 if pixels of `STEP` bytes do not fill a vector, or if the SIMD level is `Scalar`.
///
/// The prefix sum of a vector adds the vector to itself, shifted by 1, 2, 4 … pixels. Only the last addition,
/// of the previous vector's last pixel, depends on the previous vector.
pub fn unfilter_sub<const STEP: usize>(row: &mut [u8]) -> usize {
    if !STEP.is_power_of_two() || level() == Level::Scalar {
        return 0;
    }
    let vectors = row.as_chunks_mut::<16>().0;
    let mut left = u8x16::ZERO;
    for bytes in vectors.iter_mut() {
        let mut sums = u8x16::from(*bytes);
        if STEP <= 1 {
            sums += Bytes::shift(sums);
        }
        if STEP <= 2 {
            sums += Pairs::shift(sums);
        }
        if STEP <= 4 {
            sums += Quads::shift(sums);
        }
        sums += Octets::shift(sums);
        *bytes = (sums + left).to_array();
        left += last::<STEP>(sums);
    }
    16 * vectors.len()
}

/// The last pixel of a vector, repeated at every position.
#[inline(always)]
fn last<const STEP: usize>(vector: u8x16) -> u8x16 {
    let [_, last] = halves(vector);
    match STEP {
        8 => from_halves([last; 2]),
        4 => bytemuck::cast([((last >> 32) as u32).to_le(); 4]),
        2 => bytemuck::cast([((last >> 48) as u16).to_le(); 8]),
        _ => u8x16::splat((last >> 56) as u8),
    }
}

/// A vector as two little-endian integers, on a machine of any byte order.
#[inline(always)]
fn halves(vector: u8x16) -> [u64; 2] {
    bytemuck::cast::<_, [u64; 2]>(vector).map(u64::from_le)
}

/// The inverse of `halves`.
#[inline(always)]
fn from_halves(halves: [u64; 2]) -> u8x16 {
    bytemuck::cast(halves.map(u64::to_le))
}

/// A vector as `ROWS` lanes, one for each row.
trait Lanes<const ROWS: usize> {
    /// Transposes a block. Its vectors hold consecutive pixels of one row before, and one pixel of each row afterwards, or the
    /// other way round.
    fn transpose(block: [u8x16; ROWS]) -> [u8x16; ROWS];

    /// Moves each lane to the next one; lane 0 becomes 0.
    fn shift(vector: u8x16) -> u8x16;
}

struct Bytes;
struct Pairs;
struct Quads;
struct Octets;

impl Lanes<16> for Bytes {
    #[inline(always)]
    fn transpose(mut block: [u8x16; 16]) -> [u8x16; 16] {
        // Four perfect shuffles of all 256 bytes exchange the upper and lower half of their index.
        for _ in 0..4 {
            let from = block;
            for i in 0..8 {
                block[2 * i] = u8x16::unpack_low(from[i], from[i + 8]);
                block[2 * i + 1] = u8x16::unpack_high(from[i], from[i + 8]);
            }
        }
        block
    }

    #[inline(always)]
    fn shift(vector: u8x16) -> u8x16 {
        let [low, high] = halves(vector);
        let moved: u64x2 = u64x2::new([low, high]) << 8;
        let carried: u64x2 = u64x2::new([0, low]) >> 56;
        from_halves((moved | carried).to_array())
    }
}

impl Lanes<8> for Pairs {
    #[inline(always)]
    fn transpose(block: [u8x16; 8]) -> [u8x16; 8] {
        bytemuck::cast(u16x8::transpose(bytemuck::cast(block)))
    }

    #[inline(always)]
    fn shift(vector: u8x16) -> u8x16 {
        let [a, b, c, d, e, f, g, _]: [u16; 8] = bytemuck::cast(vector);
        bytemuck::cast([0, a, b, c, d, e, f, g])
    }
}

impl Lanes<4> for Quads {
    #[inline(always)]
    fn transpose(block: [u8x16; 4]) -> [u8x16; 4] {
        bytemuck::cast(u32x4::transpose(bytemuck::cast(block)))
    }

    #[inline(always)]
    fn shift(vector: u8x16) -> u8x16 {
        let [a, b, c, _]: [u32; 4] = bytemuck::cast(vector);
        bytemuck::cast([0, a, b, c])
    }
}

impl Lanes<2> for Octets {
    #[inline(always)]
    fn transpose(block: [u8x16; 2]) -> [u8x16; 2] {
        bytemuck::cast(u64x2::transpose(bytemuck::cast(block)))
    }

    #[inline(always)]
    fn shift(vector: u8x16) -> u8x16 {
        let [a, _]: [u64; 2] = bytemuck::cast(vector);
        bytemuck::cast([0, a])
    }
}

/// A mask for each filter type except None. It selects the lanes of the rows with this filter type.
struct FilterMasks {
    sub: u8x16,
    up: u8x16,
    average: u8x16,
    paeth: u8x16,
}

impl FilterMasks {
    fn new<const ROWS: usize>(filters: &[u8]) -> FilterMasks {
        let mask = |filter: u8| {
            let mut mask = [0; 16];
            for (lane, &row_filter) in mask.chunks_exact_mut(16 / ROWS).zip(filters) {
                lane.fill(if row_filter == filter { 0xFF } else { 0 });
            }
            u8x16::new(mask)
        };
        FilterMasks {
            sub: mask(SUB),
            up: mask(UP),
            average: mask(AVERAGE),
            paeth: mask(PAETH),
        }
    }

    /// The prediction from the pixels left (a), above (b) and above left (c).
    #[inline(always)]
    fn predict(&self, a: u8x16, b: u8x16, c: u8x16) -> u8x16 {
        (paeth(a, b, c) & self.paeth)
            | (average(a, b) & self.average)
            | (a & self.sub)
            | (b & self.up)
    }
}

/// ⌊(a + b) / 2⌋ without a ninth bit: the bits in common, and half of those that differ.
#[inline(always)]
fn average(a: u8x16, b: u8x16) -> u8x16 {
    let half: u8x16 = bytemuck::cast(bytemuck::cast::<_, u16x8>(a ^ b) >> 1);
    (a & b) + (half & u8x16::splat(0x7F))
}

/// The Paeth predictor, as in `unfilter_pixels`.
#[inline(always)]
fn paeth(a: u8x16, b: u8x16, c: u8x16) -> u8x16 {
    let u = a.max(b).saturating_sub(c);
    let v = c.saturating_sub(a.min(b));
    let zero = u8x16::splat(0);
    let up = u & v.saturating_sub(u.saturating_sub(v)).simd_eq(zero);
    let down = v & u.saturating_sub(v.saturating_sub(u)).simd_eq(zero);
    c + up - down
}

/// As `unfilter_group`, for pixels of `STEP` bytes and groups of `ROWS` rows.
fn group<L: Lanes<ROWS>, const STEP: usize, const ROWS: usize>(
    filters: &[u8],
    above: &[u8],
    rows: &mut [u8],
) -> bool {
    let (above, _) = above.as_chunks::<STEP>();
    let width = above.len();
    if filters.len() != ROWS || width < 2 * ROWS || rows.len() != ROWS * width * STEP {
        return false;
    }
    let mut rest = rows;
    let mut lines: [&mut [[u8; STEP]]; ROWS] = std::array::from_fn(|_| {
        let (line, later) = std::mem::take(&mut rest).split_at_mut(width * STEP);
        rest = later;
        line.as_chunks_mut().0
    });

    // Before the diagonal can start, row r needs its first ROWS − 1 − r pixels.
    for (r, &filter) in filters.iter().enumerate() {
        unfilter_part(filter, r, 0..ROWS - 1 - r, above, &mut lines);
    }
    let mut x = ROWS - 1;
    let left = gather::<STEP, ROWS>(|r| left_of(lines[r], x - r));
    let above_left = gather::<STEP, ROWS>(|r| match r {
        0 => left_of(above, x),
        r => left_of(lines[r - 1], x - r),
    });
    let mut diagonal = Diagonal {
        x,
        left,
        above_left,
    };
    if filters.iter().all(|&filter| filter == PAETH) {
        diagonal.move_right::<L, STEP, ROWS>(paeth, above, &mut lines);
    } else {
        let masks = FilterMasks::new::<ROWS>(filters);
        let predict = |a, b, c| masks.predict(a, b, c);
        diagonal.move_right::<L, STEP, ROWS>(predict, above, &mut lines);
    }
    x = diagonal.x;
    for (r, &filter) in filters.iter().enumerate() {
        unfilter_part(filter, r, x - r..width, above, &mut lines);
    }
    true
}

/// An anti-diagonal of pixels: column `x` of the first row, column `x` − r of row r, and their neighbours.
struct Diagonal {
    x: usize,
    left: u8x16,
    above_left: u8x16,
}

impl Diagonal {
    /// Moves the diagonal to the right and unfilters its pixels, as long as whole blocks of `ROWS` columns are left.
    #[inline(always)]
    fn move_right<L: Lanes<ROWS>, const STEP: usize, const ROWS: usize>(
        &mut self,
        predict: impl Fn(u8x16, u8x16, u8x16) -> u8x16,
        above: &[[u8; STEP]],
        lines: &mut [&mut [[u8; STEP]]; ROWS],
    ) {
        let Diagonal {
            mut x,
            mut left,
            mut above_left,
        } = *self;
        while x + ROWS <= above.len() {
            let mut block = L::transpose(std::array::from_fn(|r| {
                load::<STEP, ROWS>(&lines[r][x - r..x - r + ROWS])
            }));
            for (vector, above) in block.iter_mut().zip(&above[x..x + ROWS]) {
                let up = L::shift(left) | first_lane(above);
                left = *vector + predict(left, up, above_left);
                above_left = up;
                *vector = left;
            }
            let block = L::transpose(block);
            for (r, line) in lines.iter_mut().enumerate() {
                store::<STEP, ROWS>(block[r], &mut line[x - r..x - r + ROWS]);
            }
            x += ROWS;
        }
        *self = Diagonal {
            x,
            left,
            above_left,
        };
    }
}

/// Unfilters some columns of row `r`, one pixel after another.
fn unfilter_part<const STEP: usize>(
    filter: u8,
    r: usize,
    columns: Range<usize>,
    above: &[[u8; STEP]],
    lines: &mut [&mut [[u8; STEP]]],
) {
    let (upper, lower) = lines.split_at_mut(r);
    let above = upper.last().map_or(above, |line| line);
    let (left, above_left) = (
        left_of(lower[0], columns.start),
        left_of(above, columns.start),
    );
    unfilter_from(
        left,
        above_left,
        filter,
        &above[columns.clone()],
        &mut lower[0][columns],
    );
}

/// The pixel to the left of column `x`; zeros at the start of the row.
fn left_of<const STEP: usize>(line: &[[u8; STEP]], x: usize) -> [u8; STEP] {
    x.checked_sub(1).map_or([0; STEP], |x| line[x])
}

/// The vector of one pixel of each row.
fn gather<const STEP: usize, const ROWS: usize>(pixel: impl Fn(usize) -> [u8; STEP]) -> u8x16 {
    let pixels: [[u8; STEP]; ROWS] = std::array::from_fn(pixel);
    load::<STEP, ROWS>(&pixels)
}

#[inline(always)]
fn first_lane<const STEP: usize>(pixel: &[u8; STEP]) -> u8x16 {
    from_halves([pixel_as_integer(pixel), 0])
}

/// A pixel as the low bytes of an integer.
#[inline(always)]
fn pixel_as_integer<const STEP: usize>(pixel: &[u8; STEP]) -> u64 {
    let mut wide = [0; 8];
    wide[..STEP].copy_from_slice(pixel);
    u64::from_le_bytes(wide)
}

/// `ROWS` pixels as a vector, each in a lane.
#[inline(always)]
fn load<const STEP: usize, const ROWS: usize>(pixels: &[[u8; STEP]]) -> u8x16 {
    match (STEP, pixels) {
        // Pixels narrower than their lanes go through integers, not through memory.
        (6, [p, q]) => from_halves([pixel_as_integer(p), pixel_as_integer(q)]),
        (3, [p, q, r, s]) => from_halves([
            pixel_as_integer(p) | pixel_as_integer(q) << 32,
            pixel_as_integer(r) | pixel_as_integer(s) << 32,
        ]),
        _ => {
            let mut bytes = [0; 16];
            bytes.copy_from_slice(pixels.as_flattened());
            u8x16::new(bytes)
        }
    }
}

#[inline(always)]
fn store<const STEP: usize, const ROWS: usize>(vector: u8x16, pixels: &mut [[u8; STEP]]) {
    let lane = 16 / ROWS;
    if STEP == lane {
        pixels
            .as_flattened_mut()
            .copy_from_slice(&vector.to_array());
        return;
    }
    let halves = halves(vector);
    for (i, pixel) in pixels.iter_mut().enumerate() {
        let bytes = (halves[i * lane / 8] >> (i * lane % 8 * 8)).to_le_bytes();
        pixel.copy_from_slice(&bytes[..STEP]);
    }
}
