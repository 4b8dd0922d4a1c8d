//! Converts a PNG's chunks to the items that all formats share, and back.

use crate::deflate::MAX_EXPANSION;
use crate::formats::item::{Item, Keyword};
use crate::formats::tiff::exif;
use crate::image::metadata::{Chunk, Own};

/// The keyword of each text (PNG specification, third edition, section 11.3.3.1).
const KEYWORDS: [(Keyword, &str); 6] = [
    (Keyword::Description, "Description"),
    (Keyword::Title, "Title"),
    (Keyword::Author, "Author"),
    (Keyword::Copyright, "Copyright"),
    (Keyword::Software, "Software"),
    (Keyword::CreationTime, "Creation Time"),
];

/// The keyword of an iTXt chunk with XMP (XMP specification, part 3).
pub const XMP: &str = "XML:com.adobe.xmp";

/// The most bytes that all compressed metadata of a file may expand to. Colour profiles have up to a few MB.
const MAX_UNPACKED_BYTES: usize = 16 << 20;

/// An upper bound for the bytes that a chunk of `len` bytes takes in memory.
pub fn unpacked(kind: &[u8; 4], len: u64) -> u64 {
    match kind {
        b"iCCP" | b"zTXt" | b"iTXt" => {
            len.max((len * MAX_EXPANSION).min(MAX_UNPACKED_BYTES as u64))
        }
        _ => len,
    }
}

/// Converts chunks to common items.
pub fn items(chunks: &[Chunk]) -> Vec<Item> {
    let mut budget = MAX_UNPACKED_BYTES;
    chunks
        .iter()
        .map(|chunk| item(chunk, &mut budget))
        .collect()
}

/// Converts a chunk to an item. `budget` is the number of bytes that may still be inflated.
fn item(chunk: &Chunk, budget: &mut usize) -> Item {
    let data = &chunk.data[..];
    let known = match &chunk.kind {
        b"tEXt" | b"zTXt" | b"iTXt" => Some(text(chunk, budget)),
        b"iCCP" => profile(data, budget),
        b"cHRM" if data.len() == 32 => {
            let numbers = data.as_chunks::<4>().0.iter().copied();
            let values = numbers.map(u32::from_be_bytes).collect();
            Some(Item::Chromaticities(values))
        }
        b"eXIf" => exif::read(data).map(|(big_endian, fields)| Item::Exif { big_endian, fields }),
        _ => None,
    };
    known.unwrap_or_else(|| Item::Own(format!("chunk {}", chunk.kind.escape_ascii())))
}

/// An ICC profile (section 11.3.2.3): its name, a zero byte, the compression method 0, and a zlib stream.
fn profile(data: &[u8], budget: &mut usize) -> Option<Item> {
    let zero = data.iter().position(|&byte| byte == 0)?;
    let profile = inflate(data.get(zero + 2..)?, budget)?;
    Some(Item::Profile(profile))
}

/// A text (sections 11.3.3.2 to 11.3.3.4).
fn text(chunk: &Chunk, budget: &mut usize) -> Item {
    let zero = chunk.data.iter().position(|&byte| byte == 0);
    let name = &chunk.data[..zero.unwrap_or(chunk.data.len())];
    let unknown = || Item::Own(format!("the text {:?}", String::from_utf8_lossy(name)));
    let is_xmp = &chunk.kind == b"iTXt" && name == XMP.as_bytes();
    let known = KEYWORDS.iter().find(|(_, known)| known.as_bytes() == name);
    if known.is_none() && !is_xmp {
        return unknown();
    }
    match (contents(chunk, budget), known) {
        (Some(text), Some((keyword, _))) => Item::Text(*keyword, text),
        (Some(packet), None) => Item::Xmp(packet),
        (None, _) => unknown(),
    }
}

/// The text of a chunk after its keyword.
fn contents(chunk: &Chunk, budget: &mut usize) -> Option<Vec<u8>> {
    let zero = chunk.data.iter().position(|&byte| byte == 0)?;
    let rest = &chunk.data[zero + 1..];
    Some(match &chunk.kind {
        b"tEXt" => latin1_to_utf8(rest),
        b"zTXt" => latin1_to_utf8(&inflate(rest.get(1..)?, budget)?),
        _ => {
            let compressed = *rest.first()? == 1;
            // The text follows the language tag and the translated keyword.
            let text = rest.get(2..)?.splitn(3, |&byte| byte == 0).nth(2)?;
            if compressed {
                inflate(text, budget)?
            } else {
                text.into()
            }
        }
    })
}

/// If a chunk holds compressed XMP, the data of an uncompressed chunk with the same XMP.
pub fn unpacked_xmp(chunk: &Chunk) -> Option<Vec<u8>> {
    let head = [XMP.as_bytes(), b"\0\x01"].concat();
    let is_compressed = &chunk.kind == b"iTXt" && chunk.data.starts_with(&head);
    let packet = is_compressed.then(|| contents(chunk, &mut { MAX_UNPACKED_BYTES }))?;
    Some(international(XMP, &packet?))
}

/// Keywords of texts with Exif data. ImageMagick and other programs wrote them before PNG had a chunk for Exif.
const EXIF: [&[u8]; 2] = [b"Raw profile type exif\0", b"Raw profile type APP1\0"];

/// The Exif data in a text. The text has a name, the number of bytes, and the bytes in hexadecimal, each on separate lines.
pub fn exif_in_text(chunk: &Chunk) -> Option<Vec<u8>> {
    EXIF.iter().find(|name| chunk.data.starts_with(name))?;
    let text = String::from_utf8(contents(chunk, &mut { MAX_UNPACKED_BYTES })?).ok()?;
    let mut words = text.split_ascii_whitespace();
    let length: usize = words.nth(1)?.parse().ok()?;
    let digits: Vec<u8> = words.flat_map(str::bytes).collect();
    let bytes = digits
        .chunks_exact(2)
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok());
    let bytes = exif::without_head(
        bytes
            .collect::<Option<Vec<u8>>>()
            .filter(|bytes| bytes.len() == length)?,
    );
    // An APP1 profile may also be an XMP packet.
    (bytes.starts_with(b"II*\0") || bytes.starts_with(b"MM\0*")).then_some(bytes)
}

/// Converts Latin-1 to UTF-8.
fn latin1_to_utf8(bytes: &[u8]) -> Vec<u8> {
    let text: String = bytes.iter().map(|&byte| char::from(byte)).collect();
    text.into_bytes()
}

/// The keyword of the rescaling record, and a zero byte.
const RESCALING_KEYWORD: &[u8] = b"gpuimg:stretch\0";

/// The chunk of a rescaling record.
pub fn rescaling(text: &str) -> Chunk {
    Chunk {
        kind: *b"tEXt",
        behind: false,
        data: [RESCALING_KEYWORD, text.as_bytes()].concat(),
    }
}

/// Removes the chunks of rescaling records, and returns the text of the first.
pub fn remove_rescaling(chunks: &mut Vec<Chunk>) -> Option<Vec<u8>> {
    let is_record =
        |chunk: &mut Chunk| &chunk.kind == b"tEXt" && chunk.data.starts_with(RESCALING_KEYWORD);
    let removed: Vec<Chunk> = chunks.extract_if(.., is_record).collect();
    removed
        .first()
        .map(|chunk| chunk.data[RESCALING_KEYWORD.len()..].into())
}

/// Converts common items to chunks, and adds an orientation other than upright. Calls `leave` with
/// the name of every item that has no chunk.
pub fn own(items: Vec<Item>, orientation: Option<u16>, leave: &mut dyn FnMut(String)) -> Own {
    let mut chunks = Vec::new();
    let mut add = |kind: &[u8; 4], data: Vec<u8>| {
        chunks.push(Chunk {
            kind: *kind,
            behind: false,
            data,
        });
    };
    // Exif data contain the orientation, so they are written last.
    let (mut exif_big_endian, mut exif_fields) = (false, Vec::new());
    for item in items {
        match item {
            Item::Text(keyword, text) => {
                let (kind, data) = text_chunk(keyword, &text);
                add(kind, data);
            }
            Item::Xmp(packet) => add(b"iTXt", international(XMP, &packet)),
            Item::Profile(profile) => match deflate(&profile) {
                Some(stream) => add(b"iCCP", [b"ICC profile\0\0", &stream[..]].concat()),
                None => leave("the colour profile, which cannot be compressed".into()),
            },
            Item::Chromaticities(values) => {
                let values = values.into_iter().flat_map(u32::to_be_bytes);
                add(b"cHRM", values.collect());
            }
            Item::Exif { big_endian, fields } => {
                (exif_big_endian, exif_fields) = (big_endian, fields);
            }
            Item::Own(name) => leave(name),
        }
    }
    let orientation = orientation.filter(|&orientation| orientation > 1);
    if orientation.is_some() || !exif_fields.is_empty() {
        add(
            b"eXIf",
            exif::write(exif_fields, orientation, exif_big_endian),
        );
    }
    if chunks.is_empty() {
        Own::None
    } else {
        Own::Png(chunks)
    }
}

/// A text as Latin-1 if possible (section 11.3.3.2), otherwise as UTF-8.
fn text_chunk(keyword: Keyword, text: &[u8]) -> (&'static [u8; 4], Vec<u8>) {
    let known = KEYWORDS.iter().find(|(known, _)| *known == keyword);
    let name = known.map_or("", |(_, name)| name);
    match str::from_utf8(text) {
        Ok(utf8) if !utf8.is_ascii() => (b"iTXt", international(name, text)),
        _ => (b"tEXt", [name.as_bytes(), b"\0", text].concat()),
    }
}

/// The data of an uncompressed iTXt chunk without language or translated keyword.
fn international(keyword: &str, text: &[u8]) -> Vec<u8> {
    [keyword.as_bytes(), b"\0\0\0\0\0", text].concat()
}

/// Compresses bytes to a zlib stream; `None` if the compressor fails.
fn deflate(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
    let mut packed = vec![0; compressor.zlib_compress_bound(bytes.len())];
    let size = compressor.zlib_compress(bytes, &mut packed).ok()?;
    packed.truncate(size);
    Some(packed)
}

/// Inflates a zlib stream and takes its bytes from the budget; `None` if it is incomplete or exceeds the budget.
fn inflate(stream: &[u8], budget: &mut usize) -> Option<Vec<u8>> {
    let mut decompressor = libdeflater::Decompressor::new();
    let mut size = (4 * stream.len() + 4096).min(*budget);
    loop {
        let mut bytes = vec![0; size];
        match decompressor.zlib_decompress(stream, &mut bytes) {
            Ok(filled) => {
                bytes.truncate(filled);
                *budget -= filled;
                return Some(bytes);
            }
            Err(libdeflater::DecompressionError::InsufficientSpace) if size < *budget => {
                size = (4 * size).min(*budget);
            }
            Err(_) => return None,
        }
    }
}
