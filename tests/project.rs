//! Projections: naive → rayon → CUDA, laws, and the verb as a user meets it.

use crate::support::contract::words;
use crate::support::stacks::{pages, stack};
use crate::support::tiff::Build;
use crate::support::{KINDS, Kind, SIZES, folder, gpu, grey, image, listing, run, samples};
use gpuimg::internals::gpu::driver::Gpu;
use gpuimg::internals::image::metadata::Metadata;
use gpuimg::internals::image::number;
use gpuimg::internals::image::{Depth, Image, Samples, Shape, Values};
use gpuimg::internals::ops::project::{
    Accumulator, Project, Projection, Wide, median_on_gpu, project_columns,
};
use gpuimg::internals::timing::Timeline;
use std::fs;

/// Every projection, with every option of sums that always has a result.
fn projections() -> Vec<Project> {
    let plain = [
        Projection::Mean,
        Projection::Min,
        Projection::Max,
        Projection::Median,
    ];
    let sum = Project::plain(Projection::Sum);
    let sums = [
        (true, false, None),
        (false, true, None),
        (true, false, Some(Wide::Sixteen)),
    ];
    let sums = sums.map(|(saturate, scale, to)| Project {
        saturate,
        scale,
        to,
        ..sum
    });
    plain.into_iter().map(Project::plain).chain(sums).collect()
}

/// Every projection in floating point, and sigma-clipped means.
fn reals_and_clipped() -> Vec<Project> {
    let all = [
        Projection::Sum,
        Projection::Mean,
        Projection::Min,
        Projection::Max,
        Projection::Median,
    ];
    let real = |how| Project {
        to: Some(Wide::Float),
        ..Project::plain(how)
    };
    let clipped = ["0.3", "1.234"].into_iter().flat_map(|sigma| {
        [None, Some(Wide::Float)].map(|to| Project {
            to,
            sigma: Some(sigma.parse().unwrap()),
            ..Project::plain(Projection::Mean)
        })
    });
    all.into_iter().map(real).chain(clipped).collect()
}

/// On the CPU, or of each image whose number `on_gpu` says so on a GPU.
fn projected(
    project: Project,
    images: &[Image],
    signed: bool,
    gpu: Option<(&Gpu, &dyn Fn(usize) -> bool)>,
) -> Image {
    let shape = images[0].shape();
    let timeline = &mut Timeline::default();
    if project.needs_all_images(shape.depth).is_some() {
        let images: Vec<Samples> = images.iter().map(|image| image.samples().clone()).collect();
        let projected = match gpu {
            Some((gpu, _)) => median_on_gpu(&images, gpu, timeline),
            None => project_columns(&project, shape, signed, 0, &images, timeline),
        };
        return Image::new(project.output(shape), projected.unwrap());
    }
    let known = Accumulator::new(project, shape, signed).unwrap();
    for (index, image) in images.iter().enumerate() {
        match gpu.filter(|(_, on_gpu)| on_gpu(index)) {
            Some((gpu, _)) => known.add_on_gpu(image.clone(), gpu, timeline),
            None => known.add(image, timeline),
        }
        .unwrap();
    }
    known.finish().unwrap()
}

/// So many images of one shape, of which no two are alike.
fn series(count: usize, shape: Shape, kind: Kind) -> Vec<Image> {
    let other = |index: usize| {
        let Shape {
            width,
            height,
            channels,
            depth,
        } = shape;
        // Drawn from a longer image, so that each begins elsewhere.
        let long = image(width, height + count, channels, depth, kind);
        let skip = index * shape.row();
        let samples: Samples = match long.samples() {
            Samples::U8(all) => all[skip..skip + shape.samples()].to_vec().into(),
            Samples::U16(all) => all[skip..skip + shape.samples()].to_vec().into(),
            Samples::U32(_) | Samples::U64(_) => panic!("8 or 16 bits were expected"),
        };
        Image::new(shape, samples)
    };
    (0..count).map(other).collect()
}

/// Series over all sizes, channels and depths, of 1 to 6 images, of every kind, with sign or without.
fn every_series(mut visit: impl FnMut(&[Image], Values)) {
    let mut turn = 0;
    for (width, height) in SIZES {
        for channels in 1..=4 {
            for depth in [Depth::Eight, Depth::Sixteen] {
                turn += 1;
                let shape = Shape {
                    width,
                    height,
                    channels,
                    depth,
                };
                let images = series(1 + turn % 6, shape, KINDS[turn / 6 % 4]);
                let signed = turn / 2 % 2 == 0;
                visit(&images, Values { depth, signed });
            }
        }
    }
}

const SERIES: usize = 13 * 4 * 2;

#[test]
fn the_cpu_gives_what_the_definition_says() {
    let mut cases = 0;
    every_series(|images, values| {
        for project in projections() {
            let expected = project.naive(images, values).unwrap();
            let found = projected(project, images, values.signed, None);
            assert!(
                found == expected,
                "{project:?} of {} images, {}, {values}",
                images.len(),
                images[0].shape()
            );
            cases += 1;
            if matches!(project.how, Projection::Min | Projection::Max) {
                assert!(at_once(project, images, values.signed) == expected);
                cases += 1;
            }
        }
    });
    assert_eq!(cases, SERIES * 9);
}

/// On the CPU, from all images at once.
fn at_once(project: Project, images: &[Image], signed: bool) -> Image {
    let shape = images[0].shape();
    let samples: Vec<&Samples> = images.iter().map(Image::samples).collect();
    let timeline = &mut Timeline::default();
    let samples = project_columns(&project, shape, signed, 0, &samples, timeline);
    Image::new(project.output(shape), samples.unwrap())
}

/// Each of these was the median.
#[test]
fn whole_numbers_that_an_accumulator_combines_are_refused_at_once() {
    let shape = Shape {
        width: 3,
        height: 2,
        channels: 1,
        depth: Depth::Sixteen,
    };
    let images = series(3, shape, KINDS[0]);
    let samples: Vec<&Samples> = images.iter().map(Image::samples).collect();
    let mut cases = 0;
    for how in [
        Projection::Sum,
        Projection::Mean,
        Projection::Min,
        Projection::Max,
    ] {
        for to in [
            None,
            Some(Wide::Sixteen),
            Some(Wide::ThirtyTwo),
            Some(Wide::Float),
        ] {
            let project = Project {
                to,
                ..Project::plain(how)
            };
            let is_extreme = matches!(how, Projection::Min | Projection::Max);
            if project.check().is_err() || is_extreme && to.is_none() {
                continue;
            }
            let timeline = &mut Timeline::default();
            let error = project_columns(&project, shape, false, 0, &samples, timeline).unwrap_err();
            assert!(error.to_string().contains("accumulator"), "{error}");
            cases += 1;
        }
    }
    assert_eq!(cases, 8);
}

/// Numbers of images on both sides of the largest that is sorted, and of every power of two below it.
#[test]
fn medians_of_many_images() {
    let median = Project::plain(Projection::Median);
    for count in (1..=70).chain([127, 128, 129, 255, 256, 257, 300]) {
        for (depth, width) in [(Depth::Eight, 65), (Depth::Sixteen, 131)] {
            let shape = Shape::checked(width, 1, 1, depth).unwrap();
            let images = series(count, shape, Kind::Noise);
            let expected = median.naive(
                &images,
                Values {
                    depth,
                    signed: false,
                },
            );
            let found = at_once(median, &images, false);
            assert!(found == expected.unwrap(), "{count} images of {shape}");
        }
    }
}

#[test]
fn floating_point_and_clipped_means_are_as_defined() {
    let mut cases = 0;
    every_series(|images, values| {
        let reals: Vec<Image> = images.iter().map(as_reals).collect();
        for project in reals_and_clipped() {
            for (images, depth) in [(images, values.depth), (&reals, Depth::Float)] {
                let values = Values { depth, ..values };
                let expected = project.naive(images, values).unwrap();
                let found = projected(project, images, values.signed, None);
                assert!(
                    found == expected,
                    "{project:?} of {} images, {}, {values}",
                    images.len(),
                    images[0].shape()
                );
                cases += 1;
            }
        }
    });
    assert_eq!(cases, SERIES * 9 * 2);
}

/// The samples of an image as numbers that no f32 can add up exactly, some of them negative.
fn as_reals(image: &Image) -> Image {
    let shape = Shape {
        depth: Depth::Float,
        ..image.shape()
    };
    let real = |value: u16| (f32::from(value) - 100.0) / 3.0;
    real_image(shape, words_of(image).into_iter().map(real))
}

fn real_image(shape: Shape, values: impl Iterator<Item = f32>) -> Image {
    let keys: Vec<u32> = values.map(|value| number::key(value.to_bits())).collect();
    Image::new(shape, keys.into())
}

#[test]
fn the_gpu_gives_what_the_definition_says() {
    let Some(gpu) = gpu(SERIES * 7 * 2) else {
        return;
    };
    let mut cases = 0;
    every_series(|images, values| {
        for project in projections() {
            let expected = project.naive(images, values).unwrap();
            // All on the GPU; and some on the CPU, as with several devices.
            let both: [&dyn Fn(usize) -> bool; 2] = [&|_| true, &|index| index % 2 == 0];
            for on_gpu in both {
                let found = projected(project, images, values.signed, Some((gpu, on_gpu)));
                assert!(
                    found == expected,
                    "{project:?} of {} images, {}, {values}",
                    images.len(),
                    images[0].shape()
                );
                cases += 1;
            }
        }
    });
    assert_eq!(cases, SERIES * 7 * 2);
}

/// A limit below the images: the median is made of fewer places at a time, and sums that do not fit
/// are an error.
#[test]
fn a_gpu_with_little_memory_makes_a_median_in_pieces() {
    let Some(gpu) = gpu(2) else { return };
    let shape = Shape::checked(641, 97, 3, Depth::Sixteen).unwrap();
    let images = series(5, shape, Kind::Noise);
    let limited = gpu.limited(200_000).unwrap();
    let median = Project::plain(Projection::Median);
    let expected = projected(median, &images, false, None);
    let found = projected(median, &images, false, Some((&limited, &|_| true)));
    assert!(found == expected);
    let mean = Project::plain(Projection::Mean);
    let known = Accumulator::new(mean, shape, false).unwrap();
    let error = known.add_on_gpu(images[0].clone(), &limited, &mut Timeline::default());
    assert!(error.is_err());
}

/// By hand: 3 × 2, three images and four.
#[test]
fn three_by_two_by_hand() {
    let a = grey([[1, 2, 3], [4, 5, 60000]]);
    let b = grey([[1, 4, 0], [9, 5, 60000]]);
    let c = grey([[2, 9, 1], [0, 5, 6]]);
    let d = grey([[2, 9, 65535], [1, 5, 7]]);
    let of = |how, images: &[Image]| {
        let project = Project::plain(how);
        let found = projected(project, images, false, None);
        let values = Values {
            depth: Depth::Sixteen,
            signed: false,
        };
        assert_eq!(project.naive(images, values).unwrap(), found);
        found
    };
    let three = [a.clone(), b.clone(), c.clone()];
    // 4/3, 15/3, 4/3; 13/3, 5, 120006/3.
    assert_eq!(
        of(Projection::Mean, &three),
        grey([[1, 5, 1], [4, 5, 40002]])
    );
    assert_eq!(of(Projection::Min, &three), grey([[1, 2, 0], [0, 5, 6]]));
    assert_eq!(
        of(Projection::Max, &three),
        grey([[2, 9, 3], [9, 5, 60000]])
    );
    assert_eq!(
        of(Projection::Median, &three),
        grey([[1, 4, 1], [4, 5, 60000]])
    );
    // 6/4 = 1.5, 24/4, 65539/4 = 16384.75; 14/4 = 3.5, 5, 120013/4 = 30003.25.
    let four = [a.clone(), b, c, d];
    assert_eq!(
        of(Projection::Mean, &four),
        grey([[2, 6, 16385], [4, 5, 30003]])
    );
    // (1 + 2)/2, (4 + 9)/2, (1 + 3)/2; (1 + 4)/2, 5, (7 + 60000)/2 = 30003.5.
    assert_eq!(
        of(Projection::Median, &four),
        grey([[2, 7, 2], [3, 5, 30004]])
    );
    assert_eq!(of(Projection::Sum, std::slice::from_ref(&a)), a);
}

/// Six images of 3 × 2, by astropy.stats.sigma_clip(cenfunc="mean", stdfunc="std", maxiters=5), except that no round rejects
/// all: astropy masks all of 0, 65535, 0, … with 0.5.
#[test]
fn clipped_means_by_astropy() {
    let columns = [
        [10, 12, 11, 13, 9, 500],
        [0, 65535, 0, 65535, 0, 65535],
        [7; 6],
        [100, 101, 102, 103, 104, 150],
        [1, 2, 3, 1000, 2000, 60000],
        [0, 0, 0, 0, 0, 1],
    ];
    let images = [0, 1, 2, 3, 4, 5].map(|index| {
        let [a, b, c, d, e, f] = columns.map(|column| column[index]);
        grey([[a, b, c], [d, e, f]])
    });
    let clipped = |sigma: &str, to| {
        let project = Project {
            to,
            sigma: Some(sigma.parse().unwrap()),
            ..Project::plain(Projection::Mean)
        };
        projected(project, &images, false, None)
    };
    for (sigma, expected) in [
        ("0.5", [[11, 32768, 7], [103, 1000, 0]]),
        // A value at the limit is kept: each is one standard deviation from the mean of 0, 65535, 0, …
        ("1", [[11, 32768, 7], [102, 2, 0]]),
        ("1.5", [[11, 32768, 7], [102, 2, 0]]),
        ("2", [[11, 32768, 7], [102, 601, 0]]),
        ("2.236", [[11, 32768, 7], [110, 10501, 0]]),
        ("3", [[93, 32768, 7], [110, 10501, 0]]),
    ] {
        assert_eq!(clipped(sigma, None), grey(expected), "{sigma}");
    }
    let shape = project_shape(Depth::Float);
    let expected = [11.0, 32767.5, 7.0, 102.0, 601.2, 0.0];
    assert_eq!(
        clipped("2", Some(Wide::Float)),
        real_image(shape, expected.into_iter())
    );
    let expected = [92.5, 32767.5, 7.0, 110.0, 10501.0, 0.166_666_67];
    assert_eq!(
        clipped("3", Some(Wide::Float)),
        real_image(shape, expected.into_iter())
    );
}

fn project_shape(depth: Depth) -> Shape {
    Shape::checked(3, 2, 1, depth).unwrap()
}

/// Five images of 3 × 2 in floating point, by NumPy in float64 and astropy.
#[test]
fn floating_point_by_numpy() {
    let tiny = f32::from_bits(1);
    let columns = [
        [1.5, 2.25, -3.0, 1e6, 2.0],
        [0.1, 0.2, 0.3, 0.4, 0.5],
        [1e-40, -1e-40, 0.0, tiny, 2e-38],
        [3.3e38, 3.3e38, 3.3e38, -1.0, -2.0],
        [-0.5, -0.25, -0.125, 8.0, 9.0],
        [1.0, 1.0, 1.0, 1.0, 1.0 + f32::EPSILON],
    ];
    let shape = project_shape(Depth::Float);
    let images: Vec<Image> = (0..5)
        .map(|index| real_image(shape, columns.iter().map(|column| column[index])))
        .collect();
    let of = |project, count: usize, expected: [f32; 6]| {
        let found = projected(project, &images[..count], false, None);
        assert_eq!(
            found,
            real_image(shape, expected.into_iter()),
            "{project:?}"
        );
    };
    let mean = Project::plain(Projection::Mean);
    let means = [200_000.55, 0.3, 4.000_001e-39, 1.98e38, 3.225, 1.0];
    of(mean, 5, means);
    of(
        Project::plain(Projection::Min),
        5,
        [-3.0, 0.1, -1e-40, -2.0, -0.5, 1.0],
    );
    of(
        Project::plain(Projection::Max),
        5,
        [1e6, 0.5, 2e-38, 3.3e38, 9.0, 1.0 + f32::EPSILON],
    );
    let median = Project::plain(Projection::Median);
    of(median, 5, [2.0, 0.3, tiny, 3.3e38, -0.125, 1.0]);
    of(median, 4, [1.875, 0.25, 0.0, 3.3e38, -0.1875, 1.0]);
    let clipped = |sigma: &str| Project {
        sigma: Some(sigma.parse().unwrap()),
        ..mean
    };
    of(clipped("1"), 5, [2.0, 0.3, 0.0, 3.3e38, -0.25, 1.0]);
    of(clipped("1.9"), 5, [0.6875, 0.3, 0.0, 1.98e38, 3.225, 1.0]);
    of(clipped("3"), 5, means);
    let samples: Vec<Samples> = images.iter().map(|image| image.samples().clone()).collect();
    let sum = Project::plain(Projection::Sum);
    let timeline = &mut Timeline::default();
    let error = project_columns(&sum, shape, false, 0, &samples, timeline).unwrap_err();
    assert!(error.to_string().contains("use project mean"), "{error}");
    let sums = project_columns(&sum, shape, false, 0, &samples[3..], timeline).unwrap();
    let expected = [1_000_002.0, 0.9, 2e-38 + tiny, -3.0, 17.0, 2.0];
    assert_eq!(
        Image::new(shape, sums),
        real_image(shape, expected.into_iter())
    );
}

/// A sum is exact or refused; clamped; scaled so that the largest becomes the largest value; or of 16
/// bits. Alpha has the mean.
#[test]
fn sums_fit_or_are_refused() {
    let shape = |channels, depth| Shape::checked(2, 1, channels, depth).unwrap();
    let bytes = |values: [u8; 4]| Image::new(shape(2, Depth::Eight), values.to_vec().into());
    let images = [bytes([200, 255, 3, 0]), bytes([100, 255, 4, 255])];
    let with = |saturate, scale, to| Project {
        saturate,
        scale,
        to,
        ..Project::plain(Projection::Sum)
    };
    let refused = |project, signed| {
        let known = Accumulator::new(project, images[0].shape(), signed).unwrap();
        for image in &images {
            known.add(image, &mut Timeline::default()).unwrap();
        }
        known.finish().unwrap_err().to_string()
    };
    let told = refused(with(false, false, None), false);
    let expected = "the sums range from 7 to 300, but 8 bits without sign can hold only 0 to 255";
    assert!(
        told.starts_with(expected) && told.contains("--to 16"),
        "{told}"
    );
    let of = |project, signed| projected(project, &images, signed, None);
    assert_eq!(
        of(with(true, false, None), false),
        bytes([255, 255, 7, 128])
    );
    // 7·255/300 = 5.95.
    assert_eq!(
        of(with(false, true, None), false),
        bytes([255, 255, 6, 128])
    );
    // Opaque stays opaque.
    let wide = Image::new(
        shape(2, Depth::Sixteen),
        vec![300u16, 65535, 7, 128 * 257].into(),
    );
    assert_eq!(of(with(false, false, Some(Wide::Sixteen)), false), wide);
    let of_32 = |samples: [u32; 4]| Image::new(shape(2, Depth::ThirtyTwo), samples.to_vec().into());
    let all = with(false, false, Some(Wide::ThirtyTwo));
    assert_eq!(of(all, false), of_32([300, u32::MAX, 7, 128 * 0x0101_0101]));
    // 200 and 100 stand for 72 and −28, 3 and 4 for −125 and −124.
    let zero = 1u32 << 31;
    assert_eq!(
        of(all, true),
        of_32([zero + 44, u32::MAX, zero - 249, 128 * 0x0101_0101])
    );
    let both = with(true, false, Some(Wide::ThirtyTwo));
    assert!(both.check().unwrap_err().to_string().contains("every sum"));
    // Samples 200 and 100 stand for 72 and −28, 3 and 4 for −125 and −124: 44, and −249.
    let told = refused(with(false, false, None), true);
    assert!(told.contains("from -249 to 44"), "{told}");
    assert_eq!(of(with(true, false, None), true), bytes([172, 255, 0, 128]));
    // 44·127/249 = 22.4; −249 becomes −127.
    assert_eq!(of(with(false, true, None), true), bytes([150, 255, 1, 128]));
    let wide = [32768u16 + 44, 65535, 32768 - 249, 128 * 257];
    let wide = Image::new(shape(2, Depth::Sixteen), wide.to_vec().into());
    assert_eq!(of(with(false, false, Some(Wide::Sixteen)), true), wide);
    // All 0: nothing to scale by.
    let black = [bytes([0; 4])];
    assert_eq!(
        projected(with(false, true, None), &black, false, None),
        black[0]
    );
}

#[test]
fn laws() {
    for (channels, depth) in [(1, Depth::Sixteen), (4, Depth::Eight), (3, Depth::Sixteen)] {
        let shape = Shape::checked(67, 31, channels, depth).unwrap();
        let images = series(7, shape, Kind::Noise);
        let values = |how| {
            let image = projected(Project::plain(how), &images, false, None);
            words_of(&image)
        };
        let [least, mean, middle, most] = [
            Projection::Min,
            Projection::Mean,
            Projection::Median,
            Projection::Max,
        ]
        .map(values);
        for i in 0..least.len() {
            assert!(least[i] <= middle[i] && middle[i] <= most[i]);
            assert!(least[i] <= mean[i] && mean[i] <= most[i]);
        }
        // One image is itself; and so are equal ones, except for their sum.
        for project in projections() {
            let scaled = project.how == Projection::Sum;
            if !scaled {
                assert_eq!(projected(project, &images[..1], false, None), images[0]);
                let equal = vec![images[1].clone(); 6];
                assert_eq!(projected(project, &equal, false, None), images[1]);
            }
            // The order does not matter.
            let mut turned = images.clone();
            turned.rotate_left(3);
            let found = projected(project, &turned, false, None);
            assert_eq!(found, projected(project, &images, false, None));
        }
    }
}

fn words_of(image: &Image) -> Vec<u16> {
    match image.samples() {
        Samples::U8(samples) => samples.iter().map(|&sample| sample.into()).collect(),
        Samples::U16(samples) => samples.to_vec(),
        Samples::U32(_) | Samples::U64(_) => panic!("8 or 16 bits were expected"),
    }
}

/// As many images as there may be, of the largest samples: the sums reach the end of 32 bits. One
/// more is refused.
#[test]
fn as_many_images_as_there_may_be() {
    let shape = Shape::checked(1, 1, 1, Depth::Sixteen).unwrap();
    let white = Image::new(shape, vec![65535u16].into());
    let known = Accumulator::new(Project::plain(Projection::Mean), shape, false).unwrap();
    let timeline = &mut Timeline::default();
    for _ in 0..65_535 {
        known.add(&white, timeline).unwrap();
    }
    assert!(known.add(&white, timeline).is_err());
    let mean = Project::plain(Projection::Mean);
    let many = vec![white.clone(); 65_535];
    assert_eq!(projected(mean, &many, false, None), white);
    let ramp: Vec<Samples> = (0..65_535u16).rev().map(|v| vec![v].into()).collect();
    let mut median = |images: &[Samples]| {
        let median = Project::plain(Projection::Median);
        project_columns(&median, shape, false, 0, images, timeline)
    };
    assert_eq!(median(&ramp).unwrap(), vec![32767u16].into());
    assert_eq!(median(&ramp[1..]).unwrap(), vec![32767u16].into());
    assert!(median(&vec![ramp[0].clone(); 65_536]).is_err());
}

const A: &[u8] = b"P5 3 1 255\n\x00\x0a\xff";
const B: &[u8] = b"P5 3 1 255\n\x02\x14\xff";

/// Files, folders and stacks, in any mixture, into one image.
#[test]
fn files_folders_and_stacks() {
    let page = |values: [u16; 2]| {
        let shape = Shape::checked(2, 1, 1, Depth::Sixteen).unwrap();
        Image::new(shape, values.to_vec().into())
    };
    let three = stack(
        &[page([1, 9]), page([2, 5]), page([6, 7])],
        &Metadata::default(),
    );
    let one = stack(&[page([100, 0])], &Metadata::default());
    let place = folder(&[
        ("in/a.pgm", A),
        ("in/b.pgm", B),
        ("stack.tif", &three),
        ("one.tif", &one),
    ]);
    let go = |args: &[&str]| {
        let out = run(place.path(), args, &[]);
        assert_eq!(out.code, 0, "{}", out.stderr);
        out.stderr
    };
    let read = |name: &str| fs::read(place.path().join(name)).unwrap();
    go(&["project", "mean", "in", "out.pgm"]);
    assert_eq!(words(&read("out.pgm")), [1, 15, 255]);
    go(&["project", "max", "in/a.pgm", "in/b.pgm", "max.pgm", "-q"]);
    assert_eq!(words(&read("max.pgm")), [2, 20, 255]);
    // A stack says nothing of itself.
    assert_eq!(go(&["project", "median", "stack.tif", "middle.tif"]), "");
    assert_eq!(pages(&read("middle.tif"))[0].1, [2, 7]);
    go(&["project", "sum", "stack.tif", "one.tif", "sum.tif"]);
    assert_eq!(pages(&read("sum.tif"))[0].1, [109, 21]);
    go(&["project", "mean", "stack.tif", "some.tif", "--pages", "2-3"]);
    assert_eq!(pages(&read("some.tif"))[0].1, [4, 6]);
    go(&["project", "sum", "--to", "16", "in", "wide.png"]);
    assert_eq!(words(&read("wide.png")), [2, 30, 510]);
    go(&[
        "project",
        "min",
        "--files-from",
        "list",
        "-j",
        "3",
        "listed.pgm",
    ]
    .map(|arg| {
        fs::write(place.path().join("list"), "in/a.pgm\nin/b.pgm\n").unwrap();
        arg
    }));
    assert_eq!(words(&read("listed.pgm")), [0, 10, 255]);
}

/// What does not belong to the first image is named, all of it, before pixels are read, and nothing
/// is written.
#[test]
fn what_does_not_belong_to_the_first_is_named() {
    let grey = crate::support::contract::grey(3, [1, 2, 3]);
    let signed = Build::default().tag(339, 3, &[2]).file(&grey);
    let turned = Build::default().tag(274, 3, &[6]).file(&grey);
    let plain = Build::default().file(&grey);
    let place = folder(&[
        ("in/a.tif", &plain),
        ("in/b.tif", &signed),
        ("in/c.tif", &turned),
        ("in/d.pgm", A),
        ("in/e.pgm", b"P5 1 3 65535\n\0\x01\0\x01\0\x01"),
        ("in/f.png", b"\x89PNG\r\n\x1a\n and no more"),
        ("in/g.tif", &plain),
    ]);
    let out = run(place.path(), &["project", "mean", "in", "out.tif"], &[]);
    assert_eq!(out.code, 1);
    for told in [
        "cannot project in/b.tif (mean): it is 3×1 grey, 16 bits with sign, but in/a.tif is 3×1 grey, 16 bits\n",
        "in/c.tif (mean): it is 3×1 grey, 16 bits, with orientation 6, but in/a.tif is",
        "in/d.pgm (mean): it is 3×1 grey, 8 bits, but",
        "in/e.pgm (mean): it is 1×3 grey, 16 bits, but",
        "cannot read in/f.png: ",
    ] {
        assert!(out.stderr.contains(told), "{told}: {}", out.stderr);
    }
    assert!(!out.stderr.contains("g.tif"), "{}", out.stderr);
    assert_eq!(listing(place.path()), ["in"]);
    // Left out, where that is asked for; the status tells all the same.
    let args = ["project", "sum", "in", "out.tif", "--keep-going"];
    let out = run(place.path(), &args, &[]);
    assert_eq!(out.code, 1, "{}", out.stderr);
    let found = fs::read(place.path().join("out.tif")).unwrap();
    assert_eq!(pages(&found)[0].1, [2, 4, 6]);
}

/// A file that is whole by its header and damaged in its pixels.
#[test]
fn a_damaged_file_makes_no_projection() {
    let place = folder(&[("a.pgm", A), ("b.pgm", &B[..B.len() - 1]), ("empty/x", b"")]);
    for how in ["mean", "median"] {
        let out = run(
            place.path(),
            &["project", how, "a.pgm", "b.pgm", "out.pgm"],
            &[],
        );
        assert_eq!(out.code, 1);
        assert!(out.stderr.contains("cannot read b.pgm: "), "{}", out.stderr);
        assert_eq!(listing(place.path()), ["a.pgm", "b.pgm", "empty"]);
        let args = ["project", how, "a.pgm", "b.pgm", "out.pgm", "--keep-going"];
        let out = run(place.path(), &args, &[]);
        assert_eq!(out.code, 1, "{}", out.stderr);
        let found = fs::read(place.path().join("out.pgm")).unwrap();
        assert_eq!(words(&found), [0, 10, 255]);
        fs::remove_file(place.path().join("out.pgm")).unwrap();
    }
    let out = run(place.path(), &["project", "mean", "empty", "out.pgm"], &[]);
    assert_eq!(out.code, 1, "{}", out.stderr);
    assert!(out.stderr.contains("empty"), "{}", out.stderr);
}

#[test]
fn what_is_typed_wrongly_or_would_destroy_something() {
    let place = folder(&[
        ("a.pgm", A),
        ("b.pgm", B),
        ("there.pgm", A),
        ("in/c.pgm", A),
    ]);
    for (code, args, told) in [
        (2, &["project", "mean", "a.pgm"][..], "got only a.pgm"),
        (
            2,
            &["project", "mean", "a.pgm", "b.pgm", "in"],
            "in is a folder",
        ),
        (2, &["project", "mean", "a.pgm", "out/"], "out/ is a folder"),
        (
            2,
            &["project", "mean", "--scale", "a.pgm", "o.pgm"],
            "--scale is for sums",
        ),
        (
            2,
            &["project", "sum", "--scale", "--saturate", "a.pgm", "o.pgm"],
            "cannot be combined",
        ),
        (2, &["project", "mode", "a.pgm", "o.pgm"], "mode"),
        (2, &["project", "sum", "--to", "24", "a.pgm", "o.pgm"], "24"),
        (
            2,
            &["project", "max", "a.pgm", "b.pgm", "b.pgm", "--overwrite"],
            "would overwrite b.pgm",
        ),
        (2, &["project", "max", "a.pgm", "o.xyz"], ".xyz"),
        (
            1,
            &["project", "max", "a.pgm", "there.pgm"],
            "it already exists",
        ),
        (
            1,
            &["project", "max", "a.pgm", "nowhere/o.pgm"],
            "folder nowhere does not exist",
        ),
        (
            1,
            &["project", "max", "-", "o.pgm"],
            "can be read only once",
        ),
        (
            1,
            &["project", "sum", "a.pgm", "b.pgm", "o.pgm"],
            "the sums range from 2 to 510",
        ),
        (
            1,
            &["project", "max", "missing.pgm", "o.pgm"],
            "cannot read missing.pgm",
        ),
    ] {
        let out = run(place.path(), args, &[]);
        assert_eq!(out.code, code, "{args:?}: {}", out.stderr);
        assert!(out.stderr.contains(told), "{args:?}: {}", out.stderr);
        assert_eq!(listing(place.path()), ["a.pgm", "b.pgm", "in", "there.pgm"]);
    }
    let args = [
        "project",
        "max",
        "a.pgm",
        "b.pgm",
        "there.pgm",
        "--overwrite",
    ];
    assert_eq!(run(place.path(), &args, &[]).code, 0);
}

/// Memory for a third of each image: every input is read again and again, and the median is the
/// same.
#[test]
fn little_memory_makes_the_same_median() {
    let shape = Shape::checked(400, 100, 3, Depth::Sixteen).unwrap();
    let images = series(6, shape, Kind::Noise);
    let files: Vec<(String, Vec<u8>)> = (images.iter().enumerate())
        .map(|(index, image)| (format!("in/{index}.tif"), Build::default().file(image)))
        .collect();
    let files: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(name, file)| (&**name, &**file))
        .collect();
    let place = folder(&files);
    let go = |args: &[&str]| {
        let out = run(
            place.path(),
            &[&["project", "median", "in"], args].concat(),
            &[],
        );
        assert_eq!(out.code, 0, "{}", out.stderr);
        out.stderr
    };
    go(&["whole.tif"]);
    let told = go(&["pieces.tif", "--mem-limit", "1M", "-j", "2"]);
    // Half of that holds 43,690 samples of six images, and an image has 120,000.
    assert!(
        told.contains("6 images do not fit in 524.3 kB of memory: they are read 3 times"),
        "{told}"
    );
    let read = |name: &str| fs::read(place.path().join(name)).unwrap();
    assert!(read("whole.tif") == read("pieces.tif"));
    let expected = words_of(&projected(
        Project::plain(Projection::Median),
        &images,
        false,
        None,
    ));
    assert_eq!(pages(&read("whole.tif"))[0].1, expected);
}

/// What the first file says of its image stays as far as it is true of the result.
#[test]
fn metadata_are_those_of_the_first() {
    let ten = |max: u16| {
        let body: Vec<u8> = [1, max]
            .iter()
            .flat_map(|v: &u16| v.to_be_bytes())
            .collect();
        [format!("P5 2 1 {max}\n").as_bytes(), &body].concat()
    };
    let description = "ImageJ=1.53t\nmin=3.0\nmax=700.0\nunit=um\n";
    let text: Vec<u64> = description.bytes().map(u64::from).chain([0]).collect();
    let shown = Build::default().tag(270, 2, &text);
    let image = crate::support::contract::grey(2, [5, 6]);
    let place = folder(&[
        ("a.pgm", &ten(1023)),
        ("b.pgm", &ten(500)),
        ("c.tif", &shown.file(&image)),
        ("d.tif", &Build::default().file(&image)),
    ]);
    let go = |args: &[&str]| {
        let out = run(place.path(), args, &[]);
        assert_eq!(out.code, 0, "{}", out.stderr);
    };
    let read = |name: &str| fs::read(place.path().join(name)).unwrap();
    let text = |name: &str| String::from_utf8_lossy(&read(name)).into_owned();
    go(&["project", "max", "a.pgm", "b.pgm", "max.pgm"]);
    assert!(text("max.pgm").contains("1023"), "{}", text("max.pgm"));
    go(&["project", "sum", "a.pgm", "b.pgm", "sum.pgm"]);
    assert!(text("sum.pgm").contains("65535"), "{}", text("sum.pgm"));
    assert_eq!(words(&read("sum.pgm")), [2, 1523]);
    go(&["project", "mean", "c.tif", "d.tif", "mean.tif"]);
    let told = pages(&read("mean.tif"))[0].2.clone().unwrap_or_default();
    assert!(told.contains("unit=um"), "{told}");
    // Nobody knows the range that shows the mean best.
    assert!(!told.contains("min=") && !told.contains("max="), "{told}");
}

/// A FITS file of so many pages of 2×1 samples, with records of its own.
fn fits(pages: usize, records: &[&str]) -> Vec<u8> {
    let axes = if pages > 1 { 3 } else { 2 };
    let layout = [
        "SIMPLE  =                    T".to_string(),
        "BITPIX  =                   16".into(),
        format!("NAXIS   = {axes:>20}"),
        "NAXIS1  =                    2".into(),
        "NAXIS2  =                    1".into(),
    ];
    let third = (pages > 1).then(|| format!("NAXIS3  = {pages:>20}"));
    let records = records.iter().map(|record| record.to_string());
    let all = (layout.into_iter().chain(third).chain(records)).chain(["END".into()]);
    let mut file: Vec<u8> = all
        .flat_map(|record| format!("{record:<80}").into_bytes())
        .collect();
    file.resize(2880, b' ');
    file.extend([0, 1, 0, 2].repeat(pages));
    file.resize(2 * 2880, 0);
    file
}

/// The records of a FITS file whose keyword is that of a time of exposure.
fn times(file: &[u8]) -> Vec<String> {
    let records = file[..2880].chunks(80).map(String::from_utf8_lossy);
    let records = records.map(|record| record.trim_end().to_string());
    records.filter(|record| record.starts_with("EXP")).collect()
}

/// The sum of 15 images of 120 s said that it was exposed for 120 s.
#[test]
fn a_sum_had_the_exposure_of_one_image() {
    let time = "EXPTIME =                120.0 / seconds";
    let long = fits(1, &[time, "EXPOSURE=                  0.1"]);
    let short = fits(1, &["EXPTIME =               1.2E+2", "EXPOSURE= 0.2"]);
    let other = fits(1, &["EXPTIME =                   60"]);
    let text = fits(1, &["EXPTIME = 'long    '"]);
    let cube = fits(2, &[time]);
    let files: &[(&str, &[u8])] = &[
        ("long.fits", &long),
        ("short.fits", &short),
        ("other.fits", &other),
        ("text.fits", &text),
        ("cube.fits", &cube),
        ("none.fits", &fits(1, &[])),
    ];
    let place = folder(files);
    fs::create_dir(place.path().join("in")).unwrap();
    for number in 0..15 {
        let path = place.path().join(format!("in/{number:02}.fits"));
        fs::write(path, if number == 3 { &short } else { &long }).unwrap();
    }
    let total = "EXPTIME =               1800.0 / seconds";
    let unknown = "EXPTIME of the header is left out: its total is not known";
    let differs = "EXPTIME of the header is left out: it is not the same number in every image";
    for (how, inputs, expected, said) in [
        (
            "sum",
            &["in"][..],
            &[total, "EXPOSURE=                  1.6"][..],
            "",
        ),
        (
            "sum",
            &["other.fits", "long.fits"],
            &["EXPTIME =                180.0"],
            "",
        ),
        (
            "sum",
            &["other.fits"],
            &["EXPTIME =                   60"],
            "",
        ),
        ("sum", &["other.fits", "none.fits"], &[], unknown),
        ("sum", &["other.fits", "text.fits"], &[], unknown),
        ("sum", &["text.fits", "other.fits"], &[], unknown),
        ("sum", &["cube.fits"], &[], unknown),
        ("sum", &["none.fits", "other.fits"], &[], ""),
        ("mean", &["in"], &[time], "EXPOSURE of the header"),
        ("max", &["cube.fits"], &[time], ""),
        ("median", &["other.fits", "long.fits"], &[], differs),
        ("min", &["other.fits", "none.fits"], &[], differs),
    ] {
        let args = [&["project", how], inputs, &["out.fits", "--overwrite"]].concat();
        let done = run(place.path(), &args, &[]);
        assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
        let found = times(&fs::read(place.path().join("out.fits")).unwrap());
        assert_eq!(found, expected, "{args:?}");
        assert!(done.stderr.contains(said), "{args:?}: {}", done.stderr);
        let is_left_out = done.stderr.contains("is left out: ");
        assert_eq!(is_left_out, !said.is_empty(), "{args:?}: {}", done.stderr);
    }
}

/// Parts of a set know the times of their images.
#[test]
fn a_merged_sum_had_the_exposure_of_one_image() {
    let place = folder(&[]);
    fs::create_dir(place.path().join("in")).unwrap();
    for number in 1..8 {
        let time = format!("EXPTIME = {:>20} / s", f64::from(number) / 10.0);
        let path = place.path().join(format!("in/{number}.fits"));
        fs::write(path, fits(1, &[&time])).unwrap();
    }
    let go = |args: &[&str]| {
        let done = run(place.path(), args, &[]);
        assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
    };
    let read = |name: &str| fs::read(place.path().join(name)).unwrap();
    for part in ["1/3", "2/3", "3/3"] {
        let name = format!("parts/{}.partial", &part[..1]);
        go(&["project", "sum", "in", &name, "--partial", "--shard", part]);
    }
    go(&["merge", "parts", "-o", "merged.fits"]);
    go(&["project", "sum", "in", "whole.fits"]);
    assert_eq!(
        times(&read("merged.fits")),
        ["EXPTIME =                  2.8 / s"]
    );
    assert_eq!(read("merged.fits"), read("whole.fits"));
}

/// The devices by the verb.
#[test]
fn the_verb_gives_the_same_on_a_gpu() {
    if gpu(5).is_none() {
        return;
    }
    let shape = Shape::checked(301, 203, 3, Depth::Sixteen).unwrap();
    let files: Vec<(String, Vec<u8>)> = (series(5, shape, Kind::Noise).iter().enumerate())
        .map(|(index, image)| (format!("in/{index}.tif"), Build::default().file(image)))
        .collect();
    let files: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(name, file)| (&**name, &**file))
        .collect();
    let place = folder(&files);
    for how in ["sum", "mean", "min", "max", "median"] {
        for device in ["cpu", "gpu"] {
            let out = format!("{how}.{device}.tif");
            let scale: &[&str] = if how == "sum" { &["--scale"] } else { &[] };
            let args = [
                &["project", how, "in", &out, "--device", device, "-j", "3"],
                scale,
            ];
            let out = run(place.path(), &args.concat(), &[]);
            assert_eq!(out.code, 0, "{}", out.stderr);
        }
        let read = |device| fs::read(place.path().join(format!("{how}.{device}.tif"))).unwrap();
        assert!(read("cpu") == read("gpu"), "{how}");
    }
}

/// Samples of both depths are kept apart by their type.
#[test]
fn images_that_differ_are_refused() {
    let shape = Shape::checked(2, 1, 1, Depth::Sixteen).unwrap();
    let known = Accumulator::new(Project::plain(Projection::Min), shape, false).unwrap();
    let eight = Image::new(
        Shape::checked(2, 1, 1, Depth::Eight).unwrap(),
        samples(vec![1, 2], Depth::Eight),
    );
    assert!(known.add(&eight, &mut Timeline::default()).is_err());
    assert!(known.finish().is_err());
    let both = [
        samples(vec![1], Depth::Eight),
        samples(vec![1], Depth::Sixteen),
    ];
    let median = |images: &[Samples]| {
        let median = Project::plain(Projection::Median);
        project_columns(&median, shape, false, 0, images, &mut Timeline::default())
    };
    assert!(median(&both).is_err());
    assert!(median(&[]).is_err());
}

fn f32_npy(values: [f32; 2]) -> Vec<u8> {
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }";
    let mut file = b"\x93NUMPY\x01\0".to_vec();
    let padded = format!("{header:<117}\n");
    file.extend((padded.len() as u16).to_le_bytes());
    file.extend(padded.bytes());
    file.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    file
}

/// Folders of floating-point files, in order, also in ranges; `--to f32` of whole numbers with sign; NaN; what is refused.
#[test]
fn the_verb_in_floating_point() {
    let tif = |values: [i16; 2]| {
        let image = crate::support::contract::grey(2, values.map(|value| value as u16));
        Build::default().tag(339, 3, &[2]).file(&image)
    };
    let place = folder(&[
        ("f/1.npy", &f32_npy([1e8, 1.0])),
        ("f/2.npy", &f32_npy([-1e8, 2.0])),
        ("f/3.npy", &f32_npy([0.25, 4.5])),
        ("i/1.tif", &tif([-100, 1])),
        ("i/2.tif", &tif([1, 2])),
        ("nan.npy", &f32_npy([f32::NAN, 7.0])),
    ]);
    let go = |args: &[&str]| {
        let out = run(place.path(), &[&["project"], args].concat(), &[]);
        assert_eq!(out.code, 0, "{args:?}: {}", out.stderr);
    };
    let values = |name: &str| -> [f32; 2] {
        let file = fs::read(place.path().join(name)).unwrap();
        let data = &file[file.len() - 8..];
        [0, 4].map(|at| f32::from_le_bytes(data[at..at + 4].try_into().unwrap()))
    };
    // 0.25 is lost in f32, and kept in the doubles in which sums are added.
    go(&["sum", "f", "sum.npy"]);
    assert_eq!(values("sum.npy"), [0.25, 7.5]);
    go(&["mean", "f", "mean.npy"]);
    assert_eq!(values("mean.npy"), [0.25 / 3.0, 2.5]);
    go(&["median", "f", "median.npy"]);
    assert_eq!(values("median.npy"), [0.25, 2.0]);
    go(&["mean", "--sigma", "1", "f", "clipped.npy"]);
    assert_eq!(values("clipped.npy"), [0.25, 2.0]);
    go(&["mean", "--to", "f32", "i", "i.npy"]);
    assert_eq!(values("i.npy"), [-49.5, 1.5]);
    go(&["median", "--to", "f32", "i", "im.npy"]);
    assert_eq!(values("im.npy"), [-49.5, 1.5]);
    go(&["mean", "--nan", "3", "f/1.npy", "nan.npy", "n.npy"]);
    assert_eq!(values("n.npy"), [50_000_001.5, 4.0]);
    let before = listing(place.path());
    for (code, args, told) in [
        (
            1,
            &["mean", "nan.npy", "f/1.npy", "o.npy"][..],
            "1 of its samples is NaN or infinite (use --nan",
        ),
        (1, &["mean", "f", "i", "o.npy"], "cannot project"),
        (
            1,
            &["sum", "--to", "16", "f", "o.npy"],
            "so have their sums",
        ),
        (1, &["mean", "f", "o.png"], "cannot write o.png"),
        (2, &["mean", "--to", "16", "f", "o.npy"], "is for sums"),
        (
            2,
            &["max", "--sigma", "2", "f", "o.npy"],
            "--sigma is for means",
        ),
        (2, &["mean", "--sigma", "0", "f", "o.npy"], "0.001 to 100"),
        (
            2,
            &["sum", "--to", "f32", "--scale", "i", "o.npy"],
            "remove --saturate and --scale",
        ),
        (
            2,
            &["mean", "--sigma", "3", "i", "o.partial", "--partial"],
            "a sigma-clipped mean needs all images at once",
        ),
        (
            1,
            &["mean", "f", "o.partial", "--partial"],
            "floating-point images are added in their order",
        ),
    ] {
        let out = run(place.path(), &[&["project"], args].concat(), &[]);
        assert_eq!(out.code, code, "{args:?}: {}", out.stderr);
        assert!(out.stderr.contains(told), "{args:?}: {}", out.stderr);
        assert_eq!(listing(place.path()), before, "{args:?}");
    }
}

/// Ranges give the bytes of the whole, with several workers and a stack that several of them read.
#[test]
fn little_memory_gives_the_same_in_floating_point() {
    let shape = Shape::checked(400, 300, 1, Depth::Sixteen).unwrap();
    let images = series(6, shape, Kind::Noise);
    let files: Vec<(String, Vec<u8>)> = (images.iter().enumerate())
        .map(|(index, image)| (format!("in/{index}.tif"), Build::default().file(image)))
        .collect();
    let files: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(name, file)| (&**name, &**file))
        .collect();
    let place = folder(&files);
    let go = |args: &[&str]| {
        let out = run(place.path(), &[&["project"], args].concat(), &[]);
        assert_eq!(out.code, 0, "{args:?}: {}", out.stderr);
        out.stderr
    };
    let clipped = ["mean", "--sigma", "1.5", "--to", "f32", "in"];
    go(&[&clipped[..], &["whole.tif"]].concat());
    let told = go(&[
        &clipped[..],
        &["pieces.tif", "--mem-limit", "1M", "-j", "2"],
    ]
    .concat());
    assert!(told.contains("they are read 3 times"), "{told}");
    let read = |name: &str| fs::read(place.path().join(name)).unwrap();
    assert!(read("whole.tif") == read("pieces.tif"));
}

/// The bytes of `convert` with the same options, of images and of each position of a stack; and what cannot be converted.
#[test]
fn the_result_has_the_depth_and_the_size_that_are_asked_for() {
    let noise = |seed: usize| {
        let other = image(37 + seed, 29, 3, Depth::Sixteen, Kind::Noise);
        let samples = (0..37 * 29 * 3).map(|i| other.samples().at(i) as u16);
        let shape = Shape::checked(37, 29, 3, Depth::Sixteen).unwrap();
        Image::new(shape, samples.collect::<Vec<u16>>().into())
    };
    let tif = |seed| Build::default().file(&noise(seed));
    let place = folder(&[
        ("in/a.tif", &tif(0)),
        ("in/b.tif", &tif(1)),
        ("p.pgm", b"P5 2 1 255\n\x01\x05"),
        ("q.pgm", b"P5 2 1 255\n\x02\xff"),
        ("real.npy", &f32_npy([0.5, 2.0])),
    ]);
    let go = |code: i32, args: &[&str]| {
        let out = run(place.path(), args, &[]);
        assert_eq!(out.code, code, "{args:?}: {}", out.stderr);
        out.stderr
    };
    let read = |name: &str| fs::read(place.path().join(name)).unwrap();
    go(0, &["project", "mean", "in", "mean.tif"]);
    for (options, name) in [
        (&["--depth", "8"][..], "d.tif"),
        (&["--fit", "10"], "f.tif"),
        (&["--depth", "8", "--fit", "10"], "both.png"),
    ] {
        let expected = format!("expected-{name}");
        go(0, &[&["project", "mean", "in", name], options].concat());
        go(0, &[&["convert", "mean.tif", &expected], options].concat());
        assert!(read(name) == read(&expected), "{options:?}");
    }
    go(
        0,
        &[
            "project", "max", "p.pgm", "q.pgm", "deep.pgm", "--depth", "16",
        ],
    );
    let words = crate::support::contract::words(&read("deep.pgm"));
    assert_eq!(words, [2 * 257, 65_535]);
    let before = listing(place.path());
    for (code, args, told) in [
        (
            1,
            &["project", "mean", "real.npy", "o.npy", "--depth", "8"][..],
            "--depth cannot convert",
        ),
        (
            1,
            &[
                "project", "mean", "--to", "f32", "in", "o.npy", "--fit", "5",
            ],
            "--fit supports only",
        ),
        (
            2,
            &[
                "project",
                "mean",
                "in",
                "o.partial",
                "--partial",
                "--depth",
                "8",
            ],
            "--depth",
        ),
        (
            2,
            &[
                "project",
                "mean",
                "in",
                "o.partial",
                "--partial",
                "--fit",
                "8",
            ],
            "--fit",
        ),
    ] {
        let told_here = go(code, args);
        assert!(told_here.contains(told), "{args:?}: {told_here}");
        assert_eq!(listing(place.path()), before);
    }
}
