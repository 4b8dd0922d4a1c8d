//! Updates the fields that depend on where the first pixel is, after a crop: its position on the page, and the phase of a colour
//! filter array.

use super::fields::{RATIONAL, field};
use crate::formats::raw::Order;
use crate::image::metadata::{Diagnostics, Field, Resolution, Value, fraction};

/// XPosition and YPosition (TIFF 6.0, section 12): the offset of the image on its page, in the unit of the resolution.
const POSITIONS: [u16; 2] = [286, 287];
/// CFARepeatPatternDim, rows and columns, and CFAPattern (TIFF/EP, ISO 12234-2).
const PATTERN_SIDES: u16 = 33421;
const PATTERN: u16 = 33422;

/// Updates the fields after a crop that removed so many columns at the left and so many rows at the top.
pub fn update(
    fields: &mut Vec<Field>,
    order: Order,
    resolution: Option<Resolution>,
    removed: [usize; 2],
    diagnostics: &mut Diagnostics,
) {
    let resolutions = resolution.map(|resolution| [resolution.x, resolution.y]);
    for (axis, tag) in POSITIONS.into_iter().enumerate() {
        let Some(at) = fields.iter().position(|field| field.tag == tag) else {
            continue;
        };
        let moved = resolutions.and_then(|resolutions| {
            let position = rational(&fields[at], order)?;
            moved(position, resolutions[axis], removed[axis])
        });
        match moved {
            Some((n, d)) => fields[at] = field(order, tag, RATIONAL, &[n.into(), d.into()]),
            None => {
                fields.remove(at);
                let note = format!("tag {tag} is left out: it describes the previous position");
                diagnostics.notes.push(note);
            }
        }
    }
    shift_pattern(fields, order, removed);
}

/// The position on the page after so many pixels before it were removed; `None` if it cannot be computed.
fn moved(position: (u32, u32), resolution: (u32, u32), removed: usize) -> Option<(u32, u32)> {
    let wide = |(n, d): (u32, u32)| (u128::from(n), u128::from(d));
    let ((n, d), (pixels, length)) = (wide(position), wide(resolution));
    let offset = (removed as u128).checked_mul(length * d)?;
    let (n, d) = (n.checked_mul(pixels)?.checked_add(offset)?, d * pixels);
    fraction(n, d).filter(|(_, d)| *d > 0)
}

/// The only value of a RATIONAL field.
fn rational(field: &Field, order: Order) -> Option<(u32, u32)> {
    let Value::Bytes(bytes) = &field.value else {
        return None;
    };
    let [n, d] = bytes.as_chunks::<4>().0 else {
        return None;
    };
    let number = |bytes: &[u8; 4]| order.number(bytes) as u32;
    (field.kind == RATIONAL).then(|| (number(n), number(d)))
}

/// Rotates the pattern of a colour filter array, so that it begins with the colour of the first pixel.
fn shift_pattern(fields: &mut [Field], order: Order, [left, top]: [usize; 2]) {
    let bytes = |tag| {
        let field = fields.iter().find(|field| field.tag == tag)?;
        match &field.value {
            Value::Bytes(bytes) => Some(bytes),
            Value::Directory(_) => None,
        }
    };
    let pattern = || {
        let [rows, columns] = bytes(PATTERN_SIDES)?.as_chunks::<2>().0 else {
            return None;
        };
        let (rows, columns) = (order.number(rows) as usize, order.number(columns) as usize);
        let old = bytes(PATTERN).filter(|old| !old.is_empty() && old.len() == rows * columns)?;
        let colour = |i: usize| {
            let (y, x) = (i / columns + top % rows, i % columns + left % columns);
            old[y % rows * columns + x % columns]
        };
        Some((0..old.len()).map(colour).collect::<Vec<u8>>())
    };
    if let Some(pattern) = pattern() {
        let fields = fields.iter_mut().filter(|field| field.tag == PATTERN);
        fields.for_each(|field| field.value = Value::Bytes(pattern.clone()));
    }
}
