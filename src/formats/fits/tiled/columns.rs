//! The columns of the table of tiles, and the data of a tile in the heap after it (standard, section 7.3).

use super::quantized::Scale;
use crate::formats::fits::header::Header;
use crate::formats::raw::Order;
use crate::os::Source;
use anyhow::{Context, Result, bail, ensure};
use std::ops::Range;

/// More bytes than a compressed sample has, and more than the header and the trailer of a tile have.
const SAMPLE: u64 = 8;
const OVERHEAD: u64 = 4096;

/// A column: where its value is in a row, and the letter of its type.
#[derive(Clone, Copy, Debug)]
struct Column {
    offset: u64,
    kind: u8,
    /// The type of the elements in the heap, if the value is a descriptor of an array there.
    element: u8,
}

/// The columns that describe tiles.
pub struct Columns {
    /// Offset of the first row in the file, and the bytes of a row.
    start: u64,
    row: u64,
    /// Where the heap is in the file.
    pub heap: Range<u64>,
    compressed: Column,
    gzipped: Option<Column>,
    uncompressed: Option<Column>,
    scale: Option<Column>,
    zero: Option<Column>,
    blank: Option<Column>,
    /// The scale of tiles without columns of their own.
    default: Scale,
    /// Whether samples are scaled.
    pub are_scaled: bool,
}

/// How the data of a tile are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// By the compression of the image.
    Compressed,
    /// By gzip, since the compression of the image did not suit the tile.
    Gzipped,
    /// Uncompressed.
    Plain,
}

/// The data of a tile, and the scale of its samples.
pub struct Stored {
    pub storage: Storage,
    pub data: Vec<u8>,
    pub scale: Scale,
}

impl Columns {
    /// The columns of a table of so many tiles.
    ///
    /// # Errors
    /// A table that has not these tiles.
    pub fn new(header: &Header, tiles: u64) -> Result<Columns> {
        let &[row, rows] = &header.axes[..] else {
            bail!("the table of its tiles has not two axes");
        };
        ensure!(
            rows >= tiles,
            "the table of its tiles has {rows} rows for {tiles} tiles"
        );
        let mut columns = Vec::new();
        let mut offset = 0u64;
        let count = header
            .integer("TFIELDS")
            .filter(|count| (0..=999).contains(count));
        for number in 1..=count.context("the header has no TFIELDS from 0 to 999")? {
            let name = format!("TFORM{number}");
            let form = header
                .text(&name)
                .with_context(|| format!("the header has no {name}"))?
                .trim();
            let (width, kind, element) =
                parse(form).with_context(|| format!("the header's {name} is {form:?}"))?;
            let title = header.text(&format!("TTYPE{number}")).unwrap_or_default();
            let column = Column {
                offset,
                kind,
                element,
            };
            columns.push((title.trim().to_owned(), column));
            offset = offset
                .checked_add(width)
                .context("its rows do not fit in a file")?;
        }
        ensure!(
            offset <= row,
            "the columns of its table have {offset} bytes, and its rows {row}"
        );
        let column = |name: &str| {
            let column = columns.iter().find(|(title, _)| title == name);
            column.map(|&(_, column)| column)
        };
        let array = |name: &str| {
            let column = column(name);
            let is_array = column.is_none_or(|column| matches!(column.kind, b'P' | b'Q'));
            ensure!(is_array, "its column {name} has no arrays");
            Ok(column)
        };
        let compressed = array("COMPRESSED_DATA")?.context("its table has no COMPRESSED_DATA")?;
        let table = row
            .checked_mul(rows)
            .context("its rows do not fit in a file")?;
        let unsigned = |name| header.integer(name).map(u64::try_from).transpose();
        let gap = unsigned("THEAP")?.unwrap_or(table);
        let more = unsigned("PCOUNT")?.unwrap_or(0);
        let place = |offset: u64| header.data.checked_add(offset);
        let heap = place(gap).zip(table.checked_add(more).and_then(place));
        let (heap_start, heap_end) = heap.context("its heap does not fit in a file")?;
        ensure!(
            gap >= table && heap_start <= heap_end,
            "its heap (THEAP, {gap}) is not after its rows"
        );
        let (scale, zero) = (header.real("ZSCALE")?, header.real("ZZERO")?);
        let blank = header.integer("ZBLANK").or(header.integer("BLANK"));
        Ok(Columns {
            start: header.data,
            row,
            heap: heap_start..heap_end,
            compressed,
            gzipped: array("GZIP_COMPRESSED_DATA")?,
            uncompressed: array("UNCOMPRESSED_DATA")?,
            scale: column("ZSCALE"),
            zero: column("ZZERO"),
            blank: column("ZBLANK"),
            are_scaled: column("ZSCALE").is_some() || scale.is_some(),
            default: Scale {
                scale: scale.unwrap_or(1.0),
                zero: zero.unwrap_or(0.0),
                blank: blank.and_then(|blank| blank.try_into().ok()),
            },
        })
    }

    /// The data of a tile, counted from 0, that has so many samples.
    ///
    /// # Errors
    /// A tile without data, or with data outside the heap.
    pub fn stored(&self, source: &Source, tile: u64, samples: u64) -> Result<Stored> {
        let row = self.start + tile * self.row;
        let places = [
            (Storage::Compressed, Some(self.compressed)),
            (Storage::Gzipped, self.gzipped),
            (Storage::Plain, self.uncompressed),
        ];
        for (storage, column) in places {
            let Some(column) = column else { continue };
            let (count, offset) = column.descriptor(source, row)?;
            if count == 0 {
                continue;
            }
            let length = count.checked_mul(element_bytes(column.element).unwrap_or(1));
            let start = self.heap.start.checked_add(offset);
            let end = start
                .zip(length)
                .and_then(|(start, length)| start.checked_add(length));
            let (start, end) = start
                .zip(end)
                .filter(|&(_, end)| end <= self.heap.end)
                .context("its data are outside the heap")?;
            ensure!(
                end - start <= samples.saturating_mul(SAMPLE).saturating_add(OVERHEAD),
                "its data have {} bytes for {samples} samples",
                end - start
            );
            let mut data = vec![0; (end - start).min(source.len()) as usize];
            source.read_at(&mut data, start)?;
            let scale = Scale {
                scale: self
                    .number(source, row, self.scale)?
                    .unwrap_or(self.default.scale),
                zero: self
                    .number(source, row, self.zero)?
                    .unwrap_or(self.default.zero),
                blank: match self.number(source, row, self.blank)? {
                    Some(blank) => Some(blank as i32),
                    None => self.default.blank,
                },
            };
            return Ok(Stored {
                storage,
                data,
                scale,
            });
        }
        bail!("it has no data")
    }

    /// The number in a column of a row, if there is such a column.
    fn number(&self, source: &Source, row: u64, column: Option<Column>) -> Result<Option<f64>> {
        let Some(column) = column else {
            return Ok(None);
        };
        let mut bytes = [0; 8];
        let width = element_bytes(column.kind).filter(|width| *width <= 8);
        let width = width.context("a column of its scale has no numbers")? as usize;
        source.read_at(&mut bytes[..width], row + column.offset)?;
        let number = Order::Big.number(&bytes[..width]);
        Ok(Some(match column.kind {
            b'D' => f64::from_bits(number),
            b'E' => f32::from_bits(number as u32).into(),
            b'I' => (number as i16).into(),
            b'J' => (number as i32).into(),
            _ => number as i64 as f64,
        }))
    }
}

impl Column {
    /// The number of elements of an array, and its offset in the heap.
    fn descriptor(self, source: &Source, row: u64) -> Result<(u64, u64)> {
        let mut bytes = [0; 16];
        let half = if self.kind == b'Q' { 8 } else { 4 };
        let both = &mut bytes[..2 * half];
        source.read_at(both, row + self.offset)?;
        let (count, offset) = both.split_at(half);
        Ok((Order::Big.number(count), Order::Big.number(offset)))
    }
}

/// Bytes of a value of a type.
fn element_bytes(kind: u8) -> Option<u64> {
    Some(match kind {
        b'L' | b'A' | b'B' => 1,
        b'I' => 2,
        b'J' | b'E' => 4,
        b'K' | b'D' | b'C' | b'P' => 8,
        b'M' | b'Q' => 16,
        _ => return None,
    })
}

/// The bytes of a column of the form `rT`, the letter of its type, and that of the elements of its arrays.
fn parse(form: &str) -> Option<(u64, u8, u8)> {
    let digits = form.bytes().take_while(u8::is_ascii_digit).count();
    let (count, kind) = form.split_at(digits);
    let count: u64 = if count.is_empty() {
        1
    } else {
        count.parse().ok()?
    };
    let &[kind, ref rest @ ..] = kind.as_bytes() else {
        return None;
    };
    let width = match kind {
        b'X' => count.div_ceil(8),
        _ => count.checked_mul(element_bytes(kind)?)?,
    };
    let element = rest.first().copied().unwrap_or(b'B');
    Some((width, kind, element))
}
