//! `formats`: prints the formats that are read and written, and what their files can hold, from the
//! list of formats alone.

use crate::formats::format::{Capabilities, Field};
use crate::formats::{FORMATS, Format};
use crate::image::{Depth, Shape};
use crate::os::console;
use crate::os::outcome::Outcome;
use anyhow::Result;
use serde::Serialize;

/// The JSON object of a format.
#[derive(Serialize)]
struct Row<'a> {
    id: &'a str,
    name: &'a str,
    title: &'a str,
    extensions: &'a [&'a str],
    written: bool,
    lossless: bool,
    bits: Vec<u32>,
    float: bool,
    signed: bool,
    channels: &'a [usize],
    pages: bool,
    metadata: &'a [Field],
}

/// Prints the table, or with `json` one object for each format.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(json: bool) -> Result<Outcome> {
    if json {
        for format in FORMATS {
            console::print(&serde_json::to_string(&row(format))?)?;
        }
    } else {
        console::print_lines(&table())?
    }
    Ok(Outcome::Done)
}

fn row(format: &Format) -> Row<'_> {
    let Capabilities {
        lossless,
        pages,
        channels,
        depths,
        signed,
        fields,
        white_is_zero: _,
        alpha: _,
    } = format.capabilities;
    Row {
        id: format.id,
        name: format.name,
        title: format.title,
        extensions: format.extensions,
        written: format.is_written(),
        lossless,
        bits: integers(depths).map(Depth::bits).collect(),
        float: depths.contains(&Depth::Float),
        signed,
        channels,
        pages,
        metadata: fields,
    }
}

const HEADINGS: [&str; 7] = [
    "format", "", "bits", "channels", "pages", "metadata", "names",
];

/// The table: a line for each format, columns as wide as their widest entry.
fn table() -> String {
    let rows = FORMATS.iter().map(|format| cells(format));
    let rows: Vec<[String; 7]> = [HEADINGS.map(String::from)]
        .into_iter()
        .chain(rows)
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..HEADINGS.len())
        .map(|column| width(column).unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths);
        let line: String = cells
            .map(|(cell, width)| format!("{cell:width$}  "))
            .collect();
        text += line.trim_end();
        text.push('\n');
    }
    text += "\nsigned: signed integers, too. float: 32-bit floating point, in most formats also 64-bit. lossy: writing changes samples slightly.\n\
            Samples without a header are read with --raw and written with --format raw (.raw), of any type.\n\
            The contract (docs/CONTRACT.md) describes every special case.\n";
    if cfg!(feature = "remote") {
        text += "Zarr stores may be on a server: https:// and http:// are read, s3://bucket/key.zarr is read and written.\n";
    }
    text
}

fn cells(format: &Format) -> [String; 7] {
    let can = format.capabilities;
    let direction = match (format.is_written(), can.lossless) {
        (false, _) => "read",
        (true, true) => "read, written",
        (true, false) => "read, written, lossy",
    };
    let bits = integers(can.depths).map(|depth| depth.bits().to_string());
    let signed = can.signed.then(|| "signed".into());
    let float = can.depths.contains(&Depth::Float);
    let types: Vec<String> = (bits.chain(signed))
        .chain(float.then(|| "float".into()))
        .collect();
    let kinds: Vec<&str> = can
        .channels
        .iter()
        .map(|&channels| channel_names(channels))
        .collect();
    let fields: Vec<&str> = can.fields.iter().map(|field| word(*field)).collect();
    let names: Vec<String> = (format.extensions.iter())
        .map(|extension| format!(".{extension}"))
        .collect();
    [
        format.name.into(),
        direction.into(),
        types.join(", "),
        kinds.join(", "),
        if can.pages { "many" } else { "one" }.into(),
        fields.join(", "),
        names.join(" "),
    ]
}

/// The depths of integers among these.
fn integers(depths: &[Depth]) -> impl Iterator<Item = Depth> {
    let depths = depths.iter().copied();
    depths.filter(|&depth| !depth.is_float())
}

/// An image's channels in words.
fn channel_names(channels: usize) -> &'static str {
    let shape = Shape {
        width: 1,
        height: 1,
        channels,
        depth: Depth::Eight,
    };
    shape.kind()
}

/// A kind of metadata in a word.
fn word(field: Field) -> &'static str {
    match field {
        Field::Maxval => "maximum",
        Field::Significant => "significant bits",
        Field::Orientation => "orientation",
        Field::Resolution => "resolution",
        Field::Texts => "texts",
        Field::Exif => "Exif",
        Field::Profile => "ICC",
        Field::Xmp => "XMP",
        Field::Records => "header records",
        Field::Stretch => "--undo",
    }
}
