//! Whole numbers of the smallest step of floating point, in as many bits as their sums take: of 2⁻¹⁴⁹ for 32
//! bits, of 2⁻¹⁰⁷⁴ for 64. Sums and differences of such numbers, and products with whole numbers, are exact.

use crate::image::number;
use std::cmp::Ordering;

/// A number in two's complement, in limbs of 64 bits, the least significant first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limbs<const LIMBS: usize>([u64; LIMBS]);

/// A number of 32-bit steps: samples have 278 bits, and 2⁶⁴ of them added up have 342.
pub type Fixed = Limbs<6>;

/// A number of 64-bit steps: samples have 2099 bits, and 2⁶⁴ of them added up have 2163.
pub type Fixed64 = Limbs<34>;

impl<const LIMBS: usize> Default for Limbs<LIMBS> {
    fn default() -> Self {
        Limbs([0; LIMBS])
    }
}

impl Fixed64 {
    /// A finite number.
    pub fn from_f64(value: f64) -> Fixed64 {
        let (negative, exponent, mantissa) = parts64(value);
        let number = Fixed64::from_parts(mantissa, exponent);
        if negative { number.negated() } else { number }
    }

    /// `whole`·2^(`exponent` − 1074), for exponents up to 2045.
    pub(super) fn from_integer(whole: i128, exponent: u32) -> Fixed64 {
        let magnitude = whole.unsigned_abs();
        let high = Fixed64::from_parts((magnitude >> 64) as u64, exponent + 64);
        let number = high.plus(Fixed64::from_parts(magnitude as u64, exponent));
        if whole < 0 { number.negated() } else { number }
    }
}

impl Fixed {
    /// The finite number with a key.
    pub fn from_key(key: u32) -> Fixed {
        let (negative, exponent, mantissa) = parts(key);
        let value = Fixed::from_parts(mantissa.into(), exponent);
        if negative { value.negated() } else { value }
    }
}

impl<const LIMBS: usize> Limbs<LIMBS> {
    /// The exponent of the step, without its sign.
    const STEP: i32 = if LIMBS == 6 { 149 } else { 1074 };

    /// `mantissa` times 2^`exponent` steps, where the last limb stays empty.
    pub(super) fn from_parts(mantissa: u64, exponent: u32) -> Self {
        let mut limbs = [0; LIMBS];
        let (limb, shift) = ((exponent / 64) as usize, exponent % 64);
        let wide = u128::from(mantissa) << shift;
        limbs[limb] = wide as u64;
        limbs[limb + 1] = (wide >> 64) as u64;
        Limbs(limbs)
    }

    /// The sum, modulo the bits of the limbs.
    pub fn plus(self, other: Self) -> Self {
        let mut carry = false;
        let mut limbs = [0; LIMBS];
        for (sum, (a, b)) in limbs.iter_mut().zip(self.0.into_iter().zip(other.0)) {
            let (low, first) = a.overflowing_add(b);
            let (low, second) = low.overflowing_add(carry.into());
            (*sum, carry) = (low, first || second);
        }
        Limbs(limbs)
    }

    /// The number with the other sign.
    pub fn negated(self) -> Self {
        let one = Self::from_parts(1, 0);
        Limbs(self.0.map(|limb| !limb)).plus(one)
    }

    /// The difference.
    pub fn minus(self, other: Self) -> Self {
        self.plus(other.negated())
    }

    /// The product of a number from 0 on and a factor, modulo the bits of the limbs.
    pub fn times(self, factor: u64) -> Self {
        let mut carry = 0;
        Limbs(self.0.map(|limb| {
            let wide = u128::from(limb) * u128::from(factor) + carry;
            carry = wide >> 64;
            wide as u64
        }))
    }

    /// Whether it is below 0.
    pub fn is_negative(self) -> bool {
        self.0[LIMBS - 1] >> 63 == 1
    }

    /// The nearest f64; of two as near, the one whose last bit is 0. Infinity beyond its range.
    pub fn to_f64(self) -> f64 {
        let (sign, magnitude) = if self.is_negative() {
            (-1.0, self.negated())
        } else {
            (1.0, self)
        };
        let Some(top) = magnitude.0.iter().rposition(|&limb| limb != 0) else {
            return 0.0;
        };
        // As many steps of 2⁻¹⁰⁷⁴ are an f64 whose bits they are.
        if Self::STEP == 1074 && top == 0 && magnitude.0[0] < 1 << 53 {
            return sign * f64::from_bits(magnitude.0[0]);
        }
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
        let exponent = 64 * top as i32 - shift as i32 - Self::STEP;
        // From 1/2 to 1, by two powers of two that f64 has: exact, except for what is infinite.
        let mantissa = bits as f64 * power(-64);
        let half = (exponent + 64) / 2;
        sign * mantissa * power(half) * power(exponent + 64 - half)
    }
}

/// 2 to an exponent from −1022 to 1023.
fn power(exponent: i32) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

impl<const LIMBS: usize> PartialOrd for Limbs<LIMBS> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<const LIMBS: usize> Ord for Limbs<LIMBS> {
    fn cmp(&self, other: &Self) -> Ordering {
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

/// As `parts`, of a number of 64 bits: it is ±m·2^(e − 1074), with e ≤ 2045 and m < 2⁵³.
#[inline(always)]
pub(super) fn parts64(value: f64) -> (bool, u32, u64) {
    let bits = value.to_bits();
    let (exponent, fraction) = ((bits >> 52 & 0x7ff) as u32, bits & ((1 << 52) - 1));
    let mantissa = fraction | u64::from(exponent > 0) << 52;
    (bits >> 63 == 1, exponent.saturating_sub(1), mantissa)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_64_bits_comes_back() {
        let patterns = (0..20_000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let ends = [0.0, f64::MAX, f64::MIN, f64::MIN_POSITIVE, 1.0, -0.1].map(f64::to_bits);
        let small = [
            1,
            2,
            (1 << 52) - 1,
            1 << 52,
            (1 << 53) - 1,
            1 << 53,
            (1 << 53) + 1,
        ];
        for pattern in patterns.chain(ends).chain(small) {
            let value = f64::from_bits(pattern);
            if value.is_finite() {
                assert_eq!(Fixed64::from_f64(value).to_f64(), value, "{value:e}");
            }
        }
        let max = Fixed64::from_f64(f64::MAX);
        assert_eq!(max.plus(max).to_f64(), f64::INFINITY);
        assert_eq!(max.plus(max).minus(max).to_f64(), f64::MAX);
        let whole = Fixed64::from_integer(-(1 << 100) - 1, 1074);
        assert_eq!(whole.plus(Fixed64::from_f64(2f64.powi(100))).to_f64(), -1.0);
        // Half a step of the last bit: to the even one, unless something is below.
        let one = Fixed64::from_f64(1.0);
        let half = Fixed64::from_f64(f64::EPSILON / 2.0);
        let least = Fixed64::from_f64(f64::from_bits(1));
        assert_eq!(one.plus(half).to_f64(), 1.0);
        assert_eq!(one.plus(half).plus(least).to_f64(), 1.0 + f64::EPSILON);
    }

    fn fixed(value: f32) -> Fixed {
        Fixed::from_key(number::key(value.to_bits()))
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
                assert_eq!(fixed(value).to_f64(), f64::from(value), "{value:e}");
                values += 1;
            }
        }
        assert!(values > 400_000);
    }

    #[test]
    fn sums_differences_and_order() {
        let (max, tiny) = (f32::MAX, f32::from_bits(1));
        let all = fixed(max).minus(fixed(-max));
        assert_eq!(all.to_f64(), 2.0 * f64::from(max));
        assert_eq!(all.plus(fixed(tiny)).minus(all), fixed(tiny));
        assert_eq!(fixed(-0.0), fixed(0.0));
        assert!(
            fixed(-1.0) < fixed(-tiny) && fixed(-tiny) < fixed(0.0) && fixed(0.0) < fixed(tiny)
        );
        assert_eq!(
            fixed(tiny).times(1 << 40).to_f64(),
            f64::from(tiny) * 2f64.powi(40)
        );
    }

    /// 2⁵³ + 1 lies between two f64; what is far below decides.
    #[test]
    fn rounding_looks_at_every_bit() {
        let (big, one, tiny) = (fixed(2f32.powi(53)), fixed(1.0), fixed(f32::from_bits(1)));
        let between = big.plus(one);
        assert_eq!(between.to_f64(), 2f64.powi(53));
        assert_eq!(between.plus(tiny).to_f64(), 2f64.powi(53) + 2.0);
        assert_eq!(between.minus(tiny).to_f64(), 2f64.powi(53));
        assert_eq!(between.plus(tiny).negated().to_f64(), -2f64.powi(53) - 2.0);
    }
}
