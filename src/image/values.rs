//! The type of samples: their depth, and what values they stand for.

use super::number::{self, Number};
use std::fmt;

/// Bits of a sample, in memory and in the output file, and whether they make a floating-point
/// number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum Depth {
    /// 0..=255
    Eight,
    /// 0..=65535
    Sixteen,
    /// 0..=2³² − 1
    ThirtyTwo,
    /// IEEE 754 binary32. In memory samples are keys (`number::key`), which sort as unsigned
    /// numbers.
    Float,
    /// IEEE 754 binary64, in memory as keys too (`number::key64`). On the CPU alone.
    Double,
}

impl Depth {
    /// All depths.
    pub const ALL: [Depth; 5] = [
        Depth::Eight,
        Depth::Sixteen,
        Depth::ThirtyTwo,
        Depth::Float,
        Depth::Double,
    ];

    /// The largest sample of 8 and of 16 bits: 255 or 65535. Wider samples have operations of their
    /// own (`ops::wide`) and no such number; for them it is that of 16 bits, which `normalize` makes
    /// of them.
    #[doc(hidden)]
    pub fn full(self) -> u16 {
        match self {
            Depth::Eight => u8::MAX.into(),
            Depth::Sixteen | Depth::ThirtyTwo | Depth::Float | Depth::Double => u16::MAX,
        }
    }

    /// How many steps of the depth `wider` make one step of this depth: 257 of 16 bits make one of
    /// 8.
    #[doc(hidden)]
    pub fn steps(self, wider: Depth) -> u16 {
        (wider.full() / self.full()).max(1)
    }

    /// Bytes per sample takes in memory: 1, 2, 4 or 8.
    pub fn bytes(self) -> usize {
        match self {
            Depth::Eight => 1,
            Depth::Sixteen => 2,
            Depth::ThirtyTwo | Depth::Float => 4,
            Depth::Double => 8,
        }
    }

    /// Bits per sample takes: 8, 16, 32 or 64.
    pub fn bits(self) -> u32 {
        8 * self.bytes() as u32
    }

    /// Its suffix in the names of kernels: `u16`.
    pub(crate) fn form(self) -> String {
        format!("u{}", self.bits())
    }

    /// Whether samples have 32 or 64 bits, integers or floating point.
    pub fn is_wide(self) -> bool {
        self.bytes() >= 4
    }

    /// Whether samples are floating-point numbers.
    pub fn is_float(self) -> bool {
        matches!(self, Depth::Float | Depth::Double)
    }
}

/// In words: `16 bits`, `32-bit floating point`, `64-bit floating point`.
impl fmt::Display for Depth {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Depth::Float | Depth::Double => write!(f, "{}-bit floating point", self.bits()),
            _ => write!(f, "{} bits", self.bits()),
        }
    }
}

/// The type of samples: integers of a depth, unsigned or signed, or floating point. In memory,
/// signed samples are offset by half their range, so that they sort as unsigned numbers: −32768 is
/// stored as 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Values {
    /// Bits per sample.
    pub depth: Depth,
    /// Whether they are integers with a sign.
    pub signed: bool,
}

impl Values {
    /// The sample of 8 or 16 bits that stands for 0.
    pub fn zero(self) -> u16 {
        if self.signed {
            self.depth.full() / 2 + 1
        } else {
            0
        }
    }

    /// The smallest value of 8 and 16 bits: 0, −128 or −32768.
    pub fn least(self) -> i32 {
        -i32::from(self.zero())
    }

    /// The largest: 255 or 65535, 127 or 32767.
    pub fn most(self) -> i32 {
        self.least() + i32::from(self.depth.full())
    }

    /// The smallest and the largest integer that samples can be; `None` of floating point.
    pub fn limits(self) -> Option<(i64, i64)> {
        match (self.depth, self.signed) {
            (Depth::Float | Depth::Double, _) => None,
            (Depth::ThirtyTwo, false) => Some((0, u32::MAX.into())),
            (Depth::ThirtyTwo, true) => Some((i32::MIN.into(), i32::MAX.into())),
            _ => Some((self.least().into(), self.most().into())),
        }
    }

    /// The value that a sample in memory, of any depth, stands for.
    pub fn number(self, sample: u64) -> Number {
        match (self.depth, self.signed) {
            (Depth::Double, _) => Number::Double(number::from_key64(sample)),
            (Depth::Float, _) => Number::Real(number::from_key(sample as u32)),
            (Depth::ThirtyTwo, true) => Number::Whole((sample as u32 ^ number::TOP) as i32 as i64),
            (Depth::ThirtyTwo, false) => Number::Whole(sample as i64),
            _ => Number::Whole(self.value(sample as u16).into()),
        }
    }

    /// The value that a sample stands for.
    pub fn value(self, sample: u16) -> i32 {
        i32::from(sample) + self.least()
    }

    /// The sample for a value, which is clamped to the range.
    pub fn sample(self, value: i32) -> u16 {
        (value.clamp(self.least(), self.most()) - self.least()) as u16
    }
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let sign = if self.signed { "with" } else { "without" };
        match self.depth {
            Depth::Float | Depth::Double => self.depth.fmt(f),
            depth => write!(f, "{depth} {sign} sign"),
        }
    }
}
