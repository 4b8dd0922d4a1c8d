//! Updates metadata after an operation, and converts them from one format to another.

use super::fits::records;
use super::format::{Field, Format};
use super::item::Item;
use super::png::{common_items, metadata as png};
use super::raw::Order;
use super::tiff::{axes, gdal, metadata as tiff, neutral};
use super::{embedded, memory};
use crate::image::metadata::{Axes, Axis, Diagnostics, Effect, Metadata, Own, Part, Transform};
use anyhow::Result;

/// Updates metadata after an operation; parts that would be untrue are removed and named in
/// `diagnostics`.
pub fn update(metadata: &mut Metadata, transform: &Transform, diagnostics: &mut Diagnostics) {
    if transform.changes_channels() && metadata.significant.is_some() {
        let note = "how many bits are significant is left out: it describes the previous channels";
        diagnostics.notes.push(note.into());
    }
    metadata.follow(transform);
    if !transform.whole || transform.changes_channels() {
        // Those of other pages.
        metadata.axes = metadata
            .axes
            .filter(|axes| transform.whole && axes.pages() == Some(transform.pages));
    }
    let (orientation, resolution) = (metadata.orientation, metadata.resolution);
    match &mut metadata.own {
        Own::None => {}
        Own::Png(chunks) => {
            png::update(chunks, orientation, transform, diagnostics);
        }
        Own::Tiff { big_endian, fields } => {
            tiff::update(fields, *big_endian, resolution, transform, diagnostics);
            neutral::update_xmp(fields, orientation, transform);
        }
        Own::Fits(records) => records::update(records, transform, diagnostics),
        Own::Ome(ome) => ome.update(transform),
        Own::Embedded(embedded) => {
            embedded::update(embedded, orientation, transform, diagnostics);
        }
    }
}

/// The axes along which the `pages` of a file lie, from the metadata of its first page, whose pixels
/// have so many `channels`; `None` if they name none.
///
/// # Errors
/// Metadata that are not true of the pages.
pub fn axes(metadata: &Metadata, channels: usize, pages: usize) -> Result<Option<Axes>> {
    match &metadata.own {
        Own::Tiff { fields, .. } => axes::axes(fields, channels, pages),
        _ => Ok(metadata.axes.filter(|axes| axes.pages() == Some(pages))),
    }
}

/// Makes the metadata of a page, before any operation, true of the selected part of a stack.
pub fn select(metadata: &mut Metadata, part: &Part, diagnostics: &mut Diagnostics) {
    if let Own::Tiff { big_endian, fields } = &mut metadata.own {
        axes::select(fields, Order::new(*big_endian), part, diagnostics);
    }
    if let Own::Ome(ome) = &mut metadata.own {
        ome.select(part);
    }
    metadata.axes = metadata.axes.map(|_| part.axes());
}

/// Makes the metadata of a page, before any operation, true of a stack of so many `images`, each
/// projected along `axis`.
pub fn collapse(metadata: &mut Metadata, axis: Axis, images: usize, diagnostics: &mut Diagnostics) {
    if let Own::Tiff { big_endian, fields } = &mut metadata.own {
        axes::collapse(fields, Order::new(*big_endian), axis, images, diagnostics);
    }
    if let Own::Ome(ome) = &mut metadata.own {
        ome.collapse(axis);
    }
    let rest = metadata.axes.map(|axes| axes.without(axis));
    metadata.axes = rest.filter(|axes| axes.pages() == Some(images));
}

/// Moves the record of how values were scaled from the format's own metadata to `metadata.stretch`.
pub fn take_stretch(metadata: &mut Metadata) {
    let text = match &mut metadata.own {
        Own::Png(chunks) => common_items::remove_rescaling(chunks),
        Own::Tiff { fields, .. } => gdal::take_stretch(fields),
        Own::Fits(records) => {
            let text = records::take_stretch(records);
            if records.is_empty() {
                metadata.own = Own::None;
            }
            text
        }
        Own::None | Own::Embedded(_) | Own::Ome(_) => None,
    };
    // Pages in memory have it in the neutral field already.
    if let Some(text) = text {
        let text = str::from_utf8(&text).map_err(|_| "it is not text".to_string());
        metadata.stretch = Some(text.and_then(str::parse));
    }
}

/// Converts metadata to those of the output's format; parts that it cannot store are named in
/// `diagnostics`.
pub fn convert(
    metadata: &mut Metadata,
    format: &Format,
    effect: Effect,
    diagnostics: &mut Diagnostics,
) {
    if *format == memory::FORMAT {
        return;
    }
    let can = &format.capabilities;
    let lacks = |field| !can.fields.contains(&field);
    if !can.signed && effect == Effect::Values {
        // The sign is meaningless after values are scaled.
        metadata.signed = false;
    }
    let mut leave_out = |what: String| {
        let note = format!("{what} is left out: {} cannot store it", format.name);
        diagnostics.notes.push(note);
    };
    if lacks(Field::Maxval) && metadata.maxval.is_some() {
        leave_out("the largest value that samples can have".into());
    }
    if lacks(Field::Significant) && metadata.significant.is_some() {
        leave_out("how many bits are significant".into());
    }
    if lacks(Field::Resolution) && metadata.resolution.is_some() {
        leave_out("the resolution".into());
    }
    if format.add_axes.is_none() && metadata.axes.take().is_some() {
        leave_out("which pages are slices, frames and channels".into());
    }
    let own = std::mem::take(&mut metadata.own);
    metadata.own = (format.convert_metadata)(metadata, own, &mut leave_out);
    if let Some(add) = format.add_axes
        && let Some(axes) = metadata.axes
        && let Err(why) = add(&mut metadata.own, &axes)
    {
        let warning = format!("which pages are slices, frames and channels is left out: {why}");
        diagnostics.warnings.push(warning);
    }
    let stretch = metadata.stretch.take().transpose();
    match stretch.map(|stretch| stretch.map(|stretch| stretch.to_string())) {
        Err(why) => diagnostics.notes.push(format!(
            "the record of how its values were scaled is left out: it cannot be read ({why})"
        )),
        Ok(Some(text)) if !(format.add_stretch)(&mut metadata.own, &text) => {
            if lacks(Field::Stretch) {
                leave_out("the record of how its values were scaled".into());
            } else {
                diagnostics.warnings.push(
                    "the record of how its values were scaled is left out: the metadata that it belongs to cannot be read"
                        .into(),
                );
            }
        }
        Ok(_) => {}
    }
    if lacks(Field::Orientation) && metadata.orientation.is_some_and(|number| number > 1) {
        diagnostics.warnings.push(format!(
            "{} cannot store the orientation of the image (--auto-orient rotates the pixels)",
            format.name
        ));
    }
}

/// Converts a format's own metadata to neutral items.
pub fn items(own: &Own) -> Vec<Item> {
    match own {
        Own::None => Vec::new(),
        Own::Png(chunks) => common_items::items(chunks),
        Own::Tiff { big_endian, fields } => neutral::items(*big_endian, fields),
        // No other format can store a record, or the metadata of all pages.
        Own::Fits(_) | Own::Ome(_) => own.names().into_iter().map(Item::Own).collect(),
        Own::Embedded(embedded) => embedded::items(embedded),
    }
}
