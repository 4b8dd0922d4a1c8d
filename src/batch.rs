//! Many files: folders, lists and shards of them, on all cores and GPUs. A bad file is
//! reported and the others are processed; a later run can skip finished files.

pub(crate) mod about;
mod by_number;
pub(crate) mod claims;
pub(crate) mod combined_report;
pub(crate) mod conversion;
pub(crate) mod failures;
pub(crate) mod folder;
pub(crate) mod histogram;
pub(crate) mod info;
pub(crate) mod inputs;
pub(crate) mod item;
mod journal;
pub(crate) mod key;
pub(crate) mod lineage;
pub(crate) mod naming;
pub(crate) mod options;
pub(crate) mod output_paths;
pub(crate) mod plan;
mod process;
mod progress;
pub(crate) mod project;
pub(crate) mod report;
mod run;
pub(crate) mod shard;
pub(crate) mod sheet;
mod tally;
pub(crate) mod watch;
mod workers;

use crate::engine::options::Common;
use crate::engine::{Destination, Digests, Done, Failure};
use crate::formats::{Format, format};
use crate::ops::counts::Counts;
use crate::ops::histogram::Histogram;
use crate::ops::{Operation, chain};
use crate::os::name::{Shown, in_shell};
use crate::os::outcome::{Outcome, usage};
use crate::os::url::is_url;
use crate::os::{self, reason};
use anyhow::{Context, Result, anyhow, ensure};
use conversion::Conversion;
use histogram::Set;
use item::{Item, Items, PassedOver};
use journal::{Journal, Past};
use key::Job;
use lineage::FilesRead;
use naming::Naming;
use options::Options;
use progress::Progress;
use report::FileOutcome;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tally::Screen;
use watch::range_file::RangeFile;

pub use info::{ImageInfo, info};
pub use process::{BatchOptions, FileResult, FileStatus, process};

/// A batch that is ready to run.
#[derive(Debug)]
pub(crate) struct Batch<'a, 'r> {
    /// The operations that are run on every file, one after the other.
    pub ops: &'a [&'a dyn Operation],
    /// The inputs, each with the path of its output.
    pub items: &'a Items,
    /// How results are written; their paths are those of the items.
    pub template: Option<&'a Destination>,
    /// How results are named.
    pub naming: Option<&'a Naming>,
    /// The options of a batch.
    pub options: &'a Options,
    /// The options that every subcommand has.
    pub common: &'a Common,
    /// The files that the outputs depend on besides their inputs.
    pub reads: &'a [FilesRead],
    /// The histogram whose range applies to a file at the time when it arrives.
    pub range_file: Option<&'a RangeFile<'r>>,
    /// Whether results are printed on standard output as they come.
    pub prints: bool,
    /// Whether failures are printed; not if the same files will be read again.
    pub names_failures: bool,
}

/// Runs `ops` on all inputs; `job` identifies operations and options for later runs.
pub(crate) fn convert(
    ops: &[&dyn Operation],
    job: Job,
    asked: &Conversion,
    range_file: Option<&RangeFile>,
    template: &Destination,
    options: &Options,
    common: &Common,
) -> Result<Outcome> {
    let batch = Batch {
        ops,
        items: &asked.items,
        template: Some(template),
        naming: Some(&asked.naming),
        options,
        common,
        reads: &asked.reads,
        range_file,
        prints: false,
        names_failures: true,
    };
    batch.convert(job, asked, |_, _| Ok(()))
}

/// Makes the results of an earlier run again, in a separate folder. Nothing is printed; `each` is called on this thread with each
/// outcome, as soon as it is ready.
pub(crate) fn derive(
    ops: &[&dyn Operation],
    asked: &Conversion,
    template: &Destination,
    options: &Options,
    common: &Common,
    each: impl FnMut(usize, FileOutcome) -> Result<()>,
) -> Result<Outcome> {
    let batch = Batch {
        ops,
        items: &asked.items,
        template: Some(template),
        naming: Some(&asked.naming),
        options,
        common,
        reads: &[],
        range_file: None,
        prints: true,
        names_failures: false,
    };
    batch.run(None, each)
}

/// Measures all inputs that `paths` and the options select. Calls `print` with each result, or the reason
/// of a failure, in the order of the names and as early as that order allows; in a watch, in the order in
/// which files are finished.
pub(crate) fn measure(
    op: &dyn Operation,
    paths: &[PathBuf],
    options: &Options,
    common: &Common,
    print: impl Fn(&Path, Result<&Done, &str>) -> Result<()>,
) -> Result<Outcome> {
    let watches = options.watching.watch;
    let items = &if watches {
        watch::check::check(paths, None, options).map_err(usage)?;
        Items::default()
    } else {
        let found = inputs::collect(paths, &options.selection, &common.reading, None);
        let items = found.map_err(usage)?;
        if !options.verbosity.quiet {
            items.warn_about_earlier_results(None);
        }
        items
    };
    options
        .report_beside("the results")
        .map_err(usage)
        .and_then(|()| keep_off_report(options, items))?;
    let batch = Batch {
        ops: &[op],
        items,
        template: None,
        naming: None,
        options,
        common,
        reads: &[],
        range_file: None,
        prints: true,
        names_failures: true,
    };
    if watches {
        return batch.watch(paths, None, |item, outcome| {
            print_outcome(&print, &item.input, outcome)
        });
    }
    if options.dry_run {
        return batch.print_plan(None);
    }
    for unread in &items.unread {
        print(&unread.path, Err(&format!("{:#}", unread.error())))?;
    }
    let mut early = BTreeMap::new();
    let mut turn = 0;
    batch.run(None, |index, outcome| {
        early.insert(index, outcome);
        while let Some(outcome) = early.remove(&turn) {
            let input = &batch.items.items[turn].input;
            print_outcome(&print, input, outcome)?;
            turn += 1;
        }
        Ok(())
    })
}

/// Prints the result of a file, or the reason why there is none.
fn print_outcome(
    print: impl Fn(&Path, Result<&Done, &str>) -> Result<()>,
    input: &Path,
    outcome: FileOutcome,
) -> Result<()> {
    match outcome {
        FileOutcome::Done(done) => print(input, Ok(&done)),
        FileOutcome::Failed(error) => print(input, Err(&format!("{error:#}"))),
        FileOutcome::Skipped => Ok(()),
    }
}

/// Refuses a report that would overwrite an input or the list of inputs.
fn keep_off_report(options: &Options, items: &Items) -> Result<()> {
    let Some(report) = &options.report else {
        return Ok(());
    };
    let list = options.selection.files_from.as_deref();
    output_paths::keep_report_off(report, &items.items, list.as_slice()).map_err(usage)
}

/// The result of measuring a set.
#[derive(Debug)]
pub(crate) struct MeasuredSet {
    /// The joint histogram.
    pub set: Set,
    /// Whether every file was counted.
    pub outcome: Outcome,
    /// The indices of the items that failed, in order.
    pub failures: Vec<(usize, anyhow::Error)>,
    /// The digests of the items, if they keep them; none of those that failed.
    pub digests: Vec<Digests>,
}

/// The joint histogram of all `items` after the operations `before`; failures are printed only if
/// `names_failures`. A damaged image is one of them, with `--keep-going` too: zeros in place of what is
/// damaged would be counted as pixels.
pub(crate) fn measure_set(
    before: &[&dyn Operation],
    items: &Items,
    options: &Options,
    common: &Common,
    names_failures: bool,
) -> Result<MeasuredSet> {
    keep_off_report(options, items)?;
    let ops = [before, &[&Histogram]].concat();
    let mut common = common.clone();
    common.reading.keep_going = false;
    let batch = Batch {
        ops: &ops,
        items,
        template: None,
        naming: None,
        options,
        common: &common,
        reads: &[],
        range_file: None,
        prints: false,
        names_failures,
    };
    let mut set = Set::new(options.selection.shard, items.set);
    set.failed = items.unread.len() as u64;
    let mut failures = Vec::new();
    let mut digests = vec![Digests::default(); items.items.len()];
    if options.dry_run {
        let outcome = batch.print_plan(None)?;
        return Ok(MeasuredSet {
            set,
            outcome,
            failures,
            digests,
        });
    }
    let mut first = None;
    let outcome = batch.run(None, |index, outcome| {
        let counts = match outcome {
            FileOutcome::Done(done) => {
                digests[index] = done.digests;
                done.results.counts
            }
            FileOutcome::Skipped => None,
            FileOutcome::Failed(error) => {
                failures.push((index, error));
                None
            }
        };
        match counts {
            Some(counts) => {
                let item = &batch.items.items[index];
                let first = *first.get_or_insert(&item.input);
                check_kind(&set, first, &counts, item)
                    .and_then(|()| set.add(&counts, 1))
                    .with_context(|| format!("cannot count {}", item.input.shown()))
            }
            None => {
                set.failed += 1;
                Ok(())
            }
        }
    })?;
    failures.sort_by_key(|(index, _)| *index);
    Ok(MeasuredSet {
        set,
        outcome,
        failures,
        digests,
    })
}

/// Refuses an image whose pixels have another type than those of the set, whose first file is `first`.
fn check_kind(set: &Set, first: &Path, counts: &Counts, item: &Item) -> Result<()> {
    let Some(all) = &set.counts else {
        return Ok(());
    };
    let path = item.file();
    let pattern = match (path.extension(), first.extension()) {
        (Some(one), other) if Some(one) != other => PathBuf::from("*").with_extension(one),
        _ => path.file_name().map_or_else(|| path.into(), PathBuf::from),
    };
    ensure!(
        all.pixel_type() == counts.pixel_type(),
        "it has {}, but {} has {}: they cannot share a range (process each type in a run of its own, e.g. with --exclude {})",
        histogram::kind(counts),
        first.shown(),
        histogram::kind(all),
        in_shell(&pattern)
    );
    Ok(())
}

impl Batch<'_, '_> {
    /// Makes the output of every file; calls `each` on this thread with each outcome, as soon as it is ready.
    fn convert(
        &self,
        job: Job,
        asked: &Conversion,
        each: impl FnMut(usize, FileOutcome) -> Result<()>,
    ) -> Result<Outcome> {
        let Conversion { inputs, naming, .. } = asked;
        let (options, template) = (self.options, self.template.context("no destination")?);
        let folder = naming.folder();
        let watches = options.watching.watch;
        let shard = options.selection.shard;
        let resume = options.resume || watches || asked.task.is_some();
        if options.dry_run {
            return self.print_plan(Some(&Past::read(folder, job, resume)?));
        }
        match naming {
            // If all inputs are missing, no empty folder is created.
            Naming::Folder { .. } if watches || self.items.has_any() => {
                os::make_folder(folder, template.sync).map_err(|error| {
                    anyhow!(
                        "cannot create the folder {}: {}",
                        folder.shown(),
                        reason(&error)
                    )
                })?
            }
            Naming::Folder { .. } => return self.run(None, each),
            Naming::File(path) => ensure!(
                is_url(path) || folder.is_dir(),
                "cannot write {}: folder {} does not exist",
                path.shown(),
                folder.shown()
            ),
        }
        // For a single output file a journal is read only on request.
        let keeps = resume || matches!(naming, Naming::Folder { .. }) && !options.no_journal;
        let journal = keeps.then(|| Journal::open(folder, shard, job, resume, template.sync));
        let mut journal = journal.transpose()?;
        if watches {
            if let Some(journal) = &mut journal {
                journal.begin_watch();
            }
            os::remove_leftovers(folder::all_below(folder));
            return self.watch(inputs, journal.as_ref(), |_, _| Ok(()));
        }
        if resume {
            let outputs = self.items.items.iter().flat_map(|item| &item.output);
            os::remove_leftovers(outputs.map(|path| os::parent(path).into()).collect());
        }
        self.run(journal.as_ref(), each)
    }

    fn refused(&self, item: &Item, why: &'static str) -> anyhow::Error {
        anyhow!(why).context(Failure::new(chain::verb(self.ops), &item.input))
    }

    /// Prints what was skipped in folders: unusual files by name, the number of all others, or with
    /// `-v` each of them.
    fn print_skipped(&self, progress: &Progress) {
        let passed_over = &self.items.passed_over;
        let named = |found: &&PassedOver| self.common.verbose || found.why.is_odd();
        for PassedOver { path, why } in passed_over.iter().filter(named) {
            progress.mention(&format!("gpuimg: skipped {}: {why}", path.shown()));
        }
        let counted = item::summary(passed_over.iter().filter(|found| !named(found)));
        if !counted.is_empty() {
            progress.mention(&format!("gpuimg: skipped {counted}; -v lists them"));
        }
    }
}

/// The format of a result: the requested one, or that of its extension; `None` for the input's
/// format.
pub(crate) fn format_of(template: &Destination, path: &Path) -> Option<&'static Format> {
    template.format.or_else(|| format::of_extension(path).ok())
}
