//! How the parts of streams follow one another, and so where what each makes belongs. Of one stream the GPU finds that out by
//! itself, where nothing is out of the ordinary (kernels/inflate_chain.cu): the host need not wait in between. Else
//! the host does, by `chain`, and has parts counted again.

use super::chain::{Chain, HEADER, Inflated, Step};
use super::count::Counted;
use super::records::Found;
use crate::formats::packed::{Streams, Unsuited};
use crate::gpu::driver::Buffer;
use crate::gpu::job::Job;
use crate::gpu::launch::inflate::{CROWDED, Codes, Place};
use crate::gpu::launch::inflate_chain::InflateChain;
use crate::gpu::launch::inflate_symbols::LANES;
use crate::gpu::launch::inflate_write::Stored;
use anyhow::Result;

/// Bytes that a stream makes for each match of which there is room before matches are counted. Regular images have more of
/// them.
const MATCH: usize = 8;

/// The order of the parts.
pub struct Order {
    /// Where what each part makes belongs, as `Place`; `None` if there are no parts.
    pub places: Option<Buffer>,
    /// Matches for which room is needed, and parts at most.
    pub matches: usize,
    pub parts: usize,
    /// What the host alone finds: blocks without symbols, and of each stream the bit behind its last block.
    pub stored: Vec<Stored>,
    pub ends: Option<Vec<u32>>,
}

/// Queues the search for the order of one stream's parts. Where it is not a simple one, the report says so, and the kernels
/// that are queued behind do nothing.
pub fn by_gpu(
    streams: &Streams,
    stream: &Buffer,
    counted: &mut Counted,
    job: &mut Job,
) -> Result<Order> {
    let chain = job.kernel::<InflateChain>("")?;
    let parts = counted.most_parts;
    let mut places = job.scratch(parts * size_of::<Place>())?;
    let matches = streams.bytes / MATCH;
    let [report, _, all_parts] = counted.records.split()?;
    let arguments = InflateChain {
        stream: stream.view(),
        bits: streams.len as u32 * 8,
        parts: all_parts.into_view(),
        head: HEADER,
        bytes: streams.bytes as u32,
        most_matches: matches as u32,
        places: places.view_mut(),
        report,
    };
    // SAFETY: the report and the parts are those of `inflate_order` and `inflate_count`: at most `most_parts`, for which
    // there are places.
    unsafe { job.launch_trusting(&chain, 1, 0, arguments) }?;
    Ok(Order {
        places: Some(places),
        matches,
        parts,
        stored: Vec::new(),
        ends: None,
    })
}

/// Finds the order of the parts of all streams, and makes the GPU count again what does not fit.
pub fn by_host(
    streams: &Streams,
    stream: &Buffer,
    counted: &mut Counted,
    job: &mut Job,
) -> Result<Result<Order, Unsuited>> {
    let (report, parts) = counted.read(job)?;
    if report.wrong & CROWDED != 0 {
        return Ok(Err(Unsuited::new("its blocks are too short")));
    }
    let mut known = counted.most_codes.min(report.codes as usize);
    let mut chain = Chain::new(streams, parts, known as u32);
    let inflated = loop {
        match chain.step(streams.within(job.host()?)) {
            Err(unsuited) => return Ok(Err(unsuited)),
            Ok(Step::Done(inflated)) => break inflated,
            Ok(Step::Again(again)) => {
                let (from, made) = (chain.parts(), again.parts.len());
                if from + made > counted.room {
                    return Ok(Err(Unsuited::new(
                        "cannot find the deflate block boundaries",
                    )));
                }
                let to = known * size_of::<Codes>();
                job.send_words(&again.codes, &mut counted.codes, to)?;
                known += again.codes.len();
                counted.records.add(from, &again.parts, job)?;
                let rounds = (made, LANES + 1);
                counted.queue(streams, stream, from..from + made, rounds, job)?;
                chain.take(counted.records.read(from, made, job)?.into_iter());
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
    let found = Found {
        parts: parts.len() as u32,
        largest,
        matches: matches as u32,
    };
    counted.records.tell(found, job)?;
    let places = match parts.is_empty() {
        true => None,
        false => Some(job.words(&parts)?),
    };
    Ok(Ok(Order {
        places,
        matches: matches as usize,
        parts: parts.len(),
        stored,
        ends: Some(ends),
    }))
}
