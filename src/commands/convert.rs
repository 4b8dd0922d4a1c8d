//! `normalize`, `transpose`, `rotate`, `flip`: every operation that makes images.

use super::single::single;
use crate::batch::conversion::Conversion;
use crate::batch::histogram::Set;
use crate::batch::key::Job;
use crate::batch::naming::Naming;
use crate::batch::options::Files;
use crate::batch::watch::follow::{Current, Follow};
use crate::batch::{self, places};
use crate::cli::Images;
use crate::image::Depth;
use crate::ops::Operation;
use crate::ops::of_set::OfSet;
use crate::options::Common;
use crate::outcome::{Outcome, usage};
use crate::pipeline::Destination;
use anyhow::{Context, Result, anyhow};
use std::path::{Path, PathBuf};

/// Runs an operation on each image, with its own statistic or with that of a whole set.
pub fn run(images: &Images) -> Result<Outcome> {
    let Images {
        op,
        set,
        files,
        common,
    } = images;
    common.check()?;
    let conversion = Conversion::of(files).map_err(usage)?;
    let batch = &files.batch;
    if let Some((report, range)) = batch.report.as_ref().zip(set.range_from.as_ref()) {
        places::keep_report_off(report, &[], &[range]).map_err(usage)?;
    }
    if set.across && batch.watching.watch {
        let why = "--across measures all images first, and --watch does not know those to come: \
                   count such images with gpuimg histogram, and give --range-from FILE";
        return Err(usage(anyhow!(why)));
    }
    if set.across {
        conversion.items.can_be_read_twice().map_err(usage)?;
    }
    if let Some(path) = set.range_from.as_ref().filter(|_| set.follow) {
        let follow = Follow::new(path, &**op)?;
        return convert(&**op, Range::Followed(&follow), &conversion, files, common);
    }
    let range = match set.across {
        true => Range::Across,
        false => Range::Fixed,
    };
    let counted = match (&set.range_from, set.across) {
        (Some(path), _) => {
            let set = Set::read(path)?;
            if !batch.verbosity.quiet {
                set.mention_failed(path);
            }
            set
        }
        // A plan needs no range, unless it must find out what an earlier run did with the same
        // range.
        (None, true) if !batch.dry_run || batch.resume => {
            let first = batch::options::Options {
                report: None,
                resume: false,
                dry_run: false,
                ..batch.clone()
            };
            // Unreadable inputs are reported later, when they are normalized.
            let (set, _) = batch::measure_set(&conversion.items, &first, common, false)?;
            if set.counts.is_none() {
                // No input was readable: measured once more, to print the reasons.
                return Ok(batch::measure_set(&conversion.items, &first, common, true)?.1);
            }
            set
        }
        (None, _) => return convert(&**op, range, &conversion, files, common),
    };
    let of = set.range_from.as_deref().unwrap_or(Path::new("the set"));
    let of_set = counted
        .into_counts()
        .and_then(|counts| OfSet::new(&**op, counts));
    let op = of_set.with_context(|| format!("no range from {}", of.display()))?;
    convert(&op, range, &conversion, files, common)
}

/// Where the range of a set comes from.
pub(super) enum Range<'a> {
    /// From the options, a histogram, or each image.
    Fixed,
    /// From the inputs themselves.
    Across,
    /// From a histogram, as it is when a file comes.
    Followed(&'a Follow<'a>),
}

/// Converts one image to one image, or many to a folder.
pub(super) fn convert(
    op: &dyn Operation,
    range: Range,
    asked: &Conversion,
    files: &Files,
    common: &Common,
) -> Result<Outcome> {
    let follow = match range {
        Range::Followed(follow) => Some(follow as &dyn Current),
        Range::Fixed | Range::Across => None,
    };
    let across = matches!(range, Range::Across);
    let job = Job::new(op, (across, follow.is_some()), files, common)?;
    let batch = &files.batch;
    let mut destination = Destination {
        path: PathBuf::new(),
        format: asked.format,
        options: files.options,
        overwrite: files.overwrite,
        sync: files.sync,
        depth: files.depth.map(Depth::from),
        auto_orient: files.auto_orient,
    };
    let (input, output) = match (&asked.naming, asked.items.items.as_slice()) {
        (Naming::File(path), [item]) if !batch.wanted() => (&item.input, path),
        _ => return batch::convert(op, job, (asked, follow), &destination, batch, common),
    };
    destination.path = output.clone();
    single(op, input, Some(&destination), common, batch.verbosity.quiet).map(|done| done.outcome())
}
