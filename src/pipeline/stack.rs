//! Measures the statistics that the pages of a stack share, so that all pages are stretched from
//! the same range.

use super::page::PageProcessor;
use crate::image::Values;
use crate::ops::{Join, Operation, SampleTypes, Scope, Statistic, Statistics};
use anyhow::Result;
use std::time::Instant;

/// The statistic of each kind of page, measured over all pages of that kind, for each operation that
/// shares one among pages.
#[derive(Debug, Default)]
pub struct StackStatistics(Vec<(Kind, Statistics)>);

/// The operation, counted from 0, and the kind of page that it is given: the type of the samples and
/// the number of channels. Values of pages of one kind can be compared.
type Kind = (usize, Values, usize);

fn kind(step: usize, types: &SampleTypes) -> Kind {
    (step, types.read, types.channels)
}

impl StackStatistics {
    /// Reads all pages of a stack once for each operation that wants a shared statistic, and measures
    /// what the operations before it make of them. The pixels are not kept. Its stages are recorded
    /// under names of their own.
    pub fn measure(
        ops: &[&dyn Operation],
        processor: &mut PageProcessor,
    ) -> Result<StackStatistics> {
        let mut stack = StackStatistics::default();
        if processor.reader.pages().len() == 1 {
            return Ok(stack);
        }
        for (step, op) in ops.iter().enumerate() {
            if op.statistic() != Statistic::None && op.scope() == Scope::Stack {
                stack.add(step, ops, processor)?;
            }
        }
        Ok(stack)
    }

    /// Measures the statistic of one operation.
    fn add(
        &mut self,
        step: usize,
        ops: &[&dyn Operation],
        processor: &mut PageProcessor,
    ) -> Result<()> {
        let mut found: Vec<(Kind, Statistics)> = Vec::new();
        processor.executor.timeline.measuring = true;
        for index in 0..processor.reader.pages().len() {
            let page = processor.reader.pages()[index] + 1;
            processor.executor.timeline.page = Some(page);
            let (types, statistics) = processor.measure(ops, self, (step, index))?;
            let kind = kind(step, &types);
            match found.iter_mut().find(|(known, _)| *known == kind) {
                None => found.push((kind, statistics)),
                Some((_, known)) => known.join(&statistics)?,
            }
            processor.since = Instant::now();
        }
        processor.executor.timeline.measuring = false;
        self.0.extend(found);
        Ok(())
    }

    /// The statistic of an operation for samples of these types; `None` if each page has its own.
    pub fn of(&self, step: usize, types: &SampleTypes) -> Option<&Statistics> {
        let kind = kind(step, types);
        let shared = self.0.iter().find(|(known, _)| *known == kind);
        shared.map(|(_, statistics)| statistics)
    }
}
