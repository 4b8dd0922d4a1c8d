//! The progress of a batch, on standard error: a bar on a terminal, and otherwise a line every few
//! seconds.

use crate::console;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::env;
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

/// The interval between lines if standard error is no terminal.
const PAUSE: Duration = Duration::from_secs(10);

/// The verbosity of a batch.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct Verbosity {
    /// Say nothing but errors
    #[arg(short, long, help_heading = "Many files")]
    pub quiet: bool,

    /// Show no progress
    #[arg(long, help_heading = "Many files")]
    pub no_progress: bool,
}

impl Verbosity {
    /// The same, but of steps that nobody needs to hear of.
    pub fn silent(self) -> Verbosity {
        Verbosity {
            quiet: true,
            no_progress: true,
        }
    }
}

/// The progress of a batch.
#[derive(Debug)]
pub struct Progress {
    verbosity: Verbosity,
    bar: ProgressBar,
    begun: Instant,
    told: Instant,
    files: usize,
    done: usize,
    failed: usize,
    bytes: u64,
}

impl Progress {
    /// Starts at 0 of `files` files.
    pub fn new(files: usize, verbosity: Verbosity) -> Progress {
        let hidden = verbosity.quiet || verbosity.no_progress || !stderr().is_terminal();
        let target = match hidden {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr(),
        };
        let bar = ProgressBar::with_draw_target(Some(files as u64), target);
        let bars = match env::var_os("NO_COLOR").is_some() {
            true => "{bar:30}",
            false => "{bar:30.cyan}",
        };
        let template = format!("{bars} {{pos}} of {{len}} files, {{msg}}, {{eta}} left");
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style);
        }
        let now = Instant::now();
        Progress {
            verbosity,
            bar,
            begun: now,
            told: now,
            files,
            done: 0,
            failed: 0,
            bytes: 0,
        }
    }

    /// Counts one finished file: `bytes` of samples, or a failure.
    pub fn add(&mut self, bytes: u64, failed: bool) {
        self.done += 1;
        self.failed += usize::from(failed);
        self.bytes += bytes;
        self.bar.set_message(self.rate());
        self.bar.inc(1);
        let plain = self.bar.is_hidden() && !self.verbosity.quiet && !self.verbosity.no_progress;
        if plain && self.told.elapsed() >= PAUSE {
            self.told = Instant::now();
            let left = self.begun.elapsed().as_secs_f64() / self.done as f64
                * (self.files - self.done) as f64;
            console::tell(&format!(
                "gpuimg: {} of {} files, {}, {} left",
                self.done,
                self.files,
                self.rate(),
                HumanDuration(Duration::from_secs_f64(left))
            ));
        }
    }

    fn rate(&self) -> String {
        let seconds = self.begun.elapsed().as_secs_f64().max(1e-3);
        let mut text = format!("{:.0} MB/s of pixels", self.bytes as f64 / seconds / 1e6);
        if self.failed > 0 {
            text += &format!(", {} failed", self.failed);
        }
        text
    }

    /// Prints a line on standard error without disturbing the bar.
    pub fn say(&self, line: &str) {
        self.bar.suspend(|| console::tell(line));
    }

    /// As `say`, unless `--quiet`.
    pub fn mention(&self, line: &str) {
        if !self.verbosity.quiet {
            self.say(line);
        }
    }

    /// Removes the bar and prints the summary.
    pub fn finish(self, skipped: usize) {
        self.bar.finish_and_clear();
        if self.verbosity.quiet {
            return;
        }
        let time = self.begun.elapsed().as_secs_f64().max(1e-9);
        let fine = self.done - self.failed - skipped;
        let mut line = format!("gpuimg: {fine} of {} files done", self.files);
        if skipped > 0 {
            line += &format!(", {skipped} were done before");
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
