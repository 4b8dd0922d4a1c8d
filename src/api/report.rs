//! What became of an image.

use crate::engine::Done;
use crate::image::metadata::Diagnostics;

/// What the user of an image should know of how it was read, made or written. Nothing of it is printed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// What changes the meaning of the result; the command line always prints these.
    pub warnings: Vec<String>,
    /// Metadata that were not kept, and faster ways that were not possible; the command line prints these with `--verbose`.
    pub notes: Vec<String>,
    /// Where the file is damaged, if it was read with [`ReadOptions::keep_going`](crate::ReadOptions::keep_going); the samples
    /// there are 0.
    pub damage: Option<String>,
    /// For each page the ranges that `normalize` scaled the values from, in the values of the image: one for all colours, or
    /// one for each channel. A page that was not scaled has none.
    pub ranges: Vec<Vec<(f64, f64)>>,
    /// The device that ran the operations, and why it was chosen; empty if none ran.
    pub device: String,
    /// The plan of the first page, as text; empty if no operation ran.
    pub plan: String,
}

impl Report {
    /// The report of a page that was read.
    pub(super) fn of_reading(diagnostics: Diagnostics, damage: Option<String>) -> Report {
        Report {
            warnings: diagnostics.warnings,
            notes: diagnostics.notes,
            damage,
            ..Report::default()
        }
    }

    /// The report of a job.
    pub(crate) fn of_job(done: Done) -> Report {
        let ranges = done.results.pages.iter().map(|page| {
            let ranges = page.ranges.iter();
            ranges
                .map(|(min, max)| (min.as_f64(), max.as_f64()))
                .collect()
        });
        Report {
            ranges: ranges.collect(),
            warnings: done.warnings.into_iter().map(|it| it.text).collect(),
            notes: done.notes,
            damage: done.damage,
            device: done.device,
            plan: done.plan,
        }
    }
}
