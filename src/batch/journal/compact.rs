//! Keeps the journal of a watch short: drops lines about outputs that are gone, and about outputs that were made again later. A
//! run that writes to a journal holds a shared lock on it. It may replace the journal only if no other run holds the lock.

use super::history::lines;
use super::line::Line;
use super::{Journal, Pen, lock, open};
use crate::os::fault::{self, Kind};
use crate::os::sync::PoisonError;
use crate::os::system;
use crate::os::{Identity, Target};
use anyhow::{Context, Result};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The lines after which it is worth while at the earliest; more where more outputs are there.
const LINES: u64 = 100_000;

/// Opens a journal to append to it, with a shared lock: not the file that another run is replacing.
pub fn open_to_append(path: &Path) -> Result<File> {
    loop {
        let file = open(path, File::options().create(true).append(true).read(true))?;
        lock::share(&file, path)?;
        if is_at(&file, path)? {
            return Ok(file);
        }
    }
}

/// Whether the open `file` is still the one at `path`.
pub fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let own = system::id_of(file)?;
    match fault::id_of_entry(path) {
        Ok(there) => Ok(there == own),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

impl Journal {
    /// Prepares the journal for a run that may last for days and makes outputs again.
    pub fn begin_watch(&mut self) {
        self.past.refreshes = true;
        self.compact();
    }

    /// Drops outdated lines, if there may be many. A failure is not an error, because the journal works with these lines, too.
    /// It is tried again later.
    pub fn compact_if_long(&self) {
        let long = {
            let pen = self.pen.lock().unwrap_or_else(PoisonError::into_inner);
            pen.added >= LINES.max(pen.kept)
        };
        if long {
            self.compact();
        }
    }

    pub(super) fn compact(&self) {
        let mut pen = self.pen.lock().unwrap_or_else(PoisonError::into_inner);
        pen.added = 0;
        if pen.file.try_lock().is_ok()
            && let Ok(Some((file, kept))) =
                shortened(&mut pen, &self.path, &self.past.folder, self.sync)
        {
            (pen.file, pen.kept) = (file, kept);
            self.past.forget();
        } else {
            // Another process may have locked it in between: the next line waits for it then.
            pen.locked = lock::try_share(&pen.file);
        }
    }
}

/// Replaces the journal at `path` by one without superfluous lines, if there are any; returns the new
/// file and the number of its lines.
fn shortened(pen: &mut Pen, path: &Path, folder: &Path, sync: bool) -> Result<Option<(File, u64)>> {
    let mut found: HashMap<PathBuf, Vec<(u64, Identity)>> = HashMap::new();
    let (mut number, mut start) = (0, 0);
    let mut others = Vec::new();
    let mut file = open(path, File::options().read(true))?;
    lines(&mut file, path, 0, |line| {
        match Line::parse(line) {
            Some((name, line)) => found.entry(name).or_default().push((number, line.made)),
            None => others.push(number),
        }
        number += 1;
    })?;
    let mut kept = others;
    for (name, made) in found {
        let Some(there) = Identity::at(&folder.join(&name)) else {
            continue;
        };
        match made.iter().rev().find(|(_, made)| *made == there) {
            Some((line, _)) => kept.push(*line),
            // Somebody has touched it, and what it was may matter.
            None => kept.extend(made.iter().map(|(line, _)| *line)),
        }
    }
    if kept.len() as u64 == number {
        pen.kept = number;
        return Ok(None);
    }
    kept.sort_unstable();
    let mut target = Target::replace(path)?;
    // Otherwise a power cut could leave neither the old lines nor the new ones.
    target.sync = sync;
    let (mut number, mut keep, mut text) = (0, kept.iter().peekable(), Vec::new());
    let mut written = Ok(());
    let mut flush = |text: &mut Vec<u8>| {
        if written.is_ok() {
            written = target.write_at(text, start);
        }
        start += text.len() as u64;
        text.clear();
    };
    lines(&mut file, path, 0, |line| {
        if keep.next_if(|next| **next == number).is_some() {
            text.extend_from_slice(line.strip_suffix(b"\n").unwrap_or(line));
            text.push(b'\n');
        }
        number += 1;
        if text.len() > 1 << 20 {
            flush(&mut text);
        }
    })?;
    flush(&mut text);
    written.context("the journal")?;
    target.commit(start)?;
    let file = open_to_append(path)?;
    // Its lines are whole: the last byte is a line's end.
    pen.torn = match start.checked_sub(1) {
        Some(end) => {
            let mut last = [0];
            fault::point(Kind::Read, path)?;
            system::read_exact_at(&file, &mut last, end)?;
            last != [b'\n']
        }
        None => false,
    };
    Ok(Some((file, kept.len() as u64)))
}
