//! Runs an operation on each block of rows as soon as it is decoded, so that the image is never in memory as a whole.

use super::{Executor, Form, Pixels, Task, check_types, device_work};
use crate::formats::BlockSink;
use crate::image::{Image, Shape};
use crate::ops::{Executed, Join, OpResult, Statistics, gpu_obstacle};
use crate::timing::Timeline;
use anyhow::{Context, Result, ensure};
use std::slice;
use std::sync::{Mutex, PoisonError};

/// The merged results of the blocks so far.
#[derive(Default)]
struct BlockResults {
    numbers: Option<OpResult>,
    samples: usize,
    timelines: Vec<Timeline>,
}

impl Executor<'_> {
    /// Runs an operation on the CPU, on the blocks of an image of this shape. `decode_blocks` calls its argument for each block,
    /// in any order and on any thread. Returns `None` if a GPU is to run the operation on the whole image.
    ///
    /// # Errors
    /// Those of `decode_blocks`, blocks that do not cover the image, and options that do not fit the samples.
    pub fn run_on_blocks(
        &mut self,
        task: &Task,
        shape: &Shape,
        decode_blocks: impl FnOnce(&BlockSink) -> Result<()>,
    ) -> Result<Option<Executed<Pixels>>> {
        let tasks = slice::from_ref(task);
        check_types(tasks)?;
        let work = device_work(tasks, shape, Form::Samples);
        if (self.choose(work, false, gpu_obstacle(task.op, shape))?).is_some() {
            return Ok(None);
        }
        let bound = task.op.bind(task.types, &Statistics::None)?;
        let results = Mutex::new(BlockResults::default());
        let consume = |block: Image| {
            let (samples, mut timeline) = (block.shape().samples(), Timeline::default());
            let numbers = bound.cpu(block, &mut timeline)?;
            let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
            match &mut results.numbers {
                Some(known) => known.join(&numbers)?,
                none => *none = Some(numbers),
            }
            results.samples += samples;
            results.timelines.push(timeline);
            Ok(())
        };
        decode_blocks(&consume)?;
        let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        ensure!(
            results.samples == shape.samples(),
            "internal error: the blocks have {} of {} samples",
            results.samples,
            shape.samples()
        );
        self.timeline.join(&results.timelines);
        let mut result = results
            .numbers
            .context("internal error: an image without blocks")?;
        if let OpResult::Totals(totals) = &mut result {
            totals.shape = *shape;
        }
        Ok(Some(Executed {
            result: result.try_map(|image| Ok(Pixels::Host(image)))?,
            summary: bound.summary(),
        }))
    }
}
