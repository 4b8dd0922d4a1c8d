//! Outputs that were made of several inputs.

use super::super::convert::{Range, destination};
use super::super::stack::stack;
use super::super::{combine, merge, project, run as chain};
use super::{
    Verdict, compare_reads, files_and_common, judge_output, prepare, prepare_common,
    with_operations,
};
use crate::batch::claims::Claim;
use crate::batch::conversion::Conversion;
use crate::batch::item::{Item, Items};
use crate::batch::lineage::{FilesRead, INPUTS, digests};
use crate::batch::naming::Naming;
use crate::batch::options::{Files, Gathered, Verbosity};
use crate::cli::{Proving, Step, Verb};
use crate::engine::options::Common;
use crate::formats::{Reading, format};
use crate::ops::Operation;
use crate::ops::project::Project;
use crate::os::outcome::Outcome;
use anyhow::{Result, bail, ensure};
use std::fs;
use std::path::Path;

/// Whether a verb makes one output of all inputs.
pub(super) fn is_combined(verb: &Verb, steps: &[Step]) -> bool {
    match verb {
        Verb::Project { .. } | Verb::Combine { .. } | Verb::Merge { .. } => true,
        Verb::Run { .. } if matches!(steps.first(), Some(Step::Project(_))) => true,
        Verb::Images(images) => images.files.stack,
        Verb::Calibrate { files, .. } | Verb::Run { files, .. } => files.stack,
        _ => false,
    }
}

/// Derives an output of several inputs, and compares it.
pub(super) fn derive(
    claim: &Claim,
    command: (Verb, Vec<Step>),
    folder: &Path,
    options: &Proving,
) -> Result<Verdict> {
    let derived = folder.join("combined");
    let derived = match claim.name.extension() {
        Some(extension) => derived.with_extension(extension),
        None => derived,
    };
    ensure!(
        derive_to(&derived, claim, command, folder, options)? == Outcome::Done,
        "its inputs cannot be combined again"
    );
    let now = digests(
        &Item::listed(derived.clone(), derived.clone()),
        &Reading::default(),
    )?;
    let verdict = judge_output(claim, now.input, &derived);
    // A folder that is full would stop the others.
    let _ = fs::remove_file(derived);
    Ok(verdict)
}

/// Writes what the command makes of the inputs, if they are those of the report.
fn derive_to(
    derived: &Path,
    claim: &Claim,
    command: (Verb, Vec<Step>),
    folder: &Path,
    options: &Proving,
) -> Result<Outcome> {
    let mut paths = claim.inputs.clone();
    paths.push(derived.into());
    let compare = |reading: &Reading, reads: &[FilesRead]| {
        let all = FilesRead::new(INPUTS, &Items::named(&claim.inputs), reading)?;
        compare_reads(&claim.reads, &[&[all], reads].concat())
    };
    let silent = Verbosity::default().silent();
    match command {
        (
            Verb::Project {
                op,
                mut files,
                mut common,
            },
            _,
        ) => {
            prepare_common(&mut common, options);
            compare(&common.reading, &[])?;
            (files.paths, files.verbosity) = (paths, silent);
            (files.jobs, files.mem_limit) = (options.jobs, options.mem_limit);
            project::run(&op, &[], &files, &[], &common)
        }
        (
            Verb::Combine {
                mut files,
                mut common,
            },
            _,
        ) => {
            prepare_common(&mut common, options);
            compare(&common.reading, &[])?;
            (files.paths, files.output, files.quiet) = (paths, None, true);
            combine::run(&files, &common)
        }
        (
            Verb::Merge {
                mut output, image, ..
            },
            _,
        ) => {
            output.output = derived.into();
            merge::projections(&claim.inputs, &output, &image, true, |all| {
                compare(&Reading::default(), &merge::first_image(all)?)?;
                Ok(None)
            })
        }
        (
            Verb::Run {
                mut files,
                mut common,
                ..
            },
            mut steps,
        ) if matches!(steps.first(), Some(Step::Project(_))) => {
            let Step::Project(projected) = steps.remove(0) else {
                bail!("internal error: run does not begin with project");
            };
            prepare(&mut files, &mut common, options);
            files.paths = paths;
            // The digests of the files that the verbs read are computed for a report.
            files.batch.report = Some(folder.join("report"));
            let work = |op: &Project,
                        ops: &[&dyn Operation],
                        files: &Gathered,
                        reads: &[FilesRead],
                        common: &Common| {
                compare(&common.reading, reads)?;
                let files = Gathered {
                    report: None,
                    ..files.clone()
                };
                project::run(op, ops, &files, &[], common)
            };
            chain::project_and_run(&projected, steps, &files, &common, work)
        }
        (mut verb, steps) => {
            let (files, common) = files_and_common(&mut verb)?;
            prepare(files, common, options);
            let (files, common) = (files.clone(), common.clone());
            let mut items = Items {
                keeps_digests: true,
                ..Items::named(&claim.inputs)
            };
            items.record_order();
            let extension = || format::of_extension(derived).ok();
            let mut conversion = Conversion {
                items,
                inputs: Vec::new(),
                naming: Naming::File(derived.into()),
                format: files.format.or_else(extension),
                reads: Vec::new(),
                task: None,
            };
            let work = |ops: &[&dyn Operation],
                        _: Range,
                        conversion: &Conversion,
                        files: &Files,
                        common: &Common| {
                compare(&common.reading, &conversion.reads)?;
                let to = destination(ops, conversion, files, common);
                stack(ops, conversion, to, common, &files.batch)
            };
            with_operations(verb, steps, &mut conversion, &files, &common, work)
        }
    }
}
