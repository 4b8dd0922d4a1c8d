//! Joins the image data of a PNG's chunks on the GPU, and checks the chunks' CRCs: kernels/png_crc.cu.

use crate::formats::gpu::png_crc::{Range, spans};
use crate::formats::packed::{PADDING, Streams};
use crate::gpu::driver::Buffer;
use crate::gpu::job::Job;
use crate::gpu::launch::common::WARPS;
use crate::gpu::launch::png_crc::{PngJoin, Stretch as CrcSpan};
use anyhow::Result;

/// The joined image data in device memory.
pub struct Joined {
    /// The stream, and zeros after it.
    pub stream: Buffer,
    /// A word for each chunk, which is 0 if its CRC is right, and then the spans of `join`.
    pub sums: Buffer,
}

/// Queues the joining of the chunks of `file`, which is the job's memory in device memory.
pub fn join(streams: &Streams, file: &Buffer, job: &mut Job) -> Result<Joined> {
    let kernel = job.kernel::<PngJoin>("")?;
    // The stated CRCs, and the spans of all chunks, in one upload.
    let extents = &streams.extents;
    let mut words: Vec<u32> = extents.iter().map(|extent| !extent.crc).collect();
    words.resize(words.len().next_multiple_of(4), 0);
    let sums_bytes = size_of_val(words.as_slice());
    let spans: Vec<CrcSpan> = (extents.iter().enumerate())
        .flat_map(|(chunk, extent)| {
            spans(Range {
                // A CRC includes the chunk's type.
                at: extent.at - 4,
                len: 4 + extent.len,
                sum: chunk,
                copied_to: extent.stream_offset,
            })
        })
        .collect();
    words.extend_from_slice(bytemuck::cast_slice(&spans));
    let count = spans.len() as u32;
    let mut uploaded = job.words(&words)?;
    let (sums, spans) = uploaded.view_mut().split_at(sums_bytes)?;
    let room = (streams.len + PADDING).next_multiple_of(PADDING);
    let mut stream = job.scratch(room)?;
    let arguments = PngJoin {
        file: file.view(),
        stretches: spans.into_view(),
        count,
        stream: stream.view_mut(),
        len: streams.len as u32,
        room: room as u32,
        sums,
    };
    let bytes = 2 * streams.len as u64;
    // SAFETY: the spans cover the chunks' types and data, which are inside the file; the data are copied to ranges inside the
    // stream; and `sums` has a word for each chunk.
    unsafe { job.launch_trusting(&kernel, count.div_ceil(WARPS), bytes, arguments) }?;
    Ok(Joined {
        stream,
        sums: uploaded,
    })
}
