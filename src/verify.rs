//! Compares two images, or one image's results on two devices, sample by sample.

use crate::engine::executor;
use crate::formats::{Reader, Reading};
use crate::gpu::driver::Gpu;
use crate::image::metadata::Diagnostics;
use crate::image::number::Number;
use crate::image::{Image, Samples, Shape, Values};
use crate::ops::{self, OpResult};
use crate::os::Source;
use crate::os::console;
use crate::os::name::Shown;
use crate::os::outcome::Outcome;
use crate::timing::Timeline;
use anyhow::{Context, Error, Result};
use serde::Serialize;
use std::fmt;
use std::path::Path;

/// The difference between two images.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Difference {
    /// The files differ in their number of pages.
    Pages {
        /// The number of pages of each file.
        pages: [usize; 2],
    },
    /// Their shapes differ.
    Shape {
        /// Both shapes as text.
        shapes: [String; 2],
    },
    /// Some samples differ.
    Samples {
        /// The number of differing samples.
        differ: usize,
        /// The number of all samples.
        samples: usize,
        /// The largest difference.
        most: Number,
        /// The first differing sample, row by row.
        first: Place,
    },
}

/// The place of a sample, and its value in both images.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Place {
    /// Its column, from 0.
    pub x: usize,
    /// Its row, from 0.
    pub y: usize,
    /// Its channel, from 0.
    pub channel: usize,
    /// Its value in each image.
    pub values: [Number; 2],
}

/// The version of the JSON object.
const SCHEMA: u32 = 1;

/// The JSON object of a comparison.
#[derive(Serialize)]
struct Verdict<'a> {
    schema: u32,
    equal: bool,
    /// The page that differs, counted from 1; `None` for files of one page.
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<usize>,
    #[serde(flatten)]
    difference: Option<&'a Difference>,
}

/// The difference between `a` and `b`, if there is one; `values` is the type of the samples of
/// both.
pub fn difference(a: &Image, b: &Image, values: Values) -> Option<Difference> {
    let shape = a.shape();
    if shape != b.shape() {
        return Some(Difference::Shape {
            shapes: [shape.to_string(), b.shape().to_string()],
        });
    }
    if a.samples() == b.samples() {
        return None;
    }
    let value = |image: &Image, i: usize| match image.samples() {
        Samples::U8(samples) => u64::from(samples[i]),
        Samples::U16(samples) => samples[i].into(),
        Samples::U32(samples) => samples[i].into(),
        Samples::U64(samples) => samples[i],
    };
    let differing = (0..shape.samples()).filter(|&i| value(a, i) != value(b, i));
    let (mut differ, mut most, mut first) = (0, Number::Whole(0), None);
    for i in differing {
        let (a, b) = (value(a, i), value(b, i));
        differ += 1;
        let difference = match (values.number(a), values.number(b)) {
            (Number::Whole(a), Number::Whole(b)) => Number::Whole((a - b).abs()),
            // Of two NaNs with other bits, and of a NaN and a number, there is none.
            (a, b) => Number::Real((a.as_f64() - b.as_f64()).abs() as f32),
        };
        if difference > most {
            most = difference;
        }
        let (pixel, channel) = (i / shape.channels, i % shape.channels);
        first.get_or_insert(Place {
            x: pixel % shape.width,
            y: pixel / shape.width,
            channel,
            values: [values.number(a), values.number(b)],
        });
    }
    first.map(|first| Difference::Samples {
        differ,
        samples: shape.samples(),
        most,
        first,
    })
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Difference::Pages { pages: [a, b] } => {
                write!(f, "different numbers of pages: {a} and {b}")
            }
            Difference::Shape { shapes: [a, b] } => write!(f, "different shapes: {a} and {b}"),
            Difference::Samples {
                differ,
                samples,
                most,
                first:
                    Place {
                        x,
                        y,
                        channel,
                        values: [a, b],
                    },
            } => write!(
                f,
                "{differ} of {samples} samples differ, by at most {most}; first at column {x}, row {y}, channel {channel}: {a} and {b}"
            ),
        }
    }
}

/// The difference between two files.
#[derive(Debug)]
pub struct FileDifference {
    /// The page that differs, counted from 1; `None` for files of one page, and if the numbers of pages differ.
    pub page: Option<usize>,
    /// The difference.
    pub difference: Difference,
}

impl fmt::Display for FileDifference {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if let Some(page) = self.page {
            write!(f, "page {page}: ")?;
        }
        self.difference.fmt(f)
    }
}

/// Compares the pixels of two files, page by page; returns the difference of the first pages that differ.
///
/// # Errors
/// One of them cannot be read.
pub fn compare(a: &Path, b: &Path) -> Result<Option<FileDifference>> {
    let (from_a, from_b) = (open(a)?, open(b)?);
    let (mut pages_a, mut pages_b) = (pages(a, &from_a)?, pages(b, &from_b)?);
    let counts = [pages_a.pages().len(), pages_b.pages().len()];
    for index in 0..counts[0].min(counts[1]) {
        let (image_a, values_a) = page(a, &mut pages_a, index)?;
        let (image_b, values_b) = page(b, &mut pages_b, index)?;
        let difference = if values_a.signed == values_b.signed {
            difference(&image_a, &image_b, values_a)
        } else {
            let kind = |shape: Shape, values: Values| format!("{shape}, values of {values}");
            Some(Difference::Shape {
                shapes: [
                    kind(image_a.shape(), values_a),
                    kind(image_b.shape(), values_b),
                ],
            })
        };
        if let Some(difference) = difference {
            let page = (counts != [1, 1]).then_some(index + 1);
            return Ok(Some(FileDifference { page, difference }));
        }
    }
    Ok((counts[0] != counts[1]).then_some(FileDifference {
        page: None,
        difference: Difference::Pages { pages: counts },
    }))
}

/// Compares the pixels of two files, and prints the difference of the first pages that differ. The outcome says whether the
/// files are equal.
pub fn files(a: &Path, b: &Path, json: bool) -> Result<Outcome> {
    let difference = compare(a, b)?;
    console::print(&match (json, &difference) {
        (true, difference) => serde_json::to_string(&Verdict {
            schema: SCHEMA,
            equal: difference.is_none(),
            page: difference.as_ref().and_then(|found| found.page),
            difference: difference.as_ref().map(|found| &found.difference),
        })?,
        (false, None) => "equal".into(),
        (false, Some(difference)) => difference.to_string(),
    })?;
    Ok(match difference {
        None => Outcome::Done,
        Some(_) => Outcome::SomeFailed,
    })
}

fn open(path: &Path) -> Result<Source> {
    Source::open(path).with_context(|| format!("cannot read {}", path.shown()))
}

fn pages<'a>(path: &Path, source: &'a Source) -> Result<Reader<'a>> {
    Reader::open(source, &Reading::default())
        .with_context(|| format!("cannot read {}", path.shown()))
}

/// Decodes a page; returns it with the type of its samples.
fn page(path: &Path, reader: &mut Reader, index: usize) -> Result<(Image, Values)> {
    let mut read = || {
        reader.turn_to(index)?;
        let image = reader.decode()?;
        let metadata = reader.metadata(&mut Diagnostics::default())?;
        let values = metadata.values(image.shape().depth);
        Ok::<_, Error>((image, values))
    };
    read().with_context(|| format!("cannot read {}", path.shown()))
}

/// Runs every operation on one image on the CPU and on a GPU, and prints those with different
/// results. The outcome says whether there are any.
pub fn devices(input: &Path, ordinal: usize) -> Result<Outcome> {
    let gpu = Gpu::open(ordinal)?;
    let source = open(input)?;
    let (image, values) = page(input, &mut pages(input, &source)?, 0)?;
    let mut outcome = Outcome::Done;
    for op in ops::examples() {
        let shape = image.shape();
        if ops::check(&*op, &shape).is_err() || ops::gpu_obstacle(&*op, &shape).is_some() {
            continue;
        }
        let cpu = executor::on_cpu(&*op, image.clone(), &mut Timeline::default())?;
        let cuda = executor::on_gpu(&*op, image.clone(), &gpu, &mut Timeline::default())?;
        let verdict = match (&cpu.result, &cuda.result) {
            _ if cpu == cuda => "equal".into(),
            (OpResult::Image(a), OpResult::Image(b)) => difference(a, b, values)
                .map_or("different ranges or warnings".into(), |difference| {
                    difference.to_string()
                }),
            _ => "different numbers".into(),
        };
        if verdict != "equal" {
            outcome = Outcome::SomeFailed;
        }
        console::print(&format!("{op:?}: {verdict}"))?;
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Depth;

    fn image(values: [u16; 6]) -> Image {
        let shape = Shape {
            width: 3,
            height: 2,
            channels: 1,
            depth: Depth::Sixteen,
        };
        Image::new(shape, values.to_vec().into())
    }

    #[test]
    fn differences_are_counted() {
        let a = image([1, 2, 3, 4, 5, 6]);
        let b = image([1, 2, 3, 4, 65535, 5]);
        for (signed, values) in [(false, [5, 65535]), (true, [-32763, 32767])] {
            let values = values.map(Number::Whole);
            let kind = Values {
                depth: Depth::Sixteen,
                signed,
            };
            assert_eq!(difference(&a, &a, kind), None);
            let expected = Difference::Samples {
                differ: 2,
                samples: 6,
                most: Number::Whole(65530),
                first: Place {
                    x: 1,
                    y: 1,
                    channel: 0,
                    values,
                },
            };
            assert_eq!(difference(&a, &b, kind), Some(expected));
        }
    }
}
