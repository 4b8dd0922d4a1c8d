//! Mutations of PNG files that leave lengths, CRCs and Adler-32 right, so that what lies after
//! those checks is reached: of the chunks, of the deflate data, of the scanlines.

use crate::png_files::{chunk, idats, index, segments, zlib};
use crate::random::Random;
use flate2::{Decompress, FlushDecompress, Status};
use libfuzzer_sys::fuzzer_mutate;

/// Most bytes that are inflated for a mutation.
const MOST: usize = 1 << 20;

type Chunks = Vec<([u8; 4], Vec<u8>)>;

/// The chunks of a file as far as they go; the last is what is left of the file.
fn parse(file: &[u8]) -> Chunks {
    let mut chunks = Chunks::new();
    let mut rest = file.get(8..).unwrap_or_default();
    while let Some((head, data)) = rest.split_first_chunk::<8>() {
        let [l0, l1, l2, l3, kind @ ..] = *head;
        let len = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
        let (data, after) = data.split_at(len.min(data.len()));
        chunks.push((kind, data.to_vec()));
        rest = after.get(4..).unwrap_or_default();
    }
    chunks
}

fn join(chunks: &Chunks) -> Vec<u8> {
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, data) in chunks {
        chunk(&mut file, kind, data);
    }
    file
}

fn image_data(chunks: &Chunks) -> Vec<u8> {
    let data = chunks.iter().filter(|(kind, _)| kind == b"IDAT");
    data.flat_map(|(_, data)| data).copied().collect()
}

/// What libdeflate makes of all image data: an error unless it is `bytes` long.
pub fn inflated(file: &[u8], bytes: usize) -> Result<Vec<u8>, String> {
    let mut out = vec![0; bytes];
    let size = libdeflater::Decompressor::new()
        .zlib_decompress(&image_data(&parse(file)), &mut out)
        .map_err(|error| format!("{error:?}"))?;
    match size == bytes {
        true => Ok(out),
        false => Err(format!("{size} of {bytes} bytes")),
    }
}

/// The same file without its chunks of one kind, or none if it has no such chunk.
pub fn without(file: &[u8], unwanted: &[u8; 4]) -> Option<Vec<u8>> {
    let mut chunks = parse(file);
    let before = chunks.len();
    chunks.retain(|(kind, _)| kind != unwanted);
    (chunks.len() < before).then(|| join(&chunks))
}

/// Inflates raw deflate data as far as that goes: what they make, and the bytes used if they end.
fn inflate(data: &[u8]) -> (Vec<u8>, Option<usize>) {
    let mut inflater = Decompress::new(false);
    let mut out = Vec::with_capacity(MOST);
    let status = inflater.decompress_vec(data, &mut out, FlushDecompress::Sync);
    let used = matches!(status, Ok(Status::StreamEnd)).then(|| inflater.total_in() as usize);
    (out, used)
}

/// Puts the right Adler-32 after the image data: of what they are as one stream, or each chunk by
/// itself.
fn mend_adler(chunks: &mut Chunks, apart: bool) {
    let all = image_data(chunks);
    let Some(stream) = all.get(2..) else { return };
    let (out, end) = match apart {
        false => inflate(stream),
        true => {
            let mut first = 2;
            let parts = chunks.iter().filter(|(kind, _)| kind == b"IDAT");
            let parts = parts.flat_map(|(_, data)| {
                inflate(data.get(std::mem::take(&mut first)..).unwrap_or_default()).0
            });
            (parts.collect(), stream.len().checked_sub(4))
        }
    };
    // The Adler-32 stands `behind` bytes before the end of the last of the chunks, or nowhere.
    let Some(behind) = end.and_then(|end| stream.len().checked_sub(end)) else {
        return;
    };
    let adler = simd_adler32::adler32(&&out[..]).to_be_bytes();
    let last = chunks.iter_mut().rfind(|(kind, _)| kind == b"IDAT");
    if let Some((_, data)) = last.filter(|(_, data)| data.len() >= behind) {
        data.truncate(data.len() - behind);
        data.extend(adler);
    }
}

/// Makes the index tell the lengths of the chunks that are there.
fn mend_index(chunks: &mut Chunks) {
    let lens: Vec<usize> = chunks
        .iter()
        .filter(|(kind, _)| kind == b"IDAT")
        .map(|(_, data)| data.len())
        .collect();
    if let Some((_, data)) = chunks.iter_mut().find(|(kind, _)| kind == b"gpIS") {
        data.truncate(5);
        for (i, len) in lens.iter().enumerate() {
            let around = if i == 0 { 2 } else { 0 } + if i + 1 == lens.len() { 4 } else { 0 };
            data.extend((len.saturating_sub(around) as u32).to_be_bytes());
        }
    }
}

/// Mutates bytes, which may grow a little.
fn fuzzed(bytes: &mut Vec<u8>) {
    let size = bytes.len();
    bytes.resize(size + 64, 0);
    let size = fuzzer_mutate(bytes, size, size + 64);
    bytes.truncate(size);
}

/// Mutates the file of `size` bytes in `data`; returns its new size.
pub fn mutate(data: &mut [u8], size: usize, max: usize, seed: u32) -> usize {
    let mut random = Random(seed.into());
    let mut chunks = parse(&data[..size]);
    if chunks.is_empty() || random.below(8) == 0 {
        return fuzzer_mutate(data, size, max);
    }
    match random.below(4) {
        0 | 1 => chunk_changed(&mut chunks, &mut random),
        2 => deflate_changed(&mut chunks, &mut random),
        _ => scanlines_changed(&mut chunks, &mut random),
    }
    if random.below(2) == 0 {
        mend_index(&mut chunks);
    }
    let apart = random.below(3) == 0 && chunks.iter().any(|(kind, _)| kind == b"gpIS");
    if random.below(8) > 0 {
        mend_adler(&mut chunks, apart);
    }
    let file = join(&chunks);
    if file.len() > max {
        return fuzzer_mutate(data, size, max);
    }
    data[..file.len()].copy_from_slice(&file);
    file.len()
}

fn chunk_changed(chunks: &mut Chunks, random: &mut Random) {
    const KINDS: [&[u8; 4]; 8] = [
        b"IDAT", b"PLTE", b"tRNS", b"gpIS", b"IEND", b"acTL", b"tEXt", b"IHDR",
    ];
    let at = random.below(chunks.len());
    match random.below(9) {
        0 => chunks[at].0 = *KINDS[random.below(KINDS.len())],
        1 => chunks.insert(at, chunks[random.below(chunks.len())].clone()),
        2 => drop(chunks.remove(at)),
        3 => {
            let middle = random.below(chunks[at].1.len() + 1);
            let (kind, tail) = (chunks[at].0, chunks[at].1.split_off(middle));
            chunks.insert(at + 1, (kind, tail));
        }
        4 => {
            // A small size, and any kind of sample.
            let header = &mut chunks[0].1;
            header.resize(13, 0);
            header[..8].fill(0);
            header[3] = 1 + random.below(40) as u8;
            header[7] = 1 + random.below(40) as u8;
            header[8] = 1 << random.below(5);
            header[9] = random.below(7) as u8;
            header[12] = random.below(2) as u8;
        }
        _ => fuzzed(&mut chunks[at].1),
    }
}

/// Mutates what stands between zlib's header and the Adler-32, and cuts it into chunks again.
fn deflate_changed(chunks: &mut Chunks, random: &mut Random) {
    let mut all = image_data(chunks);
    let Some(deflate) = all.get(2..all.len().saturating_sub(4)) else {
        return;
    };
    let mut deflate = deflate.to_vec();
    fuzzed(&mut deflate);
    all.truncate(2);
    all.extend(deflate);
    all.extend([0; 4]);
    let count = 1 + random.below(3);
    let parts: Vec<Vec<u8>> = all
        .chunks(1 + all.len() / count)
        .map(<[u8]>::to_vec)
        .collect();
    replace(chunks, parts);
}

/// Mutates the scanlines, gives them valid filter types and the size that the header promises,
/// and compresses them anew, in one piece or in segments with an index.
fn scanlines_changed(chunks: &mut Chunks, random: &mut Random) {
    let all = image_data(chunks);
    let (mut lines, _) = inflate(all.get(2..).unwrap_or_default());
    fuzzed(&mut lines);
    let header = &chunks[0].1;
    let mut rows = None;
    if let &[0, 0, w0, w1, 0, 0, h0, h1, bits, colour, _, _, 0] = &header[..] {
        let channels = [1, 0, 3, 1, 2, 0, 4].get(usize::from(colour)).unwrap_or(&0);
        let width = usize::from(u16::from_be_bytes([w0, w1]));
        let row = (width * channels * usize::from(bits)).div_ceil(8) + 1;
        let size = row * usize::from(u16::from_be_bytes([h0, h1]));
        if size <= MOST {
            lines.resize(size, 0);
            lines.chunks_mut(row).for_each(|line| line[0] %= 5);
            rows = Some((row, size));
        }
    }
    let parts = match (random.below(3), rows) {
        (0, Some((row, size))) if size > row => {
            let each = 1 + random.below(size / row - 1);
            let spare = random.below(8) > 0;
            if spare {
                lines.chunks_mut(each * row).for_each(|part| part[0] %= 2);
            }
            let segments = segments(&lines, each * row, random.below(4) > 0);
            chunks.retain(|(kind, _)| kind != b"gpIS");
            chunks.insert(1.min(chunks.len()), index(each, &segments));
            idats(&segments, &lines)
        }
        _ => {
            let all = zlib(&lines, [0, 1, 6, 9][random.below(4)]);
            let count = 1 + random.below(3);
            all.chunks(1 + all.len() / count)
                .map(<[u8]>::to_vec)
                .collect()
        }
    };
    replace(chunks, parts);
}

/// Puts other image data where the first were.
fn replace(chunks: &mut Chunks, parts: Vec<Vec<u8>>) {
    let at = chunks.iter().position(|(kind, _)| kind == b"IDAT");
    chunks.retain(|(kind, _)| kind != b"IDAT");
    let at = at.unwrap_or(1).min(chunks.len());
    let parts = parts.into_iter().map(|data| (*b"IDAT", data));
    chunks.splice(at..at, parts);
}
