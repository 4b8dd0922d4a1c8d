//! Pixels of a BMP in runs (RLE8, RLE4). The library paints skipped pixels black; Windows and other readers paint them in
//! the first colour of the palette.

use super::super::{Fill, stream};
use crate::image::Shape;
use crate::os::Source;
use anyhow::{Result, anyhow, ensure};
use std::io::{self, Read, Seek, SeekFrom};

/// The fields of a header that runs need (BITMAPINFOHEADER and later).
struct Header {
    /// Offsets of the palette and of the pixels.
    palette: u64,
    pixels: u64,
    colours: usize,
    /// Bits of a pixel: 8 or 4.
    bits: u8,
}

impl Header {
    /// The header of a file whose pixels are runs.
    fn read(source: &Source) -> Result<Option<Header>> {
        let mut head = [0; 54];
        if source.read_up_to(&mut head, 0)? < head.len() {
            return Ok(None);
        }
        let number =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (size, bits, compression, stated) = (number(14), head[28], number(30), number(46));
        Ok(
            (size >= 40 && matches!((compression, bits), (1, 8) | (2, 4))).then(|| Header {
                palette: 14 + u64::from(size),
                pixels: number(10).into(),
                colours: match stated {
                    1..=256 => stated as usize,
                    _ => 1 << bits,
                },
                bits,
            }),
        )
    }
}

/// The function that fills the pixels of a file, if they are runs.
///
/// # Errors
/// A file that cannot be read.
pub fn fill_function(source: &Source) -> Result<Option<Fill>> {
    Ok(Header::read(source)?.map(|_| fill as Fill))
}

fn fill(source: &Source, shape: &Shape, out: &mut [u8]) -> Result<()> {
    let header = Header::read(source)?.ok_or_else(|| anyhow!("its header is damaged"))?;
    let mut palette = [[0; 4]; 256];
    let colours = palette[..header.colours].as_flattened_mut();
    source.read_up_to(colours, header.palette)?;
    let color = |index: u8| {
        let [blue, green, red, _] = palette[usize::from(index)];
        [red, green, blue]
    };
    ensure!(
        shape.channels == 3,
        "its pixels have {} channels",
        shape.channels
    );
    let pixels = out.as_chunks_mut::<3>().0;
    pixels.fill(color(0));
    let (width, height) = (shape.width, shape.height);
    let (mut x, mut y) = (0, 0);
    let mut stream = stream(source);
    stream.seek(SeekFrom::Start(header.pixels))?;
    let end = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => anyhow!("truncated at byte {}", source.len()),
        _ => error.into(),
    };
    // Rows begin at the bottom.
    while y < height {
        let mut code = [0; 2];
        stream.read_exact(&mut code).map_err(end)?;
        let mut indices = [0; 256];
        let (count, packed) = match code {
            [0, 0] => {
                (x, y) = (0, y + 1);
                continue;
            }
            [0, 1] => return Ok(()),
            [0, 2] => {
                let mut by = [0; 2];
                stream.read_exact(&mut by).map_err(end)?;
                (x, y) = (x + usize::from(by[0]), y + usize::from(by[1]));
                ensure!(
                    x <= width && y < height,
                    "its runs continue at pixel {x} of row {y} of {width}×{height}"
                );
                continue;
            }
            [0, count] => {
                let bytes = (usize::from(count) * usize::from(header.bits)).div_ceil(8);
                let padded = &mut indices[..bytes.next_multiple_of(2)];
                stream.read_exact(padded).map_err(end)?;
                (usize::from(count), indices)
            }
            [count, index] => (usize::from(count), [index; 256]),
        };
        let row = &mut pixels[(height - 1 - y) * width..][..width];
        // Writers let runs extend beyond the row, up to whole bytes or words; the excess is ignored.
        for (i, pixel) in row.iter_mut().skip(x).take(count).enumerate() {
            *pixel = color(match (header.bits, i % 2) {
                (8, _) => packed[i],
                (_, 0) => packed[i / 2] >> 4,
                _ => packed[i / 2] & 15,
            });
        }
        x += count;
        // Some programs write runs of one colour of 8 bits at any length.
        let one_colour = header.bits == 8 && code[0] > 0;
        ensure!(
            one_colour || x <= width.next_multiple_of(4),
            "its runs end at pixel {x} of row {y} of {width}×{height}"
        );
    }
    Ok(())
}
