//! Processes a page as its plan says: the loop from the decoder to the encoder.

mod outliers;
mod rows;

use super::done::PageResult;
use super::errors::cannot_write;
use super::job::{EncodedPage, Input, Job};
use super::plan::{InputConversion, Plan, Traversal};
use super::shared::SharedStatistics;
use crate::engine::executor::{PageWork, Pixels};
use crate::formats::gpu::decode::Decoded;
use crate::formats::{self, Writer, inverted};
use crate::image::Image;
use crate::image::metadata::{Diagnostics, Metadata, Stretch};
use crate::ops::sum::Totals;
use crate::ops::{Executed, OpResult, SampleTypes, Statistic, Statistics, Summary};
use crate::timing::{CodecClock, Timeline};
use anyhow::{Context, Result, bail, ensure};
use outliers::{Spread, hint_of_darkness};
use rows::FirstPass;

/// A page while it is processed.
struct PageRun<'p> {
    /// The plan. It changes if the pixels contradict the header, or if the page cannot be processed in bands of rows.
    plan: Plan<'p>,
    /// The diagnostics of the run. The plan has diagnostics of its own.
    diagnostics: Diagnostics,
    /// The time for reading its header and decoding it. It is reset when it is recorded.
    decoder: CodecClock,
}

/// The pixels or the numbers of a page that has been read.
enum LoadedPage {
    /// The pixels, on the host or on a GPU.
    Whole(Pixels),
    /// The result of the operation, which ran on blocks of rows while they were decoded.
    Numbers(Executed<Pixels>),
    /// The result of the first pass over its rows; a second pass processes them.
    Rows(FirstPass),
}

impl<'a> Job<'a> {
    /// Processes the page at `index` among the selected pages of an input, from the decoder to the encoder.
    ///
    /// # Errors
    /// A page that cannot be read, processed or written; the message names the file.
    pub fn run_page(
        &mut self,
        input: &mut Input,
        shared: &SharedStatistics,
        index: usize,
    ) -> Result<()> {
        self.record_previous_page();
        let mut run = self.begin_page(input, shared, index)?;
        if self.writer().is_some_and(Writer::skips_page) {
            return self.skip_page(input, &mut run);
        }
        let statistic = run.plan.first_pass_statistic();
        let summary = match self.load(input, shared, &mut run, statistic)? {
            LoadedPage::Whole(pixels) => self.run_whole(input, &mut run, pixels)?,
            LoadedPage::Numbers(Executed { result, summary }) => {
                self.keep_numbers(input, &run.plan, result)?;
                summary
            }
            LoadedPage::Rows(first) => self.run_rows(input, &mut run, &first)?,
        };
        self.finish_page(input, run, summary);
        Ok(())
    }

    /// Skips a page that an earlier run has finished, or that another task writes. It is neither decoded nor reported.
    fn skip_page(&mut self, input: &Input, run: &mut PageRun) -> Result<()> {
        let metadata = self.output_metadata(input, run, None)?;
        let output = self.output.as_mut();
        let output = output.context("internal error: an image without an output")?;
        let (shape, effect) = (run.plan.output_shape(), run.plan.last_effect());
        if let Some(file) = &mut output.file {
            let skipped = file
                .writer
                .skip(&shape, metadata, effect, &mut run.diagnostics);
            skipped.with_context(|| cannot_write(&output.destination.path))?;
            file.last_page = Some(EncodedPage {
                clock: CodecClock::default(),
                bytes: 0,
            });
        }
        Ok(())
    }

    /// Runs the operations before `operation` on the page at `index` among the selected pages, and measures the statistic of
    /// `operation` on the result. Returns its sample types too.
    ///
    /// # Errors
    /// A page that cannot be read or processed; the message names the file.
    pub fn measure_page(
        &mut self,
        input: &mut Input,
        shared: &SharedStatistics,
        operation: usize,
        index: usize,
    ) -> Result<(SampleTypes, Statistics)> {
        let mut run = self.begin_page(input, shared, index)?;
        let (op, types) = (self.ops[operation], run.plan.operations()[operation].types);
        let mut pixels = match self.load(input, shared, &mut run, op.properties().statistic)? {
            LoadedPage::Whole(pixels) => pixels,
            LoadedPage::Rows(first) => return Ok((types, first.statistics)),
            LoadedPage::Numbers(_) => bail!("internal error: numbers have no statistic"),
        };
        // The statistic of the first operation is that of the decoded samples: rotating the page upright does not change it, and
        // if samples are converted from 8 to 16 bits, the operation converts its 8-bit statistic itself.
        let before = match operation {
            0 => &[],
            _ => &run.plan.steps[..usize::from(run.plan.first_step_orients) + operation],
        };
        if !before.is_empty() {
            pixels = self.convert_input(run.plan.input_conversion, pixels)?;
        }
        let measured = self
            .executor
            .measure(before, op.properties().statistic, pixels);
        let statistics = measured.map_err(|error| input.messages.add_context(error))?;
        Ok((types, statistics))
    }

    /// Plans the page at `index` among the selected pages of an input.
    fn begin_page<'p>(
        &mut self,
        input: &mut Input,
        shared: &'p SharedStatistics,
        index: usize,
    ) -> Result<PageRun<'p>>
    where
        'a: 'p,
    {
        self.executor.timeline.page = Some(input.reader.pages()[index] + 1);
        let mut decoder = std::mem::take(&mut input.opening);
        let plan = decoder.run(|| self.plan(input, shared, index))?;
        Ok(PageRun {
            plan,
            diagnostics: Diagnostics::default(),
            decoder,
        })
    }

    /// Reads a page as its plan says.
    fn load<'p>(
        &mut self,
        input: &mut Input,
        shared: &'p SharedStatistics,
        run: &mut PageRun<'p>,
        statistic: Statistic,
    ) -> Result<LoadedPage>
    where
        'a: 'p,
    {
        if let Traversal::Rows { .. } = run.plan.traversal
            && let Some(first) = self.first_pass(input, shared, run, statistic)?
        {
            return Ok(LoadedPage::Rows(first));
        }
        if let Some(image) = input.reader.device_image() {
            return Ok(LoadedPage::Whole(Pixels::Device(image)));
        }
        if let Some(pixels) = self.decode_page_on_gpu(input, run)? {
            return Ok(LoadedPage::Whole(pixels));
        }
        if run.plan.traversal == Traversal::Blocks
            && let Some(numbers) = self.run_on_blocks(input, run)
        {
            return Ok(LoadedPage::Numbers(numbers));
        }
        let image = self.decode_on_host(input, run)?;
        if run.plan.header.metadata.maxval.is_some() {
            let mut header = run.plan.header.clone();
            header.metadata.check_maxval(image.samples());
            self.plan_again(input, shared, run, header.metadata.maxval)?;
        }
        Ok(LoadedPage::Whole(Pixels::Host(image)))
    }

    /// Plans a page again if the largest value of its samples is not the one that its header names.
    fn plan_again<'p>(
        &self,
        input: &Input,
        shared: &'p SharedStatistics,
        run: &mut PageRun<'p>,
        maxval: Option<u16>,
    ) -> Result<()>
    where
        'a: 'p,
    {
        if run.plan.header.metadata.maxval == maxval {
            return Ok(());
        }
        let mut header = run.plan.header.clone();
        header.metadata.maxval = maxval;
        let mut plan = self.plan_header(header, input, shared)?;
        // The page has been read with the traversal of the first plan.
        plan.traversal = run.plan.traversal.clone();
        run.plan = plan;
        Ok(())
    }

    /// Decodes a page on the GPU that will run the steps. Returns `None` if the host must decode it: either no GPU runs the
    /// steps, or a note gives the reason.
    fn decode_page_on_gpu(&mut self, input: &Input, run: &mut PageRun) -> Result<Option<Pixels>> {
        let plan = &run.plan;
        if !plan.gpu_can_decode {
            return Ok(None);
        }
        let add_context = |error| input.messages.add_context(error);
        let gpu = self
            .executor
            .decoding_gpu(&plan.steps, &plan.header.shape, plan.step_form);
        let Some(gpu) = gpu.map_err(add_context)? else {
            return Ok(None);
        };
        let decoded = match run.decoder.run(|| input.reader.packed()) {
            Ok(packed) => {
                let clock = std::mem::take(&mut run.decoder);
                let traffic = input.source.traffic.take();
                let timeline = &mut self.executor.timeline;
                timeline.packed(clock, packed.len() as u64, &traffic);
                let decoded = self.executor.decode_packed(packed, gpu);
                decoded.map_err(add_context)?
            }
            Err(unsuited) => Decoded::Unsuited(unsuited),
        };
        match decoded {
            Decoded::Image { image, note } => {
                run.diagnostics.notes.extend(note.map(String::from));
                Ok(Some(Pixels::Device(image)))
            }
            Decoded::Unsuited(unsuited) => {
                let note = format!("decoded on the CPU instead of the GPU: {unsuited}");
                run.diagnostics.notes.push(note);
                Ok(None)
            }
        }
    }

    /// Runs the operation on blocks of rows while they are decoded. Returns `None` if a GPU is to run it on the whole page.
    /// Also returns `None`, with a note, if a block failed: then the page is decoded as a whole, which reports any damage.
    fn run_on_blocks(&mut self, input: &Input, run: &mut PageRun) -> Option<Executed<Pixels>> {
        let step = run.plan.steps.first()?;
        let decoder = &mut run.decoder;
        let decode_blocks =
            |consume: &formats::BlockSink| decoder.run(|| input.reader.blocks(consume));
        let shape = &run.plan.header.shape;
        let numbers = self.executor.run_on_blocks(step, shape, decode_blocks);
        match numbers {
            Ok(Some(numbers)) => {
                self.record_decoding(input, run);
                Some(numbers)
            }
            Ok(None) => None,
            Err(error) => {
                let note =
                    format!("decoded as a whole, because decoding it in blocks failed: {error:#}");
                run.diagnostics.notes.push(note);
                None
            }
        }
    }

    /// Decodes a page, or the region of it that is needed, on the host.
    fn decode_on_host(&mut self, input: &mut Input, run: &mut PageRun) -> Result<Image> {
        let image = run.decoder.run(|| match &run.plan.region {
            Some(decoded) => input.reader.decode_region(&decoded.region),
            None => input.reader.decode(),
        });
        let image = image.with_context(|| input.messages.cannot_read())?;
        self.record_decoding(input, run);
        Ok(image)
    }

    /// Records the time of decoding a page on the host. If a GPU could have decoded it, `auto` learns from that time whether to
    /// start one.
    fn record_decoding(&mut self, input: &Input, run: &mut PageRun) {
        let clock = std::mem::take(&mut run.decoder);
        let shape = run.plan.decoded_shape();
        if run.plan.header.decoder.packed && run.plan.region.is_none() {
            self.executor.learn_decoding_time(&shape, clock.time());
        }
        let bytes = shape.bytes() as u64;
        let timeline = &mut self.executor.timeline;
        timeline.decoded(clock, bytes, &input.source.traffic.take());
    }

    /// Converts samples before the first step.
    fn convert_input(&mut self, conversion: InputConversion, pixels: Pixels) -> Result<Pixels> {
        if conversion == InputConversion::None {
            return Ok(pixels);
        }
        let image = self.executor.to_host(pixels)?;
        let converted = conversion.apply(image, &mut self.executor.timeline)?;
        Ok(Pixels::Host(converted))
    }

    /// Runs the steps on a page that is in memory as a whole, and encodes the result or keeps its numbers.
    fn run_whole(
        &mut self,
        input: &mut Input,
        run: &mut PageRun,
        pixels: Pixels,
    ) -> Result<Summary> {
        let pixels = self.convert_input(run.plan.input_conversion, pixels)?;
        if let (Some(first), Pixels::Host(image)) = (run.plan.operations().first(), &pixels) {
            let diagnosed = first.op.diagnose(image, &first.types);
            run.diagnostics.warnings.extend(diagnosed.warnings);
            run.diagnostics.hints.extend(diagnosed.hints);
        }
        let spread = Spread::measure(run.plan.operations(), &pixels);
        let Executed { result, summary } = self.run_steps(input, run, pixels)?;
        let warnings = summary.warnings.iter().cloned();
        run.diagnostics.warnings.extend(warnings);
        let outliers = spread.and_then(|spread| spread.hint(&summary.ranges));
        run.diagnostics.hints.extend(outliers);
        match result {
            OpResult::Image(pixels) => {
                if let Pixels::Host(image) = &pixels {
                    let stored = run.plan.header.shape.depth;
                    let darkness = hint_of_darkness(stored, image, &summary.ranges);
                    run.diagnostics.hints.extend(darkness);
                }
                let metadata = self.output_metadata(input, run, summary.stretch)?;
                self.encode(run, pixels, metadata)?;
            }
            numbers => self.keep_numbers(input, &run.plan, numbers)?,
        }
        Ok(summary)
    }

    /// Runs the plan of a page on its samples.
    fn run_steps(
        &mut self,
        input: &mut Input,
        run: &mut PageRun,
        pixels: Pixels,
    ) -> Result<Executed<Pixels>> {
        let messages = input.messages;
        // Only a page that a GPU decoded as a whole is decoded again.
        let bytes = run.plan.header.shape.bytes() as u64;
        let mut decode_again = |timeline: &mut Timeline| {
            let mut clock = CodecClock::default();
            let image = clock.run(|| input.reader.decode());
            let image = image.with_context(|| messages.cannot_read())?;
            timeline.decoded(clock, bytes, &input.source.traffic.take());
            Ok(image)
        };
        let work = PageWork {
            plan: &run.plan,
            pixels,
            decode_again: &mut decode_again,
            notes: &mut run.diagnostics.notes,
            messages,
        };
        self.executor.run_page(work)
    }

    /// The metadata of the result, whose values were scaled as `stretch` says.
    ///
    /// # Errors
    /// A scaling that the output cannot record.
    fn output_metadata(
        &mut self,
        input: &Input,
        run: &mut PageRun,
        stretch: Option<Stretch>,
    ) -> Result<Metadata> {
        let stretch = run.plan.recorded_stretch(stretch);
        let stretch = stretch.with_context(|| input.messages.cannot_process())?;
        let metadata = run.plan.output_metadata(stretch, &mut run.diagnostics);
        if let Some(output) = &mut self.output {
            if stretch.is_some() {
                output.check_stretch_field()?;
            }
            let recorded = metadata.stretch.clone().and_then(Result::ok);
            output.check_same_stretch(recorded, input.position)?;
        }
        Ok(metadata)
    }

    /// Adds a whole page to the output.
    fn encode(&mut self, run: &mut PageRun, pixels: Pixels, metadata: Metadata) -> Result<()> {
        let output = self.output.as_mut();
        let output = output.context("internal error: an image without an output")?;
        let Some(file) = &mut output.file else {
            bail!("internal error: a page that is only measured was processed");
        };
        let shape = pixels.shape();
        let planned = run.plan.output_shape();
        ensure!(
            shape == planned,
            "internal error: the plan gives {planned}, and the result has {shape}"
        );
        let effect = run.plan.last_effect();
        let (writer, diagnostics) = (&mut file.writer, &mut run.diagnostics);
        let mut clock = CodecClock::default();
        let written = match pixels {
            Pixels::Deflated(deflated) => {
                clock.run(|| writer.deflated(&deflated, metadata, effect, diagnostics))
            }
            pixels if writer.keeps_on_gpu() => {
                let image = self.executor.to_device(pixels)?;
                clock.run(|| writer.device_page(image, metadata, effect, diagnostics))
            }
            pixels => {
                let image = self.executor.to_host(pixels)?;
                clock.run(|| writer.page(image, metadata, effect, diagnostics))
            }
        };
        let bytes = shape.bytes() as u64;
        file.last_page = Some(EncodedPage { clock, bytes });
        written.with_context(|| cannot_write(&output.destination.path))
    }

    /// Keeps the numbers that the operation gave for a page.
    ///
    /// # Errors
    /// Bins that do not match those of the pages before.
    fn keep_numbers(&mut self, input: &Input, plan: &Plan, result: OpResult<Pixels>) -> Result<()> {
        let signed = plan.last_input_is_signed();
        match result {
            OpResult::Totals(totals) => self.results.totals.push(Totals {
                page: plan.header.page + 1,
                one_of_several: input.reader.pages().len() > 1,
                signed,
                ..totals
            }),
            OpResult::Counts(mut counts) => {
                counts.signed = signed;
                let added = self.results.add_counts(counts);
                added.with_context(|| input.messages.cannot_process())?;
            }
            OpResult::Image(_) => bail!("internal error: an image instead of numbers"),
        }
        Ok(())
    }

    /// Keeps the result of a page that has been processed.
    fn finish_page(&mut self, input: &Input, run: PageRun, summary: Summary) {
        if self.first_plan.is_none() {
            self.first_plan = Some(run.plan.text(&self.executor.device_line));
        }
        let page = PageResult {
            page: input.page_number(&run.plan.header),
            shape: run.plan.header.shape,
            signed: run.plan.header.metadata.signed,
            print_ranges: summary.announces,
            ranges: if input.reader.is_inverted() {
                let values = run.plan.header.metadata.values(run.plan.header.shape.depth);
                let ranges = summary.ranges.into_iter();
                let in_file = |(min, max)| (inverted(max, values), inverted(min, values));
                ranges.map(in_file).collect()
            } else {
                summary.ranges
            },
            clamped: summary.clamped,
            preview_of: input.reader.preview_of(),
        };
        let mut diagnostics = run.diagnostics;
        diagnostics.notes.extend(input.reader.fallbacks());
        if !page.ranges.is_empty() {
            diagnostics.notes.push(page.range_message());
        }
        self.diagnostics.add(page.page, run.plan.diagnostics);
        self.diagnostics.add(page.page, diagnostics);
        self.results.pages.push(page);
    }
}
