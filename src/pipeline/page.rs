//! The page processor: decodes a page, brings it upright and to its depth, runs the operation,
//! updates the metadata, and encodes the result. It is past 400 lines,
//! since every step of a page is named here, in order, on the host and on a GPU.

use super::destination::Destination;
use super::diagnostics::FileDiagnostics;
use super::done::Found;
use super::errors::{failed, undone, unread, unwritten};
use super::stack::StackStatistics;
use crate::codec::{self, Reader, Writer};
use crate::device::NoMemory;
use crate::exec::{Executor, Form, Pixels, Task, png_decode};
use crate::files::{Source, Target};
use crate::image::{Depth, Image, Shape, Values};
use crate::metadata::{Alpha, Diagnostics, Effect, Metadata, Transform};
use crate::ops::sum::Totals;
use crate::ops::symmetry::Symmetry;
use crate::ops::{Executed, OpResult, Operation, SampleTypes, depth};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::time::Instant;

/// A page between decoder and encoder.
#[derive(Debug)]
pub struct Page {
    /// The pixels, in host memory, in GPU memory, or deflated.
    pub pixels: Pixels,
    /// The page's metadata.
    pub metadata: Metadata,
    /// The page's index in the file, counted from 0.
    pub index: usize,
}

/// The state that all pages of one file share while they are processed in order.
pub struct PageProcessor<'a, 't> {
    /// The input's path, for messages.
    pub input: &'a Path,
    /// The output, unless the operation gives numbers.
    pub output: Option<(&'t Destination, &'t Target)>,
    /// The input's bytes.
    pub source: &'a Source,
    /// The input's decoder.
    pub reader: Reader<'a>,
    /// The output's encoder.
    pub writer: Option<Writer<'t>>,
    /// The executor that runs operations.
    pub executor: Executor<'a>,
    /// The diagnostics of all pages so far.
    pub diagnostics: FileDiagnostics,
    /// The numbers that the pages gave so far.
    pub found: Found,
    /// When the current codec step began.
    pub since: Instant,
    /// Bytes of the last page's samples; the time of writing them is recorded when the file is
    /// complete.
    pub last: u64,
}

impl PageProcessor<'_, '_> {
    /// Processes the page at `index` among the selected pages, from decoding to encoding.
    pub fn page(
        &mut self,
        op: &dyn Operation,
        stack: &StackStatistics,
        index: usize,
    ) -> Result<()> {
        let mut diagnostics = Diagnostics::default();
        let mut page = self.read(op, index, &mut diagnostics)?;
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
        // The shape as it was read, but upright.
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
        let resident = matches!(page.pixels, Pixels::Device(_));
        let mut executed = self.executor.run(&task, page.pixels, form);
        if resident && executed.as_ref().is_err_and(|error| error.is::<NoMemory>()) {
            // Device memory holds the decoded image, but not the operation's result as well: the
            // host decodes the image again, and the operation runs in bands.
            self.since = Instant::now();
            let image = self.decode_on_host()?;
            self.tell_decoded(shape);
            executed = self.executor.run(&task, Pixels::Host(image), form);
        }
        let Executed { result, summary } =
            executed.map_err(|error| failed(error, op.name(), self.input))?;
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
                joined.with_context(|| undone(op.name(), self.input))?;
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

    fn read(
        &mut self,
        op: &dyn Operation,
        index: usize,
        diagnostics: &mut Diagnostics,
    ) -> Result<Page> {
        if index > 0 && self.writer.is_some() {
            self.tell_written();
        }
        if let Some(page) = self.read_on_gpu(op, diagnostics)? {
            return Ok(page);
        }
        (self.reader.turn_to(index)).with_context(|| unread(self.input))?;
        let image = self.decode_on_host()?;
        let metadata = self.reader.metadata(diagnostics);
        let mut metadata = metadata.with_context(|| unread(self.input))?;
        metadata.check_maxval(image.samples());
        self.tell_decoded(image.shape());
        Ok(Page {
            pixels: Pixels::Host(image),
            metadata,
            index: self.reader.pages()[index],
        })
    }

    /// Decodes the selected page on the host.
    fn decode_on_host(&mut self) -> Result<Image> {
        self.reader.decode().with_context(|| unread(self.input))
    }

    /// Records the time since the codec step began as that of decoding an image of this shape.
    fn tell_decoded(&mut self, shape: Shape) {
        let traffic = self.source.traffic.take();
        let timeline = &mut self.executor.timeline;
        timeline.decoded(self.since, shape.bytes() as u64, &traffic);
    }

    /// Decodes the only page of a PNG on the GPU that will run the operation. `None`: the host
    /// decodes it, since the CPU runs the operation, the image is small, or something is done to
    /// its samples before the operation; or since its file does not suit, which a note then says.
    fn read_on_gpu(
        &mut self,
        op: &dyn Operation,
        diagnostics: &mut Diagnostics,
    ) -> Result<Option<Page>> {
        let output = self.output.map(|(output, _)| output);
        let shape = self.reader.shape();
        if !self.reader.gives_packed()
            || self.reader.pages().len() > 1
            || output.is_some_and(|output| output.auto_orient || output.depth.is_some())
            || shape.pixels() < png_decode::MIN_PIXELS
            || self.source.len() < png_decode::MIN_BYTES
        {
            return Ok(None);
        }
        let gpu = self.executor.decoder(op, &shape, self.form(shape));
        let Some(gpu) = gpu.map_err(|error| failed(error, op.name(), self.input))? else {
            return Ok(None);
        };
        let mut found = Diagnostics::default();
        let metadata = self.reader.metadata(&mut found);
        // A largest value must be compared with the samples. The decoder reports errors.
        let Some(metadata) = metadata.ok().filter(|known| known.maxval.is_none()) else {
            return Ok(None);
        };
        let decoded = match self.reader.packed() {
            Ok(packed) => {
                let traffic = self.source.traffic.take();
                let timeline = &mut self.executor.timeline;
                timeline.packed(self.since, packed.len() as u64, &traffic);
                let decoded = self.executor.decode_png(packed, gpu);
                self.since = Instant::now();
                decoded.map_err(|error| failed(error, op.name(), self.input))?
            }
            Err(unsuited) => Err(unsuited),
        };
        match decoded {
            Ok(image) => {
                diagnostics.warnings.append(&mut found.warnings);
                diagnostics.notes.append(&mut found.notes);
                Ok(Some(Page {
                    pixels: Pixels::Device(image),
                    metadata,
                    index: self.reader.pages()[0],
                }))
            }
            Err(unsuited) => {
                let note = format!("decoded on the CPU instead of the GPU: {unsuited}");
                diagnostics.notes.push(note);
                Ok(None)
            }
        }
    }

    /// Applies the page's orientation tag.
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
        let executed = executed.map_err(|error| failed(error, symmetry.name(), self.input))?;
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

    /// Widens 8-bit samples to 16 bits where the output has 16, so that the result uses all 16
    /// bits. Where the operation stretches values, alpha is scaled to the full depth as well.
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
                // If values will be stretched, whole steps of 257 are kept, in which the range is
                // reported.
                let most = maxval.filter(|_| !stretches).unwrap_or(Depth::Eight.full());
                let bytes = 3 * from.bytes() as u64;
                let timeline = &mut self.executor.timeline;
                Pixels::Host(timeline.host("widen", bytes, || depth::widen(image, most)))
            }
            // Samples that are narrowed have their alpha scaled together with the colours.
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

    /// Narrows 16-bit samples to 8 bits where the output has 8, after the operation, which
    /// stretched values from `ranges`.
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
        written.with_context(|| unwritten(&output.path))
    }

    /// Records the time of writing the previous page, if it is not the last.
    fn tell_written(&mut self) {
        if let Some((_, target)) = self.output {
            let traffic = target.traffic.take();
            let timeline = &mut self.executor.timeline;
            timeline.encoded(self.since, self.last, &traffic);
            self.since = Instant::now();
        }
    }

    /// The form in which a GPU returns the result: deflated, if the output is a PNG whose samples
    /// need no narrowing, else as samples.
    fn form(&self, shape: Shape) -> Form {
        let depth = self.output.and_then(|(output, _)| output.depth);
        let narrows = depth == Some(Depth::Eight) && shape.depth == Depth::Sixteen;
        match &self.writer {
            Some(writer) if writer.is_for_gpu() && !narrows => Form::Png,
            _ => Form::Samples,
        }
    }

    /// The sample types of a page: in memory, in the input, and in the output.
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

/// A warning about an operation whose result may surprise on samples with this metadata.
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
