//! Metadata kept true after an operation, and carried from one format to the other.

use super::format::{Field as Neutral, Format};
use super::{png, tiff, xmp};
use crate::metadata::{Chunk, Effect, Field, Metadata, Own, Remarks, Story, Value};

/// The most bytes that compressed metadata are unpacked to.
const MOST: u64 = 64 << 20;

/// What both formats can say: PNG's keyword and TIFF's tag.
const TEXTS: [(&str, u16); 6] = [
    ("Description", 270),
    ("Title", 269),
    ("Author", 315),
    ("Copyright", 33432),
    ("Software", 305),
    ("Creation Time", 306),
];

/// XMP (XMP specification, part 3): TIFF's field, and the keyword of PNG's iTXt.
const XMP: u16 = 700;
const XMP_KEYWORD: &str = "XML:com.adobe.xmp";
/// TIFF's field of an ICC profile (ICC.1, annex B.4).
const ICC: u16 = 34675;
/// Fields that Exif's first directory has (Exif 2.32, section 4.6.4), beside those of `TEXTS`.
const EXIF: [u16; 5] = [271, 272, 34665, 34853, 40965];
/// Colours of white and of the primaries, in both formats.
const WHITE: u16 = 318;
const PRIMARIES: u16 = 319;

/// Keeps metadata true after an operation; what cannot be is left out and told.
pub fn follow(metadata: &mut Metadata, story: &Story, remarks: &mut Remarks) {
    metadata.follow(story.effect);
    match &mut metadata.own {
        Own::None => {}
        Own::Png(chunks) => {
            png::metadata::follow(chunks, story, remarks);
            let exif = chunks.iter_mut().filter(|chunk| &chunk.kind == b"eXIf");
            if story.is_transposed() {
                exif.for_each(|chunk| tiff::exif::exchange_sides(&mut chunk.data));
            }
            for chunk in chunks.iter_mut() {
                let head = [XMP_KEYWORD.as_bytes(), b"\0\0"].concat();
                // Not compressed, as XMP is to be.
                if &chunk.kind == b"iTXt" && chunk.data.starts_with(&head) {
                    xmp::follow(&mut chunk.data, story, metadata.orientation);
                }
            }
        }
        Own::Tiff { big_endian, fields } => {
            tiff::metadata::follow(fields, *big_endian, story, remarks);
            for field in fields.iter_mut().filter(|field| field.tag == XMP) {
                if let Value::Bytes(packet) = &mut field.value {
                    xmp::follow(packet, story, metadata.orientation);
                }
            }
        }
    }
}

/// Makes metadata such as the output's format has; what it has no place for is told.
pub fn carry(metadata: &mut Metadata, format: &dyn Format, effect: Effect, remarks: &mut Remarks) {
    let can = format.capabilities();
    let lacks = |field| !can.fields.contains(&field);
    if !can.signed && effect == Effect::Values {
        // Stretched values have no sign that matters.
        metadata.signed = false;
    }
    let mut leave = |what: String| {
        let note = format!("{what} is left out: {} has no place for it", format.name());
        remarks.notes.push(note);
    };
    if lacks(Neutral::Maxval) && metadata.maxval.is_some() {
        leave("the largest value that samples can have".into());
    }
    if lacks(Neutral::Significant) && metadata.significant.is_some() {
        leave("how many bits are significant".into());
    }
    if lacks(Neutral::Resolution) && metadata.resolution.is_some() {
        leave("the resolution".into());
    }
    let own = std::mem::take(&mut metadata.own);
    metadata.own = format.adopt(metadata, own, &mut leave);
    if lacks(Neutral::Orientation) && metadata.orientation.is_some_and(|told| told > 1) {
        remarks.warnings.push(format!(
            "{} cannot tell that the image is to be turned (--auto-orient turns it)",
            format.name()
        ));
    }
    if let (Own::Png(chunks), Some(orientation)) = (&mut metadata.own, metadata.orientation) {
        for chunk in chunks.iter_mut().filter(|chunk| &chunk.kind == b"eXIf") {
            tiff::exif::set_orientation(&mut chunk.data, orientation);
        }
    }
}

/// What a PNG has a place for, as its chunks. `leave` is told of the rest.
pub fn to_png(metadata: &Metadata, own: Own, leave: &mut dyn FnMut(String)) -> Own {
    match own {
        Own::Png(_) => own,
        Own::Tiff { big_endian, fields } => to_chunks(metadata, big_endian, fields, leave),
        Own::None => to_chunks(metadata, false, Vec::new(), leave),
    }
}

/// What a TIFF has a place for, as its fields. `leave` is told of the rest.
pub fn to_tiff(own: Own, leave: &mut dyn FnMut(String)) -> Own {
    match own {
        Own::Png(chunks) => to_fields(chunks, leave),
        own => own,
    }
}

/// Fields as chunks of a PNG.
fn to_chunks(
    metadata: &Metadata,
    big_endian: bool,
    fields: Vec<Field>,
    leave: &mut dyn FnMut(String),
) -> Own {
    let mut chunks = Vec::new();
    let mut add = |kind: &[u8; 4], data: Vec<u8>| {
        chunks.push(Chunk {
            kind: *kind,
            behind: false,
            data,
        });
    };
    let mut exif = Vec::new();
    for field in fields {
        let text = TEXTS.iter().find(|(_, tag)| *tag == field.tag);
        match (&field.value, text) {
            (Value::Bytes(bytes), Some((keyword, _))) => {
                let (kind, data) = text_chunk(keyword, bytes);
                add(kind, data);
            }
            (Value::Bytes(profile), None) if field.tag == ICC => {
                add(b"iCCP", [b"ICC profile\0\0", &packed(profile)[..]].concat());
            }
            (Value::Bytes(packet), None) if field.tag == XMP && str::from_utf8(packet).is_ok() => {
                let (kind, data) = international(XMP_KEYWORD, packet);
                add(kind, data);
            }
            _ if EXIF.contains(&field.tag) => exif.push(field),
            _ => leave(format!("tag {}", field.tag)),
        }
    }
    let turned = metadata.orientation.filter(|&orientation| orientation > 1);
    if turned.is_some() || !exif.is_empty() {
        add(b"eXIf", tiff::exif::write(exif, turned, big_endian));
    }
    match chunks.is_empty() {
        true => Own::None,
        false => Own::Png(chunks),
    }
}

/// A text as Latin-1 where that suffices (section 11.3.3.2), else as UTF-8.
fn text_chunk(keyword: &str, bytes: &[u8]) -> (&'static [u8; 4], Vec<u8>) {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    match str::from_utf8(text) {
        Ok(utf8) if !utf8.is_ascii() => international(keyword, text),
        _ => (b"tEXt", [keyword.as_bytes(), b"\0", text].concat()),
    }
}

/// A text in UTF-8: not compressed, of no language, its keyword not translated.
fn international(keyword: &str, text: &[u8]) -> (&'static [u8; 4], Vec<u8>) {
    let head = [keyword.as_bytes(), b"\0\0\0\0\0"].concat();
    (b"iTXt", [&head, text].concat())
}

/// Chunks as fields of a TIFF directory.
fn to_fields(chunks: Vec<Chunk>, leave: &mut dyn FnMut(String)) -> Own {
    let mut fields: Vec<Field> = Vec::new();
    let mut add = |tag, kind, bytes| {
        if !fields.iter().any(|field: &Field| field.tag == tag) {
            fields.push(Field {
                tag,
                kind,
                value: Value::Bytes(bytes),
            });
        }
    };
    let mut from_exif = None;
    for chunk in chunks {
        match &chunk.kind {
            b"tEXt" | b"zTXt" | b"iTXt" => match text(&chunk) {
                Some((XMP, packet)) => add(XMP, tiff::BYTE, packet),
                Some((tag, text)) => add(tag, tiff::ASCII, text),
                None => {
                    let keyword = chunk.data.split(|&byte| byte == 0).next();
                    let keyword = String::from_utf8_lossy(keyword.unwrap_or_default()).into_owned();
                    leave(format!("the text {keyword:?}"));
                }
            },
            b"iCCP" => {
                let zero = chunk.data.iter().position(|&byte| byte == 0);
                let stream = zero.and_then(|zero| chunk.data.get(zero + 2..));
                match stream.and_then(unpacked) {
                    Some(profile) => add(ICC, tiff::UNDEFINED, profile),
                    None => leave("chunk iCCP".into()),
                }
            }
            b"cHRM" if chunk.data.len() == 32 => {
                // In hundred-thousandths; red, green and blue behind white, as in TIFF.
                let fractions = |bytes: &[u8]| -> Vec<u8> {
                    let numbers = bytes.as_chunks::<4>().0.iter();
                    let pair =
                        |n: &[u8; 4]| [u32::from_be_bytes(*n), 100_000].map(u32::to_ne_bytes);
                    numbers.flat_map(pair).flatten().collect()
                };
                add(WHITE, tiff::RATIONAL, fractions(&chunk.data[..8]));
                add(PRIMARIES, tiff::RATIONAL, fractions(&chunk.data[8..]));
            }
            b"eXIf" => match tiff::exif::read(&chunk.data) {
                Some(read) => from_exif = Some(read),
                None => leave("chunk eXIf".into()),
            },
            kind => leave(format!("chunk {}", kind.escape_ascii())),
        }
    }
    let mut big_endian = cfg!(target_endian = "big");
    if let Some((order, exif)) = from_exif {
        // The file takes Exif's byte order, and what was made here follows.
        if order != big_endian {
            for field in &mut fields {
                if let (tiff::RATIONAL, Value::Bytes(bytes)) = (field.kind, &mut field.value) {
                    bytes
                        .as_chunks_mut::<4>()
                        .0
                        .iter_mut()
                        .for_each(|n| n.reverse());
                }
            }
            big_endian = order;
        }
        let new = |field: &Field| !fields.iter().any(|known| known.tag == field.tag);
        let exif: Vec<Field> = exif.into_iter().filter(new).collect();
        fields.extend(exif);
    }
    match fields.is_empty() {
        true => Own::None,
        false => Own::Tiff { big_endian, fields },
    }
}

/// The tag and the text of a text chunk (sections 11.3.3.2 to 11.3.3.4), in UTF-8; with a zero, but for
/// XMP.
fn text(chunk: &Chunk) -> Option<(u16, Vec<u8>)> {
    let zero = chunk.data.iter().position(|&byte| byte == 0)?;
    let (keyword, rest) = (&chunk.data[..zero], &chunk.data[zero + 1..]);
    let is_xmp = &chunk.kind == b"iTXt" && keyword == XMP_KEYWORD.as_bytes();
    let (_, tag) = [(XMP_KEYWORD, XMP)]
        .iter()
        .filter(|_| is_xmp)
        .chain(&TEXTS)
        .find(|(known, _)| known.as_bytes() == keyword)?;
    let latin = |bytes: &[u8]| -> Vec<u8> {
        let text: String = bytes.iter().map(|&byte| char::from(byte)).collect();
        text.into_bytes()
    };
    let mut text = match &chunk.kind {
        b"tEXt" => latin(rest),
        b"zTXt" => latin(&unpacked(rest.get(1..)?)?),
        _ => {
            let compressed = *rest.first()? == 1;
            // Behind the language and the translated keyword.
            let mut parts = rest.get(2..)?.splitn(3, |&byte| byte == 0);
            let text = parts.nth(2)?;
            if compressed {
                unpacked(text)?
            } else {
                text.into()
            }
        }
    };
    if !is_xmp {
        text.push(0);
    }
    Some((*tag, text))
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut level = libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
    let mut packed = vec![0; level.zlib_compress_bound(bytes.len())];
    let size = level.zlib_compress(bytes, &mut packed).unwrap_or(0);
    packed.truncate(size);
    packed
}

/// What a zlib stream holds, if it is whole and no more than `MOST`.
fn unpacked(stream: &[u8]) -> Option<Vec<u8>> {
    let mut inflate = libdeflater::Decompressor::new();
    let mut size = 4 * stream.len() + 4096;
    loop {
        let mut bytes = vec![0; size];
        match inflate.zlib_decompress(stream, &mut bytes) {
            Ok(filled) => {
                bytes.truncate(filled);
                return Some(bytes);
            }
            Err(libdeflater::DecompressionError::InsufficientSpace) if (size as u64) < MOST => {
                size *= 4;
            }
            Err(_) => return None,
        }
    }
}
