//! Measures the statistics that the pages of a stack share, so that all pages are scaled from the same range.

use super::job::{Input, Job};
use crate::image::Values;
use crate::image::metadata::Axis;
use crate::ops::{Join, Operation, SampleTypes, Scope, Statistic, Statistics};
use anyhow::Result;

/// The statistics that pages share: for each operation that shares one, and for each type of page.
#[derive(Debug, Default)]
pub struct SharedStatistics(Vec<(StatisticKey, Statistics)>);

/// The pages that share a statistic. Their values can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StatisticKey {
    /// The index of the operation, counted from 0.
    operation: usize,
    /// The type of the samples that it reads.
    values: Values,
    /// The channels of a page.
    channels: usize,
    /// The position on the axis of channels; 0 if the operation treats all channels alike.
    channel: usize,
}

impl StatisticKey {
    fn new(
        operation: usize,
        op: &dyn Operation,
        types: &SampleTypes,
        channel: usize,
    ) -> StatisticKey {
        StatisticKey {
            operation,
            values: types.read,
            channels: types.channels,
            channel: if op.properties().per_channel {
                channel
            } else {
                0
            },
        }
    }
}

impl SharedStatistics {
    /// Reads all pages of a stack once for each operation with a shared statistic, and measures the result of the operations
    /// before it. The pixels are not kept.
    ///
    /// # Errors
    /// A page that cannot be read or processed.
    pub fn measure(job: &mut Job, input: &mut Input) -> Result<SharedStatistics> {
        let mut shared = SharedStatistics::default();
        if input.reader.pages().len() == 1 {
            return Ok(shared);
        }
        for operation in SharedStatistics::operations(job.ops) {
            shared.add(operation, job, input)?;
        }
        Ok(shared)
    }

    /// The indices of the operations that need a shared statistic.
    pub fn operations(ops: &[&dyn Operation]) -> impl Iterator<Item = usize> {
        let shares = |op: &dyn Operation| {
            op.properties().statistic != Statistic::None && op.properties().scope == Scope::Stack
        };
        let operations = ops.iter().enumerate().filter(move |(_, op)| shares(**op));
        operations.map(|(operation, _)| operation)
    }

    /// Measures the statistic of one operation on the pages of a file, and merges it with that of the files before.
    ///
    /// # Errors
    /// A page that cannot be read or processed.
    pub fn add(&mut self, operation: usize, job: &mut Job, input: &mut Input) -> Result<()> {
        let op = job.ops[operation];
        job.measuring(|job| {
            for index in 0..input.reader.pages().len() {
                let (types, statistics) = job.measure_page(input, self, operation, index)?;
                let channel = input.reader.channel(index);
                self.merge(
                    StatisticKey::new(operation, op, &types, channel),
                    statistics,
                )?;
            }
            Ok::<(), anyhow::Error>(())
        })?;
        let channels = (input.reader.axes()).map_or(1, |axes| axes.size(Axis::C));
        if channels > 1 && !op.properties().per_channel {
            job.diagnostics.add_about_file(Some(format!(
                "its {channels} channels share one range (use --per-channel for separate ranges)"
            )));
        }
        Ok(())
    }

    fn merge(&mut self, key: StatisticKey, statistics: Statistics) -> Result<()> {
        match self.0.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => known.join(&statistics),
            None => {
                self.0.push((key, statistics));
                Ok(())
            }
        }
    }

    /// The statistic of an operation for samples of these types, of a page at this position on the axis of channels; `None` if
    /// each page has its own.
    pub fn get(
        &self,
        operation: usize,
        op: &dyn Operation,
        types: &SampleTypes,
        channel: usize,
    ) -> Option<&Statistics> {
        let key = StatisticKey::new(operation, op, types, channel);
        let shared = self.0.iter().find(|(known, _)| *known == key);
        shared.map(|(_, statistics)| statistics)
    }
}
