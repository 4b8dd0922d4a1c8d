//! HCOMPRESS_1 (standard, section 10.4.4; White, Postman and Lattanzi 1992): the H-transform of a tile, a two-dimensional Haar
//! transform of integers, whose coefficients are coded as quadtrees of their bit planes.

use super::rice::Bits;
use anyhow::{Result, bail, ensure};
use std::num::Wrapping;

/// The first bytes of the data.
const MAGIC: u32 = 0xDD99;
/// More planes than the coefficients of 32-bit samples have.
const MOST_PLANES: u32 = 62;

/// A bit plane that is stored without a tree, or with one.
const DIRECT: u32 = 0;
const TREE: u32 = 15;

/// Decodes a tile of this shape, whose axes but two have the length 1.
///
/// # Errors
/// Damage, smoothing, and a tile of other than two axes.
pub fn decode(packed: &[u8], smooth: bool, shape: &[usize], out: &mut [i32]) -> Result<()> {
    let sides: Vec<usize> = shape.iter().copied().filter(|&side| side > 1).collect();
    let (width, height) = match sides[..] {
        [width, height] => (width, height),
        _ => (shape[0], out.len() / shape[0]),
    };
    ensure!(
        width * height == out.len() && sides.len() <= 2,
        "HCOMPRESS_1 of tiles of more than two axes is not supported: funpack unpacks the file"
    );
    let mut bits = Bits::new(packed);
    ensure!(
        bits.take(16)? == MAGIC,
        "its data do not begin as HCOMPRESS_1 does"
    );
    let (rows, columns) = (bits.take(32)? as usize, bits.take(32)? as usize);
    ensure!(
        (columns, rows) == (width, height),
        "its data have {columns}×{rows} samples instead of {width}×{height}"
    );
    let scale = i64::from(bits.take(32)? as i32);
    // Smoothing is lossy, and changes nothing where no digits were left out.
    ensure!(
        !smooth || scale <= 1,
        "HCOMPRESS_1 with smoothing is not supported: funpack unpacks the file"
    );
    let sum = (u64::from(bits.take(32)?) << 32 | u64::from(bits.take(32)?)) as i64;
    let mut planes = [0; 3];
    for count in &mut planes {
        *count = bits.take(8)?;
        ensure!(*count <= MOST_PLANES, "its data have {count} bit planes");
    }
    let mut coefficients = vec![0i64; out.len()];
    let (left, upper) = (width.div_ceil(2), height.div_ceil(2));
    for (start, columns, rows, planes) in [
        (0, left, upper, planes[0]),
        (left, width / 2, upper, planes[1]),
        (width * upper, left, height / 2, planes[1]),
        (width * upper + left, width / 2, height / 2, planes[2]),
    ] {
        if columns > 0 && rows > 0 {
            let mut quadrant = Quadrant {
                coefficients: &mut coefficients[start..],
                stride: width,
                columns,
                rows,
            };
            quadrant.read(&mut bits, planes)?;
        }
    }
    ensure!(
        bits.take(4)? == 0,
        "its bit planes do not end where they should"
    );
    bits.align();
    for coefficient in coefficients
        .iter_mut()
        .filter(|coefficient| **coefficient != 0)
    {
        if bits.take(1)? == 1 {
            *coefficient = -*coefficient;
        }
    }
    coefficients[0] = sum;
    let mut coefficients: Vec<Wrapping<i64>> = (coefficients.iter())
        .map(|&coefficient| Wrapping(coefficient) * Wrapping(scale.max(1)))
        .collect();
    invert(&mut coefficients, width, height);
    for (out, sample) in out.iter_mut().zip(&coefficients) {
        *out = sample.0.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
    }
    Ok(())
}

/// A quarter of the coefficients, without their signs.
struct Quadrant<'c> {
    coefficients: &'c mut [i64],
    /// Coefficients from a row to the next.
    stride: usize,
    columns: usize,
    rows: usize,
}

impl Quadrant<'_> {
    /// Reads bit planes, the highest first.
    fn read(&mut self, bits: &mut Bits, planes: u32) -> Result<()> {
        let levels = self.columns.max(self.rows).next_power_of_two().ilog2();
        for plane in (0..planes).rev() {
            let codes = match bits.take(4)? {
                DIRECT => {
                    let count = self.columns.div_ceil(2) * self.rows.div_ceil(2);
                    (0..count).map(|_| bits.take(4)).collect::<Result<_>>()?
                }
                TREE => self.tree(bits, levels)?,
                other => bail!("a bit plane of it has an unknown form, {other}"),
            };
            let size = (self.columns, self.rows);
            for_each_bit(&codes, size, |column, row, bit| {
                self.coefficients[row * self.stride + column] |= i64::from(bit) << plane;
            });
        }
        Ok(())
    }

    /// The codes of the squares of two by two coefficients, from the root of their tree on.
    fn tree(&self, bits: &mut Bits, levels: u32) -> Result<Vec<u32>> {
        let mut codes = vec![code(bits)?];
        for level in (1..levels).rev() {
            let side = |length: usize| length.div_ceil(1 << level);
            let size = (side(self.columns), side(self.rows));
            let mut next = vec![0; size.0 * size.1];
            for_each_bit(&codes, size, |column, row, bit| {
                next[row * size.0 + column] = bit
            });
            for child in next.iter_mut().rev().filter(|child| **child != 0) {
                *child = code(bits)?;
            }
            codes = next;
        }
        Ok(codes)
    }
}

/// Gives the place and the bit of each of so many columns and rows, of which a code has those of two by two.
fn for_each_bit(codes: &[u32], size: (usize, usize), mut sink: impl FnMut(usize, usize, u32)) {
    let (columns, rows) = size;
    for (upper, codes) in codes.chunks_exact(columns.div_ceil(2)).enumerate() {
        for (left, code) in codes.iter().enumerate().filter(|(_, code)| **code != 0) {
            for place in 0..4 {
                let (column, row) = (2 * left + place % 2, 2 * upper + place / 2);
                if column < columns && row < rows {
                    sink(column, row, code >> (3 - place) & 1);
                }
            }
        }
    }
}

/// The next of the 16 codes of 3 to 6 bits.
fn code(bits: &mut Bits) -> Result<u32> {
    let first = bits.take(3)?;
    if first < 4 {
        return Ok(1 << first);
    }
    let code = match first << 1 | bits.take(1)? {
        8 => 3,
        9 => 5,
        10 => 10,
        11 => 12,
        12 => 15,
        13 => [6, 7][bits.take(1)? as usize],
        14 => [9, 11][bits.take(1)? as usize],
        _ if bits.take(1)? == 0 => 13,
        _ => [0, 14][bits.take(1)? as usize],
    };
    Ok(code)
}

/// Inverts the transform, from the coefficient of the whole tile to its samples.
fn invert(coefficients: &mut [Wrapping<i64>], width: usize, height: usize) {
    let levels = width.max(height).next_power_of_two().ilog2();
    let mut spare = vec![Wrapping(0); width.max(height)];
    coefficients[0] = rounded(coefficients[0], 1 << (levels + 1));
    for level in (0..levels).rev() {
        let (columns, rows) = (width.div_ceil(1 << level), height.div_ceil(1 << level));
        for row in coefficients.chunks_exact_mut(width).take(rows) {
            interleave(row, columns, 1, &mut spare);
        }
        for column in 0..columns {
            interleave(&mut coefficients[column..], rows, width, &mut spare);
        }
        for row in (0..rows).step_by(2) {
            for column in (0..columns).step_by(2) {
                let at = row * width + column;
                let (has_right, has_lower) = (column + 1 < columns, row + 1 < rows);
                let mut square = [Wrapping(0); 4];
                let places = [
                    Some(at),
                    has_right.then_some(at + 1),
                    has_lower.then_some(at + width),
                    (has_right && has_lower).then_some(at + width + 1),
                ];
                for (value, place) in square.iter_mut().zip(places) {
                    *value = place.map_or(Wrapping(0), |place| coefficients[place]);
                }
                let samples = inverse_square(square, level);
                for (value, place) in samples.into_iter().zip(places) {
                    if let Some(place) = place {
                        coefficients[place] = value;
                    }
                }
            }
        }
    }
}

/// The four values of a square from its sum, its differences across and down, and the difference of those. Sums have more digits
/// than differences need; the lowest ones of the differences are those of the sum.
fn inverse_square([sum, across, down, both]: [Wrapping<i64>; 4], level: u32) -> [Wrapping<i64>; 4] {
    let zero = Wrapping(0);
    let (bit, next) = (1i64 << level, 2i64 << level);
    let (across, down, both) = (
        rounded(across, next),
        rounded(down, next),
        rounded(both, bit),
    );
    let low = both & Wrapping(bit);
    let toward = |value: Wrapping<i64>| {
        if value >= zero {
            value - low
        } else {
            value + low
        }
    };
    let (across, down) = (toward(across), toward(down));
    let high = (both ^ across ^ down) & Wrapping(next);
    let sum = if sum >= zero {
        sum + low - high
    } else if low == zero {
        sum + high
    } else {
        sum + low - high
    };
    let shift = if level == 0 { 2 } else { 1 };
    [
        (sum - down - across + both) >> shift,
        (sum - down + across - both) >> shift,
        (sum + down - across - both) >> shift,
        (sum + down + across + both) >> shift,
    ]
}

/// The nearest multiple of a power of two; halves are rounded up.
fn rounded(value: Wrapping<i64>, unit: i64) -> Wrapping<i64> {
    let half = unit >> 1;
    let half = if value >= Wrapping(0) {
        half
    } else {
        (half - 1).max(0)
    };
    (value + Wrapping(half)) & Wrapping(-unit)
}

/// Moves the first half of a row or column to its even places and the second to its odd ones.
fn interleave(
    values: &mut [Wrapping<i64>],
    length: usize,
    stride: usize,
    spare: &mut [Wrapping<i64>],
) {
    let half = length.div_ceil(2);
    for (index, value) in spare[..length].iter_mut().enumerate() {
        *value = values[stride * (index / 2 + if index % 2 == 0 { 0 } else { half })];
    }
    for (index, value) in spare[..length].iter().enumerate() {
        values[stride * index] = *value;
    }
}
