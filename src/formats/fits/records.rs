//! Classifies the records of a header by the operations that make them untrue.

use super::header::keyword;
use crate::image::metadata::{Diagnostics, Effect, Record, Transform};

/// What a record describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The layout of the data, which the output states anew.
    Layout,
    /// How values follow from samples: BSCALE and BZERO.
    Scale,
    /// Values: their unit, their range.
    Values,
    /// Positions of pixels: in the sky, on the detector.
    Places,
    /// Anything else.
    Other,
}

/// Keywords of the layout (standard, section 4.4), and sums over the file.
const LAYOUT: [&str; 12] = [
    "SIMPLE", "XTENSION", "BITPIX", "NAXIS", "EXTEND", "PCOUNT", "GCOUNT", "GROUPS", "BLOCKED",
    "CHECKSUM", "DATASUM", "ZIMAGE",
];

const VALUES: [&str; 7] = [
    "BUNIT", "BLANK", "DATAMIN", "DATAMAX", "SATURATE", "GAIN", "RDNOISE",
];

/// Prefixes of keywords of positions (section 8; detector sections by the NOAO convention). A digit or the indices of a
/// matrix follow.
const PLACES: [&str; 19] = [
    "CTYPE", "CUNIT", "CRVAL", "CRPIX", "CDELT", "CROTA", "CD", "PC", "PV", "PS", "CRDER", "CSYER",
    "LTV", "LTM", "A_", "B_", "AP_", "BP_", "WAT",
];

const SECTIONS: [&str; 8] = [
    "WCSAXES", "LONPOLE", "LATPOLE", "DATASEC", "TRIMSEC", "BIASSEC", "CCDSEC", "DETSEC",
];

/// The keyword of the record of how values were scaled.
const STRETCH: &str = "GPUIMG";

/// The record of how values were scaled; `None` if the text is longer than a record.
pub fn stretch(text: &str) -> Option<Record> {
    let record = format!("{:<80}", format!("{STRETCH:<8}= '{text:<8}'"));
    record.into_bytes().try_into().ok()
}

/// Removes the records of how values were scaled, and returns the text of the first.
pub fn take_stretch(records: &mut Vec<Record>) -> Option<Vec<u8>> {
    let is_stretch = |record: &mut Record| keyword(record) == STRETCH;
    let taken: Vec<Record> = records.extract_if(.., is_stretch).collect();
    let mut parts = taken.first()?.split(|&byte| byte == b'\'');
    Some(parts.nth(1).unwrap_or_default().trim_ascii_end().into())
}

/// The kind of a record.
pub fn kind(record: &Record) -> Kind {
    let keyword = keyword(record);
    let axis = keyword.strip_prefix("NAXIS");
    if LAYOUT.contains(&keyword) || axis.is_some_and(|axis| axis.parse::<u16>().is_ok()) {
        return Kind::Layout;
    }
    if matches!(keyword, "BSCALE" | "BZERO") {
        return Kind::Scale;
    }
    if VALUES.contains(&keyword) {
        return Kind::Values;
    }
    let indexed = |name: &str| {
        let rest = keyword.strip_prefix(name);
        rest.is_some_and(|rest| {
            rest.starts_with(|first: char| first.is_ascii_digit())
                || matches!(rest, "ORDER" | "DMAX")
        })
    };
    if SECTIONS.contains(&keyword) || PLACES.iter().any(|name| indexed(name)) {
        Kind::Places
    } else {
        Kind::Other
    }
}

/// Removes the records that an operation makes untrue, with a warning that names them.
pub fn update(records: &mut Vec<Record>, transform: &Transform, diagnostics: &mut Diagnostics) {
    let values = match transform.effect {
        // Only statistics such as the smallest and the largest value change.
        Effect::Cropped { .. } if !transform.changes_values() => &[Kind::Values][..],
        _ => &[Kind::Scale, Kind::Values],
    };
    let untrue = transform.changes_values() || matches!(transform.effect, Effect::Cropped { .. });
    let moves = transform.changes_places();
    for (kinds, untrue, why) in [
        (values, untrue, "the previous values"),
        (&[Kind::Places], moves, "the previous positions"),
    ] {
        if !untrue {
            continue;
        }
        let mut names: Vec<String> = Vec::new();
        records.retain(|record| {
            let left = kinds.contains(&kind(record));
            if left {
                names.push(keyword(record).into());
            }
            !left
        });
        if let Some(first) = names.first() {
            let more = if names.len() > 1 { ", …" } else { "" };
            diagnostics.warnings.push(format!(
                "{} of the header describe {why} and are left out ({first}{more})",
                match names.len() {
                    1 => "1 record".into(),
                    count => format!("{count} records"),
                }
            ));
        }
    }
}
