//! The way of a page: read, brought to a device and through the operation, followed by its metadata,
//! and written.

use super::stack::{Shared, Told};
use super::station::Station;
use super::{Destination, Found, undone, unread, unwritten};
use crate::codec::png::Compressed;
use crate::codec::{self, Reader, Writer};
use crate::files::{Source, Target};
use crate::image::{Depth, Image, Shape, Values};
use crate::metadata::{Alpha, Effect, Metadata, Remarks, Story};
use crate::ops::normalize::Meaning;
use crate::ops::sum::Totals;
use crate::ops::{Op, Product};
use anyhow::{Context, Result};
use std::path::Path;
use std::time::Instant;

/// What the pages of a file meet, one after the other.
pub struct Way<'a, 't> {
    /// The file.
    pub input: &'a Path,
    /// Where it goes, if not to numbers.
    pub output: Option<(&'t Destination, &'t Target)>,
    /// Its bytes.
    pub source: &'a Source,
    /// Its decoder.
    pub reader: Reader<'a>,
    /// The encoder of what it becomes.
    pub writer: Option<Writer<'t>>,
    /// What is between the two.
    pub station: Station<'a>,
    /// What is to be told of the pages.
    pub told: Told,
    /// The numbers found in them.
    pub found: Found,
    /// When the codec that is at work began.
    pub since: Instant,
    /// Bytes of the last page's samples: what that took is told when the file is whole.
    pub last: u64,
}

impl Way<'_, '_> {
    /// Carries a page from decoder to encoder.
    pub fn page(&mut self, op: &dyn Op, shared: &Shared, index: usize) -> Result<()> {
        let mut remarks = Remarks::default();
        let (image, mut metadata) = self.read(index, &mut remarks)?;
        let op = shared.of(op, &image.shape(), &metadata);
        let fitting = op.with_meaning(self.meaning(&metadata, image.shape().depth));
        let fitting = fitting.with_context(|| undone(op, self.input))?;
        let op = fitting.as_deref().unwrap_or(op);
        remarks.warnings.extend(warning(op, &metadata));
        let mut story = Story {
            effect: op.effect(),
            from: image.shape(),
            to: image.shape(),
            pages: self.reader.pages().len(),
            whole: self.reader.is_whole(),
        };
        let image = match self.output {
            Some((to, _)) => {
                (self.station).prepared(image, to, &mut metadata, story, &mut remarks)?
            }
            None => image,
        };
        // As it was read, but upright.
        story.from = Shape {
            depth: story.from.depth,
            ..image.shape()
        };
        let as_png = self.as_png(image.shape());
        let (result, compressed) = (self.station).carry(op, image, as_png)?;
        remarks.warnings.extend(result.warnings);
        self.since = Instant::now();
        match result.product {
            Product::Totals(found) => {
                let found = Totals {
                    page: (story.pages > 1).then_some(self.reader.pages()[index] + 1),
                    zero: metadata.zero(found.shape.depth),
                    ..found
                };
                self.found.totals.push(found);
            }
            Product::Counts(mut found) => {
                found.signed = metadata.signed;
                let joined = self.found.count(found);
                joined.with_context(|| undone(op, self.input))?;
            }
            Product::Image(image) => {
                if let Some((to, _)) = self.output {
                    let image = (self.station).narrowed(image, &result.ranges, to, &mut metadata);
                    story.to = image.shape();
                    codec::metadata::follow(&mut metadata, &story, &mut remarks);
                    self.write(image, compressed, metadata, story.effect, &mut remarks)?;
                }
            }
        }
        self.found.ranges.extend(result.ranges);
        self.told.add(self.reader.pages()[index] + 1, remarks);
        Ok(())
    }

    fn read(&mut self, index: usize, remarks: &mut Remarks) -> Result<(Image, Metadata)> {
        if index > 0 && self.writer.is_some() {
            self.tell_written();
        }
        let mut read = || -> Result<_> {
            self.reader.turn_to(index)?;
            let image = self.reader.decode()?;
            let mut metadata = self.reader.metadata(remarks)?;
            metadata.check_maxval(image.samples());
            Ok((image, metadata))
        };
        let (image, metadata) = read().with_context(|| unread(self.input))?;
        let (bytes, traffic) = (image.shape().bytes() as u64, self.source.traffic.take());
        self.station.timeline.decoded(self.since, bytes, &traffic);
        Ok((image, metadata))
    }

    fn write(
        &mut self,
        image: Image,
        compressed: Option<Compressed>,
        metadata: Metadata,
        effect: Effect,
        remarks: &mut Remarks,
    ) -> Result<()> {
        let Some(((output, _), writer)) = self.output.zip(self.writer.as_mut()) else {
            return Ok(());
        };
        self.since = Instant::now();
        self.last = image.shape().bytes() as u64;
        writer
            .page(image, compressed, metadata, effect, remarks)
            .with_context(|| unwritten(output))
    }

    /// What it took to write the page before, which is not the last.
    fn tell_written(&mut self) {
        if let Some((_, target)) = self.output {
            let traffic = target.traffic.take();
            self.station
                .timeline
                .encoded(self.since, self.last, &traffic);
            self.since = Instant::now();
        }
    }

    /// Whether the result is to come back from a card as a PNG's data: not if it is narrowed first.
    fn as_png(&self, shape: Shape) -> bool {
        let depth = self.output.and_then(|(output, _)| output.depth);
        let narrows = depth == Some(Depth::Eight) && shape.depth == Depth::Sixteen;
        !narrows && self.writer.as_ref().is_some_and(Writer::is_for_gpu)
    }

    /// What samples stand for in the input and in the output.
    fn meaning(&self, metadata: &Metadata, depth: Depth) -> Meaning {
        let read = metadata.values(depth);
        let wanted = self.output.and_then(|(output, _)| output.depth);
        let has_sign = |writer: &Writer| writer.format().capabilities().signed;
        let written = Values {
            depth: wanted.unwrap_or(depth),
            signed: read.signed && self.writer.as_ref().is_none_or(has_sign),
        };
        Meaning { read, written }
    }
}

/// What the user of an operation might not think of, where samples mean this.
fn warning(op: &dyn Op, metadata: &Metadata) -> Option<String> {
    let warning = match metadata.alpha {
        Alpha::Associated => {
            "colours are multiplied by alpha (associated), and are stretched as they are"
        }
        Alpha::Unspecified => "its last channel, of no stated meaning, is left as it is",
        Alpha::Independent => return None,
    };
    (op.effect() == Effect::Values).then(|| warning.into())
}
