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

/// The JSON object of a run: the machine, the rows of the tables, and the verdicts.
#[derive(Debug, Serialize, Deserialize)]
pub struct RunRecord {
    schema: u64,
    version: String,
    commit: String,
    date: String,
    pub(super) gpu: Option<String>,
    details: Option<String>,
    driver: Option<String>,
    memory_peak_gb_per_s: Option<f64>,
    threads: usize,
    input_bytes: u64,
    left_out: Option<String>,
    wall_s: f64,
    failed: usize,
    pub(super) rows: Vec<RowRecord>,
    /// Judged again when a run is read back.
    #[serde(skip_deserializing)]
    verdicts: Vec<VerdictRecord>,
}

/// A row of a table.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RowRecord {
    pub(super) id: String,
    table: String,
    name: String,
    paper: String,
    system: String,
    state: String,
    /// A remark on the result, or the reason why there is no time.
    remark: Option<String>,
    time_us: Option<f64>,
    /// The fastest measurement; `None` for a row that was not measured.
    pub(super) fastest_us: Option<f64>,
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

impl RowRecord {
    fn new(row: &Row) -> RowRecord {
        let (state, remark) = match &row.outcome {
            Outcome::Measured(measured) => ("checked", measured.remark.clone()),
            Outcome::Failed(why) => ("FAILED", Some(why.clone())),
            Outcome::LeftOut(why) => ("left out", Some(why.clone())),
        };
        let (about, time) = (&row.about, row.time());
        RowRecord {
            id: about.id.clone(),
            table: about.table.name().into(),
            name: about.name.clone(),
            paper: about.topic.paper.title().into(),
            system: about.topic.system.into(),
            state: state.into(),
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

/// A claim, and what became of it.
#[derive(Debug, Serialize)]
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

impl RunRecord {
    /// The record of a run.
    pub fn new(report: &Report) -> RunRecord {
        let machine = report.machine.clone();
        let verdicts = report.judgements().into_iter().map(VerdictRecord::new);
        RunRecord {
            schema: SCHEMA,
            version: machine.version,
            commit: machine.commit,
            date: machine.date,
            gpu: machine.gpu,
            details: machine.details,
            driver: machine.driver,
            memory_peak_gb_per_s: machine.memory_peak,
            threads: machine.threads,
            input_bytes: machine.input,
            left_out: report.left_out.clone(),
            wall_s: report.wall.as_secs_f64(),
            failed: report.failures(),
            rows: report.rows.iter().map(RowRecord::new).collect(),
            verdicts: verdicts.collect(),
        }
    }

    /// One JSON object: the machine, and for each row the data of the tables (docs/SCHEMAS.md).
    ///
    /// # Errors
    /// None that can occur: all keys are text.
    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }

    /// Reads a file with the output of `--json`.
    ///
    /// # Errors
    /// It cannot be read, or is not such an output.
    pub fn read(path: &Path) -> Result<RunRecord> {
        let load = || RunRecord::parse(&std::fs::read_to_string(path)?);
        load().with_context(|| format!("cannot read {}", path.shown()))
    }

    /// Parses the JSON object that `--json` printed.
    ///
    /// # Errors
    /// It is not such an object, or one of another version.
    pub fn parse(text: &str) -> Result<RunRecord> {
        let Version { schema } = serde_json::from_str(text)?;
        // Version 3 lacks the origins of the claims; its rows are the same.
        ensure!(
            schema == Some(3) || schema == Some(SCHEMA),
            "not what `gpuimg bench --json` prints (schema {SCHEMA})"
        );
        Ok(serde_json::from_str(text)?)
    }

    /// The report of the run, with the descriptions of this version. Rows that this version does not know
    /// are named as left out.
    pub fn into_report(self) -> Report {
        let rows = self.rows.iter().map(|row| (row.id.as_str(), row));
        let mut by_id: HashMap<&str, &RowRecord> = rows.collect();
        let mut rows = Vec::new();
        for case in all_cases() {
            let Some(row) = by_id.remove(case.about.id.as_str()) else {
                continue;
            };
            rows.push(Row {
                fits_l2: row.fits_l2,
                ceiling: row.ceiling_gb_per_s,
                peak: self.memory_peak_gb_per_s,
                outcome: row.outcome(),
                about: case.about,
            });
        }
        let mut unknown: Vec<&str> = by_id.into_keys().collect();
        unknown.sort_unstable();
        let unknown = (!unknown.is_empty())
            .then(|| format!("rows unknown to this version: {}", unknown.join(", ")));
        let left_out: Vec<String> = self.left_out.into_iter().chain(unknown).collect();
        Report {
            rows,
            left_out: (!left_out.is_empty()).then(|| left_out.join("; ")),
            wall: Duration::from_secs_f64(self.wall_s.clamp(0.0, 1e9)),
            machine: Machine {
                gpu: self.gpu,
                details: self.details,
                driver: self.driver,
                memory_peak: self.memory_peak_gb_per_s,
                threads: self.threads,
                input: self.input_bytes,
                date: self.date,
                version: self.version,
                commit: self.commit,
            },
        }
    }
}

/// The version of a JSON object, read before its other fields.
#[derive(Deserialize)]
struct Version {
    schema: Option<u64>,
}
