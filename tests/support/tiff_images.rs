//! Images for TIFF files, and what an encoder writes.

use gpuimg::internals::formats::tiff;
use gpuimg::internals::image::{Depth, Image, Samples, Shape};
use gpuimg::internals::os::{Source, Target};

/// Widths and heights: single pixels, rows and columns, primes, odd row lengths.
pub const SIZES: [(u64, u64); 8] = [
    (1, 1),
    (1, 13),
    (17, 1),
    (2, 2),
    (31, 7),
    (257, 3),
    (64, 64),
    (113, 127),
];

/// What an encoder writes, read back from the committed file.
pub fn written(encode: impl Fn(&Target) -> anyhow::Result<u64>) -> anyhow::Result<Vec<u8>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("out");
    let target = Target::create(&path, false)?;
    let len = encode(&target)?;
    target.commit(len)?;
    let bytes = std::fs::read(&path)?;
    assert_eq!(bytes.len() as u64, len);
    Ok(bytes)
}

/// The text a user would see.
pub fn message<T>(result: anyhow::Result<T>) -> String {
    match result {
        Ok(_) => panic!("no error"),
        Err(error) => format!("{error:#}"),
    }
}

/// Half noise, half ramp and flat parts, with the extreme values in it.
pub fn picture(width: u64, height: u64, channels: usize, depth: Depth) -> Image {
    let shape = Shape::checked(width, height, channels, depth).unwrap();
    let mut state = width * 31 + height * 7 + channels as u64;
    let values = (0..shape.samples()).map(|i| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        match (i / 64) % 4 {
            0 => (state >> 48) as u16,
            1 => (i as u16).wrapping_add(1000),
            2 => u16::MAX - (state >> 63) as u16,
            _ => 0,
        }
    });
    let samples = match depth {
        Depth::Eight => Samples::U8(values.map(|value| value as u8).collect()),
        _ => Samples::U16(values.collect()),
    };
    Image::new(shape, samples)
}

/// Every number of channels, depth and size.
pub fn sample_images() -> impl Iterator<Item = Image> {
    SIZES.iter().flat_map(|&(width, height)| {
        (1..=4).flat_map(move |channels| {
            [Depth::Eight, Depth::Sixteen]
                .into_iter()
                .map(move |depth| picture(width, height, channels, depth))
        })
    })
}

pub fn read(bytes: &[u8]) -> anyhow::Result<Image> {
    tiff::decode(&Source::memory(bytes.to_vec()))
}
