//! Old-style JPEG (TIFF 6.0, section 22), which TIFF Technical Note 2 replaced, as writers made it: a whole JPEG stream that a
//! field points to, a whole stream in each strip, or data without a head, of which the tables lie somewhere in the file.

use super::grid::{Grid, Span};
use super::ifd::{Ifd, tag};
use super::jpeg_image::JpegImage;
use super::shape::Form;
use super::unpack::Method;
use anyhow::{Context, Result, bail, ensure};

/// The most bytes of a stream before its image data.
const MOST_HEAD: u64 = 1 << 20;

const SOI: [u8; 2] = [0xFF, 0xD8];
const EOI: [u8; 2] = [0xFF, 0xD9];

/// What the chunks of a page are.
pub enum OldJpeg {
    /// Whole JPEG streams.
    Streams(JpegImage),
    /// Image data without a head.
    Headless(Headless),
}

/// What makes JPEG images of chunks that are nothing but image data.
pub struct Headless {
    /// The bytes before the image data, from the marker of the beginning on.
    head: Vec<u8>,
    /// Offset of the number of rows in it.
    height_at: usize,
    image: JpegImage,
}

impl OldJpeg {
    /// Fills the rows of `out` from a chunk.
    ///
    /// # Errors
    /// Damaged data.
    pub fn unpack(&self, packed: &[u8], out: &mut [u8]) -> Result<()> {
        match self {
            OldJpeg::Streams(image) => image.unpack(&SOI, packed, out),
            OldJpeg::Headless(headless) => headless.unpack(packed, out),
        }
    }
}

impl Headless {
    fn unpack(&self, packed: &[u8], out: &mut [u8]) -> Result<()> {
        let rows = out.len() / (self.image.width * self.image.channels);
        let mut file = [&self.head, packed, &EOI].concat();
        file[self.height_at..][..2].copy_from_slice(&two_bytes(rows)?);
        self.image.unpack(&SOI, &file, out)
    }
}

/// The chunks of a page, and what decodes them.
///
/// # Errors
/// What is damaged, and forms that are not supported.
pub fn read(ifd: &Ifd, form: &Form, len: u64) -> Result<(Grid, Vec<Span>, OldJpeg)> {
    const ADVICE: &str = "old-style JPEG (compression 6) of this form is not supported: convert it first (libtiff: \
                          tiffcp -c lzw in.tif out.tif)";
    let is_baseline = matches!(ifd.value(tag::JPEG_PROCESS)?, None | Some(1));
    ensure!(
        is_baseline && !form.planar && form.bands() == 1 && matches!(form.stored, 1 | 3),
        "{ADVICE}"
    );
    let ycbcr = ifd.value(tag::PHOTOMETRIC)? == Some(6);
    let chunks = Grid::read(ifd, form, Method::OldJpeg);
    let stream = match ifd.value(tag::JPEG_INTERCHANGE)?.filter(|&at| at > 0) {
        Some(at) => Some((at, Head::read(&ifd.file_bytes(at, MOST_HEAD)?))),
        None => None,
    };
    // A whole stream, with its image data.
    if let Some((offset, Some(head))) = &stream
        && let Some((width, height)) = head.size
        && head.has_scan
        && chunks.as_ref().map_or(true, |(_, spans)| {
            spans.len() == 1 && spans[0].offset >= *offset
        })
    {
        let stated = ifd.value(tag::JPEG_INTERCHANGE_LENGTH)?;
        let strip = chunks.as_ref().ok().map(|(_, spans)| spans[0]);
        let strip_end = strip.map_or(0, |span| span.offset.saturating_add(span.len));
        let end = stated.map_or(len, |stated| offset.saturating_add(stated).max(strip_end));
        ensure!(
            width >= form.shape.width && height >= form.shape.height,
            "its JPEG image has {width}×{height} pixels, fewer than its directory says"
        );
        // The borders of a tile lie outside the image.
        let grid = Grid {
            width,
            height,
            tiled: true,
        };
        let span = Span {
            offset: *offset,
            len: end.min(len).saturating_sub(*offset),
        };
        let streams = OldJpeg::Streams(jpeg_image(form, &grid, ycbcr));
        return Ok((grid, vec![span], streams));
    }
    let (grid, spans) = chunks?;
    let first = ifd.file_bytes(spans[0].offset, 2)?;
    if first == SOI {
        let streams = OldJpeg::Streams(jpeg_image(form, &grid, ycbcr));
        return Ok((grid, spans, streams));
    }
    let mut head = SOI.to_vec();
    let height_at = match stream {
        // The data of some begin with the header of the scan.
        Some((_, Some(found))) if found.has_scan || first == [0xFF, 0xDA] => {
            head.extend(&found.segments);
            2 + found.height_at.context(ADVICE)?
        }
        _ => {
            ensure!(ifd.value(tag::JPEG_Q_TABLES)?.is_some(), "{ADVICE}");
            head.extend(tables(ifd, form.stored)?);
            frame_and_scan(&mut head, ifd, form, &grid, ycbcr)?
        }
    };
    let headless = Headless {
        head,
        height_at,
        image: jpeg_image(form, &grid, ycbcr),
    };
    Ok((grid, spans, OldJpeg::Headless(headless)))
}

/// A number of a JPEG's head.
fn two_bytes(number: usize) -> Result<[u8; 2]> {
    let number = u16::try_from(number);
    Ok(number
        .context("a number of its JPEG image is more than 65535")?
        .to_be_bytes())
}

fn jpeg_image(form: &Form, grid: &Grid, ycbcr: bool) -> JpegImage {
    JpegImage {
        ycbcr,
        width: grid.width,
        height: grid.height,
        channels: form.stored,
    }
}

/// The segments of a stream before its image data.
#[derive(Default)]
struct Head {
    /// Tables, the frame and the scan, without others.
    segments: Vec<u8>,
    /// Offset of the number of rows in them.
    height_at: Option<usize>,
    /// Width and height of the frame.
    size: Option<(usize, usize)>,
    has_scan: bool,
}

impl Head {
    /// The head of a stream; none if it is no stream.
    fn read(bytes: &[u8]) -> Option<Head> {
        let mut head = Head::default();
        let mut rest = bytes.strip_prefix(&SOI)?;
        while let [0xFF, kind, high, low, ..] = *rest {
            let length = usize::from(u16::from_be_bytes([high, low]));
            let (segment, more) = rest.split_at_checked(2 + length.max(2))?;
            rest = more;
            match (kind, segment) {
                (0xC0 | 0xC1, [_, _, _, _, _, h0, h1, w0, w1, ..]) => {
                    let side = |a, b| usize::from(u16::from_be_bytes([a, b]));
                    head.size = Some((side(*w0, *w1), side(*h0, *h1)));
                    head.height_at = Some(head.segments.len() + 5);
                }
                (0xC4 | 0xDB | 0xDD | 0xDA, _) => {}
                // The end of a stream of tables, or something that decides on nothing.
                _ => continue,
            }
            head.segments.extend(segment);
            head.has_scan = kind == 0xDA;
            if head.has_scan {
                break;
            }
        }
        Some(head)
    }
}

/// The tables that the directory lists for each component, as segments.
fn tables(ifd: &Ifd, components: usize) -> Result<Vec<u8>> {
    let mut segments = Vec::new();
    let offsets = |tag| -> Result<Vec<u64>> {
        let offsets = ifd.values(tag, components as u64)?.unwrap_or_default();
        ensure!(
            offsets.len() == components,
            "its directory lists {} JPEG tables of {components}",
            offsets.len()
        );
        Ok(offsets)
    };
    for (i, offset) in (0..).zip(offsets(tag::JPEG_Q_TABLES)?) {
        let table = ifd.file_bytes(offset, 64)?;
        ensure!(
            table.len() == 64,
            "its JPEG quantization table {i} is truncated"
        );
        segments.extend([0xFF, 0xDB, 0, 67, i]);
        segments.extend(table);
    }
    for (class, tag) in [(0, tag::JPEG_DC_TABLES), (0x10, tag::JPEG_AC_TABLES)] {
        for (i, offset) in (0..).zip(offsets(tag)?) {
            let table = ifd.file_bytes(offset, 16 + 256)?;
            let count: usize = table.iter().take(16).map(|&n| usize::from(n)).sum();
            let table = table.get(..16 + count).filter(|_| count <= 256);
            let table = table.with_context(|| format!("its JPEG Huffman table {i} is damaged"))?;
            segments.extend([0xFF, 0xC4]);
            segments.extend((3 + table.len() as u16).to_be_bytes());
            segments.push(class | i);
            segments.extend(table);
        }
    }
    if let Some(interval) = ifd.value(tag::JPEG_RESTART_INTERVAL)?
        && interval > 0
    {
        segments.extend([0xFF, 0xDD, 0, 4]);
        segments.extend(two_bytes(interval as usize)?);
    }
    Ok(segments)
}

/// Appends the header of a frame of chunks of this size, with a table of its own for each component, and of its only scan.
/// Returns the offset of the number of rows.
fn frame_and_scan(
    head: &mut Vec<u8>,
    ifd: &Ifd,
    form: &Form,
    grid: &Grid,
    ycbcr: bool,
) -> Result<usize> {
    let components = form.stored as u8;
    let mut luma = 0x11;
    if ycbcr {
        let subsampling = ifd.values(tag::YCBCR_SUBSAMPLING, 2)?.unwrap_or(vec![2, 2]);
        let &[across @ (1 | 2 | 4), down @ (1 | 2 | 4)] = &subsampling[..] else {
            bail!("its YCbCrSubSampling are not two of 1, 2 and 4");
        };
        luma = (across << 4 | down) as u8;
    }
    head.extend([0xFF, 0xC0, 0, 8 + 3 * components, 8]);
    let height_at = head.len();
    head.extend([0, 0]);
    head.extend(two_bytes(grid.width)?);
    head.push(components);
    for i in 0..components {
        head.extend([i + 1, if i == 0 { luma } else { 0x11 }, i]);
    }
    head.extend([0xFF, 0xDA, 0, 6 + 2 * components, components]);
    for i in 0..components {
        head.extend([i + 1, i << 4 | i]);
    }
    head.extend([0, 63, 0]);
    Ok(height_at)
}
