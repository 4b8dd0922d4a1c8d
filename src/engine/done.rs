//! The outcome for an image: numbers, messages for the user, and times.

use crate::image::Shape;
use crate::image::metadata::Hint;
use crate::image::number::Number;
use crate::ops::counts::Counts;
use crate::ops::sum::Totals;
use crate::ops::sum_of;
use crate::os::Sha256;
use crate::os::outcome::Outcome;
use crate::timing::Timeline;
use anyhow::Result;
use serde::Serialize;

/// The outcome for one image.
#[derive(Debug)]
pub struct Done {
    /// The shape of the first page.
    pub shape: Shape,
    /// The numbers that the operation computed.
    pub results: Results,
    /// Warnings for the user, always printed.
    pub warnings: Vec<Warning>,
    /// Notes for the user, printed with `--verbose`.
    pub notes: Vec<String>,
    /// A description of the damaged parts, which are 0 in the output, if `--keep-going` was given.
    pub damage: Option<String>,
    /// The device that processed the image, and why it was chosen.
    pub device: String,
    /// The plan of the first page, as text.
    pub plan: String,
    /// The time that each stage took.
    pub timeline: Timeline,
    /// The digests of its files; none unless they were asked for.
    pub digests: Digests,
}

/// The SHA-256 of the files of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    /// Of the input.
    pub input: Option<Sha256>,
    /// Of the separate file with its samples, if the input is only a header.
    pub samples: Option<Sha256>,
    /// Of the output.
    pub output: Option<Sha256>,
}

/// A warning about an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Warning {
    /// The message, without the file's name.
    pub text: String,
    /// The hint that this warning gives, if any.
    #[serde(skip)]
    pub hint: Option<Hint>,
}

/// A message about an image for the user.
pub struct Message {
    /// The message, with `{file}` in place of the file's name.
    pub text: String,
    /// The hint that this message gives, if any.
    pub hint: Option<Hint>,
}

/// The numbers of the pages of one image.
#[derive(Debug, Default)]
pub struct Results {
    /// The totals of each page, for `sum`.
    pub totals: Vec<Totals>,
    /// The counts of all pages, for `histogram`.
    pub counts: Option<Counts>,
    /// The pages that were processed, in order.
    pub pages: Vec<PageResult>,
}

/// The facts about a page that has been processed.
#[derive(Clone, Debug, PartialEq)]
pub struct PageResult {
    /// Its number in the file, from 1.
    pub page: usize,
    /// Its shape as it was read.
    pub shape: Shape,
    /// Whether its samples are signed.
    pub signed: bool,
    /// The input ranges that values were scaled from: one for all colours, or one for each colour channel. None if no values
    /// were scaled.
    pub ranges: Vec<(Number, Number)>,
    /// Whether to print the ranges even without `--verbose`.
    pub print_ranges: bool,
    /// How many samples were clamped, if they were counted.
    pub clamped: Option<u64>,
    /// The number of pages of the file, if a preview shows only this one.
    pub preview_of: Option<usize>,
}

impl PageResult {
    /// The first page, of this shape and without sign, whose values were not scaled.
    pub fn unscaled(shape: Shape) -> PageResult {
        PageResult {
            page: 1,
            shape,
            signed: false,
            ranges: Vec::new(),
            print_ranges: false,
            clamped: None,
            preview_of: None,
        }
    }

    /// The message that names the ranges that values were scaled from.
    pub fn range_message(&self) -> String {
        let ranges = self.ranges.iter();
        let ranges: Vec<String> = ranges.map(|(min, max)| format!("{min}:{max}")).collect();
        let ranges = ranges.join(", ");
        match self.preview_of {
            None => format!("scaled from the range {ranges}"),
            Some(pages) => format!(
                "page {} of {pages}, scaled from the range {ranges} (--page N shows another)",
                self.page
            ),
        }
    }
}

impl Digests {
    /// Those of all that the input consists of.
    pub fn contents(&self) -> Vec<Sha256> {
        self.input.into_iter().chain(self.samples).collect()
    }
}

impl Results {
    /// How many samples of all pages were clamped, if they were counted.
    pub fn clamped(&self) -> Option<u64> {
        let pages = self.pages.iter().map(|page| page.clamped);
        pages.fold(None, sum_of)
    }

    /// Adds the counts of a page.
    pub(super) fn add_counts(&mut self, more: Counts) -> Result<()> {
        match &mut self.counts {
            None => self.counts = Some(more),
            Some(counts) => counts.join(&more)?,
        }
        Ok(())
    }
}

impl Done {
    /// The outcome for an image of these pages, in order, to which nothing was done; the first has this shape.
    pub fn of_pages(shape: Shape, pages: impl Iterator<Item = PageResult>) -> Done {
        let numbered = pages.zip(1..);
        let pages: Vec<_> = numbered
            .map(|(found, page)| PageResult { page, ..found })
            .collect();
        Done {
            shape,
            results: Results {
                pages,
                ..Results::default()
            },
            warnings: Vec::new(),
            notes: Vec::new(),
            damage: None,
            device: String::new(),
            plan: String::new(),
            timeline: Timeline::default(),
            digests: Digests::default(),
        }
    }

    /// All messages about this image for the user.
    pub fn messages(&self, verbose: bool) -> Vec<Message> {
        let warnings = self.warnings.iter().map(|warning| Message {
            text: format!("warning: {{file}}: {}", warning.text),
            hint: warning.hint,
        });
        let without_hint = |text| Message { text, hint: None };
        let damage = self.damage.as_ref();
        let damage = damage.map(|damage| {
            format!("{{file}} is damaged; missing parts are filled with 0: {damage}")
        });
        let notes = self.notes.iter().filter(|_| verbose);
        let notes = notes.map(|note| format!("{{file}}: {note}"));
        warnings
            .chain(damage.into_iter().chain(notes).map(without_hint))
            .collect()
    }

    /// Whether the whole image was processed without damage.
    pub fn outcome(&self) -> Outcome {
        match self.damage {
            Some(_) => Outcome::SomeFailed,
            None => Outcome::Done,
        }
    }
}
