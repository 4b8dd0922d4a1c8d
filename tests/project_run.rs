//! `project` as the first step of `gpuimg run`. The law is that of a chain: the bytes of the output are those of the verbs one
//! after the other, through a file that loses nothing.

use crate::support::tiff::Build;
use crate::support::{Kind, Run, axes, counted, folder, gpu, image, listing, run, run_on_cpu};
use gpuimg::internals::image::{Depth, Image};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Three images that differ, of so many channels.
fn noise(channels: usize, depth: Depth) -> [Image; 3] {
    [0, 5, 11].map(|more| {
        let long = image(23, 17 + more, channels, depth, Kind::Noise);
        let shape = gpuimg::internals::image::Shape {
            height: 17,
            ..long.shape()
        };
        let skip = more * shape.row();
        let values = (skip..skip + shape.samples()).map(|i| long.samples().at(i));
        let samples = match depth {
            Depth::Eight => values.map(|v| v as u8).collect::<Vec<_>>().into(),
            Depth::Sixteen => values.map(|v| v as u16).collect::<Vec<_>>().into(),
            _ => values.map(|v| v as u32).collect::<Vec<_>>().into(),
        };
        Image::new(shape, samples)
    })
}

/// Folders of three images each: `grey`, `rgb`, `signed` and `real`, and a dark frame of `grey`.
fn place() -> TempDir {
    let root = folder(&[]);
    let sets = [
        ("grey", noise(1, Depth::Sixteen), Build::default()),
        ("rgb", noise(3, Depth::Eight), Build::default()),
        (
            "signed",
            noise(1, Depth::Sixteen),
            Build::default().tag(339, 3, &[2]),
        ),
        (
            "real",
            noise(1, Depth::Float),
            Build::default().tag(339, 3, &[3]),
        ),
    ];
    for (name, images, build) in sets {
        let folder = root.path().join(name);
        fs::create_dir(&folder).expect("a folder");
        for (number, image) in images.iter().enumerate() {
            fs::write(folder.join(format!("{number}.tif")), build.file(image)).expect("a file");
        }
    }
    fs::copy(root.path().join("grey/1.tif"), root.path().join("dark.tif")).expect("a copy");
    root
}

fn go(root: &Path, args: &[&str]) -> Run {
    let done = run_on_cpu(root, args);
    assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
    done
}

/// The folders of images.
const SETS: [&str; 4] = ["grey", "rgb", "signed", "real"];

const PROJECTIONS: [&str; 7] = [
    "mean",
    "max",
    "median",
    "sum --saturate",
    "sum --to 32",
    "mean --to f32",
    "mean --sigma 1",
];

/// Verbs after a projection, and options of the output.
const CHAINS: [(&str, &[&str]); 6] = [
    ("normalize", &[]),
    ("rotate 90 + crop 1,2,9x8", &["--depth", "16"]),
    ("normalize --clip 5:90 + flip vertical", &["--depth", "8"]),
    ("convert", &["--fit", "9"]),
    ("normalize --range-from grey.hist", &[]),
    ("calibrate --dark dark.tif + lut fire", &[]),
];

#[test]
fn one_pass_gives_what_the_verbs_give_one_after_the_other() {
    let place = place();
    let root = place.path();
    let read = |name: &str| fs::read(root.join(name)).ok();
    go(root, &["histogram", "grey", "-o", "grey.hist"]);
    let (mut same, mut refused) = (0, 0);
    for set in SETS {
        for projection in PROJECTIONS {
            let projected: Vec<&str> = projection.split(' ').collect();
            let single = run_on_cpu(
                root,
                &[&["project"], &projected[..], &[set, "p.tif"]].concat(),
            );
            for (chain, options) in CHAINS {
                let what = format!("{set}, {projection}, {chain}");
                let verbs = format!("project {projection} + {chain}");
                let chained = run_on_cpu(root, &[&["run", &verbs, set, "o.tif"], options].concat());
                let next = run_on_cpu(root, &[&["run", chain, "p.tif", "e.tif"], options].concat());
                let expected = read("e.tif").filter(|_| single.code == 0);
                let found = read("o.tif");
                assert!(
                    found == expected,
                    "{what}: {}{}",
                    chained.stderr,
                    next.stderr
                );
                assert_eq!(
                    chained.code == 0,
                    found.is_some(),
                    "{what}: {}",
                    chained.stderr
                );
                match found {
                    Some(_) => same += 1,
                    None => refused += 1,
                }
                for file in ["o.tif", "e.tif"] {
                    let _ = fs::remove_file(root.join(file));
                }
            }
            let _ = fs::remove_file(root.join("p.tif"));
        }
    }
    // Half of the chains need samples of 8 or 16 bits, or those of the dark frame.
    assert_eq!((same, refused), (82, 86));
}

/// The projection and the verbs after it have the bytes of the CPU, or the reason why a GPU cannot compute them.
#[test]
fn one_pass_on_a_gpu_gives_the_bytes_of_the_cpu() {
    if gpu(SETS.len() * PROJECTIONS.len() * CHAINS.len()).is_none() {
        return;
    }
    let place = place();
    let root = place.path();
    go(root, &["histogram", "grey", "-o", "grey.hist"]);
    let (mut same, mut refused, mut without_kernel) = (0, 0, 0);
    for set in SETS {
        for projection in PROJECTIONS {
            for (chain, options) in CHAINS {
                // There is no kernel for lut.
                let chain = chain.replace("lut fire", "rotate 180");
                let verbs = format!("project {projection} + {chain}");
                let [cpu, gpu] = ["cpu", "gpu"].map(|device| {
                    let args = ["run", &verbs, set, "o.tif", "--device", device];
                    let done = run(root, &[&args, options].concat(), &[]);
                    let output = fs::read(root.join("o.tif")).ok();
                    let _ = fs::remove_file(root.join("o.tif"));
                    assert_eq!(done.code == 0, output.is_some(), "{verbs}: {}", done.stderr);
                    (output, done.stderr)
                });
                let reasons = ["the GPU does not ", "the GPU rounds "];
                if gpu.0.is_none() && reasons.iter().any(|reason| gpu.1.contains(reason)) {
                    without_kernel += 1;
                    continue;
                }
                assert!(gpu.0 == cpu.0, "{set}, {verbs}: {}", gpu.1);
                match gpu.0 {
                    Some(_) => same += 1,
                    None => refused += 1,
                }
            }
        }
    }
    // As many as an H200 has kernels for.
    let counts =
        format!("{same} the same, {refused} refused by both, {without_kernel} without a kernel");
    assert!(same >= 66, "{counts}");
    counted(&counts);
}

/// The pages that remain along an axis are one stack, with one range.
#[test]
fn an_axis_leaves_a_stack() {
    let root = folder(&[("s.tif", &axes::file(12, axes::HYPERSTACK))]);
    let root = root.path();
    go(root, &["project", "max", "s.tif", "p.tif", "--axis", "z"]);
    go(root, &["normalize", "p.tif", "e.tif"]);
    go(
        root,
        &["run", "project max --axis z + normalize", "s.tif", "o.tif"],
    );
    let read = |name: &str| fs::read(root.join(name)).expect("a file");
    assert!(read("o.tif") == read("e.tif"));
    assert!(read("o.tif").len() > 100 && read("o.tif") != read("p.tif"));
}

#[test]
fn a_projection_alone_and_a_stream() {
    let place = place();
    let root = place.path();
    go(root, &["project", "mean", "grey", "e.tif"]);
    go(root, &["run", "project mean", "grey", "o.tif"]);
    go(root, &["run", "project mean", "grey", "-o", "p.tif"]);
    let read = |name: &str| fs::read(root.join(name)).expect("a file");
    assert!(read("o.tif") == read("e.tif") && read("p.tif") == read("e.tif"));
    // The range that an option asks for is reported, as by the verb.
    let done = go(
        root,
        &["run", "project mean + normalize --auto", "grey", "n.tif"],
    );
    assert!(
        done.stderr.contains("n.tif: scaled from the range"),
        "{}",
        done.stderr
    );
}

#[test]
fn other_results_than_one_image_are_refused() {
    let place = place();
    let root = place.path();
    let before = listing(root);
    for (code, args, told) in [
        (
            2,
            &["rotate 90 + project mean", "grey", "o.tif"][..],
            "must be the first step",
        ),
        (
            2,
            &["project mean + normalize", "grey", "out/"],
            "a projection is a single image",
        ),
        (
            2,
            &["project mean", "grey", "o.tif", "--stack"],
            "--stack cannot be combined",
        ),
        (
            2,
            &["project mean", "grey", "o.tif", "--watch"],
            "--watch cannot be combined",
        ),
        (
            2,
            &["project mean + normalize --across", "grey", "o.tif"],
            "remove --across",
        ),
        (
            2,
            &[
                "project mean + calibrate --dark dark.tif",
                "grey",
                "o.tif",
                "--depth",
                "16",
            ],
            "calibrate keeps the depth",
        ),
        (
            2,
            &["project mean + calibrate --dark o.tif", "grey", "o.tif"],
            "o.tif",
        ),
        (
            1,
            &["project mean + crop 0,0,99x99", "grey", "o.tif"],
            "crop",
        ),
    ] {
        let done = run_on_cpu(root, &[&["run"], args].concat());
        assert_eq!(done.code, code, "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains(told), "{args:?}: {}", done.stderr);
        assert_eq!(listing(root), before, "{args:?}");
    }
}

/// JPEG and BMP store 8 bits: deeper results are converted as by `convert`, which is reported once.
#[test]
fn formats_of_8_bits_convert_the_result() {
    let place = place();
    let root = place.path();
    let read = |name: &str| fs::read(root.join(name)).expect("a file");
    go(root, &["project", "mean", "grey", "p.tif"]);
    for name in ["x.bmp", "x.jpg"] {
        let expected = format!("expected-{name}");
        let told = go(root, &["convert", "p.tif", &expected]).stderr;
        let single = go(root, &["project", "mean", "grey", name]).stderr;
        let first = |text: &str| text.lines().next().map(String::from);
        assert!(told.contains("stores 8 bits per sample"), "{told}");
        assert_eq!(first(&single), first(&told));
        assert!(read(name) == read(&expected), "{name}");
        go(
            root,
            &[
                "run",
                "project mean + rotate 180",
                "grey",
                &format!("run-{name}"),
            ],
        );
        let turned = format!("turned-{name}");
        go(root, &["rotate", "180", "p.tif", &turned]);
        assert!(read(&format!("run-{name}")) == read(&turned), "{name}");
        for part in ["1/2", "2/2"] {
            let partial = format!("parts/{}.partial", &part[..1]);
            let args = [
                "project",
                "mean",
                "grey",
                &partial,
                "--partial",
                "--shard",
                part,
                "--overwrite",
            ];
            go(root, &args);
        }
        let merged = format!("merged-{name}");
        go(root, &["merge", "parts", "-o", &merged]);
        assert!(read(&merged) == read(&expected), "{name}");
    }
    // Images of 8 bits stay as they are.
    let told = go(root, &["project", "max", "rgb", "y.bmp"]).stderr;
    assert!(!told.contains("8 bits"), "{told}");
}
