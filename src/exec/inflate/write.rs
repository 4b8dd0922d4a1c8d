//! Writes what streams make whose parts are in order: kernels/inflate_write.cu and inflate_matches.cu.

use super::THREADS;
use super::count::Counted;
use super::order::Order;
use crate::codec::packed::Streams;
use crate::device::cuda::{Arg, Buffer};
use crate::device::job::Job;
use anyhow::Result;

/// Bytes of a match's record, and how many blocks of threads share the windows of a part at most (inflate_matches.cu).
const MATCH_RECORD: usize = 8;
const MOST_SHARE: u32 = 64;

/// Blocks of `inflate_write` that a multiprocessor holds.
const RESIDENT: u32 = 5;

/// Bytes behind those that are made that kernels may read.
const SLACK: usize = 32;

/// Queues the writing of what the symbols make; behind it lie some zeros.
pub fn write(
    streams: &Streams,
    stream: &Buffer,
    counted: &Counted,
    order: &Order,
    job: &mut Job,
) -> Result<Buffer> {
    let [write, stored] = job.kernels("inflate_write", ["inflate_write", "inflate_stored"], "")?;
    let Counted {
        codes,
        records,
        lanes,
        ..
    } = counted;
    let bytes = job.scratch(streams.bytes + SLACK)?;
    job.clear_from(&bytes, streams.bytes)?;
    if !order.stored.is_empty() {
        let pieces = job.words(&order.stored)?;
        let args = [stream, &pieces, &bytes].map(Arg::Buffer);
        // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
        unsafe { job.launch(&stored, order.stored.len() as u32, 0, &args) }?;
    }
    let Some(places) = &order.places else {
        return Ok(bytes);
    };
    let buffer = Arg::Buffer;
    let matches = job.scratch(order.matches * MATCH_RECORD)?;
    let resident = RESIDENT * job.multiprocessors();
    let grid = resident.min(order.parts as u32);
    let args = [
        buffer(stream),
        Arg::U32(streams.len.div_ceil(4) as u32),
        buffer(codes),
        records.parts(),
        buffer(lanes),
        buffer(places),
        buffer(&bytes),
        buffer(&matches),
        records.report(),
    ];
    let traffic = streams.len as u64 + streams.bytes as u64;
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&write, grid, traffic, &args) }?;
    if order.matches == 0 {
        return Ok(bytes);
    }
    let [near, far] = job.kernels("inflate_matches", ["inflate_near", "inflate_far"], "")?;
    let sources = job.scratch(streams.bytes * 4)?;
    let words = streams.bytes.div_ceil(32);
    let waiting = job.zeroed(words * 4)?;
    let args = [
        records.parts(),
        buffer(places),
        buffer(&matches),
        buffer(&bytes),
        buffer(&sources),
        buffer(&waiting),
        records.report(),
    ];
    // Several blocks for one that is resident: some parts have more matches than others.
    let grid = (8 * resident).min(MOST_SHARE * order.parts as u32);
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&near, grid, streams.bytes as u64, &args) }?;
    let args = [
        buffer(&waiting),
        Arg::U32(words as u32),
        buffer(&sources),
        buffer(&bytes),
        records.report(),
    ];
    let grid = (words as u32).div_ceil(THREADS);
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&far, grid, words as u64 * 4, &args) }?;
    Ok(bytes)
}
