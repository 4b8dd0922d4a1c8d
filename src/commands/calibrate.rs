//! `calibrate`: reads the dark frame and the flat field once, and then converts images like any
//! operation.

use super::convert::{Range, convert};
use crate::batch::conversion::Conversion;
use crate::batch::options::{Files, Options};
use crate::batch::project::Projecting;
use crate::batch::{inputs, places};
use crate::cli::Frames;
use crate::codec::Reading;
use crate::image::Depth;
use crate::ops::calibrate::{Calibrate, Frame};
use crate::ops::project::{Project, Projection};
use crate::options::Common;
use crate::outcome::{Outcome, usage};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};

/// Calibrates each image with the same frames.
pub fn run(frames: &Frames, files: &Files, common: &Common) -> Result<Outcome> {
    check(files, (true, true)).map_err(usage)?;
    let conversion = Conversion::of(files, &common.reading).map_err(usage)?;
    let op = operation(frames, &conversion, files, common)?;
    convert(&[&op], Range::Fixed, &conversion, files, common)
}

/// Reads the frames.
pub(super) fn operation(
    frames: &Frames,
    conversion: &Conversion,
    files: &Files,
    common: &Common,
) -> Result<Calibrate> {
    for path in [&frames.dark, &frames.flat].into_iter().flatten() {
        places::keep_results_off("a frame", path, conversion, files).map_err(usage)?;
        if let Some(report) = &files.batch.report {
            places::keep_report_off(report, &[], &[path]).map_err(usage)?;
        }
    }
    let read = |path: &PathBuf| frame(path, &files.batch, common);
    let dark = frames.dark.as_ref().map(read).transpose()?;
    let flat = frames.flat.as_ref().map(read).transpose()?;
    Calibrate::new(dark, flat, frames.offset, frames.hot)
}

/// Refuses options that would part images from their frames where it is the `first` operation, before
/// which images are turned upright and widened, or the `last`, after which they are narrowed.
pub(super) fn check(files: &Files, (first, last): (bool, bool)) -> Result<()> {
    let changed = match files.depth.map(Depth::from) {
        Some(Depth::Sixteen) => first,
        Some(Depth::Eight) => last,
        // --depth has no others.
        Some(Depth::ThirtyTwo | Depth::Float | Depth::Double) | None => false,
    };
    ensure!(
        !changed,
        "calibrate keeps the depth of images, which is that of their frames: --depth is for a later step"
    );
    ensure!(
        !(first && files.auto_orient),
        "--auto-orient would turn images and not their frames: it is for a later step"
    );
    Ok(())
}

/// The frame in a file or a folder: the mean of all images there.
fn frame(path: &Path, batch: &Options, common: &Common) -> Result<Frame> {
    let quiet = Options {
        jobs: batch.jobs,
        mem_limit: batch.mem_limit,
        verbosity: batch.verbosity.silent(),
        ..Options::default()
    };
    // `--pages` and `--keep-going` are for the images.
    let common = Common {
        device: common.device,
        stats: None,
        verbose: false,
        reading: Reading {
            max_pixels: common.reading.max_pixels,
            ..Reading::default()
        },
    };
    let items =
        inputs::collect(&[path.into()], &quiet.selection, &common.reading, None).map_err(usage)?;
    let op = Project::plain(Projection::Mean);
    let mut signed = false;
    let projecting = Projecting {
        op: &op,
        items: &items,
        options: &quiet,
        common: &common,
    };
    let (made, _) = projecting.run(|first| {
        signed = first.kind.signed;
        Ok(())
    })?;
    let made = made.with_context(|| format!("no frame from {}", path.display()))?;
    Ok(Frame {
        name: path.display().to_string(),
        image: made.image,
        signed,
    })
}
