//! Where the time of a batch went: the stages of all its images added up, and which of the things
//! they used was the limit.

use crate::stats::{Limit, Timeline, millis};
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Duration;

/// Version of the JSON object.
const SCHEMA: u32 = 1;

/// One stage of all images.
#[derive(Debug)]
struct Stage {
    name: String,
    limit: Limit,
    time: Duration,
    beside: Duration,
    bytes: u64,
}

/// The stages of a batch, in the order in which its first image met them.
#[derive(Debug, Default)]
pub struct Totals {
    stages: Vec<Stage>,
    images: usize,
}

/// What stages wait for: all of a kind share it.
struct Share {
    what: &'static str,
    busy: f64,
}

impl Totals {
    /// Adds the stages of an image.
    pub fn add(&mut self, timeline: &Timeline) {
        self.images += 1;
        for span in timeline.spans() {
            let known = self.stages.iter().position(|stage| stage.name == span.name);
            let index = known.unwrap_or_else(|| {
                self.stages.push(Stage {
                    name: span.name.clone(),
                    limit: span.limit,
                    time: Duration::ZERO,
                    beside: Duration::ZERO,
                    bytes: 0,
                });
                self.stages.len() - 1
            });
            let stage = &mut self.stages[index];
            stage.time += span.time;
            stage.beside += span.beside;
            stage.bytes += span.bytes;
        }
    }

    /// How busy each of the shared things was, from 0 to 1: the `threads` of the host, each direction
    /// of the link, the card.
    fn shares(&self, wall: Duration, threads: usize) -> [Share; 4] {
        let busy = |of: &dyn Fn(&Stage) -> bool, units: usize| {
            let time: Duration = self.stages.iter().filter(|s| of(s)).map(|s| s.time).sum();
            time.as_secs_f64() / (wall.as_secs_f64() * units as f64).max(1e-9)
        };
        let host = |stage: &Stage| stage.limit == Limit::Host && stage.name != "device start";
        let link = |way: &'static str| {
            move |stage: &Stage| stage.limit == Limit::Pcie && stage.name.starts_with(way)
        };
        let card = |stage: &Stage| stage.limit == Limit::DeviceMemory;
        [
            Share {
                what: "the host's threads",
                busy: busy(&host, threads),
            },
            Share {
                what: "the link to the card",
                busy: busy(&link("upload"), 1),
            },
            Share {
                what: "the link from the card",
                busy: busy(&link("download"), 1),
            },
            Share {
                what: "the card",
                busy: busy(&card, 1),
            },
        ]
    }

    /// The stages as a table, and a sentence that names the limit.
    pub fn text(&self, wall: Duration, threads: usize) -> String {
        let mut out = format!("{} images on {threads} threads\n", self.images);
        let _ = writeln!(
            out,
            "{:<20}{:>12}{:>16}{:>16}{:>10}",
            "stage", "time", "an image", "bytes", "GB/s"
        );
        for stage in &self.stages {
            let seconds = (stage.time + stage.beside).as_secs_f64();
            let (mut bytes, mut rate) = (String::new(), String::new());
            if stage.bytes > 0 && seconds > 0.0 {
                bytes = stage.bytes.to_string();
                rate = format!("{:.2}", stage.bytes as f64 / seconds / 1e9);
            }
            let each = stage.time / self.images.max(1) as u32;
            let line = format!(
                "{:<20}{:>12}{:>16}{:>16}{:>10}",
                stage.name,
                millis(stage.time),
                millis(each),
                bytes,
                rate
            );
            let _ = writeln!(out, "{}", line.trim_end());
        }
        let mut shares = self.shares(wall, threads);
        shares.sort_by(|a, b| b.busy.total_cmp(&a.busy));
        let used: Vec<String> = shares
            .iter()
            .filter(|share| share.busy > 0.0)
            .map(|share| format!("{} {:.0} %", share.what, 100.0 * share.busy))
            .collect();
        let _ = writeln!(
            out,
            "{} wall clock; busy: {}. The limit is {}, {:.2} × its busy time.",
            millis(wall),
            used.join(", "),
            shares[0].what,
            1.0 / shares[0].busy.max(1e-9)
        );
        out
    }

    /// The same as one JSON object.
    pub fn json(&self, wall: Duration, threads: usize) -> Value {
        let stages: Vec<Value> = self
            .stages
            .iter()
            .map(|stage| {
                json!({
                    "name": stage.name,
                    "ms": stage.time.as_secs_f64() * 1e3,
                    "bytes": stage.bytes,
                })
            })
            .collect();
        let shares: Vec<Value> = self
            .shares(wall, threads)
            .iter()
            .map(|share| json!({ "what": share.what, "busy": share.busy }))
            .collect();
        json!({
            "schema": SCHEMA,
            "images": self.images,
            "threads": threads,
            "stages": stages,
            "busy": shares,
            "wall_ms": wall.as_secs_f64() * 1e3,
        })
    }
}
