//! The arrays of a new image: its levels, and how each is divided into files and chunks.

use super::options::Options;
use crate::image::Shape;

/// An array of a new image: a level of the pyramid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// Its number, which is its name too: 0 is the full size.
    pub number: usize,
    /// The shape of its pages.
    pub shape: Shape,
    /// Rows of a chunk, and columns.
    pub chunk: [usize; 2],
    /// Rows and columns of a shard, if chunks are in shards.
    pub shard: Option<[usize; 2]>,
}

/// The levels of pages of a shape, the full size first. Each has half the rows and columns of the one before, rounded half up,
/// as the full size divided by a power of two.
pub fn levels(shape: Shape, options: &Options) -> Vec<Level> {
    let sizes = (0..).map(|level| Shape {
        width: halved(shape.width, level),
        height: halved(shape.height, level),
        ..shape
    });
    let is_small = |shape: &Shape| shape.width.max(shape.height) <= options.chunk;
    let automatic = 1 + sizes
        .clone()
        .position(|shape| is_small(&shape))
        .unwrap_or(0);
    let sizes = sizes.take(options.levels.unwrap_or(automatic));
    let level = |(number, shape): (usize, Shape)| {
        let sides = [shape.height, shape.width];
        let chunk = sides.map(|side| side.min(options.chunk));
        let shard = options
            .shard
            .map(|shard| [0, 1].map(|axis| shard.min(sides[axis].next_multiple_of(chunk[axis]))));
        Level {
            number,
            shape,
            chunk,
            shard,
        }
    };
    sizes.enumerate().map(level).collect()
}

/// A side after it was halved so many times; at least 1.
fn halved(side: usize, times: u32) -> usize {
    let twice = side.checked_shr(times.saturating_sub(1)).unwrap_or(0);
    match times {
        0 => side,
        _ => twice.div_ceil(2).max(1),
    }
}

impl Level {
    /// Rows and columns of the samples in a file.
    pub fn file(&self) -> [usize; 2] {
        self.shard.unwrap_or(self.chunk)
    }

    /// How many times as large the full size is, of rows and of columns.
    pub fn reduction(&self, full: Shape) -> [f64; 2] {
        [
            full.height as f64 / self.shape.height as f64,
            full.width as f64 / self.shape.width as f64,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Depth;

    fn sizes(width: usize, height: usize, options: &Options) -> Vec<(usize, usize)> {
        let shape = Shape {
            width,
            height,
            channels: 1,
            depth: Depth::Sixteen,
        };
        let levels = levels(shape, options);
        levels
            .iter()
            .map(|it| (it.shape.width, it.shape.height))
            .collect()
    }

    #[test]
    fn levels_halve_until_they_are_one_chunk() {
        let plain = Options::default();
        assert_eq!(sizes(1, 1, &plain), [(1, 1)]);
        assert_eq!(sizes(1024, 1024, &plain), [(1024, 1024)]);
        assert_eq!(sizes(1025, 3, &plain), [(1025, 3), (513, 2)]);
        assert_eq!(
            sizes(5000, 1023, &plain),
            [(5000, 1023), (2500, 512), (1250, 256), (625, 128)]
        );
        let some = Options {
            levels: Some(4),
            ..plain
        };
        assert_eq!(sizes(5, 2, &some), [(5, 2), (3, 1), (1, 1), (1, 1)]);
        assert_eq!(halved(7, 64), 1);
        assert_eq!(halved(usize::MAX, 63), 2);
    }

    #[test]
    fn chunks_and_shards_are_not_larger_than_a_level() {
        let options = Options {
            chunk: 4,
            shard: Some(8),
            ..Options::default()
        };
        let shape = Shape {
            width: 9,
            height: 5,
            channels: 1,
            depth: Depth::Eight,
        };
        let found = levels(shape, &options);
        let found: Vec<_> = found.iter().map(|it| (it.chunk, it.file())).collect();
        assert_eq!(
            found,
            [([4, 4], [8, 8]), ([3, 4], [3, 8]), ([1, 2], [1, 2])]
        );
    }
}
