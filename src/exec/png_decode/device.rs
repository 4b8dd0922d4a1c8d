//! Decodes one image on the GPU: the steps in order. The host waits for the GPU twice: for the parts
//! of the stream when they are counted (`count.rs`), and for the checksum when all is done.

use super::count::count;
use super::inflate::inflate;
use super::join::{Joined, agree, join};
use super::unfilter::unfilter;
use crate::codec::packed::{Head, Unsuited};
use crate::device::NoMemory;
use crate::device::cuda::Buffer;
use crate::device::job::Job;
use crate::ops::DeviceImage;
use anyhow::Result;

/// The modulus of Adler-32.
const BASE: u64 = 65521;

/// Decodes the PNG whose chunks are in the job's memory, as `Packed::split` gives both, and tells what the
/// CPU had better decode. An error is the GPU's.
pub fn decode_on_gpu(head: &Head, job: &mut Job) -> Result<Result<DeviceImage, Unsuited>> {
    let decoded = job.upload().and_then(|file| decode(head, &file, job));
    unless_out_of_memory(decoded)
}

/// The same once the job's memory is on the GPU too, as `file`.
pub fn decode_resident(
    head: &Head,
    file: &Buffer,
    job: &mut Job,
) -> Result<Result<DeviceImage, Unsuited>> {
    unless_out_of_memory(decode(head, file, job))
}

/// Leaves a file to the CPU for which device memory does not suffice.
fn unless_out_of_memory(
    decoded: Result<Result<DeviceImage, Unsuited>>,
) -> Result<Result<DeviceImage, Unsuited>> {
    match decoded {
        Err(error) if error.is::<NoMemory>() => Ok(Err(Unsuited::new(
            "the GPU's memory does not hold all that is needed at once",
        ))),
        other => other,
    }
}

fn decode(head: &Head, file: &Buffer, job: &mut Job) -> Result<Result<DeviceImage, Unsuited>> {
    let words = head.len.div_ceil(4);
    let Joined { stream, sums } = join(head, file, job)?;
    let counted = match count(head, words, &stream, job)? {
        Ok(counted) => counted,
        Err(unsuited) => return Ok(Err(unsuited)),
    };
    let bytes = inflate(head, words, &stream, &counted, job)?;
    agree(head, &sums, counted.records.report(), job)?;
    let samples = unfilter(head, &bytes, counted.records.report(), job)?;
    let reported = counted.records.read_report(job)?;
    if reported.wrong != 0 {
        return Ok(Err(Unsuited::new("its image data make no image")));
    }
    let total = counted.inflated.bytes;
    let (low, high) = (
        (1 + reported.sum) % BASE,
        (total + reported.weighted) % BASE,
    );
    let adler = (high << 16) | low;
    let at = counted.inflated.end.div_ceil(8) as usize;
    let stated = head.stream(job.host()?).bytes(at, 4);
    let stated = stated.first_chunk();
    if stated.is_none_or(|stated| u64::from(u32::from_be_bytes(*stated)) != adler) {
        return Ok(Err(Unsuited::new("its Adler-32 is wrong")));
    }
    Ok(Ok(DeviceImage {
        shape: head.shape,
        samples,
    }))
}
