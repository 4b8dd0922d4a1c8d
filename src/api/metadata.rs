//! What a file says of its pixels.

use crate::formats::memory::Page;
use crate::image::metadata::{self, Resolution};
use crate::image::{Shape, Values};

/// What a file says of its pixels, other than their shape and type.
///
/// It holds all metadata of the file, also those without a method here, such as an ICC profile or the tags of a microscope.
/// Operations keep it true: `rotate` exchanges the resolutions across and down. An encoder writes the fields that its format can store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    pub(super) fields: metadata::Metadata,
    /// Bytes in the file that it was read from.
    pub(super) bytes: u64,
    /// The number of pages that it describes.
    pub(super) described: usize,
    /// The channels and the type of the samples that it describes.
    pub(super) samples: Option<(usize, Values)>,
}

impl Metadata {
    /// The metadata of a page of this shape.
    pub(super) fn of_page<I>(page: &Page<I>, shape: Shape) -> Metadata {
        Metadata {
            samples: Some((shape.channels, page.metadata.values(shape.depth))),
            fields: page.metadata.clone(),
            bytes: page.metadata_bytes,
            described: page.described,
        }
    }

    /// The fields for an image with so many channels of these values: those about samples only if it had the same.
    pub(super) fn fields_for(self, channels: usize, values: Values) -> metadata::Metadata {
        let fields = self.fields;
        if self.samples == Some((channels, values)) {
            return fields;
        }
        metadata::Metadata {
            signed: values.signed,
            orientation: fields.orientation,
            resolution: fields.resolution,
            own: fields.own,
            ..metadata::Metadata::default()
        }
    }

    /// The orientation for display, 1 to 8 as in Exif and TIFF; `None` if it is not given.
    pub fn orientation(&self) -> Option<u16> {
        self.fields.orientation
    }

    /// Sets the orientation for display.
    ///
    /// # Panics
    /// An orientation other than 1 to 8.
    pub fn set_orientation(&mut self, orientation: Option<u16>) {
        assert!(orientation.is_none_or(|number| (1..=8).contains(&number)));
        self.fields.orientation = orientation;
    }

    /// Pixels in a unit of length, across and down.
    pub fn resolution(&self) -> Option<Resolution> {
        self.fields.resolution
    }

    /// Sets the pixels in a unit of length.
    pub fn set_resolution(&mut self, resolution: Option<Resolution>) {
        self.fields.resolution = resolution;
    }

    /// The largest value that samples can have, if it is not 255 or 65535: 4095 for 12 bits.
    pub fn max_value(&self) -> Option<u16> {
        self.fields.maxval
    }

    /// The significant bits of each channel before the samples were scaled to the full depth.
    pub fn significant_bits(&self) -> Option<&[u8]> {
        self.fields.significant.as_deref()
    }

    /// The smallest and the largest value that the file wants to be shown, as black and as white (DICOM).
    pub fn window(&self) -> Option<(i64, i64)> {
        self.fields.window
    }

    /// Whether 0 stands for white in a grey image. The samples are as they are in the file.
    pub fn white_is_zero(&self) -> bool {
        self.fields.white_is_zero
    }

    /// Whether the range of `normalize --undo` is recorded, so that `restore` can restore the original values.
    pub fn can_be_restored(&self) -> bool {
        matches!(self.fields.stretch, Some(Ok(_)))
    }

    /// The names of the parts that only the file's own format stores: `tag 270`, `chunk iCCP`, `the ICC profile`.
    pub fn parts(&self) -> Vec<String> {
        self.fields.own.names()
    }
}
