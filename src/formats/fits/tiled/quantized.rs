//! Floating-point samples that were rounded to integers, of which each tile has a scale and a zero (standard, section
//! 10.2). Before rounding, a number of a fixed random sequence may have been subtracted from each sample (dithering).

use anyhow::{Result, bail};
use std::sync::LazyLock;

/// The numbers of the sequence (standard, appendix I).
const COUNT: usize = 10_000;

static SEQUENCE: LazyLock<Vec<f32>> = LazyLock::new(|| {
    let mut seed = 1u64;
    (0..COUNT)
        .map(|_| {
            seed = seed * 16_807 % 2_147_483_647;
            (seed as f64 / 2_147_483_647.0) as f32
        })
        .collect()
});

/// The integer that stands for exactly 0 with the second method of dithering.
const ZERO: i32 = -2_147_483_646;

/// How the samples of a file were rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// To the nearest integer.
    Plain,
    /// After a number of the sequence was subtracted; the first tile starts at this place, and zeros may have an integer of
    /// their own.
    Dithered { start: i64, keeps_zero: bool },
}

impl Method {
    /// The method with a name (ZQUANTIZ), and the place at which its sequence starts (ZDITHER0).
    ///
    /// # Errors
    /// A name that is none of the standard's.
    pub fn new(name: Option<&str>, start: Option<i64>) -> Result<Method> {
        let dithered = |keeps_zero| Method::Dithered {
            start: start.unwrap_or(1),
            keeps_zero,
        };
        Ok(match name {
            None | Some("NO_DITHER") => Method::Plain,
            Some("SUBTRACTIVE_DITHER_1") => dithered(false),
            Some("SUBTRACTIVE_DITHER_2") => dithered(true),
            Some(other) => bail!(
                "floating point quantized by the method {other} is not supported (NO_DITHER, SUBTRACTIVE_DITHER_1 and \
                 SUBTRACTIVE_DITHER_2 are; funpack unpacks the file)"
            ),
        })
    }
}

/// The scale of a tile: `sample = integer × scale + zero`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    pub scale: f64,
    pub zero: f64,
    /// The integer that stands for no value, NaN.
    pub blank: Option<i32>,
}

/// Restores the samples of the tile with this number, counted from 0, and gives each to `sink`.
pub fn restore(
    integers: &[i32],
    scale: Scale,
    method: Method,
    tile: u64,
    mut sink: impl FnMut(f64),
) {
    let is_blank = |integer: i32| scale.blank == Some(integer);
    match method {
        Method::Plain => integers.iter().for_each(|&integer| {
            sink(if is_blank(integer) {
                f64::NAN
            } else {
                f64::from(integer) * scale.scale + scale.zero
            });
        }),
        Method::Dithered { start, keeps_zero } => {
            let first = (start.wrapping_sub(1).wrapping_add(tile as i64)).rem_euclid(COUNT as i64);
            let mut numbers = Numbers::new(first as usize);
            for &integer in integers {
                let number = f64::from(numbers.next());
                sink(if is_blank(integer) {
                    f64::NAN
                } else if keeps_zero && integer == ZERO {
                    0.0
                } else {
                    // In this order, so that the result is rounded as other readers round it.
                    (f64::from(integer) - number + 0.5) * scale.scale + scale.zero
                });
            }
        }
    }
}

/// The numbers for the samples of a tile: from a random place to the end of the sequence, and again.
struct Numbers {
    /// The number that decides the place.
    seed: usize,
    next: usize,
}

impl Numbers {
    fn new(seed: usize) -> Numbers {
        Numbers {
            seed,
            next: (SEQUENCE[seed] * 500.0) as usize,
        }
    }

    #[inline(always)]
    fn next(&mut self) -> f32 {
        let number = SEQUENCE[self.next];
        self.next += 1;
        if self.next == COUNT {
            *self = Numbers::new((self.seed + 1) % COUNT);
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seed after the last number is that of the standard (appendix I).
    #[test]
    fn the_sequence_is_that_of_the_standard() {
        let last = f64::from(SEQUENCE[COUNT - 1]);
        assert_eq!(last as f32, (1_043_618_065.0 / 2_147_483_647.0) as f32);
        assert_eq!(SEQUENCE[0], (16_807.0 / 2_147_483_647.0) as f32);
        let next = Numbers::new(0);
        assert_eq!(next.next, 0);
    }
}
