//! Writes what streams make whose parts are known: the kernels `inflate_write` and `inflate_stored` of inflate.cu, and
//! inflate_matches.cu.

use super::count::Counted;
use super::{RESIDENT, THREADS};
use crate::codec::packed::Streams;
use crate::device::cuda::{Arg, Buffer};
use crate::device::job::Job;
use anyhow::Result;

/// Bytes of a match's record, and bytes of a window of inflate_matches.cu.
const MATCH_RECORD: usize = 8;
const WINDOW: u32 = 16 << 10;

/// Bytes behind those that are made that kernels may read.
const SLACK: usize = 32;

/// Writes what the symbols make; behind it lie some zeros.
pub fn write(
    streams: &Streams,
    stream: &Buffer,
    counted: &Counted,
    job: &mut Job,
) -> Result<Buffer> {
    let [write, stored] = job.kernels("inflate", ["inflate_write", "inflate_stored"], "")?;
    let Counted {
        codes,
        records,
        lanes,
        inflated,
    } = counted;
    let total = inflated.bytes;
    let bytes = job.scratch(streams.bytes + SLACK)?;
    job.clear_from(&bytes, streams.bytes)?;
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
    let matches = job.scratch(inflated.matches as usize * MATCH_RECORD)?;
    let resident = (RESIDENT / 2 * job.multiprocessors()).min(count);
    let args = [
        buffer(stream),
        Arg::U32(streams.len.div_ceil(4) as u32),
        buffer(codes),
        records.parts(),
        buffer(lanes),
        buffer(&places),
        Arg::U32(count),
        buffer(&bytes),
        buffer(&matches),
        records.report(),
    ];
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&write, resident, streams.len as u64 + total, &args) }?;
    if inflated.matches > 0 {
        let [near, far] = job.kernels("inflate_matches", ["inflate_near", "inflate_far"], "")?;
        let sources = job.scratch(streams.bytes * 4)?;
        // Where few parts make much, several blocks share the windows of one.
        let share = (inflated.largest / (4 * WINDOW)).clamp(1, 64);
        let words = streams.bytes.div_ceil(32);
        let waiting = job.zeroed(words * 4)?;
        let args = [
            records.parts(),
            buffer(&places),
            buffer(&matches),
            buffer(&bytes),
            buffer(&sources),
            buffer(&waiting),
            Arg::U32(share),
            records.report(),
        ];
        // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
        unsafe { job.launch(&near, count * share, total, &args) }?;
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
    }
    Ok(bytes)
}
