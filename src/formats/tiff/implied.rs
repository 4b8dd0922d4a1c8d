//! Pages without a directory of their own, which are stored after the image of the only directory: how many there are, and
//! whether they are where they are expected.

use super::description;
use super::ifd::{Ifd, tag};
use super::page::Page;
use anyhow::{Result, ensure};

/// The field that states the number of pages.
pub enum ImpliedPages {
    /// In ImageJ's description.
    ImageJ(u64),
    /// In tifffile's description.
    Shaped(u64),
    /// In MetaMorph's own tag, as its number of values.
    MetaMorph(u64),
    /// In the ImageDepth tag.
    Depth(u64),
}

impl ImpliedPages {
    /// Reads a directory; `None` if it describes one image.
    ///
    /// # Errors
    /// A description that is not all in the file: it might name more images.
    pub fn read(ifd: &Ifd, page: &Page) -> Result<Option<ImpliedPages>> {
        let planes = ifd.number(tag::IMAGE_DEPTH)?.unwrap_or(1);
        let samples = page.form.shape.samples() as u64;
        let implied = match ifd.count(tag::UIC2) {
            _ if planes > 1 => ImpliedPages::Depth(planes),
            2.. => ImpliedPages::MetaMorph(ifd.count(tag::UIC2)),
            _ => {
                let Some(description) = ifd.text(tag::IMAGE_DESCRIPTION)? else {
                    return Ok(None);
                };
                let images = description::images(&description).map(|images| images as u64);
                let implied = images.map(ImpliedPages::ImageJ).or_else(|| {
                    description::truncated(&description, samples).map(ImpliedPages::Shaped)
                });
                match implied {
                    Some(implied) => implied,
                    None => return Ok(None),
                }
            }
        };
        Ok(Some(implied).filter(|implied| implied.count() > 1))
    }

    pub fn count(&self) -> u64 {
        match *self {
            ImpliedPages::ImageJ(n)
            | ImpliedPages::Shaped(n)
            | ImpliedPages::MetaMorph(n)
            | ImpliedPages::Depth(n) => n,
        }
    }

    pub fn name(&self) -> &'static str {
        match self {
            ImpliedPages::ImageJ(_) => "an ImageJ stack",
            ImpliedPages::Shaped(_) => "a stack of tifffile's",
            ImpliedPages::MetaMorph(_) => "a MetaMorph stack",
            ImpliedPages::Depth(_) => "an image with ImageDepth",
        }
    }

    /// The number of pages that can be read, which must be stored contiguously and uncompressed. If they are not, a
    /// description is assumed to be left over from another file, and a tag is an error.
    pub fn frames(&self, ifd: &Ifd, page: &Page, len: u64, damaged: bool) -> Result<usize> {
        let (count, bytes) = (self.count(), page.bytes());
        let contiguous =
            page.is_contiguous() && (!self.has_strips() || lists_all_strips(ifd, page, count)?);
        if !contiguous {
            ensure!(
                matches!(self, ImpliedPages::ImageJ(_) | ImpliedPages::Shaped(_)),
                "it is {} of {count} planes in one directory, which are read only if they are stored uncompressed one after the other: write each as a page",
                self.name()
            );
            return Ok(1);
        }
        let start = page.spans[0].offset;
        let end = u128::from(start) + u128::from(count) * u128::from(bytes);
        let whole = end <= u128::from(len);
        ensure!(
            damaged || whole,
            "truncated at byte {len} of {end} (image {count} of {})",
            self.name()
        );
        // In a damaged file: the images that begin within it, and one more, which reports that
        // others are missing.
        let begun = len.saturating_sub(start).div_ceil(bytes) + 1;
        Ok(if whole { count } else { count.min(begun) } as usize)
    }

    /// Whether the directory lists the strips of all images.
    pub fn has_strips(&self) -> bool {
        matches!(self, ImpliedPages::Depth(_))
    }
}

/// Whether the directory lists the strips of `count` images, stored one after the other.
fn lists_all_strips(ifd: &Ifd, page: &Page, count: u64) -> Result<bool> {
    let (strips, bytes) = (page.spans.len() as u64, page.bytes());
    let offsets = ifd.values(tag::STRIP_OFFSETS, strips.saturating_mul(count))?;
    let offsets = offsets.unwrap_or_default();
    let expected = |i: usize| {
        let (image, strip) = (i as u64 / strips, i as u64 % strips);
        page.spans[strip as usize]
            .offset
            .checked_add(image.checked_mul(bytes)?)
    };
    let all = offsets.len() as u64 == strips.saturating_mul(count);
    Ok(all && (offsets.iter().enumerate()).all(|(i, &offset)| expected(i) == Some(offset)))
}
