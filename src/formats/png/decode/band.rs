//! Undoes the filters of scanlines a few rows at a time, in memory that is used again.

use super::unfilter::{Layout, unfilter_rows};
use super::unfilter_pixels::PAETH;
use anyhow::{Result, ensure};

/// Rows of an image, or of a pass of one, that are filled with scanlines piece by piece and handed on when they are unfiltered.
pub struct Band {
    layout: Layout,
    /// Rows that are unfiltered together.
    most: usize,
    /// Bytes of a row, and the number of rows.
    row: usize,
    rows: usize,
    /// Rows that were handed on.
    done: usize,
    /// The last row that was handed on, and behind it those to come.
    memory: Vec<u8>,
    /// Filter types of the rows to come; the last row may be incomplete.
    filters: Vec<u8>,
    /// Bytes present of the scanline being filled, its filter type included.
    column: usize,
}

impl Band {
    /// A band of `most` rows of at most `layout.row` bytes; `start` says of how many.
    pub fn new(layout: Layout, most: usize) -> Band {
        Band {
            layout,
            most,
            row: 0,
            rows: 0,
            done: 0,
            memory: vec![0; (most + 1) * layout.row],
            filters: Vec::with_capacity(most),
            column: 0,
        }
    }

    /// Begins with the first of so many rows of `row` bytes each, above which all counts as 0.
    pub fn start(&mut self, row: usize, rows: usize) {
        (self.row, self.rows, self.done) = (row, rows, 0);
        self.memory[..row].fill(0);
    }

    /// Whether all rows were handed on.
    pub fn is_over(&self) -> bool {
        self.done == self.rows
    }

    /// Takes the next bytes of the scanlines, up to the last row's end, and returns those behind it. Passes rows that are
    /// unfiltered to `take`, with the index of the first.
    ///
    /// # Errors
    /// An unknown filter type, and errors of `take`.
    pub fn push<'b>(
        &mut self,
        mut bytes: &'b [u8],
        mut take: impl FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<&'b [u8]> {
        while !self.is_over()
            && let Some(&first) = bytes.first()
        {
            if self.column == 0 {
                ensure!(first <= PAETH, "unknown filter type {first}");
                self.filters.push(first);
                bytes = &bytes[1..];
                self.column = 1;
            }
            let (piece, rest) = bytes.split_at(bytes.len().min(self.row + 1 - self.column));
            let start = self.filters.len() * self.row + self.column - 1;
            self.memory[start..start + piece.len()].copy_from_slice(piece);
            self.column = (self.column + piece.len()) % (self.row + 1);
            bytes = rest;
            let count = self.filters.len();
            if self.column == 0 && (count == self.most || self.done + count == self.rows) {
                take(self.done, self.unfiltered())?;
                let last = count * self.row..(count + 1) * self.row;
                self.memory.copy_within(last, 0);
                self.filters.clear();
                self.done += count;
            }
        }
        Ok(bytes)
    }

    fn unfiltered(&mut self) -> &[u8] {
        let filled = &mut self.memory[..(self.filters.len() + 1) * self.row];
        let (above, rows) = filled.split_at_mut(self.row);
        self.layout.to_native(rows);
        unfilter_rows(&self.filters, self.layout.step, above, rows);
        rows
    }
}
