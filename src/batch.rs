//! Many files: directories, lists and parts of them, on all cores and GPUs, with outcomes that can
//! be trusted: a bad file is named and the rest goes on, and what was done need not be done again.

pub mod conversion;
pub mod folder;
pub mod histogram;
pub mod inputs;
mod journal;
pub mod key;
pub mod naming;
pub mod options;
pub mod places;
pub(crate) mod plan;
mod progress;
pub mod report;
pub mod shard;
mod totals;
mod workers;

use crate::cli::{Common, StatsForm};
use crate::codec::{Format, format};
use crate::console;
use crate::device::{self, Choice, estimate};
use crate::files::{self, Identity, reason};
use crate::ops::Operation;
use crate::ops::histogram::Histogram;
use crate::outcome::{Outcome, usage};
use crate::pipeline::{Destination, Done, Resources, one_image, one_image_announced};
use anyhow::{Context, Result, anyhow, ensure};
use conversion::Conversion;
use folder::PassedOver;
use histogram::Set;
use inputs::{Item, Items};
use journal::{Journal, Past, Sight, Verdict};
use key::Job;
use naming::Naming;
use options::Options;
use progress::Progress;
use report::{FileOutcome, Report};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use totals::Totals;
use workers::Workers;

/// A batch that is ready to begin.
#[derive(Debug)]
pub struct Batch<'a> {
    /// What is done with every file.
    pub op: &'a dyn Operation,
    /// The files.
    pub items: &'a Items,
    /// How results are written; their places are the items' own.
    pub template: Option<&'a Destination>,
    /// How they are named.
    pub naming: Option<&'a Naming>,
    /// How it is done.
    pub options: &'a Options,
    /// The options of every verb.
    pub common: &'a Common,
    /// Whether failures are told; they need not be where the same files are to be read again.
    pub names_failures: bool,
}

/// Does `op` to all that is asked for; `job` is what that is, for later runs.
pub fn convert(
    op: &dyn Operation,
    job: Job,
    asked: &Conversion,
    template: &Destination,
    options: &Options,
    common: &Common,
) -> Result<Outcome> {
    let Conversion { items, naming, .. } = asked;
    let batch = Batch {
        op,
        items,
        template: Some(template),
        naming: Some(naming),
        options,
        common,
        names_failures: true,
    };
    let folder = naming.folder();
    let (shard, resume) = (options.selection.shard, options.resume);
    if options.dry_run {
        return batch.tell_plan(Some(&Past::read(folder, job, resume)?));
    }
    match naming {
        // Where all inputs are missing, no empty folder is left behind.
        Naming::Folder { .. } if items.has_any() => files::make_folder(folder, template.sync)
            .map_err(|error| {
                anyhow!(
                    "cannot make the folder {}: {}",
                    folder.display(),
                    reason(&error)
                )
            })?,
        Naming::Folder { .. } => return batch.run(None, |_, _| Ok(())),
        Naming::File(path) => ensure!(
            folder.is_dir(),
            "cannot write {}: there is no folder {}",
            path.display(),
            folder.display()
        ),
    }
    // Beside a single file none is expected, unless it is asked for.
    let keeps = resume || matches!(naming, Naming::Folder { .. });
    let journal = keeps.then(|| Journal::open(folder, shard, job, resume, template.sync));
    let journal = journal.transpose()?;
    if resume {
        let outputs = batch.items.items.iter().flat_map(|item| &item.output);
        files::remove_leftovers(outputs.map(|path| files::parent(path).into()).collect());
    }
    batch.run(journal.as_ref(), |_, _| Ok(()))
}

/// Measures all that `paths` and the options name; `print` gets what was found in the order of the
/// names, as soon as it is its turn.
pub fn measure(
    op: &dyn Operation,
    paths: &[PathBuf],
    options: &Options,
    common: &Common,
    print: impl Fn(&Path, &Done) -> Result<()>,
) -> Result<Outcome> {
    let items = &inputs::collect(paths, &options.selection, None).map_err(usage)?;
    keep_off_report(options, items)?;
    let batch = Batch {
        op,
        items,
        template: None,
        naming: None,
        options,
        common,
        names_failures: true,
    };
    if options.dry_run {
        return batch.tell_plan(None);
    }
    let mut early = BTreeMap::new();
    let mut turn = 0;
    batch.run(None, |index, done| {
        early.insert(index, done);
        while let Some(done) = early.remove(&turn) {
            if let Some(done) = done {
                print(&batch.items.items[turn].input, &done)?;
            }
            turn += 1;
        }
        Ok(())
    })
}

/// Refuses a report that would destroy an input, or the list of them.
fn keep_off_report(options: &Options, items: &Items) -> Result<()> {
    let Some(report) = &options.report else {
        return Ok(());
    };
    let list = options.selection.files_from.as_deref();
    places::keep_report_off(report, &items.items, list.as_slice()).map_err(usage)
}

/// The histogram of all of `items`; failures are told only if `names_failures`.
pub fn measure_set(
    items: &Items,
    options: &Options,
    common: &Common,
    names_failures: bool,
) -> Result<(Set, Outcome)> {
    keep_off_report(options, items)?;
    let batch = Batch {
        op: &Histogram,
        items,
        template: None,
        naming: None,
        options,
        common,
        names_failures,
    };
    let mut set = Set::new(options.selection.shard);
    if options.dry_run {
        return Ok((set, batch.tell_plan(None)?));
    }
    let outcome = batch.run(None, |index, done| {
        match done.and_then(|done| done.found.counts) {
            Some(counts) => set.add(&counts, 1).with_context(|| {
                format!("cannot count {}", batch.items.items[index].input.display())
            }),
            None => {
                set.failed += 1;
                Ok(())
            }
        }
    })?;
    Ok((set, outcome))
}

impl Batch<'_> {
    /// Carries every file through; `take` gets what was done, or nothing, on this thread, as it
    /// gets done.
    pub fn run(
        &self,
        journal: Option<&Journal>,
        mut take: impl FnMut(usize, Option<Done>) -> Result<()>,
    ) -> Result<Outcome> {
        let items = &self.items.items;
        let workers = self.workers();
        let mut report = self.open_report()?;
        let unread = &self.items.unread;
        let mut progress = Progress::new(items.len() + unread.len(), self.options.verbosity);
        if self.names_failures {
            self.introduce(&progress, &workers);
        }

        let begun = Instant::now();
        let (mut totals, mut skipped, mut failed) = (Totals::default(), 0, unread.len());
        let mut fatal = None;
        for unread in unread {
            let (path, error) = (unread.path.clone(), unread.error());
            progress.add(0, true);
            if self.names_failures {
                progress.say(&format!("gpuimg: {error:#}"));
            }
            if let Some(report) = &mut report {
                let item = Item::new(path.clone(), path);
                report.add(&item, &FileOutcome::Failed(error), Duration::ZERO)?;
            }
        }
        workers.each(
            items,
            |item, resources| {
                let start = Instant::now();
                (self.one(item, resources, journal), start.elapsed())
            },
            |index, (outcome, time)| {
                let item = &items[index];
                let told = report
                    .as_mut()
                    .map_or(Ok(()), |report| report.add(item, &outcome, time));
                let taken = match outcome {
                    FileOutcome::Done(done) => {
                        totals.add(&done.timeline);
                        self.mention(item, &done, &progress);
                        self.consider_gpus(&workers, &done, items.len() - index);
                        progress.add(done.shape.bytes() as u64, done.damage.is_some());
                        failed += usize::from(done.damage.is_some());
                        take(index, Some(*done))
                    }
                    FileOutcome::Skipped => {
                        skipped += 1;
                        progress.add(0, false);
                        take(index, None)
                    }
                    // Without the GPU that was asked for, no other file can fare better.
                    FileOutcome::Failed(error) if error.is::<device::Unusable>() => Err(error),
                    FileOutcome::Failed(error) => {
                        failed += 1;
                        progress.add(0, true);
                        if self.names_failures {
                            progress.say(&format!("gpuimg: {error:#}"));
                        }
                        take(index, None)
                    }
                };
                if let Err(error) = told.and(taken) {
                    workers.stop();
                    fatal.get_or_insert(error);
                }
            },
        )?;
        match fatal {
            // A reader who has enough does not make up for files that failed before.
            Some(error) if failed > 0 && error.is::<console::ReaderGone>() => {
                return Ok(Outcome::SomeFailed);
            }
            Some(error) => return Err(error),
            None => {}
        }
        if self.names_failures {
            progress.finish(skipped);
        }
        self.tell_times(&totals, begun.elapsed(), workers.threads(items.len()))?;
        Ok(match failed {
            0 => Outcome::Done,
            _ => Outcome::SomeFailed,
        })
    }

    /// The threads and the memory of the batch.
    fn workers(&self) -> Workers {
        let (options, common) = (self.options, self.common);
        let (jobs, memory) = (options.threads(), options.memory());
        Workers::new(common.device, jobs, memory, common.reading)
    }

    /// One file, unless it is done already.
    fn one(&self, item: &Item, resources: &Resources, journal: Option<&Journal>) -> FileOutcome {
        match self.attempt(item, resources, journal) {
            Ok(Some(done)) => FileOutcome::Done(Box::new(done)),
            Ok(None) => FileOutcome::Skipped,
            // Two runs may go on with one folder.
            Err(_) if journal.is_some_and(|it| it.was_done_meanwhile(item)) => FileOutcome::Skipped,
            Err(error) => FileOutcome::Failed(error),
        }
    }

    /// One file; none if it is done already.
    fn attempt(
        &self,
        item: &Item,
        resources: &Resources,
        journal: Option<&Journal>,
    ) -> Result<Option<Done>> {
        let resources = &Resources {
            only_files: item.listed,
            ..*resources
        };
        let Some((template, path)) = self.template.zip(item.output.as_ref()) else {
            return one_image(self.op, &item.input, None, resources).map(Some);
        };
        let sight = Sight::of(item);
        let verdict = match journal {
            Some(journal) => journal.verdict(item, &sight, template.overwrite)?,
            None => sight.verdict(template.overwrite),
        };
        let replaced = match verdict {
            Verdict::Done => return Ok(None),
            Verdict::Make(replaced) => replaced,
            Verdict::Refused(why) => return Err(self.refused(item, why)),
        };
        let destination = Destination {
            path: path.clone(),
            format: format_of(template, path),
            overwrite: replaced.something(),
            ..template.clone()
        };
        // No folder is made for what is not there.
        if item.input != Path::new("-") {
            fs::metadata(&item.input)
                .map_err(|error| anyhow!(reason(&error)))
                .with_context(|| format!("cannot read {}", item.input.display()))?;
        }
        files::make_folder(files::parent(path), template.sync)
            .with_context(|| format!("cannot write {}", path.display()))?;
        let announce = |made: Identity, damaged: bool| {
            replaced.check(path)?;
            match journal {
                Some(journal) => journal.announce(item, sight.input, made, damaged),
                None => Ok(()),
            }
        };
        let output = Some(&destination);
        one_image_announced(self.op, &item.input, output, resources, &announce).map(Some)
    }

    fn refused(&self, item: &Item, why: &str) -> anyhow::Error {
        anyhow!("cannot {} {}: {why}", self.op.name(), item.input.display())
    }

    /// With `auto`, the GPUs are started once their help to the images that are left is worth it.
    fn consider_gpus(&self, workers: &Workers, done: &Done, left: usize) {
        if self.common.device == Choice::Auto {
            let (cpu, gpu) = estimate(&done.work, 1, true);
            let saved = (cpu - gpu) * left as f64 / workers.jobs as f64;
            if saved > device::WORTH_STARTING {
                workers.gpus.start();
            }
        }
    }

    fn open_report(&self) -> Result<Option<Report>> {
        let overwrite = self.template.is_some_and(|template| template.overwrite);
        let open = |path: &PathBuf| Report::open(path, self.options.resume, overwrite);
        self.options.report.as_ref().map(open).transpose()
    }

    /// Says what is about to begin, and in how much memory.
    fn introduce(&self, progress: &Progress, workers: &Workers) {
        let count = self.items.items.len();
        progress.mention(&format!(
            "gpuimg: {} on {}, within {} of memory",
            plan::counted(count, "file"),
            plan::counted(workers.threads(count), "thread"),
            plan::told(self.options.memory())
        ));
        self.tell_passed_over(progress);
    }

    /// Says what of folders is not done: odd things by name, of the others how many, or with `-v` which.
    fn tell_passed_over(&self, progress: &Progress) {
        let passed_over = &self.items.passed_over;
        let named = |found: &&PassedOver| self.common.verbose || found.why.is_odd();
        for PassedOver { path, why } in passed_over.iter().filter(named) {
            progress.mention(&format!("gpuimg: {}: {why}, passed over", path.display()));
        }
        let counted = folder::summary(passed_over.iter().filter(|found| !named(found)));
        if !counted.is_empty() {
            progress.mention(&format!("gpuimg: passed over: {counted}; -v names all"));
        }
    }

    fn mention(&self, item: &Item, done: &Done, progress: &Progress) {
        let input = item.input.display().to_string();
        for sentence in done.sentences(self.common.verbose) {
            progress.mention(&format!("gpuimg: {}", sentence.replace("{file}", &input)));
        }
        if self.common.verbose {
            progress.mention(&format!(
                "gpuimg: {}: {}, {}",
                item.input.display(),
                done.shape,
                done.device
            ));
        }
    }

    fn tell_times(&self, totals: &Totals, wall: Duration, threads: usize) -> Result<()> {
        match self.common.stats {
            None => {}
            Some(StatsForm::Text) => console::tell_lines(&totals.text(wall, threads)),
            Some(StatsForm::Json) => console::tell(&totals.json(wall, threads)?),
        }
        Ok(())
    }
}

/// The format of a result: the one asked for, or what its name says; without either the input's.
fn format_of(template: &Destination, path: &Path) -> Option<&'static dyn Format> {
    template.format.or_else(|| format::of_extension(path).ok())
}
