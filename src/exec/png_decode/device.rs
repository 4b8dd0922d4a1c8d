//! What the GPU does, in order, and the two places where the host waits for it: for the parts of
//! the stream when they are counted, and for the checksum when all is done. It is past 400 lines, since the
//! launches of one image are read in one go, from the first to the last.

use super::chain::{Chain, FIRST, Inflated, MOST_EXTRA, SPAN, Step};
use super::records::{CODES_WORDS, Part, PartWords, Report, ReportWords};
use crate::codec::png::{Head, Unsuited};
use crate::device::NoMemory;
use crate::device::cuda::{Arg, Buffer};
use crate::device::job::Job;
use crate::image::Depth;
use crate::ops::DeviceImage;
use anyhow::{Result, anyhow};

/// Constants of the kernels: words that a block looks at, words of a region and codes of it, threads that read
/// headers (png_find.cu), lanes of a part (png_inflate.cu), bytes of a tile (png_rows.cu), rows of a band at
/// least (png_unfilter.cu), bytes of a window (png_matches.cu).
const GROUP: usize = 2048;
const REGION: usize = 8192;
const MOST: usize = 64;
const SIEVERS: u32 = 64;
const READERS: u32 = 4;
const LANES: usize = 128;

/// Rounds in which lanes are tried to fit together at first.
const FEW_ROUNDS: u32 = 4;

const LANE_RECORD: usize = 12;
const MATCH_RECORD: usize = 8;
const TILE: u64 = 16 << 10;
const WINDOW: u32 = 16 << 10;
const BAND: u32 = 24;

/// Threads of most blocks.
const THREADS: u32 = 256;

/// Parts are not shorter, but where a block is.
const SHORTEST: u32 = 16 << 10;

/// Blocks a multiprocessor holds of the kernels that stay on it: as their shared memory allows.
const RESIDENT: u32 = 8;

/// Bytes of stream for one block with a code of its own, on average, at least.
const BLOCK: usize = 1 << 10;

/// Bits of stream for one that looks like a header at first, at least: in regular
/// data many do, elsewhere one of 2000.
const HIT: usize = 32;
const USUAL_HIT: u32 = 2000;

/// The modulus of Adler-32.
const BASE: u64 = 65521;

/// Bytes behind the scanlines that kernels may read.
const SLACK: usize = 32;

/// Decodes the PNG whose stream is the job's memory, as `Packed::split` gives both, and tells what the
/// CPU had better decode. An error is the GPU's.
pub fn decode_on_gpu(head: &Head, job: &mut Job) -> Result<Result<DeviceImage, Unsuited>> {
    let decoded = job.upload().and_then(|stream| decode(head, &stream, job));
    unless_out_of_memory(decoded)
}

/// The same once the job's memory is on the GPU too, as `stream`.
pub fn decode_resident(
    head: &Head,
    stream: &Buffer,
    job: &mut Job,
) -> Result<Result<DeviceImage, Unsuited>> {
    unless_out_of_memory(decode(head, stream, job))
}

/// Leaves a file to the CPU for which device memory does not suffice.
fn unless_out_of_memory(
    decoded: Result<Result<DeviceImage, Unsuited>>,
) -> Result<Result<DeviceImage, Unsuited>> {
    match decoded {
        Err(error) if error.is::<NoMemory>() => Ok(Err(Unsuited::new(
            "the GPU's memory does not hold all that is needed at once",
        ))),
        other => other,
    }
}

fn decode(head: &Head, stream: &Buffer, job: &mut Job) -> Result<Result<DeviceImage, Unsuited>> {
    let words = head.len.div_ceil(4);
    let report = job.zeroed(size_of::<ReportWords>())?;
    let counted = match count(head, words, stream, &report, job)? {
        Ok(counted) => counted,
        Err(unsuited) => return Ok(Err(unsuited)),
    };
    let bytes = inflate(head, words, stream, &report, &counted, job)?;
    let samples = unfilter(head, &bytes, &report, job)?;
    let reported = read_report(&report, job)?;
    if reported.wrong != 0 {
        return Ok(Err(Unsuited::new("its image data make no image")));
    }
    let total = counted.inflated.bytes;
    let (low, high) = (
        (1 + reported.sum) % BASE,
        (total + reported.weighted) % BASE,
    );
    let adler = (high << 16) | low;
    let at = counted.inflated.end.div_ceil(8) as usize;
    let stated = job.host()?[..head.len].get(at..at + 4);
    let stated = stated.and_then(|bytes| bytes.first_chunk());
    if stated.is_none_or(|stated| u64::from(u32::from_be_bytes(*stated)) != adler) {
        return Ok(Err(Unsuited::new("its Adler-32 is wrong")));
    }
    Ok(Ok(DeviceImage {
        shape: head.shape,
        samples,
    }))
}

/// What the kernels tell, after everything queued before.
fn read_report(report: &Buffer, job: &mut Job) -> Result<Report> {
    let words: Vec<u32> = job.read_words(report)?;
    let words: ReportWords = words.try_into().map_err(|_| anyhow!("a short report"))?;
    Ok(words.into())
}

/// A stream whose symbols are counted.
struct Counted {
    codes: Buffer,
    parts: Buffer,
    lanes: Buffer,
    inflated: Inflated,
}

/// Finds the blocks of the stream and counts what they make.
fn count(
    head: &Head,
    words: usize,
    stream: &Buffer,
    report: &Buffer,
    job: &mut Job,
) -> Result<Result<Counted, Unsuited>> {
    let names = ["png_find", "png_sieve", "png_read", "png_order"];
    let [find, sieve, read, order] = job.kernels("png_find", names, "")?;
    let [count] = job.kernels("png_inflate", ["png_count"], "")?;
    let bits = head.len as u32 * 8;
    let regions = words.div_ceil(REGION);
    let most = head.len / BLOCK + 64;
    // Enough parts to fill the GPU with, if there is enough to do.
    let lowest = bits / (RESIDENT * job.multiprocessors());
    let span = lowest.clamp(SHORTEST, SPAN).next_multiple_of(32);
    let most_parts = most + (bits / span) as usize;
    let room = 2 * most_parts + MOST_EXTRA;

    let most_hits = bits as usize / HIT + 1024;
    let hits = job.alloc(most_hits * 4)?;
    let likely = job.alloc(most * 4)?;
    let counts = job.zeroed(regions * 4)?;
    let slots = job.alloc(regions * MOST * 4)?;
    let codes = job.alloc((most + MOST_EXTRA) * 4 * CODES_WORDS)?;
    let ordered = job.alloc(most * 4)?;
    let parts = job.alloc(room * size_of::<PartWords>())?;
    let lanes = job.alloc(room * LANES * LANE_RECORD)?;

    let u32s = |numbers: &[u32]| numbers.iter().map(|&n| Arg::U32(n)).collect::<Vec<Arg>>();
    let buffer = Arg::Buffer;
    let shared = [buffer(&counts), buffer(&slots), buffer(&codes)];
    let source = [buffer(stream), Arg::U32(words as u32), Arg::U32(bits)];
    let few = [Arg::U32(most_hits as u32)];
    let args = [
        &source[..],
        &[Arg::U32(FIRST)],
        &few,
        &[&hits, report].map(buffer),
    ]
    .concat();
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&find, words.div_ceil(GROUP) as u32, head.len as u64, &args) }?;
    let codes_most = [Arg::U32(most as u32)];
    let lists = [&hits, &likely, report].map(buffer);
    let args = [&source[..], &few, &codes_most, &lists].concat();
    let sievers = (bits / USUAL_HIT).div_ceil(SIEVERS).max(1);
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&sieve, sievers, 0, &args) }?;
    let tail = [&likely, &counts, &slots, &codes, report].map(buffer);
    let args = [&source[..], &codes_most, &tail].concat();
    let readers = (most as u32)
        .div_ceil(READERS)
        .min(32 * job.multiprocessors());
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&read, readers, 0, &args) }?;
    let args = [
        &u32s(&[bits, regions as u32])[..],
        &shared,
        &u32s(&[span, most_parts as u32]),
        &[buffer(&ordered), buffer(&parts), buffer(report)],
    ]
    .concat();
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&order, 1, 0, &args) }?;
    let resident = RESIDENT * job.multiprocessors();
    let counting = |job: &mut Job, from: u32, to: u32, grid: u32, rounds: u32| {
        let arrays = [buffer(&codes), buffer(&parts), buffer(&lanes)];
        let args = [
            &[buffer(stream), Arg::U32(words as u32)][..],
            &arrays,
            &u32s(&[from, to, rounds]),
            &[buffer(report)],
        ]
        .concat();
        // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
        unsafe { job.launch(&count, grid, head.len as u64, &args) }
    };
    counting(job, 0, 0, resident.min(most_parts as u32), FEW_ROUNDS)?;

    let reported = read_report(report, job)?;
    if reported.wrong != 0 {
        return Ok(Err(Unsuited::new("its blocks are too short")));
    }
    let found: Vec<PartWords> = job.fetch_words(&parts, 0, reported.parts as usize)?;
    let found = found.into_iter().map(Part::from).collect();
    let mut known = most.min(reported.codes as usize);
    let mut chain = Chain::new(bits, found, known as u32);
    let inflated = loop {
        match chain.step(&job.host()?[..head.len]) {
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
                job.send_words(&words, &parts, from * size_of::<PartWords>())?;
                let made = again.parts.len();
                let to = (from + made) as u32;
                let grid = resident.min(made as u32);
                counting(job, from as u32, to, grid, LANES as u32 + 1)?;
                let counted: Vec<PartWords> =
                    job.fetch_words(&parts, from * size_of::<PartWords>(), made)?;
                chain.take(counted.into_iter().map(Part::from));
            }
        }
    };
    if inflated.bytes != head.bytes as u64 {
        return Ok(Err(Unsuited::new(
            "its data are not as many as its header says",
        )));
    }
    Ok(Ok(Counted {
        codes,
        parts,
        lanes,
        inflated,
    }))
}

/// Writes what the symbols make: scanlines with their filters, and some zeros behind them.
fn inflate(
    head: &Head,
    words: usize,
    stream: &Buffer,
    report: &Buffer,
    counted: &Counted,
    job: &mut Job,
) -> Result<Buffer> {
    let [write, stored] = job.kernels("png_inflate", ["png_write", "png_stored"], "")?;
    let Counted {
        codes,
        parts,
        lanes,
        inflated,
    } = counted;
    let total = inflated.bytes;
    let bytes = job.alloc(head.bytes + SLACK)?;
    let buffer = Arg::Buffer;
    if !inflated.stored.is_empty() {
        let pieces = job.words(&inflated.stored)?;
        let args = [stream, &pieces, &bytes].map(Arg::Buffer);
        // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
        unsafe { job.launch(&stored, inflated.stored.len() as u32, 0, &args) }?;
    }
    let count = inflated.parts.len() as u32;
    if count == 0 {
        return Ok(bytes);
    }
    let places = job.words(&inflated.parts)?;
    let matches = job.alloc(inflated.matches as usize * MATCH_RECORD)?;
    let resident = (RESIDENT / 2 * job.multiprocessors()).min(count);
    let args = [
        buffer(stream),
        Arg::U32(words as u32),
        buffer(codes),
        buffer(parts),
        buffer(lanes),
        buffer(&places),
        Arg::U32(count),
        buffer(&bytes),
        buffer(&matches),
        buffer(report),
    ];
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&write, resident, head.len as u64 + total, &args) }?;
    if inflated.matches > 0 {
        let [near, far] = job.kernels("png_matches", ["png_near", "png_far"], "")?;
        let sources = job.alloc(head.bytes * 4)?;
        // Where few parts make much, several blocks share the windows of one.
        let share = (inflated.largest / (4 * WINDOW)).clamp(1, 64);
        let words = head.bytes.div_ceil(32);
        let waiting = job.zeroed(words * 4)?;
        let args = [
            buffer(parts),
            buffer(&places),
            buffer(&matches),
            buffer(&bytes),
            buffer(&sources),
            buffer(&waiting),
            Arg::U32(share),
            buffer(report),
        ];
        // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
        unsafe { job.launch(&near, count * share, total, &args) }?;
        let args = [
            buffer(&waiting),
            Arg::U32(words as u32),
            buffer(&sources),
            buffer(&bytes),
            buffer(report),
        ];
        let grid = (words as u32).div_ceil(THREADS);
        // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
        unsafe { job.launch(&far, grid, words as u64 * 4, &args) }?;
    }
    Ok(bytes)
}

/// Sums the scanlines up, undoes their filters, and unpacks samples.
fn unfilter(head: &Head, bytes: &Buffer, report: &Buffer, job: &mut Job) -> Result<Buffer> {
    let [kinds, adler, expand] =
        job.kernels("png_rows", ["png_kinds", "png_adler", "png_expand"], "")?;
    let form = match head.step {
        1 => "b1",
        2 => "b2",
        3 => "b3",
        4 => "b4",
        6 => "b6",
        _ => "b8",
    };
    let [flat, wave] = job.kernels("png_unfilter", ["png_flat", "png_wave"], form)?;
    let height = head.header.height;
    let total = head.bytes as u64;
    let sixteen = head.shape.depth == Depth::Sixteen;
    let (buffer, word) = (Arg::Buffer, Arg::U32);
    let filters = job.alloc(height as usize)?;
    let rows = [word(head.row as u32), word(height)];
    let args = [
        buffer(bytes),
        rows[0],
        rows[1],
        buffer(&filters),
        buffer(report),
    ];
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&kinds, height.div_ceil(THREADS), 0, &args) }?;
    let args = [buffer(bytes), Arg::U64(total), buffer(report)];
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&adler, total.div_ceil(TILE) as u32, total, &args) }?;
    let plain = job.alloc(head.row * height as usize)?;
    let args = [
        buffer(bytes),
        rows[0],
        rows[1],
        word(sixteen.into()),
        buffer(&filters),
        buffer(&plain),
        buffer(report),
    ];
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&flat, height.div_ceil(THREADS / 32), 2 * total, &args) }?;
    let bands = height.div_ceil(BAND);
    let progress = job.zeroed(4 + 4 * bands as usize)?;
    let tail = [word((head.row / head.step) as u32), buffer(&progress)];
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&wave, bands, 2 * total, &[&args[..], &tail].concat()) }?;
    let Some(expansion) = &head.expansion else {
        return Ok(plain);
    };
    let samples = job.alloc(head.shape.bytes())?;
    let colours = expansion.palette.len() as u32;
    let palette = job.words(match colours {
        0 => &[0][..],
        _ => &expansion.palette,
    })?;
    let args = [
        buffer(&plain),
        rows[0],
        word(head.header.width),
        rows[1],
        word(head.header.bits.into()),
        word(expansion.mode),
        Arg::U64(expansion.key),
        buffer(&palette),
        word(colours),
        buffer(&samples),
        buffer(report),
    ];
    let grid = job.reduction_grid(16 * head.shape.bytes() as u64);
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&expand, grid, total + head.shape.bytes() as u64, &args) }?;
    Ok(samples)
}
