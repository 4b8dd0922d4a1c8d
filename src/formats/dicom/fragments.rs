//! The fragments of compressed pixel data in a DICOM file (PS3.5, annex A.4).

use super::header::MOST;
use crate::os::Source;
use anyhow::{Context, Result, bail, ensure};

/// The fragments of pixel data, and the table of offsets before them (PS3.5, A.4).
#[derive(Debug)]
pub struct Fragments {
    /// Each fragment's offset in the file and its length.
    pub spans: Vec<(u64, u64)>,
    /// Offset of the first fragment's item.
    pub start: u64,
    /// Where frames begin, in bytes after `start`.
    pub table: Vec<u32>,
}

impl Fragments {
    /// Reads the items from `at` on.
    ///
    /// # Errors
    /// A damaged file.
    pub fn read(source: &Source, mut at: u64) -> Result<Fragments> {
        let mut fragments = Fragments {
            spans: Vec::new(),
            start: 0,
            table: Vec::new(),
        };
        for count in 0.. {
            let mut head = [0; 8];
            source.read_at(&mut head, at)?;
            let [a, b, c, d, length @ ..] = head;
            let length = u64::from(u32::from_le_bytes(length));
            match [a, b, c, d] {
                [0xFE, 0xFF, 0, 0xE0] => {}
                [0xFE, 0xFF, 0xDD, 0xE0] => break,
                _ => bail!("its fragments are damaged at byte {at}"),
            }
            ensure!(count < MOST, "it has more than {MOST} fragments");
            let end = at + 8 + length;
            ensure!(
                end <= source.len(),
                "truncated at byte {} of {end}",
                source.len()
            );
            if count == 0 {
                let mut table = vec![0; length as usize];
                source.read_at(&mut table, at + 8)?;
                let table = table.as_chunks().0.iter();
                fragments.table = table.map(|&word| u32::from_le_bytes(word)).collect();
                fragments.start = end;
            } else {
                fragments.spans.push((at + 8, length));
            }
            at = end;
        }
        Ok(fragments)
    }

    /// The bytes of a frame of `frames`.
    ///
    /// # Errors
    /// Fragments that cannot be assigned to frames.
    pub fn frame(&self, source: &Source, frame: usize, frames: usize) -> Result<Vec<u8>> {
        let spans: Vec<(u64, u64)> = if frames == 1 {
            self.spans.clone()
        } else if self.spans.len() == frames {
            vec![self.spans[frame]]
        } else {
            let at = |frame: usize| self.table.get(frame).map(|&at| self.start + u64::from(at));
            let first = at(frame).context("its fragments do not say which frame they are of")?;
            let last = at(frame + 1).unwrap_or(u64::MAX);
            // The table has offsets of items; their values begin 8 bytes later.
            let inside = |&&(at, _): &&(u64, u64)| (first..last).contains(&(at - 8));
            self.spans.iter().filter(inside).copied().collect()
        };
        let mut bytes = Vec::new();
        for (at, length) in spans {
            let from = bytes.len();
            bytes.resize(from + length as usize, 0);
            source.read_at(&mut bytes[from..], at)?;
        }
        Ok(bytes)
    }
}
