//! Combines grey pages into pages of several channels. The grey pages come from several files, or are the channels of one stack.
//! The pages are combined by a decoder, so the rest of the engine processes a combined page like a page of one file.

use super::errors::{Failure, Messages};
use super::{
    CreatedOutput, Destination, Done, FilePlans, ImageType, OpenFile, OpenedInput, Resources,
    plan_open_file, process_open_file, with_fallback,
};
use crate::formats::error_policy::ErrorPolicy;
use crate::formats::memory::{Page, Pages};
use crate::formats::{self, Decoder, PageSurvey, Reader, Reading};
use crate::image::metadata::{Axis, Diagnostics, Effect, Metadata, Transform};
use crate::image::{Image, Shape};
use crate::ops::combine::{self, ChannelColours, Colour, Combine};
use crate::os::Source;
use crate::os::count::plural;
use crate::os::name::{Shown, in_shell};
use crate::timing::CodecClock;
use anyhow::{Context, Result, ensure};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// How grey images become one of several channels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Each image becomes a channel: red, green and blue, or these and alpha.
    Channels,
    /// Each image is multiplied by a colour, and the products are added.
    Colours(ChannelColours),
}

/// Grey files that become one file of several channels.
#[derive(Clone, Copy, Debug)]
pub struct Composite<'a> {
    /// The files: one for each channel, or a single stack of channels.
    pub inputs: &'a [PathBuf],
    /// How their pages are combined.
    pub mix: &'a Mix,
}

impl Composite<'_> {
    /// The names of all files, for messages: `red.tif + green.tif + blue.tif`.
    pub fn name(&self) -> PathBuf {
        let names: Vec<_> = self.inputs.iter().map(|path| path.shown()).collect();
        match self.inputs {
            [input] => input.clone(),
            _ => names.join(" + ").into(),
        }
    }

    /// Combines all pages and writes them to `output`. If `auto` chose a GPU and it fails, all of it is done again on the CPU.
    ///
    /// # Errors
    /// A file that cannot be read, files that differ in size, sample type or number of pages, and an output that cannot be
    /// written; the message names the files.
    pub fn process(&self, output: &Destination, resources: &Resources) -> Result<Done> {
        let attempt = || self.process_once(output, resources);
        let can_repeat = !self.inputs.iter().any(|path| path == Path::new("-"));
        with_fallback(attempt, can_repeat, resources.devices)
    }

    fn process_once(&self, output: &Destination, resources: &Resources) -> Result<Done> {
        // An output that cannot be created is refused before the inputs are read.
        let created = CreatedOutput::new(output)?;
        let sources = self.open(resources)?;
        let name = self.name();
        let input = self.input(&name, &sources, output, &resources.reading)?;
        let finished = process_open_file(&[&Combine {}], input, None, Some(&created), resources)?;
        for (path, source) in self.inputs.iter().zip(&sources) {
            let unchanged = source.check_unchanged();
            unchanged.with_context(|| Failure::new("read", path))?;
        }
        finished.commit(output, created.target, None, &|_| Ok(()))
    }

    /// Plans what `process` would do. Nothing is written.
    ///
    /// # Errors
    /// What `process` would refuse before it decodes a page.
    pub fn plan(&self, output: &Destination, resources: &Resources) -> Result<FilePlans> {
        let sources = self.open(resources)?;
        let name = self.name();
        let input = self.input(&name, &sources, output, &resources.reading)?;
        plan_open_file(&[&Combine {}], input, Some(output), resources)
    }

    fn open(&self, resources: &Resources) -> Result<Vec<Source>> {
        let open = |path: &PathBuf| {
            let source = resources.open(path);
            source.with_context(|| Failure::new("read", path))
        };
        self.inputs.iter().map(open).collect()
    }

    /// The combined pages as an input whose header has been read.
    fn input<'s>(
        &'s self,
        name: &'s Path,
        sources: &'s [Source],
        output: &Destination,
        reading: &Reading,
    ) -> Result<OpenedInput<'s>> {
        let messages = Messages {
            verb: "combine",
            input: name,
        };
        let mut opening = CodecClock::default();
        let reader = opening.run(|| {
            let files = self.inputs.iter().zip(sources).map(|(path, source)| {
                let reader = Reader::open(source, reading);
                Ok(ChannelFile {
                    path,
                    source,
                    reader: reader.with_context(|| Failure::new("read", path))?,
                })
            });
            let files: Vec<_> = files.collect::<Result<_>>()?;
            let format = files[0].reader.format();
            let is_stack = files.len() == 1;
            let decoder = CompositeDecoder::new(files, self.mix, is_stack);
            let decoder = decoder.with_context(|| messages.cannot_process())?;
            let reader = Reader::from_decoder(&sources[0], format, Box::new(decoder), reading);
            reader.with_context(|| messages.cannot_process())
        })?;
        Ok(OpenedInput {
            messages,
            source: &sources[0],
            file: OpenFile::from_reader(&[&Combine {}], reader, Some(output), messages)?,
            opening,
        })
    }
}

/// Combines pages in memory, each with a name for messages.
///
/// # Errors
/// No page, and pages that cannot be combined.
pub fn combine_pages(pages: Vec<(PathBuf, Page)>, mix: &Mix) -> Result<Page> {
    ensure!(!pages.is_empty(), "there is no image");
    let source = Source::memory(Vec::new());
    let (names, pages): (Vec<PathBuf>, Vec<Pages>) = pages
        .into_iter()
        .map(|(name, page)| (name, Pages::new(vec![page])))
        .unzip();
    let files = names.iter().zip(&pages).map(|(path, pages)| {
        Ok(ChannelFile {
            path,
            source: &source,
            reader: Reader::in_memory(&source, pages)?,
        })
    });
    let files = files.collect::<Result<_>>()?;
    let mut decoder = CompositeDecoder::new(files, mix, false)?;
    decoder.turn_to(0)?;
    Ok(Page {
        image: decoder.decode(&ErrorPolicy::new(false))?,
        metadata: decoder.metadata(&mut Diagnostics::default())?,
        metadata_bytes: decoder.surveys[0].metadata_bytes,
        described: 1,
    })
}

/// A file with one of the channels, or a stack with each channel on a page of its own.
struct ChannelFile<'a> {
    path: &'a Path,
    source: &'a Source,
    reader: Reader<'a>,
}

/// A page of a file.
#[derive(Clone, Copy, Debug)]
struct ChannelPage {
    /// The index of the file.
    file: usize,
    /// The index of the page among the selected pages of the file.
    page: usize,
}

/// The pages that are combined into one page of the result.
struct CompositePage {
    /// The page whose metadata are kept: the first one, because the first page of a stack has the stack's description.
    first: ChannelPage,
    /// The pages of the channels, in the order of the channels or of the colours.
    channels: Vec<ChannelPage>,
}

/// Decodes the pages of channels into one page.
struct CompositeDecoder<'a> {
    files: Vec<ChannelFile<'a>>,
    pages: Vec<CompositePage>,
    /// The size of each page of the result.
    surveys: Vec<PageSurvey>,
    /// The colour of each channel; `None` if the images are the channels.
    colours: Option<Vec<Colour>>,
    /// Whether the channels are pages of one stack.
    is_stack: bool,
    current: usize,
    /// The metadata of the current page.
    metadata: Metadata,
    diagnostics: Diagnostics,
}

impl<'a> CompositeDecoder<'a> {
    /// # Errors
    /// Files whose pages cannot be combined.
    fn new(files: Vec<ChannelFile<'a>>, mix: &Mix, is_stack: bool) -> Result<CompositeDecoder<'a>> {
        let (pages, colours) = match (mix, files.as_slice()) {
            (Mix::Channels, files) => {
                ensure!(
                    matches!(files.len(), 3 | 4),
                    "an RGB image has 3 channels, or 4 with alpha, but the images are {}",
                    files.len()
                );
                (pages_of_files(files)?, None)
            }
            (Mix::Colours(colours), [file]) if is_stack => {
                let pages = pages_of_channels(file, colours)?;
                let colours = colours.0.iter().map(|(_, colour)| *colour).collect();
                (pages, Some(colours))
            }
            (Mix::Colours(colours), files) => (
                pages_of_files(files)?,
                Some(colours_of_files(files, colours)?),
            ),
        };
        let surveys = surveys(&files, &pages, colours.is_some())?;
        Ok(CompositeDecoder {
            files,
            pages,
            surveys,
            colours,
            is_stack,
            current: 0,
            metadata: Metadata::default(),
            diagnostics: Diagnostics::default(),
        })
    }

    /// Reports the pages that are not read, and the channels without a colour.
    fn report_left_out(&self, diagnostics: &mut Diagnostics) {
        for ChannelFile { path, reader, .. } in &self.files {
            let left_out = reader.left_out();
            let warning = left_out.map(|text| format!("{}: {text}", path.shown()));
            diagnostics.warnings.extend(warning);
        }
        let channels = self.files[0].reader.axes();
        let channels = channels.map_or(1, |axes| axes.size(Axis::C));
        let used = self.colours.as_ref().map_or(0, Vec::len);
        if self.is_stack && used < channels {
            diagnostics.notes.push(format!(
                "{} without a colour left out",
                plural(channels - used, "channel")
            ));
        }
    }

    /// Makes the parts of a page of the result the current pages of their files, and checks that their samples have the same
    /// type. Returns the metadata of the first part, with the significant bits of all parts.
    fn header(&mut self, page: usize, diagnostics: &mut Diagnostics) -> Result<Metadata> {
        let mut first: Option<(Metadata, ImageType, String)> = None;
        let mut significant = Some(Vec::new());
        let CompositePage {
            first: kept,
            channels,
        } = &self.pages[page];
        for part in channels {
            let ChannelFile { path, reader, .. } = &mut self.files[part.file];
            let mut name = path.shown().into_owned();
            if reader.pages().len() > 1 {
                name += &format!(", page {}", reader.pages()[part.page] + 1);
            }
            reader.turn_to(part.page).with_context(|| name.clone())?;
            let metadata = reader.metadata(&mut Diagnostics::default());
            let metadata = metadata.with_context(|| name.clone())?;
            let image_type = ImageType::from_page(reader.shape(), &metadata);
            ensure!(
                !metadata.white_is_zero,
                "0 is white in {name}, but black in RGB: make an image where 0 is black first"
            );
            ensure!(
                self.colours.is_none() || !metadata.signed,
                "{name} has signed samples, but colours need values from 0 on (use normalize to convert them)"
            );
            match (&mut significant, &metadata.significant) {
                (Some(all), Some(bits)) => all.extend_from_slice(bits),
                _ => significant = None,
            }
            let Some((first, first_type, first_name)) = &first else {
                first = Some((metadata, image_type, name));
                continue;
            };
            ensure!(
                image_type == *first_type,
                Unfit::unlike(
                    [&name, first_name],
                    [&image_type, first_type],
                    [image_type.shape, first_type.shape]
                )
            );
            ensure!(
                metadata.maxval == first.maxval,
                "the largest value of {name} is {}, but that of {first_name} is {}",
                largest_value(&metadata, reader.shape()),
                largest_value(first, reader.shape())
            );
        }
        let ChannelFile { path, reader, .. } = &mut self.files[kept.file];
        let name = || path.shown().into_owned();
        reader.turn_to(kept.page).with_context(name)?;
        let metadata = reader.metadata(diagnostics).with_context(name)?;
        let significant = significant.filter(|_| self.colours.is_none());
        if significant.is_none() && metadata.significant.is_some() {
            let note = "how many bits are significant is left out: it is not known of the result";
            diagnostics.notes.push(note.into());
        }
        Ok(Metadata {
            significant,
            ..metadata
        })
    }
}

/// Images that are not channels of one image.
#[derive(Debug, Error)]
#[error("{text}")]
pub struct Unfit {
    text: String,
    /// The command that makes them fit; empty if there is none.
    pub advice: String,
}

impl Unfit {
    /// Two images of different sizes or types.
    fn unlike(
        [one, other]: [impl Display; 2],
        [one_type, other_type]: [impl Display; 2],
        [one_shape, other_shape]: [Shape; 2],
    ) -> Unfit {
        let is_narrow = |shape: Shape| !shape.depth.is_wide();
        let (width, height) = (
            one_shape.width.min(other_shape.width),
            one_shape.height.min(other_shape.height),
        );
        let advice =
            if (one_shape.width, one_shape.height) != (other_shape.width, other_shape.height) {
                format!("gpuimg crop 0,0,{width}x{height} takes the part that both have")
            } else if one_shape.depth != other_shape.depth
                && is_narrow(one_shape)
                && is_narrow(other_shape)
            {
                "gpuimg convert --depth 16 makes the types alike".into()
            } else {
                String::new()
            };
        Unfit {
            text: format!(
                "{one} is {one_type}, but {other} is {other_type}: they must have the same size and type"
            ),
            advice,
        }
    }

    /// An image with several channels.
    fn not_grey(path: &Path, shape: Shape) -> Unfit {
        let (name, kind) = (path.shown(), shape.kind());
        Unfit {
            text: format!("{name} is {kind}: a channel is a grey image"),
            advice: format!(
                "gpuimg convert --channel 1 {} OUT takes one channel",
                in_shell(path)
            ),
        }
    }
}

/// The largest value that the samples of a page can have.
fn largest_value(metadata: &Metadata, shape: Shape) -> u16 {
    metadata.maxval.unwrap_or(shape.depth.full())
}

/// The pages of the result if each file is a channel: page 1 of every file, page 2 of every file, and so on.
///
/// # Errors
/// Files with different numbers of pages.
fn pages_of_files(files: &[ChannelFile]) -> Result<Vec<CompositePage>> {
    let count = |file: &ChannelFile| file.reader.pages().len();
    for file in files {
        ensure!(
            count(file) == count(&files[0]),
            "{} has {} and {} has {}: pages are combined one by one",
            file.path.shown(),
            plural(count(file), "page"),
            files[0].path.shown(),
            plural(count(&files[0]), "page"),
        );
    }
    let pages = 0..files.first().map_or(0, count);
    let composite = |page| CompositePage {
        first: ChannelPage { file: 0, page },
        channels: (0..files.len())
            .map(|file| ChannelPage { file, page })
            .collect(),
    };
    Ok(pages.map(composite).collect())
}

/// The colour of each file, in the order of the files.
///
/// # Errors
/// A file without a colour, and a colour without a file.
fn colours_of_files(files: &[ChannelFile], colours: &ChannelColours) -> Result<Vec<Colour>> {
    for (number, _) in &colours.0 {
        ensure!(
            *number <= files.len(),
            "there is no C{number}: the files are C1 to C{}",
            files.len()
        );
    }
    let colour = |(index, file): (usize, &ChannelFile)| {
        let number = index + 1;
        let found = colours.0.iter().find(|(known, _)| *known == number);
        let found = found.map(|(_, colour)| *colour);
        found.with_context(|| format!("{} has no colour: add C{number}=…", file.path.shown()))
    };
    files.iter().enumerate().map(colour).collect()
}

/// The pages of the result if the channels are pages of one stack: the pages of the channels that have a colour, for each
/// position on the other axes.
///
/// # Errors
/// A stack whose metadata name no channels, and a channel that it does not have.
fn pages_of_channels(file: &ChannelFile, colours: &ChannelColours) -> Result<Vec<CompositePage>> {
    let axes = file.reader.axes();
    let axes = axes.context(
        "its metadata name no channels on pages of their own: name a file for each channel, C1 first",
    )?;
    let groups = axes.groups(Axis::C).into_iter();
    let pages = groups.map(|group| {
        let channels: Vec<usize> = (group.iter())
            .map(|&page| file.reader.channel(page) + 1)
            .collect();
        let parts = colours.0.iter().map(|(number, _)| {
            let index = channels.iter().position(|channel| channel == number);
            let index = index.with_context(|| match channels.as_slice() {
                [only] => format!("there is no channel C{number}, only C{only}"),
                [first, .., last] => {
                    format!("there is no channel C{number}: it has C{first} to C{last}")
                }
                [] => format!("there is no channel C{number}"),
            })?;
            Ok(ChannelPage {
                file: 0,
                page: group[index],
            })
        });
        Ok(CompositePage {
            first: ChannelPage {
                file: 0,
                page: group[0],
            },
            channels: parts.collect::<Result<_>>()?,
        })
    });
    pages.collect()
}

/// The size of each page of the result.
///
/// # Errors
/// Pages that are not grey, and pages of different sizes that become one.
fn surveys(
    files: &[ChannelFile],
    pages: &[CompositePage],
    with_colours: bool,
) -> Result<Vec<PageSurvey>> {
    let file_surveys = |file: &ChannelFile| {
        let surveys = file.reader.surveys();
        surveys.with_context(|| file.path.shown().into_owned())
    };
    let known: Vec<Vec<PageSurvey>> = files.iter().map(file_surveys).collect::<Result<_>>()?;
    let survey = |page: &CompositePage| {
        let parts = &page.channels;
        let mut bytes = 0u64;
        let mut first: Option<(Shape, &Path)> = None;
        for part in parts {
            let (path, survey) = (files[part.file].path, known[part.file][part.page]);
            let shape = survey.shape;
            ensure!(shape.channels == 1, Unfit::not_grey(path, shape));
            ensure!(
                !with_colours || !shape.depth.is_wide(),
                "{} has samples of {}, but colours need 8 or 16 bits (use normalize to convert them)",
                path.shown(),
                shape.depth
            );
            let (first, first_path) = *first.get_or_insert((shape, path));
            ensure!(
                shape == first,
                Unfit::unlike(
                    [path.shown(), first_path.shown()],
                    [shape, first],
                    [shape, first]
                )
            );
            // All channels of a page are in memory together with the result. They are counted as metadata.
            bytes = bytes.saturating_add(survey.metadata_bytes);
            bytes = bytes.saturating_add(shape.bytes() as u64);
        }
        let (shape, _) = first.context("internal error: a page without channels")?;
        let channels = if with_colours { 3 } else { parts.len() };
        Ok(PageSurvey {
            shape: Shape::checked(
                shape.width as u64,
                shape.height as u64,
                channels,
                shape.depth,
            )?,
            metadata_bytes: bytes,
        })
    };
    pages.iter().map(survey).collect()
}

impl Decoder for CompositeDecoder<'_> {
    fn pages(&self) -> usize {
        self.pages.len()
    }

    fn survey(&self, page: usize) -> Result<PageSurvey> {
        Ok(self.surveys[page])
    }

    fn turn_to(&mut self, page: usize) -> Result<()> {
        self.current = page;
        let mut diagnostics = Diagnostics::default();
        let mut metadata = self.header(page, &mut diagnostics)?;
        let reader = &self.files[self.pages[page].first.file].reader;
        let pages = self.pages.len();
        if page == 0 {
            self.report_left_out(&mut diagnostics);
        }
        if self.is_stack {
            formats::metadata::collapse(&mut metadata, Axis::C, pages, &mut diagnostics);
        }
        // `header` has found the values for all channels; they are set again after `update`.
        let (maxval, significant) = (metadata.maxval, metadata.significant.take());
        let shape = self.surveys[page].shape;
        let transform = Transform {
            effect: Effect::Arithmetic,
            from: Shape {
                channels: 1,
                ..shape
            },
            to: shape,
            pages,
            whole: reader.is_whole(),
        };
        formats::metadata::update(&mut metadata, &transform, &mut diagnostics);
        self.metadata = Metadata {
            maxval,
            significant,
            // The window of one channel does not apply to the result.
            window: None,
            ..metadata
        };
        self.diagnostics = diagnostics;
        Ok(())
    }

    fn shape(&self) -> Shape {
        self.surveys[self.current].shape
    }

    fn metadata(&self, diagnostics: &mut Diagnostics) -> Result<Metadata> {
        diagnostics.add(&self.diagnostics);
        Ok(self.metadata.clone())
    }

    fn decoding(&self) -> String {
        let files = self.pages[self.current]
            .channels
            .iter()
            .map(|part| part.file);
        let each = files.map(|file| self.files[file].reader.decoding());
        let mut all: Vec<String> = each.collect();
        all.dedup();
        all.join("; ")
    }

    fn decode(&mut self, policy: &ErrorPolicy) -> Result<Image> {
        let first = self.files[0].source;
        let mut images = Vec::new();
        for part in &self.pages[self.current].channels {
            let ChannelFile {
                path,
                source,
                reader,
            } = &mut self.files[part.file];
            let name = || path.shown().into_owned();
            let image = reader.turn_to(part.page).and_then(|()| reader.decode());
            images.push(image.with_context(name)?);
            if let Some(damage) = reader.damage() {
                policy.accept(Err(anyhow::Error::msg(damage).context(name())))?;
            }
            for note in reader.fallbacks() {
                policy.add_fallback(format!("{}: {note}", name()));
            }
            if part.file > 0 {
                // The traffic of a page is recorded with the first file.
                first.traffic.add(&source.traffic.take());
            }
        }
        match &self.colours {
            None => combine::interleave(&images),
            Some(colours) => {
                let mut metadata = self.metadata.clone();
                for image in &images {
                    metadata.check_maxval(image.samples());
                }
                let max_value = largest_value(&metadata, self.shape());
                combine::blend(&images, colours, max_value)
            }
        }
    }
}
