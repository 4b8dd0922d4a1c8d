//! The middle rows of a segment, which decide how it is filtered before a search for matches.

use super::filter::{self, Filling, Filter, Rows};
use crate::deflate::compress::{BitWriter, Matcher};
use std::ops::Range;

/// Bytes of the rows that are tried, unless one row is more.
const SAMPLE: usize = 16 << 10;

/// How the rows of a segment are filtered before a search for matches: by the filters of
/// `filter::choose`, by None, or each by its own, whichever makes the least of its middle rows, as many
/// as fill 16 KiB, at least one. The first of these that makes it.
pub fn filling(rows: &Rows, segment: Range<usize>, matcher: &mut Matcher) -> Filling {
    let (first, others) = filter::choose(rows, segment.clone());
    let count = (SAMPLE / (1 + rows.row)).clamp(1, segment.len());
    let from = segment.start + (segment.len() - count) / 2;
    let mut filtered = vec![0; count * (1 + rows.row)];
    let mut out = BitWriter::default();
    let mut best = (Filling::Fixed(first, others), usize::MAX);
    for filling in [
        best.0,
        Filling::Fixed(Filter::None, Filter::None),
        Filling::Each,
    ] {
        rows.fill_by(filling, from, &mut filtered);
        out.clear();
        matcher.compress(&filtered, &mut out);
        if out.len() < best.1 {
            best = (filling, out.len());
        }
    }
    best.0
}
