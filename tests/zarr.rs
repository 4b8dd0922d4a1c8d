//! OME-Zarr stores that are written: their files by hand, the levels of pyramids, what is read back, and that a store is whole or is
//! not there. `tests/interop/zarr_written.py` reads stores of every type with zarr-python.

use crate::support::axes::{HYPERSTACK, file, images};
use crate::support::batch::{pgm, tree};
use crate::support::formats::{format, written};
use crate::support::stacks::stack;
use crate::support::{Kind, Run, binary, folder, grey, image, listing, run};
use gpuimg::internals::image::Depth;
use gpuimg::internals::image::metadata::Metadata;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

type Files = BTreeMap<PathBuf, Vec<u8>>;

fn gpuimg(folder: &Path, command: &str) -> Run {
    let args: Vec<&str> = command.split(' ').collect();
    run(folder, &args, &[("GPUIMG_DEVICE", "cpu")])
}

/// Runs a command that succeeds without a word.
fn done(folder: &Path, command: &str) {
    let Run { code, stderr, .. } = gpuimg(folder, command);
    assert_eq!((code, &*stderr), (0, ""), "{command}");
}

/// The files that a command makes of a TIFF, `in.tif`, below the store `out.zarr`.
fn store_of(file: &[u8], command: &str) -> Files {
    let place = folder(&[("in.tif", file)]);
    done(place.path(), command);
    assert_eq!(listing(place.path()), ["in.tif", "out.zarr"], "{command}");
    tree(&place.path().join("out.zarr"))
}

fn document(files: &Files, name: &str) -> Value {
    serde_json::from_slice(&files[Path::new(name)]).expect("JSON")
}

/// 3 × 2 pixels in chunks of 2 × 2, of which the second has a column that is not of the image, and a level of 2 × 1, whose pixels
/// cover one and a half columns: (0 + 30 + 5 + 20) / 3 = 18.33 and (20 + 51 + 5 + 20) / 3 = 32.
#[test]
fn a_store_by_hand() {
    let file = stack(&[grey([[0, 10, 20], [30, 40, 51]])], &Metadata::default());
    let options = "convert in.tif out.zarr --zarr none --zarr-chunk 2";
    let files = store_of(&file, options);
    let chunks = |names: [(&str, &[u8]); 3]| {
        for (name, bytes) in names {
            assert_eq!(files[Path::new(name)], bytes, "{name}");
        }
    };
    chunks([
        ("0/c/0/0", &[0, 0, 10, 0, 30, 0, 40, 0]),
        ("0/c/0/1", &[20, 0, 0, 0, 51, 0, 0, 0]),
        ("1/c/0/0", &[18, 0, 32, 0]),
    ]);
    assert_eq!(files.len(), 6, "{:?}", files.keys());
    let array = json!({
        "zarr_format": 3, "node_type": "array", "shape": [2, 3], "data_type": "uint16", "fill_value": 0, "attributes": {},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 2]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "dimension_names": ["y", "x"],
    });
    assert_eq!(document(&files, "0/zarr.json"), array);
    let level = |path: &str, transformations: Value| json!({"path": path, "coordinateTransformations": transformations});
    let ome = json!({"version": "0.5", "multiscales": [{
        "axes": [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}],
        "datasets": [
            level("0", json!([{"type": "scale", "scale": [1.0, 1.0]}])),
            level("1", json!([
                {"type": "scale", "scale": [2.0, 1.5]},
                {"type": "translation", "translation": [0.5, 0.25]},
            ])),
        ],
        "type": "mean",
    }]});
    let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {"ome": ome}});
    assert_eq!(document(&files, "zarr.json"), group);
}

/// Chunks that Blosc cannot make smaller are stored after a header of 16 bytes. Bytes have no place in a sample to be sorted by.
#[test]
fn blosc_by_hand() {
    for (sample, shuffle, file) in [
        (
            2,
            "shuffle",
            stack(&[grey([[1, 515]])], &Metadata::default()),
        ),
        (1, "noshuffle", b"P5\n2 1\n255\n\x07\x09".to_vec()),
    ] {
        let files = store_of(&file, "convert in.tif out.zarr --zarr blosc");
        let chunk = &files[Path::new("0/c/0/0")];
        let (size, length) = (2 * sample, 16 + 2 * sample);
        let header = [
            2, 1, 2, sample, size, 0, 0, 0, size, 0, 0, 0, length, 0, 0, 0,
        ];
        assert_eq!(chunk[..16], header);
        if sample == 2 {
            assert_eq!(chunk[16..], [1, 0, 3, 2]);
        }
        let blosc = json!({"name": "blosc", "configuration": {
            "cname": "zstd", "clevel": 1, "shuffle": shuffle, "typesize": sample, "blocksize": 262_144,
        }});
        assert_eq!(document(&files, "0/zarr.json")["codecs"][1], blosc);
    }
}

/// A shard of four chunks of one sample, of which one is not of the image: after the chunks, their offsets and lengths and the
/// CRC-32C of these.
#[test]
fn a_shard_by_hand() {
    let file = stack(&[grey([[1, 2], [3, 4], [5, 6]])], &Metadata::default());
    let files = store_of(
        &file,
        "convert in.tif out.zarr --zarr none --zarr-chunk 1 --zarr-shard 2 --zarr-levels 1",
    );
    let mut names = files.keys().map(|name| name.to_str().expect("text"));
    assert_eq!(
        names.by_ref().collect::<Vec<_>>(),
        ["0/c/0/0", "0/c/1/0", "0/zarr.json", "zarr.json"]
    );
    let shard = &files[Path::new("0/c/1/0")];
    let numbers = [0, 2, 2, 2, u64::MAX, u64::MAX, u64::MAX, u64::MAX];
    let index: Vec<u8> = numbers.into_iter().flat_map(u64::to_le_bytes).collect();
    assert_eq!(shard[..4], [5, 0, 6, 0]);
    assert_eq!(shard[4..68], index);
    assert_eq!(shard.len(), 72);
    let codecs = &document(&files, "0/zarr.json")["codecs"];
    assert_eq!(codecs[0]["name"], "sharding_indexed");
    assert_eq!(codecs[0]["configuration"]["chunk_shape"], json!([1, 1]));
}

/// ImageJ's pages lie channel by channel, then slice by slice, then frame by frame; those of OME-Zarr frame, channel, slice.
#[test]
fn pages_go_to_their_places_on_the_axes() {
    let files = store_of(&file(12, HYPERSTACK), "convert in.tif out.zarr --zarr none");
    for (page, image) in images().iter().enumerate() {
        let (c, z, t) = (page % 2, page / 2 % 3, page / 6);
        let name = format!("0/c/{t}/{c}/{z}/0/0");
        assert_eq!(
            files[Path::new(&name)],
            image.samples().as_bytes(),
            "{name}"
        );
    }
    assert_eq!(
        document(&files, "0/zarr.json")["shape"],
        json!([2, 2, 3, 2, 3])
    );
    let image = &document(&files, "zarr.json")["attributes"]["ome"]["multiscales"][0];
    let units = image["axes"].as_array().expect("axes").iter();
    let units: Vec<&Value> = units.map(|axis| &axis["unit"]).collect();
    let micrometer = &json!("micrometer");
    assert_eq!(
        units,
        [
            &json!("second"),
            &Value::Null,
            micrometer,
            micrometer,
            micrometer
        ]
    );
    let scale = &image["datasets"][0]["coordinateTransformations"][0]["scale"];
    assert_eq!(*scale, json!([2.0, 1.0, 0.5, 1.0, 1.0]));
}

/// Samples with a sign, whose outside of the image is 0, and RGB, whose colours become channels.
#[test]
fn signs_and_colours() {
    let metadata = Metadata {
        signed: true,
        ..Metadata::default()
    };
    // In memory −32768 is 0.
    let signed = stack(&[grey([[0, 32767, 32768]])], &metadata);
    let files = store_of(
        &signed,
        "convert in.tif out.zarr --zarr none --zarr-chunk 2 --zarr-levels 1",
    );
    assert_eq!(document(&files, "0/zarr.json")["data_type"], "int16");
    assert_eq!(files[Path::new("0/c/0/0")], [0, 128, 255, 255]);
    assert_eq!(files[Path::new("0/c/0/1")], [0, 0, 0, 0]);
    let colours = image(2, 1, 3, Depth::Eight, Kind::Noise);
    let bytes = colours.samples().as_bytes();
    let files = store_of(
        &stack(std::slice::from_ref(&colours), &Metadata::default()),
        "convert in.tif out.zarr --zarr none",
    );
    for channel in 0..3 {
        let plane = [bytes[channel], bytes[channel + 3]];
        assert_eq!(files[Path::new(&format!("0/c/{channel}/0/0"))], plane);
    }
    let channels = &document(&files, "zarr.json")["attributes"]["ome"]["omero"]["channels"];
    let of = |key: &str| {
        channels
            .as_array()
            .expect("channels")
            .iter()
            .map(|it| it[key].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(of("label"), ["red", "green", "blue"]);
    assert_eq!(of("color"), ["FF0000", "00FF00", "0000FF"]);
    let (least, most) = (bytes[0].min(bytes[3]), bytes[0].max(bytes[3]));
    let window =
        json!({"min": 0.0, "max": 255.0, "start": f64::from(least), "end": f64::from(most)});
    assert_eq!(channels[0]["window"], window);
}

/// A level whose sides are whole parts of the full size is what --fit makes of it.
#[test]
fn levels_are_those_of_fit() {
    let place = folder(&[("in.pgm", &pgm(96, 64, 5))]);
    let root = place.path();
    done(root, "convert in.pgm out.zarr --zarr-chunk 12");
    for (level, longer) in [(0, 96), (1, 48), (2, 24), (3, 12)] {
        done(
            root,
            &format!("convert out.zarr level.pgm --level {level} --overwrite"),
        );
        done(
            root,
            &format!("convert in.pgm fit.pgm --fit {longer} --overwrite"),
        );
        let [level, fit] =
            ["level.pgm", "fit.pgm"].map(|name| fs::read(root.join(name)).expect(name));
        assert!(level == fit, "{longer}");
    }
    let beyond = gpuimg(root, "convert out.zarr none.pgm --level 4");
    assert_eq!(beyond.code, 1, "{}", beyond.stderr);
}

/// Bands of rows, whatever their height, give the files that whole pages give.
#[test]
fn bands_of_rows_give_the_same_files() {
    let pages = [1, 2].map(|channels| image(700, 900 + channels, 1, Depth::Sixteen, Kind::Noise));
    for options in [
        "--zarr-chunk 100",
        "--zarr-chunk 64 --zarr-shard 256",
        "--zarr-levels 5",
    ] {
        let file = stack(&pages[..1], &Metadata::default());
        let command = format!("convert in.tif out.zarr {options}");
        let whole = store_of(&file, &command);
        let bands = store_of(&file, &format!("{command} --low-memory"));
        assert!(whole == bands, "{options}");
    }
}

/// What is written is read back, and written again with the same bytes.
#[test]
fn a_store_is_read_back() {
    for options in [
        "",
        " --zarr none",
        " --zarr blosc",
        " --zarr-chunk 2 --zarr-shard 4",
    ] {
        let place = folder(&[("in.tif", &file(12, HYPERSTACK))]);
        let root = place.path();
        done(root, &format!("convert in.tif a.zarr{options}"));
        done(root, &format!("convert a.zarr b.zarr{options}"));
        assert!(tree(&root.join("a.zarr")) == tree(&root.join("b.zarr")));
        done(root, "convert in.tif c2.npy --axes C=2");
        done(root, "convert a.zarr c2-again.npy --axes C=2");
        let [one, other] =
            ["c2.npy", "c2-again.npy"].map(|name| fs::read(root.join(name)).expect(name));
        assert!(one == other);
        let facts = gpuimg(root, "info a.zarr --json").stdout;
        let facts: Value = serde_json::from_str(&facts).expect("JSON");
        assert_eq!(facts["axes"], json!({"c": 2, "z": 3, "t": 2}));
    }
}

/// Files become slices, in the order of their names.
#[test]
fn a_folder_becomes_one_store() {
    let place = folder(&[
        ("in/a.pgm", &pgm(5, 4, 1)),
        ("in/b.pgm", &pgm(5, 4, 2)),
        ("other/c.pgm", &pgm(4, 5, 3)),
    ]);
    let root = place.path();
    done(root, "convert in -o out.zarr --stack");
    for page in ["1", "2"] {
        done(root, &format!("convert out.zarr {page}.pgm --page {page}"));
    }
    for (page, input) in [("1.pgm", "in/a.pgm"), ("2.pgm", "in/b.pgm")] {
        assert!(
            fs::read(root.join(page)).expect("a page")
                == fs::read(root.join(input)).expect("an input")
        );
    }
    // A folder of stores, and one store of pages of two sizes.
    done(root, "convert in stores/ --format zarr -q");
    for store in ["stores/a.zarr", "stores/b.zarr"] {
        assert!(root.join(store).join("0/c/0/0").exists(), "{store}");
    }
    let mixed = gpuimg(root, "convert in other -o mixed.zarr --stack");
    assert_eq!(mixed.code, 1);
    assert!(
        mixed.stderr.contains("page 3 is 4×5 grey, 16 bits"),
        "{}",
        mixed.stderr
    );
    assert!(!root.join("mixed.zarr").exists());
}

#[test]
fn only_stores_are_replaced() {
    let place = folder(&[
        ("in.pgm", &pgm(5, 4, 1)),
        ("other.pgm", &pgm(7, 3, 2)),
        ("notes.zarr/notes.txt", b"not a store"),
        ("file.zarr", b"a file"),
    ]);
    let root = place.path();
    fs::create_dir(root.join("empty.zarr")).expect("folder");
    done(root, "convert in.pgm out.zarr");
    fs::create_dir(root.join("out.zarr/labels")).expect("folder");
    let before = tree(root);
    for (command, words) in [
        (
            "convert other.pgm out.zarr",
            "it already exists (use --overwrite to replace it)",
        ),
        (
            "convert other.pgm notes.zarr --overwrite",
            "it is not a Zarr store and is not replaced",
        ),
        (
            "convert other.pgm empty.zarr --overwrite",
            "it is not a Zarr store and is not replaced",
        ),
        (
            "convert other.pgm file.zarr --overwrite",
            "it is a file, not a Zarr store",
        ),
        (
            "convert other.pgm notes.zarr --overwrite --dry-run",
            "it is not a Zarr store and is not replaced",
        ),
        (
            "convert other.pgm missing/out.zarr",
            "folder missing does not exist",
        ),
        (
            "convert other.pgm - --format zarr",
            "whose name must end in .zarr",
        ),
        (
            "convert other.pgm new.tif --format zarr",
            "whose name must end in .zarr",
        ),
        (
            "convert other.pgm new.zarr --format tiff",
            "is that of a Zarr store",
        ),
        (
            "convert other.pgm new.zarr --zarr-chunk 512 --zarr-shard 1000",
            "not a multiple of --zarr-chunk 512: use 1024",
        ),
    ] {
        let Run {
            code,
            stdout,
            stderr,
        } = gpuimg(root, command);
        assert_ne!(code, 0, "{command}");
        // A dry run prints what would fail.
        let printed = stdout + &stderr;
        assert!(printed.contains(words), "{command}: {printed}");
        assert!(tree(root) == before, "{command}");
    }
    done(root, "convert other.pgm out.zarr --overwrite --sync");
    done(root, "convert other.pgm new.zarr");
    assert!(tree(&root.join("out.zarr")) == tree(&root.join("new.zarr")));
    let names = [
        "empty.zarr",
        "file.zarr",
        "in.pgm",
        "new.zarr",
        "notes.zarr",
        "other.pgm",
        "out.zarr",
    ];
    assert_eq!(listing(root), names);
    // A link is not followed.
    std::os::unix::fs::symlink("new.zarr", root.join("link.zarr")).expect("link");
    let linked = gpuimg(root, "convert in.pgm link.zarr --overwrite");
    assert!(
        linked
            .stderr
            .contains("it is a symbolic link, not a Zarr store"),
        "{}",
        linked.stderr
    );
    // In place.
    done(root, "flip vertical new.zarr new.zarr --overwrite");
    done(root, "flip vertical new.zarr new.zarr --overwrite");
    assert!(tree(&root.join("out.zarr")) == tree(&root.join("new.zarr")));
}

/// A page that cannot be read, a chunk that cannot be written: there is no new store, and an old one is as it was.
#[test]
fn an_error_leaves_no_store() {
    let mut damaged = stack(
        &[grey([[1, 2], [3, 4]]), grey([[5, 6], [7, 8]])],
        &Metadata::default(),
    );
    damaged.truncate(damaged.len() - 1);
    let place = folder(&[("damaged.tif", &damaged), ("in.pgm", &pgm(5, 4, 1))]);
    let root = place.path();
    done(root, "convert in.pgm old.zarr");
    let before = tree(root);
    for store in ["new.zarr", "old.zarr"] {
        let command = format!("convert damaged.tif {store} --overwrite");
        assert_ne!(gpuimg(root, &command).code, 0);
        for fault in [
            "write:c/0:1=ENOSPC",
            "create:zarr.json:1=EIO",
            "mkdir:1=EACCES",
            "rename:1=EIO",
        ] {
            let args = ["convert", "in.pgm", store, "--overwrite"];
            let Run { code, stderr, .. } = run(root, &args, &[("GPUIMG_FAULT", fault)]);
            assert_eq!(code, 1, "{fault}: {stderr}");
            assert!(
                stderr.contains(&format!("cannot write {store}")),
                "{fault}: {stderr}"
            );
            assert!(tree(root) == before, "{fault}: {:?}", listing(root));
            assert_eq!(
                listing(root),
                ["damaged.tif", "in.pgm", "old.zarr"],
                "{fault}"
            );
        }
    }
}

/// Where the file system cannot exchange two names, an old store is renamed first.
#[test]
fn stores_are_replaced_without_an_exchange() {
    let place = folder(&[("a.pgm", &pgm(5, 4, 1)), ("b.pgm", &pgm(7, 3, 2))]);
    let root = place.path();
    done(root, "convert a.pgm out.zarr");
    let old = tree(&root.join("out.zarr"));
    let replace = |fault: &str| {
        let args = ["convert", "b.pgm", "out.zarr", "--overwrite"];
        run(root, &args, &[("GPUIMG_FAULT", fault)])
    };
    // The exchange is counted by the first fault only.
    for fault in [
        "rename:1=EINVAL;rename:1=EIO",
        "rename:1=EINVAL;rename:2=EIO",
    ] {
        let Run { code, stderr, .. } = replace(fault);
        assert_eq!(code, 1, "{fault}: {stderr}");
        assert!(tree(&root.join("out.zarr")) == old, "{fault}");
        assert_eq!(listing(root), ["a.pgm", "b.pgm", "out.zarr"], "{fault}");
    }
    assert_eq!(replace("rename:1=EINVAL").code, 0);
    assert!(tree(&root.join("out.zarr")) != old);
    assert_eq!(listing(root), ["a.pgm", "b.pgm", "out.zarr"]);
}

/// A run that is stopped before it writes its first chunk.
fn stopped(root: &Path) -> Child {
    let mut child = Command::new("env")
        .args(["--default-signal=INT,TERM,HUP"])
        .arg(binary())
        .args(["convert", "in.pgm", "out.zarr"])
        .env("GPUIMG_FAULT", "write:c/0:1=stop")
        .env("GPUIMG_DEVICE", "cpu")
        .current_dir(root)
        .stderr(Stdio::null())
        .spawn()
        .expect("the program runs");
    let state = || fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    let begun = Instant::now();
    while !state().contains(") T ") {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "it does not stop"
        );
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(child.try_wait().expect("wait"), None);
    child
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("kill");
}

#[test]
fn a_signal_leaves_no_store() {
    let place = folder(&[("in.pgm", &pgm(5, 4, 1))]);
    let mut child = stopped(place.path());
    assert_eq!(listing(place.path()), ["in.pgm", "out.zarr.partial"]);
    signal(&child, Signal::TERM);
    signal(&child, Signal::CONT);
    assert_eq!(child.wait().expect("wait").code(), Some(143));
    assert_eq!(listing(place.path()), ["in.pgm"]);
}

/// What a killed run leaves is removed by the next one, but not what another run is writing, or what nobody wrote.
#[test]
fn an_unfinished_store_is_removed_once_nobody_writes_it() {
    let place = folder(&[
        ("in.pgm", &pgm(5, 4, 1)),
        ("other.zarr.partial/notes", b"mine"),
    ]);
    let root = place.path();
    let mut child = stopped(root);
    let refused = gpuimg(root, "convert in.pgm out.zarr");
    assert_eq!(refused.code, 1);
    let words = "cannot write out.zarr: out.zarr.partial: another run is writing it";
    assert!(refused.stderr.contains(words), "{}", refused.stderr);
    signal(&child, Signal::KILL);
    child.wait().expect("wait");
    assert!(root.join("out.zarr.partial").exists());
    done(root, "convert in.pgm out.zarr");
    assert_eq!(listing(root), ["in.pgm", "other.zarr.partial", "out.zarr"]);
    let refused = gpuimg(root, "convert in.pgm other.zarr");
    assert!(
        refused
            .stderr
            .contains("it is not an unfinished Zarr store"),
        "{}",
        refused.stderr
    );
    assert!(root.join("other.zarr.partial/notes").exists());
}

#[test]
fn alpha_and_what_only_files_hold_are_refused_or_left_out() {
    let alpha = written(
        format("png"),
        &[image(3, 2, 4, Depth::Eight, Kind::Noise)],
        &Metadata::default(),
    );
    let place = folder(&[
        ("alpha.png", &alpha.expect("PNG")),
        ("in.pgm", &pgm(5, 4, 1)),
    ]);
    let root = place.path();
    let refused = gpuimg(root, "convert alpha.png out.zarr");
    assert!(
        refused
            .stderr
            .contains("Zarr cannot store an alpha channel"),
        "{}",
        refused.stderr
    );
    let refused = gpuimg(root, "normalize --undo in.pgm out.zarr");
    assert!(
        refused
            .stderr
            .contains("Zarr cannot store the range of --undo"),
        "{}",
        refused.stderr
    );
    assert_eq!(listing(root), ["alpha.png", "in.pgm"]);
}

/// No digest of a store is recorded, so that `prove` names it and continues.
#[test]
fn reports_record_no_digest_of_a_store() {
    let place = folder(&[("in.pgm", &pgm(5, 4, 1))]);
    let root = place.path();
    done(root, "convert in.pgm out.zarr --report r.jsonl -q");
    let proof = gpuimg(root, "prove r.jsonl");
    let words = "out.zarr: cannot be proven: its output is a Zarr store";
    assert!(
        (proof.stdout.clone() + &proof.stderr).contains(words),
        "{} {}",
        proof.stdout,
        proof.stderr
    );
}

/// The journal recognises a store by its folder.
#[test]
fn finished_stores_are_not_written_again() {
    let place = folder(&[("in/a.pgm", &pgm(5, 4, 1)), ("in/b.pgm", &pgm(5, 4, 2))]);
    let root = place.path();
    let command = "convert in out --format zarr --resume -q";
    done(root, command);
    let inode = |name: &str| {
        let about = fs::metadata(root.join(name)).expect("a store");
        std::os::unix::fs::MetadataExt::ino(&about)
    };
    let stores = ["out/a.zarr", "out/b.zarr"];
    let before = stores.map(inode);
    done(root, command);
    assert_eq!(before, stores.map(inode));
    fs::remove_dir_all(root.join("out/b.zarr")).expect("removed");
    done(root, command);
    let after = stores.map(inode);
    assert_eq!(before[0], after[0]);
    assert!(root.join("out/b.zarr/0/c/0/0").exists());
}
