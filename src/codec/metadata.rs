//! Updates metadata after an operation, and converts them from one format to another.

use super::format::{Field as Neutral, Format};
use super::{png, tiff, xmp};
use crate::metadata::{Diagnostics, Effect, Field, Metadata, Own, Transform, Value};

/// The most bytes that compressed metadata are unpacked to.
const MOST: u64 = 64 << 20;

/// Updates metadata after an operation; parts that would be untrue are removed and named in
/// `diagnostics`.
pub fn follow(metadata: &mut Metadata, transform: &Transform, diagnostics: &mut Diagnostics) {
    metadata.follow(transform.effect);
    match &mut metadata.own {
        Own::None => {}
        Own::Png(chunks) => {
            png::metadata::follow(chunks, transform, diagnostics);
            let exif = chunks.iter_mut().filter(|chunk| &chunk.kind == b"eXIf");
            if transform.is_transposed() {
                exif.for_each(|chunk| tiff::exif::exchange_sides(&mut chunk.data));
            }
            for chunk in chunks.iter_mut() {
                let head = [png::neutral::XMP.as_bytes(), b"\0\0"].concat();
                // Only uncompressed packets are updated; XMP should not be compressed.
                if &chunk.kind == b"iTXt" && chunk.data.starts_with(&head) {
                    xmp::follow(&mut chunk.data, transform, metadata.orientation);
                }
            }
        }
        Own::Tiff { big_endian, fields } => {
            tiff::metadata::follow(fields, *big_endian, transform, diagnostics);
            for field in fields
                .iter_mut()
                .filter(|field| field.tag == tiff::neutral::XMP)
            {
                if let Value::Bytes(packet) = &mut field.value {
                    xmp::follow(packet, transform, metadata.orientation);
                }
            }
        }
    }
}

/// Converts metadata to those of the output's format; parts that it cannot store are named in
/// `diagnostics`.
pub fn carry(
    metadata: &mut Metadata,
    format: &dyn Format,
    effect: Effect,
    diagnostics: &mut Diagnostics,
) {
    let can = format.capabilities();
    let lacks = |field| !can.fields.contains(&field);
    if !can.signed && effect == Effect::Values {
        // The sign is meaningless once values are stretched.
        metadata.signed = false;
    }
    let mut leave = |what: String| {
        let note = format!("{what} is left out: {} has no place for it", format.name());
        diagnostics.notes.push(note);
    };
    if lacks(Neutral::Maxval) && metadata.maxval.is_some() {
        leave("the largest value that samples can have".into());
    }
    if lacks(Neutral::Significant) && metadata.significant.is_some() {
        leave("how many bits are significant".into());
    }
    if lacks(Neutral::Resolution) && metadata.resolution.is_some() {
        leave("the resolution".into());
    }
    let own = std::mem::take(&mut metadata.own);
    metadata.own = format.adopt(metadata, own, &mut leave);
    if lacks(Neutral::Orientation) && metadata.orientation.is_some_and(|told| told > 1) {
        diagnostics.warnings.push(format!(
            "{} cannot tell that the image is to be turned (--auto-orient turns it)",
            format.name()
        ));
    }
    if let (Own::Png(chunks), Some(orientation)) = (&mut metadata.own, metadata.orientation) {
        for chunk in chunks.iter_mut().filter(|chunk| &chunk.kind == b"eXIf") {
            tiff::exif::set_orientation(&mut chunk.data, orientation);
        }
    }
}

/// One piece of metadata in terms that belong to no format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A text, without a zero at its end; UTF-8 unless the file it came from had another encoding.
    Text(Keyword, Vec<u8>),
    /// An XMP packet (XMP specification, part 1), in UTF-8.
    Xmp(Vec<u8>),
    /// An ICC profile.
    Profile(Vec<u8>),
    /// x and y of the white point, red, green and blue, times 100,000: 8 numbers.
    Chromaticities(Vec<u32>),
    /// The first directory of Exif data, without texts and without the fields about sample layout.
    Exif {
        /// Whether the bytes of its values have the most significant byte first.
        big_endian: bool,
        /// The fields.
        fields: Vec<Field>,
    },
    /// Metadata that only one format has, by the name used in messages: `chunk gAMA`.
    Own(String),
}

/// The subject of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keyword {
    /// The image's content.
    Description,
    /// A title.
    Title,
    /// The person who made the image.
    Author,
    /// The owner of the rights.
    Copyright,
    /// The program that made it.
    Software,
    /// The time when the image was made.
    CreationTime,
}

/// Converts a format's own metadata to neutral items.
pub fn items(own: Own) -> Vec<Item> {
    match own {
        Own::None => Vec::new(),
        Own::Png(chunks) => png::neutral::items(chunks),
        Own::Tiff { big_endian, fields } => tiff::neutral::items(big_endian, fields),
    }
}

/// The inflated bytes of a zlib stream, if it is complete and they are at most `MOST`.
pub fn inflated(stream: &[u8]) -> Option<Vec<u8>> {
    let mut inflate = libdeflater::Decompressor::new();
    let mut size = 4 * stream.len() + 4096;
    loop {
        let mut bytes = vec![0; size];
        match inflate.zlib_decompress(stream, &mut bytes) {
            Ok(filled) => {
                bytes.truncate(filled);
                return Some(bytes);
            }
            Err(libdeflater::DecompressionError::InsufficientSpace) if (size as u64) < MOST => {
                size *= 4;
            }
            Err(_) => return None,
        }
    }
}
