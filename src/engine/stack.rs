//! Measures the statistics that the pages of a stack share, so that all pages are stretched from
//! the same range.

use super::job::{Input, Job};
use crate::image::Values;
use crate::image::metadata::Axis;
use crate::ops::{Join, Operation, SampleTypes, Scope, Statistic, Statistics};
use anyhow::Result;

/// The statistic of each kind of page, measured over all pages of that kind, for each operation that
/// shares one among pages.
#[derive(Debug, Default)]
pub struct SharedStatistics(Vec<(Kind, Statistics)>);

/// The operation, counted from 0, and the kind of page that it is given: the type of the samples, the
/// number of channels, and for an operation that does each by itself the place on the axis of channels.
/// Values of pages of one kind can be compared.
type Kind = (usize, Values, usize, usize);

fn kind((step, op): (usize, &dyn Operation), types: &SampleTypes, place: usize) -> Kind {
    let place = if op.properties().per_channel { place } else { 0 };
    (step, types.read, types.channels, place)
}

impl SharedStatistics {
    /// Reads all pages of a stack once for each operation that wants a shared statistic, and measures the result of the
    /// operations before it. The pixels are not kept. Its stages are recorded under names of their own.
    pub fn measure(job: &mut Job, input: &mut Input) -> Result<SharedStatistics> {
        let mut stack = SharedStatistics::default();
        if input.reader.pages().len() == 1 {
            return Ok(stack);
        }
        for step in SharedStatistics::steps(job.ops) {
            stack.add(step, job, input)?;
        }
        Ok(stack)
    }

    /// The operations that want a shared statistic.
    pub fn steps(ops: &[&dyn Operation]) -> impl Iterator<Item = usize> {
        let wants =
            |op: &&dyn Operation| op.properties().statistic != Statistic::None && op.properties().scope == Scope::Stack;
        let steps = ops.iter().enumerate().filter(move |(_, op)| wants(op));
        steps.map(|(step, _)| step)
    }

    /// Measures the statistic of one operation in the pages of a file, and joins it to that of others.
    ///
    /// # Errors
    /// A page that cannot be read or processed.
    pub fn add(&mut self, step: usize, job: &mut Job, input: &mut Input) -> Result<()> {
        let op = job.ops[step];
        let mut found: Vec<(Kind, Statistics)> = Vec::new();
        job.executor.timeline.measuring = true;
        for index in 0..input.reader.pages().len() {
            let (types, statistics) = job.measure_page(input, self, step, index)?;
            let kind = kind((step, op), &types, input.reader.channel(index));
            match found.iter_mut().find(|(known, _)| *known == kind) {
                None => found.push((kind, statistics)),
                Some((_, known)) => known.join(&statistics)?,
            }
            job.executor.timeline.begin_codec();
        }
        job.executor.timeline.measuring = false;
        let channels = (input.reader.axes()).map_or(1, |axes| axes.size(Axis::C));
        if channels > 1 && !op.properties().per_channel {
            job.diagnostics.add_about_file(Some(format!(
                "its {channels} channels share one range (use --per-channel for separate ranges)"
            )));
        }
        for (kind, statistics) in found {
            match self.0.iter_mut().find(|(known, _)| *known == kind) {
                None => self.0.push((kind, statistics)),
                Some((_, known)) => known.join(&statistics)?,
            }
        }
        Ok(())
    }

    /// The statistic of an operation for samples of these types, of a page at this place on the axis of
    /// channels; `None` if each page has its own.
    pub fn of(
        &self,
        step: (usize, &dyn Operation),
        types: &SampleTypes,
        place: usize,
    ) -> Option<&Statistics> {
        let kind = kind(step, types, place);
        let shared = self.0.iter().find(|(known, _)| *known == kind);
        shared.map(|(_, statistics)| statistics)
    }
}
