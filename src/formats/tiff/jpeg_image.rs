//! A chunk that is a JPEG image, decoded by `zune-jpeg`.

use crate::formats::jpeg::baseline::{Baseline, Expected};
use crate::formats::jpeg::{colours, scans};
use crate::formats::library_errors;
use anyhow::{Context, Result, anyhow, ensure};

/// The JPEG image of a whole chunk.
#[derive(Clone, Copy)]
pub struct JpegImage {
    /// Whether three components are luma and chroma, to be converted to RGB.
    pub ycbcr: bool,
    pub width: usize,
    pub height: usize,
    /// Samples of a pixel.
    pub channels: usize,
}

impl JpegImage {
    /// Fills `out` with the pixels of an image; `tables` are the segments that it lacks, after the marker of its beginning.
    ///
    /// # Errors
    /// A damaged image, and one of another size.
    pub fn unpack(&self, tables: &[u8], packed: &[u8], out: &mut [u8]) -> Result<()> {
        let JpegImage {
            ycbcr,
            width,
            height,
            channels,
        } = *self;
        let image = packed.strip_prefix(b"\xFF\xD8");
        let image = image.context("it is not a JPEG image")?;
        let file = [tables, image].concat();
        let check_size = |across: usize, down: usize, components: usize| {
            ensure!(
                across == width && across * down * channels >= out.len() && components == channels,
                "it is a JPEG image of {across}×{down} pixels of {components} samples where {width}×{} of {channels} are wanted",
                out.len() / (width * channels)
            );
            Ok(())
        };
        // Some writers pad the last strip to whole blocks.
        let tallest = height.next_multiple_of(16);
        // All others are grey, RGB or CMYK, as the directory states.
        let is_converted = channels == 3 && ycbcr;
        let pixels = if scans::are_separate(&file) {
            let pixels = scans::decode(&file, is_converted, width * tallest)?;
            check_size(pixels.width, pixels.height, pixels.channels)?;
            pixels.samples
        } else {
            let expected = Expected {
                width,
                height: tallest,
                channels,
                are_ycbcr: is_converted,
                strict: true,
            };
            let file = colours::without_odd_adobe(&file);
            let cause = |error| {
                anyhow!(
                    "its JPEG image: {}",
                    library_errors::translate(error, file.len() as u64)
                )
            };
            let mut image = Baseline::open(&file, expected).map_err(cause)?;
            let info = image.decoder.info().context("its size is unknown")?;
            let components = match image.output.num_components() {
                count if count == channels => usize::from(info.components),
                count => count,
            };
            check_size(info.width.into(), info.height.into(), components)?;
            image.decode().map_err(cause)?
        };
        let pixels = pixels.get(..out.len());
        out.copy_from_slice(pixels.context("it has too few pixels")?);
        Ok(())
    }
}
