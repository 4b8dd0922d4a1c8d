//! The kinds of records, by what makes them untrue.

use super::header::keyword;
use crate::image::metadata::{Diagnostics, Effect, Record, Transform};

/// What a record describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The layout of the data, which the output has anew.
    Layout,
    /// How values follow from samples: BSCALE and BZERO.
    Scale,
    /// Values: their unit, their range.
    Values,
    /// Where pixels lie: in the sky, on the detector.
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

/// What keywords of places begin with (section 8; detector sections by the NOAO convention). A digit
/// follows, or the indices of a matrix.
const PLACES: [&str; 19] = [
    "CTYPE", "CUNIT", "CRVAL", "CRPIX", "CDELT", "CROTA", "CD", "PC", "PV", "PS", "CRDER", "CSYER",
    "LTV", "LTM", "A_", "B_", "AP_", "BP_", "WAT",
];

const SECTIONS: [&str; 8] = [
    "WCSAXES", "LONPOLE", "LATPOLE", "DATASEC", "TRIMSEC", "BIASSEC", "CCDSEC", "DETSEC",
];

/// The keyword of how values were stretched.
const STRETCH: &str = "GPUIMG";

/// The record of how values were stretched; `None` of a text that is longer than a record.
pub fn stretch(text: &str) -> Option<Record> {
    let record = format!("{:<80}", format!("{STRETCH:<8}= '{text:<8}'"));
    record.into_bytes().try_into().ok()
}

/// Takes the records of how values were stretched out of all, and returns the text of the first.
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

/// Leaves out the records that an operation makes untrue, and says which.
pub fn update(records: &mut Vec<Record>, transform: &Transform, diagnostics: &mut Diagnostics) {
    let values = match transform.effect {
        // Only the smallest and the largest value, and their like, are others.
        Effect::Cropped { .. } if !transform.changes_values() => &[Kind::Values][..],
        _ => &[Kind::Scale, Kind::Values],
    };
    let untrue = transform.changes_values() || matches!(transform.effect, Effect::Cropped { .. });
    let moves = transform.changes_places();
    for (kinds, untrue, why) in [
        (values, untrue, "values as they were"),
        (&[Kind::Places], moves, "places as they were"),
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
