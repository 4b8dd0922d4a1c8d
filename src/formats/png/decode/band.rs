//! Undoes the filters of scanlines a few rows at a time, in a buffer that is reused.

use super::unfilter::{RowLayout, unfilter_rows};
use super::unfilter_pixels::PAETH;
use anyhow::{Result, ensure};

/// Receives the scanlines of an image, or of one pass of an image, in pieces of any size. Returns the unfiltered rows, a few at a
/// time.
pub struct Band {
    layout: RowLayout,
    /// Rows that are unfiltered together.
    band_rows: usize,
    /// Bytes of a row of the current image or pass.
    row_bytes: usize,
    /// Rows of the current image or pass.
    total_rows: usize,
    /// Rows that were passed to `take`.
    given_rows: usize,
    /// The last row that was passed to `take`, followed by the rows of the band.
    memory: Vec<u8>,
    /// Filter types of the rows in the band; the last row may be incomplete.
    filters: Vec<u8>,
    /// Bytes received of the current scanline, its filter type included.
    column: usize,
}

impl Band {
    /// A band of `band_rows` rows of at most `layout.row_bytes` bytes. `start` must be called before `push`.
    pub fn new(layout: RowLayout, band_rows: usize) -> Band {
        Band {
            layout,
            band_rows,
            row_bytes: 0,
            total_rows: 0,
            given_rows: 0,
            memory: vec![0; (band_rows + 1) * layout.row_bytes],
            filters: Vec::with_capacity(band_rows),
            column: 0,
        }
    }

    /// Starts an image or a pass of `total_rows` rows of `row_bytes` bytes each. The row above the first one is all zeros.
    pub fn start(&mut self, row_bytes: usize, total_rows: usize) {
        self.row_bytes = row_bytes;
        self.total_rows = total_rows;
        self.given_rows = 0;
        self.memory[..row_bytes].fill(0);
    }

    /// Whether all rows of the image or pass were passed to `take`.
    pub fn is_complete(&self) -> bool {
        self.given_rows == self.total_rows
    }

    /// Receives the next bytes of the scanlines, up to the end of the last row, and returns the bytes after it. Passes
    /// unfiltered rows to `take`, with the index of the first one.
    ///
    /// # Errors
    /// An unknown filter type, and errors of `take`.
    pub fn push<'b>(
        &mut self,
        mut bytes: &'b [u8],
        mut take: impl FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<&'b [u8]> {
        while !self.is_complete()
            && let Some(&first) = bytes.first()
        {
            if self.column == 0 {
                ensure!(first <= PAETH, "unknown filter type {first}");
                self.filters.push(first);
                bytes = &bytes[1..];
                self.column = 1;
            }
            let (piece, rest) = bytes.split_at(bytes.len().min(self.row_bytes + 1 - self.column));
            let start = self.filters.len() * self.row_bytes + self.column - 1;
            self.memory[start..start + piece.len()].copy_from_slice(piece);
            self.column = (self.column + piece.len()) % (self.row_bytes + 1);
            bytes = rest;
            let count = self.filters.len();
            let is_full = count == self.band_rows || self.given_rows + count == self.total_rows;
            if self.column == 0 && is_full {
                take(self.given_rows, self.unfilter())?;
                let last = count * self.row_bytes..(count + 1) * self.row_bytes;
                self.memory.copy_within(last, 0);
                self.filters.clear();
                self.given_rows += count;
            }
        }
        Ok(bytes)
    }

    /// Unfilters the rows of the band and returns them.
    fn unfilter(&mut self) -> &[u8] {
        let filled = &mut self.memory[..(self.filters.len() + 1) * self.row_bytes];
        let (above, rows) = filled.split_at_mut(self.row_bytes);
        self.layout.to_native(rows);
        unfilter_rows(&self.filters, self.layout.pixel_bytes, above, rows);
        rows
    }
}
