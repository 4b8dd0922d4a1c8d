//! Reads a file of any format, page by page.

use super::error_policy::ErrorPolicy;
use super::format::{self, BlockSink, Decoder, Format, PageSurvey, RowSink, SlicePosition};
use super::packed::{Packed, Unsuited};
use super::preview::PreviewDecoder;
use super::{Reading, headerless, memory, metadata};
use crate::image::metadata::{Axes, Axis, Diagnostics, Metadata, Part, Place};
use crate::image::{Image, Region, Shape};
use crate::ops::DeviceImage;
use crate::os::Source;
use anyhow::{Context, Error, Result, ensure};
use std::collections::BTreeSet;

/// A range of pages, counted from 1, both ends in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Pages {
    /// The first page.
    pub first: usize,
    /// The last page.
    pub last: usize,
}

impl Pages {
    /// A single page, counted from 1.
    pub fn one(page: usize) -> Pages {
        Pages {
            first: page,
            last: page,
        }
    }
}

impl std::str::FromStr for Pages {
    type Err = String;

    fn from_str(text: &str) -> Result<Pages, String> {
        let number = |text: &str| match text.trim().parse::<usize>() {
            Ok(0) => Err(format!("invalid page '{text}': pages start at 1")),
            Ok(page) => Ok(page),
            Err(_) => Err(format!(
                "invalid page '{text}': expected a page, as 3, or a range of pages, as 2-9"
            )),
        };
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err("the first page must not be after the last".into());
        }
        Ok(Pages { first, last })
    }
}

/// Places on the axes of a stack, as `C=1,Z=3-9`, counted from 1; of an axis that is not named all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Places {
    /// Channels.
    c: Option<Pages>,
    /// Slices.
    z: Option<Pages>,
    /// Frames.
    t: Option<Pages>,
}

impl Places {
    /// The axes that are named, with the first and the last place, counted from 0.
    fn ranges(&self) -> Vec<(Axis, usize, usize)> {
        let all = [(Axis::C, self.c), (Axis::Z, self.z), (Axis::T, self.t)];
        let named = all
            .into_iter()
            .filter_map(|(axis, places)| Some((axis, places?)));
        named
            .map(|(axis, places)| (axis, places.first - 1, places.last - 1))
            .collect()
    }
}

impl std::str::FromStr for Places {
    type Err = String;

    fn from_str(text: &str) -> Result<Places, String> {
        let mut places = Places::default();
        for part in text.split(',') {
            let (axis, range) = part
                .split_once('=')
                .ok_or("expected positions on axes, such as C=1,Z=3-9")?;
            let known = match axis.trim() {
                "C" | "c" => &mut places.c,
                "Z" | "z" => &mut places.z,
                "T" | "t" => &mut places.t,
                other => return Err(format!("unknown axis '{other}': expected C, Z or T")),
            };
            if known.is_some() {
                return Err(format!("the axis {axis} is named twice"));
            }
            *known = Some(range.parse()?);
        }
        Ok(places)
    }
}

/// A file whose header has been read; no memory has been allocated for pixels yet.
pub struct Reader<'a> {
    source: &'a Source,
    format: &'static Format,
    decoder: Box<dyn Decoder + 'a>,
    /// The number of all pages.
    pages_of_file: usize,
    /// The selected pages, counted from 0.
    pages: Vec<usize>,
    /// The axes along which the selected pages lie, if its metadata name any.
    axes: Option<Axes>,
    /// The page of the file that was turned to.
    current: usize,
    /// The axes of all pages of the file, if the selected pages are no part of them.
    scattered: Option<Axes>,
    /// The part of the axes of all pages that the selected ones are, if they are a part of them.
    part: Option<Part>,
    /// Reduced-resolution pages and masks that are skipped.
    skipped: Vec<usize>,
    /// The number of pages, if a preview shows only one of them.
    preview_of: Option<usize>,
    /// Whether values are inverted, because the file is a preview's and has white for 0.
    is_inverted: bool,
    /// Whether the first row is shown at the bottom, because the file is a preview's and its format has this convention.
    is_bottom_up: bool,
    policy: ErrorPolicy,
}

impl<'a> Reader<'a> {
    /// Recognises the format, reads the header and selects the first requested page. Errors name
    /// the cause only; the caller adds the file's name.
    pub fn open(source: &'a Source, reading: &Reading) -> Result<Reader<'a>> {
        match Reader::parse(source, reading) {
            Ok(reader) => reader.checked(Ok(())).map(|()| reader),
            Err(error) => Err(source.failure().map_or(error, Error::msg)),
        }
    }

    /// A reader of pages in memory; `source`, which is empty, stands for their file.
    ///
    /// # Errors
    /// Metadata that do not describe the pages.
    pub fn in_memory(source: &'a Source, pages: &'a memory::Pages) -> Result<Reader<'a>> {
        let mut reader = Reader {
            source,
            format: &memory::FORMAT,
            decoder: Box::new(memory::MemoryDecoder::new(pages)),
            pages_of_file: pages.count(),
            pages: (0..pages.count()).collect(),
            axes: None,
            current: 0,
            scattered: None,
            part: None,
            skipped: Vec::new(),
            preview_of: None,
            is_inverted: false,
            is_bottom_up: false,
            policy: ErrorPolicy::new(false),
        };
        if reader.is_whole() {
            reader.select(&Reading::default())?;
        }
        Ok(reader)
    }

    /// A reader of pages that `decoder` makes from those of other readers; `source` and `format` are those of the first.
    ///
    /// # Errors
    /// A first page that cannot be made.
    pub fn from_decoder(
        source: &'a Source,
        format: &'static Format,
        decoder: Box<dyn Decoder + 'a>,
        reading: &Reading,
    ) -> Result<Reader<'a>> {
        let mut reader = Reader {
            source,
            format,
            pages_of_file: decoder.pages(),
            pages: (0..decoder.pages()).collect(),
            decoder,
            axes: None,
            current: 0,
            scattered: None,
            part: None,
            skipped: Vec::new(),
            preview_of: None,
            is_inverted: false,
            is_bottom_up: false,
            policy: ErrorPolicy::new(reading.keep_going),
        };
        reader.turn_to(0)?;
        Ok(reader)
    }

    /// An error if a read of the file failed, whatever its decoder says: it may have taken something for
    /// absent or damaged. Where damage is accepted, it is recorded as damage.
    fn checked<T>(&self, result: Result<T>) -> Result<T> {
        match self.source.failure() {
            None => result,
            Some(failure) if result.is_err() => Err(Error::msg(failure)),
            Some(failure) => {
                self.policy.accept(Err(Error::msg(failure)))?;
                result
            }
        }
    }

    fn parse(source: &'a Source, reading: &Reading) -> Result<Reader<'a>> {
        let (format, mut decoder): (&'static Format, Box<dyn Decoder>) = match reading.raw {
            Some(raw) => (
                &headerless::FORMAT,
                raw.decoder(source, reading.keep_going)?,
            ),
            None => {
                let format = format::of_content(source)?;
                (format, (format.decoder)(source, reading.keep_going)?)
            }
        };
        if let Some(address) = source.address() {
            ensure!(
                format.addresses.is_some(),
                "{} files have no datasets: leave :{address} out of its name",
                format.name
            );
        }
        let levels = decoder.levels();
        ensure!(
            reading.level < levels,
            "it has no level {}: its last level is {}",
            reading.level,
            levels - 1
        );
        decoder.select_level(reading.level)?;
        let mut is_inverted = false;
        if reading.preview {
            (decoder, is_inverted) = PreviewDecoder::wrap(decoder)?;
        }
        let count = decoder.pages();
        let selected = reading.pages.unwrap_or(Pages {
            first: 1,
            last: count,
        });
        ensure!(
            selected.last <= count,
            "it has {count} page{}, no page {}",
            if count == 1 { "" } else { "s" },
            selected.last
        );
        let mut reader = Reader {
            source,
            format,
            decoder,
            pages_of_file: count,
            pages: (selected.first - 1..selected.last).collect(),
            axes: None,
            current: 0,
            scattered: None,
            part: None,
            skipped: Vec::new(),
            preview_of: None,
            is_inverted,
            is_bottom_up: reading.preview && format.is_bottom_up,
            policy: ErrorPolicy::new(reading.keep_going),
        };
        reader.skip_reduced()?;
        reader.select(reading)?;
        if reading.preview && reading.pages.is_none() && reading.axes.is_none() {
            reader.select_for_preview()?;
        }
        if reading.pages.is_none() {
            for &page in &reader.pages {
                (reader.decoder.check_full(page)).with_context(|| of_page(page))?;
            }
        }
        for PageSurvey { shape, .. } in reader.surveys()? {
            ensure!(
                shape.pixels() as u64 <= reading.max_pixels,
                "{}×{} pixels are more than {} (--max-pixels allows more)",
                shape.width,
                shape.height,
                reading.max_pixels
            );
        }
        reader.turn_to(0)?;
        Ok(reader)
    }

    /// Finds the axes of the pages, and selects the places on them that are requested.
    fn select(&mut self, reading: &Reading) -> Result<()> {
        let count = match reading.pages {
            Some(_) => self.decoder.pages(),
            None => self.pages.len(),
        };
        if count < 2 && reading.axes.is_none() {
            return Ok(());
        }
        let metadata = self.decoder.metadata(&mut Diagnostics::default());
        let channels = self.decoder.shape().channels;
        let axes = metadata.and_then(|known| metadata::axes(&known, channels, count));
        let Some(places) = reading.axes else {
            // Of pages without axes that are true nothing more is known.
            let axes = axes.ok().flatten();
            self.part = axes.zip(reading.pages).and_then(|(axes, pages)| {
                let part = Part::from_pages(axes, pages.first - 1, pages.last - 1);
                part.filter(|_| self.pages.len() <= pages.last - pages.first + 1)
            });
            (self.axes, self.scattered) = match (reading.pages, self.part) {
                (None, _) => (axes, None),
                (Some(_), Some(part)) => (Some(part.axes()), None),
                (Some(_), None) => (None, axes),
            };
            return Ok(());
        };
        let axes =
            axes?.context("its metadata describe no axes (--pages selects pages by number)")?;
        let part = Part::new(axes, &places.ranges())?;
        self.pages = part.pages().iter().map(|&page| self.pages[page]).collect();
        self.axes = Some(part.axes());
        self.part = Some(part).filter(|part| part.axes() != axes);
        Ok(())
    }

    /// Keeps only the page that represents the file: the middle slice of a stack, in its first channel and its middle frame;
    /// the first page if pages differ in size or type.
    fn select_for_preview(&mut self) -> Result<()> {
        if self.pages.len() < 2 {
            return Ok(());
        }
        let surveys = self.surveys()?;
        let is_stack = surveys.iter().all(|page| page.shape == surveys[0].shape);
        let middle = |count: usize| (count - 1) / 2;
        let page = match self.axes {
            _ if !is_stack => 0,
            None => middle(self.pages.len()),
            Some(axes) => {
                let place = |axis| match axis {
                    Axis::C => 0,
                    Axis::Z | Axis::T => middle(axes.size(axis)),
                };
                let is_shown = |page: &usize| {
                    let mut known = axes.0.iter();
                    known.all(|&(axis, _)| axes.place(*page, axis) == place(axis))
                };
                let mut pages = 0..self.pages.len();
                pages.find(is_shown).unwrap_or(0)
            }
        };
        self.preview_of = Some(self.pages.len());
        self.pages = vec![self.pages[page]];
        self.axes = None;
        Ok(())
    }

    /// The place on an axis of page `index` of the selected pages, from 0; 0 if it has none.
    fn on(&self, axis: Axis, index: usize) -> usize {
        if let Some(axes) = self.scattered {
            return axes.place(self.pages[index], axis);
        }
        let first = self.part.map_or(0, |part| part.places(axis).0);
        first + self.axes.map_or(0, |axes| axes.place(index, axis))
    }

    /// The axes along which the selected pages lie, if the metadata name any.
    pub fn axes(&self) -> Option<Axes> {
        self.axes
    }

    /// The place on the axis of channels of page `index` of the selected pages, from 0.
    pub fn channel(&self, index: usize) -> usize {
        self.on(Axis::C, index)
    }

    /// The number of places on the axis of channels that the selected pages have.
    pub fn channels_among_pages(&self) -> usize {
        let channels: BTreeSet<usize> = (0..self.pages.len())
            .map(|index| self.channel(index))
            .collect();
        channels.len()
    }

    /// Where each of the selected pages is.
    pub fn places(&self) -> Vec<Place> {
        let place = |(index, page): (usize, &usize)| Place {
            page: page + 1,
            c: self.on(Axis::C, index) + 1,
            z: self.on(Axis::Z, index) + 1,
            t: self.on(Axis::T, index) + 1,
        };
        self.pages.iter().enumerate().map(place).collect()
    }

    /// Skips reduced-resolution copies and masks, unless no other page is requested.
    fn skip_reduced(&mut self) -> Result<()> {
        if self.pages.len() < 2 {
            return Ok(());
        }
        let mut skipped = Vec::new();
        for &page in &self.pages {
            if self
                .decoder
                .is_reduced(page)
                .with_context(|| of_page(page))?
            {
                skipped.push(page);
            }
        }
        if skipped.len() < self.pages.len() {
            self.pages.retain(|page| !skipped.contains(page));
            self.skipped = skipped;
        }
        Ok(())
    }

    /// The size of every selected page.
    pub fn surveys(&self) -> Result<Vec<PageSurvey>> {
        let survey = |&page: &usize| self.decoder.survey(page).with_context(|| of_page(page));
        self.checked(self.pages.iter().map(survey).collect())
    }

    /// The file's format.
    pub fn format(&self) -> &'static Format {
        self.format
    }

    /// The selected pages, counted from 0 in the file; at least one.
    pub fn pages(&self) -> &[usize] {
        &self.pages
    }

    /// Whether every page that the metadata describe is selected: those of the file, or of a part of it,
    /// of which they are made true.
    pub fn is_whole(&self) -> bool {
        self.part.is_some() || self.pages.len() == self.decoder.pages()
    }

    /// The number of pages of the stack, if a preview shows only one of them.
    pub fn preview_of(&self) -> Option<usize> {
        self.preview_of
    }

    /// Whether values are inverted for a preview.
    pub fn is_inverted(&self) -> bool {
        self.is_inverted
    }

    /// Whether a preview shows the first row at the bottom.
    pub fn is_bottom_up(&self) -> bool {
        self.is_bottom_up
    }

    /// The number of all pages of the file, of which some may not be selected.
    pub fn pages_of_file(&self) -> usize {
        self.pages_of_file
    }

    /// Turns to page `index` of the selected pages.
    pub fn turn_to(&mut self, index: usize) -> Result<()> {
        let page = self.pages[index];
        self.current = page;
        self.policy.clear_fallbacks();
        let turned = self.decoder.turn_to(page).with_context(|| of_page(page));
        self.checked(turned)
    }

    /// The shape of the image that `decode` gives.
    pub fn shape(&self) -> Shape {
        self.decoder.shape()
    }

    /// The page's metadata.
    pub fn metadata(&self, diagnostics: &mut Diagnostics) -> Result<Metadata> {
        let metadata = self.decoder.metadata(diagnostics);
        let lost = std::mem::take(&mut diagnostics.lost);
        if !lost.is_empty() {
            let left_out = if self.policy.accepts_damage() {
                ", and is left out"
            } else {
                ""
            };
            self.policy
                .accept(Err(Error::msg(lost.join("; ") + left_out)))?;
        }
        let mut metadata = self.checked(metadata)?;
        metadata::take_stretch(&mut metadata);
        if let Some(part) = &self.part {
            metadata::select(&mut metadata, part, diagnostics);
        }
        Ok(metadata)
    }

    /// Whether the page can be given as compressed data: not if damage is accepted, which
    /// only the codec's decoder can do.
    pub fn gives_packed(&self) -> bool {
        self.decoder.gives_packed() && !self.policy.accepts_damage()
    }

    /// Reads the page's compressed data now, if it can be given so: a GPU will probably decode the page.
    pub fn read_ahead(&mut self) {
        if self.gives_packed() {
            self.decoder.read_ahead();
        }
    }

    /// The page's compressed data; `decode` still works afterwards.
    ///
    /// # Errors
    /// Why only `decode` decodes the page.
    pub fn packed(&self) -> Result<Packed, Unsuited> {
        self.decoder.packed()
    }

    /// The page, if it is in the memory of a GPU. It can be taken once.
    pub fn device_image(&self) -> Option<DeviceImage> {
        self.decoder.device_image()
    }

    /// Whether the page can be given in blocks: not if damage is accepted.
    pub fn gives_blocks(&self) -> bool {
        self.decoder.gives_blocks() && !self.policy.accepts_damage()
    }

    /// Decodes the page in blocks of whole rows, in any order and on any thread. `decode` still works afterwards.
    ///
    /// # Errors
    /// Damage, which `decode` reports better, and errors of `sink`.
    pub fn blocks(&self, sink: &BlockSink) -> Result<()> {
        self.checked(self.decoder.blocks(sink))
    }

    /// Whether the page can be given in rows from top to bottom: not if damage is accepted.
    pub fn gives_rows(&self) -> bool {
        self.decoder.gives_rows() && !self.policy.accepts_damage()
    }

    /// Decodes the page from top to bottom, some whole rows at a time. `decode` still works afterwards. `serially` selects the
    /// method that fails only on damaged files.
    ///
    /// # Errors
    /// Damage, which `decode` reports better, and errors of `sink`.
    pub fn rows(&self, serially: bool, sink: &mut RowSink) -> Result<()> {
        self.checked(self.decoder.rows(serially, sink))
    }

    /// How the page is decoded, for messages.
    pub fn decoding(&self) -> String {
        self.decoder.decoding()
    }

    /// Whether a region of a page can be decoded without the rest of it: not if damage is accepted.
    pub fn gives_regions(&self) -> bool {
        self.decoder.gives_regions() && !self.policy.accepts_damage()
    }

    /// Which part of the page `decode_region` decodes, for messages.
    pub fn region_parts(&self, region: &Region) -> String {
        self.decoder.region_parts(region)
    }

    /// The size of a region of every selected page, and of all else in memory while it is decoded.
    ///
    /// # Errors
    /// A damaged page.
    pub fn region_surveys(&self, region: &Region) -> Result<Vec<PageSurvey>> {
        let pages = self.pages.iter().zip(self.surveys()?);
        let survey = |(&page, whole): (&usize, PageSurvey)| {
            if !region.is_in(&whole.shape) {
                // It is refused when the page is checked against the operations.
                return Ok(whole);
            }
            let beside = self.decoder.region_memory(page, region);
            Ok(PageSurvey {
                shape: region.output(whole.shape),
                metadata_bytes: whole.metadata_bytes.saturating_add(beside?),
            })
        };
        self.checked(pages.map(survey).collect())
    }

    /// Decodes a region of the page, which lies in it, and of the file only what contains it.
    ///
    /// # Errors
    /// Damage in that part of the file.
    pub fn decode_region(&self, region: &Region) -> Result<Image> {
        self.checked(self.with_page(self.decoder.region(region)))
    }

    /// Decodes the page.
    pub fn decode(&mut self) -> Result<Image> {
        let image = self.decoder.decode(&self.policy);
        self.checked(self.with_page(image))
    }

    /// Adds the number of the page to an error, if the file has several.
    fn with_page<T>(&self, result: Result<T>) -> Result<T> {
        match self.pages_of_file {
            ..=1 => result,
            _ => result.with_context(|| of_page(self.current)),
        }
    }

    /// The fast methods that failed while the selected page was decoded, a note each; a slower method was used instead.
    pub fn fallbacks(&self) -> Vec<String> {
        self.policy.fallbacks()
    }

    /// The position of the image among parallel slices of a volume, if the file has it.
    pub fn slice_position(&self) -> Option<SlicePosition> {
        self.decoder.slice_position()
    }

    /// A sentence about damage, if the error policy was to go on.
    pub fn damage(&self) -> Option<String> {
        self.policy.damage()
    }

    /// A sentence about the pages that are not read.
    pub fn left_out(&self) -> Option<String> {
        let first = self.skipped.first()? + 1;
        Some(match self.skipped.len() {
            1 => format!("1 page that is a smaller copy or a mask is left out (page {first})"),
            more => format!(
                "{more} pages that are smaller copies or masks are left out (the first is page {first})"
            ),
        })
    }
}

fn of_page(page: usize) -> String {
    format!("page {}", page + 1)
}
