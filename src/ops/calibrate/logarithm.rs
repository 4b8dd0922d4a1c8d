//! The natural logarithm, by the same steps in doubles on every host. Each step is rounded to nearest as IEEE 754 says; none is
//! fused with another, and no library is asked.
//!
//! r = 2^k·m with m from √½ to √2. With s = (m − 1)/(m + 1), ln m = 2·(s + s³/3 + s⁵/5 + …), of which the terms up to s²³/23
//! are added: |s| < 0.172, so the terms that are left out are below 2⁻⁶⁵ of the sum. ln 2 is the sum of two doubles, of which
//! the first has 42 bits, so that its product with k is exact. The result differs from the logarithm by less than 2⁻⁵⁰ of it:
//! m − 1 is exact, and k·ln 2 and ln m do not cancel, since |ln m| ≤ ln 2 / 2. Rounded to 32 bits, it is the correctly rounded
//! logarithm, unless that is within 2⁻²⁶ of a step of the middle between two numbers.

/// ln 2 rounded down to 42 bits, and the rest of it.
const LN_2_PARTS: [f64; 2] = [
    f64::from_bits(0x3fe6_2e42_fefa_3800),
    f64::from_bits(0x3d2e_f357_93c7_6730),
];

/// The bits of √½, above which the exponent of a mantissa is that of the next power of two.
const ROOT_OF_HALF: u64 = 0x3fe6_a09e_667f_3bcd;

/// The bits of the mantissa of a double.
const MANTISSA: u32 = 52;

/// ln r for a double r ≥ 2⁻¹⁰²² (not subnormal). ln 0 is −∞, ln ∞ is ∞, and NaN stays NaN.
#[inline(always)]
pub(super) fn ln(r: f64) -> f64 {
    // The difference to √½ in steps of the mantissa, whose upper part is the exponent k.
    let above = r.to_bits().wrapping_sub(ROOT_OF_HALF);
    let k = above as i64 >> MANTISSA;
    let m = f64::from_bits(r.to_bits().wrapping_sub((k as u64) << MANTISSA));
    let k = k as i32 as f64;
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let mut sum = 1.0 / 23.0;
    for odd in [21.0, 19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0] {
        sum = sum * z + 1.0 / odd;
    }
    let of_mantissa = 2.0 * s + 2.0 * s * (z * sum);
    let ln = k * LN_2_PARTS[0] + (of_mantissa + k * LN_2_PARTS[1]);
    let ln = if r == 0.0 { f64::NEG_INFINITY } else { ln };
    if r < f64::INFINITY { ln } else { r }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::{FRAC_1_SQRT_2, LN_2, LN_10};

    #[test]
    fn constants_are_what_they_are_named() {
        assert_eq!(f64::from_bits(ROOT_OF_HALF), FRAC_1_SQRT_2);
        assert_eq!(LN_2_PARTS[0] + LN_2_PARTS[1], LN_2);
        assert_eq!(LN_2_PARTS[0].to_bits() & 0x7ff, 0);
    }

    /// Powers of two and of ten, numbers next to 1, and the ends; the digits are those of Python's decimal.
    #[test]
    fn logarithms_by_hand() {
        for (r, expected) in [
            (1.0, 0.0),
            (2.0, LN_2),
            (0.5, -LN_2),
            (10.0, LN_10),
            (65_535.0, 11.090_339_630_053_646),
            (1.0 / 65_535.0, -11.090_339_630_053_646),
            (1.0 + f64::EPSILON, f64::EPSILON),
            (f64::MIN_POSITIVE, -708.396_418_532_264_1),
        ] {
            let found = ln(r);
            let error = (found - expected).abs();
            assert!(error <= expected.abs() * f64::EPSILON, "{r}: {found}");
        }
        assert_eq!(ln(0.0), f64::NEG_INFINITY);
        assert_eq!(ln(f64::INFINITY), f64::INFINITY);
        assert!(ln(f64::NAN).is_nan());
    }
}
