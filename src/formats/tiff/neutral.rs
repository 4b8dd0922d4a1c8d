//! Converts the fields of a TIFF directory to neutral metadata and back.

use super::fields::{ASCII, BYTE, RATIONAL, UNDEFINED};
use crate::formats::item::{Item, Keyword};
use crate::formats::raw::Order;
use crate::formats::xmp;
use crate::image::metadata::{Field, Own, Transform, Value};

/// The tag of each text (TIFF 6.0, section 8).
const TEXTS: [(Keyword, u16); 6] = [
    (Keyword::Description, 270),
    (Keyword::Title, 269),
    (Keyword::Author, 315),
    (Keyword::Copyright, 33432),
    (Keyword::Software, 305),
    (Keyword::CreationTime, 306),
];

/// The field of an XMP packet (XMP specification, part 3).
const XMP: u16 = 700;
/// The field of an ICC profile (ICC.1, annex B.4).
const ICC: u16 = 34675;
/// Fields of the first Exif directory (Exif 2.32, section 4.6.4), besides those of `TEXTS`.
const EXIF: [u16; 5] = [271, 272, 34665, 34853, 40965];
/// White point and primary chromaticities (TIFF 6.0, section 20).
const WHITE: u16 = 318;
const PRIMARIES: u16 = 319;

/// Converts fields to neutral items; those of Exif come last, as one item.
pub fn items(big_endian: bool, fields: &[Field]) -> Vec<Item> {
    let mut items = Vec::with_capacity(fields.len());
    let mut exif = Vec::new();
    for field in fields {
        let text = TEXTS.iter().find(|(_, tag)| *tag == field.tag);
        match (&field.value, text) {
            (Value::Bytes(bytes), Some((keyword, _))) => {
                let text = bytes.split(|&byte| byte == 0).next();
                items.push(Item::Text(*keyword, text.unwrap_or_default().into()));
            }
            (Value::Bytes(profile), None) if field.tag == ICC => {
                items.push(Item::Profile(profile.clone()));
            }
            (Value::Bytes(packet), None) if field.tag == XMP && str::from_utf8(packet).is_ok() => {
                items.push(Item::Xmp(packet.clone()));
            }
            _ if EXIF.contains(&field.tag) => exif.push(field.clone()),
            _ => items.push(Item::Own(format!("tag {}", field.tag))),
        }
    }
    if !exif.is_empty() {
        items.push(Item::Exif {
            big_endian,
            fields: exif,
        });
    }
    items
}

/// Keeps XMP packets true of an image that is now to be shown with this orientation.
pub fn update_xmp(fields: &mut [Field], orientation: Option<u16>, transform: &Transform) {
    for field in fields.iter_mut().filter(|field| field.tag == XMP) {
        if let Value::Bytes(packet) = &mut field.value {
            xmp::update(packet, transform, orientation);
        }
    }
}

/// Converts neutral items to fields; of two with the same tag the first counts. Calls `leave_out` with
/// the name of every item that has no field.
pub fn from_items(items: Vec<Item>, leave_out: &mut dyn FnMut(String)) -> Own {
    // The file takes the byte order of the Exif data.
    let order = items.iter().rev().find_map(|item| match item {
        Item::Exif { big_endian, .. } => Some(*big_endian),
        _ => None,
    });
    let big_endian = order.unwrap_or(false);
    let mut fields: Vec<Field> = Vec::new();
    let mut add = |tag, kind, bytes| {
        if !fields.iter().any(|field: &Field| field.tag == tag) {
            fields.push(Field {
                tag,
                kind,
                value: Value::Bytes(bytes),
            });
        }
    };
    let mut exif = Vec::new();
    for item in items {
        match item {
            Item::Text(keyword, mut text) => {
                if let Some((_, tag)) = TEXTS.iter().find(|(known, _)| *known == keyword) {
                    text.push(0);
                    add(*tag, ASCII, text);
                }
            }
            Item::Xmp(packet) => add(XMP, BYTE, packet),
            Item::Profile(profile) => add(ICC, UNDEFINED, profile),
            Item::Chromaticities(values) => {
                let order = Order::new(big_endian);
                let fractions = |values: &[u32]| -> Vec<u8> {
                    let pairs = values.iter().flat_map(|&value| [value, 100_000]);
                    pairs
                        .flat_map(|number| order.bytes::<4>(number.into()))
                        .collect()
                };
                // Red, green and blue after white, as in TIFF.
                let (white, primaries) = values.split_at(values.len().min(2));
                add(WHITE, RATIONAL, fractions(white));
                add(PRIMARIES, RATIONAL, fractions(primaries));
            }
            Item::Exif { fields, .. } => exif = fields,
            Item::Own(name) => leave_out(name),
        }
    }
    exif.retain(|field| !fields.iter().any(|known| known.tag == field.tag));
    fields.append(&mut exif);
    if fields.is_empty() {
        Own::None
    } else {
        Own::Tiff { big_endian, fields }
    }
}
