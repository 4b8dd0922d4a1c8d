//! The status of a watch, on standard error: a line that stays on a terminal, and otherwise a line a
//! minute in which something happened, with the time, as logs of services have it.

use crate::batch::item::Item;
use crate::batch::options::Verbosity;
use crate::batch::tally::Screen;
use crate::os::console;
use crate::os::count;
use crate::os::name::Shown;
use crate::os::utc;
use crate::timing::Latencies;
use crate::timing::millis;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::VecDeque;
use std::io::{IsTerminal, stderr};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// The interval between lines if standard error is not a terminal.
const MINUTE: Duration = Duration::from_secs(60);

/// The number of seconds over which the rate on a terminal is averaged.
const WINDOW: usize = 10;

/// The columns of a terminal that does not report its size.
const COLUMNS: usize = 80;

/// The status of a watch, shared by the thread that records outcomes and the one that watches.
#[derive(Debug)]
pub struct Status(Mutex<State>);

#[derive(Debug)]
struct State {
    verbosity: Verbosity,
    terminal: bool,
    bar: ProgressBar,
    begun: Instant,
    done: u64,
    failed: u64,
    waiting: usize,
    last: String,
    /// The files done before each of the last seconds.
    seconds: VecDeque<u64>,
    latencies: Latencies,
    minute: Minute,
}

/// What was new since the last line.
#[derive(Debug)]
struct Minute {
    begun: Instant,
    done: u64,
    failed: u64,
    latencies: Latencies,
}

impl Status {
    /// A tally with all counts at 0.
    pub fn new(verbosity: Verbosity) -> Status {
        let terminal = stderr().is_terminal();
        let hidden = verbosity.quiet || verbosity.no_progress || !terminal;
        let target = if hidden {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        Status(Mutex::new(State {
            verbosity,
            terminal,
            bar,
            begun: Instant::now(),
            done: 0,
            failed: 0,
            waiting: 0,
            last: String::new(),
            seconds: VecDeque::new(),
            latencies: Latencies::default(),
            minute: Minute::new(),
        }))
    }

    fn with<R>(&self, work: impl FnOnce(&mut State) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Counts the latency of a file.
    pub fn took(&self, latency: Duration) {
        self.with(|state| {
            state.latencies.add(latency);
            state.minute.latencies.add(latency);
        });
    }

    /// The latencies of all files so far.
    pub fn latencies(&self) -> Latencies {
        self.with(|state| state.latencies.clone())
    }

    /// Shows how many files wait; called once a second.
    pub fn tick(&self, waiting: usize) {
        self.with(|state| {
            state.waiting = waiting;
            state.seconds.push_back(state.done);
            if state.seconds.len() > WINDOW {
                state.seconds.pop_front();
            }
            state.show();
            state.print_minute();
        });
    }

    /// Removes the status line and prints the summary.
    pub fn finish(&self, skipped: usize, left: usize) {
        self.with(|state| {
            state.bar.finish_and_clear();
            let done = count::plural(state.done as usize - skipped, "file");
            let mut line = format!("gpuimg: {done} done");
            for (count, what) in [
                (skipped as u64, "already done"),
                (state.failed, "failed"),
                (left as u64, "left for the next run"),
            ] {
                if count > 0 {
                    line += &format!(", {count} {what}");
                }
            }
            let time = state.begun.elapsed().as_secs_f64();
            line += &format!("; {time:.1} s");
            if !state.verbosity.quiet {
                state.say(&line);
            }
        });
    }
}

impl Screen for &Status {
    fn add(&mut self, item: &Item, _: u64, failed: bool) {
        self.with(|state| {
            if failed {
                state.failed += 1
            } else {
                state.done += 1
            }
            // Until the next tick.
            state.waiting = state.waiting.saturating_sub(1);
            let name = Path::new(item.input.file_name().unwrap_or_default());
            state.last = name.shown().into_owned();
            state.show();
        });
    }

    fn say(&self, line: &str) {
        self.with(|state| state.say(line));
    }

    fn mention(&self, line: &str) {
        self.with(|state| {
            if !state.verbosity.quiet {
                state.say(line);
            }
        });
    }
}

impl Minute {
    fn new() -> Minute {
        Minute {
            begun: Instant::now(),
            done: 0,
            failed: 0,
            latencies: Latencies::default(),
        }
    }
}

impl State {
    fn say(&self, line: &str) {
        if self.terminal {
            self.bar.suspend(|| console::tell(line))
        } else {
            console::tell(&format!("{} {line}", utc(SystemTime::now())))
        }
    }

    fn rate(&self) -> f64 {
        let first = self.seconds.front().copied().unwrap_or(0);
        let seconds = match self.seconds.len() {
            0 | 1 => self.begun.elapsed().as_secs_f64().max(1.0),
            count => (count - 1) as f64,
        };
        self.done.saturating_sub(first) as f64 / seconds
    }

    fn show(&self) {
        if self.bar.is_hidden() {
            return;
        }
        let columns = console::columns().unwrap_or(COLUMNS);
        // The last column stays empty: some terminals begin a new line after it.
        self.bar.set_message(self.line(columns - 1));
    }

    /// The status in at most `columns` columns, what matters most first.
    fn line(&self, columns: usize) -> String {
        let mut parts = vec![
            format!("{} done", self.done),
            format!("{:.1}/s", self.rate()),
            format!("{} waiting", self.waiting),
        ];
        if self.failed > 0 {
            parts.insert(1, format!("{} failed", self.failed));
        }
        if self.latencies.files() > 0 {
            parts.push(format!("p50 {}", millis(self.latencies.percentile(50.0))));
        }
        parts.push(self.last.clone());
        parts.retain(|part| !part.is_empty());
        let mut line = String::new();
        for part in parts {
            let comma = if line.is_empty() { "" } else { ", " };
            let left = columns.saturating_sub(line.chars().count() + comma.len());
            if part.chars().count() <= left {
                line = line + comma + &part;
            } else if left > 4 && part == self.last {
                // The end of a name tells more than its beginning.
                let from = part.chars().count() - (left - 1);
                let end: String = part.chars().skip(from).collect();
                line = line + comma + "…" + &end;
            }
        }
        line.chars().take(columns).collect()
    }

    fn print_minute(&mut self) {
        let (done, failed) = (
            self.done - self.minute.done,
            self.failed - self.minute.failed,
        );
        let quiet = self.terminal || self.verbosity.quiet || self.verbosity.no_progress;
        let time = self.minute.begun.elapsed();
        if time < MINUTE {
            return;
        }
        if !quiet && (done, failed) != (0, 0) {
            let mut line = format!(
                "gpuimg: {done} done in the last minute, {:.1}/s, {} waiting",
                done as f64 / time.as_secs_f64(),
                self.waiting
            );
            if failed > 0 {
                line += &format!(", {failed} failed");
            }
            let latencies = &self.minute.latencies;
            if latencies.files() > 0 {
                let [p50, p99] = [50.0, 99.0].map(|part| millis(latencies.percentile(part)));
                line += &format!("; latency p50 {p50}, p99 {p99}");
            }
            self.say(&format!("{line}; the last is {}", self.last));
        }
        self.minute = Minute {
            done: self.done,
            failed: self.failed,
            ..Minute::new()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit() {
        let status = Status::new(Verbosity::default());
        let long = "ein_sehr_langer_Name_µ_einer_Aufnahme_000123456789.tif";
        let name = Item::new(long.into(), long.into());
        for _ in 0..123 {
            (&mut &status).add(&name, 1, false);
            status.took(Duration::from_millis(12));
        }
        (&mut &status).add(&name, 1, true);
        for columns in 0..120 {
            let line = status.with(|state| state.line(columns));
            assert!(line.chars().count() <= columns, "{columns}: {line}");
        }
        let line = status.with(|state| state.line(39));
        assert!(line.starts_with("123 done, 1 failed, "), "{line}");
        let line = status.with(|state| state.line(79));
        assert!(
            line.contains(" waiting, p50 12") && line.ends_with("789.tif"),
            "{line}"
        );
    }
}
