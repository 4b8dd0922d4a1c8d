//! What an image file is: its size, sample type, pages, axes and metadata, as a line of text and as JSON.

use crate::formats::{Reader, Reading};
use crate::image::metadata::{Axes, Axis, Diagnostics, Metadata, Resolution, Unit};
use crate::image::number::Number;
use crate::image::{Shape, Values};
use crate::os::Source;
use crate::os::count::{plural, size};
use crate::os::name::{self, Shown};
use anyhow::Result;
use serde_json::json;
use std::path::Path;

/// Version of the JSON objects.
const SCHEMA: u32 = 1;

/// What an image file is.
pub struct About {
    /// The name of its format.
    pub format: &'static str,
    /// Bytes of the file; `None` if they are not known.
    pub bytes: Option<u64>,
    /// The shape of the first page.
    pub shape: Shape,
    /// How many pages are selected.
    pub pages: usize,
    /// The axes of the pages.
    pub axes: Option<Axes>,
    /// The metadata of the first page.
    pub metadata: Metadata,
    /// The smallest and the largest value of all pages, without alpha.
    pub range: Option<(Number, Number)>,
}

impl About {
    /// What the header of a file says.
    ///
    /// # Errors
    /// The reason why it cannot be read, without its name.
    pub fn read(source: &Source, reading: &Reading) -> Result<About> {
        let reader = Reader::open(source, reading)?;
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

    /// The type of the samples of the first page.
    pub fn values(&self) -> Values {
        self.metadata.values(self.shape.depth)
    }

    /// The line for people: `scan.tif: TIFF, 640×512 grey, 16 bits, 12 pages (C=2 Z=6), 1.2 MB`.
    pub fn line(&self, input: &Path) -> String {
        format!("{}: {}", input.shown(), self.facts())
    }

    /// The format and the type of the samples: `TIFF, grey, 16 bits`.
    pub fn type_text(&self) -> String {
        let sign = if self.values().signed { ", signed" } else { "" };
        let (kind, depth) = (self.shape.kind(), self.shape.depth);
        format!("{}, {kind}, {depth}{sign}", self.format)
    }

    /// The bytes of the file, if they are known, as a part of those of the samples of all pages if they are like the first.
    pub fn share_of_samples(&self) -> Option<f64> {
        let samples = self.shape.bytes() as f64 * self.pages as f64;
        Some(self.bytes? as f64 / samples)
    }

    /// The facts in a line: `TIFF, 640×512 grey, 16 bits, 12 pages (C=2 Z=6), 1.2 MB`.
    pub fn facts(&self) -> String {
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
        parts.extend(self.bytes.map(|bytes| match bytes {
            few @ ..100_000 => format!("{few} bytes"),
            many => size(many),
        }));
        parts.join(", ")
    }

    /// The object of `info --json`.
    pub fn json(&self, input: &Path) -> serde_json::Value {
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
