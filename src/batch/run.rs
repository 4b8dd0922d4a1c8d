//! Running a batch: workers process the files on all cores and GPUs, and the outcome of each file is
//! printed, counted and recorded.

use super::failures::Failures;
use super::item::Item;
use super::journal::{Journal, Sight, Verdict};
use super::lineage::Lineage;
use super::progress::Progress;
use super::report::{FileOutcome, FileTime, Report};
use super::tally::{Screen, Tally};
use super::workers::{Cores, Workers, numbers};
use super::{Batch, format_of};
use crate::engine::{
    CompleteOutput, Destination, Done, Failure, Resources, RunRecord, process_file,
};
use crate::formats::Reader;
use crate::gpu::Choice;
use crate::gpu::driver::has_driver;
use crate::ops::{Operation, chain};
use crate::os::console;
use crate::os::count;
use crate::os::interrupt;
use crate::os::outcome::Outcome;
use crate::os::reason::{Exists, plain};
use crate::os::url::is_url;
use crate::os::{self, check_regular, fault};
use crate::timing::{Report as Times, Watched};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How many files tell whether the files of a batch are small.
const SAMPLE: usize = 16;

/// Bytes of a small file. An H200 with 16 cores normalized 8,900 PNGs of 512² per second with 32 workers, 11,300 with 48, and 11,900
/// with 64; and 1540 PNGs of 2048² with 16 workers, 1780 with 24, and 1830 with 48.
const SMALL_FILE: u64 = 1_500_000;

/// Helpers for each worker, for small files.
const HELPERS_OF_SMALL_FILES: usize = 3;

/// Files that make a helper worth its start: 64 workers instead of 16 began 0.1 s later on an H200.
const FILES_PER_HELPER: usize = 16;

impl Batch<'_, '_> {
    /// Processes every file; calls `take` on this thread with each outcome, as soon as it is ready.
    pub fn run(
        &self,
        journal: Option<&Journal>,
        mut take: impl FnMut(usize, FileOutcome) -> Result<()>,
    ) -> Result<Outcome> {
        let items = &self.items.items;
        let mut workers = self.workers();
        workers.helpers = self
            .helpers(workers.jobs)
            .min(items.len() / FILES_PER_HELPER);
        let report = self.open_report(self.options.resume)?;
        let to_output = self.options.report.as_deref() == Some(Path::new("-"));
        let unread = &self.items.unread;
        let mut progress = Progress::new(
            items.len() + unread.len(),
            self.options.verbosity,
            self.prints || to_output,
        );
        if self.names_failures {
            self.introduce(&progress, &workers);
        }

        let begun = Instant::now();
        let mut tally = Tally::new(
            &mut progress,
            report,
            self.names_failures,
            self.common.verbose,
            self.common.draws(),
        );
        if self.names_failures && !self.common.verbose {
            tally.failures = Some(Failures::default());
            tally.existing_advice = Some(if self.options.resume {
                "they were not written by an earlier run with these options; use --overwrite to replace them"
            } else {
                "use --resume to skip those of an earlier run, --overwrite to replace them"
            });
        }
        if journal.is_some() {
            interrupt::expect(items.len());
        }
        for unread in unread {
            let item = Item::new(unread.path.clone(), unread.path.clone());
            let failed = FileOutcome::Failed(unread.error());
            tally.enter(&item, failed, FileTime::default())?;
        }
        let mut fatal = None;
        let threads = workers.threads(items.len());
        let next = numbers(items.len());
        workers.gpus().expect(items.len(), workers.jobs);
        workers.each(
            threads,
            Cores::Even,
            |_| next(),
            |index, resources| {
                let start = Instant::now();
                let outcome = self.one(self.ops, &items[index], resources, journal);
                (index, outcome, start.elapsed())
            },
            |(index, outcome, work)| {
                workers.gpus().expect(items.len() - index, workers.jobs);
                let latency = None;
                if !matches!(outcome, FileOutcome::Failed(_)) {
                    interrupt::one_done();
                }
                let entered = tally.enter(&items[index], outcome, FileTime { work, latency });
                if let Err(error) = entered.and_then(|outcome| take(index, outcome)) {
                    workers.stop();
                    fatal.get_or_insert(error);
                }
            },
        )?;
        interrupt::expect(0);
        tally.finish();
        match fatal {
            // A closed standard output does not hide the failure of earlier files.
            Some(error) if tally.times.files.failed > 0 && error.is::<console::ReaderGone>() => {
                return Ok(Outcome::SomeFailed);
            }
            Some(error) => return Err(error),
            None => {}
        }
        tally.finish_report(&self.common.reading)?;
        let (outcome, times) = (tally.outcome(), tally.times);
        let skipped = times.files.skipped;
        if self.names_failures {
            progress.finish(skipped);
        }
        let files = items.len() + unread.len();
        self.tell_times(times, files, &workers, threads, begun.elapsed(), None)?;
        Ok(outcome)
    }

    /// The threads and the memory of the batch.
    pub(super) fn workers(&self) -> Workers {
        let (options, common) = (self.options, self.common);
        let (jobs, memory) = (options.threads(), options.memory());
        let gpu_times = common.stats.is_some() || options.report.is_some();
        // `visible` has hidden those GPUs that would have too little to do.
        let gpus = (usize::MAX, gpu_times);
        Workers::new(common.device.choice, jobs, memory, common.reading, gpus)
    }

    /// The number of helpers beside so many workers; none if the user set `--jobs`. Large files get fewer, because each helper pins
    /// memory of the size of an image.
    fn helpers(&self, workers: usize) -> usize {
        let is_possible = match self.common.device.choice {
            Choice::Cpu => false,
            Choice::Auto => has_driver(),
            Choice::Gpu(_) => true,
        };
        if self.options.jobs.is_some() || !is_possible {
            return 0;
        }
        let items = &self.items.items;
        let sample = items.iter().step_by(items.len().div_ceil(SAMPLE).max(1));
        let (count, bytes) = sample.fold((0, 0), |(count, bytes), item| {
            (count + 1, bytes + item.length().unwrap_or(0))
        });
        if bytes <= count * SMALL_FILE {
            HELPERS_OF_SMALL_FILES * workers
        } else {
            workers / 2
        }
    }

    /// Processes one file, unless it is already done.
    pub(super) fn one(
        &self,
        ops: &[&dyn Operation],
        item: &Item,
        resources: &Resources,
        journal: Option<&Journal>,
    ) -> FileOutcome {
        match self.attempt(ops, item, resources, journal) {
            Ok(Some(done)) => FileOutcome::Done(Box::new(done)),
            Ok(None) => FileOutcome::Skipped,
            // Another run may be working on the same folder.
            Err(_) if journal.is_some_and(|it| it.was_done_meanwhile(item)) => FileOutcome::Skipped,
            Err(error) => FileOutcome::Failed(error),
        }
    }

    /// Processes one file; `None` if it is done already.
    fn attempt(
        &self,
        ops: &[&dyn Operation],
        item: &Item,
        resources: &Resources,
        journal: Option<&Journal>,
    ) -> Result<Option<Done>> {
        let resources = &Resources {
            require_regular_file: !item.may_be_stream,
            position: item.position,
            ..*resources
        };
        let passes = self.items.passes.as_ref();
        let sha256 = self.options.report.is_some() || self.items.keeps_digests;
        let Some((template, path)) = self.template.zip(item.output.as_ref()) else {
            let account = RunRecord {
                passes,
                sha256,
                ..RunRecord::NONE
            };
            return process_file(ops, &item.input, None, resources, account).map(Some);
        };
        let sight = Sight::inspect(item);
        let verdict = match journal {
            Some(journal) => journal.verdict(item, &sight, template.overwrite)?,
            None => sight.verdict(template.overwrite),
        };
        let replaced = match verdict {
            Verdict::Done => return Ok(None),
            Verdict::Make(replaced) => replaced,
            Verdict::Refused(why) => return Err(self.refused(item, why)),
        };
        // Before the input is read, and in the one form that can be counted.
        if sight.output.is_some() && !replaced.something() {
            // Which --overwrite would not replace.
            if template.folder.is_some() {
                check_regular(path).with_context(|| Failure::new("write", path))?;
            }
            return Err(Exists).with_context(|| Failure::new("write", path));
        }
        let destination = Destination {
            path: path.clone(),
            format: format_of(template, path),
            overwrite: replaced.something(),
            ..template.clone()
        };
        // No folder is created for a missing input.
        if item.input != Path::new("-") && !is_url(&item.input) && sight.input.is_none() {
            fault::metadata(item.file())
                .map_err(plain)
                .with_context(|| Failure::new("read", &item.input))?;
        }
        let folder = os::parent(path);
        if !folder.is_dir() && !is_url(path) && !item.is_stream() {
            // No folder is created for a file that is not an image.
            let unread = || Failure::new("read", &item.input);
            let source = item.source().with_context(unread)?;
            Reader::open(&source, &resources.reading).with_context(unread)?;
        }
        destination
            .make_folder()
            .with_context(|| Failure::new("write", path))?;
        let announce = |finished: &CompleteOutput| {
            replaced.check(path)?;
            match journal {
                Some(journal) => journal.announce(item, finished),
                None => Ok(()),
            }
        };
        let output = Some(&destination);
        let account = RunRecord {
            passes,
            digests: journal.is_some(),
            sha256,
            announce: &announce,
        };
        process_file(ops, &item.input, output, resources, account).map(Some)
    }

    /// Opens the file of `--report`; `append` keeps what is in it.
    pub(super) fn open_report(&self, append: bool) -> Result<Option<Report>> {
        let overwrite = self.template.is_some_and(|template| template.overwrite);
        let lineage = Lineage::new(self.ops, &self.common.typed, self.reads);
        let open = |path: &PathBuf| Report::open(path, append, overwrite, lineage);
        self.options.report.as_ref().map(open).transpose()
    }

    /// Prints what the batch will do, and its memory budget.
    fn introduce(&self, progress: &Progress, workers: &Workers) {
        let count = self.items.items.len();
        progress.mention(&format!(
            "gpuimg: {}, {}, up to {} of memory",
            count::plural(count, "file"),
            count::plural(workers.threads(count), "thread"),
            count::size(self.options.memory())
        ));
        self.print_skipped(progress);
    }

    /// Prints the times of a run with `--stats`; a watch has its latencies too.
    pub(super) fn tell_times(
        &self,
        mut times: Times,
        files: usize,
        workers: &Workers,
        threads: usize,
        wall: Duration,
        watch: Option<Watched>,
    ) -> Result<()> {
        let Some(form) = &self.common.stats else {
            return Ok(());
        };
        times.files.files = files;
        times.verb = chain::name(self.ops);
        times.threads = threads;
        times.title = format!(
            "{}: {} on {}",
            chain::title(self.ops),
            count::plural(files, "file"),
            count::plural(threads, "thread")
        );
        times.peaks = workers.gpus().peaks();
        times.sets = workers.gpus().set_counts();
        times.wall = wall;
        times.watch = watch;
        form.deliver(&times)
    }
}
