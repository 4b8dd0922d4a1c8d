//! The result of `sum`, as a line of text and as a JSON object.

use crate::image::number::Number;
use crate::image::{Shape, Values};
use crate::ops::MinMax;
use crate::ops::exact::Exact;
use crate::os::name::{self, Shown};
use serde::Serialize;
use std::borrow::Cow;
use std::fmt::{self, Write};
use std::path::Path;

/// Version of the JSON objects.
const SCHEMA: u32 = 2;

/// A sum as it is printed: a whole number, or the f64 that is nearest to the exact sum.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Printed {
    /// Of integers.
    Whole(i128),
    /// Of floating-point numbers.
    Real(f64),
}

impl Printed {
    fn as_f64(self) -> f64 {
        match self {
            Printed::Whole(sum) => sum as f64,
            Printed::Real(sum) => sum,
        }
    }
}

/// The shortest decimal that is read back as the same f64.
impl fmt::Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match *self {
            Printed::Whole(sum) => sum.fmt(f),
            Printed::Real(sum) if sum != 0.0 && !(1e-5..1e16).contains(&sum.abs()) => {
                write!(f, "{sum:e}")
            }
            Printed::Real(sum) => sum.fmt(f),
        }
    }
}

/// The total of one channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total {
    /// The sum of the channel's samples in memory.
    pub sum: Exact,
    /// The smallest and the largest sample; `None` unless requested.
    pub range: Option<MinMax<u64>>,
}

impl Total {
    fn with(&self, other: &Total) -> Total {
        Total {
            sum: self.sum.plus(other.sum),
            range: (self.range.zip(other.range)).map(|(a, b)| a.merge(b)),
        }
    }
}

/// The numbers of a channel, in the values of the image.
#[derive(Debug)]
pub struct Numbers {
    /// The channel; `all` for all colours.
    pub name: &'static str,
    /// The sum.
    pub sum: Printed,
    /// The smallest and the largest value and the mean; `None` unless requested.
    pub range: Option<RangeRecord>,
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
    /// Whether samples are integers with a sign.
    pub signed: bool,
}

impl Totals {
    /// Those of the only page of a file, without sign.
    pub fn new(shape: Shape, channels: Vec<Total>) -> Totals {
        Totals {
            shape,
            channels,
            page: 1,
            one_of_several: false,
            signed: false,
        }
    }

    /// The type of the samples.
    fn values(&self) -> Values {
        Values {
            depth: self.shape.depth,
            signed: self.signed,
        }
    }

    /// The smallest and the largest value, without alpha.
    pub fn range(&self) -> Option<(Number, Number)> {
        let MinMax { min, max } = self.together().range?;
        Some((self.values().number(min), self.values().number(max)))
    }

    /// The total over all colour channels, without alpha.
    pub fn together(&self) -> Total {
        let both = |a: Total, b: Total| a.with(&b);
        let colours = self.channels.iter().take(self.shape.colours());
        colours.copied().reduce(both).unwrap_or(Total {
            sum: Exact::zero(self.shape.depth),
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
        let page = if self.one_of_several {
            format!(", page {}", self.page)
        } else {
            String::new()
        };
        let mut line = format!(
            "{}{}: {}",
            input.shown(),
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
            file: name::in_json(input),
            file_hex: name::hex(input),
            page: self.page,
            width: self.shape.width,
            height: self.shape.height,
            depth: self.shape.depth.bits(),
            float: self.shape.depth.is_float(),
            signed: self.signed,
            total: self.record(&self.together(), self.shape.colours()),
            channels: channels.collect(),
        })
    }

    fn record(&self, total: &Total, channels: usize) -> TotalRecord {
        TotalRecord {
            sum: self.sum(total, channels),
            range: total.range.map(|MinMax { min, max }| RangeRecord {
                min: self.values().number(min),
                max: self.values().number(max),
                mean: self.mean(total, channels),
            }),
        }
    }

    /// The numbers of all colours together, and then of each channel.
    pub fn numbers(&self) -> Vec<Numbers> {
        let numbers = |name, total: &Total, channels| Numbers {
            name,
            sum: self.sum(total, channels),
            range: self.record(total, channels).range,
        };
        let mut all = vec![numbers("all", &self.together(), self.shape.colours())];
        all.extend(self.named().map(|(name, total)| numbers(name, total, 1)));
        all
    }

    fn named(&self) -> impl Iterator<Item = (&'static str, &Total)> {
        let names = self.shape.channel_names().iter();
        names.copied().zip(&self.channels)
    }

    fn mean(&self, total: &Total, channels: usize) -> f64 {
        self.sum(total, channels).as_f64() / (self.shape.pixels() * channels) as f64
    }

    /// The sum of the values in `channels` channels, where integers with a sign count from the
    /// middle.
    fn sum(&self, total: &Total, channels: usize) -> Printed {
        let samples = (self.shape.pixels() * channels) as i128;
        match total.sum {
            Exact::Whole(sum) if self.signed => {
                Printed::Whole(sum - (samples << (self.shape.depth.bits() - 1)))
            }
            Exact::Whole(sum) => Printed::Whole(sum),
            Exact::Real(sum) => Printed::Real(sum.to_f64()),
            Exact::Double(sum) => Printed::Real(sum.to_f64()),
        }
    }

    fn figures(&self, total: &Total, channels: usize) -> String {
        let all = total.range.map(|MinMax { min, max }| {
            format!(
                ", min {}, max {}, mean {}",
                self.values().number(min),
                self.values().number(max),
                match total.sum {
                    Exact::Whole(_) => format!("{:.4}", self.mean(total, channels)),
                    Exact::Real(_) | Exact::Double(_) =>
                        Printed::Real(self.mean(total, channels)).to_string(),
                }
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
    /// The bytes of a name that is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    file_hex: Option<String>,
    page: usize,
    width: usize,
    height: usize,
    depth: u32,
    #[serde(skip_serializing_if = "is_false")]
    float: bool,
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
        file: name::in_json(input),
        file_hex: name::hex(input),
        error,
    })
}

#[derive(Serialize)]
struct FailureRecord<'a> {
    schema: u32,
    status: &'static str,
    file: Cow<'a, str>,
    /// The bytes of a name that is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    file_hex: Option<String>,
    error: &'a str,
}

#[derive(Serialize)]
struct ChannelRecord {
    name: &'static str,
    #[serde(flatten)]
    total: TotalRecord,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

#[derive(Serialize)]
struct TotalRecord {
    sum: Printed,
    #[serde(flatten)]
    range: Option<RangeRecord>,
}

/// What `--all` adds.
#[derive(Debug, Serialize)]
pub struct RangeRecord {
    /// The smallest value.
    pub min: Number,
    /// The largest value.
    pub max: Number,
    /// The mean.
    pub mean: f64,
}
