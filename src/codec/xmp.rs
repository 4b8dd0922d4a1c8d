//! Updates the properties of the image that XMP packets repeat (XMP specification, part 1; part 2
//! for the namespaces tiff and exif). All other properties are left unchanged.

use crate::metadata::Transform;

/// Pairs of properties that are exchanged when rows become columns.
const SIDES: [[&str; 2]; 3] = [
    ["tiff:ImageWidth", "tiff:ImageLength"],
    ["tiff:XResolution", "tiff:YResolution"],
    ["exif:PixelXDimension", "exif:PixelYDimension"],
];

/// Updates a packet after a transform, for an image that now has this orientation.
pub fn follow(packet: &mut Vec<u8>, transform: &Transform, orientation: Option<u16>) {
    // Packets in UTF-16 are legal, but not supported.
    let Ok(text) = str::from_utf8(packet) else {
        return;
    };
    let mut text = text.to_string();
    if transform.is_transposed() {
        for [x, y] in SIDES {
            // Exchanges the names, of attributes and of elements.
            text = text.replace(x, "\u{0}").replace(y, x).replace('\u{0}', y);
        }
    }
    if let Some(orientation) = orientation {
        text = with_orientation(&text, orientation);
    }
    *packet = text.into_bytes();
}

/// Replaces the value of `tiff:Orientation`, an attribute (`="6"`) or an element (`>6<`), if there
/// is one.
fn with_orientation(text: &str, orientation: u16) -> String {
    let mut parts = text.split("tiff:Orientation");
    let mut new = String::from(parts.next().unwrap_or_default());
    for part in parts {
        new.push_str("tiff:Orientation");
        let value = part.trim_start_matches(|c: char| "=\"'> \n\t".contains(c));
        let after = value.trim_start_matches(|c: char| c.is_ascii_digit());
        if after.len() < value.len() {
            new.push_str(&part[..part.len() - value.len()]);
            new.push_str(&orientation.to_string());
            new.push_str(after);
        } else {
            new.push_str(part);
        }
    }
    new
}
