//! Writes the inflated bytes, once the parts are in order: kernels/inflate_write.cu and inflate_matches.cu.

use super::order::Order;
use super::search::{BlockSearch, Records};
use crate::formats::packed::Streams;
use crate::gpu::driver::Buffer;
use crate::gpu::job::Job;
use crate::gpu::launch::common::BLOCK;
use crate::gpu::launch::inflate::Match;
use crate::gpu::launch::inflate_matches::{InflateFar, InflateNear, MOST_SHARE};
use crate::gpu::launch::inflate_write::{InflateStored, InflateWrite};
use anyhow::Result;

/// Thread blocks of `inflate_write` that a multiprocessor holds.
const RESIDENT_BLOCKS: u32 = 5;

/// Zeros after the inflated bytes, which kernels may read.
const SLACK: usize = 32;

/// Thread blocks of `inflate_near` for each resident one: some parts have more matches than others.
const NEAR_BLOCKS_PER_RESIDENT: u32 = 8;

/// Queues the writing of the inflated bytes of all streams, and of some zeros after them.
pub fn write(
    streams: &Streams,
    stream: &Buffer,
    search: &mut BlockSearch,
    order: &Order,
    job: &mut Job,
) -> Result<Buffer> {
    let write = job.kernel::<InflateWrite>("")?;
    let BlockSearch {
        codes,
        records,
        lanes,
        ..
    } = search;
    let mut bytes = job.scratch(streams.output + SLACK)?;
    job.clear_from(&mut bytes, streams.output)?;
    if !order.stored.is_empty() {
        let pieces = job.words(&order.stored)?;
        let stored = job.kernel::<InflateStored>("")?;
        let arguments = InflateStored {
            stream: stream.view(),
            pieces: pieces.view(),
            bytes: bytes.view_mut(),
        };
        // SAFETY: `Chain` has checked that these blocks lie inside their streams, and that all blocks together make exactly
        // `streams.output` bytes.
        unsafe { job.launch_trusting(&stored, order.stored.len() as u32, 0, arguments) }?;
    }
    let Some(places) = &order.places else {
        return Ok(bytes);
    };
    let mut matches = job.scratch(order.matches * size_of::<Match>())?;
    let resident = RESIDENT_BLOCKS * job.multiprocessors();
    let grid = resident.min(order.parts as u32);
    let [report, _, parts] = records.split()?;
    let arguments = InflateWrite {
        stream: stream.view(),
        words: streams.len.div_ceil(4) as u32,
        codes: codes.view(),
        parts: parts.into_view(),
        lanes: lanes.view(),
        places: places.view(),
        bytes: bytes.view_mut(),
        matches: matches.view_mut(),
        report,
    };
    let traffic = streams.len as u64 + streams.output as u64;
    // SAFETY: `inflate_count` wrote the parts and the lanes. `inflate_chain`, or the host by `Chain`, wrote the places and the
    // number of those in use (USED of the report), and checked that these parts together make exactly `streams.output` bytes,
    // and at most `order.matches` matches.
    unsafe { job.launch_trusting(&write, grid, traffic, arguments) }?;
    if order.matches > 0 {
        let written = Written { places, matches };
        queue_matches(streams, order, &written, records, &mut bytes, job)?;
    }
    Ok(bytes)
}

/// The results of `inflate_write` other than the literals.
struct Written<'a> {
    /// The offset in the output of each part.
    places: &'a Buffer,
    /// The matches, which are still to be copied.
    matches: Buffer,
}

/// Queues the copying of all matches: first those whose bytes are literals or come from matches of the same part, and then the
/// others.
fn queue_matches(
    streams: &Streams,
    order: &Order,
    written: &Written,
    records: &Records,
    bytes: &mut Buffer,
    job: &mut Job,
) -> Result<()> {
    let resident = RESIDENT_BLOCKS * job.multiprocessors();
    let near = job.kernel::<InflateNear>("")?;
    let far = job.kernel::<InflateFar>("")?;
    let mut sources = job.scratch(streams.output * 4)?;
    let words = streams.output.div_ceil(32);
    let mut waiting = job.zeroed(words * 4)?;
    let arguments = InflateNear {
        parts: records.parts()?,
        places: written.places.view(),
        matches: written.matches.view(),
        bytes: bytes.view_mut(),
        sources: sources.view_mut(),
        waiting: waiting.view_mut(),
        report: records.report(),
    };
    let grid = (NEAR_BLOCKS_PER_RESIDENT * resident).min(MOST_SHARE * order.parts as u32);
    // SAFETY: `inflate_write` has read these parts and places, and has written the matches; `sources` has a word and `waiting` a
    // bit for each byte.
    unsafe { job.launch_trusting(&near, grid, streams.output as u64, arguments) }?;
    let arguments = InflateFar {
        waiting: waiting.view(),
        count: words as u32,
        sources: sources.view_mut(),
        bytes: bytes.view_mut(),
        report: records.report(),
    };
    let grid = (words as u32).div_ceil(BLOCK);
    // SAFETY: `inflate_near` wrote `waiting`, which was zero, and the sources: each is the index of an earlier byte.
    unsafe { job.launch_trusting(&far, grid, words as u64 * 4, arguments) }?;
    Ok(())
}
