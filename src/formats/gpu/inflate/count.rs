//! Finds the blocks of streams on the GPU and counts the bytes that their symbols make: the kernels of inflate_find.cu, and
//! kernels/inflate_count.cu.

use super::RESIDENT;
use super::chain::{HEADER, most_extra};
use super::records::{FOUND, Found, REPORT_WORDS, Report, SUMS_WORDS};
use crate::formats::packed::Streams;
use crate::gpu::driver::{Buffer, View, ViewMut};
use crate::gpu::job::Job;
use crate::gpu::launch::inflate::{Codes, Lane, Part};
use crate::gpu::launch::inflate_count::InflateCount;
use crate::gpu::launch::inflate_find::{
    GROUP, Head, InflateFind, InflateOrder, InflateRead, InflateSieve, MOST, READERS, REGION,
    SIEVERS,
};
use crate::gpu::launch::inflate_symbols::{LANES, SPAN};
use anyhow::Result;
use std::ops::Range;

/// Rounds in which lanes are tried to fit together at first.
const FEW_ROUNDS: u32 = 4;

/// Parts are not shorter, but where a block is.
const SHORTEST: u32 = 16 << 10;

/// Bytes of stream for one block with a code of its own, on average, at least.
const BLOCK: usize = 1 << 10;

/// Bits of stream for one that looks like a header at first, at least: in regular
/// data many do, elsewhere one of 2000.
const HIT: usize = 32;
const USUAL_HIT: u32 = 2000;

/// Hits of which one passes the first check, at most.
const LIKELY: usize = 8;

/// Bits at the end of a stream alone in which its last block is looked for: so fewer bits look like headers.
const LAST: u32 = 256 << 13;

/// Streams whose symbols the GPU counts.
pub struct Counted {
    /// The codes of the blocks, and how many there can be before the host adds some.
    pub codes: Buffer,
    pub most_codes: usize,
    /// The report, and further on the parts.
    pub records: Records,
    /// Parts for which there is room, how many of them the GPU can make, and how many most streams have at most.
    pub room: usize,
    pub most_parts: usize,
    expected: usize,
    /// Where the symbols of each lane begin.
    pub lanes: Buffer,
}

/// What the kernels say of the streams, in one buffer, so that one copy brings most of it: the report, the sums of each
/// stream, a count for each region, and the parts.
pub struct Records {
    buffer: Buffer,
    streams: usize,
    parts: usize,
}

impl Records {
    /// The report with the sums behind it, for a kernel to read.
    pub fn report(&self) -> View<'_> {
        self.buffer.view()
    }

    /// The same, for a kernel to write.
    pub fn report_mut(&mut self) -> ViewMut<'_> {
        self.buffer.view_mut()
    }

    /// The parts, for a kernel to read.
    pub fn parts(&self) -> Result<View<'_>> {
        self.buffer.view().from(self.parts)
    }

    /// The report, the counts and the parts, for a kernel that writes one of them and reads another.
    pub fn split(&mut self) -> Result<[ViewMut<'_>; 3]> {
        let counts = 4 * Records::before_counts(self.streams);
        let (before, parts) = self.buffer.view_mut().split_at(self.parts)?;
        let (report, counts) = before.split_at(counts)?;
        Ok([report, counts, parts])
    }

    /// The byte at which a part begins.
    pub fn part(&self, index: usize) -> usize {
        self.parts + index * size_of::<Part>()
    }

    /// Words of the report and of the sums.
    fn before_counts(streams: usize) -> usize {
        REPORT_WORDS + SUMS_WORDS * streams
    }

    /// Reads the report, and the sums of each stream, after everything queued before.
    pub fn read_sums(&self, job: &mut Job) -> Result<(Report, Vec<[u64; 2]>)> {
        let words = Records::before_counts(self.streams);
        let words: Vec<u32> = job.fetch_words(&self.buffer, 0, words)?;
        let sums = words[REPORT_WORDS..].as_chunks::<SUMS_WORDS>().0.iter();
        let wide = |low, high| u64::from(high) << 32 | u64::from(low);
        let sums = sums.map(|&[a, b, c, d]| [wide(a, b), wide(c, d)]);
        Ok((Report::of(&words)?, sums.collect()))
    }

    /// Tells the kernels what the host has found, and that nothing is wrong.
    pub fn tell(&mut self, found: Found, job: &mut Job) -> Result<()> {
        job.send_words(&found.words(), &mut self.buffer, FOUND)
    }

    /// Copies parts behind those that there are.
    pub fn add(&mut self, from: usize, parts: &[Part], job: &mut Job) -> Result<()> {
        let to = self.part(from);
        job.send_words(parts, &mut self.buffer, to)
    }

    /// Reads `count` parts, after everything queued before.
    pub fn read(&self, from: usize, count: usize, job: &mut Job) -> Result<Vec<Part>> {
        job.fetch_words(&self.buffer, self.part(from), count)
    }
}

impl Counted {
    /// Reads the report and the parts, after everything queued before.
    pub fn read(&self, job: &mut Job) -> Result<(Report, Vec<Part>)> {
        let records = &self.records;
        let words = records.part(self.expected) / 4;
        let words: Vec<u32> = job.fetch_words(&records.buffer, 0, words)?;
        let report = Report::of(&words)?;
        let made = report.parts as usize;
        let first: &[Part] = bytemuck::cast_slice(&words[records.parts / 4..]);
        let mut parts = first[..made.min(self.expected)].to_vec();
        if made > self.expected {
            let more = made - self.expected;
            parts.extend(records.read(self.expected, more, job)?);
        }
        Ok((report, parts))
    }

    /// Queues the counting of some parts, or of all that are made where there are none, in `rounds` rounds at most, by up to
    /// `grid` blocks of threads.
    pub fn queue(
        &mut self,
        streams: &Streams,
        stream: &Buffer,
        parts: Range<usize>,
        (grid, rounds): (usize, u32),
        job: &mut Job,
    ) -> Result<()> {
        let count = job.kernel::<InflateCount>("")?;
        let resident = RESIDENT * job.multiprocessors();
        let [report, _, all_parts] = self.records.split()?;
        let arguments = InflateCount {
            stream: stream.view(),
            words: streams.len.div_ceil(4) as u32,
            codes: self.codes.view(),
            parts: all_parts,
            lanes: self.lanes.view_mut(),
            from: parts.start as u32,
            to: parts.end as u32,
            rounds,
            report: report.into_view(),
        };
        let grid = resident.min(grid as u32);
        // SAFETY: the report and the parts are those of `inflate_order`, which makes at most `most_parts`, or the parts are
        // those of `Chain`; codes go from 0 up in both. There is room for `room` parts, as many lanes and their codes.
        unsafe { job.launch_trusting(&count, grid, streams.len as u64, arguments) }
    }
}

/// Queues all that finds the blocks of streams, which lie in `stream`, and counts what they make.
pub fn count(streams: &Streams, stream: &Buffer, job: &mut Job) -> Result<Counted> {
    let (words, number) = (streams.len.div_ceil(4), streams.begins.len());
    let find = job.kernel::<InflateFind>("")?;
    let sieve = job.kernel::<InflateSieve>("")?;
    let read = job.kernel::<InflateRead>("")?;
    let order = job.kernel::<InflateOrder>("")?;
    let bits = streams.len as u32 * 8;
    let regions = bits.div_ceil(REGION) as usize;
    let most = streams.len / BLOCK + 64 + number;
    // Enough parts to fill the GPU with, if there is enough to do.
    let lowest = bits / (RESIDENT * job.multiprocessors());
    let span = lowest.clamp(SHORTEST, SPAN).next_multiple_of(32);
    let most_parts = most + (bits / span) as usize;
    let room = 2 * most_parts + most_extra(streams);

    let most_hits = bits as usize / HIT + 1024;
    let mut hits = job.scratch(most_hits * 4)?;
    let most_likely = most_hits / LIKELY;
    let mut likely = job.scratch(most_likely * 4)?;
    let mut heads = job.scratch(regions * MOST as usize * size_of::<Head>())?;
    let mut codes = job.scratch((most + most_extra(streams)) * size_of::<Codes>())?;
    let mut ordered = job.scratch(regions * MOST as usize * size_of::<Head>())?;
    let parts = (4 * (Records::before_counts(number) + regions)).next_multiple_of(64);
    let mut records = Records {
        buffer: job.scratch(parts + room * size_of::<Part>())?,
        streams: number,
        parts,
    };
    // The parts that most streams have come back with the report, those of many short blocks after it. What comes back is
    // cleared, since not all of it is written.
    let expected = (2 * (bits / span) as usize + 64).min(most_parts);
    let cleared = records.part(expected);
    job.clear(&mut records.buffer, cleared)?;
    let lanes = job.scratch(room * LANES as usize * size_of::<Lane>())?;

    let last = if number == 1 {
        bits.saturating_sub(LAST)
    } else {
        0
    };
    let (words, most_hits) = (words as u32, most_hits as u32);
    let (most_likely, most_codes) = (most_likely as u32, most as u32);
    let arguments = InflateFind {
        stream: stream.view(),
        words,
        bits,
        first: HEADER,
        last,
        most: most_hits,
        hits: hits.view_mut(),
        report: records.report_mut(),
    };
    job.launch(&find, words.div_ceil(GROUP), streams.len as u64, arguments)?;
    let sievers = (bits / USUAL_HIT).div_ceil(SIEVERS).max(1);
    let arguments = InflateSieve {
        stream: stream.view(),
        words,
        most: most_hits,
        most_likely,
        hits: hits.view(),
        likely: likely.view_mut(),
        report: records.report_mut(),
    };
    job.launch(&sieve, sievers, 0, arguments)?;
    let readers = most_codes.div_ceil(READERS).min(32 * job.multiprocessors());
    let [report, counts, _] = records.split()?;
    let arguments = InflateRead {
        stream: stream.view(),
        words,
        bits,
        most_likely,
        most_codes,
        likely: likely.view(),
        counts,
        heads: heads.view_mut(),
        codes: codes.view_mut(),
        report,
    };
    // SAFETY: `likely` is what `inflate_sieve` has just kept of the bits of the stream that `inflate_find` found.
    unsafe { job.launch_trusting(&read, readers, 0, arguments) }?;
    let [report, counts, parts] = records.split()?;
    let arguments = InflateOrder {
        bits,
        regions: regions as u32,
        counts: counts.into_view(),
        heads: heads.view(),
        span,
        most_parts: most_parts as u32,
        order: ordered.view_mut(),
        parts,
        report,
    };
    job.launch(&order, 1, 0, arguments)?;
    let mut counted = Counted {
        codes,
        most_codes: most,
        records,
        room,
        most_parts,
        expected,
        lanes,
    };
    counted.queue(streams, stream, 0..0, (most_parts, FEW_ROUNDS), job)?;
    Ok(counted)
}
