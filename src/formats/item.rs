//! Metadata in terms that belong to no format: each format converts its own to these and back.

use crate::image::metadata::Field;

/// One piece of metadata in terms that belong to no format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A text, without a zero at its end; UTF-8 unless the file it came from had another encoding.
    Text(Keyword, Vec<u8>),
    /// An XMP packet (XMP specification, part 1), in UTF-8.
    Xmp(Vec<u8>),
    /// An ICC profile.
    Profile(Vec<u8>),
    /// x and y of the white point, red, green and blue, times 100,000: 8 numbers.
    Chromaticities(Vec<u32>),
    /// The first directory of Exif data, without texts and without the fields about sample layout.
    Exif {
        /// Whether the bytes of its values have the most significant byte first.
        big_endian: bool,
        /// The fields.
        fields: Vec<Field>,
    },
    /// Metadata that only one format has, by the name used in messages: `chunk gAMA`.
    Own(String),
}

/// The subject of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keyword {
    /// The image's content.
    Description,
    /// A title.
    Title,
    /// The person who made the image.
    Author,
    /// The owner of the rights.
    Copyright,
    /// The program that made it.
    Software,
    /// The time when the image was made.
    CreationTime,
}
