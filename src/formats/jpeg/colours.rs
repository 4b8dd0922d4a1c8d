//! The colours in which a JPEG is stored. A file has three ways to state them, which sometimes contradict one another, and
//! libraries weigh them differently. This module follows libjpeg, as most programs do (T.872, section 6.5.3; jdapimin.c).

use std::borrow::Cow;
use zune_core::colorspace::ColorSpace;

/// The segments before the image data of a whole file: offset, marker and content of each.
fn segments(file: &[u8]) -> impl Iterator<Item = (usize, u8, &[u8])> {
    let mut at = 2;
    std::iter::from_fn(move || {
        while let Some(&[0xFF, kind, a, b]) = file.get(at..at + 4).and_then(<[u8]>::first_chunk) {
            let start = at;
            let end = at + 2 + usize::from(u16::from_be_bytes([a, b]));
            match kind {
                0xDA => break,
                0xFF => at += 1,
                0x01 | 0xD0..=0xD9 => at += 2,
                _ => {
                    at = end;
                    return Some((start, kind, file.get(start + 4..end).unwrap_or_default()));
                }
            }
        }
        None
    })
}

/// Hides Adobe segments that are cut short or name an unknown transform from `zune-jpeg`, which would refuse the file;
/// libjpeg ignores them.
pub fn without_odd_adobe(file: &[u8]) -> Cow<'_, [u8]> {
    /// APP15, which no program reads.
    const UNUSED: u8 = 0xEF;
    let is_odd = |kind: u8, content: &[u8]| {
        kind == 0xEE && content.starts_with(b"Adobe") && !matches!(content.get(11), Some(0..=2))
    };
    let mut result = Cow::Borrowed(file);
    for (at, kind, content) in segments(file) {
        if is_odd(kind, content) {
            result.to_mut()[at + 1] = UNUSED;
        }
    }
    result
}

/// What the header of a JPEG states about its colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Colours {
    /// Whether it has JFIF's segment.
    pub is_jfif: bool,
    /// The transform that Adobe's segment names: 0 is none, 1 YCbCr, 2 YCCK.
    pub adobe: Option<u8>,
    /// The numbers of the first three components.
    pub names: Option<[u8; 3]>,
}

impl Colours {
    /// Reads the header of a whole file.
    pub fn read(file: &[u8]) -> Colours {
        let mut colours = Colours::default();
        for (_, kind, content) in segments(file) {
            colours.add(kind, content);
        }
        colours
    }

    /// Adds what a segment states.
    pub fn add(&mut self, kind: u8, content: &[u8]) {
        match (kind, content) {
            (0xE0, _) => self.is_jfif |= content.starts_with(b"JFIF\0"),
            (
                0xEE,
                [
                    b'A',
                    b'd',
                    b'o',
                    b'b',
                    b'e',
                    _,
                    _,
                    _,
                    _,
                    _,
                    _,
                    transform,
                    ..,
                ],
            ) => {
                self.adobe = Some(*transform);
            }
            (0xC4 | 0xC8 | 0xCC, _) => {}
            (0xC0..=0xCF, [_, _, _, _, _, 3, a, _, _, b, _, _, c, ..]) => {
                self.names = Some([*a, *b, *c]);
            }
            _ => {}
        }
    }

    /// Whether three components are luma and chroma.
    pub fn are_ycbcr(&self) -> bool {
        match (self.is_jfif, self.adobe) {
            (true, _) => true,
            (false, Some(transform)) => transform != 0,
            (false, None) => self.names != Some(*b"RGB"),
        }
    }
}

/// The colours to request from `zune-jpeg` for three components, which it reads as `stored`, and whether `make_rgb` must
/// convert them.
pub fn output(stored: ColorSpace, are_ycbcr: bool) -> (ColorSpace, bool) {
    // These two it derives from Adobe's segment, before it checks the number of components.
    let stored = match stored {
        ColorSpace::CMYK => ColorSpace::RGB,
        ColorSpace::YCCK => ColorSpace::YCbCr,
        other => other,
    };
    match (are_ycbcr, stored) {
        (false, _) => (stored, false),
        (true, ColorSpace::RGB) => (ColorSpace::RGB, true),
        (true, _) => (ColorSpace::RGB, false),
    }
}

/// Converts luma and chroma to RGB (JFIF 1.02, section 7), rounded as by libjpeg.
pub fn make_rgb(pixels: &mut [u8]) {
    const HALF: i32 = 1 << 15;
    for pixel in pixels.as_chunks_mut::<3>().0 {
        let [y, cb, cr] = pixel.map(i32::from);
        let (cb, cr) = (cb - 128, cr - 128);
        // The factors are 1.402, 0.34414, 0.71414 and 1.772, times 2¹⁶.
        let red = y + ((91_881 * cr + HALF) >> 16);
        let green = y + ((-22_554 * cb - 46_802 * cr + HALF) >> 16);
        let blue = y + ((116_130 * cb + HALF) >> 16);
        *pixel = [red, green, blue].map(|value| value.clamp(0, 255) as u8);
    }
}
