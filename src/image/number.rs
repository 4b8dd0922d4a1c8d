//! Values of any sample type, and the keys in which floating-point samples are in memory.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// The top bit of 32.
pub const TOP: u32 = 1 << 31;

/// The keys of finite numbers, from −f32::MAX to f32::MAX. Below are −∞ and NaNs with the sign bit,
/// above are ∞ and the other NaNs.
pub const FINITE: std::ops::RangeInclusive<u32> = 0x0080_0000..=0xff7f_ffff;

/// The key of a floating-point number: its bits, all flipped if it is negative, else the top one. Keys
/// sort as the numbers do (−0 just below 0), and every bit pattern has one, so that NaNs stay as they
/// are.
#[inline(always)]
pub fn key(bits: u32) -> u32 {
    bits ^ ((bits as i32 >> 31) as u32 | TOP)
}

/// The bits of the number with a key.
#[inline(always)]
pub fn bits(key: u32) -> u32 {
    key ^ ((!key as i32 >> 31) as u32 | TOP)
}

/// The number with a key.
#[inline(always)]
pub fn from_key(key: u32) -> f32 {
    f32::from_bits(bits(key))
}

/// The keys of finite 64-bit numbers, as `FINITE`.
pub const FINITE64: std::ops::RangeInclusive<u64> = 0x0010_0000_0000_0000..=0xffef_ffff_ffff_ffff;

/// As `key`, of a 64-bit number.
#[inline(always)]
pub fn key64(bits: u64) -> u64 {
    bits ^ ((bits as i64 >> 63) as u64 | 1 << 63)
}

/// As `bits`, of a 64-bit number.
#[inline(always)]
pub fn bits64(key: u64) -> u64 {
    key ^ ((!key as i64 >> 63) as u64 | 1 << 63)
}

/// The 64-bit number with a key.
#[inline(always)]
pub fn from_key64(key: u64) -> f64 {
    f64::from_bits(bits64(key))
}

/// The value of a sample: an integer, or a floating-point number. In JSON it is a number; NaN and
/// infinities are null.
#[derive(Clone, Copy, Debug, serde::Serialize)]
#[serde(untagged)]
pub enum Number {
    /// An integer; any that a user may type is exact as an f64 too.
    Whole(i64),
    /// A floating-point number.
    Real(f32),
    /// One of 64 bits.
    Double(f64),
}

impl Number {
    /// The same value, exactly.
    pub fn as_f64(self) -> f64 {
        match self {
            Number::Whole(value) => value as f64,
            Number::Real(value) => value.into(),
            Number::Double(value) => value,
        }
    }

    /// The nearest f32.
    pub fn as_f32(self) -> f32 {
        match self {
            Number::Whole(value) => value as f32,
            Number::Real(value) => value,
            Number::Double(value) => value as f32,
        }
    }
}

/// A decimal number: an integer if it is one and exact as an f64 too, even with decimals or an exponent (1e3). NaN and infinities
/// are refused.
impl FromStr for Number {
    type Err = String;

    fn from_str(text: &str) -> Result<Number, String> {
        let whole = text.trim().parse::<i64>().ok();
        let whole = whole.filter(|value| value.unsigned_abs() <= 1 << 53);
        let real = || {
            let value = text.trim().parse::<f64>().ok()?;
            Some(if value.fract() == 0.0 && value.abs() < 16_777_216.0 {
                Number::Whole(value as i64)
            } else {
                Number::Double(value)
            })
        };
        let value = whole.map(Number::Whole).or_else(real);
        value
            .filter(|value| value.as_f32().is_finite())
            .ok_or_else(|| not_a_value(text))
    }
}

/// The message for a text that is not a value.
pub fn not_a_value(text: &str) -> String {
    let number = text
        .trim()
        .trim_end_matches(|c: char| c.is_alphabetic() || c == '%');
    match number.parse::<f64>() {
        Ok(_) if number != text.trim() => format!("'{text}': write {number}, without a unit"),
        _ => format!("'{text}' is not a possible sample value"),
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        self.as_f64() == other.as_f64()
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Number) -> Option<Ordering> {
        self.as_f64().partial_cmp(&other.as_f64())
    }
}

impl From<i32> for Number {
    fn from(value: i32) -> Number {
        Number::Whole(value.into())
    }
}

/// The shortest decimal that is read back as the same value; −0 is 0.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match *self {
            Number::Whole(value) => value.fmt(f),
            Number::Real(0.0) => f.write_str("0"),
            // Without an exponent these would have up to 39 digits, or 45 decimals.
            Number::Real(value) if !(1e-5..1e10).contains(&value.abs()) => write!(f, "{value:e}"),
            Number::Real(value) => value.fmt(f),
            Number::Double(0.0) => f.write_str("0"),
            Number::Double(value) if !(1e-5..1e16).contains(&value.abs()) => write!(f, "{value:e}"),
            Number::Double(value) => value.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys sort as numbers do, and give back every bit pattern.
    #[test]
    fn keys_sort_and_give_back() {
        let rising = [
            f32::NEG_INFINITY,
            f32::MIN,
            -1.0,
            -f32::MIN_POSITIVE,
            -f32::from_bits(1),
            -0.0,
            0.0,
            f32::from_bits(1),
            f32::MIN_POSITIVE,
            1.0,
            f32::MAX,
            f32::INFINITY,
        ];
        let keys = rising.map(|value| key(value.to_bits()));
        assert!(keys.is_sorted_by(|a, b| a < b));
        assert_eq!(FINITE, keys[1]..=keys[10]);
        assert!(!FINITE.contains(&key(f32::NAN.to_bits())));
        assert!(!FINITE.contains(&key((-f32::NAN).to_bits())));
        for pattern in (0..=u32::MAX).step_by(65521).chain([0, TOP, u32::MAX]) {
            assert_eq!(bits(key(pattern)), pattern);
        }
    }

    #[test]
    fn keys_of_64_bits_sort_and_give_back() {
        let rising = [
            f64::NEG_INFINITY,
            f64::MIN,
            -1.0,
            -f64::from_bits(1),
            -0.0,
            0.0,
            f64::from_bits(1),
            1.0,
            f64::MAX,
            f64::INFINITY,
        ];
        let keys = rising.map(|value| key64(value.to_bits()));
        assert!(keys.is_sorted_by(|a, b| a < b));
        assert_eq!(FINITE64, keys[1]..=keys[8]);
        assert!(!FINITE64.contains(&key64(f64::NAN.to_bits())));
        assert!(!FINITE64.contains(&key64((-f64::NAN).to_bits())));
        for pattern in (0..1000).map(|i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
            assert_eq!(bits64(key64(pattern)), pattern);
        }
    }

    #[test]
    fn numbers_are_printed_short() {
        let printed = |value: f32| Number::Real(value).to_string();
        assert_eq!(
            [0.1, -0.0, 65535.0, 1e-7, -3.4e38, 16777216.0].map(printed),
            ["0.1", "0", "65535", "1e-7", "-3.4e38", "16777216"]
        );
        let doubles =
            [0.1, -0.0, 0.1f32.into(), 1e16].map(|value| Number::Double(value).to_string());
        assert_eq!(doubles, ["0.1", "0", "0.10000000149011612", "1e16"]);
        assert_eq!(Number::Whole(-5).to_string(), "-5");
    }
}
