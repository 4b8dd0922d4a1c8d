//! Compresses a PNG on a GPU, to the same bytes as the CPU's encoder with `Mode::Fast`: the pixels
//! stay in device memory, and only deflate data is copied to the host. The kernels are
//! kernels/png_*.cu.

use super::png_crc::cut;
use crate::formats::deflated::{Layout, Segment, Segments};
use crate::gpu::driver::Buffer;
use crate::gpu::job::Job;
use crate::gpu::launch::common::{BLOCK, WARPS};
use crate::gpu::launch::png::{Block, DEFLATE_BLOCK, Segment as SegmentRecord};
use crate::gpu::launch::png_codes::{PngCodes, PngHistogram};
use crate::gpu::launch::png_crc::{PngCrc, Stretch};
use crate::gpu::launch::png_filter::{PngChoose, PngEstimate, PngFilter, TILE};
use crate::gpu::launch::png_pack::{PngPack, PngPlace};
use crate::image::{Depth, Shape};
use crate::ops::DeviceImage;
use anyhow::Result;
use std::ops::Range;

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
    let choose = job.kernel::<PngChoose>("")?;
    let filter = job.kernel::<PngFilter>("")?;
    let estimate = job.kernel::<PngEstimate>("")?;
    let histogram = job.kernel::<PngHistogram>("")?;
    let codes = job.kernel::<PngCodes>("")?;
    let place = job.kernel::<PngPlace>("")?;
    let pack = job.kernel::<PngPack>("")?;
    let count = layout.segments;
    let raw = shape.bytes() as u64;
    // Filtered bytes of a full segment.
    let bytes = layout.bytes(0);
    let stride = bytes.next_multiple_of(16) as u64;
    let tiles = bytes.div_ceil(TILE as usize) as u32;
    let blocks = bytes.div_ceil(DEFLATE_BLOCK as usize) as u32;
    let of_segments = count as u32;
    let of_blocks = of_segments * blocks;
    let row = (layout.row - 1) as u32;
    let height = shape.height as u32;
    let rows = layout.rows.min(shape.height) as u32;
    let pixel = shape.pixel_bytes() as u32;
    let swap = (shape.depth == Depth::Sixteen).into();

    let mut segments = job.zeroed(count * size_of::<SegmentRecord>())?;
    let mut filtered = job.scratch(count * stride as usize)?;
    let mut records = job.scratch(of_blocks as usize * size_of::<Block>())?;
    let arguments = PngChoose {
        image: image.samples.view(),
        row,
        height,
        rows,
        pixel,
        swap,
        segments: segments.view_mut(),
    };
    job.launch(&choose, of_segments, 0, arguments)?;
    let arguments = PngFilter {
        image: image.samples.view(),
        row,
        height,
        rows,
        pixel,
        swap,
        segments: segments.view_mut(),
        filtered: filtered.view_mut(),
        stride,
        tiles,
    };
    job.launch(&filter, of_segments * tiles, 2 * raw, arguments)?;
    let arguments = PngEstimate {
        row,
        height,
        rows,
        filtered: filtered.view(),
        stride,
        segments: segments.view_mut(),
    };
    job.launch(&estimate, of_segments, 0, arguments)?;
    let arguments = PngHistogram {
        row,
        height,
        rows,
        filtered: filtered.view(),
        stride,
        blocks,
        block: records.view_mut(),
    };
    job.launch(&histogram, of_blocks, raw, arguments)?;
    let record_bytes = records.len() as u64;
    let arguments = PngCodes {
        row,
        height,
        rows,
        blocks,
        block: records.view_mut(),
    };
    job.launch(&codes, of_blocks, record_bytes, arguments)?;
    let arguments = PngPlace {
        row,
        height,
        rows,
        count: of_segments,
        blocks,
        block: records.view_mut(),
        segments: segments.view_mut(),
    };
    job.launch(&place, of_segments.div_ceil(BLOCK), 0, arguments)?;

    // The length of the data decides how much memory it needs and which segments the CPU
    // compresses.
    let segments: Vec<SegmentRecord> = job.read_words(&segments)?;
    let mut places = Vec::with_capacity(count);
    let mut packed_bytes = 0;
    for segment in &segments {
        if segment.matches == 0 {
            places.push(packed_bytes);
            packed_bytes += segment.bytes.next_multiple_of(16);
        } else {
            places.push(u64::MAX);
        }
    }
    let mut packed = job.zeroed((packed_bytes as usize).max(16))?;
    let mut sums = job.zeroed(4 * count)?;
    if packed_bytes > 0 {
        let places = job.words(&places)?;
        let arguments = PngPack {
            row,
            height,
            rows,
            filtered: filtered.view(),
            stride,
            blocks,
            block: records.view(),
            places: places.view(),
            out: packed.view_mut(),
        };
        // SAFETY: `png_place` has just left `records` and the bytes of each segment, between whose places is room for as
        // many.
        unsafe { job.launch_trusting(&pack, of_blocks, raw + packed_bytes, arguments) }?;
    }

    let made: Vec<Made> = (segments.iter().enumerate())
        .map(|(index, segment)| {
            let (deflated, raw) = (segment.matches == 0, layout.bytes(index));
            let low = (1 + segment.sum) % BASE;
            let high = (raw as u64 + segment.weighted) % BASE;
            let (from, len) = if deflated {
                (places[index] as usize, segment.bytes as usize)
            } else {
                (index * stride as usize, raw)
            };
            Made {
                deflated,
                part: from..from + len,
                adler: (high << 16 | low) as u32,
            }
        })
        .collect();
    sum_up(&made, &packed, &mut sums, job)?;
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
fn sum_up(made: &[Made], packed: &Buffer, sums: &mut Buffer, job: &mut Job) -> Result<()> {
    let deflated = made.iter().enumerate().filter(|(_, made)| made.deflated);
    let stretches: Vec<Stretch> = deflated
        .flat_map(|(index, made)| cut(made.part.start, made.part.len(), index, 0))
        .collect();
    if stretches.is_empty() {
        return Ok(());
    }
    let crc = job.kernel::<PngCrc>("")?;
    let count = stretches.len() as u32;
    let stretches = job.words(&stretches)?;
    let arguments = PngCrc {
        bytes: packed.view(),
        stretches: stretches.view(),
        count,
        sums: sums.view_mut(),
    };
    let grid = count.div_ceil(WARPS);
    // SAFETY: `cut` cuts nothing but the segments, which lie inside `packed`, and each segment has a sum.
    unsafe { job.launch_trusting(&crc, grid, packed.len() as u64, arguments) }
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
