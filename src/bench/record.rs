//! The JSON object of a run: printed by `--json`, and read back by `--from`, which draws an earlier
//! run again: its times with the descriptions and claims of this version.

use super::all_cases;
use super::case::{Measured, Outcome, Row};
use super::claims::{Judgement, Test, Then};
use super::figure::Time;
use super::report::{Machine, Report};
use crate::os::name::Shown;
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

/// Version of the JSON object.
pub const SCHEMA: u64 = 4;

/// Checks that this version reads objects of this schema. Version 3 lacks the origins of the claims; its rows are the
/// same.
pub(super) fn check_schema(schema: Option<u64>) -> Result<()> {
    ensure!(
        schema == Some(3) || schema == Some(SCHEMA),
        "not what `gpuimg bench --json` prints (schema {SCHEMA})"
    );
    Ok(())
}

/// The JSON object of a run: the machine, the rows of the tables, and the verdicts.
#[derive(Serialize)]
struct RunRecord<'a> {
    schema: u64,
    version: &'a str,
    commit: &'a str,
    date: &'a str,
    gpu: Option<&'a str>,
    details: Option<&'a str>,
    driver: Option<&'a str>,
    memory_peak_gb_per_s: Option<f64>,
    threads: usize,
    input_bytes: u64,
    left_out: Option<&'a str>,
    wall_s: f64,
    failed: usize,
    rows: Vec<RowRecord<'a>>,
    verdicts: Vec<VerdictRecord>,
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
            paper: about.topic.paper.title(),
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
            published: Some(row.published()).filter(|text| !text.is_empty()),
            ratio_to_published: row.ratio(),
            fits_l2: row.fits_l2,
            pageable: about.pageable,
        }
    }
}

#[derive(Serialize)]
struct VerdictRecord {
    claim: &'static str,
    says: &'static str,
    paper: &'static str,
    /// The statement that it tests; several claims can test one.
    statement: &'static str,
    /// Who makes the claim: quoted, computed, inferred, ours.
    origin: &'static str,
    then: String,
    /// Where `then` is from: stated, computed, count, or none.
    basis: &'static str,
    /// The rows that were compared: the one said to be slower first.
    rows: Vec<String>,
    /// A ratio, a share, or the seconds until a call returned.
    here: Option<f64>,
    verdict: &'static str,
    /// The tables that would have to be run too.
    needs: Vec<&'static str>,
}

impl VerdictRecord {
    fn new(judgement: Judgement) -> VerdictRecord {
        let claim = judgement.claim;
        VerdictRecord {
            claim: claim.key,
            says: claim.says,
            paper: claim.topic().paper.title(),
            statement: claim.statement,
            origin: claim.origin.name(),
            then: claim.then(),
            basis: match claim.test {
                Test::Pair(.., Then::AtMost(..) | Then::AtLeast(..)) => "bound",
                Test::Pair(.., Then::Computed(..) | Then::Between(..)) | Test::Share(..) => {
                    "computed"
                }
                Test::Pair(.., Then::Count(_)) => "count",
                Test::Pair(.., Then::Slower) => "none",
                Test::Pair(..) | Test::Returns(..) => "stated",
            },
            rows: judgement.rows,
            here: judgement.here,
            verdict: judgement.verdict.text(),
            needs: judgement.needs.iter().map(|table| table.name()).collect(),
        }
    }
}

/// The JSON object of a run.
pub(super) fn json(report: &Report) -> serde_json::Result<String> {
    let machine = &report.machine;
    let verdicts = report.judgements().into_iter().map(VerdictRecord::new);
    serde_json::to_string(&RunRecord {
        schema: SCHEMA,
        version: &machine.version,
        commit: &machine.commit,
        date: &machine.date,
        gpu: machine.gpu.as_deref(),
        details: machine.details.as_deref(),
        driver: machine.driver.as_deref(),
        memory_peak_gb_per_s: machine.memory_peak,
        threads: machine.threads,
        input_bytes: machine.input,
        left_out: report.left_out.as_deref(),
        wall_s: report.wall.as_secs_f64(),
        failed: report.failures(),
        rows: report.rows.iter().map(RowRecord::new).collect(),
        verdicts: verdicts.collect(),
    })
}

/// The version of a JSON object, read before its other fields.
#[derive(Deserialize)]
pub(super) struct Version {
    pub(super) schema: Option<u64>,
}

/// What is read back: times, and what only the machine knew.
#[derive(Deserialize)]
struct Recorded {
    version: String,
    commit: String,
    date: String,
    gpu: Option<String>,
    details: Option<String>,
    driver: Option<String>,
    memory_peak_gb_per_s: Option<f64>,
    threads: usize,
    input_bytes: u64,
    left_out: Option<String>,
    wall_s: f64,
    rows: Vec<RecordedRow>,
}

#[derive(Deserialize)]
struct RecordedRow {
    id: String,
    state: String,
    remark: Option<String>,
    time_us: Option<f64>,
    fastest_us: Option<f64>,
    spread_percent: Option<f64>,
    runs: Option<usize>,
    ceiling_gb_per_s: Option<f64>,
    fits_l2: bool,
}

impl RecordedRow {
    fn outcome(&self) -> Outcome {
        let times = (
            self.time_us,
            self.fastest_us,
            self.spread_percent,
            self.runs,
        );
        match (times, self.state.as_str()) {
            ((Some(median), Some(fastest), Some(spread), Some(runs)), "checked") => {
                Outcome::Measured(Measured {
                    time: Time {
                        median: median / 1e6,
                        fastest: fastest / 1e6,
                        spread: spread / 100.0,
                        runs,
                    },
                    remark: self.remark.clone(),
                })
            }
            (_, "left out") => Outcome::LeftOut(self.remark.clone().unwrap_or_default()),
            _ => Outcome::Failed(self.remark.clone().unwrap_or_default()),
        }
    }
}

/// Reads what `--json` printed, as a report.
pub fn read(path: &Path) -> Result<Report> {
    let load = || parse(&std::fs::read_to_string(path)?);
    load().with_context(|| format!("cannot read {}", path.shown()))
}

/// A report from the JSON object that `--json` printed. Rows that this version does not know are
/// named as left out.
pub fn parse(text: &str) -> Result<Report> {
    let Version { schema } = serde_json::from_str(text)?;
    check_schema(schema)?;
    let recorded: Recorded = serde_json::from_str(text)?;
    let mut by_id: HashMap<&str, &RecordedRow> = recorded
        .rows
        .iter()
        .map(|row| (row.id.as_str(), row))
        .collect();
    let mut rows = Vec::new();
    for case in all_cases() {
        let Some(row) = by_id.remove(case.about.id.as_str()) else {
            continue;
        };
        rows.push(Row {
            fits_l2: row.fits_l2,
            ceiling: row.ceiling_gb_per_s,
            peak: recorded.memory_peak_gb_per_s,
            outcome: row.outcome(),
            about: case.about,
        });
    }
    let mut unknown: Vec<&str> = by_id.into_keys().collect();
    unknown.sort_unstable();
    let unknown = (!unknown.is_empty())
        .then(|| format!("rows unknown to this version: {}", unknown.join(", ")));
    let left_out: Vec<String> = recorded.left_out.into_iter().chain(unknown).collect();
    Ok(Report {
        rows,
        left_out: (!left_out.is_empty()).then(|| left_out.join("; ")),
        wall: Duration::from_secs_f64(recorded.wall_s.clamp(0.0, 1e9)),
        machine: Machine {
            gpu: recorded.gpu,
            details: recorded.details,
            driver: recorded.driver,
            memory_peak: recorded.memory_peak_gb_per_s,
            threads: recorded.threads,
            input: recorded.input_bytes,
            date: recorded.date,
            version: recorded.version,
            commit: recorded.commit,
        },
    })
}
