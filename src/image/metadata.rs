//! The metadata of a page, and how operations keep them true.
//!
//! Fields that several formats have are stored once, in neutral form. All others are kept in the
//! form of the format that they came from (`Own`), and written back to that format unchanged.

mod axes;
mod ome;
mod stretch;
mod transform;

pub use axes::{Axes, Axis, Part, Place};
pub use ome::{Channel, Ome, Step};
pub use stretch::{Held, Stretch};
pub use transform::{Effect, PixelMap, Transform};

use crate::image::number::Number;
use crate::image::{Depth, Samples, Values};
use rayon::prelude::*;
use std::fmt;

/// The metadata of one page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// Whether samples are signed (`Values` describes their form in memory).
    pub signed: bool,
    /// Whether 0 stands for white in grey images. Values are kept.
    pub white_is_zero: bool,
    /// The meaning of the last channel, if it is not a colour.
    pub alpha: Alpha,
    /// The largest value that samples can have, if it is not 255 or 65535.
    pub maxval: Option<u16>,
    /// Significant bits of each channel before the samples were scaled to the full depth.
    pub significant: Option<Vec<u8>>,
    /// The orientation for display: 1 to 8 (TIFF 6.0, section 8, Orientation); `None` if it is not
    /// given.
    pub orientation: Option<u16>,
    /// The size of a pixel.
    pub resolution: Option<Resolution>,
    /// The smallest and the largest value that the file says are to be shown, as black and as white.
    pub window: Option<(i64, i64)>,
    /// The values of pixels without data, if the file names any: NODATA of GDAL, BLANK of FITS, the padding of DICOM.
    pub no_data: Vec<Number>,
    /// How `normalize` scaled the values, if the file says so; or why that cannot be read.
    pub stretch: Option<Result<Stretch, String>>,
    /// The axes along which the pages of the file lie, if they are not in its own metadata.
    pub axes: Option<Axes>,
    /// The metadata that only the input's format can store.
    pub own: Own,
}

/// The meaning of a second or fourth channel (TIFF 6.0, section 18, ExtraSamples).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Alpha {
    /// Opacity; colours are not multiplied by it (unassociated alpha).
    #[default]
    Independent,
    /// Opacity; colours are multiplied by it (associated alpha).
    Associated,
    /// Not specified by the file.
    Unspecified,
    /// No opacity but black ink: the channels before it are cyan, magenta and yellow (TIFF 6.0, section
    /// 16). Only moved: other operations refuse it.
    Black,
}

/// Pixels in a unit of length, across and down, as fractions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// Pixels in a unit across: numerator and denominator.
    pub x: (u32, u32),
    /// Pixels in a unit down: numerator and denominator.
    pub y: (u32, u32),
    /// The unit of length.
    pub unit: Unit,
}

/// Units of length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// No unit: only the ratio of both numbers has a meaning.
    None,
    /// 25.4 mm.
    Inch,
    /// 10 mm.
    Centimetre,
    /// 1000 mm.
    Metre,
}

/// Metadata that only one format can store, in its own form.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Own {
    /// No metadata of its own.
    #[default]
    None,
    /// Chunks of a PNG.
    Png(Vec<Chunk>),
    /// Fields of a TIFF directory.
    Tiff {
        /// Whether the values have their most significant byte first.
        big_endian: bool,
        /// The fields, sorted by tag.
        fields: Vec<Field>,
    },
    /// Whole blocks, as JPEG has them.
    Embedded(Embedded),
    /// Keyword records of a FITS header, in order.
    Fits(Vec<Record>),
    /// What OME-Zarr says about all pages.
    Ome(Box<Ome>),
}

/// A keyword record of a FITS header: 80 characters, of which the first 8 are the keyword.
pub type Record = [u8; 80];

impl Own {
    /// The names of all parts for messages: `chunk iCCP`, `tag 270`.
    pub fn names(&self) -> Vec<String> {
        match self {
            Own::None => Vec::new(),
            Own::Png(chunks) => (chunks.iter())
                .map(|chunk| format!("chunk {}", chunk.kind.escape_ascii()))
                .collect(),
            Own::Tiff { fields, .. } => (fields.iter())
                .map(|field| format!("tag {}", field.tag))
                .collect(),
            Own::Fits(records) => (records.iter())
                // Not of the file, but a mark of its pages.
                .filter(|record| !record.starts_with(b"XTENSION"))
                .map(|record| {
                    format!(
                        "the record {:?}",
                        String::from_utf8_lossy(record).trim_end()
                    )
                })
                .collect(),
            Own::Ome(ome) => ome.names(),
            Own::Embedded(Embedded { profile, exif, xmp }) => [
                (profile, "the ICC profile"),
                (exif, "the Exif data"),
                (xmp, "the XMP packet"),
            ]
            .into_iter()
            .filter(|(block, _)| block.is_some())
            .map(|(_, name)| name.into())
            .collect(),
        }
    }
}

/// Metadata that a file holds as whole blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Embedded {
    /// An ICC profile.
    pub profile: Option<Vec<u8>>,
    /// Exif data: a small TIFF file without an image.
    pub exif: Option<Vec<u8>>,
    /// An XMP packet.
    pub xmp: Option<Vec<u8>>,
}

impl Embedded {
    /// Bytes of all blocks.
    pub fn size(&self) -> u64 {
        let Embedded { profile, exif, xmp } = self;
        let blocks = [profile, exif, xmp].into_iter().flatten();
        blocks.map(|block| block.len() as u64).sum()
    }
}

/// A chunk of a PNG.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Its type, four letters.
    pub kind: [u8; 4],
    /// Whether it follows the image data.
    pub behind: bool,
    /// The data of the chunk, without length, type and CRC.
    pub data: Vec<u8>,
}

/// A field of a TIFF directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its tag number.
    pub tag: u16,
    /// The type of its values (TIFF 6.0, section 2).
    pub kind: u16,
    /// The values.
    pub value: Value,
}

/// The values of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Bytes in the file's order.
    Bytes(Vec<u8>),
    /// A directory that the field points to (Exif, GPS).
    Directory(Vec<Field>),
}

/// Messages for the user about a file, without its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    /// Messages about a changed meaning of the output: always printed.
    pub warnings: Vec<String>,
    /// Warnings that name an option which may suit the image better.
    pub hints: Vec<Hint>,
    /// Messages about metadata that were not kept and matter to few: printed with `--verbose`.
    pub notes: Vec<String>,
    /// Messages about metadata that the file has and that cannot be read, which makes it a damaged file.
    pub lost: Vec<String>,
}

impl Diagnostics {
    /// Adds the warnings and notes of another one.
    pub fn add(&mut self, other: &Diagnostics) {
        self.warnings.extend_from_slice(&other.warnings);
        self.notes.extend_from_slice(&other.notes);
    }
}

/// A warning that names an option which may suit the image better. It may be true of every image of a batch, so
/// that a batch prints it for the first one and then counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// A few samples decide the range of `normalize`.
    Outliers,
    /// `calibrate` clamps so many percent of the samples.
    Clamped(usize),
    /// `calibrate --log` clamps so many percent of the samples.
    ClampedToOne(usize),
    /// An image of more than 8 bits was reduced to 8, and shows almost nothing.
    AlmostBlack,
    /// The same, although its values were scaled.
    AlmostBlackInRange,
}

impl Hint {
    /// What is the same for all images.
    pub fn advice(self) -> &'static str {
        match self {
            Hint::Outliers => {
                "a few outliers determine the range, so that all other samples become nearly equal (use --clip 0.1:99.9 to ignore them)"
            }
            Hint::AlmostBlack => {
                "with 8 bits the result is almost black (gpuimg preview and gpuimg normalize scale the values)"
            }
            Hint::AlmostBlackInRange => {
                "with 8 bits the result is almost black: its values fill little of the range (use --clip 0.1:99.9, a narrower --range, or \
                 no --across)"
            }
            Hint::Clamped(_) => {
                "samples below the dark frame are clamped to 0 (use --offset to keep them)"
            }
            Hint::ClampedToOne(_) => {
                "samples that are less than 1 above the dark frame are taken as 1 (--log expects counts, not values from 0 to 1)"
            }
        }
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Hint::Outliers | Hint::AlmostBlack | Hint::AlmostBlackInRange => {
                f.write_str(self.advice())
            }
            Hint::Clamped(percent) | Hint::ClampedToOne(percent) => {
                write!(f, "about {percent} %: {}", self.advice())
            }
        }
    }
}

impl Metadata {
    /// The type of this page's samples at a depth.
    pub fn values(&self, depth: Depth) -> Values {
        let signed = self.signed;
        Values { depth, signed }
    }

    /// The sample in memory that stands for 0.
    pub fn zero(&self, depth: Depth) -> u16 {
        self.values(depth).zero()
    }

    /// Updates the neutral fields after a change of depth, of pages with so many channels.
    pub fn follow_depth(&mut self, from: Depth, to: Depth, channels: usize) {
        self.stretch = None;
        // 32 bits become fewer without sign, and floating point has its own.
        self.signed &= (!from.is_wide() || to.is_wide()) && !to.is_float();
        let bits = to.bits() as u8;
        // The bits that a maxval needs.
        let before =
            (self.maxval.take()).map_or(from.bits(), |most| u16::BITS - most.leading_zeros());
        if to.is_float() {
            self.significant = None;
        } else if let Some(significant) = &mut self.significant {
            significant
                .iter_mut()
                .for_each(|channel| *channel = bits.min(*channel));
        } else if before < to.bits() {
            self.significant = Some(vec![before as u8; channels]);
        }
    }

    /// Drops a maximum value that a sample exceeds: some files state a wrong one.
    pub fn check_maxval(&mut self, samples: &Samples) {
        let exceeded = |most: u16| match samples {
            Samples::U8(samples) => samples.par_iter().any(|&sample| u16::from(sample) > most),
            Samples::U16(samples) => samples.par_iter().any(|&sample| sample > most),
            Samples::U32(_) | Samples::U64(_) => true,
        };
        if self.maxval.is_some_and(exceeded) {
            self.maxval = None;
        }
    }

    /// Updates the neutral fields after an operation.
    pub fn follow(&mut self, transform: &Transform) {
        if transform.changes_channels() {
            self.significant = None;
            self.stretch = None;
            if !transform.to.has_alpha() {
                self.alpha = Alpha::default();
            }
        }
        match transform.effect {
            Effect::Numbers | Effect::Kept | Effect::Cropped { .. } => {}
            Effect::Values | Effect::Arithmetic => {
                self.no_data.clear();
                self.maxval = None;
                self.significant = None;
                self.stretch = None;
            }
            Effect::Moves(turn) => {
                self.orientation = self.orientation.and_then(|old| turn.conjugate(old));
                if let Some(resolution) = self.resolution.as_mut().filter(|_| turn.transposed) {
                    std::mem::swap(&mut resolution.x, &mut resolution.y);
                }
            }
            Effect::Reduced => {
                // Averages have more bits.
                self.significant = None;
                self.stretch = None;
                let scaled = self.resolution.and_then(|before| before.reduced(transform));
                self.resolution = scaled;
            }
        }
    }
}

impl Resolution {
    /// The resolution of pixels with these distances in millimetres; `None` if they are not plausible.
    pub fn from_millimetres(across: f64, down: f64) -> Option<Resolution> {
        // In millionths of a millimetre, of which decimals have few.
        let fraction = |millimetres: f64| {
            let parts = (millimetres * 1e6).round();
            (1.0..=u32::MAX.into())
                .contains(&parts)
                .then_some((10_000_000, parts as u32))
        };
        Some(Resolution {
            x: fraction(across)?,
            y: fraction(down)?,
            unit: Unit::Centimetre,
        })
    }

    /// Pixels a metre, rounded, across and down; `None` without a unit or with unusable numbers.
    pub fn per_metre(&self) -> Option<(u32, u32)> {
        let (mul, div) = match self.unit {
            Unit::None => return None,
            Unit::Inch => (10_000, 254),
            Unit::Centimetre => (100, 1),
            Unit::Metre => (1, 1),
        };
        let rounded = |(n, d): (u32, u32)| {
            let d = u64::from(d) * div;
            let n = u64::from(n) * mul;
            u32::try_from((n + d / 2).checked_div(d)?).ok()
        };
        Some((rounded(self.x)?, rounded(self.y)?))
    }

    /// The distances of columns and of rows in micrometres, or without a unit; `None` where numbers are unusable, or where the
    /// resolution says nothing.
    #[doc(hidden)]
    pub fn steps(&self) -> Option<[Step; 2]> {
        let unit = match self.unit {
            Unit::None => None,
            Unit::Inch => Some(25_400.0),
            Unit::Centimetre => Some(10_000.0),
            Unit::Metre => Some(1_000_000.0),
        };
        let step = |(n, d): (u32, u32)| {
            let size = unit.unwrap_or(1.0) * f64::from(d) / f64::from(n);
            (size.is_finite() && size > 0.0).then(|| Step {
                size,
                unit: unit.map(|_| "micrometer".into()),
            })
        };
        let steps = [step(self.x)?, step(self.y)?];
        // TIFF has to have a resolution, and has this one where none is known.
        let is_known = unit.is_some() || steps.iter().any(|step| step.size != 1.0);
        is_known.then_some(steps)
    }

    /// The resolution of the image that a transform made smaller; `None` where its numbers do not fit
    /// into a fraction.
    fn reduced(self, transform: &Transform) -> Option<Resolution> {
        // TIFF has to have a resolution, and has this one where none is known.
        let unknown = Resolution {
            x: (1, 1),
            y: (1, 1),
            unit: Unit::None,
        };
        if self == unknown {
            return Some(self);
        }
        let Transform { from, to, .. } = transform;
        let part = |(n, d): (u32, u32), to: usize, from: usize| {
            fraction(u128::from(n) * to as u128, u128::from(d) * from as u128)
        };
        Some(Resolution {
            x: part(self.x, to.width, from.width)?,
            y: part(self.y, to.height, from.height)?,
            unit: self.unit,
        })
    }

    /// The same resolution in pixels a centimetre.
    #[doc(hidden)]
    pub fn by_centimetre(self) -> Resolution {
        let shorter = |(n, d): (u32, u32)| match d.checked_mul(100) {
            Some(d) => (n, d),
            None => (n / 100, d),
        };
        Resolution {
            x: shorter(self.x),
            y: shorter(self.y),
            unit: Unit::Centimetre,
        }
    }
}

/// The fraction n/d in numbers of 32 bits: of large ones the last bits are left out.
pub fn fraction(n: u128, d: u128) -> Option<(u32, u32)> {
    let common = greatest_divisor(n, d).max(1);
    let (n, d) = (n / common, d / common);
    let bits = u128::BITS - (n | d).leading_zeros();
    let off = bits.saturating_sub(u32::BITS);
    Some((u32::try_from(n >> off).ok()?, u32::try_from(d >> off).ok()?))
}

fn greatest_divisor(a: u128, b: u128) -> u128 {
    match b {
        0 => a,
        b => greatest_divisor(b, a % b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the definition of each tag (TIFF 6.0, Orientation), worked out by hand.
    #[test]
    fn orientations_follow_turns() {
        let turn = |orientation| PixelMap::of_orientation(orientation).expect("1 to 8");
        // Upright stays upright, whatever the symmetry.
        for any in 1..=8 {
            assert_eq!(turn(any).conjugate(1), Some(1));
        }
        // Quarter turns commute with each other, and a flip turns one into its opposite.
        assert_eq!(turn(6).conjugate(6), Some(6));
        assert_eq!(turn(6).conjugate(8), Some(8));
        assert_eq!(turn(2).conjugate(6), Some(8));
        assert_eq!(turn(4).conjugate(8), Some(6));
        // A quarter turn exchanges the two flips.
        assert_eq!(turn(6).conjugate(2), Some(4));
        assert_eq!(turn(5).conjugate(4), Some(2));
        assert_eq!(turn(6).conjugate(9), None);
        assert_eq!(turn(6).conjugate(0), None);
    }

    #[test]
    fn resolutions() {
        let inch = Resolution {
            x: (300, 1),
            y: (72, 1),
            unit: Unit::Inch,
        };
        assert_eq!(inch.per_metre(), Some((11811, 2835)));
        let none = Resolution { x: (1, 0), ..inch };
        assert_eq!(none.per_metre(), None);
        let by_centimetre = |x| Resolution { x, ..inch }.by_centimetre().x;
        assert_eq!(by_centimetre((300, 7)), (300, 700));
        // Where a hundred times the divisor does not fit, a hundredth of the number has to do.
        assert_eq!(by_centimetre((12_345, 1 << 26)), (123, 1 << 26));
    }

    #[test]
    fn resolutions_of_smaller_images() {
        let side = |width, height| crate::image::Shape {
            width,
            height,
            channels: 1,
            depth: Depth::Sixteen,
        };
        let reduced = |x, y, from, to| {
            let resolution = Resolution {
                x,
                y,
                unit: Unit::Metre,
            };
            let transform = Transform {
                effect: Effect::Reduced,
                from,
                to,
                pages: 1,
                whole: true,
            };
            resolution.reduced(&transform).map(|it| (it.x, it.y))
        };
        let halves = reduced((300, 1), (7, 3), side(200, 90), side(100, 30));
        assert_eq!(halves, Some(((150, 1), (7, 9))));
        // 4294967291 is a prime, and 3 times that, by 4294967279 · 4, has two bits too many: both are divided by 4.
        let large = reduced(
            (4_294_967_291, 4_294_967_279),
            (1, 0),
            side(4, 4),
            side(3, 4),
        );
        assert_eq!(large, Some(((3_221_225_468, 4_294_967_279), (1, 0))));
    }
}
