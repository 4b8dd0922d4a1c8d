//! Samples of 32 bits: integers and floating point. Normalize and sum against whole numbers of any
//! length, percentiles against sorted samples, turns against their definition, and what is said of
//! samples that are no numbers.

mod files;
mod kernels;

use crate::support::{Numbers, SIZES, image, key};
use gpuimg::internals::engine::executor;
use gpuimg::internals::image::number::{self, Number};
use gpuimg::internals::image::{Depth, Image, Samples, Shape};
use gpuimg::internals::ops::clip::Clip;
use gpuimg::internals::ops::exact::Exact;
use gpuimg::internals::ops::normalize::{Normalize, Range};
use gpuimg::internals::ops::sum::Sum;
use gpuimg::internals::ops::symmetry::Symmetry;
use gpuimg::internals::ops::{Executed, OpResult, Operation, naive};
use gpuimg::internals::timing::Timeline;
use num_bigint::BigInt;

/// A floating-point number as a whole number of 2⁻¹⁴⁹.
fn exact(value: f32) -> BigInt {
    let bits = value.to_bits();
    let (exponent, fraction) = (bits >> 23 & 0xff, bits & 0x7f_ffff);
    let whole = match exponent {
        0 => BigInt::from(fraction),
        255 => panic!("no finite number"),
        _ => BigInt::from(fraction | 1 << 23) << (exponent - 1),
    };
    if bits >> 31 == 1 { -whole } else { whole }
}

/// The value of a sample in memory, in steps that are the same for all of a depth.
fn value(depth: Depth, sample: u32) -> BigInt {
    match depth {
        Depth::Float => exact(number::from_key(sample)),
        _ => sample.into(),
    }
}

/// ⌊(clamp(p) − min)·(hi − lo)/(max − min) + 1/2⌋ + lo.
fn stretched(p: &BigInt, (min, max): (&BigInt, &BigInt), (lo, hi): (u16, u16)) -> u16 {
    let x = p.clamp(min, max) - min;
    let d = max - min;
    let k: BigInt = (2 * x * (hi - lo) + &d) / (2 * d);
    lo + u16::try_from(k).expect("16 bits")
}

pub fn of(width: usize, height: usize, channels: usize, depth: Depth, samples: Vec<u32>) -> Image {
    let shape = Shape {
        width,
        height,
        channels,
        depth,
    };
    Image::new(shape, Samples::from(samples))
}

fn floats<const N: usize>(values: [f32; N]) -> Image {
    of(N, 1, 1, Depth::Float, values.map(key).to_vec())
}

fn words(result: OpResult) -> Vec<u16> {
    match result {
        OpResult::Image(image) => match image.samples() {
            Samples::U16(words) => words.to_vec(),
            _ => panic!("16 bits were expected"),
        },
        _ => panic!("an image was expected"),
    }
}

fn cpu(op: &dyn Operation, image: &Image) -> anyhow::Result<Executed> {
    executor::on_cpu(op, image.clone(), &mut Timeline::default())
}

/// Kinds of finite samples, by what is hard about them.
const KINDS: [&str; 7] = [
    "integers",
    "any exponent",
    "unit",
    "ties",
    "subnormal",
    "ends",
    "far apart",
];

fn numbers(kind: &str, count: usize, seed: u64) -> (Depth, Vec<u32>) {
    let mut random = Numbers::new(seed);
    let mut next = || (random.next() >> 16) as u32;
    let samples: Vec<u32> = (0..count)
        .map(|i| match kind {
            "integers" => next(),
            "any exponent" => loop {
                let bits = next();
                if f32::from_bits(bits).is_finite() {
                    break number::key(bits);
                }
            },
            "unit" => key((next() >> 8) as f32 / (1 << 24) as f32),
            // From 0 to 131070: every odd number lies between two results.
            "ties" if i < 2 => key([0.0, 131_070.0][i]),
            "ties" => key((next() % 131_071) as f32),
            "subnormal" => number::key(next() & 0x8000_ffff),
            "ends" => key([f32::MIN, f32::MAX, 0.0, -0.0, 1e38, -3.1e38][next() as usize % 6]),
            "far apart" if i == 0 => key(-1e-40),
            "far apart" => key(1e-40 * (next() % 1000) as f32),
            _ => unreachable!(),
        })
        .collect();
    let depth = match kind {
        "integers" => Depth::ThirtyTwo,
        _ => Depth::Float,
    };
    (depth, samples)
}

/// Both ways give what whole numbers of any length give: every kind, number of channels and option.
#[test]
fn normalize_is_exact() {
    let (mut cases, mut samples_seen) = (0, 0);
    let to = Range::from_integers(7, 250);
    for kind in KINDS {
        for (width, height) in [(2, 1), (7, 5), (97, 31)] {
            for channels in 1..=4 {
                for (per_channel, clip, to) in [
                    (false, None, None),
                    (true, None, None),
                    (false, None, Some(to)),
                    (false, Some(Clip::from_percentages(5, 90)), None),
                    (true, Some(Clip::from_percentages(5, 90)), Some(to)),
                ] {
                    let (depth, samples) = numbers(kind, width * height * channels, cases as u64);
                    let image = of(width, height, channels, depth, samples.clone());
                    let op = Normalize {
                        per_channel,
                        clip,
                        to,
                        ..Normalize::default()
                    };
                    let what = format!("{kind}, {:?}, {op:?}", image.shape());
                    let colours = image.shape().colours();
                    let target = if to.is_some() { (7, 250) } else { (0, 65535) };
                    let group = |c: usize| if per_channel { c..c + 1 } else { 0..colours };
                    let range = |channel: usize| {
                        let mut all: Vec<u32> = samples.clone();
                        let mut index = 0;
                        all.retain(|_| {
                            index += 1;
                            group(channel).contains(&((index - 1) % channels))
                        });
                        all.sort_unstable();
                        let (low, high) = match clip {
                            Some(_) => (
                                5 * (all.len() - 1) / 100,
                                (90 * (all.len() - 1)).div_ceil(100),
                            ),
                            None => (0, all.len() - 1),
                        };
                        (value(depth, all[low]), value(depth, all[high]))
                    };
                    let ranges: Vec<(BigInt, BigInt)> = (0..colours).map(range).collect();
                    let top = match depth {
                        Depth::Float => exact(1.0),
                        _ => u32::MAX.into(),
                    };
                    let step = match depth {
                        Depth::Float => exact(1.0),
                        _ => 1.into(),
                    };
                    let (zero, most) = (BigInt::ZERO, 65535 * step);
                    let expected: Vec<u16> = (samples.iter().enumerate())
                        .map(|(i, &sample)| {
                            let p = value(depth, sample);
                            match i % channels {
                                alpha if alpha >= colours => {
                                    stretched(&p, (&zero, &top), (0, 65535))
                                }
                                colour => match &ranges[colour] {
                                    (min, max) if min == max => {
                                        stretched(&p, (&zero, &most), (0, 65535))
                                    }
                                    (min, max) => stretched(&p, (min, max), target),
                                },
                            }
                        })
                        .collect();
                    let found = cpu(&op, &image).expect(&what);
                    let defined = naive(&op, &image).expect(&what);
                    assert_eq!(words(found.result), expected, "{what}");
                    assert_eq!(words(defined.result), expected, "by definition: {what}");
                    assert_eq!(found.summary, defined.summary, "{what}");
                    cases += 1;
                    samples_seen += expected.len();
                }
            }
        }
    }
    assert_eq!(cases, 7 * 3 * 4 * 5);
    assert!(samples_seen > 1_000_000, "{samples_seen}");
}

/// 3 × 2 by hand: 65535/131070 is a half, and halves round up.
#[test]
fn three_by_two_by_hand() {
    let six = |values: [f32; 6]| of(3, 2, 1, Depth::Float, values.map(key).to_vec());
    let made = |image: &Image| words(cpu(&Normalize::default(), image).expect("memory").result);
    let ties = six([0.0, 1.0, 2.0, 3.0, 131_069.0, 131_070.0]);
    assert_eq!(made(&ties), [0, 1, 1, 2, 65535, 65535]);
    // The whole of what there is: 0 is in the middle, 32767.5, and rounds up; −0 is 0.
    let ends = six([
        f32::MIN,
        -0.0,
        0.0,
        f32::from_bits(1),
        -f32::from_bits(1),
        f32::MAX,
    ]);
    assert_eq!(made(&ends), [0, 32768, 32768, 32768, 32767, 65535]);
    // Steps of 2⁻¹⁴⁹: 0, 1, 2, 3, 4 of 4.
    let tiny = [0, 1, 2, 3, 4, 4].map(f32::from_bits);
    assert_eq!(made(&six(tiny)), [0, 16384, 32768, 49151, 65535, 65535]);
    let integers = of(
        3,
        2,
        1,
        Depth::ThirtyTwo,
        vec![0, 1, 65536, 65537, u32::MAX - 1, u32::MAX],
    );
    assert_eq!(made(&integers), [0, 0, 1, 1, 65535, 65535]);
    // 65535/(2³² − 1) is 1/65537: 32768 lies below a half, 32769 above.
    let halves = of(4, 1, 1, Depth::ThirtyTwo, vec![0, 32768, 32769, u32::MAX]);
    assert_eq!(made(&halves), [0, 0, 1, 65535]);
}

/// Values that 16 bits have give what they give as 16 bits: as integers, and as floating point.
#[test]
fn what_fits_sixteen_bits_gives_the_same() {
    let mut cases = 0;
    for kind in crate::support::KINDS {
        for channels in [1, 3] {
            let narrow = image(61, 37, channels, Depth::Sixteen, kind);
            let Samples::U16(values) = narrow.samples() else {
                panic!("16 bits")
            };
            for per_channel in [false, true] {
                let op = Normalize {
                    per_channel,
                    ..Normalize::default()
                };
                let expected = words(cpu(&op, &narrow).expect("memory").result);
                let whole = values.iter().map(|&value| value.into()).collect();
                let real = values.iter().map(|&value| key(value.into())).collect();
                for (depth, samples) in [(Depth::ThirtyTwo, whole), (Depth::Float, real)] {
                    let found = cpu(&op, &of(61, 37, channels, depth, samples)).expect("memory");
                    assert_eq!(
                        words(found.result),
                        expected,
                        "{kind:?} {channels} {depth:?}"
                    );
                    cases += 1;
                }
            }
        }
    }
    assert_eq!(cases, 4 * 2 * 2 * 2);
}

/// Many samples, in several chunks, with single ones that are hard in the midst: as the definition.
#[test]
fn large_images() {
    for kind in ["any exponent", "ties", "integers"] {
        let (width, height) = (1013, 701);
        let (depth, samples) = numbers(kind, width * height, 5);
        let image = of(width, height, 1, depth, samples);
        for clip in [None, Some(Clip::from_percentages(1, 98))] {
            let op = Normalize {
                clip,
                ..Normalize::default()
            };
            let (found, defined) = (cpu(&op, &image), naive(&op, &image));
            assert_eq!(found.expect("memory"), defined.expect("memory"), "{kind}");
        }
        for all in [false, true] {
            let op = Sum { all, nan: None };
            let found = cpu(&op, &image).expect("memory");
            let mut whole = BigInt::ZERO;
            let Samples::U32(samples) = image.samples() else {
                panic!("32 bits")
            };
            samples
                .iter()
                .for_each(|&sample| whole += value(depth, sample));
            let OpResult::Totals(totals) = &found.result else {
                panic!("totals were expected")
            };
            match totals.channels[0].sum {
                Exact::Whole(sum) => assert_eq!(BigInt::from(sum), whole),
                Exact::Real(sum) => assert_eq!(sum.to_f64(), nearest(&whole), "{kind}"),
                Exact::Double(_) => panic!("sums of 32 bits were expected"),
            }
            assert_eq!(found, naive(&op, &image).expect("memory"));
            for threads in [1, 3] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                let again = pool.expect("threads").install(|| cpu(&op, &image));
                assert_eq!(again.expect("memory"), found, "{threads} threads");
            }
        }
    }
}

/// The f64 that is nearest to a whole number of 2⁻¹⁴⁹, by way of its decimals, which Rust reads exactly.
fn nearest(steps: &BigInt) -> f64 {
    // steps·2⁻¹⁴⁹ = steps·5¹⁴⁹·10⁻¹⁴⁹.
    let decimal = steps * BigInt::from(5).pow(149);
    format!("{decimal}e-149").parse().expect("a number")
}

#[test]
fn sums_by_hand() {
    let sum = |image: &Image| {
        let op = Sum {
            all: true,
            nan: None,
        };
        match cpu(&op, image).expect("memory").result {
            OpResult::Totals(totals) => {
                let line = totals.text("a".as_ref());
                let json = totals.json("a".as_ref()).expect("text");
                (
                    line,
                    serde_json::from_str::<serde_json::Value>(&json).expect("JSON"),
                )
            }
            _ => panic!("totals were expected"),
        }
    };
    // What an f32 or an f64 that adds one after the other loses.
    let (line, json) = sum(&floats([f32::MAX, 1.0, f32::from_bits(1), f32::MIN]));
    assert_eq!(
        line,
        "a: sum 1, min -3.4028235e38, max 3.4028235e38, mean 0.25"
    );
    assert_eq!((&json["sum"], &json["float"]), (&1.0.into(), &true.into()));
    let (line, _) = sum(&floats([0.1, 0.2, 0.7, -0.0]));
    assert!(line.starts_with("a: sum 0.99999999254"), "{line}");
    let (line, json) = sum(&of(2, 1, 1, Depth::ThirtyTwo, vec![u32::MAX; 2]));
    assert_eq!(
        line,
        "a: sum 8589934590, min 4294967295, max 4294967295, mean 4294967295.0000"
    );
    assert_eq!(
        (&json["max"], &json["float"]),
        (&u32::MAX.into(), &serde_json::Value::Null)
    );
}

/// NaN and infinities are refused with their number, or replaced by a value that does not count in the
/// range.
#[test]
fn samples_that_are_no_numbers() {
    let image = floats([
        f32::NAN,
        1.0,
        f32::INFINITY,
        3.0,
        -f32::NAN,
        f32::NEG_INFINITY,
    ]);
    let normal = |nan, range, clip| Normalize {
        nan,
        range,
        clip,
        ..Normalize::default()
    };
    let range = Some(Range::from_integers(0, 4).into());
    let clip = Some(Clip::from_percentages(0, 100));
    for op in [
        normal(None, None, None),
        normal(None, range, None),
        normal(None, None, clip),
    ] {
        for made in [cpu(&op, &image), naive(&op, &image)] {
            let text = format!("{:#}", made.expect_err("refused"));
            let words = "4 of its samples are NaN or infinite (use --nan VALUE to replace them, e.g. --nan 0)";
            assert_eq!(text, words);
        }
    }
    for (nan, range, clip, expected) in [
        (2.0, None, None, [32768, 0, 32768, 65535, 32768, 32768]),
        (-7.0, None, None, [0, 0, 0, 65535, 0, 0]),
        (9.0, None, clip, [65535, 0, 65535, 65535, 65535, 65535]),
        (2.0, range, None, [32768, 16384, 32768, 49151, 32768, 32768]),
    ] {
        let op = normal(Some(nan), range, clip);
        for made in [cpu(&op, &image), naive(&op, &image)] {
            assert_eq!(words(made.expect("taken").result), expected, "{op:?}");
        }
    }
    // Where no sample is finite, all are the replacement.
    let nothing = floats([f32::NAN; 3]);
    let made = cpu(&normal(Some(5.0), None, None), &nothing).expect("taken");
    assert_eq!(
        made.summary.ranges,
        [(Number::Real(5.0), Number::Real(5.0))]
    );
    assert_eq!(words(made.result), [5; 3]);

    let refused = cpu(
        &Sum {
            all: false,
            nan: None,
        },
        &image,
    )
    .expect_err("refused");
    assert!(
        refused.to_string().starts_with("4 of its samples"),
        "{refused}"
    );
    let sum = Sum {
        all: true,
        nan: Some(0.5),
    };
    for made in [cpu(&sum, &image), naive(&sum, &image)] {
        let OpResult::Totals(totals) = made.expect("taken").result else {
            panic!("totals were expected")
        };
        assert_eq!(totals.text("a".as_ref()), "a: sum 6, min 1, max 3, mean 1");
    }
}

#[test]
fn flat_images_are_rounded() {
    for (value, expected) in [(0.49, 0), (0.5, 1), (77.0, 77), (-3.0, 0), (1e9, 65535)] {
        let made = cpu(&Normalize::default(), &floats([value; 3])).expect("memory");
        assert_eq!(words(made.result), [expected; 3], "{value}");
        assert!(
            made.summary.warnings[0].contains("is flat"),
            "{:?}",
            made.summary
        );
    }
    let zeros = cpu(&Normalize::default(), &floats([0.0, -0.0])).expect("memory");
    assert_eq!(words(zeros.result), [0, 0]);
}

/// Turns move pixels of 4, 8, 12 and 16 bytes as their definition says, and keep every bit pattern.
#[test]
fn turns_keep_every_bit() {
    let mut cases = 0;
    for (width, height) in SIZES {
        for channels in 1..=4 {
            let noise = image(
                width,
                height,
                channels,
                Depth::Float,
                crate::support::Kind::Noise,
            );
            for turn in Symmetry::ALL {
                let (found, defined) = (cpu(&turn, &noise), naive(&turn, &noise));
                let same = found.expect("memory") == defined.expect("memory");
                assert!(same, "{turn:?} {:?}", noise.shape());
                cases += 1;
            }
        }
    }
    assert_eq!(cases, SIZES.len() * 4 * 7);
}
