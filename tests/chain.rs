//! Several verbs in one pass. The law is one: the bytes of every output are those of the verbs one after
//! the other, through files that lose nothing.

use crate::support::formats::{format, written};
use crate::support::stacks::stack;
use crate::support::tiff::Build;
use crate::support::{Kind, Numbers, folder, gpu, image, listing, run, samples};
use gpuimg::internals::engine::{Destination, Resources, RunRecord, process_file};
use gpuimg::internals::formats::{Options, Pages, Reading};
use gpuimg::internals::gpu::{Choice, Devices};
use gpuimg::internals::image::metadata::{Alpha, Metadata};
use gpuimg::internals::image::{Depth, Image, Shape};
use gpuimg::internals::ops::calibrate::{Calibrate, Frame};
use gpuimg::internals::ops::normalize::Normalize;
use gpuimg::internals::ops::symmetry::Symmetry;
use gpuimg::internals::ops::{Operation, Scope, chain};
use std::fs;
use std::path::Path;

/// The kinds of step, `calibrate` among them.
const STEPS: usize = 9;

/// A step for images of this shape.
fn step(number: usize, shape: Shape, signed: bool) -> Box<dyn Operation> {
    let normalize = |clip: Option<&str>, to: Option<&str>, per_channel, scope| {
        Box::new(Normalize {
            clip: clip.map(|clip| clip.parse().expect("percentiles")),
            to: to.map(|to| to.parse().expect("a range")),
            per_channel,
            scope,
            ..Normalize::default()
        })
    };
    match number {
        0 => normalize(None, None, false, Scope::Stack),
        1 => normalize(Some("5:90"), None, true, Scope::Stack),
        2 => normalize(None, Some("3:101"), false, Scope::Page),
        3 => Box::new(Symmetry::Rotate90),
        4 => Box::new(Symmetry::FlipHorizontal),
        5 => Box::new(Symmetry::Transpose),
        6 => Box::new(Symmetry::Rotate180),
        7 => Box::new(calibrate(shape, signed, Some(9))),
        _ => Box::new(calibrate(shape, signed, None)),
    }
}

/// Frames of this shape: a dark frame of small values, and with `hot` no flat field.
fn calibrate(shape: Shape, signed: bool, hot: Option<u16>) -> Calibrate {
    let mut numbers = Numbers::new(shape.samples() as u64);
    let mut frame = |least: u16, span: u64, name: &str| {
        let zero = if signed {
            1 << (shape.depth.bits() - 1)
        } else {
            0
        };
        let each = (0..shape.samples()).map(|_| zero + least + (numbers.next() % span) as u16);
        let image = Image::new(shape, samples(each.collect(), shape.depth));
        Some(Frame::new(name, image, signed))
    };
    let dark = frame(0, 20, "dark");
    let flat = frame(30, 90, "flat").filter(|_| hot.is_none());
    Calibrate::new(dark, flat, 5, hot).expect("frames")
}

fn destination(path: &Path, depth: Option<Depth>, auto_orient: bool) -> Destination {
    Destination {
        folder: None,
        path: path.into(),
        format: None,
        options: Options::default(),
        overwrite: true,
        sync: false,
        depth,
        auto_orient,
        fit: None,
        low_memory: false,
        store: Default::default(),
    }
}

/// Counts how many cases were compared, and how many could not be made by either way.
#[derive(Debug, Default, PartialEq)]
struct Cases {
    same: usize,
    refused: usize,
}

/// Holds a chain against its steps, on one device and on the CPU.
struct Law<'a> {
    chained: &'a Devices,
    single: &'a Devices,
    root: &'a Path,
    cases: Cases,
}

impl Law<'_> {
    fn made(
        &self,
        devices: &Devices,
        ops: &[&dyn Operation],
        (input, to): (&Path, Destination),
        pages: Option<Pages>,
    ) -> Result<(), String> {
        let resources = Resources {
            devices,
            budget: None,
            reading: Reading {
                pages,
                ..Reading::default()
            },
            require_regular_file: false,
            position: None,
            gpu_times: false,
        };
        let done = process_file(ops, input, Some(&to), &resources, RunRecord::NONE);
        done.map(drop).map_err(|error| format!("{error:#}"))
    }

    /// `file` is an image of this shape as the first step gets it, rotated upright and widened where the
    /// options say so.
    fn holds(
        &mut self,
        (name, file): (&str, &[u8]),
        (shape, signed): (Shape, bool),
        steps: &[usize],
        (depth, auto_orient, pages): (Option<Depth>, bool, Option<Pages>),
    ) {
        let what = format!("{name}, {shape}, {signed}, {steps:?}, {depth:?}, {auto_orient}");
        let extension = Path::new(name).extension().expect("an extension");
        let path = |stem: &str| self.root.join(stem).with_extension(extension);
        fs::write(path("in"), file).expect("file");
        let mut shape = shape;
        let mut ops: Vec<Box<dyn Operation>> = Vec::new();
        for &number in steps {
            let op = step(number, shape, signed);
            shape = chain::output(&*op, shape);
            ops.push(op);
        }
        let ops: Vec<&dyn Operation> = ops.iter().map(|op| &**op).collect();
        let last = ops.len() - 1;
        let mut expected = Ok(());
        for (index, op) in ops.iter().enumerate() {
            let wanted = match depth {
                Some(Depth::Sixteen) if index == 0 => depth,
                Some(Depth::Eight) if index == last => depth,
                _ => None,
            };
            let from = path(&if index == 0 {
                "in".into()
            } else {
                format!("{}", index - 1)
            });
            let to = destination(&path(&index.to_string()), wanted, auto_orient && index == 0);
            let pages = pages.filter(|_| index == 0);
            expected = expected.and_then(|()| self.made(self.single, &[*op], (&from, to), pages));
        }
        let to = destination(&path("chain"), depth, auto_orient);
        let found = self.made(self.chained, &ops, (&path("in"), to), pages);
        match (&expected, &found) {
            (Ok(()), Ok(())) => {
                let [expected, found] = [path(&last.to_string()), path("chain")]
                    .map(|path| fs::read(path).expect("file"));
                assert!(expected == found, "{what}");
                self.cases.same += 1;
            }
            (Err(_), Err(_)) => self.cases.refused += 1,
            _ => panic!("{what}: {expected:?}, {found:?}"),
        }
    }
}

/// Every pair of steps and as many chains of three and four, over small sizes, channels, depths, formats,
/// signs, orientations, pages and the options of the output.
fn matrix(law: &mut Law, sizes: &[(usize, usize)]) {
    let mut numbers = Numbers::new(22);
    let mut chance = |of: u64| (numbers.next() >> 20) % of;
    let mut chains: Vec<Vec<usize>> = Vec::new();
    for first in 0..STEPS {
        for second in 0..STEPS {
            chains.push(vec![first, second]);
            let longer = 3 + chance(2) as usize;
            chains.push((0..longer).map(|_| chance(STEPS as u64) as usize).collect());
        }
    }
    for steps in &chains {
        for &(width, height) in sizes {
            for depth in [Depth::Eight, Depth::Sixteen] {
                let channels = 1 + chance(4) as usize;
                let kind =
                    [Kind::Noise, Kind::Narrow, Kind::Extremes, Kind::Flat][chance(4) as usize];
                let page = image(width, height, channels, depth, kind);
                let signed = chance(4) == 0;
                let calibrates = steps[0] >= 7;
                // A step that subtracts frames keeps the depth and the orientation.
                let wanted = match chance(3) {
                    0 if !calibrates => Some(Depth::Sixteen),
                    1 if steps[steps.len() - 1] < 7 => Some(Depth::Eight),
                    _ => None,
                };
                let turned = !calibrates && chance(3) == 0;
                let mut shape = page.shape();
                if wanted == Some(Depth::Sixteen) {
                    shape.depth = Depth::Sixteen;
                }
                if turned {
                    (shape.width, shape.height) = (shape.height, shape.width);
                }
                let (name, file, signed) = match chance(4) {
                    0 if !turned => ("a.pam", pam(&page), false),
                    1 if !turned => ("a.png", png(&page), false),
                    2 if !turned => {
                        let metadata = Metadata {
                            signed,
                            ..Metadata::default()
                        };
                        let other = image(width, height, channels, depth, Kind::Noise);
                        (
                            "a.tif",
                            stack(&[page.clone(), other, page], &metadata),
                            signed,
                        )
                    }
                    _ => {
                        let sign = if signed { 2 } else { 1 };
                        let build = Build::default().tag(339, 3, &vec![sign; channels]);
                        let build = build.tag(274, 3, &[if turned { 6 } else { 1 + chance(8) }]);
                        ("a.tif", build.file(&page), signed)
                    }
                };
                let pages = Pages { first: 1, last: 1 };
                let pages = (name == "a.tif" && chance(4) == 0).then_some(pages);
                law.holds(
                    (name, &file),
                    (shape, signed),
                    steps,
                    (wanted, turned, pages),
                );
            }
        }
    }
}

/// A PAM with fewer values than its depth has, alpha by its name.
fn pam(page: &Image) -> Vec<u8> {
    let shape = page.shape();
    let most = if shape.depth == Depth::Eight {
        200u16
    } else {
        5000
    };
    let kind = ["GRAYSCALE", "GRAYSCALE_ALPHA", "RGB", "RGB_ALPHA"][shape.channels - 1];
    let mut file = format!(
        "P7\nWIDTH {}\nHEIGHT {}\nDEPTH {}\nMAXVAL {most}\nTUPLTYPE {kind}\nENDHDR\n",
        shape.width, shape.height, shape.channels
    )
    .into_bytes();
    match page.samples() {
        gpuimg::internals::image::Samples::U8(bytes) => {
            file.extend(bytes.iter().map(|&b| b.min(most as u8)))
        }
        gpuimg::internals::image::Samples::U16(words) => {
            file.extend(words.iter().flat_map(|&word| word.min(most).to_be_bytes()));
        }
        gpuimg::internals::image::Samples::U32(_) | gpuimg::internals::image::Samples::U64(_) => {
            unreachable!()
        }
    }
    file
}

fn png(page: &Image) -> Vec<u8> {
    crate::support::png_encode::encoded(page, gpuimg::internals::formats::png::Mode::Fast)
}

#[test]
fn one_pass_gives_what_the_verbs_give_one_after_the_other() {
    let root = folder(&[]);
    let cpu = Devices::new(Choice::Cpu);
    let mut law = Law {
        chained: &cpu,
        single: &cpu,
        root: root.path(),
        cases: Cases::default(),
    };
    matrix(&mut law, &[(1, 1), (3, 2), (31, 33)]);
    assert!(law.cases.same > 700, "{:?}", law.cases);
    assert!(law.cases.refused < law.cases.same / 4, "{:?}", law.cases);
}

/// The same where all steps are carried out in a GPU's memory, which is that of its single steps too.
#[test]
fn one_pass_on_a_gpu_gives_the_bytes_of_the_cpu() {
    if gpu(2 * 2 * STEPS * STEPS).is_none() {
        return;
    }
    let root = folder(&[]);
    let (cpu, chained) = (
        Devices::new(Choice::Cpu),
        Devices::new(Choice::Gpu(Some(0))),
    );
    let mut law = Law {
        chained: &chained,
        single: &cpu,
        root: root.path(),
        cases: Cases::default(),
    };
    matrix(&mut law, &[(3, 2), (257, 129)]);
    assert!(law.cases.same > 400, "{:?}", law.cases);
}

/// A folder of images of one kind, a dark frame for them and one for them turned.
fn place() -> tempfile::TempDir {
    let page = |seed: u16, kind| {
        let noise = image(31, 20, 1, Depth::Sixteen, kind);
        let gpuimg::internals::image::Samples::U16(words) = noise.samples() else {
            unreachable!()
        };
        let words = words.iter().map(|&word| word / 4 + seed).collect();
        Image::new(noise.shape(), samples(words, Depth::Sixteen))
    };
    let plain = |seed, kind| Build::default().file(&page(seed, kind));
    let pages: Vec<Image> = (0..4).map(|index| page(300 * index, Kind::Noise)).collect();
    let place = folder(&[
        ("in/a.tif", &plain(900, Kind::Noise)),
        ("in/b.tif", &plain(20_000, Kind::Narrow)),
        ("in/deep/c.tif", &plain(3, Kind::Extremes)),
        ("dark.tif", &plain(0, Kind::Narrow)),
    ]);
    fs::write(
        place.path().join("stack.tif"),
        stack(&pages, &Metadata::default()),
    )
    .unwrap();
    let done = run(
        place.path(),
        &["rotate", "90", "dark.tif", "turned.tif"],
        &[],
    );
    assert_eq!(done.code, 0, "{}", done.stderr);
    place
}

fn go(root: &Path, args: &[&str]) -> crate::support::Run {
    let done = run(root, args, &[]);
    assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
    done
}

/// The files below two folders, byte by byte, without the journals.
fn same(root: &Path, a: &str, b: &str) {
    let read = |name: &str| {
        let tree = crate::support::batch::tree(&root.join(name));
        let images = tree
            .into_iter()
            .filter(|(name, _)| name.extension().is_some_and(|e| e == "tif"));
        images.collect::<std::collections::BTreeMap<_, _>>()
    };
    let (a, b) = (read(a), read(b));
    assert!(!a.is_empty());
    assert!(a == b, "{:?} and {:?}", a.keys(), b.keys());
}

/// The command, over a folder: own ranges, that of the whole set, and that of a histogram.
#[test]
fn the_verb() {
    let place = place();
    let root = place.path();
    let chains = [
        ("o", "", &["normalize", "--clip", "1:99"][..]),
        (
            "x",
            " --across",
            &["normalize", "--clip", "1:99", "--across"],
        ),
    ];
    for (name, across, normalize) in chains {
        let verbs = format!(
            "rotate 90 + calibrate --dark turned.tif --offset=7 + normalize --clip 1:99{across} + flip horizontal"
        );
        go(root, &["run", &verbs, "in", name]);
        let steps = |n: usize| format!("{name}{n}");
        go(root, &["rotate", "90", "in", &steps(1)]);
        go(
            root,
            &[
                "calibrate",
                "--dark",
                "turned.tif",
                "--offset=7",
                &steps(1),
                &steps(2),
            ],
        );
        go(root, &[normalize, &[&steps(2), &steps(3)]].concat());
        go(root, &["flip", "horizontal", &steps(3), &steps(4)]);
        same(root, name, &steps(4));
    }
    go(root, &["histogram", "x2", "-o", "x.hist"]);
    let verbs = "rotate 90 + calibrate --dark turned.tif --offset=7 + normalize --clip 1:99 --range-from x.hist + flip horizontal";
    go(root, &["run", verbs, "in", "h"]);
    same(root, "h", "x");
    // Two that measure the set, one after the other.
    go(
        root,
        &[
            "run",
            "normalize --across --to 0:999 + calibrate --dark dark.tif + normalize --across",
            "in",
            "two",
        ],
    );
    go(
        root,
        &["normalize", "--across", "--to", "0:999", "in", "two1"],
    );
    go(root, &["calibrate", "--dark", "dark.tif", "two1", "two2"]);
    go(root, &["normalize", "--across", "two2", "two3"]);
    same(root, "two", "two3");
    // Pages of a stack, of which the chain takes two.
    go(
        root,
        &[
            "run",
            "calibrate --dark dark.tif + normalize + normalize --scope page --to 5:70",
            "stack.tif",
            "p.tif",
            "--pages",
            "2-3",
        ],
    );
    go(
        root,
        &[
            "calibrate",
            "--dark",
            "dark.tif",
            "stack.tif",
            "p1.tif",
            "--pages",
            "2-3",
        ],
    );
    go(root, &["normalize", "p1.tif", "p2.tif"]);
    go(
        root,
        &[
            "normalize",
            "--scope",
            "page",
            "--to",
            "5:70",
            "p2.tif",
            "p3.tif",
        ],
    );
    let read = |name: &str| fs::read(root.join(name)).unwrap();
    assert!(read("p.tif") == read("p3.tif"));
    // What is reported.
    let told = go(
        root,
        &[
            "run",
            "normalize + rotate 90",
            "dark.tif",
            "-",
            "--format",
            "tiff",
            "--stats=json",
        ]
        .map(|word| if word == "-" { "s.tif" } else { word }),
    );
    let stats: serde_json::Value = serde_json::from_str(&told.stderr).unwrap();
    assert_eq!(stats["verb"], "run");
    let stages = stats["stages"].to_string();
    assert!(
        ["scale", "rotate"]
            .iter()
            .all(|stage| stages.contains(stage)),
        "{stages}"
    );
    go(
        root,
        &[
            "run",
            "normalize + rotate 90",
            "in",
            "r",
            "--report",
            "r.jsonl",
        ],
    );
    let report = fs::read_to_string(root.join("r.jsonl")).unwrap();
    assert_eq!(report.lines().count(), 3);
    assert!(report.contains("ranges"), "{report}");
}

/// A run continues where another with the same verbs stopped, and makes anew what other verbs made.
#[test]
fn a_run_is_resumed_by_all_of_its_verbs() {
    let place = place();
    let root = place.path();
    let verbs = "calibrate --dark dark.tif + normalize + rotate 90";
    let line = |verbs, more: &[&'static str]| {
        let done = go(
            root,
            &[
                &["run", verbs, "in", "out", "--resume", "--overwrite"],
                more,
            ]
            .concat(),
        );
        done.stderr
    };
    line(verbs, &[]);
    let first = crate::support::batch::tree(&root.join("out"));
    fs::remove_file(root.join("out/a.tif")).unwrap();
    assert!(line(verbs, &[]).contains("already done"));
    let words = |tree: &std::collections::BTreeMap<_, Vec<u8>>| {
        let images = tree
            .iter()
            .filter(|(name, _): &(&std::path::PathBuf, _)| name.extension().is_some());
        images.map(|(_, file)| file.clone()).collect::<Vec<_>>()
    };
    assert!(words(&crate::support::batch::tree(&root.join("out"))) == words(&first));
    for other in [
        "calibrate --dark dark.tif --offset 1 + normalize + rotate 90",
        "calibrate --dark dark.tif + normalize + rotate 270",
        "normalize + calibrate --dark dark.tif + rotate 90",
        "calibrate --dark dark.tif + normalize",
    ] {
        assert!(!line(other, &[]).contains("already done"), "{other}");
        assert!(
            words(&crate::support::batch::tree(&root.join("out"))) != words(&first),
            "{other}"
        );
        assert!(!line(verbs, &[]).contains("already done"), "{other}");
        assert!(
            words(&crate::support::batch::tree(&root.join("out"))) == words(&first),
            "{other}"
        );
    }
    // In place: done once, whatever the number of runs.
    go(
        root,
        &[
            "run",
            "normalize --to 3:9000 + rotate 90",
            "in",
            "in",
            "--overwrite",
        ],
    );
    let once = crate::support::batch::tree(&root.join("in"));
    let again = go(
        root,
        &[
            "run",
            "normalize --to 3:9000 + rotate 90",
            "in",
            "in",
            "--overwrite",
            "--resume",
        ],
    );
    assert!(again.stderr.contains("already done"), "{}", again.stderr);
    assert!(words(&crate::support::batch::tree(&root.join("in"))) == words(&once));
}

#[test]
fn what_is_refused() {
    let place = place();
    let root = place.path();
    let before = listing(root);
    for (code, verbs, more, told) in [
        (2, "sum", &[][..], "it does not produce images"),
        (
            2,
            "normalize + rotate 91",
            &[],
            "rotate: expected 90, 180 or 270",
        ),
        (
            2,
            "normalize --overwrite",
            &[],
            "--overwrite goes after the verbs",
        ),
        (
            2,
            "calibrate --dark dark.tif + normalize",
            &["--depth", "16"],
            "use --depth in a later step",
        ),
        (
            2,
            "normalize + calibrate --dark dark.tif",
            &["--depth", "8"],
            "use --depth in a later step",
        ),
        (
            2,
            "calibrate --dark dark.tif + normalize",
            &["--auto-orient"],
            "--auto-orient would rotate",
        ),
        (
            2,
            "rotate 90 + normalize --across",
            &["--depth", "16"],
            "apply --depth 16 in an earlier run",
        ),
        (
            2,
            "rotate 90 + normalize --across",
            &["--shard", "1/2"],
            "--across and --shard",
        ),
        (
            2,
            "rotate 90 + normalize --across",
            &["--watch"],
            "--across measures all images first",
        ),
        (
            1,
            "rotate 90 + calibrate --dark dark.tif",
            &[],
            "cannot calibrate 3 files (first: in/a.tif): it is 20×31 grey",
        ),
        (
            1,
            "rotate 90 + calibrate --dark missing.tif",
            &[],
            "cannot read missing.tif",
        ),
    ] {
        let args = [&["run", verbs], more, &["in", "out", "-q"]].concat();
        let done = run(root, &args, &[]);
        assert_eq!(done.code, code, "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains(told), "{args:?}: {}", done.stderr);
        if code == 2 {
            assert_eq!(listing(root), before, "{args:?}");
        }
        let _ = fs::remove_dir_all(root.join("out"));
    }
    let done = run(
        root,
        &[
            "run",
            "normalize + rotate 90",
            "in",
            "dark.tif",
            "--overwrite",
        ],
        &[],
    );
    assert_eq!(done.code, 2, "{}", done.stderr);
    let done = run(
        root,
        &[
            "run",
            "calibrate --dark dark.tif + normalize",
            "in/a.tif",
            "dark.tif",
            "--overwrite",
        ],
        &[],
    );
    assert!(
        done.code == 2 && done.stderr.contains("which is a frame"),
        "{}",
        done.stderr
    );
}

/// The same bytes on a GPU, where the batch's frames stay, and several workers share them.
#[test]
fn the_verb_on_a_gpu() {
    if gpu(3).is_none() {
        return;
    }
    let place = place();
    for device in ["cpu", "gpu"] {
        let verbs = "calibrate --dark dark.tif --hot 90 + normalize --clip 1:99 + rotate 90";
        go(
            place.path(),
            &["run", verbs, "in", device, "--device", device],
        );
    }
    same(place.path(), "cpu", "gpu");
}

/// A PNG large enough that a GPU decodes it: its pixels stay there until they are compressed again.
#[test]
fn a_png_that_a_gpu_decodes_goes_through_all_verbs_there() {
    if gpu(4).is_none() {
        return;
    }
    for (channels, depth) in [
        (1, Depth::Sixteen),
        (3, Depth::Sixteen),
        (4, Depth::Eight),
        (2, Depth::Sixteen),
    ] {
        let page = image(1103, 1009, channels, depth, Kind::Noise);
        let place = folder(&[("in.png", &png(&page)), ("dark.png", &png(&page))]);
        for device in ["cpu", "gpu"] {
            let verbs = "calibrate --dark dark.png --offset 90 + normalize + rotate 90 + normalize --clip 2:98";
            let out = format!("{device}.png");
            go(
                place.path(),
                &["run", verbs, "in.png", &out, "--device", device],
            );
        }
        let read = |name: &str| fs::read(place.path().join(name)).unwrap();
        assert!(read("cpu.png") == read("gpu.png"), "{channels}, {depth:?}");
    }
}

/// Steps were checked with the channels and the size of the input, not with those that the step gets.
#[test]
fn chains_that_work_one_by_one_were_refused() {
    let place = folder(&[]);
    let root = place.path();
    let unspecified = Metadata {
        alpha: Alpha::Unspecified,
        ..Metadata::default()
    };
    let bytes = |depth, channels, metadata: &Metadata| {
        let image = image(9, 12, channels, depth, Kind::Noise);
        written(format("tiff"), &[image], metadata).expect("a file")
    };
    let extra = bytes(Depth::ThirtyTwo, 2, &unspecified);
    fs::write(root.join("extra.tif"), extra).expect("written");
    let wide = bytes(Depth::ThirtyTwo, 1, &Metadata::default());
    fs::write(root.join("wide.tif"), wide).expect("written");
    for (input, steps, last) in [
        ("extra.tif", ["convert --channel 1", "normalize"], &[][..]),
        (
            "extra.tif",
            ["convert --channel 2", "normalize --clip 1:99"],
            &[],
        ),
        ("wide.tif", ["crop 0,0,4x4", "rotate 90"], &["--fit", "8"]),
    ] {
        let chain = steps.join(" + ");
        let verbs = [&["run", &chain, input, "chain.tif", "-f"], last].concat();
        let done = run(root, &verbs, &[]);
        assert_eq!((done.code, &*done.stderr), (0, ""), "{chain}");
        let (first, second) = (steps[0].split(' '), steps[1].split(' '));
        let first: Vec<&str> = first.chain([input, "step.tif", "-f"]).collect();
        let second: Vec<&str> = second.chain(["step.tif", "one.tif", "-f"]).collect();
        assert_eq!(run(root, &first, &[]).code, 0);
        let done = run(root, &[&second[..], last].concat(), &[]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        let read = |name: &str| fs::read(root.join(name)).expect("a file");
        assert!(read("chain.tif") == read("one.tif"), "{chain}");
    }
    // What is still there is still refused.
    let done = run(
        root,
        &["run", "flip h + normalize", "extra.tif", "o.tif"],
        &[],
    );
    assert!(
        done.code == 1 && done.stderr.contains("unspecified meaning"),
        "{}",
        done.stderr
    );
}
