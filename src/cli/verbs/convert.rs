//! `normalize`, `transpose`, `rotate`, `flip`: every operation whose result is an image.

use super::frames::{frames, has_frames};
use super::single::single;
use super::split::split;
use super::stack::stack;
use crate::batch::conversion::Conversion;
use crate::batch::histogram::Set;
use crate::batch::inputs::{self, Selection};
use crate::batch::item::{Items, Unread};
use crate::batch::key::Job;
use crate::batch::lineage::FilesRead;
use crate::batch::naming::Naming;
use crate::batch::options::{Bits, Files, Options};
use crate::batch::watch::range_file::RangeFile;
use crate::batch::{self, failures, output_paths};
use crate::cli::print_error;
use crate::cli::{Images, WholeSet};
use crate::engine::Destination;
use crate::engine::options::Common;
use crate::formats::{Format, Reader, Reading};
use crate::gpu::Choice;
use crate::image::Depth;
use crate::ops::Operation;
use crate::ops::set_range::SetRange;
use crate::os::console;
use crate::os::name::Shown;
use crate::os::outcome::{Outcome, usage};
use crate::os::{Source, StoreRun};
use anyhow::{Context, Result, anyhow, ensure};
use std::path::{Path, PathBuf};

/// Runs an operation on each image, with its own statistic or with that of a whole set.
pub fn run(images: &Images) -> Result<Outcome> {
    let Images {
        op,
        set,
        follow,
        files,
        common,
    } = images;
    common.check()?;
    let mut conversion = Conversion::from_arguments(files, common).map_err(usage)?;
    check(set, &conversion, files).map_err(usage)?;
    if let Some(path) = set.range_from.as_ref().filter(|_| *follow) {
        let range_file = RangeFile::new(path, &**op)?;
        let range = Range::Followed(&range_file);
        return convert(&[&**op], range, &conversion, files, common);
    }
    with_operation(&**op, set, &mut conversion, files, common, convert)
}

/// Calls `work` with an operation, whose set has been measured.
pub(super) fn with_operation(
    op: &dyn Operation,
    set: &WholeSet,
    conversion: &mut Conversion,
    files: &Files,
    common: &Common,
    work: impl FnOnce(&[&dyn Operation], Range, &Conversion, &Files, &Common) -> Result<Outcome>,
) -> Result<Outcome> {
    let range = if set.across {
        Range::Across
    } else {
        Range::Fixed
    };
    match measure_set_range(&[], op, set, conversion, files, common)? {
        Measured::Itself => work(&[op], range, conversion, files, common),
        Measured::Set(set_range) => work(&[&set_range], range, conversion, files, common),
        Measured::Nothing(outcome) => Ok(outcome),
    }
}

/// Refuses the source of a range that the other options contradict.
///
/// # Errors
/// Wrong usage.
pub(super) fn check(set: &WholeSet, conversion: &Conversion, files: &Files) -> Result<()> {
    let batch = &files.batch;
    if let Some(range) = &set.range_from {
        let what = "the histogram of --range-from";
        let Conversion { items, naming, .. } = conversion;
        output_paths::keep_results_off(what, &[range], &items.items, naming, files)?;
    }
    if let Some((report, range)) = batch.report.as_ref().zip(set.range_from.as_ref()) {
        output_paths::keep_report_off(report, &[], &[range])?;
    }
    ensure!(
        !(set.across && files.stack),
        "--stack already gives all pages one range: remove --across, which is for separate output files"
    );
    ensure!(
        !(set.across && batch.watching.watch),
        "--across measures all images first, but --watch does not know future images: measure a sample with gpuimg histogram and use --range-from FILE"
    );
    if set.across {
        conversion.items.can_be_read_twice("--across")?;
    }
    Ok(())
}

/// The source of an operation's statistic.
pub(super) enum Measured<'a> {
    /// Each image or stack, or the options.
    Itself,
    /// A whole set.
    Set(SetRange<'a>),
    /// There is no range, because no image of the set could be read.
    Nothing(Outcome),
}

/// Binds an operation to the set that the options name, if they name one: with `--across`, the results of the operations
/// `before` it for all inputs.
pub(super) fn measure_set_range<'a>(
    before: &[&dyn Operation],
    op: &'a dyn Operation,
    set: &WholeSet,
    conversion: &mut Conversion,
    files: &Files,
    common: &Common,
) -> Result<Measured<'a>> {
    let batch = &files.batch;
    let counted = match (&set.range_from, set.across) {
        (Some(path), _) => {
            if conversion.items.keeps_digests {
                let read = histogram_read(path, &common.reading)?;
                conversion.reads.push(read);
            }
            let set = Set::read(path)?;
            if !batch.verbosity.quiet {
                set.mention_failed(path);
            }
            set
        }
        // A dry run needs no range, unless it must know whether an earlier run used the same range.
        (None, true) if !batch.dry_run || batch.resume => {
            match across(before, &mut conversion.items, batch, common)? {
                Some(set) => {
                    if conversion.items.keeps_digests {
                        let read = FilesRead::measured("--across", &conversion.items);
                        conversion.reads.push(read);
                    }
                    set
                }
                None => return Ok(Measured::Nothing(Outcome::SomeFailed)),
            }
        }
        (None, _) => return Ok(Measured::Itself),
    };
    let source = set.range_from.as_deref().unwrap_or(Path::new("the set"));
    let set_range = counted
        .into_counts()
        .and_then(|counts| SetRange::new(op, counts));
    let set_range =
        set_range.with_context(|| format!("cannot use the range of {}", source.shown()))?;
    Ok(Measured::Set(match set.range_from {
        None => set_range.on_its_images(),
        Some(_) => set_range,
    }))
}

/// The histogram of `--range-from`, for a report.
fn histogram_read(path: &Path, reading: &Reading) -> Result<FilesRead> {
    let all = Selection::default();
    let files = inputs::collect(&[path.into()], &all, reading, None)?;
    FilesRead::new("--range-from", &files, reading)
}

/// The histogram of the results of the operations `before`, for all items. Without some of them the range would be another
/// one: if an item cannot be read, there is no histogram and each is reported, unless `--keep-going` leaves it out of this
/// pass and of the next one, which reports it.
fn across(
    before: &[&dyn Operation],
    items: &mut Items,
    options: &Options,
    common: &Common,
) -> Result<Option<Set>> {
    let first = Options {
        report: None,
        resume: false,
        dry_run: false,
        ..options.clone()
    };
    let files = items.items.len() + items.unread.len();
    items.passes.get_or_insert_default();
    let measured = batch::measure_set(before, items, &first, common, false)?;
    for (item, digests) in items.items.iter_mut().zip(measured.digests) {
        item.digests = digests;
    }
    items.leave_out(measured.failures);
    let failed = items.unread.len();
    if failed == 0 || common.reading.keep_going && measured.set.counts.is_some() {
        return Ok(Some(measured.set));
    }
    if failed < files {
        for unread in &items.unread {
            print_error(&unread.error());
        }
        print_error(&anyhow!(
            "nothing was written: --across needs the range of all images, but {failed} of {files} could not be read (use --keep-going to leave them out)"
        ));
    } else {
        let errors = items.unread.iter().map(Unread::error);
        for line in failures::lines(errors) {
            console::tell(&format!("gpuimg: {line}"));
        }
    }
    Ok(None)
}

/// The source of the range of a set.
pub(super) enum Range<'a> {
    /// The options, a histogram, or each image.
    Fixed,
    /// The inputs themselves.
    Across,
    /// A histogram that is read again when it changes.
    Followed(&'a RangeFile<'a>),
}

/// The depth of the results: that of `--depth`, or 8 bits where their format has no other.
fn depth(
    ops: &[&dyn Operation],
    asked: &Conversion,
    files: &Files,
    common: &Common,
) -> Option<Depth> {
    if calibrates(ops) {
        return files.depth.map(Depth::from);
    }
    let keeps_depth = || match asked.items.items.as_slice() {
        [item] => item.is_stream() || has_eight_bits(|| item.source(), &common.reading),
        _ => false,
    };
    let format = asked.format.or_else(|| asked.naming.format());
    let quiet = files.batch.verbosity.quiet;
    depth_of_format(files.depth, format, quiet, keeps_depth)
}

/// Whether the last operation is `calibrate`. Its frames have the depth of its results, which it refuses to change.
pub(super) fn calibrates(ops: &[&dyn Operation]) -> bool {
    let last = ops.last();
    last.is_some_and(|op| op.properties().name == "calibrate")
}

/// Whether an input has 8 bits, or cannot be read.
pub(super) fn has_eight_bits(open: impl FnOnce() -> Result<Source>, reading: &Reading) -> bool {
    let depth = || -> Result<Depth> {
        let source = open()?;
        Ok(Reader::open(&source, reading)?.shape().depth)
    };
    depth().map_or(true, |depth| depth == Depth::Eight)
}

/// The depth that was asked for, or 8 bits where the format has no other. This is reported once, unless the results keep their
/// depth.
pub(super) fn depth_of_format(
    asked: Option<Bits>,
    format: Option<&Format>,
    quiet: bool,
    keeps_depth: impl FnOnce() -> bool,
) -> Option<Depth> {
    let format = format.filter(|format| format.capabilities.depths == [Depth::Eight]);
    let (None, Some(format)) = (asked, format) else {
        return asked.map(Depth::from);
    };
    if !quiet && !keeps_depth() {
        console::tell(&format!(
            "gpuimg: {} stores 8 bits per sample: deeper samples are converted as with --depth 8",
            format.name
        ));
    }
    Some(Depth::Eight)
}

/// How results are written; their paths are those of the items.
pub(super) fn destination(
    ops: &[&dyn Operation],
    asked: &Conversion,
    files: &Files,
    common: &Common,
) -> Destination {
    Destination {
        path: PathBuf::new(),
        folder: match &asked.naming {
            Naming::Folder { folder, .. } => Some(folder.clone()),
            Naming::File(_) => None,
        },
        format: asked.format,
        options: files.options,
        overwrite: files.overwrite,
        sync: files.sync,
        depth: depth(ops, asked, files, common),
        auto_orient: files.auto_orient,
        fit: files.fit,
        low_memory: files.low_memory,
        store: StoreRun::default(),
    }
}

/// Converts one image to one image, or many to a folder.
pub(super) fn convert(
    ops: &[&dyn Operation],
    range: Range,
    asked: &Conversion,
    files: &Files,
    common: &Common,
) -> Result<Outcome> {
    let mut common = common.clone();
    if files.low_memory && matches!(common.device.choice, Choice::Gpu(_)) {
        if common.device.typed {
            return Err(usage(anyhow!(
                "--low-memory processes images on the CPU: remove --device gpu"
            )));
        }
        common.device.choice = Choice::Auto;
    }
    let common = &common;
    let range_file = match range {
        Range::Followed(file) => Some(file),
        Range::Fixed | Range::Across => None,
    };
    let across = matches!(range, Range::Across);
    let job = Job::new(ops, across, range_file.is_some(), files, common)?;
    let batch = &files.batch;
    let mut destination = Destination {
        store: asked.store_run(&job, files, common),
        ..destination(ops, asked, files, common)
    };
    if files.stack {
        return stack(ops, asked, destination, common, batch);
    }
    if files.split {
        return split(ops, asked, &destination, common, batch);
    }
    if has_frames(
        asked,
        &destination,
        common.reading.raw.as_ref(),
        batch.wanted(),
    )
    .map_err(usage)?
    {
        return frames(ops, asked, &destination, common, batch);
    }
    let (input, output) = match (&asked.naming, asked.items.items.as_slice()) {
        (Naming::File(path), [item]) if !batch.wanted() => (&item.input, path),
        _ => return batch::convert(ops, job, asked, range_file, &destination, batch, common),
    };
    destination.path = output.clone();
    single(
        ops,
        input,
        Some(&destination),
        common,
        batch,
        asked.items.passes.as_ref(),
    )
    .map(|done| done.outcome())
}
