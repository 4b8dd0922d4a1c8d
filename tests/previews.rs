//! Smaller images (`--fit`), and what a preview's range is made of: clipping that leaves one value,
//! values that mean no data, windows, signs, and ranges without a value in them.

use crate::support::axes::{HYPERSTACK, file as hyperstack};
use crate::support::contract::{grey, made, outcome, refused, signed, stored, tag, words};
use crate::support::formats::{format, written};
use crate::support::stacks::{pages, stack};
use crate::support::tiff::Build;
use crate::support::{KINDS, Kind, SIZES, folder, gpu, image, key, run};
use anyhow::Result;
use gpuimg::internals::formats;
use gpuimg::internals::gpu::job::Job;
use gpuimg::internals::image::metadata::{Field, Metadata, Own, Value};
use gpuimg::internals::image::number::Number;
use gpuimg::internals::image::{Depth, HostMemory, Image, Samples, Shape};
use gpuimg::internals::ops::fit::Fit;
use gpuimg::internals::ops::{DeviceImage, depth};
use gpuimg::internals::os::Source;
use gpuimg::internals::timing::Timeline;

fn fit(text: &str) -> Fit {
    text.parse().expect("a number of pixels")
}

fn read(file: &[u8]) -> Image {
    formats::decode(&Source::memory(file.to_vec())).expect("an image")
}

fn values(image: &Image) -> Vec<u16> {
    match image.samples() {
        Samples::U16(words) => words.to_vec(),
        Samples::U8(bytes) => bytes.iter().map(|&byte| byte.into()).collect(),
        Samples::U32(_) | Samples::U64(_) => panic!("8 or 16 bits were expected"),
    }
}

/// 3×2 to 2×1: a new pixel covers one and a half columns, so (0 + 30 + 5 + 20)/3 = 18.33… and
/// (20 + 51 + 5 + 20)/3 = 32; a half goes up: (1 + 2)/2 is 2.
#[test]
fn three_by_two_by_hand() {
    let small = fit("2").cpu(grey(3, [0, 10, 20, 30, 40, 51]));
    assert_eq!((small.shape().width, small.shape().height), (2, 1));
    assert_eq!(values(&small), [18, 32]);
    assert_eq!(values(&fit("1").cpu(grey(2, [1, 2]))), [2]);
    assert_eq!(values(&fit("1").cpu(grey(1, [65535, 65534]))), [65535]);
    for wrong in ["", "0", "-1", "1.5", "x"] {
        assert!(wrong.parse::<Fit>().is_err(), "{wrong}");
    }
}

/// All cores against the definition, and the law that an average lies between its parts.
#[test]
fn all_cores_give_what_the_definition_says() {
    let mut cases = 0;
    for (width, height) in SIZES.into_iter().filter(|(w, h)| w * h < 1200) {
        for most in ["1", "2", "5", "30", "63", "64", "128"] {
            for (channels, depth) in [
                (1, Depth::Sixteen),
                (2, Depth::Eight),
                (3, Depth::Sixteen),
                (4, Depth::Eight),
            ] {
                for kind in KINDS {
                    let image = image(width, height, channels, depth, kind);
                    let expected = fit(most).naive(&image);
                    let small = fit(most).cpu(image.clone());
                    assert_eq!(small, expected, "{width}×{height}, {channels}, {most}");
                    let to = small.shape();
                    assert!(to.width.max(to.height) <= most.parse().unwrap());
                    if let Kind::Flat = kind {
                        let all = values(&image);
                        assert!(values(&small).iter().all(|value| all.contains(value)));
                    }
                    cases += 1;
                }
            }
        }
    }
    assert!(cases > 800, "{cases}");
}

/// Sums of 32 bits do for 65537 rows and for no more.
#[test]
fn sums_of_tall_images_are_exact() {
    for height in [65537, 65538, 70001] {
        let shape = Shape {
            width: 2,
            height,
            channels: 1,
            depth: Depth::Sixteen,
        };
        let image = Image::new(shape, Samples::from(vec![65535u16; 2 * height]));
        assert_eq!(values(&fit("1").cpu(image)), [65535], "{height}");
    }
}

/// New pixels that cover two or four whole columns, which have code of their own.
#[test]
fn whole_factors_give_what_the_definition_says() {
    let mut cases = 0;
    for (width, height, most) in [
        (64, 20, "32"),
        (64, 20, "16"),
        (36, 6, "9"),
        (8, 46, "23"),
        (10, 4, "5"),
    ] {
        for channels in 1..=4 {
            for depth in [Depth::Eight, Depth::Sixteen] {
                for kind in KINDS {
                    let image = image(width, height, channels, depth, kind);
                    let expected = fit(most).naive(&image);
                    assert_eq!(
                        fit(most).cpu(image),
                        expected,
                        "{width} x {height} x {channels} to {most}"
                    );
                    cases += 1;
                }
            }
        }
    }
    assert_eq!(cases, 5 * 4 * 2 * KINDS.len());
}

/// What a verb writes without `--fit`, at its depth, is what `--fit` averages.
#[test]
fn a_smaller_result_is_the_average_of_the_result() {
    let picture = image(31, 33, 3, Depth::Sixteen, Kind::Narrow);
    let file = Build::default().file(&picture);
    for args in [
        &["normalize"][..],
        &["normalize", "--depth", "8", "--clip", "1:99"],
        &["normalize", "--depth", "8", "--to", "5:99"],
        // Without the warning that the result is almost black.
        &["rotate", "90", "--depth", "8", "-q"],
        &["run", "normalize + rotate 90"],
    ] {
        for name in ["out.png", "out.tif"] {
            let whole = read(&made("in.tif", &file, args, name));
            let small = [args, &["--fit", "10"]].concat();
            let small = read(&made("in.tif", &file, &small, name));
            assert_eq!(small, fit("10").naive(&whole), "{args:?}");
            let same = [args, &["--fit", "33"]].concat();
            assert_eq!(read(&made("in.tif", &file, &same, name)), whole, "{args:?}");
        }
    }
    let jpeg = made(
        "in.tif",
        &file,
        &["normalize", "--depth", "8", "--fit", "10"],
        "out.jpg",
    );
    assert_eq!(read(&jpeg).shape().height, 10);
}

#[test]
fn every_page_of_a_stack_is_made_smaller() {
    let images: Vec<Image> = (0..3u16)
        .map(|page| grey(4, [page, 2, 4, 6, 8, 10, 12, 900]))
        .collect();
    let file = stack(&images, &Metadata::default());
    let whole = pages(&made("in.tif", &file, &["normalize"], "out.tif"));
    let small = pages(&made(
        "in.tif",
        &file,
        &["normalize", "--fit", "2"],
        "out.tif",
    ));
    assert_eq!(small.len(), 3);
    for (whole, small) in whole.iter().zip(small) {
        assert_eq!(small.0, (2, 1));
        let of = |a: usize| {
            let sum: u32 = [a, a + 1, a + 4, a + 5]
                .map(|i| u32::from(whole.1[i]))
                .iter()
                .sum();
            ((sum + 2) / 4) as u16
        };
        assert_eq!(small.1, [of(0), of(2)]);
    }
}

#[test]
fn resolution_and_places_are_those_of_larger_pixels() {
    let picture = image(40, 20, 1, Depth::Sixteen, Kind::Noise);
    let doubles = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<u64>>();
    let file = Build::default()
        .tag(282, 5, &[300 | 1 << 32])
        .tag(283, 5, &[150 | 1 << 32])
        .tag(296, 3, &[2])
        .tag(33550, 12, &doubles(&[2.0, 3.0, 0.0]))
        .tag(33922, 12, &doubles(&[0.0, 0.0, 0.0, 1000.0, 5000.0, 0.0]))
        .file(&picture);
    let small = made("in.tif", &file, &["normalize", "--fit", "10"], "out.tif");
    let known = formats::Reader::open(&Source::memory(small.clone()), &formats::Reading::default())
        .unwrap()
        .metadata(&mut gpuimg::internals::image::metadata::Diagnostics::default())
        .unwrap();
    let resolution = known.resolution.expect("a resolution");
    assert_eq!((resolution.x, resolution.y), ((75, 1), (75, 2)));
    let mut decoder = tiff::decoder::Decoder::new(std::io::Cursor::new(&small)).unwrap();
    let place = decoder
        .get_tag_f64_vec(tiff::tags::Tag::ModelTransformationTag)
        .unwrap();
    assert_eq!(place[..8], [8.0, 0.0, 0.0, 1000.0, 0.0, -12.0, 0.0, 5000.0]);
}

#[test]
fn ome_tells_of_larger_pixels() {
    let xml = "<OME><Image><Pixels DimensionOrder=\"XYCZT\" SizeX=\"3\" SizeY=\"2\" SizeC=\"1\" SizeZ=\"3\" SizeT=\"1\" PhysicalSizeX=\"0.5\" PhysicalSizeY=\"0.25\" Type=\"uint16\"/></Image></OME>";
    let small = made(
        "in.tif",
        &hyperstack(3, xml),
        &["rotate", "180", "--fit", "1"],
        "out.tif",
    );
    let text = pages(&small)[0].2.clone().expect("a description");
    for part in [
        "SizeX=\"1\"",
        "SizeY=\"1\"",
        "PhysicalSizeX=\"1.5\"",
        "PhysicalSizeY=\"0.5\"",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn what_cannot_be_made_smaller_is_refused() {
    let shape = Shape {
        width: 3,
        height: 1,
        channels: 1,
        depth: Depth::Float,
    };
    let keys: Vec<u32> = [0.0, 1.0, 2.0].map(key).to_vec();
    let file = Build::default().tag(339, 3, &[3]);
    let file = file.file(&Image::new(shape, Samples::from(keys)));
    refused(
        "in.tif",
        &file,
        &["rotate", "180", "--fit", "2"],
        "out.tif",
        "--fit supports only",
    );
    assert_eq!(
        words(&made(
            "in.tif",
            &file,
            &["normalize", "--fit", "1"],
            "out.tif"
        )),
        [32768]
    );
}

/// Averages, and samples of 8 bits, that a GPU makes of an image in its memory.
#[test]
fn every_kernel_on_small_images() {
    let sizes = [(1, 1), (7, 5), (67, 66), (1, 300), (300, 1), (257, 33)];
    let most = ["1", "2", "5", "30", "63", "64"];
    let Some(gpu) = gpu(sizes.len() * 4 * 2 * 3 * most.len()) else {
        return;
    };
    let on_gpu = |image: &Image, make: &dyn Fn(&DeviceImage, &mut Job) -> Result<DeviceImage>| {
        let mut memory = HostMemory::from(image.clone().into_samples());
        let shape = gpu.job(&mut memory, &mut Timeline::default(), |job| {
            let (shape, samples) = (image.shape(), job.upload()?);
            let made = make(&DeviceImage { shape, samples }, job)?;
            job.download_first(&made.samples)?;
            Ok(made.shape)
        });
        let shape = shape.expect("CUDA");
        let bytes = memory[..shape.bytes()].to_vec();
        match shape.depth {
            Depth::Eight => Image::new(shape, Samples::from(bytes)),
            _ => {
                let words = bytes.chunks_exact(2);
                let words = words.map(|pair| u16::from_ne_bytes([pair[0], pair[1]]));
                Image::new(shape, Samples::from(words.collect::<Vec<_>>()))
            }
        }
    };
    let (mut fitted, mut narrowed) = (0, 0);
    for (width, height) in sizes {
        for channels in 1..=4 {
            for depth in [Depth::Eight, Depth::Sixteen] {
                for kind in [Kind::Noise, Kind::Extremes, Kind::Flat] {
                    let image = image(width, height, channels, depth, kind);
                    for most in most.map(fit) {
                        let found = on_gpu(&image, &|image, job| most.cuda(image, job));
                        assert_eq!(found, most.naive(&image), "{most:?} of {}", image.shape());
                        fitted += 1;
                    }
                }
            }
            // Samples of channels that were scaled are below 256 already.
            let low = image(width, height, channels, Depth::Sixteen, Kind::Noise);
            let low = values(&low).into_iter().map(|v| v % 256);
            let shape = Shape {
                width,
                height,
                channels,
                depth: Depth::Sixteen,
            };
            let low = Image::new(shape, Samples::from(low.collect::<Vec<u16>>()));
            let high = image(width, height, channels, Depth::Sixteen, Kind::Noise);
            let (flat, wide) = (
                (Number::Whole(3), Number::Whole(3)),
                (Number::Whole(3), Number::Whole(9)),
            );
            for (image, ranges) in [
                (&high, &[][..]),
                (&high, &[flat]),
                (&low, &[wide]),
                (&low, &[wide, flat, wide]),
            ] {
                let found = on_gpu(image, &|image, job| {
                    depth::convert_to_eight_on_gpu(image, ranges, job)
                });
                let expected =
                    depth::convert_to_eight(image.clone(), ranges, u16::MAX).expect("memory");
                assert_eq!(found, expected, "{ranges:?} of {shape}");
                narrowed += 1;
            }
        }
    }
    assert_eq!((fitted, narrowed), (6 * 4 * 2 * 3 * 6, 6 * 4 * 4));
}

/// From file to file: large enough to be decoded on the GPU, and to be compressed there where the image stays
/// large; one by one and as a batch.
#[test]
fn previews_on_a_gpu_are_those_of_the_cpu() {
    let Some(_) = gpu(2 * 6 * 2) else { return };
    for channels in [1, 3] {
        let picture = image(1531, 1201, channels, Depth::Sixteen, Kind::Noise);
        let plain = written(
            format("png"),
            std::slice::from_ref(&picture),
            &Metadata::default(),
        )
        .unwrap();
        let tiff = Build::default().file(&picture);
        let root = folder(&[("in/a.png", &plain), ("in/b.tif", &tiff)]);
        let cases: [&[&str]; 6] = [
            &[
                "normalize",
                "--depth",
                "8",
                "--clip",
                "1:99",
                "--fit",
                "400",
            ],
            &["normalize", "--depth", "8"],
            &["normalize", "--depth", "8", "--to", "5:99", "--fit", "1400"],
            &["rotate", "90", "--depth", "8", "--fit", "1200"],
            &["flip", "horizontal", "--fit", "50"],
            &[
                "run",
                "normalize + rotate 90",
                "--depth",
                "8",
                "--fit",
                "700",
            ],
        ];
        for (number, words) in cases.into_iter().enumerate() {
            for device in ["cpu", "gpu"] {
                let out = format!("{number}-{device}");
                let more = ["in", &out, "--format", "png", "--device", device];
                let args = [words, &more].concat();
                let done = run(root.path(), &args, &[]);
                assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
            }
            for name in ["a.png", "b.png"] {
                let made = |device: &str| {
                    let path = root.path().join(format!("{number}-{device}/{name}"));
                    read(&std::fs::read(path).unwrap())
                };
                assert!(made("gpu") == made("cpu"), "{words:?}, {name}");
            }
        }
    }
}

/// Cells in the dark: 99.9 % of the samples are 0, and both percentiles as well.
#[test]
fn a_sparse_mask_stayed_as_it_was_when_it_was_clipped() {
    let mut sparse = [0u16; 4000];
    (sparse[7], sparse[8]) = (100, 300);
    let file = Build::default().file(&grey(40, sparse));
    let (run, written) = outcome("in.tif", &file, &["normalize", "--clip", "1:99"], "out.tif");
    assert_eq!(run.code, 0);
    assert_eq!(
        run.stderr,
        "gpuimg: warning: in.tif: both percentiles of the image are 0, so the full range 0:300 is used\n"
    );
    let found = words(&written.unwrap());
    assert_eq!(found[6..10], [0, 21845, 65535, 0]);

    // Of 8 bits that become 16, the values of the file are named.
    let mut eight = vec![10u8; 4000];
    eight[7] = 200;
    let shape = Shape {
        width: 40,
        height: 100,
        channels: 1,
        depth: Depth::Eight,
    };
    let narrow = Build::default().file(&Image::new(shape, Samples::from(eight)));
    let args = ["normalize", "--clip", "1:99", "--depth", "16"];
    let (run, _) = outcome("in.tif", &narrow, &args, "out.tif");
    assert_eq!(
        run.stderr,
        "gpuimg: warning: in.tif: both percentiles of the image are 10, so the full range 10:200 is used\n"
    );

    let shape = Shape {
        depth: Depth::Float,
        ..shape
    };
    let keys: Vec<u32> = sparse.iter().map(|&value| key(value.into())).collect();
    let file = Build::default().tag(339, 3, &[3]);
    let file = file.file(&Image::new(shape, Samples::from(keys)));
    let (run, written) = outcome("in.tif", &file, &["normalize", "--clip", "1:99"], "out.tif");
    assert!(
        run.stderr.contains("both percentiles of the image are 0"),
        "{}",
        run.stderr
    );
    assert!(words(&written.unwrap()) == found);
}

#[test]
fn values_without_data_do_not_count_in_the_range() {
    let file = Build::default().file(&grey(3, [0, 1000, 2000, 65535, 1500, 3000]));
    let with = |args: &[&str]| {
        words(&made(
            "in.tif",
            &file,
            &[&["normalize"], args].concat(),
            "out.tif",
        ))
    };
    assert_eq!(
        with(&["--ignore", "0,65535"]),
        [0, 0, 32768, 65535, 16384, 65535]
    );
    assert_eq!(
        with(&["--ignore", "65535"]),
        [0, 21845, 43690, 65535, 32768, 65535]
    );
    // Values that samples cannot have do not occur; clipping goes by the samples that are left.
    assert_eq!(
        with(&["--ignore=-5,0,70000,65535", "--clip", "0:50"]),
        [0, 0, 65535, 65535, 32768, 65535]
    );
    // 66536 is 1000 in the low 16 bits.
    assert_eq!(with(&["--ignore", "66536,0,65535"])[1], 0);
    let (run, written) = outcome(
        "in.tif",
        &Build::default().file(&grey(2, [0, 7, 7, 0])),
        &["normalize", "--ignore", "0,7"],
        "out.tif",
    );
    assert!(
        run.stderr.contains("--ignore excludes every sample"),
        "{}",
        run.stderr
    );
    assert_eq!(words(&written.unwrap()), [0, 7, 7, 0]);
    // Signed: −32768, −2, 300 and 5.
    let two = stored(&made(
        "in.tif",
        &signed(),
        &["normalize", "--ignore=-32768"],
        "out.tif",
    ));
    assert_eq!(
        two.iter().map(|&word| word as i16).collect::<Vec<_>>(),
        [-32768, 32767, -32768, -31249]
    );
    // 8 bits that become 16 are counted as 8.
    let eight = Image::new(
        Shape {
            width: 4,
            height: 1,
            channels: 1,
            depth: Depth::Eight,
        },
        Samples::from(vec![0u8, 10, 60, 20]),
    );
    let file = Build::default().file(&eight);
    let args = ["normalize", "--ignore", "0", "--depth", "16"];
    assert_eq!(
        words(&made("in.tif", &file, &args, "out.tif")),
        [0, 0, 65535, 13107]
    );
    let args = ["normalize", "--ignore", "60", "--depth", "16"];
    assert_eq!(
        words(&made("in.tif", &file, &args, "out.tif")),
        [0, 32768, 65535, 65535]
    );
}

/// A window of 400 values around 40 is −160 to 239 (DICOM PS3.3, C.11.2.1.2.1).
#[test]
fn windows_are_ranges() {
    let values: [i16; 6] = [-1000, -160, 39, 40, 239, 3000];
    let file = Build::default().tag(339, 3, &[2]);
    let file = file.file(&grey(3, values.map(|value| value as u16)));
    let with = |args: &[&str]| made("in.tif", &file, &[&["normalize"], args].concat(), "out.tif");
    assert_eq!(with(&["--window", "40:400"]), with(&["--range=-160:239"]));
    assert_eq!(with(&["--window=39:3"]), with(&["--range=38:40"]));
    for wrong in ["40:1", "40:-400", "40", "a:b", "0.5:0"] {
        let (run, _) = outcome(
            "in.tif",
            &file,
            &["normalize", "--window", wrong],
            "out.tif",
        );
        assert_eq!(run.code, 2, "{wrong}");
    }
}

#[test]
fn signs_can_be_left_off() {
    let plain = made("in.tif", &signed(), &["normalize", "--unsigned"], "out.tif");
    assert_eq!(tag(&plain, 339).unwrap_or(vec![1]), [1]);
    let kept = stored(&made("in.tif", &signed(), &["normalize"], "out.tif"));
    let moved: Vec<u16> = kept.iter().map(|word| word ^ 0x8000).collect();
    assert_eq!(stored(&plain), moved);
    // The results' values are without sign, too; in a chain what follows sees them so.
    let args = [
        "normalize",
        "--unsigned",
        "--to",
        "0:100",
        "--range=-32768:300",
    ];
    assert_eq!(
        stored(&made("in.tif", &signed(), &args, "out.tif")),
        [99, 100, 0, 99]
    );
    let args = ["run", "normalize --unsigned + normalize --range 0:65535"];
    assert_eq!(stored(&made("in.tif", &signed(), &args, "out.tif")), moved);
}

#[test]
fn a_range_without_a_value_in_it_is_told() {
    let file = Build::default().file(&grey(2, [300, 400, 9000, 500]));
    let told = |args: &[&str]| {
        let (run, written) = outcome("in.tif", &file, &[&["normalize"], args].concat(), "out.tif");
        assert_eq!(run.code, 0);
        (run.stderr, words(&written.unwrap()))
    };
    let (warning, black) = told(&["--range", "10000:20000"]);
    let expected = "gpuimg: warning: in.tif: no sample lies in the range 10000:20000: the samples range from 300 to 9000\n";
    assert_eq!((warning.as_str(), &black[..]), (expected, &[0; 4][..]));
    let (warning, split) = told(&["--window", "1000:100"]);
    assert!(warning.contains("from 300 to 9000"), "{warning}");
    assert_eq!(split, [0, 0, 65535, 0]);
    assert_eq!(told(&["--range", "9000:20000"]).0, "");
}

/// The 8-bit samples of a preview, and what it prints.
fn preview(name: &str, file: &[u8], args: &[&str]) -> (Vec<u8>, String) {
    let (run, written) = outcome(name, file, &[&["preview"], args].concat(), "look.png");
    assert_eq!(run.code, 0, "{name}: {}", run.stderr);
    assert_eq!(run.stderr.lines().count(), 1, "{name}: {}", run.stderr);
    let image = read(&written.expect("an output"));
    (image.samples().as_bytes().to_vec(), run.stderr)
}

/// Samples from 0 to 10000 in steps of 2000 are shown as 0, 51, 102, 153, 204 and 255.
const STEPS: [u16; 6] = [0, 2000, 4000, 6000, 8000, 10000];
const SHOWN: [u8; 6] = [0, 51, 102, 153, 204, 255];

#[test]
fn a_preview_of_a_stack_was_refused() {
    let pages = (0..5u16).map(|page| grey(3, STEPS.map(|step| step + page)));
    let five: Vec<Image> = pages.collect();
    let (shown, said) = preview("in.tif", &stack(&five, &Metadata::default()), &[]);
    assert_eq!(shown, SHOWN);
    assert!(
        said.contains("page 3 of 5, scaled from the range 2:10002 (--page N shows another)"),
        "{said}"
    );
    let (_, said) = preview(
        "in.tif",
        &stack(&five, &Metadata::default()),
        &["--page", "5"],
    );
    assert!(
        said.ends_with(": scaled from the range 4:10004\n"),
        "{said}"
    );
    // The first channel, the second of three slices, the first of two frames.
    let (_, said) = preview("in.tif", &hyperstack(12, HYPERSTACK), &[]);
    let expected = hyperstack_page(HYPERSTACK);
    assert!(said.contains(&format!("page {expected} of 12, ")), "{said}");
    // Pages that are not slices: the first one.
    let others = [grey(3, STEPS), grey(2, [7, 8]), grey(3, STEPS)];
    let (shown, said) = preview("in.tif", &stack(&others, &Metadata::default()), &[]);
    assert_eq!(shown, SHOWN);
    assert!(said.contains("page 1 of 3, "), "{said}");
}

/// The number of the page with the first channel, the middle slice and the middle frame.
fn hyperstack_page(description: &str) -> usize {
    let root = folder(&[("in.tif", &hyperstack(12, description))]);
    let axes = |name: &str| {
        let value = description.lines().find_map(|line| line.strip_prefix(name));
        value.map_or(1, |value| value.trim().parse::<usize>().expect("a number"))
    };
    let (z, t) = (axes("slices=").div_ceil(2), axes("frames=").div_ceil(2));
    let words = ["convert", "in.tif", "out.tif", "--axes"];
    let place = format!("C=1,Z={z},T={t}");
    let done = run(root.path(), &[&words[..], &[&place]].concat(), &[]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let out = std::fs::read(root.path().join("out.tif")).expect("a file");
    // The first sample of each page is its number, from 0.
    usize::from(pages(&out)[0].1[0]) + 1
}

#[test]
fn fits_was_shown_upside_down() {
    let upside_down = [153, 204, 255, 0, 51, 102];
    let root = folder(&[("in.tif", &stack(&[grey(3, STEPS)], &Metadata::default()))]);
    let go = |args: &[&str]| {
        let done = run(root.path(), args, &[]);
        assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
    };
    go(&["convert", "in.tif", "in.fits"]);
    let bytes = |name: &str| {
        let image = read(&std::fs::read(root.path().join(name)).expect("a file"));
        image.samples().as_bytes().to_vec()
    };
    let file = std::fs::read(root.path().join("in.fits")).expect("a file");
    assert_eq!(preview("in.fits", &file, &[]).0, upside_down);
    // Rows keep their order where the output has the same convention, and for other verbs.
    go(&[
        "normalize",
        "--auto-orient",
        "--depth",
        "8",
        "in.fits",
        "kept.png",
    ]);
    assert_eq!(bytes("kept.png"), SHOWN);
    go(&["preview", "in.fits", "look.fits"]);
    assert_eq!(bytes("look.fits"), SHOWN);
}

#[test]
fn pixels_without_data_were_measured_in_a_preview() {
    let own = |tag: u16, text: &str| Own::Tiff {
        big_endian: false,
        fields: vec![Field {
            tag,
            kind: 2,
            value: Value::Bytes([text.as_bytes(), b"\0"].concat()),
        }],
    };
    let with_gap = grey(4, [0, 1000, 2000, 3000, 4000, 5000, 6000, 65535]);
    let nodata = |text: &str| Metadata {
        own: own(42113, text),
        ..Metadata::default()
    };
    for (text, range) in [
        ("65535", "0:6000"),
        ("0", "1000:65535"),
        ("6.5535e4", "0:6000"),
        // No value of these samples.
        ("-9999", "0:65535"),
        ("nan", "0:65535"),
    ] {
        let file = stack(std::slice::from_ref(&with_gap), &nodata(text));
        let (_, said) = preview("in.tif", &file, &[]);
        assert!(said.contains(&format!("range {range}\n")), "{text}: {said}");
    }
    // As signed samples, with a rescaling to the values of the file: −2000 is −3024.
    let samples: Vec<u8> = [-2000i16, 0, 100, 200, 300, 1000]
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    let ct = crate::support::dicom::Build {
        signed: true,
        ..Default::default()
    };
    let ct = ct.text((0x28, 0x1052), "-1024").text((0x28, 0x1053), "1");
    let padded = ct
        .clone()
        .numbers((0x28, 0x120), b"SS", &[(-2000i16) as u16]);
    for (file, range) in [
        (ct.file(&samples, None), "-3024:-24"),
        (padded.file(&samples, None), "-1024:-24"),
    ] {
        let (_, said) = preview("in.dcm", &file, &[]);
        assert!(said.contains(&format!("range {range}\n")), "{said}");
    }
    // BLANK is the sample in the file, and BZERO makes it a value.
    let records = [
        "SIMPLE  =                    T",
        "BITPIX  =                   16",
        "NAXIS   =                    2",
        "NAXIS1  =                    3",
        "NAXIS2  =                    2",
        "BZERO   =                32768",
        "BLANK   =                32767",
        "END",
    ];
    let mut fits: Vec<u8> = records
        .iter()
        .flat_map(|record| format!("{record:<80}").into_bytes())
        .collect();
    fits.resize(2880, b' ');
    fits.extend(
        [5u16, 10, 20, 30, 40, 65535]
            .iter()
            .flat_map(|value| (value ^ 0x8000).to_be_bytes()),
    );
    fits.resize(2 * 2880, 0);
    let (_, said) = preview("in.fits", &fits, &[]);
    assert!(said.contains("range 5:40\n"), "{said}");
}

#[test]
fn a_preview_needs_no_alpha_and_no_white_for_0() {
    // Grey with alpha: alpha is left out.
    let with_alpha = Shape {
        width: 3,
        height: 2,
        channels: 2,
        depth: Depth::Sixteen,
    };
    let samples: Vec<u16> = STEPS.iter().flat_map(|&step| [step, 7]).collect();
    let image = Image::new(with_alpha, Samples::from(samples));
    let file = stack(&[image], &Metadata::default());
    assert_eq!(preview("in.tif", &file, &[]).0, SHOWN);
    let white = Metadata {
        white_is_zero: true,
        ..Metadata::default()
    };
    let (shown, said) = preview("in.tif", &stack(&[grey(3, STEPS)], &white), &[]);
    assert_eq!(shown, SHOWN.map(|sample| 255 - sample));
    assert!(said.contains("range 0:10000\n"), "{said}");
    for metadata in [Metadata::default(), white] {
        let file = stack(&[grey(3, STEPS)], &metadata);
        let (done, written) = outcome("in.tif", &file, &["preview"], "look.jpg");
        assert_eq!(done.code, 0, "{}", done.stderr);
        assert!(written.is_some_and(|jpeg| jpeg.starts_with(b"\xFF\xD8")));
    }
}

#[test]
fn previews_in_a_folder_are_jpeg_files() {
    let tiff = stack(&[grey(3, STEPS)], &Metadata::default());
    let ct =
        crate::support::dicom::Build::default().file(&STEPS.map(u16::to_le_bytes).concat(), None);
    let root = folder(&[("in/a.tif", &tiff), ("in/b.dcm", &ct)]);
    let names = |args: &[&str], out: &str| {
        let done = run(root.path(), &[&["preview", "in", out], args].concat(), &[]);
        assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
        let entries = std::fs::read_dir(root.path().join(out)).expect("a folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into()).collect();
        names.retain(|name| !name.starts_with('.'));
        names.sort();
        names
    };
    assert_eq!(names(&[], "looks"), ["a.jpg", "b.jpg"]);
    assert_eq!(names(&["--format", "png"], "pngs"), ["a.png", "b.png"]);
    assert_eq!(
        names(&["--name", "{stem}_s.bmp"], "others"),
        ["a_s.bmp", "b_s.bmp"]
    );
}
