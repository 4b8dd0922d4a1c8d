//! What the host and the kernels tell one another, as words of 32 bits in the order of the records
//! in kernels/inflate.cuh. Places in the streams are bits.

use anyhow::{Result, anyhow};

/// Words of code lengths, four bits each.
const PACKED_LENGTHS: usize = 40;

/// The head of a block with a Huffman code and its code lengths, as words: where its header and its
/// symbols begin, how many lengths there are of literals and lengths and of all, and the lengths.
pub const CODES_WORDS: usize = 4 + PACKED_LENGTHS;

/// The record of a block whose header begins at `head` and whose symbols begin at `data`.
pub fn codes(head: u32, data: u32, litlen: &[u8], dist: &[u8]) -> [u32; CODES_WORDS] {
    let mut words = [0; CODES_WORDS];
    let all = litlen.len() + dist.len();
    words[..4].copy_from_slice(&[head, data, litlen.len() as u32, all as u32]);
    for (i, &length) in litlen.iter().chain(dist).enumerate() {
        words[4 + i / 8] |= u32::from(length) << (4 * (i % 8));
    }
    words
}

/// A stretch of a block's symbols that one block of threads decodes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Part {
    /// Where the header of its block begins.
    pub head: u32,
    /// It has the symbols that begin in `begin..limit`.
    pub begin: u32,
    pub limit: u32,
    /// Index of its block's codes.
    pub codes: u32,
    /// Its first symbol; before it is counted, 0 unless that is known.
    pub start: u32,
    /// Behind its last symbol.
    pub stop: u32,
    /// Bytes that its symbols make.
    pub bytes: u32,
    /// Matches among them, and in the upper half what the functions below tell.
    pub found: u32,
}

/// A part as words.
pub type PartWords = [u32; 8];

impl From<PartWords> for Part {
    fn from(words: PartWords) -> Part {
        let [head, begin, limit, codes, start, stop, bytes, found] = words;
        Part {
            head,
            begin,
            limit,
            codes,
            start,
            stop,
            bytes,
            found,
        }
    }
}

impl From<Part> for PartWords {
    fn from(part: Part) -> PartWords {
        let Part {
            head,
            begin,
            limit,
            codes,
            start,
            stop,
            bytes,
            found,
        } = part;
        [head, begin, limit, codes, start, stop, bytes, found]
    }
}

impl Part {
    pub fn matches(&self) -> u32 {
        self.found & 0xFFFF
    }

    /// Whether it is its block's first.
    pub fn is_first(&self) -> bool {
        self.found >> 16 & 1 != 0
    }

    /// Whether its block ends in it.
    pub fn has_end(&self) -> bool {
        self.found >> 16 & 2 != 0
    }

    /// Whether its lanes do not fit together.
    pub fn is_unsettled(&self) -> bool {
        self.found >> 16 & 4 != 0
    }

    /// Whether it has a word that means nothing.
    pub fn is_bad(&self) -> bool {
        self.found >> 16 & 8 != 0
    }

    /// Whether its block is its stream's last.
    pub fn is_of_last(&self) -> bool {
        self.found >> 16 & 16 != 0
    }
}

/// A part, the byte at which what it makes begins, how many matches come before, and the byte at which what
/// its stream makes begins.
pub type Place = [u32; 4];

/// Bytes of a stored block: from which byte of the streams, to which of what they make, how many, and
/// nothing.
pub type Stored = [u32; 4];

/// What the kernels found, and what was wrong.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    pub codes: u32,
    pub parts: u32,
    /// Bits of `WRONG` in inflate.cuh.
    pub wrong: u32,
    /// The bit behind the last block of a single stream, once it is known.
    pub end: u32,
}

/// Bits of a report's `wrong`: more parts than there is room for; parts of one stream that do not simply follow one another.
pub const CROWDED: u32 = 1;
pub const UNCHAINED: u32 = 32;

/// What is known once the parts are in order.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    pub parts: u32,
    /// Bytes of the part that makes most, and matches of all.
    pub largest: u32,
    pub matches: u32,
}

/// The byte of the report from which on `Found::words` belong.
pub const FOUND: usize = 8;

impl Found {
    /// The report's words: nothing wrong, the parts, an end that the kernels do not need, and the rest.
    pub fn words(self) -> [u32; 5] {
        [0, self.parts, 0, self.largest, self.matches]
    }
}

/// The words of a report, zero at first, with which the records of streams begin, and of the two sums of
/// each stream that follow it.
pub const REPORT_WORDS: usize = 16;
pub const SUMS_WORDS: usize = 4;

impl Report {
    /// The report at the beginning of the records.
    ///
    /// # Errors
    /// Fewer words than a report has.
    pub fn of(words: &[u32]) -> Result<Report> {
        let words: Option<&[u32; REPORT_WORDS]> = words.first_chunk();
        let &[codes, parts, wrong, _, end, ..] = words.ok_or_else(|| anyhow!("a short report"))?;
        Ok(Report {
            codes,
            parts,
            wrong,
            end,
        })
    }
}
