//! The chunks of a PNG that tell of an image more than how to read it, read and written.
//!
//! A chunk that the specification does not know is kept if it says of itself that it may be copied
//! (section 5.4, the safe-to-copy bit); of those that it knows, each is dealt with by its meaning.

use crate::codec::tiff::exif;
use crate::image::Shape;
use crate::metadata::{Chunk, Diagnostics, Effect, Metadata, Own, Resolution, Transform, Unit};

/// Chunks that are always as true of the output as of the input. No colours are managed: what they
/// say of the samples' colour space is handed on.
const LASTING: [&[u8; 4]; 9] = [
    b"cHRM", b"gAMA", b"iCCP", b"sRGB", b"cICP", b"mDCV", b"cLLI", b"mDCv", b"cLLi",
];

/// Chunks that say how to read the image data, made anew or needless in the output.
const LAYOUT: [&[u8; 4]; 5] = [b"IHDR", b"PLTE", b"tRNS", b"IEND", b"gpIS"];

/// Takes in one chunk of a file whose samples become those of `shape`.
pub fn take(
    metadata: &mut Metadata,
    chunk: Chunk,
    shape: &Shape,
    plain: bool,
    diagnostics: &mut Diagnostics,
) {
    let kind = chunk.kind;
    let mut leave = |why: &str| {
        let name = kind.escape_ascii();
        diagnostics
            .notes
            .push(format!("chunk {name} is left out: {why}"));
    };
    match &kind {
        kind if LAYOUT.contains(&kind) => return,
        b"sBIT" => {
            let mut bits = chunk.data;
            // Alpha that came from tRNS has all its bits.
            bits.resize(shape.channels.max(bits.len()), shape.depth.bits() as u8);
            metadata.significant = Some(bits);
            return;
        }
        b"pHYs" => {
            metadata.resolution = resolution(&chunk.data);
            return;
        }
        b"tIME" => return leave("it tells when the image was changed last, which is now"),
        b"hIST" => return leave("it belongs to a palette"),
        b"acTL" | b"fcTL" | b"fdAT" => return leave("the output is a still image"),
        b"bKGD" if !plain => return leave("it is told in colours that the output does not have"),
        b"eXIf" => metadata.orientation = exif::orientation(&chunk.data),
        b"bKGD" | b"sPLT" | b"pCAL" | b"sCAL" | b"oFFs" | b"sTER" => {}
        kind if LASTING.contains(&kind) => {}
        [_, _, _, last] if last.is_ascii_lowercase() => {}
        _ => return leave("it is unknown, and says that it may not be copied"),
    }
    match &mut metadata.own {
        Own::Png(chunks) => chunks.push(chunk),
        own => *own = Own::Png(vec![chunk]),
    }
}

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

/// Keeps chunks true after an operation.
pub fn follow(chunks: &mut Vec<Chunk>, transform: &Transform, diagnostics: &mut Diagnostics) {
    chunks.retain_mut(|chunk| {
        let why = match (&chunk.kind, transform.effect) {
            (b"bKGD", _) if transform.from.depth != transform.to.depth => {
                "it tells of the depth as it was"
            }
            (b"bKGD" | b"sPLT" | b"pCAL", Effect::Values) => "it tells of values as they were",
            (b"oFFs" | b"sTER", Effect::Moves(_)) => "it tells of places as they were",
            (b"sCAL", Effect::Moves(turn)) if turn.transposed => {
                exchange(&mut chunk.data);
                return true;
            }
            _ => return true,
        };
        let name = chunk.kind.escape_ascii();
        diagnostics
            .notes
            .push(format!("chunk {name} is left out: {why}"));
        false
    });
}

/// Exchanges the two numbers of sCAL: a unit (a byte), and two texts with a zero between.
fn exchange(data: &mut Vec<u8>) {
    if let Some((unit, texts)) = data.split_first()
        && let Some(zero) = texts.iter().position(|&byte| byte == 0)
    {
        let (x, y) = (&texts[..zero], &texts[zero + 1..]);
        *data = [&[*unit], y, &[0], x].concat();
    }
}

/// All chunks to be written before the image data, or behind them.
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
        let size = metadata.resolution.and_then(|told| match told.unit {
            // 1:1 of no unit is what goes without saying.
            Unit::None if told.x != told.y && (told.x.1, told.y.1) == (1, 1) => {
                Some((told.x.0, told.y.0, 0))
            }
            _ => told.per_metre().map(|(x, y)| (x, y, 1)),
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
