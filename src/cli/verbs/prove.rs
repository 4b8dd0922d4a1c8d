//! `prove`: derives the outputs of a report again, and compares them with those that are there.
//!
//! A report may come from anybody. Of a line only the operations, the options of decoding and encoding, and the names of files to
//! read are used. Everything is written to a temporary folder, under names of its own.

mod combined;

use super::convert::{Range, destination, with_operation};
use super::{calibrate, run as chain};
use crate::batch;
use crate::batch::claims::{Claim, Claims};
use crate::batch::conversion::Conversion;
use crate::batch::item::{Item, Items};
use crate::batch::lineage::{FIRST_IMAGE, FilesRead, INPUTS, VERSION, digests};
use crate::batch::naming::{Naming, Pattern};
use crate::batch::options::{Files, Verbosity};
use crate::batch::report::FileOutcome;
use crate::cli::typed::typed_command;
use crate::cli::{Cli, Proving, Step, Verb, WholeSet, sentence, steps};
use crate::engine::options::{Common, TypedCommand};
use crate::formats::{Format, Reading, format};
use crate::gpu;
use crate::ops::Operation;
use crate::os::console;
use crate::os::count::plural;
use crate::os::name::Shown;
use crate::os::outcome::Outcome;
use crate::os::{Sha256, TemporaryFolder, fault, file_of, is_absence};
use crate::verify;
use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::{CommandFactory, FromArgMatches};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What is known of an output.
enum Verdict {
    /// Its bytes are those that this version derives.
    SameBytes,
    /// Another version wrote it, and its samples are those that this version derives.
    SameSamples,
    /// It is missing or differs, for this reason.
    Different(String),
    /// It cannot be derived again, for this reason.
    Unproven(String),
}

/// Claims that are derived together: those of one command.
struct Group<'a> {
    /// Their indices.
    indices: Vec<usize>,
    /// The first of them.
    first: &'a Claim,
    /// All inputs of the run, as far as the reports have them.
    inputs: &'a [PathBuf],
}

/// Proves the outputs of `reports`, and prints those that differ, are missing, or cannot be proven.
pub fn run(reports: &[PathBuf], options: &Proving) -> Result<Outcome> {
    let Claims { claims, measured } = Claims::read(reports)?;
    let mut verdicts: Vec<Option<Verdict>> = claims
        .par_iter()
        .map(|claim| check(claim, options.max_pixels))
        .collect();
    let folder = TemporaryFolder::new("gpuimg-prove-");
    let folder = folder.context("cannot create a temporary folder (TMPDIR says where)")?;
    let mut groups: BTreeMap<_, Group> = BTreeMap::new();
    for (index, claim) in claims.iter().enumerate() {
        if verdicts[index].is_some() {
            continue;
        }
        let key = claim.key()?;
        let inputs = measured.get(&key).map_or(&[][..], |inputs| inputs);
        let format = format::of_extension(&claim.name).ok();
        let group = groups
            .entry((key, format.map(|format| format.id)))
            .or_insert_with(|| Group {
                indices: Vec::new(),
                first: claim,
                inputs,
            });
        group.indices.push(index);
    }
    for group in groups.values() {
        let derived = derive(group, &claims, folder.path(), options, &mut verdicts);
        match derived {
            Err(error) if error.is::<gpu::Unusable>() || error.is::<console::ReaderGone>() => {
                return Err(error);
            }
            Err(error) => {
                for &index in &group.indices {
                    let unproven = || Verdict::Unproven(format!("{error:#}"));
                    verdicts[index].get_or_insert_with(unproven);
                }
            }
            Ok(()) => {}
        }
    }
    print(&claims, verdicts, options.verbose)
}

/// What is known of an output before anything is derived.
fn check(claim: &Claim, max_pixels: u64) -> Option<Verdict> {
    if let Some(obstacle) = &claim.obstacle {
        return Some(Verdict::Unproven(obstacle.clone()));
    }
    let plain = Reading {
        max_pixels,
        ..Reading::default()
    };
    let of_file = |path: &Path| digests(&Item::listed(path.into(), path.into()), &plain);
    if fault::metadata(&claim.name).is_err_and(|error| is_absence(&error)) {
        return Some(Verdict::Different("it is missing".into()));
    }
    match of_file(&claim.name) {
        Ok(now) if now.input == claim.digests.output => {}
        Ok(_) => {
            let why = "it was changed after it was written: its SHA-256 is not that of the report";
            return Some(Verdict::Different(why.into()));
        }
        Err(error) => return Some(Verdict::Different(format!("it cannot be read: {error:#}"))),
    }
    let input = claim.input.shown();
    if fault::metadata(file_of(&claim.input)).is_err_and(|error| is_absence(&error)) {
        return Some(Verdict::Different(format!("its input {input} is missing")));
    }
    match of_file(&claim.input) {
        // The samples of a header are compared when it has been decoded with the options of the report.
        Ok(now) if now.input == claim.digests.input => None,
        Ok(_) => Some(Verdict::Different(format!(
            "its input {input} has changed: its SHA-256 is not that of the report"
        ))),
        Err(error) => Some(Verdict::Different(format!(
            "its input {input} cannot be read: {error:#}"
        ))),
    }
}

/// Derives the outputs of a group and compares them.
fn derive(
    group: &Group,
    claims: &[Claim],
    folder: &Path,
    options: &Proving,
    verdicts: &mut [Option<Verdict>],
) -> Result<()> {
    let (mut verb, steps) = parse(&group.first.command)?;
    if combined::is_combined(&verb, &steps) {
        for &index in &group.indices {
            let command = parse(&claims[index].command)?;
            let verdict = combined::derive(&claims[index], command, folder, options)?;
            verdicts[index] = Some(verdict);
        }
        return Ok(());
    }
    let (files, common) = files_and_common(&mut verb)?;
    prepare(files, common, options);
    let (files, common) = (files.clone(), common.clone());
    let format = files
        .format
        .or_else(|| format::of_extension(&group.first.name).ok());
    let mut conversion = conversion(group.inputs, folder, format);
    let work = |ops: &[&dyn Operation],
                _: Range,
                conversion: &Conversion,
                files: &Files,
                common: &Common| {
        compare_reads(&group.first.reads, &conversion.reads)?;
        let own = derived_items(group, claims, folder);
        let template = destination(ops, conversion, files, common);
        let own = Conversion {
            items: own,
            inputs: Vec::new(),
            naming: naming(folder, format),
            format,
            reads: Vec::new(),
            task: None,
        };
        batch::derive(
            ops,
            &own,
            &template,
            &files.batch,
            common,
            |index, outcome| {
                let claim = group.indices[index];
                let derived = own.items.items[index].output.as_deref();
                let derived = derived.context("internal error: no output")?;
                let verdict = judge(&claims[claim], outcome, derived)?;
                verdicts[claim] = Some(verdict);
                // A folder that is full would stop the others.
                let _ = fs::remove_file(derived);
                Ok(())
            },
        )
    };
    with_operations(verb, steps, &mut conversion, &files, &common, work)?;
    Ok(())
}

/// Calls `work` with the operations of a verb that makes images of images.
fn with_operations(
    verb: Verb,
    steps: Vec<Step>,
    conversion: &mut Conversion,
    files: &Files,
    common: &Common,
    work: impl FnOnce(&[&dyn Operation], Range, &Conversion, &Files, &Common) -> Result<Outcome>,
) -> Result<Outcome> {
    match verb {
        Verb::Images(images) => {
            with_operation(&*images.op, &images.set, conversion, files, common, work)
        }
        Verb::Calibrate { frames, .. } => {
            let op = calibrate::operation(&frames, conversion, files, common)?;
            work(&[&op], Range::Fixed, conversion, files, common)
        }
        Verb::Run { .. } => chain::with_operations(steps, conversion, files, common, work),
        _ => bail!("the verb of the report makes no images"),
    }
}

/// The verb of a report, as if it had been typed, and the steps of `run`.
///
/// # Errors
/// Words that this version does not know, those that no report has, and pipes in place of files.
fn parse(recorded: &TypedCommand) -> Result<(Verb, Vec<Step>)> {
    let options = recorded.options.as_deref().unwrap_or_default();
    let start = ["gpuimg", &recorded.verb].map(String::from);
    let output = ["--output=-".to_string()];
    let words = match &*recorded.verb {
        // Its last path is the output.
        "project" => [&start[..], options, &["-".into()]].concat(),
        // It needs an input.
        "merge" => [&start[..], &output, options, &["-".into()]].concat(),
        _ => [&start[..], &output, options].concat(),
    };
    let mut command = Cli::command();
    let parsed = command
        .try_get_matches_from_mut(&words)
        .and_then(|matches| {
            let cli = Cli::from_arg_matches(&matches)?;
            Ok((typed_command(&command, &matches), cli))
        });
    let unknown = |why: &dyn std::fmt::Display| {
        anyhow!("gpuimg {VERSION} does not know the command of the report: {why}")
    };
    let (typed, cli) = parsed.map_err(|error| unknown(&sentence(&error, &words[1..])))?;
    // Other words would select files or write some.
    if typed != *recorded {
        return Err(unknown(&"it is not one that gpuimg records"));
    }
    let steps = match &cli.verb {
        Verb::Run { verbs, .. } => steps(verbs)?,
        _ => Vec::new(),
    };
    refuse_streams(&cli.verb, &steps)?;
    Ok((cli.verb, steps))
}

/// The options of a verb that makes images of images.
fn files_and_common(verb: &mut Verb) -> Result<(&mut Files, &mut Common)> {
    match verb {
        Verb::Images(images) => Ok((&mut images.files, &mut images.common)),
        Verb::Calibrate { files, common, .. } | Verb::Run { files, common, .. } => {
            Ok((files, common))
        }
        _ => bail!("the verb of the report makes no images"),
    }
}

/// Replaces the options that are the choice of who proves.
fn prepare(files: &mut Files, common: &mut Common, options: &Proving) {
    files.output = None;
    files.batch.jobs = options.jobs;
    files.batch.mem_limit = options.mem_limit;
    files.batch.verbosity = Verbosity::default().silent();
    prepare_common(common, options);
}

fn prepare_common(common: &mut Common, options: &Proving) {
    common.device = options.device;
    common.reading.max_pixels = options.max_pixels;
}

/// Refuses pipes and devices in place of the files that a verb reads besides its input: opening one may wait forever.
fn refuse_streams(verb: &Verb, steps: &[Step]) -> Result<()> {
    let of_set = |set: &WholeSet| vec![set.range_from.clone()];
    let of_step = |step: &Step| match step {
        Step::Operation { set, .. } => of_set(set),
        Step::Calibrate(frames) => frames.paths(),
        Step::Project(_) => Vec::new(),
    };
    let named = match verb {
        Verb::Images(images) => of_set(&images.set),
        Verb::Calibrate { frames, .. } => frames.paths(),
        _ => steps.iter().flat_map(of_step).collect(),
    };
    for path in named.into_iter().flatten() {
        let about = fault::metadata(&path).ok();
        ensure!(
            about.is_some_and(|about| about.is_file() || about.is_dir()),
            "there is no file {}",
            path.shown()
        );
    }
    Ok(())
}

/// The inputs of the run that made the outputs.
fn conversion(inputs: &[PathBuf], folder: &Path, format: Option<&'static Format>) -> Conversion {
    let mut items = Items {
        keeps_digests: true,
        ..Items::default()
    };
    // Resumed runs name an input several times.
    let mut inputs = inputs.to_vec();
    inputs.sort();
    inputs.dedup();
    let listed = |path: PathBuf| Item::listed(path.clone(), path);
    items.items = inputs.into_iter().map(listed).collect();
    Conversion {
        items,
        inputs: Vec::new(),
        naming: naming(folder, format),
        format,
        reads: Vec::new(),
        task: None,
    }
}

fn naming(folder: &Path, format: Option<&'static Format>) -> Naming {
    Naming::Folder {
        folder: folder.into(),
        pattern: Pattern::default(),
        format,
    }
}

/// The inputs of a group, each with a name for what is derived of it.
fn derived_items(group: &Group, claims: &[Claim], folder: &Path) -> Items {
    let items = group.indices.iter().map(|&index| {
        let Claim {
            input,
            name,
            position,
            ..
        } = &claims[index];
        let mut derived = PathBuf::from(index.to_string());
        if let Some(extension) = name.extension() {
            derived.set_extension(extension);
        }
        Item {
            output: Some(folder.join(derived)),
            position: *position,
            ..Item::listed(input.clone(), input.clone())
        }
    });
    Items {
        items: items.collect(),
        keeps_digests: true,
        ..Items::default()
    }
}

/// Refuses files that are not those that the run has read.
fn compare_reads(recorded: &[FilesRead], now: &[FilesRead]) -> Result<()> {
    for (index, read) in now.iter().enumerate() {
        let FilesRead { option, files, .. } = read;
        let Some(then) = recorded.get(index).filter(|then| then.option == *option) else {
            bail!("the report has no digest of the files that {option} named");
        };
        match (&**option, then == read) {
            (_, true) => {}
            ("--across", false) if then.files != *files => bail!(
                "its range was measured over {}, but the report has {files} of them: prove the reports of all shards together",
                plural(then.files, "image")
            ),
            ("--across", false) => bail!(
                "its range was measured over {}, some of which have changed",
                plural(then.files, "image")
            ),
            (INPUTS, false) if then.files != *files => bail!(
                "it was made of {}, but the report has {files} of them",
                plural(then.files, "input")
            ),
            (INPUTS, false) => bail!(
                "some of its {}, or their order, have changed",
                plural(then.files, "input")
            ),
            (FIRST_IMAGE, false) => {
                bail!("the first image, whose metadata it keeps, has changed")
            }
            (_, false) => bail!("the files that {option} names have changed"),
        }
    }
    ensure!(
        recorded.len() == now.len(),
        "the report has digests of files that its command does not read"
    );
    Ok(())
}

/// Compares an output with the one that was derived.
fn judge(claim: &Claim, outcome: FileOutcome, derived: &Path) -> Result<Verdict> {
    let done = match outcome {
        FileOutcome::Done(done) => done,
        FileOutcome::Failed(error) if error.is::<gpu::Unusable>() => return Err(error),
        FileOutcome::Failed(error) => {
            return Ok(Verdict::Unproven(format!("{error:#}")));
        }
        FileOutcome::Skipped => bail!("internal error: an output was skipped"),
    };
    let input = claim.input.shown();
    if done.digests.contents() != claim.digests.contents() {
        return Ok(Verdict::Different(format!(
            "its input {input} has changed: its SHA-256 is not that of the report"
        )));
    }
    Ok(judge_output(claim, done.digests.output, derived))
}

/// Compares an output with the one that was derived, which has the digest `now`.
fn judge_output(claim: &Claim, now: Option<Sha256>, derived: &Path) -> Verdict {
    let input = match claim.inputs.len() {
        0 | 1 => claim.input.shown().into_owned(),
        count => plural(count, "input"),
    };
    let is_same_version = claim.version == VERSION;
    if now == claim.digests.output {
        return if is_same_version {
            Verdict::SameBytes
        } else {
            Verdict::SameSamples
        };
    }
    let difference = match verify::compare(&claim.name, derived) {
        Ok(difference) => difference,
        Err(error) => return Verdict::Different(format!("{error:#}")),
    };
    match (difference, is_same_version) {
        (None, false) => Verdict::SameSamples,
        (None, true) => Verdict::Different(format!(
            "its bytes are not those that {input} gives, but all samples are equal"
        )),
        (Some(difference), true) => {
            Verdict::Different(format!("it is not what {input} gives: {difference}"))
        }
        (Some(difference), false) => Verdict::Different(format!(
            "version {} wrote it, and it is not what {input} gives now: {difference}",
            claim.version
        )),
    }
}

/// Prints what differs, and the counts.
fn print(claims: &[Claim], verdicts: Vec<Option<Verdict>>, verbose: bool) -> Result<Outcome> {
    let [mut bytes, mut samples, mut different, mut unproven] = [0; 4];
    for (claim, verdict) in claims.iter().zip(verdicts) {
        let name = claim.name.shown();
        match verdict {
            Some(Verdict::SameBytes) => {
                bytes += 1;
                if verbose {
                    console::print(&format!("{name}: the same bytes"))?;
                }
            }
            Some(Verdict::SameSamples) => {
                samples += 1;
                if verbose {
                    let version = &claim.version;
                    console::print(&format!(
                        "{name}: the same samples (version {version} wrote it)"
                    ))?;
                }
            }
            Some(Verdict::Different(why)) => {
                different += 1;
                console::print(&format!("{name}: {why}"))?;
            }
            Some(Verdict::Unproven(why)) => {
                unproven += 1;
                console::print(&format!("{name}: cannot be proven: {why}"))?;
            }
            None => {
                unproven += 1;
                let why = "an image that its range depends on cannot be read";
                console::print(&format!("{name}: cannot be proven: {why}"))?;
            }
        }
    }
    let mut counts = format!(
        "{}: {bytes} proven by bytes (version {VERSION} wrote them)",
        plural(claims.len(), "output")
    );
    for (count, what) in [
        (samples, "proven by samples (another version wrote them)"),
        (different, "missing or different"),
        (unproven, "not proven"),
    ] {
        if count > 0 {
            counts += &format!(", {count} {what}");
        }
    }
    console::print(&counts)?;
    Ok(if different + unproven == 0 {
        Outcome::Done
    } else {
        Outcome::SomeFailed
    })
}
