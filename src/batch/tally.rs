//! The outcomes of the files of a run: each is printed, counted and recorded.

use super::failures::Failures;
use super::item::Item;
use super::report::{FileOutcome, FileTime, Report};
use crate::engine::Done;
use crate::formats::Reading;
use crate::gpu;
use crate::os::interrupt;
use crate::os::name::Shown;
use crate::os::outcome::Outcome;
use crate::os::reason::Exists;
use crate::timing::{Report as Times, Track};
use anyhow::Result;
use std::collections::BTreeMap;

/// The display of progress on standard error.
pub trait Screen {
    /// Counts one finished file: `bytes` of samples, or a failure.
    fn add(&mut self, item: &Item, bytes: u64, failed: bool);
    /// Prints a line.
    fn say(&self, line: &str);
    /// As `say`, unless `--quiet`.
    fn mention(&self, line: &str);
}

/// The counts of a run so far, and where each outcome is printed and recorded.
pub struct Tally<'a, S> {
    /// The progress on standard error.
    pub screen: &'a mut S,
    /// The file of `--report`.
    pub report: Option<Report>,
    /// Whether failures are printed.
    pub names_failures: bool,
    /// Whether notes and devices are printed.
    pub verbose: bool,
    /// The stages of all files, and how many were done, skipped, or failed.
    pub times: Times,
    /// Whether the timeline of every file is kept, for a page.
    draws: bool,
    /// What to do about outputs that exist already, if `finish` prints their number instead of each.
    pub existing_advice: Option<&'static str>,
    /// The failures that are not printed yet; `None` if each is printed at once.
    pub failures: Option<Failures>,
    /// The number of such outputs, and the first in the order of the inputs, with its position.
    existing: Option<(usize, (u64, String))>,
    /// How many images each advice was given for.
    hints: BTreeMap<&'static str, usize>,
}

impl<'a, S: Screen> Tally<'a, S> {
    /// A tally with all counts at 0.
    pub fn new(
        screen: &'a mut S,
        report: Option<Report>,
        names_failures: bool,
        verbose: bool,
        draws: bool,
    ) -> Tally<'a, S> {
        Tally {
            screen,
            report,
            names_failures,
            verbose,
            times: Times::default(),
            draws,
            existing_advice: None,
            failures: None,
            existing: None,
            hints: BTreeMap::new(),
        }
    }

    /// Records the outcome of a file, and returns it.
    ///
    /// # Errors
    /// The report cannot be written, or the requested GPU cannot be used, in which case every other
    /// file would fail as well.
    pub fn enter(
        &mut self,
        item: &Item,
        outcome: FileOutcome,
        time: FileTime,
    ) -> Result<FileOutcome> {
        let recorded = match &mut self.report {
            Some(report) => report.add(item, &outcome, time),
            None => Ok(()),
        };
        if !matches!(outcome, FileOutcome::Failed(_)) {
            let held = self.failures.as_mut().map(Failures::release);
            self.say(held.unwrap_or_default());
            interrupt::hold(self.held());
        }
        let files = &mut self.times.files;
        match &outcome {
            FileOutcome::Done(done) => {
                let damaged = done.damage.is_some();
                files.done += 1;
                files.failed += usize::from(damaged);
                self.time(item, done);
                self.mention(item, done);
                self.screen.add(item, done.shape.bytes() as u64, damaged);
            }
            FileOutcome::Skipped => {
                files.skipped += 1;
                self.screen.add(item, 0, false);
            }
            FileOutcome::Failed(error) if error.is::<gpu::Unusable>() => {}
            FileOutcome::Failed(error) => {
                files.failed += 1;
                self.screen.add(item, 0, true);
                let position = item.position.map_or(0, |position| position.index);
                if let Some(output) = (item.output.as_ref())
                    .filter(|_| self.existing_advice.is_some() && error.is::<Exists>())
                {
                    let output = (position, output.shown().to_string());
                    let (count, first) = self.existing.take().unwrap_or((0, output.clone()));
                    self.existing = Some((count + 1, first.min(output)));
                } else if self.names_failures {
                    let lines = match &mut self.failures {
                        Some(failures) => failures.add(position, error),
                        None => vec![format!("{error:#}")],
                    };
                    self.say(lines);
                }
                interrupt::hold(self.held());
            }
        }
        match outcome {
            FileOutcome::Failed(error) if error.is::<gpu::Unusable>() => Err(error),
            outcome => recorded.map(|()| outcome),
        }
    }

    /// Completes the report.
    ///
    /// # Errors
    /// A page that cannot be written.
    pub fn finish_report(&mut self, reading: &Reading) -> Result<()> {
        let report = self.report.take();
        report.map_or(Ok(()), |report| report.finish(reading))
    }

    fn time(&mut self, item: &Item, done: &Done) {
        let pages = done.results.pages.len();
        self.times.add(&done.timeline, &done.device, pages);
        self.times.add_clamped(done.results.clamped());
        if self.draws {
            self.times.tracks.push(Track {
                name: item.input.shown().into_owned(),
                timeline: done.timeline.clone(),
            });
        }
    }

    fn mention(&mut self, item: &Item, done: &Done) {
        let input = item.input.shown().into_owned();
        for message in done.messages(self.verbose) {
            // A hint that may be given for every image of a batch is given for the first.
            if let Some(hint) = message.hint {
                let count = self.hints.entry(hint.advice()).or_default();
                *count += 1;
                if *count > 1 && !self.verbose {
                    continue;
                }
            }
            let sentence = message.text.replace("{file}", &input);
            self.screen.mention(&format!("gpuimg: {sentence}"));
        }
        if self.verbose {
            self.screen
                .mention(&format!("gpuimg: {input}: {}, {}", done.shape, done.device));
        }
    }

    fn say(&self, lines: impl IntoIterator<Item = String>) {
        for line in lines {
            self.screen.say(&format!("gpuimg: {line}"));
        }
    }

    /// The failures that were not printed, and the number of existing outputs, in one line each.
    fn held(&self) -> Vec<String> {
        let all_failed = self.failures.as_ref().and_then(Failures::line);
        let existing = self.existing.as_ref().map(|existing| match existing {
            (1, (_, output)) => format!("cannot write {output}: {Exists}"),
            (count, (_, first)) => format!(
                "{count} outputs already exist (first: {first}): {}",
                self.existing_advice.unwrap_or_default()
            ),
        });
        all_failed.into_iter().chain(existing).collect()
    }

    /// Prints the failures that were held back and the number of existing outputs in one line each, and the number of images for
    /// each shared warning.
    pub fn finish(&mut self) {
        let held = self.held();
        interrupt::hold([]);
        self.say(held);
        for (advice, count) in &self.hints {
            if *count > 1 && !self.verbose {
                self.screen.mention(&format!(
                    "gpuimg: warning: {count} images in total: {advice}"
                ));
            }
        }
    }

    /// Whether every file was done.
    pub fn outcome(&self) -> Outcome {
        match self.times.files.failed {
            0 => Outcome::Done,
            _ => Outcome::SomeFailed,
        }
    }
}
