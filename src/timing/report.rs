//! A finished run for people, as a table, and for programs, as one JSON object: the same for one file and
//! for a batch.

use super::latency::{WatchRecord, Watched};
use super::totals::{Share, StageRecord, Totals};
use super::{Peaks, SetCounts, Span, Timeline, in_millis, millis, rate_text, seconds};
use crate::os::count::plural;
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
    /// How many samples of all files were clamped, if they were counted.
    pub clamped: Option<u64>,
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
    /// The sets of images on which GPUs worked.
    pub sets: SetCounts,
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

impl DeviceShare {
    fn is_gpu(&self) -> bool {
        self.name.starts_with("GPU")
    }
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

    /// Adds the number of samples of a file that were clamped, if they were counted.
    pub fn add_clamped(&mut self, clamped: Option<u64>) {
        if let Some(clamped) = clamped {
            *self.clamped.get_or_insert(0) += clamped;
        }
    }

    /// A sentence, and a table: one image has a line for each of its spans, a stack and a batch one for each stage.
    pub fn text(&self) -> String {
        let mut out = format!("{}\n{}\n", self.sentence(), self.title);
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
        let clamped = self
            .clamped
            .map(|clamped| format!("clamped samples: {clamped}\n"));
        out + &self.conclusion() + &clamped.unwrap_or_default() + &watch.unwrap_or_default()
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

    /// The time, where most of it went, and whether a GPU was used: `0.25 s: decode 47 %, write 31 %; the GPU was not used:
    /// 210.0 ms estimated, 290.0 for the GPU including start-up.` The parts of one file are those of the wall clock; those of a
    /// batch, whose stages run at the same time, are those of the time of all stages.
    pub(super) fn sentence(&self) -> String {
        let time = seconds(self.wall);
        if self.totals.largest().is_none() {
            return format!("{time}: nothing was processed.");
        }
        let parts = if self.timeline.is_some() {
            self.totals.largest_parts(self.wall)
        } else {
            let waits = self.stream || self.watch.is_some();
            let limit = self.totals.limit(self.wall, self.threads, waits);
            let parts = self.totals.largest_parts(self.totals.sum());
            format!("{limit}; {parts} of the stages")
        };
        let gpu_use = self.gpu_use().map(|text| format!("; {text}"));
        format!("{time}: {parts}{}.", gpu_use.unwrap_or_default())
    }

    /// Whether a GPU was used, and if not, why not for the first file.
    fn gpu_use(&self) -> Option<String> {
        let on_gpus = self.devices.iter().filter(|device| device.is_gpu());
        let files: usize = on_gpus.map(|device| device.files).sum();
        if files > 0 && self.timeline.is_some() {
            return Some("the GPU was used".into());
        }
        if files > 0 {
            let all = plural(self.files.files, "file");
            return Some(format!("the GPU was used for {files} of {all}"));
        }
        let reason = self.devices.first()?.reason.as_str();
        Some(match reason.strip_prefix("chosen by auto: ") {
            Some(why) => format!("the GPU was not used: {why}"),
            None => format!("the GPU was not used, {reason}"),
        })
    }

    /// Of one file how its stages fill the time, of a batch how busy the machine was; of both what the link of a GPU took.
    pub(super) fn conclusion(&self) -> String {
        let link = self.totals.link_line().unwrap_or_default();
        if self.totals.largest().is_none() {
            return String::new();
        }
        if self.timeline.is_none() {
            return self.sets_line() + &link + &self.totals.busy_line(self.wall, self.threads);
        }
        let (sum, wall) = (self.totals.sum(), self.wall);
        let difference = if sum > wall {
            format!("{} of it in parallel", millis(sum - wall))
        } else {
            format!("{} between the stages", millis(wall - sum))
        };
        format!(
            "{link}stages {} of {} wall clock ({difference})\n",
            millis(sum),
            millis(wall)
        )
    }

    /// How many images shared the launches of a GPU; empty if none did.
    fn sets_line(&self) -> String {
        let SetCounts {
            sets,
            images,
            calls,
        } = self.sets;
        if sets == 0 {
            return String::new();
        }
        let each = images as f64 / sets as f64;
        let per_file = calls as f64 / self.files.done.max(1) as f64;
        format!(
            "GPU: {} with {each:.1} images each; {per_file:.1} launches and copies a file\n",
            plural(sets as usize, "set")
        )
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
            clamped: self.clamped,
            threads: self.threads,
            devices: &self.devices,
            plan: (!self.plan.is_empty()).then_some(&self.plan),
            stages: self.totals.records(&self.peaks),
            spans: spans.map(SpanRecord::new).collect(),
            busy: self.totals.shares(self.wall, self.threads),
            sum_ms: in_millis(self.totals.sum()),
            wall_ms: in_millis(self.wall),
            sets: (self.sets.sets > 0).then_some(self.sets),
            largest: self.totals.largest(),
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
    #[serde(skip_serializing_if = "Option::is_none")]
    clamped: Option<u64>,
    threads: usize,
    devices: &'a [DeviceShare],
    plan: Option<&'a str>,
    stages: Vec<StageRecord<'a>>,
    spans: Vec<SpanRecord<'a>>,
    busy: [Share; 5],
    sum_ms: f64,
    wall_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sets: Option<SetCounts>,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::Limit;
    use std::time::Instant;

    const MS: Duration = Duration::from_millis(1);

    /// A file that took 250 ms.
    fn timeline() -> Timeline {
        let mut timeline = Timeline::default();
        for (name, ms) in [("decode", 120), ("scale", 12), ("write", 80)] {
            timeline.push(name, Instant::now(), ms * MS, 0, Limit::Host);
        }
        timeline
    }

    fn report_of(devices: &[&str], timeline: Option<Timeline>) -> Report {
        let mut report = Report {
            threads: 2,
            wall: 250 * MS,
            timeline,
            ..Report::default()
        };
        report.files.files = devices.len();
        for device in devices {
            report.add(&self::timeline(), device, 1);
        }
        report
    }

    #[test]
    fn a_report_begins_with_where_the_time_went_and_why_no_gpu_was_used() {
        let one = |device: &str| report_of(&[device], Some(timeline())).text();
        for (device, end) in [
            (
                "CPU (2 threads), chosen by auto: no NVIDIA driver on this machine",
                "the GPU was not used: no NVIDIA driver on this machine.",
            ),
            (
                "CPU (2 threads), as requested",
                "the GPU was not used, as requested.",
            ),
            ("GPU (NVIDIA H100), as requested", "the GPU was used."),
        ] {
            let expected = format!("0.25 s: decode 48 %, write 32 %; {end}\n");
            let text = one(device);
            assert!(text.starts_with(&expected), "{text}");
        }
    }

    #[test]
    fn a_batch_begins_with_what_limits_it() {
        let cpu = "CPU (1 thread), chosen by auto: no GPU was started";
        let text = report_of(&[cpu, cpu], None).text();
        let expected = "0.25 s: CPU threads 85 % busy; decode 57 %, write 38 % of the stages; the GPU was not used: no GPU was \
                        started.\n";
        assert!(text.starts_with(expected), "{text}");
        let text = report_of(&[cpu, "GPU (NVIDIA H100), chosen by auto"], None).text();
        let expected = "; the GPU was used for 1 of 2 files.\n";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn an_idle_watch_was_busy_a_thousand_million_times() {
        let report = Report {
            wall: 2000 * MS,
            stream: true,
            ..Report::default()
        };
        let text = report.text();
        assert!(
            text.starts_with("2.00 s: nothing was processed.\n"),
            "{text}"
        );
    }
}
