//! The axes along which the pages of a stack lie.

use anyhow::{Result, ensure};
use std::fmt;

/// An axis of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Axis {
    /// Depth: slices
    Z,
    /// Time: frames
    T,
    /// Channels stored as separate pages
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
        let mut sizes = self.0.iter().map(|(_, size)| *size);
        sizes.try_fold(1, usize::checked_mul)
    }

    /// The number of places on an axis.
    pub fn size(&self, axis: Axis) -> usize {
        let found = self.0.iter().find(|(known, _)| *known == axis);
        found.map_or(1, |(_, size)| *size)
    }

    /// The axes after all places on one of them have become one.
    pub fn without(mut self, axis: Axis) -> Axes {
        for (known, size) in &mut self.0 {
            if *known == axis {
                *size = 1;
            }
        }
        self
    }

    /// The place of a page on an axis.
    pub fn place(&self, page: usize, axis: Axis) -> usize {
        let before = self.0.iter().take_while(|(known, _)| *known != axis);
        let stride: usize = before.map(|(_, size)| size).product();
        page / stride % self.size(axis)
    }

    /// For each page of the stack without `axis`, in order, the pages along it.
    pub fn groups(&self, axis: Axis) -> Vec<Vec<usize>> {
        let before = self.0.iter().take_while(|(known, _)| *known != axis);
        let stride: usize = before.map(|(_, size)| size).product();
        let size = self.size(axis);
        let firsts =
            (0..self.pages().unwrap_or(0)).filter(|page| (page / stride).is_multiple_of(size));
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

/// Where a page of a file is: its number, and its places on the axes, all counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its number in the file.
    pub page: usize,
    /// Its channel.
    pub c: usize,
    /// Its slice.
    pub z: usize,
    /// Its frame.
    pub t: usize,
}

/// A part of a stack: so many neighbouring places on each axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The axes of the whole stack.
    pub whole: Axes,
    /// On each of them, in their order, the first place that is taken, and how many are.
    places: [(usize, usize); 3],
}

impl Part {
    /// The places from the first to the last of these ranges, counted from 0; all of the other axes.
    ///
    /// # Errors
    /// Places that the stack does not have.
    pub fn new(whole: Axes, ranges: &[(Axis, usize, usize)]) -> Result<Part> {
        let mut places = whole.0.map(|(_, size)| (0, size));
        for &(axis, first, last) in ranges {
            let size = whole.size(axis);
            ensure!(
                last < size,
                "{axis} has only {size} positions, not {}",
                last + 1
            );
            for ((known, _), place) in whole.0.iter().zip(&mut places) {
                if *known == axis {
                    *place = (first, last - first + 1);
                }
            }
        }
        Ok(Part { whole, places })
    }

    /// The part that neighbouring pages make; `None` if they are no such part.
    pub fn from_pages(whole: Axes, first: usize, last: usize) -> Option<Part> {
        let ranges = whole.0.map(|(axis, _)| {
            let (first, last) = (whole.place(first, axis), whole.place(last, axis));
            (axis, first.min(last), last)
        });
        let part = Part::new(whole, &ranges).ok()?;
        part.pages().into_iter().eq(first..=last).then_some(part)
    }

    /// The axes of the part.
    pub fn axes(&self) -> Axes {
        let mut axes = self.whole;
        for ((_, size), (_, count)) in axes.0.iter_mut().zip(self.places) {
            *size = count;
        }
        axes
    }

    /// The first place that is taken on an axis, and how many are.
    pub fn places(&self, axis: Axis) -> (usize, usize) {
        let mut all = self.whole.0.iter().zip(self.places);
        let found = all.find(|((known, _), _)| *known == axis);
        found.map_or((0, 1), |(_, places)| places)
    }

    /// The pages of the part, in their order.
    pub fn pages(&self) -> Vec<usize> {
        let taken = |page: &usize| {
            self.whole.0.iter().all(|(axis, _)| {
                let (first, count) = self.places(*axis);
                (first..first + count).contains(&self.whole.place(*page, *axis))
            })
        };
        (0..self.whole.pages().unwrap_or(0)).filter(taken).collect()
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
        let part = Part::new(axes, &[(Axis::C, 1, 1), (Axis::Z, 0, 1)]).expect("there");
        assert_eq!(part.pages(), [1, 3, 7, 9]);
        assert_eq!(part.axes().to_string(), "2 z × 2 t");
        assert_eq!(
            Part::from_pages(axes, 2, 5).map(|part| part.places(Axis::Z)),
            Some((1, 2))
        );
        assert_eq!(Part::from_pages(axes, 1, 2), None);
        assert_eq!(Part::from_pages(axes, 4, 7), None);
        assert!(Part::new(axes, &[(Axis::T, 1, 2)]).is_err());
        let huge = Axes([(Axis::C, usize::MAX), (Axis::Z, 3), (Axis::T, 1)]);
        assert_eq!(huge.pages(), None);
    }
}
