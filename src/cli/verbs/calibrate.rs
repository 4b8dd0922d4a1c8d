//! `calibrate`: reads the dark frame and the flat field once, and then converts images like any
//! operation.

use super::convert::{Range, convert};
use crate::batch::conversion::Conversion;
use crate::batch::inputs::{self, Selection};
use crate::batch::item::Items;
use crate::batch::lineage::FilesRead;
use crate::batch::options::{Files, Options};
use crate::batch::output_paths;
use crate::batch::project::Projecting;
use crate::cli::Frames;
use crate::engine::options::{Common, TypedCommand};
use crate::formats::Reading;
use crate::image::Depth;
use crate::ops::calibrate::{Calibrate, FlatField, Frame, FrameSet, ResultType, Settings};
use crate::ops::project::{Project, Projection, Wide};
use crate::os::name::Shown;
use crate::os::outcome::{Outcome, usage};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::path::Path;
use std::slice;

/// Calibrates each image with the same frames.
pub fn run(frames: &Frames, files: &Files, common: &Common) -> Result<Outcome> {
    check(files, true, true).map_err(usage)?;
    let mut conversion = Conversion::from_arguments(files, common).map_err(usage)?;
    let op = operation(frames, &mut conversion, files, common)?;
    convert(&[&op], Range::Fixed, &conversion, files, common)
}

/// Reads the frames. A report records them.
pub(super) fn operation(
    frames: &Frames,
    conversion: &mut Conversion,
    files: &Files,
    common: &Common,
) -> Result<Calibrate> {
    let settings = frames.settings();
    settings
        .check()
        .and_then(|()| check_series(frames, files))
        .map_err(usage)?;
    let mut named = Vec::new();
    for (option, path) in frames.options() {
        if let Some(path) = path {
            // The options that select inputs do not apply to frames.
            let all = Selection::default();
            let items = inputs::collect(slice::from_ref(path), &all, &reading(common), None);
            named.push((option, path, items.map_err(usage)?));
        }
    }
    let read: Vec<&Path> = named
        .iter()
        .flat_map(|(_, _, frames)| &frames.items)
        .map(|frame| frame.input.as_path())
        .collect();
    let Conversion { items, naming, .. } = &*conversion;
    output_paths::keep_results_off("a frame", &read, &items.items, naming, files).map_err(usage)?;
    if let Some(report) = &files.batch.report {
        output_paths::keep_report_off(report, &[], &read).map_err(usage)?;
    }
    if conversion.items.keeps_digests {
        for (option, _, frames) in &named {
            let read = FilesRead::new(option, frames, &reading(common))?;
            conversion.reads.push(read);
        }
    }
    if named.iter().any(|(option, ..)| *option == "--flat-start") {
        conversion.items.warn_about_order();
    }
    let mut loaded = BTreeMap::new();
    for (option, path, items) in &named {
        loaded.insert(*option, frame(path, items, settings, &files.batch, common)?);
    }
    let mut take = |option| loaded.remove(option);
    let flat = match (take("--flat"), take("--flat-start"), take("--flat-end")) {
        (_, Some(start), Some(end)) => Some(FlatField::Changing { start, end }),
        (flat, ..) => flat.map(FlatField::Constant),
    };
    let frames = FrameSet {
        bias: take("--bias"),
        dark: take("--dark"),
        flat,
    };
    let calibrate = Calibrate::with_frames(frames, settings)?;
    Ok(match conversion.items.order {
        Some(order) => calibrate.in_series(order),
        None => calibrate,
    })
}

/// Refuses options that would change images but not their frames: as the `first` operation, after the images were rotated
/// upright and converted to 16 bits, or as the `last`, before they are converted to 8 bits.
pub(super) fn check(files: &Files, first: bool, last: bool) -> Result<()> {
    let changed = match files.depth.map(Depth::from) {
        Some(Depth::Sixteen) => first,
        Some(Depth::Eight) => last,
        // --depth has no others.
        Some(Depth::ThirtyTwo | Depth::Float | Depth::Double) | None => false,
    };
    ensure!(
        !changed,
        "calibrate keeps the depth of the images: use --depth in a later step"
    );
    ensure!(
        !(first && files.auto_orient),
        "--auto-orient would rotate the images but not the frames: use it in a later step"
    );
    Ok(())
}

/// Refuses a flat field that changes from image to image if the number of images is unknown.
fn check_series(frames: &Frames, files: &Files) -> Result<()> {
    ensure!(
        frames.flat_start.is_none() || !files.batch.watching.watch,
        "--flat-start and --flat-end need to know the number of images, which --watch does not"
    );
    Ok(())
}

/// The options for reading frames: `--pages`, `--keep-going` and `--raw` apply only to the images.
fn reading(common: &Common) -> Reading {
    Reading {
        max_pixels: common.reading.max_pixels,
        ..Reading::default()
    }
}

/// The frame in a file or a folder: the mean of all images there.
fn frame(
    path: &Path,
    items: &Items,
    settings: Settings,
    batch: &Options,
    common: &Common,
) -> Result<Frame> {
    let quiet = Options {
        jobs: batch.jobs,
        mem_limit: batch.mem_limit,
        verbosity: batch.verbosity.silent(),
        ..Options::default()
    };
    let common = Common {
        device: common.device,
        stats: None,
        verbose: false,
        reading: reading(common),
        typed: TypedCommand::default(),
    };
    let op = Project {
        to: settings.to.map(|ResultType::Float| Wide::Float),
        ..Project::plain(Projection::Mean)
    };
    let mut values = None;
    let projecting = Projecting {
        op: &op,
        items,
        options: &quiet,
        common: &common,
    };
    let (mean, _) = projecting.run(|first| {
        values = Some(first.metadata.values(first.image_type.shape.depth));
        Ok(())
    })?;
    let loaded = mean.zip(values);
    let (mean, values) =
        loaded.with_context(|| format!("cannot load the frame {}", path.shown()))?;
    Ok(Frame {
        name: path.shown().into_owned(),
        image: mean.image,
        values,
    })
}
