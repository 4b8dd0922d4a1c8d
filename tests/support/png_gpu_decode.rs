//! PNG decoded on a GPU, compared with what the CPU decodes.

use crate::support::Numbers;
use crate::support::png::Plain;
use gpuimg::internals::formats::gpu::decode::{Decoded, decode_on_gpu};
use gpuimg::internals::formats::{Reader, Reading};
use gpuimg::internals::gpu::driver::Gpu;
use gpuimg::internals::image::{Depth, Image};
use gpuimg::internals::os::Source;
use gpuimg::internals::timing::Timeline;

/// An image of a kind, with a palette where it needs one, and transparency if wished.
pub fn plain(width: usize, height: usize, bits: u8, colour: u8, transparent: bool) -> Plain {
    let mut plain = Plain::noisy(width, height, bits, colour);
    if colour == 3 {
        let entries = (0..3u32 << bits).map(|i| ((i * 41) >> 1) as u8);
        plain.before.push((*b"PLTE", entries.collect()));
    }
    if transparent {
        let alpha = match colour {
            3 => (0..1u32 << (bits - 1)).map(|i| (i * 3) as u8).collect(),
            // The first pixel's value is one that occurs.
            _ => plain.samples[..plain.channels()]
                .iter()
                .flat_map(|sample| sample.to_be_bytes())
                .collect(),
        };
        plain.before.push((*b"tRNS", alpha));
    }
    plain
}

pub fn on_cpu(file: &[u8]) -> Result<Image, String> {
    source_on_cpu(&Source::memory(file.to_vec()))
}

/// The image of a file or a store that the CPU decodes.
pub fn source_on_cpu(source: &Source) -> Result<Image, String> {
    let decoded = Reader::open(source, &Reading::default()).and_then(|mut reader| reader.decode());
    decoded.map_err(|error| format!("{error:#}"))
}

/// The image of a file that the GPU decodes, or the reason why it does not.
pub fn on_gpu(gpu: &Gpu, file: &[u8]) -> Result<Image, String> {
    source_on_gpu(gpu, &Source::memory(file.to_vec()))
}

/// As `on_gpu`, for a file or a store.
pub fn source_on_gpu(gpu: &Gpu, source: &Source) -> Result<Image, String> {
    let reader = Reader::open(source, &Reading::default());
    let reader = reader.map_err(|error| format!("{error:#}"))?;
    let shape = reader.shape();
    let mut packed = reader.packed().map_err(|unsuited| unsuited.to_string())?;
    let (head, memory) = packed.split();
    let decoded = gpu.job(memory, &mut Timeline::default(), |job| {
        let image = match decode_on_gpu(head, job)? {
            Decoded::Image { image, .. } => image,
            Decoded::Unsuited(unsuited) => return Ok(Err(unsuited.to_string())),
        };
        assert_eq!(image.shape, shape);
        let samples = match shape.depth {
            Depth::Eight => {
                let mut samples = vec![0xA5u8; shape.samples()];
                job.fetch(&image.samples, &mut samples)?;
                samples.into()
            }
            Depth::Sixteen => {
                let mut samples = vec![0xA5A5u16; shape.samples()];
                job.fetch(&image.samples, bytemuck::cast_slice_mut(&mut samples))?;
                samples.into()
            }
            Depth::ThirtyTwo | Depth::Float | Depth::Double => {
                let mut samples = vec![0xA5A5_A5A5u32; shape.samples()];
                job.fetch(&image.samples, bytemuck::cast_slice_mut(&mut samples))?;
                samples.into()
            }
        };
        Ok(Ok(Image::new(shape, samples)))
    });
    decoded.expect("the GPU works")
}

/// The GPU decodes this, to the CPU's image.
pub fn compare(gpu: &Gpu, file: &[u8], what: &str) {
    assert!(compare_or_leave(gpu, file, what), "{what}: left to the CPU");
}

/// The same where blocks may be such that only one who reads them all knows where they begin: then
/// false.
pub fn compare_or_leave(gpu: &Gpu, file: &[u8], what: &str) -> bool {
    let expected = on_cpu(file).expect(what);
    match on_gpu(gpu, file) {
        Err(why) if why.contains("cannot find the deflate block boundaries") => return false,
        Ok(found) if found == expected => {}
        Ok(found) => {
            let (a, b) = (found.samples().as_bytes(), expected.samples().as_bytes());
            let first = a.iter().zip(b).position(|(a, b)| a != b);
            let count = a.iter().zip(b).filter(|(a, b)| a != b).count();
            panic!(
                "{what}: {count} bytes of {} differ, the first at {first:?}",
                expected.shape()
            );
        }
        Err(why) => panic!("{what}: left to the CPU, since {why}"),
    }
    true
}

/// Whether the GPU accepts a file; then it must be the CPU's image.
pub fn same_verdict(gpu: &Gpu, file: &[u8], what: &str) -> bool {
    same_source_verdict(gpu, &Source::memory(file.to_vec()), what)
}

/// As `same_verdict`, for a file or a store.
pub fn same_source_verdict(gpu: &Gpu, source: &Source, what: &str) -> bool {
    match (source_on_gpu(gpu, source), source_on_cpu(source)) {
        (Ok(found), Ok(expected)) => assert!(found == expected, "{what}"),
        (Ok(_), Err(why)) => panic!("{what} is accepted: {why}"),
        (Err(_), _) => return false,
    }
    true
}

/// A stream with short fixed blocks among others: literals only, written bit by bit.
pub fn with_fixed(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x78, 0x01];
    let (mut waiting, mut count) = (0u64, 0);
    let mut put = |out: &mut Vec<u8>, bits: u32, len: u32| {
        waiting |= u64::from(bits) << count;
        count += len;
        while count >= 8 {
            out.push(waiting as u8);
            waiting >>= 8;
            count -= 8;
        }
        count
    };
    let blocks = bytes.chunks(bytes.len() / 3 + 1);
    let last = blocks.len() - 1;
    for (i, block) in blocks.enumerate() {
        put(&mut out, u32::from(i == last) | 1 << 1, 3);
        for &byte in block {
            let (word, len) = match byte {
                0..144 => (u32::from(byte) + 0x30, 8),
                _ => (u32::from(byte) + 0x100, 9),
            };
            put(&mut out, word.reverse_bits() >> (32 - len), len);
        }
        let left = put(&mut out, 0, 7);
        if i == last && left > 0 {
            put(&mut out, 0, 8 - left);
        }
    }
    out.extend(simd_adler32::adler32(&bytes).to_be_bytes());
    out
}

/// A file with some bytes of its image data changed, and the CRCs made right again.
pub fn damaged(file: &[u8], numbers: &mut Numbers, variant: usize) -> Vec<u8> {
    let mut file = file.to_vec();
    let mut spans = Vec::new();
    let mut at = 8;
    while at + 12 <= file.len() {
        let len = u32::from_be_bytes(file[at..at + 4].try_into().unwrap()) as usize;
        if &file[at + 4..at + 8] == b"IDAT" && len > 0 {
            spans.push((at + 4, at + 8 + len));
        }
        at += 12 + len;
    }
    for _ in 0..=variant {
        let (start, end) = spans[numbers.next() as usize % spans.len()];
        // The last variants change the head and the end of the stream.
        let place = match variant {
            2 => start + 4 + numbers.next() as usize % (end - start - 4).min(60),
            3 => end - 1 - numbers.next() as usize % (end - start - 4).min(9),
            _ => start + 4 + numbers.next() as usize % (end - start - 4),
        };
        file[place] ^= 1 << (numbers.next() % 8);
    }
    for (start, end) in spans {
        let crc = crc32fast::hash(&file[start..end]).to_be_bytes();
        file[end..end + 4].copy_from_slice(&crc);
    }
    file
}
