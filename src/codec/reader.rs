//! Reads a file of any format, page by page.

use super::Reading;
use super::error_policy::ErrorPolicy;
use super::format::{self, Decoder, Format};
use super::headerless::Raw;
use super::packed::{Packed, Unsuited};
use crate::files::Source;
use crate::image::{Image, Shape};
use crate::metadata::{Diagnostics, Metadata};
use anyhow::{Context, Result, ensure};

/// A range of pages, counted from 1, both ends in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Pages {
    /// The first page.
    pub first: usize,
    /// The last page.
    pub last: usize,
}

impl std::str::FromStr for Pages {
    type Err = String;

    fn from_str(text: &str) -> Result<Pages, String> {
        let number = |text: &str| {
            let number = text.trim().parse::<usize>().ok().filter(|&page| page > 0);
            number.ok_or(format!("'{text}' is no page: they are counted from 1"))
        };
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err("the first page must not be behind the last".into());
        }
        Ok(Pages { first, last })
    }
}

/// A file whose header has been read; no memory has been allocated for pixels yet.
pub struct Reader<'a> {
    format: &'static dyn Format,
    decoder: Box<dyn Decoder + 'a>,
    /// The selected pages, counted from 0.
    pages: Vec<usize>,
    /// Reduced-resolution pages and masks that are skipped.
    skipped: Vec<usize>,
    policy: ErrorPolicy,
}

impl<'a> Reader<'a> {
    /// Recognises the format, reads the header and selects the first requested page. Errors name
    /// the cause only; the caller adds the file's name.
    pub fn open(source: &'a Source, reading: &Reading) -> Result<Reader<'a>> {
        let (format, decoder): (&'static dyn Format, _) = match reading.raw {
            Some(raw) => (&Raw, raw.decoder(source, reading.keep_going)?),
            None => {
                let format = format::of_content(source)?;
                (format, format.decoder(source, reading.keep_going)?)
            }
        };
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
            format,
            decoder,
            pages: (selected.first - 1..selected.last).collect(),
            skipped: Vec::new(),
            policy: ErrorPolicy::new(reading.keep_going),
        };
        reader.skip_reduced()?;
        if reading.pages.is_none() {
            for &page in &reader.pages {
                (reader.decoder.check_full(page)).with_context(|| of_page(page))?;
            }
        }
        for (shape, _) in reader.surveys()? {
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

    /// The shape of every selected page, and the size of its metadata in bytes.
    pub fn surveys(&self) -> Result<Vec<(Shape, u64)>> {
        let survey = |&page: &usize| self.decoder.survey(page).with_context(|| of_page(page));
        self.pages.iter().map(survey).collect()
    }

    /// The file's format.
    pub fn format(&self) -> &'static dyn Format {
        self.format
    }

    /// The selected pages, counted from 0 in the file; at least one.
    pub fn pages(&self) -> &[usize] {
        &self.pages
    }

    /// Whether every page of the file is selected.
    pub fn is_whole(&self) -> bool {
        self.pages.len() == self.decoder.pages()
    }

    /// Turns to page `index` of the selected pages.
    pub fn turn_to(&mut self, index: usize) -> Result<()> {
        let page = self.pages[index];
        self.decoder.turn_to(page).with_context(|| of_page(page))
    }

    /// The shape of the image that `decode` gives.
    pub fn shape(&self) -> Shape {
        self.decoder.shape()
    }

    /// The page's metadata.
    pub fn metadata(&self, diagnostics: &mut Diagnostics) -> Result<Metadata> {
        self.decoder.metadata(diagnostics)
    }

    /// Whether the page can be given as compressed data of a PNG: not if damage is accepted, which
    /// only the codec's decoder can do.
    pub fn gives_packed(&self) -> bool {
        self.decoder.gives_packed() && !self.policy.goes_on()
    }

    /// The page's compressed data; `decode` still works afterwards.
    ///
    /// # Errors
    /// Why only `decode` decodes the page.
    pub fn packed(&self) -> Result<Packed, Unsuited> {
        self.decoder.packed()
    }

    /// Decodes the page.
    pub fn decode(&mut self) -> Result<Image> {
        self.decoder.decode(&self.policy)
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
