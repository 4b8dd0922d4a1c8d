//! A page in bands of rows, from top to bottom.

use super::Reader;
use crate::image::{Image, Samples, Shape};
use anyhow::{Result, ensure};

/// What takes a band, and the row of the page with which it begins.
pub type TakeBand<'a> = dyn FnMut(usize, Image) -> Result<()> + 'a;

/// Decodes the selected page, and hands it over in bands of `rows` rows, of which the last may have fewer. With `plainly` by the method that fails on damage alone.
///
/// # Errors
/// Damage, which `Reader::decode` tells better, and errors of `take`.
pub fn each_band(reader: &Reader, rows: usize, plainly: bool, take: &mut TakeBand) -> Result<()> {
    let mut filling = Filling {
        page: reader.shape(),
        rows,
        top: 0,
        band: None,
    };
    reader.rows(plainly, &mut |bytes| filling.push(bytes, take))?;
    ensure!(
        filling.top == filling.page.height,
        "its rows are not the image"
    );
    Ok(())
}

/// A band that is being filled.
struct Filling {
    page: Shape,
    rows: usize,
    /// The row with which it begins.
    top: usize,
    /// Its samples, and how many bytes of them are there.
    band: Option<(Shape, Samples, usize)>,
}

impl Filling {
    fn push(&mut self, mut bytes: &[u8], take: &mut TakeBand) -> Result<()> {
        while !bytes.is_empty() {
            let (shape, mut samples, filled) = match self.band.take() {
                Some(band) => band,
                None => {
                    let shape = Shape {
                        height: self.rows.min(self.page.height - self.top),
                        ..self.page
                    };
                    (shape, Samples::any(&shape)?, 0)
                }
            };
            let (some, rest) = bytes.split_at(bytes.len().min(shape.bytes() - filled));
            samples.as_bytes_mut()[filled..filled + some.len()].copy_from_slice(some);
            bytes = rest;
            let filled = filled + some.len();
            if filled == shape.bytes() {
                take(self.top, Image::new(shape, samples))?;
                self.top += shape.height;
            } else {
                self.band = Some((shape, samples, filled));
            }
        }
        Ok(())
    }
}
