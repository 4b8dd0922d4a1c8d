//! Reverses the filters of scanlines (PNG specification, third edition, §9.2), in place.
//!
//! Filters combine bytes at the same position in neighbouring pixels, so 16-bit samples can be
//! converted to the machine's byte order first.

use super::unfilter_pixels::{AVERAGE, PAETH, SUB, unfilter_from};
use super::unfilter_simd;
use crate::image::Shape;
use anyhow::{Result, ensure};

/// The layout of an image's samples in memory and in scanlines.
#[derive(Clone, Copy)]
pub struct Layout {
    /// Bytes in a row.
    pub row: usize,
    /// Bytes in a pixel.
    pub step: usize,
    /// Bytes in a sample.
    sample: usize,
}

impl Layout {
    /// The layout of an image of this shape.
    pub fn of(shape: &Shape) -> Layout {
        let sample = shape.depth.bytes();
        Layout {
            row: shape.row() * sample,
            step: shape.channels * sample,
            sample,
        }
    }

    /// Brings samples into the machine's byte order.
    pub fn to_native(self, rows: &mut [u8]) {
        if self.sample == 2 {
            for sample in rows.as_chunks_mut::<2>().0 {
                *sample = u16::from_be_bytes(*sample).to_ne_bytes();
            }
        }
    }
}

/// Bytes of the rows that `Rows::push_apart` hands on together, at least, and those that it leaves filtered, at most.
const GROUP: usize = 512 << 10;
const MOST: usize = 4 * GROUP;

/// The rows of an image, or of a part of it, which are filled with scanlines piece by piece.
pub struct Rows<'a> {
    image: &'a mut [u8],
    layout: Layout,
    /// Filter types of the rows that are still filtered; the last row may be incomplete.
    filters: Vec<u8>,
    /// Bytes present of the scanline being filled, its filter type included.
    column: usize,
    /// Rows that are finished.
    done: usize,
    /// Rows that were handed on, and are no longer in `image`.
    handed: usize,
}

impl<'a> Rows<'a> {
    /// An empty state for rows that are written to `image`.
    pub fn new(image: &'a mut [u8], layout: Layout) -> Rows<'a> {
        Rows {
            image,
            layout,
            filters: Vec::new(),
            column: 0,
            done: 0,
            handed: 0,
        }
    }

    /// Consumes the next bytes of the scanlines; they must not exceed `image`.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.fill(bytes, None)?;
        self.unfilter();
        Ok(())
    }

    /// As `push`, but hands rows to `hand` that another thread can `unfilter`: where a row does not need the one above
    /// it, those before it are whole.
    pub fn push_apart(&mut self, bytes: &[u8], hand: &mut dyn FnMut(Rows<'a>)) -> Result<()> {
        self.fill(bytes, Some(hand))?;
        let filled = (self.done + self.filters.len()) * self.layout.row;
        let at_end = filled == self.image.len() && self.column == 0;
        if at_end || self.filters.len() * self.layout.row > MOST {
            self.unfilter();
        }
        Ok(())
    }

    /// Copies the next bytes of the scanlines to their rows.
    fn fill(&mut self, mut bytes: &[u8], mut hand: Option<&mut dyn FnMut(Rows<'a>)>) -> Result<()> {
        while let Some(&first) = bytes.first() {
            if self.column == 0 {
                ensure!(
                    first <= PAETH,
                    "unknown filter type {first} in row {}",
                    self.handed + self.done + self.filters.len()
                );
                if let Some(hand) = &mut hand
                    && first <= SUB
                    && self.filters.len() * self.layout.row >= GROUP
                {
                    hand(self.cut());
                }
                self.filters.push(first);
                bytes = &bytes[1..];
                self.column = 1;
            }
            let (piece, rest) = bytes.split_at(bytes.len().min(self.layout.row + 1 - self.column));
            let row = self.done + self.filters.len() - 1;
            let start = row * self.layout.row + self.column - 1;
            self.image[start..start + piece.len()].copy_from_slice(piece);
            self.column = (self.column + piece.len()) % (self.layout.row + 1);
            bytes = rest;
        }
        Ok(())
    }

    /// Cuts off all rows, which are complete. The next one must not need the row above it.
    fn cut(&mut self) -> Rows<'a> {
        let rows = self.done + self.filters.len();
        let (image, rest) = std::mem::take(&mut self.image).split_at_mut(rows * self.layout.row);
        let cut = Rows {
            image,
            layout: self.layout,
            filters: std::mem::take(&mut self.filters),
            column: 0,
            done: self.done,
            handed: self.handed,
        };
        self.image = rest;
        self.done = 0;
        self.handed += rows;
        cut
    }

    /// Unfilters the complete rows, but holds back a few, if more are to come, so that the next call finds a full group.
    pub fn unfilter(&mut self) {
        let complete = self.filters.len() - usize::from(self.column > 0);
        let at_end = (self.done + complete) * self.layout.row == self.image.len();
        let group = unfilter_simd::rows_at_once(self.layout.step);
        // The first row has no row above, so groups start at the second.
        let lone = usize::from(self.done == 0).min(complete);
        let count = match at_end {
            true => complete,
            false => complete - (complete - lone) % group,
        };
        let (above, rest) = self.image.split_at_mut(self.done * self.layout.row);
        let fresh = &mut rest[..count * self.layout.row];
        self.layout.to_native(fresh);
        let (first, fresh) = fresh.split_at_mut(lone * self.layout.row);
        if lone > 0 {
            unfilter_first(self.filters[0], self.layout.step, first);
        }
        let above = match lone {
            0 => above
                .get(above.len().saturating_sub(self.layout.row)..)
                .unwrap_or(&[]),
            _ => first,
        };
        unfilter_rows(&self.filters[lone..count], self.layout.step, above, fresh);
        self.filters.drain(..count);
        self.done += count;
    }
}

/// Unfilters consecutive rows, each by its filter type; `above` is the finished row before them.
pub fn unfilter_rows(filters: &[u8], step: usize, above: &[u8], rows: &mut [u8]) {
    let row = above.len();
    let group = unfilter_simd::rows_at_once(step);
    let mut above = above;
    let mut rest = rows;
    for filters in filters.chunks(group) {
        let (rows, later) = rest.split_at_mut(filters.len() * row);
        let chained = filters.iter().any(|&filter| filter >= AVERAGE);
        if !(chained && unfilter_simd::unfilter_group(filters, step, above, rows)) {
            let mut above = above;
            for (&filter, row) in filters.iter().zip(rows.chunks_exact_mut(row)) {
                unfilter_row(filter, step, above, row);
                above = row;
            }
        }
        above = &rows[rows.len() - row..];
        rest = later;
    }
}

/// Unfilters the first row: the row above counts as zero.
fn unfilter_first(filter: u8, step: usize, row: &mut [u8]) {
    match filter {
        SUB | PAETH => unfilter_row(SUB, step, &[], row),
        AVERAGE => {
            for i in step..row.len() {
                row[i] = row[i].wrapping_add(row[i - step] / 2);
            }
        }
        _ => {}
    }
}

/// Unfilters one row of pixels of `step` bytes; `above` is finished and as long (unused by Sub).
fn unfilter_row(filter: u8, step: usize, above: &[u8], row: &mut [u8]) {
    match step {
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

    /// Rows that are handed on, in whatever order they are unfiltered, become what they become in one piece; where every
    /// row needs the one above it, none are.
    #[test]
    fn rows_handed_on_are_those_of_one_piece() -> Result<()> {
        let shape = Shape {
            width: 701,
            height: 2900,
            channels: 1,
            depth: Depth::Sixteen,
        };
        let layout = Layout::of(&shape);
        let mut state = 1u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 16
        };
        for (filters, most_handed) in [(0..5, 7), (1..2, 7), (2..5, 0)] {
            let mut scanlines = Vec::new();
            for _ in 0..shape.height {
                scanlines.push(filters.start + (random() % filters.len() as u32) as u8);
                scanlines.extend((0..layout.row).map(|_| random() as u8));
            }
            let size = shape.height * layout.row;
            let (mut whole, mut apart) = (vec![0; size], vec![0xa5; size]);
            Rows::new(&mut whole, layout).push(&scanlines)?;
            let mut handed = Vec::new();
            let mut rows = Rows::new(&mut apart, layout);
            let mut rest = &scanlines[..];
            while !rest.is_empty() {
                let (piece, later) = rest.split_at(rest.len().min(random() as usize * 4));
                rows.push_apart(piece, &mut |rows| handed.push(rows))?;
                rest = later;
            }
            assert_eq!(handed.len(), most_handed, "{filters:?}");
            for mut rows in handed.into_iter().rev() {
                rows.unfilter();
            }
            assert!(apart == whole, "{filters:?}");
        }
        Ok(())
    }
}
