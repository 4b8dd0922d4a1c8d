//! The axes along which the pages of a stack lie.

use std::fmt;

/// An axis of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Axis {
    /// Depth: slices
    Z,
    /// Time: frames
    T,
    /// Channels that are pages of their own
    C,
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Axis::Z => "z",
            Axis::T => "t",
            Axis::C => "c",
        })
    }
}

/// The axes of a stack with the number of places on each; the one along which neighbouring pages lie
/// comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axes(pub [(Axis, usize); 3]);

impl Axes {
    /// The number of pages; `None` if it is none that a machine can count.
    pub fn pages(&self) -> Option<usize> {
        let sizes = self.0.iter().map(|(_, size)| *size);
        sizes.fold(Some(1), |product: Option<usize>, size| {
            product?.checked_mul(size)
        })
    }

    /// The number of places on an axis.
    pub fn size(&self, axis: Axis) -> usize {
        let found = self.0.iter().find(|(known, _)| *known == axis);
        found.map_or(1, |(_, size)| *size)
    }

    /// For each page of the stack without `axis`, in order, the pages along it.
    pub fn groups(&self, axis: Axis) -> Vec<Vec<usize>> {
        let before = self.0.iter().take_while(|(known, _)| *known != axis);
        let stride: usize = before.map(|(_, size)| size).product();
        let size = self.size(axis);
        let firsts = (0..self.pages().unwrap_or(0)).filter(|page| page / stride % size == 0);
        let group = |first| (0..size).map(|place| first + place * stride).collect();
        firsts.map(group).collect()
    }
}

impl fmt::Display for Axes {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let named = self.0.iter().filter(|(_, size)| *size > 1);
        let named: Vec<String> = named.map(|(axis, size)| format!("{size} {axis}")).collect();
        f.write_str(&named.join(" × "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_along_an_axis() {
        let axes = Axes([(Axis::C, 2), (Axis::Z, 3), (Axis::T, 2)]);
        assert_eq!(axes.to_string(), "2 c × 3 z × 2 t");
        let z = [vec![0, 2, 4], vec![1, 3, 5], vec![6, 8, 10], vec![7, 9, 11]];
        assert_eq!(axes.groups(Axis::Z), z);
        assert_eq!(axes.groups(Axis::C)[5], [10, 11]);
        assert_eq!(axes.groups(Axis::T)[1], [1, 7]);
        let huge = Axes([(Axis::C, usize::MAX), (Axis::Z, 3), (Axis::T, 1)]);
        assert_eq!(huge.pages(), None);
    }
}
