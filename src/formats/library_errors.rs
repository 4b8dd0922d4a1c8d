//! Translates the error messages of libraries to those of this program. No message of a library is printed.

use anyhow::{Error, anyhow};
use std::fmt::Display;

/// Parts of messages, and their translations. The first part that occurs decides.
const TRANSLATIONS: [(&str, &str); 31] = [
    (
        "Extra bytes between headers",
        "it has extra bytes between its segments (--keep-going skips them)",
    ),
    ("omponents cannot be zero", "its header states no channels"),
    ("Huffman", "its Huffman codes are damaged"),
    ("premature end", "its data end too early"),
    ("not enough data", "it ends too early"),
    (
        "subsampling",
        "channels of fewer pixels than the image are not supported",
    ),
    ("compression method", "its compression is not supported"),
    (
        "versions other than",
        "its version of the format is not supported",
    ),
    ("deep data", "deep pixels are not supported"),
    (
        "soft limit",
        "a side of more than 65535 pixels is not supported in it",
    ),
    (
        "Unknown bitmap header type",
        "a header of this length is not supported",
    ),
    (
        "PNG compression",
        "a PNG inside it is not supported: extract it",
    ),
    (
        "JPEG compression",
        "a JPEG inside it is not supported: extract it",
    ),
    (
        "Palette size",
        "its palette has more colours than its pixels can have",
    ),
    ("Negative width", "its width is negative"),
    ("More than one plane", "it has more than one plane"),
    (
        "for top-down image",
        "compressed rows from top to bottom are not supported",
    ),
    ("bit count", "its number of bits per pixel is not supported"),
    ("Corrupt RLE", "its runs of pixels are damaged"),
    ("color table", "it has no palette"),
    ("out-of-bounds", "its first image lies beyond its screen"),
    (
        "color map index",
        "a pixel has a colour that its palette does not have",
    ),
    ("color type", "its type of pixels is not supported"),
    ("alpha bits", "it has more bits of alpha than of all"),
    (
        "emory",
        "it takes more memory than an image of its size needs",
    ),
    (
        "imit",
        "it takes more memory than an image of its size needs",
    ),
    ("LZW", "its LZW codes are damaged"),
    ("lzw", "its LZW codes are damaged"),
    ("ignature", "its signature is damaged"),
    ("imensions", "its sides do not match"),
    ("hecksum", "a checksum is wrong"),
];

/// Parts of messages about truncated data.
const TRUNCATED: [&str; 5] = [
    "failed to fill whole buffer",
    "unexpected end of file",
    "Not enough bytes",
    "Exhausted data",
    "No more bytes",
];

/// Translates the error of a library about a file of `len` bytes.
pub fn translate(error: impl Display, len: u64) -> Error {
    let text = error.to_string();
    if TRUNCATED.iter().any(|part| text.contains(part)) {
        return anyhow!("truncated at byte {len}");
    }
    let translation = TRANSLATIONS.iter().find(|(part, _)| text.contains(part));
    let message = translation.map_or(
        "its data are damaged, or of a kind that is not supported",
        |(_, message)| message,
    );
    anyhow!("{message}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages that were printed as they are.
    #[test]
    fn messages_of_libraries_reached_the_user() {
        for (message, words) in [
            (
                "[strict-mode]: Extra bytes between headers",
                "it has extra bytes between its segments",
            ),
            (
                "i/o error: failed to fill whole buffer",
                "truncated at byte 7",
            ),
            (
                "Error decoding SOF Marker, Number of components cannot be zero.",
                "its header states no channels",
            ),
            (
                "Image too large (one of (70000, 48) > soft limit of 65535)",
                "a side of more than 65535",
            ),
            (
                "deep data not supported yet",
                "deep pixels are not supported",
            ),
            (
                "something that nobody knows",
                "its data are damaged, or of a kind",
            ),
        ] {
            let translated = translate(message, 7).to_string();
            assert!(translated.starts_with(words), "{message}: {translated}");
        }
    }
}
