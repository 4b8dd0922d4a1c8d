//! The file around pixels that have been filtered and deflated elsewhere, with the very bytes of `encode`
//! in `Mode::Fast`.

use super::encode::{self, File};
use crate::deflate::{adler, zlib};
use crate::formats::deflated::{Deflated, Segment, Segments};
use crate::image::metadata::Metadata;
use crate::os::Target;
use anyhow::Result;
use crc32fast::Hasher;
use rayon::prelude::*;

impl Deflated {
    /// Writes the file to `target` on all threads and returns its length in bytes; the caller
    /// commits it. Errors: the target's, and samples whose meaning PNG cannot express.
    pub fn write(&self, metadata: &Metadata, target: &Target) -> Result<u64> {
        self.segments.write(&self.memory, metadata, target)
    }
}

impl Segments {
    /// As `Deflated::write`, for segments in `memory`.
    pub fn write(&self, memory: &[u8], metadata: &Metadata, target: &Target) -> Result<u64> {
        if self.segments.iter().all(|segment| segment.deflated) {
            return self.write_deflated(memory, metadata, target);
        }
        let mut file = File::new(self.layout, metadata);
        file.add(self.segments.len(), target, |index, piece| {
            let Segment {
                deflated, adler, ..
            } = self.segments[index];
            piece.take(self.bytes(index, memory), deflated, adler);
        })?;
        file.finish(target)
    }

    /// The bytes of a segment.
    fn bytes<'a>(&'a self, index: usize, memory: &'a [u8]) -> &'a [u8] {
        let at = self.segments[index].at.clone();
        match at.end <= self.inside {
            true => &memory[at],
            false => &self.rest[at.start - self.inside..at.end - self.inside],
        }
    }

    /// Writes segments that are deflate data, from where they lie.
    fn write_deflated(&self, memory: &[u8], metadata: &Metadata, target: &Target) -> Result<u64> {
        let count = self.segments.len();
        let frame = encode::Frame::new(self.layout, metadata);
        let lengths: Vec<usize> = self.segments.iter().map(|found| found.at.len()).collect();
        let mut adler = 1;
        let mut at = 0;
        let mut pieces = Vec::with_capacity(count);
        for (index, segment) in self.segments.iter().enumerate() {
            let (first, last) = (index == 0, index + 1 == count);
            let mut before = if first {
                frame.before(&lengths)
            } else {
                Vec::new()
            };
            adler = adler::combine(adler, segment.adler, self.layout.bytes(index));
            let zlib: &[u8] = if first { &zlib::HEADER } else { &[] };
            let sum = adler.to_be_bytes();
            let sum: &[u8] = if last { &sum } else { &[] };
            let len = zlib.len() + lengths[index] + sum.len();
            before.extend((len as u32).to_be_bytes());
            before.extend(b"IDAT");
            before.extend(zlib);
            let mut crc = Hasher::new();
            crc.update(b"IDAT");
            crc.update(zlib);
            let data = Hasher::new_with_initial_len(segment.crc, lengths[index] as u64);
            crc.combine(&data);
            crc.update(sum);
            let mut behind = sum.to_vec();
            behind.extend(crc.finalize().to_be_bytes());
            if last {
                behind.extend(frame.behind());
            }
            let piece = [before, behind];
            let len = piece.iter().map(Vec::len).sum::<usize>() + lengths[index];
            pieces.push((at, piece));
            at += len as u64;
        }
        if count > 1 {
            // On a disk too full the write tells.
            let _ = target.reserve(at);
        }
        // Each thread writes what follows one another.
        let together = count.div_ceil(rayon::current_num_threads());
        let groups = pieces.par_chunks(together).enumerate();
        groups.try_for_each(|(group, pieces)| {
            let bytes = pieces
                .iter()
                .enumerate()
                .flat_map(|(index, (_, [before, behind]))| {
                    let data = self.bytes(group * together + index, memory);
                    [&before[..], data, &behind[..]]
                });
            target.write_all_at(bytes.collect(), pieces[0].0)
        })?;
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::deflated::Layout;
    use crate::formats::png::{Mode, encode};
    use crate::image::{Depth, Image, Shape};
    use anyhow::{Context, ensure};
    use std::io::Read;

    /// The segments of a file of the encoder, behind one another with gaps, the last of them in `rest`.
    fn taken_apart(file: &[u8], layout: Layout, inside: usize) -> Result<(Segments, Vec<u8>)> {
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
            let to = from + layout.bytes(index);
            segments.push(Segment {
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
        let segments = Segments {
            layout,
            segments,
            inside,
            rest,
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
            let count = Layout::new(&shape)?.segments;
            for inside in 0..=count {
                let (segments, memory) = taken_apart(&expected, Layout::new(&shape)?, inside)?;
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
