//! The line of `--report` about one output that was made of several inputs: it names all of them, with one digest.

use super::item::{Item, Items};
use super::lineage::{FilesRead, INPUTS, Lineage, digests};
use super::output_paths;
use super::report::{FileOutcome, FileTime, Report};
use crate::engine::options::TypedCommand;
use crate::engine::{Digests, Done};
use crate::formats::Reading;
use crate::os::outcome::usage;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The report of a run, whose output is yet to be made.
pub struct CombinedReport {
    report: Report,
    /// The output, with the first input.
    item: Item,
    reading: Reading,
    start: Instant,
}

/// An output that is made of several inputs.
#[derive(Clone, Copy)]
pub struct CombinedOutput<'a> {
    /// Its path.
    pub path: &'a Path,
    /// Whether it is replaced, and so is an existing report.
    pub overwrite: bool,
    /// The inputs, in the order in which they are combined.
    pub inputs: &'a Items,
    /// The files that it depends on besides them.
    pub reads: &'a [FilesRead],
    /// The command that makes it.
    pub command: &'a TypedCommand,
    /// How the inputs are read.
    pub reading: &'a Reading,
}

impl CombinedReport {
    /// Opens the report at `to`, if there is to be one, and reads the inputs for their digests.
    ///
    /// # Errors
    /// An input that can be read only once or not at all, and a report that cannot be written.
    pub fn open(to: Option<&PathBuf>, output: &CombinedOutput) -> Result<Option<CombinedReport>> {
        let report = to.map(|to| CombinedReport::open_at(to, output));
        report.transpose()
    }

    fn open_at(to: &Path, output: &CombinedOutput) -> Result<CombinedReport> {
        let CombinedOutput {
            path,
            overwrite,
            inputs,
            reads,
            command,
            reading,
        } = *output;
        let check = || {
            inputs.can_be_read_twice("--report")?;
            ensure!(
                !reading.keep_going,
                "--report of a single output names all of its inputs, so --keep-going cannot leave some out"
            );
            ensure!(
                to != Path::new("-") || path != Path::new("-"),
                "--report - and the image would both use standard output: write the report to a file"
            );
            output_paths::keep_report_off(to, &inputs.items, &[path])
        };
        check().map_err(usage)?;
        let start = Instant::now();
        let all = FilesRead::new(INPUTS, inputs, reading)?;
        let reads = [&[all], reads].concat();
        let paths = inputs.items.iter().map(|item| item.input.as_path());
        let lineage = Lineage::new(&[], command, &reads).of_inputs(paths);
        let first = inputs.items.first().context("there is no input")?;
        // A Zarr store has no digest, so nothing that is made of one can be proven.
        let has_store = inputs.items.iter().any(|item| item.file().is_dir());
        let digests = match has_store {
            true => Digests::default(),
            false => digests(first, reading)?,
        };
        Ok(CombinedReport {
            report: Report::open(to, false, overwrite, lineage)?,
            item: Item {
                output: Some(path.into()),
                digests,
                ..Item::new(first.input.clone(), first.key.clone())
            },
            reading: *reading,
            start,
        })
    }

    /// Adds the line of the output, which has its name.
    ///
    /// # Errors
    /// An output that cannot be read, and a report that cannot be written.
    pub fn add(mut self, mut done: Done) -> Result<()> {
        let output = self.item.output.clone().unwrap_or_default();
        let is_file = output.is_file();
        done.digests = Digests {
            output: match is_file {
                true => digests(&Item::listed(output.clone(), output), &Reading::default())?.input,
                // A stream, or a Zarr store.
                false => None,
            },
            ..self.item.digests
        };
        let time = FileTime {
            work: self.start.elapsed(),
            latency: None,
        };
        let outcome = FileOutcome::Done(Box::new(done));
        self.report.add(&self.item, &outcome, time)?;
        self.report.finish(&self.reading)
    }
}
