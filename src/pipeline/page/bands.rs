//! A page that is never in memory as a whole, by `--low-memory` or since memory does not hold it. It is
//! decoded twice: at first all of the file is checked, and the statistic of the operation is measured;
//! then one band of rows after the other is decoded, changed and encoded.

mod passes;

use super::depth::Widening;
use super::{PageProcessor, operate, upright};
use crate::codec::Bands;
use crate::exec::Task;
use crate::image::buffer::Buffer;
use crate::image::{Image, Shape};
use crate::metadata::{Diagnostics, Effect, Metadata};
use crate::ops::{Access, Operation, SampleTypes, Statistic, Statistics};
use crate::pipeline::done::FoundPage;
use crate::pipeline::stack::StackStatistics;
use anyhow::{Context, Result};
use std::time::Instant;

/// Bytes of a page from which on it comes in bands.
const LEAST: usize = 2 << 20;

/// Bytes of a band for each thread.
const OF_A_THREAD: usize = 1 << 20;

/// The most copies of a band at a time: read, joined, of other samples, changed and encoded.
const COPIES: usize = 8;

/// Why the CPU does the work.
const WHY: &str = "it is processed in bands of rows, for little memory";

/// A page that can come in bands.
struct Plan {
    /// Its shape as it is read.
    read: Shape,
    metadata: Metadata,
    widening: Widening,
    /// How the encoder takes it, and the rows of a band.
    bands: Bands,
    rows: usize,
}

/// What the first pass finds.
struct Found {
    statistics: Statistics,
    /// The rows that the encoder wants to see, as they are read.
    trial: Vec<Image>,
    /// A sentence about options that suit no band.
    warning: Option<String>,
    /// Whether only the plain method decodes the file.
    plainly: bool,
}

/// Whether the rows that an operation makes are those of the same rows of its input.
fn keeps_rows(op: &dyn Operation) -> bool {
    match op.access() {
        Access::Pointwise => true,
        Access::Permutation(map) => !map.transposed && !map.mirror_y,
        Access::Reduction | Access::WholeImage => false,
    }
}

/// Whether an operation finds something in all samples of 32 bits that it does not find in bands.
fn looks_at_all(op: &dyn Operation, shape: &Shape) -> bool {
    let measured = op.statistic() == Statistic::MinMax && op.not_on_gpu(shape).is_none();
    shape.depth.is_wide()
        && match op.effect() {
            Effect::Moves(_) => false,
            Effect::Values => !measured,
            _ => true,
        }
}

impl Plan {
    /// The plan for the page at `index` of the selected pages.
    ///
    /// # Errors
    /// Why it is to be in memory as a whole.
    fn of(
        processor: &mut PageProcessor,
        ops: &[&dyn Operation],
        index: usize,
        diagnostics: &mut Diagnostics,
    ) -> Result<Plan, &'static str> {
        let damaged = "it cannot be read";
        let (Some((output, _)), [op]) = (processor.output, ops) else {
            return Err("several verbs follow one another");
        };
        processor.reader.turn_to(index).map_err(|_| damaged)?;
        let read = processor.reader.shape();
        let metadata = processor.reader.metadata(diagnostics);
        let metadata = metadata.map_err(|_| damaged)?;
        let widening = Widening::of(Some(output), &metadata, read.depth, ops);
        let to = output.grown(read, op.made(widening.made(read.depth)));
        let bands = match &processor.writer {
            Some(writer) => writer.bands(&to),
            // Only measured.
            None => Some(Bands {
                unit: 1,
                trial: Vec::new(),
            }),
        };
        let bands = bands.ok_or("the format of the result takes whole images")?;
        for (hinders, why) in [
            (!keeps_rows(*op), "it moves pixels from row to row"),
            (
                looks_at_all(*op, &read),
                "with these options all samples of 32 bits are looked at together",
            ),
            (output.fitted(read) != read, "--fit makes it smaller"),
            (
                upright::symmetry(processor, &metadata).is_some(),
                "--auto-orient turns it",
            ),
        ] {
            if hinders {
                return Err(why);
            }
        }
        let (row, least) = (read.row() * read.depth.bytes(), OF_A_THREAD);
        let least = least * rayon::current_num_threads();
        let rows = least.div_ceil(bands.unit * row) * bands.unit;
        // What the passes take for a band cannot fail, but by ending the program.
        let copies = COPIES
            .saturating_mul(rows.min(read.height))
            .saturating_mul(row);
        if Buffer::<u8>::zeroed(copies).is_err() {
            return Err("there is not enough memory for a band of its rows");
        }
        Ok(Plan {
            rows,
            bands,
            read,
            metadata,
            widening,
        })
    }

    /// The operation on the page.
    fn tasks<'a>(
        &self,
        processor: &PageProcessor,
        ops: &[&'a dyn Operation],
        stack: &'a StackStatistics,
    ) -> Vec<Task<'a>> {
        let shapes = (self.read, self.prepared());
        operate::tasks(processor, ops, stack, &self.metadata, shapes)
    }

    /// The shape of what the operation is given.
    fn prepared(&self) -> Shape {
        Shape {
            depth: self.widening.made(self.read.depth),
            ..self.read
        }
    }
}

/// The warning about a page that is in memory as a whole although it was not to be.
fn whole(processor: &PageProcessor, why: &str) -> Option<String> {
    let asked = processor
        .output
        .is_some_and(|(output, _)| output.low_memory);
    asked.then(|| format!("--low-memory: it is in memory as a whole, since {why}"))
}

/// Measures the statistic of the operation in the page at `index` among the selected pages, band by band, with the types of its
/// samples. `None`: it is to be measured in the page as a whole.
pub fn measure(
    processor: &mut PageProcessor,
    ops: &[&dyn Operation],
    stack: &StackStatistics,
    index: usize,
) -> Option<(SampleTypes, Statistics)> {
    if !processor.in_bands {
        return None;
    }
    let plan = Plan::of(processor, ops, index, &mut Diagnostics::default()).ok();
    let mut plan = plan.filter(|plan| plan.read.bytes() >= LEAST)?;
    processor.since = Instant::now();
    let tasks = plan.tasks(processor, ops, stack);
    let task = tasks.first()?;
    let found = plan.first_pass(processor, task, task.op.statistic())?;
    Some((task.types, found.statistics))
}

/// Processes the page at `index` among the selected pages in bands. `None`: it is to be processed as a whole, since it is small, or
/// something is in the way, which a warning says, or wrong, which is reported then.
///
/// # Errors
/// A page that cannot be processed or written, or not be read again.
pub fn run(
    processor: &mut PageProcessor,
    ops: &[&dyn Operation],
    stack: &StackStatistics,
    index: usize,
    diagnostics: &mut Diagnostics,
) -> Result<Option<FoundPage>> {
    if !processor.in_bands {
        return Ok(None);
    }
    let mut own = Diagnostics::default();
    let mut plan = match Plan::of(processor, ops, index, &mut own) {
        Ok(plan) if plan.read.bytes() >= LEAST => plan,
        Ok(_) => return Ok(None),
        Err(why) => {
            diagnostics.warnings.extend(whole(processor, why));
            return Ok(None);
        }
    };
    processor.since = Instant::now();
    let tasks = plan.tasks(processor, ops, stack);
    let [task] = &tasks[..] else { return Ok(None) };
    let kept = processor.executor.keep_to_cpu(task, &plan.prepared(), WHY);
    kept.map_err(|error| processor.sentences.failed(error))?;
    let statistic = match (task.op.statistic(), task.statistics) {
        // For a warning about the range that is given.
        (Statistic::None, _) if task.op.effect() == Effect::Values => Statistic::MinMax,
        (wanted, None) => wanted,
        (_, Some(_)) => Statistic::None,
    };
    let Some(found) = plan.first_pass(processor, task, statistic) else {
        let why = "its rows cannot be read one after the other";
        diagnostics.warnings.extend(whole(processor, why));
        return Ok(None);
    };
    diagnostics.warnings.append(&mut own.warnings);
    diagnostics.notes.append(&mut own.notes);
    let warning = operate::warning(ops, &plan.metadata, &plan.read);
    let warning = warning.with_context(|| processor.sentences.undone())?;
    diagnostics.warnings.extend(warning);
    diagnostics.warnings.extend(found.warning.clone());
    // Samples may be above the largest value that the file names.
    let output = processor.output.map(|(output, _)| output);
    plan.widening = Widening::of(output, &plan.metadata, plan.read.depth, ops);
    let page = plan.second_pass(processor, task, &found, index, diagnostics)?;
    Ok(Some(page))
}
