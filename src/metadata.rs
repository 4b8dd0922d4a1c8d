//! What a file says of an image beside its samples, and how operations keep it true.
//!
//! What both formats can say is told once, in plain fields; everything else is carried as the
//! format it came from has it (`Own`), to be written back to that format word for word.

use crate::image::{Depth, Samples, Shape, Values};
use rayon::prelude::*;

/// What a page says of itself beside its samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// Whether samples are signed (`Values` tells how they are kept).
    pub signed: bool,
    /// Whether grey 0 is white. Values are kept as they are.
    pub white_is_zero: bool,
    /// What the last channel is, if not opacity that colours are independent of.
    pub alpha: Alpha,
    /// The largest value that samples can have, where that is not all bits set.
    pub maxval: Option<u16>,
    /// Bits that mattered before the samples were scaled to the full depth, of each channel.
    pub significant: Option<Vec<u8>>,
    /// How the pixels are to be shown: 1 to 8 (TIFF 6.0, Orientation); `None` is not told.
    pub orientation: Option<u16>,
    /// How large a pixel is.
    pub resolution: Option<Resolution>,
    /// What only the format that it came from has a place for.
    pub own: Own,
}

/// What a fourth (or second) channel means; TIFF 6.0, ExtraSamples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Alpha {
    /// Opacity; colours are not multiplied by it.
    #[default]
    Independent,
    /// Opacity that colours are multiplied by.
    Associated,
    /// The file does not say.
    Unspecified,
}

/// Pixels in a unit of length, across and down, as fractions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// Across: numerator and denominator.
    pub x: (u32, u32),
    /// Down.
    pub y: (u32, u32),
    /// The unit.
    pub unit: Unit,
}

/// Units of length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// None: the ratio of both numbers is meant.
    None,
    /// 25.4 mm.
    Inch,
    /// 10 mm.
    Centimetre,
    /// 1000 mm.
    Metre,
}

/// What one format alone can say, as it says it.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Own {
    /// Nothing.
    #[default]
    None,
    /// Chunks of a PNG.
    Png(Vec<Chunk>),
    /// Fields of a TIFF directory, and whether everything in them has its most significant byte first.
    Tiff {
        /// The byte order.
        big_endian: bool,
        /// The fields, by tag.
        fields: Vec<Field>,
    },
}

impl Own {
    /// What each part of it is called: `chunk iCCP`, `tag 270`.
    pub fn names(&self) -> Vec<String> {
        match self {
            Own::None => Vec::new(),
            Own::Png(chunks) => (chunks.iter())
                .map(|chunk| format!("chunk {}", chunk.kind.escape_ascii()))
                .collect(),
            Own::Tiff { fields, .. } => (fields.iter())
                .map(|field| format!("tag {}", field.tag))
                .collect(),
        }
    }
}

/// A chunk of a PNG.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Its type.
    pub kind: [u8; 4],
    /// Whether it stands behind the image data.
    pub behind: bool,
    /// Its data.
    pub data: Vec<u8>,
}

/// A field of a TIFF directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its tag.
    pub tag: u16,
    /// The type of its values.
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

/// What an operation does to what metadata speak of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Makes numbers, no image.
    Numbers,
    /// Gives samples other values, up to the full depth.
    Values,
    /// Moves pixels.
    Moves(PixelMap),
}

/// The transform applied to a page, by which its metadata are made true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transform {
    /// What the operation did.
    pub effect: Effect,
    /// The page as it was read.
    pub from: Shape,
    /// The page as it is written.
    pub to: Shape,
    /// How many pages are written.
    pub pages: usize,
    /// Whether those are all of the input's.
    pub whole: bool,
}

impl Transform {
    /// Whether samples have other values than before.
    pub fn changes_values(&self) -> bool {
        self.effect == Effect::Values || self.from.depth != self.to.depth
    }

    /// Whether rows became columns.
    pub fn is_transposed(&self) -> bool {
        matches!(self.effect, Effect::Moves(turn) if turn.transposed)
    }
}

/// A symmetry of the rectangle: with the output's pixel (x, y), mirrored where said, the input's is
/// (x, y), or (y, x) where transposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PixelMap {
    /// Whether rows become columns.
    pub transposed: bool,
    /// Whether the output's columns are mirrored.
    pub mirror_x: bool,
    /// Whether its rows are.
    pub mirror_y: bool,
}

impl PixelMap {
    /// The turns that TIFF's orientations 1 to 8 ask for before an image is shown.
    const ORIENTATIONS: [PixelMap; 8] = {
        const fn turn(transposed: bool, mirror_x: bool, mirror_y: bool) -> PixelMap {
            PixelMap {
                transposed,
                mirror_x,
                mirror_y,
            }
        }
        [
            turn(false, false, false),
            turn(false, true, false),
            turn(false, true, true),
            turn(false, false, true),
            turn(true, false, false),
            turn(true, true, false),
            turn(true, true, true),
            turn(true, false, true),
        ]
    };

    /// The shape that an image of a shape has afterwards.
    pub fn of(self, shape: Shape) -> Shape {
        match self.transposed {
            true => Shape {
                width: shape.height,
                height: shape.width,
                ..shape
            },
            false => shape,
        }
    }

    /// The turn that an orientation asks for; none for numbers that are no orientation.
    pub fn of_orientation(orientation: u16) -> Option<PixelMap> {
        let index = usize::from(orientation).checked_sub(1)?;
        PixelMap::ORIENTATIONS.get(index).copied()
    }

    /// Where a pixel of the output, as a vector from the centre, comes from.
    fn source(self, (x, y): (i8, i8)) -> (i8, i8) {
        let x = if self.mirror_x { -x } else { x };
        let y = if self.mirror_y { -y } else { y };
        if self.transposed { (y, x) } else { (x, y) }
    }

    /// The orientation that has the same effect on the turned image as `orientation` had before:
    /// who sees the file as it is meant to be shown sees it turned, and who does not, too.
    fn conjugate(self, orientation: u16) -> Option<u16> {
        let shown = PixelMap::of_orientation(orientation)?;
        // Turned and then shown by the new one is shown by the old one and then turned.
        let same = |new: &PixelMap| {
            [(1, 0), (0, 1)]
                .into_iter()
                .all(|v| self.source(new.source(v)) == shown.source(self.source(v)))
        };
        let index = PixelMap::ORIENTATIONS.iter().position(same)?;
        Some(index as u16 + 1)
    }
}

/// Sentences for the user, without the file's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    /// What changes the meaning of the output: always told.
    pub warnings: Vec<String>,
    /// What is not carried on, and matters to few: told when asked for.
    pub notes: Vec<String>,
}

impl Metadata {
    /// What samples of this depth stand for.
    pub fn values(&self, depth: Depth) -> Values {
        let signed = self.signed;
        Values { depth, signed }
    }

    /// The sample in memory that stands for 0.
    pub fn zero(&self, depth: Depth) -> u16 {
        self.values(depth).zero()
    }

    /// Keeps the plain fields true after the samples' depth changed.
    pub fn follow_depth(&mut self, from: Depth, to: Depth) {
        let bits = to.bits() as u8;
        // A maxval needs so many bits.
        let before =
            (self.maxval.take()).map_or(from.bits(), |most| u16::BITS - most.leading_zeros());
        if let Some(significant) = &mut self.significant {
            significant
                .iter_mut()
                .for_each(|told| *told = bits.min(*told));
        } else if before < to.bits() {
            self.significant = Some(vec![before as u8; 4]);
        }
    }

    /// Forgets a maximum value that a sample of the image exceeds: some files tell an untrue one.
    pub fn check_maxval(&mut self, samples: &Samples) {
        let exceeded = |most: u16| match samples {
            Samples::U8(samples) => samples.par_iter().any(|&sample| u16::from(sample) > most),
            Samples::U16(samples) => samples.par_iter().any(|&sample| sample > most),
        };
        if self.maxval.is_some_and(exceeded) {
            self.maxval = None;
        }
    }

    /// Keeps the plain fields true after an operation.
    pub fn follow(&mut self, effect: Effect) {
        match effect {
            Effect::Numbers => {}
            Effect::Values => {
                self.maxval = None;
                self.significant = None;
            }
            Effect::Moves(turn) => {
                self.orientation = self.orientation.and_then(|old| turn.conjugate(old));
                if let Some(resolution) = self.resolution.as_mut().filter(|_| turn.transposed) {
                    std::mem::swap(&mut resolution.x, &mut resolution.y);
                }
            }
        }
    }
}

impl Resolution {
    /// Pixels a metre, rounded, across and down; `None` where there is no unit, or nothing sane.
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

    /// The same of pixels a metre, by centimetres.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// By the definition of each tag (TIFF 6.0, Orientation), worked out by hand.
    #[test]
    fn orientations_follow_turns() {
        let turn = |orientation| PixelMap::of_orientation(orientation).expect("1 to 8");
        // Upright stays upright, whatever is done.
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
    }
}
