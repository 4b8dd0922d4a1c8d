//! Exif data as PNG carries them (section 11.3.3.7): a small TIFF file without an image.

use super::encode::alone;
use super::fields::{SHORT, field, is_layout};
use super::ifd::{Chain, tag};
use crate::codec::raw::Order;
use crate::files::Source;
use crate::metadata::Field;

/// Whether the most significant byte comes first, and the fields of the first directory, but for
/// those about how samples lie.
pub fn read(data: &[u8]) -> Option<(bool, Vec<Field>)> {
    let source = Source::memory(data.to_vec());
    let ifd = Chain::read(&source).ok()?.page(&source, 0).ok()?;
    let (fields, _) = ifd.fields(is_layout);
    Some((ifd.order() == Order::Big, fields))
}

/// Exif data of these fields and this orientation.
pub fn write(mut fields: Vec<Field>, orientation: Option<u16>, big_endian: bool) -> Vec<u8> {
    let order = if big_endian {
        Order::Big
    } else {
        Order::Little
    };
    if let Some(orientation) = orientation {
        fields.push(field(order, tag::ORIENTATION, SHORT, &[orientation.into()]));
    }
    alone(fields, order)
}

/// The orientation that is told.
pub fn orientation(data: &[u8]) -> Option<u16> {
    let (order, at) = place(data)?;
    let bytes = [data[at], data[at + 1]];
    let orientation = match order {
        Order::Little => u16::from_le_bytes(bytes),
        Order::Big => u16::from_be_bytes(bytes),
    };
    (1..=8).contains(&orientation).then_some(orientation)
}

/// Tells another orientation, if one is told.
pub fn set_orientation(data: &mut [u8], orientation: u16) {
    if let Some((order, at)) = place(data) {
        data[at..at + 2].copy_from_slice(&match order {
            Order::Little => orientation.to_le_bytes(),
            Order::Big => orientation.to_be_bytes(),
        });
    }
}

/// The byte order, and where the value of the orientation lies.
fn place(data: &[u8]) -> Option<(Order, usize)> {
    let order = match data.get(..2)? {
        b"II" => Order::Little,
        b"MM" => Order::Big,
        _ => return None,
    };
    let number = |at: usize, size: usize| -> Option<usize> {
        let bytes = data.get(at..at.checked_add(size)?)?;
        let join = |number, &byte: &u8| number << 8 | usize::from(byte);
        Some(match order {
            Order::Little => bytes.iter().rev().fold(0, join),
            Order::Big => bytes.iter().fold(0, join),
        })
    };
    let start = number(4, 4)?;
    let count = number(start, 2)?;
    // An entry: tag, type, count, value; TIFF 6.0, section 2.
    let entries = (0..count).map(|i| start + 2 + 12 * i);
    let entry = entries
        .take_while(|&at| at + 12 <= data.len())
        .find(|&at| number(at, 2) == Some(tag::ORIENTATION.into()))?;
    (number(entry + 2, 2)? == usize::from(SHORT) && number(entry + 4, 4)? == 1)
        .then_some((order, entry + 8))
}
