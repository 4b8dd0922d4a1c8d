//! Finds the blocks of streams on the GPU and counts the bytes that their symbols make, until the
//! chains of blocks are complete: the kernels inflate_find.cu and `inflate_count` of inflate.cu.

use super::RESIDENT;
use super::chain::{Chain, HEADER, Inflated, SPAN, Step, most_extra};
use super::records::{CODES_WORDS, Part, PartWords, REPORT_WORDS, Report, SUMS_WORDS};
use crate::codec::packed::{Streams, Unsuited};
use crate::device::cuda::{Arg, Buffer};
use crate::device::job::Job;
use anyhow::Result;

/// Constants of inflate_find.cu: words of the stream that a block of threads searches, words of a
/// region and the most codes found in it, and threads of a block that check and read headers.
const GROUP: usize = 2048;
const REGION: usize = 8192;
const MOST: usize = 64;
const SIEVERS: u32 = 64;
const READERS: u32 = 4;

/// Constants of inflate.cu: lanes of a part, and bytes of a lane's record.
const LANES: usize = 128;
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

/// Bits at the end of a stream alone in which its last block is looked for: so fewer bits look like headers.
const LAST: u32 = 256 << 13;

/// Streams whose symbols are counted.
pub struct Counted {
    /// The codes of the blocks, as `records::codes`.
    pub codes: Buffer,
    /// The report, and further on the parts.
    pub records: Records,
    /// Where the symbols of each lane begin.
    pub lanes: Buffer,
    /// The order of the blocks and parts.
    pub inflated: Inflated,
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
    fn part(&self, index: usize) -> usize {
        self.parts + index * size_of::<PartWords>()
    }

    /// Words of the report and of the sums.
    fn before_counts(streams: usize) -> usize {
        REPORT_WORDS + SUMS_WORDS * streams
    }

    /// Reads the report again, and the sums of each stream, after everything queued before.
    pub fn read_sums(&self, job: &mut Job) -> Result<(Report, Vec<[u64; 2]>)> {
        let words = Records::before_counts(self.streams);
        let words: Vec<u32> = job.fetch_words(&self.buffer, 0, words)?;
        let sums = words[REPORT_WORDS..].as_chunks::<SUMS_WORDS>().0.iter();
        let wide = |low, high| u64::from(high) << 32 | u64::from(low);
        let sums = sums.map(|&[a, b, c, d]| [wide(a, b), wide(c, d)]);
        Ok((Report::of(&words)?, sums.collect()))
    }
}

/// Finds the blocks of streams that lie in `stream`, and counts what they make.
pub fn count(
    streams: &Streams,
    stream: &Buffer,
    job: &mut Job,
) -> Result<Result<Counted, Unsuited>> {
    let (words, number) = (streams.len.div_ceil(4), streams.begins.len());
    let names = [
        "inflate_find",
        "inflate_sieve",
        "inflate_read",
        "inflate_order",
    ];
    let [find, sieve, read, order] = job.kernels("inflate_find", names, "")?;
    let [count] = job.kernels("inflate", ["inflate_count"], "")?;
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
    let likely = job.scratch(most * 4)?;
    let slots = job.scratch(regions * MOST * 4)?;
    let codes = job.scratch((most + most_extra(streams)) * 4 * CODES_WORDS)?;
    let ordered = job.scratch(most * 4)?;
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
    let shared = [records.counts(), buffer(&slots), buffer(&codes)];
    let source = [buffer(stream), Arg::U32(words as u32), Arg::U32(bits)];
    let few = [Arg::U32(most_hits as u32)];
    let last = if number == 1 {
        bits.saturating_sub(LAST)
    } else {
        0
    };
    let args = [
        &source[..],
        &u32s(&[HEADER, last]),
        &few,
        &[buffer(&hits), report],
    ]
    .concat();
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe {
        job.launch(
            &find,
            words.div_ceil(GROUP) as u32,
            streams.len as u64,
            &args,
        )
    }?;
    let codes_most = [Arg::U32(most as u32)];
    let lists = [buffer(&hits), buffer(&likely), report];
    let args = [&source[..], &few, &codes_most, &lists].concat();
    let sievers = (bits / USUAL_HIT).div_ceil(SIEVERS).max(1);
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&sieve, sievers, 0, &args) }?;
    let args = [
        &source[..],
        &codes_most,
        &[buffer(&likely)],
        &shared,
        &[report],
    ]
    .concat();
    let readers = (most as u32)
        .div_ceil(READERS)
        .min(32 * job.multiprocessors());
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&read, readers, 0, &args) }?;
    let args = [
        &[buffer(stream)][..],
        &u32s(&[bits, regions as u32]),
        &shared,
        &u32s(&[span, most_parts as u32]),
        &[buffer(&ordered), records.parts(), report],
    ]
    .concat();
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&order, 1, 0, &args) }?;
    let resident = RESIDENT * job.multiprocessors();
    let counting = |job: &mut Job, from: u32, to: u32, grid: u32, rounds: u32| {
        let arrays = [buffer(&codes), records.parts(), buffer(&lanes)];
        let args = [
            &[buffer(stream), Arg::U32(words as u32)][..],
            &arrays,
            &u32s(&[from, to, rounds]),
            &[report],
        ]
        .concat();
        // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
        unsafe { job.launch(&count, grid, streams.len as u64, &args) }
    };
    counting(job, 0, 0, resident.min(most_parts as u32), FEW_ROUNDS)?;

    let words: Vec<u32> = job.fetch_words(&records.buffer, 0, records.part(expected) / 4)?;
    let reported = Report::of(&words)?;
    if reported.wrong != 0 {
        return Ok(Err(Unsuited::new("its blocks are too short")));
    }
    let made = reported.parts as usize;
    let first = words[parts / 4..].as_chunks().0.iter();
    let mut found: Vec<Part> = first.take(made).map(|&part| Part::from(part)).collect();
    if made > expected {
        let (from, more) = (records.part(expected), made - expected);
        let more: Vec<PartWords> = job.fetch_words(&records.buffer, from, more)?;
        found.extend(more.into_iter().map(Part::from));
    }
    let mut known = most.min(reported.codes as usize);
    let mut chain = Chain::new(streams, found, known as u32);
    let inflated = loop {
        match chain.step(streams.within(job.host()?)) {
            Err(unsuited) => return Ok(Err(unsuited)),
            Ok(Step::Done(inflated)) => break inflated,
            Ok(Step::Again(again)) => {
                let from = chain.parts();
                if from + again.parts.len() > room {
                    return Ok(Err(Unsuited::new(
                        "its blocks do not tell where they begin",
                    )));
                }
                job.send_words(again.codes.as_flattened(), &codes, known * 4 * CODES_WORDS)?;
                known += again.codes.len();
                let words: Vec<PartWords> = again.parts.iter().map(|&part| part.into()).collect();
                job.send_words(&words, &records.buffer, records.part(from))?;
                let made = again.parts.len();
                let to = (from + made) as u32;
                let grid = resident.min(made as u32);
                counting(job, from as u32, to, grid, LANES as u32 + 1)?;
                let counted: Vec<PartWords> =
                    job.fetch_words(&records.buffer, records.part(from), made)?;
                chain.take(counted.into_iter().map(Part::from));
            }
        }
    };
    Ok(Ok(Counted {
        codes,
        records,
        lanes,
        inflated,
    }))
}
