//! The header and the directories (IFD) of a TIFF or BigTIFF file: TIFF 6.0, section 2, and the
//! BigTIFF design. Every read is bounded by the file's length, whatever the counts in it claim.
//!
//! The crate `tiff` would replace this file alone: its decoder takes `&mut self` for each chunk, so that
//! strips could not be decoded on all threads from one open file. The tests use it as an oracle.

use crate::formats::raw::Order;
use crate::image::metadata::{Field, Value};
use crate::os::Source;
use anyhow::{Context, Result, anyhow, bail, ensure};
use std::collections::HashSet;

/// Tags read or written here; TIFF 6.0, appendix A.
#[allow(missing_docs, reason = "the names are the specification's")]
pub mod tag {
    pub const NEW_SUBFILE_TYPE: u16 = 254;
    pub const IMAGE_WIDTH: u16 = 256;
    pub const IMAGE_LENGTH: u16 = 257;
    pub const BITS_PER_SAMPLE: u16 = 258;
    pub const COMPRESSION: u16 = 259;
    pub const PHOTOMETRIC: u16 = 262;
    pub const FILL_ORDER: u16 = 266;
    pub const IMAGE_DESCRIPTION: u16 = 270;
    pub const STRIP_OFFSETS: u16 = 273;
    pub const ORIENTATION: u16 = 274;
    pub const SAMPLES_PER_PIXEL: u16 = 277;
    pub const ROWS_PER_STRIP: u16 = 278;
    pub const STRIP_BYTE_COUNTS: u16 = 279;
    pub const MAX_SAMPLE_VALUE: u16 = 281;
    pub const X_RESOLUTION: u16 = 282;
    pub const Y_RESOLUTION: u16 = 283;
    pub const PLANAR_CONFIGURATION: u16 = 284;
    pub const RESOLUTION_UNIT: u16 = 296;
    pub const T4_OPTIONS: u16 = 292;
    pub const PREDICTOR: u16 = 317;
    pub const COLOR_MAP: u16 = 320;
    pub const TILE_WIDTH: u16 = 322;
    pub const TILE_LENGTH: u16 = 323;
    pub const TILE_OFFSETS: u16 = 324;
    pub const TILE_BYTE_COUNTS: u16 = 325;
    pub const SUB_IFDS: u16 = 330;
    pub const EXTRA_SAMPLES: u16 = 338;
    pub const SAMPLE_FORMAT: u16 = 339;
    pub const JPEG_TABLES: u16 = 347;
    /// Old-style JPEG: offset and length of a JPEG stream, and offsets of tables.
    pub const JPEG_PROCESS: u16 = 512;
    pub const JPEG_INTERCHANGE: u16 = 513;
    pub const JPEG_INTERCHANGE_LENGTH: u16 = 514;
    pub const JPEG_RESTART_INTERVAL: u16 = 515;
    pub const JPEG_Q_TABLES: u16 = 519;
    pub const JPEG_DC_TABLES: u16 = 520;
    pub const JPEG_AC_TABLES: u16 = 521;
    pub const YCBCR_COEFFICIENTS: u16 = 529;
    pub const YCBCR_SUBSAMPLING: u16 = 530;
    pub const REFERENCE_BLACK_WHITE: u16 = 532;
    pub const EXIF: u16 = 34665;
    pub const GPS: u16 = 34853;
    pub const INTEROPERABILITY: u16 = 40965;
    /// A decimal number in text.
    pub const GDAL_NODATA: u16 = 42113;
    /// SGI's ImageDepth: the number of planes of a three-dimensional image.
    pub const IMAGE_DEPTH: u16 = 32997;
    /// MetaMorph's field with as many values as images are stored after the directory.
    pub const UIC2: u16 = 33629;
    /// ImageJ's: the lengths of its block's head, then of each entry.
    pub const IMAGEJ_LENGTHS: u16 = 50838;
    /// ImageJ's: a head ("IJIJ", then of each kind of entry its name and how many there are), then the
    /// entries.
    pub const IMAGEJ_ENTRIES: u16 = 50839;
}

/// The most pages of a file: more than any real file has, and a bound on the cost of a hostile one.
const MOST_PAGES: usize = 1 << 20;

/// A parsed directory.
pub struct Ifd<'a> {
    source: &'a Source,
    format: Format,
    entries: Vec<Entry>,
}

/// A field that cannot be read.
pub struct Lost {
    /// Its tag.
    pub tag: u16,
    /// Whether it is in the directory of Exif or GPS.
    pub is_inside: bool,
    /// The reason, if its values are not all in the file; otherwise its type is unknown, or it is an invalid directory.
    pub cut: Option<String>,
}

/// The offsets of the directories of all pages.
pub struct Chain {
    format: Format,
    /// At least one offset.
    pub offsets: Vec<u64>,
    /// The error that ended the list early, if there was one.
    pub broken: Option<anyhow::Error>,
}

/// The byte order and the size of offsets.
#[derive(Clone, Copy)]
struct Format {
    order: Order,
    big: bool,
}

struct Entry {
    tag: u16,
    kind: u16,
    count: u64,
    /// The value itself if it fits, otherwise its offset: 4 bytes, or 8 in a BigTIFF.
    field: Vec<u8>,
}

impl Format {
    /// An unsigned number of up to 8 bytes in the file's byte order.
    fn number(self, bytes: &[u8]) -> u64 {
        self.order.number(bytes)
    }

    /// Bytes of an offset, a count of values, and the value field of an entry.
    fn wide(self) -> usize {
        if self.big { 8 } else { 4 }
    }
}

impl Chain {
    /// Reads the header and follows the list of directories, without reading their entries. Errors:
    /// the file is not a TIFF file.
    pub fn read(source: &Source) -> Result<Chain> {
        let mut head = [0; 16];
        let size = source.read_up_to(&mut head, 0)?;
        let order = match &head[..2] {
            b"II" => Order::Little,
            b"MM" => Order::Big,
            _ => bail!("it is not a TIFF file"),
        };
        ensure!(size >= 4, "truncated at byte {size} of 8 (header)");
        let version = Format { order, big: false }.number(&head[2..4]);
        let format = Format {
            order,
            big: version == 43,
        };
        ensure!(matches!(version, 42 | 43), "it is not a TIFF file");
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
        let mut chain = Chain {
            format,
            offsets: vec![format.number(offset)],
            broken: None,
        };
        let mut seen = HashSet::from([chain.offsets[0]]);
        let mut next = next(source, format, chain.offsets[0])?;
        while next != 0 {
            let page = chain.offsets.len();
            let following = if !seen.insert(next) {
                Err(anyhow!("its list of pages is a loop"))
            } else if page == MOST_PAGES {
                Err(anyhow!("it has more than {MOST_PAGES} pages"))
            } else {
                self::next(source, format, next)
                    .map_err(|error| anyhow!("page {}: {error}", page + 1))
            };
            match following {
                Ok(following) => {
                    chain.offsets.push(next);
                    next = following;
                }
                Err(error) => {
                    chain.broken = Some(error);
                    break;
                }
            }
        }
        Ok(chain)
    }

    /// The directory of page `index`, counted from 0.
    pub fn page<'a>(&self, source: &'a Source, index: usize) -> Result<Ifd<'a>> {
        Ifd::entries(source, self.format, self.offsets[index])
    }
}

fn read(source: &Source, size: usize, at: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; size];
    let done = source.read_at(&mut bytes, at);
    done.map_err(|error| anyhow!("{error} (directory)"))?;
    Ok(bytes)
}

/// The number of entries of the directory at `offset`, and the offset of the first.
fn count(source: &Source, format: Format, offset: u64) -> Result<(usize, u64)> {
    let size = if format.big { 8 } else { 2 };
    let count = format.number(&read(source, size, offset)?);
    ensure!(
        (1..=65535).contains(&count),
        "its directory claims {count} entries"
    );
    Ok((count as usize, offset + size as u64))
}

/// The offset of the directory after the one at `offset`.
fn next(source: &Source, format: Format, offset: u64) -> Result<u64> {
    let (count, start) = count(source, format, offset)?;
    let end = start + (count * (4 + 2 * format.wide())) as u64;
    Ok(format.number(&read(source, format.wide(), end)?))
}

impl<'a> Ifd<'a> {
    fn entries(source: &'a Source, format: Format, offset: u64) -> Result<Ifd<'a>> {
        let wide = format.wide();
        let (count, start) = count(source, format, offset)?;
        let entry_size = 4 + 2 * wide;
        let size = count * entry_size;
        let bytes = read(source, size, start)?;
        let entries = bytes
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
        })
    }

    /// The byte order of the whole file.
    pub fn order(&self) -> Order {
        self.format.order
    }

    /// The first `most` values of a tag of integers, none of which is negative; `None` if the tag is missing.
    pub fn values(&self, tag: u16, most: u64) -> Result<Option<Vec<u64>>> {
        let Some(entry) = self.entries.iter().find(|entry| entry.tag == tag) else {
            return Ok(None);
        };
        // BYTE, SHORT, LONG, IFD, LONG8, IFD8, and SBYTE, SSHORT, SLONG, SLONG8, which some writers confuse with them.
        let size = match entry.kind {
            1 | 6 => 1,
            3 | 8 => 2,
            4 | 9 | 13 => 4,
            16..=18 => 8,
            kind => bail!("tag {tag} has type {kind} instead of an integer"),
        };
        let signed = matches!(entry.kind, 6 | 8 | 9 | 17);
        let total = entry.count.checked_mul(size);
        let bytes = if total.is_some_and(|total| total <= entry.field.len() as u64) {
            entry.field.clone()
        } else {
            let offset = self.format.number(&entry.field);
            let end = total.and_then(|total| total.checked_add(offset));
            let end = end.with_context(|| format!("tag {tag} claims {} values", entry.count))?;
            let len = self.source.len();
            ensure!(
                end <= len,
                "truncated at byte {len} of {end} ({})",
                name(tag)
            );
            let mut bytes = vec![0; (entry.count.min(most) * size) as usize];
            self.source.read_at(&mut bytes, offset)?;
            bytes
        };
        let values = bytes
            .chunks_exact(size as usize)
            .take(entry.count.min(most) as usize)
            .map(|value| self.format.number(value));
        let values: Vec<u64> = values.collect();
        let negative = signed && values.iter().any(|value| value >> (8 * size - 1) == 1);
        ensure!(!negative, "tag {tag} is negative");
        Ok(Some(values))
    }

    /// The bytes of the file from an offset on, up to `most`.
    ///
    /// # Errors
    /// An offset beyond the end, and a file that cannot be read.
    pub fn file_bytes(&self, offset: u64, most: u64) -> Result<Vec<u8>> {
        let there = self.source.len().saturating_sub(offset);
        ensure!(
            there > 0,
            "byte {offset}, which its directory names, lies beyond the end"
        );
        read(self.source, there.min(most) as usize, offset)
    }

    /// The bytes of a tag's values, up to `most`; `None` if the tag is missing.
    ///
    /// # Errors
    /// More bytes, or a value that cannot be read.
    pub fn bytes_of(&self, tag: u16, most: u64) -> Result<Option<Vec<u8>>> {
        let Some(entry) = self.entries.iter().find(|entry| entry.tag == tag) else {
            return Ok(None);
        };
        ensure!(
            entry.count <= most,
            "tag {tag} claims {} values",
            entry.count
        );
        let bytes = self.bytes(entry)?;
        Ok(Some(bytes.with_context(|| {
            format!("{} has an unknown type", name(tag))
        })?))
    }

    /// The first value of a tag; `None` if the tag is missing or empty.
    pub fn value(&self, tag: u16) -> Result<Option<u64>> {
        Ok(self
            .values(tag, 1)?
            .and_then(|values| values.first().copied()))
    }

    /// The number of values of a tag; 0 if it is missing.
    pub fn count(&self, tag: u16) -> u64 {
        let entry = self.entries.iter().find(|entry| entry.tag == tag);
        entry.map_or(0, |entry| entry.count)
    }

    /// Width and height of the images inside this page, as far as they can be read.
    pub fn inner_images(&self) -> Vec<(u64, u64)> {
        /// More than any real file has.
        const MOST: u64 = 64;
        // Programs that rewrite a file may leave invalid offsets in it.
        let offsets = self.values(tag::SUB_IFDS, MOST).ok().flatten();
        let inner = offsets
            .unwrap_or_default()
            .into_iter()
            .filter_map(|offset| {
                let inner = Ifd::entries(self.source, self.format, offset).ok()?;
                let side = |tag| inner.value(tag).ok().flatten();
                side(tag::IMAGE_WIDTH).zip(side(tag::IMAGE_LENGTH))
            });
        inner.collect()
    }

    /// The number of its entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of the directory and of all values in it, not counting any past the end of the file.
    pub fn weight(&self) -> u64 {
        let values = self.entries.iter().map(|entry| {
            let size = size_of_kind(entry.kind).unwrap_or(0);
            entry.count.saturating_mul(size).min(self.source.len())
        });
        values.fold(20 * self.entries.len() as u64, u64::saturating_add)
    }

    /// Every field for which `skip` is false, with the fields of the Exif and GPS directories, sorted by
    /// tag; and the fields that cannot be read.
    pub fn fields(&self, skip: impl Fn(u16) -> bool) -> (Vec<Field>, Vec<Lost>) {
        let (mut fields, mut lost) = (Vec::new(), Vec::new());
        self.collect(0, &skip, &mut fields, &mut lost);
        (fields, lost)
    }

    fn collect(
        &self,
        depth: u32,
        skip: &dyn Fn(u16) -> bool,
        fields: &mut Vec<Field>,
        lost: &mut Vec<Lost>,
    ) {
        for entry in &self.entries {
            let Entry { tag, kind, .. } = *entry;
            if depth == 0 && skip(tag) || fields.iter().any(|field| field.tag == tag) {
                continue;
            }
            let is_inside = depth > 0;
            let value = match tag {
                tag::EXIF | tag::GPS | tag::INTEROPERABILITY if depth < 2 => {
                    let offset = self.value(tag).ok().flatten().unwrap_or(0);
                    let inner = Ifd::entries(self.source, self.format, offset).ok();
                    Ok(inner.map(|inner| {
                        let mut nested = Vec::new();
                        inner.collect(depth + 1, skip, &mut nested, lost);
                        Value::Directory(nested)
                    }))
                }
                _ => self.bytes(entry).map(|bytes| bytes.map(Value::Bytes)),
            };
            match value {
                Ok(Some(value)) => fields.push(Field { tag, kind, value }),
                Ok(None) => lost.push(Lost {
                    tag,
                    is_inside,
                    cut: None,
                }),
                Err(error) => lost.push(Lost {
                    tag,
                    is_inside,
                    cut: Some(format!("{error:#}")),
                }),
            }
        }
        fields.sort_by_key(|field| field.tag);
    }

    /// The bytes of all values of an entry; `None` if its type is unknown.
    ///
    /// # Errors
    /// Values that are not all in the file.
    fn bytes(&self, entry: &Entry) -> Result<Option<Vec<u8>>> {
        let Some(size) = size_of_kind(entry.kind) else {
            return Ok(None);
        };
        let total = entry.count.saturating_mul(size);
        if total <= entry.field.len() as u64 {
            return Ok(Some(entry.field[..total as usize].to_vec()));
        }
        let (offset, len) = (self.format.number(&entry.field), self.source.len());
        ensure!(
            offset < len,
            "{} at byte {offset} lies beyond the end ({len} bytes)",
            name(entry.tag)
        );
        ensure!(
            total <= len - offset,
            "{} at byte {offset} has {total} bytes, of which {} are in the file",
            name(entry.tag),
            len - offset
        );
        let bytes = read(self.source, total as usize, offset);
        bytes.map(Some).with_context(|| name(entry.tag))
    }

    /// The text of an ASCII tag, without the zero at its end; `None` if the tag is missing. Bytes that are not UTF-8 are
    /// replaced.
    ///
    /// # Errors
    /// A text that is not all in the file.
    pub fn text(&self, tag: u16) -> Result<Option<String>> {
        let bytes = self.entry_bytes(tag)?;
        Ok(bytes.map(|(_, bytes)| {
            let end = bytes.iter().position(|&byte| byte == 0);
            String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
        }))
    }

    /// The numerator and denominator of the first value of a RATIONAL tag; `None` if the tag is missing.
    ///
    /// # Errors
    /// Numbers that are not all in the file.
    pub fn fraction(&self, tag: u16) -> Result<Option<(u32, u32)>> {
        let bytes = self.entry_bytes(tag)?.filter(|(kind, _)| *kind == 5);
        Ok(bytes.and_then(|(_, bytes)| {
            let half = |from| Some(self.format.number(bytes.get(from..from + 4)?) as u32);
            Some((half(0)?, half(4)?))
        }))
    }

    /// The first `most` values of a tag of fractions or integers; `None` if the tag is missing.
    ///
    /// # Errors
    /// Values that are not all in the file, and of another type.
    pub fn fractions(&self, tag: u16, most: usize) -> Result<Option<Vec<f64>>> {
        let Some((5, bytes)) = self.entry_bytes(tag)? else {
            let values = self.values(tag, most as u64)?;
            return Ok(values.map(|values| values.iter().map(|&value| value as f64).collect()));
        };
        let number = |bytes: &[u8]| self.format.number(bytes) as f64;
        let fractions = bytes.chunks_exact(8).take(most);
        let fractions = fractions.map(|bytes| number(&bytes[..4]) / number(&bytes[4..]));
        Ok(Some(fractions.collect()))
    }

    /// The type and the bytes of a tag; `None` if the tag is missing or of an unknown type.
    fn entry_bytes(&self, tag: u16) -> Result<Option<(u16, Vec<u8>)>> {
        let Some(entry) = self.entries.iter().find(|entry| entry.tag == tag) else {
            return Ok(None);
        };
        Ok(self.bytes(entry)?.map(|bytes| (entry.kind, bytes)))
    }

    /// The first value of a tag; `None` if the tag is missing, empty, or not an integer, which other programs ignore.
    ///
    /// # Errors
    /// A negative value, and values that are not all in the file.
    pub fn number(&self, tag: u16) -> Result<Option<u64>> {
        let entry = self.entries.iter().find(|entry| entry.tag == tag);
        match entry.map(|entry| entry.kind) {
            Some(1 | 3 | 4 | 6 | 8 | 9 | 13 | 16..=18) => self.value(tag),
            _ => Ok(None),
        }
    }
}

/// The name of a field whose loss is damage: a field of the specification, or one that many programs rely on. A private
/// field that cannot be read is only a warning, as other programs read such files.
pub fn essential_name(tag: u16) -> Option<&'static str> {
    Some(match tag {
        269 => "DocumentName",
        tag::IMAGE_DESCRIPTION => "ImageDescription",
        271 => "Make",
        272 => "Model",
        tag::ORIENTATION => "Orientation",
        280 => "MinSampleValue",
        tag::MAX_SAMPLE_VALUE => "MaxSampleValue",
        tag::X_RESOLUTION => "XResolution",
        tag::Y_RESOLUTION => "YResolution",
        285 => "PageName",
        286 => "XPosition",
        287 => "YPosition",
        301 => "TransferFunction",
        305 => "Software",
        306 => "DateTime",
        315 => "Artist",
        316 => "HostComputer",
        318 => "WhitePoint",
        319 => "PrimaryChromaticities",
        700 => "XMP",
        33432 => "Copyright",
        33550 => "ModelPixelScale",
        33922 => "ModelTiepoint",
        34264 => "ModelTransformation",
        34675 => "ICC profile",
        34735 => "GeoKeyDirectory",
        34736 => "GeoDoubleParams",
        34737 => "GeoAsciiParams",
        42112 => "GDAL_METADATA",
        tag::GDAL_NODATA => "GDAL_NODATA",
        tag::IMAGEJ_LENGTHS => "ImageJ's lengths",
        tag::IMAGEJ_ENTRIES => "ImageJ's entries",
        50844 => "RPCCoefficient",
        _ => return None,
    })
}

/// A field in a sentence: `tag ImageDescription (270)`.
pub fn name(tag: u16) -> String {
    match essential_name(tag) {
        Some(name) => format!("tag {name} ({tag})"),
        None => format!("tag {tag}"),
    }
}

/// Bytes of one value of a type (TIFF 6.0, section 2, and BigTIFF); `None` for unknown types.
pub fn size_of_kind(kind: u16) -> Option<u64> {
    Some(match kind {
        1 | 2 | 6 | 7 => 1,
        3 | 8 => 2,
        4 | 9 | 11 | 13 => 4,
        5 | 10 | 12 | 16..=18 => 8,
        _ => return None,
    })
}
