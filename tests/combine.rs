//! Combine: literals by hand, an oracle in NumPy, definitions and fast versions, laws, stacks of channels, refused inputs, and
//! the verb.

use crate::support::axes::{HYPERSTACK, file, images};
use crate::support::contract::{chunk_of, tag, text, words};
use crate::support::formats::{read, read_pages};
use crate::support::png::Plain;
use crate::support::tiff::Build;
use crate::support::{KINDS, Kind, Run, counted, folder, grey, image, run, told};
use gpuimg::internals::image::{Depth, Image, Samples};
use gpuimg::internals::ops::combine::{Colour, blend, interleave, naive_blend};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

fn pgm(maxval: u16, rows: &str) -> Vec<u8> {
    format!("P2 3 2 {maxval}\n{rows}\n").into_bytes()
}

/// Runs a command that succeeds and prints nothing, and returns the file that it names last.
fn go(root: &Path, args: &[&str]) -> Vec<u8> {
    let done = run(root, args, &[]);
    assert_eq!((done.code, &*done.stderr), (0, ""), "{args:?}");
    fs::read(root.join(args.last().expect("an output"))).expect("the output")
}

fn numbers(image: &Image) -> Vec<u64> {
    let samples = image.samples();
    (0..samples.len()).map(|index| samples.at(index)).collect()
}

#[test]
fn channels_by_hand() {
    let root = folder(&[
        ("r.pgm", &pgm(255, "1 2 3 4 5 6")),
        ("g.pgm", &pgm(255, "10 20 30 40 50 60")),
        ("b.pgm", &pgm(255, "100 101 102 103 104 255")),
        ("a.pgm", &pgm(255, "0 1 2 253 254 255")),
    ]);
    let file = go(
        root.path(),
        &["combine", "r.pgm", "g.pgm", "b.pgm", "out.ppm"],
    );
    let pixels = [
        1, 10, 100, 2, 20, 101, 3, 30, 102, 4, 40, 103, 5, 50, 104, 6, 60, 255,
    ];
    assert_eq!(file, [b"P6\n3 2\n255\n", &pixels[..]].concat());
    let file = go(
        root.path(),
        &["combine", "r.pgm", "g.pgm", "b.pgm", "a.pgm", "out.tif"],
    );
    #[rustfmt::skip]
    let pixels = [
        1, 10, 100, 0,    2, 20, 101, 1,    3, 30, 102, 2,
        4, 40, 103, 253,  5, 50, 104, 254,  6, 60, 255, 255,
    ];
    assert_eq!(words(&file), pixels);
    // Opacity that the colours are not multiplied by.
    assert_eq!(tag(&file, 338), Some(vec![2]));
}

/// 255·1 + 51·5 = 510, which is 2·255; 51·13 = 663 is 2.6·255; a sum beyond the largest value is limited to it.
#[test]
fn colours_by_hand() {
    let root = folder(&[
        ("one.pgm", &pgm(255, "1 0 0 2 200 255")),
        ("two.pgm", &pgm(255, "5 13 12 0 100 255")),
    ]);
    let file = go(
        root.path(),
        &[
            "combine",
            "--colours",
            "C1=red,C2=#3300ff",
            "one.pgm",
            "two.pgm",
            "out.ppm",
        ],
    );
    #[rustfmt::skip]
    let pixels = [
        2, 0, 5,  3, 0, 13,  2, 0, 12,
        2, 0, 0,  220, 0, 100,  255, 0, 255,
    ];
    assert_eq!(file, [b"P6\n3 2\n255\n", &pixels[..]].concat());
    // Samples up to 100 are limited to 100.
    let root = folder(&[
        ("one.pgm", &pgm(100, "1 0 0 2 60 100")),
        ("two.pgm", &pgm(100, "5 13 12 0 60 100")),
    ]);
    let args = [
        "combine",
        "--colors",
        "C1=red,C2=yellow",
        "one.pgm",
        "two.pgm",
        "out.ppm",
    ];
    let pixels = [
        6, 5, 0, 13, 13, 0, 12, 12, 0, 2, 0, 0, 100, 60, 0, 100, 100, 0,
    ];
    assert_eq!(
        go(root.path(), &args),
        [b"P6\n3 2\n100\n", &pixels[..]].concat()
    );
}

/// The values are those of `np.minimum(65535, np.floor(S / 255 + 0.5))` of sums S of Python's integers.
#[test]
fn colours_of_an_oracle_in_numpy() {
    let plane = |factor: u32, start: u32| {
        let rows = std::array::from_fn(|y| {
            std::array::from_fn(|x| ((4 * y + x) as u32 * factor + start) as u16)
        });
        grey::<4, 2>(rows)
    };
    let images = [plane(40503, 12345), plane(9973, 501), plane(65521, 65535)];
    let colours = [[0, 255, 0], [255, 0, 255], [17, 128, 254]].map(Colour);
    let found = blend(&images, &colours, 65535).expect("memory");
    let Samples::U16(found) = found.samples() else {
        panic!("16 bits were expected")
    };
    #[rustfmt::skip]
    let expected = [
        4870, 45241, 65535, 14842, 65535, 65535, 24814, 60696, 65535, 34786, 35655, 65535,
        44758, 65535, 65535, 54730, 51110, 65535, 64702, 65535, 65535, 9138, 65535, 65535,
    ];
    assert_eq!(found[..], expected);
}

#[test]
fn fast_versions_give_what_the_definitions_say() {
    let mut cases = 0;
    let all = [
        [255, 0, 0],
        [0, 255, 0],
        [1, 254, 255],
        [128, 127, 0],
        [255, 255, 255],
    ];
    for (width, height) in [(1, 1), (7, 3), (32, 32), (1025, 3), (511, 17)] {
        for depth in Depth::ALL {
            for kind in KINDS {
                let planes: Vec<Image> = (0..5)
                    .map(|index| {
                        image(width, height + index, 1, depth, kind).rows(index..index + height)
                    })
                    .collect();
                for channels in [3, 4] {
                    let found = interleave(&planes[..channels]).expect("memory");
                    for (index, plane) in planes[..channels].iter().enumerate() {
                        let own: Vec<u64> = numbers(&found)
                            .into_iter()
                            .skip(index)
                            .step_by(channels)
                            .collect();
                        assert!(own == numbers(plane), "{width}×{height}, {depth}");
                    }
                }
                if !depth.is_wide() {
                    for count in 1..=5 {
                        let (planes, colours) = (&planes[..count], &all.map(Colour)[..count]);
                        for most in [depth.full(), 200] {
                            let found = blend(planes, colours, most).expect("memory");
                            let expected = naive_blend(planes, colours, most).expect("memory");
                            assert!(found == expected, "{width}×{height}, {depth}, {kind:?}");
                        }
                    }
                }
                cases += 1;
            }
        }
    }
    counted(&format!("{cases} kinds of images"));
    assert_eq!(cases, 5 * 5 * 4);
}

/// Splitting an image into channels and combining them again gives its samples, in every sample type.
#[test]
fn combined_channels_of_an_image_are_the_image() {
    let mut cases = 0;
    for depth in Depth::ALL {
        for channels in [3, 4] {
            let mut build = Build::default();
            if depth.is_float() {
                build = build.tag(339, 3, &vec![3; channels]);
            }
            let whole_file = build.file(&image(37, 23, channels, depth, Kind::Noise));
            let whole = read(&whole_file).expect("a TIFF").0;
            assert_eq!(whole.shape().depth, depth);
            let root = folder(&[("whole.tif", &whole_file)]);
            let mut args = vec!["combine".to_string()];
            for number in 1..=channels {
                let (number, part) = (number.to_string(), format!("{number}.tif"));
                let part_file = go(
                    root.path(),
                    &["convert", "whole.tif", "--channel", &number, &part],
                );
                assert_eq!(tag(&part_file, 277).unwrap_or(vec![1]), [1]);
                args.push(part);
            }
            args.push("again.tif".into());
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let again = go(root.path(), &args);
            assert!(
                read(&again).expect("a TIFF").0 == whole,
                "{depth}, {channels}"
            );
            cases += 1;
        }
    }
    assert_eq!(cases, 10);
}

#[test]
fn a_channel_that_an_image_lacks_is_refused() {
    let root = folder(&[("grey.pgm", &pgm(255, "1 2 3 4 5 6"))]);
    let refused = |args: &[&str]| {
        let done = run(root.path(), args, &[]);
        assert_eq!(done.code, 1);
        done.stderr
    };
    assert_eq!(
        refused(&["convert", "grey.pgm", "out.pgm", "--channel", "2"]),
        "gpuimg: cannot convert grey.pgm: it is grey, which has no channel 2 (--axes C=2 selects a channel of a stack)\n"
    );
    let same = go(
        root.path(),
        &["convert", "grey.pgm", "--channel", "1", "out.pgm"],
    );
    assert_eq!(words(&same), [1, 2, 3, 4, 5, 6]);
}

/// The pages of an ImageJ hyperstack, and of the same pages as OME-TIFF: channels first, then slices, then times.
#[test]
fn channels_of_a_stack_in_colours() {
    let ome = "<OME xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\"><Image ID=\"Image:0\"><Pixels ID=\"Pixels:0\" DimensionOrder=\"XYCZT\" Type=\"uint16\" SizeX=\"3\" SizeY=\"2\" SizeC=\"2\" SizeZ=\"3\" SizeT=\"2\"><Channel ID=\"Channel:0:0\" Name=\"DAPI\" Color=\"65535\"/><Channel ID=\"Channel:0:1\"/><TiffData/></Pixels></Image></OME>";
    let pages = images();
    let colours = [[0, 255, 0], [255, 0, 51]].map(Colour);
    for description in [HYPERSTACK, ome] {
        let root = folder(&[("stack.tif", &file(12, description))]);
        let args = [
            "combine",
            "stack.tif",
            "--colours",
            "C1=green,C2=#ff0033",
            "rgb.tif",
        ];
        let made = go(root.path(), &args);
        let (found, ..) = read_pages(&made).expect("a stack");
        assert_eq!(found.len(), 6);
        for (page, channels) in found.iter().zip(pages.chunks(2)) {
            assert!(*page == naive_blend(channels, &colours, 65535).expect("memory"));
        }
        // Only the second channel, of the last slice.
        let args = [
            "combine",
            "stack.tif",
            "--colours",
            "C2=white",
            "--axes",
            "Z=3",
            "-o",
            "part.tif",
        ];
        let part = go(root.path(), &args);
        let (found, ..) = read_pages(&part).expect("a stack");
        let expected = [5, 11].map(|page| {
            naive_blend(&pages[page..=page], &[Colour([255; 3])], 65535).expect("memory")
        });
        assert!(found == expected);
        let now = text(&made, 270).expect("a description");
        if description == ome {
            for fact in [
                "SizeC=\"3\"",
                "SizeZ=\"3\"",
                "SizeT=\"2\"",
                "<Channel ID=\"Channel:0:0\" SamplesPerPixel=\"3\"/>",
            ] {
                assert!(now.contains(fact), "{now}");
            }
            assert_eq!(now.matches("<Channel").count(), 1);
        } else {
            assert_eq!(
                now,
                "ImageJ=1.54f\nimages=6\nslices=3\nframes=2\nhyperstack=true\nunit=um\nspacing=0.5\nfinterval=2.0\n"
            );
        }
    }
}

#[test]
fn inputs_that_do_not_fit_are_refused() {
    let eight = |tags: &[(u16, u64)]| {
        let mut build = Build::default();
        for &(number, value) in tags {
            build = build.tag(number, 3, &[value]);
        }
        build.file(&image(3, 2, 1, Depth::Eight, Kind::Noise))
    };
    let wide = Build::default().file(&image(3, 2, 1, Depth::Float, Kind::Flat));
    let root = folder(&[
        ("r.pgm", &pgm(255, "1 2 3 4 5 6")),
        ("g.pgm", &pgm(255, "1 2 3 4 5 6")),
        ("dark.pgm", &pgm(100, "1 2 3 4 5 6")),
        ("deep.pgm", &pgm(65535, "1 2 3 4 5 6")),
        ("size.pgm", b"P2 2 3 255\n1 2 3 4 5 6\n"),
        ("rgb.ppm", b"P6 3 2 255\n123456789123456789"),
        ("plain.tif", &eight(&[])),
        ("white.tif", &eight(&[(262, 0)])),
        ("turned.tif", &eight(&[(274, 6)])),
        ("signed.tif", &eight(&[(339, 2)])),
        ("stack.tif", &file(12, HYPERSTACK)),
        ("pages.tif", &file(3, "no axes")),
        ("wide.tif", &wide),
        ("text.txt", b"text"),
    ]);
    let refused = |code: i32, args: &[&str], words: &[&str]| {
        let done = run(
            root.path(),
            &[&["combine"], args, &["out.tif"]].concat(),
            &[],
        );
        assert_eq!(done.code, code, "{args:?}: {}", done.stderr);
        for words in words {
            assert!(done.stderr.contains(words), "{args:?}: {}", done.stderr);
        }
        assert!(!root.path().join("out.tif").exists());
    };
    let three = |last: &'static str, words: &[&str]| refused(1, &["r.pgm", "g.pgm", last], words);
    three(
        "size.pgm",
        &[
            "cannot combine r.pgm + g.pgm + size.pgm: size.pgm is 2×3 grey, 8 bits, but r.pgm is 3×2 grey, 8 bits: they must have the same size and type",
        ],
    );
    three(
        "deep.pgm",
        &["deep.pgm is 3×2 grey, 16 bits, but r.pgm is 3×2 grey, 8 bits"],
    );
    three(
        "dark.pgm",
        &["the largest value of dark.pgm is 100, but that of r.pgm is 255"],
    );
    three("rgb.ppm", &["rgb.ppm is RGB: a channel is a grey image"]);
    three("white.tif", &["0 is white in white.tif, but black in RGB"]);
    three(
        "turned.tif",
        &["turned.tif is 3×2 grey, 8 bits, with orientation 6, but r.pgm is"],
    );
    three(
        "signed.tif",
        &["signed.tif is 3×2 grey, 8 bits with sign, but r.pgm is"],
    );
    three(
        "stack.tif",
        &["stack.tif has 12 pages and r.pgm has 1 page"],
    );
    three("text.txt", &["cannot read text.txt: "]);
    three("none.tif", &["cannot read none.tif: no such file"]);
    refused(
        2,
        &["r.pgm", "g.pgm"],
        &["red, green and blue", "got 2 before out.tif"],
    );
    refused(2, &["-", "-", "r.pgm"], &["only one of the inputs"]);
    let colours = |code, text: &'static str, inputs: &[&'static str], words: &[&str]| {
        refused(code, &[&["--colours", text], inputs].concat(), words);
    };
    colours(
        1,
        "C1=red,C3=blue",
        &["stack.tif"],
        &["there is no channel C3: it has C1 to C2"],
    );
    colours(
        1,
        "C1=red",
        &["pages.tif"],
        &["its metadata name no channels"],
    );
    colours(
        1,
        "C1=red",
        &["r.pgm", "g.pgm"],
        &["g.pgm has no colour: add C2=…"],
    );
    colours(
        1,
        "C1=red,C3=red",
        &["r.pgm", "g.pgm"],
        &["there is no C3: the files are C1 to C2"],
    );
    colours(
        1,
        "C1=red,C2=red",
        &["wide.tif", "wide.tif"],
        &["colours need 8 or 16 bits"],
    );
    colours(
        1,
        "C1=red,C2=red",
        &["signed.tif", "signed.tif"],
        &["colours need values from 0 on"],
    );
    colours(2, "C1=pink", &["stack.tif"], &["unknown colour 'pink'"]);
}

#[test]
fn outputs_are_written_as_those_of_other_verbs() {
    let planes: Vec<Image> = (0..3)
        .map(|index| image(40, 30 + index, 1, Depth::Sixteen, Kind::Noise).rows(0..30))
        .collect();
    let files: Vec<Vec<u8>> = planes
        .iter()
        .map(|plane| Build::default().file(plane))
        .collect();
    let root = folder(&[
        ("r.tif", &files[0]),
        ("g.tif", &files[1]),
        ("b.tif", &files[2]),
    ]);
    let expected = interleave(&planes).expect("memory");
    let command = |more: &[&str]| -> Run {
        run(
            root.path(),
            &[&["combine", "r.tif", "g.tif", "b.tif"], more].concat(),
            &[],
        )
    };
    let made = |name: &str| {
        read(&fs::read(root.path().join(name)).expect("a file"))
            .expect("an image")
            .0
    };
    assert_eq!(command(&["a.png", "--png", "small"]).code, 0);
    assert!(made("a.png") == expected);
    assert_eq!(command(&["a.tif", "--tiff", "zstd", "--sync"]).code, 0);
    assert!(made("a.tif") == expected);
    let again = command(&["a.tif"]);
    assert_eq!(again.code, 1);
    assert!(
        again.stderr.contains("already exists (use --overwrite"),
        "{}",
        again.stderr
    );
    assert_eq!(command(&["a.tif", "--overwrite"]).code, 0);
    let replaced = command(&["g.tif", "--overwrite"]);
    assert_eq!(replaced.code, 2);
    assert!(
        replaced.stderr.contains("would overwrite g.tif"),
        "{}",
        replaced.stderr
    );
    assert_eq!(
        command(&["small.tif", "--depth", "8", "--fit", "20"]).code,
        0
    );
    assert_eq!(made("small.tif").shape().to_string(), "20×15 RGB, 8 bits");
    let jpeg = command(&["a.jpg"]);
    assert_eq!(jpeg.code, 0);
    assert!(
        jpeg.stderr.contains("JPEG stores 8 bits per sample"),
        "{}",
        jpeg.stderr
    );
    let dry = command(&["new.tif", "--dry-run", "--verbose"]);
    assert_eq!((dry.code, &*dry.stderr), (0, ""));
    for line in [
        "r.tif + g.tif + b.tif → new.tif: 40×30 RGB, 16 bits\n",
        "steps     combine\n",
        "output    40×30 RGB, 16 bits\n",
    ] {
        assert!(dry.stdout.contains(line), "{}", dry.stdout);
    }
    assert!(!root.path().join("new.tif").exists());
    let replacing = command(&["a.tif", "--dry-run", "--overwrite"]);
    assert!(
        replacing.stdout.contains(", replaces a file"),
        "{}",
        replacing.stdout
    );
    let stats = command(&["stats.tif", "--stats=json"]);
    let report: serde_json::Value = serde_json::from_str(&stats.stderr).expect("JSON");
    assert_eq!(report["verb"], "combine");
    let gpu = command(&["gpu.tif", "--device", "gpu"]);
    assert!(gpu.code != 0 && !root.path().join("gpu.tif").exists());
    // From standard input, to standard output.
    let mut process = Command::new(crate::support::binary());
    process.args(["combine", "r.tif", "-", "b.tif", "-", "--format", "png"]);
    process.stdin(Stdio::from(
        File::open(root.path().join("g.tif")).expect("a file"),
    ));
    let output = process
        .current_dir(root.path())
        .output()
        .expect("the program");
    assert!(
        read(&output.stdout).expect("a PNG").0 == expected,
        "{}",
        told(output).stderr
    );
}

/// A damaged input leaves no output, and `--keep-going` fills the lost part of its channel alone.
#[test]
fn damage_of_one_channel() {
    let plane = image(64, 64, 1, Depth::Sixteen, Kind::Noise);
    let whole = Build {
        strip: 16,
        ..Build::default()
    }
    .file(&plane);
    let png = {
        let root = folder(&[("a.tif", &whole)]);
        go(root.path(), &["convert", "a.tif", "a.png"])
    };
    let root = folder(&[("r.tif", &whole), ("g.png", &png[..png.len() / 2])]);
    let args = ["combine", "r.tif", "g.png", "r.tif", "out.tif"];
    let done = run(root.path(), &args, &[]);
    assert_eq!(done.code, 1);
    assert!(done.stderr.contains("g.png"), "{}", done.stderr);
    assert!(!root.path().join("out.tif").exists());
    let done = run(root.path(), &[&args[..], &["--keep-going"]].concat(), &[]);
    assert_eq!(done.code, 1);
    assert!(done.stderr.contains("g.png: "), "{}", done.stderr);
    let made = read(&fs::read(root.path().join("out.tif")).expect("a file"))
        .expect("a TIFF")
        .0;
    let red: Vec<u64> = numbers(&made).into_iter().step_by(3).collect();
    assert!(red == numbers(&plane));
    assert_eq!(numbers(&made).last(), numbers(&plane).last());
}

/// The library gives what the verb gives.
#[test]
fn the_library_combines_images_in_memory() {
    let plane = |samples: [u8; 2]| gpuimg::Image::new(2, 1, 1, samples.to_vec()).expect("2×1");
    let rgb = gpuimg::combine(vec![plane([1, 2]), plane([3, 4]), plane([5, 6])]).expect("RGB");
    assert_eq!(rgb.to_vec::<u8>().expect("8 bits"), [1, 3, 5, 2, 4, 6]);
    let colours = vec![
        (plane([100, 200]), [255, 0, 0]),
        (plane([50, 100]), [255, 0, 51]),
    ];
    let blended = gpuimg::combine_colours(colours).expect("RGB");
    assert_eq!(
        blended.to_vec::<u8>().expect("8 bits"),
        [150, 0, 10, 255, 0, 20]
    );
    let other = gpuimg::Image::new(1, 2, 1, vec![1u8, 2]).expect("1×2");
    let error = gpuimg::combine(vec![plane([1, 2]), other, plane([1, 2])]).expect_err("sizes");
    assert_eq!(
        error.to_string(),
        "image 2 is 1×2 grey, 8 bits, but image 1 is 2×1 grey, 8 bits: they must have the same size and type"
    );
    assert!(gpuimg::combine(Vec::new()).is_err());
    assert!(gpuimg::combine_colours(Vec::new()).is_err());
    let debayered: gpuimg::Operations = "debayer RGGB --method malvar".parse().expect("a step");
    assert_eq!(debayered.to_string(), "debayer");
}

/// Some files state a maximum that their samples exceed: it limited the colours.
#[test]
fn an_untrue_maximum_cut_the_colours_off() {
    let channel = grey([[0, 4095, 9999]]);
    let file = Build::default().tag(281, 3, &[4095]).file(&channel);
    let names = ["r.tif", "g.tif", "b.tif"];
    let root = folder(&names.map(|name| (name, &file[..])));
    let colours = "C1=red,C2=green,C3=blue";
    let made = go(
        root.path(),
        &[
            "combine",
            "--colours",
            colours,
            "r.tif",
            "g.tif",
            "b.tif",
            "o.tif",
        ],
    );
    let (image, _, _) = read(&made).expect("an image");
    assert_eq!(
        numbers(&image),
        [0, 0, 0, 4095, 4095, 4095, 9999, 9999, 9999]
    );
}

/// Both left the result without a word, also with -v; ReferenceBlackWhite kept the six numbers of three channels.
#[test]
fn facts_of_three_channels_left_without_a_word_or_stayed() {
    let chunk = |bits: &[u8]| (*b"sBIT", bits.to_vec());
    let png = |colour: u8, bits: &[u8]| {
        let mut plain = Plain::noisy(3, 2, 16, colour);
        plain.before.push(chunk(bits));
        plain.encoded(1)
    };
    let range = [0, 255, 128, 255, 128, 255].map(|number| number | 1 << 32);
    let page = image(3, 2, 3, Depth::Eight, Kind::Noise);
    let tif = Build::default().tag(532, 5, &range).file(&page);
    let root = folder(&[
        ("rgb.png", &png(2, &[12, 11, 10])),
        ("a.png", &png(0, &[12])),
        ("rgb.tif", &tif),
    ]);
    let said = |args: &[&str]| {
        let done = run(root.path(), args, &[]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        done.stderr
    };
    let bits = "how many bits are significant is left out: it ";
    let channel = said(&["convert", "--channel", "2", "rgb.png", "g.png", "-v"]);
    assert!(
        channel.contains(&format!("{bits}describes the previous channels")),
        "{channel}"
    );
    let mosaic = said(&["debayer", "RGGB", "a.png", "d.png", "-v"]);
    assert!(
        mosaic.contains(&format!("{bits}describes the previous channels")),
        "{mosaic}"
    );
    let blended = said(&[
        "combine",
        "--colours",
        "C1=red,C2=green",
        "a.png",
        "a.png",
        "c.png",
        "-v",
    ]);
    assert!(
        blended.contains(&format!("{bits}is not known of the result")),
        "{blended}"
    );
    let combined = said(&["combine", "a.png", "a.png", "a.png", "e.png", "-v"]);
    assert!(!combined.contains(bits), "{combined}");
    let file = fs::read(root.path().join("e.png")).expect("a file");
    assert_eq!(chunk_of(&file, b"sBIT"), Some(vec![12, 12, 12]));
    let channel = said(&["convert", "--channel", "2", "rgb.tif", "g.tif", "-v"]);
    assert!(
        channel.contains("tag 532 is left out: it describes the previous channels"),
        "{channel}"
    );
    let file = fs::read(root.path().join("g.tif")).expect("a file");
    assert_eq!(tag(&file, 532), None);
}

/// The name of a result was checked against the channels of the input.
#[test]
fn a_grey_result_needed_the_name_of_colours() {
    let root = folder(&[
        ("rgb.ppm", &b"P6 1 1 255\n\x01\x02\x03"[..]),
        ("m.pgm", &b"P5 2 2 255\n\x01\x02\x03\x04"[..]),
    ]);
    let grey = go(
        root.path(),
        &["convert", "--channel", "2", "rgb.ppm", "g.pgm"],
    );
    assert_eq!(grey, b"P5\n1 1\n255\n\x02");
    let done = run(root.path(), &["debayer", "RGGB", "m.pgm", "o.pgm"], &[]);
    assert_eq!(done.code, 1, "{}", done.stderr);
    assert!(done.stderr.contains("call it o.ppm"), "{}", done.stderr);
    assert!(!root.path().join("o.pgm").exists());
}
