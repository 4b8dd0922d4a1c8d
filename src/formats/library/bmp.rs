//! BMP, read and written by the `image` crate. Grey is written with a palette of greys, and a file
//! with such a palette is read as grey.

mod runs;

use super::{LibraryDecoder, Opened, Stream};
use crate::formats::encoded::Encoded;
use crate::formats::format::{Capabilities, Decoder, Format};
use crate::image::{Depth, Image};
use crate::os::Source;
use ::image::codecs::bmp::{BmpDecoder, BmpEncoder};
use ::image::error::{UnsupportedError, UnsupportedErrorKind};
use ::image::{ExtendedColorType, ImageError, ImageFormat, ImageResult};
use anyhow::{Context, Result, anyhow, ensure};
use std::io::{self, Cursor, Read, Seek, SeekFrom};

/// Windows bitmap.
pub static FORMAT: Format = Format {
    name: "BMP",
    id: "bmp",
    title: "Windows bitmap",
    extensions: &["bmp", "dib"],
    capabilities: Capabilities {
        channels: &[1, 3, 4],
        depths: &[Depth::Eight],
        ..Capabilities::UNSIGNED_PAGE
    },
    sniff: |head| head.starts_with(b"BM") || is_headless(head),
    decoder,
    encoder: Some(|target, _, _| Ok(Box::new(Encoded::new(target, |image, _| encode(image))))),
    ..Format::DEFAULTS
};

fn decoder(source: &Source, _damaged: bool) -> Result<Box<dyn Decoder + '_>> {
    let has_greys = has_greys(source)?;
    let mut decoder = LibraryDecoder::open(source, open)?;
    decoder.fill = runs::fill_function(source)?;
    if has_greys {
        decoder.reduce_channels(3, 1);
    }
    Ok(Box::new(decoder))
}

/// Bytes of the file's header, which a DIB of its own lacks.
const FILE_HEADER: usize = 14;

/// The lengths of the headers that follow it, of Windows; and those of OS/2 2.x, whole and cut short.
const WINDOWS: [u32; 6] = [12, 40, 52, 56, 108, 124];
const OS2: [u32; 2] = [16, 64];

fn number(bytes: &[u8], at: usize) -> u32 {
    let four = bytes.get(at..).and_then(<[u8]>::first_chunk);
    four.map_or(0, |four| u32::from_le_bytes(*four))
}

/// Whether a file begins with the second header, as a bitmap from a resource or the clipboard does: there is
/// no magic number, so that every field has to be one that images have.
fn is_headless(head: &[u8]) -> bool {
    let size = number(head, 0);
    // Of 12 bytes are two sides and two small numbers, as many files begin.
    let (planes, bits) = (number(head, 12) & 0xffff, number(head, 12) >> 16);
    let sides = [4, 8].map(|at| number(head, at) as i32);
    (WINDOWS[1..].contains(&size) || size == 64)
        && (planes, sides[0] > 0, sides[1] != 0) == (1, true, true)
        && sides.iter().all(|side| side.unsigned_abs() <= 0xffff)
        && matches!(bits, 1 | 4 | 8 | 16 | 24 | 32)
        && number(head, 16) <= 6
        && number(head, 32) <= 256
}

/// Masks of four channels after a header of 40 bytes (BI_ALPHABITFIELDS), which a header of 56 bytes holds.
const ALPHA_MASKS: u32 = 6;

/// Opens a file; and one without the file's header, with the second one of OS/2 2.x, with masks of four channels after a short
/// header or with more colours than its pixels can name as the file of Windows that has the same pixels.
fn open(mut stream: Stream) -> ImageResult<Opened> {
    let mut head = [0; 78];
    let there = read_up_to(&mut stream, &mut head)?;
    let headless = !head.starts_with(b"BM");
    let start = if headless { 0 } else { FILE_HEADER };
    let size = number(&head, start);
    stream.seek(SeekFrom::Start(0))?;
    let has_alpha_masks = size == 40 && number(&head, start + 16) == ALPHA_MASKS;
    let most = match number(&head, start + 12) >> 16 {
        bits @ (1 | 4 | 8) if size >= 40 => 1 << bits,
        _ => u32::MAX,
    };
    // All of them lie before the pixels.
    let has_more_colours = !headless && {
        let stated = number(&head, start + 32);
        stated > most
            && (start as u64 + u64::from(size) + 4 * u64::from(stated)) <= number(&head, 10).into()
    };
    let is_changed = headless || OS2.contains(&size) || has_alpha_masks || has_more_colours;
    if !is_changed || there < start + size as usize {
        return Ok(Box::new(BmpDecoder::new(stream)?));
    }
    let mut file = Vec::new();
    stream.read_to_end(&mut file)?;
    let mut header = file[start..start + size as usize].to_vec();
    let pixels = number(&file, 10);
    let mut removed = 0;
    if OS2.contains(&size) {
        let compression = if size > 16 { number(&header, 16) } else { 0 };
        if compression > 2 {
            let kind = UnsupportedErrorKind::GenericFeature("OS/2 compression".into());
            let error = UnsupportedError::from_format_and_kind(ImageFormat::Bmp.into(), kind);
            return Err(ImageError::Unsupported(error));
        }
        header.resize(40, 0);
        header[..4].copy_from_slice(&40u32.to_le_bytes());
        removed = i64::from(size) - 40;
    }
    if has_more_colours {
        header[32..36].copy_from_slice(&most.to_le_bytes());
    }
    let begins = if headless {
        let bits = number(&header, 12) >> 16;
        let stated = number(&header, 32);
        let colours = match (bits, stated) {
            (1 | 4 | 8, 0) => 1 << bits,
            _ => stated,
        };
        let masks = match (number(&header, 0), number(&header, 16)) {
            (40, 3) => 12,
            (40, 6) => 16,
            _ => 0,
        };
        (FILE_HEADER + header.len()) as i64 + i64::from(masks + 4 * colours)
    } else {
        i64::from(pixels) - removed
    };
    let begins = u32::try_from(begins).unwrap_or(0).to_le_bytes();
    if has_alpha_masks {
        header[..4].copy_from_slice(&56u32.to_le_bytes());
        header[16..20].copy_from_slice(&3u32.to_le_bytes());
    }
    let rest = &file[start + size as usize..];
    let whole = [b"BM", &[0; 8][..], &begins, &header, rest].concat();
    Ok(Box::new(BmpDecoder::new(Cursor::new(whole))?))
}

fn read_up_to(stream: &mut Stream, bytes: &mut [u8]) -> io::Result<usize> {
    let mut there = 0;
    while there < bytes.len() {
        match stream.read(&mut bytes[there..])? {
            0 => break,
            more => there += more,
        }
    }
    Ok(there)
}

fn encode(image: &Image) -> Result<Vec<u8>> {
    let shape = image.shape();
    let colours = match shape.channels {
        1 => ExtendedColorType::L8,
        3 => ExtendedColorType::Rgb8,
        _ => ExtendedColorType::Rgba8,
    };
    // The most that the decoder reads.
    let side = |side: usize| u16::try_from(side).ok().map(u32::from);
    let (width, height) = side(shape.width).zip(side(shape.height)).with_context(|| {
        format!(
            "{shape} is too large for a BMP, which holds 65535 pixels per side (PNG and TIFF hold more)"
        )
    })?;
    let mut file = Vec::new();
    let mut encoder = BmpEncoder::new(&mut file);
    let written = encoder.encode(image.samples().as_bytes(), width, height, colours);
    written.map_err(|_| anyhow!("{shape} is more than BMP holds"))?;
    Ok(file)
}

/// Whether a file has a palette and all of its colours are grey (BITMAPINFOHEADER and later).
///
/// # Errors
/// The pixels begin inside the palette: colours would be taken for pixels.
fn has_greys(source: &Source) -> Result<bool> {
    let mut head = [0; 54];
    if source.read_up_to(&mut head, 0)? < head.len() {
        return Ok(false);
    }
    let headless = !head.starts_with(b"BM");
    let begin = if headless { 0 } else { FILE_HEADER };
    let pixels = if headless {
        u32::MAX
    } else {
        number(&head, 10)
    };
    let (size, bits) = (number(&head, begin), head[begin + 14]);
    let stated = number(&head, begin + 32);
    if size < 40 || !matches!(bits, 1 | 4 | 8) || stated > 256 {
        return Ok(false);
    }
    let start = begin as u64 + u64::from(size);
    let end = start + 4 * u64::from(stated);
    ensure!(
        u64::from(pixels) >= end,
        "its pixels begin at byte {pixels}, and its palette ends at byte {end}"
    );
    let colours = if stated == 0 { 1 << bits } else { stated };
    let mut palette = vec![0; 4 * colours as usize];
    let read = source.read_up_to(&mut palette, start)?;
    let mut colours = palette.as_chunks::<4>().0.iter();
    let greys = colours.all(|[b, g, r, _]| b == g && g == r);
    Ok(read == palette.len() && greys)
}
