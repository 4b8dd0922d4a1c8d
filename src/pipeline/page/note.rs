//! `--undo`: what a page says of how its values were stretched.

use super::PageProcessor;
use crate::codec::format::Field;
use crate::exec::{Pixels, Task};
use crate::image::Depth;
use crate::metadata::{Effect, Held, Stretch};
use crate::pipeline::errors::unwritten;
use anyhow::{Context, Result, ensure};

/// How the values of the result were stretched, if the last operation that changed them is to say so.
/// The page was read and prepared in two depths, with or without a largest value of its own.
///
/// # Errors
/// What is done after the stretch that `restore` could not undo, and a format without a place for it.
pub fn of(
    processor: &mut PageProcessor,
    (tasks, stretch): (&[Task], Option<Stretch>),
    ((read, prepared), had_maxval): ((Depth, Depth), bool),
    pixels: &Pixels,
) -> Result<Option<Stretch>> {
    let moves = |task: &&Task| matches!(task.op.effect(), Effect::Moves(_));
    let last = tasks.iter().rev().find(|task| !moves(task));
    let is_last = last.is_some_and(|task| task.op.effect() == Effect::Values);
    let Some((mut stretch, (output, _))) = stretch.filter(|_| is_last).zip(processor.output) else {
        return Ok(None);
    };
    let shape = pixels.shape();
    let possible = || {
        ensure!(
            stretch.to.depth == shape.depth && (read == prepared || tasks.len() == 1),
            "--depth of several verbs rounds values that are not those of --undo: leave one of them out"
        );
        ensure!(
            output.fitted(shape) == shape,
            "--fit averages pixels, which --undo cannot bring back: leave one of them out"
        );
        Ok(())
    };
    possible().with_context(|| processor.sentences.undone())?;
    // Alpha has reached the full depth from another maximum.
    if shape.has_alpha() && had_maxval {
        stretch.held = Held::Clamped;
    }
    let Some(format) = processor.writer.as_ref().map(|writer| writer.format()) else {
        return Ok(Some(stretch));
    };
    let fields = format.capabilities().fields;
    let shares = fields.contains(&Field::Records);
    let first = *processor.note.get_or_insert(stretch);
    let fits = || {
        ensure!(
            fields.contains(&Field::Stretch),
            "{} has no place for the range of --undo: PNG, TIFF and FITS have",
            format.name()
        );
        ensure!(
            !shares || (first == stretch && processor.joined.is_none()),
            "{} has one place for the ranges of all pages, and with --undo each has its own: write TIFF",
            format.name()
        );
        Ok(())
    };
    fits().with_context(|| unwritten(&output.path))?;
    Ok(Some(stretch))
}
