//! Puts the data of a file's chunks together on the GPU, and checks the chunks' CRCs: kernels/png_crc.cu.

use crate::codec::packed::{PADDING, Streams};
use crate::device::cuda::{Arg, Buffer};
use crate::device::job::Job;
use crate::exec::inflate::THREADS;
use crate::exec::png_crc::{STRETCH_WORDS, WARPS, cut};
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
    let [join] = job.kernels("png_crc", ["png_join"], "")?;
    // What the chunks state and their stretches, in one copy.
    let mut words: Vec<u32> = streams.pieces.iter().map(|piece| !piece.crc).collect();
    words.reserve(2 * STRETCH_WORDS * streams.pieces.len());
    for (index, piece) in streams.pieces.iter().enumerate() {
        for stretch in cut(piece.at - 4, 4 + piece.len, index, piece.to) {
            words.extend_from_slice(&stretch);
        }
    }
    let count = (words.len() - streams.pieces.len()) / STRETCH_WORDS;
    let sums = job.words(&words)?;
    let room = (streams.len + PADDING).next_multiple_of(PADDING);
    let stream = job.scratch(room)?;
    let args = [
        Arg::Buffer(file),
        Arg::From(&sums, 4 * streams.pieces.len()),
        Arg::U32(count as u32),
        Arg::Buffer(&stream),
        Arg::U32(streams.len as u32),
        Arg::U32(room as u32),
        Arg::Buffer(&sums),
    ];
    let bytes = 2 * streams.len as u64;
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&join, count.div_ceil(WARPS) as u32, bytes, &args) }?;
    Ok(Joined { stream, sums })
}

/// Reports whether a CRC is wrong.
pub fn agree(streams: &Streams, sums: &Buffer, report: Arg, job: &mut Job) -> Result<()> {
    let [agree] = job.kernels("png_crc", ["png_agree"], "")?;
    let count = streams.pieces.len() as u32;
    let args = [Arg::Buffer(sums), Arg::U32(count), report];
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&agree, count.div_ceil(THREADS), 0, &args) }
}
