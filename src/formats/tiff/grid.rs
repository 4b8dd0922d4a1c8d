//! The chunks of an image, strips or tiles, and where they are in the file (TIFF 6.0, section 15).

use super::ifd::{Ifd, tag};
use super::shape::Form;
use super::unpack::Method;
use crate::image::Shape;
use anyhow::{Context, Result, anyhow, bail, ensure};

/// The division of the image into chunks of one size, strips or tiles. The last strip may be
/// shorter; tiles at the right and lower border are complete and extend past the image.
pub struct Grid {
    /// Pixels in a row of a chunk.
    pub width: usize,
    /// Rows of a chunk.
    pub height: usize,
    /// Whether the chunks are tiles.
    pub tiled: bool,
}

/// The range of a chunk's bytes in the file.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Offset of the first byte.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
}

impl Grid {
    /// The division of an image, and the position of each chunk.
    ///
    /// # Errors
    /// A directory that does not list its chunks.
    pub fn read(ifd: &Ifd, form: &Form, method: Method) -> Result<(Grid, Vec<Span>)> {
        let shape = &form.shape;
        let (width, height) = (shape.width as u64, shape.height as u64);
        let tile = ifd.value(tag::TILE_WIDTH)?;
        let tiled = tile.is_some();
        let (chunk, offsets, counts) = if let Some(across) = tile {
            let down = ifd.value(tag::TILE_LENGTH)?.unwrap_or(0);
            let size = (across, down);
            // Some writers list tiles as strips.
            match ifd.value(tag::TILE_OFFSETS)? {
                None => (size, tag::STRIP_OFFSETS, tag::STRIP_BYTE_COUNTS),
                Some(_) => (size, tag::TILE_OFFSETS, tag::TILE_BYTE_COUNTS),
            }
        } else {
            let rows = ifd.value(tag::ROWS_PER_STRIP)?.unwrap_or(height);
            let size = (width, rows.min(height));
            (size, tag::STRIP_OFFSETS, tag::STRIP_BYTE_COUNTS)
        };
        // A chunk is a small image; its size is checked as that of an image.
        let chunk = Shape::checked(chunk.0, chunk.1, form.stored, shape.depth)
            .map_err(|error| anyhow!("{error} ({} size)", if tiled { "tile" } else { "strip" }))?;
        let grid = Grid {
            width: chunk.width,
            height: chunk.height,
            tiled,
        };
        let noun = grid.noun();
        let across = shape.width.div_ceil(grid.width) as u64;
        let number = across * shape.height.div_ceil(grid.height) as u64 * form.planes() as u64;
        let list = |tag| -> Result<Option<Vec<u64>>> {
            let Some(values) = ifd.values(tag, number)? else {
                return Ok(None);
            };
            let present = values.len() as u64;
            ensure!(
                present == number,
                "its directory lists {present} of {number} {noun}s"
            );
            Ok(Some(values))
        };
        let offsets = list(offsets)?.with_context(|| format!("its directory lists no {noun}s"))?;
        // Some writers leave out the length of the only strip.
        let chunk_bytes = (form.row(chunk.width) * chunk.height) as u64;
        let counts = match list(counts)? {
            Some(counts) => counts,
            None if method == Method::None && number == 1 => vec![chunk_bytes],
            None => bail!("its directory lists no {noun} byte counts"),
        };
        let spans = offsets.into_iter().zip(counts);
        let spans = spans.map(|(offset, len)| Span { offset, len }).collect();
        Ok((grid, spans))
    }

    /// The word for a chunk in messages: strip or tile.
    pub fn noun(&self) -> &'static str {
        if self.tiled { "tile" } else { "strip" }
    }
}

impl Span {
    /// Whether the chunk is not in the file, as GDAL leaves out those without data.
    pub fn is_absent(&self) -> bool {
        self.len == 0 && self.offset == 0
    }
}
