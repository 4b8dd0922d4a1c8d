//! `--low-memory`: in bands of rows an image becomes the same file as at once, with the same messages, and in less memory; where that
//! is not possible, a warning says so.

use crate::support::formats::{format, written};
use crate::support::png::foreign;
use crate::support::tiff::Build;
use crate::support::{Kind, Run, folder, image, key, run};
use gpuimg::internals::image::metadata::Metadata;
use gpuimg::internals::image::{Depth, Image};
use std::fs;
use std::path::Path;
use std::process::Command;

const BANDS: &str = "in bands of rows";

/// Shapes of more than the 2 MiB from which on pages come in bands, with rows of awkward lengths, that make several bands for one
/// thread.
fn images() -> Vec<Image> {
    [
        (1237, 1403, 1, Depth::Sixteen),
        (613, 1109, 3, Depth::Sixteen),
        (1301, 1201, 2, Depth::Eight),
        (409, 901, 4, Depth::Sixteen),
        (1213, 1201, 3, Depth::Eight),
        (2603, 1201, 1, Depth::Eight),
    ]
    .map(|(width, height, channels, depth)| image(width, height, channels, depth, Kind::Noise))
    .into()
}

/// A file of every kind that is read from top to bottom.
fn files(image: &Image) -> Vec<(String, Vec<u8>)> {
    let mut files = vec![("foreign.png".into(), foreign(image))];
    let page = std::slice::from_ref(image);
    for id in ["png", "npy", "fits", "pam", "pnm"] {
        if let Ok(file) = written(format(id), page, &Metadata::default()) {
            files.push((format!("own.{id}"), file));
        }
    }
    for (compression, strip, tile, predictor, big_endian) in [
        (1, usize::MAX, None, false, false),
        (1, 7, None, false, true),
        (1, 64, None, true, false),
        (8, 33, None, true, true),
        (5, 100, None, false, false),
        (8, 16, Some((112, 48)), false, false),
        (1, 16, Some((256, 256)), false, true),
    ] {
        let build = Build {
            compression,
            strip,
            tile,
            predictor,
            big_endian,
            ..Build::default()
        };
        let name = format!("{compression}-{strip}-{tile:?}-{predictor}-{big_endian}.tif");
        files.push((name, build.file(image)));
    }
    files
}

/// Runs a verb on a file without and with `--low-memory`, on one thread or several; both must give the same file and say the same. How
/// often the second one went in bands.
fn same(root: &Path, verb: &[&str], to: &str, threads: &str) -> bool {
    let of = |low: bool| -> (Run, Option<Vec<u8>>) {
        let path = root.join(to);
        let _ = fs::remove_file(&path);
        let mut words = verb.to_vec();
        words.extend([to, "-v"]);
        words.extend(low.then_some("--low-memory"));
        let run = run(root, &words, &[("RAYON_NUM_THREADS", threads)]);
        (run, fs::read(path).ok())
    };
    let ((whole, expected), (bands, made)) = (of(false), of(true));
    let what = format!("{verb:?} {to} on {threads}: {}", bands.stderr);
    assert_eq!(whole.code, bands.code, "{what}");
    assert!(expected == made, "{what}");
    // Without the lines of the plan that name the device and the bands.
    let said = |run: &Run| -> Vec<String> {
        let lines = run
            .stderr
            .lines()
            .filter(|line| !line.contains("CPU (") && !line.starts_with("  memory"));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(said(&whole), said(&bands), "{what}");
    bands.stderr.contains(BANDS)
}

#[test]
fn every_file_becomes_the_same_in_bands() {
    let mut counted = 0;
    for image in images() {
        for (name, file) in files(&image) {
            let root = folder(&[(&name, &file)]);
            for (to, threads) in [("o.png", "1"), ("o.tif", "3")] {
                let what = format!("{} {name} {to}", image.shape());
                let in_bands = same(root.path(), &["normalize", &name], to, threads);
                assert!(in_bands, "{what}");
                counted += 1;
            }
        }
    }
    assert!(counted > 6 * 2 * 11, "{counted}");
}

#[test]
fn every_option_gives_the_same_in_bands() {
    let mut counted = 0;
    for image in [0, 3, 4].map(|index| images().swap_remove(index)) {
        let shape = image.shape();
        let root = folder(&[("a.png", &foreign(&image))]);
        for options in [
            &["normalize", "--clip", "0.5:99", "a.png"][..],
            &["normalize", "--per-channel", "a.png"],
            &["normalize", "--range", "10:90%", "a.png"],
            &["normalize", "--range", "12:200", "a.png"],
            &["normalize", "--to", "5:77", "a.png"],
            &["normalize", "--ignore", "0,17", "a.png"],
            &["normalize", "--undo", "a.png"],
            &["normalize", "--depth", "8", "a.png"],
            &["normalize", "--depth", "16", "a.png"],
            &["flip", "horizontal", "a.png"],
            &["flip", "horizontal", "--depth", "16", "a.png"],
        ] {
            for to in ["o.png", "o.npy"] {
                counted += usize::from(same(root.path(), options, to, "2"));
            }
        }
        for options in [
            &["--tiff", "deflate"][..],
            &["--tiff", "zstd"],
            &["--tiff", "lzw"],
            &["--png", "small"],
            &["--png", "store"],
        ] {
            let to = if options[0] == "--tiff" {
                "o.tif"
            } else {
                "o.png"
            };
            let verb = [&["normalize", "a.png"], options].concat();
            assert!(same(root.path(), &verb, to, "1"), "{shape} {options:?}");
            counted += 1;
        }
    }
    assert!(counted >= 3 * 24, "{counted}");
}

#[test]
fn samples_of_32_bits_are_the_same_in_bands() {
    let mut counted = 0;
    for (channels, depth) in [(1, Depth::Float), (3, Depth::Float), (1, Depth::ThirtyTwo)] {
        let mut image = image(701, 1103, channels, depth, Kind::Noise);
        for (i, four) in (image
            .samples_mut()
            .as_bytes_mut()
            .as_chunks_mut::<4>()
            .0
            .iter_mut())
        .enumerate()
        {
            *four = match depth {
                Depth::Float => key((i as f32 * 0.37).sin() * 1e3),
                _ => (i as u32).wrapping_mul(2_654_435_769),
            }
            .to_ne_bytes();
        }
        let page = std::slice::from_ref(&image);
        for id in ["npy", "tiff", "fits"] {
            let Ok(file) = written(format(id), page, &Metadata::default()) else {
                continue;
            };
            let root = folder(&[("a", &file)]);
            for verb in [
                &["normalize", "a"][..],
                &["normalize", "--depth", "8", "a"],
                &["normalize", "--nan", "0", "a"],
                &["normalize", "--curve", "asinh", "a"],
                &["normalize", "--curve", "log", "--depth", "8", "a"],
                &["flip", "horizontal", "a"],
            ] {
                for to in ["o.tif", "o.npy", "o.png"] {
                    counted += usize::from(same(root.path(), verb, to, "2"));
                }
                counted += usize::from(same(
                    root.path(),
                    &[verb, &["--tiff", "zstd"]].concat(),
                    "o.tif",
                    "1",
                ));
            }
        }
    }
    assert!(counted >= 3 * 2 * 23, "{counted}");
}

#[test]
fn a_range_without_a_value_in_it_is_warned_of_in_bands() {
    let mut rows = image(1237, 1403, 1, Depth::Sixteen, Kind::Noise);
    let bytes = rows.samples_mut().as_bytes_mut();
    // The least and the most are in different bands.
    for (i, pair) in bytes.as_chunks_mut::<2>().0.iter_mut().enumerate() {
        *pair = (1000 + (i / 1237) as u16).to_ne_bytes();
    }
    let root = folder(&[("a.png", &foreign(&rows))]);
    let verb = ["normalize", "--range", "5000:6000", "a.png"];
    assert!(same(root.path(), &verb, "o.png", "1"));
    let said = run(
        root.path(),
        &[&verb[..], &["o.npy", "--low-memory"]].concat(),
        &[],
    );
    let sentence = "the samples range from 1000 to 2402";
    assert!(said.stderr.contains(sentence), "{}", said.stderr);
}

#[test]
fn values_up_to_a_largest_one_are_the_same_in_bands() {
    for channels in [1, 3] {
        let mut image = image(1237, 1403, channels, Depth::Sixteen, Kind::Noise);
        for pair in image.samples_mut().as_bytes_mut().as_chunks_mut::<2>().0 {
            *pair = (u16::from_ne_bytes(*pair) >> 4).to_ne_bytes();
        }
        let metadata = Metadata {
            maxval: Some(4095),
            ..Metadata::default()
        };
        let file = written(format("pnm"), std::slice::from_ref(&image), &metadata).unwrap();
        let root = folder(&[("a.pnm", &file)]);
        for verb in [
            &["normalize", "a.pnm"][..],
            &["normalize", "--depth", "8", "a.pnm"],
            &["flip", "horizontal", "a.pnm"],
            &["flip", "horizontal", "--depth", "8", "a.pnm"],
        ] {
            for to in ["o.pnm", "o.png", "o.tif"] {
                assert!(same(root.path(), verb, to, "2"), "{verb:?} {to}");
            }
        }
    }
}

#[test]
fn stacks_and_folders_are_the_same_in_bands() {
    let pages: Vec<Image> = [Kind::Noise, Kind::Narrow]
        .map(|kind| image(1237, 1403, 1, Depth::Sixteen, kind))
        .into();
    let stack = written(format("tiff"), &pages, &Metadata::default()).unwrap();
    let root = folder(&[("a.tif", &stack), ("b.png", &foreign(&pages[1]))]);
    for verb in [
        &["normalize", "a.tif"][..],
        &["normalize", "--scope", "page", "a.tif"],
        &["normalize", "--stack", "a.tif", "b.png"],
        &["normalize", "--tiff", "deflate", "a.tif"],
    ] {
        assert!(same(root.path(), verb, "o.tif", "2"), "{verb:?}");
    }
    for (verb, names) in [
        (
            &["normalize", "--split", "a.tif"][..],
            ["a-0001.tif", "a-0002.tif"],
        ),
        (&["normalize", "a.tif", "b.png"], ["a.tif", "b.png"]),
        (
            &["normalize", "--across", "a.tif", "b.png"],
            ["a.tif", "b.png"],
        ),
    ] {
        for (into, low) in [("whole", None), ("bands", Some("--low-memory"))] {
            let words = [verb, &[into, "--overwrite"]].concat();
            let words: Vec<&str> = words.into_iter().chain(low).collect();
            let run = run(root.path(), &words, &[]);
            assert_eq!(run.code, 0, "{}", run.stderr);
        }
        for name in names {
            let [whole, bands] =
                ["whole", "bands"].map(|into| fs::read(root.path().join(into).join(name)).unwrap());
            assert!(whole == bands, "{verb:?} {name}");
        }
    }
    // It is the same job.
    let words = ["normalize", "a.tif", "b.png", "bands", "--resume"];
    let first = run(root.path(), &[&words[..], &["--overwrite"]].concat(), &[]);
    let again = run(root.path(), &[&words[..], &["--low-memory"]].concat(), &[]);
    assert_eq!((first.code, again.code), (0, 0), "{}", again.stderr);
    assert!(again.stderr.contains("2 already done"), "{}", again.stderr);
}

#[test]
fn in_place_and_from_a_pipe() {
    let picture = &images()[0];
    let root = folder(&[("a.png", &foreign(picture)), ("b.png", &foreign(picture))]);
    let whole = run(root.path(), &["normalize", "a.png", "o.png"], &[]);
    let words = [
        "normalize",
        "b.png",
        "b.png",
        "--overwrite",
        "--low-memory",
        "-v",
    ];
    let bands = run(root.path(), &words, &[]);
    assert_eq!((whole.code, bands.code), (0, 0), "{}", bands.stderr);
    assert!(bands.stderr.contains(BANDS), "{}", bands.stderr);
    let read = |name| fs::read(root.path().join(name)).unwrap();
    assert!(read("o.png") == read("b.png"));
    let piped = Command::new("sh")
        .args([
            "-c",
            "\"$0\" normalize - - --low-memory --format png <a.png >p.png",
        ])
        .arg(crate::support::binary())
        .current_dir(root.path())
        .status();
    assert!(piped.unwrap().success());
    assert!(read("o.png") == read("p.png"));
}

#[test]
fn damage_is_told_as_without_bands() {
    let picture = &images()[0];
    let mut counted = 0;
    for (name, file) in files(picture) {
        let mut damaged = [file[..file.len() - 1000].to_vec(), file.clone()];
        let middle = file.len() / 2;
        damaged[1][middle] ^= 0x55;
        for bytes in damaged {
            let root = folder(&[(&name, &bytes)]);
            let [whole, bands] = [None, Some("--low-memory")].map(|low| {
                let words = ["normalize", "--range", "0:100", &name, "o.png"];
                let words: Vec<&str> = words.into_iter().chain(low).collect();
                let run = run(root.path(), &words, &[]);
                let made = fs::read(root.path().join("o.png")).ok();
                let _ = fs::remove_file(root.path().join("o.png"));
                (run.code, run.stderr, made)
            });
            assert!(whole == bands, "{name}: {} {}", whole.1, bands.1);
            counted += usize::from(whole.0 == 1);
        }
    }
    assert!(counted >= 16, "{counted}");
}

#[test]
fn what_is_in_memory_as_a_whole_is_said() {
    let picture = &images()[0];
    let root = folder(&[("a.png", &foreign(picture))]);
    for (words, why) in [
        (
            &["rotate", "90", "a.png", "o.png"][..],
            "it moves pixels from row to row",
        ),
        (
            &["normalize", "a.png", "o.ff"],
            "the output format needs whole images",
        ),
        (
            &["normalize", "--fit", "100", "a.png", "o.png"],
            "--fit shrinks it",
        ),
        (
            &["run", "normalize + flip horizontal", "a.png", "o.png"],
            "several verbs are applied",
        ),
    ] {
        let words = [words, &["--low-memory", "--overwrite"]].concat();
        let run = run(root.path(), &words, &[]);
        let sentence =
            format!("warning: a.png: --low-memory: the whole image is in memory because {why}");
        assert!(run.stderr.contains(&sentence), "{words:?}: {}", run.stderr);
    }
    let words = [
        "normalize",
        "a.png",
        "g.png",
        "--low-memory",
        "--device",
        "gpu",
    ];
    let run = run(root.path(), &words, &[]);
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(run.stderr.contains("remove --device gpu"), "{}", run.stderr);
}

/// 96 MB of samples, in an address space that does not hold them.
#[test]
fn an_image_that_memory_does_not_hold_was_refused() {
    // The program takes 40 MB of addresses, and glibc may reserve 64 MB for what a thread allocates, so that
    // 110,000 KiB sometimes left no room for a band. The samples alone take 96 MB.
    let picture = image(8000, 6000, 1, Depth::Sixteen, Kind::Narrow);
    let root = folder(&[("a.png", &foreign(&picture))]);
    let expected = run(root.path(), &["normalize", "a.png", "o.png"], &[]);
    assert_eq!(expected.code, 0, "{}", expected.stderr);
    for low in ["", "--low-memory"] {
        let script = format!("ulimit -v 125000; \"$0\" normalize a.png l.png {low} --overwrite");
        let out = Command::new("sh")
            .args(["-c", &script])
            .arg(crate::support::binary())
            .current_dir(root.path())
            .env("RAYON_NUM_THREADS", "1")
            .output();
        let out = crate::support::told(out.unwrap());
        assert_eq!(out.code, 0, "{low} {}", out.stderr);
        let read = |name| fs::read(root.path().join(name)).unwrap();
        assert!(read("o.png") == read("l.png"));
    }
}

/// Two pages of 24 MB, of which memory holds bands: `--stack` did not ask how much memory there is.
#[test]
fn a_stack_was_held_in_memory_whatever_the_memory() {
    let picture = image(4000, 3000, 1, Depth::Sixteen, Kind::Narrow);
    let page = std::slice::from_ref(&picture);
    let file = written(format("pnm"), page, &Metadata::default()).expect("a file");
    let root = folder(&[("a.pgm", &file), ("b.pgm", &file)]);
    let script = "ulimit -v 125000; \"$0\" normalize --range 0:60000 --stack a.pgm b.pgm o.tif -v";
    let out = Command::new("sh")
        .args(["-c", script])
        .arg(crate::support::binary())
        .current_dir(root.path())
        .env("RAYON_NUM_THREADS", "1")
        .output();
    let out = crate::support::told(out.unwrap());
    assert_eq!(out.code, 0, "{}", out.stderr);
    assert!(out.stderr.contains("memory    bands of"), "{}", out.stderr);
}

/// `--mem-limit` applied to the images of a folder, and not to a single file.
#[test]
fn the_limit_of_memory_was_ignored_for_one_file() {
    let picture = image(4000, 3000, 1, Depth::Sixteen, Kind::Narrow);
    let page = std::slice::from_ref(&picture);
    let file = written(format("pnm"), page, &Metadata::default()).expect("a file");
    let root = folder(&[("a.pgm", &file)]);
    let limited = |words: &[&str]| {
        let words = [words, &["--mem-limit", "50M", "--overwrite", "-v"]].concat();
        let run = run(root.path(), &words, &[]);
        assert_eq!(run.code, 0, "{words:?}: {}", run.stderr);
        run.stderr
    };
    for words in [
        &["normalize", "a.pgm", "o.pgm"][..],
        &["normalize", "--stack", "a.pgm", "o.tif"],
        &["normalize", "--split", "a.pgm", "out"],
    ] {
        let said = limited(words);
        assert!(said.contains("memory    bands of"), "{words:?}: {said}");
    }
    let said = limited(&["rotate", "90", "a.pgm", "o.pgm"]);
    let sentence = "warning: a.pgm: more memory than --mem-limit, or half of the free memory: the whole image is in memory \
                    because it moves pixels from row to row";
    assert!(said.contains(sentence), "{said}");
}
