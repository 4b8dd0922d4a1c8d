//! Compares two runs: which rows became slower or faster by more than the tolerance. The fastest
//! measurement of each row is compared, since other programs can only add to it.

use super::record::RunRecord;
use super::report::{Report, readable};
use std::fmt::Write;

/// Shorter rows are shown and do not count as slower: a few µs of variation in the driver are
/// several percent of their time.
const SHORT: f64 = 50e-6;

/// The factor on the tolerance for rows that depend on pageable memory: the placement of the pages
/// changed their times by up to a quarter on an idle machine.
const PAGEABLE: f64 = 3.0;

/// A row that both runs measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The row's id.
    pub id: String,
    /// The fastest times, earlier and now, in seconds.
    pub times: (f64, f64),
    /// Whether its time depends on pageable memory.
    pub pageable: bool,
}

impl Pair {
    fn ratio(&self) -> f64 {
        self.times.1 / self.times.0
    }

    fn counts(&self) -> bool {
        self.times.0.max(self.times.1) >= SHORT
    }

    /// The largest ratio that does not count as a change.
    fn bound(&self, tolerance: f64) -> f64 {
        1.0 + tolerance * if self.pageable { PAGEABLE } else { 1.0 }
    }
}

/// The comparison of two runs.
#[derive(Debug)]
pub struct Comparison {
    pairs: Vec<Pair>,
    tolerance: f64,
    /// Rows of the earlier run that this run did not measure.
    missing: Vec<String>,
    note: Option<String>,
}

impl Comparison {
    /// Compares two runs; the tolerance is in percent.
    pub fn new(earlier: &RunRecord, report: &Report, percent: f64) -> Comparison {
        let now = |id: &str| {
            let row = report.rows.iter().find(|row| row.about.id == id)?;
            Some((row.time()?.fastest, row.about.pageable))
        };
        let mut missing = Vec::new();
        let mut pairs = Vec::new();
        for row in &earlier.rows {
            let Some(fastest_us) = row.fastest_us else {
                continue;
            };
            match now(&row.id) {
                Some((now, pageable)) => pairs.push(Pair {
                    id: row.id.clone(),
                    times: (fastest_us / 1e6, now),
                    pageable,
                }),
                None => missing.push(row.id.clone()),
            }
        }
        let note = (earlier.gpu != report.machine.gpu).then(|| {
            let name = |gpu: &Option<String>| gpu.clone().unwrap_or_else(|| "no GPU".into());
            format!(
                "not the same GPU: {} earlier, {} now",
                name(&earlier.gpu),
                name(&report.machine.gpu)
            )
        });
        Comparison {
            pairs,
            tolerance: percent / 100.0,
            missing,
            note,
        }
    }

    /// The number of rows of 50 µs and more that became slower by more than the tolerance.
    pub fn slower(&self) -> usize {
        let slower = |pair: &&Pair| pair.counts() && pair.ratio() > pair.bound(self.tolerance);
        self.pairs.iter().filter(slower).count()
    }

    fn faster(&self) -> usize {
        let faster =
            |pair: &&Pair| pair.counts() && pair.ratio() < 1.0 / pair.bound(self.tolerance);
        self.pairs.iter().filter(faster).count()
    }

    /// The rows that changed, and a summary.
    pub fn text(&self) -> String {
        let mut out = String::from("\ncompared with the earlier run:\n");
        if let Some(note) = &self.note {
            let _ = writeln!(out, "{note}");
        }
        let mut moved: Vec<&Pair> = self
            .pairs
            .iter()
            .filter(|pair| pair.ratio().ln().abs() > pair.bound(self.tolerance).ln())
            .collect();
        moved.sort_by(|a, b| b.ratio().total_cmp(&a.ratio()));
        for pair in moved {
            let counts = if pair.counts() {
                ""
            } else {
                "  (short: does not count)"
            };
            let _ = writeln!(
                out,
                "{:<40}{:>12} → {:>12}  {:.2}×{counts}",
                pair.id,
                readable(pair.times.0),
                readable(pair.times.1),
                pair.ratio()
            );
        }
        if !self.missing.is_empty() {
            let _ = writeln!(out, "not measured now: {}", self.missing.join(", "));
        }
        let counted = self.pairs.iter().filter(|pair| pair.counts()).count();
        let _ = writeln!(
            out,
            "{counted} rows of 50 µs and more: {} slower and {} faster than {} % ({PAGEABLE} times that where pageable memory has a part); {} shorter rows",
            self.slower(),
            self.faster(),
            self.tolerance * 100.0,
            self.pairs.len() - counted
        );
        out
    }
}
