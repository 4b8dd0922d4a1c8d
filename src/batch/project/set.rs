//! The images of a projection: inspected first, and then read by the workers.

use super::{Facts, First, ImageType};
use crate::batch::failures;
use crate::batch::item::{Item, Items, Unread};
use crate::batch::progress::Progress;
use crate::batch::tally::Screen;
use crate::batch::workers::{Cores, Workers, numbers};
use crate::engine::{Failure, Resources, page_memory};
use crate::formats::{self, Reader, Reading};
use crate::image::Image;
use crate::image::metadata::{Alpha, Axis, Diagnostics, Metadata};
use crate::ops::project::Project;
use crate::os::name::Shown;
use crate::os::{CHANGED, Passes, Source};
use crate::timing::{CodecClock, Report as Times, Timeline};
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
    files: Vec<SetFile>,
    /// The selected pages of the only file; `None` for all pages.
    selected: Option<SelectedPages>,
    /// The files as they were when they were inspected.
    passes: Arc<Passes>,
}

/// A file of the set.
#[derive(Clone, Copy, Debug)]
struct SetFile {
    /// Its index among the items.
    item: usize,
    /// How many of its pages belong to the set.
    pages: usize,
}

/// Some pages of a file.
#[derive(Debug)]
struct SelectedPages {
    /// The index of each.
    indices: Vec<usize>,
    /// How many pages the file has.
    in_file: usize,
}

/// Called with each image and its index in the set, on the worker's thread; an error ends the run.
pub type AddImage<'a> = &'a (dyn Fn(usize, Image, &Resources, &mut Timeline) -> Result<()> + Sync);

/// The pages that failed, and the metadata, of images that were read.
#[derive(Debug, Default)]
pub struct Read {
    /// The pages that could not be read.
    pub failed: BTreeSet<FailedPage>,
    /// The metadata that all images share; `None` without an image.
    pub facts: Option<Facts>,
}

/// A page that could not be read, by the indices of its file and of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FailedPage {
    file: usize,
    page: usize,
}

/// Consecutive pages of a file, which one worker reads.
struct PageRange {
    file: usize,
    pages: Range<usize>,
    /// The index in the set of the file's first page.
    first_index: usize,
}

/// The result of reading a range: the pages that failed, the time, and an error that ends the run.
struct PageRangeRead {
    failed: Vec<(usize, Error)>,
    timeline: Timeline,
    fatal: Option<Error>,
}

impl<'a> Set<'a> {
    /// Inspects every input, and reports those that cannot be read or whose type differs from the first one's. Returns the
    /// others, if there are any, and the number of those reported. Without an `axis` to project along, an input whose pages
    /// lie along several axes is reported too.
    pub fn inspect(
        op: &Project,
        axis: Option<Axis>,
        items: &'a Items,
        reading: &Reading,
        progress: &Progress,
    ) -> (Option<Set<'a>>, usize) {
        // Zeros in place of damaged data would be mistaken for pixels.
        let reading = Reading {
            keep_going: false,
            ..*reading
        };
        let passes = Arc::new(Passes::default());
        let inspected: Vec<Result<(ImageType, usize)>> = items
            .items
            .par_iter()
            .map(|item| inspect(op, item, axis, &reading, &passes).with_context(|| unread(item)))
            .collect();
        let mut set = None::<Set>;
        let mut errors: Vec<Error> = items.unread.iter().map(Unread::error).collect();
        for (index, inspected) in inspected.into_iter().enumerate() {
            let item = &items.items[index];
            let added = inspected.and_then(|(image_type, pages)| match &mut set {
                Some(set) if set.first.image_type != image_type => Err(anyhow!(
                    "cannot project {} ({}): it is {image_type}, but {} is {}",
                    item.input.shown(),
                    op.how.name(),
                    set.first.path.shown(),
                    set.first.image_type
                )),
                Some(set) => {
                    set.files.push(SetFile { item: index, pages });
                    Ok(())
                }
                None => {
                    let first = first(index, item, image_type, &reading, &passes);
                    let first = first.with_context(|| unread(item))?;
                    set = Some(Set {
                        items,
                        reading,
                        first,
                        files: vec![SetFile { item: index, pages }],
                        selected: None,
                        passes: passes.clone(),
                    });
                    Ok(())
                }
            });
            errors.extend(added.err());
        }
        let failed = errors.len();
        let lines = match set {
            None => failures::lines(errors.into_iter()),
            Some(_) => errors.iter().map(|error| format!("{error:#}")).collect(),
        };
        for line in lines {
            progress.say(&format!("gpuimg: {line}"));
        }
        (set, failed)
    }

    /// How many images there are.
    pub fn pages(&self) -> usize {
        self.files.iter().map(|file| file.pages).sum()
    }

    /// A set for each image that remains when the pages of the only file are projected along an axis,
    /// with the metadata of the first page of each.
    ///
    /// # Errors
    /// Several files, and one whose metadata do not name the axis.
    pub fn along(&self, axis: Axis) -> Result<Vec<Set<'a>>> {
        let &[SetFile { item: index, pages }] = &self.files[..] else {
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
            let channels = self.first.image_type.shape.channels;
            let axes = formats::metadata::axes(&self.first.metadata, channels, pages)?;
            let axes = axes.context(
                "its metadata describe no axes (without --axis, all pages are projected)",
            )?;
            ensure!(
                axes.size(axis) > 1,
                "it has no axis {axis}; its axes are {axes}"
            );
            let groups = axes.groups(axis);
            let images = groups.len();
            let set = |indices: Vec<usize>| {
                reader.turn_to(indices[0])?;
                let mut diagnostics = Diagnostics::default();
                let mut metadata = reader.metadata(&mut diagnostics)?;
                formats::metadata::collapse(&mut metadata, axis, images, &mut diagnostics);
                Ok(Set {
                    items: self.items,
                    reading: self.reading,
                    first: First {
                        metadata,
                        diagnostics,
                        ..self.first.clone()
                    },
                    files: vec![SetFile {
                        item: index,
                        pages: indices.len(),
                    }],
                    selected: Some(SelectedPages {
                        indices,
                        in_file: pages,
                    }),
                    passes: self.passes.clone(),
                })
            };
            let sets = groups.into_iter().map(set).collect();
            self.passes.check(&item.input, &source)?;
            sets
        };
        sets().with_context(|| format!("cannot project {} along {axis}", item.input.shown()))
    }

    /// Reads every image once, in any order, and calls `add` with each. Pages that cannot be read are counted, and with
    /// `reports` also reported.
    ///
    /// # Errors
    /// Those of `add`, and a thread that cannot be started.
    pub fn read(
        &self,
        workers: &Workers,
        progress: &mut Progress,
        reports: bool,
        times: &mut Times,
        add: AddImage,
    ) -> Result<Read> {
        // A few files of many pages are divided, so that every worker has some.
        let divisor = (2 * workers.jobs).div_ceil(self.files.len());
        let (mut ranges, mut first_index) = (Vec::new(), 0);
        for (index, file) in self.files.iter().enumerate() {
            let each = file.pages.div_ceil(divisor).max(1);
            ranges.extend((0..file.pages).step_by(each).map(|start| PageRange {
                file: index,
                pages: start..(start + each).min(file.pages),
                first_index,
            }));
            first_index += file.pages;
        }
        let facts = Mutex::new(None::<Facts>);
        let mut left: Vec<usize> = self.files.iter().map(|file| file.pages).collect();
        let (mut read, mut fatal) = (Read::default(), None);
        let next = numbers(ranges.len());
        workers.each(
            workers.threads(ranges.len()),
            Cores::Even,
            |_| next(),
            |index, resources| {
                let range = &ranges[index];
                (range, self.read_pages(range, resources, &facts, add))
            },
            |(range, done)| {
                times.totals.add(&done.timeline);
                for (page, error) in &done.failed {
                    read.failed.insert(FailedPage {
                        file: range.file,
                        page: *page,
                    });
                    if reports {
                        progress.say(&format!("gpuimg: {error:#}"));
                    }
                }
                left[range.file] -= range.pages.len();
                if left[range.file] == 0 && reports {
                    let bytes = self.first.image_type.shape.bytes() * self.files[range.file].pages;
                    let item = &self.items.items[self.files[range.file].item];
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
        range: &PageRange,
        resources: &Resources,
        facts: &Mutex<Option<Facts>>,
        add: AddImage,
    ) -> PageRangeRead {
        let file = self.files[range.file];
        let item = &self.items.items[file.item];
        let mut done = PageRangeRead {
            failed: Vec::new(),
            timeline: Timeline::default(),
            fatal: None,
        };
        let opened = open(item).with_context(|| unread(item));
        let source = match opened {
            Ok(source) => source,
            Err(error) => {
                done.failed.push((range.pages.start, error));
                return done;
            }
        };
        let reader = Reader::open(&source, &self.reading).and_then(|reader| {
            let selected = self.selected.as_ref();
            let pages = selected.map_or(file.pages, |selected| selected.in_file);
            ensure!(reader.pages().len() == pages, CHANGED);
            Ok(reader)
        });
        let mut reader = match reader.with_context(|| unread(item)) {
            Ok(reader) => reader,
            Err(error) => {
                done.failed.push((range.pages.start, error));
                return done;
            }
        };
        let needed = page_memory(&self.first.image_type.shape, self.first.bytes);
        for page in range.pages.clone() {
            let _reservation = resources.budget.map(|budget| budget.reserve(needed));
            let mut clock = CodecClock::default();
            let read = clock.run(|| self.page(&mut reader, page));
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
            done.timeline.decoded(clock, bytes, &traffic);
            let facts_of_page = Facts::new(&metadata, reader.pages().len() == 1);
            let mut known = facts.lock().unwrap_or_else(PoisonError::into_inner);
            *known = Some((*known).map_or(facts_of_page, |known| known.join(&facts_of_page)));
            drop(known);
            let index = range.first_index + page;
            if let Err(error) = add(index, image, resources, &mut done.timeline) {
                let failed = || format!("cannot project {}", item.input.shown());
                done.fatal = Some(error.context(failed()));
                return done;
            }
        }
        done
    }

    /// The error for inputs whose readable pages differ between the first pass and a later one.
    pub fn changed(&self, first: &Read, later: &Read) -> Option<Error> {
        let failed = first.failed.symmetric_difference(&later.failed).next()?;
        let item = &self.items.items[self.files[failed.file].item];
        Some(anyhow!(CHANGED).context(unread(item)))
    }

    fn page(&self, reader: &mut Reader, page: usize) -> Result<(Image, Metadata)> {
        reader.turn_to(match &self.selected {
            Some(selected) => selected.indices[page],
            None => page,
        })?;
        let image = reader.decode()?;
        let mut metadata = reader.metadata(&mut Diagnostics::default())?;
        metadata.check_maxval(image.samples());
        ensure!(
            ImageType::from_page(image.shape(), &metadata) == self.first.image_type,
            CHANGED
        );
        Ok((image, metadata))
    }
}

fn unread(item: &Item) -> Failure {
    Failure::new("read", &item.input)
}

fn open(item: &Item) -> Result<Source> {
    if !item.may_be_stream {
        Source::open_file(&item.input)
    } else {
        Source::open(&item.input)
    }
}

/// The type that all pages of a file share, and how many there are.
fn inspect(
    op: &Project,
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
        let image_type = ImageType::from_page(reader.shape(), &metadata);
        op.check_depth(image_type.shape.depth)?;
        ensure!(
            metadata.alpha != Alpha::Black,
            "CMYK images can only be rotated, flipped, transposed, cropped and converted: convert to RGB first"
        );
        match &known {
            None => known = Some(image_type),
            Some(first) if *first == image_type => {}
            Some(first) => bail!(
                "page {} is {image_type}, but page {} is {first} (use --pages A-B to select pages)",
                page + 1,
                pages[0] + 1
            ),
        }
    }
    passes.check(&item.input, &source)?;
    Ok((known.context("it has no pages")?, pages.len()))
}

/// Refuses pages that one image would mix: those of several channels, or of depth and time.
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

/// The type of an image's first page.
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

/// The first page of a file, whose metadata the result keeps, and its index among the items.
///
/// # Errors
/// It cannot be read.
pub fn first(
    index: usize,
    item: &Item,
    image_type: ImageType,
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
        image_type,
        metadata,
        bytes: surveys.first().map_or(0, |page| page.metadata_bytes),
        format: reader.format(),
        diagnostics,
    })
}
