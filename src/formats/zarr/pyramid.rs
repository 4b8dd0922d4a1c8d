//! The arrays of a new image: its levels, and how each is divided into files and chunks.

use super::options::Options;
use crate::formats::pyramid;
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

/// The levels of pages of a shape, the full size first.
pub fn levels(shape: Shape, options: &Options) -> Vec<Level> {
    let shapes = pyramid::shapes(shape, options.levels, options.chunk);
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
    shapes.into_iter().enumerate().map(level).collect()
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
