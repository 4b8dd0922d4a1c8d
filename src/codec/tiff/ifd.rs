//! The header and the first directory (IFD) of a TIFF or BigTIFF file: TIFF 6.0, section 2, and the
//! BigTIFF design. Every read is bounded by the file's length, whatever the counts in it claim.

use crate::codec::raw::Order;
use crate::files::Source;
use anyhow::{Context, Result, anyhow, bail, ensure};

/// Tags read or written here; TIFF 6.0, appendix A.
#[allow(missing_docs, reason = "the names are the specification's")]
pub mod tag {
    pub const IMAGE_WIDTH: u16 = 256;
    pub const IMAGE_LENGTH: u16 = 257;
    pub const BITS_PER_SAMPLE: u16 = 258;
    pub const COMPRESSION: u16 = 259;
    pub const PHOTOMETRIC: u16 = 262;
    pub const FILL_ORDER: u16 = 266;
    pub const STRIP_OFFSETS: u16 = 273;
    pub const ORIENTATION: u16 = 274;
    pub const SAMPLES_PER_PIXEL: u16 = 277;
    pub const ROWS_PER_STRIP: u16 = 278;
    pub const STRIP_BYTE_COUNTS: u16 = 279;
    pub const X_RESOLUTION: u16 = 282;
    pub const Y_RESOLUTION: u16 = 283;
    pub const PLANAR_CONFIGURATION: u16 = 284;
    pub const RESOLUTION_UNIT: u16 = 296;
    pub const PREDICTOR: u16 = 317;
    pub const TILE_WIDTH: u16 = 322;
    pub const TILE_LENGTH: u16 = 323;
    pub const TILE_OFFSETS: u16 = 324;
    pub const TILE_BYTE_COUNTS: u16 = 325;
    pub const EXTRA_SAMPLES: u16 = 338;
    pub const SAMPLE_FORMAT: u16 = 339;
}

/// The first directory.
pub struct Ifd<'a> {
    source: &'a Source,
    format: Format,
    entries: Vec<Entry>,
    /// Where the directory of the next page is; 0 if there is none.
    pub next: u64,
    /// Where this directory is.
    pub offset: u64,
}

/// How numbers are laid out.
#[derive(Clone, Copy)]
struct Format {
    order: Order,
    big: bool,
}

struct Entry {
    tag: u16,
    kind: u16,
    count: u64,
    /// The value itself if it fits, else its offset: 4 bytes, or 8 in BigTIFF.
    field: Vec<u8>,
}

impl Format {
    /// An unsigned number of up to 8 bytes.
    fn number(self, bytes: &[u8]) -> u64 {
        let join = |number, &byte: &u8| number << 8 | u64::from(byte);
        match self.order {
            Order::Big => bytes.iter().fold(0, join),
            Order::Little => bytes.iter().rev().fold(0, join),
        }
    }

    /// Bytes of an offset, a count of values, and the value field of an entry.
    fn wide(self) -> usize {
        if self.big { 8 } else { 4 }
    }
}

impl<'a> Ifd<'a> {
    /// Reads the header and the first directory; says so if it is no TIFF file.
    pub fn read(source: &'a Source) -> Result<Ifd<'a>> {
        let mut head = [0; 16];
        let size = source.read_up_to(&mut head, 0)?;
        let order = match &head[..2] {
            b"II" => Order::Little,
            b"MM" => Order::Big,
            _ => bail!("it is no TIFF file"),
        };
        ensure!(size >= 4, "truncated at byte {size} of 8 (header)");
        let version = Format { order, big: false }.number(&head[2..4]);
        let format = Format {
            order,
            big: version == 43,
        };
        ensure!(matches!(version, 42 | 43), "it is no TIFF file");
        let (head_size, offset) = if format.big {
            (16, &head[8..16])
        } else {
            (8, &head[4..8])
        };
        ensure!(
            size >= head_size,
            "truncated at byte {size} of {head_size} (header)"
        );
        if format.big {
            let constants = (format.number(&head[4..6]), format.number(&head[6..8]));
            ensure!(constants == (8, 0), "the BigTIFF header is damaged");
        }
        Ifd::entries(source, format, format.number(offset))
    }

    fn entries(source: &'a Source, format: Format, offset: u64) -> Result<Ifd<'a>> {
        let read = |size: usize, at: u64| -> Result<Vec<u8>> {
            let mut bytes = vec![0; size];
            let done = source.read_at(&mut bytes, at);
            done.map_err(|error| anyhow!("{error} (directory)"))?;
            Ok(bytes)
        };
        let wide = format.wide();
        let count_size = if format.big { 8 } else { 2 };
        let count = format.number(&read(count_size, offset)?);
        ensure!(
            (1..=65535).contains(&count),
            "its directory claims {count} entries"
        );
        let entry_size = 4 + 2 * wide;
        let size = count as usize * entry_size;
        let bytes = read(size + wide, offset + count_size as u64)?;
        let entries = bytes[..size]
            .chunks_exact(entry_size)
            .map(|entry| Entry {
                tag: format.number(&entry[..2]) as u16,
                kind: format.number(&entry[2..4]) as u16,
                count: format.number(&entry[4..4 + wide]),
                field: entry[4 + wide..].to_vec(),
            })
            .collect();
        Ok(Ifd {
            source,
            format,
            entries,
            next: format.number(&bytes[size..]),
            offset,
        })
    }

    /// The byte order of everything in the file.
    pub fn order(&self) -> Order {
        self.format.order
    }

    /// The first `most` values of an unsigned integer tag; none if the tag is not there.
    pub fn values(&self, tag: u16, most: u64) -> Result<Option<Vec<u64>>> {
        let Some(entry) = self.entries.iter().find(|entry| entry.tag == tag) else {
            return Ok(None);
        };
        // BYTE, SHORT, LONG, IFD, LONG8, IFD8.
        let size = match entry.kind {
            1 => 1,
            3 => 2,
            4 | 13 => 4,
            16 | 18 => 8,
            kind => bail!("tag {tag} has type {kind} instead of an unsigned integer"),
        };
        let total = entry.count.checked_mul(size);
        let bytes = if total.is_some_and(|total| total <= entry.field.len() as u64) {
            entry.field.clone()
        } else {
            let offset = self.format.number(&entry.field);
            let end = total.and_then(|total| total.checked_add(offset));
            let end = end.with_context(|| format!("tag {tag} claims {} values", entry.count))?;
            let len = self.source.len();
            ensure!(end <= len, "truncated at byte {len} of {end} (tag {tag})");
            let mut bytes = vec![0; (entry.count.min(most) * size) as usize];
            self.source.read_at(&mut bytes, offset)?;
            bytes
        };
        let values = bytes
            .chunks_exact(size as usize)
            .take(entry.count.min(most) as usize)
            .map(|value| self.format.number(value));
        Ok(Some(values.collect()))
    }

    /// The first value of a tag; none if the tag is missing or empty.
    pub fn value(&self, tag: u16) -> Result<Option<u64>> {
        Ok(self
            .values(tag, 1)?
            .and_then(|values| values.first().copied()))
    }
}
