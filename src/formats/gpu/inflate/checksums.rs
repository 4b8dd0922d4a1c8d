//! The checksums of the inflated bytes: kernels/inflate_adler.cu.

use super::order::Order;
use super::search::BlockSearch;
use crate::deflate::adler;
use crate::formats::packed::Streams;
use crate::gpu::driver::Buffer;
use crate::gpu::job::Job;
use crate::gpu::launch::inflate::{CROWDED, UNCHAINED};
use crate::gpu::launch::inflate_adler::{InflateAdler, TILE};
use anyhow::Result;
use std::slice;

/// Queues the sums of the inflated bytes of each stream.
pub fn queue_adler(
    streams: &Streams,
    bytes: &Buffer,
    search: &mut BlockSearch,
    job: &mut Job,
) -> Result<()> {
    let kernel = job.kernel::<InflateAdler>("")?;
    let (total, each) = (streams.output as u64, streams.stream_output as u64);
    let tiles = each.div_ceil(TILE.into()).max(1) as u32;
    let arguments = InflateAdler {
        bytes: bytes.view(),
        count: total,
        each,
        tiles,
        report: search.records.report_mut(),
    };
    let grid = tiles * streams.starts.len() as u32;
    job.launch(&kernel, grid, total, arguments)
}

/// Waits for everything queued before, and returns whether no kernel reported a fault and every stream states the Adler-32 of
/// its inflated bytes.
pub fn check_streams(
    streams: &Streams,
    search: &BlockSearch,
    order: &Order,
    job: &mut Job,
) -> Result<Agreement> {
    let (report, sums) = search.records.read_sums(job)?;
    if report.wrong & (CROWDED | UNCHAINED) != 0 {
        return Ok(Agreement::OrderUnknown);
    }
    if report.wrong != 0 {
        return Ok(Agreement::Corrupt);
    }
    let reader = streams.reader(job.host()?);
    let ends = order
        .ends
        .as_deref()
        .unwrap_or(slice::from_ref(&report.end));
    let mut start = 0;
    for (index, sums) in sums.iter().enumerate() {
        let end = streams.output_end(index);
        let computed = adler::from_sums(end - start, sums.bytes, sums.running);
        let at = ends[index].div_ceil(8) as usize;
        let stated = reader.bytes(at, 4);
        let stated = stated
            .first_chunk()
            .map(|stated| u32::from_be_bytes(*stated));
        if at + 4 > streams.end(index) || stated != Some(computed) {
            return Ok(Agreement::WrongAdler);
        }
        start = end;
    }
    Ok(Agreement::Valid)
}

/// The result of `check_streams`.
pub enum Agreement {
    Valid,
    /// A kernel reported a fault.
    Corrupt,
    /// The GPU could not put the parts in order.
    OrderUnknown,
    /// A stream states another Adler-32.
    WrongAdler,
}
