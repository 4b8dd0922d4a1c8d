//! Processes a page as its plan says: the loop from the decoder to the encoder.

mod outliers;
mod rows;

use super::done::PageResult;
use super::errors::cannot_write;
use super::job::{Input, Job};
use super::plan::{Bands, InputDepth, Plan};
use super::stack::SharedStatistics;
use crate::engine::executor::{PageWork, Pixels};
use crate::formats;
use crate::formats::gpu::decode::Decoded;
use crate::image::metadata::{Metadata, Stretch};
use crate::ops::sum::Totals;
use crate::ops::{Executed, OpResult, SampleTypes, Statistic, Statistics, Summary};
use crate::timing::Timeline;
use anyhow::{Context, Result, bail, ensure};
use outliers::Spread;
use rows::FirstPass;

/// A page as the steps are given it.
enum PageInput {
    /// Decoded, on the host or on a GPU.
    Whole(Pixels),
    /// The numbers of its blocks, which were found while it was decoded.
    Numbers(Executed<Pixels>),
    /// Checked and measured; its bands of rows come from a second pass.
    Rows(FirstPass),
}

impl<'a> Job<'a> {
    /// Processes the page at `index` among the selected pages of an input, from the decoder to the encoder.
    ///
    /// # Errors
    /// A page that cannot be read, processed or written; the sentence names the file.
    pub fn run_page(
        &mut self,
        input: &mut Input,
        shared: &SharedStatistics,
        index: usize,
    ) -> Result<()> {
        self.record_writing();
        self.executor.timeline.page = Some(input.reader.pages()[index] + 1);
        let mut plan = self.plan(input, shared, index)?;
        let statistic = plan.statistic_of_bands();
        let summary = match self.load(input, shared, &mut plan, statistic)? {
            PageInput::Whole(pixels) => self.run_whole(input, &mut plan, pixels)?,
            PageInput::Numbers(Executed { result, summary }) => {
                self.keep_numbers(input, &plan, result)?;
                summary
            }
            PageInput::Rows(first) => self.run_rows(input, &mut plan, &first)?,
        };
        self.finish_page(input, plan, summary);
        Ok(())
    }

    /// Measures the statistic of operation `step` in what the operations before it make of the page at `index` among the
    /// selected pages; with the types of those samples.
    ///
    /// # Errors
    /// A page that cannot be read or processed; the sentence names the file.
    pub fn measure_page(
        &mut self,
        input: &mut Input,
        shared: &SharedStatistics,
        step: usize,
        index: usize,
    ) -> Result<(SampleTypes, Statistics)> {
        self.executor.timeline.page = Some(input.reader.pages()[index] + 1);
        let mut plan = self.plan(input, shared, index)?;
        let (op, types) = (self.ops[step], plan.operations()[step].types);
        let mut pixels = match self.load(input, shared, &mut plan, op.properties().statistic)? {
            PageInput::Whole(pixels) => pixels,
            PageInput::Rows(first) => return Ok((types, first.statistics)),
            PageInput::Numbers(_) => bail!("numbers have no statistic"),
        };
        // Neither turning an image nor converting all of its samples to 16 bits changes what the first operation measures.
        let before = match step {
            0 => &[],
            _ => &plan.steps[..usize::from(plan.upright) + step],
        };
        if !before.is_empty() {
            pixels = self.change_depth(plan.input_depth, pixels)?;
        }
        let measured = self.executor.measure(before, op.properties().statistic, pixels);
        let statistics = measured.map_err(|error| input.messages.add_context(error))?;
        Ok((types, statistics))
    }

    /// Reads a page as its plan says. The plan changes where the pixels contradict the header, and where a faster way to
    /// read them fails.
    fn load<'p>(
        &mut self,
        input: &mut Input,
        shared: &'p SharedStatistics,
        plan: &mut Plan<'p>,
        statistic: Statistic,
    ) -> Result<PageInput>
    where
        'a: 'p,
    {
        if let Bands::Rows { .. } = plan.bands {
            if let Some(first) = self.first_pass(input, shared, plan, statistic)? {
                return Ok(PageInput::Rows(first));
            }
        }
        if let Some(pixels) = self.decode_on_gpu(input, plan)? {
            return Ok(PageInput::Whole(pixels));
        }
        if plan.bands == Bands::Blocks
            && let Some(numbers) = self.run_on_blocks(input, plan)
        {
            return Ok(PageInput::Numbers(numbers));
        }
        let image = input.reader.decode();
        let image = image.with_context(|| input.messages.cannot_read())?;
        if plan.header.decoder.packed {
            let time = self.executor.timeline.codec_time();
            self.executor.learn_decoding_time(&image.shape(), time);
        }
        self.record_decoding(input, plan);
        if plan.header.metadata.maxval.is_some() {
            let mut header = plan.header.clone();
            header.metadata.check_maxval(image.samples());
            self.plan_again(input, shared, plan, header.metadata.maxval)?;
        }
        Ok(PageInput::Whole(Pixels::Host(image)))
    }

    /// Plans a page again if the largest value of its samples is not the one that its header names.
    fn plan_again<'p>(
        &self,
        input: &Input,
        shared: &'p SharedStatistics,
        plan: &mut Plan<'p>,
        maxval: Option<u16>,
    ) -> Result<()>
    where
        'a: 'p,
    {
        if plan.header.metadata.maxval == maxval {
            return Ok(());
        }
        let mut header = plan.header.clone();
        header.metadata.maxval = maxval;
        let planned = self.plan_of(header, input, shared)?;
        let before = std::mem::replace(plan, planned);
        plan.bands = before.bands;
        Ok(())
    }

    /// Decodes a page on the GPU that will run the steps. `None`: the host decodes it, since no GPU runs the steps, or for a
    /// reason that a note gives.
    fn decode_on_gpu(&mut self, input: &Input, plan: &mut Plan) -> Result<Option<Pixels>> {
        if !plan.gpu_can_decode {
            return Ok(None);
        }
        let messages = input.messages;
        let gpu = self
            .executor
            .decoding_gpu(&plan.steps, &plan.header.shape, plan.step_form);
        let Some(gpu) = gpu.map_err(|error| messages.add_context(error))? else {
            return Ok(None);
        };
        let decoded = match input.reader.packed() {
            Ok(packed) => {
                let timeline = &mut self.executor.timeline;
                timeline.packed(packed.len() as u64, &input.source.traffic.take());
                let decoded = self.executor.decode_packed(packed, gpu);
                self.executor.timeline.begin_codec();
                decoded.map_err(|error| messages.add_context(error))?
            }
            Err(unsuited) => Decoded::Unsuited(unsuited),
        };
        match decoded {
            Decoded::Image { image, note } => {
                plan.diagnostics.notes.extend(note.map(String::from));
                Ok(Some(Pixels::Device(image)))
            }
            Decoded::Unsuited(unsuited) => {
                let note = format!("decoded on the CPU instead of the GPU: {unsuited}");
                plan.diagnostics.notes.push(note);
                Ok(None)
            }
        }
    }

    /// Finds the numbers of a page block by block. `None`: a GPU is to run the operation on the whole page; or a block
    /// failed, which a note says, and what is wrong with the page is found when it is decoded as a whole.
    fn run_on_blocks(&mut self, input: &Input, plan: &mut Plan) -> Option<Executed<Pixels>> {
        let step = plan.steps.first()?;
        let give = |take: &formats::BlockSink| input.reader.blocks(take);
        let numbers = self.executor.run_on_blocks(step, &plan.header.shape, give);
        match numbers {
            Ok(Some(numbers)) => {
                self.record_decoding(input, plan);
                Some(numbers)
            }
            Ok(None) => None,
            Err(error) => {
                let note =
                    format!("decoded as a whole, because decoding it in blocks failed: {error:#}");
                plan.diagnostics.notes.push(note);
                None
            }
        }
    }

    /// Records the time since the decoder began as that of decoding a page.
    fn record_decoding(&mut self, input: &Input, plan: &Plan) {
        let bytes = plan.header.shape.bytes() as u64;
        let timeline = &mut self.executor.timeline;
        timeline.decoded(bytes, &input.source.traffic.take());
    }

    /// Changes the depth of samples before the first step.
    fn change_depth(&mut self, change: InputDepth, pixels: Pixels) -> Result<Pixels> {
        if change == InputDepth::Kept {
            return Ok(pixels);
        }
        let image = self.executor.to_host(pixels)?;
        Ok(Pixels::Host(
            change.apply(image, &mut self.executor.timeline),
        ))
    }

    /// Runs the steps on a page that is in memory as a whole, and encodes the result or keeps its numbers.
    fn run_whole(&mut self, input: &mut Input, plan: &mut Plan, pixels: Pixels) -> Result<Summary> {
        let pixels = self.change_depth(plan.input_depth, pixels)?;
        if let (Some(first), Pixels::Host(image)) = (plan.operations().first(), &pixels) {
            let diagnosed = first.op.diagnose(image, &first.types);
            plan.diagnostics.warnings.extend(diagnosed.warnings);
            plan.diagnostics.hints.extend(diagnosed.hints);
        }
        let spread = Spread::measure(plan.operations(), &pixels);
        let Executed { result, summary } = self.run_steps(input, plan, pixels)?;
        plan.diagnostics
            .warnings
            .extend(summary.warnings.iter().cloned());
        let outliers = spread.and_then(|spread| spread.hint(&summary.ranges));
        plan.diagnostics.hints.extend(outliers);
        match result {
            OpResult::Image(pixels) => {
                let metadata = self.output_metadata(input, plan, summary.stretch)?;
                self.encode(plan, pixels, metadata)?;
            }
            numbers => {
                self.executor.timeline.begin_codec();
                self.keep_numbers(input, plan, numbers)?;
            }
        }
        Ok(summary)
    }

    /// Runs the plan of a page on its samples.
    fn run_steps(
        &mut self,
        input: &mut Input,
        plan: &Plan,
        pixels: Pixels,
    ) -> Result<Executed<Pixels>> {
        let messages = input.messages;
        let bytes = plan.header.shape.bytes() as u64;
        let mut decode_again = |timeline: &mut Timeline| {
            timeline.begin_codec();
            let image = input.reader.decode();
            let image = image.with_context(|| messages.cannot_read())?;
            timeline.decoded(bytes, &input.source.traffic.take());
            Ok(image)
        };
        let work = PageWork {
            steps: &plan.steps,
            step_form: plan.step_form,
            to_eight_bits: plan.to_eight_bits,
            fit: plan.fit,
            output_form: plan.output_form,
            pixels,
            decode_again: &mut decode_again,
            messages,
        };
        let mut executed = self.executor.run_set(vec![work]);
        executed
            .pop()
            .context("internal error: a page has no result")?
    }

    /// The metadata of the result, whose values were scaled as `stretch` says.
    ///
    /// # Errors
    /// A scaling that the output cannot record.
    fn output_metadata(
        &mut self,
        input: &Input,
        plan: &mut Plan,
        stretch: Option<Stretch>,
    ) -> Result<Metadata> {
        let stretch = plan.recorded_stretch(stretch);
        let stretch = stretch.with_context(|| input.messages.cannot_process())?;
        let mut diagnostics = std::mem::take(&mut plan.diagnostics);
        let metadata = plan.output_metadata(stretch, &mut diagnostics);
        plan.diagnostics = diagnostics;
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
    fn encode(&mut self, plan: &mut Plan, pixels: Pixels, metadata: Metadata) -> Result<()> {
        let Some(output) = &mut self.output else {
            return Ok(());
        };
        let Some((_, writer)) = &mut output.file else {
            return Ok(());
        };
        let shape = pixels.shape();
        let planned = plan.output_shape();
        ensure!(
            shape == planned,
            "internal error: the plan gives {planned}, and the result has {shape}"
        );
        let effect = plan.last_effect();
        let diagnostics = &mut plan.diagnostics;
        let written = match pixels {
            Pixels::Deflated(deflated) => {
                self.executor.timeline.begin_codec();
                writer.deflated(&deflated, metadata, effect, diagnostics)
            }
            pixels => {
                let image = self.executor.to_host(pixels)?;
                self.executor.timeline.begin_codec();
                writer.page(image, metadata, effect, diagnostics)
            }
        };
        self.executor.timeline.unwritten = shape.bytes() as u64;
        written.with_context(|| cannot_write(&output.destination.path))
    }

    /// Keeps the numbers that the operation gave for a page.
    ///
    /// # Errors
    /// Bins that do not fit to those of the pages before.
    fn keep_numbers(&mut self, input: &Input, plan: &Plan, result: OpResult<Pixels>) -> Result<()> {
        let signed = plan.last_is_given_signed();
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
            OpResult::Image(_) => bail!("an image is no number"),
        }
        Ok(())
    }

    /// Keeps what the user should know of a page that has been processed.
    fn finish_page(&mut self, input: &Input, mut plan: Plan, summary: Summary) {
        if self.first_plan.is_empty() {
            plan.device.clone_from(&self.executor.device_line);
            self.first_plan = plan.to_string();
        }
        let page = PageResult {
            page: input.page_number(&plan.header),
            shape: plan.header.shape,
            signed: plan.header.metadata.signed,
            print_ranges: summary.announces,
            ranges: summary.ranges,
        };
        let mut diagnostics = plan.diagnostics;
        diagnostics.notes.extend(input.reader.fallbacks());
        if !page.ranges.is_empty() {
            diagnostics.notes.push(page.range_message());
        }
        self.diagnostics.add(page.page, diagnostics);
        self.results.pages.push(page);
    }
}
