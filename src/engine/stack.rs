//! Measures the statistics that the pages of a stack share.

use super::job::{Input, Job};
use super::shared::SharedStatistics;
use anyhow::{Result, anyhow};

impl Job<'_> {
    /// Measures the statistics that the pages of a stack share. For each operation with such a statistic, it reads all pages once
    /// and runs the operations before it. The pixels are not kept.
    ///
    /// # Errors
    /// A page that cannot be read or processed.
    pub fn measure_stack(&mut self, input: &mut Input) -> Result<SharedStatistics> {
        self.check_channels(input)?;
        let mut shared = SharedStatistics::default();
        if input.reader.pages().len() == 1 {
            return Ok(shared);
        }
        for operation in SharedStatistics::operations(self.ops) {
            self.measure_file(operation, input, &mut shared)?;
        }
        Ok(shared)
    }

    /// Refuses separate ranges for channels that are pages, if the range is that of a set: it has one for all pages.
    ///
    /// # Errors
    /// Such an operation.
    pub fn check_channels(&self, input: &Input) -> Result<()> {
        let channels = input.reader.channels_among_pages();
        let properties = self.ops.iter().map(|op| op.properties());
        let mut of_set = properties.filter(|op| op.per_channel && op.has_range_of_set);
        match of_set.next() {
            Some(op) if channels > 1 => {
                let error = anyhow!(
                    "its {channels} channels are pages, for which --across and --range-from have one range (leave out \
                     --per-channel, or normalize each channel with --axes C=N)"
                );
                Err(error.context(input.messages.cannot(op.name)))
            }
            _ => Ok(()),
        }
    }

    /// Measures the statistic of one operation on the pages of a file, and adds it to that of the files before.
    ///
    /// # Errors
    /// A page that cannot be read or processed.
    pub fn measure_file(
        &mut self,
        operation: usize,
        input: &mut Input,
        shared: &mut SharedStatistics,
    ) -> Result<()> {
        let op = self.ops[operation];
        self.measuring(|job| {
            for index in 0..input.reader.pages().len() {
                let (types, statistics) = job.measure_page(input, shared, operation, index)?;
                let channel = input.reader.channel(index);
                shared.add(operation, op, &types, channel, statistics)?;
            }
            Ok::<(), anyhow::Error>(())
        })?;
        let channels = input.reader.channels_among_pages();
        if channels > 1 && !op.properties().per_channel {
            self.diagnostics.add_about_file(Some(format!(
                "its {channels} channels share one range (use --per-channel for separate ranges)"
            )));
        }
        Ok(())
    }
}
