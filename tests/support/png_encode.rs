//! Images that press on each part of the PNG encoder.

use gpuimg::internals::formats::png::{Mode, encode};
use gpuimg::internals::image::{Depth, Image, Shape};
use gpuimg::internals::os::Target;

pub fn encoded(image: &Image, mode: Mode) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.png");
    let target = Target::create(&path, false).unwrap();
    let len = encode(image, mode, &target).unwrap();
    target.commit(len).unwrap();
    let bytes = std::fs::read(path).unwrap();
    assert_eq!(bytes.len() as u64, len);
    bytes
}

pub fn random(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6364136223846793005)
        .wrapping_add(1442695040888963407);
    (*state >> 33) ^ (*state >> 13)
}

/// Kinds of content, each a stress of another part.
pub const KINDS: [&str; 10] = [
    "noise",
    "field",
    "smooth",
    "background",
    "constant",
    "zero",
    "extreme",
    "fibonacci",
    "sparse",
    "tiles",
];

/// A sample of noise whose rows come again every `wide` pixels.
pub fn tiled(x: usize, y: usize, wide: usize) -> u16 {
    let mixed = (x % wide + 7919 * y).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (20000 + (mixed >> 40) % 700) as u16
}

pub fn image(kind: &str, width: usize, height: usize, channels: usize, depth: Depth) -> Image {
    let shape = Shape {
        width,
        height,
        channels,
        depth,
    };
    let mut state = 7;
    let mut next = || random(&mut state);
    // Values whose counts grow as Fibonacci's numbers make the deepest Huffman tree.
    let mut ranks = vec![];
    let (mut a, mut b) = (1usize, 1usize);
    for rank in 0..24 {
        ranks.extend(std::iter::repeat_n(rank as u16 * 3, a));
        (a, b) = (b, a + b);
    }
    let row = shape.row();
    let samples: Vec<u16> = (0..shape.samples())
        .map(|i| {
            let (x, y) = (i % row / channels, i / row);
            let inside = (2 * x).abs_diff(width) + (2 * y).abs_diff(height) < width;
            match kind {
                "noise" => next() as u16,
                "field" => (20000 + 9 * x + 5 * y + (next() % 700) as usize) as u16,
                "smooth" => (x * 31 + y * y / 16 + i % channels) as u16,
                "background" if inside => 1000 + (next() % 50) as u16,
                "background" => 0,
                "constant" => 0xabcd,
                "zero" => 0,
                "extreme" => [0, 0xffff][(next() % 2) as usize],
                // Undone by no filter: each row's sum along it is what is wanted under Sub.
                "fibonacci" => ranks[(next() % ranks.len() as u64) as usize],
                "sparse" if next().is_multiple_of(97) => next() as u16,
                "sparse" => 5,
                "tiles" => tiled(i % row, y % 200, 300 * channels),
                _ => unreachable!(),
            }
        })
        .collect();
    let samples = match depth {
        Depth::Sixteen => samples.into(),
        _ => samples
            .iter()
            .map(|s| (s % 251) as u8)
            .collect::<Vec<_>>()
            .into(),
    };
    Image::new(shape, samples)
}
