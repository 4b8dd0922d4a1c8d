//! The checksums of the inflated bytes: kernels/inflate_adler.cu and kernels/png_crc.cu.

use super::order::Order;
use super::search::{BlockSearch, Records};
use crate::deflate::adler;
use crate::formats::gpu::png_crc::{Range, spans};
use crate::formats::packed::{Streams, Trailer};
use crate::gpu::driver::Buffer;
use crate::gpu::job::Job;
use crate::gpu::launch::common::{BLOCK, WARPS};
use crate::gpu::launch::inflate::{CROWDED, UNCHAINED};
use crate::gpu::launch::inflate_adler::{InflateAdler, TILE};
use crate::gpu::launch::png_crc::{InflateCrc, PngAgree, Stretch as CrcSpan};
use anyhow::Result;
use std::slice;

/// Bytes after the last block of a gzip member: its CRC-32, and the number of inflated bytes.
const GZIP_TRAILER: usize = 8;

/// Queues the checksums of the inflated bytes of each stream. `check_streams` compares the sums of Adler-32; of a CRC-32 the report
/// says whether it is wrong.
pub fn queue_checksums(
    streams: &Streams,
    bytes: &Buffer,
    search: &mut BlockSearch,
    job: &mut Job,
) -> Result<()> {
    match streams.trailer {
        Trailer::Adler => queue_adler(streams, bytes, search, job),
        Trailer::Gzip => queue_crcs(streams, bytes, search, job),
    }
}

fn queue_crcs(
    streams: &Streams,
    bytes: &Buffer,
    search: &mut BlockSearch,
    job: &mut Job,
) -> Result<()> {
    let count = streams.starts.len();
    let reader = streams.reader(job.host()?);
    // With its complement to begin with, a sum is 0 after its last span.
    let complement = |index: usize| !reader.word(streams.end(index).saturating_sub(GZIP_TRAILER));
    let complements: Vec<u32> = (0..count).map(complement).collect();
    let mut start = 0;
    let spans: Vec<CrcSpan> = (0..count)
        .flat_map(|index| {
            let at = start;
            start = streams.output_end(index);
            spans(Range {
                at,
                len: start - at,
                sum: index,
                copied_to: 0,
            })
        })
        .collect();
    let kernel = job.kernel::<InflateCrc>("")?;
    let mut sums = job.words(&complements)?;
    let stretches = job.words(&spans)?;
    let arguments = InflateCrc {
        bytes: bytes.view(),
        stretches: stretches.view(),
        count: spans.len() as u32,
        sums: sums.view_mut(),
        report: search.records.report(),
    };
    let grid = (spans.len() as u32).div_ceil(WARPS);
    // SAFETY: the spans cover the inflated bytes of the streams, which `bytes` has, and `sums` has a word for each stream.
    unsafe { job.launch_trusting(&kernel, grid, streams.output as u64, arguments) }?;
    compare_crcs(&sums, count, &mut search.records, job)
}

/// Queues the comparison of `count` sums of CRCs with 0; the report says whether one is another number.
pub fn compare_crcs(
    sums: &Buffer,
    count: usize,
    records: &mut Records,
    job: &mut Job,
) -> Result<()> {
    let kernel = job.kernel::<PngAgree>("")?;
    let count = count as u32;
    let arguments = PngAgree {
        sums: sums.view(),
        count,
        report: records.report_mut(),
    };
    job.launch(&kernel, count.div_ceil(BLOCK), 0, arguments)
}

/// Queues the sums of the inflated bytes of each stream.
fn queue_adler(
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

/// Waits for everything queued before, and returns whether no kernel reported a fault and every stream states the checksum of
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
        let at = ends[index].div_ceil(8) as usize;
        let is_right = match streams.trailer {
            Trailer::Adler => {
                let computed = adler::from_sums(end - start, sums.bytes, sums.running);
                at + 4 <= streams.end(index) && reader.word(at).swap_bytes() == computed
            }
            // The kernel has compared the CRC.
            Trailer::Gzip => {
                let stated = reader.word(at + 4) as usize;
                at + GZIP_TRAILER == streams.end(index) && stated == end - start
            }
        };
        if !is_right {
            return Ok(Agreement::WrongChecksum);
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
    /// A stream states another checksum.
    WrongChecksum,
}
