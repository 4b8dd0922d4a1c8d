//! Debayer: a literal worked out by hand, an oracle in NumPy, naive → rayon, laws, refused mosaics, and the verb.

use crate::support::contract::{tag, text, words};
use crate::support::formats::read;
use crate::support::tiff::Build;
use crate::support::{KINDS, Kind, Numbers, folder, grey, image, key, on_cpu, run};
use gpuimg::internals::image::{Depth, Image, Samples, Shape};
use gpuimg::internals::ops::debayer::{Debayer, Method, Pattern};
use gpuimg::internals::ops::symmetry::Symmetry;
use gpuimg::internals::ops::{self, OpResult, Operation};
use std::fs;

const PATTERNS: [Pattern; 4] = [Pattern::Rggb, Pattern::Bggr, Pattern::Grbg, Pattern::Gbrg];
const METHODS: [Method; 2] = [Method::Bilinear, Method::Malvar];

/// Sizes around those of lanes (16 pixels) and bands (16 rows), odd ones, and the smallest.
const SIZES: [(usize, usize); 11] = [
    (2, 2),
    (3, 2),
    (2, 3),
    (3, 3),
    (4, 5),
    (15, 17),
    (16, 16),
    (17, 15),
    (33, 31),
    (2, 129),
    (131, 2),
];

fn naive(op: &Debayer, mosaic: &Image) -> Image {
    match ops::naive(op, mosaic).expect("a mosaic").result {
        OpResult::Image(image) => image,
        numbers => panic!("{numbers:?}"),
    }
}

fn sixteen_bits(image: &Image) -> &[u16] {
    match image.samples() {
        Samples::U16(samples) => samples,
        _ => panic!("16 bits were expected"),
    }
}

/// A mosaic of 7×5 pixels with large differences, as `mosaic` of the oracle.
fn mosaic() -> Image {
    let rows = std::array::from_fn(|y| {
        std::array::from_fn(|x| ((7 * y + x) as u32 * 40503 + 12345) as u16)
    });
    grey::<7, 5>(rows)
}

/// RGGB, bilinear.
#[rustfmt::skip]
const RGGB_BILINEAR: [u16; 105] = [
    12345, 43285, 8689, 20080, 52848, 8689, 27815, 38504, 16424, 35550, 2782, 24159, 43285, 37590, 31894, 51020, 18252, 39629, 58755, 16424, 39629,
    33722, 33722, 8689, 25073, 41457, 8689, 16424, 49192, 16424, 24159, 40543, 24159, 31894, 64662, 31894, 39629, 39629, 39629, 47364, 14596, 39629,
    55099, 26199, 30066, 30066, 30066, 30066, 5033, 37801, 21417, 12768, 45536, 12768, 20503, 53271, 20503, 28238, 61006, 28238, 35973, 48490, 28238,
    43708, 10940, 51443, 35059, 18675, 51443, 26410, 26410, 26410, 34145, 34145, 1377, 41880, 41880, 9112, 33231, 49615, 16847, 24582, 57350, 16847,
    32317, 9112, 51443, 40052, 7284, 51443, 47787, 20715, 26410, 55522, 22754, 1377, 63257, 36185, 9112, 38224, 38224, 16847, 13191, 47787, 16847,
];

/// RGGB, malvar.
#[rustfmt::skip]
const RGGB_MALVAR: [u16; 105] = [
    12345, 28729, 0, 29186, 52848, 16951, 27815, 44199, 24967, 5630, 2782, 0, 43285, 43285, 40437, 47610, 18252, 17285, 58755, 25987, 53974,
    34636, 33722, 0, 14156, 34179, 8689, 27464, 49192, 23192, 28431, 43391, 24159, 47030, 64662, 55046, 46801, 44411, 39629, 35762, 14596, 17268,
    55099, 46907, 61129, 28132, 30066, 31033, 5033, 21417, 0, 8672, 45536, 20960, 20503, 45079, 8215, 34268, 61006, 43655, 35973, 52357, 34039,
    38927, 10940, 45132, 52463, 30278, 51443, 23562, 26410, 27834, 17585, 23105, 1377, 39032, 41880, 10536, 31860, 48701, 16847, 31860, 57350, 21910,
    32317, 0, 37099, 35271, 7284, 41019, 47787, 31403, 42443, 52674, 22754, 0, 63257, 55065, 37433, 37310, 38224, 4489, 13191, 29575, 0,
];

/// GBRG, malvar.
#[rustfmt::skip]
const GBRG_MALVAR: [u16; 105] = [
    26795, 12345, 56153, 59388, 26338, 52848, 60583, 27815, 30663, 28606, 10974, 2782, 65535, 43285, 13365, 26497, 36570, 18252, 27921, 58755, 28835,
    33722, 20186, 39927, 34003, 8689, 28888, 49192, 19272, 37080, 55503, 24159, 27007, 64662, 42934, 48454, 40139, 39629, 41510, 14596, 25636, 12838,
    36781, 55099, 51003, 27165, 28132, 30066, 25513, 5033, 25513, 57824, 20960, 45536, 45079, 20503, 57367, 59811, 38364, 61006, 37907, 35973, 65535,
    10940, 40860, 8602, 30453, 51443, 29082, 26410, 23562, 22138, 10993, 1377, 19009, 41880, 22648, 37608, 44781, 16847, 37608, 57350, 29926, 63433,
    0, 32317, 0, 7231, 38118, 7284, 47787, 47787, 20363, 25602, 22754, 22754, 65535, 63257, 60409, 43972, 23774, 38224, 56085, 13191, 26727,
];

#[test]
fn a_mosaic_by_hand() {
    let mosaic = grey([[1, 2, 4, 8], [3, 9, 5, 7], [6, 0, 10, 11], [13, 2, 12, 15]]);
    let op = Debayer {
        pattern: Pattern::Rggb,
        method: Method::Bilinear,
    };
    // The red one of the third pixel of the second row is the mean of 4 and 10, its blue one that of 9 and 7.
    #[rustfmt::skip]
    let expected = [
        1, 3, 9,   3, 2, 9,   4, 5, 8,    4, 8, 7,
        4, 3, 9,   5, 3, 9,   7, 5, 8,    7, 7, 7,
        6, 4, 6,   8, 0, 6,   10, 7, 8,   10, 11, 11,
        6, 13, 2,  8, 6, 2,   10, 12, 9,  10, 12, 15,
    ];
    assert_eq!(sixteen_bits(&naive(&op, &mosaic)), expected);
    assert_eq!(sixteen_bits(&on_cpu(&op, &mosaic)), expected);
}

/// The centre of 5×5 pixels by figure 2 of the paper: red where blue is 100 among zeros is 100·6/8, green 100·4/8. Where
/// green is 100, both others are 100·5/8. A single bright neighbour at a distance of two pixels is subtracted, and the
/// result is clamped.
#[test]
fn the_weights_of_the_paper() {
    let mut centre = [[0; 5]; 5];
    centre[2][2] = 100;
    let rgb = |pattern, rows| {
        let method = Method::Malvar;
        let result = on_cpu(&Debayer { pattern, method }, &grey(rows));
        let start = 3 * (2 * 5 + 2);
        sixteen_bits(&result)[start..start + 3].to_vec()
    };
    assert_eq!(rgb(Pattern::Bggr, centre), [75, 50, 100]);
    assert_eq!(rgb(Pattern::Rggb, centre), [100, 50, 75]);
    assert_eq!(rgb(Pattern::Grbg, centre), [63, 100, 63]);
    let mut beside = [[0; 5]; 5];
    beside[2][3] = 100;
    // The right neighbour of green in a red row is red: 4/8. Its kernel for blue has no weight there.
    assert_eq!(rgb(Pattern::Grbg, beside), [50, 0, 0]);
    let mut far = [[0; 5]; 5];
    far[2][4] = 100;
    assert_eq!(rgb(Pattern::Grbg, far), [0, 0, 6]);
    assert_eq!(rgb(Pattern::Rggb, far), [0, 0, 0]);
}

/// The values are those of a definition by colour masks in NumPy, with `np.pad(mode="reflect")` at the border.
#[test]
fn an_oracle_in_numpy() {
    let result = |pattern, method| on_cpu(&Debayer { pattern, method }, &mosaic());
    for (pattern, method, expected) in [
        (Pattern::Rggb, Method::Bilinear, RGGB_BILINEAR),
        (Pattern::Rggb, Method::Malvar, RGGB_MALVAR),
        (Pattern::Gbrg, Method::Malvar, GBRG_MALVAR),
    ] {
        let result = result(pattern, method);
        assert_eq!(sixteen_bits(&result), expected, "{pattern:?}, {method:?}");
    }
    for (pattern, method, sums) in [
        (
            Pattern::Rggb,
            Method::Bilinear,
            [1_184_160, 1_216_931, 856_480],
        ),
        (
            Pattern::Rggb,
            Method::Malvar,
            [1_163_682, 1_225_572, 858_190],
        ),
        (
            Pattern::Bggr,
            Method::Bilinear,
            [856_480, 1_216_931, 1_184_160],
        ),
        (
            Pattern::Bggr,
            Method::Malvar,
            [858_190, 1_225_572, 1_163_682],
        ),
        (
            Pattern::Grbg,
            Method::Bilinear,
            [1_151_392, 1_053_093, 1_348_000],
        ),
        (
            Pattern::Grbg,
            Method::Malvar,
            [1_167_869, 1_028_512, 1_346_241],
        ),
        (
            Pattern::Gbrg,
            Method::Bilinear,
            [1_348_000, 1_053_093, 1_151_392],
        ),
        (
            Pattern::Gbrg,
            Method::Malvar,
            [1_346_241, 1_028_512, 1_167_869],
        ),
    ] {
        let result = result(pattern, method);
        let mut found = [0u32; 3];
        for pixel in sixteen_bits(&result).chunks_exact(3) {
            for (sum, &sample) in found.iter_mut().zip(pixel) {
                *sum += u32::from(sample);
            }
        }
        assert_eq!(found, sums, "{pattern:?}, {method:?}");
    }
}

#[test]
fn every_depth_size_and_pattern_gives_what_the_definition_says() {
    let mut cases = 0;
    for (width, height) in SIZES {
        for depth in Depth::ALL {
            for kind in KINDS {
                let mosaic = image(width, height, 1, depth, kind);
                for pattern in PATTERNS {
                    for method in METHODS {
                        let op = Debayer { pattern, method };
                        let expected = naive(&op, &mosaic);
                        let found = on_cpu(&op, &mosaic);
                        assert!(
                            found == expected,
                            "{op:?} of {width}×{height}, {depth}, {kind:?}"
                        );
                        cases += 1;
                    }
                }
            }
        }
    }
    assert_eq!(cases, 11 * 5 * 4 * 4 * 2);
}

/// Sums of floating point are neither clamped nor rounded to whole numbers; the sample of a pixel's own colour keeps its
/// bits, even those of a NaN.
#[test]
fn floating_point_by_hand() {
    let nan = 0xffc0_1234;
    let values = [1.5f32, -2.0, 0.25, 1e30];
    let mut keys: Vec<u32> = values.map(key).to_vec();
    keys[3] = nan;
    let shape = Shape {
        width: 2,
        height: 2,
        channels: 1,
        depth: Depth::Float,
    };
    let mosaic = Image::new(shape, keys.into());
    let op = Debayer {
        pattern: Pattern::Rggb,
        method: Method::Bilinear,
    };
    let result = on_cpu(&op, &mosaic);
    let Samples::U32(found) = result.samples() else {
        panic!("keys were expected")
    };
    // Green of the red pixel: −2 beside it and 0.25 below it, each twice.
    assert_eq!(found[..2], [key(1.5), key(-0.875)]);
    assert_eq!(found[11], nan);
    assert_eq!(found[9..11], [key(1.5), key(-0.875)]);
}

#[test]
fn flat_mosaics_stay_flat_and_own_samples_are_kept() {
    let colours = [
        (Pattern::Rggb, [0, 1, 1, 2]),
        (Pattern::Bggr, [2, 1, 1, 0]),
        (Pattern::Grbg, [1, 0, 2, 1]),
        (Pattern::Gbrg, [1, 2, 0, 1]),
    ];
    for (pattern, colours) in colours {
        for method in METHODS {
            let op = Debayer { pattern, method };
            let flat = image(19, 18, 1, Depth::Sixteen, Kind::Flat);
            assert!(sixteen_bits(&on_cpu(&op, &flat)).iter().all(|&it| it == 77));
            let noise = image(19, 18, 1, Depth::Sixteen, Kind::Noise);
            let result = on_cpu(&op, &noise);
            for (index, &sample) in sixteen_bits(&noise).iter().enumerate() {
                let (y, x) = (index / 19, index % 19);
                let colour = colours[2 * (y % 2) + x % 2];
                assert_eq!(sixteen_bits(&result)[3 * index + colour], sample);
            }
        }
    }
}

/// A turned mosaic has a turned pattern. Whole numbers may be added in any order.
#[test]
fn mosaics_can_be_turned_before_or_after() {
    let mosaic = image(24, 18, 1, Depth::Sixteen, Kind::Noise);
    let turned = [
        (Symmetry::Rotate180, Pattern::Rggb, Pattern::Bggr),
        (Symmetry::FlipHorizontal, Pattern::Rggb, Pattern::Grbg),
        (Symmetry::FlipVertical, Pattern::Rggb, Pattern::Gbrg),
        (Symmetry::Transpose, Pattern::Grbg, Pattern::Gbrg),
        (Symmetry::Rotate90, Pattern::Rggb, Pattern::Grbg),
    ];
    for (symmetry, before, after) in turned {
        for method in METHODS {
            let op = |pattern| Debayer { pattern, method };
            let first = on_cpu(&symmetry, &on_cpu(&op(before), &mosaic));
            let last = on_cpu(&op(after), &on_cpu(&symmetry, &mosaic));
            assert!(first == last, "{symmetry:?}, {method:?}");
        }
    }
}

/// A binary PGM of 16 bits with random samples.
fn pgm(width: usize, height: usize) -> Vec<u8> {
    let mut numbers = Numbers::new(11);
    let mut file = format!("P5 {width} {height} 65535\n").into_bytes();
    file.extend((0..2 * width * height).map(|_| (numbers.next() >> 20) as u8));
    file
}

/// The sentence of the plan.
#[test]
fn a_gpu_is_not_used_for_wide_samples() {
    for method in METHODS {
        let op = Debayer {
            pattern: Pattern::Rggb,
            method,
        };
        for (depth, words) in [
            (Depth::Eight, None),
            (Depth::Sixteen, None),
            (
                Depth::Float,
                Some("the GPU does not support debayer for 32-bit samples"),
            ),
        ] {
            let mosaic = image(4, 4, 1, depth, Kind::Noise);
            assert_eq!(op.gpu_obstacle(&mosaic.shape()), words);
        }
    }
}

#[test]
fn images_without_a_mosaic_are_refused() {
    let rgb = b"P6 2 2 255\n123456789abc";
    let white = Build::default()
        .tag(262, 3, &[0])
        .file(&image(4, 4, 1, Depth::Eight, Kind::Noise));
    let root = folder(&[
        ("row.pgm", &pgm(5, 1)),
        ("column.pgm", &pgm(1, 5)),
        ("dot.pgm", &pgm(1, 1)),
        ("rgb.ppm", rgb),
        ("white.tif", &white),
    ]);
    for (input, words) in [
        ("row.pgm", "it has 5×1 pixels, in which a colour is missing"),
        (
            "column.pgm",
            "it has 1×5 pixels, in which a colour is missing",
        ),
        ("dot.pgm", "it has 1×1 pixels, in which a colour is missing"),
        ("rgb.ppm", "it is RGB, but the mosaic of a sensor is grey"),
        ("white.tif", "0 is white in it, but black in RGB"),
    ] {
        let done = run(root.path(), &["debayer", "RGGB", input, "out.tif"], &[]);
        assert_eq!(done.code, 1, "{input}");
        let start = format!("gpuimg: cannot debayer {input}: ");
        assert!(
            done.stderr.starts_with(&start) && done.stderr.contains(words),
            "{}",
            done.stderr
        );
        assert!(!root.path().join("out.tif").exists());
    }
    let done = run(root.path(), &["debayer", "RGBG", "row.pgm", "out.tif"], &[]);
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("RGGB"), "{}", done.stderr);
}

/// The verb, the step and the library give the bytes of the definition.
#[test]
fn the_verb_and_the_step() {
    let mosaic = image(40, 30, 1, Depth::Sixteen, Kind::Noise);
    let root = folder(&[("raw.tif", &Build::default().file(&mosaic))]);
    let go = |words: &[&str]| {
        let done = run(root.path(), words, &[]);
        assert_eq!((done.code, &*done.stderr), (0, ""), "{words:?}");
        let output = words.last().expect("an output");
        fs::read(root.path().join(output)).expect("a file")
    };
    let op = Debayer {
        pattern: Pattern::Grbg,
        method: Method::Malvar,
    };
    let expected = naive(&op, &mosaic);
    let file = go(&["debayer", "grbg", "--method", "malvar", "raw.tif", "a.tif"]);
    assert!(read(&file).expect("a TIFF").0 == expected);
    let file = go(&[
        "run",
        "debayer GRBG --method malvar + flip vertical",
        "raw.tif",
        "b.png",
    ]);
    let flipped = on_cpu(&Symmetry::FlipVertical, &expected);
    assert!(read(&file).expect("a PNG").0 == flipped);
    let done = run(
        root.path(),
        &["debayer", "GRBG", "raw.tif", "d.tif", "--depth", "8"],
        &[],
    );
    assert_eq!((done.code, &*done.stderr), (0, ""));
    let eight = fs::read(root.path().join("d.tif")).expect("a file");
    assert_eq!(tag(&eight, 258), Some(vec![8, 8, 8]));
    let done = run(
        root.path(),
        &[
            "debayer",
            "GRBG",
            "raw.tif",
            "e.tif",
            "--dry-run",
            "--verbose",
        ],
        &[],
    );
    assert_eq!(done.code, 0, "{}", done.stderr);
    for line in [
        "steps     debayer",
        "memory    whole image (debayer needs it)",
        "output    40×30 RGB, 16 bits",
    ] {
        assert!(done.stdout.contains(line), "{}", done.stdout);
    }
}

/// What describes grey samples is left out, and the rest is kept.
#[test]
fn metadata_of_a_mosaic_describe_the_result() {
    let mosaic = image(6, 4, 1, Depth::Eight, Kind::Noise);
    let plain = Build::default().file(&mosaic);
    assert_eq!(tag(&plain, 277).unwrap_or(vec![1]), [1]);
    let file = Build::default()
        .tag(269, 2, &[109, 111, 115, 0])
        .tag(280, 3, &[0])
        .tag(34675, 7, &[1, 2, 3])
        .tag(33421, 3, &[2, 2])
        .tag(33422, 1, &[0, 1, 1, 2])
        .file(&mosaic);
    let root = folder(&[("raw.tif", &file)]);
    let done = run(
        root.path(),
        &["debayer", "RGGB", "raw.tif", "rgb.tif", "-v"],
        &[],
    );
    assert_eq!(done.code, 0, "{}", done.stderr);
    let made = fs::read(root.path().join("rgb.tif")).expect("a file");
    assert_eq!(tag(&made, 262), Some(vec![2]));
    assert_eq!(text(&made, 269).as_deref(), Some("mos"));
    for number in [280, 34675, 33421, 33422] {
        assert_eq!(tag(&made, number), None, "{number}");
        let note = format!("tag {number} is left out: it describes the previous");
        assert!(done.stderr.contains(&note), "{number}: {}", done.stderr);
    }
    assert_eq!(words(&made).len(), 6 * 4 * 3);
}
