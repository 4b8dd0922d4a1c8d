//! The statistics that pages share, so that all of them are scaled from the same range.

use crate::image::Values;
use crate::ops::{Join, Operation, SampleTypes, Scope, Statistic, Statistics};
use anyhow::Result;

/// The statistics that pages share: one for each operation with a shared statistic and each type of page.
#[derive(Debug, Default)]
pub struct SharedStatistics(Vec<(StatisticKey, Statistics)>);

/// Identifies the pages that share a statistic of an operation: pages whose values can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StatisticKey {
    /// The index of the operation, counted from 0.
    operation: usize,
    /// The type of the samples that the operation reads.
    values: Values,
    /// The channels of a page.
    channels: usize,
    /// The position of the page on the axis of channels; 0 if the operation measures all channels together.
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
    /// The indices of the operations that need a shared statistic.
    pub fn operations(ops: &[&dyn Operation]) -> impl Iterator<Item = usize> {
        let shares = |op: &dyn Operation| {
            op.properties().statistic != Statistic::None && op.properties().scope == Scope::Stack
        };
        let operations = ops.iter().enumerate().filter(move |(_, op)| shares(**op));
        operations.map(|(operation, _)| operation)
    }

    /// Merges the statistic of an operation for a page with that of the pages before it.
    ///
    /// # Errors
    /// Pages whose values cannot be compared.
    pub fn add(
        &mut self,
        operation: usize,
        op: &dyn Operation,
        types: &SampleTypes,
        channel: usize,
        statistics: Statistics,
    ) -> Result<()> {
        let key = StatisticKey::new(operation, op, types, channel);
        match self.0.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => known.join(&statistics),
            None => {
                self.0.push((key, statistics));
                Ok(())
            }
        }
    }

    /// The statistic of an operation for samples of these types, on a page at this position on the axis of channels. Returns
    /// `None` if each page has its own.
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
