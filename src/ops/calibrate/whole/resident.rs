//! The frames in the memory of each GPU: copied there for the first image, and kept for all others of
//! a batch, on any stream.

use super::Whole;
use crate::gpu::driver::Buffer;
use crate::gpu::job::Job;
use crate::image::Image;
use anyhow::Result;
use std::sync::Arc;

/// The frames on one GPU.
pub(super) struct Frames {
    pub dark: Option<Buffer>,
    pub flat: Option<Buffer>,
    /// The kernel's, one for each channel.
    pub factors: Buffer,
}

/// The frames on the job's GPU.
///
/// They outlive the work of every stream: a job ends after all of its queued work, and the GPU and
/// the operation outlive their jobs.
pub(super) fn frames(job: &mut Job, op: &Whole) -> Result<Arc<Frames>> {
    job.kept(&op.tenant, |job| {
        let mut upload = |image: &Option<Image>| -> Result<Option<Buffer>> {
            let bytes = image.as_ref().map(|image| image.samples().as_bytes());
            bytes.map(|bytes| job.words(bytes)).transpose()
        };
        let (dark, flat) = (upload(&op.dark)?, upload(&op.flat)?);
        let factors: Vec<_> = op.factors.iter().map(|factor| factor.packed()).collect();
        let factors = job.words(&factors)?;
        // Other streams may use them from now on.
        job.wait_for_stream()?;
        Ok(Frames {
            dark,
            flat,
            factors,
        })
    })
}
