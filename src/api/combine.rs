//! RGB images of grey images in memory.

use super::error::{Error, Result};
use super::image::Image;
use super::report::Report;
use crate::engine::{Mix, combine_pages};
use crate::formats::memory::Page;
use crate::ops::combine::{ChannelColours, Colour};
use std::path::{Path, PathBuf};

/// An image with these grey images as its channels: three for red, green and blue, or four with alpha. They have the same size
/// and sample type; samples keep their values. The metadata are those of the first, as far as they are true of the result.
///
/// ```
/// use gpuimg::Image;
/// let grey = |sample: u16| Image::new(1, 1, 1, vec![sample]);
/// let rgb = gpuimg::combine(vec![grey(1)?, grey(2)?, grey(3)?])?;
/// assert_eq!(rgb.to_vec::<u16>()?, [1, 2, 3]);
/// # Ok::<(), gpuimg::Error>(())
/// ```
///
/// # Errors
/// Another number of images, images that are not grey, and images that differ in size or sample type.
pub fn combine(channels: Vec<Image>) -> Result<Image> {
    mixed(channels, &Mix::Channels)
}

/// The sum of grey images of 8 or 16 bits, each in a colour, as an RGB image. A colour has the parts of red, green and blue from
/// 0 to 255. With s the samples of a pixel and k a part of their colours, a sample of the result is `⌊(Σ s·k + 127) / 255⌋`, or the
/// largest value where that is more.
///
/// ```
/// use gpuimg::Image;
/// let grey = |sample: u16| Image::new(1, 1, 1, vec![sample]);
/// let rgb = gpuimg::combine_colours(vec![(grey(100)?, [0, 255, 0]), (grey(50)?, [255, 0, 51])])?;
/// assert_eq!(rgb.to_vec::<u16>()?, [50, 100, 10]);
/// # Ok::<(), gpuimg::Error>(())
/// ```
///
/// # Errors
/// No image, images that are not grey or have signed samples or more than 16 bits, and images that differ in size or sample
/// type.
pub fn combine_colours(images: Vec<(Image, [u8; 3])>) -> Result<Image> {
    let colours = images.iter().zip(1..);
    let colours = colours.map(|((_, colour), number)| (number, Colour(*colour)));
    let mix = Mix::Colours(ChannelColours(colours.collect()));
    mixed(images.into_iter().map(|(image, _)| image).collect(), &mix)
}

fn mixed(images: Vec<Image>, mix: &Mix) -> Result<Image> {
    let pages = images.into_iter().zip(1..).map(|(image, number)| {
        let path = image.path().map(Path::to_path_buf);
        let path = path.unwrap_or_else(|| format!("image {number}").into());
        (path, image.into_page())
    });
    let pages: Vec<(PathBuf, Page)> = pages.collect();
    let page = combine_pages(pages, mix).map_err(Error::new)?;
    Ok(Image::of_page(page, Path::new(""), Report::default()))
}
