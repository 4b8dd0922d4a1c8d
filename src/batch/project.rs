//! Many images made into one: `project`, and the frames of `calibrate`. Every input is inspected
//! before pixels are read (`set`), so that what does not belong to the others is named at once; then
//! the workers of a batch read the images, each folded into the result as it comes.
//!
//! A median needs all images at once (`median`).

mod image_type;
mod median;
mod partial;
mod set;

use super::item::Items;
use super::options::{Options, Verbosity};
use super::progress::Progress;
use super::shard::Shard;
use super::tally::Screen;
use super::workers::Workers;
use crate::engine::options::Common;
use crate::engine::{CombinedImage, Resources};
use crate::formats::Format;
use crate::formats::fits::exposure::Exposures;
use crate::gpu::{Choice, Failed, Work};
use crate::image::Image;
use crate::image::metadata::{Axis, Diagnostics, Effect, Metadata, Transform};
use crate::ops::project::{Accumulator, MOST_IMAGES, Project, Projection};
use crate::os::count::plural;
use crate::os::outcome::Outcome;
use crate::timing::{FileCounts, Report as Times, Timeline};
use anyhow::{Context, Error, Result, bail, ensure};
pub use image_type::ImageType;
use partial::Known;
pub use partial::Partial;
pub use set::Set;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The first image of a set, from which the result has its metadata.
#[derive(Clone, Debug)]
pub struct First {
    /// Its file.
    pub path: PathBuf,
    /// Its place among the inputs, from 0.
    pub index: usize,
    /// What all images of the set have in common.
    pub kind: ImageType,
    /// Its metadata.
    pub metadata: Metadata,
    /// Bytes of its metadata in the file.
    pub bytes: u64,
    /// The format of its file.
    pub format: &'static dyn Format,
    /// What its metadata do not keep.
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
        let is_sum = how == Projection::Sum;
        let mut metadata = self.metadata.clone();
        let mut diagnostics = Diagnostics::default();
        (facts.exposures).follow(&mut metadata, is_sum, &mut diagnostics);
        CombinedImage {
            transform: Transform {
                effect: Effect::Arithmetic,
                from: self.kind.shape,
                to: image.shape(),
                pages: 1,
                whole: pages == 1,
            },
            image,
            metadata,
            diagnostics,
            bytes: self.bytes,
            maxval: facts.maxval.filter(|_| !is_sum),
            format: self.format,
        }
    }
}

/// What the metadata of all images of a set say.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// The largest value of the samples, if each image has one.
    maxval: Option<u16>,
    /// How long they were exposed.
    exposures: Exposures,
}

impl Facts {
    /// What those of a page say, which may be the only one of its file.
    fn new(metadata: &Metadata, is_only_page: bool) -> Facts {
        Facts {
            maxval: metadata.maxval,
            exposures: Exposures::new(metadata, is_only_page),
        }
    }

    fn join(&self, other: &Facts) -> Facts {
        Facts {
            maxval: self.maxval.zip(other.maxval).map(|(a, b)| a.max(b)),
            exposures: self.exposures.join(&other.exposures),
        }
    }
}

/// What a set of images gave.
enum Gathered {
    /// The result.
    Image(Image),
    /// Numbers that make the result, or can be joined with others before.
    Numbers(Accumulator),
}

/// What was gathered of a set, what the metadata of its images say, the first of them, and how many there
/// are.
type Results = (Gathered, Facts, First, usize);

/// The image that an accumulator's numbers make.
///
/// # Errors
/// A sum that does not fit, and a GPU's.
fn finished(how: Projection, numbers: Accumulator) -> Result<Image> {
    let images = plural(numbers.images(), "image");
    let finished = numbers.finish();
    finished.with_context(|| format!("cannot project {images} ({})", how.name()))
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
    /// Makes one image of all inputs; `check` may refuse it when only the first image's metadata are
    /// known. A bad input is named; then there is no result, unless `--keep-going` leaves it out.
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

    /// Makes one image of all inputs, or of the only one an image of the pages along an axis for each place
    /// on the others; none for a bad input, as with `run`.
    ///
    /// # Errors
    /// Those of `run`, and a file whose metadata do not name the axis.
    pub fn along(
        &self,
        axis: Option<Axis>,
        check: impl FnOnce(&First) -> Result<()>,
    ) -> Result<(Vec<CombinedImage>, Outcome)> {
        let mut all = Vec::new();
        let mut take = |(gathered, facts, first, pages): Results| {
            let image = match gathered {
                Gathered::Image(image) => image,
                Gathered::Numbers(numbers) => finished(self.op.how, numbers)?,
            };
            all.push(first.projection(self.op.how, image, &facts, pages));
            Ok(())
        };
        let (failed, outcome) = self.gather(axis, check, &mut take)?;
        let images = all.len();
        if axis.is_some() {
            if failed > 0 {
                return Ok((Vec::new(), outcome));
            }
            for made in &mut all {
                // The metadata tell of these images already.
                (made.transform.pages, made.transform.whole) = (images, true);
            }
        }
        Ok((all, outcome))
    }

    /// What all inputs give as one part of a set, to be joined with the others; `place` tells the place
    /// of an input in the whole set. `None` for a bad input, as with `run`.
    ///
    /// # Errors
    /// A device's, too many images, a median.
    pub fn partial(
        &self,
        shard: Option<Shard>,
        place: impl Fn(usize) -> u64,
    ) -> Result<(Option<Partial>, Outcome)> {
        if self.items.items.is_empty() && self.items.unread.is_empty() && shard.is_some() {
            return Ok((
                Some(Partial::new(*self.op, shard, self.items.set, None)),
                Outcome::Done,
            ));
        }
        let mut found = None;
        let mut take = |all| {
            found = Some(all);
            Ok(())
        };
        let (failed, outcome) = self.gather(None, |_| Ok(()), &mut take)?;
        let Some((gathered, facts, first, pages)) = found else {
            return Ok((None, outcome));
        };
        let Gathered::Numbers(numbers) = gathered else {
            bail!("a median needs all images at once and cannot be computed in parts");
        };
        let known = Known {
            first: (place(first.index), std::path::absolute(&first.path)?),
            kind: first.kind,
            pages: pages as u64,
            facts,
            numbers,
        };
        let mut partial = Partial::new(*self.op, shard, self.items.set, Some(known));
        partial.failed = failed as u64;
        Ok((Some(partial), outcome))
    }

    /// Reads all inputs, calls `take` with what they give, for each image that is to be made, and counts
    /// those that failed.
    fn gather(
        &self,
        axis: Option<Axis>,
        check: impl FnOnce(&First) -> Result<()>,
        take: &mut dyn FnMut(Results) -> Result<()>,
    ) -> Result<(usize, Outcome)> {
        let (items, begun) = (self.items, Instant::now());
        let verbosity = Verbosity {
            quiet: self.options.verbosity.quiet || items.items.len() < 2,
            ..self.options.verbosity
        };
        let mut progress = Progress::new(items.items.len(), verbosity, false);
        let goes_on = self.common.reading.keep_going;
        let (set, mut failed) =
            Set::look(self.op.how, axis, items, &self.common.reading, &progress);
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
            let made = match self.op.how {
                Projection::Median => self.median(&set, &mut progress, &mut times, &mut failed),
                _ => self.accumulate(&set, &mut progress, &mut times, &mut failed),
            };
            let Some((gathered, facts)) = made?.filter(|_| failed == 0 || goes_on) else {
                break;
            };
            take((gathered, facts, set.first, pages))?;
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
        // Images wait for one another to be added, and so one GPU serves all.
        let gpus = (1, self.common.stats.is_some());
        Workers::new(device, self.options.threads(), memory, reading, gpus)
    }

    /// A projection of which the images so far are kept as one.
    fn accumulate(
        &self,
        set: &Set,
        progress: &mut Progress,
        times: &mut Times,
        failed: &mut usize,
    ) -> Result<Option<(Gathered, Facts)>> {
        let ImageType { shape, signed, .. } = set.first.kind;
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
        let add = |image: Image, resources: &Resources, timeline: &mut Timeline| {
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
        self.tell_device(
            progress,
            &device.into_inner().unwrap_or_else(PoisonError::into_inner),
        );
        Ok((read.facts).map(|facts| (Gathered::Numbers(known), facts)))
    }

    fn tell_fallback(&self, progress: &Progress, error: &Error) {
        let cause = error.root_cause();
        progress.mention(&format!(
            "gpuimg: {}: processed on the CPU because the GPU failed: {cause}",
            self.op.how.name()
        ));
    }

    fn tell_device(&self, progress: &Progress, device: &str) {
        if self.common.verbose && !self.options.verbosity.quiet && !device.is_empty() {
            progress.say(&format!("gpuimg: {}: {device}", self.op.how.name()));
        }
    }
}
