//! A page in bands of rows, so that it is never in memory as a whole. Two passes decode it: the first checks all of the
//! file and measures the statistic, the second changes and encodes one band after the other.

use crate::engine::errors::unwritten;
use crate::engine::job::{Input, Job};
use crate::engine::plan::{Bands, Plan};
use crate::engine::stack::StackStatistics;
use crate::formats::each_band;
use crate::image::Image;
use crate::ops::{Join, Statistic, Statistics, Summary, depth};
use crate::timing::{BandClock, Timeline};
use anyhow::{Context, Result, anyhow, bail};
use std::time::{Duration, Instant};

/// Why the CPU does the work.
const WHY: &str = "it is processed in bands of rows to save memory";

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
    /// Whether only the plain method decodes the file.
    plainly: bool,
}

impl<'a> Job<'a> {
    /// Checks the whole file, and measures a statistic of what the operation is given. `None`: a row cannot be read; what is
    /// wrong with the page is found when it is decoded as a whole.
    ///
    /// # Errors
    /// A GPU that was asked for, and options that do not fit the samples.
    pub(super) fn first_pass<'p>(
        &mut self,
        input: &Input,
        shared: &'p StackStatistics,
        plan: &mut Plan<'p>,
        statistic: Statistic,
    ) -> Result<Option<FirstPass>>
    where
        'a: 'p,
    {
        let [task] = &plan.steps[..] else {
            bail!("several steps have no bands of rows");
        };
        let kept = self.executor.keep_to_cpu(task, &plan.prepared, WHY);
        kept.map_err(|error| input.sentences.failed(error))?;
        let was_measuring = std::mem::replace(&mut self.executor.timeline.measuring, true);
        let first = [false, true]
            .into_iter()
            .find_map(|plainly| self.measure_rows(input, plan, statistic, plainly));
        self.executor.timeline.measuring = was_measuring;
        self.executor.timeline.begin_codec();
        if let Some(first) = &first {
            self.plan_again(input, shared, plan, first.maxval)?;
        }
        Ok(first)
    }

    /// One attempt at the first pass; with `plainly` by the method that fails on damage alone.
    fn measure_rows(
        &mut self,
        input: &Input,
        plan: &Plan,
        statistic: Statistic,
        plainly: bool,
    ) -> Option<FirstPass> {
        let (Bands::Rows { rows, encoder }, [task]) = (&plan.bands, &plan.steps[..]) else {
            return None;
        };
        let mut metadata = plan.header.metadata.clone();
        let (mut trial, mut warning, mut measured) = (Vec::new(), None, None);
        let mut clock = BandClock::default();
        let read = each_band(&input.reader, *rows, plainly, &mut |top, band| {
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
                let own = task.op.warning(&band, &task.types);
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
        read.ok()?;
        let statistics = measured?;
        if let (Some(_), Statistics::MinMax(extremes)) = (&warning, &statistics) {
            warning = task.op.warning(&extremes.pixels(), &task.types);
        }
        Some(FirstPass {
            statistics,
            trial,
            warning,
            maxval: metadata.maxval,
            plainly,
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
            bail!("the page has no bands of rows");
        };
        let [task] = plan.steps[..] else {
            bail!("several steps have no bands of rows");
        };
        plan.diagnostics.warnings.extend(first.warning.clone());
        let statistics = match task.op.statistic() {
            Statistic::None => &Statistics::None,
            _ => task.statistics.unwrap_or(&first.statistics),
        };
        let bound = task.op.bind(task.types, statistics);
        let bound = bound.with_context(|| input.sentences.undone())?;
        let summary = bound.summary();
        let metadata = self.output_metadata(input, plan, summary.stretch)?;
        let mut diagnostics = std::mem::take(&mut plan.diagnostics);
        let change = |band: Image, timeline: &mut Timeline| -> Result<Image> {
            let band = plan.input_depth.apply(band, timeline);
            let band = bound.cpu(band, timeline)?.image()?;
            Ok(match plan.to_eight_bits {
                Some(most) => depth::narrow(band, plan.scaled_ranges(&summary), most),
                None => band,
            })
        };
        let failed = |error| input.sentences.failed(error);
        let trial = first.trial.iter();
        let trial = trial.map(|rows| change(rows.clone(), &mut Timeline::default()));
        let trial = trial.collect::<Result<Vec<Image>>>().map_err(failed)?;
        let output = self.output.as_mut().context("there is no output")?;
        let unwritten = || unwritten(&output.destination.path);
        let (_, writer) = output.file.as_mut().context("there is no output")?;
        let (shape, effect) = (plan.result, plan.last_effect());
        let begun = writer.begin((&shape, metadata), effect, &trial, &mut diagnostics);
        begun.with_context(unwritten)?;
        let (mut clock, mut encoding, mut failure) = (BandClock::default(), Duration::ZERO, None);
        let read = each_band(&input.reader, rows, first.plainly, &mut |_, band| {
            let encoded = clock.time(|timeline| {
                let band = change(band, timeline).map_err(failed)?;
                let since = Instant::now();
                let written = writer.band(band).with_context(unwritten);
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
        read.with_context(|| input.sentences.unread())?;
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
