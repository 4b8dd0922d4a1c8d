//! Laws and literals.

use crate::support::{Kind, grey, image, on_cpu};
use gpuimg::internals::engine::executor;
use gpuimg::internals::image::number::Number;
use gpuimg::internals::image::{Depth, Image, Samples, Shape};
use gpuimg::internals::ops::clip::Clip;
use gpuimg::internals::ops::exact::Exact;
use gpuimg::internals::ops::normalize::{Normalize, Range};
use gpuimg::internals::ops::sum::Sum;
use gpuimg::internals::ops::symmetry::Symmetry::{self, *};
use gpuimg::internals::ops::{OpResult, depth, naive};
use gpuimg::internals::timing::Timeline;

fn chain(image: &Image, steps: &[Symmetry]) -> Image {
    steps
        .iter()
        .fold(image.clone(), |image, step| on_cpu(step, &image))
}

#[test]
fn symmetries_of_three_by_two() {
    let image = grey([[1, 2, 3], [4, 5, 6]]);
    assert_eq!(on_cpu(&Transpose, &image), grey([[1, 4], [2, 5], [3, 6]]));
    assert_eq!(on_cpu(&Rotate90, &image), grey([[4, 1], [5, 2], [6, 3]]));
    assert_eq!(on_cpu(&Rotate180, &image), grey([[6, 5, 4], [3, 2, 1]]));
    assert_eq!(on_cpu(&Rotate270, &image), grey([[3, 6], [2, 5], [1, 4]]));
    assert_eq!(
        on_cpu(&FlipHorizontal, &image),
        grey([[3, 2, 1], [6, 5, 4]])
    );
    assert_eq!(on_cpu(&FlipVertical, &image), grey([[4, 5, 6], [1, 2, 3]]));
    assert_eq!(on_cpu(&Transverse, &image), grey([[6, 3], [5, 2], [4, 1]]));
}

/// A square is turned in its own memory, in parts of 512²: more than one, and the last of them small.
#[test]
fn squares_of_several_parts_are_turned() {
    for (side, channels, depth) in [
        (513, 1, Depth::Eight),
        (1030, 1, Depth::Sixteen),
        (1100, 3, Depth::Sixteen),
        (600, 4, Depth::Eight),
    ] {
        let image = image(side, side, channels, depth, Kind::Noise);
        for op in [Transpose, Transverse, Rotate90, Rotate270] {
            let expected = naive(&op, &image).expect("valid").result;
            let found = OpResult::Image(on_cpu(&op, &image));
            assert!(found == expected, "{op:?} of {}", image.shape());
        }
    }
}

#[test]
fn symmetries_form_a_group() {
    for (width, height, channels) in [(1, 1, 4), (5, 3, 1), (130, 67, 3), (64, 128, 2)] {
        let image = image(width, height, channels, Depth::Sixteen, Kind::Noise);
        let same: [&[Symmetry]; 5] = [
            &[Rotate90; 4],
            &[Transpose, Transpose],
            &[Rotate90, Rotate270],
            &[FlipHorizontal, FlipVertical, Rotate180],
            &[Transverse, Rotate180, Transpose],
        ];
        for steps in same {
            assert_eq!(
                chain(&image, steps),
                image,
                "{steps:?} of {}",
                image.shape()
            );
        }
        assert_eq!(
            chain(&image, &[Transpose, FlipHorizontal]),
            on_cpu(&Rotate90, &image)
        );
    }
}

#[test]
fn normalize_three_by_two() {
    let stretched = on_cpu(&Normalize::default(), &grey([[10, 11, 12], [13, 14, 20]]));
    // 65535/10 = 6553.5: halves round up.
    assert_eq!(stretched, grey([[0, 6554, 13107], [19661, 26214, 65535]]));
    let options = Normalize {
        range: Some(Range::from_integers(11, 13).into()),
        to: Some(Range::from_integers(100, 103)),
        ..Normalize::default()
    };
    assert_eq!(
        on_cpu(&options, &grey([[10, 11, 12], [13, 14, 20]])),
        grey([[100, 100, 102], [103, 103, 103]])
    );
}

#[test]
fn alpha_never_counts_and_passes_through() {
    let shape = Shape {
        width: 2,
        height: 1,
        channels: 2,
        depth: Depth::Sixteen,
    };
    let image = Image::new(shape, Samples::from(vec![100u16, 65535, 300, 7]));
    let expected = Image::new(shape, Samples::from(vec![0u16, 65535, 65535, 7]));
    assert_eq!(on_cpu(&Normalize::default(), &image), expected);
}

#[test]
fn normalize_again_changes_nothing() {
    let once = on_cpu(
        &Normalize::default(),
        &image(123, 45, 3, Depth::Sixteen, Kind::Narrow),
    );
    assert_eq!(on_cpu(&Normalize::default(), &once), once);
}

#[test]
fn a_flat_image_is_left_as_it_is_and_told() {
    let flat = image(5, 4, 1, Depth::Sixteen, Kind::Flat);
    let found = executor::on_cpu(
        &Normalize::default(),
        flat.clone(),
        &mut Timeline::default(),
    )
    .expect("memory");
    assert_eq!(found.result, OpResult::Image(flat));
    assert_eq!(
        found.summary.warnings,
        ["the image is flat (every sample is 77) and left unchanged"]
    );
}

#[test]
fn totals_do_not_overflow_and_survive_turning() {
    // 2³² would be passed by 65 538 samples of 65535.
    let white = grey([[65535; 1000]; 70]);
    let sum = Sum {
        all: true,
        nan: None,
    };
    let OpResult::Totals(totals) = executor::on_cpu(&sum, white.clone(), &mut Timeline::default())
        .expect("memory")
        .result
    else {
        panic!("totals were expected")
    };
    assert_eq!(totals.together().sum, Exact::Whole(70_000 * 65535));
    let range = totals.together().range;
    assert_eq!(
        range.map(|range| (range.min, range.max)),
        Some((65535, 65535))
    );
    let noise = image(77, 31, 3, Depth::Sixteen, Kind::Noise);
    let totals = |image: &Image| match naive(&sum, image).expect("valid").result {
        OpResult::Totals(totals) => totals.channels,
        _ => panic!("totals were expected"),
    };
    assert_eq!(totals(&noise), totals(&on_cpu(&Rotate90, &noise)));
}

#[test]
fn eight_bits_come_back_from_sixteen() {
    let bytes = image(256, 3, 1, Depth::Eight, Kind::Noise);
    let sixteen = depth::convert_to_sixteen(bytes.clone(), 255).expect("memory");
    let back = depth::convert_to_eight(sixteen, &[], 65535).expect("memory");
    assert_eq!(back, bytes);
}

/// The ranges that values are scaled from, against the colours' samples in order.
#[test]
fn ranges_are_ranks_of_the_samples_in_order() {
    let mut cases = 0;
    for (channels, kind) in [
        (1, Kind::Noise),
        (2, Kind::Narrow),
        (3, Kind::Noise),
        (4, Kind::Flat),
    ] {
        let image = image(131, 67, channels, Depth::Sixteen, kind);
        let Samples::U16(samples) = image.samples() else {
            panic!("16 bits")
        };
        for (low, high) in [(0, 100), (5, 90), (49, 51)] {
            for per_channel in [false, true] {
                let mut sorted = vec![Vec::new(); if per_channel { channels } else { 1 }];
                for (i, &sample) in samples.iter().enumerate() {
                    let (channel, alpha) = (i % channels, channels % 2 == 0);
                    if !(alpha && channel == channels - 1) {
                        sorted[if per_channel { channel } else { 0 }].push(sample);
                    }
                }
                sorted.retain(|samples| !samples.is_empty());
                let expected: Vec<(Number, Number)> = sorted
                    .iter_mut()
                    .map(|samples| {
                        samples.sort_unstable();
                        let last = samples.len() - 1;
                        let (low, high) = (low * last / 100, (high * last).div_ceil(100));
                        (
                            i32::from(samples[low]).into(),
                            i32::from(samples[high]).into(),
                        )
                    })
                    .collect();
                let clip = ((low, high) != (0, 100))
                    .then(|| Clip::from_percentages(low as u64, high as u64));
                let op = Normalize {
                    clip,
                    per_channel,
                    ..Normalize::default()
                };
                let timeline = &mut Timeline::default();
                let found = executor::on_cpu(&op, image.clone(), timeline).expect("memory");
                assert_eq!(
                    found.summary.ranges, expected,
                    "{op:?}, {channels} channels"
                );
                cases += 1;
            }
        }
    }
    assert_eq!(cases, 4 * 3 * 2);
}
