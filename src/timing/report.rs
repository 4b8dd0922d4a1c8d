//! A finished run for people, as a table, and for programs, as one JSON object: the same for one file and
//! for a batch.

use super::latency::{WatchRecord, Watched};
use super::totals::{Share, StageRecord, Totals};
use super::{Peaks, Span, Timeline, in_millis, millis, rate_text};
use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;

/// Version of the object.
const SCHEMA: u32 = 2;

/// The timeline of one file.
#[derive(Debug)]
pub struct Track {
    /// The file's name.
    pub name: String,
    /// Its timeline.
    pub timeline: Timeline,
}

/// A finished run of one or of many files.
#[derive(Debug, Default)]
pub struct Report {
    /// The operation.
    pub verb: &'static str,
    /// A title in one line: verb, input, output and image, or the number of files.
    pub title: String,
    /// How many files it has, and what became of them.
    pub files: FileCounts,
    /// How many threads shared the files.
    pub threads: usize,
    /// Pages of all files.
    pub pages: usize,
    /// The devices that did the work.
    pub devices: Vec<DeviceShare>,
    /// The plan of the first page of the only file; empty for a batch.
    pub plan: String,
    /// The stages of all files.
    pub totals: Totals,
    /// The timeline of the only file; none of a batch.
    pub timeline: Option<Timeline>,
    /// The timelines of all files, where a page is wanted.
    pub tracks: Vec<Track>,
    /// The peaks that rates are compared with.
    pub peaks: Peaks,
    /// The elapsed time of the whole work.
    pub wall: Duration,
    /// Of a watch: how long files waited.
    pub watch: Option<Watched>,
    /// Whether the images came one by one from a stream.
    pub stream: bool,
}

/// The number of files, and of those that were processed, skipped, or not processed.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct FileCounts {
    /// All of them.
    pub files: usize,
    /// Processed, damaged ones among them.
    pub done: usize,
    /// Done by an earlier run.
    pub skipped: usize,
    /// Failed, damaged ones among them.
    pub failed: usize,
}

/// A device and its share of the files.
#[derive(Debug, Serialize)]
pub struct DeviceShare {
    name: String,
    files: usize,
    /// Why it was chosen for the first of them.
    reason: String,
}

impl Report {
    /// Adds a file that was processed on `device`, a name followed by a comma and the reason.
    pub fn add(&mut self, timeline: &Timeline, device: &str, pages: usize) {
        self.totals.add(timeline);
        self.pages += pages;
        let (name, reason) = device.split_once(", ").unwrap_or((device, ""));
        match self.devices.iter_mut().find(|known| known.name == name) {
            Some(known) => known.files += 1,
            None => self.devices.push(DeviceShare {
                name: name.into(),
                files: 1,
                reason: reason.into(),
            }),
        }
    }

    fn share(&self, time: Duration) -> f64 {
        100.0 * time.as_secs_f64() / self.wall.as_secs_f64().max(1e-9)
    }

    /// A table, and a message that names the largest part or the bottleneck. One image has a line for
    /// each of its spans, a stack and a batch one for each stage.
    pub fn text(&self) -> String {
        let mut out = format!("{}\n", self.title);
        if self.plan.is_empty() {
            for line in self.device_lines() {
                let _ = writeln!(out, "{line}");
            }
        } else {
            let _ = writeln!(out, "{}", self.plan);
        }
        out += &match &self.timeline {
            Some(timeline) if self.pages == 1 => self.spans(timeline),
            Some(_) => self.totals.table("page", self.pages, &self.peaks),
            None => self.totals.table("file", self.files.done, &self.peaks),
        };
        let watch = self.watch.as_ref().map(Watched::text);
        out + &self.conclusion() + &watch.unwrap_or_default()
    }

    /// A line for each device: why it was chosen, or its share of the files.
    pub(super) fn device_lines(&self) -> Vec<String> {
        let line = |device: &DeviceShare| match &self.timeline {
            Some(_) => format!("{}, {}", device.name, device.reason),
            None => format!(
                "{}: {} of {} files",
                device.name, device.files, self.files.files
            ),
        };
        self.devices.iter().map(line).collect()
    }

    /// Of one file how its stages fill the time, and the largest; of a batch the bottleneck.
    pub(super) fn conclusion(&self) -> String {
        if self.timeline.is_none() {
            let waits = self.stream || self.watch.is_some();
            return self.totals.limit(self.wall, self.threads, waits);
        }
        let mut out = String::new();
        let (sum, wall) = (self.totals.sum(), self.wall);
        let difference = if sum > wall {
            format!("{} of it in parallel", millis(sum - wall))
        } else {
            format!("{} between the stages", millis(wall - sum))
        };
        let _ = writeln!(
            out,
            "stages {} of {} wall clock ({difference})",
            millis(sum),
            millis(wall)
        );
        if let Some((name, time)) = self.totals.largest() {
            let _ = writeln!(
                out,
                "The largest part is {name}: {:.0} % of the wall clock.",
                self.share(time)
            );
        }
        out
    }

    /// The spans of an image as a table.
    fn spans(&self, timeline: &Timeline) -> String {
        let mut out = format!(
            "{:<14}{:>12}{:>12}{:>14}{:>10}  ceiling\n",
            "stage", "began", "time", "bytes", "GB/s"
        );
        for span in timeline.spans() {
            let (rate, remark) = rate_text(span.rate(), span.time, span.beside);
            let bytes = if span.bytes > 0 {
                span.bytes.to_string()
            } else {
                String::new()
            };
            let ceiling = match (span.rate(), self.peaks.ceiling(span.limit)) {
                (Some(rate), Some((peak, what))) => {
                    format!("{:3.0} % of {peak:.0} ({what})", 100.0 * rate / peak)
                }
                _ => remark,
            };
            let line = format!(
                "{:<14}{:>12}{:>12}{:>14}{:>10}  {}",
                &span.name,
                millis(span.start),
                millis(span.time),
                bytes,
                rate,
                ceiling
            );
            let _ = writeln!(out, "{}", line.trim_end());
        }
        out
    }

    /// The same data as one JSON object (docs/SCHEMAS.md).
    ///
    /// # Errors
    /// None that can occur: all keys are text.
    pub fn json(&self) -> serde_json::Result<String> {
        let spans = self.timeline.iter().flat_map(Timeline::spans);
        serde_json::to_string(&ReportRecord {
            schema: SCHEMA,
            verb: self.verb,
            title: &self.title,
            files: self.files,
            pages: self.pages,
            threads: self.threads,
            devices: &self.devices,
            plan: (!self.plan.is_empty()).then_some(&self.plan),
            stages: self.totals.records(&self.peaks),
            spans: spans.map(SpanRecord::new).collect(),
            busy: self.totals.shares(self.wall, self.threads),
            sum_ms: in_millis(self.totals.sum()),
            wall_ms: in_millis(self.wall),
            largest: self.totals.largest().map(|(name, _)| name),
            watch: self.watch.as_ref().map(Watched::record),
        })
    }
}

/// The JSON object of a run.
#[derive(Serialize)]
struct ReportRecord<'a> {
    schema: u32,
    verb: &'a str,
    title: &'a str,
    #[serde(flatten)]
    files: FileCounts,
    pages: usize,
    threads: usize,
    devices: &'a [DeviceShare],
    plan: Option<&'a str>,
    stages: Vec<StageRecord<'a>>,
    spans: Vec<SpanRecord<'a>>,
    busy: [Share; 5],
    sum_ms: f64,
    wall_ms: f64,
    /// The name of the stage that took the longest.
    largest: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    watch: Option<WatchRecord>,
}

/// The JSON object of a span.
#[derive(Serialize)]
struct SpanRecord<'a> {
    name: &'a str,
    page: Option<usize>,
    start_ms: f64,
    time_ms: f64,
    beside_ms: f64,
    bytes: u64,
}

impl SpanRecord<'_> {
    fn new(span: &Span) -> SpanRecord<'_> {
        SpanRecord {
            name: &span.name,
            page: span.page,
            start_ms: in_millis(span.start),
            time_ms: in_millis(span.time),
            beside_ms: in_millis(span.beside),
            bytes: span.bytes,
        }
    }
}
