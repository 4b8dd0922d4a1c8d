//! JPEG images of 8 bits, alone or inside other formats, decoded by `zune-jpeg` into the colours that are wanted.

use super::colours;
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;

/// What the caller knows about an image.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// The most pixels in a row.
    pub width: usize,
    /// The most rows.
    pub height: usize,
    /// Samples of a pixel. One is decoded as grey, three as RGB, and four as they are stored.
    pub channels: usize,
    /// Whether three components are luma and chroma.
    pub are_ycbcr: bool,
    /// Whether damage is an error.
    pub strict: bool,
}

/// A decoder whose header has been read.
pub struct Baseline<'a> {
    pub decoder: JpegDecoder<ZCursor<&'a [u8]>>,
    /// The colours that it gives.
    pub output: ColorSpace,
    to_rgb: bool,
}

impl<'a> Baseline<'a> {
    /// Reads the header of a file that `colours::without_odd_adobe` has seen.
    ///
    /// # Errors
    /// A damaged or larger image.
    pub fn open(file: &'a [u8], expected: Expected) -> Result<Baseline<'a>, DecodeErrors> {
        let options = DecoderOptions::default()
            .set_strict_mode(expected.strict)
            .set_max_width(expected.width)
            .set_max_height(expected.height);
        let mut decoder = JpegDecoder::new_with_options(ZCursor::new(file), options);
        decoder.decode_headers()?;
        let stored = decoder.input_colorspace().unwrap_or(ColorSpace::YCbCr);
        let (output, to_rgb) = match expected.channels {
            1 => (ColorSpace::Luma, false),
            3 => colours::output(stored, expected.are_ycbcr),
            _ => (stored, false),
        };
        decoder.set_options(options.jpeg_set_out_colorspace(output));
        Ok(Baseline {
            decoder,
            output,
            to_rgb,
        })
    }

    /// Decodes the pixels.
    ///
    /// # Errors
    /// A damaged image.
    pub fn decode(&mut self) -> Result<Vec<u8>, DecodeErrors> {
        let mut pixels = self.decoder.decode()?;
        if self.to_rgb {
            colours::make_rgb(&mut pixels);
        }
        Ok(pixels)
    }

    /// Decodes the pixels to `out`; those before damage are filled too.
    ///
    /// # Errors
    /// A damaged image.
    pub fn decode_into(&mut self, out: &mut [u8]) -> Result<(), DecodeErrors> {
        let read = self.decoder.decode_into(out);
        if self.to_rgb {
            colours::make_rgb(out);
        }
        read
    }
}
