//! The two passes over a page in bands.

use super::super::depth::narrowed;
use super::super::{Made, PageProcessor, read};
use super::{Found, Plan};
use crate::codec::each_band;
use crate::exec::Task;
use crate::image::{Depth, Image, Shape};
use crate::metadata::{Diagnostics, Effect};
use crate::ops::{Join, Statistic, Statistics, depth};
use crate::pipeline::done::FoundPage;
use crate::pipeline::errors::unwritten;
use crate::timing::Timeline;
use anyhow::{Context, Result, anyhow};
use std::path::PathBuf;
use std::slice;
use std::time::{Duration, Instant};

impl Plan {
    /// Checks the whole file, and measures a statistic of what the operation is given. `None`: its format has no rows in their order, or
    /// something is wrong.
    pub fn first_pass(
        &mut self,
        processor: &mut PageProcessor,
        task: &Task,
        statistic: Statistic,
    ) -> Option<Found> {
        processor.executor.timeline.measuring = true;
        let found = [false, true].into_iter().find_map(|plainly| {
            let mut found = Found {
                statistics: Statistics::None,
                trial: Vec::new(),
                warning: None,
                plainly,
            };
            let mut metadata = self.metadata.clone();
            let (mut times, mut measured) = (Times::default(), None);
            let given = each_band(&processor.reader, self.rows, plainly, &mut |top, band| {
                times.work(|timeline| {
                    metadata.check_maxval(band.samples());
                    let rows = top..top + band.shape().height;
                    let trial = self.bands.trial.iter();
                    let trial = trial.filter(|wanted| rows.contains(&wanted.start));
                    let part = trial.map(|wanted| band.rows(wanted.start - top..wanted.end - top));
                    found.trial.extend(part);
                    let band = self.widening.apply(band, timeline);
                    let more = statistic.cpu(&band, timeline);
                    let warning = task.op.warning(&band, &task.types);
                    match &mut measured {
                        None => (measured, found.warning) = (Some(more), warning),
                        Some(known) => {
                            known.join(&more)?;
                            found.warning = found.warning.take().and(warning);
                        }
                    }
                    Ok(())
                })
            });
            times.tell_decoded(processor, self.read);
            if !given.ok()? {
                return None;
            }
            found.statistics = measured?;
            self.metadata.maxval = metadata.maxval;
            if let (Some(_), Statistics::MinMax(extremes)) = (&found.warning, &found.statistics) {
                found.warning = task.op.warning(&extremes.pixels(), &task.types);
            }
            Some(found)
        });
        processor.executor.timeline.measuring = false;
        processor.since = Instant::now();
        found
    }

    /// Changes the page at `index` band by band, and adds it to the output.
    pub fn second_pass(
        &self,
        processor: &mut PageProcessor,
        task: &Task,
        found: &Found,
        index: usize,
        diagnostics: &mut Diagnostics,
    ) -> Result<FoundPage> {
        let statistics = match task.op.statistic() {
            Statistic::None => &Statistics::None,
            _ => task.statistics.unwrap_or(&found.statistics),
        };
        let bound = task.op.bind(task.types, statistics);
        let bound = bound.with_context(|| processor.sentences.undone())?;
        let summary = bound.summary();
        let last = task.op.effect();
        let given = self.prepared();
        let output = processor.output.map(|(output, _)| output);
        let made = task.op.made(given.depth);
        let most = narrowed(output, &self.metadata, made);
        let ranges = match last {
            Effect::Values => &summary.ranges[..],
            _ => &[],
        };
        let change = |band: Image, timeline: &mut Timeline| -> Result<Image> {
            let band = self.widening.apply(band, timeline);
            let band = bound.cpu(band, timeline)?.image()?;
            Ok(match most {
                Some(most) => depth::narrow(band, ranges, most),
                None => band,
            })
        };
        let made = Made {
            read: self.read,
            prepared: given,
            from: self.read,
            to: Shape {
                depth: if most.is_some() { Depth::Eight } else { made },
                ..given
            },
            stretch: summary.stretch,
            had_maxval: self.metadata.maxval.is_some(),
        };
        let mut metadata = self.metadata.clone();
        let signed = metadata.signed;
        processor.follow(&mut metadata, slice::from_ref(task), &made, diagnostics)?;
        let mut times = Times::default();
        let trial = found.trial.iter().map(|rows| {
            let timeline = &mut Timeline::default();
            change(rows.clone(), timeline)
        });
        let trial = trial.collect::<Result<Vec<Image>>>();
        let trial = trial.map_err(|error| processor.sentences.failed(error))?;
        let path = output.map_or_else(PathBuf::new, |output| output.path.clone());
        let writer = processor.writer.as_mut().context("there is no output")?;
        let begun = writer.begin((&made.to, metadata), last, &trial, diagnostics);
        begun.with_context(|| unwritten(&path))?;
        let (mut encoding, mut failure) = (Duration::ZERO, None);
        let given = each_band(
            &processor.reader,
            self.rows,
            found.plainly,
            &mut |_, band| {
                let done = times.work(|timeline| {
                    let changed = change(band, timeline);
                    let changed = changed.map_err(|error| processor.sentences.failed(error))?;
                    let since = Instant::now();
                    let written = writer.band(changed).with_context(|| unwritten(&path));
                    encoding += since.elapsed();
                    written
                });
                done.map_err(|error| {
                    let stopped = anyhow!("it was stopped");
                    failure = Some(error);
                    stopped
                })
            },
        );
        if let Some(error) = failure {
            return Err(error);
        }
        given.with_context(|| processor.sentences.unread())?;
        times.tell_decoded(processor, self.read);
        processor.last = made.to.bytes() as u64;
        processor.since = Instant::now();
        processor.since = processor
            .since
            .checked_sub(encoding)
            .unwrap_or(processor.since);
        let before = processor.joined.map_or(0, |joined| joined.before);
        diagnostics.warnings.extend(summary.warnings);
        Ok(FoundPage {
            page: before + processor.reader.pages()[index] + 1,
            shape: self.read,
            signed,
            ranges: summary.ranges,
        })
    }
}

/// The time of what is done with bands, which passes while their file is decoded.
#[derive(Default)]
struct Times {
    all: Duration,
    timelines: Vec<Timeline>,
}

impl Times {
    fn work<R>(&mut self, work: impl FnOnce(&mut Timeline) -> Result<R>) -> Result<R> {
        let (since, mut timeline) = (Instant::now(), Timeline::default());
        let done = work(&mut timeline);
        self.all += since.elapsed();
        self.timelines.push(timeline);
        done
    }

    /// Records them, and the rest of the time as that of decoding an image of this shape.
    fn tell_decoded(&self, processor: &mut PageProcessor, shape: Shape) {
        processor.since += self.all;
        read::tell_decoded(processor, shape);
        processor.executor.timeline.join(&self.timelines);
    }
}
