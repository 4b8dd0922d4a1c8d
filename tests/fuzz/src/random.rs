//! Repeatable choices.

/// A linear congruential generator (Knuth's MMIX).
pub struct Random(pub u64);

impl Random {
    /// A number below `most`, or 0.
    pub fn below(&mut self, most: usize) -> usize {
        let (a, c) = (0x5851_F42D_4C95_7F2D, 0x1405_7B7E_F767_814F);
        self.0 = self.0.wrapping_mul(a).wrapping_add(c);
        (self.0 >> 33) as usize % most.max(1)
    }
}
