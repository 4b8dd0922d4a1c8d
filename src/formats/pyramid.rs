//! The levels of a pyramid, made in one pass over a page whose rows come in bands: of OME-Zarr, and of TIFF with overviews.
//!
//! A level keeps the rows that do not fill a row of tiles yet; nothing else of a page stays in memory. Each further level is
//! the mean of the full size (`ops::area_mean`), not of the level before.

use crate::image::{Image, Samples, Shape};
use crate::ops::area_mean::Reduction;
use anyhow::Result;
use std::borrow::Cow;
use std::ops::Range;

/// The shapes of all levels of a page, the full size first. Each has half the rows and columns of the one before, rounded half
/// up, as the full size divided by a power of two. Without a number of levels, the last one is the first that fits into a
/// square tile of this side.
pub fn shapes(page: Shape, levels: Option<usize>, tile: usize) -> Vec<Shape> {
    let shapes = (0..).map(|level| Shape {
        width: halved(page.width, level),
        height: halved(page.height, level),
        ..page
    });
    let is_small = |shape: &Shape| shape.width.max(shape.height) <= tile;
    let automatic = 1 + shapes.clone().position(|it| is_small(&it)).unwrap_or(0);
    shapes.take(levels.unwrap_or(automatic)).collect()
}

/// A side after it was halved so many times; at least 1.
fn halved(side: usize, times: u32) -> usize {
    let twice = side.checked_shr(times.saturating_sub(1)).unwrap_or(0);
    match times {
        0 => side,
        _ => twice.div_ceil(2).max(1),
    }
}

/// The rows of a level, from top to bottom.
pub struct LevelRows {
    /// The shape of the level.
    shape: Shape,
    /// Makes its rows from those of the page; `None` for the full size.
    reduction: Option<Reduction>,
    /// Rows of a tile.
    tile_height: usize,
    /// The first row of the next row of tiles.
    top: usize,
    /// Samples of rows after `top`, as in memory, which do not fill the row of tiles yet.
    rows: Vec<u8>,
}

/// A row of tiles, all samples of which are known.
pub struct TileRow<'a> {
    /// The numbers of its rows in the level.
    pub rows: Range<usize>,
    /// Their samples, as in memory.
    pub samples: &'a [u8],
}

impl LevelRows {
    /// A level of this shape of a page, in tiles of so many rows.
    pub fn new(page: Shape, level: Shape, tile_height: usize) -> LevelRows {
        let is_smaller = level != page;
        LevelRows {
            shape: level,
            reduction: is_smaller.then(|| Reduction::new(page, level)),
            tile_height,
            top: 0,
            rows: Vec::new(),
        }
    }

    /// The shape of the level.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Whether all its rows of tiles have been given.
    pub fn is_complete(&self) -> bool {
        self.top == self.shape.height
    }

    /// The rows of the level that the next rows of the page complete, for `add`.
    pub fn reduce<'a>(&mut self, band: &'a Image) -> Cow<'a, Samples> {
        match &mut self.reduction {
            None => Cow::Borrowed(band.samples()),
            Some(reduction) => Cow::Owned(reduction.add(band)),
        }
    }

    /// Adds the next rows of the level, as in memory, and calls `take` with the rows of tiles that are complete, if any are.
    ///
    /// # Errors
    /// Those of `take`.
    pub fn add(&mut self, rows: &[u8], take: impl FnOnce(&[TileRow]) -> Result<()>) -> Result<()> {
        let row_bytes = self.shape.row() * self.shape.depth.bytes();
        if self.rows.len() + rows.len() < self.next_rows().len() * row_bytes {
            self.rows.extend_from_slice(rows);
            return Ok(());
        }
        let before = std::mem::take(&mut self.rows);
        let rows = match &before[..] {
            [] => Cow::Borrowed(rows),
            before => Cow::Owned([before, rows].concat()),
        };
        let mut rest = &rows[..];
        let mut complete = Vec::new();
        while self.top < self.shape.height {
            let next = self.next_rows();
            let Some((samples, after)) = rest.split_at_checked(next.len() * row_bytes) else {
                break;
            };
            self.top = next.end;
            complete.push(TileRow {
                rows: next,
                samples,
            });
            rest = after;
        }
        self.rows = rest.to_vec();
        take(&complete)
    }

    /// The rows of the next row of tiles; none at the end.
    fn next_rows(&self) -> Range<usize> {
        self.top..(self.top + self.tile_height).min(self.shape.height)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Depth;

    fn sizes(
        width: usize,
        height: usize,
        levels: Option<usize>,
        tile: usize,
    ) -> Vec<(usize, usize)> {
        let page = Shape {
            width,
            height,
            channels: 1,
            depth: Depth::Sixteen,
        };
        let shapes = shapes(page, levels, tile);
        shapes.iter().map(|it| (it.width, it.height)).collect()
    }

    #[test]
    fn levels_halve_until_they_are_one_tile() {
        assert_eq!(sizes(1, 1, None, 1024), [(1, 1)]);
        assert_eq!(sizes(1024, 1024, None, 1024), [(1024, 1024)]);
        assert_eq!(sizes(1025, 3, None, 1024), [(1025, 3), (513, 2)]);
        assert_eq!(
            sizes(5000, 1023, None, 1024),
            [(5000, 1023), (2500, 512), (1250, 256), (625, 128)]
        );
        assert_eq!(sizes(1025, 3, None, 512), [(1025, 3), (513, 2), (256, 1)]);
        assert_eq!(sizes(5, 2, Some(4), 1024), [(5, 2), (3, 1), (1, 1), (1, 1)]);
        assert_eq!(halved(7, 64), 1);
        assert_eq!(halved(usize::MAX, 63), 2);
    }
}
