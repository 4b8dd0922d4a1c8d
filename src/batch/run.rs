//! Running a batch: workers process the files on all cores and GPUs, and the outcome of each file is
//! printed, counted and recorded.

use super::item::Item;
use super::journal::{Journal, Sight, Verdict};
use super::plan;
use super::progress::Progress;
use super::report::{FileOutcome, Report};
use super::workers::Workers;
use super::{Batch, format_of};
use crate::codec::Reader;
use crate::console;
use crate::device::{self, Choice, estimate, visible};
use crate::files::{self, Identity, reason};
use crate::outcome::Outcome;
use crate::pipeline::{Destination, Done, Resources, one_image, one_image_announced};
use crate::timing::page::Track;
use crate::timing::{FileCounts, Report as Times};
use anyhow::{Context, Result, anyhow};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

impl Batch<'_> {
    /// Processes every file; calls `take` on this thread with each outcome, as soon as it is ready.
    pub fn run(
        &self,
        journal: Option<&Journal>,
        mut take: impl FnMut(usize, FileOutcome) -> Result<()>,
    ) -> Result<Outcome> {
        let items = &self.items.items;
        let workers = self.workers();
        let mut report = self.open_report()?;
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
        let (mut times, mut skipped, mut failed) = (Times::default(), 0, unread.len());
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
                let reported = report
                    .as_mut()
                    .map_or(Ok(()), |report| report.add(item, &outcome, time));
                let taken = match outcome {
                    FileOutcome::Done(done) => {
                        times.add(&done.timeline, &done.device, done.found.pages.len());
                        times.files.done += 1;
                        if self.common.draws() {
                            times.tracks.push(Track {
                                name: item.input.display().to_string(),
                                timeline: done.timeline.clone(),
                            });
                        }
                        self.mention(item, &done, &progress);
                        self.consider_gpus(&workers, &done, items.len() - index);
                        progress.add(done.shape.bytes() as u64, done.damage.is_some());
                        failed += usize::from(done.damage.is_some());
                        take(index, FileOutcome::Done(done))
                    }
                    FileOutcome::Skipped => {
                        skipped += 1;
                        progress.add(0, false);
                        take(index, FileOutcome::Skipped)
                    }
                    // Without the requested GPU every other file would fail as well.
                    FileOutcome::Failed(error) if error.is::<device::Unusable>() => Err(error),
                    FileOutcome::Failed(error) => {
                        failed += 1;
                        progress.add(0, true);
                        if self.names_failures {
                            progress.say(&format!("gpuimg: {error:#}"));
                        }
                        take(index, FileOutcome::Failed(error))
                    }
                };
                if let Err(error) = reported.and(taken) {
                    workers.stop();
                    fatal.get_or_insert(error);
                }
            },
        )?;
        match fatal {
            // A closed standard output does not hide the failure of earlier files.
            Some(error) if failed > 0 && error.is::<console::ReaderGone>() => {
                return Ok(Outcome::SomeFailed);
            }
            Some(error) => return Err(error),
            None => {}
        }
        if self.names_failures {
            progress.finish(skipped);
        }
        if let Some(form) = &self.common.stats {
            let files = items.len() + unread.len();
            times.files = FileCounts {
                files,
                skipped,
                failed,
                ..times.files
            };
            times.verb = self.op.name();
            times.threads = workers.threads(items.len());
            times.title = format!(
                "{}: {} on {}",
                times.verb,
                plan::counted(files, "file"),
                plan::counted(times.threads, "thread")
            );
            times.peaks = workers.gpus.peaks();
            times.wall = begun.elapsed();
            form.deliver(&times)?;
        }
        Ok(match failed {
            0 => Outcome::Done,
            _ => Outcome::SomeFailed,
        })
    }

    /// The threads and the memory of the batch.
    pub(super) fn workers(&self) -> Workers {
        let (options, common) = (self.options, self.common);
        let (jobs, memory) = (options.threads(), options.memory());
        let gpu_times = common.stats.is_some() || options.report.is_some();
        let len = |item: &Item| fs::metadata(&item.input).map_or(0, |file| file.len());
        let bytes = match visible::several() {
            true => self.items.items.iter().map(len).sum(),
            false => 0,
        };
        let gpus = (visible::worth(bytes), gpu_times);
        Workers::new(common.device.choice, jobs, memory, common.reading, gpus)
    }

    /// Processes one file, unless it is done already.
    fn one(&self, item: &Item, resources: &Resources, journal: Option<&Journal>) -> FileOutcome {
        match self.attempt(item, resources, journal) {
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
        // No folder is made for a missing input.
        if item.input != Path::new("-") && sight.input.is_none() {
            fs::metadata(&item.input)
                .map_err(|error| anyhow!(reason(&error)))
                .with_context(|| format!("cannot read {}", item.input.display()))?;
        }
        let folder = files::parent(path);
        if !folder.is_dir() && !item.is_stream() {
            // No folder is made for a file that is no image.
            let unread = || format!("cannot read {}", item.input.display());
            let source = item.source().with_context(unread)?;
            Reader::open(&source, &resources.reading).with_context(unread)?;
        }
        files::make_folder(folder, template.sync)
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

    /// With `auto`, starts the GPUs once they would save enough time on the remaining images.
    fn consider_gpus(&self, workers: &Workers, done: &Done, left: usize) {
        if self.common.device.choice == Choice::Auto {
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

    /// Prints what the batch will do, and its memory budget.
    fn introduce(&self, progress: &Progress, workers: &Workers) {
        let count = self.items.items.len();
        progress.mention(&format!(
            "gpuimg: {} on {}, within {} of memory",
            plan::counted(count, "file"),
            plan::counted(workers.threads(count), "thread"),
            plan::size(self.options.memory())
        ));
        self.tell_passed_over(progress);
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
}
