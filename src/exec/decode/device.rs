//! Decodes one image on the GPU: the steps in order. The host waits for the GPU twice: for the parts
//! of the streams when they are counted (`inflate/count.rs`), and for the checksums when all is done.

use super::chunks::place;
use super::join::{agree, join};
use super::unfilter::unfilter;
use crate::codec::packed::{Head, Rows, Unsuited};
use crate::device::NoMemory;
use crate::device::cuda::Buffer;
use crate::device::job::Job;
use crate::exec::inflate::{Agreement, agrees, count, sum_up, write};
use crate::ops::DeviceImage;
use anyhow::Result;

/// Decodes the page whose data are in the job's memory, as `Packed::split` gives both, and tells what the
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
    let streams = &head.streams;
    let joined = match head.rows {
        Rows::Png(_) => Some(join(streams, file, job)?),
        Rows::Tiff(_) => None,
    };
    let stream = joined.as_ref().map_or(file, |joined| &joined.stream);
    let counted = match count(streams, stream, job)? {
        Ok(counted) => counted,
        Err(unsuited) => return Ok(Err(unsuited)),
    };
    let bytes = write(streams, stream, &counted, job)?;
    sum_up(streams, &bytes, &counted, job)?;
    let report = counted.records.report();
    if let Some(joined) = &joined {
        agree(streams, &joined.sums, report, job)?;
    }
    let samples = match &head.rows {
        Rows::Png(scanlines) => unfilter(head, scanlines, &bytes, report, job)?,
        Rows::Tiff(chunks) => place(&head.shape, chunks, &bytes, report, job)?,
    };
    Ok(match agrees(streams, &counted, job)? {
        Agreement::Right => Ok(DeviceImage {
            shape: head.shape,
            samples,
        }),
        Agreement::Wrong => Err(Unsuited::new("its image data make no image")),
        Agreement::OtherSum => Err(Unsuited::new("its Adler-32 is wrong")),
    })
}
