//! What the host and the kernels tell one another: the records of kernels/inflate.cuh. Places in the streams are bits.

use crate::gpu::launch::inflate::{
    BAD, CODES_FOUND, Codes, END, ENDED, FIRST, LAST, PARTS_MADE, Part, REPORT, UNSETTLED, WRONG,
};
use anyhow::{Result, anyhow};
use bytemuck::Zeroable;

/// The record of a block whose header begins at `head` and whose symbols begin at `data`.
pub fn codes(head: u32, data: u32, litlen: &[u8], dist: &[u8]) -> Codes {
    let mut codes = Codes {
        head,
        data,
        litlens: litlen.len() as u32,
        all: (litlen.len() + dist.len()) as u32,
        ..Codes::zeroed()
    };
    for (i, &length) in litlen.iter().chain(dist).enumerate() {
        codes.lengths[i / 8] |= u32::from(length) << (4 * (i % 8));
    }
    codes
}

impl Part {
    pub fn matches(&self) -> u32 {
        self.found & 0xFFFF
    }

    fn has(&self, flag: u32) -> bool {
        self.found >> 16 & flag != 0
    }

    /// Whether it is its block's first.
    pub fn is_first(&self) -> bool {
        self.has(FIRST)
    }

    /// Whether its block ends in it.
    pub fn has_end(&self) -> bool {
        self.has(ENDED)
    }

    /// Whether its lanes do not fit together.
    pub fn is_unsettled(&self) -> bool {
        self.has(UNSETTLED)
    }

    /// Whether it has a word that means nothing.
    pub fn is_bad(&self) -> bool {
        self.has(BAD)
    }

    /// Whether its block is its stream's last.
    pub fn is_of_last(&self) -> bool {
        self.has(LAST)
    }
}

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

/// What is known once the parts are in order.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    pub parts: u32,
    /// Bytes of the part that makes most, and matches of all.
    pub largest: u32,
    pub matches: u32,
}

/// The byte of the report from which on `Found::words` belong.
pub const FOUND: usize = 4 * WRONG as usize;

impl Found {
    /// The report's words: nothing wrong, the parts, an end that the kernels do not need, and the rest.
    pub fn words(self) -> [u32; 5] {
        [0, self.parts, 0, self.largest, self.matches]
    }
}

/// The words of a report, zero at first, with which the records of streams begin, and of the two sums of
/// each stream that follow it.
pub const REPORT_WORDS: usize = REPORT as usize;
pub const SUMS_WORDS: usize = 4;

impl Report {
    /// The report at the beginning of the records.
    ///
    /// # Errors
    /// Fewer words than a report has.
    pub fn of(words: &[u32]) -> Result<Report> {
        let words: Option<&[u32; REPORT_WORDS]> = words.first_chunk();
        let words = words.ok_or_else(|| anyhow!("a short report"))?;
        let word = |index: u32| words[index as usize];
        Ok(Report {
            codes: word(CODES_FOUND),
            parts: word(PARTS_MADE),
            wrong: word(WRONG),
            end: word(END),
        })
    }
}
