//! The scale of one channel, by its definition.

/// Scales the samples of a channel from `min`…`max` to `lo`…`hi`. `min` and `max` are not equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scale {
    /// The sample that becomes `lo`.
    pub(super) min: u16,
    /// The sample that becomes `hi`.
    pub(super) max: u16,
    /// The smallest result.
    pub(super) lo: u16,
    /// The largest result.
    pub(super) hi: u16,
}

impl Scale {
    /// The identity, for samples of 16 bits or fewer.
    pub(super) const IDENTITY: Scale = Scale {
        min: 0,
        max: u16::MAX,
        lo: 0,
        hi: u16::MAX,
    };

    /// The definition, in exact integers.
    pub(super) fn exact(&self, sample: u16) -> u16 {
        let x = u32::from(sample.clamp(self.min, self.max) - self.min);
        let d = u32::from(self.max - self.min);
        let span = u32::from(self.hi - self.lo);
        self.lo + ((x * span + d / 2) / d) as u16
    }
}
