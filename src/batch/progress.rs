//! The progress of a batch, on standard error: a bar on a terminal, and otherwise a line every few
//! seconds. A bar is never wider than the terminal, whose lines above would be lost when it is drawn
//! again; and there is none where results are printed on the same terminal.

use super::item::Item;
use super::options::Verbosity;
use super::tally::Screen;
use crate::os::console;
use crate::os::count::plural;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::env;
use std::time::{Duration, Instant};

/// The interval between lines if standard error is not a terminal.
const PAUSE: Duration = Duration::from_secs(10);

/// The columns of a bar that shows anything.
const LEAST: usize = 8;

/// The progress of a batch.
#[derive(Debug)]
pub struct Progress {
    verbosity: Verbosity,
    bar: ProgressBar,
    /// The bar's width in columns, for which its style was made.
    wide: Option<usize>,
    begun: Instant,
    printed: Instant,
    files: usize,
    done: usize,
    failed: usize,
    bytes: u64,
}

impl Progress {
    /// Starts at 0 of `files` files; `prints` says that results are printed on standard output
    /// meanwhile.
    pub fn new(files: usize, verbosity: Verbosity, prints: bool) -> Progress {
        let hidden = verbosity.quiet
            || verbosity.no_progress
            || console::columns().is_none()
            || prints && console::is_one_terminal();
        let target = if hidden {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(Some(files as u64), target);
        let now = Instant::now();
        let mut progress = Progress {
            verbosity,
            bar,
            wide: None,
            begun: now,
            printed: now,
            files,
            done: 0,
            failed: 0,
            bytes: 0,
        };
        // Before anything is printed above it, which draws it again.
        if !progress.bar.is_hidden() {
            progress.draw(console::columns().unwrap_or(80));
        }
        progress
    }

    /// The state in parts, the most important first.
    fn state(&self) -> Vec<String> {
        let seconds = self.begun.elapsed().as_secs_f64().max(1e-3);
        let files = plural(self.files, "file");
        let mut parts = vec![format!("{} of {files}", self.done)];
        if self.failed > 0 {
            parts.push(format!("{} failed", self.failed));
        }
        if self.done == 0 {
            return parts;
        }
        if self.done < self.files {
            let each = seconds / self.done as f64;
            let left = each * (self.files - self.done) as f64;
            if left >= 1.0 {
                parts.push(format!("{} left", duration(left)));
            }
        }
        let rate = self.bytes as f64 / seconds / 1e6;
        parts.push(format!("{rate:.0} MB/s of pixels"));
        parts
    }

    /// Draws the bar, and of the state as many parts as fit beside it in one line of so many
    /// `columns`, the last of which stays free.
    fn draw(&mut self, columns: usize) {
        let room = columns.saturating_sub(1);
        let mut parts = self.state();
        let length = |parts: &[String]| parts.join(", ").chars().count();
        // The rate, which is the last, makes room for a bar; the other parts do not.
        if parts.len() > 1 && length(&parts) + 1 + LEAST > room {
            parts.pop();
        }
        while parts.len() > 1 && length(&parts) > room {
            parts.pop();
        }
        let text: String = parts.join(", ").chars().take(room).collect();
        let left = room.saturating_sub(text.chars().count() + 1);
        let wide = if left < LEAST { 0 } else { left.min(30) };
        if self.wide != Some(wide) {
            self.wide = Some(wide);
            let template = match (wide, env::var_os("NO_COLOR").is_some()) {
                (0, _) => "{msg}".into(),
                (_, true) => format!("{{bar:{wide}}} {{msg}}"),
                (_, false) => format!("{{bar:{wide}.cyan}} {{msg}}"),
            };
            if let Ok(style) = ProgressStyle::with_template(&template) {
                self.bar.set_style(style);
            }
        }
        self.bar.set_message(text);
        self.bar.set_position(self.done as u64);
    }

    /// Removes the bar and prints the summary.
    pub fn finish(self, skipped: usize) {
        self.bar.finish_and_clear();
        if self.verbosity.quiet {
            return;
        }
        let time = self.begun.elapsed().as_secs_f64().max(1e-9);
        let fine = self.done - self.failed - skipped;
        let mut line = format!("gpuimg: {fine} of {} done", plural(self.files, "file"));
        if skipped > 0 {
            line += &format!(", {skipped} already done");
        }
        if self.failed > 0 {
            line += &format!(", {} failed", self.failed);
        }
        console::tell(&format!(
            "{line}; {time:.2} s, {:.1} files/s, {:.0} MB/s of pixels",
            fine as f64 / time,
            self.bytes as f64 / time / 1e6
        ));
    }
}

impl Screen for Progress {
    fn add(&mut self, _: &Item, bytes: u64, failed: bool) {
        self.done += 1;
        self.failed += usize::from(failed);
        self.bytes += bytes;
        if !self.bar.is_hidden() {
            self.draw(console::columns().unwrap_or(80));
        }
        let plain = self.bar.is_hidden() && !self.verbosity.quiet && !self.verbosity.no_progress;
        if plain && self.printed.elapsed() >= PAUSE {
            self.printed = Instant::now();
            console::tell(&format!("gpuimg: {}", self.state().join(", ")));
        }
    }

    fn say(&self, line: &str) {
        self.bar.suspend(|| console::tell(line));
    }

    fn mention(&self, line: &str) {
        if !self.verbosity.quiet {
            self.say(line);
        }
    }
}

/// Seconds in the unit that suits them.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}
