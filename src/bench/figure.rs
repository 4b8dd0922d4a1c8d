//! Figures: those that were published, times that were measured, and how a number is written.

/// A published figure, in the paper's own unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// GB/s, counting the same bytes as the row.
    Rate(f64),
    /// Calls a second.
    Calls(f64),
    /// Milliseconds, for this number of bytes.
    Millis(f64, u64),
}

/// A published figure and the machine on which it was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// The figure.
    pub figure: Figure,
    /// The machine.
    pub machine: &'static str,
}

impl Published {
    /// GB/s, or calls a second where the row counts calls.
    pub fn rate(&self) -> f64 {
        match self.figure {
            Figure::Rate(rate) | Figure::Calls(rate) => rate,
            Figure::Millis(ms, bytes) => bytes as f64 / ms / 1e6,
        }
    }

    /// The figure as the paper gives it: `30 GB/s (GTX 460)`.
    pub fn text(&self) -> String {
        let figure = match self.figure {
            Figure::Rate(rate) => format!("{} GB/s", short(rate)),
            Figure::Calls(calls) => format!("{calls:.0} calls/s"),
            Figure::Millis(ms, _) => format!("{ms} ms"),
        };
        format!("{figure} ({})", self.machine)
    }
}

/// A number with about three digits.
pub fn short(number: f64) -> String {
    match number {
        number if number >= 100.0 => format!("{number:.0}"),
        number if number >= 10.0 => format!("{number:.1}"),
        number if number >= 0.1 => format!("{number:.2}"),
        number => format!("{number:.5}"),
    }
}

/// The time of one launch, call or pass, from repeated measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Time {
    /// Median, in seconds.
    pub median: f64,
    /// The fastest measurement, in seconds: the one least disturbed by other programs.
    pub fastest: f64,
    /// The interquartile range divided by the median.
    pub spread: f64,
    /// The number of measurements.
    pub runs: usize,
}

impl Time {
    /// Summarises measurements in seconds; at least one.
    pub fn of(mut seconds: Vec<f64>) -> Time {
        seconds.sort_by(f64::total_cmp);
        let at = |part: usize| seconds[(seconds.len() - 1) * part / 4];
        Time {
            median: at(2),
            fastest: at(0),
            spread: (at(3) - at(1)) / at(2).max(1e-12),
            runs: seconds.len(),
        }
    }
}
