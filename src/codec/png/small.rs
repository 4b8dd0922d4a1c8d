//! The mode that finds matches: filters by row, deflate by a library.

use super::bits::Bits;
use super::filter::Rows;
use flate2::{Compress, Compression, FlushCompress};
use std::ops::Range;

/// Filters the rows of a segment into `filtered`, which they fill, and appends them compressed.
pub fn compress(rows: &Rows, segment: Range<usize>, filtered: &mut [u8], out: &mut Bits) {
    rows.fill_each(segment.start, filtered);
    let mut deflate = Compress::new(Compression::new(6), false);
    let mut piece = vec![0; 64 << 10];
    loop {
        let (read, written) = (deflate.total_in(), deflate.total_out());
        let left = &filtered[read as usize..];
        // It cannot fail with a valid level and memory for its state.
        let _ = deflate.compress(left, &mut piece, FlushCompress::Sync);
        let made = (deflate.total_out() - written) as usize;
        out.extend(&piece[..made]);
        if made < piece.len() {
            return;
        }
    }
}
