//! Undoes the filters of one row, pixel by pixel (PNG specification, section 9.2). This is the definition of unfiltering;
//! `unfilter_simd` gives the same bytes faster.

pub const SUB: u8 = 1;
pub const UP: u8 = 2;
pub const AVERAGE: u8 = 3;
pub const PAETH: u8 = 4;

/// Unfilters a row from some pixel on: `left` and `above_left` are the pixels to the left of that pixel, in this row and in the
/// row above.
#[inline(always)]
pub fn unfilter_from<const STEP: usize>(
    mut left: [u8; STEP],
    mut above_left: [u8; STEP],
    filter: u8,
    above: &[[u8; STEP]],
    row: &mut [[u8; STEP]],
) {
    match filter {
        SUB => {
            for pixel in row {
                for i in 0..STEP {
                    left[i] = pixel[i].wrapping_add(left[i]);
                }
                *pixel = left;
            }
        }
        UP => {
            for (byte, above) in row.as_flattened_mut().iter_mut().zip(above.as_flattened()) {
                *byte = byte.wrapping_add(*above);
            }
        }
        AVERAGE => {
            for (pixel, above) in row.iter_mut().zip(above) {
                for i in 0..STEP {
                    let average = (u16::from(left[i]) + u16::from(above[i])) / 2;
                    left[i] = pixel[i].wrapping_add(average as u8);
                }
                *pixel = left;
            }
        }
        PAETH => {
            for (pixel, above) in row.iter_mut().zip(above) {
                for i in 0..STEP {
                    left[i] = pixel[i].wrapping_add(paeth(left[i], above[i], above_left[i]));
                }
                *pixel = left;
                above_left = *above;
            }
        }
        _ => {}
    }
}

/// The Paeth predictor of the pixels left (a), above (b) and above left (c).
///
/// Let lo and hi be the smaller and the larger of a and b, u = hi − c, and v = c − lo (0 where negative).
/// The distance of the estimate a+b−c is u from lo, v from hi, and |u − v| from c. So the nearest is lo if
/// 2u ≤ v, hi if 2v ≤ u, and otherwise c.
#[inline(always)]
fn paeth(a: u8, b: u8, c: u8) -> u8 {
    let (lo, hi) = (a.min(b), a.max(b));
    let u = hi.saturating_sub(c);
    let v = c.saturating_sub(lo);
    let up = if v <= u.saturating_sub(v) { u } else { 0 };
    let down = if u <= v.saturating_sub(u) { v } else { 0 };
    c.wrapping_add(up).wrapping_sub(down)
}
