//! Refuses what a format cannot hold, with an error that names the formats that can.

use super::lookup::written;
use super::{Capabilities, Format};
use crate::image::metadata::{Alpha, Metadata};
use crate::image::{Depth, Shape};
use anyhow::{Result, ensure};

/// Refuses to write a format that is only read.
///
/// # Errors
/// An error that names the formats that are written.
pub fn check_written(format: &Format) -> Result<()> {
    ensure!(
        format.is_written(),
        "{} is read-only (choose another with --format: {})",
        format.name,
        listed(written().map(|format| format.id).collect(), "or")
    );
    Ok(())
}

/// Refuses a depth that the format cannot hold.
///
/// # Errors
/// An error that names the formats that can, and the other depth.
pub fn check_depth(format: &Format, depth: Depth) -> Result<()> {
    let remedy = match depth {
        Depth::Eight => "--depth 16 makes them 16 bits",
        Depth::Sixteen => "normalize --depth 8 makes them 8 bits",
        Depth::ThirtyTwo | Depth::Float | Depth::Double => {
            "normalize makes them 16 bits, or 8 with --depth 8"
        }
    };
    ensure!(
        format.capabilities.depths.contains(&depth),
        "{} cannot store samples of {depth} ({remedy}; {})",
        format.name,
        those(|can| can.depths.contains(&depth))
    );
    Ok(())
}

/// Refuses pages of these shapes where the format cannot hold them, before anything is decoded.
///
/// # Errors
/// Those of `check_written`, `check_pages` and `check_depth`.
pub fn check_output(format: &Format, shapes: &[Shape]) -> Result<()> {
    check_written(format)?;
    check_pages(format, shapes.len())?;
    (shapes.iter()).try_for_each(|shape| check_depth(format, shape.depth))
}

/// Refuses a number of pages that one file of a format cannot hold.
///
/// # Errors
/// More than one page for a format that holds one.
pub fn check_pages(format: &Format, pages: usize) -> Result<()> {
    ensure!(
        pages == 1 || format.capabilities.pages,
        "{pages} pages do not fit into one {} file: --pages N selects one, --split writes a file for each, and {} hold all",
        format.name,
        those(|can| can.pages)
    );
    Ok(())
}

/// Refuses an image that the format cannot hold, or whose samples have a meaning that it cannot
/// express.
///
/// # Errors
/// An error that names the formats that can.
pub fn check(format: &Format, shape: &Shape, metadata: &Metadata) -> Result<()> {
    let (name, can) = (format.name, format.capabilities);
    ensure!(
        can.signed || !metadata.signed,
        "{name} cannot store signed samples ({}; normalize --unsigned makes them unsigned)",
        those(|can| can.signed)
    );
    ensure!(
        can.white_is_zero || !metadata.white_is_zero,
        "{name} cannot store grey whose 0 is white ({})",
        those(|can| can.white_is_zero)
    );
    ensure!(
        metadata.alpha != Alpha::Associated || can.alpha.contains(&Alpha::Associated),
        "{name} cannot store premultiplied alpha ({})",
        those(|can| can.alpha.contains(&Alpha::Associated))
    );
    ensure!(
        metadata.alpha != Alpha::Unspecified || can.alpha.contains(&Alpha::Unspecified),
        "{name} cannot store a last channel of unspecified meaning ({})",
        those(|can| can.alpha.contains(&Alpha::Unspecified))
    );
    ensure!(
        metadata.alpha != Alpha::Black || can.alpha.contains(&Alpha::Black),
        "{name} cannot store CMYK colours ({}; convert them to RGB first)",
        those(|can| can.alpha.contains(&Alpha::Black))
    );
    // After the checks of special alpha channels, so that the error names formats that can store those.
    ensure!(
        !can.alpha.is_empty() || !shape.has_alpha(),
        "{name} cannot store an alpha channel ({})",
        those(|can| !can.alpha.is_empty())
    );
    ensure!(
        can.channels.contains(&shape.channels),
        "{name} cannot store {} images ({})",
        shape.kind(),
        those(|can| can.channels.contains(&shape.channels))
    );
    check_depth(format, shape.depth)
}

/// The formats that have a capability, as `PNG and TIFF can`.
fn those(can: impl Fn(&Capabilities) -> bool) -> String {
    let formats = written().filter(|format| can(&format.capabilities));
    let names = formats.map(|format| format.name).collect();
    format!("{} can", listed(names, "and"))
}

/// `a, b or c`.
fn listed(names: Vec<&str>, word: &str) -> String {
    match &names[..] {
        [] => "none".into(),
        [one] => (*one).into(),
        [first @ .., last] => format!("{} {word} {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_list_the_formats_that_can() {
        let (pnm, png) = (&crate::formats::pnm::FORMAT, &crate::formats::png::FORMAT);
        let shape = |channels| Shape {
            width: 3,
            height: 2,
            channels,
            depth: Depth::Eight,
        };
        let message = |result: Result<()>| result.err().map(|error| error.to_string());
        let plain = Metadata::default();
        assert_eq!(
            message(check(pnm, &shape(4), &plain)).as_deref(),
            Some("PNM cannot store an alpha channel (PNG, TIFF, PAM, NumPy, farbfeld and BMP can)")
        );
        let signed = Metadata {
            signed: true,
            ..Metadata::default()
        };
        assert_eq!(
            message(check(png, &shape(1), &signed)).as_deref(),
            Some(
                "PNG cannot store signed samples (TIFF, NumPy, FITS and Zarr can; normalize --unsigned makes them unsigned)"
            )
        );
        assert_eq!(message(check(png, &shape(4), &plain)), None);
        assert_eq!(
            message(check_pages(pnm, 2)).as_deref(),
            Some(
                "2 pages do not fit into one PNM file: --pages N selects one, --split writes a file for each, and TIFF, NumPy, FITS and Zarr can hold all"
            )
        );
        assert_eq!(message(check_pages(&crate::formats::tiff::FORMAT, 2)), None);
    }
}
