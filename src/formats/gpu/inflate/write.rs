//! Writes what streams make whose parts are in order: kernels/inflate_write.cu and inflate_matches.cu.

use super::count::Counted;
use super::order::Order;
use crate::formats::packed::Streams;
use crate::gpu::driver::Buffer;
use crate::gpu::job::Job;
use crate::gpu::launch::common::BLOCK;
use crate::gpu::launch::inflate::Match;
use crate::gpu::launch::inflate_matches::{InflateFar, InflateNear, MOST_SHARE};
use crate::gpu::launch::inflate_write::{InflateStored, InflateWrite};
use anyhow::Result;

/// Blocks of `inflate_write` that a multiprocessor holds.
const RESIDENT: u32 = 5;

/// Bytes behind those that are made that kernels may read.
const SLACK: usize = 32;

/// Queues the writing of what the symbols make; behind it lie some zeros.
pub fn write(
    streams: &Streams,
    stream: &Buffer,
    counted: &mut Counted,
    order: &Order,
    job: &mut Job,
) -> Result<Buffer> {
    let write = job.kernel::<InflateWrite>("")?;
    let Counted {
        codes,
        records,
        lanes,
        ..
    } = counted;
    let mut bytes = job.scratch(streams.bytes + SLACK)?;
    job.clear_from(&mut bytes, streams.bytes)?;
    if !order.stored.is_empty() {
        let pieces = job.words(&order.stored)?;
        let stored = job.kernel::<InflateStored>("")?;
        let arguments = InflateStored {
            stream: stream.view(),
            pieces: pieces.view(),
            bytes: bytes.view_mut(),
        };
        // SAFETY: `Chain` has found the blocks inside their streams, and that all blocks make as many bytes as there are.
        unsafe { job.launch_trusting(&stored, order.stored.len() as u32, 0, arguments) }?;
    }
    let Some(places) = &order.places else {
        return Ok(bytes);
    };
    let mut matches = job.scratch(order.matches * size_of::<Match>())?;
    let resident = RESIDENT * job.multiprocessors();
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
    let traffic = streams.len as u64 + streams.bytes as u64;
    // SAFETY: parts and lanes are those of `inflate_count`. The places, and how many are USED, are those of `inflate_chain`
    // or `Chain`: one after the other, they make as many bytes as there are and no more matches than there is room for.
    unsafe { job.launch_trusting(&write, grid, traffic, arguments) }?;
    if order.matches == 0 {
        return Ok(bytes);
    }
    let near = job.kernel::<InflateNear>("")?;
    let far = job.kernel::<InflateFar>("")?;
    let mut sources = job.scratch(streams.bytes * 4)?;
    let words = streams.bytes.div_ceil(32);
    let mut waiting = job.zeroed(words * 4)?;
    let arguments = InflateNear {
        parts: records.parts()?,
        places: places.view(),
        matches: matches.view(),
        bytes: bytes.view_mut(),
        sources: sources.view_mut(),
        waiting: waiting.view_mut(),
        report: records.report(),
    };
    // Several blocks for one that is resident: some parts have more matches than others.
    let grid = (8 * resident).min(MOST_SHARE * order.parts as u32);
    // SAFETY: parts, places and matches are those that `inflate_write` has gone by or left; sources are for all bytes, and
    // `waiting` has a bit for each.
    unsafe { job.launch_trusting(&near, grid, streams.bytes as u64, arguments) }?;
    let arguments = InflateFar {
        waiting: waiting.view(),
        count: words as u32,
        sources: sources.view_mut(),
        bytes: bytes.view_mut(),
        report: records.report(),
    };
    let grid = (words as u32).div_ceil(BLOCK);
    // SAFETY: `waiting`, which was zero, and the sources are those of `inflate_near`: bytes before the one that has them.
    unsafe { job.launch_trusting(&far, grid, words as u64 * 4, arguments) }?;
    Ok(bytes)
}
