//! Lut: literals of each table, naive → rayon, refused images, and the verb with files, stacks, streams and steps.

use crate::support::contract::{tag, text};
use crate::support::formats::{read, read_pages};
use crate::support::shell::shell;
use crate::support::stacks::stack;
use crate::support::tiff::Build;
use crate::support::watch::{Watch, until};
use crate::support::{Kind, folder, grey, image, on_cpu, run};
use clap::ValueEnum;
use gpuimg::internals::image::metadata::Metadata;
use gpuimg::internals::image::{Depth, Image, Samples};
use gpuimg::internals::ops::lut::{Lut, Palette};
use gpuimg::internals::ops::symmetry::Symmetry;
use gpuimg::internals::ops::{self, OpResult, Operation, SampleTypes, Statistics};
use gpuimg::internals::timing::Timeline;
use rustix::process::Signal;
use std::fs;

/// Around the chunks of parallel work (196,608 samples), and awkward ones.
const SIZES: [(usize, usize); 6] = [
    (1, 1),
    (3, 2),
    (1, 97),
    (443, 444),
    (196_609, 1),
    (512, 768),
];

fn naive(palette: Palette, image: &Image) -> Image {
    match ops::naive(&Lut { palette }, image)
        .expect("a grey image")
        .result
    {
        OpResult::Image(image) => image,
        numbers => panic!("{numbers:?}"),
    }
}

/// The colours of 16 bits, by the definition and from the CPU.
fn deep(palette: Palette, image: &Image) -> [Image; 2] {
    let lut = Lut { palette };
    let mut types = SampleTypes::plain_for(&lut, &image.shape());
    types.written.depth = Depth::Sixteen;
    let bound = lut.bind(types, &Statistics::None).expect("bound");
    let fast = bound.cpu(image.clone(), &mut Timeline::default());
    [bound.naive(image), fast].map(|result| match result.expect("a grey image") {
        OpResult::Image(image) => image,
        numbers => panic!("{numbers:?}"),
    })
}

fn words(image: &Image) -> &[u16] {
    match image.samples() {
        Samples::U16(samples) => samples,
        _ => panic!("16 bits were expected"),
    }
}

fn bytes(image: &Image) -> &[u8] {
    match image.samples() {
        Samples::U8(samples) => samples,
        _ => panic!("8 bits were expected"),
    }
}

/// From ImageJ's menu (Image › Lookup Tables › fire, then Image › Color › Show LUT), from matplotlib's `to_hex(cmap(i))`, and
/// worked out by hand.
#[test]
fn colours_of_each_table() {
    for (palette, colours) in [
        (
            Palette::Gray,
            [[0, 0, 0], [1, 1, 1], [128, 128, 128], [255, 255, 255]],
        ),
        (
            Palette::Viridis,
            [[68, 1, 84], [68, 2, 86], [33, 145, 140], [253, 231, 37]],
        ),
        (
            Palette::Magma,
            [[0, 0, 4], [1, 0, 5], [183, 55, 121], [252, 253, 191]],
        ),
        (
            Palette::Inferno,
            [[0, 0, 4], [1, 0, 5], [188, 55, 84], [252, 255, 164]],
        ),
        // 61/8 = 7.6 is rounded down. The 17th knot is at 128.
        (
            Palette::Fire,
            [[0, 0, 0], [0, 0, 7], [240, 79, 0], [255, 255, 255]],
        ),
        // √(1/255)·255 = 15.97, sin(2π/255)·255 = 6.28; √(128/255)·255 = 180.7, (128/255)³·255 = 32.25.
        (
            Palette::Ironbow,
            [[0, 0, 0], [16, 0, 6], [181, 32, 0], [255, 255, 0]],
        ),
    ] {
        let table = palette.table();
        let found = [0, 1, 128, 255].map(|index| table[index]);
        assert_eq!(found, colours, "{palette:?}");
    }
    // Between two knots, and after the last one.
    let fire = Palette::Fire.table();
    assert_eq!(
        [fire[20], fire[124], fire[248], fire[251]],
        [[13, 0, 113], [234, 68, 2], [255; 3], [255; 3]]
    );
    let ironbow = Palette::Ironbow.table();
    assert_eq!(ironbow[64], [128, 4, 255]);
}

/// The upper byte of 16 bits is the index.
#[test]
fn three_by_two_samples_by_hand() {
    let sixteen = grey([[0, 255, 256], [0x80FF, 0xFF00, 0xFFFF]]);
    #[rustfmt::skip]
    let expected = [
        0, 0, 0,    0, 0, 0,        0, 0, 7,
        240, 79, 0, 255, 255, 255,  255, 255, 255,
    ];
    assert_eq!(bytes(&naive(Palette::Fire, &sixteen)), expected);
    let coloured = on_cpu(
        &Lut {
            palette: Palette::Fire,
        },
        &sixteen,
    );
    assert_eq!(bytes(&coloured), expected);
    assert_eq!(
        (
            coloured.shape().width,
            coloured.shape().height,
            coloured.shape().channels
        ),
        (3, 2, 3)
    );
}

/// The colours 0, 1, 128 and 255 of fire are (0, 0, 0), (0, 0, 7), (240, 79, 0) and (255, 255, 255). A sample of 257·i has
/// exactly the colour i; 128·257 + 1 has 256 parts of colour 128 and one of colour 129, which is (241, 81, 0).
#[test]
fn colours_of_sixteen_bits_by_hand() {
    let samples = grey([[0, 1, 257], [128 * 257, 128 * 257 + 1, 0xFFFF]]);
    assert_eq!(Palette::Fire.table()[129], [241, 81, 0]);
    #[rustfmt::skip]
    let expected = [
        0, 0, 0,              0, 0, 7,                  0, 0, 7 * 257,
        61680, 20303, 0,      61681, 20305, 0,          65535, 65535, 65535,
    ];
    for image in deep(Palette::Fire, &samples) {
        assert_eq!(words(&image), expected);
    }
}

/// Samples of 8 bits have the colours of the table, and `gray` gives every sample of 16 bits back.
#[test]
fn laws_of_colours_of_sixteen_bits() {
    let bytes_in = image(37, 21, 1, Depth::Eight, Kind::Noise);
    let words_in = image(37, 21, 1, Depth::Sixteen, Kind::Noise);
    for &palette in Palette::value_variants() {
        let narrow = naive(palette, &bytes_in);
        let wide = bytes(&narrow).iter().map(|&it| u16::from(it) * 257);
        assert!(words(&deep(palette, &bytes_in)[1]).iter().copied().eq(wide));
    }
    let grey = &deep(Palette::Gray, &words_in)[1];
    let samples = (0..37 * 21).flat_map(|pixel| [words_in.samples().at(pixel) as u16; 3]);
    assert!(words(grey).iter().copied().eq(samples));
}

#[test]
fn the_fast_version_equals_the_definition() {
    for &palette in Palette::value_variants() {
        for (width, height) in SIZES {
            for depth in [Depth::Eight, Depth::Sixteen] {
                let image = image(width, height, 1, depth, Kind::Noise);
                let coloured = on_cpu(&Lut { palette }, &image);
                assert!(
                    coloured == naive(palette, &image),
                    "{palette:?} {}",
                    image.shape()
                );
                let [definition, fast] = deep(palette, &image);
                assert!(definition == fast, "{palette:?} {}, deep", image.shape());
            }
        }
    }
}

/// Looking up commutes with moving pixels, and red of gray is the upper byte.
#[test]
fn laws() {
    let noise = image(37, 21, 1, Depth::Sixteen, Kind::Noise);
    let lut = Lut {
        palette: Palette::Viridis,
    };
    let turned = on_cpu(&lut, &on_cpu(&Symmetry::Rotate90, &noise));
    assert!(turned == on_cpu(&Symmetry::Rotate90, &on_cpu(&lut, &noise)));
    let gray = on_cpu(
        &Lut {
            palette: Palette::Gray,
        },
        &noise,
    );
    let upper = (0..37 * 21).map(|pixel| (noise.samples().at(pixel) >> 8) as u8);
    assert!(bytes(&gray).chunks(3).map(|pixel| pixel[0]).eq(upper));
}

#[test]
fn images_without_one_channel_of_8_or_16_bits_are_refused() {
    let white = Build::default()
        .tag(262, 3, &[0])
        .file(&image(4, 4, 1, Depth::Eight, Kind::Noise));
    let float = Build::default().file(&image(4, 4, 1, Depth::Float, Kind::Noise));
    let root = folder(&[
        ("rgb.ppm", b"P6 2 2 255\n123456789abc"),
        (
            "alpha.pam",
            b"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 2\nMAXVAL 255\nTUPLTYPE GRAYSCALE_ALPHA\nENDHDR\nab",
        ),
        ("white.tif", &white),
        ("float.tif", &float),
        ("grey.pgm", b"P5 2 1 255\n\x00\xff"),
    ]);
    for (input, words) in [
        (
            "rgb.ppm",
            "it is RGB, but lut needs grey images (use convert --channel",
        ),
        ("alpha.pam", "it is grey + alpha, but lut needs grey images"),
        ("white.tif", "0 is white in it, but black in RGB"),
        ("float.tif", "lut supports only 8- and 16-bit samples"),
    ] {
        let done = run(root.path(), &["lut", "fire", input, "out.png"], &[]);
        assert_eq!(done.code, 1, "{input}");
        assert!(done.stderr.contains(words), "{input}: {}", done.stderr);
        assert!(!root.path().join("out.png").exists());
    }
    let done = run(root.path(), &["lut", "jet", "grey.pgm", "out.png"], &[]);
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("ironbow"), "{}", done.stderr);
    assert!(!root.path().join("out.png").exists());
}

/// The verb, the step, folders, streams, stacks and bands of rows give the colours of the definition.
#[test]
fn the_verb_and_the_step() {
    let noise = image(1024, 1024, 1, Depth::Sixteen, Kind::Noise);
    let pages = [
        image(5, 3, 1, Depth::Sixteen, Kind::Noise),
        image(4, 4, 1, Depth::Sixteen, Kind::Extremes),
    ];
    let root = folder(&[
        ("in.tif", &Build::default().file(&noise)),
        ("stack.tif", &stack(&pages, &Metadata::default())),
        (
            "frames.pgm",
            b"P5 1 2 255\n\x00\x80P5 2 1 65535\n\xff\xff\x00\xff",
        ),
    ]);
    let go = |words: &[&str]| {
        let done = run(root.path(), words, &[]);
        assert_eq!((done.code, &*done.stderr), (0, ""), "{words:?}");
    };
    let file = |name: &str| fs::read(root.path().join(name)).expect("a file");
    let expected = naive(Palette::Inferno, &noise);
    go(&["lut", "Inferno", "in.tif", "a.tif"]);
    assert!(read(&file("a.tif")).expect("a TIFF").0 == expected);
    go(&[
        "lut",
        "inferno",
        "in.tif",
        "a.png",
        "--low-memory",
        "--depth",
        "8",
    ]);
    assert!(read(&file("a.png")).expect("a PNG").0 == expected);
    go(&["run", "lut inferno + flip vertical", "in.tif", "b.png"]);
    assert!(read(&file("b.png")).expect("a PNG").0 == on_cpu(&Symmetry::FlipVertical, &expected));
    go(&["normalize", "in.tif", "n.tif"]);
    go(&["lut", "fire", "n.tif", "c.tif"]);
    go(&["run", "normalize + lut fire", "in.tif", "d.tif"]);
    assert!(file("c.tif") == file("d.tif"));
    let deep_colours = &deep(Palette::Inferno, &noise)[0];
    for (made, more) in [("h.tif", "--device=cpu"), ("i.tif", "--low-memory")] {
        go(&["lut", "inferno", "in.tif", made, "--depth", "16", more]);
        assert!(read(&file(made)).expect("a TIFF").0 == *deep_colours);
    }
    for (made, verbs) in [
        ("j.png", "flip vertical + lut inferno"),
        ("k.png", "lut inferno + flip vertical"),
    ] {
        go(&["run", verbs, "in.tif", made, "--depth", "16"]);
        let expected = on_cpu(&Symmetry::FlipVertical, deep_colours);
        assert!(read(&file(made)).expect("a PNG").0 == expected, "{verbs}");
    }
    go(&["lut", "gray", "stack.tif", "e.tif"]);
    let found = read_pages(&file("e.tif")).expect("a stack").0;
    assert_eq!(found, pages.map(|page| naive(Palette::Gray, &page)));
    let stream = r#""$0" lut grey - - --format pnm < frames.pgm > f.ppm"#;
    assert_eq!(shell(root.path(), stream).code, 0);
    let stream = r#""$0" lut fire - - --format pnm --depth 16 < frames.pgm | head -c 23 > g.ppm"#;
    assert_eq!(shell(root.path(), stream).code, 0);
    assert_eq!(
        file("g.ppm"),
        b"P6\n1 2\n65535\n\x00\x00\x00\x00\x00\x00\xf0\xf0\x4f\x4f"
    );
    let frames = b"P6\n1 2\n255\n\x00\x00\x00\x80\x80\x80P6\n2 1\n255\n\xff\xff\xff\x00\x00\x00";
    assert_eq!(file("f.ppm"), frames);
    let plan = run(
        root.path(),
        &["lut", "fire", "in.tif", "g.tif", "--dry-run", "-v"],
        &[],
    );
    for line in ["steps     lut", "output    1024×1024 RGB, 8 bits"] {
        assert!(plan.stdout.contains(line), "{}", plan.stdout);
    }
}

#[test]
fn files_of_a_watched_folder_are_coloured() {
    let root = folder(&[("in/a.pgm", b"P5 1 1 255\n\x80")]);
    let mut watch = Watch::start(
        root.path(),
        &["lut", "fire", "in", "out", "--format", "pnm", "--watch"],
    );
    let made = root.path().join("out/a.pnm");
    until("the first", || made.exists());
    watch.send(Signal::INT);
    watch.child.wait().expect("it ends");
    assert_eq!(
        fs::read(made).expect("a file"),
        b"P6\n1 1\n255\n\xf0\x4f\x00"
    );
}

/// An image of a camera of 12 bits would be nearly black, as would one of 0 to 235.
#[test]
fn dark_images_had_to_be_scaled_first() {
    let warning = "its samples have only the darkest eighth of the colours (use run 'normalize + lut …' to scale them first)";
    let samples = |most: u16| Build::default().file(&grey([[0, 100, most]]));
    let root = folder(&[
        ("dark.tif", &samples(0x1FFF)),
        ("light.tif", &samples(0x2000)),
    ]);
    for (input, warns) in [("dark.tif", true), ("light.tif", false)] {
        let done = run(
            root.path(),
            &["lut", "fire", input, "o.png", "--overwrite"],
            &[],
        );
        assert_eq!(done.code, 0);
        assert_eq!(done.stderr.contains(warning), warns, "{}", done.stderr);
        let done = run(
            root.path(),
            &["run", "normalize + lut fire", input, "o.png", "--overwrite"],
            &[],
        );
        assert_eq!((done.code, &*done.stderr), (0, ""));
    }
}

/// Signed samples are counted from the smallest one, and the result has no sign, whatever follows.
#[test]
fn signed_samples_become_unsigned_colours() {
    let signed = Build::default()
        .tag(339, 3, &[2])
        .file(&grey([[0, 0x7FFF, 0x8000, 0xFFFF]]));
    let root = folder(&[("in.tif", &signed)]);
    for words in ["lut gray", "lut gray + flip vertical"] {
        let done = run(root.path(), &["run", words, "in.tif", "out.tif", "-f"], &[]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        let file = fs::read(root.path().join("out.tif")).expect("a file");
        assert!(tag(&file, 339).is_none_or(|kinds| kinds.iter().all(|&kind| kind == 1)));
        let found = read(&file).expect("a TIFF").0;
        assert_eq!(
            bytes(&found).iter().step_by(3).collect::<Vec<_>>(),
            [&0x80, &0xFF, &0, &0x7F]
        );
    }
}

/// The range of `normalize --undo` is not recorded, because the colours are not its samples; other metadata are kept.
#[test]
fn metadata_describe_the_colours() {
    let file = Build::default()
        .tag(269, 2, &[109, 111, 115, 0])
        .tag(280, 3, &[0])
        .tag(34675, 7, &[1, 2, 3])
        .file(&image(6, 4, 1, Depth::Eight, Kind::Noise));
    let root = folder(&[("in.tif", &file)]);
    let done = run(
        root.path(),
        &["run", "normalize --undo + lut fire", "in.tif", "out.tif"],
        &[],
    );
    assert_eq!(done.code, 0, "{}", done.stderr);
    let made = fs::read(root.path().join("out.tif")).expect("a file");
    assert_eq!(text(&made, 269).as_deref(), Some("mos"));
    assert_eq!(
        (tag(&made, 262), tag(&made, 258)),
        (Some(vec![2]), Some(vec![8, 8, 8]))
    );
    for number in [280, 34675, 42112] {
        assert_eq!(tag(&made, number), None, "{number}");
    }
}
