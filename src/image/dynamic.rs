//! Converts images of the `image` crate to images of this crate, and back.

use super::{Depth, Image, Samples, Shape};
use ::image::{DynamicImage, ImageBuffer, Pixel, PixelWithColorType};
use anyhow::{Context, Error, Result, bail};

/// Takes over the samples without a copy. Grey, grey + alpha, RGB and RGB + alpha, of 8 or 16 bits.
///
/// # Errors
/// Samples of floating point, and an image without pixels.
impl TryFrom<DynamicImage> for Image {
    type Error = Error;

    fn try_from(image: DynamicImage) -> Result<Image> {
        let (width, height) = (image.width().into(), image.height().into());
        let (depth, channels, samples): (_, _, Samples) = match image {
            DynamicImage::ImageLuma8(image) => (Depth::Eight, 1, image.into_raw().into()),
            DynamicImage::ImageLumaA8(image) => (Depth::Eight, 2, image.into_raw().into()),
            DynamicImage::ImageRgb8(image) => (Depth::Eight, 3, image.into_raw().into()),
            DynamicImage::ImageRgba8(image) => (Depth::Eight, 4, image.into_raw().into()),
            DynamicImage::ImageLuma16(image) => (Depth::Sixteen, 1, image.into_raw().into()),
            DynamicImage::ImageLumaA16(image) => (Depth::Sixteen, 2, image.into_raw().into()),
            DynamicImage::ImageRgb16(image) => (Depth::Sixteen, 3, image.into_raw().into()),
            DynamicImage::ImageRgba16(image) => (Depth::Sixteen, 4, image.into_raw().into()),
            other => bail!(
                "samples of {:?} are not supported (only 8 and 16 bits)",
                other.color()
            ),
        };
        Ok(Image::new(
            Shape::checked(width, height, channels, depth)?,
            samples,
        ))
    }
}

/// Copies the samples.
///
/// # Errors
/// A side of 2³² pixels or more, and samples of 32 bits.
impl TryFrom<&Image> for DynamicImage {
    type Error = Error;

    fn try_from(image: &Image) -> Result<DynamicImage> {
        let shape = image.shape();
        Ok(match (image.samples(), shape.channels) {
            (Samples::U8(samples), 1) => DynamicImage::ImageLuma8(image_buffer(&shape, samples)?),
            (Samples::U8(samples), 2) => DynamicImage::ImageLumaA8(image_buffer(&shape, samples)?),
            (Samples::U8(samples), 3) => DynamicImage::ImageRgb8(image_buffer(&shape, samples)?),
            (Samples::U8(samples), _) => DynamicImage::ImageRgba8(image_buffer(&shape, samples)?),
            (Samples::U16(samples), 1) => DynamicImage::ImageLuma16(image_buffer(&shape, samples)?),
            (Samples::U16(samples), 2) => {
                DynamicImage::ImageLumaA16(image_buffer(&shape, samples)?)
            }
            (Samples::U16(samples), 3) => DynamicImage::ImageRgb16(image_buffer(&shape, samples)?),
            (Samples::U16(samples), _) => DynamicImage::ImageRgba16(image_buffer(&shape, samples)?),
            (Samples::U32(_) | Samples::U64(_), _) => {
                bail!("the image crate has no type for {shape}")
            }
        })
    }
}

fn image_buffer<P: Pixel + PixelWithColorType>(
    shape: &Shape,
    samples: &[P::Subpixel],
) -> Result<ImageBuffer<P, Vec<P::Subpixel>>> {
    let sides = || Some((shape.width.try_into().ok()?, shape.height.try_into().ok()?));
    sides()
        .and_then(|(width, height)| ImageBuffer::from_raw(width, height, samples.to_vec()))
        .with_context(|| format!("{shape} is too large for the image crate"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every kind of 3 × 2 pixels, with samples that encode their position: there and back, and
    /// pixel by pixel.
    #[test]
    fn every_kind_goes_there_and_back() -> Result<()> {
        let mut kinds = 0;
        for channels in 1..=4 {
            for depth in [Depth::Eight, Depth::Sixteen] {
                let shape = Shape::checked(3, 2, channels, depth)?;
                let value = |place: usize| place * usize::from(depth.full()) / 24;
                let samples: Samples = match depth {
                    Depth::Eight => (0..6 * channels)
                        .map(|place| value(place) as u8)
                        .collect::<Vec<_>>()
                        .into(),
                    _ => (0..6 * channels)
                        .map(|place| value(place) as u16)
                        .collect::<Vec<_>>()
                        .into(),
                };
                let image = Image::new(shape, samples);
                let other = DynamicImage::try_from(&image)?;
                assert_eq!((other.width(), other.height()), (3, 2));
                let color = other.color();
                assert_eq!(usize::from(color.channel_count()), channels);
                assert_eq!(color.has_alpha(), shape.has_alpha());
                assert_eq!(other.as_bytes(), image.samples().as_bytes());
                assert_eq!(Image::try_from(other)?, image);
                kinds += 1;
            }
        }
        assert_eq!(kinds, 8);
        Ok(())
    }

    #[test]
    fn floating_point_and_empty_images_are_refused() {
        let float = DynamicImage::new_rgb32f(2, 2);
        assert!(Image::try_from(float).is_err_and(|error| error.to_string().contains("Rgb32F")));
        let empty = DynamicImage::new_luma16(0, 4);
        assert!(Image::try_from(empty).is_err_and(|error| error.to_string().contains("empty")));
    }
}
