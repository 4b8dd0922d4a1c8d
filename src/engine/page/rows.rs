//! Processes a page in bands of rows, so that it is never in memory as a whole. The page is decoded twice: the first pass checks
//! the whole file and measures the statistic, and the second pass processes and encodes one band after the other.

use super::PageRun;
use crate::engine::errors::cannot_write;
use crate::engine::job::{EncodedPage, Input, Job};
use crate::engine::plan::{Plan, Traversal};
use crate::engine::shared::SharedStatistics;
use crate::engine::task::Task;
use crate::formats::each_band;
use crate::image::Image;
use crate::image::buffer::Buffer;
use crate::image::metadata::Metadata;
use crate::ops::{Bound, Join, Statistic, Statistics, Summary, depth};
use crate::timing::{BandClock, CodecClock, Timeline};
use anyhow::{Context, Error, Result, anyhow, bail};

/// The reason, in messages, why the CPU does the work.
const CPU_REASON: &str = "it is processed in bands of rows to save memory";

/// The most copies of a band in memory at a time. Five are known: while it is read, collected, converted, changed and encoded.
/// The other three are a margin.
const BAND_COPIES: usize = 8;

/// How the rows of a page are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DecodeMethod {
    /// By the fastest method, which may fail on valid files.
    Fast,
    /// By the method that fails on damaged files only.
    Serial,
}

/// The result of the first pass over a page.
pub struct FirstPass {
    /// The statistic.
    pub statistics: Statistics,
    /// Unprocessed rows that the encoder inspects before it begins.
    sample_rows: Vec<Image>,
    /// A warning about options that fit no band.
    warning: Option<String>,
    /// The largest value that the header names, unless a sample is larger.
    maxval: Option<u16>,
    /// How the file was decoded, and will be again.
    method: DecodeMethod,
}

impl<'a> Job<'a> {
    /// Checks the whole file, and measures a statistic of the operation's input. Returns `None` if there is not enough memory for
    /// a band, or if a row cannot be read. The page is then decoded as a whole, and with `--low-memory` a warning says why.
    ///
    /// # Errors
    /// `--device gpu`, which does not process bands of rows, and options that do not fit the samples.
    pub(super) fn first_pass<'p>(
        &mut self,
        input: &Input,
        shared: &'p SharedStatistics,
        run: &mut PageRun<'p>,
        statistic: Statistic,
    ) -> Result<Option<FirstPass>>
    where
        'a: 'p,
    {
        let task = only_task(&run.plan)?;
        if !memory_holds_bands(&run.plan) {
            run.fall_back_to_whole("there is not enough memory for a band of its rows");
            return Ok(None);
        }
        let chosen = self
            .executor
            .choose_cpu(&task, &run.plan.first_input_shape, CPU_REASON);
        chosen.map_err(|error| input.messages.add_context(error))?;
        let first = self.measuring(|job| {
            let first = job.measure_rows(input, run, statistic, DecodeMethod::Fast);
            let Err(error) = first else { return first };
            let note = format!("its rows are decoded by the serial method, because: {error:#}");
            run.diagnostics.notes.push(note);
            job.measure_rows(input, run, statistic, DecodeMethod::Serial)
        });
        match first {
            Ok(first) => {
                self.plan_again(input, shared, run, first.maxval)?;
                Ok(Some(first))
            }
            Err(error) => {
                run.fall_back_to_whole(&format!("its rows cannot be read in order: {error:#}"));
                Ok(None)
            }
        }
    }

    /// One attempt at the first pass.
    fn measure_rows(
        &mut self,
        input: &Input,
        run: &mut PageRun,
        statistic: Statistic,
        method: DecodeMethod,
    ) -> Result<FirstPass> {
        let plan = &run.plan;
        let (task, mut metadata) = (only_task(plan)?, plan.header.metadata.clone());
        let Traversal::Rows { rows, encoder } = &plan.traversal else {
            bail!("internal error: the page has no bands of rows");
        };
        let mut sample_rows = Vec::new();
        let mut measured = MeasuredBands::default();
        let mut clock = BandClock::default();
        let mut measure_band = |top: usize, band: Image| {
            clock.process(|timeline| {
                metadata.check_maxval(band.samples());
                let band_rows = top..top + band.shape().height;
                for wanted in &encoder.trial {
                    if band_rows.contains(&wanted.start) {
                        sample_rows.push(band.rows(wanted.start - top..wanted.end - top));
                    }
                }
                let band = plan.input_conversion.apply(band, timeline)?;
                measured.add(&task, &band, statistic.cpu(&band, timeline))
            })
        };
        let serial = method == DecodeMethod::Serial;
        let read = run
            .decoder
            .run(|| each_band(&input.reader, *rows, serial, &mut measure_band));
        self.record_bands(input, run, &clock);
        read?;
        let (statistics, warning) = measured.finish(&task)?;
        Ok(FirstPass {
            statistics,
            sample_rows,
            warning,
            maxval: metadata.maxval,
            method,
        })
    }

    /// The second pass: processes a page band by band, and adds it to the output.
    pub(super) fn run_rows(
        &mut self,
        input: &Input,
        run: &mut PageRun,
        first: &FirstPass,
    ) -> Result<Summary> {
        let task = only_task(&run.plan)?;
        run.diagnostics.warnings.extend(first.warning.clone());
        let statistics = match task.op.properties().statistic {
            Statistic::None => &Statistics::None,
            _ => task.statistics.unwrap_or(&first.statistics),
        };
        let bound = task.op.bind(task.types, statistics);
        let bound = bound.with_context(|| input.messages.cannot_process())?;
        let summary = bound.summary();
        let metadata = self.output_metadata(input, run, summary.stretch)?;
        let clock = self.encode_rows(input, run, first, &*bound, metadata)?;
        let warnings = summary.warnings.iter().cloned();
        run.diagnostics.warnings.extend(warnings);
        self.record_bands(input, run, &clock);
        let output = self.output.as_mut();
        if let Some(file) = output.and_then(|output| output.file.as_mut()) {
            file.last_page = Some(EncodedPage {
                clock: clock.encoder,
                bytes: run.plan.result_shape.bytes() as u64,
            });
        }
        Ok(summary)
    }

    /// Decodes, processes and encodes one band after the other.
    fn encode_rows(
        &mut self,
        input: &Input,
        run: &mut PageRun,
        first: &FirstPass,
        bound: &dyn Bound,
        metadata: Metadata,
    ) -> Result<BandClock> {
        let PageRun {
            plan,
            diagnostics,
            decoder,
        } = run;
        let Traversal::Rows { rows, .. } = plan.traversal else {
            bail!("internal error: the page has no bands of rows");
        };
        let summary = bound.summary();
        let process = |band: Image, timeline: &mut Timeline| -> Result<Image> {
            let band = plan.input_conversion.apply(band, timeline)?;
            let band = bound.cpu(band, timeline)?.image()?;
            Ok(match plan.to_eight_bits {
                Some(max_value) => {
                    depth::convert_to_eight(band, plan.scaled_ranges(&summary), max_value)?
                }
                None => band,
            })
        };
        let add_context = |error| input.messages.add_context(error);
        let sample_rows = first.sample_rows.iter();
        // The time is not recorded: these rows are processed again in their bands, where it is.
        let sample_rows = sample_rows.map(|rows| process(rows.clone(), &mut Timeline::default()));
        let sample_rows = sample_rows.collect::<Result<Vec<Image>>>();
        let sample_rows = sample_rows.map_err(add_context)?;
        let output = self.output.as_mut();
        let output = output.context("internal error: an image without an output")?;
        let cannot_write = || cannot_write(&output.destination.path);
        let file = output.file.as_mut();
        let writer = &mut file
            .context("internal error: a page that is only measured was processed")?
            .writer;
        let mut encoder = CodecClock::default();
        let (shape, effect) = (&plan.result_shape, plan.last_effect());
        let begun =
            encoder.run(|| writer.begin(shape, metadata, effect, &sample_rows, diagnostics));
        begun.with_context(cannot_write)?;
        let mut clock = BandClock::new(encoder);
        // The decoder adds context to the errors of its callback, so the error of a band takes its own path.
        let mut band_error: Option<Error> = None;
        let mut encode_band = |_: usize, band: Image| {
            let band = clock.process(|timeline| process(band, timeline));
            let band = band.map_err(add_context);
            let encoded = band.and_then(|band| {
                let encoded = clock.encode(|| writer.band(band));
                encoded.with_context(cannot_write)
            });
            encoded.map_err(|error| {
                band_error = Some(error);
                anyhow!("internal error: the error of a band was lost")
            })
        };
        let serial = first.method == DecodeMethod::Serial;
        let read = decoder.run(|| each_band(&input.reader, rows, serial, &mut encode_band));
        if let Some(error) = band_error {
            return Err(error);
        }
        read.with_context(|| input.messages.cannot_read())?;
        Ok(clock)
    }

    /// Records the time of decoding a page and of processing its bands.
    fn record_bands(&mut self, input: &Input, run: &mut PageRun, clock: &BandClock) {
        let decoder = std::mem::take(&mut run.decoder);
        let bytes = run.plan.header.shape.bytes() as u64;
        let timeline = &mut self.executor.timeline;
        clock.record(decoder, timeline, bytes, &input.source.traffic.take());
    }
}

impl PageRun<'_> {
    /// Changes the plan, so that the page is in memory as a whole. A warning gives the reason.
    fn fall_back_to_whole(&mut self, reason: &str) {
        self.plan.traversal = Traversal::Whole;
        let warning = self.plan.whole_image_warning(reason);
        self.diagnostics.warnings.push(warning);
    }
}

/// The task of a page in bands of rows.
fn only_task<'p>(plan: &Plan<'p>) -> Result<Task<'p>> {
    match plan.steps[..] {
        [task] => Ok(task),
        _ => bail!("internal error: several steps have no bands of rows"),
    }
}

/// Whether there is enough memory for all copies of a band. It is checked before the pass by allocating and freeing that much,
/// because the program aborts if memory runs out during the pass.
fn memory_holds_bands(plan: &Plan) -> bool {
    let Traversal::Rows { rows, .. } = plan.traversal else {
        return false;
    };
    let shape = plan.header.shape;
    let band_bytes = rows.min(shape.height) * shape.row() * shape.depth.bytes();
    Buffer::<u8>::zeroed(BAND_COPIES.saturating_mul(band_bytes)).is_ok()
}

/// The merged statistics of the bands so far.
#[derive(Default)]
struct MeasuredBands {
    statistics: Option<Statistics>,
    /// The operation's warning, as long as every band caused one: an option that fits one band fits the image.
    warning: Option<String>,
}

impl MeasuredBands {
    fn add(&mut self, task: &Task, band: &Image, statistics: Statistics) -> Result<()> {
        let warning = task.op.diagnose(band, &task.types).warnings.pop();
        match &mut self.statistics {
            None => (self.statistics, self.warning) = (Some(statistics), warning),
            Some(known) => {
                known.join(&statistics)?;
                self.warning = self.warning.take().and(warning);
            }
        }
        Ok(())
    }

    /// The statistic of all bands, and the warning about the image.
    fn finish(self, task: &Task) -> Result<(Statistics, Option<String>)> {
        let statistics = self
            .statistics
            .context("internal error: a page without rows")?;
        // The warning of a band names the range of the band's samples. To name the range of all samples, the warning is made
        // again for an image that contains only the minimum and the maximum.
        let warning = match &statistics {
            Statistics::MinMax(extremes) if self.warning.is_some() => task
                .op
                .diagnose(&extremes.pixels(), &task.types)
                .warnings
                .pop(),
            _ => self.warning,
        };
        Ok((statistics, warning))
    }
}
