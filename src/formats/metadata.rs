//! Updates metadata after an operation, and converts them from one format to another.

use super::FORMATS;
use super::format::{Field, Format};
use super::item::Item;
use super::memory::Memory;
use crate::image::metadata::{Diagnostics, Effect, Metadata, Own, Transform};

/// Updates metadata after an operation; parts that would be untrue are removed and named in
/// `diagnostics`.
pub fn follow(metadata: &mut Metadata, transform: &Transform, diagnostics: &mut Diagnostics) {
    metadata.follow(transform);
    for format in FORMATS {
        format.follow(metadata, transform, diagnostics);
    }
}

/// Reads how values were stretched from the metadata of a format's own kind, which no longer have it
/// then.
pub fn take_stretch(metadata: &mut Metadata, format: &dyn Format) {
    // Pages in memory have it in the neutral field already.
    if let Some(text) = format.take_stretch(&mut metadata.own) {
        let text = str::from_utf8(&text).map_err(|_| "it is no text".to_string());
        metadata.stretch = Some(text.and_then(str::parse));
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
    if format.id() == Memory.id() {
        return;
    }
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
    if lacks(Field::Maxval) && metadata.maxval.is_some() {
        leave("the largest value that samples can have".into());
    }
    if lacks(Field::Significant) && metadata.significant.is_some() {
        leave("how many bits are significant".into());
    }
    if lacks(Field::Resolution) && metadata.resolution.is_some() {
        leave("the resolution".into());
    }
    let own = std::mem::take(&mut metadata.own);
    metadata.own = format.adopt(metadata, own, &mut leave);
    let placed = match metadata.stretch.take() {
        Some(stretch) => {
            stretch.map(|known| format.add_stretch(&mut metadata.own, &known.to_string()))
        }
        None => Ok(true),
    };
    match placed == Ok(false) {
        true if lacks(Field::Stretch) => leave("how its values were stretched".into()),
        true => diagnostics.warnings.push(
            "how its values were stretched is left out: the metadata that it belongs to cannot be read"
                .into(),
        ),
        false => {}
    }
    if let Err(why) = placed {
        diagnostics.notes.push(format!(
            "how its values were stretched is left out: it cannot be read ({why})"
        ));
    }
    if lacks(Field::Orientation) && metadata.orientation.is_some_and(|number| number > 1) {
        diagnostics.warnings.push(format!(
            "{} cannot tell that the image is to be turned (--auto-orient turns it)",
            format.name()
        ));
    }
}

/// Converts a format's own metadata to neutral items.
pub fn items(own: &Own) -> Vec<Item> {
    let items = FORMATS.iter().flat_map(|format| format.items(own));
    items.collect()
}
