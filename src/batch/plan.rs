//! What a batch would be: its files, pixels, memory and time, from the headers alone.

use super::Batch;
use crate::codec::Reader;
use crate::files::Source;
use crate::image::Shape;
use crate::outcome::Outcome;
use crate::pipeline::memory;
use anyhow::{Context, Result};
use rayon::prelude::*;
use std::fs;
use std::io::{self, Write};

/// Bytes of samples a second that one core carries from PNG to PNG; other formats are faster.
const CORE_RATE: f64 = 170e6;

/// Memory taken where the system does not say how much is free.
const UNKNOWN: u64 = 2 << 30;

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
        let crew = self.options.crew(self.common);
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

/// Half of the memory that is free, of the machine's and of the control group's.
pub fn free_memory() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("MemAvailable:"))?;
        let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(kib << 10)
    });
    let number = |path: &str| -> Option<u64> { fs::read_to_string(path).ok()?.trim().parse().ok() };
    let group = number("/sys/fs/cgroup/memory.max")
        .zip(number("/sys/fs/cgroup/memory.current"))
        .map(|(most, used)| most.saturating_sub(used));
    let free = [machine, group].into_iter().flatten().min();
    free.unwrap_or(2 * UNKNOWN).max(64 << 20) / 2
}
