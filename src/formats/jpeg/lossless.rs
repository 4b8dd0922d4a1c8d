//! Decodes JPEG's lossless process with Huffman codes (ITU-T T.81, annex H): samples of 2 to 16 bits, coded as differences
//! from predictions. It shares only the name and the markers with lossy JPEG, and `zune-jpeg` does not read it.

mod bits;

use crate::image::Shape;
use anyhow::{Context, Result, anyhow, bail, ensure};
use bits::{Bits, Table};

/// A frame's header (B.2.2), and the tables that its scans use.
struct Frame<'a> {
    /// Bits of a sample.
    precision: u32,
    /// The numbers by which scans name the components.
    names: Vec<u8>,
    /// The rest of the file, from the next marker on.
    rest: &'a [u8],
    tables: [Option<Table>; 4],
    /// Rows between two restart markers; 0 if there are none.
    restart: usize,
}

/// The header of a scan (B.2.3).
struct Scan {
    /// The index of each component, and the index of its table.
    components: Vec<(usize, usize)>,
    /// The number of the prediction, 1 to 7 (table H.1).
    predictor: u8,
    /// The number of bits by which samples were shifted down.
    shift: u32,
}

/// Decodes an image of the shape `wanted` to interleaved little-endian words of its depth. Samples of fewer bits than the
/// depth are returned as coded, including the bits above them.
///
/// # Errors
/// Damaged data, another kind of JPEG, and an image of another size.
pub fn decode(file: &[u8], wanted: &Shape) -> Result<Vec<u8>> {
    let rest = file.strip_prefix(b"\xFF\xD8");
    let mut frame = Frame {
        precision: 0,
        names: Vec::new(),
        rest: rest.context("it is not a JPEG image")?,
        tables: Default::default(),
        restart: 0,
    };
    // A sample takes at least a bit, so no memory is allocated that the data cannot fill.
    ensure!(
        wanted.samples().div_ceil(8) <= file.len(),
        "truncated: {} bytes are too few for {} samples",
        file.len(),
        wanted.samples()
    );
    let mut samples = Vec::new();
    let mut missing = vec![true; wanted.channels];
    while missing.contains(&true) {
        let (marker, segment) = frame.segment()?;
        match marker {
            0xC3 => frame.header(segment, wanted)?,
            0xC4 => frame.huffman(segment)?,
            0xC0..=0xCF => bail!("it is a JPEG image of another kind (marker FF{marker:02X})"),
            0xD9 => bail!("it ends before its last scan"),
            0xDD => {
                let interval = number(segment)?;
                ensure!(
                    interval.is_multiple_of(wanted.width),
                    "its restart interval of {interval} pixels is not a whole number of rows"
                );
                frame.restart = interval / wanted.width;
            }
            0xDA => {
                let scan = frame.scan(segment)?;
                for &(component, _) in &scan.components {
                    ensure!(
                        std::mem::take(&mut missing[component]),
                        "it has two scans of component {component}"
                    );
                }
                samples.resize(wanted.bytes(), 0);
                frame.rest = decode_scan(&frame, &scan, wanted, &mut samples)?;
            }
            _ => {}
        }
    }
    Ok(samples)
}

/// The first two bytes as a number.
fn number(bytes: &[u8]) -> Result<usize> {
    let first = bytes.first_chunk().context("a segment is too short")?;
    Ok(u16::from_be_bytes(*first).into())
}

impl<'a> Frame<'a> {
    /// Reads the next marker and its segment.
    fn segment(&mut self) -> Result<(u8, &'a [u8])> {
        let fill = self.rest.iter().take_while(|&&byte| byte == 0xFF).count();
        let marker = self.rest.get(fill).context("truncated before a marker")?;
        ensure!(fill > 0, "it is damaged: no marker where one is expected");
        let after = &self.rest[fill + 1..];
        if *marker == 0xD9 {
            return Ok((*marker, &[]));
        }
        let length = number(after).ok();
        let segment = length.and_then(|length| after.get(2..length));
        let segment = segment.context("damaged or truncated within a segment")?;
        self.rest = &after[2 + segment.len()..];
        Ok((*marker, segment))
    }

    /// Reads the frame's header.
    fn header(&mut self, segment: &[u8], wanted: &Shape) -> Result<()> {
        let &[precision, a, b, c, d, count, ref components @ ..] = segment else {
            bail!("its frame header is too short");
        };
        let (height, width) = (number(&[a, b])?, number(&[c, d])?);
        let (components, rest) = components.as_chunks::<3>();
        ensure!(
            (width, height, components.len()) == (wanted.width, wanted.height, wanted.channels)
                && usize::from(count) == components.len()
                && rest.is_empty(),
            "it is a JPEG image of {width}×{height} pixels of {count} samples where {}×{} of {} are wanted",
            wanted.width,
            wanted.height,
            wanted.channels
        );
        self.precision = precision.into();
        ensure!(
            (2..=wanted.depth.bits()).contains(&self.precision),
            "its JPEG samples of {precision} bits are not those of {} that its header says",
            wanted.depth.bits()
        );
        // The factors of a single component mean nothing (A.2.2).
        ensure!(
            components.len() == 1 || components.iter().all(|&[_, factors, _]| factors == 0x11),
            "lossless JPEG of subsampled components is not supported"
        );
        self.names = components.iter().map(|&[name, ..]| name).collect();
        Ok(())
    }

    /// Reads tables of codes (B.2.4.2).
    fn huffman(&mut self, mut segment: &[u8]) -> Result<()> {
        while let [place, rest @ ..] = segment {
            let place = self.tables.get_mut(usize::from(*place));
            let place = place.context("a Huffman table has an invalid index")?;
            let table;
            (table, segment) = Table::read(rest)?;
            *place = Some(table);
        }
        Ok(())
    }

    /// Reads a scan's header.
    fn scan(&self, segment: &[u8]) -> Result<Scan> {
        let (count, rest) = segment.split_first().context("a scan header is empty")?;
        let (named, end) = rest.as_chunks::<2>();
        let count = usize::from(*count);
        let (Some((&[predictor, _], named)), &[shift]) = (named.split_last(), end) else {
            bail!("a scan header is too short");
        };
        ensure!(named.len() == count, "a scan header has the wrong length");
        let component = |&[name, table]: &[u8; 2]| {
            let index = self.names.iter().position(|&known| known == name);
            let table = usize::from(table >> 4);
            let known = self.tables.get(table).is_some_and(Option::is_some);
            ensure!(known, "a scan has no Huffman table");
            Ok((index.context("a scan is of an unknown component")?, table))
        };
        let components = named.iter().map(component).collect::<Result<Vec<_>>>()?;
        let shift = u32::from(shift & 15);
        ensure!(
            (1..=7).contains(&predictor) && shift < self.precision,
            "a scan has predictor {predictor} and a shift of {shift} bits of {}",
            self.precision
        );
        Ok(Scan {
            components,
            predictor,
            shift,
        })
    }
}

/// Fills the samples of a scan's components; returns the rest of the file, from the next marker on.
fn decode_scan<'a>(
    frame: &Frame<'a>,
    scan: &Scan,
    shape: &Shape,
    samples: &mut [u8],
) -> Result<&'a [u8]> {
    let count = scan.components.len();
    let tables = scan.components.iter();
    let tables: Vec<&Table> = tables
        .filter_map(|&(_, table)| frame.tables[table].as_ref())
        .collect();
    let decode_row = match count {
        1 => decode_row::<1>,
        2 => decode_row::<2>,
        3 => decode_row::<3>,
        _ => bail!("a scan of {count} components is not supported"),
    };
    let first = 1u16 << (frame.precision - scan.shift - 1);
    let mut bits = Bits::new(frame.rest);
    let (mut above, mut row) = (vec![0; shape.width * count], vec![0; shape.width * count]);
    let size = shape.depth.bytes();
    let lines = samples.chunks_exact_mut(shape.width * shape.channels * size);
    for (y, line) in lines.enumerate() {
        let starts = y == 0 || frame.restart > 0 && y.is_multiple_of(frame.restart);
        if starts && y > 0 {
            bits.restart(y / frame.restart - 1)?;
        }
        // The first row of an interval is predicted from the left (H.1.2.1).
        let predictor = if starts { 1 } else { scan.predictor };
        if starts {
            row[..count].fill(first)
        } else {
            row[..count].copy_from_slice(&above[..count])
        }
        decode_row(&mut bits, &tables, predictor, &above, &mut row);
        let checked = bits.check();
        checked.map_err(|error| anyhow!("row {}: {error}", y + 1))?;
        for (i, &(component, _)) in scan.components.iter().enumerate() {
            let words = line.chunks_exact_mut(size).skip(component);
            let values = row[i..].iter().step_by(count);
            for (word, &value) in words.step_by(shape.channels).zip(values) {
                word.copy_from_slice(&(value << scan.shift).to_le_bytes()[..size]);
            }
        }
        std::mem::swap(&mut above, &mut row);
    }
    bits.end()
}

/// Decodes a row of pixels of `C` components: adds the differences to the predictions (table H.1), modulo 2¹⁶. The first
/// pixel of `row` holds its own prediction.
fn decode_row<const C: usize>(
    bits: &mut Bits,
    tables: &[&Table],
    predictor: u8,
    above: &[u16],
    row: &mut [u16],
) {
    let (Some(&tables), (row, _)) = (tables.first_chunk::<C>(), row.as_chunks_mut::<C>()) else {
        return;
    };
    let (above, _) = above.as_chunks::<C>();
    let Some((first, rest)) = row.split_first_mut() else {
        return;
    };
    for (sample, table) in first.iter_mut().zip(tables) {
        *sample = sample.wrapping_add(bits.difference(table));
    }
    let mut left = *first;
    for (pixel, above) in rest.iter_mut().zip(above.windows(2)) {
        for i in 0..C {
            let [a, b, c] = [left[i], above[1][i], above[0][i]].map(i32::from);
            let prediction = match predictor {
                1 => a,
                2 => b,
                3 => c,
                4 => a + b - c,
                5 => a + ((b - c) >> 1),
                6 => b + ((a - c) >> 1),
                _ => (a + b) >> 1,
            };
            pixel[i] = bits.difference(tables[i]).wrapping_add(prediction as u16);
        }
        left = *pixel;
    }
}
