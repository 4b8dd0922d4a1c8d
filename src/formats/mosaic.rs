//! The pattern of a sensor's mosaic, as the metadata of a file state it.

use super::{Reader, Reading};
use crate::image::metadata::{Diagnostics, Field, Own, Record, Value};
use crate::ops::debayer::Pattern;
use crate::os::Source;
use clap::ValueEnum;
use std::path::Path;

/// The tag CFAPattern (TIFF/EP, ISO 12234-2): the colours of the repeated pixels, row by row.
const CFA_PATTERN: u16 = 33422;

/// The name of the pattern that a file states: BAYERPAT of FITS, or CFAPattern of TIFF.
pub fn stated_pattern(file: &Path) -> Option<String> {
    let source = Source::open(file).ok()?;
    let reader = Reader::open(&source, &Reading::default()).ok()?;
    let metadata = reader.metadata(&mut Diagnostics::default()).ok()?;
    let name = match &metadata.own {
        Own::Fits(records) => records.iter().find_map(bayerpat)?,
        Own::Tiff { fields, .. } => fields.iter().find_map(cfa_pattern)?,
        _ => return None,
    };
    Pattern::from_str(&name, true).ok()?;
    Some(name)
}

/// The value of a record BAYERPAT.
fn bayerpat(record: &Record) -> Option<String> {
    let text = str::from_utf8(record).ok()?.strip_prefix("BAYERPAT=")?;
    let value = text.split('\'').nth(1)?;
    Some(value.trim().to_uppercase())
}

/// The letters of a field CFAPattern.
fn cfa_pattern(field: &Field) -> Option<String> {
    let Value::Bytes(colours) = &field.value else {
        return None;
    };
    let letter = |colour: &u8| ['R', 'G', 'B'].get(usize::from(*colour));
    (field.tag == CFA_PATTERN).then(|| colours.iter().map(letter).collect())?
}
