//! The curves of `normalize`: what happens to a value after it was scaled to 0…1.
//!
//! Exact definition, for x steps above the minimum of a range of d steps, and an output range of s steps: the result
//! is floor(s·f(x/d) + 1/2), with f rising from f(0) = 0 to f(1) = 1.
//!
//! **Method.** The result is the largest k for which f(x/d) ≥ (2k − 1)/(2s). Applying the inverse of f to both sides
//! gives a comparison of powers. Taking logarithms gives a comparison of sums of logarithms with integer factors:
//!
//! | curve | f(x/d) ≥ t, with t = (2k − 1)/(2s) |
//! |---|---|
//! | gamma n/m | m·log(x/d) ≥ n·log t |
//! | log | log((1000x + d)/d) ≥ t·log 1001 |
//! | asinh, c = 1/a | log(w) ≥ t·log(u), with w = y + √(y² + 1), y = c·x/d, and u = c + √(c² + 1) |
//! | midtones m | (1 − m)·x ≥ t·((1 − 2m)·x + m·d), exact in integers |
//!
//! `logarithm` computes a lower and an upper bound of each sum, in integers. It uses more and more bits until the bounds
//! of the two sums do not overlap. This ends unless both sums are equal, and equality is decided exactly before
//! (`is_tie`). So every entry of a table is correctly rounded, without floating point.

mod logarithm;

use super::scale::Scale;
use logarithm::{Argument, Log, is_greater};
use rayon::prelude::*;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

/// Entries of a table that one core computes.
const CHUNK: u64 = 2048;

/// The most tables that are kept. A table has at most 128 KiB.
const MAX_RECENT: usize = 8;

/// The tables that were computed last. Computing a table takes longer than applying it, and images often need the same one: the
/// images of a set share a range, and all 32-bit images are scaled to 16 bits before the curve.
static RECENT: Mutex<Vec<RecentTable>> = Mutex::new(Vec::new());

/// The result of `Curve::steps`. The key is the curve, d and s.
struct RecentTable {
    key: (Curve, u16, u16),
    steps: Arc<Vec<u16>>,
}

/// The most digits after the decimal point in the number of a curve.
const DECIMALS: usize = 6;

/// A fraction in lowest terms, of positive numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fraction {
    numerator: u64,
    denominator: u64,
}

impl Fraction {
    /// The fraction of two positive numbers.
    pub fn new(numerator: u64, denominator: u64) -> Fraction {
        let divisor = greatest_common_divisor(numerator, denominator);
        Fraction {
            numerator: numerator / divisor,
            denominator: denominator / divisor,
        }
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Parses a decimal number that the user typed.
impl FromStr for Fraction {
    type Err = ();

    fn from_str(text: &str) -> Result<Fraction, ()> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let fits = (1..=4).contains(&whole.len()) && decimals.len() <= DECIMALS;
        if !fits || !are_digits(whole) || !are_digits(decimals) {
            return Err(());
        }
        let digits = format!("{whole}{decimals:0<DECIMALS$}");
        let numerator: u64 = digits.parse().map_err(|_| ())?;
        if numerator == 0 {
            return Err(());
        }
        Ok(Fraction::new(numerator, 10u64.pow(DECIMALS as u32)))
    }
}

/// Prints the shortest decimal number. For a number that the user typed, it is exact.
impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        (self.numerator as f64 / self.denominator as f64).fmt(f)
    }
}

/// A curve from 0…1 to 0…1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Curve {
    /// x^(1/g).
    Gamma(Fraction),
    /// asinh(x/a)/asinh(1/a).
    Asinh(Fraction),
    /// ln(1000x + 1)/ln 1001.
    Log,
    /// (1 − m)x/((1 − 2m)x + m): the midtones transfer function of PixInsight, where m becomes 1/2.
    Midtones(Fraction),
}

impl FromStr for Curve {
    type Err = String;

    fn from_str(text: &str) -> Result<Curve, String> {
        let (name, number) = match text.split_once(':') {
            Some((name, number)) => (name, Some(number)),
            None => (text, None),
        };
        let within = |number: &str, least: Fraction, most: u64| {
            let fraction = number.parse::<Fraction>().ok().filter(|fraction| {
                let Fraction {
                    numerator,
                    denominator,
                } = *fraction;
                numerator * least.denominator >= least.numerator * denominator
                    && numerator <= most * denominator
            });
            fraction.ok_or_else(|| {
                format!("'{number}' is not a number from {least} to {most} with at most 6 decimals")
            })
        };
        match (name, number) {
            ("gamma", Some(number)) => within(number, Fraction::new(1, 100), 100).map(Curve::Gamma),
            ("asinh", None) => Ok(Curve::Asinh(Fraction::new(1, 10))),
            ("asinh", Some(number)) => {
                within(number, Fraction::new(1, 1_000_000), 1000).map(Curve::Asinh)
            }
            ("log", None) => Ok(Curve::Log),
            _ => Err("expected gamma:G, asinh, asinh:A or log, e.g. gamma:2.2".into()),
        }
    }
}

impl fmt::Display for Curve {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Curve::Gamma(g) => write!(f, "gamma:{g}"),
            Curve::Asinh(a) => write!(f, "asinh:{a}"),
            Curve::Log => f.write_str("log"),
            Curve::Midtones(m) => write!(f, "midtones:{m}"),
        }
    }
}

impl serde::Serialize for Curve {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Curve {
    /// The definition, for a sample of a channel: `lo + floor((hi − lo)·f(x/d) + 1/2)`.
    pub(super) fn exact(self, scale: &Scale, sample: u16) -> u16 {
        let x = u64::from(sample.clamp(scale.min, scale.max) - scale.min);
        let (d, s) = (scale.max - scale.min, scale.hi - scale.lo);
        let rounding = Rounding::new(self, d.into(), s.into());
        scale.lo + rounding.result(&rounding.left(x)) as u16
    }

    /// The result of every sample from 0 to `full`.
    pub(super) fn table(self, scale: &Scale, full: u16) -> Vec<u16> {
        let steps = self.shared_steps(scale.max - scale.min, scale.hi - scale.lo);
        let result = |sample: u16| {
            scale.lo + steps[usize::from(sample.clamp(scale.min, scale.max) - scale.min)]
        };
        (0..=full).map(result).collect()
    }

    /// The result of `steps`, from `RECENT` if it is there.
    fn shared_steps(self, d: u16, s: u16) -> Arc<Vec<u16>> {
        let recent = || RECENT.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (self, d, s);
        if let Some(table) = recent().iter().find(|table| table.key == key) {
            return table.steps.clone();
        }
        // Computed without holding the lock: while this thread waits for the others, it may run another task, which may need
        // the lock.
        let steps = Arc::new(self.steps(d, s));
        let mut recent = recent();
        if recent.len() == MAX_RECENT {
            recent.remove(0);
        }
        recent.push(RecentTable {
            key,
            steps: steps.clone(),
        });
        steps
    }

    /// floor(s·f(x/d) + 1/2) for every x from 0 to d; d is not 0.
    pub fn steps(self, d: u16, s: u16) -> Vec<u16> {
        let (d, s) = (u64::from(d), u64::from(s));
        let rounding = Rounding::new(self, d, s);
        let chunks = (0..=d / CHUNK).into_par_iter();
        let steps = chunks.flat_map_iter(|chunk| {
            let first = chunk * CHUNK;
            let mut k = rounding.result(&rounding.left(first));
            let mut next = rounding.right(k + 1);
            let rounding = &rounding;
            (first..=d.min(first + CHUNK - 1)).map(move |x| {
                let left = rounding.left(x);
                // Results rise with x.
                while k < s && rounding.reaches(&left, &next) {
                    k += 1;
                    next = rounding.right(k + 1);
                }
                k as u16
            })
        });
        steps.collect()
    }
}

/// A curve from d steps to s steps, with the logarithms that all of its samples share.
struct Rounding {
    curve: Curve,
    d: u64,
    s: u64,
    /// For the comparisons in the module's documentation. gamma: log d and log 2s. log: log d and log 1001. asinh: the logarithms
    /// of the denominators of y and of c.
    constants: [Log; 2],
    /// For asinh, the logarithm of u times the denominator of c.
    log_u: Log,
}

/// The left side of a comparison: a sample, x steps above the minimum.
struct Left {
    x: u64,
    log: Log,
}

/// The right side of a comparison: t = (2k − 1)/(2s), the smallest value that is rounded to k or more.
struct Right {
    k: u64,
    log: Log,
}

impl Rounding {
    fn new(curve: Curve, d: u64, s: u64) -> Rounding {
        let none = Log::new(Argument::Integer(1));
        let log = |value| Log::new(Argument::Integer(value));
        let (constants, log_u) = match curve {
            Curve::Gamma(_) => ([log(d), log((2 * s).max(1))], none),
            Curve::Log => ([log(d), log(1001)], none),
            Curve::Asinh(a) => (
                [log(d * a.numerator), log(a.numerator)],
                Log::new(Argument::hypotenuse(a.denominator, a.numerator)),
            ),
            Curve::Midtones(_) => ([none, none], none),
        };
        Rounding {
            curve,
            d,
            s,
            constants,
            log_u,
        }
    }

    fn left(&self, x: u64) -> Left {
        let argument = match self.curve {
            Curve::Gamma(_) => Argument::Integer(x.max(1)),
            Curve::Log => Argument::Integer(1000 * x + self.d),
            Curve::Asinh(a) => Argument::hypotenuse(a.denominator * x, a.numerator * self.d),
            Curve::Midtones(_) => Argument::Integer(1),
        };
        let log = Log::new(argument);
        Left { x, log }
    }

    /// k is at least 1.
    fn right(&self, k: u64) -> Right {
        let argument = match self.curve {
            Curve::Gamma(_) => Argument::Integer(2 * k - 1),
            _ => Argument::Integer(1),
        };
        let log = Log::new(argument);
        Right { k, log }
    }

    /// floor(s·f(x/d) + 1/2).
    fn result(&self, left: &Left) -> u64 {
        let (mut k, mut above) = (0, self.s + 1);
        // The result is in k..above.
        while k + 1 < above {
            let middle = (k + above) / 2;
            if self.reaches(left, &self.right(middle)) {
                k = middle
            } else {
                above = middle
            }
        }
        k
    }

    /// Whether s·f(x/d) + 1/2 ≥ k.
    fn reaches(&self, left: &Left, right: &Right) -> bool {
        let (x, d, odd, even) = (left.x, self.d, 2 * right.k - 1, 2 * self.s);
        if x == 0 || x == d {
            return x == d && right.k <= self.s;
        }
        let [first, second] = &self.constants;
        let is_greater = |left, right| {
            let greater = is_greater(left, right, || self.is_tie(x, odd));
            greater.unwrap_or(true)
        };
        match self.curve {
            Curve::Gamma(g) => is_greater(
                [(g.denominator, &left.log), (g.numerator, second)],
                [(g.numerator, &right.log), (g.denominator, first)],
            ),
            Curve::Log => is_greater(
                [(even, &left.log), (0, first)],
                [(odd, second), (even, first)],
            ),
            Curve::Asinh(_) => is_greater(
                [(even, &left.log), (odd, second)],
                [(odd, &self.log_u), (even, first)],
            ),
            Curve::Midtones(m) => {
                // Each side has at most 60 bits: the product of a number of m, a sample, and twice a sample.
                let [x, d, odd, even] = [x, d, odd, even].map(i128::from);
                let (a, b) = (i128::from(m.numerator), i128::from(m.denominator));
                (b - a) * x * even >= odd * ((b - 2 * a) * x + a * d)
            }
        }
    }

    /// Whether f(x/d) = odd/2s exactly, for 0 < x < d.
    ///
    /// * log: never. 1001 is not a power of a smaller integer, so 1001ᵗ is irrational unless t is an integer.
    /// * gamma n/m: x/d = rⁿ and t = rᵐ for the same rational r, since n and m have no common factor. Denominators are
    ///   below 2¹⁷, so n and m are at most 16.
    /// * asinh: w = uᵗ. With t = p/q in lowest terms, p is odd and q is even, and w^q = u^p. The conjugates of w and u,
    ///   if they are irrational, are −1/w and −1/u; both powers would be w^q = u^p and its conjugates w^−q = −u^−p. So
    ///   both are rational: c² + 1 and y² + 1 are squares. Then u is the q-th power of a rational number. Its numerator
    ///   is at least 2^q and below 2⁶⁴, so q is at most 64.
    fn is_tie(&self, x: u64, odd: u64) -> bool {
        let t = Fraction::new(odd, 2 * self.s);
        match self.curve {
            Curve::Gamma(g) => {
                let (n, m) = (g.numerator, g.denominator);
                let x = Fraction::new(x, self.d);
                let is_equal = || {
                    logarithm::power(x.numerator, m) == logarithm::power(t.numerator, n)
                        && logarithm::power(x.denominator, m) == logarithm::power(t.denominator, n)
                };
                n <= 16 && m <= 16 && is_equal()
            }
            Curve::Asinh(a) => {
                let (p, q) = (t.numerator, t.denominator);
                let w = rational_root(a.denominator * x, a.numerator * self.d);
                let u = rational_root(a.denominator, a.numerator);
                let is_equal = |w: Fraction, u: Fraction| {
                    logarithm::power(w.numerator, q) == logarithm::power(u.numerator, p)
                        && logarithm::power(w.denominator, q) == logarithm::power(u.denominator, p)
                };
                q <= 64 && w.zip(u).is_some_and(|(w, u)| is_equal(w, u))
            }
            Curve::Log | Curve::Midtones(_) => false,
        }
    }
}

/// y + √(y² + 1) for y = a/b, if it is rational.
fn rational_root(a: u64, b: u64) -> Option<Fraction> {
    let square = u128::from(a).pow(2) + u128::from(b).pow(2);
    let root = square.isqrt();
    (root * root == square).then(|| Fraction::new(a + root as u64, b))
}
