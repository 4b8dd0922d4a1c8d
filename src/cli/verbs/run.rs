//! `run`: several verbs on each image in one pass, or on the projection of all images.

use super::convert::{Measured, Range, check, convert, measure_set_range};
use super::{calibrate, project};
use crate::batch::conversion::Conversion;
use crate::batch::item::{Item, Items};
use crate::batch::lineage::FilesRead;
use crate::batch::naming::Naming;
use crate::batch::options::{Files, Gathered};
use crate::cli::{Cli, Projected, Step, WholeSet, steps};
use crate::engine::options::Common;
use crate::image::Depth;
use crate::ops::Operation;
use crate::ops::project::Project;
use crate::ops::set_range::SetRange;
use crate::os::name::in_shell;
use crate::os::outcome::{Outcome, usage};
use anyhow::{Context, Result, bail, ensure};
use clap::CommandFactory;
use std::path::PathBuf;

/// A verb as it was typed: an operation, and the source of its statistic for a whole set.
struct Typed {
    op: Box<dyn Operation>,
    set: WholeSet,
}

/// Runs the verbs on each image. The result has the same bytes as that of single verbs with lossless files between them,
/// where the first verb has `--depth 16` and `--auto-orient`, and the last one has `--depth 8`.
pub fn run(verbs: &str, files: &Files, common: &Common) -> Result<Outcome> {
    check_quotes(verbs, files).map_err(usage)?;
    let mut steps = steps(verbs).map_err(usage)?;
    common.check()?;
    let projected = match steps.first() {
        Some(Step::Project(_)) => Some(steps.remove(0)),
        _ => None,
    };
    let calibrates = |step: &Step| matches!(step, Step::Calibrate(_));
    let last = steps.len().saturating_sub(1);
    for (index, _) in steps.iter().enumerate().filter(|step| calibrates(step.1)) {
        calibrate::check(files, index == 0, index == last).map_err(usage)?;
    }
    if let Some(Step::Project(projected)) = projected {
        let work = project::run;
        return project_and_run(&projected, steps, files, common, work);
    }
    let mut conversion = Conversion::from_arguments(files, common).map_err(usage)?;
    with_operations(steps, &mut conversion, files, common, convert)
}

/// Calls `work` with the projection of all inputs, the operations on its result, and the files that these depend on.
pub(super) fn project_and_run(
    projected: &Projected,
    steps: Vec<Step>,
    files: &Files,
    common: &Common,
    work: impl FnOnce(&Project, &[&dyn Operation], &Gathered, &[FilesRead], &Common) -> Result<Outcome>,
) -> Result<Outcome> {
    let gathered = Gathered::of_run(files, projected.along).map_err(usage)?;
    let across = |step: &Step| matches!(step, Step::Operation { set, .. } if set.across);
    let is_across = steps.iter().any(across);
    let is_selected = common.reading.pages.is_some() && projected.along.axis.is_some();
    let check = || {
        ensure!(
            !is_across,
            "--across is for several results, but project makes one image: remove --across"
        );
        ensure!(!is_selected, "--axis cannot be combined with --pages");
        Ok(())
    };
    check().map_err(usage)?;
    let output = gathered.paths.last().context("no output given")?.clone();
    // The projection is the only input of the other verbs.
    let projection = Item {
        output: Some(output.clone()),
        ..Item::new(PathBuf::new(), PathBuf::new())
    };
    let mut items = Items {
        items: vec![projection],
        keeps_digests: gathered.report.is_some(),
        ..Items::default()
    };
    items.record_order();
    let mut conversion = Conversion {
        items,
        inputs: Vec::new(),
        naming: Naming::File(output),
        format: files.format,
        reads: Vec::new(),
        task: None,
    };
    with_operations(
        steps,
        &mut conversion,
        files,
        common,
        |ops, _, conversion, _, common| {
            work(&projected.op, ops, &gathered, &conversion.reads, common)
        },
    )
}

/// Refuses verbs that are several words of the command line, and so would be inputs.
fn check_quotes(verbs: &str, files: &Files) -> Result<()> {
    let is_typed = |path: &&PathBuf| !path.exists() && path.to_str().is_some_and(is_word_of_chain);
    let words: Vec<&str> = files
        .paths
        .iter()
        .take_while(is_typed)
        .filter_map(|path| path.to_str())
        .collect();
    let mut chain = verbs.to_string();
    for word in &words {
        let begins_verb = Cli::command().find_subcommand(word).is_some();
        chain += match (begins_verb, chain.ends_with('+')) {
            (true, false) => " + ",
            _ => " ",
        };
        chain += word;
    }
    let rest = files.paths[words.len()..].iter().map(|path| in_shell(path));
    let rest: Vec<String> = rest.collect();
    ensure!(
        words.is_empty(),
        "the verbs are one word in quotes: gpuimg run '{chain}' {}",
        rest.join(" ")
    );
    Ok(())
}

/// Whether a word is a verb, a number or `+`, and so no name of a file that does not exist.
fn is_word_of_chain(word: &str) -> bool {
    word == "+" || word.parse::<u32>().is_ok() || Cli::command().find_subcommand(word).is_some()
}

/// Calls `work` with the operations of `steps`, whose frames and sets have been read and measured.
pub(super) fn with_operations(
    steps: Vec<Step>,
    conversion: &mut Conversion,
    files: &Files,
    common: &Common,
    work: impl FnOnce(&[&dyn Operation], Range, &Conversion, &Files, &Common) -> Result<Outcome>,
) -> Result<Outcome> {
    let mut typed = Vec::with_capacity(steps.len());
    for (index, step) in steps.into_iter().enumerate() {
        typed.push(match step {
            Step::Operation { op, set } => {
                check(&set, conversion, files)
                    .and_then(|()| across(&set, index, files))
                    .map_err(usage)?;
                Typed { op, set }
            }
            // `steps` lets it be the first only.
            Step::Project(_) => bail!("internal error: project is not an operation"),
            Step::Calibrate(frames) => {
                let op = calibrate::operation(&frames, conversion, files, common)?;
                Typed {
                    op: Box::new(op),
                    set: WholeSet::default(),
                }
            }
        });
    }
    let mut sets: Vec<Option<SetRange>> = Vec::new();
    for Typed { op, set } in &typed {
        let before = bound(&typed, &sets);
        let measured = measure_set_range(&before, &**op, set, conversion, files, common);
        sets.push(match measured.with_context(|| op.properties().name)? {
            Measured::Itself => None,
            Measured::Set(set_range) => Some(set_range),
            Measured::Nothing(outcome) => return Ok(outcome),
        });
    }
    let range = if typed.iter().any(|typed| typed.set.across) {
        Range::Across
    } else {
        Range::Fixed
    };
    work(&bound(&typed, &sets), range, conversion, files, common)
}

/// The operations whose sets have been measured, bound to them.
fn bound<'a>(typed: &'a [Typed], sets: &'a [Option<SetRange>]) -> Vec<&'a dyn Operation> {
    let bound = typed.iter().zip(sets);
    let bound = bound.map(|(typed, set)| match set {
        Some(set_range) => set_range as &dyn Operation,
        None => &*typed.op,
    });
    bound.collect()
}

/// Refuses `--across` for the operation at `index` if the measuring pass would not give that operation the samples that it
/// is given later.
fn across(set: &WholeSet, index: usize, files: &Files) -> Result<()> {
    if !set.across {
        return Ok(());
    }
    ensure!(
        files.batch.selection.shard.is_none(),
        "--across and --shard cannot be combined"
    );
    let widens = files.depth.map(Depth::from) == Some(Depth::Sixteen);
    ensure!(
        index == 0 || !(widens || files.auto_orient),
        "--across measures the results of the verbs before it: apply {} in an earlier run",
        if widens {
            "--depth 16"
        } else {
            "--auto-orient"
        }
    );
    Ok(())
}
