//! Runs an operation on an image that is never in memory as a whole: on each piece of it, as it is decoded.

use super::{Executor, Form, Pixels, Task, check, steps, work};
use crate::codec::TakePiece;
use crate::image::{Image, Shape};
use crate::ops::{Executed, Join, OpResult, Statistics, only_on_cpu};
use crate::timing::Timeline;
use anyhow::{Context, Result, ensure};
use std::slice;
use std::sync::{Mutex, PoisonError};

/// What the pieces gave so far.
#[derive(Default)]
struct Found {
    numbers: Option<OpResult>,
    samples: usize,
    timelines: Vec<Timeline>,
}

impl Executor<'_> {
    /// Runs an operation on the pieces of an image of this shape on the CPU, which `give` hands over in any order and on
    /// any thread. `None`: a GPU is to run it on the whole image, or `give` gives no pieces.
    ///
    /// # Errors
    /// Those of `give`, pieces that are not the image, and options that do not fit the samples.
    pub fn run_on_pieces(
        &mut self,
        task: &Task,
        shape: &Shape,
        give: impl FnOnce(&TakePiece) -> Result<bool>,
    ) -> Result<Option<Executed<Pixels>>> {
        let tasks = slice::from_ref(task);
        check(tasks)?;
        let work = work(steps(tasks), shape, Form::Samples);
        if (self.choose(work, false, only_on_cpu(task.op, shape))?).is_some() {
            return Ok(None);
        }
        let bound = task.op.bind(task.types, &Statistics::None)?;
        let found = Mutex::new(Found::default());
        let take = |piece: Image| {
            let (samples, mut timeline) = (piece.shape().samples(), Timeline::default());
            let part = bound.cpu(piece, &mut timeline)?;
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            match &mut found.numbers {
                Some(known) => known.join(&part)?,
                none => *none = Some(part),
            }
            found.samples += samples;
            found.timelines.push(timeline);
            Ok(())
        };
        if !give(&take)? {
            return Ok(None);
        }
        let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        ensure!(
            found.samples == shape.samples(),
            "its pieces are not the image"
        );
        self.timeline.join(&found.timelines);
        let mut result = found.numbers.context("an image without pieces")?;
        if let OpResult::Totals(totals) = &mut result {
            totals.shape = *shape;
        }
        Ok(Some(Executed {
            result: result.try_map(|image| Ok(Pixels::Host(image)))?,
            summary: bound.summary(),
        }))
    }
}
