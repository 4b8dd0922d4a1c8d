//! Whole numbers of 2⁻¹⁴⁹, the smallest step of 32-bit floating point, in 384 bits: sums and
//! differences of such numbers, and products with whole numbers, are exact.

use crate::image::number;
use std::cmp::Ordering;

/// Limbs of 64 bits, the least significant first: the numbers have 278 bits, and 2⁶⁴ of them added up
/// have 342.
const LIMBS: usize = 6;

/// A number in two's complement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fixed([u64; LIMBS]);

impl Fixed {
    /// The finite number with a key.
    pub fn of_key(key: u32) -> Fixed {
        let (negative, exponent, mantissa) = parts(key);
        let value = Fixed::of(mantissa.into(), exponent);
        match negative {
            true => value.negated(),
            false => value,
        }
    }

    /// `mantissa`·2^(`exponent` − 149), for exponents up to 285.
    pub(super) fn of(mantissa: u64, exponent: u32) -> Fixed {
        let mut limbs = [0; LIMBS];
        let (limb, shift) = ((exponent / 64) as usize, exponent % 64);
        let wide = u128::from(mantissa) << shift;
        limbs[limb] = wide as u64;
        limbs[limb + 1] = (wide >> 64) as u64;
        Fixed(limbs)
    }

    /// The sum, modulo 2³⁸⁴.
    pub fn plus(self, other: Fixed) -> Fixed {
        let mut carry = false;
        let mut limbs = [0; LIMBS];
        for (sum, (a, b)) in limbs.iter_mut().zip(self.0.into_iter().zip(other.0)) {
            let (low, first) = a.overflowing_add(b);
            let (low, second) = low.overflowing_add(carry.into());
            (*sum, carry) = (low, first || second);
        }
        Fixed(limbs)
    }

    /// The number with the other sign.
    pub fn negated(self) -> Fixed {
        let one = Fixed::of(1, 0);
        Fixed(self.0.map(|limb| !limb)).plus(one)
    }

    /// The difference.
    pub fn minus(self, other: Fixed) -> Fixed {
        self.plus(other.negated())
    }

    /// The product of a number from 0 on and a factor, modulo 2³⁸⁴.
    pub fn times(self, factor: u64) -> Fixed {
        let mut carry = 0;
        Fixed(self.0.map(|limb| {
            let wide = u128::from(limb) * u128::from(factor) + carry;
            carry = wide >> 64;
            wide as u64
        }))
    }

    /// Whether it is below 0.
    pub fn is_negative(self) -> bool {
        self.0[LIMBS - 1] >> 63 == 1
    }

    /// The nearest f64; of two as near, the one whose last bit is 0.
    pub fn to_f64(self) -> f64 {
        let (sign, magnitude) = match self.is_negative() {
            true => (-1.0, self.negated()),
            false => (1.0, self),
        };
        let Some(top) = magnitude.0.iter().rposition(|&limb| limb != 0) else {
            return 0.0;
        };
        // The highest 64 bits, of which the last also tells whether there is more below: f64 rounds
        // by it.
        let high = magnitude.0[top];
        let shift = high.leading_zeros();
        let next = if top > 0 { magnitude.0[top - 1] } else { 0 };
        let (below, rest) = match shift {
            0 => (0, next),
            _ => (next >> (64 - shift), next << shift),
        };
        let more = rest != 0
            || magnitude.0[..top.saturating_sub(1)]
                .iter()
                .any(|&limb| limb != 0);
        let bits = (high << shift | below) | u64::from(more);
        let exponent = 64 * top as i32 - shift as i32 - 149;
        // Both factors are exact, and the product is far from the limits of f64.
        sign * bits as f64 * f64::from_bits(((1023 + exponent) as u64) << 52)
    }
}

impl PartialOrd for Fixed {
    fn partial_cmp(&self, other: &Fixed) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Fixed {
    fn cmp(&self, other: &Fixed) -> Ordering {
        let sign = other.is_negative().cmp(&self.is_negative());
        sign.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

/// Whether the finite number with a key is below 0, and its exponent e and mantissa m: it is
/// ±m·2^(e − 149), with e ≤ 253 and m < 2²⁴.
#[inline(always)]
pub(super) fn parts(key: u32) -> (bool, u32, u32) {
    let bits = number::bits(key);
    let (exponent, fraction) = (bits >> 23 & 0xff, bits & 0x7f_ffff);
    // Numbers without an exponent have the step of those with the smallest.
    let mantissa = fraction | u32::from(exponent > 0) << 23;
    (bits >> 31 == 1, exponent.saturating_sub(1), mantissa)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: f32) -> Fixed {
        Fixed::of_key(number::key(value.to_bits()))
    }

    #[test]
    fn every_number_comes_back() {
        let mut values = 0;
        for pattern in (0..=u32::MAX)
            .step_by(9973)
            .chain([0, 1, 1 << 31, 0x8000_0001])
        {
            let value = f32::from_bits(pattern);
            if value.is_finite() {
                assert_eq!(of(value).to_f64(), f64::from(value), "{value:e}");
                values += 1;
            }
        }
        assert!(values > 400_000);
    }

    #[test]
    fn sums_differences_and_order() {
        let (max, tiny) = (f32::MAX, f32::from_bits(1));
        let all = of(max).minus(of(-max));
        assert_eq!(all.to_f64(), 2.0 * f64::from(max));
        assert_eq!(all.plus(of(tiny)).minus(all), of(tiny));
        assert_eq!(of(-0.0), of(0.0));
        assert!(of(-1.0) < of(-tiny) && of(-tiny) < of(0.0) && of(0.0) < of(tiny));
        assert_eq!(
            of(tiny).times(1 << 40).to_f64(),
            f64::from(tiny) * 2f64.powi(40)
        );
    }

    /// 2⁵³ + 1 lies between two f64; what is far below decides.
    #[test]
    fn rounding_looks_at_every_bit() {
        let (big, one, tiny) = (of(2f32.powi(53)), of(1.0), of(f32::from_bits(1)));
        let between = big.plus(one);
        assert_eq!(between.to_f64(), 2f64.powi(53));
        assert_eq!(between.plus(tiny).to_f64(), 2f64.powi(53) + 2.0);
        assert_eq!(between.minus(tiny).to_f64(), 2f64.powi(53));
        assert_eq!(between.plus(tiny).negated().to_f64(), -2f64.powi(53) - 2.0);
    }
}
