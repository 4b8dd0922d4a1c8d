//! Combines many images into one: `project`, and the frames of `calibrate`. Every input is inspected
//! before pixels are read (`set`), so that an input of another type is reported at once; then
//! the workers of a batch read the images and fold each into the result.
//!
//! A median, and other projections that need all images at once, keep a range of each (`columns`).

mod columns;
mod partial;
mod set;

use super::item::Items;
use super::options::{Options, Verbosity};
use super::progress::Progress;
use super::shard::Shard;
use super::tally::Screen;
use super::workers::Workers;
pub use crate::engine::ImageType;
use crate::engine::options::Common;
use crate::engine::{CombinedImage, Facts, FirstPage, Resources};
use crate::formats::Format;
use crate::gpu::{Choice, Failed, Work};
use crate::image::Image;
use crate::image::metadata::{Axis, Diagnostics, Metadata};
use crate::ops::project::{Accumulator, MOST_IMAGES, Project, Projection};
use crate::os::count::plural;
use crate::os::outcome::Outcome;
use crate::os::url;
use crate::timing::{FileCounts, Report as Times, Timeline};
use anyhow::{Context, Error, Result, bail, ensure};
pub use partial::Partial;
use partial::PartialImages;
pub use set::Set;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The first image of a set, from which the result has its metadata.
#[derive(Clone, Debug)]
pub struct First {
    /// Its file.
    pub path: PathBuf,
    /// Its index among the inputs.
    pub index: usize,
    /// The type of all images of the set.
    pub image_type: ImageType,
    /// Its metadata.
    pub metadata: Metadata,
    /// Bytes of its metadata in the file.
    pub bytes: u64,
    /// The format of its file.
    pub format: &'static Format,
    /// Messages about metadata that could not be read.
    pub diagnostics: Diagnostics,
}

impl First {
    /// The projection of `pages` images, with the metadata of this one as far as they are true of all.
    fn projection(
        &self,
        how: Projection,
        image: Image,
        facts: &Facts,
        pages: usize,
    ) -> CombinedImage {
        let first = FirstPage {
            shape: self.image_type.shape,
            metadata: self.metadata.clone(),
            bytes: self.bytes,
            format: self.format,
        };
        CombinedImage::projection(how, image, first, facts, pages)
    }
}

/// The images of a set, combined.
enum Combined {
    /// The result.
    Image(Image),
    /// The numbers that the result is computed from; those of other images can be merged into them first.
    Numbers(Accumulator),
}

/// A set of images that has been read.
struct SetResult {
    combined: Combined,
    facts: Facts,
    first: First,
    /// How many images the set has.
    pages: usize,
}

/// The image that an accumulator's numbers result in.
///
/// # Errors
/// A sum that does not fit, and a GPU's.
fn finish(how: Projection, numbers: Accumulator) -> Result<Image> {
    let images = plural(numbers.images(), "image");
    let image = numbers.finish();
    image.with_context(|| format!("cannot project {images} ({})", how.name()))
}

/// A projection of a set of images.
#[derive(Debug)]
pub struct Projecting<'a> {
    /// The projection.
    pub op: &'a Project,
    /// The inputs.
    pub items: &'a Items,
    /// How many workers, and how much memory.
    pub options: &'a Options,
    /// The options that every subcommand has.
    pub common: &'a Common,
}

impl Projecting<'_> {
    /// Combines all inputs into one image; `check` may refuse it when only the first image's metadata are
    /// known. A bad input is reported; then there is no result, unless `--keep-going` leaves it out.
    ///
    /// # Errors
    /// A device's, too many images, a sum that does not fit.
    pub fn run(
        &self,
        check: impl FnOnce(&First) -> Result<()>,
    ) -> Result<(Option<CombinedImage>, Outcome)> {
        let (mut made, outcome) = self.along(None, check)?;
        Ok((made.pop(), outcome))
    }

    /// Combines all inputs into one image. With an axis, combines the pages of the only input along it, into an image for each
    /// position on the other axes. There is no image for a bad input, as with `run`.
    ///
    /// # Errors
    /// Those of `run`, and a file whose metadata do not name the axis.
    pub fn along(
        &self,
        axis: Option<Axis>,
        check: impl FnOnce(&First) -> Result<()>,
    ) -> Result<(Vec<CombinedImage>, Outcome)> {
        let mut all = Vec::new();
        let mut keep = |set: SetResult| {
            let image = match set.combined {
                Combined::Image(image) => image,
                Combined::Numbers(numbers) => finish(self.op.how, numbers)?,
            };
            let projection = (set.first).projection(self.op.how, image, &set.facts, set.pages);
            all.push(projection);
            Ok(())
        };
        let (failed, outcome) = self.combine(axis, check, &mut keep)?;
        let images = all.len();
        if axis.is_some() {
            if failed > 0 {
                return Ok((Vec::new(), outcome));
            }
            for made in &mut all {
                // The metadata describe these images already.
                (made.transform.pages, made.transform.whole) = (images, true);
            }
        }
        Ok((all, outcome))
    }

    /// Combines all inputs as one part of a set, to be merged with the others; `index_in_set` gives the index of an input
    /// in the whole set. `None` for a bad input, as with `run`.
    ///
    /// # Errors
    /// A device's, too many images, a median.
    pub fn partial(
        &self,
        shard: Option<Shard>,
        index_in_set: impl Fn(usize) -> u64,
    ) -> Result<(Option<Partial>, Outcome)> {
        if self.items.items.is_empty() && self.items.unread.is_empty() && shard.is_some() {
            return Ok((
                Some(Partial::new(*self.op, shard, self.items.set, None)),
                Outcome::Done,
            ));
        }
        let mut result = None;
        let mut keep = |set| {
            result = Some(set);
            Ok(())
        };
        let (failed, outcome) = self.combine(None, |_| Ok(()), &mut keep)?;
        let Some(set) = result else {
            return Ok((None, outcome));
        };
        let Combined::Numbers(numbers) = set.combined else {
            let reason = self.op.needs_all_images(set.first.image_type.shape.depth);
            bail!(
                "{}, so they cannot be projected in parts: remove --partial",
                reason.unwrap_or("all images are needed at once")
            );
        };
        let images = PartialImages {
            first_index: index_in_set(set.first.index),
            first_path: match url::shown(&set.first.path) {
                Some(address) => address.into(),
                None => std::path::absolute(&set.first.path)?,
            },
            image_type: set.first.image_type,
            pages: set.pages as u64,
            facts: set.facts,
            numbers,
        };
        let mut partial = Partial::new(*self.op, shard, self.items.set, Some(images));
        partial.failed = failed as u64;
        Ok((Some(partial), outcome))
    }

    /// Reads all inputs, calls `keep` for each image of the result, and counts the inputs that failed.
    fn combine(
        &self,
        axis: Option<Axis>,
        check: impl FnOnce(&First) -> Result<()>,
        keep: &mut dyn FnMut(SetResult) -> Result<()>,
    ) -> Result<(usize, Outcome)> {
        let (items, begun) = (self.items, Instant::now());
        let verbosity = Verbosity {
            quiet: self.options.verbosity.quiet || items.items.len() < 2,
            ..self.options.verbosity
        };
        let mut progress = Progress::new(items.items.len(), verbosity, false);
        let goes_on = self.common.reading.keep_going;
        let (set, mut failed) = Set::inspect(self.op, axis, items, &self.common.reading, &progress);
        let Some(set) = set.filter(|_| failed == 0 || goes_on) else {
            return Ok((failed, Outcome::SomeFailed));
        };
        check(&set.first)?;
        let pages = set.pages();
        let sets = match axis {
            Some(axis) => set.along(axis)?,
            None => vec![set],
        };
        let mut times = Times::default();
        for set in sets {
            let pages = set.pages();
            ensure!(
                pages <= MOST_IMAGES,
                "cannot project {pages} images: the limit is {MOST_IMAGES}"
            );
            let depth = set.first.image_type.shape.depth;
            let combined = if self.op.needs_all_images(depth).is_some() {
                self.project_columns(&set, &mut progress, &mut times, &mut failed)
            } else {
                self.accumulate(&set, &mut progress, &mut times, &mut failed)
            };
            let Some((combined, facts)) = combined?.filter(|_| failed == 0 || goes_on) else {
                break;
            };
            keep(SetResult {
                combined,
                facts,
                first: set.first,
                pages,
            })?;
        }
        progress.finish(0);
        if let Some(form) = &self.common.stats {
            let files = items.items.len();
            times.files = FileCounts {
                files,
                done: files.saturating_sub(failed),
                skipped: 0,
                failed,
            };
            (times.verb, times.pages) = ("project", pages);
            times.threads = self.options.threads();
            times.title = format!(
                "project {}: {} on {}",
                self.op.how.name(),
                plural(files, "file"),
                plural(times.threads, "thread")
            );
            times.wall = begun.elapsed();
            form.deliver(&times)?;
        }
        let outcome = match failed {
            0 => Outcome::Done,
            _ => Outcome::SomeFailed,
        };
        Ok((failed, outcome))
    }

    /// The workers, whose images take at most `memory` bytes.
    fn workers(&self, device: Choice, memory: u64) -> Workers {
        let reading = self.common.reading;
        // Images are added one at a time, so one GPU is enough.
        let gpus = (1, self.common.stats.is_some());
        Workers::new(device, self.options.threads(), memory, reading, gpus)
    }

    /// A projection that folds each image into numbers of one image's size.
    fn accumulate(
        &self,
        set: &Set,
        progress: &mut Progress,
        times: &mut Times,
        failed: &mut usize,
    ) -> Result<Option<(Combined, Facts)>> {
        let ImageType { shape, signed, .. } = set.first.image_type;
        let known = Accumulator::new(*self.op, shape, signed)?;
        let memory = self.options.memory();
        let left = memory.saturating_sub(Accumulator::memory(*self.op, &shape));
        let workers = self.workers(self.common.device.choice, left);
        let device = Mutex::new(String::new());
        let bytes = shape.bytes() as u64;
        let work = Work {
            touched: 5 * bytes,
            transferred: bytes,
            ..Work::default()
        };
        let add = |_: usize, image: Image, resources: &Resources, timeline: &mut Timeline| {
            let (gpu, why) = resources.devices.choose(&work, timeline)?;
            *device.lock().unwrap_or_else(PoisonError::into_inner) = why;
            match gpu {
                Some(gpu) => {
                    let added = known.add_on_gpu(image, gpu, timeline);
                    let devices = resources.devices;
                    added.map_err(|error| devices.unusable_if_lost(error.context(Failed)))
                }
                None => known.add(&image, timeline),
            }
        };
        let read = set.read(&workers, &mut *progress, true, times, &add)?;
        *failed += read.failed.len();
        self.report_device(
            progress,
            &device.into_inner().unwrap_or_else(PoisonError::into_inner),
        );
        Ok((read.facts).map(|facts| (Combined::Numbers(known), facts)))
    }

    fn report_fallback(&self, progress: &Progress, error: &Error) {
        let cause = error.root_cause();
        progress.mention(&format!(
            "gpuimg: {}: processed on the CPU because the GPU failed: {cause}",
            self.op.how.name()
        ));
    }

    fn report_device(&self, progress: &Progress, device: &str) {
        if self.common.verbose && !self.options.verbosity.quiet && !device.is_empty() {
            progress.say(&format!("gpuimg: {}: {device}", self.op.how.name()));
        }
    }
}
