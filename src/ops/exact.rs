//! Exact sums.

use super::wide::fixed::{Fixed, Fixed64};
use crate::image::Depth;

/// An exact sum of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "there is one a channel")]
pub enum Exact {
    /// Of integers.
    Whole(i128),
    /// Of floating-point numbers.
    Real(Fixed),
    /// Of floating-point numbers of 64 bits.
    Double(Fixed64),
}

impl Exact {
    /// The sum of no samples of this depth.
    pub fn zero(depth: Depth) -> Exact {
        match depth {
            Depth::Float => Exact::Real(Fixed::default()),
            Depth::Double => Exact::Double(Fixed64::default()),
            _ => Exact::Whole(0),
        }
    }

    /// The sum of both; the first, if they are of different variants.
    pub fn plus(self, other: Exact) -> Exact {
        match (self, other) {
            (Exact::Whole(a), Exact::Whole(b)) => Exact::Whole(a + b),
            (Exact::Real(a), Exact::Real(b)) => Exact::Real(a.plus(b)),
            (Exact::Double(a), Exact::Double(b)) => Exact::Double(a.plus(b)),
            (first, _) => first,
        }
    }
}
