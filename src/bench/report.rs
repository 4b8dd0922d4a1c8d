//! A finished run, printed as tables, as descriptions with verdicts, or as one JSON object.

use super::case::{Outcome, Row, rate_of};
use super::context::Host;
use super::figure::{Published, Time, short};
use super::papers::topics;
use super::table::Table;
use crate::device::cuda::Gpu;
use anyhow::Result;
use clap::ValueEnum;
use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;

/// Version of the JSON object.
pub const SCHEMA: u64 = 2;

/// The machine on which the rows were measured.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The GPU's name, if there is one.
    pub gpu: Option<String>,
    /// Further properties of the GPU: capability, multiprocessors, cache, memory, driver, link.
    pub details: Option<String>,
    /// The number of host threads that were used.
    pub threads: usize,
    /// Bytes of the main input.
    pub input: u64,
}

impl Machine {
    pub(super) fn of(gpu: Option<&Gpu>, host: &Host) -> Result<Machine> {
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
            threads: rayon::current_num_threads(),
            input: host.sizes.bytes as u64,
        })
    }

    /// The machine in a line or two.
    pub fn text(&self) -> String {
        let gpu = match (&self.gpu, &self.details) {
            (Some(gpu), Some(details)) => format!("{gpu}: {details}\n"),
            _ => String::new(),
        };
        format!(
            "{gpu}host: {} threads; main input {} MiB",
            self.threads,
            self.input >> 20
        )
    }
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The machine.
    pub machine: Machine,
    /// The rows, table by table.
    pub rows: Vec<Row>,
    /// The rows that were not run without a GPU, as a sentence.
    pub left_out: Option<String>,
    /// The duration of the run.
    pub wall: Duration,
}

/// A time with a suitable unit.
pub fn readable(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.3} s"),
        s if s >= 1e-3 => format!("{:.3} ms", s * 1e3),
        s => format!("{:.2} µs", s * 1e6),
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

    /// Tables for a terminal.
    pub fn text(&self) -> String {
        let mut out = self.machine.text() + "\n";
        for (table, rows) in self.tables() {
            let _ = writeln!(out, "\n{}", table.title());
            let _ = writeln!(
                out,
                "{:<58}{:>11}{:>6}{:>9}{:>6}  {:<24}{:>7}",
                "",
                "time",
                "±",
                rate_unit(&rows),
                "%",
                "published",
                "ratio"
            );
            for row in rows {
                let _ = writeln!(out, "{}", line(row).trim_end());
            }
        }
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

    /// The picture, lesson and verdict of each system among the rows.
    pub fn descriptions(&self) -> String {
        let mut out = String::new();
        for topic in topics() {
            let rows: Vec<&Row> = self
                .rows
                .iter()
                .filter(|row| std::ptr::eq(row.about.topic, topic))
                .collect();
            if rows.is_empty() {
                continue;
            }
            let _ = writeln!(out, "\n{}: {}", topic.paper.name(), topic.system);
            for line in topic.picture.lines() {
                let _ = writeln!(out, "    {line}");
            }
            let _ = writeln!(out, "{}", topic.lesson);
            if let Some(claim) = &topic.claim {
                let _ = writeln!(out, "{}", claim.verdict(|id| rate_of(&self.rows, id)));
            }
            let names: Vec<&str> = rows.iter().map(|row| row.about.id.as_str()).collect();
            let _ = writeln!(out, "rows: {}", names.join(", "));
        }
        out
    }

    /// One JSON object: the machine, and for each row the data of the tables (docs/SCHEMAS.md).
    ///
    /// # Errors
    /// None that can occur: all keys are text.
    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string(&RunRecord {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            gpu: self.machine.gpu.as_deref(),
            details: self.machine.details.as_deref(),
            threads: self.machine.threads,
            input_bytes: self.machine.input,
            left_out: self.left_out.as_deref(),
            wall_s: self.wall.as_secs_f64(),
            failed: self.failures(),
            rows: self.rows.iter().map(RowRecord::new).collect(),
        })
    }
}

/// The JSON object of a run: the machine, and the rows of the tables.
#[derive(Serialize)]
struct RunRecord<'a> {
    schema: u64,
    version: &'static str,
    gpu: Option<&'a str>,
    details: Option<&'a str>,
    threads: usize,
    input_bytes: u64,
    left_out: Option<&'a str>,
    wall_s: f64,
    failed: usize,
    rows: Vec<RowRecord<'a>>,
}

#[derive(Serialize)]
struct RowRecord<'a> {
    id: &'a str,
    table: &'static str,
    name: &'a str,
    paper: &'static str,
    system: &'a str,
    state: &'static str,
    /// A remark on the result, or the reason why there is no time.
    remark: Option<&'a str>,
    time_us: Option<f64>,
    fastest_us: Option<f64>,
    spread_percent: Option<f64>,
    runs: Option<usize>,
    bytes: u64,
    gb_per_s: Option<f64>,
    calls_per_s: Option<f64>,
    ceiling_gb_per_s: Option<f64>,
    percent_of_ceiling: Option<f64>,
    published: Option<String>,
    ratio_to_published: Option<f64>,
    fits_l2: bool,
    pageable: bool,
}

impl RowRecord<'_> {
    fn new(row: &Row) -> RowRecord<'_> {
        let (state, remark) = match &row.outcome {
            Outcome::Measured(measured) => ("checked", measured.remark.as_deref()),
            Outcome::Failed(why) => ("FAILED", Some(why.as_str())),
            Outcome::LeftOut(why) => ("left out", Some(why.as_str())),
        };
        let (about, time) = (&row.about, row.time());
        RowRecord {
            id: &about.id,
            table: about.table.name(),
            name: &about.name,
            paper: about.topic.paper.name(),
            system: about.topic.system,
            state,
            remark,
            time_us: time.map(|time| time.median * 1e6),
            fastest_us: time.map(|time| time.fastest * 1e6),
            spread_percent: time.map(|time| time.spread * 100.0),
            runs: time.map(|time| time.runs),
            bytes: about.bytes,
            gb_per_s: row.rate().filter(|_| about.bytes > 0),
            calls_per_s: row.rate().filter(|_| about.bytes == 0),
            ceiling_gb_per_s: row.ceiling,
            percent_of_ceiling: row.percent(),
            published: about.published.as_ref().map(Published::text),
            ratio_to_published: row.ratio(),
            fits_l2: row.fits_l2,
            pageable: about.pageable,
        }
    }
}

fn rate_unit(rows: &[&Row]) -> &'static str {
    if rows.iter().all(|row| row.about.bytes == 0) {
        "calls/s"
    } else {
        "GB/s"
    }
}

fn line(row: &Row) -> String {
    let or_nothing = |text: Option<String>| text.unwrap_or_default();
    let (time, spread) = match row.time() {
        Some(Time { median, spread, .. }) => (readable(median), format!("{:.1}%", 100.0 * spread)),
        None if matches!(row.outcome, Outcome::Failed(_)) => ("FAILED".into(), String::new()),
        None => ("—".into(), String::new()),
    };
    // In a table of rates, rows that count calls show only their time.
    let rate = row
        .rate()
        .filter(|_| row.about.bytes > 0 || row.about.published.is_some());
    format!(
        "{:<58}{:>11}{:>6}{:>9}{:>6}  {:<24}{:>7}  {}",
        row.about.name,
        time,
        spread,
        or_nothing(rate.map(short)),
        or_nothing(row.percent().map(|percent| format!("{percent:.0}"))),
        or_nothing(row.about.published.as_ref().map(Published::text)),
        or_nothing(row.ratio().map(|ratio| format!("{}×", short(ratio)))),
        row.diagnostics()
    )
}
