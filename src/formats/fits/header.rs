//! The header of a part (HDU) of a FITS file: records of 80 characters in blocks of 2880 bytes
//! (section 3 and 4).

use crate::image::metadata::Record;
use crate::os::Source;
use anyhow::{Context, Result, bail, ensure};

/// The unit of a file's length, in bytes.
pub const BLOCK: usize = 2880;

/// The most blocks of a header: 36 000 records.
const MOST: usize = 1000;

/// A header whose axes have been read.
pub struct Header {
    /// All records but END, in order.
    pub records: Vec<Record>,
    /// The lengths of the axes, that of a row first.
    pub axes: Vec<u64>,
    /// Offset of the data in the file.
    pub data: u64,
}

impl Header {
    /// Reads the header at an offset.
    ///
    /// # Errors
    /// A header without end, and one whose axes are missing.
    pub fn read(source: &Source, at: u64) -> Result<Header> {
        let mut records = Vec::new();
        let mut block = [0; BLOCK];
        for number in 0..MOST {
            let start = at + (number * BLOCK) as u64;
            source
                .read_at(&mut block, start)
                .context("within the header")?;
            for record in block.as_chunks::<80>().0 {
                if keyword(record) == "END" {
                    let mut header = Header {
                        records,
                        axes: Vec::new(),
                        data: start + BLOCK as u64,
                    };
                    header.axes = header.lengths("")?;
                    return Ok(header);
                }
                records.push(*record);
            }
        }
        bail!("a header of more than {MOST} blocks")
    }

    /// The lengths of the axes, that of a row first, from NAXIS and NAXISn; or, with the prefix Z, those of the image that a
    /// table has in compressed tiles.
    ///
    /// # Errors
    /// Missing records.
    pub fn lengths(&self, prefix: &str) -> Result<Vec<u64>> {
        let count = self
            .integer(&format!("{prefix}NAXIS"))
            .filter(|count| (0..=999).contains(count));
        let count =
            count.with_context(|| format!("the header has no {prefix}NAXIS from 0 to 999"))?;
        let axis = |number: i64| {
            let name = format!("{prefix}NAXIS{number}");
            let length = self
                .integer(&name)
                .and_then(|length| u64::try_from(length).ok());
            length.with_context(|| format!("the header has no {name}"))
        };
        (1..=count).map(axis).collect()
    }

    /// Whether the part is an image that has pixels.
    pub fn is_image(&self) -> bool {
        let image = match self.text("XTENSION") {
            None => true,
            Some(kind) => kind.trim() == "IMAGE",
        };
        image && !self.axes.is_empty()
    }

    /// Offset of the next part.
    ///
    /// # Errors
    /// More bytes than a file can have.
    pub fn next(&self) -> Result<u64> {
        let length = || {
            let pixels = if self.axes.is_empty() {
                0
            } else {
                (self.axes.iter()).try_fold(1, |all: u64, axis| all.checked_mul(*axis))?
            };
            let count = |name, other| {
                self.integer(name)
                    .map_or(Some(other), |n| n.try_into().ok())
            };
            let bytes = self.integer("BITPIX")?.unsigned_abs() / 8;
            pixels
                .checked_add(count("PCOUNT", 0)?)?
                .checked_mul(count("GCOUNT", 1)?)?
                .checked_mul(bytes)?
                .checked_next_multiple_of(BLOCK as u64)?
                .checked_add(self.data)
        };
        length().context("its axes do not fit in a file")
    }

    /// The value of the first record with a keyword, without a comment.
    fn value(&self, name: &str) -> Option<&str> {
        let record = self.records.iter().find(|record| keyword(record) == name)?;
        value_of(record)
    }

    /// A number without fraction.
    pub fn integer(&self, name: &str) -> Option<i64> {
        self.value(name)?.split('/').next()?.trim().parse().ok()
    }

    /// True or false.
    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.value(name)?.bytes().next()? {
            b'T' => Some(true),
            b'F' => Some(false),
            _ => None,
        }
    }

    /// A number, with E or D before its exponent.
    ///
    /// # Errors
    /// A value that is none.
    pub fn real(&self, name: &str) -> Result<Option<f64>> {
        let Some(value) = self.value(name) else {
            return Ok(None);
        };
        let number = number(value);
        ensure!(
            number.is_some(),
            "the header's {name} is not a number: {:?}",
            without_comment(value)
        );
        Ok(number)
    }

    /// A text in quotes.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.value(name)?.strip_prefix('\'')?.split('\'').next()
    }
}

/// The value of a record, and its comment.
pub fn value_of(record: &Record) -> Option<&str> {
    let value = str::from_utf8(record).ok()?.get(8..)?.strip_prefix("= ")?;
    Some(value.trim_start())
}

/// The number that a value is, with E or D before its exponent.
pub fn number(value: &str) -> Option<f64> {
    let value = without_comment(value).replace(['D', 'd'], "E");
    value.parse().ok().filter(|number: &f64| number.is_finite())
}

fn without_comment(value: &str) -> &str {
    value.split('/').next().unwrap_or_default().trim()
}

/// A record with another value, and its comment cut to the length of a record.
pub fn with_value(record: &Record, value: &str) -> Record {
    let mut bytes = format!("{:<8}= {value:>20}", keyword(record)).into_bytes();
    // The comment begins with a slash; a number has none.
    if let Some(at) = record.iter().position(|&byte| byte == b'/') {
        bytes.push(b' ');
        bytes.extend(&record[at..]);
    }
    bytes.resize(record.len(), b' ');
    bytes.try_into().unwrap_or(*record)
}

/// The keyword of a record.
pub fn keyword(record: &Record) -> &str {
    str::from_utf8(&record[..8]).unwrap_or_default().trim_end()
}
