//! Decodes one image on the GPU: the steps in order. The host waits for the GPU once, for the checksums when all is done, and
//! before that for the parts of the streams where the GPU does not put them in order by itself (`inflate/order.rs`).

use super::chunks::place;
use super::join::{Joined, agree, join};
use super::unfilter::unfilter;
use crate::formats::gpu::inflate::order::{self, Order};
use crate::formats::gpu::inflate::{Agreement, Counted, agrees, count, sum_up, write};
use crate::formats::packed::{Head, Rows, Unsuited};
use crate::gpu::NoMemory;
use crate::gpu::driver::Buffer;
use crate::gpu::job::Job;
use crate::ops::DeviceImage;
use anyhow::{Result, anyhow};

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
        Err(error) if error.is::<NoMemory>() => {
            Ok(Err(Unsuited::new("the image does not fit in GPU memory")))
        }
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
    let mut counted = count(streams, stream, job)?;
    if streams.begins.len() == 1 {
        let order = order::by_gpu(streams, stream, &mut counted, job)?;
        if let Some(done) = finish(head, joined.as_ref(), stream, &mut counted, &order, job)? {
            return Ok(done);
        }
    }
    let order = match order::by_host(streams, stream, &mut counted, job)? {
        Ok(order) => order,
        Err(unsuited) => return Ok(Err(unsuited)),
    };
    let done = finish(head, joined.as_ref(), stream, &mut counted, &order, job)?;
    done.ok_or_else(|| anyhow!("internal error: block order lost on the GPU"))
}

/// Everything behind the counting, in an order of the parts; nothing if the GPU was to find it and did not.
fn finish(
    head: &Head,
    joined: Option<&Joined>,
    stream: &Buffer,
    counted: &mut Counted,
    order: &Order,
    job: &mut Job,
) -> Result<Option<Result<DeviceImage, Unsuited>>> {
    let streams = &head.streams;
    let mut bytes = write(streams, stream, counted, order, job)?;
    sum_up(streams, &bytes, counted, job)?;
    if let Some(joined) = joined {
        agree(streams, &joined.sums, &mut counted.records, job)?;
    }
    let samples = match &head.rows {
        Rows::Png(scanlines) => unfilter(head, scanlines, &mut bytes, &mut counted.records, job)?,
        Rows::Tiff(chunks) => place(&head.shape, chunks, &bytes, counted.records.report(), job)?,
    };
    let unsuited = |why| Ok(Some(Err(Unsuited::new(why))));
    match agrees(streams, counted, order, job)? {
        Agreement::Right => Ok(Some(Ok(DeviceImage {
            shape: head.shape,
            samples,
        }))),
        Agreement::Unknown => Ok(None),
        Agreement::Wrong => unsuited("its image data are invalid"),
        Agreement::OtherSum => unsuited("its Adler-32 is wrong"),
    }
}
