//! The range of samples that are handled together.

use super::LANES;
use crate::ops::min_max::{MinMaxLanes, Unsigned};

/// The smallest and the largest finite sample of each lane, and how many samples are not finite.
#[derive(Clone, Copy)]
pub(super) struct FiniteLanes<T> {
    pub range: MinMaxLanes<T, LANES>,
    pub nonfinite: u64,
}

impl<T: Unsigned> FiniteLanes<T> {
    /// Those of no sample: the neutral element of `merge`.
    pub const NONE: FiniteLanes<T> = FiniteLanes {
        range: MinMaxLanes::NONE,
        nonfinite: 0,
    };

    /// Those of both.
    pub fn merge(self, other: FiniteLanes<T>) -> FiniteLanes<T> {
        FiniteLanes {
            range: self.range.merge(other.range),
            nonfinite: self.nonfinite + other.nonfinite,
        }
    }
}
