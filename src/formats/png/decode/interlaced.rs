//! Decodes the rows of an interlaced PNG, which has seven passes, each a small image (PNG specification, third edition, §8.1).

use super::BAND_ROWS;
use super::band::Band;
use super::header::{Header, Pass};
use super::unfilter::RowLayout;
use anyhow::Result;

/// Receives the scanlines of the passes in pieces of any size, and writes their pixels to the image. It buffers a few rows of one
/// pass.
pub struct Passes<'a> {
    image: &'a mut [u8],
    layout: RowLayout,
    /// The passes after the current one.
    later: std::vec::IntoIter<Pass>,
    pass: Pass,
    band: Band,
}

impl<'a> Passes<'a> {
    /// Starts with the first pass. Samples must have at least 8 bits.
    pub fn new(image: &'a mut [u8], header: &Header, layout: RowLayout) -> Passes<'a> {
        Passes {
            image,
            layout,
            later: header.passes().into_iter(),
            pass: Pass::default(),
            band: Band::new(layout, BAND_ROWS),
        }
    }

    /// Receives the next bytes of the scanlines. Bytes after those of the last pass are ignored.
    ///
    /// # Errors
    /// An unknown filter type.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<()> {
        let pixel_bytes = self.layout.pixel_bytes;
        while !bytes.is_empty() {
            if self.band.is_complete() {
                let Some(pass) = self.later.next() else {
                    break;
                };
                self.band.start(pass.columns * pixel_bytes, pass.rows);
                self.pass = pass;
            }
            let (pass, image, width) = (self.pass, &mut *self.image, self.layout.row_bytes);
            bytes = self.band.push(bytes, |first, rows| {
                for (y, row) in (first..).zip(rows.chunks_exact(pass.columns * pixel_bytes)) {
                    let start = (pass.y + y * pass.dy) * width;
                    let image_row = &mut image[start..start + width];
                    scatter(pixel_bytes, row, image_row, pass.x, pass.dx);
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// Writes pixels to the columns `first`, `first + apart` and so on of a row of the image.
fn scatter(pixel_bytes: usize, pixels: &[u8], row: &mut [u8], first: usize, apart: usize) {
    match pixel_bytes {
        1 => scatter_pixels::<1>(pixels, row, first, apart),
        2 => scatter_pixels::<2>(pixels, row, first, apart),
        3 => scatter_pixels::<3>(pixels, row, first, apart),
        4 => scatter_pixels::<4>(pixels, row, first, apart),
        6 => scatter_pixels::<6>(pixels, row, first, apart),
        _ => scatter_pixels::<8>(pixels, row, first, apart),
    }
}

fn scatter_pixels<const STEP: usize>(pixels: &[u8], row: &mut [u8], first: usize, apart: usize) {
    if apart == 1 {
        return row.copy_from_slice(pixels);
    }
    let targets = row.as_chunks_mut::<STEP>().0[first..].iter_mut();
    for (target, pixel) in targets.step_by(apart).zip(pixels.as_chunks::<STEP>().0) {
        *target = *pixel;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::png::decode::header::Colour;
    use crate::image::{Depth, Shape};

    /// The pass of each pixel of a square of 8×8, as the specification draws it.
    const DRAWN: [&[u8; 8]; 8] = [
        b"16462646",
        b"77777777",
        b"56565656",
        b"77777777",
        b"36463646",
        b"77777777",
        b"56565656",
        b"77777777",
    ];

    /// Scanlines of a pass, filtered by None, Sub and Up in turn.
    fn scanlines(rows: &[Vec<u8>], step: usize) -> Vec<u8> {
        let mut all = Vec::new();
        for (y, row) in rows.iter().enumerate() {
            let filter = (y % 3) as u8;
            all.push(filter);
            for (i, &byte) in row.iter().enumerate() {
                all.push(byte.wrapping_sub(match filter {
                    1 if i >= step => row[i - step],
                    2 if y > 0 => rows[y - 1][i],
                    _ => 0,
                }));
            }
        }
        all
    }

    #[test]
    fn passes_are_those_of_the_drawing() -> Result<()> {
        for (colour, channels) in [(Colour::Grey, 1), (Colour::Rgb, 3), (Colour::Rgba, 4)] {
            let large: &[_] = if cfg!(miri) {
                &[]
            } else {
                &[(37, 150), (64, 33)]
            };
            for &(width, height) in [(1, 1), (3, 2), (5, 9), (8, 8)].iter().chain(large) {
                let header = Header {
                    width: width as u32,
                    height: height as u32,
                    bits: 8,
                    colour,
                    interlaced: true,
                };
                let shape = Shape {
                    width,
                    height,
                    channels,
                    depth: Depth::Eight,
                };
                let image: Vec<u8> = (0..shape.samples()).map(|i| (i * i / 7) as u8).collect();
                let mut stream = Vec::new();
                for pass in b'1'..=b'7' {
                    let mut rows = Vec::new();
                    for y in 0..height {
                        let inside = (0..width).filter(|x| DRAWN[y % 8][x % 8] == pass);
                        let pixels =
                            inside.flat_map(|x| &image[(y * width + x) * channels..][..channels]);
                        rows.push(pixels.copied().collect::<Vec<u8>>());
                    }
                    rows.retain(|row| !row.is_empty());
                    stream.extend(scanlines(&rows, channels));
                }
                assert_eq!(header.scanline_bytes()?, stream.len());
                for piece in [1, 7, 1000, stream.len()] {
                    let mut decoded = vec![0xa5; image.len()];
                    let mut passes = Passes::new(&mut decoded, &header, RowLayout::new(&shape));
                    stream
                        .chunks(piece)
                        .try_for_each(|bytes| passes.push(bytes))?;
                    assert!(decoded == image, "{shape}, {piece} bytes at a time");
                }
            }
        }
        Ok(())
    }
}
