//! Hot pixels: a sample that exceeds the median of its up to 8 neighbours by more than a threshold is
//! replaced by it. Neighbours are those of the same channel in the image as it was, and at the border
//! only those that exist; for an even number the median is ⌊(a + b)/2 + 1/2⌋. Alpha and
//! images of one pixel do not change.

use crate::image::{Image, Samples, Shape};
use crate::ops::cpu::Sample;
use crate::ops::samples_from;
use anyhow::Result;
use rayon::prelude::*;

/// The definition.
pub(super) fn naive(image: &Image, threshold: u16) -> Image {
    let shape = image.shape();
    let from: Vec<u64> = (0..shape.samples())
        .map(|i| image.samples().at(i))
        .collect();
    let replaced = |i: usize| {
        let (x, y) = (i / shape.channels % shape.width, i / shape.row());
        let mut near = Vec::new();
        for row in y.saturating_sub(1)..=(y + 1).min(shape.height - 1) {
            for column in x.saturating_sub(1)..=(x + 1).min(shape.width - 1) {
                if (column, row) != (x, y) {
                    let index = row * shape.row() + column * shape.channels + i % shape.channels;
                    near.push(from[index]);
                }
            }
        }
        near.sort_unstable();
        if near.is_empty() || i % shape.channels >= shape.colours() {
            return from[i];
        }
        let middle = (near[(near.len() - 1) / 2] + near[near.len() / 2]).div_ceil(2);
        if from[i] > middle + u64::from(threshold) {
            middle
        } else {
            from[i]
        }
    };
    let out = samples_from(shape.depth, (0..shape.samples()).map(replaced));
    Image::new(shape, out)
}

/// The same on all cores.
///
/// # Errors
/// No memory for the result.
pub(super) fn cpu(image: &Image, threshold: u16) -> Result<Image> {
    let shape = image.shape();
    let mut out = Samples::any(&shape)?;
    match (image.samples(), &mut out) {
        (Samples::U8(from), Samples::U8(to)) => rows(&shape, from, to, threshold),
        (Samples::U16(from), Samples::U16(to)) => rows(&shape, from, to, threshold),
        // `any` gives samples of the shape's depth, which is the image's.
        _ => {}
    }
    Ok(Image::new(shape, out))
}

fn rows<T: Sample>(shape: &Shape, from: &[T], to: &mut [T], threshold: u16) {
    let (row, channels) = (shape.row(), shape.channels);
    to.par_chunks_mut(row).enumerate().for_each(|(y, to)| {
        let own = &from[y * row..(y + 1) * row];
        to.copy_from_slice(own);
        // The rows above, at and below, as far as they exist.
        let above = y.checked_sub(1).map(|y| &from[y * row..(y + 1) * row]);
        let below = from.get((y + 1) * row..(y + 2) * row);
        for (i, to) in to.iter_mut().enumerate() {
            // No median is below 0, so a small sample is not hot.
            if to.value() <= threshold || i % channels >= shape.colours() {
                continue;
            }
            let (mut near, mut count) = ([u32::MAX; 8], 0);
            let mut add = |sample: Option<&T>| {
                if let Some(sample) = sample {
                    near[count] = sample.value().into();
                    count += 1;
                }
            };
            let left = i.checked_sub(channels);
            for line in [above, below].into_iter().flatten() {
                add(left.and_then(|left| line.get(left)));
                add(line.get(i));
                add(line.get(i + channels));
            }
            add(left.and_then(|left| own.get(left)));
            add(own.get(i + channels));
            if count == 0 {
                continue;
            }
            near.sort_unstable();
            let middle = (near[(count - 1) / 2] + near[count / 2]).div_ceil(2);
            if u32::from(to.value()) > middle + u32::from(threshold) {
                *to = T::from_value(middle as u16);
            }
        }
    });
}
