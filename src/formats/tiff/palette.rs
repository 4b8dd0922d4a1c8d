//! Palette colours (TIFF 6.0, section 5): one index a pixel, made RGB, and alpha where there is a second sample.

use super::ifd::{Ifd, tag};
use super::shape::Form;
use crate::image::{Depth, Image, Samples, Shape};
use anyhow::{Context, Result, ensure};
use rayon::prelude::*;

/// The colours of a page, by the index as it is in memory.
pub struct Palette {
    /// The depth that holds all colours exactly.
    depth: Depth,
    /// Red, green and blue, of that depth.
    colours: Box<[[u16; 3]; 256]>,
}

impl Palette {
    /// The palette of a page, if its samples are indices.
    ///
    /// # Errors
    /// A palette that is missing or has another length than its indices need.
    pub fn read(ifd: &Ifd, form: &Form) -> Result<Option<Palette>> {
        if !form.palette {
            return Ok(None);
        }
        ensure!(
            form.bits <= 8 && form.stored <= 2 && !form.signed,
            "a palette for samples of {} bits, {} a pixel, is not supported (1 to 8 bits are)",
            form.bits,
            form.shape.channels
        );
        let count = 1 << form.bits;
        let map = ifd.values(tag::COLOR_MAP, 3 * count as u64)?;
        let map = map.context("the palette (ColorMap) of its palette colours is missing")?;
        ensure!(
            map.len() == 3 * count,
            "its palette has {} numbers where {} are needed",
            map.len(),
            3 * count
        );
        // Colours have 16 bits. Most writers have 8 and multiply them by 256 or 257, some by nothing.
        let step = [256u64, 257, 1].into_iter().find(|step| {
            let eight = |value: &u64| value.is_multiple_of(*step) && value / step <= 255;
            map.iter().all(eight)
        });
        let depth = step.map_or(Depth::Sixteen, |_| Depth::Eight);
        let step = step.unwrap_or(1);
        let mut colours = Box::new([[0; 3]; 256]);
        for index in 0..count {
            // Indices of fewer than 8 bits are scaled in memory as samples are.
            let most = count - 1;
            let place = (index * 255 + most / 2) / most;
            colours[place] = [0, 1, 2].map(|c| (map[c * count + index] / step) as u16);
        }
        Ok(Some(Palette { depth, colours }))
    }

    /// The shape of the coloured image, for that of its indices.
    pub fn shape(&self, shape: Shape) -> Shape {
        Shape {
            channels: shape.channels + 2,
            depth: self.depth,
            ..shape
        }
    }

    /// The coloured image of an image of indices.
    ///
    /// # Errors
    /// No memory.
    pub fn expand(&self, indices: &Image) -> Result<Image> {
        let shape = self.shape(indices.shape());
        let mut samples = Samples::any(&shape)?;
        let pixels = (indices.samples().as_bytes()).par_chunks_exact(indices.shape().channels);
        let colour = |pixel: &[u8]| self.colours[usize::from(pixel[0])];
        match &mut samples {
            Samples::U8(samples) => {
                let places = samples.par_chunks_exact_mut(shape.channels);
                places.zip(pixels).for_each(|(place, pixel)| {
                    place[..3].copy_from_slice(&colour(pixel).map(|value| value as u8));
                    place[3..].copy_from_slice(&pixel[1..]);
                });
            }
            Samples::U16(samples) => {
                let places = samples.par_chunks_exact_mut(shape.channels);
                places.zip(pixels).for_each(|(place, pixel)| {
                    place[..3].copy_from_slice(&colour(pixel));
                    if let (Some(alpha), Some(&value)) = (place.get_mut(3), pixel.get(1)) {
                        *alpha = 257 * u16::from(value);
                    }
                });
            }
            // `read` gives 8 or 16 bits.
            Samples::U32(_) | Samples::U64(_) => {}
        }
        Ok(Image::new(shape, samples))
    }
}
