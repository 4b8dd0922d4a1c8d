//! Reads, updates and writes the chunks of a PNG that hold metadata.
//!
//! An unknown chunk is kept if its safe-to-copy bit is set (PNG specification, section 5.4); each
//! known chunk is treated according to its meaning.

use super::common_items::{self, XMP};
use crate::formats::tiff::exif;
use crate::formats::xmp;
use crate::image::Shape;
use crate::image::metadata::{
    Chunk, Diagnostics, Effect, Metadata, Own, Resolution, Transform, Unit,
};

/// Chunks that stay true after every operation. There is no colour management: the output has the
/// colour space of the input. `mDCv` and `cLLi` are the names of `mDCV` and `cLLI` in a draft; some files use them.
const PERMANENT: [&[u8; 4]; 9] = [
    b"cHRM", b"gAMA", b"iCCP", b"sRGB", b"cICP", b"mDCV", b"cLLI", b"mDCv", b"cLLi",
];

/// Chunks about the layout of the image data, which the output writes anew or does not need.
const LAYOUT: [&[u8; 4]; 5] = [b"IHDR", b"PLTE", b"tRNS", b"IEND", b"gpIS"];

/// Adds one chunk of a file to the metadata. `shape` is the shape of the decoded image. `plain` says that its samples are
/// those of the file: the file has no palette, and at least 8 bits per sample.
pub fn add_chunk(
    metadata: &mut Metadata,
    mut chunk: Chunk,
    shape: &Shape,
    plain: bool,
    diagnostics: &mut Diagnostics,
) {
    let kind = chunk.kind;
    let is_exif = |chunk: &Chunk| &chunk.kind == b"eXIf";
    let has_exif = matches!(&metadata.own, Own::Png(chunks) if chunks.iter().any(is_exif));
    let mut leave_out = |why: &str| diagnostics.notes.push(left_out(&kind, why));
    match &kind {
        kind if LAYOUT.contains(&kind) => return,
        b"sBIT" => {
            let mut bits = chunk.data;
            // Alpha from tRNS uses all bits.
            bits.resize(shape.channels.max(bits.len()), shape.depth.bits() as u8);
            metadata.significant = Some(bits);
            return;
        }
        b"pHYs" => {
            metadata.resolution = resolution(&chunk.data);
            return;
        }
        b"tIME" => return leave_out("the modification time no longer applies"),
        b"hIST" => return leave_out("the output has no palette"),
        b"acTL" => return leave_out("the output is a still image"),
        b"bKGD" if !plain => return leave_out("its colours do not exist in the output"),
        b"eXIf" => {
            chunk.data = exif::without_head(chunk.data);
            metadata.orientation = exif::orientation(&chunk.data);
            if let Own::Png(chunks) = &mut metadata.own {
                // The chunk replaces Exif data from an earlier text.
                chunks.retain(|chunk| &chunk.kind != b"eXIf");
            }
        }
        b"tEXt" | b"zTXt" | b"iTXt" => {
            if let Some(data) = common_items::exif_in_text(&chunk) {
                if has_exif {
                    return leave_out("its Exif data are also in the chunk eXIf");
                }
                metadata.orientation = exif::orientation(&data);
                (chunk.kind, chunk.data) = (*b"eXIf", data);
            } else if let Some(data) = common_items::unpacked_xmp(&chunk) {
                // `update` can change only uncompressed XMP.
                (chunk.kind, chunk.data) = (*b"iTXt", data);
            }
        }
        b"bKGD" | b"sPLT" | b"pCAL" | b"sCAL" | b"oFFs" | b"sTER" => {}
        kind if PERMANENT.contains(&kind) => {}
        [_, _, _, last] if last.is_ascii_lowercase() => {}
        _ => return leave_out("the chunk is unknown and not marked as safe to copy"),
    }
    match &mut metadata.own {
        Own::Png(chunks) => chunks.push(chunk),
        own => *own = Own::Png(vec![chunk]),
    }
}

/// The note about a chunk that is left out.
fn left_out(kind: &[u8; 4], why: &str) -> String {
    format!("chunk {} is left out: {why}", kind.escape_ascii())
}

/// The resolution in a pHYs chunk.
fn resolution(data: &[u8]) -> Option<Resolution> {
    let &[x0, x1, x2, x3, y0, y1, y2, y3, unit] = data else {
        return None;
    };
    Some(Resolution {
        x: (u32::from_be_bytes([x0, x1, x2, x3]), 1),
        y: (u32::from_be_bytes([y0, y1, y2, y3]), 1),
        unit: if unit == 1 { Unit::Metre } else { Unit::None },
    })
}

/// Updates chunks after an operation.
pub fn update(
    chunks: &mut Vec<Chunk>,
    orientation: Option<u16>,
    transform: &Transform,
    diagnostics: &mut Diagnostics,
) {
    chunks.retain_mut(|chunk| {
        let why = match (&chunk.kind, transform.effect) {
            (b"bKGD", _) if transform.from.depth != transform.to.depth => {
                "it describes the previous depth"
            }
            (b"bKGD" | b"sPLT" | b"pCAL", _)
                if transform.changes_channels()
                    || matches!(transform.effect, Effect::Values | Effect::Arithmetic) =>
            {
                "it describes the previous values"
            }
            (b"oFFs", Effect::Cropped { left, top })
                if move_offset(&mut chunk.data, [left, top]) =>
            {
                return true;
            }
            (b"iCCP", _) if transform.changes_channels() => "it describes the previous channels",
            (b"oFFs" | b"sTER", _) if transform.changes_places() => {
                "it describes the previous positions"
            }
            (b"sCAL", Effect::Moves(map)) if map.transposed => {
                swap_scal(&mut chunk.data);
                return true;
            }
            (b"sCAL", Effect::Reduced) => {
                scale_scal(&mut chunk.data, transform);
                return true;
            }
            _ => return true,
        };
        diagnostics.notes.push(left_out(&chunk.kind, why));
        false
    });
    for chunk in chunks.iter_mut() {
        let head = [XMP.as_bytes(), b"\0\0"].concat();
        match &chunk.kind {
            b"eXIf" => {
                exif::update_sides(&mut chunk.data, transform);
                if exif::drop_thumbnail(&mut chunk.data) {
                    diagnostics.notes.push("the thumbnail is left out".into());
                }
            }
            b"iTXt" if chunk.data.starts_with(&head) => {
                xmp::update(&mut chunk.data, transform, orientation);
            }
            _ => {}
        }
    }
}

/// Sets the orientation in the Exif data, if they have one.
pub fn set_orientation(chunks: &mut [Chunk], orientation: u16) {
    for chunk in chunks.iter_mut().filter(|chunk| &chunk.kind == b"eXIf") {
        exif::set_orientation(&mut chunk.data, orientation);
    }
}

/// Adds the removed columns and rows to oFFs, the position of the image on its page (Extensions to the PNG 1.2 specification,
/// section 4.2). The chunk has two signed 32-bit numbers and a unit. Returns false if the unit is micrometres, and for an
/// invalid chunk.
fn move_offset(data: &mut [u8], removed: [usize; 2]) -> bool {
    const PIXELS: u8 = 0;
    let [numbers @ .., PIXELS] = data else {
        return false;
    };
    let ([x, y], []) = numbers.as_chunks_mut::<4>() else {
        return false;
    };
    let moved = |number: &[u8; 4], removed: usize| {
        let removed = i32::try_from(removed).ok()?;
        i32::from_be_bytes(*number).checked_add(removed)
    };
    let (Some(new_x), Some(new_y)) = (moved(x, removed[0]), moved(y, removed[1])) else {
        return false;
    };
    (*x, *y) = (new_x.to_be_bytes(), new_y.to_be_bytes());
    true
}

/// Swaps the two numbers of sCAL. The chunk has a byte for the unit, and then two numbers as text, separated by a zero byte. An
/// invalid chunk does not change.
fn swap_scal(data: &mut Vec<u8>) {
    if let Some((unit, texts)) = data.split_first()
        && let Some(zero) = texts.iter().position(|&byte| byte == 0)
    {
        let (x, y) = (&texts[..zero], &texts[zero + 1..]);
        *data = [&[*unit], y, &[0], x].concat();
    }
}

/// Scales the two numbers of sCAL, the width and the height of a pixel, to the larger pixels of a smaller image. An invalid chunk
/// does not change.
fn scale_scal(data: &mut Vec<u8>, transform: &Transform) {
    let Transform { from, to, .. } = transform;
    let scaled = |text: &[u8], from: usize, to: usize| -> Option<String> {
        let size: f64 = str::from_utf8(text).ok()?.trim().parse().ok()?;
        Some((size * from as f64 / to as f64).to_string())
    };
    let texts = || {
        let (unit, texts) = data.split_first()?;
        let zero = texts.iter().position(|&byte| byte == 0)?;
        let x = scaled(&texts[..zero], from.width, to.width)?;
        let y = scaled(&texts[zero + 1..], from.height, to.height)?;
        Some([&[*unit][..], x.as_bytes(), &[0], y.as_bytes()].concat())
    };
    if let Some(new) = texts() {
        *data = new;
    }
}

/// The chunks to write before the image data, or after the image data if `behind` is set.
pub fn chunks(metadata: &Metadata, shape: &Shape, behind: bool) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    let mut add = |kind: &[u8; 4], data| {
        chunks.push(Chunk {
            kind: *kind,
            behind: false,
            data,
        });
    };
    if !behind {
        let full = shape.depth.bits() as u8;
        let fits = |bits: &&Vec<u8>| {
            bits.len() == shape.channels
                && bits.iter().all(|bits| (1..=full).contains(bits))
                && bits.iter().any(|&bits| bits < full)
        };
        if let Some(bits) = metadata.significant.as_ref().filter(fits) {
            add(b"sBIT", bits.clone());
        }
        let size = metadata
            .resolution
            .and_then(|resolution| match resolution.unit {
                // A ratio of 1:1 without a unit is the default.
                Unit::None
                    if resolution.x != resolution.y
                        && (resolution.x.1, resolution.y.1) == (1, 1) =>
                {
                    Some((resolution.x.0, resolution.y.0, 0))
                }
                _ => resolution.per_metre().map(|(x, y)| (x, y, 1)),
            });
        if let Some((x, y, unit)) = size {
            add(
                b"pHYs",
                [&x.to_be_bytes()[..], &y.to_be_bytes(), &[unit]].concat(),
            );
        }
    }
    if let Own::Png(own) = &metadata.own {
        chunks.extend(own.iter().filter(|chunk| chunk.behind == behind).cloned());
    }
    chunks
}
