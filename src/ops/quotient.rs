//! Exact division of whole numbers in floating point, which has vector instructions where integers
//! have none.

use crate::ops::cpu::Sample;

/// 2⁵²: added to a smaller whole number, it leaves that number in the low bits.
const TWO_52: f64 = (1u64 << 52) as f64;

/// ⌊a / b⌋ of whole numbers with b ≥ 1 and |a| + b < 2⁵³, exactly.
///
/// With k = ⌊a / b⌋, the true quotient lies in [k, k + 1 − 1/b]. Rounding to nearest keeps the order,
/// and k is a double, so that the computed quotient is at least k. It reaches k + 1 only if that lies
/// within 2⁻⁵³·|k + 1| of the true quotient, but 1/b > 2⁻⁵³·(|a| + b)/b ≥ 2⁻⁵³·|k + 1|.
#[inline(always)]
pub(super) fn floored(a: f64, b: f64) -> f64 {
    (a / b).floor()
}

/// The sample of a whole number from 0 to the largest sample.
#[inline(always)]
pub(super) fn sample<T: Sample>(whole: f64) -> T {
    T::from_value((whole + TWO_52).to_bits() as u16)
}
