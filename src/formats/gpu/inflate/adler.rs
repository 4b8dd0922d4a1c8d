//! The checksums of what was inflated: kernels/inflate_adler.cu.

use super::count::Counted;
use super::order::Order;

use crate::formats::packed::Streams;
use crate::gpu::driver::Buffer;
use crate::gpu::job::Job;
use crate::gpu::launch::inflate::{CROWDED, UNCHAINED};
use crate::gpu::launch::inflate_adler::{InflateAdler, TILE};
use anyhow::Result;
use std::slice;

/// The modulus of Adler-32 (RFC 1950 §8.2).
const BASE: u64 = 65521;

/// Queues the sums of what each stream made.
pub fn sum_up(
    streams: &Streams,
    bytes: &Buffer,
    counted: &mut Counted,
    job: &mut Job,
) -> Result<()> {
    let adler = job.kernel::<InflateAdler>("")?;
    let (total, each) = (streams.bytes as u64, streams.each as u64);
    let tiles = each.div_ceil(TILE.into()).max(1) as u32;
    let arguments = InflateAdler {
        bytes: bytes.view(),
        count: total,
        each,
        tiles,
        report: counted.records.report_mut(),
    };
    let grid = tiles * streams.begins.len() as u32;
    job.launch(&adler, grid, total, arguments)
}

/// Whether no kernel found anything wrong, and every stream has the Adler-32 of what it made, after everything queued before.
pub fn agrees(
    streams: &Streams,
    counted: &Counted,
    order: &Order,
    job: &mut Job,
) -> Result<Agreement> {
    let (report, sums) = counted.records.read_sums(job)?;
    if report.wrong & (CROWDED | UNCHAINED) != 0 {
        return Ok(Agreement::Unknown);
    }
    if report.wrong != 0 {
        return Ok(Agreement::Wrong);
    }
    let stream = streams.within(job.host()?);
    let ends = order
        .ends
        .as_deref()
        .unwrap_or(slice::from_ref(&report.end));
    let mut from = 0;
    for (index, &[sum, weighted]) in sums.iter().enumerate() {
        let made = streams.made(index);
        let low = (1 + sum) % BASE;
        let high = ((made - from) as u64 + weighted) % BASE;
        let at = ends[index].div_ceil(8) as usize;
        let stated = stream.bytes(at, 4);
        let stated = stated
            .first_chunk()
            .map(|stated| u32::from_be_bytes(*stated));
        if at + 4 > streams.end(index) || stated.map(u64::from) != Some(high << 16 | low) {
            return Ok(Agreement::OtherSum);
        }
        from = made;
    }
    Ok(Agreement::Right)
}

/// What `agrees` finds.
pub enum Agreement {
    Right,
    /// A kernel found something wrong.
    Wrong,
    /// The GPU did not find the order of the parts.
    Unknown,
    /// A stream states another Adler-32.
    OtherSum,
}
