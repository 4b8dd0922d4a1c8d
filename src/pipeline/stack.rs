//! Measures the statistics that the pages of a stack share, so that all pages are stretched from
//! the same range.

use super::errors::Sentences;
use crate::codec::Reader;
use crate::exec::{Executor, Pixels};
use crate::files::Source;
use crate::image::{Depth, Shape};
use crate::metadata::{Diagnostics, Metadata};
use crate::ops::{Join, Operation, Scope, Statistic, Statistics};
use anyhow::{Context, Result};
use std::time::Instant;

/// The statistic of each kind of page, measured over all pages of that kind.
#[derive(Debug, Default)]
pub struct StackStatistics(Vec<(Kind, Statistics)>);

/// A kind of page: depth, whether signed, and number of channels. Values of pages of one kind can
/// be compared.
type Kind = (Depth, bool, usize);

fn kind(shape: &Shape, metadata: &Metadata) -> Kind {
    (shape.depth, metadata.signed, shape.channels)
}

impl StackStatistics {
    /// Reads all pages of a stack once and measures them, if the operation wants a shared
    /// statistic. The pixels are not kept. Its stages are recorded under names of their own, from `since`
    /// on, which becomes the time when it ends.
    pub fn measure(
        op: &dyn Operation,
        (sentences, source): (&Sentences, &Source),
        reader: &mut Reader,
        executor: &mut Executor,
        since: &mut Instant,
    ) -> Result<StackStatistics> {
        let (statistic, pages) = (op.statistic(), reader.pages().len());
        let mut stack = StackStatistics::default();
        if statistic == Statistic::None || op.scope() == Scope::Page || pages == 1 {
            return Ok(stack);
        }
        executor.timeline.measuring = true;
        for index in 0..pages {
            executor.timeline.page = Some(reader.pages()[index] + 1);
            let mut read = || -> Result<_> {
                reader.turn_to(index)?;
                let image = reader.decode()?;
                let metadata = reader.metadata(&mut Diagnostics::default())?;
                Ok((kind(&image.shape(), &metadata), image))
            };
            let (kind, image) = read().with_context(|| sentences.unread())?;
            let bytes = image.shape().bytes() as u64;
            let traffic = source.traffic.take();
            executor.timeline.decoded(*since, bytes, &traffic);
            let statistics = executor.measure(statistic, Pixels::Host(image));
            let statistics = statistics.map_err(|error| sentences.failed(error))?;
            match stack.0.iter_mut().find(|(known, _)| *known == kind) {
                None => stack.0.push((kind, statistics)),
                Some((_, known)) => {
                    (known.join(&statistics)).with_context(|| sentences.undone())?;
                }
            }
            *since = Instant::now();
        }
        executor.timeline.measuring = false;
        Ok(stack)
    }

    /// The statistic for pages of this kind; `None` if each page has its own.
    pub fn of(&self, shape: &Shape, metadata: &Metadata) -> Option<&Statistics> {
        let kind = kind(shape, metadata);
        let shared = self.0.iter().find(|(known, _)| *known == kind);
        shared.map(|(_, statistics)| statistics)
    }
}
