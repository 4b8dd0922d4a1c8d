//! Figures: those that were published, times that were measured, and how a number is written.

/// A published figure, in the paper's own unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// GB/s, counting the same bytes as the row.
    Rate(f64),
    /// GB/s of an image of so many bytes, where the paper does not tell whether it counts the bytes
    /// written too. The image is counted once, and compared is the time for an image.
    Image(f64, u64),
    /// Calls per second.
    Calls(f64),
    /// Milliseconds, for this number of bytes.
    Millis(f64, u64),
}

/// What a paper states of a row, and the machine on which it was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// The figure that is compared with, if it states a single one.
    pub figure: Option<Figure>,
    /// The statement in its own words, if it is more or less than one figure: `10–30 GB/s`.
    pub words: Option<&'static str>,
    /// The machine.
    pub machine: &'static str,
}

impl Published {
    /// Seconds for the work of a row that moves `bytes`, or for a call.
    pub fn seconds(&self, bytes: u64) -> Option<f64> {
        Some(match self.figure? {
            Figure::Rate(rate) => bytes as f64 / rate / 1e9,
            Figure::Image(rate, image) => image as f64 / rate / 1e9,
            Figure::Calls(calls) => 1.0 / calls,
            Figure::Millis(ms, then) => ms / 1e3 * bytes as f64 / then as f64,
        })
    }

    /// The statement as the paper gives it: `30 GB/s (GTX 460)`.
    pub fn text(&self) -> String {
        let text = match (self.words, self.figure) {
            (Some(words), _) => words.into(),
            (None, Some(Figure::Rate(rate) | Figure::Image(rate, _))) => format!("{rate} GB/s"),
            (None, Some(Figure::Calls(calls))) => format!("{calls:.0} calls/s"),
            (None, Some(Figure::Millis(ms, _))) => format!("{ms} ms"),
            (None, None) => String::new(),
        };
        format!("{text} ({})", self.machine)
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
    /// Whether the measurements differ so much that the median says little.
    pub fn is_unstable(&self) -> bool {
        self.spread >= 0.05
    }

    /// Summarises measurements in seconds; at least one.
    pub fn from_seconds(mut seconds: Vec<f64>) -> Time {
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
