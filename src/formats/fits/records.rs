//! Classifies the records of a header by the operations that make them untrue.

use super::header::{self, keyword};
use crate::image::metadata::{Diagnostics, Effect, Record, Transform};
use std::collections::BTreeSet;

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
    /// The colours of a detector's pixels.
    Mosaic,
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

/// Keywords of the colours of a detector's pixels, which capture programs agree on.
const MOSAIC: [&str; 6] = [
    "BAYERPAT", "COLORTYP", "XBAYROFF", "YBAYROFF", "BAYOFFX", "BAYOFFY",
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
    if MOSAIC.contains(&keyword) {
        return Kind::Mosaic;
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

/// The record by which the page of a file of several images is known to be an image of its own.
pub fn part() -> Record {
    let mut record = [b' '; 80];
    record[..20].copy_from_slice(b"XTENSION= 'IMAGE   '");
    record
}

/// Whether a record is that of `part`.
pub fn is_of_part(record: &Record) -> bool {
    keyword(record) == "XTENSION"
}

/// Keywords of a table of compressed tiles (section 10.1), without a number or with one.
const TILES: [&str; 32] = [
    "TFIELDS", "THEAP", "TTYPE", "TFORM", "TUNIT", "TSCAL", "TZERO", "TNULL", "TDISP", "TDIM",
    "TBCOL", "ZIMAGE", "ZCMPTYPE", "ZBITPIX", "ZNAXIS", "ZTILE", "ZNAME", "ZVAL", "ZMASKCMP",
    "ZQUANTIZ", "ZDITHER", "ZSIMPLE", "ZTENSION", "ZEXTEND", "ZBLOCKED", "ZPCOUNT", "ZGCOUNT",
    "ZHECKSUM", "ZDATASUM", "ZSCALE", "ZZERO", "ZBLANK",
];

/// Whether a record describes the table in which an image is compressed, and not the image.
pub fn is_of_tiles(record: &Record) -> bool {
    let keyword = keyword(record);
    let name = keyword.trim_end_matches(|last: char| last.is_ascii_digit());
    let is_name_of_table = keyword == "EXTNAME" && record[8..].starts_with(b"= 'COMPRESSED_IMAGE'");
    TILES.contains(&name) || is_name_of_table
}

/// Updates the records after an operation, and removes those that it makes untrue, with a warning that names them.
pub fn update(records: &mut Vec<Record>, transform: &Transform, diagnostics: &mut Diagnostics) {
    let moved = match transform.effect {
        Effect::Cropped { left, top } => move_origin(records, [left, top]).is_some(),
        _ => false,
    };
    let has_untrue_values = |record: &Record| match transform.effect {
        _ if transform.changes_values() => matches!(kind(record), Kind::Scale | Kind::Values),
        // The samples are the same ones, but those that decided a statistic may be gone.
        Effect::Cropped { .. } => matches!(keyword(record), "DATAMIN" | "DATAMAX"),
        _ => false,
    };
    let has_untrue_places = |record: &Record| {
        transform.changes_places()
            && match kind(record) {
                Kind::Places => !moved || keyword(record).ends_with("SEC"),
                Kind::Mosaic => !moved,
                _ => false,
            }
    };
    let has_untrue_channels =
        |record: &Record| transform.changes_channels() && kind(record) == Kind::Mosaic;
    remove(
        records,
        has_untrue_values,
        "the previous values",
        diagnostics,
    );
    remove(
        records,
        has_untrue_places,
        "the previous positions",
        diagnostics,
    );
    remove(
        records,
        has_untrue_channels,
        "the previous channels",
        diagnostics,
    );
}

/// Removes the records that are untrue, with a warning that names the first of them.
fn remove(
    records: &mut Vec<Record>,
    is_untrue: impl Fn(&Record) -> bool,
    what: &str,
    diagnostics: &mut Diagnostics,
) {
    let removed: Vec<Record> = records.extract_if(.., |record| is_untrue(record)).collect();
    if let Some(first) = removed.first() {
        let first = keyword(first);
        diagnostics.warnings.push(match removed.len() {
            1 => format!("1 record of the header describes {what} and is left out ({first})"),
            count => format!(
                "{count} records of the header describe {what} and are left out ({first}, …)"
            ),
        });
    }
}

/// Updates the coordinates of the pixels after a crop that removed so many columns at the left and so many rows before the
/// first one: the reference pixel CRPIX of each system of coordinates (standard, section 8.1), IRAF's LTV, and the phase of
/// a colour filter array (XBAYROFF, YBAYROFF). Returns `None`, and changes nothing, if one of them is not a number.
fn move_origin(records: &mut Vec<Record>, removed: [usize; 2]) -> Option<()> {
    let mut moved = records.clone();
    for (axis, removed) in (1..).zip(removed) {
        if removed == 0 {
            continue;
        }
        for system in systems(records, axis) {
            add(
                &mut moved,
                &format!("CRPIX{axis}{system}"),
                -(removed as f64),
            )?;
        }
        if records
            .iter()
            .any(|record| keyword(record).starts_with("LT"))
        {
            add(&mut moved, &format!("LTV{axis}"), -(removed as f64))?;
        }
    }
    if records.iter().any(|record| keyword(record) == "BAYERPAT") {
        for (name, removed) in ["XBAYROFF", "YBAYROFF"].into_iter().zip(removed) {
            if removed % 2 == 1 {
                add(&mut moved, name, 1.0)?;
            }
        }
    }
    *records = moved;
    Some(())
}

/// The systems of coordinates that give positions along an axis: the letter at the end of their keywords, or nothing.
fn systems(records: &[Record], axis: usize) -> BTreeSet<String> {
    let names = ["CTYPE", "CRVAL", "CRPIX", "CDELT"].map(|name| format!("{name}{axis}"));
    let system = |record: &Record| {
        let mut systems = names
            .iter()
            .filter_map(|name| keyword(record).strip_prefix(&**name));
        let is_system = |rest: &&str| rest.bytes().all(|byte| byte.is_ascii_uppercase());
        systems.find(is_system).map(String::from)
    };
    records.iter().filter_map(system).collect()
}

/// Adds a number to the value of a record. A record that does not exist has the value 0, as the standard says of CRPIX.
/// Returns `None` if the value is not a number.
fn add(records: &mut Vec<Record>, name: &str, number: f64) -> Option<()> {
    match records.iter_mut().find(|record| keyword(record) == name) {
        Some(record) => {
            let old = header::number(header::value_of(record)?)?;
            *record = header::with_value(record, &shortest(old + number));
        }
        None => {
            let mut record = [b' '; 80];
            record[..name.len()].copy_from_slice(name.as_bytes());
            records.push(header::with_value(&record, &shortest(number)));
        }
    }
    Some(())
}

/// The shortest text of a number, which has an exponent if it is large.
fn shortest(number: f64) -> String {
    if number.abs() < 1e15 {
        number.to_string()
    } else {
        format!("{number:E}")
    }
}
