//! The image type. Images must have the same type if they are compared or combined pixel by pixel.

use crate::image::metadata::{Alpha, Metadata};
use crate::image::{Depth, Shape};
use anyhow::{Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The properties that must be equal, so that the samples of two images can be compared pixel by pixel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageType {
    /// Width, height, channels and depth.
    pub shape: Shape,
    /// Whether samples are signed.
    pub signed: bool,
    white_is_zero: bool,
    alpha: Alpha,
    orientation: u16,
}

impl ImageType {
    /// The type of a page of this shape.
    pub fn from_page(shape: Shape, metadata: &Metadata) -> ImageType {
        ImageType {
            shape,
            signed: metadata.signed,
            white_is_zero: metadata.white_is_zero,
            alpha: if shape.has_alpha() {
                metadata.alpha
            } else {
                Alpha::Independent
            },
            orientation: metadata.orientation.unwrap_or(1),
        }
    }
}

/// An image type as `.partial` files store it.
#[derive(Serialize, Deserialize)]
pub struct ImageTypeRecord {
    width: u64,
    height: u64,
    channels: usize,
    depth: u32,
    signed: bool,
    white_is_zero: bool,
    alpha: Alpha,
    orientation: u16,
}

impl ImageType {
    /// The type, as `.partial` files store it.
    pub fn record(&self) -> ImageTypeRecord {
        ImageTypeRecord {
            width: self.shape.width as u64,
            height: self.shape.height as u64,
            channels: self.shape.channels,
            depth: self.shape.depth.bits(),
            signed: self.signed,
            white_is_zero: self.white_is_zero,
            alpha: self.alpha,
            orientation: self.orientation,
        }
    }

    /// The type in a `.partial` file.
    ///
    /// # Errors
    /// A shape that no image has.
    pub fn from_record(record: &ImageTypeRecord) -> Result<ImageType> {
        let depth = match record.depth {
            8 => Depth::Eight,
            16 => Depth::Sixteen,
            other => bail!("unsupported depth of {other} bits"),
        };
        let channels = record.channels;
        ensure!((1..=4).contains(&channels), "{channels} channels");
        Ok(ImageType {
            shape: Shape::checked(record.width, record.height, channels, depth)?,
            signed: record.signed,
            white_is_zero: record.white_is_zero,
            alpha: record.alpha,
            orientation: record.orientation,
        })
    }
}

impl fmt::Display for ImageType {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.shape.fmt(f)?;
        if self.signed {
            f.write_str(" with sign")?;
        }
        if self.white_is_zero {
            f.write_str(", where 0 is white")?;
        }
        match self.alpha {
            Alpha::Independent => {}
            Alpha::Associated => f.write_str(", with premultiplied alpha")?,
            Alpha::Unspecified => f.write_str(", with a channel of unspecified meaning")?,
            Alpha::Black => f.write_str(" of CMYK")?,
        }
        match self.orientation {
            1 => Ok(()),
            other => write!(f, ", with orientation {other}"),
        }
    }
}
