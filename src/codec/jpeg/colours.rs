//! In which colours a JPEG is stored. A file has three ways to say so, which contradict one another at times; libraries weigh
//! them differently. Here libjpeg's rule decides, by which most programs read (T.872, section 6.5.3; jdapimin.c).

use zune_core::colorspace::ColorSpace;

/// What a JPEG's head says of its colours.
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
    /// Reads the head of a whole file.
    pub fn read(file: &[u8]) -> Colours {
        let mut colours = Colours::default();
        let mut at = 2;
        while let Some(&[0xFF, kind, a, b]) = file.get(at..at + 4).and_then(<[u8]>::first_chunk) {
            let length = usize::from(u16::from_be_bytes([a, b]));
            at += match kind {
                0xDA => break,
                0xFF => 1,
                0x01 | 0xD0..=0xD9 => 2,
                _ => {
                    let content = file.get(at + 4..at + 2 + length).unwrap_or_default();
                    colours.add(kind, content);
                    2 + length
                }
            };
        }
        colours
    }

    /// Adds what a segment says.
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

/// The colours that `zune-jpeg` is to give of three components, which it takes for `stored` ones, and whether `make_rgb` is to
/// follow.
pub fn output(stored: ColorSpace, are_ycbcr: bool) -> (ColorSpace, bool) {
    // What it says of a head with Adobe's segment, before it looks at the number of components.
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

/// Makes luma and chroma RGB (JFIF 1.02, section 7), as libjpeg rounds it.
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
