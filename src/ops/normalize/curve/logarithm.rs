//! Comparisons of sums of logarithms, in integers.
//!
//! A number v = m·2^e with m in 1..2 has the binary logarithm e + log2(m). The binary digits of log2(m) are found by
//! squaring: the first digit is 1 if m² ≥ 2, and the other digits are those of log2(m²), or of log2(m²/2) if m² ≥ 2.
//!
//! m has W bits, and every rounding is downwards. The rounding at digit i changes the logarithm by at most
//! 1.45·2^(1−W−i). So the result with W − 8 digits is smaller than the logarithm by less than 2 units of the last digit,
//! even if v was rounded down with a relative error of 2^(2−W).

use std::cmp::Ordering;

/// The bits of a logarithm before the binary point. The other bits are after it: in one word, 56 of 64.
const INTEGER_BITS: u32 = 8;

/// A number of at least 1.
#[derive(Clone, Copy, Debug)]
pub(super) enum Argument {
    Integer(u64),
    /// a + √(a² + b²), of numbers below 2⁵⁰.
    Hypotenuse {
        a: u64,
        square: u128,
    },
}

impl Argument {
    /// a + √(a² + b²).
    pub(super) fn hypotenuse(a: u64, b: u64) -> Argument {
        let square = u128::from(a).pow(2) + u128::from(b).pow(2);
        Argument::Hypotenuse { a, square }
    }
}

/// The binary logarithm of a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Log {
    argument: Argument,
    /// The logarithm with 56 binary digits after the point, too small by less than 2 units of the last digit.
    word: u64,
}

impl Log {
    pub(super) fn new(argument: Argument) -> Log {
        let (mut mantissa, exponent) = match argument {
            Argument::Integer(value) => {
                let zeros = value.leading_zeros();
                (value << zeros, 63 - zeros)
            }
            Argument::Hypotenuse { a, square } => {
                let shift = square.leading_zeros() / 2;
                let sum = (u128::from(a) << shift) + (square << (2 * shift)).isqrt();
                let bits = 128 - sum.leading_zeros();
                // The root has 64 bits, and the sum one more at most.
                ((sum >> (bits - 64)) as u64, bits - 1 - shift)
            }
        };
        let mut word = u64::from(exponent);
        for _ in INTEGER_BITS..64 {
            let square = u128::from(mantissa) * u128::from(mantissa);
            let digit = (square >> 127) as u64;
            word = word << 1 | digit;
            mantissa = (square >> (63 + digit)) as u64;
        }
        Log { argument, word }
    }

    /// The logarithm with `64·words − 8` binary digits after the point. The lowest word is the first.
    fn digits(&self, words: usize) -> Vec<u64> {
        let mut mantissa = vec![0; words];
        let exponent = match self.argument {
            Argument::Integer(value) => {
                let zeros = value.leading_zeros();
                mantissa[words - 1] = value << zeros;
                u64::from(63 - zeros)
            }
            Argument::Hypotenuse { a, square } => {
                // Both the root and `a` are multiplied by 2^(64·words).
                let mut scaled = vec![0; 2 * words];
                scaled.extend([square as u64, (square >> 64) as u64]);
                let mut sum = root(&scaled);
                sum.resize(words + 2, 0);
                add_product(&mut sum[words..], a, &[1]);
                let bits = bit_length(&sum);
                for bit in 0..(64 * words).min(bits) {
                    let from = bits - 1 - bit;
                    let digit = sum[from / 64] >> (from % 64) & 1;
                    let to = 64 * words - 1 - bit;
                    mantissa[to / 64] |= digit << (to % 64);
                }
                (bits - 1 - 64 * words) as u64
            }
        };
        let mut digits = vec![0; words];
        digits[0] = exponent;
        for _ in INTEGER_BITS as usize..64 * words {
            let square = square(&mantissa);
            let digit = square[2 * words - 1] >> 63;
            shift_left(&mut digits, digit);
            mantissa.copy_from_slice(&square[words..]);
            if digit == 0 {
                shift_left(&mut mantissa, square[words - 1] >> 63);
            }
        }
        digits
    }
}

/// A sum of logarithms with factors.
type Sum<'a> = [(u64, &'a Log); 2];

/// Whether the left sum is greater than the right one; `None` if they are equal. `is_equal` decides that exactly, and is
/// only called if the sums are close. Factors are below 2³⁰.
pub(super) fn is_greater(left: Sum, right: Sum, is_equal: impl Fn() -> bool) -> Option<bool> {
    let sum = |sum: Sum| {
        let terms = sum.map(|(factor, log)| u128::from(factor) * u128::from(log.word));
        terms[0] + terms[1]
    };
    let error = |sum: Sum| 2 * u128::from(sum[0].0 + sum[1].0);
    let (at_left, at_right) = (sum(left), sum(right));
    if at_left >= at_right + error(right) {
        return Some(true);
    }
    if at_left + error(left) <= at_right {
        return Some(false);
    }
    if is_equal() {
        return None;
    }
    // The sums differ, so with enough digits the comparison succeeds.
    (1..).find_map(|doublings| is_greater_by(left, right, 1 << doublings))
}

/// As `is_greater`, with logarithms of `words` words; `None` if that is not precise enough.
fn is_greater_by(left: Sum, right: Sum, words: usize) -> Option<bool> {
    let bounds = |sum: Sum| {
        let mut least = vec![0; words + 1];
        for (factor, log) in sum {
            add_product(&mut least, factor, &log.digits(words));
        }
        let mut most = least.clone();
        add_product(&mut most, 2 * (sum[0].0 + sum[1].0), &[1]);
        (least, most)
    };
    let ((least_left, most_left), (least_right, most_right)) = (bounds(left), bounds(right));
    if compare(&least_left, &most_right).is_ge() {
        Some(true)
    } else if compare(&most_left, &least_right).is_le() {
        Some(false)
    } else {
        None
    }
}

/// Adds factor·number to `sum`, which must be long enough for the result.
fn add_product(sum: &mut [u64], factor: u64, number: &[u64]) {
    let mut carry = 0;
    for (i, word) in sum.iter_mut().enumerate() {
        let product = u128::from(factor) * u128::from(number.get(i).copied().unwrap_or(0));
        carry += product + u128::from(*word);
        *word = carry as u64;
        carry >>= 64;
    }
}

/// Compares two numbers with the same number of words.
fn compare(a: &[u64], b: &[u64]) -> Ordering {
    a.iter().rev().cmp(b.iter().rev())
}

/// Shifts a number left by one bit, drops its top bit, and puts `digit` into the lowest bit.
fn shift_left(number: &mut [u64], mut digit: u64) {
    for word in number {
        let top = *word >> 63;
        *word = *word << 1 | digit;
        digit = top;
    }
}

fn square(number: &[u64]) -> Vec<u64> {
    let mut square = vec![0; 2 * number.len()];
    for (i, &word) in number.iter().enumerate() {
        add_product(&mut square[i..], word, number);
    }
    square
}

fn bit_length(number: &[u64]) -> usize {
    let top = number.iter().rposition(|&word| word != 0);
    top.map_or(0, |top| {
        64 * (top + 1) - number[top].leading_zeros() as usize
    })
}

/// The square root, rounded down, of a number with an even number of words.
fn root(number: &[u64]) -> Vec<u64> {
    let mut root = vec![0; number.len() / 2];
    for bit in (0..64 * root.len()).rev() {
        root[bit / 64] |= 1 << (bit % 64);
        if compare(&square(&root), number).is_gt() {
            root[bit / 64] &= !(1 << (bit % 64));
        }
    }
    root
}

/// `base` to the power `exponent`, without zero words at the top.
pub(super) fn power(base: u64, exponent: u64) -> Vec<u64> {
    let mut power = vec![1];
    for _ in 0..exponent {
        let mut product = vec![0; power.len() + 1];
        add_product(&mut product, base, &power);
        if product.last() == Some(&0) {
            product.pop();
        }
        power = product;
    }
    power
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Logarithms with 184 digits after the point, from Python's `decimal` with 120 decimals.
    const LOGS: [(Argument, [u64; 3]); 4] = [
        (
            Argument::Integer(3),
            [
                0xd124_f3e6_a3a2_59b0,
                0x9fa0_0b12_0a06_8bad,
                0x0195_c01a_39fb_d687,
            ],
        ),
        (
            Argument::Integer(4_294_967_291),
            [
                0x838d_fb69_01ea_b186,
                0x505e_70d1_6473_9a46,
                0x1fff_ffff_f8c9_59b0,
            ],
        ),
        // 1 + √2
        (
            Argument::Hypotenuse { a: 1, square: 2 },
            [
                0x594c_7738_ff51_611b,
                0x66b9_ab84_b325_13f0,
                0x0145_8484_6c35_5f63,
            ],
        ),
        (
            Argument::Hypotenuse {
                a: 1_000_000_000_039,
                square: 1_000_000_000_039 * 1_000_000_000_039 + 49,
            },
            [
                0xa403_a47f_8ff4_3783,
                0xe354_e6ab_d309_acc6,
                0x28dc_f68e_36b3_0747,
            ],
        ),
    ];

    /// The expected logarithm with fewer words is its upper words. Every result is too small by less than 2 units of its last
    /// digit.
    #[test]
    fn digits_are_those_of_decimal_arithmetic() {
        for (argument, expected) in LOGS {
            let log = Log::new(argument);
            for words in 1..=3 {
                let digits = log.digits(words);
                let expected = &expected[3 - words..];
                let mut upper = digits.clone();
                add_product(&mut upper, 2, &[1]);
                assert!(
                    compare(&digits, expected).is_le(),
                    "{argument:?} {digits:x?}"
                );
                assert!(
                    compare(&upper, expected).is_gt(),
                    "{argument:?} {digits:x?}"
                );
            }
            assert_eq!([log.word], log.digits(1)[..], "{argument:?}");
        }
        // 3k + √((3k)² + (4k)²) = 8k.
        for k in [1, 2, 77, 1_000_003, 1 << 40] {
            let (a, b) = (
                Log::new(Argument::hypotenuse(3 * k, 4 * k)),
                Log::new(Argument::Integer(8 * k)),
            );
            assert!(a.word.abs_diff(b.word) < 2, "{k}");
        }
    }

    /// The logarithms of 3^190537 and 2^301994 differ by 10⁻⁷: one word decides this as more words do. The logarithms of 7²·7
    /// and 7³ are equal, which more words cannot decide either.
    #[test]
    fn more_words_decide_as_few_do() {
        let log = |value| Log::new(Argument::Integer(value));
        let (one, two, three, seven) = (log(1), log(2), log(3), log(7));
        let close = [(190_537, &three), (0, &one)];
        let power = [(301_994, &two), (0, &one)];
        for words in [1, 2, 4, 8] {
            let greater = is_greater_by(close, power, words);
            assert_eq!(greater, Some(false), "{words}");
            assert_eq!(is_greater_by(power, close, words), Some(true), "{words}");
            let same = ([(2, &seven), (1, &seven)], [(3, &seven), (0, &one)]);
            assert_eq!(is_greater_by(same.0, same.1, words), None);
        }
        assert_eq!(is_greater(close, power, || true), Some(false));
        let same = ([(2, &seven), (1, &seven)], [(3, &seven), (0, &one)]);
        assert_eq!(is_greater(same.0, same.1, || true), None);
    }

    #[test]
    fn powers_and_roots_by_hand() {
        assert_eq!(power(3, 0), [1]);
        assert_eq!(power(2, 64), [0, 1]);
        assert_eq!(power(10, 20), [7_766_279_631_452_241_920, 5]);
        assert_eq!(root(&[0, 1]), [1 << 32]);
        assert_eq!(root(&[u64::MAX, u64::MAX]), [u64::MAX]);
        assert_eq!(root(&[0, 0, 2, 0]), [0x6a09_e667_f3bc_c908, 1]);
    }
}
