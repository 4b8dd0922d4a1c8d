//! The page processor: a page is decoded, brought upright and to its depth, run through the operation,
//! followed by its metadata, and encoded.

use super::diagnostics::FileDiagnostics;
use super::stack::StackStatistics;
use super::{Destination, Found, failed, undone, unread, unwritten};
use crate::codec::{self, Reader, Writer};
use crate::exec::{Executor, Form, Pixels, Task};
use crate::files::{Source, Target};
use crate::image::{Depth, Shape, Values};
use crate::metadata::{Alpha, Diagnostics, Effect, Metadata, Transform};
use crate::ops::sum::Totals;
use crate::ops::symmetry::Symmetry;
use crate::ops::{Executed, OpResult, Operation, SampleTypes, depth};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::time::Instant;

/// A page on its way from decoder to encoder.
#[derive(Debug)]
pub struct Page {
    /// Its pixels, wherever they are.
    pub pixels: Pixels,
    /// What it says of itself beside them.
    pub metadata: Metadata,
    /// Which page of the file it is, counted from 0.
    pub index: usize,
}

/// What the pages of a file meet, one after the other.
pub struct PageProcessor<'a, 't> {
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
    /// What runs operations.
    pub executor: Executor<'a>,
    /// What is to be told of the pages.
    pub diagnostics: FileDiagnostics,
    /// The numbers found in them.
    pub found: Found,
    /// When the codec that is at work began.
    pub since: Instant,
    /// Bytes of the last page's samples: what that took is told when the file is whole.
    pub last: u64,
}

impl PageProcessor<'_, '_> {
    /// Does all that is to be done with the page at `index` among those that are read.
    pub fn page(
        &mut self,
        op: &dyn Operation,
        stack: &StackStatistics,
        index: usize,
    ) -> Result<()> {
        let mut diagnostics = Diagnostics::default();
        let mut page = self.read(index, &mut diagnostics)?;
        let shape = page.pixels.shape();
        let statistics = stack.of(&shape, &page.metadata);
        let mut types = self.sample_types(&page.metadata, shape);
        diagnostics.warnings.extend(warning(op, &page.metadata));
        let mut transform = Transform {
            effect: op.effect(),
            from: shape,
            to: shape,
            pages: self.reader.pages().len(),
            whole: self.reader.is_whole(),
        };
        if let Some((to, _)) = self.output {
            if to.auto_orient {
                page = self.upright(page, transform, &mut diagnostics)?;
            }
            page = self.at_depth(page, to, transform.effect)?;
        }
        let worked_on = page.pixels.shape();
        // As it was read, but upright.
        transform.from = Shape {
            depth: shape.depth,
            ..worked_on
        };
        types.depth = worked_on.depth;
        let task = Task {
            op,
            types,
            statistics,
        };
        let form = self.form(worked_on);
        let executed = self.executor.run(&task, page.pixels, form);
        let Executed { result, summary } =
            executed.map_err(|error| failed(error, op, self.input))?;
        diagnostics.warnings.extend(summary.warnings);
        self.since = Instant::now();
        let Page {
            metadata, index, ..
        } = page;
        match result {
            OpResult::Totals(found) => {
                let found = Totals {
                    page: (transform.pages > 1).then_some(index + 1),
                    zero: metadata.zero(found.shape.depth),
                    ..found
                };
                self.found.totals.push(found);
            }
            OpResult::Counts(mut found) => {
                found.signed = metadata.signed;
                let joined = self.found.count(found);
                joined.with_context(|| undone(op, self.input))?;
            }
            OpResult::Image(pixels) => {
                if let Some((to, _)) = self.output {
                    let page = Page {
                        pixels,
                        metadata,
                        index,
                    };
                    let mut page = self.narrowed(page, &summary.ranges, to)?;
                    transform.to = page.pixels.shape();
                    codec::metadata::follow(&mut page.metadata, &transform, &mut diagnostics);
                    self.write(page, transform.effect, &mut diagnostics)?;
                }
            }
        }
        self.found.ranges.extend(summary.ranges);
        self.diagnostics.add(index + 1, diagnostics);
        Ok(())
    }

    fn read(&mut self, index: usize, diagnostics: &mut Diagnostics) -> Result<Page> {
        if index > 0 && self.writer.is_some() {
            self.tell_written();
        }
        let mut read = || -> Result<_> {
            self.reader.turn_to(index)?;
            let image = self.reader.decode()?;
            let mut metadata = self.reader.metadata(diagnostics)?;
            metadata.check_maxval(image.samples());
            Ok(Page {
                pixels: Pixels::Host(image),
                metadata,
                index: self.reader.pages()[index],
            })
        };
        let page = read().with_context(|| unread(self.input))?;
        let (bytes, traffic) = (
            page.pixels.shape().bytes() as u64,
            self.source.traffic.take(),
        );
        let timeline = &mut self.executor.timeline;
        timeline.decoded(self.since, bytes, &traffic);
        Ok(page)
    }

    /// The page upright, as its orientation tag says.
    fn upright(
        &mut self,
        page: Page,
        transform: Transform,
        diagnostics: &mut Diagnostics,
    ) -> Result<Page> {
        let orientation = page.metadata.orientation;
        let Some(symmetry) = orientation.and_then(Symmetry::upright) else {
            return Ok(page);
        };
        let from = page.pixels.shape();
        let task = Task::plain(&symmetry, &from);
        let executed = self.executor.run(&task, page.pixels, Form::Samples);
        let executed = executed.map_err(|error| failed(error, &symmetry, self.input))?;
        let OpResult::Image(pixels) = executed.result else {
            bail!("turning it gave no image");
        };
        let transform = Transform {
            effect: symmetry.effect(),
            from,
            to: pixels.shape(),
            ..transform
        };
        let mut metadata = page.metadata;
        codec::metadata::follow(&mut metadata, &transform, diagnostics);
        metadata.orientation = Some(1);
        Ok(Page {
            pixels,
            metadata,
            ..page
        })
    }

    /// 8 bits as 16 where the output shall have them, so that the result has all 16; and where values
    /// are to be stretched to all bits, alpha with all of them.
    fn at_depth(&mut self, page: Page, output: &Destination, effect: Effect) -> Result<Page> {
        let Page {
            pixels,
            mut metadata,
            index,
        } = page;
        let from = pixels.shape();
        let stretches = effect == Effect::Values;
        let pixels = match (output.depth, metadata.maxval) {
            (Some(Depth::Sixteen), maxval) if from.depth == Depth::Eight => {
                metadata.follow_depth(Depth::Eight, Depth::Sixteen);
                let image = self.executor.on_host(pixels)?;
                // What is to be stretched keeps the steps by which its range is told.
                let most = maxval.filter(|_| !stretches).unwrap_or(Depth::Eight.full());
                let bytes = 3 * from.bytes() as u64;
                let timeline = &mut self.executor.timeline;
                Pixels::Host(timeline.host("widen", bytes, || depth::widen(image, most)))
            }
            // Narrowed, alpha is brought there with the colours.
            (depth, Some(most))
                if stretches
                    && depth != Some(Depth::Eight)
                    && metadata.alpha != Alpha::Unspecified =>
            {
                let image = self.executor.on_host(pixels)?;
                Pixels::Host(depth::with_full_alpha(image, most))
            }
            _ => pixels,
        };
        Ok(Page {
            pixels,
            metadata,
            index,
        })
    }

    /// 16 bits as 8 where the output shall have them, after the operation, which has stretched values
    /// from `ranges`.
    fn narrowed(
        &mut self,
        mut page: Page,
        ranges: &[(i32, i32)],
        output: &Destination,
    ) -> Result<Page> {
        let from = page.pixels.shape();
        if output.depth == Some(Depth::Eight) && from.depth == Depth::Sixteen {
            let most = page.metadata.maxval.unwrap_or(Depth::Sixteen.full());
            page.metadata.follow_depth(Depth::Sixteen, Depth::Eight);
            let image = self.executor.on_host(page.pixels)?;
            let bytes = 3 * from.samples() as u64;
            let timeline = &mut self.executor.timeline;
            let narrow = || depth::narrow(image, ranges, most);
            page.pixels = Pixels::Host(timeline.host("narrow", bytes, narrow));
        }
        Ok(page)
    }

    fn write(&mut self, page: Page, effect: Effect, diagnostics: &mut Diagnostics) -> Result<()> {
        let Some(((output, _), writer)) = self.output.zip(self.writer.as_mut()) else {
            return Ok(());
        };
        self.last = page.pixels.shape().bytes() as u64;
        let written = match page.pixels {
            Pixels::Deflated(deflated) => {
                self.since = Instant::now();
                writer.deflated(&deflated, page.metadata, effect, diagnostics)
            }
            pixels => {
                let image = self.executor.on_host(pixels)?;
                self.since = Instant::now();
                writer.page(image, page.metadata, effect, diagnostics)
            }
        };
        written.with_context(|| unwritten(output))
    }

    /// What it took to write the page before, which is not the last.
    fn tell_written(&mut self) {
        if let Some((_, target)) = self.output {
            let traffic = target.traffic.take();
            let timeline = &mut self.executor.timeline;
            timeline.encoded(self.since, self.last, &traffic);
            self.since = Instant::now();
        }
    }

    /// How the result is to come back from a GPU: as a PNG's data, if that is written and its samples
    /// are not narrowed first.
    fn form(&self, shape: Shape) -> Form {
        let depth = self.output.and_then(|(output, _)| output.depth);
        let narrows = depth == Some(Depth::Eight) && shape.depth == Depth::Sixteen;
        match &self.writer {
            Some(writer) if writer.is_for_gpu() && !narrows => Form::Png,
            _ => Form::Samples,
        }
    }

    /// What samples are in memory, and what they stand for in the input and in the output.
    fn sample_types(&self, metadata: &Metadata, shape: Shape) -> SampleTypes {
        let read = metadata.values(shape.depth);
        let wanted = self.output.and_then(|(output, _)| output.depth);
        let has_sign = |writer: &Writer| writer.format().capabilities().signed;
        let written = Values {
            depth: wanted.unwrap_or(shape.depth),
            signed: read.signed && self.writer.as_ref().is_none_or(has_sign),
        };
        SampleTypes {
            channels: shape.channels,
            depth: shape.depth,
            read,
            written,
        }
    }
}

/// What the user of an operation might not think of, where samples mean this.
fn warning(op: &dyn Operation, metadata: &Metadata) -> Option<String> {
    let warning = match metadata.alpha {
        Alpha::Associated => {
            "colours are multiplied by alpha (associated), and are stretched as they are"
        }
        Alpha::Unspecified => "its last channel, of no stated meaning, is left as it is",
        Alpha::Independent => return None,
    };
    (op.effect() == Effect::Values).then(|| warning.into())
}
