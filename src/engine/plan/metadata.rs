//! The metadata of the output: kept true of all that is done to the pixels.

use super::Plan;
use crate::formats;
use crate::image::metadata::{Diagnostics, Effect, Held, Metadata, Stretch, Transform};
use crate::ops::chain;
use anyhow::{Result, ensure};

impl Plan<'_> {
    /// Updates the metadata after all steps but the last, as if a file lay between any two.
    pub(super) fn update_metadata_between_steps(&mut self) {
        let mut given = self.prepared;
        let steps = std::mem::take(&mut self.steps);
        for (index, pair) in steps.windows(2).enumerate() {
            let [step, next] = pair else { continue };
            given = chain::output(step.op, given);
            let turns_upright = self.upright && index == 0;
            let to = match turns_upright {
                // At its stored depth: the change of depth belongs to the first operation.
                true => chain::output(step.op, self.described),
                false => given,
            };
            let transform = Transform {
                effect: step.op.properties().effect,
                from: self.described,
                to,
                pages: self.pages,
                whole: self.whole || index > usize::from(self.upright),
            };
            update(&mut self.metadata, transform, &mut self.diagnostics);
            if turns_upright {
                self.metadata.orientation = Some(1);
            }
            self.metadata.signed = next.types.read.signed;
            self.described = to;
        }
        self.steps = steps;
    }

    /// The metadata of the result, with `stretch` recorded in it as `recorded_stretch` gives it.
    pub fn output_metadata(
        &self,
        stretch: Option<Stretch>,
        diagnostics: &mut Diagnostics,
    ) -> Metadata {
        let mut metadata = self.metadata.clone();
        let effect = self.last_effect();
        let transform = Transform {
            effect,
            from: self.described,
            to: self.result,
            pages: self.pages,
            whole: self.whole || self.operations().len() > 1,
        };
        update(&mut metadata, transform, diagnostics);
        if let Some(last) = self.steps.last() {
            metadata.signed = match effect {
                Effect::Values => last.types.written.signed,
                // Whether the format can store the sign is for its encoder to decide.
                _ => last.op.output_type(last.types.read).signed,
            };
        }
        if let Some(stretch) = stretch {
            metadata.stretch = Some(Ok(stretch));
        }
        if self.fit.is_some() {
            let transform = Transform {
                effect: Effect::Reduced,
                from: self.result,
                to: self.output_shape(),
                pages: self.pages,
                whole: true,
            };
            formats::metadata::update(&mut metadata, &transform, diagnostics);
        }
        metadata
    }

    /// How the values of the result were scaled, `stretch`, if the output is to record it.
    ///
    /// # Errors
    /// A change after the scaling that `restore` could not undo.
    pub fn recorded_stretch(&self, stretch: Option<Stretch>) -> Result<Option<Stretch>> {
        let mut changes = self.steps.iter().rev();
        let last = changes.find(|step| !step.op.properties().effect.keeps_values());
        let is_last = last.is_some_and(|step| step.op.properties().effect == Effect::Values);
        let Some(mut stretch) = stretch.filter(|_| is_last) else {
            return Ok(None);
        };
        let same_depth = self.header.shape.depth == self.prepared.depth;
        ensure!(
            stretch.to.depth == self.result.depth && (same_depth || self.operations().len() == 1),
            "--depth with several verbs changes the values that --undo recorded: remove one of them"
        );
        ensure!(
            self.fit.is_none(),
            "--fit averages pixels, which restore cannot undo: remove --fit or --undo"
        );
        // Alpha has reached the full depth from another maximum.
        if self.result.has_alpha() && self.header.metadata.maxval.is_some() {
            stretch.held = Held::Clamped;
        }
        Ok(Some(stretch))
    }
}

/// Updates metadata after an operation, and after the change of depth before it, if there is one.
fn update(metadata: &mut Metadata, transform: Transform, diagnostics: &mut Diagnostics) {
    let (from, to) = (transform.from.depth, transform.to.depth);
    if from != to {
        metadata.follow_depth(from, to, transform.from.channels);
    }
    formats::metadata::update(metadata, &transform, diagnostics);
}
