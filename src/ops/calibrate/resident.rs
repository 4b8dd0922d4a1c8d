//! The frames in the memory of each GPU: copied there by the first image, and kept for all others of
//! a batch, on whichever stream they are.

use super::{Calibrate, Factor};
use crate::device::cuda::Buffer;
use crate::device::job::Job;
use crate::image::Image;
use anyhow::Result;
use std::sync::{Arc, Mutex, PoisonError};

/// The frames on one GPU.
pub(super) struct Frames {
    pub dark: Option<Buffer>,
    pub flat: Option<Buffer>,
    /// The kernel's three numbers for each of four channels.
    pub factors: Buffer,
}

/// The frames on every GPU in use, by the GPU's number.
#[derive(Default)]
pub(super) struct Resident(Mutex<Vec<(usize, Arc<Frames>)>>);

impl Resident {
    /// The frames on the job's GPU.
    ///
    /// They outlive the work of every stream: a job ends when all that it has queued is done, and
    /// the operation lives longer than its jobs.
    pub fn on(&self, job: &mut Job, op: &Calibrate) -> Result<Arc<Frames>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ordinal = job.ordinal();
        if let Some((_, frames)) = all.iter().find(|(known, _)| *known == ordinal) {
            return Ok(frames.clone());
        }
        let mut sent = |image: &Option<Image>| -> Result<Option<Buffer>> {
            let bytes = image.as_ref().map(|image| image.samples().as_bytes());
            bytes.map(|bytes| job.words(bytes)).transpose()
        };
        let (dark, flat) = (sent(&op.dark)?, sent(&op.flat)?);
        let doubles: Vec<f64> = op
            .factors
            .iter()
            .copied()
            .flat_map(Factor::doubles)
            .collect();
        let factors = job.words(&doubles)?;
        let frames = Arc::new(Frames {
            dark,
            flat,
            factors,
        });
        // Other streams may use them from now on.
        job.wait_for_stream()?;
        all.push((ordinal, frames.clone()));
        Ok(frames)
    }
}
