//! Files of samples of 32 bits, as others write them: each format, type and byte order through each
//! verb; literals; what is refused.

use super::of;
use crate::support::formats::{dictionary, npy};
use crate::support::formats::{format, read, read_pages, refused, written};
use crate::support::formats::{metaimage, nrrd};
use crate::support::tiff::Build;
use crate::support::{folder, key, run};
use gpuimg::internals::formats::tiff::{self, Compression};
use gpuimg::internals::image::metadata::Metadata;
use gpuimg::internals::image::{Depth, Image, Samples, Shape, number};
use std::fs;

/// A type of samples: its name for `--raw` without the byte order, and six samples as they are in
/// memory, in the file (the least significant byte first), and the 16 bits that normalize makes.
struct Type {
    name: &'static str,
    depth: Depth,
    signed: bool,
    memory: [u32; 6],
    file: Vec<Vec<u8>>,
    stretched: [u16; 6],
}

fn types() -> Vec<Type> {
    let reals = [-0.0, 1.5, -0.5, f32::from_bits(1), 0.25, 3.5];
    // (p + 0.5)·65535/4 + 1/2
    let of_reals = [8192, 32768, 0, 8192, 12288, 65535];
    let unsigned = [0, 1, 65536, 0x8000_0000, 0xffff_fffe, u32::MAX];
    let signed = unsigned.map(|value| value ^ number::TOP);
    let of_whole = [0, 0, 1, 32768, 65535, 65535];
    let real = |name, file| Type {
        name,
        depth: Depth::Float,
        signed: false,
        memory: reals.map(key),
        file,
        stretched: of_reals,
    };
    vec![
        Type {
            name: "u32",
            depth: Depth::ThirtyTwo,
            signed: false,
            memory: unsigned,
            file: unsigned.map(|value| value.to_le_bytes().to_vec()).to_vec(),
            stretched: of_whole,
        },
        Type {
            name: "i32",
            depth: Depth::ThirtyTwo,
            signed: true,
            memory: unsigned,
            file: signed.map(|value| value.to_le_bytes().to_vec()).to_vec(),
            stretched: of_whole,
        },
        real(
            "f32",
            reals.map(|value| value.to_le_bytes().to_vec()).to_vec(),
        ),
    ]
}

impl Type {
    fn bytes(&self, big_endian: bool) -> Vec<u8> {
        let mut samples = self.file.clone();
        if big_endian {
            samples.iter_mut().for_each(|sample| sample.reverse());
        }
        samples.concat()
    }

    fn image(&self) -> Image {
        of(3, 2, 1, self.depth, self.memory.to_vec())
    }

    /// The files of 3 × 2 such samples that others write, with their names.
    fn files(&self) -> Vec<(String, Vec<u8>)> {
        let mut files = Vec::new();
        for big in [false, true] {
            let (order, name) = (if big { "be" } else { "le" }, self.name);
            let bytes = self.bytes(big);
            let (sign, letter) = (if big { ">" } else { "<" }, &name[..1]);
            let descr = format!("{sign}{letter}{}", bytes.len() / 6);
            let file = npy(1, &dictionary(&descr, "(2, 3)"), &bytes);
            files.push((format!("{name}{order}.npy"), file));
            let kind = match name {
                "u32" => "unsigned int",
                "i32" => "int32",
                _ => "float",
            };
            let endian = if big { "big" } else { "little" };
            let file = nrrd(&format!("type: {kind}\nendian: {endian}\n"), &bytes);
            files.push((format!("{name}{order}.nrrd"), file));
            let kind = match name {
                "u32" => "MET_UINT",
                "i32" => "MET_INT",
                _ => "MET_FLOAT",
            };
            let msb = if big { "True" } else { "False" };
            let fields = format!("ElementType = {kind}\nElementByteOrderMSB = {msb}\n");
            files.push((format!("{name}{order}.mha"), metaimage(&fields, &bytes)));
            files.push((format!("{name}{order}.raw"), bytes.clone()));
            if name == "f32" {
                let scale = if big { "1.0" } else { "-1.0" };
                let rows = [&bytes[12..], &bytes[..12]].concat();
                let file = [format!("Pf\n3 2\n{scale}\n").as_bytes(), &rows].concat();
                files.push((format!("{name}{order}.pfm"), file));
            }
            for compression in [1, 5, 8, 32773, 50000] {
                for (predictor, bytewise) in [(false, false), (true, false), (true, true)] {
                    for (strip, tile) in [(1, None), (2, None), (2, Some((16, 16)))] {
                        if bytewise && self.depth != Depth::Float {
                            continue;
                        }
                        let build = Build {
                            big_endian: big,
                            compression,
                            predictor,
                            bytewise,
                            strip,
                            tile,
                            ..Build::default()
                        };
                        let format = ["u32", "i32", "f32"].iter().position(|t| *t == name);
                        let format = format.expect("a type") as u64 + 1;
                        let build = build.tag(339, 3, &[format]);
                        let number = files.len();
                        // The builder takes integers as they are in the file.
                        let toggle = if self.signed { number::TOP } else { 0 };
                        let memory = self.memory.map(|sample| sample ^ toggle);
                        let file = build.file(&of(3, 2, 1, self.depth, memory.to_vec()));
                        files.push((format!("{name}{order}{number}.tif"), file));
                    }
                }
            }
        }
        let (bitpix, zero) = match self.name {
            "u32" => ("32", Some("2147483648")),
            "i32" => ("32", None),
            _ => ("-32", None),
        };
        let bytes = match self.name {
            // Stored with half the range subtracted.
            "u32" => {
                let stored = self
                    .memory
                    .map(|sample| (sample ^ number::TOP).to_be_bytes());
                stored.concat()
            }
            _ => self.bytes(true),
        };
        let mut records = vec![("SIMPLE", "T"), ("BITPIX", bitpix), ("NAXIS", "2")];
        records.extend([("NAXIS1", "3"), ("NAXIS2", "2")]);
        records.extend(
            zero.into_iter()
                .flat_map(|zero| [("BSCALE", "1"), ("BZERO", zero)]),
        );
        let mut file: Vec<u8> = (records.iter())
            .flat_map(|(name, value)| {
                format!("{:<80}", format!("{name:<8}= {value:>20}")).into_bytes()
            })
            .collect();
        file.extend(format!("{:<80}", "END").bytes());
        file.resize(2880, b' ');
        file.extend(bytes);
        file.resize(2 * 2880, 0);
        files.push((format!("{}.fits", self.name), file));
        files
    }
}

/// Each file is read as the samples it was made of; turned, it keeps them, in its own format or in
/// TIFF where that is only read; normalize makes the 16 bits that were computed by hand; `sum` tells
/// the type.
#[test]
fn each_format_type_and_byte_order_through_each_verb() {
    let (mut files, mut runs) = (0, 0);
    for kind in types() {
        let made = kind.files();
        let list: Vec<(&str, &[u8])> = made
            .iter()
            .map(|(name, file)| (name.as_str(), &file[..]))
            .collect();
        let root = folder(&list);
        for (name, file) in &made {
            files += 1;
            let extension = name.rsplit('.').next().expect("a name");
            let raw = format!("--raw=3x2:{}", name.trim_end_matches(".raw"));
            let is_raw = extension == "raw";
            if !is_raw {
                let (image, metadata, _) = read(file).expect(name);
                assert_eq!(
                    (image, metadata.signed),
                    (kind.image(), kind.signed),
                    "{name}"
                );
            }
            // Of so many TIFFs every seventh goes through the program as well.
            if extension == "tif" && files % 7 != 0 {
                continue;
            }
            let mut verb = |words: &[&str]| {
                let mut args = words.to_vec();
                args.push("--overwrite");
                if is_raw {
                    args.push(&raw);
                }
                runs += 1;
                let made = run(root.path(), &args, &[("GPUIMG_DEVICE", "cpu")]);
                assert_eq!(
                    (made.code, made.stderr.as_str()),
                    (0, ""),
                    "{name}: {words:?}"
                );
            };
            let kept = match extension {
                "nrrd" | "mha" | "raw" => "out.tif".to_owned(),
                other => format!("out.{other}"),
            };
            verb(&["rotate", "180", name, &kept]);
            let (turned, metadata, _) = read(&fs::read(root.path().join(&kept)).unwrap()).unwrap();
            let mut reversed = kind.memory;
            reversed.reverse();
            assert_eq!(turned, of(3, 2, 1, kind.depth, reversed.to_vec()), "{name}");
            assert_eq!(metadata.signed, kind.signed, "{name}");

            verb(&["normalize", name, "out.png"]);
            let (image, ..) = read(&fs::read(root.path().join("out.png")).unwrap()).unwrap();
            let Samples::U16(words) = image.samples() else {
                panic!("16 bits were expected")
            };
            assert_eq!(&words[..], kind.stretched, "{name}");

            let mut args = vec!["sum", "--all", "--json", name.as_str()];
            if is_raw {
                args.push(&raw);
            }
            runs += 1;
            let told = run(root.path(), &args, &[("GPUIMG_DEVICE", "cpu")]).stdout;
            let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
            let (float, sum) = match kind.name {
                "u32" => (None, 10_737_483_774i64.into()),
                "i32" => (None, (10_737_483_774i64 - 6 * (1i64 << 31)).into()),
                // 1.5 − 0.5 + 2⁻¹⁴⁹ + 0.25 + 3.5
                _ => (
                    Some(&serde_json::Value::Bool(true)),
                    serde_json::Value::from(4.75),
                ),
            };
            assert_eq!(
                (told.get("float"), &told["sum"]),
                (float, &sum),
                "{name}: {told}"
            );
            assert_eq!(told["depth"], 32, "{name}");
        }
    }
    assert_eq!(files, 3 * 2 * 4 + 3 + 2 + 2 * 5 * 3 * (2 + 2 + 3));
    assert!(runs > 150, "{runs}");
}

/// Colours, pages and planes; and the `tiff` crate reads what is written, with every compression.
#[test]
fn colours_pages_and_another_reader() {
    use ::tiff::decoder::{Decoder, DecodingResult};
    let mut cases = 0;
    for channels in 1..=4 {
        for (depth, bits) in [(Depth::ThirtyTwo, 1), (Depth::Float, 3)] {
            let noise =
                crate::support::image(67, 41, channels, depth, crate::support::Kind::Narrow);
            for compression in [
                Compression::None,
                Compression::Deflate,
                Compression::Lzw,
                Compression::Zstd,
            ] {
                let file = crate::support::tiff_images::written(|target| {
                    tiff::encode(&noise, compression, target)
                })
                .unwrap();
                assert_eq!(read(&file).unwrap().0, noise);
                let mut decoder = Decoder::new(std::io::Cursor::new(&file)).unwrap();
                let found: Vec<u32> = match decoder.read_image().unwrap() {
                    DecodingResult::U32(samples) => samples,
                    DecodingResult::F32(samples) => {
                        samples.iter().map(|sample| key(*sample)).collect()
                    }
                    _ => panic!("32 bits were expected"),
                };
                let Samples::U32(expected) = noise.samples() else {
                    panic!("32 bits")
                };
                assert_eq!(
                    found,
                    expected.to_vec(),
                    "{channels} {depth:?} {compression:?}"
                );
                let format = decoder
                    .get_tag_u32_vec(::tiff::tags::Tag::SampleFormat)
                    .unwrap();
                assert_eq!(format, vec![bits; channels]);
                cases += 1;
            }
        }
    }
    assert_eq!(cases, 4 * 2 * 4);
    let page = |first: f32| of(2, 1, 1, Depth::Float, vec![key(first), key(f32::NAN)]);
    for id in ["tiff", "npy", "fits"] {
        let pages = [page(1.0), page(-2.0), page(3e-40)];
        let file = written(format(id), &pages, &Metadata::default()).unwrap();
        assert_eq!(read_pages(&file).unwrap().0, pages, "{id}");
    }
    // Planes: all of red, then of green, then of blue.
    let planes = Build::default()
        .tag(339, 3, &[3])
        .tag(284, 3, &[2])
        .tag(262, 3, &[2]);
    let planes = planes.tag(277, 3, &[3]).tag(258, 3, &[32; 3]);
    let strips = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]
        .map(f32::to_le_bytes)
        .concat();
    let file = planes.file(&of(
        6,
        1,
        1,
        Depth::Float,
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0].map(key).to_vec(),
    ));
    let at = file
        .windows(24)
        .position(|window| window == strips)
        .expect("the samples");
    let places = [0, 8, 16].map(|plane| (at + plane) as u64);
    let planes = planes
        .tag(256, 3, &[2])
        .tag(273, 4, &places)
        .tag(279, 4, &[8; 3]);
    let file = planes.file(&of(
        6,
        1,
        1,
        Depth::Float,
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0].map(key).to_vec(),
    ));
    let moved = file
        .windows(24)
        .position(|window| window == strips)
        .expect("the samples")
        - at;
    let places = places.map(|place| place + moved as u64);
    let planes = planes.tag(273, 4, &places);
    let file = planes.file(&of(
        6,
        1,
        1,
        Depth::Float,
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0].map(key).to_vec(),
    ));
    let (image, ..) = read(&file).unwrap();
    let expected = [1.0, 3.0, 5.0, 2.0, 4.0, 6.0].map(key).to_vec();
    assert_eq!(image, of(2, 1, 3, Depth::Float, expected));
}

/// A portable float map has its last row first; a scale is left out and reported; what is wrong is named.
#[test]
fn pfm_by_hand() {
    let rows = |values: [f32; 6]| values.map(f32::to_be_bytes).concat();
    let file = |head: &str, samples: &[u8]| [head.as_bytes(), samples].concat();
    let color = file("PF\n1 2\n2.5\n", &rows([4.0, 5.0, 6.0, 1.0, 2.0, 3.0]));
    let (image, _, diagnostics) = read(&color).unwrap();
    let expected = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0].map(key).to_vec();
    let expected = of(1, 2, 3, Depth::Float, expected);
    assert_eq!(image, expected);
    assert!(
        diagnostics.notes[0].contains("the scale 2.5"),
        "{diagnostics:?}"
    );
    let made = written(format("pfm"), &[expected], &Metadata::default()).unwrap();
    let samples = [4.0f32, 5.0, 6.0, 1.0, 2.0, 3.0]
        .map(f32::to_le_bytes)
        .concat();
    assert_eq!(made, file("PF\n1 2\n-1.0\n", &samples));
    for (head, words) in [
        ("PF\n1 2\n0\n", "the scale \"0\""),
        ("PF\n1 two\n1\n", "\"two\" is not a number of pixels"),
        ("PF\n0 2\n1\n", "the image is empty"),
        ("PF\n1 2", "truncated at byte 6, within the header"),
        ("PF\n1 3\n1\n", "truncated at byte 33 of 45"),
    ] {
        let samples = if head.ends_with('\n') {
            &rows([0.0; 6])[..]
        } else {
            &[]
        };
        refused(&file(head, samples), words);
    }
}

/// What cannot be done with 32 bits is refused in a message that tells what can.
#[test]
fn refusals_say_what_to_do() {
    let float = |values: [f32; 6]| {
        let image = of(3, 2, 1, Depth::Float, values.map(key).to_vec());
        written(format("tiff"), &[image], &Metadata::default()).unwrap()
    };
    let root = folder(&[
        ("in/a.tif", &float([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])),
        ("in/nan.tif", &float([0.0, f32::NAN, 2.0, 3.0, 4.0, 5.0])),
        (
            "in/two.npy",
            &npy(1, &dictionary("<f4", "(2, 1, 2, 1)"), &[0; 16]),
        ),
    ]);
    let mut cases = 0;
    for (line, words) in [
        (
            "flip vertical in/a.tif out.png",
            "PNG cannot store samples of 32-bit floating point (normalize makes them 16 bits, or 8 with --depth 8; TIFF, NumPy, PFM, FITS and Zarr can)",
        ),
        (
            "flip vertical in/a.tif out.pgm",
            "PNM cannot store samples of 32-bit floating point",
        ),
        (
            "rotate 90 in/a.tif out.tif --depth 16",
            "--depth cannot convert samples of 32-bit floating point: use normalize to scale them",
        ),
        (
            "histogram in/a.tif -o out.hist",
            "histogram supports only 8- and 16-bit samples, but these are 32-bit floating point (use normalize to convert them)",
        ),
        ("normalize in out --across", "32-bit floating point"),
        (
            "project mean in/a.tif in/nan.tif out.tif",
            "NaN or infinite (use --nan VALUE to replace them, e.g. --nan 0)",
        ),
        (
            "normalize in/nan.tif out.png",
            "1 of its samples is NaN or infinite (use --nan VALUE to replace them, e.g. --nan 0)",
        ),
        (
            "normalize in/nan.tif out.png --range 0:1",
            "1 of its samples is NaN",
        ),
        ("sum in/nan.tif", "1 of its samples is NaN"),
        ("normalize in/two.npy out.tif --clip 1:99", "--scope page"),
        ("normalize in/a.tif out.png --ignore 0 --device gpu", ""),
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let made = run(root.path(), &args, &[("GPUIMG_DEVICE", "cpu")]);
        assert_ne!(made.code, 0, "{line}");
        assert!(made.stderr.contains(words), "{line}: {}", made.stderr);
        for left in ["out.png", "out.pgm", "out.tif", "out.hist"] {
            assert!(!root.path().join(left).exists(), "{line}: {left}");
        }
        cases += 1;
    }
    assert_eq!(cases, 11);
    for (line, words) in [
        ("normalize in/nan.tif out.png --nan 0", ""),
        ("normalize in/a.tif 8.png --depth 8 --range 0.5:4.5", ""),
        ("verify in/a.tif in/a.tif", "equal\n"),
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let made = run(root.path(), &args, &[("GPUIMG_DEVICE", "cpu")]);
        assert_eq!(
            (made.code, made.stdout.as_str()),
            (0, words),
            "{line}: {}",
            made.stderr
        );
    }
    let (image, ..) = read(&fs::read(root.path().join("8.png")).unwrap()).unwrap();
    // 255/4 a step, from 0.5 on: 0.5·63.75 = 31.875, …
    assert_eq!(image.samples().as_bytes(), [0, 32, 96, 159, 223, 255]);
    let made = run(root.path(), &["verify", "in/a.tif", "in/nan.tif"], &[]);
    assert_eq!(
        made.stdout,
        "1 of 6 samples differ, by at most 0; first at column 1, row 0, channel 0: 1 and NaN\n"
    );
}

/// Whole numbers that 16 bits have give what they give as 16 bits, whose histogram leaves values out in
/// another way; in 1 to 4 channels, with and without percentiles.
#[test]
fn values_without_data_are_left_out_as_of_sixteen_bits() {
    let mut cases = 0;
    for channels in 1..=4 {
        // 1009 is prime, and 0 and 900 are each a tenth of the values.
        let values: Vec<u16> = (0..840u32)
            .map(|i| match i * i % 1009 {
                small @ 0..100 => 900 * (small as u16 % 2),
                value => value as u16 * 3,
            })
            .collect();
        let has_alpha = channels % 2 == 0;
        let wide = |depth, convert: &dyn Fn(u16) -> u32, opaque: u32| {
            let samples = values.iter().enumerate().map(|(i, &value)| {
                match has_alpha && i % channels == channels - 1 {
                    true => opaque,
                    false => convert(value),
                }
            });
            of(840 / channels, 1, channels, depth, samples.collect())
        };
        let narrow = {
            let samples = values.iter().enumerate().map(|(i, &value)| {
                match has_alpha && i % channels == channels - 1 {
                    true => u16::MAX,
                    false => value,
                }
            });
            let shape = Shape {
                width: 840 / channels,
                height: 1,
                channels,
                depth: Depth::Sixteen,
            };
            Image::new(shape, samples.collect::<Vec<u16>>().into())
        };
        let images = [
            (false, wide(Depth::ThirtyTwo, &u32::from, u32::MAX)),
            (
                true,
                wide(Depth::ThirtyTwo, &|v| number::TOP + u32::from(v), u32::MAX),
            ),
            (false, wide(Depth::Float, &|v| key(v.into()), key(1.0))),
        ];
        for options in [
            &["--ignore", "0"][..],
            &["--ignore", "0,900"],
            &["--ignore", "900,70000,-3"],
            &["--ignore", "0,900", "--clip", "5:90"],
            &["--ignore", "0,900", "--clip", "10:80", "--per-channel"],
            &["--ignore", "0", "--per-channel", "--to", "7:4000"],
        ] {
            let stretched = |image: &Image, signed| {
                let metadata = Metadata {
                    signed,
                    ..Metadata::default()
                };
                let file = written(format("tiff"), std::slice::from_ref(image), &metadata);
                let folder = folder(&[("in.tif", &file.expect("a TIFF"))]);
                let args = [&["normalize", "in.tif", "out.tif"], options].concat();
                let run = run(folder.path(), &args, &[]);
                assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{options:?}");
                let file = fs::read(folder.path().join("out.tif")).expect("made");
                read(&file).expect("an image").0
            };
            let expected = stretched(&narrow, false);
            for (signed, image) in &images {
                let found = stretched(image, *signed);
                assert!(
                    found == expected,
                    "{channels} {:?} {options:?}",
                    image.shape().depth
                );
                cases += 1;
            }
        }
    }
    assert_eq!(cases, 4 * 6 * 3);
}

/// −9999 stands for no data, and 0.5, 1.5 and 2.5 stay; what is left out is clamped. By hand.
#[test]
fn values_without_data_by_hand() {
    let image = |values: [f32; 4]| of(4, 1, 1, Depth::Float, values.map(key).to_vec());
    let with = |values: [f32; 4], ignored: &str| {
        let pages = [image(values)];
        let file = written(format("tiff"), &pages, &Metadata::default()).expect("a TIFF");
        let folder = folder(&[("in.tif", &file)]);
        let ignored = format!("--ignore={ignored}");
        let run = run(
            folder.path(),
            &["normalize", "in.tif", "out.tif", &ignored],
            &[],
        );
        assert_eq!(run.code, 0, "{}", run.stderr);
        let file = fs::read(folder.path().join("out.tif")).expect("made");
        match read(&file).expect("an image").0.samples() {
            Samples::U16(words) => (words.to_vec(), run.stderr),
            _ => panic!("16 bits were expected"),
        }
    };
    let values = [-9999.0, 0.5, 1.5, 2.5];
    assert_eq!(
        with(values, "-9999"),
        (vec![0, 0, 32768, 65535], String::new())
    );
    assert_eq!(with(values, "-9999,2.5").0, [0, 0, 65535, 65535]);
    let least = [f32::MIN, 0.5, 1.5, 2.5];
    assert_eq!(with(least, "-3.4028235e38").0, [0, 0, 32768, 65535]);
    // −0 is 0.
    assert_eq!(with([-0.0, 0.0, 5.0, 6.0], "0").0, [0, 0, 0, 65535]);
    let (words, told) = with([3.0, 3.0, 3.0, 7.0], "3,7");
    assert_eq!(words, [3, 3, 3, 7]);
    assert!(told.contains("--ignore excludes every sample"), "{told}");
}
