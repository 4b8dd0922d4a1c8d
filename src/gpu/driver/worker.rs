//! A GPU for a worker of a batch: its work is recorded, and submitted together with that of other workers.

use super::allocator::Allocator;
use super::context::{Gpu, has_memory_pool};
use super::recorder::Recorder;
use super::sets::Sets;
use crate::gpu::launch::memory::{FillBytes, Move};
use crate::timing::SetCounts;
use anyhow::{Error, Result};
use cudarc::driver::sys::CUdevice_attribute_enum as Attribute;
use std::sync::Arc;

impl Gpu {
    /// The same GPU for a worker of a batch, whose work is submitted together with that of other workers (`sets.rs`).
    pub fn for_worker(&self) -> Result<Gpu> {
        let gpu = self.with_stream(true)?;
        if !self.has_sets() {
            return Ok(gpu);
        }
        let start = || Sets::start(&self.context).map(Arc::new);
        let sets = self
            .sets
            .get_or_init(|| start().map_err(|error| format!("{error:#}")));
        let sets = sets.clone().map_err(Error::msg)?;
        let copy = gpu.kernel::<Move>("")?.raw;
        let fill = gpu.kernel::<FillBytes>("")?.raw;
        let recorder = Recorder::new(sets, copy, fill);
        let allocator = Allocator::keeping(gpu.stream.clone(), gpu.budget.clone(), true);
        Ok(Gpu {
            recorder: Some(recorder),
            allocator: Arc::new(allocator.of_recorder()),
            ..gpu
        })
    }

    /// The sets of images so far.
    pub fn set_counts(&self) -> SetCounts {
        let started = self.sets.get().and_then(|sets| sets.as_ref().ok());
        started.map(|sets| sets.counts()).unwrap_or_default()
    }

    /// Whether work can be submitted in sets: kernels reach page-locked memory of the host by its own addresses, and streams
    /// share device memory.
    fn has_sets(&self) -> bool {
        let same = Attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM;
        self.context.attribute(same).is_ok_and(|yes| yes == 1) && has_memory_pool(&self.context)
    }
}
