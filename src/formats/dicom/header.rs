//! The data set of a DICOM file (PS3.5, section 7; PS3.10, section 7): elements of a tag and a value,
//! nested in sequences. Elements that describe pixels are kept; all others are counted and skipped.

use crate::formats::format::SlicePosition;
use crate::formats::raw::Order;
use crate::os::Source;
use crate::os::limits;
use anyhow::{Result, bail, ensure};
use libdeflater::{DecompressionError, Decompressor};
use std::collections::{HashMap, HashSet};

/// A tag: group and element.
pub type Tag = (u16, u16);

/// Pixel data.
const PIXELS: Tag = (0x7FE0, 0x0010);
/// The elements that all frames share, and those of each frame (PS3.3, C.7.6.16).
/// The position of the first pixel, and the directions of rows and columns, in the patient (PS3.3, C.7.6.2.1.1).
const POSITION: Tag = (0x0020, 0x0032);
const ORIENTATION: Tag = (0x0020, 0x0037);
const SHARED: Tag = (0x5200, 0x9229);
const PER_FRAME: Tag = (0x5200, 0x9230);
/// The beginning and the end of an item, and the end of a sequence.
const ITEM: Tag = (0xFFFE, 0xE000);
const END_OF_ITEM: Tag = (0xFFFE, 0xE00D);
const END_OF_SEQUENCE: Tag = (0xFFFE, 0xE0DD);

/// The length of a value that ends with a delimiter.
const UNDEFINED: u32 = u32::MAX;
/// The most elements of a file, the most levels of sequences, and the longest value that is kept.
pub(super) const MOST: usize = 1 << 20;
const DEEPEST: usize = 16;
const LONGEST: u32 = 1024;
/// The longest table of colours: 65536 of 16 bits.
const LONGEST_TABLE: u32 = 1 << 17;
/// The most bytes that a byte of deflate data expands to.
const EXPANSION: u64 = 1032;
/// The transfer syntax of deflated data sets.
const DEFLATED: &str = "1.2.840.10008.1.2.1.99";

/// A data set.
#[derive(Debug, Default)]
pub struct Header {
    /// The values of elements of pixels (group 0028), the transfer syntax, and the position of the image.
    values: HashMap<Tag, Vec<u8>>,
    /// The elements of pixels that differ from frame to frame.
    differing: HashSet<Tag>,
    /// Offset of the pixel data, and their length unless they are in fragments.
    pub pixels: Option<(u64, Option<u64>)>,
    /// Whether the pixel data are words of 16 bits (type OW), whatever the size of a sample.
    pub pixel_words: bool,
    /// The byte order of values, and whether their types are written with them.
    order: Option<Order>,
    explicit: bool,
    /// Elements that are neither kept nor pixels.
    pub others: usize,
}

/// The beginning of an element.
struct Element {
    tag: Tag,
    /// The type of the value, if it is written.
    kind: [u8; 2],
    length: u32,
    /// Offset of the value.
    at: u64,
}

impl Header {
    /// Reads a file's elements up to its pixel data; also returns the data set, in which offsets count, if it was deflated.
    ///
    /// # Errors
    /// A damaged file.
    pub fn read(source: &Source) -> Result<(Header, Option<Source>)> {
        let mut header = Header {
            explicit: true,
            order: Some(Order::Little),
            ..Header::default()
        };
        let mut at = 132;
        // The first group is always written in this way; it states how the others are.
        while at + 8 <= source.len() {
            let mut group = [0; 2];
            source.read_at(&mut group, at)?;
            if group != [2, 0] {
                break;
            }
            let element = header.element(source, at)?;
            at = header.read_element(source, &element, &[])?;
        }
        let mut inflated = None;
        match &*header.syntax() {
            "1.2.840.10008.1.2" => header.explicit = false,
            "1.2.840.10008.1.2.2" => header.order = Some(Order::Big),
            DEFLATED => {
                inflated = Some(inflate(source, at)?);
                at = 0;
            }
            _ => {}
        }
        let source = inflated.as_ref().unwrap_or(source);
        // Some data sets have types of values although their transfer syntax has none, or the other way round. Without types,
        // the length of the first element is in their place, which is far less than two letters are as a number.
        let mut first = [0; 6];
        if source.read_up_to(&mut first, at)? == first.len() {
            header.explicit = first[4..].iter().all(u8::is_ascii_uppercase);
        }
        while at + 8 <= source.len() && header.pixels.is_none() {
            let element = header.element(source, at)?;
            at = header.read_element(source, &element, &[])?;
        }
        Ok((header, inflated))
    }

    /// The transfer syntax (PS3.5, section 10); implicit little endian where none is named.
    pub fn syntax(&self) -> String {
        self.text((2, 0x0010)).unwrap_or("1.2.840.10008.1.2".into())
    }

    /// The byte order of values.
    pub fn order(&self) -> Order {
        self.order.unwrap_or(Order::Little)
    }

    /// Whether an element of pixels differs from frame to frame.
    pub fn differs(&self, elements: &[u16]) -> bool {
        let mut elements = elements.iter();
        elements.any(|&element| self.differing.contains(&(0x28, element)))
    }

    /// A text, without the blanks around it.
    pub fn text(&self, tag: Tag) -> Option<String> {
        let value = self.values.get(&tag)?;
        let text = String::from_utf8_lossy(value);
        let text = text.trim_matches(|c: char| c == '\0' || c.is_whitespace());
        (!text.is_empty()).then(|| text.into())
    }

    /// The numbers of a text, as `0.5\0.5`.
    pub fn decimals(&self, tag: Tag) -> Option<Vec<f64>> {
        let text = self.text(tag)?;
        let numbers = text.split('\\').map(|number| number.trim().parse().ok());
        numbers
            .collect::<Option<Vec<f64>>>()
            .filter(|numbers| numbers.iter().all(|n| n.is_finite()))
    }

    /// The position of the image among parallel slices, if the file has it.
    pub fn slice_position(&self) -> Option<SlicePosition> {
        let [x, y, z] = self.decimals(POSITION)?.try_into().ok()?;
        let [a, b, c, d, e, f] = self.decimals(ORIENTATION)?.try_into().ok()?;
        let normal = [b * f - c * e, c * d - a * f, a * e - b * d];
        Some(SlicePosition {
            normal,
            distance: x * normal[0] + y * normal[1] + z * normal[2],
        })
    }

    /// A number of 16 bits.
    pub fn number(&self, tag: Tag) -> Option<u16> {
        self.numbers(tag)?.first().copied()
    }

    /// Numbers of 16 bits.
    pub fn numbers(&self, tag: Tag) -> Option<Vec<u16>> {
        let words = self.values.get(&tag)?.chunks_exact(2);
        Some(words.map(|word| self.word(word) as u16).collect())
    }

    fn word(&self, bytes: &[u8]) -> u32 {
        self.order().number(bytes) as u32
    }

    /// The element at an offset.
    fn element(&self, source: &Source, at: u64) -> Result<Element> {
        let mut head = [0; 12];
        let read = source.read_up_to(&mut head, at)?;
        ensure!(
            read >= 8,
            "truncated at byte {}, within the header",
            source.len()
        );
        let tag = (self.word(&head[..2]) as u16, self.word(&head[2..4]) as u16);
        let kind = [head[4], head[5]];
        let (length, size) = if tag.0 == 0xFFFE || !self.explicit {
            (self.word(&head[4..8]), 8)
        } else if is_long(kind) {
            ensure!(
                read == 12,
                "truncated at byte {}, within the header",
                source.len()
            );
            (self.word(&head[8..]), 12)
        } else {
            ensure!(
                kind.iter().all(u8::is_ascii_uppercase),
                "its header is damaged at byte {at}: no type of value"
            );
            (self.word(&head[6..8]), 8)
        };
        Ok(Element {
            tag,
            kind,
            length,
            at: at + size,
        })
    }

    /// Keeps or skips an element that is inside these sequences; returns the offset after it.
    fn read_element(&mut self, source: &Source, element: &Element, inside: &[Tag]) -> Result<u64> {
        let Element {
            tag, length, at, ..
        } = *element;
        self.others += 1;
        ensure!(
            self.others <= MOST,
            "its header has more than {MOST} elements"
        );
        if tag == PIXELS && inside.is_empty() {
            let length = (length != UNDEFINED).then(|| u64::from(length));
            self.pixels = Some((at, length));
            self.pixel_words = &element.kind == b"OW";
            return Ok(at);
        }
        let outer = inside.first().copied().unwrap_or(tag);
        let of_frames = matches!(outer, SHARED | PER_FRAME);
        let is_sequence = &element.kind == b"SQ" || is_framed(tag);
        let within = [inside, &[tag]].concat();
        ensure!(
            within.len() <= DEEPEST,
            "its header has more than {DEEPEST} levels of sequences"
        );
        if length == UNDEFINED {
            // A value of unknown type is a sequence without types (PS3.5, section 6.2.2).
            let explicit = self.explicit;
            self.explicit &= &element.kind != b"UN";
            let end = self.sequence(source, at, None, &within);
            self.explicit = explicit;
            return end;
        }
        let end = at + u64::from(length);
        ensure!(
            end <= source.len(),
            "truncated at byte {} of {end}, within the header",
            source.len()
        );
        if of_frames && is_sequence {
            return self.sequence(source, at, Some(end), &within);
        }
        let longest = match tag {
            (0x28, 0x1201..=0x1203) => LONGEST_TABLE,
            _ => LONGEST,
        };
        let is_position = matches!(tag, POSITION | ORIENTATION);
        let kept = (is_position || matches!(tag, (0x28, _) | (2, 0x0010))) && length <= longest;
        // Of frames, the distances of pixels, how values are rescaled, and windows.
        let is_of_frames = of_frames && matches!(tag.1, 0x30 | 0x1050..=0x1056);
        if kept && (inside.is_empty() || is_of_frames) {
            let mut value = vec![0; length as usize];
            source.read_at(&mut value, at)?;
            match self.values.get(&tag) {
                Some(known) if of_frames => {
                    if *known != value {
                        self.differing.insert(tag);
                    }
                }
                _ => {
                    self.values.insert(tag, value);
                    // A position is used to sort slices, but not kept in outputs.
                    if !is_position {
                        self.others -= 1;
                    }
                }
            }
        }
        Ok(end)
    }

    /// Reads the items of a sequence, up to its end or its delimiter; returns the offset after it.
    fn sequence(
        &mut self,
        source: &Source,
        mut at: u64,
        end: Option<u64>,
        inside: &[Tag],
    ) -> Result<u64> {
        while end.is_none_or(|end| at < end) {
            let item = self.element(source, at)?;
            match item.tag {
                END_OF_SEQUENCE => return Ok(item.at),
                ITEM => {}
                _ => bail!("its header is damaged at byte {at}: no item of a sequence"),
            }
            at = item.at;
            let stop = (item.length != UNDEFINED).then(|| item.at + u64::from(item.length));
            if let (Some(stop), Some(&PIXELS)) = (stop, inside.last()) {
                // A fragment of a small copy of the image.
                at = stop;
                continue;
            }
            while stop.is_none_or(|stop| at < stop) {
                let element = self.element(source, at)?;
                at = element.at;
                if element.tag == END_OF_ITEM {
                    break;
                }
                at = self.read_element(source, &element, inside)?;
            }
        }
        Ok(at)
    }
}

/// Inflates the data set from `at` on (PS3.5, section A.5): deflate data without a header or checksum.
fn inflate(source: &Source, at: u64) -> Result<Source> {
    let free = limits::free_memory();
    let length = source.len() - at;
    ensure!(
        length <= free,
        "{length} bytes of deflate data do not fit in half of the memory that is free"
    );
    let mut packed = vec![0; length as usize];
    source.read_at(&mut packed, at)?;
    let most = length.saturating_mul(EXPANSION).min(free) as usize;
    let mut size = (4 * packed.len() + 4096).min(most);
    let mut inflate = Decompressor::new();
    loop {
        let mut bytes = vec![0; size];
        match inflate.deflate_decompress(&packed, &mut bytes) {
            Ok(filled) => {
                bytes.truncate(filled);
                return Ok(Source::memory(bytes));
            }
            Err(DecompressionError::InsufficientSpace) if size < most => {
                size = size.saturating_mul(4).min(most);
            }
            Err(DecompressionError::InsufficientSpace) => bail!(
                "its deflated data set has more than {most} bytes, half of the memory that is free"
            ),
            Err(DecompressionError::BadData) => {
                bail!("its deflated data set is damaged, or ends too early")
            }
        }
    }
}

/// Whether an element is a sequence of frames, or one in it that holds the distances of pixels, how
/// values are rescaled or windows (PS3.3, C.7.6.16.2), also where its type is not written.
fn is_framed(tag: Tag) -> bool {
    matches!(tag, SHARED | PER_FRAME | (0x0028, 0x9110 | 0x9145 | 0x9132))
}

/// Whether the length of a value of this type takes four bytes (PS3.5, section 7.1.2).
fn is_long(kind: [u8; 2]) -> bool {
    const LONG: [&[u8; 2]; 13] = [
        b"OB", b"OD", b"OF", b"OL", b"OV", b"OW", b"SQ", b"SV", b"UC", b"UN", b"UR", b"UT", b"UV",
    ];
    LONG.contains(&&kind)
}
