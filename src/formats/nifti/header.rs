//! The header of a NIfTI file: 348 bytes of version 1, 540 of version 2, in the byte order of the machine that wrote it.

use crate::deflate::inflate::Inflater;
use crate::formats::raw::Order;
use crate::os::Source;
use anyhow::{Context, Result, bail, ensure};

/// Bytes of the headers of both versions.
const FIRST: usize = 348;
const SECOND: usize = 540;

/// Bytes of a gzip file that are read for the header.
const PACKED: usize = 64 << 10;

/// A header, as far as it concerns samples and their places.
pub struct Header {
    pub order: Order,
    /// Whether the file is compressed with gzip; offsets count in the unpacked file.
    pub is_compressed: bool,
    pub datatype: i16,
    /// The lengths of the axes, the fastest first.
    pub axes: Vec<u64>,
    /// Offset of the first sample.
    pub start: u64,
    /// `value = sample × slope + intercept`, unless the slope is 0.
    pub scale: (f64, f64),
    /// The distances of neighbouring samples along the first four axes.
    spacing: [f64; 4],
    /// Codes of the units of space and time.
    units: u8,
    /// What the two descriptions of the orientation refer to; 0 if they are not there.
    qform: i16,
    sform: i16,
    /// The rows of the matrix from places of samples to millimetres, if there is an sform.
    matrix: [[f64; 4]; 3],
}

/// Whether a file that begins with these bytes is a NIfTI file, compressed or not.
pub fn is_nifti(head: &[u8]) -> bool {
    let unpacked = beginning(head);
    let bytes = unpacked.as_deref().unwrap_or(head);
    version(bytes).is_some()
}

/// The version of an unpacked header.
fn version(bytes: &[u8]) -> Option<usize> {
    if bytes.get(344..348) == Some(b"n+1\0") {
        Some(1)
    } else if bytes.get(4..8) == Some(b"n+2\0") {
        Some(2)
    } else {
        None
    }
}

/// The first bytes that a gzip file (RFC 1952) unpacks to, as far as its first bytes show them; `None` if it is not one.
fn beginning(packed: &[u8]) -> Option<Vec<u8>> {
    let [0x1F, 0x8B, 8, flags, ..] = *packed else {
        return None;
    };
    let mut input = packed.get(10..)?;
    if flags & 4 != 0 {
        let &length = input.first_chunk()?;
        input = input.get(2 + usize::from(u16::from_le_bytes(length))..)?;
    }
    // The name of the file, and a comment.
    for _ in 0..(flags >> 3 & 1) + (flags >> 4 & 1) {
        let end = input.iter().position(|&byte| byte == 0)?;
        input = &input[end + 1..];
    }
    if flags & 2 != 0 {
        input = input.get(2..)?;
    }
    let mut inflater = Inflater::default();
    let (mut bytes, mut filled) = (vec![0; SECOND], 0);
    while filled < SECOND && !inflater.is_done() {
        let Ok(step) = inflater.read(input, &mut bytes, filled) else {
            break;
        };
        input = &input[step.used..];
        filled += step.made;
        if step.needs_input {
            break;
        }
    }
    bytes.truncate(filled);
    Some(bytes)
}

impl Header {
    /// Reads the header of a file.
    ///
    /// # Errors
    /// A truncated or damaged header.
    pub fn read(source: &Source) -> Result<Header> {
        let mut head = vec![0; PACKED.min(usize::try_from(source.len())?)];
        source.read_at(&mut head, 0)?;
        let unpacked = beginning(&head);
        let is_compressed = unpacked.is_some();
        let bytes = unpacked.unwrap_or(head);
        let version = version(&bytes).context("its header has no mark of NIfTI")?;
        let size = if version == 1 { FIRST } else { SECOND };
        ensure!(
            bytes.len() >= size,
            "truncated at byte {}, within the header",
            source.len()
        );
        let fields = Fields {
            order: order(&bytes, size)?,
            bytes: &bytes,
        };
        Ok(if version == 1 {
            fields.first(is_compressed)?
        } else {
            fields.second(is_compressed)?
        })
    }

    /// The distances of neighbouring samples along the axes of space, in millimetres, if their unit is known.
    pub fn millimetres(&self) -> Option<[f64; 3]> {
        let unit = match self.units & 7 {
            1 => 1000.0,
            2 => 1.0,
            3 => 0.001,
            _ => return None,
        };
        let [x, y, z, _] = self.spacing;
        Some([x, y, z].map(|distance| distance.abs() * unit))
    }

    /// A note about each field that no other format has a place for.
    pub fn left_out(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let length = |axis: usize| self.axes.get(axis).copied().unwrap_or(1);
        if let Some([.., z]) = self.millimetres().filter(|_| length(2) > 1) {
            notes.push(format!("the distance of slices is left out: {z} mm"));
        }
        let unit = match self.units & 0x38 {
            8 => Some("s"),
            16 => Some("ms"),
            24 => Some("µs"),
            _ => None,
        };
        if let Some(unit) = unit.filter(|_| length(3) > 1) {
            let time = self.spacing[3];
            notes.push(format!(
                "the time between frames is left out: {time} {unit}"
            ));
        }
        if self.sform > 0 {
            let rows = self
                .matrix
                .map(|row| row.map(|number| number.to_string()).join(" "));
            notes.push(format!(
                "the orientation is not applied, and left out: sform {}, {}",
                self.sform,
                rows.join("; ")
            ));
        } else if self.qform > 0 {
            notes.push(format!(
                "the orientation is not applied, and left out: qform {}",
                self.qform
            ));
        }
        notes
    }
}

/// The byte order in which a header states its own size.
fn order(bytes: &[u8], size: usize) -> Result<Order> {
    let orders = [Order::Little, Order::Big];
    let known = orders
        .into_iter()
        .find(|order| order.number(&bytes[..4]) == size as u64);
    known.with_context(|| format!("its header does not begin with its size, {size}"))
}

/// The fields of a header.
struct Fields<'a> {
    order: Order,
    bytes: &'a [u8],
}

impl Fields<'_> {
    fn number(&self, at: usize, size: usize) -> u64 {
        self.order.number(&self.bytes[at..at + size])
    }

    fn short(&self, at: usize) -> i16 {
        self.number(at, 2) as i16
    }

    fn float(&self, at: usize) -> f64 {
        f32::from_bits(self.number(at, 4) as u32).into()
    }

    fn double(&self, at: usize) -> f64 {
        f64::from_bits(self.number(at, 8))
    }

    /// The header of version 1.
    fn first(&self, is_compressed: bool) -> Result<Header> {
        let start = self.float(108);
        ensure!(
            start.fract() == 0.0 && (0.0..1e9).contains(&start),
            "its vox_offset is {start}"
        );
        Ok(Header {
            order: self.order,
            is_compressed,
            datatype: self.short(70),
            axes: axes([0, 1, 2, 3, 4, 5, 6, 7].map(|axis| self.short(40 + 2 * axis).into()))?,
            start: checked_start(start as u64, FIRST)?,
            scale: (self.float(112), self.float(116)),
            spacing: [1, 2, 3, 4].map(|axis| self.float(76 + 4 * axis)),
            units: self.bytes[123],
            qform: self.short(252),
            sform: self.short(254),
            matrix: [280, 296, 312].map(|at| [0, 4, 8, 12].map(|column| self.float(at + column))),
        })
    }

    /// The header of version 2.
    fn second(&self, is_compressed: bool) -> Result<Header> {
        Ok(Header {
            order: self.order,
            is_compressed,
            datatype: self.short(12),
            axes: axes([0, 1, 2, 3, 4, 5, 6, 7].map(|axis| self.number(16 + 8 * axis, 8) as i64))?,
            start: checked_start(self.number(168, 8), SECOND)?,
            scale: (self.double(176), self.double(184)),
            spacing: [1, 2, 3, 4].map(|axis| self.double(104 + 8 * axis)),
            units: self.number(500, 4) as u8,
            qform: self.number(344, 4) as i16,
            sform: self.number(348, 4) as i16,
            matrix: [400, 432, 464].map(|at| [0, 8, 16, 24].map(|column| self.double(at + column))),
        })
    }
}

/// The lengths of the axes, from their number and their lengths.
fn axes(dim: [i64; 8]) -> Result<Vec<u64>> {
    let [count, lengths @ ..] = dim;
    let Some(lengths) = usize::try_from(count)
        .ok()
        .filter(|&count| count > 0)
        .and_then(|count| lengths.get(..count))
    else {
        bail!("its number of axes (dim[0]) is {count}");
    };
    let lengths = lengths.iter().map(|&length| u64::try_from(length).ok());
    let lengths: Option<Vec<u64>> = lengths.collect();
    lengths.with_context(|| format!("the lengths of its axes (dim) are {dim:?}"))
}

/// The offset of the samples, which 0 leaves to the standard: after the header and four bytes more.
fn checked_start(start: u64, header: usize) -> Result<u64> {
    let least = header as u64 + 4;
    match start {
        0 => Ok(least),
        start => {
            ensure!(
                start >= header as u64,
                "its samples begin within its header, at byte {start}"
            );
            Ok(start)
        }
    }
}
