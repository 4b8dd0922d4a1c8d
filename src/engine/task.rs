//! A task: an operation with all that it needs to know about one image. `device_work` counts the bytes that tasks move.

use crate::gpu::Work;
use crate::image::{Depth, Shape};
use crate::ops::{Operation, SampleTypes, Statistic, Statistics, chain};
use anyhow::{Context, Result};

/// An operation, and what it needs to know about one image.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// The operation.
    pub op: &'a dyn Operation,
    /// The types of the image's samples.
    pub types: SampleTypes,
    /// The statistic that the operation asks for, if it was measured before, over all pages of a stack. `None` if it must be
    /// measured in the image itself.
    pub statistics: Option<&'a Statistics>,
}

impl<'a> Task<'a> {
    /// The operation on an image with unsigned samples.
    pub fn plain(op: &'a dyn Operation, shape: &Shape) -> Task<'a> {
        Task {
            op,
            types: SampleTypes::plain_for(op, shape),
            statistics: None,
        }
    }

    /// The shape of its result for an image of this shape. With `--depth 16`, results that have 8 bits otherwise have 16.
    pub fn output(&self, shape: Shape) -> Shape {
        let mut output = chain::output(self.op, shape);
        if output.depth == Depth::Eight && self.types.written.depth == Depth::Sixteen {
            output.depth = Depth::Sixteen;
        }
        output
    }

    /// The statistic that is still to be measured.
    pub fn statistic(&self) -> Statistic {
        match self.statistics {
            Some(_) => Statistic::None,
            None => self.op.properties().statistic,
        }
    }
}

/// The form in which a result is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Samples.
    Samples,
    /// Deflated for a PNG, if a GPU computes the result.
    Png,
    /// Samples in the memory of the GPU, because more steps follow there.
    Device,
}

/// The bytes that a device moves to measure the statistics of these tasks and to run them, one after the other, on an image
/// of this shape. The image is copied to the device once, and the last result back.
pub fn device_work(tasks: &[Task], shape: &Shape, form: Form) -> Work {
    let mut all = Work {
        compressed: match form {
            Form::Png => shape.bytes() as u64,
            Form::Samples | Form::Device => 0,
        },
        ..Work::default()
    };
    for task in tasks {
        let operation = task.op.work(shape);
        all.touched += task.statistic().work(shape).touched + operation.touched;
        all.transferred = all.transferred.max(operation.transferred);
    }
    all
}

/// Refuses options that do not fit the samples.
///
/// # Errors
/// The reason. If there are several operations, the message also names the operation.
pub fn check_types(tasks: &[Task]) -> Result<()> {
    for task in tasks {
        let mut fits = task.op.check_types(&task.types);
        if tasks.len() > 1 {
            fits = fits.with_context(|| task.op.properties().name);
        }
        fits?;
    }
    Ok(())
}
