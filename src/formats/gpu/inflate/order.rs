//! The order of the parts, and the offset in the output of each. The GPU finds the order of a single stream by itself, if each
//! block starts where the one before ends (kernels/inflate_chain.cu): the host need not wait in between. Otherwise the host
//! does, with a `Chain`, and has parts counted again.

use super::chain::{Chain, HEADER_BITS, Inflated, Step};
use super::records::OrderReport;
use super::search::{BlockSearch, CountLimits};
use crate::formats::packed::{Streams, Unsuited};
use crate::gpu::driver::Buffer;
use crate::gpu::job::Job;
use crate::gpu::launch::inflate::{CROWDED, Codes, Place as OutputPosition};
use crate::gpu::launch::inflate_chain::InflateChain;
use crate::gpu::launch::inflate_symbols::LANES;
use crate::gpu::launch::inflate_write::Stored;
use anyhow::{Result, bail};

/// Before the matches are counted, there is room for one match per 8 bytes of output. Regular images have more.
const OUTPUT_BYTES_PER_MATCH: usize = 8;

/// The order of the parts.
pub struct Order {
    /// The offset in the output of each part; `None` if there are no parts.
    pub places: Option<Buffer>,
    /// The most matches of all parts.
    pub matches: usize,
    /// The most parts.
    pub parts: usize,
    /// The stored blocks, if the host put the parts in order.
    pub stored: Vec<Stored>,
    /// For each stream the bit after its last block, if the host put the parts in order.
    pub ends: Option<Vec<u32>>,
}

/// Queues the search for the order of one stream's parts. If the GPU cannot find it, the report says so, and the kernels that
/// are queued afterwards do nothing.
pub fn by_gpu(
    streams: &Streams,
    stream: &Buffer,
    search: &mut BlockSearch,
    job: &mut Job,
) -> Result<Order> {
    let kernel = job.kernel::<InflateChain>("")?;
    let parts = search.max_parts;
    let mut places = job.scratch(parts * size_of::<OutputPosition>())?;
    let matches = streams.output / OUTPUT_BYTES_PER_MATCH;
    let [report, _, all_parts] = search.records.split()?;
    let arguments = InflateChain {
        stream: stream.view(),
        bits: streams.len as u32 * 8,
        parts: all_parts.into_view(),
        head: HEADER_BITS,
        bytes: streams.output as u32,
        most_matches: matches as u32,
        places: places.view_mut(),
        report,
    };
    // SAFETY: `inflate_order` and `inflate_count` wrote the report and the parts: at most `max_parts`, as many as `places` has
    // room for.
    unsafe { job.launch_trusting(&kernel, 1, 0, arguments) }?;
    Ok(Order {
        places: Some(places),
        matches,
        parts,
        stored: Vec::new(),
        ends: None,
    })
}

/// Finds the order of the parts of all streams on the host. Parts that do not fit are counted again on the GPU.
///
/// # Errors
/// An `Unsuited` if the order cannot be found; the GPU's errors.
pub fn by_host(
    streams: &Streams,
    stream: &Buffer,
    search: &mut BlockSearch,
    job: &mut Job,
) -> Result<Order> {
    let (report, parts) = search.read(job)?;
    if report.wrong & CROWDED != 0 {
        bail!(Unsuited::new(
            "it has too many deflate blocks for the GPU: they are very short"
        ));
    }
    let codes = search.max_codes.min(report.codes as usize);
    let mut chain = Chain::new(streams, parts, codes as u32);
    let inflated = loop {
        match chain.step(streams.reader(job.host()?))? {
            Step::Done(inflated) => break inflated,
            Step::NeedsRecount(recount) => {
                let parts = chain.part_count()..chain.part_count() + recount.parts.len();
                if parts.end > search.room {
                    bail!(Unsuited::new(
                        "cannot find the deflate block boundaries: too many parts were decoded again"
                    ));
                }
                let first_new_code = chain.code_count() - recount.codes.len();
                let to = first_new_code * size_of::<Codes>();
                job.send_words(&recount.codes, &mut search.codes, to)?;
                search.records.add(parts.start, &recount.parts, job)?;
                let limits = CountLimits {
                    grid: parts.len(),
                    rounds: LANES + 1,
                };
                search.queue_count(streams, stream, Some(parts.clone()), limits, job)?;
                let counted = search.records.read(parts.start, parts.len(), job)?;
                chain.add_results(counted);
            }
        }
    };
    let Inflated {
        parts,
        stored,
        matches,
        largest,
        ends,
        ..
    } = inflated;
    let report = OrderReport {
        parts: parts.len() as u32,
        largest,
        matches: matches as u32,
    };
    search.records.write_order_report(report, job)?;
    let places = if parts.is_empty() {
        None
    } else {
        Some(job.words(&parts)?)
    };
    Ok(Order {
        places,
        matches: matches as usize,
        parts: parts.len(),
        stored,
        ends: Some(ends),
    })
}
