//! A plan as text, for `--dry-run` and `--verbose`.

use super::{InputConversion, Plan, Traversal, mixes_rows};
use crate::ops::{Scope, Statistic};
use std::fmt;

impl fmt::Display for Plan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.text(&self.device_line))
    }
}

impl Plan<'_> {
    /// The plan as text, with the device that ran it.
    pub fn text(&self, device_line: &str) -> String {
        let header = &self.header;
        let (page, shape, format) = (header.page + 1, header.shape, header.format.name);
        let mut text = format!("page {page}: {shape}, {format}");
        let mut add = |label: &str, value: &str| text += &format!("\n  {label:<8}  {value}");
        add("device", device_line);
        add("decode", &self.decoding(device_line));
        if let Some(measured) = self.measured() {
            add("measure", &measured);
        }
        add("steps", &self.step_names());
        add("memory", &self.memory());
        match self.output {
            None => add("output", "numbers"),
            Some(_) => add("output", &self.output_shape().to_string()),
        }
        text
    }

    /// How the page is decoded: the region, or the whole page on the device that runs the steps.
    fn decoding(&self, device_line: &str) -> String {
        let on_cpu = &self.header.decoding;
        match &self.region {
            Some(region) => region.parts.clone(),
            None if self.gpu_can_decode && !device_line.starts_with("CPU") => {
                format!("on the GPU if its data suit, else {on_cpu}")
            }
            None => on_cpu.clone(),
        }
    }

    /// The statistics that are measured, and whether in one page or in all.
    fn measured(&self) -> Option<String> {
        let mut all = Vec::new();
        for step in self.operations() {
            let what = match step.op.properties().statistic {
                Statistic::None => continue,
                Statistic::MinMax => "minimum and maximum",
                Statistic::Percentiles(..) => "percentiles",
                Statistic::Sampled => "1000 samples",
                Statistic::Medians => "medians",
            };
            // A dry run measures nothing, so `statistics` is empty although the pages of a stack will share the statistic.
            let is_shared = step.statistics.is_some()
                || (self.pages > 1 && step.op.properties().scope == Scope::Stack);
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
        match self.input_conversion {
            InputConversion::None => {}
            InputConversion::ToSixteen(_) => names.push("8 to 16 bits".into()),
            InputConversion::FullAlpha(max_value) => {
                names.push(format!("alpha 0:{max_value} to the full depth"));
            }
        }
        for (index, step) in self.steps.iter().enumerate() {
            let name = step.op.properties().name;
            if self.first_step_orients && index == 0 {
                names.push(format!("{name} upright"));
            } else {
                names.push(name.into());
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
        match &self.traversal {
            Traversal::Whole if self.region.is_some() => "the region".into(),
            Traversal::Blocks => "blocks of rows, in any order".into(),
            Traversal::Rows { rows, .. } => {
                format!("bands of {rows} rows, decoded twice")
            }
            Traversal::Whole => match self.steps.iter().find(|step| mixes_rows(step.op)) {
                Some(step) => format!("whole image ({} needs it)", step.op.properties().name),
                None => "whole image".into(),
            },
        }
    }
}
