//! `Mode::Small`: the filters of a segment are chosen by compressing a sample of its rows. Then threads search parts of the
//! segment for matches.

use super::filter::{self, FilterChoice, FilterSource, Filters};
use crate::deflate::compress::{BitWriter, Matcher, Shortest, flush};
use rayon::prelude::*;
use std::ops::Range;

/// Filtered bytes of a part of a segment. Matches may refer to the previous part, so cutting a segment into parts adds little to
/// its size: for each part a Huffman code, and five bytes.
const PART_BYTES: usize = 256 << 10;

/// A sample has at least this many rows, but at most an eighth of the segment's rows.
const MIN_SAMPLE_ROWS: usize = 4;

/// If more than `MIN_SAMPLE_ROWS` rows fit into this many bytes, a sample has as many rows as fit.
const SAMPLE_BYTES: usize = 4 << 10;

/// A search for matches, and its output.
#[derive(Default)]
struct Search {
    matcher: Matcher,
    out: BitWriter,
}

/// How a segment is compressed.
#[derive(Clone, Copy)]
struct Method {
    filters: FilterChoice,
    shortest: Shortest,
}

/// The searches in a segment's parts; their memory is reused for the next segment.
#[derive(Default)]
pub struct Small {
    searches: Vec<Search>,
}

impl Small {
    /// Filters the rows of a segment, compresses them, and appends the blocks to `out`. No block is marked as the last of the
    /// stream. `filtered` contains the filtered bytes afterwards.
    pub fn compress(
        &mut self,
        source: &FilterSource,
        rows: Range<usize>,
        filtered: &mut [u8],
        out: &mut BitWriter,
    ) {
        let method = self.choose_method(source, &rows);
        source.filter_rows_by(method.filters, rows.start, filtered);
        let filtered = &*filtered;
        let searches = self.searches(filtered.len().div_ceil(PART_BYTES));
        let parts = searches.par_iter_mut().enumerate();
        parts.for_each(|(part, Search { matcher, out })| {
            out.clear();
            let start = part * PART_BYTES;
            let end = filtered.len().min(start + PART_BYTES);
            matcher.compress(filtered, start..end, method.shortest, out);
            flush(false, out);
        });
        for search in searches {
            out.extend(search.out.bytes());
        }
    }

    /// Chooses how a segment is compressed. The filters are those of `filter::choose`, None, or adaptive. Matches have at least
    /// six bytes; if a pixel is one byte, at least four bytes are tried too. Each method compresses two samples, one from the
    /// middle of each half of the segment. The method with the smallest result wins; if results are equal, the first one.
    fn choose_method(&mut self, source: &FilterSource, rows: &Range<usize>) -> Method {
        let choices = [
            FilterChoice::Fixed(filter::choose(source, rows.clone())),
            FilterChoice::Fixed(Filters::NONE),
            FilterChoice::Adaptive,
        ];
        let methods = [Shortest::Six, Shortest::Four]
            .map(|shortest| choices.map(|filters| Method { filters, shortest }));
        let count = if source.pixel_bytes == 1 { 6 } else { 3 };
        let methods = &methods.as_flattened()[..count];
        let scanline_bytes = 1 + source.row_bytes;
        let sample_rows = MIN_SAMPLE_ROWS.max(SAMPLE_BYTES / scanline_bytes);
        let sample_rows = sample_rows.min(rows.len() / 8).max(1);
        let sample_starts = [1, 3].map(|quarters| quarters * (rows.len() - sample_rows) / 4);
        let trials = self.searches(methods.len()).par_iter_mut().zip(methods);
        let lengths = trials.map(|(Search { matcher, out }, method)| {
            let mut filtered = vec![0; 2 * sample_rows * scanline_bytes];
            let samples = filtered.chunks_exact_mut(sample_rows * scanline_bytes);
            for (start, sample) in sample_starts.iter().zip(samples) {
                source.filter_rows_by(method.filters, rows.start + start, sample);
            }
            out.clear();
            matcher.compress(&filtered, 0..filtered.len(), method.shortest, out);
            out.len()
        });
        let lengths: Vec<usize> = lengths.collect();
        let best = (0..methods.len()).min_by_key(|&method| lengths[method]);
        methods[best.unwrap_or(0)]
    }

    /// The first `count` searches. Missing ones are created.
    fn searches(&mut self, count: usize) -> &mut [Search] {
        if self.searches.len() < count {
            self.searches.resize_with(count, Search::default);
        }
        &mut self.searches[..count]
    }
}
