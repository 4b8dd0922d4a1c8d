//! `--report`: one JSON object a line for every file of a batch. A report that exists is appended to, as
//! a log is, and with `--overwrite` replaced; another file is not touched. A report whose name ends in `.html` is a page
//! (`sheet`), which is written at the end.

use super::item::Item;
use super::lineage::Lineage;
use super::sheet::{self, FAILED, FileRecord, Sheet};
use crate::engine::{Digests, Done, PageResult, Warning};
use crate::formats::Reading;
use crate::image::number::Number;
use crate::ops::Position;
use crate::os::console;
use crate::os::fault::{self, Kind, Reads};
use crate::os::name::{self, Shown};
use crate::os::reason::plain;
use crate::os::system;
use crate::os::{Sha256, open_stream};
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Version of the JSON objects.
const SCHEMA: u32 = 2;

/// The time that one file took.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileTime {
    /// From the start of processing to the name of its output.
    pub work: Duration,
    /// From the moment when the input was complete, if it arrived during the run.
    pub latency: Option<Duration>,
}

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

impl FileOutcome {
    /// The status of the file in a report.
    fn status(&self) -> &'static str {
        match self {
            FileOutcome::Skipped => "skipped",
            FileOutcome::Failed(_) => FAILED,
            FileOutcome::Done(done) if done.damage.is_some() => "damaged",
            FileOutcome::Done(_) => "done",
        }
    }

    /// The reason of a failure, or the place of the damage.
    fn error(&self) -> Option<String> {
        match self {
            FileOutcome::Skipped => None,
            FileOutcome::Failed(error) => Some(format!("{error:#}")),
            FileOutcome::Done(done) => done.damage.clone(),
        }
    }
}

/// An open report.
#[derive(Debug)]
pub struct Report {
    to: Sink,
    lineage: Lineage,
}

#[derive(Debug)]
enum Sink {
    File(File),
    /// Standard output.
    Output,
    /// A page, and the files that will be on it.
    Page(PathBuf, Vec<FileRecord>),
}

impl Report {
    /// Creates a report at `path`, `-` being standard output, or appends to one that is there, as
    /// `append` and `overwrite` say. Every line has the fields of `lineage`.
    pub fn open(path: &Path, append: bool, overwrite: bool, lineage: Lineage) -> Result<Report> {
        let to = Sink::open(path, append, overwrite)?;
        Ok(Report { to, lineage })
    }

    /// Adds the line of a file that took `time`.
    pub fn add(&mut self, item: &Item, outcome: &FileOutcome, time: FileTime) -> Result<()> {
        if let Sink::Page(_, records) = &mut self.to {
            records.push(record(item, outcome, time));
            return Ok(());
        }
        let line = Line::new(item, outcome, time, &self.lineage);
        let line = serde_json::to_string(&line)? + "\n";
        let written = match &mut self.to {
            Sink::File(file) => fault::point(Kind::Write, Path::new("--report"))
                .and_then(|()| file.write_all(line.as_bytes())),
            Sink::Output => console::output_bytes(console::printable_lines(&line).as_bytes()),
            Sink::Page(..) => Ok(()),
        };
        written.map_err(plain).context("cannot write the report")
    }

    /// Writes the page, if the report is one. Results are read again for it; `reading` says how inputs are read.
    ///
    /// # Errors
    /// A page that cannot be written.
    pub fn finish(self, reading: &Reading) -> Result<()> {
        match self.to {
            Sink::Page(path, records) => {
                Sheet::of_run(records, reading).write(&sheet::REPORT, &path)
            }
            Sink::File(_) | Sink::Output => Ok(()),
        }
    }
}

impl Sink {
    fn open(path: &Path, append: bool, overwrite: bool) -> Result<Sink> {
        if path == Path::new("-") {
            return Ok(Sink::Output);
        }
        if is_page(path) {
            sheet::REPORT.check(path)?;
            return Ok(Sink::Page(path.into(), Vec::new()));
        }
        let open = || -> Result<File> {
            if fault::metadata(path).is_ok_and(|about| !about.is_file() && !about.is_dir()) {
                return open_stream(path);
            }
            let mut options = OpenOptions::new();
            // By now the name may be that of a FIFO, whose opening waits for a reader.
            system::without_waiting(&mut options);
            if overwrite && !append {
                options.create(true).write(true).truncate(true);
                return regular(path, options);
            }
            options.read(true).append(true);
            let mut file = match regular(path, options.clone()) {
                Err(error) if is_missing(&error) => {
                    return regular(path, options.create_new(true).clone());
                }
                opened => opened?,
            };
            // Of the open file, not of another that may have its name by now.
            ensure!(
                append || begins_as_report(&mut file, path)?,
                "it exists but is not a report: choose another name"
            );
            if is_cut(&mut file, path)? {
                fault::point(Kind::Write, path).map_err(plain)?;
                file.write_all(b"\n").map_err(plain)?;
            }
            Ok(file)
        };
        let opened = open().map_err(|error| match error.downcast::<io::Error>() {
            Ok(error) => plain(error),
            Err(error) => error,
        });
        let file = opened.with_context(|| format!("cannot write {}", path.shown()))?;
        Ok(Sink::File(file))
    }
}

/// Whether a report with this name is a page.
pub fn is_page(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("html"))
}

/// What the page says of a file.
fn record(item: &Item, outcome: &FileOutcome, time: FileTime) -> FileRecord {
    let warnings = match outcome {
        FileOutcome::Done(done) => &done.warnings[..],
        FileOutcome::Skipped | FileOutcome::Failed(_) => &[],
    };
    FileRecord {
        input: item.input.clone(),
        output: item.output.clone(),
        status: outcome.status(),
        seconds: time.work.as_secs_f64(),
        error: outcome.error(),
        warnings: warnings
            .iter()
            .map(|warning| warning.text.clone())
            .collect(),
    }
}

/// Opens a regular file, as `options` say.
fn regular(path: &Path, options: OpenOptions) -> Result<File> {
    fault::point(Kind::Create, path).map_err(plain)?;
    let file = options.open(path)?;
    fault::point(Kind::Stat, path).map_err(plain)?;
    ensure!(file.metadata()?.is_file(), "it is not a regular file");
    Ok(file)
}

fn is_missing(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Whether a file is a report, to which lines may be added.
pub fn is_report(path: &Path) -> bool {
    let is_file = fault::metadata(path).is_ok_and(|about| about.is_file());
    let mut options = OpenOptions::new();
    system::without_waiting(options.read(true));
    let opened = || begins_as_report(&mut regular(path, options)?, path);
    is_file && opened().is_ok_and(|is_report| is_report)
}

/// Whether the first line of a file is one of a report, or it is empty.
fn begins_as_report(file: &mut File, path: &Path) -> Result<bool> {
    let mut line = Vec::new();
    let most = Reads::new(file, path).take(1 << 20);
    BufReader::new(most)
        .read_until(b'\n', &mut line)
        .map_err(plain)?;
    let value = serde_json::from_slice::<serde_json::Value>(&line);
    let has_keys = value.is_ok_and(|line| {
        let keys = ["schema", "input", "status"];
        keys.iter().all(|key| line.get(key).is_some())
    });
    Ok(line.is_empty() || has_keys)
}

/// Whether the last line of a file has no end, as a killed run may leave it.
fn is_cut(file: &mut File, path: &Path) -> Result<bool> {
    if file.metadata().map_err(plain)?.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    fault::point(Kind::Read, path).map_err(plain)?;
    file.seek(SeekFrom::End(-1)).map_err(plain)?;
    file.read_exact(&mut last).map_err(plain)?;
    Ok(last != [b'\n'])
}

/// The JSON object of a file.
#[derive(Serialize)]
struct Line<'a> {
    schema: u32,
    input: Cow<'a, str>,
    /// The bytes of a name that is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_hex: Option<String>,
    output: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_hex: Option<String>,
    seconds: f64,
    /// Seconds from the moment when the input was whole, of a watch.
    #[serde(skip_serializing_if = "Option::is_none")]
    latency: Option<f64>,
    status: &'static str,
    #[serde(flatten)]
    lineage: &'a Lineage,
    /// The input's position among all, if the output depends on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<Position>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_sha256: Option<Sha256>,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples_sha256: Option<Sha256>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_sha256: Option<Sha256>,
    /// The reason of a failure, or the place of the damage.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(flatten)]
    image: Option<ImageRecord<'a>>,
}

/// The fields of a processed file: the shape of its first page, then of every page.
#[derive(Serialize)]
struct ImageRecord<'a> {
    width: usize,
    height: usize,
    channels: usize,
    depth: u32,
    #[serde(skip_serializing_if = "is_false")]
    float: bool,
    signed: bool,
    pages: Vec<PageRecord>,
    device: &'a str,
    warnings: &'a [Warning],
    stages: Vec<StageRecord<'a>>,
}

/// A page, and the ranges that its values were scaled from.
#[derive(Serialize)]
struct PageRecord {
    page: usize,
    width: usize,
    height: usize,
    channels: usize,
    depth: u32,
    #[serde(skip_serializing_if = "is_false")]
    float: bool,
    signed: bool,
    ranges: Vec<RangeRecord>,
    /// How many samples were clamped, if they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    clamped: Option<u64>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

#[derive(Serialize)]
struct RangeRecord {
    channel: &'static str,
    min: Number,
    max: Number,
}

/// A stage of a page, its times in seconds from when the file was begun.
#[derive(Serialize)]
struct StageRecord<'a> {
    name: &'a str,
    page: Option<usize>,
    began: f64,
    seconds: f64,
    bytes: u64,
}

impl<'a> Line<'a> {
    fn new(
        item: &'a Item,
        outcome: &'a FileOutcome,
        time: FileTime,
        lineage: &'a Lineage,
    ) -> Line<'a> {
        let digests = match outcome {
            FileOutcome::Done(done) => done.digests,
            // Those of the measuring pass.
            FileOutcome::Skipped | FileOutcome::Failed(_) => item.digests,
        };
        let Digests {
            input: input_sha256,
            samples: samples_sha256,
            output: output_sha256,
        } = digests;
        let image = match outcome {
            FileOutcome::Skipped | FileOutcome::Failed(_) => None,
            FileOutcome::Done(done) => Some(ImageRecord::new(done)),
        };
        Line {
            schema: SCHEMA,
            input: name::in_json(&item.input),
            input_hex: name::hex(&item.input),
            output: item.output.as_deref().map(name::in_json),
            output_hex: item.output.as_deref().and_then(name::hex),
            seconds: time.work.as_secs_f64(),
            latency: time.latency.map(|latency| latency.as_secs_f64()),
            status: outcome.status(),
            lineage,
            position: item.position.filter(|_| lineage.positions),
            input_sha256,
            samples_sha256,
            output_sha256,
            error: outcome.error(),
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
            float: done.shape.depth.is_float(),
            signed: done.results.pages.first().is_some_and(|page| page.signed),
            pages: done.results.pages.iter().map(PageRecord::new).collect(),
            device: &done.device,
            warnings: &done.warnings,
            stages: spans
                .map(|span| StageRecord {
                    name: &span.name,
                    page: span.page,
                    began: span.start.as_secs_f64(),
                    seconds: span.time.as_secs_f64(),
                    bytes: span.bytes,
                })
                .collect(),
        }
    }
}

impl PageRecord {
    fn new(found: &PageResult) -> PageRecord {
        let PageResult {
            page,
            shape,
            signed,
            ranges,
            print_ranges: _,
            clamped,
            preview_of: _,
        } = found;
        let names = match ranges.len() {
            1 if shape.colours() > 1 => &["all"],
            _ => shape.channel_names(),
        };
        let ranges = names.iter().zip(ranges);
        PageRecord {
            page: *page,
            width: shape.width,
            height: shape.height,
            channels: shape.channels,
            depth: shape.depth.bits(),
            float: shape.depth.is_float(),
            signed: *signed,
            ranges: ranges
                .map(|(&channel, &(min, max))| RangeRecord { channel, min, max })
                .collect(),
            clamped: *clamped,
        }
    }
}
