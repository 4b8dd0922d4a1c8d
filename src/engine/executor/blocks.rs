//! Runs an operation on an image that is never in memory as a whole: on each block of rows, as it is decoded.

use super::{Executor, Form, Pixels, Task, check_types, device_work};
use crate::formats::BlockSink;
use crate::image::{Image, Shape};
use crate::ops::{Executed, Join, OpResult, Statistics, gpu_obstacle};
use crate::timing::Timeline;
use anyhow::{Context, Result, ensure};
use std::slice;
use std::sync::{Mutex, PoisonError};

/// What the blocks gave so far.
#[derive(Default)]
struct BlockResults {
    numbers: Option<OpResult>,
    samples: usize,
    timelines: Vec<Timeline>,
}

impl Executor<'_> {
    /// Runs an operation on the blocks of an image of this shape on the CPU, which `give` hands over in any order and on
    /// any thread. `None`: a GPU is to run it on the whole image.
    ///
    /// # Errors
    /// Those of `give`, blocks that are not the image, and options that do not fit the samples.
    pub fn run_on_blocks(
        &mut self,
        task: &Task,
        shape: &Shape,
        give: impl FnOnce(&BlockSink) -> Result<()>,
    ) -> Result<Option<Executed<Pixels>>> {
        let tasks = slice::from_ref(task);
        check_types(tasks)?;
        let work = device_work(tasks, shape, Form::Samples);
        if (self.choose(work, false, gpu_obstacle(task.op, shape))?).is_some() {
            return Ok(None);
        }
        let bound = task.op.bind(task.types, &Statistics::None)?;
        let results = Mutex::new(BlockResults::default());
        let take = |block: Image| {
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
        give(&take)?;
        let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        ensure!(
            results.samples == shape.samples(),
            "internal error: the blocks do not cover the image"
        );
        self.timeline.join(&results.timelines);
        let mut result = results.numbers.context("an image without blocks")?;
        if let OpResult::Totals(totals) = &mut result {
            totals.shape = *shape;
        }
        Ok(Some(Executed {
            result: result.try_map(|image| Ok(Pixels::Host(image)))?,
            summary: bound.summary(),
        }))
    }
}
