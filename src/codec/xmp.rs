//! XMP packets (XMP specification, part 1): what they repeat of the image (part 2, the namespaces tiff
//! and exif), kept true. Everything else is left as it is.

use crate::metadata::Transform;

/// Properties that trade places when rows become columns.
const SIDES: [[&str; 2]; 3] = [
    ["tiff:ImageWidth", "tiff:ImageLength"],
    ["tiff:XResolution", "tiff:YResolution"],
    ["exif:PixelXDimension", "exif:PixelYDimension"],
];

/// Keeps a packet true of an image that is now to be shown with this orientation.
pub fn follow(packet: &mut Vec<u8>, transform: &Transform, orientation: Option<u16>) {
    // Packets in UTF-16 are legal and not found.
    let Ok(text) = str::from_utf8(packet) else {
        return;
    };
    let mut text = text.to_string();
    if transform.is_transposed() {
        for [x, y] in SIDES {
            // Exchanged by their names, as attributes and as elements.
            text = text.replace(x, "\u{0}").replace(y, x).replace('\u{0}', y);
        }
    }
    if let Some(orientation) = orientation {
        text = with_orientation(&text, orientation);
    }
    *packet = text.into_bytes();
}

/// The same with another `tiff:Orientation`, an attribute (`="6"`) or an element (`>6<`), if it has one.
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
