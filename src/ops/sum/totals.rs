//! What a sum found, as a line of text and as a JSON object.

use crate::image::Shape;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

/// Version of the JSON objects.
const SCHEMA: u32 = 2;

/// The total of one channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total {
    /// The sum of the channel's samples; 2⁴⁸ samples of 16 bits cannot overflow it.
    pub sum: u64,
    /// The smallest and the largest sample; `None` unless requested.
    pub range: Option<(u16, u16)>,
}

impl Total {
    fn with(&self, other: &Total) -> Total {
        Total {
            sum: self.sum + other.sum,
            range: (self.range.zip(other.range)).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1))),
        }
    }
}

/// The totals of an image, channel by channel; alpha, if present, is the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Totals {
    /// The image's shape.
    pub shape: Shape,
    /// A total for each channel.
    pub channels: Vec<Total>,
    /// The page's number in its file, counted from 1.
    pub page: usize,
    /// Whether other pages of the file are added up too, so that the page is named.
    pub one_of_several: bool,
    /// The sample that stands for 0: the middle of the range if samples are signed.
    pub zero: u16,
}

impl Totals {
    /// The total over all colour channels, without alpha.
    pub fn together(&self) -> Total {
        let both = |a: Total, b: Total| a.with(&b);
        let colours = self.channels.iter().take(self.shape.colours());
        colours.copied().reduce(both).unwrap_or(Total {
            sum: 0,
            range: None,
        })
    }

    /// Adds the totals of another image with as many channels.
    pub fn join(&mut self, other: &Totals) {
        for (total, more) in self.channels.iter_mut().zip(&other.channels) {
            *total = total.with(more);
        }
    }

    /// One line of text: the file, the total of its colours, and the total of each channel.
    pub fn text(&self, input: &Path) -> String {
        let page = match self.one_of_several {
            true => format!(", page {}", self.page),
            false => String::new(),
        };
        let mut line = format!(
            "{}{}: {}",
            input.display(),
            page,
            self.figures(&self.together(), self.shape.colours())
        );
        if self.shape.channels > 1 {
            let channels = self
                .named()
                .map(|(name, total)| format!("{name} {}", self.figures(total, 1)));
            let _ = write!(line, " ({})", channels.collect::<Vec<_>>().join("; "));
        }
        line
    }

    /// The same as one JSON object (docs/SCHEMAS.md).
    ///
    /// # Errors
    /// None that can occur: all keys are text.
    pub fn json(&self, input: &Path) -> serde_json::Result<String> {
        let channels = self.named().map(|(name, total)| ChannelRecord {
            name,
            total: self.record(total, 1),
        });
        serde_json::to_string(&TotalsRecord {
            schema: SCHEMA,
            status: "done",
            file: input.to_string_lossy(),
            page: self.page,
            width: self.shape.width,
            height: self.shape.height,
            depth: self.shape.depth.bits(),
            signed: self.zero != 0,
            total: self.record(&self.together(), self.shape.colours()),
            channels: channels.collect(),
        })
    }

    fn record(&self, total: &Total, channels: usize) -> TotalRecord {
        TotalRecord {
            sum: self.sum(total, channels),
            range: total.range.map(|(min, max)| RangeRecord {
                min: self.value(min),
                max: self.value(max),
                mean: self.mean(total, channels),
            }),
        }
    }

    fn named(&self) -> impl Iterator<Item = (&'static str, &Total)> {
        let names = self.shape.channel_names().iter();
        names.copied().zip(&self.channels)
    }

    fn mean(&self, total: &Total, channels: usize) -> f64 {
        self.sum(total, channels) as f64 / (self.shape.pixels() * channels) as f64
    }

    /// The sum of the values in `channels` channels, where samples count from `zero`.
    fn sum(&self, total: &Total, channels: usize) -> i64 {
        total.sum as i64 - i64::from(self.zero) * (self.shape.pixels() * channels) as i64
    }

    fn value(&self, sample: u16) -> i32 {
        i32::from(sample) - i32::from(self.zero)
    }

    fn figures(&self, total: &Total, channels: usize) -> String {
        let all = total.range.map(|(min, max)| {
            format!(
                ", min {}, max {}, mean {:.4}",
                self.value(min),
                self.value(max),
                self.mean(total, channels)
            )
        });
        format!(
            "sum {}{}",
            self.sum(total, channels),
            all.unwrap_or_default()
        )
    }
}

/// What `sum --json` prints of a page.
#[derive(Serialize)]
struct TotalsRecord<'a> {
    schema: u32,
    status: &'static str,
    file: Cow<'a, str>,
    page: usize,
    width: usize,
    height: usize,
    depth: u32,
    signed: bool,
    /// All colours together.
    #[serde(flatten)]
    total: TotalRecord,
    channels: Vec<ChannelRecord>,
}

/// The line of `sum --json` for a file that failed.
///
/// # Errors
/// None that can occur: all keys are text.
pub fn failure(input: &Path, error: &str) -> serde_json::Result<String> {
    serde_json::to_string(&FailureRecord {
        schema: SCHEMA,
        status: "failed",
        file: input.to_string_lossy(),
        error,
    })
}

#[derive(Serialize)]
struct FailureRecord<'a> {
    schema: u32,
    status: &'static str,
    file: Cow<'a, str>,
    error: &'a str,
}

#[derive(Serialize)]
struct ChannelRecord {
    name: &'static str,
    #[serde(flatten)]
    total: TotalRecord,
}

#[derive(Serialize)]
struct TotalRecord {
    sum: i64,
    #[serde(flatten)]
    range: Option<RangeRecord>,
}

/// What `--all` adds.
#[derive(Serialize)]
struct RangeRecord {
    min: i32,
    max: i32,
    mean: f64,
}
