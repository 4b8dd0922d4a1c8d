//! Sequential JPEG with a scan for each component (ITU-T T.81, section A.2), and CMYK. `zune-jpeg` loses components that are
//! subsampled vertically, and refuses other orders of scans; `jpeg-decoder` reads them.

use crate::formats::library_errors;
use anyhow::{Context, Result, ensure};
use jpeg_decoder::{ColorTransform, Decoder, PixelFormat};

/// A decoded JPEG, its samples interleaved.
pub struct Pixels {
    pub width: usize,
    pub height: usize,
    pub channels: usize,
    pub samples: Vec<u8>,
}

/// Whether the first scan of a sequential JPEG has fewer components than the image.
pub fn are_separate(file: &[u8]) -> bool {
    let mut at = 2;
    let mut components = 0;
    while let Some(&[0xFF, kind, a, b]) = file.get(at..at + 4).and_then(<[u8]>::first_chunk) {
        match (kind, file.get(at + 4), file.get(at + 9)) {
            (0xC0 | 0xC1, _, Some(&count)) => components = count,
            (0xDA, Some(&count), _) => return count < components,
            _ => {}
        }
        at += match kind {
            0xFF => 1,
            0x01 | 0xD0..=0xD9 => 2,
            _ => 2 + usize::from(u16::from_be_bytes([a, b])),
        };
    }
    false
}

/// Decodes a JPEG with separate scans, of up to `most` pixels and three components, which are converted to RGB if
/// `are_ycbcr`.
///
/// # Errors
/// Damaged data, and a larger image.
pub fn decode(file: &[u8], are_ycbcr: bool, most: usize) -> Result<Pixels> {
    let mut decoder = Decoder::new(file);
    let said = |error| library_errors::translate(error, file.len() as u64);
    decoder.read_info().map_err(said)?;
    let info = decoder.info().context("its size is unknown")?;
    let (width, height) = (usize::from(info.width), usize::from(info.height));
    ensure!(
        width * height <= most,
        "it has {width}×{height} pixels, more than the {most} allowed here"
    );
    ensure!(
        info.pixel_format == PixelFormat::RGB24,
        "separate scans are only supported for three components"
    );
    decoder.set_color_transform(if are_ycbcr {
        ColorTransform::YCbCr
    } else {
        ColorTransform::RGB
    });
    let samples = decoder.decode().map_err(said)?;
    Ok(Pixels {
        width,
        height,
        channels: 3,
        samples,
    })
}

/// Decodes a JPEG of four components as inks, where 0 is no ink. They are stored inverted, as by Adobe's programs and as
/// Pillow and OpenCV assume, even without Adobe's segment.
///
/// # Errors
/// Damaged data.
pub fn decode_inks(file: &[u8], adobe: Option<u8>) -> Result<Vec<u8>> {
    let mut decoder = Decoder::new(file);
    let said = |error| library_errors::translate(error, file.len() as u64);
    decoder.read_info().map_err(said)?;
    decoder.set_color_transform(match adobe {
        Some(2) => ColorTransform::YCCK,
        _ => ColorTransform::CMYK,
    });
    decoder.decode().map_err(said)
}
