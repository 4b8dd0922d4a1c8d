//! The time of a batch: the stages of all images added up, and the shared resource that was the
//! bottleneck.

use super::watch::{WatchRecord, Watched};
use crate::timing::{Limit, Span, Stretches, Timeline, in_millis, millis};
use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;

/// Version of the JSON object.
const SCHEMA: u32 = 1;

/// One stage, summed over all images.
#[derive(Debug)]
struct Stage {
    name: String,
    limit: Limit,
    time: Duration,
    beside: Duration,
    bytes: u64,
}

/// The stages of a batch, in the order in which its first image passed them.
#[derive(Debug, Default)]
pub struct Totals {
    stages: Vec<Stage>,
    images: usize,
    /// The time intervals in which uploads, downloads and kernels ran, for any image.
    device: [Stretches; 3],
}

/// The name of the stage in which a GPU is started.
const START: &str = "device start";

/// A resource of the GPU that all images share.
#[derive(Clone, Copy)]
struct Part {
    what: &'static str,
    limit: Limit,
    /// The prefix of the names of its stages.
    begins: &'static str,
}

const UP: Part = Part {
    what: "the link to the GPU",
    limit: Limit::Pcie,
    begins: "upload",
};
const DOWN: Part = Part {
    what: "the link from the GPU",
    limit: Limit::Pcie,
    begins: "download",
};
const GPU: Part = Part {
    what: "the GPU",
    limit: Limit::DeviceMemory,
    begins: "",
};

impl Part {
    fn does(&self, span: &Span) -> bool {
        span.limit == self.limit && span.name.starts_with(self.begins)
    }
}

/// The share of the time in which a resource was busy.
#[derive(Serialize)]
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
            let parts = [UP, DOWN, GPU].iter().zip(&mut self.device);
            for (_, stretches) in parts.filter(|(part, _)| part.does(span)) {
                stretches.add(timeline.began(span), span.time);
            }
            let stage = &mut self.stages[index];
            stage.time += span.time;
            stage.beside += span.beside;
            stage.bytes += span.bytes;
        }
    }

    /// The busy share of each resource, from 0 to 1: the `threads` of the host, each direction of
    /// the link, the GPU; and the share that its start took.
    fn shares(&self, wall: Duration, threads: usize) -> [Share; 5] {
        let wall = wall.as_secs_f64().max(1e-9);
        let on_host = |stage: &&Stage| stage.limit == Limit::Host && stage.name != START;
        let host: Duration = self.stages.iter().filter(on_host).map(|s| s.time).sum();
        // GPUs start concurrently, once.
        let starts = self.stages.iter().find(|stage| stage.name == START);
        let start = starts.map_or(Duration::ZERO, |stage| stage.time);
        let [up, down, gpu] = &self.device;
        let device = |part: Part, stretches: &Stretches| Share {
            what: part.what,
            busy: stretches.time().as_secs_f64() / wall,
        };
        [
            Share {
                what: "the host's threads",
                busy: host.as_secs_f64() / threads as f64 / wall,
            },
            device(UP, up),
            device(DOWN, down),
            device(GPU, gpu),
            Share {
                what: "the GPU's start",
                busy: start.as_secs_f64() / wall,
            },
        ]
    }

    /// The stages as a table, and a sentence that names the bottleneck.
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

    /// The same data as one JSON object (docs/SCHEMAS.md).
    ///
    /// # Errors
    /// None that can occur: all keys are text.
    pub fn json(
        &self,
        wall: Duration,
        threads: usize,
        watched: Option<&Watched>,
    ) -> serde_json::Result<String> {
        let stages = self.stages.iter().map(|stage| StageRecord {
            name: &stage.name,
            ms: in_millis(stage.time),
            bytes: stage.bytes,
        });
        serde_json::to_string(&TotalsRecord {
            schema: SCHEMA,
            images: self.images,
            threads,
            stages: stages.collect(),
            busy: self.shares(wall, threads),
            wall_ms: in_millis(wall),
            watch: watched.map(Watched::record),
        })
    }
}

/// The JSON object of a batch.
#[derive(Serialize)]
struct TotalsRecord<'a> {
    schema: u32,
    images: usize,
    threads: usize,
    stages: Vec<StageRecord<'a>>,
    busy: [Share; 5],
    wall_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    watch: Option<WatchRecord>,
}

/// The JSON object of a stage.
#[derive(Serialize)]
struct StageRecord<'a> {
    name: &'a str,
    ms: f64,
    bytes: u64,
}
