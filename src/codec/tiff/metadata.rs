//! The fields of a TIFF directory kept true after an operation.

use super::description::{Retold, retell};
use super::fields::{ASCII, DOUBLE, field};
use super::ifd::tag;
use super::imagej;
use crate::codec::raw::Order;
use crate::metadata::{Effect, Field, Remarks, Story, Turn, Value};

/// GeoTIFF's ways to tell where pixels lie on the earth (GeoTIFF 1.1, section 7.1).
const PIXEL_SCALE: u16 = 33550;
const TIEPOINT: u16 = 33922;
const TRANSFORMATION: u16 = 34264;
/// GeoTIFF's keys, which mean nothing without one of those.
const GEO_KEYS: std::ops::RangeInclusive<u16> = 34735..=34737;
/// Keeps fields true; what cannot be is left out and told.
pub fn follow(fields: &mut Vec<Field>, big_endian: bool, story: &Story, remarks: &mut Remarks) {
    let order = if big_endian {
        Order::Big
    } else {
        Order::Little
    };
    if let Effect::Turn(turn) = story.effect {
        place(fields, order, turn, story, remarks);
    }
    if fields.iter().any(|field| field.tag == imagej::ENTRIES) {
        blocks(fields, order, story, remarks);
    }
    fields.retain_mut(|field| {
        let left_out = match (field.tag, story.effect) {
            (280 | 340 | 341 | 291, Effect::Values) => "it tells of values as they were",
            (42113, Effect::Values) => {
                let warning =
                    "its NODATA value (tag 42113) is stretched like any other, and no longer told";
                remarks.warnings.push(warning.into());
                return false;
            }
            (tag::IMAGE_DESCRIPTION, _) => return describe(field, story, remarks),
            (tag::EXIF, Effect::Turn(turn)) if turn.transposed => {
                exchange_sides(&mut field.value);
                return true;
            }
            _ => return true,
        };
        remarks
            .notes
            .push(format!("tag {} is left out: {left_out}", field.tag));
        false
    });
}

/// Leaves out what of ImageJ's block is no longer true: of values as they were, or of places.
fn blocks(fields: &mut Vec<Field>, order: Order, story: &Story, remarks: &mut Remarks) {
    let found = imagej::filter(fields, order, |kind| match story.effect {
        Effect::Values => kind != "rang",
        _ => kind != "roi " && kind != "over",
    });
    match (found, story.effect) {
        (Some(true), Effect::Turn(_)) => {
            let warning = "ImageJ's regions are left out: they tell of places as they were";
            remarks.warnings.push(warning.into());
        }
        (Some(true), _) => {
            let note = "ImageJ's display ranges are left out: they tell of values as they were";
            remarks.notes.push(note.into());
        }
        (Some(false), _) => {}
        (None, _) => {
            fields.retain(|field| !matches!(field.tag, imagej::LENGTHS | imagej::ENTRIES));
            let warning = "ImageJ's own metadata are damaged and left out";
            remarks.warnings.push(warning.into());
        }
    }
}

/// Whether a description is still to be told, made true.
fn describe(field: &mut Field, story: &Story, remarks: &mut Remarks) -> bool {
    let Value::Bytes(bytes) = &mut field.value else {
        return false;
    };
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    // In other encodings nothing is told that has to be kept true.
    let Ok(text) = str::from_utf8(text) else {
        return true;
    };
    match retell(text, story) {
        Retold::Same => true,
        Retold::New(text) => {
            *bytes = [text.as_bytes(), b"\0"].concat();
            field.kind = ASCII;
            true
        }
        Retold::Untrue(why) => {
            remarks
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

/// Makes GeoTIFF's place of the pixels true after a turn, or leaves it out.
fn place(fields: &mut Vec<Field>, order: Order, turn: Turn, story: &Story, remarks: &mut Remarks) {
    let is_place = |tag| matches!(tag, PIXEL_SCALE | TIEPOINT | TRANSFORMATION);
    if !fields.iter().any(|field| is_place(field.tag)) {
        return;
    }
    let matrix = matrix(fields, order);
    fields.retain(|field| !is_place(field.tag));
    let Some(matrix) = matrix else {
        fields.retain(|field| !GEO_KEYS.contains(&field.tag));
        let warning =
            "its place on the earth (GeoTIFF) is left out: it cannot be told of the turned image";
        remarks.warnings.push(warning.into());
        return;
    };
    // Corners of pixels: what was at column x is at width − x if mirrored.
    let (width, height) = (story.to.width as f64, story.to.height as f64);
    let source = |x: f64, y: f64| {
        let x = if turn.mirror_x { width - x } else { x };
        let y = if turn.mirror_y { height - y } else { y };
        if turn.transposed { (y, x) } else { (x, y) }
    };
    let (origin, across, down) = (source(0.0, 0.0), source(1.0, 0.0), source(0.0, 1.0));
    let mut new = matrix;
    for row in 0..3 {
        let along = |to: (f64, f64)| {
            matrix[4 * row] * (to.0 - origin.0) + matrix[4 * row + 1] * (to.1 - origin.1)
        };
        new[4 * row] = along(across);
        new[4 * row + 1] = along(down);
        new[4 * row + 3] += matrix[4 * row] * origin.0 + matrix[4 * row + 1] * origin.1;
    }
    let values: Vec<u64> = new.iter().map(|value| value.to_bits()).collect();
    fields.push(field(order, TRANSFORMATION, DOUBLE, &values));
}

/// The affine map from pixels to the earth, row by row, of the 4×4 that GeoTIFF has.
fn matrix(fields: &[Field], order: Order) -> Option<[f64; 16]> {
    let numbers = |tag| -> Option<Vec<f64>> {
        let field = fields.iter().find(|field| field.tag == tag)?;
        let Value::Bytes(bytes) = &field.value else {
            return None;
        };
        let number = |bytes: &[u8; 8]| match order {
            Order::Little => f64::from_le_bytes(*bytes),
            Order::Big => f64::from_be_bytes(*bytes),
        };
        (field.kind == DOUBLE).then(|| bytes.as_chunks::<8>().0.iter().map(number).collect())
    };
    if let Some(matrix) = numbers(TRANSFORMATION) {
        return matrix.try_into().ok();
    }
    // One tie point and a scale; several tie points are no affine map.
    let (scale, tie) = (numbers(PIXEL_SCALE)?, numbers(TIEPOINT)?);
    let &[sx, sy, sz] = &scale[..] else {
        return None;
    };
    let &[i, j, k, x, y, z] = &tie[..] else {
        return None;
    };
    Some([
        sx,
        0.0,
        0.0,
        x - i * sx, //
        0.0,
        -sy,
        0.0,
        y + j * sy, //
        0.0,
        0.0,
        sz,
        z - k * sz, //
        0.0,
        0.0,
        0.0,
        1.0,
    ])
}
