//! `Mode::Small`: rows filtered by what a sample of them tells, and searched for matches in parts that threads take.

use super::filter::{self, Filling, Filter, Rows};
use crate::deflate::compress::{BitWriter, Matcher, Shortest, flush};
use rayon::prelude::*;
use std::ops::Range;

/// Filtered bytes of a part of a segment. Its matches reach into the part before, so that parts cost next to nothing:
/// a code of their own, and five bytes.
const PART: usize = 256 << 10;

/// Each of two samples has so many rows, or as many as fill so many bytes, but at most an eighth of the segment's.
const ROWS: usize = 4;
const SAMPLE: usize = 4 << 10;

/// A search for matches, and what it makes.
type Search = (Matcher, BitWriter);

/// The searches in a segment's parts; their memory is kept from one segment to the next.
#[derive(Default)]
pub struct Small {
    searches: Vec<Search>,
}

impl Small {
    /// Filters the rows of a segment and appends their blocks, none of them the last of the stream. The segment is
    /// left in `filtered`.
    pub fn compress(
        &mut self,
        rows: &Rows,
        segment: Range<usize>,
        filtered: &mut [u8],
        out: &mut BitWriter,
    ) {
        let (filling, shortest) = self.plan(rows, &segment);
        rows.fill_by(filling, segment.start, filtered);
        let filtered = &*filtered;
        let searches = self.searches(filtered.len().div_ceil(PART));
        let parts = searches.par_iter_mut().enumerate();
        parts.for_each(|(part, (matcher, piece))| {
            piece.clear();
            let part = part * PART..filtered.len().min((part + 1) * PART);
            matcher.compress(filtered, part, shortest, piece);
            flush(false, piece);
        });
        for (_, piece) in searches {
            out.extend(piece.bytes());
        }
    }

    /// How the rows of a segment are filtered and searched: by the filters of `filter::choose`, by None, or each by its
    /// own; with matches of six bytes and more, or, where a pixel is one byte, with shorter ones too. Whichever makes
    /// the least of the rows in the middle of its two halves, the first of those.
    fn plan(&mut self, rows: &Rows, segment: &Range<usize>) -> (Filling, Shortest) {
        let (first, others) = filter::choose(rows, segment.clone());
        let fillings = [
            Filling::Fixed(first, others),
            Filling::Fixed(Filter::None, Filter::None),
            Filling::Each,
        ];
        let plans = [Shortest::Six, Shortest::Four].map(|shortest| fillings.map(|f| (f, shortest)));
        let plans = &plans.as_flattened()[..if rows.pixel == 1 { 6 } else { 3 }];
        let row = 1 + rows.row;
        let count = ROWS.max(SAMPLE / row).min(segment.len() / 8).max(1);
        let middles = [1, 3].map(|quarters| quarters * (segment.len() - count) / 4);
        let trials = self.searches(plans.len()).par_iter_mut().zip(plans);
        let lengths = trials.map(|((matcher, out), &(filling, shortest))| {
            let mut filtered = vec![0; 2 * count * row];
            for (middle, sample) in middles.iter().zip(filtered.chunks_exact_mut(count * row)) {
                rows.fill_by(filling, segment.start + middle, sample);
            }
            out.clear();
            matcher.compress(&filtered, 0..filtered.len(), shortest, out);
            out.len()
        });
        let lengths: Vec<usize> = lengths.collect();
        let best = (0..plans.len()).min_by_key(|&plan| lengths[plan]);
        plans[best.unwrap_or(0)]
    }

    /// As many searches, begun or not.
    fn searches(&mut self, count: usize) -> &mut [Search] {
        if self.searches.len() < count {
            self.searches.resize_with(count, Search::default);
        }
        &mut self.searches[..count]
    }
}
