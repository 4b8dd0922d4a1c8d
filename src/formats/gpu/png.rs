//! Compresses a PNG on a GPU, to the same bytes as the CPU's encoder with `Mode::Fast`. The pixels stay in device memory, and
//! only deflate data are copied to the host. The kernels are kernels/png_*.cu.
//!
//! Device memory has a record for each segment of the image, `stride` filtered bytes for each segment, and a record for each
//! deflate block: every segment has as many as a full one.

use super::png_crc::{Range as CrcRange, spans};
use crate::deflate::adler;
use crate::formats::deflated::{EncodedSegment, EncodedSegments, SegmentLayout};
use crate::gpu::driver::{Buffer, Kernel};
use crate::gpu::job::{BufferPart, Job};
use crate::gpu::launch::common::{BLOCK, WARPS};
use crate::gpu::launch::png::{Block, DEFLATE_BLOCK, Segment as SegmentRecord};
use crate::gpu::launch::png_codes::{PngCodes, PngHistogram};
use crate::gpu::launch::png_crc::{PngCrc, Stretch as CrcSpan};
use crate::gpu::launch::png_filter::{PngChoose, PngEstimate, PngFilter, TILE};
use crate::gpu::launch::png_pack::{PngPack, PngPlace};
use crate::image::Depth;
use crate::ops::DeviceImage;
use anyhow::Result;
use std::ops::Range;

/// Compresses an image in device memory. The result overwrites the job's memory; it may exceed that memory a little, or leave
/// a large part of it unchanged.
///
/// # Errors
/// The GPU's, and an image that PNG cannot store.
pub fn compress(image: &DeviceImage, job: &mut Job) -> Result<EncodedSegments> {
    let layout = SegmentLayout::new(&image.shape)?;
    let kernels = Kernels::load(job)?;
    let mut encoder = DeviceEncoder::new(image, layout, job)?;
    encoder.queue_filters(&kernels, job)?;
    encoder.queue_codes(&kernels, job)?;
    // The length of the data decides how much memory they need, and the match estimate which segments the CPU compresses.
    let records: Vec<SegmentRecord> = job.read_words(&encoder.segments)?;
    let packed = encoder.queue_pack(&kernels, &records, job)?;
    let segments = encoder.device_segments(&records, &packed.offsets);
    let mut sums = packed.sums;
    queue_crcs(&segments, &packed.bytes, &mut sums, job)?;
    copy_to_host(&encoder, &segments, &packed.bytes, &sums, job)
}

/// The kernels, in the order in which they run.
struct Kernels {
    choose: Kernel<PngChoose<'static>>,
    filter: Kernel<PngFilter<'static>>,
    estimate: Kernel<PngEstimate<'static>>,
    histogram: Kernel<PngHistogram<'static>>,
    codes: Kernel<PngCodes<'static>>,
    place: Kernel<PngPlace<'static>>,
    pack: Kernel<PngPack<'static>>,
}

impl Kernels {
    fn load(job: &mut Job) -> Result<Kernels> {
        Ok(Kernels {
            choose: job.kernel("")?,
            filter: job.kernel("")?,
            estimate: job.kernel("")?,
            histogram: job.kernel("")?,
            codes: job.kernel("")?,
            place: job.kernel("")?,
            pack: job.kernel("")?,
        })
    }
}

/// An image that the kernels compress, and their memory.
struct DeviceEncoder<'i> {
    image: &'i DeviceImage,
    layout: SegmentLayout,
    /// Bytes of a row without its filter type.
    row_bytes: u32,
    height: u32,
    /// Rows of a full segment.
    rows: u32,
    segment_count: u32,
    /// Filtered bytes from one segment to the next in `filtered`.
    stride: u64,
    /// Deflate blocks of a full segment.
    blocks_per_segment: u32,
    /// A record for each segment.
    segments: Buffer,
    /// The filtered bytes of all segments.
    filtered: Buffer,
    /// A record for each deflate block.
    blocks: Buffer,
}

/// Deflate data in device memory.
struct Packed {
    bytes: Buffer,
    /// The offset of each segment, or `u64::MAX` if the CPU compresses it.
    offsets: Vec<u64>,
    /// A word for the CRC of each segment.
    sums: Buffer,
}

impl<'i> DeviceEncoder<'i> {
    fn new(image: &'i DeviceImage, layout: SegmentLayout, job: &mut Job) -> Result<Self> {
        let shape = &image.shape;
        let full_segment = layout.filtered_bytes(0);
        let stride = full_segment.next_multiple_of(16);
        let blocks_per_segment = full_segment.div_ceil(DEFLATE_BLOCK as usize);
        let block_count = layout.count * blocks_per_segment;
        Ok(DeviceEncoder {
            image,
            layout,
            row_bytes: (layout.scanline_bytes - 1) as u32,
            height: shape.height as u32,
            rows: layout.rows.min(shape.height) as u32,
            segment_count: layout.count as u32,
            stride: stride as u64,
            blocks_per_segment: blocks_per_segment as u32,
            segments: job.zeroed(layout.count * size_of::<SegmentRecord>())?,
            filtered: job.scratch(layout.count * stride)?,
            blocks: job.scratch(block_count * size_of::<Block>())?,
        })
    }

    fn block_count(&self) -> u32 {
        self.segment_count * self.blocks_per_segment
    }

    fn image_bytes(&self) -> u64 {
        self.image.shape.bytes() as u64
    }

    /// Queues the choice of each segment's filters, and the filtering.
    fn queue_filters(&mut self, kernels: &Kernels, job: &mut Job) -> Result<()> {
        let shape = &self.image.shape;
        let pixel = shape.pixel_bytes() as u32;
        let swap = (shape.depth == Depth::Sixteen).into();
        let arguments = PngChoose {
            image: self.image.samples.view(),
            row: self.row_bytes,
            height: self.height,
            rows: self.rows,
            pixel,
            swap,
            segments: self.segments.view_mut(),
        };
        job.launch(&kernels.choose, self.segment_count, 0, arguments)?;
        let tiles = self.layout.filtered_bytes(0).div_ceil(TILE as usize) as u32;
        let traffic = 2 * self.image_bytes();
        let arguments = PngFilter {
            image: self.image.samples.view(),
            row: self.row_bytes,
            height: self.height,
            rows: self.rows,
            pixel,
            swap,
            segments: self.segments.view_mut(),
            filtered: self.filtered.view_mut(),
            stride: self.stride,
            tiles,
        };
        let grid = self.segment_count * tiles;
        job.launch(&kernels.filter, grid, traffic, arguments)
    }

    /// Queues the match estimate of each segment, the Huffman codes of each block, and the positions of the blocks.
    fn queue_codes(&mut self, kernels: &Kernels, job: &mut Job) -> Result<()> {
        let (block_count, image_bytes) = (self.block_count(), self.image_bytes());
        let arguments = PngEstimate {
            row: self.row_bytes,
            height: self.height,
            rows: self.rows,
            filtered: self.filtered.view(),
            stride: self.stride,
            segments: self.segments.view_mut(),
        };
        job.launch(&kernels.estimate, self.segment_count, 0, arguments)?;
        let arguments = PngHistogram {
            row: self.row_bytes,
            height: self.height,
            rows: self.rows,
            filtered: self.filtered.view(),
            stride: self.stride,
            blocks: self.blocks_per_segment,
            block: self.blocks.view_mut(),
        };
        job.launch(&kernels.histogram, block_count, image_bytes, arguments)?;
        let traffic = self.blocks.len() as u64;
        let arguments = PngCodes {
            row: self.row_bytes,
            height: self.height,
            rows: self.rows,
            blocks: self.blocks_per_segment,
            block: self.blocks.view_mut(),
        };
        job.launch(&kernels.codes, block_count, traffic, arguments)?;
        let arguments = PngPlace {
            row: self.row_bytes,
            height: self.height,
            rows: self.rows,
            count: self.segment_count,
            blocks: self.blocks_per_segment,
            block: self.blocks.view_mut(),
            segments: self.segments.view_mut(),
        };
        let grid = self.segment_count.div_ceil(BLOCK);
        job.launch(&kernels.place, grid, 0, arguments)
    }

    /// Queues the writing of the deflate data of all segments that the GPU compresses.
    fn queue_pack(
        &self,
        kernels: &Kernels,
        records: &[SegmentRecord],
        job: &mut Job,
    ) -> Result<Packed> {
        let mut offsets = Vec::with_capacity(records.len());
        let mut packed_bytes = 0;
        for record in records {
            if is_deflated(record) {
                offsets.push(packed_bytes);
                packed_bytes += record.bytes.next_multiple_of(16);
            } else {
                offsets.push(u64::MAX);
            }
        }
        let mut bytes = job.zeroed((packed_bytes as usize).max(16))?;
        let sums = job.zeroed(4 * records.len())?;
        if packed_bytes > 0 {
            let places = job.words(&offsets)?;
            let arguments = PngPack {
                row: self.row_bytes,
                height: self.height,
                rows: self.rows,
                filtered: self.filtered.view(),
                stride: self.stride,
                blocks: self.blocks_per_segment,
                block: self.blocks.view(),
                places: places.view(),
                out: bytes.view_mut(),
            };
            let traffic = self.image_bytes() + packed_bytes;
            // SAFETY: `png_place` has just written the positions of the blocks and the length of each segment's data, and there
            // is room for so many bytes from each offset to the next.
            unsafe { job.launch_trusting(&kernels.pack, self.block_count(), traffic, arguments) }?;
        }
        Ok(Packed {
            bytes,
            offsets,
            sums,
        })
    }

    /// The range of each segment in device memory, and its Adler-32.
    fn device_segments(&self, records: &[SegmentRecord], offsets: &[u64]) -> Vec<DeviceSegment> {
        let segments = records.iter().zip(offsets).enumerate();
        segments
            .map(|(index, (record, &offset))| {
                let filtered_bytes = self.layout.filtered_bytes(index);
                let (source, start, len) = if is_deflated(record) {
                    (Source::Packed, offset as usize, record.bytes as usize)
                } else {
                    let start = index * self.stride as usize;
                    (Source::Filtered, start, filtered_bytes)
                };
                DeviceSegment {
                    source,
                    range: start..start + len,
                    adler: adler::from_sums(filtered_bytes, record.sum, record.weighted),
                }
            })
            .collect()
    }
}

/// Whether the GPU deflates a segment. Otherwise matches could pay, and the CPU must search for them.
fn is_deflated(record: &SegmentRecord) -> bool {
    record.matches == 0
}

/// Queues the CRCs of the segments in `packed`.
fn queue_crcs(
    segments: &[DeviceSegment],
    packed: &Buffer,
    sums: &mut Buffer,
    job: &mut Job,
) -> Result<()> {
    let segments = segments.iter().enumerate();
    let deflated = segments.filter(|(_, segment)| segment.source == Source::Packed);
    let spans: Vec<CrcSpan> = deflated
        .flat_map(|(index, segment)| {
            spans(CrcRange {
                at: segment.range.start,
                len: segment.range.len(),
                sum: index,
                copied_to: 0,
            })
        })
        .collect();
    if spans.is_empty() {
        return Ok(());
    }
    let kernel = job.kernel::<PngCrc>("")?;
    let count = spans.len() as u32;
    let spans = job.words(&spans)?;
    let arguments = PngCrc {
        bytes: packed.view(),
        stretches: spans.view(),
        count,
        sums: sums.view_mut(),
    };
    let grid = count.div_ceil(WARPS);
    // SAFETY: the spans cover the segments, which are inside `packed`, and `sums` has a word for each segment.
    unsafe { job.launch_trusting(&kernel, grid, packed.len() as u64, arguments) }
}

/// Copies the segments and the checksums to the host, and waits.
fn copy_to_host(
    encoder: &DeviceEncoder,
    segments: &[DeviceSegment],
    packed: &Buffer,
    sums: &Buffer,
    job: &mut Job,
) -> Result<EncodedSegments> {
    let (copies, mut encoded) = plan_copies(segments, job.host_len());
    let mut parts: Vec<BufferPart> = (copies.into_iter())
        .map(|copy| BufferPart {
            buffer: match copy.source {
                Source::Packed => packed,
                Source::Filtered => &encoder.filtered,
            },
            range: copy.range,
        })
        .collect();
    parts.push(BufferPart {
        buffer: sums,
        range: 0..sums.len(),
    });
    let (in_memory, overflow) = job.gather(&parts)?;
    // The checksums are the last part: at the end of the overflow, if there is one, or of the bytes in memory.
    let end = if overflow.is_empty() {
        &job.host()?[..in_memory]
    } else {
        &overflow
    };
    let sums = end[end.len() - 4 * segments.len()..].as_chunks::<4>().0;
    for (segment, sum) in encoded.iter_mut().zip(sums) {
        segment.crc = !u32::from_le_bytes(*sum);
    }
    Ok(EncodedSegments {
        layout: encoder.layout,
        segments: encoded,
        in_memory,
        overflow,
    })
}

/// The buffer in device memory that a range belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// The deflate data.
    Packed,
    /// The filtered bytes.
    Filtered,
}

/// A segment in device memory.
struct DeviceSegment {
    source: Source,
    range: Range<usize>,
    adler: u32,
}

/// A copy from device memory.
struct HostCopy {
    source: Source,
    range: Range<usize>,
}

/// The copies of all segments, one after the other, to host memory of `room` bytes, and the segments as they are there.
/// Neighbouring deflated segments with a gap of less than 16 bytes are one copy, as long as that fits into the memory.
fn plan_copies(segments: &[DeviceSegment], room: usize) -> (Vec<HostCopy>, Vec<EncodedSegment>) {
    let mut copies: Vec<HostCopy> = Vec::with_capacity(segments.len());
    let mut encoded = Vec::with_capacity(segments.len());
    let mut end = 0;
    for segment in segments {
        let range = segment.range.clone();
        match copies.last_mut() {
            Some(last)
                if last.source == Source::Packed
                    && segment.source == Source::Packed
                    && end + (range.end - last.range.end) <= room =>
            {
                end += range.start - last.range.end;
                last.range.end = range.end;
            }
            _ => copies.push(HostCopy {
                source: segment.source,
                range: range.clone(),
            }),
        }
        encoded.push(EncodedSegment {
            at: end..end + range.len(),
            deflated: segment.source == Source::Packed,
            adler: segment.adler,
            crc: 0,
        });
        end += range.len();
    }
    (copies, encoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `Job::gather`: the copies that fit into `room` bytes, and the rest.
    fn gathered(copies: &[HostCopy], buffers: &Buffers, room: usize) -> [Vec<u8>; 2] {
        let mut both = [Vec::new(), Vec::new()];
        for copy in copies {
            let bytes = &buffers.get(copy.source)[copy.range.clone()];
            let fits = both[1].is_empty() && both[0].len() + bytes.len() <= room;
            both[usize::from(!fits)].extend_from_slice(bytes);
        }
        both
    }

    struct Buffers {
        packed: Vec<u8>,
        filtered: Vec<u8>,
    }

    impl Buffers {
        fn get(&self, source: Source) -> &[u8] {
            match source {
                Source::Packed => &self.packed,
                Source::Filtered => &self.filtered,
            }
        }
    }

    #[test]
    fn segments_are_where_they_are_said_to_be() {
        let buffers = Buffers {
            filtered: (0..4000).map(|i| (i % 251) as u8).collect(),
            packed: (0..4000).map(|i| (i % 241) as u8 ^ 0xff).collect(),
        };
        let mut merged = 0;
        for sources in 0..256u32 {
            let mut next = 0usize;
            let segments: Vec<DeviceSegment> = (0..8)
                .map(|index| {
                    let is_packed = sources >> index & 1 == 0;
                    let len = 100 + 37 * index;
                    let (source, start) = if is_packed {
                        (Source::Packed, next)
                    } else {
                        (Source::Filtered, index * 400)
                    };
                    if is_packed {
                        next = (next + len).next_multiple_of(16);
                    }
                    DeviceSegment {
                        source,
                        range: start..start + len,
                        adler: index as u32,
                    }
                })
                .collect();
            for room in [0, 99, 100, 500, 1100, 1836, 1900, 5000] {
                let (copies, encoded) = plan_copies(&segments, room);
                merged += segments.len() - copies.len();
                let [in_memory, overflow] = gathered(&copies, &buffers, room);
                for (encoded, segment) in encoded.iter().zip(&segments) {
                    let at = encoded.at.clone();
                    let bytes = if at.end <= in_memory.len() {
                        &in_memory[at]
                    } else {
                        &overflow[at.start - in_memory.len()..at.end - in_memory.len()]
                    };
                    let buffer = buffers.get(segment.source);
                    assert_eq!(bytes, &buffer[segment.range.clone()], "{sources:b}, {room}");
                    assert_eq!(
                        (encoded.deflated, encoded.adler),
                        (segment.source == Source::Packed, segment.adler)
                    );
                }
            }
        }
        assert!(merged > 1000);
    }
}
