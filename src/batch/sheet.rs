//! The page of `info --html` and of `--report x.html`: a small picture, the facts, a histogram and warnings for each image. It
//! needs no other file.

mod html;
mod picture;
mod survey;

use super::about::About;
use super::item::Item;
use crate::formats::{Reader, Reading};
use crate::image::metadata::Diagnostics;
use crate::os::name::Shown;
use crate::timing::html::PageKind;
use anyhow::{Error, Result};
use html::{page, short};
use picture::picture;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use survey::Survey;

/// The page of `info --html`.
pub const INFO: PageKind = PageKind {
    mark: "<!DOCTYPE html>\n<!-- gpuimg info --html -->",
    name: "a page of info --html",
};

/// The page of `--report`.
pub const REPORT: PageKind = PageKind {
    mark: "<!DOCTYPE html>\n<!-- gpuimg --report -->",
    name: "a page of --report",
};

/// Files of a folder from which on one of them can be far from the others.
const SERIES: usize = 5;

/// A value is far from the median if it differs by more than this many times the median of all such differences…
const FAR: f64 = 5.0;

/// … and by more than this part of the median range.
const FAR_OF_RANGE: f64 = 0.05;

/// A page about files.
#[derive(Default)]
pub struct Sheet {
    files: Vec<File>,
}

/// A file on the page.
struct File {
    path: PathBuf,
    /// What it is, or the reason why it cannot be shown.
    image: Result<Box<Entry>, String>,
    /// What a run did with it.
    outcome: Option<FileRecord>,
}

/// An image on the page.
struct Entry {
    about: About,
    survey: Survey,
    /// The picture as a data URL, or why there is none.
    picture: Result<String>,
    warnings: Vec<String>,
}

/// The outcome for a file of a run.
#[derive(Debug)]
pub struct FileRecord {
    /// The file that was read.
    pub input: PathBuf,
    /// The file that was written.
    pub output: Option<PathBuf>,
    /// `done`, `damaged`, `skipped` or `failed`.
    pub status: &'static str,
    /// How long it took.
    pub seconds: f64,
    /// The reason of a failure, or the place of the damage.
    pub error: Option<String>,
    /// Warnings of the run.
    pub warnings: Vec<String>,
}

/// The status of files without a result.
pub const FAILED: &str = "failed";

impl Sheet {
    /// A page about the results of a run, or about its inputs if it had numbers as results. `reading` says how inputs are read.
    pub fn of_run(records: Vec<FileRecord>, reading: &Reading) -> Sheet {
        let files = records.into_par_iter();
        Sheet {
            files: files.map(|record| File::of_run(record, reading)).collect(),
        }
    }

    /// Adds a file that is known to be unreadable.
    pub fn add_unread(&mut self, path: &Path, error: &Error) {
        self.files.push(File {
            path: path.into(),
            image: Err(format!("cannot be read: {error:#}")),
            outcome: None,
        });
    }

    /// Adds images, whose first pages are decoded. Returns the errors of those that cannot be read, which are on the page with them.
    pub fn add_images(&mut self, items: &[Item], reading: &Reading) -> Vec<Error> {
        let entries: Vec<Result<Entry>> = items
            .par_iter()
            .map(|item| Entry::read(item, reading))
            .collect();
        let mut errors = Vec::new();
        for (item, entry) in items.iter().zip(entries) {
            match entry {
                Ok(entry) => self.files.push(File {
                    path: item.input.clone(),
                    image: Ok(Box::new(entry)),
                    outcome: None,
                }),
                Err(error) => {
                    self.add_unread(&item.input, &error);
                    errors.push(error.context(format!("cannot read {}", item.input.shown())));
                }
            }
        }
        errors
    }

    /// Whether a file could not be read.
    pub fn has_unread(&self) -> bool {
        self.files.iter().any(|file| file.image.is_err())
    }

    /// Writes the page.
    ///
    /// # Errors
    /// A page that cannot be written, or that would replace another file.
    pub fn write(&mut self, kind: &PageKind, path: &Path) -> Result<()> {
        warn_of_outliers(&mut self.files);
        kind.write(path, &page(kind, &self.files))
    }
}

impl File {
    fn of_run(record: FileRecord, reading: &Reading) -> File {
        let plain = Reading {
            max_pixels: reading.max_pixels,
            ..Reading::default()
        };
        let (path, reading) = match &record.output {
            Some(output) if record.status != FAILED => (output, &plain),
            _ => (&record.input, reading),
        };
        let image = match &record.error {
            Some(error) if record.status == FAILED => Err(format!("failed: {error}")),
            _ => Entry::read(&Item::listed(path.clone(), path.clone()), reading)
                .map(Box::new)
                .map_err(|error| format!("cannot be shown: {error:#}")),
        };
        File {
            path: path.clone(),
            image,
            outcome: Some(record),
        }
    }

    /// The warnings about the image, and those of the run.
    fn warnings(&self) -> impl Iterator<Item = &String> {
        let image = self.image.iter().flat_map(|entry| &entry.warnings);
        let run = self.outcome.iter().flat_map(|outcome| &outcome.warnings);
        image.chain(run)
    }
}

impl Entry {
    /// Decodes the first page of an image.
    fn read(item: &Item, reading: &Reading) -> Result<Entry> {
        let source = item.source()?;
        let about = About::read(&source, reading)?;
        let mut reader = Reader::open(&source, reading)?;
        let metadata = reader.metadata(&mut Diagnostics::default())?;
        let image = reader.decode()?;
        let survey = Survey::new(&image, &metadata);
        let mut warnings = survey.warnings();
        warnings.extend(reader.damage().map(|damage| format!("damaged: {damage}")));
        Ok(Entry {
            picture: picture(&item.input, image, metadata, reading),
            about,
            survey,
            warnings,
        })
    }
}

/// Warns of images whose mean or range is far from those of the other images of the same folder and type.
fn warn_of_outliers(files: &mut [File]) {
    let mut series: BTreeMap<(PathBuf, String), Vec<&mut Entry>> = BTreeMap::new();
    for file in files {
        if let Ok(entry) = &mut file.image {
            let folder = file.path.parent().unwrap_or(Path::new("")).into();
            let kind = entry.about.type_text();
            series.entry((folder, kind)).or_default().push(entry);
        }
    }
    for entries in series.values_mut().filter(|all| all.len() >= SERIES) {
        let ranges: Vec<f64> = entries.iter().map(|entry| entry.survey.width()).collect();
        let means: Vec<f64> = entries.iter().map(|entry| entry.survey.mean).collect();
        let least = FAR_OF_RANGE * median(&ranges);
        for (values, what) in [(means, "mean"), (ranges, "range")] {
            let middle = median(&values);
            let differences: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
            let limit = (FAR * median(&differences)).max(least);
            for (entry, (value, difference)) in
                entries.iter_mut().zip(values.iter().zip(&differences))
            {
                if *difference > limit {
                    entry.warnings.push(format!(
                        "outlier: its {what} is {}, and the median of the folder is {}",
                        short(*value),
                        short(middle)
                    ));
                }
            }
        }
    }
}

/// The median of one or more numbers, the mean of both in the middle of an even count.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0]), 3.0);
        assert_eq!(median(&[9.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), 3.0);
    }
}
