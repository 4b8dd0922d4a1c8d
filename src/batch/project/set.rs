//! The images of a projection: inspected first, and then read by the workers.

use super::{Facts, First, ImageType};
use crate::batch::item::{Item, Items};
use crate::batch::progress::Progress;
use crate::batch::tally::Screen;
use crate::batch::workers::{Cores, Workers, numbers};
use crate::engine::{Resources, memory};
use crate::formats::{Reader, Reading};
use crate::image::Image;
use crate::image::metadata::{Alpha, Axis, Diagnostics, Metadata};
use crate::ops::project::Projection;
use crate::os::name::Shown;
use crate::os::{CHANGED, Passes, Source};
use crate::timing::{Report as Times, Timeline};
use anyhow::{Context, Error, Result, anyhow, bail, ensure};
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// The images of a projection.
#[derive(Debug)]
pub struct Set<'a> {
    items: &'a Items,
    reading: Reading,
    /// The first image.
    pub first: First,
    /// The files that belong together: the item's index, and how many pages are taken of it.
    files: Vec<(usize, usize)>,
    /// The pages that are taken of the only file, and how many it has; `None` for all pages.
    taken: Option<(Vec<usize>, usize)>,
    /// The files as they were when they were inspected.
    passes: Arc<Passes>,
}

/// Called with each image, on the worker's thread; an error ends the run.
pub type Take<'a> = &'a (dyn Fn(Image, &Resources, &mut Timeline) -> Result<()> + Sync);

/// What reading all images gave, beside the images.
#[derive(Debug, Default)]
pub struct Read {
    /// The files and pages that could not be read, by their places.
    pub failed: BTreeSet<(usize, usize)>,
    /// What the metadata of all images say; `None` without an image.
    pub facts: Option<Facts>,
}

/// Some pages of a file.
struct Part {
    file: usize,
    pages: Range<usize>,
}

/// What became of a part: the pages that failed, the time, and an error that ends the run.
struct PartRead {
    failed: Vec<(usize, Error)>,
    timeline: Timeline,
    fatal: Option<Error>,
}

impl<'a> Set<'a> {
    /// Looks at every input, and names those that cannot be read or are of another kind than the
    /// first. Returns the others, if there are any, and how many were named. Without an `axis` to project
    /// along, an input is named whose pages lie along several.
    pub fn look(
        how: Projection,
        axis: Option<Axis>,
        items: &'a Items,
        reading: &Reading,
        progress: &Progress,
    ) -> (Option<Set<'a>>, usize) {
        // Zeros in place of what is damaged would be mistaken for pixels.
        let reading = Reading {
            keep_going: false,
            ..*reading
        };
        let passes = Arc::new(Passes::default());
        let looked: Vec<Result<(ImageType, usize)>> = items
            .items
            .par_iter()
            .map(|item| look(item, axis, &reading, &passes).with_context(|| unread(item)))
            .collect();
        let (mut set, mut failed) = (None::<Set>, items.unread.len());
        for unread in &items.unread {
            progress.say(&format!("gpuimg: {:#}", unread.error()));
        }
        for (index, looked) in looked.into_iter().enumerate() {
            let item = &items.items[index];
            let fits = looked.and_then(|(kind, pages)| match &mut set {
                Some(set) if set.first.kind != kind => Err(anyhow!(
                    "cannot project {} ({}): it is {kind}, but {} is {}",
                    item.input.shown(),
                    how.name(),
                    set.first.path.shown(),
                    set.first.kind
                )),
                Some(set) => {
                    set.files.push((index, pages));
                    Ok(())
                }
                None => {
                    let first = first(index, item, kind, &reading, &passes);
                    let first = first.with_context(|| unread(item))?;
                    set = Some(Set {
                        items,
                        reading,
                        first,
                        files: vec![(index, pages)],
                        taken: None,
                        passes: passes.clone(),
                    });
                    Ok(())
                }
            });
            if let Err(error) = fits {
                failed += 1;
                progress.say(&format!("gpuimg: {error:#}"));
            }
        }
        (set, failed)
    }

    /// How many images there are.
    pub fn pages(&self) -> usize {
        self.files.iter().map(|(_, pages)| pages).sum()
    }

    /// A set for each image that remains when the pages of the only file are projected along an axis,
    /// with the metadata of the first page of each.
    ///
    /// # Errors
    /// Several files, and one whose metadata do not name the axis.
    pub fn along(&self, axis: Axis) -> Result<Vec<Set<'a>>> {
        let &[(index, pages)] = &self.files[..] else {
            bail!("--axis projects the pages of one file");
        };
        let item = &self.items.items[index];
        let sets = || -> Result<Vec<Set>> {
            let source = open(item)?;
            let mut reader = Reader::open(&source, &self.reading)?;
            ensure!(
                reader.is_whole() && reader.pages().len() == pages,
                "its axes describe all of its pages, but only some are selected"
            );
            let (format, channels) = (reader.format(), self.first.kind.shape.channels);
            let axes = format.axes(&self.first.metadata, channels, pages)?;
            let axes = axes.context(
                "its metadata describe no axes (without --axis, all pages are projected)",
            )?;
            ensure!(
                axes.size(axis) > 1,
                "it has no axis {axis}; its axes are {axes}"
            );
            let groups = axes.groups(axis);
            let images = groups.len();
            let set = |pages_of_it: Vec<usize>| {
                reader.turn_to(pages_of_it[0])?;
                let mut diagnostics = Diagnostics::default();
                let mut metadata = reader.metadata(&mut diagnostics)?;
                format.collapse(&mut metadata, (axis, images), &mut diagnostics);
                Ok(Set {
                    items: self.items,
                    reading: self.reading,
                    first: First {
                        metadata,
                        diagnostics,
                        ..self.first.clone()
                    },
                    files: vec![(index, pages_of_it.len())],
                    taken: Some((pages_of_it, pages)),
                    passes: self.passes.clone(),
                })
            };
            let sets = groups.into_iter().map(set).collect();
            self.passes.check(&item.input, &source)?;
            sets
        };
        sets().with_context(|| format!("cannot project {} along {axis}", item.input.shown()))
    }

    /// Reads every image once, in any order, and calls `take` with each. What cannot be read is
    /// counted, and named where that is asked for beside `progress`.
    ///
    /// # Errors
    /// Those of `take`, and no thread.
    pub fn read(
        &self,
        workers: &Workers,
        progress: &mut Progress,
        names: bool,
        times: &mut Times,
        take: Take,
    ) -> Result<Read> {
        // A few files of many pages are cut, so that every worker has some.
        let cuts = (2 * workers.jobs).div_ceil(self.files.len());
        let parts: Vec<Part> = (self.files.iter().enumerate())
            .flat_map(|(file, &(_, pages))| {
                let each = pages.div_ceil(cuts).max(1);
                (0..pages).step_by(each).map(move |start| Part {
                    file,
                    pages: start..(start + each).min(pages),
                })
            })
            .collect();
        let facts = Mutex::new(None::<Facts>);
        let mut left: Vec<usize> = self.files.iter().map(|(_, pages)| *pages).collect();
        let (mut read, mut fatal) = (Read::default(), None);
        let next = numbers(parts.len());
        workers.each(
            workers.threads(parts.len()),
            Cores::Even,
            |_| next(),
            |index, resources| {
                let part = &parts[index];
                (part, self.read_pages(part, resources, &facts, take))
            },
            |(part, done)| {
                times.totals.add(&done.timeline);
                for (page, error) in &done.failed {
                    read.failed.insert((part.file, *page));
                    if names {
                        progress.say(&format!("gpuimg: {error:#}"));
                    }
                }
                left[part.file] -= part.pages.len();
                if left[part.file] == 0 && names {
                    let bytes = self.first.kind.shape.bytes() * self.files[part.file].1;
                    let item = &self.items.items[self.files[part.file].0];
                    progress.add(item, bytes as u64, !done.failed.is_empty());
                }
                if let Some(error) = done.fatal {
                    workers.stop();
                    fatal.get_or_insert(error);
                }
            },
        )?;
        read.facts = facts.into_inner().unwrap_or_else(PoisonError::into_inner);
        match fatal {
            Some(error) => Err(error),
            None => Ok(read),
        }
    }

    /// Reads some pages of a file.
    fn read_pages(
        &self,
        part: &Part,
        resources: &Resources,
        facts: &Mutex<Option<Facts>>,
        take: Take,
    ) -> PartRead {
        let (index, pages) = self.files[part.file];
        let item = &self.items.items[index];
        let mut done = PartRead {
            failed: Vec::new(),
            timeline: Timeline::default(),
            fatal: None,
        };
        let opened = open(item).with_context(|| unread(item));
        let source = match opened {
            Ok(source) => source,
            Err(error) => {
                done.failed.push((part.pages.start, error));
                return done;
            }
        };
        let reader = Reader::open(&source, &self.reading).and_then(|reader| {
            let all = self.taken.as_ref().map_or(pages, |(_, all)| *all);
            ensure!(reader.pages().len() == all, CHANGED);
            Ok(reader)
        });
        let mut reader = match reader.with_context(|| unread(item)) {
            Ok(reader) => reader,
            Err(error) => {
                done.failed.push((part.pages.start, error));
                return done;
            }
        };
        let needed = memory(&(self.first.kind.shape, self.first.bytes));
        for page in part.pages.clone() {
            let _reservation = resources.budget.map(|budget| budget.reserve(needed));
            done.timeline.begin_codec();
            let read = self.page(&mut reader, page);
            let unchanged = |read| self.passes.check(&item.input, &source).map(|()| read);
            let (image, metadata) = match read.and_then(unchanged) {
                Ok(read) => read,
                Err(error) => {
                    done.failed.push((page, error.context(unread(item))));
                    continue;
                }
            };
            let bytes = image.shape().bytes() as u64;
            let traffic = source.traffic.take();
            done.timeline.decoded(bytes, &traffic);
            let its = Facts::new(&metadata, reader.pages().len() == 1);
            let mut known = facts.lock().unwrap_or_else(PoisonError::into_inner);
            *known = Some((*known).map_or(its, |known| known.join(&its)));
            drop(known);
            if let Err(error) = take(image, resources, &mut done.timeline) {
                let failed = || format!("cannot project {}", item.input.shown());
                done.fatal = Some(error.context(failed()));
                return done;
            }
        }
        done
    }

    /// The error for inputs whose readable pages differ between the first pass and a later one.
    pub fn changed(&self, first: &Read, later: &Read) -> Option<Error> {
        let (file, _) = first.failed.symmetric_difference(&later.failed).next()?;
        let item = &self.items.items[self.files[*file].0];
        Some(anyhow!(CHANGED).context(unread(item)))
    }

    fn page(&self, reader: &mut Reader, page: usize) -> Result<(Image, Metadata)> {
        reader.turn_to(match &self.taken {
            Some((taken, _)) => taken[page],
            None => page,
        })?;
        let image = reader.decode()?;
        let mut metadata = reader.metadata(&mut Diagnostics::default())?;
        metadata.check_maxval(image.samples());
        ensure!(
            ImageType::from_page(image.shape(), &metadata) == self.first.kind,
            CHANGED
        );
        Ok((image, metadata))
    }
}

fn unread(item: &Item) -> String {
    format!("cannot read {}", item.input.shown())
}

fn open(item: &Item) -> Result<Source> {
    if !item.may_be_stream {
        Source::open_file(&item.input)
    } else {
        Source::open(&item.input)
    }
}

/// The kind of all pages of a file, and how many there are.
fn look(
    item: &Item,
    axis: Option<Axis>,
    reading: &Reading,
    passes: &Passes,
) -> Result<(ImageType, usize)> {
    ensure!(
        !item.is_stream(),
        "every input is inspected before it is read, but this one can be read only once"
    );
    let source = open(item)?;
    let mut reader = Reader::open(&source, reading)?;
    if axis.is_none() && reading.pages.is_none() {
        check_axes(&reader)?;
    }
    let mut known = None;
    let pages = reader.pages().to_vec();
    for (index, page) in pages.iter().enumerate() {
        reader.turn_to(index)?;
        let metadata = reader.metadata(&mut Diagnostics::default())?;
        let kind = ImageType::from_page(reader.shape(), &metadata);
        let depth = kind.shape.depth;
        ensure!(
            !depth.is_wide(),
            "its samples have {depth}: only 8- and 16-bit images are supported (normalize --range converts them to 16 bits with one range for all)"
        );
        ensure!(
            metadata.alpha != Alpha::Black,
            "CMYK images can only be rotated, flipped, transposed, cropped and converted: convert to RGB first"
        );
        match &known {
            None => known = Some(kind),
            Some(first) if *first == kind => {}
            Some(first) => bail!(
                "page {} is {kind}, but page {} is {first} (use --pages A-B to select pages)",
                page + 1,
                pages[0] + 1
            ),
        }
    }
    passes.check(&item.input, &source)?;
    Ok((known.context("it has no pages")?, pages.len()))
}

/// The error for pages that one image would mix: of several channels, or of depth and time.
fn check_axes(reader: &Reader) -> Result<()> {
    let Some(axes) = reader.axes() else {
        return Ok(());
    };
    let named = axes.0.iter().filter(|(_, size)| *size > 1);
    let named: Vec<String> = named.map(|(axis, _)| format!("--axis {axis}")).collect();
    ensure!(
        named.len() < 2 && axes.size(Axis::C) == 1,
        "its pages have the axes {axes}, which one projection would mix: use {} to project along one axis (--axes selects positions, --pages 1-N ignores the axes)",
        named.join(" or ")
    );
    Ok(())
}

/// The kind of an image's first page.
///
/// # Errors
/// It cannot be read.
pub fn read_image_type(item: &Item, passes: &Passes) -> Result<ImageType> {
    let source = open(item)?;
    let reader = Reader::open(&source, &Reading::default())?;
    let metadata = reader.metadata(&mut Diagnostics::default())?;
    passes.check(&item.input, &source)?;
    Ok(ImageType::from_page(reader.shape(), &metadata))
}

/// The first page of a file, for the result's metadata; its place among the items.
///
/// # Errors
/// It cannot be read.
pub fn first(
    index: usize,
    item: &Item,
    kind: ImageType,
    reading: &Reading,
    passes: &Passes,
) -> Result<First> {
    let source = open(item)?;
    let reader = Reader::open(&source, reading)?;
    let mut diagnostics = Diagnostics::default();
    let metadata = reader.metadata(&mut diagnostics)?;
    let surveys = reader.surveys()?;
    passes.check(&item.input, &source)?;
    Ok(First {
        path: item.input.clone(),
        index,
        kind,
        metadata,
        bytes: surveys.first().map_or(0, |(_, bytes)| *bytes),
        format: reader.format(),
        diagnostics,
    })
}
