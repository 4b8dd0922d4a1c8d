//! The axes of a stack's pages, from ImageJ's description of a hyperstack (`ij.io.TiffDecoder`) or from
//! OME-XML (OME model 2016-06, Pixels and TiffData), and descriptions of what remains without one of
//! them.

use super::fields::ASCII;
use super::ifd::tag;
use super::{imagej, ome};
use crate::formats::raw::Order;
use crate::image::metadata::{Axes, Axis, Diagnostics, Field, Part, Value};
use anyhow::{Context, Result, ensure};

/// ImageJ's keys of the three axes, in the order in which pages lie along them.
const KEYS: [(Axis, &str); 3] = [
    (Axis::C, "channels"),
    (Axis::Z, "slices"),
    (Axis::T, "frames"),
];

/// The text of the description, if it is UTF-8.
pub fn description(fields: &[Field]) -> Option<&str> {
    let field = fields
        .iter()
        .find(|field| field.tag == tag::IMAGE_DESCRIPTION)?;
    let Value::Bytes(bytes) = &field.value else {
        return None;
    };
    str::from_utf8(bytes.split(|&byte| byte == 0).next()?).ok()
}

/// The axes of a file of so many `pages`, each of so many `channels`; `None` if it names none.
///
/// # Errors
/// A description that is not true of the pages.
pub fn axes(fields: &[Field], channels: usize, pages: usize) -> Result<Option<Axes>> {
    let axes = match description(fields) {
        Some(text) if text.starts_with("ImageJ=") => imagej_axes(text, pages)?,
        Some(text) if text.contains("<OME") || text.contains(":OME ") => {
            let axes = ome::axes(text)?;
            let of_pages = |axes: &Axes| axes.pages() == Some(pages);
            // Channels may be samples of a pixel.
            let fewer = axes.0.map(|(axis, size)| match axis {
                Axis::C if size % channels == 0 => (axis, size / channels),
                _ => (axis, size),
            });
            [axes, Axes(fewer)]
                .into_iter()
                .find(of_pages)
                .unwrap_or(axes)
        }
        _ => return Ok(None),
    };
    ensure!(
        axes.pages() == Some(pages),
        "its description ({axes}) does not match its {pages} pages"
    );
    Ok(Some(axes))
}

fn imagej_axes(text: &str, pages: usize) -> Result<Axes> {
    let size = |key: &str| -> Result<Option<usize>> {
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        let value = lines.find(|(known, _)| *known == key);
        let number = value.map(|(_, number)| {
            let number = number.trim().parse().ok().filter(|number| *number > 0);
            number.with_context(|| format!("its description has no number of {key}"))
        });
        number.transpose()
    };
    let mut axes = Axes(KEYS.map(|(axis, _)| (axis, 1)));
    let mut named = false;
    for ((_, key), (_, known)) in KEYS.iter().zip(&mut axes.0) {
        if let Some(size) = size(key)? {
            (*known, named) = (size, true);
        }
    }
    if !named {
        // ImageJ takes images of which no more is said for slices.
        axes.0[1].1 = pages;
    }
    Ok(axes)
}

/// Adds the axes as ImageJ's description of a hyperstack to metadata without a description.
///
/// # Errors
/// The reason why ImageJ's description cannot hold them.
pub fn add(fields: &mut Vec<Field>, axes: &Axes) -> Result<()> {
    let several = || axes.0.iter().filter(|(_, size)| *size > 1);
    let order = several().map(|(axis, _)| KEYS.iter().position(|(known, _)| known == axis));
    ensure!(
        order.is_sorted(),
        "a hyperstack of ImageJ has its channels first, then slices, then frames, but the order of these pages is {axes}"
    );
    ensure!(
        description(fields).is_none(),
        "the description of the image takes its place"
    );
    let mut text = format!("ImageJ=1.11a\nimages={}\n", axes.pages().unwrap_or(0));
    for (axis, key) in KEYS {
        if axes.size(axis) > 1 {
            text += &format!("{key}={}\n", axes.size(axis));
        }
    }
    if several().count() > 1 {
        text += "hyperstack=true\n";
    }
    fields.push(Field {
        tag: tag::IMAGE_DESCRIPTION,
        kind: ASCII,
        value: Value::Bytes([text.as_bytes(), b"\0"].concat()),
    });
    fields.sort_by_key(|field| field.tag);
    Ok(())
}

/// Makes the fields of a page true of a part of its stack.
pub fn select(fields: &mut Vec<Field>, order: Order, part: &Part, diagnostics: &mut Diagnostics) {
    let new = description(fields).and_then(|text| {
        if text.starts_with("ImageJ=") {
            Some(imagej_part(text, part))
        } else {
            ome::select(text, part)
        }
    });
    let Some(new) = new else { return };
    describe(fields, &new);
    if !fields.iter().any(|field| field.tag == tag::IMAGEJ_ENTRIES) {
        return;
    }
    let (mut labels, mut others) = (false, false);
    let all_channels = part.axes().size(Axis::C) == part.whole.size(Axis::C);
    imagej::filter(fields, order, |kind| {
        let (left_out, untrue) = match kind {
            "labl" => (&mut labels, true),
            "rang" | "luts" => (&mut others, !all_channels),
            _ => return true,
        };
        *left_out |= untrue;
        !untrue
    });
    if labels {
        let warning = "ImageJ's labels are left out: they describe pages that are not selected";
        diagnostics.warnings.push(warning.into());
    }
    if others {
        let note = "ImageJ's display ranges and colour tables are left out: they describe channels that are not selected";
        diagnostics.notes.push(note.into());
    }
}

/// ImageJ's lines for a part of a stack: the number of its pages, and on each axis.
fn imagej_part(text: &str, part: &Part) -> String {
    let axes = part.axes();
    let several = axes.0.iter().filter(|(_, size)| *size > 1).count();
    let pages = axes.pages().unwrap_or(0);
    let mut lines = Vec::new();
    for line in text.lines() {
        let (key, _) = line.split_once('=').unwrap_or((line, ""));
        match key {
            "images" if pages > 1 => {
                lines.push(format!("images={pages}"));
                for (axis, key) in KEYS {
                    if axes.size(axis) > 1 {
                        lines.push(format!("{key}={}", axes.size(axis)));
                    }
                }
            }
            "images" | "channels" | "slices" | "frames" => {}
            "hyperstack" if several < 2 => {}
            "mode" if axes.size(Axis::C) < 2 => {}
            _ => lines.push(line.into()),
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Replaces the description.
fn describe(fields: &mut [Field], new: &str) {
    for field in fields.iter_mut() {
        if field.tag == tag::IMAGE_DESCRIPTION {
            field.value = Value::Bytes([new.as_bytes(), b"\0"].concat());
        }
    }
}

/// Makes the fields of a page true of a stack of `images`, from which pages along `axis` have been
/// projected.
pub fn collapse(
    fields: &mut Vec<Field>,
    order: Order,
    axis: Axis,
    images: usize,
    diagnostics: &mut Diagnostics,
) {
    let new = description(fields).and_then(|text| {
        if text.starts_with("ImageJ=") {
            Some(imagej_collapsed(text, axis, images))
        } else {
            ome::collapse(text, axis)
        }
    });
    if let Some(new) = new {
        describe(fields, &new);
    }
    if !fields.iter().any(|field| field.tag == tag::IMAGEJ_ENTRIES) {
        return;
    }
    let mut left_out = false;
    let well_formed = imagej::filter(fields, order, |kind| {
        let untrue = matches!(kind, "labl" | "rang") || (kind == "luts" && axis == Axis::C);
        left_out |= untrue;
        !untrue
    });
    if well_formed && left_out {
        let note = "ImageJ's labels, display ranges and colour tables of single pages are left out";
        diagnostics.notes.push(note.into());
    }
}

fn imagej_collapsed(text: &str, axis: Axis, images: usize) -> String {
    let own: &[&str] = match axis {
        Axis::Z => &["slices", "spacing"],
        Axis::T => &["frames", "finterval", "fps"],
        Axis::C => &["channels", "mode"],
    };
    let lines = text.lines().filter_map(|line| {
        let (key, _) = line.split_once('=').unwrap_or((line, ""));
        match key {
            "images" => Some(format!("images={images}")),
            "hyperstack" if images == 1 => None,
            key if own.contains(&key) => None,
            _ => Some(line.to_string()),
        }
    });
    lines.map(|line| line + "\n").collect()
}
