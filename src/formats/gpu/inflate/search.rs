//! Finds the blocks of streams on the GPU, and counts the bytes and matches of their parts: the kernels of
//! kernels/inflate_find.cu and inflate_count.cu.

use super::chain::{HEADER_BITS, max_added_blocks};
use super::records::{OrderReport, REPORT_WORDS, Report, SUMS_WORDS};
use crate::formats::packed::Streams;
use crate::gpu::driver::{Buffer, Kernel, View, ViewMut};
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

/// Thread blocks of `inflate_count` that a multiprocessor holds, as its shared memory allows.
const RESIDENT_BLOCKS: u32 = 8;

/// Rounds in which the lanes of a part are fitted together at first.
const FIRST_ROUNDS: u32 = 4;

/// The fewest bits of a part, unless its block is shorter.
const MIN_PART_BITS: u32 = 16 << 10;

/// There is room for a block with codes of its own for every 1024 bytes of stream.
const BYTES_PER_BLOCK: usize = 1 << 10;

/// There is room for a candidate header, a bit that looks like the start of a header at first, for every 32 bits of stream.
/// Regular data have many of them.
const BITS_PER_CANDIDATE: usize = 32;

/// In most data one bit of 2000 is a candidate.
const USUAL_BITS_PER_CANDIDATE: u32 = 2000;

/// At least 7 of 8 candidates fail the first check.
const CANDIDATES_PER_LIKELY: usize = 8;

/// The last block of a single stream is searched for only in this many bits at its end, which avoids false candidates.
const LAST_BLOCK_BITS: u32 = 256 << 13;

/// The result of the search: blocks whose symbols the GPU decodes and counts.
pub struct BlockSearch {
    /// The codes of the blocks.
    pub codes: Buffer,
    /// The most codes that the GPU finds; the host may add some.
    pub max_codes: usize,
    /// The report, and the parts.
    pub records: Records,
    /// The number of parts that there is room for, with those that the host adds.
    pub room: usize,
    /// The most parts that the GPU makes.
    pub max_parts: usize,
    /// The number of parts that most streams do not exceed: they are read back with the report.
    usual_parts: usize,
    /// The start of each lane.
    pub lanes: Buffer,
}

/// The two sums of a stream's inflated bytes from which its Adler-32 is computed.
pub struct StreamSums {
    /// The sum of the bytes.
    pub bytes: u64,
    /// The sum of the running sums of the bytes.
    pub running: u64,
}

/// The results of the kernels in one buffer, so that one copy reads most of it: the report, the sums of each stream, a count
/// for each region, and the parts.
pub struct Records {
    buffer: Buffer,
    streams: usize,
    /// The offset of the parts, in bytes.
    parts: usize,
}

impl Records {
    fn new(streams: &Streams, capacity: &Capacity, room: usize, job: &mut Job) -> Result<Records> {
        let streams = streams.starts.len();
        let parts = 4 * (Records::words_before_counts(streams) + capacity.regions);
        let parts = parts.next_multiple_of(64);
        Ok(Records {
            buffer: job.scratch(parts + room * size_of::<Part>())?,
            streams,
            parts,
        })
    }

    /// The report and the sums, for a kernel to read.
    pub fn report(&self) -> View<'_> {
        self.buffer.view()
    }

    /// The report and the sums, for a kernel to write.
    pub fn report_mut(&mut self) -> ViewMut<'_> {
        self.buffer.view_mut()
    }

    /// The parts, for a kernel to read.
    pub fn parts(&self) -> Result<View<'_>> {
        self.buffer.view().from(self.parts)
    }

    /// The report, the counts and the parts, for a kernel that writes one of them and reads another.
    pub fn split(&mut self) -> Result<[ViewMut<'_>; 3]> {
        let counts = 4 * Records::words_before_counts(self.streams);
        let (before, parts) = self.buffer.view_mut().split_at(self.parts)?;
        let (report, counts) = before.split_at(counts)?;
        Ok([report, counts, parts])
    }

    /// The offset of a part, in bytes.
    fn part_offset(&self, index: usize) -> usize {
        self.parts + index * size_of::<Part>()
    }

    /// Words of the report and of the sums.
    fn words_before_counts(streams: usize) -> usize {
        REPORT_WORDS + SUMS_WORDS * streams
    }

    /// Reads the report, and the sums of each stream, after everything queued before.
    pub fn read_sums(&self, job: &mut Job) -> Result<(Report, Vec<StreamSums>)> {
        let words = Records::words_before_counts(self.streams);
        let words: Vec<u32> = job.fetch_words(&self.buffer, 0, words)?;
        let sums = words[REPORT_WORDS..].as_chunks::<SUMS_WORDS>().0.iter();
        let wide = |low, high| u64::from(high) << 32 | u64::from(low);
        let sums = sums.map(|&[a, b, c, d]| StreamSums {
            bytes: wide(a, b),
            running: wide(c, d),
        });
        Ok((Report::parse(&words)?, sums.collect()))
    }

    /// Writes to the report what the host has found out about the order of the parts, and clears its faults.
    pub fn write_order_report(&mut self, report: OrderReport, job: &mut Job) -> Result<()> {
        job.send_words(&report.words(), &mut self.buffer, OrderReport::OFFSET)
    }

    /// Writes parts, the first with the given index.
    pub fn add(&mut self, first: usize, parts: &[Part], job: &mut Job) -> Result<()> {
        let to = self.part_offset(first);
        job.send_words(parts, &mut self.buffer, to)
    }

    /// Reads `count` parts, after everything queued before.
    pub fn read(&self, first: usize, count: usize, job: &mut Job) -> Result<Vec<Part>> {
        job.fetch_words(&self.buffer, self.part_offset(first), count)
    }
}

/// The limits of counting parts.
#[derive(Clone, Copy)]
pub struct CountLimits {
    /// The most thread blocks.
    pub grid: usize,
    /// The most rounds in which the lanes of a part are fitted together. With more rounds than lanes, all fit.
    pub rounds: u32,
}

impl BlockSearch {
    /// Reads the report and the parts, after everything queued before.
    pub fn read(&self, job: &mut Job) -> Result<(Report, Vec<Part>)> {
        let records = &self.records;
        let words = records.part_offset(self.usual_parts) / 4;
        let words: Vec<u32> = job.fetch_words(&records.buffer, 0, words)?;
        let report = Report::parse(&words)?;
        let count = report.parts as usize;
        let first: &[Part] = bytemuck::cast_slice(&words[records.parts / 4..]);
        let mut parts = first[..count.min(self.usual_parts)].to_vec();
        if count > self.usual_parts {
            let more = count - self.usual_parts;
            parts.extend(records.read(self.usual_parts, more, job)?);
        }
        Ok((report, parts))
    }

    /// Queues the counting of some parts, or with `None` of all that `inflate_order` makes.
    pub fn queue_count(
        &mut self,
        streams: &Streams,
        stream: &Buffer,
        parts: Option<Range<usize>>,
        limits: CountLimits,
        job: &mut Job,
    ) -> Result<()> {
        let kernel = job.kernel::<InflateCount>("")?;
        let resident = RESIDENT_BLOCKS * job.multiprocessors();
        // For the kernel an empty range stands for all parts.
        let parts = parts.unwrap_or(0..0);
        let [report, _, all_parts] = self.records.split()?;
        let arguments = InflateCount {
            stream: stream.view(),
            words: streams.len.div_ceil(4) as u32,
            codes: self.codes.view(),
            parts: all_parts,
            lanes: self.lanes.view_mut(),
            from: parts.start as u32,
            to: parts.end as u32,
            rounds: limits.rounds,
            report: report.into_view(),
        };
        let grid = resident.min(limits.grid as u32);
        // SAFETY: `inflate_order` wrote the report and the parts, at most `max_parts`, or `Chain` made the parts. Both number
        // the codes from 0. There is room for `room` parts, as many lanes and their codes.
        unsafe { job.launch_trusting(&kernel, grid, streams.len as u64, arguments) }
    }
}

/// How much there is room for.
struct Capacity {
    /// Bits of all streams.
    bits: u32,
    /// Words of all streams.
    words: u32,
    regions: usize,
    candidates: usize,
    likely: usize,
    codes: usize,
    /// The most bits of a part.
    span: u32,
    parts: usize,
}

impl Capacity {
    fn new(streams: &Streams, multiprocessors: u32) -> Capacity {
        let bits = streams.len as u32 * 8;
        let codes = streams.len / BYTES_PER_BLOCK + 64 + streams.starts.len();
        // Enough parts to fill the GPU, if there is enough to do.
        let span = bits / (RESIDENT_BLOCKS * multiprocessors);
        let span = span.clamp(MIN_PART_BITS, SPAN).next_multiple_of(32);
        let candidates = bits as usize / BITS_PER_CANDIDATE + 1024;
        Capacity {
            bits,
            words: streams.len.div_ceil(4) as u32,
            regions: bits.div_ceil(REGION) as usize,
            candidates,
            likely: candidates / CANDIDATES_PER_LIKELY,
            codes,
            span,
            parts: codes + (bits / span) as usize,
        }
    }

    /// The number of parts that most streams do not exceed; streams of many short blocks do.
    fn usual_parts(&self) -> usize {
        (2 * (self.bits / self.span) as usize + 64).min(self.parts)
    }
}

/// Queues the search for the blocks of all streams, which are in `stream`, and the counting of their parts.
pub fn find_blocks(streams: &Streams, stream: &Buffer, job: &mut Job) -> Result<BlockSearch> {
    let find = job.kernel::<InflateFind>("")?;
    let sieve = job.kernel::<InflateSieve>("")?;
    let read = job.kernel::<InflateRead>("")?;
    let order = job.kernel::<InflateOrder>("")?;
    let capacity = Capacity::new(streams, job.multiprocessors());
    let added = max_added_blocks(streams);
    let room = 2 * capacity.parts + added;

    let candidates = job.scratch(capacity.candidates * 4)?;
    let likely = job.scratch(capacity.likely * 4)?;
    let headers_bytes = capacity.regions * MOST as usize * size_of::<Head>();
    let headers = job.scratch(headers_bytes)?;
    let codes = job.scratch((capacity.codes + added) * size_of::<Codes>())?;
    let ordered = job.scratch(headers_bytes)?;
    let mut records = Records::new(streams, &capacity, room, job)?;
    // Everything that is read back first is cleared, since not all of it is written.
    let usual_parts = capacity.usual_parts();
    let cleared = records.part_offset(usual_parts);
    job.clear(&mut records.buffer, cleared)?;
    let lanes = job.scratch(room * LANES as usize * size_of::<Lane>())?;

    let mut finder = Finder {
        streams,
        stream,
        capacity,
        candidates,
        likely,
        headers,
        ordered,
        codes,
        records,
    };
    finder.queue_find(&find, job)?;
    finder.queue_sieve(&sieve, job)?;
    finder.queue_read(&read, job)?;
    finder.queue_order(&order, job)?;
    let Finder {
        capacity,
        codes,
        records,
        ..
    } = finder;
    let mut search = BlockSearch {
        codes,
        max_codes: capacity.codes,
        records,
        room,
        max_parts: capacity.parts,
        usual_parts,
        lanes,
    };
    let limits = CountLimits {
        grid: capacity.parts,
        rounds: FIRST_ROUNDS,
    };
    search.queue_count(streams, stream, None, limits, job)?;
    Ok(search)
}

/// The memory of the kernels that find blocks.
struct Finder<'a> {
    streams: &'a Streams,
    stream: &'a Buffer,
    capacity: Capacity,
    candidates: Buffer,
    likely: Buffer,
    /// The valid headers of each region, and then in the order of the streams.
    headers: Buffer,
    ordered: Buffer,
    codes: Buffer,
    records: Records,
}

impl Finder<'_> {
    /// Queues the search for bits that look like the start of a header.
    fn queue_find(&mut self, kernel: &Kernel<InflateFind>, job: &mut Job) -> Result<()> {
        let Capacity { bits, words, .. } = self.capacity;
        let is_single = self.streams.starts.len() == 1;
        let arguments = InflateFind {
            stream: self.stream.view(),
            words,
            bits,
            first: HEADER_BITS,
            last: if is_single {
                bits.saturating_sub(LAST_BLOCK_BITS)
            } else {
                0
            },
            most: self.capacity.candidates as u32,
            hits: self.candidates.view_mut(),
            report: self.records.report_mut(),
        };
        let traffic = self.streams.len as u64;
        job.launch(kernel, words.div_ceil(GROUP), traffic, arguments)
    }

    /// Queues the choice of the candidates whose first code lengths are plausible.
    fn queue_sieve(&mut self, kernel: &Kernel<InflateSieve>, job: &mut Job) -> Result<()> {
        let arguments = InflateSieve {
            stream: self.stream.view(),
            words: self.capacity.words,
            most: self.capacity.candidates as u32,
            most_likely: self.capacity.likely as u32,
            hits: self.candidates.view(),
            likely: self.likely.view_mut(),
            report: self.records.report_mut(),
        };
        let usual_candidates = self.capacity.bits / USUAL_BITS_PER_CANDIDATE;
        let grid = usual_candidates.div_ceil(SIEVERS).max(1);
        job.launch(kernel, grid, 0, arguments)
    }

    /// Queues the reading of the likely headers: those that are valid to their end, and their codes.
    fn queue_read(&mut self, kernel: &Kernel<InflateRead>, job: &mut Job) -> Result<()> {
        let max_codes = self.capacity.codes as u32;
        let [report, counts, _] = self.records.split()?;
        let arguments = InflateRead {
            stream: self.stream.view(),
            words: self.capacity.words,
            bits: self.capacity.bits,
            most_likely: self.capacity.likely as u32,
            most_codes: max_codes,
            likely: self.likely.view(),
            counts,
            heads: self.headers.view_mut(),
            codes: self.codes.view_mut(),
            report,
        };
        let grid = max_codes.div_ceil(READERS).min(32 * job.multiprocessors());
        // SAFETY: `inflate_sieve` wrote `likely`: bits of the stream that `inflate_find` found.
        unsafe { job.launch_trusting(kernel, grid, 0, arguments) }
    }

    /// Queues the ordering of the headers, and the splitting of their blocks into parts.
    fn queue_order(&mut self, kernel: &Kernel<InflateOrder>, job: &mut Job) -> Result<()> {
        let [report, counts, parts] = self.records.split()?;
        let arguments = InflateOrder {
            bits: self.capacity.bits,
            regions: self.capacity.regions as u32,
            counts: counts.into_view(),
            heads: self.headers.view(),
            span: self.capacity.span,
            most_parts: self.capacity.parts as u32,
            order: self.ordered.view_mut(),
            parts,
            report,
        };
        job.launch(kernel, 1, 0, arguments)
    }
}
