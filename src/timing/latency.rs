//! Latencies of files: percentiles from counts in classes one percent apart, so that a watch of any
//! length needs the same memory.

use super::{in_millis, millis};
use serde::Serialize;
use std::time::Duration;

/// The ratio of a class to the one below it.
const STEP: f64 = 1.01;

/// The classes: up to 1.01²⁵⁰⁰ µs, more than 17 hours.
const CLASSES: usize = 2500;

/// How many files had which latency.
#[derive(Clone, Debug)]
pub struct Latencies {
    /// Class i: from 1.01ⁱ µs on.
    counts: Vec<u64>,
    files: u64,
    longest: Duration,
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies {
            counts: vec![0; CLASSES],
            files: 0,
            longest: Duration::ZERO,
        }
    }
}

impl Latencies {
    /// Counts one file.
    pub fn add(&mut self, latency: Duration) {
        let micros = (latency.as_secs_f64() * 1e6).max(1.0);
        let class = (micros.ln() / STEP.ln()) as usize;
        self.counts[class.min(CLASSES - 1)] += 1;
        self.files += 1;
        self.longest = self.longest.max(latency);
    }

    /// The number of files.
    pub fn files(&self) -> u64 {
        self.files
    }

    /// The longest latency.
    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// The latency that `percent` of the files did not exceed, at most 1 % too long; 0 without files.
    pub fn percentile(&self, percent: f64) -> Duration {
        let rank = ((percent / 100.0 * self.files as f64).ceil() as u64).max(1);
        let mut below = 0;
        let class = self.counts.iter().position(|count| {
            below += count;
            below >= rank
        });
        let end = |class: usize| STEP.powi(class as i32 + 1) / 1e6;
        class.map_or(Duration::ZERO, |class| {
            Duration::from_secs_f64(end(class)).min(self.longest)
        })
    }
}

/// What `--stats` has of a watch beside the stages.
#[derive(Debug)]
pub struct Watched {
    /// The latencies of the files that came while it ran.
    pub latencies: Latencies,
    /// The most files that waited at once.
    pub most_waiting: usize,
    /// Files left for the next run.
    pub left: usize,
}

/// The same as a JSON object.
#[derive(Serialize)]
pub struct WatchRecord {
    files: u64,
    p50_ms: Option<f64>,
    p95_ms: Option<f64>,
    p99_ms: Option<f64>,
    max_ms: Option<f64>,
    most_waiting: usize,
    left: usize,
}

impl Watched {
    /// The latencies in a line of text.
    pub fn text(&self) -> String {
        let Watched {
            latencies,
            most_waiting,
            left,
        } = self;
        let [p50, p95, p99] = [50.0, 95.0, 99.0].map(|part| millis(latencies.percentile(part)));
        let times = match latencies.files() {
            0 => "no files arrived".into(),
            files => format!(
                "{files} files, from complete input to finished output: p50 {p50}, p95 {p95}, p99 {p99}, max {}",
                millis(latencies.longest())
            ),
        };
        format!("latency: {times}; backlog: at most {most_waiting} waiting, {left} left\n")
    }

    /// The same as a JSON object (docs/SCHEMAS.md).
    pub fn record(&self) -> WatchRecord {
        let Watched {
            latencies,
            most_waiting,
            left,
        } = self;
        let some = latencies.files() > 0;
        let part = |percent| some.then(|| in_millis(latencies.percentile(percent)));
        WatchRecord {
            files: latencies.files(),
            p50_ms: part(50.0),
            p95_ms: part(95.0),
            p99_ms: part(99.0),
            max_ms: part(100.0),
            most_waiting: *most_waiting,
            left: *left,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_percent() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.percentile(50.0), Duration::ZERO);
        for i in 1..=1000 {
            latencies.add(Duration::from_micros(100 * i));
        }
        for (percent, exact) in [(50.0, 50e-3), (95.0, 95e-3), (99.0, 99e-3), (100.0, 0.1)] {
            let found = latencies.percentile(percent).as_secs_f64();
            assert!(
                (exact..exact * 1.0101).contains(&found),
                "{percent}: {found}"
            );
        }
        assert_eq!(latencies.longest(), Duration::from_millis(100));
        latencies.add(Duration::ZERO);
        latencies.add(Duration::from_secs(1 << 40));
        assert_eq!(latencies.files(), 1002);
        assert_eq!(latencies.percentile(0.0), Duration::from_secs_f64(1.01e-6));
    }
}
