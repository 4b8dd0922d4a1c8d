//! Exif data as PNG carries them (section 11.3.3.7): a small TIFF file without an image.
//!
//! The crate `kamadak-exif` (2 s of processor time to build) reads such data, and writes them only as a
//! whole from parsed fields. Here one value is changed in its place, so that all other bytes and the
//! offsets in them stay true.

use super::directory::alone;
use super::fields::{LONG, SHORT, field, is_layout};
use super::ifd::{Chain, tag};
use crate::formats::raw::Order;
use crate::image::metadata::{Field, Transform};
use crate::os::Source;

/// Whether the most significant byte comes first, and the fields of the first directory, without
/// those about sample layout.
pub fn read(data: &[u8]) -> Option<(bool, Vec<Field>)> {
    let source = Source::memory(data.to_vec());
    let ifd = Chain::read(&source).ok()?.page(&source, 0).ok()?;
    let (fields, _) = ifd.fields(is_layout);
    Some((ifd.order() == Order::Big, fields))
}

/// Exif data without the head that JPEG segments have, and that some writers repeat in other files.
pub fn without_head(mut data: Vec<u8>) -> Vec<u8> {
    if data.starts_with(b"Exif\0\0") {
        data.drain(..6);
    }
    data
}

/// Encodes Exif data with these fields and this orientation.
pub fn write(mut fields: Vec<Field>, orientation: Option<u16>, big_endian: bool) -> Vec<u8> {
    let order = Order::new(big_endian);
    if let Some(orientation) = orientation {
        fields.push(field(order, tag::ORIENTATION, SHORT, &[orientation.into()]));
    }
    alone(fields, order)
}

/// The orientation, if the data have one.
pub fn orientation(data: &[u8]) -> Option<u16> {
    let exif = Raw::parse(data)?;
    let entry = exif.orientation()?;
    // Negative numbers are none of the eight.
    let size = match exif.number(entry + 2, 2)? {
        1 | 6 => 1,
        3 | 8 => 2,
        _ => 4,
    };
    let orientation = exif.number(entry + 8, size)?;
    (1..=8).contains(&orientation).then_some(orientation as u16)
}

/// Replaces the orientation, if the data have one.
pub fn set_orientation(data: &mut [u8], orientation: u16) {
    let place = Raw::parse(data).and_then(|exif| Some((exif.order, exif.orientation()?)));
    if let Some((order, entry)) = place {
        put(data, entry + 2, order, SHORT);
        data[entry + 8..entry + ENTRY].fill(0);
        put(data, entry + 8, order, orientation);
    }
}

/// Cuts off the second directory, the thumbnail's, which shows the image as it was. Whether there was
/// one.
pub fn drop_thumbnail(data: &mut [u8]) -> bool {
    let place = || {
        let exif = Raw::parse(data)?;
        let first = exif.number(4, 4)?;
        let next = first + 2 + exif.number(first, 2)? * ENTRY;
        (exif.number(next, 4)? > 0).then_some(next)
    };
    let place = place();
    if let Some(next) = place {
        data[next..next + 4].fill(0);
    }
    place.is_some()
}

/// Updates the stored width and height (PixelXDimension, PixelYDimension), in place.
pub fn update_sides(data: &mut [u8], transform: &Transform) {
    if transform.is_transposed() {
        exchange_sides(data);
    }
    if transform.changes_size()
        && let Some((order, places)) = sides(data)
    {
        let new = [transform.to.width, transform.to.height];
        for (place, side) in places.into_iter().zip(new) {
            if let Some(place) = place {
                set_long(data, place, order, side as u32);
            }
        }
    }
}

/// Makes an entry one of a single 32-bit number.
fn set_long(data: &mut [u8], entry: usize, order: Order, number: u32) {
    put(data, entry + 2, order, LONG);
    data[entry + 4..entry + 8].copy_from_slice(&order.bytes::<4>(1));
    data[entry + 8..entry + ENTRY].copy_from_slice(&order.bytes::<4>(number.into()));
}

/// The order of bytes, and where the entries of the stored width and height are.
fn sides(data: &[u8]) -> Option<(Order, [Option<usize>; 2])> {
    let exif = Raw::parse(data)?;
    let own = exif.entry(exif.number(4, 4)?, tag::EXIF)?;
    let own = exif.number(own + 8, 4)?;
    Some((exif.order, SIDES.map(|side| exif.entry(own, side))))
}

/// Exchanges the stored width and height: the tags are neighbours, so the entries stay sorted.
fn exchange_sides(data: &mut [u8]) {
    match sides(data) {
        Some((_, [Some(x), Some(y)])) => {
            for i in 2..ENTRY {
                data.swap(x + i, y + i);
            }
        }
        Some((order, [Some(x), None])) => put(data, x, order, SIDES[1]),
        Some((order, [None, Some(y)])) => put(data, y, order, SIDES[0]),
        _ => {}
    }
}

/// PixelXDimension and PixelYDimension (Exif 2.32, section 4.6.5).
const SIDES: [u16; 2] = [40962, 40963];

/// Bytes of an entry: tag, type, count, value (TIFF 6.0, section 2).
const ENTRY: usize = 12;

fn put(data: &mut [u8], at: usize, order: Order, number: u16) {
    data[at..at + 2].copy_from_slice(&order.bytes::<2>(number.into()));
}

/// Exif data with their byte order.
struct Raw<'a> {
    data: &'a [u8],
    order: Order,
}

impl Raw<'_> {
    fn parse(data: &[u8]) -> Option<Raw<'_>> {
        let order = match data.get(..2)? {
            b"II" => Order::Little,
            b"MM" => Order::Big,
            _ => return None,
        };
        Some(Raw { data, order })
    }

    fn number(&self, at: usize, size: usize) -> Option<usize> {
        let bytes = self.data.get(at..at.checked_add(size)?)?;
        Some(self.order.number(bytes) as usize)
    }

    /// The position of a tag's entry in the directory at `start`; the whole entry lies within the
    /// data.
    fn entry(&self, start: usize, tag: u16) -> Option<usize> {
        let count = self.number(start, 2)?;
        (0..count)
            .map(|i| start + 2 + ENTRY * i)
            .take_while(|&at| at + ENTRY <= self.data.len())
            .find(|&at| self.number(at, 2) == Some(tag.into()))
    }

    /// The position of the orientation's entry, of one integer of up to 32 bits. It should have 16 and no sign, but other
    /// readers take any.
    fn orientation(&self) -> Option<usize> {
        let entry = self.entry(self.number(4, 4)?, tag::ORIENTATION)?;
        let integer = matches!(self.number(entry + 2, 2)?, 1 | 3 | 4 | 6 | 8 | 9);
        (integer && self.number(entry + 4, 4)? == 1).then_some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::tiff::fields::LONG;
    use crate::image::metadata::Value;

    #[test]
    fn sides_are_exchanged_in_place() {
        for order in [Order::Little, Order::Big] {
            let exif_directory = |sides: &[(u16, u64)]| {
                let sides = sides
                    .iter()
                    .map(|&(tag, side)| field(order, tag, LONG, &[side]));
                let directory = Field {
                    tag: tag::EXIF,
                    kind: LONG,
                    value: Value::Directory(sides.collect()),
                };
                write(vec![directory], Some(6), order == Order::Big)
            };
            for (before, after) in [
                (
                    vec![(SIDES[0], 30), (SIDES[1], 20)],
                    vec![(SIDES[0], 20), (SIDES[1], 30)],
                ),
                (vec![(SIDES[0], 30)], vec![(SIDES[1], 30)]),
                (vec![(SIDES[1], 20)], vec![(SIDES[0], 20)]),
                (vec![], vec![]),
            ] {
                let mut data = exif_directory(&before);
                exchange_sides(&mut data);
                assert_eq!(data, exif_directory(&after));
                assert_eq!(orientation(&data), Some(6));
                // However short the data are, nothing panics and nothing beyond their end is read.
                for end in 0..data.len() {
                    exchange_sides(&mut data[..end].to_vec());
                }
            }
        }
    }
}
