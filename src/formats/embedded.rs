//! Metadata that JPEG, WebP and GIF embed as whole blocks: an ICC profile, Exif data, an XMP packet.

use super::item::Item;
use super::tiff::exif;
use super::xmp;
use crate::image::metadata::{Diagnostics, Embedded, Metadata, Own, Transform};

/// The metadata of a file with these blocks; the orientation is that of the Exif data.
pub fn metadata(embedded: Embedded) -> Metadata {
    Metadata {
        orientation: embedded.exif.as_deref().and_then(exif::orientation),
        own: match embedded.size() {
            0 => Own::None,
            _ => Own::Embedded(embedded),
        },
        ..Metadata::default()
    }
}

/// Updates the blocks after an operation, for an image that now has this orientation.
pub fn update(
    embedded: &mut Embedded,
    orientation: Option<u16>,
    transform: &Transform,
    diagnostics: &mut Diagnostics,
) {
    if transform.changes_channels() && embedded.profile.take().is_some() {
        let note = "the ICC profile is left out: it describes the previous channels";
        diagnostics.notes.push(note.into());
    }
    if let Some(data) = &mut embedded.exif {
        if exif::drop_thumbnail(data) {
            diagnostics.notes.push("the thumbnail is left out".into());
        }
        exif::update_sides(data, transform);
        if let Some(orientation) = orientation {
            exif::set_orientation(data, orientation);
        }
    }
    if let Some(packet) = &mut embedded.xmp {
        xmp::update(packet, transform, orientation);
    }
}

/// The blocks in neutral terms.
pub fn items(embedded: &Embedded) -> Vec<Item> {
    let Embedded { profile, exif, xmp } = embedded;
    let exif = exif.as_ref().map(|data| match exif::read(data) {
        Some((big_endian, fields)) => Item::Exif { big_endian, fields },
        None => Item::Own("Exif data that are damaged".into()),
    });
    let profile = profile.clone().map(Item::Profile);
    let xmp = xmp.clone().map(Item::Xmp);
    profile.into_iter().chain(exif).chain(xmp).collect()
}

/// Blocks of neutral items, and of an orientation other than upright. Calls `leave_out` with the name
/// of every item that has no block.
pub fn from_items(
    items: Vec<Item>,
    orientation: Option<u16>,
    leave_out: &mut dyn FnMut(String),
) -> Embedded {
    let mut embedded = Embedded::default();
    let (mut order, mut entries) = (false, Vec::new());
    for item in items {
        match item {
            Item::Profile(profile) => embedded.profile = Some(profile),
            Item::Xmp(packet) => embedded.xmp = Some(packet),
            Item::Exif { big_endian, fields } => (order, entries) = (big_endian, fields),
            Item::Text(keyword, _) => leave_out(format!("the text {keyword:?}")),
            Item::Chromaticities(_) => leave_out("the chromaticities".into()),
            Item::Own(name) => leave_out(name),
        }
    }
    let turned = orientation.filter(|&orientation| orientation > 1);
    if turned.is_some() || !entries.is_empty() {
        embedded.exif = Some(exif::write(entries, turned, order));
    }
    embedded
}
