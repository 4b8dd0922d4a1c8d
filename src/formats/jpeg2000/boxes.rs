//! The boxes of a JP2 file (T.800, annex I): where the codestream is, and what its colours are.

use crate::formats::raw::Order;
use anyhow::{Context, Result, anyhow, ensure};
use std::ops::Range;

/// The type of a box, and where its content is.
type Found = ([u8; 4], Range<usize>);

/// The boxes of a file, at the offsets of their contents.
struct Boxes<'a> {
    file: &'a [u8],
    /// The bytes that are not read yet.
    rest: Range<usize>,
}

impl Iterator for Boxes<'_> {
    type Item = Result<Found>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.len() < 8 {
            return None;
        }
        let start = self.rest.start;
        let number =
            |at: usize, size: usize| self.file.get(at..at + size).map(|it| Order::Big.number(it));
        let kind: [u8; 4] = self.file[start + 4..start + 8].try_into().ok()?;
        let (head, length) = match number(start, 4)? {
            0 => (8, self.rest.len() as u64),
            1 => (16, number(start + 8, 8).unwrap_or(0)),
            length => (8, length),
        };
        let end = usize::try_from(length)
            .ok()
            .filter(|&length| length >= head)
            .and_then(|length| start.checked_add(length))
            .filter(|&end| end <= self.rest.end);
        let Some(end) = end else {
            self.rest = 0..0;
            let name = kind.escape_ascii();
            return Some(Err(anyhow!(
                "truncated: its box {name} at byte {start} ends after what contains it"
            )));
        };
        self.rest.start = end;
        Some(Ok((kind, start + head..end)))
    }
}

/// Finds the codestream in a JP2 file.
///
/// # Errors
/// A damaged file, and colours that are not stored as such.
pub fn codestream(file: &[u8]) -> Result<Range<usize>> {
    let boxes = |rest| Boxes { file, rest };
    for found in boxes(0..file.len()) {
        let (kind, inside) = found?;
        match &kind {
            b"jp2h" => {
                for found in boxes(inside) {
                    let (kind, inside) = found?;
                    ensure!(
                        &kind != b"pclr",
                        "a JPEG 2000 image with a palette is not supported"
                    );
                    // The method that names a colour space by a number, and the number of luma and chroma.
                    let is_ycc = &kind == b"colr"
                        && file[inside.clone()].starts_with(&[1])
                        && file[inside].get(3..7) == Some(&[0, 0, 0, 18]);
                    ensure!(
                        !is_ycc,
                        "a JPEG 2000 image of luma and chroma (sYCC) is not supported: convert it to RGB first"
                    );
                }
            }
            b"jp2c" => return Ok(inside),
            _ => {}
        }
    }
    None.context("it has no codestream (box jp2c)")
}
