//! Images from a few bytes of fuzzer's input, and files from images.

use gpuimg::internals::image::{Depth, Image, Samples, Shape};
use gpuimg::internals::os::Target;
use std::path::PathBuf;

/// Most bytes of an image, seldom reached: two of the encoders' segments, a few strips.
const MOST: usize = 5 << 18;

/// An image, and a number to choose by; none if the input is too short.
///
/// Twelve bytes say the shape and how the rest is spread over it: again and again, shifted from
/// row to row, with noise of some amplitude added, so that few bytes make rows, runs, repeats at
/// any distance, and noise.
pub fn image(input: &[u8]) -> Option<(Image, u8)> {
    let (head, seed) = input.split_first_chunk::<12>()?;
    let [
        choice,
        form,
        w0,
        w1,
        h0,
        h1,
        scale,
        shift,
        noise,
        period,
        p0,
        p1,
    ] = *head;
    let channels = usize::from(form & 3) + 1;
    let depth = match form >> 2 & 3 {
        0 => Depth::Sixteen,
        1 => Depth::Eight,
        2 => Depth::ThirtyTwo,
        _ => Depth::Float,
    };
    // Most images are small, so that many are tried in a second.
    let bits = [4, 5, 6, 7, 8, 10, 13, 16][usize::from(scale & 7)];
    let side =
        |bytes: [u8; 2]| usize::from(u16::from_le_bytes(bytes) & ((1u32 << bits) - 1) as u16) + 1;
    let width = side([w0, w1]);
    // One value alone makes a large image: under the sanitizer it takes seconds.
    let most = if scale == 0xF7 {
        MOST
    } else {
        512 << (scale >> 5)
    };
    let most = most / (width * channels * depth.bytes());
    let height = side([h0, h1]).min(most).max(1);
    let shape = Shape {
        width,
        height,
        channels,
        depth,
    };
    let step = usize::from(u16::from_le_bytes([p0, p1])).max(1);
    let mask = (1u32 << (noise & 15)) - 1;
    let mut state = 0x9E37_79B9_u32 | 1;
    let at = |i: usize| seed.get(i % seed.len().max(1)).copied().unwrap_or(0);
    let values = (0..shape.samples()).map(|i| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        let row = i / shape.row();
        // Even periods repeat bytes, odd ones ramp them.
        let place = i % step + row * usize::from(shift);
        let base = match period & 1 {
            0 => u32::from(at(2 * place)) << 8 | u32::from(at(2 * place + 1)),
            _ => u32::from(at(place / 64)) * (place as u32 & 0xFFFF),
        };
        let noisy = period & 2 == 0 || row % 3 == 0;
        (base + if noisy { state & mask } else { 0 }) as u16
    });
    let samples = match depth {
        Depth::Eight => Samples::U8(values.map(|value| value as u8).collect()),
        Depth::Sixteen => Samples::U16(values.collect()),
        // Both halves of a sample, so that all its bytes vary.
        Depth::ThirtyTwo | Depth::Float => Samples::U32(
            values
                .map(|value| u32::from(value).wrapping_mul(0x1_0003))
                .collect(),
        ),
        Depth::Double => Samples::U64(
            values
                .map(|value| u64::from(value).wrapping_mul(0x1_0003_0005_0007))
                .collect(),
        ),
    };
    Some((Image::new(shape, samples), choice))
}

/// What an encoder writes, read back from the committed file.
pub fn written(encode: impl Fn(&Target) -> anyhow::Result<u64>) -> Vec<u8> {
    let memory = PathBuf::from("/dev/shm");
    let folder = if memory.is_dir() {
        memory
    } else {
        std::env::temp_dir()
    };
    let path = folder.join(format!("gpuimg-fuzz-{}", std::process::id()));
    let write = || -> anyhow::Result<(u64, Vec<u8>)> {
        let target = Target::create(&path, true)?;
        let len = encode(&target)?;
        target.commit(len)?;
        let bytes = std::fs::read(&path)?;
        std::fs::remove_file(&path)?;
        Ok((len, bytes))
    };
    let (len, bytes) = write().expect("every image here can be written");
    assert_eq!(bytes.len() as u64, len);
    bytes
}
