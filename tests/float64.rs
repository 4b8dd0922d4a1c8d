//! Samples of 64-bit floating point that no 32 bits hold: read from each format, never rounded, exact through each
//! verb; and what is said where that cannot be.

use crate::support::formats::{dictionary, npy};
use crate::support::formats::{metaimage, nrrd};
use crate::support::formats::{read, written};
use crate::support::tiff::Build;
use crate::support::{folder, placed, run_on_cpu};
use gpuimg::internals::formats::tiff::{self, Compression};
use gpuimg::internals::image::metadata::Metadata;
use gpuimg::internals::image::number::{bits64, key64};
use gpuimg::internals::image::{Depth, Image, Samples, Shape};
use std::fs;

/// Six samples of which five are no f32, and the 16 bits that normalize makes of them, by hand: p·65535/(2⁻¹ + 2⁻⁴⁰).
const VALUES: [f64; 6] = [
    0.0,
    0.1,
    0.5 + 1.0 / (1u64 << 40) as f64,
    1e-300,
    0.25 + 1.0 / (1u64 << 40) as f64,
    0.3,
];
const STRETCHED: [u16; 6] = [0, 13107, 65535, 0, 32768, 39321];

fn image(channels: usize, values: &[f64]) -> Image {
    let shape = Shape {
        width: 3,
        height: values.len() / 3 / channels,
        channels,
        depth: Depth::Double,
    };
    let keys: Vec<u64> = values.iter().map(|value| key64(value.to_bits())).collect();
    Image::new(shape, keys.into())
}

fn values(image: &Image) -> Vec<f64> {
    match image.samples() {
        Samples::U64(keys) => keys
            .iter()
            .map(|&key| f64::from_bits(bits64(key)))
            .collect(),
        _ => panic!("64 bits were expected, and it is {}", image.shape()),
    }
}

fn fits(bytes: &[u8]) -> Vec<u8> {
    let records = [
        "SIMPLE  =                    T",
        "BITPIX  =                  -64",
        "NAXIS   =                    2",
    ];
    let axes = [
        "NAXIS1  =                    3",
        "NAXIS2  =                    2",
        "END",
    ];
    let records = records.into_iter().chain(axes);
    let mut file: Vec<u8> = records
        .flat_map(|record| format!("{record:<80}").into_bytes())
        .collect();
    file.resize(2880, b' ');
    file.extend(bytes);
    file.resize(2 * 2880, 0);
    file
}

/// The files of 3 × 2 such samples that others write, with their names.
fn files() -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for big in [false, true] {
        let order = |value: f64| {
            if big {
                value.to_be_bytes()
            } else {
                value.to_le_bytes()
            }
        };
        let bytes = VALUES.map(order).concat();
        let (sign, name) = if big { (">", "be") } else { ("<", "le") };
        let file = npy(1, &dictionary(&format!("{sign}f8"), "(2, 3)"), &bytes);
        files.push((format!("{name}.npy"), file));
        let endian = if big { "big" } else { "little" };
        let file = nrrd(&format!("type: double\nendian: {endian}\n"), &bytes);
        files.push((format!("{name}.nrrd"), file));
        let msb = if big { "True" } else { "False" };
        let fields = format!("ElementType = MET_DOUBLE\nElementByteOrderMSB = {msb}\n");
        files.push((format!("{name}.mha"), metaimage(&fields, &bytes)));
        files.push((format!("{name}.raw"), bytes.clone()));
        for (compression, predictor, bytewise) in [
            (1, false, false),
            (8, false, false),
            (5, true, false),
            (8, true, true),
            (50000, true, true),
        ] {
            for (strip, tile) in [(1, None), (2, None), (2, Some((16, 16)))] {
                let build = Build {
                    big_endian: big,
                    compression,
                    predictor,
                    bytewise,
                    strip,
                    tile,
                    ..Build::default()
                };
                let file = build.tag(339, 3, &[3]).file(&image(1, &VALUES));
                files.push((format!("{name}{}.tif", files.len()), file));
            }
        }
    }
    files.push((
        "f.fits".into(),
        fits(&VALUES.map(f64::to_be_bytes).concat()),
    ));
    files
}

/// 27 files of other projects were refused, since some value was no f32, and what was read was written as f32.
#[test]
fn sixty_four_bits_were_refused_or_became_thirty_two() {
    let files = files();
    let root = placed(&files);
    let sum: f64 = 1.150_000_000_001_819;
    for (name, file) in &files {
        let extension = name.rsplit('.').next().expect("a name");
        let raw = format!("--raw=3x2:f64{}", &name[..2]);
        let of_raw = (extension == "raw").then_some(&raw[..]);
        let verb = |words: &[&str]| {
            let words: Vec<&str> = words.iter().copied().chain(of_raw).collect();
            let told = run_on_cpu(root.path(), &words);
            assert_eq!((told.code, &*told.stderr), (0, ""), "{name}: {words:?}");
            told.stdout
        };
        if of_raw.is_none() {
            assert_eq!(values(&read(file).expect(name).0), VALUES, "{name}");
        }
        for output in ["out.npy", "out.tif", "out.fits"] {
            let out = root.path().join(output);
            verb(&["rotate", "180", name, output, "--overwrite"]);
            let mut turned = values(&read(&fs::read(&out).unwrap()).unwrap().0);
            turned.reverse();
            assert_eq!(turned, VALUES, "{name} to {output}");
        }
        verb(&["normalize", name, "out.png", "--overwrite"]);
        let png = read(&fs::read(root.path().join("out.png")).unwrap())
            .unwrap()
            .0;
        assert_eq!(png.samples(), &Samples::from(STRETCHED.to_vec()), "{name}");
        let told: serde_json::Value =
            serde_json::from_str(&verb(&["sum", "--all", "--json", name])).unwrap();
        assert_eq!(
            (&told["depth"], &told["float"]),
            (&64.into(), &true.into()),
            "{name}"
        );
        assert_eq!(told["sum"].as_f64(), Some(sum), "{name}");
        assert_eq!(told["max"].as_f64(), Some(VALUES[2]), "{name}");
    }
    assert_eq!(files.len(), 2 * 4 + 2 * 5 * 3 + 1);
}

/// Every number of channels, turned in every way and written by every compression.
#[test]
fn colours_of_sixty_four_bits() {
    for channels in 1..=4 {
        let many: Vec<f64> = (0..3 * 7 * channels)
            .map(|i| f64::from(i as u32).sqrt())
            .collect();
        let before = image(channels, &many);
        for compression in [
            Compression::None,
            Compression::Deflate,
            Compression::Lzw,
            Compression::Zstd,
        ] {
            let file = crate::support::tiff_images::written(|target| {
                tiff::encode(&before, compression, target)
            })
            .unwrap();
            assert_eq!(read(&file).unwrap().0, before, "{channels} {compression:?}");
        }
        let file = written(
            crate::support::formats::format("npy"),
            std::slice::from_ref(&before),
            &Metadata::default(),
        )
        .unwrap();
        assert_eq!(read(&file).unwrap().0, before);
        let root = folder(&[("in.npy", &file)]);
        for words in [
            &["rotate", "90"][..],
            &["rotate", "270"],
            &["flip", "vertical"],
            &["flip", "horizontal"],
            &["transpose"],
        ] {
            let there = [words, &["in.npy", "out.npy", "--overwrite"]].concat();
            assert_eq!(run_on_cpu(root.path(), &there).code, 0);
            let back: &[&str] = match words {
                ["rotate", "90"] => &["rotate", "270"],
                ["rotate", "270"] => &["rotate", "90"],
                same => same,
            };
            let back = [back, &["out.npy", "back.npy", "--overwrite"]].concat();
            assert_eq!(run_on_cpu(root.path(), &back).code, 0);
            assert_eq!(
                fs::read(root.path().join("back.npy")).unwrap(),
                file,
                "{channels} {words:?}"
            );
        }
    }
}

/// Options whose values no f32 is, and numbers that are none.
#[test]
fn options_are_exact_too() {
    let bytes = [0.1, 0.2, f64::NAN, 0.3, -5.0, 0.1f64.next_up()]
        .map(f64::to_le_bytes)
        .concat();
    let root = folder(&[("in.npy", &npy(1, &dictionary("<f8", "(2, 3)"), &bytes))]);
    let made = |words: &[&str]| {
        let told = run_on_cpu(
            root.path(),
            &[&["normalize", "in.npy", "out.npy", "--overwrite"], words].concat(),
        );
        assert_eq!(told.code, 0, "{}", told.stderr);
        match read(&fs::read(root.path().join("out.npy")).unwrap())
            .unwrap()
            .0
            .samples()
        {
            Samples::U16(samples) => samples.to_vec(),
            _ => panic!("16 bits were expected"),
        }
    };
    // Just above 0.1 lies what the first sample is not.
    assert_eq!(
        made(&["--range", "0.1:0.10000000000000002", "--nan", "0.1"]),
        [0, 65535, 0, 65535, 0, 65535]
    );
    assert_eq!(made(&["--ignore", "-5", "--nan", "0.1"])[3], 65535);
    assert_eq!(made(&["--ignore", "-5,0.3", "--nan", "0.1"])[1], 65535);
    assert_eq!(
        made(&["--clip", "25:100", "--nan", "0.2"]),
        [0, 32768, 32768, 65535, 0, 0]
    );
    let refused = |words: &[&str], what: &str| {
        let told = run_on_cpu(root.path(), words);
        assert!(
            told.code != 0 && told.stderr.contains(what),
            "{words:?}: {}",
            told.stderr
        );
    };
    refused(
        &["normalize", "in.npy", "a.npy"],
        "1 of its samples is NaN or infinite (use --nan VALUE",
    );
    refused(&["sum", "in.npy"], "1 of its samples is NaN or infinite");
    refused(
        &["normalize", "in.npy", "a.tif", "--undo", "--nan", "0"],
        "--undo cannot store ranges of 64-bit floating point",
    );
    refused(
        &["flip", "vertical", "in.npy", "a.pfm"],
        "PFM cannot store samples of 64-bit floating point (normalize makes",
    );
    refused(
        &["histogram", "in.npy", "-o", "a.hist"],
        "64-bit floating point",
    );
    assert_eq!(
        run_on_cpu(root.path(), &["sum", "in.npy", "--nan", "0"]).stdout,
        "in.npy: sum -4.3\n"
    );
}

/// A range that two f64 bound and no two f32 do is one value of 32 bits.
#[test]
fn a_range_of_sixty_four_bits_is_refused_for_thirty_two() {
    let bytes = [0.0f32, 1.0].map(f32::to_le_bytes).concat();
    let root = folder(&[("in.npy", &npy(1, &dictionary("<f4", "(1, 2)"), &bytes))]);
    let told = run_on_cpu(
        root.path(),
        &[
            "normalize",
            "in.npy",
            "a.npy",
            "--range",
            "0.1:0.10000000000000002",
        ],
    );
    assert!(
        told.code != 0
            && told
                .stderr
                .contains("is a single value for 32-bit floating point"),
        "{}",
        told.stderr
    );
}

/// Bands of rows make the same bytes as the whole.
#[test]
fn bands_of_sixty_four_bits() {
    let many: Vec<f64> = (0..3 * 400)
        .map(|i| f64::from(i * 7919 % 1201).ln_1p())
        .collect();
    let file = written(
        crate::support::formats::format("npy"),
        &[image(1, &many)],
        &Metadata::default(),
    )
    .unwrap();
    let root = folder(&[("in.npy", &file)]);
    for words in [&["normalize"][..], &["flip", "horizontal"]] {
        for (output, option) in [("a.tif", None), ("b.tif", Some("--low-memory"))] {
            let args: Vec<&str> = words
                .iter()
                .copied()
                .chain(["in.npy", output, "--overwrite"])
                .chain(option)
                .collect();
            let told = run_on_cpu(root.path(), &args);
            assert_eq!((told.code, &*told.stderr), (0, ""), "{args:?}");
        }
        let bytes = |name: &str| fs::read(root.path().join(name)).unwrap();
        assert!(bytes("a.tif") == bytes("b.tif"), "{words:?}");
    }
}
