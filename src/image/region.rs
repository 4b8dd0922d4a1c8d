//! A rectangle of an image.

use super::Shape;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// A rectangle of pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Region {
    /// Its first column, counted from 0.
    pub left: usize,
    /// Its first row, counted from 0.
    pub top: usize,
    /// Its columns, one or more.
    pub width: usize,
    /// Its rows, one or more.
    pub height: usize,
}

impl FromStr for Region {
    type Err = String;

    fn from_str(text: &str) -> Result<Region, String> {
        let region = || {
            let (left, rest) = text.split_once(',')?;
            let (top, size) = rest.split_once(',')?;
            let (width, height) = size.split_once(['x', 'X', '×'])?;
            let number = |text: &str| text.trim().parse::<usize>().ok();
            Some(Region {
                left: number(left)?,
                top: number(top)?,
                width: number(width).filter(|&width| width > 0)?,
                height: number(height).filter(|&height| height > 0)?,
            })
        };
        region().ok_or_else(|| "expected X,Y,WxH, as 100,50,640x480".into())
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Region {
            left,
            top,
            width,
            height,
        } = self;
        write!(f, "{left},{top},{width}x{height}")
    }
}

impl Region {
    /// Whether it lies in an image of this shape.
    pub fn is_in(&self, shape: &Shape) -> bool {
        let right = self.left.checked_add(self.width);
        let bottom = self.top.checked_add(self.height);
        right.is_some_and(|right| right <= shape.width)
            && bottom.is_some_and(|bottom| bottom <= shape.height)
    }

    /// The shape of the result for an image of this shape.
    pub fn output(&self, shape: Shape) -> Shape {
        Shape {
            width: self.width,
            height: self.height,
            ..shape
        }
    }

    /// The rows of the image that it has pixels of.
    pub fn rows(&self) -> Range<usize> {
        self.top..self.top + self.height
    }

    /// The bytes of a row of the result among those of its row in an image of this shape.
    pub fn columns(&self, shape: &Shape) -> Range<usize> {
        let pixel = shape.pixel_bytes();
        self.left * pixel..(self.left + self.width) * pixel
    }
}
