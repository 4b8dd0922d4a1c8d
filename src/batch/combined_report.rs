//! The line of `--report` about one output that was made of several inputs: it names all of them, with one digest.

use super::item::{Item, Items};
use super::lineage::{FilesRead, INPUTS, Lineage, digests};
use super::output_paths;
use super::report::{FileOutcome, FileTime, Report};
use crate::engine::options::Common;
use crate::engine::{Digests, Done};
use crate::formats::Reading;
use crate::os::outcome::usage;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::time::Instant;

/// The report of a run, whose output is yet to be made.
pub struct CombinedReport {
    report: Report,
    /// The output, with the first input.
    item: Item,
    reading: Reading,
    start: Instant,
}

/// A file to which a line is added.
#[derive(Clone, Copy)]
pub struct ReportFile<'a> {
    /// Its path.
    pub path: &'a Path,
    /// Whether it is replaced.
    pub overwrite: bool,
}

impl CombinedReport {
    /// Opens the report, and reads the inputs for their digests. `reads` are the files that the output depends on besides them.
    ///
    /// # Errors
    /// An input that can be read only once or not at all, and a report that cannot be written.
    pub fn open(
        to: ReportFile,
        inputs: &Items,
        output: &Path,
        reads: &[FilesRead],
        common: &Common,
    ) -> Result<CombinedReport> {
        let check = || {
            inputs.can_be_read_twice("--report")?;
            ensure!(
                !common.reading.keep_going,
                "--report of a single output names all of its inputs, so --keep-going cannot leave some out"
            );
            ensure!(
                to.path != Path::new("-") || output != Path::new("-"),
                "--report - and the image would both use standard output: write the report to a file"
            );
            output_paths::keep_report_off(to.path, &inputs.items, &[output])
        };
        check().map_err(usage)?;
        let start = Instant::now();
        let all = FilesRead::new(INPUTS, inputs, &common.reading)?;
        let reads = [&[all], reads].concat();
        let paths = inputs.items.iter().map(|item| item.input.as_path());
        let lineage = Lineage::new(&[], common, &reads).of_inputs(paths);
        let first = inputs.items.first().context("there is no input")?;
        // A Zarr store has no digest, so nothing that is made of one can be proven.
        let has_store = inputs.items.iter().any(|item| item.file().is_dir());
        let digests = match has_store {
            true => Digests::default(),
            false => digests(first, &common.reading)?,
        };
        Ok(CombinedReport {
            report: Report::open(to.path, false, to.overwrite, lineage)?,
            item: Item {
                output: Some(output.into()),
                digests,
                ..Item::new(first.input.clone(), first.key.clone())
            },
            reading: common.reading,
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
