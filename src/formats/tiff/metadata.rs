//! Updates the fields of a TIFF directory after an operation.

use super::description::{DescriptionUpdate, update_description};
use super::fields::{ASCII, LONG, field};
use super::ifd::tag;
use super::{gdal, geo, imagej, origin};
use crate::formats::raw::Order;
use crate::image::metadata::{Diagnostics, Effect, Field, Resolution, Transform, Value};

/// Updates the fields; fields that would be untrue are removed and named in `diagnostics`.
pub fn update(
    fields: &mut Vec<Field>,
    big_endian: bool,
    resolution: Option<Resolution>,
    transform: &Transform,
    diagnostics: &mut Diagnostics,
) {
    let order = Order::new(big_endian);
    if let Effect::Cropped { left, top } = transform.effect {
        origin::update(fields, order, resolution, [left, top], diagnostics);
    }
    if transform.changes_places() {
        geo::update(fields, order, transform, diagnostics);
    }
    if fields.iter().any(|field| field.tag == tag::IMAGEJ_ENTRIES) {
        blocks(fields, order, transform, diagnostics);
    }
    fields.retain_mut(|field| {
        let left_out = match (field.tag, transform.effect) {
            (280 | 281 | 340 | 341 | 291, _) if transform.changes_values() => {
                "it describes the previous values"
            }
            (280 | 281 | 340 | 341, _) if transform.changes_size() => "it describes the previous values",
            (34675 | 301 | 532 | 33421 | 33422, _) if transform.changes_channels() => {
                "it describes the previous channels"
            }
            // `origin` moves them with a region.
            (33421 | 33422, effect)
                if transform.changes_places() && !matches!(effect, Effect::Cropped { .. }) =>
            {
                "it describes the previous positions"
            }
            (42113, Effect::Reduced) => {
                let warning = "its NODATA value (tag 42113) is averaged with its neighbours like any \
                               other, and the tag is left out";
                diagnostics.warnings.push(warning.into());
                return false;
            }
            (42113, Effect::Kept) if transform.from.depth == transform.to.depth && transform.changes_channels() => {
                "it describes the previous channels"
            }
            (42113, _) if transform.changes_values() => {
                let value = gdal::text(field).unwrap_or("VALUE");
                diagnostics.warnings.push(format!(
                    "its NODATA value {value} is changed like any other, and the tag is left out (normalize --ignore {value} keeps it \
                     out of the measured range)"
                ));
                return false;
            }
            (gdal::METADATA, _) => return gdal::update(field, transform, diagnostics),
            (tag::IMAGE_DESCRIPTION, _) => return describe(field, transform, diagnostics),
            (tag::EXIF, Effect::Moves(turn)) if turn.transposed => {
                exchange_sides(&mut field.value);
                return true;
            }
            (tag::EXIF, _) if transform.changes_size() => {
                set_sides(&mut field.value, order, transform);
                return true;
            }
            _ => return true,
        };
        diagnostics
            .notes
            .push(format!("tag {} is left out: {left_out}", field.tag));
        false
    });
}

/// Removes the entries of ImageJ's block that are no longer true: about values, about positions, or
/// about pages that are not selected.
fn blocks(
    fields: &mut Vec<Field>,
    order: Order,
    transform: &Transform,
    diagnostics: &mut Diagnostics,
) {
    let turns = transform.changes_places();
    let (mut regions, mut ranges, mut labels, mut tables) = (false, false, false, false);
    let well_formed = imagej::filter(fields, order, |kind| {
        let (left_out, untrue) = match kind {
            "roi " | "over" => (&mut regions, turns),
            "rang" => (&mut ranges, transform.changes_values() || !transform.whole),
            "labl" => (&mut labels, !transform.whole),
            "luts" => (
                &mut tables,
                !transform.whole || transform.changes_channels(),
            ),
            _ => return true,
        };
        *left_out |= untrue;
        !untrue
    });
    if !well_formed {
        fields.retain(|field| !matches!(field.tag, tag::IMAGEJ_LENGTHS | tag::IMAGEJ_ENTRIES));
        let warning = "ImageJ's own metadata are damaged and left out";
        diagnostics.warnings.push(warning.into());
        return;
    }
    if regions {
        let warning = "ImageJ's regions are left out: they describe the previous positions";
        diagnostics.warnings.push(warning.into());
    }
    if labels {
        let warning = "ImageJ's labels are left out: they describe pages that are not selected";
        diagnostics.warnings.push(warning.into());
    }
    if ranges {
        let note = "ImageJ's display ranges are left out: they describe the previous values";
        diagnostics.notes.push(note.into());
    }
    if tables {
        let note = "ImageJ's colour tables are left out: they describe the previous channels";
        diagnostics.notes.push(note.into());
    }
}

/// Updates a description; returns whether to keep it.
fn describe(field: &mut Field, transform: &Transform, diagnostics: &mut Diagnostics) -> bool {
    let Value::Bytes(bytes) = &mut field.value else {
        return false;
    };
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    // Descriptions in other encodings contain nothing that needs an update.
    let Ok(text) = str::from_utf8(text) else {
        return true;
    };
    match update_description(text, transform) {
        DescriptionUpdate::Same => true,
        DescriptionUpdate::New(text) => {
            *bytes = [text.as_bytes(), b"\0"].concat();
            field.kind = ASCII;
            true
        }
        DescriptionUpdate::Untrue(why) => {
            diagnostics
                .warnings
                .push(format!("its description is left out: {why}"));
            false
        }
    }
}

/// Exchanges width and height in Exif's own directory (PixelXDimension, PixelYDimension).
fn exchange_sides(value: &mut Value) {
    if let Value::Directory(fields) = value {
        for field in fields.iter_mut() {
            field.tag = match field.tag {
                40962 => 40963,
                40963 => 40962,
                other => other,
            };
        }
        fields.sort_by_key(|field| field.tag);
    }
}

/// Sets width and height in Exif's own directory, where it has them.
fn set_sides(value: &mut Value, order: Order, transform: &Transform) {
    if let Value::Directory(fields) = value {
        for known in fields.iter_mut() {
            let side = match known.tag {
                40962 => transform.to.width,
                40963 => transform.to.height,
                _ => continue,
            };
            *known = field(order, known.tag, LONG, &[side as u64]);
        }
    }
}
