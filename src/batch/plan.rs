//! What a batch would be: its files, pixels, memory and time, from the headers alone.

use super::Batch;
use super::inputs::Item;
use crate::codec::Reader;
use crate::console;
use crate::files::Source;
use crate::image::Shape;
use crate::outcome::Outcome;
use crate::pipeline::memory;
use anyhow::{Context, Result};
use rayon::prelude::*;

/// Bytes of samples a second that one core carries from PNG to PNG; other formats are faster.
const CORE_RATE: f64 = 170e6;

impl Batch<'_> {
    /// Tells on standard output what would be done.
    pub(super) fn tell_plan(&self) -> Result<Outcome> {
        let survey = |item: &Item| -> Result<(Shape, u64)> {
            let source = match item.listed {
                true => Source::open_file(&item.input)?,
                false => Source::open(&item.input)?,
            };
            let surveys = Reader::open(&source, &self.common.reading)?.surveys()?;
            let largest = surveys.into_iter().max_by_key(memory);
            largest.context("it has no page")
        };
        let items = &self.items.items;
        let surveys: Vec<Result<(Shape, u64)>> = items
            .par_iter()
            .map(|item| {
                survey(item).with_context(|| format!("cannot read {}", item.input.display()))
            })
            .collect();
        for (item, survey) in items.iter().zip(&surveys) {
            let arrow = item
                .output
                .as_ref()
                .map(|path| format!(" → {}", path.display()));
            let (input, arrow) = (item.input.display(), arrow.unwrap_or_default());
            match survey {
                Ok((shape, _)) => console::print(&format!("{input}{arrow}: {shape}"))?,
                Err(error) => console::print(&format!("{error:#}"))?,
            }
        }
        let good = || surveys.iter().flatten();
        let pixels: u64 = good().map(|(shape, _)| shape.pixels() as u64).sum();
        let bytes: u64 = good().map(|(shape, _)| shape.bytes() as u64).sum();
        let crew = self.crew();
        let threads = crew.threads(items.len());
        let mut each: Vec<u64> = good().map(memory).collect();
        each.sort_unstable_by(|a, b| b.cmp(a));
        let at_once: u64 = each.iter().take(threads).sum();
        let limit = self.options.memory();
        let largest = each.first().copied().unwrap_or(0);
        console::print(&format!(
            "{} files ({} unreadable), {:.3} Gpx, {:.2} GB of samples; {threads} threads, at most {} of memory; about {:.0} s if all were PNG",
            items.len(),
            surveys.iter().filter(|survey| survey.is_err()).count(),
            pixels as f64 / 1e9,
            bytes as f64 / 1e9,
            told(at_once.min(limit.max(largest))),
            bytes as f64 / CORE_RATE / threads as f64
        ))?;
        Ok(match surveys.iter().all(Result::is_ok) {
            true => Outcome::Done,
            false => Outcome::SomeFailed,
        })
    }
}

/// How many of what, for people.
pub fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A size for people, in powers of 1000.
pub fn told(bytes: u64) -> String {
    let bytes = bytes as f64;
    match bytes {
        1e9.. => format!("{:.2} GB", bytes / 1e9),
        1e6.. => format!("{:.1} MB", bytes / 1e6),
        _ => format!("{:.1} kB", bytes / 1e3),
    }
}
