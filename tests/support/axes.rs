//! Stacks of several axes.

use crate::support::samples;
use crate::support::stacks::stack;
use gpuimg::internals::image::metadata::{Field, Metadata, Own, Value};
use gpuimg::internals::image::{Depth, Image, Shape};

/// 12 pages of 3×2, the first sample of each its number, the others far apart.
pub fn images() -> Vec<Image> {
    let shape = Shape {
        width: 3,
        height: 2,
        channels: 1,
        depth: Depth::Sixteen,
    };
    let page = |page: u16| {
        let values = (0..6u16).map(|i| {
            if i == 0 {
                page
            } else {
                ((u32::from(page) * 6007 + u32::from(i) * 977) % 5000) as u16
            }
        });
        Image::new(shape, samples(values.collect(), Depth::Sixteen))
    };
    (0..12).map(page).collect()
}

/// A file of so many of the pages with this description.
pub fn file(count: usize, description: &str) -> Vec<u8> {
    let own = Own::Tiff {
        big_endian: false,
        fields: vec![Field {
            tag: 270,
            kind: 2,
            value: Value::Bytes([description.as_bytes(), b"\0"].concat()),
        }],
    };
    let metadata = Metadata {
        own,
        ..Metadata::default()
    };
    stack(&images()[..count], &metadata)
}

pub const HYPERSTACK: &str = "ImageJ=1.54f\nimages=12\nchannels=2\nslices=3\nframes=2\nhyperstack=true\nmode=grayscale\nunit=um\nspacing=0.5\nfinterval=2.0\n";
