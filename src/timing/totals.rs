//! Stages added up, over the pages of a stack or the files of a batch, and the shares of the time in which
//! each shared part of the machine was busy.

use super::{Limit, Peaks, START, Span, Stretches, Timeline, in_millis, millis, rate_text};
use serde::Serialize;
use std::cmp::Reverse;
use std::fmt::Write;
use std::time::Duration;

/// One stage, summed over all pages and files.
#[derive(Debug)]
struct Stage {
    name: String,
    limit: Limit,
    count: usize,
    time: Duration,
    beside: Duration,
    bytes: u64,
}

impl Stage {
    /// GB/s over all the time in which it may have run.
    fn rate(&self) -> Option<f64> {
        super::rate(self.bytes, self.time + self.beside)
    }
}

/// The stages of all pages and files, in the order in which the first of them passed them.
#[derive(Debug, Default)]
pub struct Totals {
    stages: Vec<Stage>,
    /// The time intervals in which uploads, downloads and kernels ran, for any image.
    device: [Stretches; 3],
    /// The bytes that they moved.
    moved: [u64; 3],
}

/// A resource of the GPU that all images share.
#[derive(Clone, Copy)]
struct Part {
    what: &'static str,
    limit: Limit,
    /// The prefix of the names of its stages.
    begins: &'static str,
}

const UP: Part = Part {
    what: "link to the GPU",
    limit: Limit::Pcie,
    begins: "upload",
};
const DOWN: Part = Part {
    what: "link from the GPU",
    limit: Limit::Pcie,
    begins: "download",
};
const GPU: Part = Part {
    what: "GPU",
    limit: Limit::DeviceMemory,
    begins: "",
};

impl Part {
    fn does(&self, span: &Span) -> bool {
        span.limit == self.limit && span.bare().starts_with(self.begins)
    }
}

/// The share of the time in which a resource was busy.
#[derive(Debug, Serialize)]
pub(super) struct Share {
    /// The resource.
    pub what: &'static str,
    /// Its busy time as a part of the wall clock; 1 is all of it.
    pub busy: f64,
}

impl Totals {
    /// Adds the stages of an image.
    pub fn add(&mut self, timeline: &Timeline) {
        for span in timeline.spans() {
            let label = span.name.as_str();
            let known = self.stages.iter().position(|stage| stage.name == label);
            let index = known.unwrap_or_else(|| {
                self.stages.push(Stage {
                    name: label.to_owned(),
                    limit: span.limit,
                    count: 0,
                    time: Duration::ZERO,
                    beside: Duration::ZERO,
                    bytes: 0,
                });
                self.stages.len() - 1
            });
            let parts = [UP, DOWN, GPU].iter().enumerate();
            for (at, _) in parts.filter(|(_, part)| part.does(span)) {
                self.device[at].add(timeline.began(span), span.time);
                self.moved[at] += span.bytes;
            }
            let stage = &mut self.stages[index];
            stage.count += 1;
            stage.time += span.time;
            stage.beside += span.beside;
            stage.bytes += span.bytes;
        }
    }

    /// The time of all stages.
    pub(super) fn sum(&self) -> Duration {
        self.stages.iter().map(|stage| stage.time).sum()
    }

    /// The name of the stage that took the longest; `None` if nothing was processed.
    pub(super) fn largest(&self) -> Option<&str> {
        let longest = self.stages.iter().max_by_key(|stage| stage.time);
        longest.map(|stage| stage.name.as_str())
    }

    /// The busy share of each resource, from 0 to 1: the `threads` of the host, each direction of
    /// the link, the GPU; and the share that its start took.
    pub(super) fn shares(&self, wall: Duration, threads: usize) -> [Share; 5] {
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
                what: "CPU threads",
                busy: host.as_secs_f64() / threads.max(1) as f64 / wall,
            },
            device(UP, up),
            device(DOWN, down),
            device(GPU, gpu),
            Share {
                what: "GPU start",
                busy: start.as_secs_f64() / wall,
            },
        ]
    }

    /// A table, a line a stage, with the time of each of so many `each` things.
    pub(super) fn table(&self, each: &str, count: usize, peaks: &Peaks) -> String {
        let mut out = format!(
            "{:<20}{:>12}{:>16}{:>16}{:>10}",
            "stage",
            "time",
            format!("a {each}"),
            "bytes",
            "GB/s"
        );
        if peaks.memory.is_some() {
            out += "  ceiling";
        }
        out.push('\n');
        for stage in &self.stages {
            let bytes = match stage.bytes {
                0 => String::new(),
                bytes => bytes.to_string(),
            };
            let (rate, remark) = rate_text(stage.rate(), stage.time, stage.beside);
            let ceiling = stage.rate().zip(peaks.ceiling(stage.limit));
            let ceiling = ceiling.map(|(rate, (peak, what))| {
                format!("{:3.0} % of {peak:.0} ({what})", 100.0 * rate / peak)
            });
            let line = format!(
                "{:<20}{:>12}{:>16}{:>16}{:>10}  {}",
                stage.name,
                millis(stage.time),
                millis(stage.time / count.max(1) as u32),
                bytes,
                rate,
                ceiling.unwrap_or(remark)
            );
            let _ = writeln!(out, "{}", line.trim_end());
        }
        out
    }

    /// What limits a batch: the busiest resource. A run that `waits` for its images, as a watch and a stream do, waits for
    /// input where no part of the machine was busy half of the time.
    pub(super) fn limit(&self, wall: Duration, threads: usize, waits: bool) -> String {
        let shares = self.shares(wall, threads);
        let busiest = shares.iter().max_by(|a, b| a.busy.total_cmp(&b.busy));
        match busiest {
            Some(share) if !waits || share.busy >= 0.5 => {
                format!("{} {:.0} % busy", share.what, 100.0 * share.busy)
            }
            _ => "waiting for input".into(),
        }
    }

    /// A line with the busy shares of all resources of a batch, the busiest first.
    pub(super) fn busy_line(&self, wall: Duration, threads: usize) -> String {
        let mut shares = self.shares(wall, threads);
        shares.sort_by(|a, b| b.busy.total_cmp(&a.busy));
        let used: Vec<String> = shares
            .iter()
            .filter(|share| share.busy > 0.0)
            .map(|share| format!("{} {:.0} %", share.what, 100.0 * share.busy))
            .collect();
        format!("{} wall clock; busy: {}\n", millis(wall), used.join(", "))
    }

    /// The stages that took the largest parts of `whole`: `decode 47 %, write 31 %`. There are at most three, and all but the
    /// first took at least a tenth.
    pub(super) fn largest_parts(&self, whole: Duration) -> String {
        let share =
            |stage: &Stage| 100.0 * stage.time.as_secs_f64() / whole.as_secs_f64().max(1e-9);
        let mut stages: Vec<&Stage> = self.stages.iter().collect();
        stages.sort_by_key(|stage| Reverse(stage.time));
        let parts: Vec<String> = stages
            .into_iter()
            .take(3)
            .enumerate()
            .filter(|(place, stage)| *place == 0 || share(stage) >= 10.0)
            .map(|(_, stage)| format!("{} {:.0} %", stage.name, share(stage)))
            .collect();
        parts.join(", ")
    }

    /// A line that compares the copies over the link of a GPU with its kernels; `None` if no GPU ran.
    pub(super) fn link_line(&self) -> Option<String> {
        let [up, down, kernels] = self.device.each_ref().map(Stretches::time);
        let link = up + down;
        let work = (link + kernels).as_secs_f64();
        let [sent, fetched, by_kernels] = self.moved;
        let rates = super::rate(by_kernels, kernels).zip(super::rate(sent + fetched, link));
        let rates = rates.map_or(String::new(), |(kernels, link)| {
            format!(
                "; kernels {kernels:.0} GB/s, link {link:.0} GB/s: {:.0} ×",
                kernels / link
            )
        });
        (work > 0.0).then(|| {
            format!(
                "GPU: copies over the link {} ({} to it, {} from it), kernels {}: copies are {:.0} % of the sum{rates}\n",
                millis(link),
                millis(up),
                millis(down),
                millis(kernels),
                100.0 * link.as_secs_f64() / work
            )
        })
    }

    /// Of each stage its name, number of spans, time, bytes and GB/s.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&str, usize, Duration, u64, Option<f64>)> {
        self.stages.iter().map(|stage| {
            let Stage {
                name,
                count,
                time,
                bytes,
                ..
            } = stage;
            (name.as_str(), *count, *time, *bytes, stage.rate())
        })
    }

    /// The stages as JSON objects.
    pub(super) fn records(&self, peaks: &Peaks) -> Vec<StageRecord<'_>> {
        let record = |stage| StageRecord::new(stage, peaks);
        self.stages.iter().map(record).collect()
    }
}

/// The JSON object of a stage.
#[derive(Debug, Serialize)]
pub(super) struct StageRecord<'a> {
    name: &'a str,
    count: usize,
    ms: f64,
    beside_ms: f64,
    bytes: u64,
    gb_per_s: Option<f64>,
    ceiling_gb_per_s: Option<f64>,
    ceiling: Option<String>,
    percent_of_ceiling: Option<f64>,
}

impl StageRecord<'_> {
    fn new<'a>(stage: &'a Stage, peaks: &Peaks) -> StageRecord<'a> {
        let (rate, peak) = (stage.rate(), peaks.ceiling(stage.limit));
        let (peak, ceiling) = peak.unzip();
        StageRecord {
            name: &stage.name,
            count: stage.count,
            ms: in_millis(stage.time),
            beside_ms: in_millis(stage.beside),
            bytes: stage.bytes,
            gb_per_s: rate,
            ceiling_gb_per_s: peak,
            ceiling,
            percent_of_ceiling: rate.zip(peak).map(|(rate, peak)| 100.0 * rate / peak),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    const MS: Duration = Duration::from_millis(1);

    /// One stage of `time`, after which a file's calls took `beside`.
    fn totals(time: Duration, beside: Duration) -> Totals {
        let mut totals = Totals::default();
        let mut timeline = Timeline::default();
        timeline.push("encode", Instant::now(), time, 33_600_000, Limit::Host);
        totals.add(&timeline);
        totals.stages[0].beside = beside;
        totals
    }

    #[test]
    fn a_lower_bound_was_printed_as_the_rate() {
        let table = totals(15 * MS, 157 * MS).table("file", 1, &Peaks::default());
        assert!(table.contains("15.00 ms"), "{table}");
        let rate = " ≥ 0.20  with up to 157 ms more during file I/O";
        assert!(table.contains(rate), "{table}");
        let table = totals(15 * MS, Duration::ZERO).table("file", 1, &Peaks::default());
        assert!(table.ends_with(" 2.24\n"), "{table}");
    }

    #[test]
    fn a_stream_that_waited_blamed_the_threads() {
        let totals = totals(40 * MS, Duration::ZERO);
        assert_eq!(totals.limit(1000 * MS, 1, true), "waiting for input");
        // A batch has all its files from the beginning.
        assert_eq!(totals.limit(1000 * MS, 1, false), "CPU threads 4 % busy");
        assert_eq!(totals.limit(50 * MS, 1, true), "CPU threads 80 % busy");
        let line = totals.busy_line(1000 * MS, 1);
        assert_eq!(line, "1000 ms wall clock; busy: CPU threads 4 %\n");
    }

    #[test]
    fn the_largest_parts_come_first() {
        let mut timeline = Timeline::default();
        let stages = [
            ("read", 5),
            ("decode", 47),
            ("scale", 9),
            ("encode", 10),
            ("write", 31),
        ];
        for (name, ms) in stages {
            timeline.push(name, Instant::now(), ms * MS, 0, Limit::Host);
        }
        let mut totals = Totals::default();
        assert_eq!(totals.largest_parts(100 * MS), "");
        totals.add(&timeline);
        let parts = totals.largest_parts(100 * MS);
        assert_eq!(parts, "decode 47 %, write 31 %, encode 10 %");
        let parts = totals.largest_parts(1000 * MS);
        assert_eq!(parts, "decode 5 %");
    }

    /// Copies at the same time in both directions count twice, and two kernels at the same time once.
    #[test]
    fn the_link_is_compared_with_the_kernels() {
        let mut timeline = Timeline::default();
        let origin = Instant::now();
        let spans = [
            ("upload", 0, 2, Limit::Pcie, 100_000_000),
            ("minmax", 2, 1, Limit::DeviceMemory, 1_000_000_000),
            ("scale", 2, 1, Limit::DeviceMemory, 2_000_000_000),
            ("download", 1, 1, Limit::Pcie, 50_000_000),
            ("encode", 4, 90, Limit::Host, 1),
        ];
        for (name, start, ms, limit, bytes) in spans {
            timeline.push(name, origin + start * MS, ms * MS, bytes, limit);
        }
        let mut totals = Totals::default();
        assert_eq!(totals.link_line(), None);
        totals.add(&timeline);
        let line = "GPU: copies over the link 3.00 ms (2.00 ms to it, 1.00 ms from it), kernels 1.00 ms: copies are 75 % of the sum; kernels 3000 GB/s, link 50 GB/s: 60 ×\n";
        assert_eq!(totals.link_line().as_deref(), Some(line));
    }
}
