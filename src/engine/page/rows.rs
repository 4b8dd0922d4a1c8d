//! A page in bands of rows, so that it is never in memory as a whole. Two passes decode it: the first checks all of the
//! file and measures the statistic, the second changes and encodes one band after the other.

use crate::engine::errors::cannot_write;
use crate::engine::job::{Input, Job};
use crate::engine::plan::{Bands, Plan};
use crate::engine::stack::SharedStatistics;
use crate::formats::each_band;
use crate::image::Image;
use crate::image::buffer::Buffer;
use crate::ops::{Join, Statistic, Statistics, Summary, depth};
use crate::timing::{BandClock, Timeline};
use anyhow::{Context, Result, anyhow, bail};
use std::time::{Duration, Instant};

/// Why the CPU does the work.
const WHY: &str = "it is processed in bands of rows to save memory";

/// The most copies of a band in memory at a time: read, joined, of other samples, changed and encoded.
const BAND_COPIES: usize = 8;

/// Whether memory holds all copies of a band. The passes over the bands cannot report that memory is missing: they would end
/// the program.
fn memory_holds_bands(plan: &Plan) -> bool {
    let Bands::Rows { rows, .. } = plan.bands else {
        return false;
    };
    let shape = plan.header.shape;
    let band = rows.min(shape.height) * shape.row() * shape.depth.bytes();
    Buffer::<u8>::zeroed(BAND_COPIES.saturating_mul(band)).is_ok()
}

/// What the first pass over a page finds.
pub struct FirstPass {
    /// The statistic.
    pub statistics: Statistics,
    /// The rows that the encoder must see before it begins, as they are read.
    trial: Vec<Image>,
    /// A warning about options that suit no band.
    warning: Option<String>,
    /// The largest value that the header names, unless a sample is larger.
    maxval: Option<u16>,
    /// Whether only the serial method decodes the file.
    serial: bool,
}

impl<'a> Job<'a> {
    /// Checks the whole file, and measures a statistic of the samples that the operation is given. `None`: a row cannot be
    /// read, as a diagnostic says, and the page is decoded as a whole.
    ///
    /// # Errors
    /// A GPU that was asked for, and options that do not fit the samples.
    pub(super) fn first_pass<'p>(
        &mut self,
        input: &Input,
        shared: &'p SharedStatistics,
        plan: &mut Plan<'p>,
        statistic: Statistic,
    ) -> Result<Option<FirstPass>>
    where
        'a: 'p,
    {
        let [task] = &plan.steps[..] else {
            bail!("internal error: several steps have no bands of rows");
        };
        if !memory_holds_bands(plan) {
            plan.is_whole_because("there is not enough memory for a band of its rows");
            return Ok(None);
        }
        let kept = self.executor.choose_cpu(task, &plan.prepared, WHY);
        kept.map_err(|error| input.messages.add_context(error))?;
        let was_measuring = std::mem::replace(&mut self.executor.timeline.measuring, true);
        let mut first = self.measure_rows(input, plan, statistic, false);
        if let Err(error) = &first {
            let note = format!("its rows are decoded by the serial method, because: {error:#}");
            plan.diagnostics.notes.push(note);
            first = self.measure_rows(input, plan, statistic, true);
        }
        self.executor.timeline.measuring = was_measuring;
        self.executor.timeline.begin_codec();
        match first {
            Ok(first) => {
                self.plan_again(input, shared, plan, first.maxval)?;
                Ok(Some(first))
            }
            Err(error) => {
                plan.is_whole_because(&format!("its rows cannot be read in order: {error:#}"));
                Ok(None)
            }
        }
    }

    /// One attempt at the first pass, by the fastest method or, if `serial`, by the one that only damage makes fail.
    fn measure_rows(
        &mut self,
        input: &Input,
        plan: &Plan,
        statistic: Statistic,
        serial: bool,
    ) -> Result<FirstPass> {
        let (Bands::Rows { rows, encoder }, [task]) = (&plan.bands, &plan.steps[..]) else {
            bail!("internal error: the page has no bands of rows");
        };
        let mut metadata = plan.header.metadata.clone();
        let (mut trial, mut warning, mut measured) = (Vec::new(), None, None);
        let mut clock = BandClock::default();
        let read = each_band(&input.reader, *rows, serial, &mut |top, band| {
            clock.time(|timeline| {
                metadata.check_maxval(band.samples());
                let covered = top..top + band.shape().height;
                for wanted in &encoder.trial {
                    if covered.contains(&wanted.start) {
                        trial.push(band.rows(wanted.start - top..wanted.end - top));
                    }
                }
                let band = plan.input_depth.apply(band, timeline);
                let more = statistic.cpu(&band, timeline);
                let own = task.op.diagnose(&band, &task.types).warnings.pop();
                match &mut measured {
                    None => (measured, warning) = (Some(more), own),
                    Some(known) => {
                        known.join(&more)?;
                        warning = warning.take().and(own);
                    }
                }
                Ok(())
            })
        });
        self.record_bands(input, plan, clock);
        read?;
        let statistics = measured.context("internal error: a page without rows")?;
        if let (Some(_), Statistics::MinMax(extremes)) = (&warning, &statistics) {
            warning = (task.op.diagnose(&extremes.pixels(), &task.types).warnings).pop();
        }
        Ok(FirstPass {
            statistics,
            trial,
            warning,
            maxval: metadata.maxval,
            serial,
        })
    }

    /// Changes a page band by band, and adds it to the output.
    pub(super) fn run_rows(
        &mut self,
        input: &Input,
        plan: &mut Plan,
        first: &FirstPass,
    ) -> Result<Summary> {
        let Bands::Rows { rows, .. } = plan.bands else {
            bail!("internal error: the page has no bands of rows");
        };
        let [task] = plan.steps[..] else {
            bail!("internal error: several steps have no bands of rows");
        };
        plan.diagnostics.warnings.extend(first.warning.clone());
        let statistics = match task.op.properties().statistic {
            Statistic::None => &Statistics::None,
            _ => task.statistics.unwrap_or(&first.statistics),
        };
        let bound = task.op.bind(task.types, statistics);
        let bound = bound.with_context(|| input.messages.cannot_process())?;
        let summary = bound.summary();
        let metadata = self.output_metadata(input, plan, summary.stretch)?;
        let mut diagnostics = std::mem::take(&mut plan.diagnostics);
        let change = |band: Image, timeline: &mut Timeline| -> Result<Image> {
            let band = plan.input_depth.apply(band, timeline);
            let band = bound.cpu(band, timeline)?.image()?;
            Ok(match plan.to_eight_bits {
                Some(most) => depth::convert_to_eight(band, plan.scaled_ranges(&summary), most),
                None => band,
            })
        };
        let failed = |error| input.messages.add_context(error);
        let trial = first.trial.iter();
        let trial = trial.map(|rows| change(rows.clone(), &mut Timeline::default()));
        let trial = trial.collect::<Result<Vec<Image>>>().map_err(failed)?;
        let output = self.output.as_mut().context("there is no output")?;
        let cannot_write = || cannot_write(&output.destination.path);
        let (_, writer) = output.file.as_mut().context("there is no output")?;
        let (shape, effect) = (plan.result, plan.last_effect());
        let begun = writer.begin(&shape, metadata, effect, &trial, &mut diagnostics);
        begun.with_context(cannot_write)?;
        let (mut clock, mut encoding, mut failure) = (BandClock::default(), Duration::ZERO, None);
        let read = each_band(&input.reader, rows, first.serial, &mut |_, band| {
            let encoded = clock.time(|timeline| {
                let band = change(band, timeline).map_err(failed)?;
                let since = Instant::now();
                let written = writer.band(band).with_context(cannot_write);
                encoding += since.elapsed();
                written
            });
            encoded.map_err(|error| {
                failure = Some(error);
                anyhow!("it was stopped")
            })
        });
        if let Some(error) = failure {
            return Err(error);
        }
        read.with_context(|| input.messages.cannot_read())?;
        diagnostics
            .warnings
            .extend(summary.warnings.iter().cloned());
        self.record_bands(input, plan, clock);
        plan.diagnostics = diagnostics;
        self.executor.timeline.unwritten = shape.bytes() as u64;
        self.executor.timeline.begin_codec_after(encoding);
        Ok(summary)
    }

    /// Records the time since the decoder began: that of the work on bands, and that of decoding them.
    fn record_bands(&mut self, input: &Input, plan: &Plan, clock: BandClock) {
        let bytes = plan.header.shape.bytes() as u64;
        let timeline = &mut self.executor.timeline;
        clock.record(timeline, bytes, &input.source.traffic.take());
    }
}
