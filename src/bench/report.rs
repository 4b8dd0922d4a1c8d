//! A finished run, printed as tables or as descriptions with verdicts.

use super::case::{Outcome, Row};
use super::claims::{self, Judgement, Verdict};
use super::figure::{Time, short};
use super::papers::{Paper, topics};
use super::table::Table;
use crate::gpu::driver::Gpu;
use crate::os::utc;
use anyhow::Result;
use clap::ValueEnum;
use std::fmt::Write;
use std::fs;
use std::time::{Duration, SystemTime};

/// The machine on which the rows were measured, and when, by which program.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// The GPU's name, if there is one.
    pub gpu: Option<String>,
    /// Further properties of the GPU: capability, multiprocessors, cache, memory, CUDA, link.
    pub details: Option<String>,
    /// The driver's version: `580.65.06`.
    pub driver: Option<String>,
    /// The peak that the GPU states for its memory, in GB/s.
    pub memory_peak: Option<f64>,
    /// The number of host threads that were used.
    pub threads: usize,
    /// Bytes of the main input.
    pub input: u64,
    /// The day of the run, in UTC: `2026-11-22`.
    pub date: String,
    /// The program's version.
    pub version: String,
    /// The commit that the program was built from.
    pub commit: String,
}

impl Machine {
    pub(super) fn detect(gpu: Option<&Gpu>, input: u64) -> Result<Machine> {
        let details = match gpu {
            Some(gpu) => {
                let facts = gpu.facts()?;
                let link = gpu.peaks().pcie.map(|(_, link)| format!(", {link}"));
                Some(format!(
                    "compute capability {}.{}, {} multiprocessors, {} MiB L2, {:.0} GiB, CUDA {}.{}{}",
                    facts.capability.0,
                    facts.capability.1,
                    facts.multiprocessors,
                    facts.l2 >> 20,
                    facts.memory.0 as f64 / (1u64 << 30) as f64,
                    facts.cuda.0,
                    facts.cuda.1,
                    link.unwrap_or_default()
                ))
            }
            None => None,
        };
        Ok(Machine {
            gpu: gpu.map(|gpu| gpu.name.clone()),
            details,
            driver: gpu.and_then(|_| driver(&fs::read_to_string(DRIVER).ok()?)),
            memory_peak: gpu.and_then(|gpu| gpu.peaks().memory),
            threads: rayon::current_num_threads(),
            input,
            date: utc(SystemTime::now()).chars().take(10).collect(),
            version: env!("CARGO_PKG_VERSION").into(),
            commit: env!("GPUIMG_BUILT_FROM").into(),
        })
    }

    /// The machine in a few lines.
    pub fn text(&self) -> String {
        let gpu = match (&self.gpu, &self.details) {
            (Some(gpu), Some(details)) => format!("{gpu}: {details}\n"),
            _ => String::new(),
        };
        let driver = self.driver.as_ref();
        let driver = driver.map_or(String::new(), |driver| format!("driver {driver}; "));
        format!(
            "{gpu}{driver}host: {} threads; main input {} MiB\n{}; gpuimg {}, commit {}",
            self.threads,
            self.input >> 20,
            self.date,
            self.version,
            self.commit
        )
    }
}

/// The file in which the driver reports its version on Linux.
const DRIVER: &str = "/proc/driver/nvidia/version";

/// The version in the driver's text: the first word made of numbers and points.
fn driver(text: &str) -> Option<String> {
    let is_version =
        |word: &&str| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.split_whitespace().find(is_version).map(String::from)
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The machine.
    pub machine: Machine,
    /// The rows, table by table.
    pub rows: Vec<Row>,
    /// The rows that were not run without a GPU, as a message.
    pub left_out: Option<String>,
    /// The duration of the run.
    pub wall: Duration,
}

/// What the column with the spread says.
pub const SPREAD: &str = "±: the interquartile range of a row's measurements, divided by their median; \"unstable\" from 5 % on";

/// A time with a suitable unit.
pub fn readable(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.3} s"),
        s if s >= 1e-3 => format!("{:.3} ms", s * 1e3),
        s if s >= 1e-6 => format!("{:.2} µs", s * 1e6),
        s => format!("{:.1} ns", s * 1e9),
    }
}

impl Report {
    /// The number of rows that failed.
    pub fn failures(&self) -> usize {
        let failed = |row: &&Row| matches!(row.outcome, Outcome::Failed(_));
        self.rows.iter().filter(failed).count()
    }

    /// The tables that have rows, each with its rows.
    pub fn tables(&self) -> impl Iterator<Item = (Table, Vec<&Row>)> {
        Table::value_variants().iter().filter_map(|&table| {
            let rows: Vec<&Row> = self
                .rows
                .iter()
                .filter(|row| row.about.table == table)
                .collect();
            (!rows.is_empty()).then_some((table, rows))
        })
    }

    /// The verdicts on the papers' claims, as far as this run judges them, then on the program's. All claims are about a GPU, so that a
    /// run without one has no verdicts.
    pub fn judgements(&self) -> Vec<Judgement> {
        match self.machine.gpu {
            Some(_) => claims::judge(&self.rows),
            None => Vec::new(),
        }
    }

    /// Tables for a terminal, and the verdicts.
    pub fn text(&self) -> String {
        let mut out = format!("{}\n{SPREAD}\n", self.machine.text());
        for (table, rows) in self.tables() {
            let _ = writeln!(out, "\n{}", table.title());
            let unit = rate_unit(&rows);
            let _ = writeln!(
                out,
                "{:<58}{:>11}{:>6}{:>9}{:>6}{:>7}  published",
                "", "time", "±", unit, "%", "ratio"
            );
            for row in rows {
                let _ = writeln!(out, "{}", line(row, unit).trim_end());
            }
            if let Some(note) = table.note() {
                let _ = writeln!(out, "{note}");
            }
        }
        self.verdicts(&mut out);
        out.push('\n');
        if let Some(left_out) = &self.left_out {
            let _ = writeln!(out, "{left_out}");
        }
        let _ = writeln!(
            out,
            "{} rows in {:.1} s; {} failed",
            self.rows.len(),
            self.wall.as_secs_f64(),
            self.failures()
        );
        out
    }

    fn verdicts(&self, out: &mut String) {
        let judgements = self.judgements();
        for paper in Paper::ALL.into_iter().chain([Paper::Own]) {
            let is_on = |judgement: &&Judgement| judgement.claim.topic().paper == paper;
            let mut on_paper = judgements.iter().filter(is_on).peekable();
            if on_paper.peek().is_some() {
                let _ = writeln!(out, "\nverdicts on {}", paper.cited());
            }
            for judgement in on_paper {
                let _ = writeln!(
                    out,
                    "{:<25} {}: {} (then {}; here {})",
                    judgement.verdict_text(),
                    judgement.claim.origin.name(),
                    judgement.claim.says,
                    judgement.claim.then(),
                    judgement.here()
                );
            }
        }
    }

    /// The picture, lesson and verdicts of each system among the rows.
    pub fn descriptions(&self) -> String {
        let mut out = String::from("\nthe texts whose experiments are repeated:\n");
        for paper in Paper::ALL {
            let _ = writeln!(out, "{}", paper.cited());
        }
        let judgements = self.judgements();
        for topic in topics() {
            let rows: Vec<&Row> = self
                .rows
                .iter()
                .filter(|row| std::ptr::eq(row.about.topic, topic))
                .collect();
            if rows.is_empty() {
                continue;
            }
            let _ = writeln!(out, "\n{}\nfrom {}", topic.system, topic.paper.cited());
            for line in topic.picture.lines() {
                let _ = writeln!(out, "    {line}");
            }
            let _ = writeln!(out, "{}", topic.lesson);
            let is_on = |judgement: &&Judgement| judgement.claim.topic == topic.key;
            for judgement in judgements.iter().filter(is_on) {
                let _ = writeln!(out, "{}", described(judgement));
            }
            let names: Vec<&str> = rows.iter().map(|row| row.about.id.as_str()).collect();
            let _ = writeln!(out, "rows: {}", names.join(", "));
        }
        out
    }
}

/// A verdict in a message with its rows.
fn described(judgement: &Judgement) -> String {
    let rows = match judgement.verdict {
        Verdict::NotJudged => String::new(),
        _ => format!(", by {}", judgement.rows.join(" and ")),
    };
    format!(
        "{}: {} Then {}; here {}{rows}.",
        judgement.verdict_text(),
        judgement.claim.says,
        judgement.claim.then(),
        judgement.here()
    )
}

fn rate_unit(rows: &[&Row]) -> &'static str {
    if rows.iter().all(|row| row.about.bytes == 0) {
        "calls/s"
    } else {
        "GB/s"
    }
}

fn line(row: &Row, unit: &str) -> String {
    let or_nothing = |text: Option<String>| text.unwrap_or_default();
    let (time, spread) = match row.time() {
        Some(Time { median, spread, .. }) => (readable(median), format!("{:.1}%", 100.0 * spread)),
        None if matches!(row.outcome, Outcome::Failed(_)) => ("FAILED".into(), String::new()),
        None => ("—".into(), String::new()),
    };
    // In a table of rates the calls per second of a row have a unit of their own.
    let is_other_unit = unit != "calls/s" && row.about.bytes == 0;
    let (rate, calls) = match row.rate().map(short) {
        Some(calls) if is_other_unit => (None, format!("{calls} calls/s here")),
        rate => (rate, String::new()),
    };
    let calls = if row.ratio().is_some() {
        calls
    } else {
        String::new()
    };
    format!(
        "{:<58}{:>11}{:>6}{:>9}{:>6}{:>7}  {}",
        row.about.name,
        time,
        spread,
        or_nothing(rate),
        or_nothing(row.percent().map(|percent| format!("{percent:.0}"))),
        or_nothing(row.ratio().map(|ratio| format!("{}×", short(ratio)))),
        [calls, row.published(), row.diagnostics()]
            .into_iter()
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::driver;

    #[test]
    fn drivers_have_versions() {
        let text = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\nGCC version:  gcc version 12.3.0";
        assert_eq!(driver(text).as_deref(), Some("580.65.06"));
        assert_eq!(driver("x86_64 none"), None);
    }
}
