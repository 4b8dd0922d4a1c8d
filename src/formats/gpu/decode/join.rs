//! Puts the data of a file's chunks together on the GPU, and checks the chunks' CRCs: kernels/png_crc.cu.

use crate::formats::gpu::inflate::Records;
use crate::formats::gpu::png_crc::cut;
use crate::formats::packed::{PADDING, Streams};
use crate::gpu::driver::Buffer;
use crate::gpu::job::Job;
use crate::gpu::launch::common::{BLOCK, WARPS};
use crate::gpu::launch::png_crc::{PngAgree, PngJoin, Stretch};
use anyhow::Result;

/// A stream of chunks in device memory.
pub struct Joined {
    /// The stream, and zeros behind it.
    pub stream: Buffer,
    /// Begins with a word for each chunk: 0 if its CRC is right.
    pub sums: Buffer,
}

/// Joins the chunks of `file`, the job's memory in device memory.
pub fn join(streams: &Streams, file: &Buffer, job: &mut Job) -> Result<Joined> {
    let join = job.kernel::<PngJoin>("")?;
    // What the chunks state and their stretches, in one copy.
    let pieces = &streams.pieces;
    let mut words: Vec<u32> = pieces.iter().map(|piece| !piece.crc).collect();
    words.resize(words.len().next_multiple_of(4), 0);
    let before = size_of_val(words.as_slice());
    let stretches: Vec<Stretch> = (pieces.iter().enumerate())
        .flat_map(|(index, piece)| cut(piece.at - 4, 4 + piece.len, index, piece.to))
        .collect();
    words.extend_from_slice(bytemuck::cast_slice(&stretches));
    let count = stretches.len() as u32;
    let mut both = job.words(&words)?;
    let (sums, stretches) = both.view_mut().split_at(before)?;
    let room = (streams.len + PADDING).next_multiple_of(PADDING);
    let mut stream = job.scratch(room)?;
    let arguments = PngJoin {
        file: file.view(),
        stretches: stretches.into_view(),
        count,
        stream: stream.view_mut(),
        len: streams.len as u32,
        room: room as u32,
        sums,
    };
    let bytes = 2 * streams.len as u64;
    // SAFETY: `cut` cuts nothing but the chunks, which lie inside the file and, without their kinds, inside the stream; each
    // chunk has a sum.
    unsafe { job.launch_trusting(&join, count.div_ceil(WARPS), bytes, arguments) }?;
    Ok(Joined { stream, sums: both })
}

/// Reports whether a CRC is wrong.
pub fn agree(streams: &Streams, sums: &Buffer, records: &mut Records, job: &mut Job) -> Result<()> {
    let agree = job.kernel::<PngAgree>("")?;
    let count = streams.pieces.len() as u32;
    let arguments = PngAgree {
        sums: sums.view(),
        count,
        report: records.report_mut(),
    };
    job.launch(&agree, count.div_ceil(BLOCK), 0, arguments)
}
