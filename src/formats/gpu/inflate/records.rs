//! The records that the host and the kernels exchange: those of kernels/inflate.cuh. Positions in the streams are in bits.

use crate::gpu::launch::inflate::{
    BAD, CODES_FOUND, Codes, END, ENDED, FIRST, LAST, PARTS_MADE, Part, REPORT, UNSETTLED, WRONG,
};
use anyhow::{Result, anyhow};
use bytemuck::Zeroable;

/// The record of a block whose header starts at bit `head` and whose symbols start at bit `data`.
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
    /// The number of matches among its symbols.
    pub fn matches(&self) -> u32 {
        self.found & 0xFFFF
    }

    fn has(&self, flag: u32) -> bool {
        self.found >> 16 & flag != 0
    }

    /// Whether it is the first part of its block.
    pub fn is_first(&self) -> bool {
        self.has(FIRST)
    }

    /// Whether its block ends in it.
    pub fn has_end(&self) -> bool {
        self.has(ENDED)
    }

    /// Whether a lane does not start where the lane before it stopped.
    pub fn is_unsettled(&self) -> bool {
        self.has(UNSETTLED)
    }

    /// Whether it contains an invalid code.
    pub fn has_invalid_code(&self) -> bool {
        self.has(BAD)
    }

    /// Whether its block is the last of its stream.
    pub fn is_of_last_block(&self) -> bool {
        self.has(LAST)
    }
}

/// The results of the kernels.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    pub codes: u32,
    pub parts: u32,
    /// The faults: bits of `WRONG` in inflate.cuh.
    pub wrong: u32,
    /// The bit after the last block of a single stream, once it is known.
    pub end: u32,
}

/// The part of the report that is known once the parts are in order. The host writes it if the host put them in order.
#[derive(Clone, Copy, Debug)]
pub struct OrderReport {
    /// The number of parts in use.
    pub parts: u32,
    /// The most bytes that a part makes.
    pub largest: u32,
    /// The number of matches in all parts.
    pub matches: u32,
}

impl OrderReport {
    /// The offset in the report of the first of the words, in bytes.
    pub const OFFSET: usize = 4 * WRONG as usize;

    /// Consecutive words of the report: no fault, the parts, an end that the kernels do not need, and the rest.
    pub fn words(self) -> [u32; 5] {
        [0, self.parts, 0, self.largest, self.matches]
    }
}

/// The number of words of the report, which is at the start of the records and zero at first.
pub const REPORT_WORDS: usize = REPORT as usize;

/// The number of words of the two sums of a stream. The sums of all streams are after the report.
pub const SUMS_WORDS: usize = 4;

impl Report {
    /// The report at the start of the records.
    ///
    /// # Errors
    /// There are fewer words than a report has.
    pub fn parse(words: &[u32]) -> Result<Report> {
        let words: Option<&[u32; REPORT_WORDS]> = words.first_chunk();
        let words = words.ok_or_else(|| anyhow!("internal error: a short report of the GPU"))?;
        let word = |index: u32| words[index as usize];
        Ok(Report {
            codes: word(CODES_FOUND),
            parts: word(PARTS_MADE),
            wrong: word(WRONG),
            end: word(END),
        })
    }
}
