//! Reverses the filters of scanlines (PNG specification, third edition, §9.2), in place.
//!
//! Filters combine bytes at the same position in neighbouring pixels, so 16-bit samples can be
//! converted to the machine's byte order first.

use super::unfilter_pixels::{AVERAGE, PAETH, SUB, unfilter_from};
use super::unfilter_simd;
use crate::image::Shape;
use anyhow::{Result, ensure};

/// The sizes of an image's rows, pixels and samples. A scanline is a row and the byte of its filter type before it.
#[derive(Clone, Copy)]
pub struct RowLayout {
    pub row_bytes: usize,
    pub pixel_bytes: usize,
    sample_bytes: usize,
}

impl RowLayout {
    /// The layout of an image of this shape.
    pub fn new(shape: &Shape) -> RowLayout {
        let sample_bytes = shape.depth.bytes();
        RowLayout {
            row_bytes: shape.row() * sample_bytes,
            pixel_bytes: shape.channels * sample_bytes,
            sample_bytes,
        }
    }

    /// Converts samples from big-endian to the machine's byte order.
    pub fn to_native(self, rows: &mut [u8]) {
        if self.sample_bytes == 2 {
            for sample in rows.as_chunks_mut::<2>().0 {
                *sample = u16::from_be_bytes(*sample).to_ne_bytes();
            }
        }
    }
}

/// The fewest bytes of rows that `Unfilterer::push_and_hand_over` hands over at once.
const MIN_HANDED_OVER_BYTES: usize = 512 << 10;

/// The most bytes of filtered rows that `Unfilterer::push_and_hand_over` collects while it waits for a row where a run can end.
const MAX_FILTERED_BYTES: usize = 4 * MIN_HANDED_OVER_BYTES;

/// Receives scanlines in pieces of any size and undoes their filters in the memory of the image, or of some rows of it.
pub struct Unfilterer<'a> {
    image: &'a mut [u8],
    layout: RowLayout,
    /// Filter types of the rows that are not unfiltered yet; the last row may be incomplete.
    filters: Vec<u8>,
    /// Bytes received of the current scanline, its filter type included.
    column: usize,
    /// Rows of `image` whose filters are undone.
    unfiltered: usize,
    /// Rows that were handed over, and are no longer in `image`.
    handed_over: usize,
}

impl<'a> Unfilterer<'a> {
    /// Starts with the first row of `image`.
    pub fn new(image: &'a mut [u8], layout: RowLayout) -> Unfilterer<'a> {
        Unfilterer {
            image,
            layout,
            filters: Vec::new(),
            column: 0,
            unfiltered: 0,
            handed_over: 0,
        }
    }

    /// Receives the next bytes of the scanlines; they must not exceed `image`.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.copy(bytes, None)?;
        self.unfilter();
        Ok(())
    }

    /// As `push`, but passes complete runs of rows to `hand_over`, so that another thread can `unfilter` them. A run ends
    /// before a row that does not need the row above it.
    pub fn push_and_hand_over(
        &mut self,
        bytes: &[u8],
        hand_over: &mut dyn FnMut(Unfilterer<'a>),
    ) -> Result<()> {
        self.copy(bytes, Some(hand_over))?;
        let filled = (self.unfiltered + self.filters.len()) * self.layout.row_bytes;
        let at_end = filled == self.image.len() && self.column == 0;
        if at_end || self.filters.len() * self.layout.row_bytes > MAX_FILTERED_BYTES {
            self.unfilter();
        }
        Ok(())
    }

    /// Copies the next bytes of the scanlines to their rows.
    fn copy(
        &mut self,
        mut bytes: &[u8],
        mut hand_over: Option<&mut dyn FnMut(Unfilterer<'a>)>,
    ) -> Result<()> {
        while let Some(&first) = bytes.first() {
            if self.column == 0 {
                ensure!(
                    first <= PAETH,
                    "unknown filter type {first} in row {}",
                    self.handed_over + self.unfiltered + self.filters.len()
                );
                if let Some(hand_over) = &mut hand_over
                    && first <= SUB
                    && self.filters.len() * self.layout.row_bytes >= MIN_HANDED_OVER_BYTES
                {
                    hand_over(self.split_off_complete_rows());
                }
                self.filters.push(first);
                bytes = &bytes[1..];
                self.column = 1;
            }
            let (piece, rest) =
                bytes.split_at(bytes.len().min(self.layout.row_bytes + 1 - self.column));
            let row = self.unfiltered + self.filters.len() - 1;
            let start = row * self.layout.row_bytes + self.column - 1;
            self.image[start..start + piece.len()].copy_from_slice(piece);
            self.column = (self.column + piece.len()) % (self.layout.row_bytes + 1);
            bytes = rest;
        }
        Ok(())
    }

    /// Splits off all rows before the current one, which must not need the row above it.
    fn split_off_complete_rows(&mut self) -> Unfilterer<'a> {
        let rows = self.unfiltered + self.filters.len();
        let (image, rest) =
            std::mem::take(&mut self.image).split_at_mut(rows * self.layout.row_bytes);
        let complete = Unfilterer {
            image,
            layout: self.layout,
            filters: std::mem::take(&mut self.filters),
            column: 0,
            unfiltered: self.unfiltered,
            handed_over: self.handed_over,
        };
        self.image = rest;
        self.unfiltered = 0;
        self.handed_over += rows;
        complete
    }

    /// Unfilters the complete rows. Unless the image is complete, rows of an incomplete group stay filtered until the next call.
    pub fn unfilter(&mut self) {
        let complete = self.filters.len() - usize::from(self.column > 0);
        let at_end = (self.unfiltered + complete) * self.layout.row_bytes == self.image.len();
        let RowLayout {
            row_bytes,
            pixel_bytes,
            ..
        } = self.layout;
        // The first row has no row above, so groups start at the second.
        let first_rows = usize::from(self.unfiltered == 0).min(complete);
        let incomplete_group = (complete - first_rows) % unfilter_simd::rows_at_once(pixel_bytes);
        let count = if at_end {
            complete
        } else {
            complete - incomplete_group
        };
        let (before, rest) = self.image.split_at_mut(self.unfiltered * row_bytes);
        let rows = &mut rest[..count * row_bytes];
        self.layout.to_native(rows);
        let (first, rows) = rows.split_at_mut(first_rows * row_bytes);
        let above = if first_rows > 0 {
            unfilter_first(self.filters[0], pixel_bytes, first);
            first
        } else {
            before
                .get(before.len().saturating_sub(row_bytes)..)
                .unwrap_or(&[])
        };
        unfilter_rows(&self.filters[first_rows..count], pixel_bytes, above, rows);
        self.filters.drain(..count);
        self.unfiltered += count;
    }
}

/// Unfilters consecutive rows, each by its filter type; `above` is the unfiltered row before them.
pub fn unfilter_rows(filters: &[u8], pixel_bytes: usize, above: &[u8], rows: &mut [u8]) {
    let row_bytes = above.len();
    let group = unfilter_simd::rows_at_once(pixel_bytes);
    let mut above = above;
    let mut rest = rows;
    for filters in filters.chunks(group) {
        let (rows, later) = rest.split_at_mut(filters.len() * row_bytes);
        let chained = filters.iter().any(|&filter| filter >= AVERAGE);
        if !(chained && unfilter_simd::unfilter_group(filters, pixel_bytes, above, rows)) {
            let mut above = above;
            for (&filter, row) in filters.iter().zip(rows.chunks_exact_mut(row_bytes)) {
                unfilter_row(filter, pixel_bytes, above, row);
                above = row;
            }
        }
        above = &rows[rows.len() - row_bytes..];
        rest = later;
    }
}

/// Unfilters the first row of an image: the row above it counts as zeros.
fn unfilter_first(filter: u8, pixel_bytes: usize, row: &mut [u8]) {
    match filter {
        SUB | PAETH => unfilter_row(SUB, pixel_bytes, &[], row),
        AVERAGE => {
            for i in pixel_bytes..row.len() {
                row[i] = row[i].wrapping_add(row[i - pixel_bytes] / 2);
            }
        }
        _ => {}
    }
}

/// Unfilters one row. `above` is the unfiltered row before it; Sub does not use it.
fn unfilter_row(filter: u8, pixel_bytes: usize, above: &[u8], row: &mut [u8]) {
    match pixel_bytes {
        1 => unfilter_pixels::<1>(filter, above, row),
        2 => unfilter_pixels::<2>(filter, above, row),
        3 => unfilter_pixels::<3>(filter, above, row),
        4 => unfilter_pixels::<4>(filter, above, row),
        6 => unfilter_pixels::<6>(filter, above, row),
        _ => unfilter_pixels::<8>(filter, above, row),
    }
}

fn unfilter_pixels<const STEP: usize>(filter: u8, above: &[u8], row: &mut [u8]) {
    let done = match filter {
        SUB => unfilter_simd::unfilter_sub::<STEP>(row),
        _ => 0,
    };
    let (done, rest) = row.split_at_mut(done);
    let left = done.last_chunk().copied().unwrap_or([0; STEP]);
    let (rest, _) = rest.as_chunks_mut::<STEP>();
    let (above, _) = above.as_chunks::<STEP>();
    unfilter_from(left, [0; STEP], filter, above, rest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Depth;
    use anyhow::Result;

    /// Rows that are handed over give the same image as rows that are not, in whatever order they are unfiltered. None are
    /// handed over if every row needs the one above it.
    #[test]
    fn rows_that_are_handed_over_give_the_same_image() -> Result<()> {
        let shape = Shape {
            width: 701,
            height: 2900,
            channels: 1,
            depth: Depth::Sixteen,
        };
        let layout = RowLayout::new(&shape);
        let mut state = 1u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 16
        };
        for (filters, expected_runs) in [(0..5, 7), (1..2, 7), (2..5, 0)] {
            let mut scanlines = Vec::new();
            for _ in 0..shape.height {
                scanlines.push(filters.start + (random() % filters.len() as u32) as u8);
                scanlines.extend((0..layout.row_bytes).map(|_| random() as u8));
            }
            let size = shape.height * layout.row_bytes;
            let (mut whole, mut apart) = (vec![0; size], vec![0xa5; size]);
            Unfilterer::new(&mut whole, layout).push(&scanlines)?;
            let mut handed = Vec::new();
            let mut rows = Unfilterer::new(&mut apart, layout);
            let mut rest = &scanlines[..];
            while !rest.is_empty() {
                let (piece, later) = rest.split_at(rest.len().min(random() as usize * 4));
                rows.push_and_hand_over(piece, &mut |rows| handed.push(rows))?;
                rest = later;
            }
            assert_eq!(handed.len(), expected_runs, "{filters:?}");
            for mut rows in handed.into_iter().rev() {
                rows.unfilter();
            }
            assert!(apart == whole, "{filters:?}");
        }
        Ok(())
    }
}
