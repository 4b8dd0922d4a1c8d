//! Updates the descriptions that programs write into ImageDescription about the stack of a page
//! (ImageJ's lines, OME-XML, tifffile's JSON), so that they are true of the output.

use super::ome;
use crate::image::Shape;
use crate::image::metadata::{Effect, Transform};
use serde_json::{Value, json};

/// The updated form of a description.
#[derive(Debug, PartialEq, Eq)]
pub enum DescriptionUpdate {
    /// The description is still true.
    Same,
    /// The new description.
    New(String),
    /// The description cannot be made true, for this reason.
    Untrue(&'static str),
}

/// The number of images in an ImageJ description.
pub fn images(description: &str) -> Option<usize> {
    let rest = description.strip_prefix("ImageJ=")?;
    let line = rest.lines().find_map(|line| line.strip_prefix("images="));
    line?.trim().parse().ok()
}

/// The samples of all images, if tifffile's description gives their shape.
pub fn shaped_samples(description: &str) -> Option<u64> {
    if !description.starts_with('{') {
        return None;
    }
    product_of_shape(&serde_json::from_str(description).ok()?)
}

/// The product of the sizes in a description by tifffile.
fn product_of_shape(shaped: &Value) -> Option<u64> {
    let mut sizes = shaped["shape"].as_array()?.iter();
    sizes.try_fold(1u64, |product, size| product.checked_mul(size.as_u64()?))
}

/// The number of images in a description by tifffile whose file has a directory for the first image
/// only; each image has `samples` samples.
pub fn truncated(description: &str, samples: u64) -> Option<u64> {
    if !description.starts_with('{') {
        return None;
    }
    let shaped: Value = serde_json::from_str(description).ok()?;
    shaped["truncated"]
        .as_bool()
        .filter(|&truncated| truncated)?;
    product_of_shape(&shaped)
        .filter(|all| all.is_multiple_of(samples))
        .map(|all| all / samples)
}

/// Whether a description is OME-XML: its root is `OME`, with or without a prefix.
pub fn is_ome(description: &str) -> bool {
    description.contains("<OME") || (description.contains(":OME ") && description.contains('<'))
}

/// Whether a description is about all pages of its file, not only its own.
pub fn describes_all_pages(description: &str) -> bool {
    let is_shape = description.starts_with('{') && description.contains("\"shape\":");
    description.starts_with("ImageJ=") || is_ome(description) || is_shape
}

/// Updates a description after a transform.
pub fn update_description(description: &str, transform: &Transform) -> DescriptionUpdate {
    let new = if description.starts_with("ImageJ=") {
        imagej(description, transform)
    } else if is_ome(description) {
        if !transform.whole {
            return DescriptionUpdate::Untrue(
                "it is OME-XML that describes pages that are not selected",
            );
        }
        match ome::update(description, transform) {
            Some(new) => new,
            None => return DescriptionUpdate::Untrue("it is OME-XML that is not well-formed"),
        }
    } else if description.starts_with('{') && description.contains("\"shape\":") {
        match shaped(description, transform) {
            Some(new) => new,
            None => {
                return DescriptionUpdate::Untrue(
                    "it describes an array of another shape than the pages",
                );
            }
        }
    } else {
        return DescriptionUpdate::Same;
    };
    if new == description {
        DescriptionUpdate::Same
    } else {
        DescriptionUpdate::New(new)
    }
}

/// Updates ImageJ's lines of `key=value`.
fn imagej(description: &str, transform: &Transform) -> String {
    let values = transform.changes_values();
    let mut lines = Vec::new();
    for line in description.lines() {
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        match key {
            "xorigin" | "yorigin" if matches!(transform.effect, Effect::Cropped { .. }) => {
                lines.push(origin(key, value, transform).unwrap_or_else(|| line.into()));
            }
            "images" if transform.pages == 1 => {}
            "images" if !transform.whole => {
                lines.push(format!("images={}", transform.pages));
                lines.push(format!("slices={}", transform.pages));
            }
            "slices" | "channels" | "frames" | "hyperstack" if !transform.whole => {}
            "mode" if transform.changes_channels() => {}
            // The best display range of computed values is unknown.
            "min" | "max"
                if transform.effect == Effect::Arithmetic || transform.changes_channels() => {}
            "min" if values => lines.push("min=0.0".into()),
            "max" if values => lines.push(format!("max={}.0", transform.to.depth.full())),
            // Calibration and display range of the values before they were scaled.
            "cf" | "c0" | "c1" | "c2" | "c3" | "c4" | "vunit" if values => {}
            _ => lines.push(line.into()),
        }
    }
    lines.push(String::new());
    lines.join("\n")
}

/// ImageJ's line about a coordinate of the origin in pixels, after a crop (ImageJ, `ij.plugin.Duplicator`).
fn origin(key: &str, value: &str, transform: &Transform) -> Option<String> {
    let Effect::Cropped { left, top } = transform.effect else {
        return None;
    };
    let removed = if key == "xorigin" { left } else { top };
    let old: f64 = value.trim().parse().ok()?;
    Some(format!("{key}={:?}", old - removed as f64))
}

/// Updates tifffile's `{"shape": [pages…, height, width, channels]}`.
fn shaped(description: &str, transform: &Transform) -> Option<String> {
    let mut object: Value = serde_json::from_str(description).ok()?;
    let sizes: Option<Vec<u64>> = object["shape"]
        .as_array()?
        .iter()
        .map(Value::as_u64)
        .collect();
    let sizes = sizes?;
    let outer = if transform.whole {
        let samples = transform.from.samples() as u64;
        let pages = transform.pages as u64;
        let fits = |count: &usize| {
            sizes[..*count].iter().product::<u64>() == pages
                && sizes[*count..].iter().product::<u64>() == samples
        };
        // The axes after the pages are rows, columns and channels. For an image of one pixel, other divisions would fit too.
        let inner = if transform.from.channels > 1 { 3 } else { 2 };
        let expected = sizes.len().checked_sub(inner).filter(fits);
        let outer = expected.or_else(|| (0..=sizes.len()).rev().find(fits))?;
        sizes[..outer].to_vec()
    } else if transform.pages > 1 {
        vec![transform.pages as u64]
    } else {
        Vec::new()
    };
    let Shape {
        width,
        height,
        channels,
        ..
    } = transform.to;
    let mut new = outer;
    new.extend([height as u64, width as u64]);
    if channels > 1 {
        new.push(channels as u64);
    }
    // Every page is written with a directory of its own.
    let truncated = object.as_object_mut()?.remove("truncated");
    if new == sizes && truncated.is_none() {
        return Some(description.into());
    }
    if new.len() != sizes.len() || !transform.whole {
        object.as_object_mut()?.remove("axes");
    }
    object["shape"] = json!(new);
    Some(object.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Depth;
    use crate::image::metadata::PixelMap;

    fn transform(effect: Effect, pages: usize) -> Transform {
        let from = Shape {
            width: 3,
            height: 2,
            channels: 1,
            depth: Depth::Sixteen,
        };
        let mut to = from;
        if let Effect::Moves(_) = effect {
            (to.width, to.height) = (2, 3);
        }
        Transform {
            effect,
            from,
            to,
            pages,
            whole: true,
        }
    }

    const TRANSPOSE: Effect = Effect::Moves(PixelMap {
        transposed: true,
        mirror_x: false,
        mirror_y: false,
    });

    #[test]
    fn an_image_of_one_pixel_got_two_axes_more() {
        let pixel = Shape {
            width: 1,
            height: 1,
            channels: 1,
            depth: Depth::Sixteen,
        };
        let text = "{\"shape\": [1, 1]}";
        let transform = Transform {
            from: pixel,
            to: pixel,
            ..transform(TRANSPOSE, 1)
        };
        assert_eq!(
            shaped(text, &transform).as_deref(),
            Some("{\"shape\": [1, 1]}")
        );
    }

    #[test]
    fn imagej_lines() {
        let text = "ImageJ=1.11a\nimages=4\nslices=4\nunit=um\nmin=5.0\nmax=9.0\n";
        assert_eq!(images(text), Some(4));
        assert_eq!(
            update_description(text, &transform(TRANSPOSE, 4)),
            DescriptionUpdate::Same
        );
        let new = "ImageJ=1.11a\nimages=4\nslices=4\nunit=um\nmin=0.0\nmax=65535.0\n";
        let stretched = update_description(text, &transform(Effect::Values, 4));
        assert_eq!(stretched, DescriptionUpdate::New(new.into()));
        let some = Transform {
            whole: false,
            pages: 2,
            ..transform(TRANSPOSE, 2)
        };
        let new = "ImageJ=1.11a\nimages=2\nslices=2\nunit=um\nmin=5.0\nmax=9.0\n";
        assert_eq!(
            update_description(text, &some),
            DescriptionUpdate::New(new.into())
        );
    }

    #[test]
    fn ome_attributes() {
        let text = r#"<OME><Pixels ID="P:0" SizeX="3" SizeY="2" SignificantBits="12" PhysicalSizeX="0.5" Type="uint16"/></OME>"#;
        let new = r#"<OME><Pixels ID="P:0" SizeY="3" SizeX="2" SignificantBits="12" PhysicalSizeY="0.5" Type="uint16"/></OME>"#;
        assert_eq!(
            update_description(text, &transform(TRANSPOSE, 1)),
            DescriptionUpdate::New(new.into())
        );
        let new = text.replace("\"12\"", "\"16\"");
        let stretched = update_description(text, &transform(Effect::Values, 1));
        assert_eq!(stretched, DescriptionUpdate::New(new));
    }

    #[test]
    fn shapes() {
        let text = r#"{"shape": [2, 2, 2, 3]}"#;
        let new = r#"{"shape":[2,2,3,2]}"#;
        assert_eq!(
            update_description(text, &transform(TRANSPOSE, 4)),
            DescriptionUpdate::New(new.into())
        );
        assert_eq!(
            update_description(text, &transform(Effect::Values, 4)),
            DescriptionUpdate::Same
        );
        let untrue = update_description(text, &transform(Effect::Values, 3));
        assert!(matches!(untrue, DescriptionUpdate::Untrue(_)));
    }
}
