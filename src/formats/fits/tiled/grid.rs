//! Where the samples of tiles are in an image.

use crate::formats::fits::header::Header;
use anyhow::{Context, Result, ensure};
use std::ops::Range;

/// The division of an image into tiles of one size; those at the ends of axes are smaller.
pub struct Grid {
    /// The lengths of the axes, that of a row first.
    axes: Vec<u64>,
    /// The lengths of a tile along them.
    tile: Vec<u64>,
    /// Tiles along each axis.
    counts: Vec<u64>,
}

/// A tile with the memory of its rows, from its first to its last.
pub type TileRows<'m> = (u64, Vec<&'m mut [u8]>);

impl Grid {
    /// The grid of an image with these axes, from ZTILEn; a tile is a row where they are missing.
    ///
    /// # Errors
    /// A length that is not positive, and more tiles than a file can have.
    pub fn new(header: &Header, axes: &[u64]) -> Result<Grid> {
        let length = |(index, &axis): (usize, &u64)| {
            let name = format!("ZTILE{}", index + 1);
            let length = match header.integer(&name) {
                Some(length) => u64::try_from(length).unwrap_or(0),
                None if index == 0 => axis,
                None => 1,
            };
            ensure!(length > 0, "its {name} is not positive");
            Ok(length.min(axis))
        };
        let tile: Vec<u64> = axes.iter().enumerate().map(length).collect::<Result<_>>()?;
        let counts: Vec<u64> = (axes.iter().zip(&tile))
            .map(|(axis, length)| axis.div_ceil(*length))
            .collect();
        let all = counts
            .iter()
            .try_fold(1u64, |all, &count| all.checked_mul(count));
        all.context("it has more tiles than fit in a file")?;
        Ok(Grid {
            axes: axes.into(),
            tile,
            counts,
        })
    }

    /// The number of tiles.
    pub fn tiles(&self) -> u64 {
        self.counts.iter().product()
    }

    /// The number of tiles of a page, if a tile has samples of one page only.
    pub fn tiles_of_page(&self) -> u64 {
        self.counts[..2].iter().product()
    }

    /// The number of tiles side by side.
    pub fn across(&self) -> u64 {
        self.counts[0]
    }

    /// Whether a tile has samples of several pages.
    pub fn has_deep_tiles(&self) -> bool {
        self.tile[2..].iter().any(|&length| length > 1)
    }

    /// The samples of the largest tile.
    pub fn most_samples(&self) -> u64 {
        self.tile.iter().product()
    }

    /// Where a tile starts and ends on each axis.
    fn extent(&self, tile: u64) -> Vec<Range<u64>> {
        let mut rest = tile;
        let axes = self.axes.iter().zip(&self.tile).zip(&self.counts);
        axes.map(|((&axis, &length), &count)| {
            let start = rest % count * length;
            rest /= count;
            start..(start + length).min(axis)
        })
        .collect()
    }

    /// The lengths of a tile along the axes.
    pub fn shape(&self, tile: u64) -> Vec<usize> {
        let extent = self.extent(tile).into_iter();
        extent
            .map(|range| (range.end - range.start) as usize)
            .collect()
    }

    /// The places of the first samples of a tile's rows in the image, counted in samples.
    fn rows(&self, tile: u64) -> Vec<u64> {
        let extent = self.extent(tile);
        let mut starts = vec![0];
        // From the slowest axis to the rows: each place becomes those of the next axis.
        for (range, axis) in extent.iter().zip(&self.axes).skip(1).rev() {
            let along = |start: u64| range.clone().map(move |place| start * axis + place);
            starts = starts.into_iter().flat_map(along).collect();
        }
        let row = |start: u64| start * self.axes[0] + extent[0].start;
        starts.into_iter().map(row).collect()
    }

    /// Divides memory, which the samples of these tiles fill, into the rows of each tile.
    ///
    /// # Errors
    /// Tiles that do not fill the memory.
    pub fn split<'m>(
        &self,
        tiles: Range<u64>,
        sample_bytes: usize,
        memory: &'m mut [u8],
    ) -> Result<Vec<TileRows<'m>>> {
        let mut starts: Vec<(u64, u64)> = tiles
            .clone()
            .flat_map(|tile| self.rows(tile).into_iter().map(move |start| (start, tile)))
            .collect();
        starts.sort_unstable();
        let mut rows: Vec<TileRows> = tiles.clone().map(|tile| (tile, Vec::new())).collect();
        let widths: Vec<usize> = rows.iter().map(|(tile, _)| self.shape(*tile)[0]).collect();
        let mut rest = memory;
        for (_, tile) in starts {
            let index = (tile - tiles.start) as usize;
            let (row, more) = rest
                .split_at_mut_checked(widths[index] * sample_bytes)
                .context("its tiles have more samples than the image")?;
            rows[index].1.push(row);
            rest = more;
        }
        Ok(rows)
    }
}
