//! `--report`: one JSON object a line for every file of a batch.

use super::item::Item;
use crate::pipeline::Done;
use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// Version of the JSON objects.
const SCHEMA: u32 = 1;

/// The outcome for one file.
#[derive(Debug)]
pub enum FileOutcome {
    /// It was processed.
    Done(Box<Done>),
    /// An earlier run processed it, and nothing has changed since.
    Skipped,
    /// It failed.
    Failed(anyhow::Error),
}

/// The open report file.
#[derive(Debug)]
pub struct Report(File);

impl Report {
    /// Creates a report at `path`, or appends to it.
    pub fn open(path: &Path, append: bool, overwrite: bool) -> Result<Report> {
        let mut options = OpenOptions::new();
        match (append, overwrite) {
            (true, _) => options.create(true).append(true),
            (false, true) => options.create(true).write(true).truncate(true),
            (false, false) => options.create_new(true).write(true),
        };
        let file = options.open(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                anyhow::anyhow!("it exists already (--overwrite replaces it, --resume goes on)")
            }
            _ => error.into(),
        });
        Ok(Report(file.with_context(|| {
            format!("cannot write {}", path.display())
        })?))
    }

    /// Adds the line of a file that took `time`.
    pub fn add(&mut self, item: &Item, outcome: &FileOutcome, time: Duration) -> Result<()> {
        let line = format!("{}\n", line(item, outcome, time));
        self.0
            .write_all(line.as_bytes())
            .context("cannot write the report")
    }
}

/// The JSON object for a file.
pub fn line(item: &Item, outcome: &FileOutcome, time: Duration) -> Value {
    let mut line = json!({
        "schema": SCHEMA,
        "input": item.input.to_string_lossy(),
        "output": item.output.as_ref().map(|path| path.to_string_lossy()),
        "seconds": time.as_secs_f64(),
    });
    match outcome {
        FileOutcome::Skipped => line["status"] = "skipped".into(),
        FileOutcome::Failed(error) => {
            line["status"] = "failed".into();
            line["error"] = format!("{error:#}").into();
        }
        FileOutcome::Done(done) => {
            line["status"] = match &done.damage {
                None => "done".into(),
                Some(damage) => {
                    line["error"] = damage.as_str().into();
                    "damaged".into()
                }
            };
            line["width"] = done.shape.width.into();
            line["height"] = done.shape.height.into();
            line["channels"] = done.shape.channels.into();
            line["depth"] = done.shape.depth.bits().into();
            line["ranges"] = json!(done.found.ranges);
            line["device"] = done.device.as_str().into();
            line["warnings"] = json!(done.warnings);
            let stages: Map<String, Value> = done
                .timeline
                .spans()
                .into_iter()
                .map(|span| (span.name.clone(), span.time.as_secs_f64().into()))
                .collect();
            line["stages"] = stages.into();
        }
    }
    line
}
