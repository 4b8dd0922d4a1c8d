//! Finds the blocks of streams on the GPU and counts the bytes that their symbols make: the kernels of inflate_find.cu, and
//! kernels/inflate_count.cu.

use super::RESIDENT;
use super::chain::{HEADER, SPAN, most_extra};
use super::records::{
    CODES_WORDS, FOUND, Found, Part, PartWords, REPORT_WORDS, Report, SUMS_WORDS,
};
use crate::codec::packed::Streams;
use crate::device::cuda::{Arg, Buffer};
use crate::device::job::Job;
use anyhow::Result;

/// Constants of inflate_find.cu: words of the stream that a block of threads searches, words of a
/// region and the most codes found in it, threads of a block that check and read headers, and bytes of a header's record.
const GROUP: usize = 2048;
const REGION: usize = 8192;
const MOST: usize = 64;
const SIEVERS: u32 = 64;
const READERS: u32 = 32;
const HEAD: usize = 16;

/// Constants of inflate_symbols.cuh: lanes of a part, and bytes of a lane's record.
pub const LANES: usize = 128;
const LANE_RECORD: usize = 12;

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
    /// The codes of the blocks, as `records::codes`, and how many there can be before the host adds some.
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
/// stream, a count for each region, and the parts as `PartWords`.
pub struct Records {
    buffer: Buffer,
    streams: usize,
    parts: usize,
}

impl Records {
    /// The report, and the buffer's beginning.
    pub fn report(&self) -> Arg<'_> {
        Arg::Buffer(&self.buffer)
    }

    fn counts(&self) -> Arg<'_> {
        Arg::From(&self.buffer, 4 * Records::before_counts(self.streams))
    }

    /// The parts.
    pub fn parts(&self) -> Arg<'_> {
        Arg::From(&self.buffer, self.parts)
    }

    /// The byte at which a part begins.
    pub fn part(&self, index: usize) -> usize {
        self.parts + index * size_of::<PartWords>()
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
    pub fn tell(&self, found: Found, job: &mut Job) -> Result<()> {
        job.send_words(&found.words(), &self.buffer, FOUND)
    }

    /// Copies parts behind those that there are.
    pub fn add(&self, from: usize, parts: &[Part], job: &mut Job) -> Result<()> {
        let words: Vec<PartWords> = parts.iter().map(|&part| part.into()).collect();
        job.send_words(&words, &self.buffer, self.part(from))
    }

    /// Reads `count` parts, after everything queued before.
    pub fn read(&self, from: usize, count: usize, job: &mut Job) -> Result<Vec<Part>> {
        let words: Vec<PartWords> = job.fetch_words(&self.buffer, self.part(from), count)?;
        Ok(words.into_iter().map(Part::from).collect())
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
        let first = words[records.parts / 4..].as_chunks().0.iter();
        let mut parts: Vec<Part> = first.take(made).map(|&part| Part::from(part)).collect();
        if made > self.expected {
            let more = made - self.expected;
            parts.extend(records.read(self.expected, more, job)?);
        }
        Ok((report, parts))
    }

    /// Queues the counting of parts `from..to`, or of all that are made where `to` is 0, in `rounds` rounds at most, by up to
    /// `grid` blocks of threads.
    pub fn queue(
        &self,
        streams: &Streams,
        stream: &Buffer,
        (from, to): (usize, usize),
        (grid, rounds): (usize, u32),
        job: &mut Job,
    ) -> Result<()> {
        let [count] = job.kernels("inflate_count", ["inflate_count"], "")?;
        let args = [
            Arg::Buffer(stream),
            Arg::U32(streams.len.div_ceil(4) as u32),
            Arg::Buffer(&self.codes),
            self.records.parts(),
            Arg::Buffer(&self.lanes),
            Arg::U32(from as u32),
            Arg::U32(to as u32),
            Arg::U32(rounds),
            self.records.report(),
        ];
        let resident = RESIDENT * job.multiprocessors();
        // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
        unsafe { job.launch(&count, resident.min(grid as u32), streams.len as u64, &args) }
    }
}

/// Queues all that finds the blocks of streams, which lie in `stream`, and counts what they make.
pub fn count(streams: &Streams, stream: &Buffer, job: &mut Job) -> Result<Counted> {
    let (words, number) = (streams.len.div_ceil(4), streams.begins.len());
    let names = [
        "inflate_find",
        "inflate_sieve",
        "inflate_read",
        "inflate_order",
    ];
    let [find, sieve, read, order] = job.kernels("inflate_find", names, "")?;
    let bits = streams.len as u32 * 8;
    let regions = words.div_ceil(REGION);
    let most = streams.len / BLOCK + 64 + number;
    // Enough parts to fill the GPU with, if there is enough to do.
    let lowest = bits / (RESIDENT * job.multiprocessors());
    let span = lowest.clamp(SHORTEST, SPAN).next_multiple_of(32);
    let most_parts = most + (bits / span) as usize;
    let room = 2 * most_parts + most_extra(streams);

    let most_hits = bits as usize / HIT + 1024;
    let hits = job.scratch(most_hits * 4)?;
    let most_likely = most_hits / LIKELY;
    let likely = job.scratch(most_likely * 4)?;
    let heads = job.scratch(regions * MOST * HEAD)?;
    let codes = job.scratch((most + most_extra(streams)) * 4 * CODES_WORDS)?;
    let ordered = job.scratch(most * HEAD)?;
    let parts = (4 * (Records::before_counts(number) + regions)).next_multiple_of(64);
    let records = Records {
        buffer: job.scratch(parts + room * size_of::<PartWords>())?,
        streams: number,
        parts,
    };
    // The parts that most streams have come back with the report, those of many short blocks after it. What comes back is
    // cleared, since not all of it is written.
    let expected = (2 * (bits / span) as usize + 64).min(most_parts);
    job.clear(&records.buffer, records.part(expected))?;
    let lanes = job.scratch(room * LANES * LANE_RECORD)?;

    let u32s = |numbers: &[u32]| numbers.iter().map(|&n| Arg::U32(n)).collect::<Vec<Arg>>();
    let buffer = Arg::Buffer;
    let report = records.report();
    let heads = [records.counts(), buffer(&heads)];
    let source = [buffer(stream), Arg::U32(words as u32)];
    let few = [Arg::U32(most_hits as u32)];
    let last = if number == 1 {
        bits.saturating_sub(LAST)
    } else {
        0
    };
    let args = [
        &source[..],
        &u32s(&[bits, HEADER, last]),
        &few,
        &[buffer(&hits), report],
    ]
    .concat();
    let grid = words.div_ceil(GROUP) as u32;
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&find, grid, streams.len as u64, &args) }?;
    let likely_most = [Arg::U32(most_likely as u32)];
    let lists = [buffer(&hits), buffer(&likely), report];
    let args = [&source[..], &few, &likely_most, &lists].concat();
    let sievers = (bits / USUAL_HIT).div_ceil(SIEVERS).max(1);
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&sieve, sievers, 0, &args) }?;
    let args = [
        &source[..],
        &u32s(&[bits, most_likely as u32, most as u32]),
        &[buffer(&likely)],
        &heads,
        &[buffer(&codes), report],
    ]
    .concat();
    let readers = (most as u32)
        .div_ceil(READERS)
        .min(32 * job.multiprocessors());
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&read, readers, 0, &args) }?;
    let args = [
        &u32s(&[bits, regions as u32])[..],
        &heads,
        &u32s(&[span, most_parts as u32]),
        &[buffer(&ordered), records.parts(), report],
    ]
    .concat();
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&order, 1, 0, &args) }?;
    let counted = Counted {
        codes,
        most_codes: most,
        records,
        room,
        most_parts,
        expected,
        lanes,
    };
    counted.queue(streams, stream, (0, 0), (most_parts, FEW_ROUNDS), job)?;
    Ok(counted)
}
