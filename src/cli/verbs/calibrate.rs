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
use crate::ops::calibrate::{Calibrate, Frame};
use crate::ops::project::{Project, Projection};
use crate::os::name::Shown;
use crate::os::outcome::{Outcome, usage};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::slice;

/// Calibrates each image with the same frames.
pub fn run(frames: &Frames, files: &Files, common: &Common) -> Result<Outcome> {
    check(files, true, true).map_err(usage)?;
    let mut conversion = Conversion::from_arguments(files, &common.reading).map_err(usage)?;
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
    let collect = |path: &PathBuf| {
        // The options that select inputs do not apply to frames.
        let all = Selection::default();
        inputs::collect(slice::from_ref(path), &all, &reading(common), None)
    };
    let collect = |path: &Option<PathBuf>| path.as_ref().map(collect).transpose();
    let bias = collect(&frames.bias).map_err(usage)?;
    let dark = collect(&frames.dark).map_err(usage)?;
    let flat = collect(&frames.flat).map_err(usage)?;
    let read = [&bias, &dark, &flat].into_iter().flatten();
    let read: Vec<&Path> = read
        .flat_map(|frames| &frames.items)
        .map(|frame| frame.input.as_path())
        .collect();
    let Conversion { items, naming, .. } = &*conversion;
    output_paths::keep_results_off("a frame", &read, &items.items, naming, files).map_err(usage)?;
    if let Some(report) = &files.batch.report {
        output_paths::keep_report_off(report, &[], &read).map_err(usage)?;
    }
    if conversion.items.keeps_digests {
        for (option, frames) in [("--bias", &bias), ("--dark", &dark), ("--flat", &flat)] {
            if let Some(frames) = frames {
                let read = FilesRead::new(option, frames, &reading(common))?;
                conversion.reads.push(read);
            }
        }
    }
    let mean = |path: &Option<PathBuf>, frames: Option<Items>| {
        let frames = path.as_ref().zip(frames);
        let frame = frames.map(|(path, frames)| frame(path, &frames, &files.batch, common));
        frame.transpose()
    };
    let bias = mean(&frames.bias, bias)?;
    let dark = mean(&frames.dark, dark)?;
    let flat = mean(&frames.flat, flat)?;
    Calibrate::with_bias(bias, dark, flat, frames.offset, frames.hot)
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

/// The options for reading frames: `--pages`, `--keep-going` and `--raw` apply only to the images.
fn reading(common: &Common) -> Reading {
    Reading {
        max_pixels: common.reading.max_pixels,
        ..Reading::default()
    }
}

/// The frame in a file or a folder: the mean of all images there.
fn frame(path: &Path, items: &Items, batch: &Options, common: &Common) -> Result<Frame> {
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
    let op = Project::plain(Projection::Mean);
    let mut signed = false;
    let projecting = Projecting {
        op: &op,
        items,
        options: &quiet,
        common: &common,
    };
    let (mean, _) = projecting.run(|first| {
        signed = first.image_type.signed;
        Ok(())
    })?;
    let mean = mean.with_context(|| format!("cannot load the frame {}", path.shown()))?;
    Ok(Frame {
        name: path.shown().into_owned(),
        image: mean.image,
        signed,
    })
}
