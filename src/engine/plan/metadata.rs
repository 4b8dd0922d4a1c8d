//! The metadata of the output: the metadata of the input, updated by each step.

use super::Plan;
use crate::formats;
use crate::image::metadata::{Diagnostics, Effect, Held, Metadata, Stretch, Transform};
use crate::ops::chain;
use anyhow::{Result, ensure};

impl Plan<'_> {
    /// Updates the metadata after all steps but the last, as if there were a file between any two steps.
    pub(super) fn update_metadata_between_steps(&mut self) {
        let mut step_output = self.first_input_shape;
        for (index, pair) in self.steps.windows(2).enumerate() {
            let [step, next] = pair else { continue };
            step_output = step.output(step_output);
            let orients = self.first_step_orients && index == 0;
            let to = if orients {
                // Still at the depth that the file stores: the conversion of the input counts as part of the first operation.
                chain::output(step.op, self.described_shape)
            } else {
                step_output
            };
            let transform = Transform {
                effect: step.op.properties().effect,
                from: self.described_shape,
                to,
                pages: self.pages,
                whole: self.describes_all_pages || index > usize::from(self.first_step_orients),
            };
            update(&mut self.metadata, transform, &mut self.diagnostics);
            if orients {
                self.metadata.orientation = Some(1);
            }
            self.metadata.signed = next.types.read.signed;
            self.described_shape = to;
        }
    }

    /// The metadata of the result. They include `stretch`, the result of `recorded_stretch`.
    pub fn output_metadata(
        &self,
        stretch: Option<Stretch>,
        diagnostics: &mut Diagnostics,
    ) -> Metadata {
        let mut metadata = self.metadata.clone();
        let effect = self.last_effect();
        let transform = Transform {
            effect,
            from: self.described_shape,
            to: self.result_shape,
            pages: self.pages,
            whole: self.describes_all_pages || self.operations().len() > 1,
        };
        update(&mut metadata, transform, diagnostics);
        if let Some(last) = self.steps.last() {
            metadata.signed = match effect {
                Effect::Values => last.types.written.signed,
                // The encoder decides whether the format can store the sign.
                _ => last.op.output_type(last.types.read).signed,
            };
        }
        if let Some(stretch) = stretch {
            metadata.stretch = Some(Ok(stretch));
        }
        if self.fit.is_some() {
            let transform = Transform {
                effect: Effect::Reduced,
                from: self.result_shape,
                to: self.output_shape(),
                pages: self.pages,
                whole: true,
            };
            formats::metadata::update(&mut metadata, &transform, diagnostics);
        }
        metadata
    }

    /// The scaling that the output records: `stretch`, if no later step changed values or took a channel.
    ///
    /// # Errors
    /// A change after the scaling that `restore` could not undo.
    pub fn recorded_stretch(&self, stretch: Option<Stretch>) -> Result<Option<Stretch>> {
        let mut changes = self.steps.iter().rev();
        let last = changes.find(|step| !step.op.properties().effect.keeps_values());
        // The ranges are those of the channels that were scaled.
        let is_last = last.is_some_and(|step| {
            let channels = step.op.output_channels(step.types.channels);
            step.op.properties().effect == Effect::Values && channels == self.result_shape.channels
        });
        let Some(mut stretch) = stretch.filter(|_| is_last) else {
            return Ok(None);
        };
        let same_depth = self.header.shape.depth == self.first_input_shape.depth;
        ensure!(
            stretch.to.depth == self.result_shape.depth
                && (same_depth || self.operations().len() == 1),
            "--depth with several verbs changes the values that --undo recorded: remove one of them"
        );
        ensure!(
            self.fit.is_none(),
            "--fit averages pixels, which restore cannot undo: remove --fit or --undo"
        );
        // Alpha was scaled to the full depth, so `restore` does not return its original values.
        if self.result_shape.has_alpha() && self.header.metadata.maxval.is_some() {
            stretch.held = Held::Clamped;
        }
        Ok(Some(stretch))
    }
}

/// Updates metadata after an operation, and after the conversion of the depth before it, if there is one.
fn update(metadata: &mut Metadata, transform: Transform, diagnostics: &mut Diagnostics) {
    let (from, to) = (transform.from.depth, transform.to.depth);
    if from != to {
        metadata.follow_depth(from, to, transform.from.channels);
    }
    formats::metadata::update(metadata, &transform, diagnostics);
}
