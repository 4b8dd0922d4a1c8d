//! What a page says of how its values were stretched, by `--undo` or as its file did.

use super::PageProcessor;
use crate::codec::format::Field;
use crate::exec::Task;
use crate::image::{Depth, Shape};
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
    shape: Shape,
) -> Result<Option<Stretch>> {
    let moves = |task: &&Task| matches!(task.op.effect(), Effect::Moves(_));
    let last = tasks.iter().rev().find(|task| !moves(task));
    let is_last = last.is_some_and(|task| task.op.effect() == Effect::Values);
    let Some((mut stretch, (output, _))) = stretch.filter(|_| is_last).zip(processor.output) else {
        return Ok(None);
    };
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
    let fits = || {
        ensure!(
            fields.contains(&Field::Stretch),
            "{} has no place for the range of --undo: PNG, TIFF and FITS have",
            format.name()
        );
        Ok(())
    };
    fits().with_context(|| unwritten(&output.path))?;
    Ok(Some(stretch))
}

/// Checks that what a page says, by `--undo` or as its file did, is what all pages say, if the format has
/// one place for all of them.
///
/// # Errors
/// A page that says something else than the first.
pub fn agrees(processor: &mut PageProcessor, stretch: Option<Stretch>) -> Result<()> {
    let Some((format, (output, _))) =
        (processor.writer.as_ref().map(|writer| writer.format())).zip(processor.output)
    else {
        return Ok(());
    };
    let fields = format.capabilities().fields;
    if !fields.contains(&Field::Records) || !fields.contains(&Field::Stretch) {
        return Ok(());
    }
    let first = *processor.note.get_or_insert(stretch);
    let agree = || {
        ensure!(
            first == stretch && (stretch.is_none() || processor.joined.is_none()),
            "{} has one place for the range that the values of all pages were stretched from, and here \
             each page may have its own: write TIFF",
            format.name()
        );
        Ok(())
    };
    agree().with_context(|| unwritten(&output.path))
}
