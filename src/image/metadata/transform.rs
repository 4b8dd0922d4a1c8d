//! What an operation does to an image, as far as its metadata must follow.

use crate::image::Shape;

/// The effect of an operation on the properties that metadata describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Gives numbers, no image.
    Numbers,
    /// Gives samples other values, up to the full depth.
    Values,
    /// Computes other values, to be read as before: nothing is scaled, and a sign stays.
    Arithmetic,
    /// Moves pixels.
    Moves(PixelMap),
    /// Makes the image smaller: each pixel is the average of several.
    Reduced,
    /// Takes a part of the image, whose first pixel was at this place.
    Cropped {
        /// Pixels to the left of it.
        left: usize,
        /// Rows above it.
        top: usize,
    },
    /// Changes nothing.
    Kept,
}

impl Effect {
    /// Whether every sample of the result is a sample of the input, with its value.
    pub fn keeps_values(self) -> bool {
        matches!(
            self,
            Effect::Moves(_) | Effect::Cropped { .. } | Effect::Kept
        )
    }
}

/// The transform applied to a page, by which its metadata are updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transform {
    /// The effect of the operation.
    pub effect: Effect,
    /// The shape of the page as it was read.
    pub from: Shape,
    /// The shape of the page as it is written.
    pub to: Shape,
    /// The number of pages that are written.
    pub pages: usize,
    /// Whether these are all pages of the input.
    pub whole: bool,
}

impl Transform {
    /// Whether samples have other values than before, or other samples are in a pixel.
    pub fn changes_values(&self) -> bool {
        matches!(self.effect, Effect::Values | Effect::Arithmetic)
            || self.from.depth != self.to.depth
            || self.changes_channels()
    }

    /// Whether pixels have more or fewer channels than before.
    pub fn changes_channels(&self) -> bool {
        self.from.channels != self.to.channels
    }

    /// Whether pixels are other ones than before: at another place, averages of several, or a part of them.
    pub fn changes_places(&self) -> bool {
        matches!(
            self.effect,
            Effect::Moves(_) | Effect::Reduced | Effect::Cropped { .. }
        )
    }

    /// Whether statistics of the samples, as the smallest and the largest one, are others than before.
    pub fn changes_statistics(&self) -> bool {
        self.changes_values() || self.changes_size()
    }

    /// Whether the image has fewer pixels than before.
    pub fn changes_size(&self) -> bool {
        matches!(self.effect, Effect::Reduced | Effect::Cropped { .. })
    }

    /// Whether rows became columns.
    pub fn is_transposed(&self) -> bool {
        matches!(self.effect, Effect::Moves(turn) if turn.transposed)
    }
}

/// A symmetry of the rectangle. With (x, y) the output's pixel after the mirroring, the input's
/// pixel is (x, y), or (y, x) if transposed.
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
    /// No change.
    pub const NONE: PixelMap = PixelMap {
        transposed: false,
        mirror_x: false,
        mirror_y: false,
    };

    /// The symmetries that TIFF's orientations 1 to 8 apply before an image is shown.
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

    /// The shape of an image of the given shape after the symmetry.
    pub fn of(self, shape: Shape) -> Shape {
        if self.transposed {
            Shape {
                width: shape.height,
                height: shape.width,
                ..shape
            }
        } else {
            shape
        }
    }

    /// The symmetry that an orientation applies; `None` for numbers that are no orientation.
    pub fn of_orientation(orientation: u16) -> Option<PixelMap> {
        let index = usize::from(orientation).checked_sub(1)?;
        PixelMap::ORIENTATIONS.get(index).copied()
    }

    /// The pixel of the input for a pixel of the output, both as vectors from the centre.
    fn source(self, (x, y): (i8, i8)) -> (i8, i8) {
        let x = if self.mirror_x { -x } else { x };
        let y = if self.mirror_y { -y } else { y };
        if self.transposed { (y, x) } else { (x, y) }
    }

    /// The orientation that has the same effect on the transformed image as `orientation` had on
    /// the original: viewers that apply orientations, and viewers that ignore them, both see the
    /// image transformed in the same way.
    pub(super) fn conjugate(self, orientation: u16) -> Option<u16> {
        let shown = PixelMap::of_orientation(orientation)?;
        // Transform, then show with the new orientation = show with the old orientation, then
        // transform.
        let same = |new: &PixelMap| {
            [(1, 0), (0, 1)]
                .into_iter()
                .all(|v| self.source(new.source(v)) == shown.source(self.source(v)))
        };
        let index = PixelMap::ORIENTATIONS.iter().position(same)?;
        Some(index as u16 + 1)
    }
}
