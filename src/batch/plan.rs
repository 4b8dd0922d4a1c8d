//! What a batch would be: its files, pixels, memory and time, from the headers alone.

use super::Batch;
use crate::codec::Reader;
use crate::files::Source;
use crate::image::Shape;
use crate::outcome::Outcome;
use crate::pipeline::memory;
use anyhow::{Context, Result};
use rayon::prelude::*;
use std::io::{self, Write};

/// Bytes of samples a second that one core carries from PNG to PNG; other formats are faster.
const CORE_RATE: f64 = 170e6;

impl Batch<'_> {
    /// Tells on standard output what would be done.
    pub(super) fn tell_plan(&self) -> Result<Outcome> {
        let shape = |path| -> Result<Shape> {
            let source = Source::open(path)?;
            Ok(Reader::open(&source, &self.common.reading)?.shape())
        };
        let items = &self.items.items;
        let shapes: Vec<Result<Shape>> = items
            .par_iter()
            .map(|item| {
                shape(&item.input).with_context(|| format!("cannot read {}", item.input.display()))
            })
            .collect();
        let mut out = io::stdout().lock();
        for (item, shape) in items.iter().zip(&shapes) {
            let arrow = item
                .output
                .as_ref()
                .map(|path| format!(" → {}", path.display()));
            let (input, arrow) = (item.input.display(), arrow.unwrap_or_default());
            match shape {
                Ok(shape) => writeln!(out, "{input}{arrow}: {shape}")?,
                Err(error) => writeln!(out, "{error:#}")?,
            }
        }
        let good = || shapes.iter().flatten();
        let pixels: u64 = good().map(|shape| shape.pixels() as u64).sum();
        let bytes: u64 = good().map(|shape| shape.bytes() as u64).sum();
        let crew = self.crew();
        let threads = crew.threads(items.len());
        let mut each: Vec<u64> = good().map(memory).collect();
        each.sort_unstable_by(|a, b| b.cmp(a));
        let at_once: u64 = each.iter().take(threads).sum();
        let limit = self.options.memory();
        let largest = each.first().copied().unwrap_or(0);
        writeln!(
            out,
            "{} files ({} unreadable), {:.3} Gpx, {:.2} GB of samples; {threads} threads, at most {} of memory; about {:.0} s if all were PNG",
            items.len(),
            shapes.iter().filter(|shape| shape.is_err()).count(),
            pixels as f64 / 1e9,
            bytes as f64 / 1e9,
            told(at_once.min(limit.max(largest))),
            bytes as f64 / CORE_RATE / threads as f64
        )?;
        Ok(match shapes.iter().all(Result::is_ok) {
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
