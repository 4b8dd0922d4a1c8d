//! ImageJ's block of metadata in TIFF files (ImageJ, `ij.io.TiffEncoder`): one field holds entries
//! one after the other, another the length of each in bytes.

use super::fields::{LONG, field};
use super::ifd::tag;
use crate::formats::raw::Order;
use crate::image::metadata::{Field, Value};

/// Bytes of "IJIJ", and of the name and count of a kind.
const MAGIC: usize = 4;
const KIND: usize = 8;

/// Removes entries of the kinds that `keep` refuses; returns false and changes nothing if the
/// fields are malformed.
pub fn filter(fields: &mut Vec<Field>, order: Order, keep: impl FnMut(&str) -> bool) -> bool {
    filtered(fields, order, keep).is_some()
}

fn filtered(
    fields: &mut Vec<Field>,
    order: Order,
    mut keep: impl FnMut(&str) -> bool,
) -> Option<()> {
    let bytes_of = |tag| {
        let field = fields.iter().find(|field| field.tag == tag)?;
        match &field.value {
            Value::Bytes(bytes) => Some(bytes),
            Value::Directory(_) => None,
        }
    };
    let lengths = bytes_of(tag::IMAGEJ_LENGTHS)?.chunks_exact(4);
    let lengths: Vec<usize> = lengths.map(|bytes| order.number(bytes) as usize).collect();
    let bytes = bytes_of(tag::IMAGEJ_ENTRIES)?;
    let head = *lengths.first()?;
    let kinds = bytes.get(MAGIC..head)?.as_chunks::<KIND>().0;

    let (mut new_head, mut entries) = (bytes[..MAGIC].to_vec(), Vec::new());
    let (mut new_lengths, mut next, mut at) = (vec![0], 1, head);
    for kind in kinds {
        let (name, count) = kind.split_at(4);
        // A name is a number whose bytes are letters.
        let name = Order::Big.bytes::<4>(order.number(name));
        let kept = keep(str::from_utf8(&name).ok()?);
        if kept {
            new_head.extend_from_slice(kind);
        }
        for _ in 0..order.number(count) {
            let length = *lengths.get(next)?;
            let entry = bytes.get(at..at.checked_add(length)?)?;
            if kept {
                entries.extend_from_slice(entry);
                new_lengths.push(length as u64);
            }
            (next, at) = (next + 1, at + length);
        }
    }
    new_lengths[0] = new_head.len() as u64;
    new_head.append(&mut entries);
    fields.retain(|field| field.tag != tag::IMAGEJ_LENGTHS && field.tag != tag::IMAGEJ_ENTRIES);
    if new_lengths.len() > 1 {
        fields.push(field(order, tag::IMAGEJ_LENGTHS, LONG, &new_lengths));
        fields.push(Field {
            tag: tag::IMAGEJ_ENTRIES,
            kind: 1,
            value: Value::Bytes(new_head),
        });
    }
    Some(())
}
