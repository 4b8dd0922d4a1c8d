//! Writes a file from pixels that a GPU has filtered and deflated. The file has the same bytes as with `encode` in `Mode::Fast`.

use super::encode::{OuterChunks, PngFile};
use crate::deflate::{adler, zlib};
use crate::formats::deflated::{Deflated, EncodedSegments};
use crate::image::metadata::Metadata;
use crate::os::Target;
use anyhow::Result;
use crc32fast::Hasher;
use rayon::prelude::*;

impl Deflated {
    /// Writes the file to `target` on all threads and returns its length in bytes; the caller
    /// commits it.
    ///
    /// # Errors
    /// Errors of the target.
    pub fn write(&self, metadata: &Metadata, target: &Target) -> Result<u64> {
        self.segments.write(&self.memory, metadata, target)
    }
}

impl EncodedSegments {
    /// As `Deflated::write`, for segments in `memory`.
    ///
    /// # Errors
    /// Errors of the target.
    pub fn write(&self, memory: &[u8], metadata: &Metadata, target: &Target) -> Result<u64> {
        if self.segments.iter().all(|segment| segment.deflated) {
            return self.write_deflated(memory, metadata, target);
        }
        let mut file = PngFile::new(self.layout, metadata);
        file.add(self.segments.len(), target, |index, encoder| {
            encoder.set_from_gpu(self.bytes(index, memory), &self.segments[index]);
        })?;
        file.finish(target)
    }

    /// The bytes of a segment.
    fn bytes<'a>(&'a self, index: usize, memory: &'a [u8]) -> &'a [u8] {
        let at = self.segments[index].at.clone();
        if at.end <= self.in_memory {
            &memory[at]
        } else {
            &self.overflow[at.start - self.in_memory..at.end - self.in_memory]
        }
    }

    /// Writes segments that are all deflate data, without copying the data.
    fn write_deflated(&self, memory: &[u8], metadata: &Metadata, target: &Target) -> Result<u64> {
        let (frames, length) = self.chunk_frames(metadata);
        let count = frames.len();
        if count > 1 {
            // If the disk is full, the write fails and reports it.
            let _ = target.reserve(length);
        }
        // Each thread writes consecutive segments.
        let segments_per_thread = count.div_ceil(rayon::current_num_threads());
        let groups = frames.par_chunks(segments_per_thread).enumerate();
        groups.try_for_each(|(group, frames)| {
            let bytes = frames.iter().enumerate().flat_map(|(index, frame)| {
                let data = self.bytes(group * segments_per_thread + index, memory);
                [&frame.before[..], data, &frame.after[..]]
            });
            target.write_all_at(bytes.collect(), frames[0].offset)
        })?;
        Ok(length)
    }

    /// The bytes of the file around the data of each segment, and the length of the file.
    fn chunk_frames(&self, metadata: &Metadata) -> (Vec<ChunkFrame>, u64) {
        let outer = OuterChunks::new(self.layout, metadata);
        let segments = self.segments.iter();
        let lengths: Vec<usize> = segments.map(|segment| segment.at.len()).collect();
        let mut adler = 1;
        let mut offset = 0;
        let mut frames = Vec::with_capacity(lengths.len());
        for (index, segment) in self.segments.iter().enumerate() {
            let (first, last) = (index == 0, index + 1 == lengths.len());
            adler = adler::combine(adler, segment.adler, self.layout.filtered_bytes(index));
            let adler_bytes = adler.to_be_bytes();
            let zlib_header: &[u8] = if first { &zlib::HEADER } else { &[] };
            let stored_adler: &[u8] = if last { &adler_bytes } else { &[] };

            let mut before = if first {
                outer.before(&lengths)
            } else {
                Vec::new()
            };
            let len = zlib_header.len() + lengths[index] + stored_adler.len();
            before.extend((len as u32).to_be_bytes());
            before.extend(b"IDAT");
            before.extend(zlib_header);

            let mut crc = Hasher::new();
            crc.update(b"IDAT");
            crc.update(zlib_header);
            crc.combine(&Hasher::new_with_initial_len(
                segment.crc,
                lengths[index] as u64,
            ));
            crc.update(stored_adler);
            let mut after = stored_adler.to_vec();
            after.extend(crc.finalize().to_be_bytes());
            if last {
                after.extend(outer.after());
            }

            let frame_bytes = before.len() + lengths[index] + after.len();
            frames.push(ChunkFrame {
                offset,
                before,
                after,
            });
            offset += frame_bytes as u64;
        }
        (frames, offset)
    }
}

/// The bytes of the file around the data of a segment.
struct ChunkFrame {
    /// The offset in the file of `before`.
    offset: u64,
    before: Vec<u8>,
    after: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::deflated::{EncodedSegment, SegmentLayout};
    use crate::formats::png::{Mode, encode};
    use crate::image::{Depth, Image, Shape};
    use anyhow::{Context, ensure};
    use std::io::Read;

    /// The segments of a file of the encoder, one after another with gaps, the last of them in `overflow`.
    fn segments_of(
        file: &[u8],
        layout: SegmentLayout,
        inside: usize,
    ) -> Result<(EncodedSegments, Vec<u8>)> {
        let (mut at, mut data) = (8, Vec::new());
        while at + 12 <= file.len() {
            let len = u32::from_be_bytes(*file[at..].first_chunk().context("a length")?) as usize;
            if &file[at + 4..at + 8] == b"IDAT" {
                data.push(&file[at + 8..at + 8 + len]);
            }
            at += 12 + len;
        }
        let mut filtered = Vec::new();
        flate2::read::ZlibDecoder::new(&data.concat()[..]).read_to_end(&mut filtered)?;
        let last = data.len() - 1;
        data[0] = &data[0][2..];
        data[last] = &data[last][..data[last].len() - 4];
        let (mut memory, mut segments, mut from) = (Vec::new(), Vec::new(), 0);
        for (index, bytes) in data.into_iter().enumerate() {
            let to = from + layout.filtered_bytes(index);
            segments.push(EncodedSegment {
                at: memory.len()..memory.len() + bytes.len(),
                deflated: true,
                adler: simd_adler32::adler32(&&filtered[from..to]),
                crc: crc32fast::hash(bytes),
            });
            memory.extend(bytes);
            if index < inside {
                memory.resize(memory.len().next_multiple_of(16), 0xa5);
            }
            from = to;
        }
        let inside = segments
            .get(inside)
            .map_or(memory.len(), |next| next.at.start);
        let rest = memory.split_off(inside);
        let segments = EncodedSegments {
            layout,
            segments,
            in_memory: inside,
            overflow: rest,
        };
        Ok((segments, memory))
    }

    #[test]
    fn segments_are_written_as_the_encoder_does() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("a.png");
        let metadata = Metadata::default();
        for (width, height) in [(3, 2), (1000, 1000), (1300, 1611)] {
            let shape = Shape {
                width,
                height,
                channels: 1,
                depth: Depth::Sixteen,
            };
            let samples =
                (0..shape.samples() as u32).map(|i| (i.wrapping_mul(i) >> 7) as u16 & 0x0fff);
            let image = Image::new(shape, samples.collect::<Vec<u16>>().into());
            let target = Target::create(&path, true)?;
            let len = encode(&image, Mode::Fast, &target)?;
            target.commit(len)?;
            let expected = std::fs::read(&path)?;
            let count = SegmentLayout::new(&shape)?.count;
            for inside in 0..=count {
                let (segments, memory) =
                    segments_of(&expected, SegmentLayout::new(&shape)?, inside)?;
                for threads in [1, 3] {
                    let pool = rayon::ThreadPoolBuilder::new();
                    let pool = pool.num_threads(threads).build()?;
                    let target = Target::create(&path, true)?;
                    let len = pool.install(|| segments.write(&memory, &metadata, &target))?;
                    target.commit(len)?;
                    let written = std::fs::read(&path)?;
                    ensure!(written == expected, "{width}×{height}, {inside}, {threads}");
                }
            }
        }
        Ok(())
    }
}
