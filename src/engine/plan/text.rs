//! A plan as text, for `--dry-run` and `--verbose`.

use super::{Bands, InputDepth, Plan};
use crate::ops::{Access, Operation, Scope, Statistic};
use std::fmt;

impl fmt::Display for Plan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let header = &self.header;
        let (page, shape, format) = (header.page + 1, header.shape, header.format.name);
        write!(f, "page {page}: {shape}, {format}")?;
        line(f, "device", &self.device)?;
        if let Some(measured) = self.measured() {
            line(f, "measure", &measured)?;
        }
        line(f, "steps", &self.step_names())?;
        line(f, "memory", &self.memory())?;
        match self.output {
            None => line(f, "output", "numbers"),
            Some(_) => line(f, "output", &self.output_shape().to_string()),
        }
    }
}

/// A line of the plan, with its label in a column of its own.
fn line(f: &mut fmt::Formatter, label: &str, text: &str) -> fmt::Result {
    write!(f, "\n  {label:<8}  {text}")
}

impl Plan<'_> {
    /// The statistics that are measured, and in what.
    fn measured(&self) -> Option<String> {
        let mut all = Vec::new();
        for step in self.operations() {
            let what = match step.op.properties().statistic {
                Statistic::None => continue,
                Statistic::MinMax => "minimum and maximum",
                Statistic::Percentiles(..) => "percentiles",
            };
            // Where nothing has been measured yet, as for a dry run, the pages of a stack will share it too.
            let is_shared =
                step.statistics.is_some() || (self.pages > 1 && step.op.properties().scope == Scope::Stack);
            let scope = if is_shared {
                "of all pages"
            } else {
                "of the page"
            };
            all.push(format!("{what} {scope}"));
        }
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// The names of the steps, with the changes of depth between them.
    fn step_names(&self) -> String {
        let mut names = Vec::new();
        match self.input_depth {
            InputDepth::Kept => {}
            InputDepth::ToSixteen(_) => names.push("8 to 16 bits".into()),
            InputDepth::FullAlpha(most) => names.push(format!("alpha 0:{most} to the full depth")),
        }
        for (index, step) in self.steps.iter().enumerate() {
            let name = step.op.properties().name;
            match self.upright && index == 0 {
                true => names.push(format!("{name} upright")),
                false => names.push(name.into()),
            }
        }
        if self.to_eight_bits.is_some() {
            names.push("16 to 8 bits".into());
        }
        if self.fit.is_some() {
            names.push("reduce".into());
        }
        names.join(", ")
    }

    /// How the page passes through memory.
    fn memory(&self) -> String {
        match &self.bands {
            Bands::Blocks => "blocks of rows, in any order".into(),
            Bands::Rows { rows, .. } => {
                format!("bands of {rows} rows, decoded twice")
            }
            Bands::Whole => match self.steps.iter().find(|step| needs_whole(step.op)) {
                Some(step) => format!("whole image ({} needs it)", step.op.properties().name),
                None => "whole image".into(),
            },
        }
    }
}

/// Whether an operation takes pixels from rows other than the one it writes.
fn needs_whole(op: &dyn Operation) -> bool {
    match op.properties().access {
        Access::Permutation(map) => map.transposed || map.mirror_y,
        Access::Region(_) | Access::WholeImage => true,
        Access::Pointwise | Access::Reduction => false,
    }
}
