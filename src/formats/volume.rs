//! The common part of NRRD and MetaImage: text headers with fields, axes from the fastest to the slowest, and
//! samples after the header or in a file beside it.

use super::format::Decoder;
use super::raster::{Coding, Layout, RasterDecoder, page_count};
use super::raw::Order;
use crate::image::metadata::Metadata;
use crate::image::{Depth, Shape};
use crate::os::Source;
use anyhow::{Context, Result, bail, ensure};

/// The most bytes of a header.
const MOST: usize = 64 << 10;

/// The lines of a header.
pub struct Lines {
    bytes: Vec<u8>,
    /// Offset of the next line.
    pub next: usize,
}

impl Lines {
    /// The beginning of a file.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn read(source: &Source) -> Result<Lines> {
        let mut bytes = vec![0; MOST.min(usize::try_from(source.len())?)];
        source.read_at(&mut bytes, 0)?;
        Ok(Lines { bytes, next: 0 })
    }
}

impl Iterator for Lines {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let rest = self
            .bytes
            .get(self.next..)
            .filter(|rest| !rest.is_empty())?;
        let line = rest.split_inclusive(|&byte| byte == b'\n').next()?;
        self.next += line.len();
        Some(String::from_utf8_lossy(line).trim().to_owned())
    }
}

/// The fields of a header.
#[derive(Debug, Default)]
pub struct Volume {
    /// The lengths of the axes, the fastest first.
    pub axes: Vec<u64>,
    /// Samples per pixel.
    pub channels: Option<u64>,
    /// The depth, and whether samples are integers with a sign.
    pub samples: Option<(Depth, bool)>,
    /// How samples are coded; `None` if they are stored as numbers.
    pub coding: Option<Coding>,
    /// The byte order of samples of more than 8 bits.
    pub order: Option<Order>,
    /// Bytes before the samples; `None`: the samples are the last bytes of the file.
    pub skip: Option<u64>,
    /// Lines before the samples, in their own file or after the header.
    pub line_skip: u64,
    /// The file beside this one that has the samples.
    pub file: Option<String>,
    /// Names of fields that no other format has a place for.
    pub left_out: Vec<String>,
}

impl Volume {
    /// A decoder for samples after a header of so many bytes, or in their own file.
    ///
    /// # Errors
    /// Fields that are missing or say too much, and a truncated file.
    pub fn decoder<'a>(
        self,
        source: &'a Source,
        header: u64,
        damaged: bool,
    ) -> Result<Box<dyn Decoder + 'a>> {
        let (depth, signed) = self.samples.context("the header has no type of samples")?;
        let channels = self.channels.unwrap_or(1);
        ensure!(
            (1..=4).contains(&channels),
            "pixels of {channels} samples are not supported (1 to 4 are)"
        );
        let [width, height, ..] = &self.axes[..] else {
            bail!("an image of less than two axes is not supported");
        };
        let shape = Shape::checked(*width, *height, channels as usize, depth)?;
        let mut layout = Layout::new(shape, 0);
        layout.pages = page_count(&self.axes)?;
        layout.order = match (self.order, depth, self.coding) {
            // Numbers in text have no byte order; they are converted to bytes in this one.
            (_, _, Some(Coding::Text)) => Order::Little,
            (Some(order), _, _) => order,
            (None, Depth::Eight, _) => Order::Little,
            (None, _, _) => bail!("the header does not say the byte order"),
        };
        layout.toggled = signed;
        layout.metadata = Metadata {
            signed,
            ..Metadata::default()
        };
        if let Some(first) = self.left_out.first() {
            let count = self.left_out.len();
            let note = match count {
                1 => format!("a field of the header is left out: {first}"),
                _ => format!("{count} fields of the header are left out: {first}, …"),
            };
            layout.diagnostics.notes.push(note);
        }
        if let Some(name) = &self.file {
            ensure!(
                !name.starts_with("LIST") && !name.contains('%'),
                "samples in several files ({name}) are not supported: write them as one file"
            );
        }
        let other = self
            .file
            .as_ref()
            .map(|name| source.beside(name))
            .transpose()?;
        let (data, start) = match &other {
            Some(other) => (other, 0),
            None => (source, header),
        };
        let start = skip_lines(data, start, self.line_skip)?;
        let skipped = |skip: u64| start.checked_add(skip).context("too many bytes to skip");
        if let Some(coding) = self.coding {
            let skip = self.skip.with_context(|| {
                format!("{coding} samples at the end of the file (byte skip -1) are not supported")
            })?;
            let start = match coding {
                // The bytes are skipped after unpacking.
                Coding::Gzip => {
                    layout.start = skip;
                    start
                }
                Coding::Zlib | Coding::Text => skipped(skip)?,
            };
            let decoder = RasterDecoder::coded(source, other, start, coding, layout);
            return Ok(Box::new(decoder?));
        }
        layout.start = match self.skip {
            Some(skip) => skipped(skip)?,
            None => data.len().saturating_sub(layout.end()?),
        };
        let named = self.file.unwrap_or_default();
        match other {
            Some(other) => {
                let decoder = RasterDecoder::detached(other, layout, damaged);
                Ok(Box::new(decoder.with_context(|| named)?))
            }
            None => Ok(Box::new(RasterDecoder::new(source, layout, damaged)?)),
        }
    }
}

/// Offset of the byte after so many lines.
fn skip_lines(source: &Source, mut at: u64, lines: u64) -> Result<u64> {
    let mut block = [0; 4096];
    let mut left = lines;
    while left > 0 {
        let read = source.read_up_to(&mut block, at)?;
        ensure!(read > 0, "truncated at byte {at}, within the lines to skip");
        for (i, &byte) in block[..read].iter().enumerate() {
            left -= u64::from(byte == b'\n');
            if left == 0 {
                return Ok(at + i as u64 + 1);
            }
        }
        at += read as u64;
    }
    Ok(at)
}

/// The numbers of a field, separated by spaces.
///
/// # Errors
/// Anything else.
pub fn numbers(name: &str, value: &str) -> Result<Vec<u64>> {
    let numbers = value.split_whitespace().map(|number| number.parse().ok());
    let numbers: Option<Vec<u64>> = numbers.collect();
    numbers
        .with_context(|| format!("the header's {name} has values that are not numbers: {value:?}"))
}
