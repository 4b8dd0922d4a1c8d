//! The bytes of a file's header and of directories.

use super::fields::{IFD, LONG, LONG8, put};
use super::ifd::size_of_kind;
use crate::formats::raw::Order;
use crate::image::metadata::{Field, Value};

/// The bytes of a TIFF file with one directory of these fields and no image.
pub fn alone(mut fields: Vec<Field>, order: Order) -> Vec<u8> {
    let mut file = header(order, false);
    put(&mut file, 8, 4, order);
    let mut directory = lay(&mut fields, 8, order, false);
    file.append(&mut directory.bytes);
    file
}

/// The file header (TIFF 6.0, section 2; BigTIFF), up to the offset of the first directory.
pub fn header(order: Order, big: bool) -> Vec<u8> {
    let mut head: Vec<u8> = match order {
        Order::Big => b"MM".into(),
        Order::Little => b"II".into(),
    };
    if big {
        for number in [43, 8, 0] {
            put(&mut head, number, 2, order);
        }
    } else {
        put(&mut head, 42, 2, order);
    }
    head
}

/// Lays out a directory at offset `at`: its entries, and after them the values that do not fit into
/// an entry.
pub fn lay(fields: &mut [Field], at: u64, order: Order, big: bool) -> Directory {
    fields.sort_by_key(|field| field.tag);
    let wide = if big { 8 } else { 4 };
    let put = |bytes: &mut Vec<u8>, number, size| put(bytes, number, size, order);
    let mut bytes = Vec::new();
    put(&mut bytes, fields.len() as u64, if big { 8 } else { 2 });
    let link = bytes.len() + fields.len() * (4 + 2 * wide);
    let mut behind = Vec::new();
    let behind_at = at + (link + wide) as u64;
    for field in fields {
        put(&mut bytes, field.tag.into(), 2);
        match &mut field.value {
            Value::Bytes(value) => {
                let size = size_of_kind(field.kind).unwrap_or(1) as usize;
                put(&mut bytes, field.kind.into(), 2);
                put(&mut bytes, (value.len() / size) as u64, wide);
                if value.len() <= wide {
                    bytes.extend_from_slice(value);
                    bytes.resize(bytes.len() + wide - value.len(), 0);
                    continue;
                }
                put(&mut bytes, behind_at + behind.len() as u64, wide);
                behind.extend_from_slice(value);
            }
            Value::Directory(inner) => {
                let kind = if big {
                    LONG8
                } else if field.kind == IFD {
                    IFD
                } else {
                    LONG
                };
                put(&mut bytes, kind.into(), 2);
                put(&mut bytes, 1, wide);
                let inner_at = behind_at + behind.len() as u64;
                put(&mut bytes, inner_at, wide);
                behind.append(&mut lay(inner, inner_at, order, big).bytes);
            }
        }
        // Each value is word-aligned, wherever the directory begins.
        while !(behind_at + behind.len() as u64).is_multiple_of(8) {
            behind.push(0);
        }
    }
    put(&mut bytes, 0, wide);
    bytes.append(&mut behind);
    Directory {
        bytes,
        link: link as u64,
    }
}

/// The bytes of a directory, and the position in them of the next page's offset.
pub struct Directory {
    pub bytes: Vec<u8>,
    pub link: u64,
}
