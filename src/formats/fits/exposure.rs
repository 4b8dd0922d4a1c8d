//! The exposure times of a set of images, as far as their headers state them: a sum has the total time of all images, any
//! other projection the time of each.

use super::header;
use crate::image::metadata::{Diagnostics, Metadata, Own, Record};
use serde::{Deserialize, Serialize};

/// Keywords of a time of exposure in seconds: XPOSURE is that of the standard (section 9).
const KEYWORDS: [&str; 3] = ["EXPTIME", "EXPOSURE", "XPOSURE"];

/// Nanoseconds in a second. Totals are whole nanoseconds, so that the order of the images does not change them.
const NANOSECONDS: u64 = 1_000_000_000;

/// The times of exposure of one image or of several, by keyword, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exposures {
    /// The total of all images; `None` if one has none.
    total: [Option<u64>; 3],
    /// The time of each image; `None` if they differ, or one has none.
    each: [Option<u64>; 3],
}

impl Exposures {
    /// The times of a page. A header of several pages does not state whether its time is that of one page or of all, so the
    /// total is unknown.
    pub fn new(metadata: &Metadata, is_only_page: bool) -> Exposures {
        let Own::Fits(records) = &metadata.own else {
            return Exposures::default();
        };
        let each = KEYWORDS.map(|keyword| {
            let record = records
                .iter()
                .find(|record| header::keyword(record) == keyword);
            record.and_then(nanoseconds)
        });
        let total = if is_only_page { each } else { [None; 3] };
        Exposures { total, each }
    }

    /// Adds the times of other images.
    #[must_use]
    pub fn join(&self, other: &Exposures) -> Exposures {
        let mut joined = Exposures::default();
        for i in 0..KEYWORDS.len() {
            joined.total[i] = self.total[i]
                .zip(other.total[i])
                .and_then(|(a, b)| a.checked_add(b));
            joined.each[i] = self.each[i].filter(|_| self.each[i] == other.each[i]);
        }
        joined
    }

    /// Makes the records of the first image true of a projection of all images, or removes them with a warning.
    pub fn update_records(
        &self,
        metadata: &mut Metadata,
        is_sum: bool,
        diagnostics: &mut Diagnostics,
    ) {
        let Own::Fits(records) = &mut metadata.own else {
            return;
        };
        for (i, keyword) in KEYWORDS.into_iter().enumerate() {
            let known = if is_sum { self.total[i] } else { self.each[i] };
            let mut is_left_out = false;
            records.retain_mut(|record| {
                if header::keyword(record) != keyword {
                    return true;
                }
                if known.is_some() && known != nanoseconds(record) {
                    *record = known.map_or(*record, |time| with_time(record, time));
                }
                is_left_out |= known.is_none();
                known.is_some()
            });
            if is_left_out {
                let why = if is_sum {
                    "its total is not known"
                } else {
                    "it is not the same number in every image"
                };
                let warning = format!("{keyword} of the header is left out: {why}");
                diagnostics.warnings.push(warning);
            }
        }
    }
}

/// The time in a record; `None` if it is not a plausible number.
fn nanoseconds(record: &Record) -> Option<u64> {
    let seconds = header::number(header::value_of(record)?)?;
    // Up to 31 years: the nanoseconds fit into 64 bits.
    let is_time = (0.0..1e9).contains(&seconds);
    is_time.then(|| (seconds * NANOSECONDS as f64).round() as u64)
}

/// A record with another time.
fn with_time(record: &Record, nanoseconds: u64) -> Record {
    let (whole, rest) = (nanoseconds / NANOSECONDS, nanoseconds % NANOSECONDS);
    let digits = format!("{rest:09}");
    let fraction = match digits.trim_end_matches('0') {
        "" => "0",
        digits => digits,
    };
    header::with_value(record, &format!("{whole}.{fraction}"))
}
