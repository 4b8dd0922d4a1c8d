//! Writes the pages of many files into one stack, one after the other. All pages share one range.

use super::destination::Destination;
use super::done::Done;
use super::errors::{Messages, cannot_write};
use super::job::{self, Job, Output, OutputPosition};
use super::shared::SharedStatistics;
use super::{Resources, RunRecord, check_page, page_bytes, with_fallback};
use crate::formats::{Format, PageSurvey, Reader, SlicePosition, Writer};
use crate::ops::{Operation, Position, chain};
use crate::os::name::Shown;
use crate::os::{CHANGED, Digest, Passes, Source};
use crate::timing::CodecClock;
use anyhow::{Context, Result, ensure};
use std::path::Path;

/// An input of a stack.
#[derive(Clone, Copy, Debug)]
pub struct StackInput<'a> {
    /// Its path.
    pub path: &'a Path,
    /// Its position among all inputs.
    pub position: Option<Position>,
    /// Whether it must be a regular file.
    pub must_be_regular: bool,
}

/// Runs `ops` on every page of all inputs and writes them to `output`, one after the other. Only one file is open at a time. Each
/// file is opened several times: for the survey, for each statistic that pages share, and for processing. If `auto` chose a GPU
/// and it fails, everything is done again on the CPU.
///
/// # Errors
/// The first file that cannot be read or processed, and an output that cannot be written. After an error there is no output.
pub fn process_into_stack(
    ops: &[&dyn Operation],
    inputs: &[StackInput],
    output: &Destination,
    resources: &Resources,
) -> Result<Done> {
    let attempt = || process_once(ops, inputs, output, resources);
    let can_repeat = inputs.iter().all(|input| input.must_be_regular);
    with_fallback(attempt, can_repeat, resources.devices)
}

fn process_once(
    ops: &[&dyn Operation],
    inputs: &[StackInput],
    output: &Destination,
    resources: &Resources,
) -> Result<Done> {
    let mut target = output.create()?;
    let cannot_write = || cannot_write(&output.path);
    let files = Files {
        verb: chain::verb(ops),
        resources,
        passes: Passes::default(),
    };
    let mut inputs = inputs.to_vec();
    let mut survey = files.survey(ops, &inputs, output)?;
    if survey.sort_slices(&mut inputs) {
        survey = files.survey(ops, &inputs, output)?;
        let sorted = "its slices are sorted by their positions (ImagePositionPatient), which the names do not follow";
        survey.warnings.push(sorted.into());
    }
    target.store_input = survey.content_key();
    // Checked before the reservation, which reduces the free memory.
    let is_too_large = resources.is_too_large(survey.largest_page);
    let _reservation = resources.reserve(survey.largest_page);
    let writer = Writer::new(
        survey.format,
        &output.options,
        &target,
        &survey.output_pages,
    );
    let writer = writer.with_context(cannot_write)?;
    let file = Output::to_file(output, &target, writer);
    let mut job = Job::new(ops, Some(file), resources, survey.output_pages.len());
    job.row_bands |= is_too_large;
    for warning in survey.warnings {
        job.diagnostics.add_about_file(Some(warning));
    }
    let mut shared = SharedStatistics::default();
    for operation in SharedStatistics::operations(ops) {
        for (input, position) in inputs.iter().zip(&survey.positions) {
            job.position = input.position;
            files.visit(input, Some(*position), |file| {
                job.measure_file(operation, file, &mut shared)
            })?;
        }
    }
    let mut damage = None;
    for (input, position) in inputs.iter().zip(&survey.positions) {
        job.position = input.position;
        files.visit(input, Some(*position), |file| {
            let pages = file.reader.pages().len();
            ensure!(
                pages == position.pages,
                "{}: {CHANGED}",
                file.messages.cannot_read()
            );
            job.check_channels(file)?;
            for index in 0..pages {
                job.run_page(file, &shared, index)?;
            }
            damage = damage.take().or(file.reader.damage());
            Ok(())
        })?;
    }
    let first_shape = survey.output_pages[0].shape;
    let finished = job.finish(first_shape, damage);
    finished.commit(output, target, None, RunRecord::NONE.announce)
}

/// The inputs, which are opened several times and must not change meanwhile.
struct Files<'a> {
    verb: &'static str,
    resources: &'a Resources<'a>,
    passes: Passes,
}

/// The information from the headers of all inputs.
struct Survey {
    /// The format of the output.
    format: &'static Format,
    /// The largest shape of each page of the output, and the bytes of its metadata.
    output_pages: Vec<PageSurvey>,
    /// The position of each input's pages in the output.
    positions: Vec<OutputPosition>,
    /// The position of each input among parallel slices of a volume, if it has one.
    slices: Vec<Option<SlicePosition>>,
    /// Bytes of memory that the largest page needs.
    largest_page: u64,
    /// Warnings about the files.
    warnings: Vec<String>,
    /// What tells the content of each file from any other; `None` if that is not known of all.
    content_keys: Option<Vec<String>>,
}

impl Survey {
    /// Sorts the inputs by their positions in a volume, if all are parallel slices at positions of their own. Returns whether the order
    /// has changed.
    fn sort_slices(&self, inputs: &mut Vec<StackInput>) -> bool {
        let Some(slices) = self.slices.iter().copied().collect::<Option<Vec<_>>>() else {
            return false;
        };
        let is_parallel = slices.iter().all(|slice| slice.is_parallel(&slices[0]));
        if !is_parallel || slices.is_sorted_by(|a, b| a.distance < b.distance) {
            return false;
        }
        let mut order: Vec<usize> = (0..inputs.len()).collect();
        order.sort_by(|&a, &b| slices[a].distance.total_cmp(&slices[b].distance));
        // Positions that occur twice are those of several volumes, whose slices belong together.
        let is_one_volume = order.is_sorted_by(|&a, &b| slices[a].distance < slices[b].distance);
        if is_one_volume {
            *inputs = order.iter().map(|&index| inputs[index]).collect();
        }
        is_one_volume
    }

    /// What tells the content of all files from any other, if that is known.
    fn content_key(&self) -> Option<String> {
        let keys = self.content_keys.as_ref()?.join("\n");
        serde_json::to_string(&Digest::from_bytes(keys.as_bytes())).ok()
    }
}

impl Files<'_> {
    /// Opens each file once, and checks its pages against the operations and the output.
    fn survey(
        &self,
        ops: &[&dyn Operation],
        inputs: &[StackInput],
        output: &Destination,
    ) -> Result<Survey> {
        let cannot_write = || cannot_write(&output.path);
        let mut format = output.format;
        let (mut output_pages, mut positions) = (Vec::new(), Vec::new());
        let (mut largest, mut warnings) = (0, Vec::new());
        let (mut slices, mut content_keys) = (Vec::new(), Vec::new());
        for input in inputs {
            self.visit(input, None, |file| {
                let messages = file.messages;
                let surveys = file.reader.surveys();
                let surveys = surveys.with_context(|| messages.cannot_read())?;
                slices.push(file.reader.slice_position());
                content_keys.push(file.source.content_key());
                let left_out = file.reader.left_out();
                warnings.extend(left_out.map(|text| format!("{}: {text}", input.path.shown())));
                let bytes = page_bytes(&file.reader, ops, Some(output));
                largest = largest.max(bytes.with_context(|| messages.cannot_read())?);
                positions.push(OutputPosition {
                    pages_before: output_pages.len(),
                    pages: surveys.len(),
                    pages_of_all: 0,
                });
                let format = *format.get_or_insert(output.format_for(file.reader.format())?);
                for page in surveys {
                    check_page(ops, page.shape, Some(output), messages)?;
                    let result = chain::result(ops, page.shape);
                    let checked = format.check_path(&output.path, &result);
                    checked.with_context(cannot_write)?;
                    output_pages.push(PageSurvey {
                        shape: output.largest_output(result),
                        ..page
                    });
                }
                Ok(())
            })?;
        }
        for position in &mut positions {
            position.pages_of_all = output_pages.len();
        }
        let format = format.context("there is no input");
        Ok(Survey {
            format: format.with_context(cannot_write)?,
            output_pages,
            positions,
            slices,
            largest_page: largest,
            warnings,
            content_keys: content_keys.into_iter().collect(),
        })
    }

    /// Opens a file, calls `work` with it, and checks that the file has not changed since an earlier pass.
    fn visit(
        &self,
        input: &StackInput,
        position: Option<OutputPosition>,
        work: impl FnOnce(&mut job::Input) -> Result<()>,
    ) -> Result<()> {
        let messages = Messages {
            verb: self.verb,
            input: input.path,
        };
        let cannot_read = || messages.cannot_read();
        let source = if input.must_be_regular {
            Source::open_file(input.path)
        } else {
            Source::open(input.path)
        };
        let source = source.with_context(cannot_read)?;
        let mut opening = CodecClock::default();
        let reader = opening.run(|| Reader::open(&source, &self.resources.reading));
        let reader = reader.with_context(cannot_read)?;
        let mut file = job::Input {
            messages,
            source: &source,
            reader,
            opening,
            position,
        };
        work(&mut file)?;
        drop(file);
        self.passes
            .check(input.path, &source)
            .with_context(cannot_read)
    }
}
