//! Images that are compressed in tiles, each tile in a row of a table (standard, section 10).

mod codec;
mod columns;
mod grid;
mod hcompress;
mod plio;
mod quantized;
mod rice;

use super::header::Header;
use crate::formats::error_policy::ErrorPolicy;
use crate::formats::format::{Decoder, PageSurvey};
use crate::formats::raster::Layout;
use crate::formats::raw;
use crate::image::metadata::{Diagnostics, Metadata};
use crate::image::{Image, Samples, Shape};
use crate::os::Source;
use anyhow::{Context, Result, ensure};
use codec::Codec;
use columns::Columns;
use grid::Grid;
use rayon::prelude::*;
use std::ops::Range;

/// Bytes of memory for a sample of a tile that is decoded: its compressed data, its integer and the result.
const TILE_SAMPLE: u64 = 32;

/// Bytes of memory for a row of a tile: its place in the image, and the list of the tile's rows if it has only one.
const TILE_ROW: u64 = 160;

/// Decodes the pages of a compressed image.
pub struct TiledDecoder<'a> {
    source: &'a Source,
    layout: Layout,
    grid: Grid,
    columns: Columns,
    codec: Codec,
    page: usize,
    /// All pages, if a tile can have samples of several: decoded with the first of them.
    all: Option<Samples>,
}

impl<'a> TiledDecoder<'a> {
    /// A decoder for the table that a header describes, and whose image has this layout and these axes.
    ///
    /// # Errors
    /// A compression or a table that is not supported, and a file that is too short.
    pub fn new(
        source: &'a Source,
        header: &Header,
        axes: &[u64],
        mut layout: Layout,
        damaged: bool,
    ) -> Result<TiledDecoder<'a>> {
        let grid = Grid::new(header, axes)?;
        let columns = Columns::new(header, grid.tiles())?;
        let codec = Codec::new(header, &columns, layout.shape.depth)?;
        if codec.is_lossy() {
            let note = "its samples were rounded when the file was compressed (ZQUANTIZ)";
            layout.diagnostics.notes.push(note.into());
        }
        let len = source.len();
        let end = if damaged {
            columns.heap.start
        } else {
            columns.heap.end
        };
        ensure!(end <= len || damaged, "truncated at byte {len} of {end}");
        let samples = (layout.end()? - layout.start) / layout.shape.depth.bytes() as u64;
        ensure!(
            samples <= len.saturating_mul(codec.expansion()),
            "truncated: {len} bytes are too few for {samples} samples"
        );
        ensure!(
            layout.pages as u64 <= len,
            "truncated: {len} bytes are too few for {} pages",
            layout.pages
        );
        Ok(TiledDecoder {
            source,
            layout,
            grid,
            columns,
            codec,
            page: 0,
            all: None,
        })
    }

    /// All pages, one below the other.
    fn all_pages(&mut self, policy: &ErrorPolicy) -> Result<&Samples> {
        let all = match self.all.take() {
            Some(all) => all,
            None => {
                let Shape {
                    width,
                    height,
                    depth,
                    ..
                } = self.layout.shape;
                let height = (height as u64).checked_mul(self.layout.pages as u64);
                let height = height.context("its pages do not fit in memory")?;
                let mut all = policy.samples(&Shape::checked(width as u64, height, 1, depth)?)?;
                self.decode_tiles(0..self.grid.tiles(), all.as_bytes_mut(), policy)?;
                all
            }
        };
        Ok(self.all.insert(all))
    }

    /// Decodes tiles, in parallel, into memory that their samples fill, in their order in the image.
    fn decode_tiles(&self, tiles: Range<u64>, out: &mut [u8], policy: &ErrorPolicy) -> Result<()> {
        let bytes = self.layout.shape.depth.bytes();
        let tiles = self.grid.split(tiles, bytes, out)?;
        let failure = tiles.into_par_iter().find_map_first(|(tile, rows)| {
            let decoded = self.decode_tile(tile, rows);
            let decoded = decoded.with_context(|| format!("tile {}", tile + 1));
            policy.accept(decoded).err()
        });
        failure.map_or(Ok(()), Err)
    }

    /// Decodes a tile into its rows; those of a damaged tile are those of samples of 0.
    fn decode_tile(&self, tile: u64, rows: Vec<&mut [u8]>) -> Result<()> {
        let depth = self.layout.shape.depth;
        let size: usize = rows.iter().map(|row| row.len()).sum();
        let samples = size / depth.bytes();
        let stored = self.columns.stored(self.source, tile, samples as u64);
        let shape = self.grid.shape(tile);
        let decoded = stored.and_then(|stored| self.codec.decode(&stored, tile, &shape));
        let (mut decoded, result) = match decoded {
            Ok(decoded) => (decoded, Ok(())),
            Err(error) => (vec![0; size], Err(error)),
        };
        raw::to_memory(&mut decoded, depth, self.layout.toggled);
        let mut rest = &decoded[..];
        for row in rows {
            let (samples, more) = rest.split_at(row.len());
            row.copy_from_slice(samples);
            rest = more;
        }
        result
    }
}

impl Decoder for TiledDecoder<'_> {
    fn pages(&self) -> usize {
        self.layout.pages
    }

    /// What is in memory beside the page counts as metadata: the tiles that threads decode, the places of all rows of tiles, and
    /// all other pages if a tile can have samples of several.
    fn survey(&self, _page: usize) -> Result<PageSurvey> {
        let shape = self.layout.shape;
        let pages = if self.grid.has_deep_tiles() {
            self.layout.pages as u64
        } else {
            1
        };
        let threads = rayon::current_num_threads() as u64;
        let tiles = self.grid.most_samples().saturating_mul(threads);
        let tiles = tiles.min(pages.saturating_mul(shape.pixels() as u64));
        let rows = pages.saturating_mul(shape.height as u64 * self.grid.across());
        let others = (pages - 1).saturating_mul(self.layout.page_bytes());
        let memory = tiles.saturating_mul(TILE_SAMPLE);
        let memory = memory.saturating_add(rows.saturating_mul(TILE_ROW));
        Ok(PageSurvey {
            shape,
            metadata_bytes: memory.saturating_add(others),
        })
    }

    fn turn_to(&mut self, page: usize) -> Result<()> {
        self.page = page;
        Ok(())
    }

    fn shape(&self) -> Shape {
        self.layout.shape
    }

    fn metadata(&self, diagnostics: &mut Diagnostics) -> Result<Metadata> {
        diagnostics.add(&self.layout.diagnostics);
        Ok(self.layout.metadata.clone())
    }
    fn decoding(&self) -> String {
        format!("{} tiles of {}", self.grid.tiles_of_page(), self.codec)
    }

    fn decode(&mut self, policy: &ErrorPolicy) -> Result<Image> {
        let shape = self.layout.shape;
        let mut samples = policy.samples(&shape)?;
        let bytes = samples.as_bytes_mut();
        if self.grid.has_deep_tiles() {
            let start = self.page * bytes.len();
            let all = self.all_pages(policy)?;
            bytes.copy_from_slice(&all.as_bytes()[start..start + bytes.len()]);
        } else {
            let tiles = self.grid.tiles_of_page();
            let first = self.page as u64 * tiles;
            self.decode_tiles(first..first + tiles, bytes, policy)?;
        }
        Ok(Image::new(shape, samples))
    }
}
