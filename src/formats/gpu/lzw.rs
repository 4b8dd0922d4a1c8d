//! Decodes the LZW strips or tiles of a TIFF on a GPU: kernels/lzw.cu.

use crate::formats::packed::Streams;
use crate::gpu::driver::Buffer;
use crate::gpu::job::Job;
use crate::gpu::launch::inflate::{REPORT, WRONG};
use crate::gpu::launch::lzw::{
    LzwFind, LzwMeasure, LzwWrite, MORE_SEGMENTS, SEGMENT_BYTES, Segment,
};
use anyhow::{Context, Result};

/// The decoded bytes of all streams, and what the kernels report.
pub struct Unpacked {
    /// The bytes of all streams.
    pub bytes: Buffer,
    /// The report, in which a word says whether a stream is damaged.
    pub report: Buffer,
}

/// Queues the decoding of all streams of `file`, which is the job's memory in device memory.
///
/// # Errors
/// The GPU's.
pub fn unpack(streams: &Streams, file: &Buffer, job: &mut Job) -> Result<Unpacked> {
    let mut begins: Vec<u32> = streams.starts.iter().map(|&start| start as u32).collect();
    let count = begins.len() as u32;
    begins.push(streams.len as u32);
    let begins = job.words(&begins)?;
    let mut report = job.words(&[0_u32; REPORT as usize])?;
    let words = (file.len() / 4) as u32;
    // As `first_slot` of the kernel computes for the stream after the last one.
    let slots = streams.len as u32 / SEGMENT_BYTES + count * (MORE_SEGMENTS + 1);
    let mut segments = job.scratch(slots as usize * size_of::<Segment>())?;
    let mut bytes = job.scratch(streams.output)?;

    let find = job.kernel::<LzwFind>("")?;
    let arguments = LzwFind {
        stream: file.view(),
        words,
        begins: begins.view(),
        count,
        segments: segments.view_mut(),
        report: report.view_mut(),
    };
    let compressed = streams.len as u64;
    // SAFETY: the streams' starts rise and end at `streams.len`; the file has a padding of 16 bytes after them; there is a
    // segment for each slot.
    unsafe { job.launch_trusting(&find, count, compressed, arguments) }?;

    let measure = job.kernel::<LzwMeasure>("")?;
    let arguments = LzwMeasure {
        stream: file.view(),
        words,
        segments: segments.view_mut(),
    };
    // SAFETY: `lzw_find` has written every segment, and none ends after its stream.
    unsafe { job.launch_trusting(&measure, slots, compressed, arguments) }?;

    let write = job.kernel::<LzwWrite>("")?;
    let arguments = LzwWrite {
        stream: file.view(),
        words,
        begins: begins.view(),
        count,
        each: streams.stream_output as u32,
        total: streams.output as u32,
        segments: segments.view(),
        bytes: bytes.view_mut(),
        report: report.view_mut(),
    };
    let moved = compressed + streams.output as u64;
    // SAFETY: `lzw_find` has written every segment with the index of its stream, and none ends after its stream.
    unsafe { job.launch_trusting(&write, slots, moved, arguments) }?;
    Ok(Unpacked { bytes, report })
}

/// Waits for the GPU, and returns whether it has decoded all streams without an error.
///
/// # Errors
/// The GPU's.
pub fn is_valid(report: &Buffer, job: &mut Job) -> Result<bool> {
    let words: Vec<u32> = job.read_words(report)?;
    let wrong = words.get(WRONG as usize);
    Ok(*wrong.context("internal error: a short report")? == 0)
}
