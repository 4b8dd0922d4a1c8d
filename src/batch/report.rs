//! `--report`: one JSON object a line for every file of a batch.

use super::item::Item;
use super::tally::FileTime;
use crate::pipeline::Done;
use anyhow::{Context, Result};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

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
    pub fn add(&mut self, item: &Item, outcome: &FileOutcome, time: FileTime) -> Result<()> {
        let line = serde_json::to_string(&Line::new(item, outcome, time))? + "\n";
        self.0
            .write_all(line.as_bytes())
            .context("cannot write the report")
    }
}

/// The JSON object of a file.
#[derive(Serialize)]
struct Line<'a> {
    schema: u32,
    input: Cow<'a, str>,
    output: Option<Cow<'a, str>>,
    seconds: f64,
    /// Seconds from the moment when the input was whole, of a watch.
    #[serde(skip_serializing_if = "Option::is_none")]
    latency: Option<f64>,
    status: Status,
    /// The reason of a failure, or the place of the damage.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(flatten)]
    image: Option<ImageRecord<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Done,
    Damaged,
    Skipped,
    Failed,
}

/// The fields of a processed file: the shape of its first page, and the ranges of all pages.
#[derive(Serialize)]
struct ImageRecord<'a> {
    width: usize,
    height: usize,
    channels: usize,
    depth: u32,
    ranges: &'a [(i32, i32)],
    device: &'a str,
    warnings: &'a [String],
    /// Seconds by the stage's name.
    stages: BTreeMap<&'a str, f64>,
}

impl<'a> Line<'a> {
    fn new(item: &'a Item, outcome: &'a FileOutcome, time: FileTime) -> Line<'a> {
        let (status, error, image) = match outcome {
            FileOutcome::Skipped => (Status::Skipped, None, None),
            FileOutcome::Failed(error) => (Status::Failed, Some(format!("{error:#}")), None),
            FileOutcome::Done(done) => {
                let status = match done.damage {
                    None => Status::Done,
                    Some(_) => Status::Damaged,
                };
                (status, done.damage.clone(), Some(ImageRecord::new(done)))
            }
        };
        Line {
            schema: SCHEMA,
            input: item.input.to_string_lossy(),
            output: item.output.as_ref().map(|path| path.to_string_lossy()),
            seconds: time.work.as_secs_f64(),
            latency: time.latency.map(|latency| latency.as_secs_f64()),
            status,
            error,
            image,
        }
    }
}

impl ImageRecord<'_> {
    fn new(done: &Done) -> ImageRecord<'_> {
        let spans = done.timeline.spans().into_iter();
        ImageRecord {
            width: done.shape.width,
            height: done.shape.height,
            channels: done.shape.channels,
            depth: done.shape.depth.bits(),
            ranges: &done.found.ranges,
            device: &done.device,
            warnings: &done.warnings,
            stages: spans
                .map(|span| (span.name.as_str(), span.time.as_secs_f64()))
                .collect(),
        }
    }
}
