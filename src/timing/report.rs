//! A finished timeline for people, as a table, and for programs, as one JSON object.

use super::{Span, Timeline, in_millis, millis};
use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;

/// Version of the object.
const SCHEMA: u32 = 1;

/// A finished piece of work, for printing.
#[derive(Debug)]
pub struct Report<'a> {
    /// A title in one line: subcommand, input, output, image.
    pub title: &'a str,
    /// The device, and why it was chosen.
    pub device: &'a str,
    /// The spans.
    pub timeline: &'a Timeline,
    /// The elapsed time of the whole work.
    pub wall: Duration,
}

impl Report<'_> {
    fn sum(&self) -> Duration {
        self.timeline.spans.iter().map(|span| span.time).sum()
    }

    fn largest(&self) -> Option<&Span> {
        self.timeline.spans.iter().max_by_key(|span| span.time)
    }

    fn share(&self, time: Duration) -> f64 {
        100.0 * time.as_secs_f64() / self.wall.as_secs_f64().max(1e-9)
    }

    /// The timeline as a table, followed by a sentence that names the largest part.
    pub fn text(&self) -> String {
        let mut out = format!("{}\n{}\n", self.title, self.device);
        let _ = writeln!(
            out,
            "{:<14}{:>12}{:>12}{:>14}{:>10}  ceiling",
            "stage", "began", "time", "bytes", "GB/s"
        );
        for span in self.timeline.spans() {
            let rate = span
                .rate()
                .map_or(String::new(), |rate| format!("{rate:.2}"));
            let bytes = if span.bytes > 0 {
                span.bytes.to_string()
            } else {
                String::new()
            };
            let ceiling = match (span.rate(), self.timeline.peaks.of(span.limit)) {
                (Some(rate), Some((peak, what))) => {
                    format!("{:3.0} % of {peak:.0} ({what})", 100.0 * rate / peak)
                }
                _ if span.beside > (span.time + span.beside) / 20 => {
                    format!("counting {} of files beside it", millis(span.beside))
                }
                _ => String::new(),
            };
            let line = format!(
                "{:<14}{:>12}{:>12}{:>14}{:>10}  {}",
                span.name,
                millis(span.start),
                millis(span.time),
                bytes,
                rate,
                ceiling
            );
            let _ = writeln!(out, "{}", line.trim_end());
        }
        let (sum, wall) = (self.sum(), self.wall);
        let difference = if sum > wall {
            format!("{} of it side by side", millis(sum - wall))
        } else {
            format!("{} between the stages", millis(wall - sum))
        };
        let _ = writeln!(
            out,
            "stages {} of {} wall clock ({difference})",
            millis(sum),
            millis(wall)
        );
        if let Some(span) = self.largest() {
            let _ = writeln!(
                out,
                "The largest part is {}: {:.0} % of the wall clock.",
                span.name,
                self.share(span.time)
            );
        }
        out
    }

    /// The same data as one JSON object (docs/SCHEMAS.md).
    ///
    /// # Errors
    /// None that can occur: all keys are text.
    pub fn json(&self) -> serde_json::Result<String> {
        let spans = self.timeline.spans().into_iter();
        serde_json::to_string(&ReportRecord {
            schema: SCHEMA,
            title: self.title,
            device: self.device,
            spans: spans.map(|span| self.record(span)).collect(),
            sum_ms: in_millis(self.sum()),
            wall_ms: in_millis(self.wall),
            largest: self.largest().map(|span| span.name.as_str()),
        })
    }

    fn record<'a>(&self, span: &'a Span) -> SpanRecord<'a> {
        let (rate, peak) = (span.rate(), self.timeline.peaks.of(span.limit));
        let (peak, ceiling) = peak.unzip();
        SpanRecord {
            name: &span.name,
            start_ms: in_millis(span.start),
            time_ms: in_millis(span.time),
            beside_ms: in_millis(span.beside),
            bytes: span.bytes,
            gb_per_s: rate,
            ceiling_gb_per_s: peak,
            ceiling,
            percent_of_ceiling: rate.zip(peak).map(|(rate, peak)| 100.0 * rate / peak),
        }
    }
}

/// The JSON object of one image.
#[derive(Serialize)]
struct ReportRecord<'a> {
    schema: u32,
    title: &'a str,
    device: &'a str,
    spans: Vec<SpanRecord<'a>>,
    sum_ms: f64,
    wall_ms: f64,
    /// The name of the span that took the longest.
    largest: Option<&'a str>,
}

/// The JSON object of a span.
#[derive(Serialize)]
struct SpanRecord<'a> {
    name: &'a str,
    start_ms: f64,
    time_ms: f64,
    beside_ms: f64,
    bytes: u64,
    gb_per_s: Option<f64>,
    ceiling_gb_per_s: Option<f64>,
    ceiling: Option<String>,
    percent_of_ceiling: Option<f64>,
}
