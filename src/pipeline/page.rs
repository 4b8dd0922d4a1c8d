//! The page processor: takes a page from the decoder to the encoder. `PageProcessor::page` has the
//! steps in their order; each is a file below.

mod depth;
mod metadata;
mod operate;
mod read;
mod upright;
mod write;

use super::destination::Destination;
use super::diagnostics::FileDiagnostics;
use super::done::{Found, FoundPage};
use super::errors::Sentences;
use super::stack::StackStatistics;
use crate::codec::{Reader, Writer};
use crate::exec::{Executor, Pixels, Task};
use crate::files::{Source, Target};
use crate::metadata::{Diagnostics, Metadata};
use crate::ops::sum::Totals;
use crate::ops::{Executed, OpResult, Operation};
use anyhow::{Context, Result};
use std::time::Instant;

/// A page between decoder and encoder.
#[derive(Debug)]
pub struct Page {
    /// The pixels, in host memory, in GPU memory, or deflated.
    pub pixels: Pixels,
    /// The page's metadata.
    pub metadata: Metadata,
    /// The page's index in the file, counted from 0.
    pub index: usize,
}

/// The state that all pages of one file share while they are processed in order.
pub struct PageProcessor<'a, 't> {
    /// The sentences about its errors.
    pub sentences: Sentences<'a>,
    /// The output, unless the operation gives numbers.
    pub output: Option<(&'t Destination, &'t Target)>,
    /// The input's bytes.
    pub source: &'a Source,
    /// The input's decoder.
    pub reader: Reader<'a>,
    /// The output's encoder.
    pub writer: Option<Writer<'t>>,
    /// The executor that runs operations.
    pub executor: Executor<'a>,
    /// The diagnostics of all pages so far.
    pub diagnostics: FileDiagnostics,
    /// The numbers that the pages gave so far.
    pub found: Found,
    /// When the current codec step began.
    pub since: Instant,
    /// Bytes of the last page's samples; the time of writing them is recorded when the file is
    /// complete.
    pub last: u64,
}

impl PageProcessor<'_, '_> {
    /// Processes the page at `index` among the selected pages, from decoding to encoding.
    ///
    /// # Errors
    /// A page that cannot be read, processed or written; the sentence names the file.
    pub fn page(
        &mut self,
        op: &dyn Operation,
        stack: &StackStatistics,
        index: usize,
    ) -> Result<()> {
        if index > 0 {
            write::tell_written(self);
        }
        self.executor.timeline.page = Some(self.reader.pages()[index] + 1);
        let mut diagnostics = Diagnostics::default();
        let page = read::decode(self, op, index, &mut diagnostics)?;
        let read = page.pixels.shape();
        let Page {
            mut metadata,
            index,
            ..
        } = page;
        let pixels = upright::turn(self, page.pixels, &metadata)?;
        let pixels = depth::widen(self, pixels, &metadata, op.effect())?;
        let warning = operate::warning(op, &metadata, &read);
        let warning = warning.with_context(|| self.sentences.undone())?;
        diagnostics.warnings.extend(warning);
        let task = Task {
            op,
            types: operate::sample_types(self, op, &metadata, read, pixels.shape().depth),
            statistics: stack.of(&read, &metadata),
        };
        let signed = task.types.read.signed;
        let Executed { result, summary } = operate::run(self, &task, pixels)?;
        diagnostics.warnings.extend(summary.warnings);
        self.since = Instant::now();
        match result {
            OpResult::Totals(found) => {
                let pages = self.reader.pages().len();
                let found = Totals {
                    page: index + 1,
                    one_of_several: pages > 1,
                    signed: metadata.signed,
                    ..found
                };
                self.found.totals.push(found);
            }
            OpResult::Counts(mut found) => {
                found.signed = metadata.signed;
                let joined = self.found.count(found);
                joined.with_context(|| self.sentences.undone())?;
            }
            OpResult::Image(pixels) => {
                let pixels = depth::narrow(self, pixels, &metadata, &summary.ranges)?;
                let shapes = (read, pixels.shape());
                metadata::update(self, &mut metadata, op.effect(), shapes, &mut diagnostics);
                let page = Page {
                    pixels,
                    metadata,
                    index,
                };
                write::encode(self, page, op.effect(), &mut diagnostics)?;
            }
        }
        self.found.pages.push(FoundPage {
            page: index + 1,
            shape: read,
            signed,
            ranges: summary.ranges,
        });
        self.diagnostics.add(index + 1, diagnostics);
        Ok(())
    }
}
