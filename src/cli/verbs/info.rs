//! `info`: prints what each image is, from its header: size, sample type, pages, axes and metadata. A bad file is named, and
//! the others are described.

mod sheet;
mod survey;

use crate::batch::inputs::{self, Selection};
use crate::batch::item::Item;
use crate::cli::print_error;
use crate::engine::options::Common;
use crate::engine::{NamedSource, Resources, process_source};
use crate::formats::Reader;
use crate::gpu::{Choice, Devices};
use crate::image::metadata::{Axes, Axis, Diagnostics, Metadata, Resolution, Unit};
use crate::image::number::Number;
use crate::image::{Shape, Values};
use crate::ops::sum::Sum;
use crate::os::Source;
use crate::os::console;
use crate::os::count::{plural, size};
use crate::os::name::{self, Shown};
use crate::os::outcome::{Outcome, usage};
use anyhow::{Context, Result};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Version of the JSON objects.
const SCHEMA: u32 = 1;

/// Prints a line or a JSON object for each image; with `range` the images are decoded, for their smallest and largest
/// values. With `html` it writes a page about all of them instead.
///
/// # Errors
/// A wrong use, and standard output that cannot be written; a file that cannot be read is named and counted.
pub fn run(
    inputs: &[PathBuf],
    selection: &Selection,
    json: bool,
    range: bool,
    html: Option<&Path>,
    common: &Common,
) -> Result<Outcome> {
    common.check()?;
    let found = inputs::collect(inputs, selection, &common.reading, None).map_err(usage)?;
    if let Some(path) = html {
        return sheet::write(&found, path, common);
    }
    let mut outcome = Outcome::Done;
    for unread in &found.unread {
        print_error(&unread.error());
        outcome = Outcome::SomeFailed;
    }
    for item in &found.items {
        match describe(item, range, common) {
            Ok(about) if json => console::print(&about.json(&item.input).to_string())?,
            Ok(about) => console::print(&about.line(&item.input))?,
            Err(error) => {
                print_error(&error);
                outcome = Outcome::SomeFailed;
            }
        }
    }
    Ok(outcome)
}

/// What an image is, with `range` also the range of its values.
///
/// # Errors
/// A file that cannot be read, with its name.
fn describe(item: &Item, range: bool, common: &Common) -> Result<About> {
    let cannot_read = || format!("cannot read {}", item.input.shown());
    let source = item.source().with_context(cannot_read)?;
    let mut about = About::read(&source, common).with_context(cannot_read)?;
    if range {
        about.range = range_of_all_pages(&item.input, &source, common)?;
    }
    Ok(about)
}

/// What an image file is.
struct About {
    format: &'static str,
    bytes: u64,
    /// The shape of the first page.
    shape: Shape,
    pages: usize,
    axes: Option<Axes>,
    metadata: Metadata,
    /// The smallest and the largest value of all pages, without alpha.
    range: Option<(Number, Number)>,
}

impl About {
    /// What the header of a file says.
    ///
    /// # Errors
    /// The reason why it cannot be read, without its name.
    fn read(source: &Source, common: &Common) -> Result<About> {
        let reader = Reader::open(source, &common.reading)?;
        let metadata = reader.metadata(&mut Diagnostics::default())?;
        Ok(About {
            format: reader.format().name,
            bytes: source.stored_bytes(),
            shape: reader.shape(),
            pages: reader.pages().len(),
            axes: reader.axes(),
            metadata,
            range: None,
        })
    }

    fn values(&self) -> Values {
        self.metadata.values(self.shape.depth)
    }

    /// The line for people: `scan.tif: TIFF, 640×512 grey, 16 bits, 12 pages (C=2 Z=6), 1.2 MB`.
    fn line(&self, input: &Path) -> String {
        format!("{}: {}", input.shown(), self.facts())
    }

    /// The format and the type of the samples: `TIFF, grey, 16 bits`.
    fn type_text(&self) -> String {
        let sign = if self.values().signed { ", signed" } else { "" };
        let (kind, depth) = (self.shape.kind(), self.shape.depth);
        format!("{}, {kind}, {depth}{sign}", self.format)
    }

    /// The bytes of the file, as a part of those of the samples of all pages if they are like the first.
    fn share_of_samples(&self) -> f64 {
        self.bytes as f64 / (self.shape.bytes() as f64 * self.pages as f64)
    }

    /// The facts in a line: `TIFF, 640×512 grey, 16 bits, 12 pages (C=2 Z=6), 1.2 MB`.
    fn facts(&self) -> String {
        let mut parts = vec![self.format.to_string(), self.shape.to_string()];
        if self.values().signed {
            parts.push("signed".into());
        }
        if self.pages > 1 {
            let axes = self
                .axes
                .map(|axes| format!(" ({axes})"))
                .unwrap_or_default();
            parts.push(format!("{} pages{axes}", self.pages));
        }
        if let Some(most) = self.metadata.maxval {
            parts.push(format!("values up to {most}"));
        }
        if let Some(orientation) = self.metadata.orientation.filter(|&turn| turn != 1) {
            parts.push(format!("orientation {orientation}"));
        }
        parts.extend(self.metadata.resolution.and_then(resolution_text));
        if let Some((min, max)) = self.range {
            parts.push(format!("range {min}:{max}"));
        }
        match self.metadata.own.names().len() {
            0 => {}
            own => parts.push(plural(own, "metadata field")),
        }
        parts.push(match self.bytes {
            few @ ..100_000 => format!("{few} bytes"),
            many => size(many),
        });
        parts.join(", ")
    }

    fn json(&self, input: &Path) -> serde_json::Value {
        let size = |axis| self.axes.map(|axes| axes.size(axis));
        let mut object = json!({
            "schema": SCHEMA,
            "input": name::in_json(input),
            "format": self.format,
            "bytes": self.bytes,
            "width": self.shape.width,
            "height": self.shape.height,
            "channels": self.shape.channels,
            "depth": self.shape.depth.bits(),
            "float": self.shape.depth.is_float(),
            "signed": self.values().signed,
            "pages": self.pages,
            "axes": self.axes.map(|_| json!({
                "c": size(Axis::C), "z": size(Axis::Z), "t": size(Axis::T),
            })),
            "maxval": self.metadata.maxval,
            "orientation": self.metadata.orientation,
            "pixels_per_metre": self.metadata.resolution.and_then(|it| it.per_metre()),
            "range": self.range.map(|(min, max)| json!({"min": min, "max": max})),
            "metadata": self.metadata.own.names(),
        });
        if let (Some(hex), Some(fields)) = (name::hex(input), object.as_object_mut()) {
            fields.insert("input_hex".into(), hex.into());
        }
        object
    }
}

/// The smallest and the largest value of all pages, without alpha and without values that are not finite; `None` if there are
/// none.
fn range_of_all_pages(
    input: &Path,
    source: &Source,
    common: &Common,
) -> Result<Option<(Number, Number)>> {
    let devices = Devices::new(Choice::Cpu);
    let resources = Resources {
        devices: &devices,
        budget: None,
        reading: common.reading,
        require_regular_file: false,
        gpu_times: false,
    };
    let all = Sum {
        all: true,
        // They count in the sum, which is not used, and not in the range.
        nan: Some(0.0),
    };
    let done = process_source(
        &[&all],
        NamedSource {
            path: input,
            source,
        },
        None,
        &resources,
    )?;
    let ranges = done
        .results
        .totals
        .iter()
        .filter_map(|totals| totals.range());
    Ok(ranges.reduce(|(min, max), (low, high)| {
        let less = |a: Number, b: Number| a.as_f64() < b.as_f64();
        (
            if less(low, min) { low } else { min },
            if less(max, high) { high } else { max },
        )
    }))
}

/// A resolution for people: `3937 × 3937 pixels a cm`.
fn resolution_text(resolution: Resolution) -> Option<String> {
    let unit = match resolution.unit {
        Unit::None => return None,
        Unit::Inch => "inch",
        Unit::Centimetre => "cm",
        Unit::Metre => "m",
    };
    let value = |(n, d): (u32, u32)| (n > 0 && d > 0).then(|| f64::from(n) / f64::from(d));
    let (x, y) = (value(resolution.x)?, value(resolution.y)?);
    Some(match x == y {
        true => format!("{x} pixels/{unit}"),
        false => format!("{x} × {y} pixels/{unit}"),
    })
}
