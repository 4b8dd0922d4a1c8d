//! Reverses the filters of several rows at once.
//!
//! Average and Paeth chain every pixel to the one on its left, so a row alone leaves a vector unit
//! idle. But a pixel needs only its left, upper and upper left neighbours: all pixels of an
//! anti-diagonal are independent. A vector holds one pixel of each of several rows, each row one
//! pixel behind the row above it, and moves to the right; its upper neighbours are then its own
//! last result, shifted by one lane. Blocks of pixels are transposed before and after.

use super::unfilter_pixels::{AVERAGE, PAETH, SUB, UP, unfilter_from};
use crate::image::simd::{Level, level};
use wide::{u8x16, u16x8, u32x4, u64x2};

/// Rows that `unfilter_group` takes at once for pixels of `step` bytes: as many as fit 16 bytes.
pub fn rows_at_once(step: usize) -> usize {
    16 / step.next_power_of_two()
}

/// Unfilters rows of pixels of `step` bytes, each by its filter type; `above` is the finished row
/// before them. Returns false and does nothing if they are not `rows_at_once` rows, or too short,
/// or if no vectors are to be used.
pub fn unfilter_group(filters: &[u8], step: usize, above: &[u8], rows: &mut [u8]) -> bool {
    match step {
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

/// Reverses Sub in one row of pixels of `STEP` bytes, as far as whole vectors go, and returns the
/// end; 0 if pixels do not fill a vector, or no vectors are to be used.
///
/// A prefix sum inside a vector adds it to itself shifted by 1, 2, 4 … pixels; only the addition of
/// the previous vector's last pixel has to wait for that vector.
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
        8 => of_halves([last; 2]),
        4 => bytemuck::cast([((last >> 32) as u32).to_le(); 4]),
        2 => bytemuck::cast([((last >> 48) as u16).to_le(); 8]),
        _ => u8x16::splat((last >> 56) as u8),
    }
}

/// A vector as two integers, its first byte the lowest, whatever this machine's byte order.
#[inline(always)]
fn halves(vector: u8x16) -> [u64; 2] {
    bytemuck::cast::<_, [u64; 2]>(vector).map(u64::from_le)
}

/// The vector of these halves.
#[inline(always)]
fn of_halves(halves: [u64; 2]) -> u8x16 {
    bytemuck::cast(halves.map(u64::to_le))
}

/// A vector as `ROWS` lanes, one of each row.
trait Lanes<const ROWS: usize> {
    /// Turns a vector of consecutive pixels per row into a vector of rows per pixel, or back.
    fn transpose(block: [u8x16; ROWS]) -> [u8x16; ROWS];

    /// Moves each lane to that of the next row; lane 0 becomes 0.
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
        of_halves((moved | carried).to_array())
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

/// For each filter type but None, which lanes have it.
struct Choice {
    sub: u8x16,
    up: u8x16,
    average: u8x16,
    paeth: u8x16,
}

impl Choice {
    fn of<const ROWS: usize>(filters: &[u8]) -> Choice {
        let lanes = |filter: u8| {
            let mut mask = [0; 16];
            for (lane, &of) in mask.chunks_exact_mut(16 / ROWS).zip(filters) {
                lane.fill(if of == filter { 0xFF } else { 0 });
            }
            u8x16::new(mask)
        };
        Choice {
            sub: lanes(SUB),
            up: lanes(UP),
            average: lanes(AVERAGE),
            paeth: lanes(PAETH),
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

/// The Paeth predictor, as in `unfilter`.
#[inline(always)]
fn paeth(a: u8x16, b: u8x16, c: u8x16) -> u8x16 {
    let u = a.max(b).saturating_sub(c);
    let v = c.saturating_sub(a.min(b));
    let zero = u8x16::splat(0);
    let up = u & v.saturating_sub(u.saturating_sub(v)).simd_eq(zero);
    let down = v & u.saturating_sub(v.saturating_sub(u)).simd_eq(zero);
    c + up - down
}

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

    // Row r starts r pixels behind the first one.
    for (r, &filter) in filters.iter().enumerate() {
        finish(filter, r, 0, ROWS - 1 - r, above, &mut lines);
    }
    let mut x = ROWS - 1;
    let left = gather::<STEP, ROWS>(|r| before(lines[r], x - r));
    let above_left = gather::<STEP, ROWS>(|r| match r {
        0 => before(above, x),
        r => before(lines[r - 1], x - r),
    });
    if filters.iter().all(|&filter| filter == PAETH) {
        x = walk::<L, STEP, ROWS>(paeth, x, left, above_left, above, &mut lines);
    } else {
        let choice = Choice::of::<ROWS>(filters);
        let predict = |a, b, c| choice.predict(a, b, c);
        x = walk::<L, STEP, ROWS>(predict, x, left, above_left, above, &mut lines);
    }
    for (r, &filter) in filters.iter().enumerate() {
        finish(filter, r, x - r, width, above, &mut lines);
    }
    true
}

/// Processes whole blocks from column `x` of the first row on; returns the column reached.
#[inline(always)]
fn walk<L: Lanes<ROWS>, const STEP: usize, const ROWS: usize>(
    predict: impl Fn(u8x16, u8x16, u8x16) -> u8x16,
    mut x: usize,
    mut left: u8x16,
    mut above_left: u8x16,
    above: &[[u8; STEP]],
    lines: &mut [&mut [[u8; STEP]]; ROWS],
) -> usize {
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
    x
}

/// Unfilters pixels `from..to` of row `r`, one after another.
fn finish<const STEP: usize>(
    filter: u8,
    r: usize,
    from: usize,
    to: usize,
    above: &[[u8; STEP]],
    lines: &mut [&mut [[u8; STEP]]],
) {
    let (upper, lower) = lines.split_at_mut(r);
    let above = upper.last().map_or(above, |line| line);
    let (left, above_left) = (before(lower[0], from), before(above, from));
    unfilter_from(
        left,
        above_left,
        filter,
        &above[from..to],
        &mut lower[0][from..to],
    );
}

/// The pixel left of column `x`.
fn before<const STEP: usize>(line: &[[u8; STEP]], x: usize) -> [u8; STEP] {
    x.checked_sub(1).map_or([0; STEP], |x| line[x])
}

/// The vector of one pixel of each row.
fn gather<const STEP: usize, const ROWS: usize>(pixel: impl Fn(usize) -> [u8; STEP]) -> u8x16 {
    let pixels: [[u8; STEP]; ROWS] = std::array::from_fn(pixel);
    load::<STEP, ROWS>(&pixels)
}

#[inline(always)]
fn first_lane<const STEP: usize>(pixel: &[u8; STEP]) -> u8x16 {
    of_halves([widen(pixel), 0])
}

/// A pixel as the low bytes of an integer.
#[inline(always)]
fn widen<const STEP: usize>(pixel: &[u8; STEP]) -> u64 {
    let mut wide = [0; 8];
    wide[..STEP].copy_from_slice(pixel);
    u64::from_le_bytes(wide)
}

/// `ROWS` pixels as a vector, each in a lane.
#[inline(always)]
fn load<const STEP: usize, const ROWS: usize>(pixels: &[[u8; STEP]]) -> u8x16 {
    match (STEP, pixels) {
        // Pixels narrower than their lanes go through integers, not through memory.
        (6, [p, q]) => of_halves([widen(p), widen(q)]),
        (3, [p, q, r, s]) => of_halves([widen(p) | widen(q) << 32, widen(r) | widen(s) << 32]),
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
