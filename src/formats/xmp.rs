//! Updates the properties of the image that XMP packets repeat (XMP specification, part 1; part 2
//! for the namespaces tiff and exif). All other properties are left unchanged.

use crate::image::metadata::{Effect, Transform};

/// Pairs of properties that are exchanged when rows become columns.
const SIDES: [[&str; 2]; 3] = [
    ["tiff:ImageWidth", "tiff:ImageLength"],
    ["tiff:XResolution", "tiff:YResolution"],
    ["exif:PixelXDimension", "exif:PixelYDimension"],
];

/// Which of them are fractions.
const RESOLUTION: usize = 1;

/// Updates a packet after a transform, for an image that now has this orientation.
pub fn update(packet: &mut Vec<u8>, transform: &Transform, orientation: Option<u16>) {
    // Packets in UTF-16 are legal, but not supported.
    let Ok(text) = str::from_utf8(packet) else {
        return;
    };
    let mut text = text.to_string();
    if transform.is_transposed() {
        for [x, y] in SIDES {
            // Exchanges the names, of attributes and of elements.
            let parts: Vec<String> = text.split(x).map(|part| part.replace(y, x)).collect();
            text = parts.join(y);
        }
    }
    if transform.changes_size() {
        let Transform { from, to, .. } = transform;
        let sides = [(from.width, to.width), (from.height, to.height)];
        for (index, names) in SIDES.into_iter().enumerate() {
            for (name, (from, to)) in names.into_iter().zip(sides) {
                text = with_values(&text, name, |old| match index {
                    RESOLUTION if transform.effect == Effect::Reduced => reduced(old, to, from),
                    RESOLUTION => old.into(),
                    _ => to.to_string(),
                });
            }
        }
    }
    if let Some(orientation) = orientation {
        text = with_values(&text, "tiff:Orientation", |_| orientation.to_string());
    }
    *packet = text.into_bytes();
}

/// A fraction, as `300/1`, times `to` over `from`; another text as it is.
fn reduced(fraction: &str, to: usize, from: usize) -> String {
    let (n, d) = fraction.split_once('/').unwrap_or((fraction, "1"));
    let scaled = |text: &str, by: usize| text.parse::<u64>().ok()?.checked_mul(by as u64);
    match scaled(n, to).zip(scaled(d, from)) {
        Some((n, d)) => format!("{n}/{d}"),
        None => fraction.into(),
    }
}

/// Replaces the values of a property, attributes (`="6"`) or elements (`>6<`), which are whole numbers
/// or fractions of them.
fn with_values(text: &str, name: &str, new_value: impl Fn(&str) -> String) -> String {
    let mut parts = text.split(name);
    let mut new = String::from(parts.next().unwrap_or_default());
    for part in parts {
        new.push_str(name);
        let value = part.trim_start_matches(|c: char| "=\"'> \n\t".contains(c));
        let after = value.trim_start_matches(|c: char| c.is_ascii_digit() || c == '/');
        let old = &value[..value.len() - after.len()];
        // An element's end begins with a slash.
        if old.starts_with(|c: char| c.is_ascii_digit()) {
            new.push_str(&part[..part.len() - value.len()]);
            new.push_str(&new_value(old));
            new.push_str(after);
        } else {
            new.push_str(part);
        }
    }
    new
}
