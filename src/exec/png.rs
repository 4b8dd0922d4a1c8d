//! Compresses a PNG on a GPU, to the same bytes as the CPU's encoder with `Mode::Fast`: the pixels
//! stay in device memory, and only deflate data is copied to the host. The kernels are
//! kernels/png_*.cu.

use super::png_crc::{Stretch, WARPS, cut};
use crate::codec::deflated::{Layout, Segment, Segments};
use crate::device::cuda::{Arg, Buffer};
use crate::device::job::Job;
use crate::image::{Depth, Shape};
use crate::ops::DeviceImage;
use anyhow::Result;
use std::ops::Range;

/// Bytes of `Block`, words of `Segment`, and bytes of a tile, as in kernels/png.cuh and
/// png_filter.cu.
const BLOCK_RECORD: usize = 5800;
const SEGMENT_RECORD: usize = 5;
const TILE: usize = 8192;

/// Filtered bytes of a deflate block.
const BLOCK: usize = 128 << 10;

/// Threads of a thread block.
const THREADS: usize = 256;

/// The modulus of Adler-32 (RFC 1950 §8.2).
const BASE: u64 = 65521;

/// Bytes of device memory that `compress` needs beside the image itself; more only if the codes
/// fitted to samples of the data are far off.
pub fn device_memory(shape: &Shape) -> u64 {
    // The filtered bytes, as many of deflate data, and a record for each block.
    2 * shape.bytes() as u64 + shape.bytes() as u64 / 16 + (2 << 20)
}

/// Compresses an image in device memory. The result overwrites the job's memory; it may exceed that
/// memory a little, or leave a large part of it unchanged. Errors: the GPU's, and an image that PNG
/// cannot hold.
pub fn compress(image: &DeviceImage, job: &mut Job) -> Result<Segments> {
    let shape = &image.shape;
    let layout = Layout::new(shape)?;
    let [choose, filter, promise] = job.kernels(
        "png_filter",
        ["png_choose", "png_filter", "png_estimate"],
        "",
    )?;
    let [histogram, codes] = job.kernels("png_codes", ["png_histogram", "png_codes"], "")?;
    let [place, pack] = job.kernels("png_pack", ["png_place", "png_pack"], "")?;
    let count = layout.segments;
    let raw = shape.bytes() as u64;
    // Filtered bytes of a full segment.
    let bytes = layout.bytes(0);
    let stride = bytes.next_multiple_of(16);
    let (tiles, blocks) = (bytes.div_ceil(TILE), bytes.div_ceil(BLOCK));
    let of_segments = count as u32;
    let of_blocks = (count * blocks) as u32;

    let segments = job.zeroed(count * SEGMENT_RECORD * size_of::<u64>())?;
    let filtered = job.scratch(count * stride)?;
    let records = job.scratch(count * blocks * BLOCK_RECORD)?;
    let rows = [
        Arg::U32((layout.row - 1) as u32),
        Arg::U32(shape.height as u32),
        Arg::U32(layout.rows.min(shape.height) as u32),
    ];
    let pixels = [
        Arg::Buffer(&image.samples),
        rows[0],
        rows[1],
        rows[2],
        Arg::U32(shape.pixel_bytes() as u32),
        Arg::U32((shape.depth == Depth::Sixteen).into()),
        Arg::Buffer(&segments),
    ];
    let source = [Arg::Buffer(&filtered), Arg::U64(stride as u64)];
    let [per_segment, records_arg] = [Arg::U32(blocks as u32), Arg::Buffer(&records)];

    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&choose, of_segments, 0, &pixels) }?;
    let tail = [source[0], source[1], Arg::U32(tiles as u32)];
    let args = [&pixels[..], &tail].concat();
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&filter, (count * tiles) as u32, 2 * raw, &args) }?;
    let args = [&rows[..], &source, &[Arg::Buffer(&segments)]].concat();
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&promise, of_segments, 0, &args) }?;
    let args = [&rows[..], &source, &[per_segment, records_arg]].concat();
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&histogram, of_blocks, raw, &args) }?;
    let args = [&rows[..], &[per_segment, records_arg]].concat();
    let record_bytes = (count * blocks * BLOCK_RECORD) as u64;
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&codes, of_blocks, record_bytes, &args) }?;
    let tail = [
        Arg::U32(of_segments),
        per_segment,
        records_arg,
        Arg::Buffer(&segments),
    ];
    let args = [&rows[..], &tail].concat();
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&place, count.div_ceil(THREADS) as u32, 0, &args) }?;

    // The length of the data decides how much memory it needs and which segments the CPU
    // compresses.
    let words: Vec<u64> = job.read_words(&segments)?;
    let mut places = Vec::with_capacity(count);
    let mut packed_bytes = 0;
    for segment in words.as_chunks::<SEGMENT_RECORD>().0 {
        let [_, _, _, promised, bytes] = *segment;
        places.push(if promised == 0 {
            packed_bytes
        } else {
            u64::MAX
        });
        packed_bytes += if promised == 0 {
            bytes.next_multiple_of(16)
        } else {
            0
        };
    }
    let packed = job.zeroed((packed_bytes as usize).max(16))?;
    let sums = job.zeroed(4 * count)?;
    if packed_bytes > 0 {
        let places = job.words(&places)?;
        let tail = [
            per_segment,
            records_arg,
            Arg::Buffer(&places),
            Arg::Buffer(&packed),
        ];
        let args = [&rows[..], &source, &tail].concat();
        // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
        unsafe { job.launch(&pack, of_blocks, raw + packed_bytes, &args) }?;
    }

    let made: Vec<Made> = (words.as_chunks::<SEGMENT_RECORD>().0.iter().enumerate())
        .map(|(index, &[sum, weighted, _, promised, data])| {
            let (deflated, raw) = (promised == 0, layout.bytes(index));
            let (low, high) = ((1 + sum) % BASE, (raw as u64 + weighted) % BASE);
            let (from, len) = match deflated {
                true => (places[index] as usize, data as usize),
                false => (index * stride, raw),
            };
            Made {
                deflated,
                part: from..from + len,
                adler: (high << 16 | low) as u32,
            }
        })
        .collect();
    sum_up(&made, &packed, &sums, job)?;
    let (copies, mut placed) = copies(&made, job.host_len());
    let buffer = |deflated| if deflated { &packed } else { &filtered };
    let mut parts: Vec<(&Buffer, Range<usize>)> = (copies.into_iter())
        .map(|(deflated, part)| (buffer(deflated), part))
        .collect();
    parts.push((&sums, 0..sums.len()));
    let (inside, rest) = job.gather(&parts)?;
    // The sums are the last part, wherever it is.
    let end = if rest.is_empty() {
        &job.host()?[..inside]
    } else {
        &rest
    };
    let sums = end[end.len() - 4 * count..].as_chunks::<4>().0;
    for (segment, sum) in placed.iter_mut().zip(sums) {
        segment.crc = !u32::from_le_bytes(*sum);
    }
    Ok(Segments {
        layout,
        segments: placed,
        inside,
        rest,
    })
}

/// Queues the sums of all deflated segments in `packed`, from which their CRCs are known.
fn sum_up(made: &[Made], packed: &Buffer, sums: &Buffer, job: &mut Job) -> Result<()> {
    let deflated = made.iter().enumerate().filter(|(_, made)| made.deflated);
    let stretches: Vec<Stretch> = deflated
        .flat_map(|(index, made)| cut(made.part.start, made.part.len(), index, 0))
        .collect();
    if stretches.is_empty() {
        return Ok(());
    }
    let [crc] = job.kernels("png_crc", ["png_crc"], "")?;
    let count = stretches.len();
    let stretches = job.words(&stretches)?;
    let args = [
        Arg::Buffer(packed),
        Arg::Buffer(&stretches),
        Arg::U32(count as u32),
        Arg::Buffer(sums),
    ];
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe {
        job.launch(
            &crc,
            count.div_ceil(WARPS) as u32,
            packed.len() as u64,
            &args,
        )
    }
}

/// A segment in device memory: in the buffer of deflate data, or in that of filtered bytes.
struct Made {
    deflated: bool,
    part: Range<usize>,
    adler: u32,
}

/// What is copied, one part behind the other, to host memory of `room` bytes, each from one of the two
/// buffers as in `Made`; and where the segments are then. Deflated segments that follow one another
/// with a gap of less than 16 bytes are one copy, as long as that fits.
fn copies(made: &[Made], room: usize) -> (Vec<(bool, Range<usize>)>, Vec<Segment>) {
    let mut copies: Vec<(bool, Range<usize>)> = Vec::with_capacity(made.len());
    let mut placed = Vec::with_capacity(made.len());
    let mut end = 0;
    for segment in made {
        let part = segment.part.clone();
        match copies.last_mut() {
            Some((true, last)) if segment.deflated && end + (part.end - last.end) <= room => {
                end += part.start - last.end;
                last.end = part.end;
            }
            _ => copies.push((segment.deflated, part.clone())),
        }
        placed.push(Segment {
            at: end..end + part.len(),
            deflated: segment.deflated,
            adler: segment.adler,
            crc: 0,
        });
        end += part.len();
    }
    (copies, placed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `Job::gather`: the parts that fit, and the rest.
    fn gathered(copies: &[(bool, Range<usize>)], buffers: [&[u8]; 2], room: usize) -> [Vec<u8>; 2] {
        let mut both = [Vec::new(), Vec::new()];
        for (deflated, part) in copies {
            let bytes = &buffers[usize::from(*deflated)][part.clone()];
            let fits = both[1].is_empty() && both[0].len() + bytes.len() <= room;
            both[usize::from(!fits)].extend_from_slice(bytes);
        }
        both
    }

    #[test]
    fn segments_are_where_they_are_said_to_be() {
        let filtered: Vec<u8> = (0..4000).map(|i| (i % 251) as u8).collect();
        let packed: Vec<u8> = (0..4000).map(|i| (i % 241) as u8 ^ 0xff).collect();
        let mut merged = 0;
        for kinds in 0..256u32 {
            let mut next = 0usize;
            let made: Vec<Made> = (0..8)
                .map(|index| {
                    let deflated = kinds >> index & 1 == 0;
                    let len = 100 + 37 * index;
                    let from = if deflated { next } else { index * 400 };
                    if deflated {
                        next = (next + len).next_multiple_of(16);
                    }
                    Made {
                        deflated,
                        part: from..from + len,
                        adler: index as u32,
                    }
                })
                .collect();
            for room in [0, 99, 100, 500, 1100, 1836, 1900, 5000] {
                let (copies, placed) = copies(&made, room);
                merged += made.len() - copies.len();
                let [inside, rest] = gathered(&copies, [&filtered, &packed], room);
                for (segment, made) in placed.iter().zip(&made) {
                    let at = segment.at.clone();
                    let found = match at.end <= inside.len() {
                        true => &inside[at],
                        false => &rest[at.start - inside.len()..at.end - inside.len()],
                    };
                    let buffer = if made.deflated { &packed } else { &filtered };
                    assert_eq!(found, &buffer[made.part.clone()], "{kinds:b}, {room}");
                    assert_eq!(
                        (segment.deflated, segment.adler),
                        (made.deflated, made.adler)
                    );
                }
            }
        }
        assert!(merged > 1000);
    }
}
