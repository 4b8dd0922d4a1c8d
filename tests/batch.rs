//! Many files: what is taken, where it goes, what becomes of bad ones, and runs that are stopped.

use crate::support::{Kind, Numbers, Run, binary, folder, image, listing, run, sample, skipped};
use gpuimg::image::Depth;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const JOURNAL: &str = ".gpuimg-journal";

/// A PGM of noise, another for every seed.
fn pgm(width: usize, height: usize, seed: u64) -> Vec<u8> {
    let mut numbers = Numbers::new(seed + 1);
    let mut file = format!("P5\n{width} {height}\n65535\n").into_bytes();
    file.extend((0..2 * width * height).map(|_| (numbers.next() >> 40) as u8 & 0x3f));
    file
}

/// All files below a folder with their bytes, but for the journal.
fn tree(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for name in listing(&folder) {
            let path = folder.join(name);
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with(JOURNAL) {
                let below = path.strip_prefix(root).expect("below").to_path_buf();
                files.insert(below, fs::read(&path).expect("file"));
            }
        }
    }
    files
}

fn names(root: &Path) -> Vec<String> {
    let name = |path: PathBuf| path.to_string_lossy().into_owned();
    tree(root).into_keys().map(name).collect()
}

/// A folder `in` of `count` images of 160×120, and what becomes of them in a run that nothing disturbs.
fn series(count: usize) -> (tempfile::TempDir, BTreeMap<PathBuf, Vec<u8>>) {
    let root = folder(&[("in/0/x", b"")]);
    fs::remove_file(root.path().join("in/0/x")).expect("remove");
    for i in 0..count {
        let path = root.path().join(format!("in/{}/{i:03}.pgm", i % 3));
        fs::create_dir_all(path.parent().expect("parent")).expect("folder");
        fs::write(path, pgm(160, 120, i as u64)).expect("file");
    }
    let args = ["normalize", "--format", "png", "-q", "in", "expected"];
    let Run { code, stderr, .. } = run(root.path(), &args, &[]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let expected = tree(&root.path().join("expected"));
    assert_eq!(expected.len(), count);
    (root, expected)
}

#[test]
fn a_folder_keeps_its_tree() {
    let photo = fs::read(sample("photo-rgb16.png")).expect("sample");
    let thermal = fs::read(sample("thermal.tif")).expect("sample");
    let root = folder(&[
        ("in/a.png", &photo),
        ("in/deep/er/b.tif", &thermal),
        ("in/deep/notes.txt", b"not pixels"),
        ("in/.hidden.png", b"not pixels"),
        // By its content a PGM, and called nothing.
        ("in/scan", &pgm(5, 4, 1)),
    ]);
    let at = |name: &str| root.path().join(name);
    let Run { code, stderr, .. } = run(root.path(), &["normalize", "in", "out"], &[]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("1 files are no images"), "{stderr}");
    assert!(stderr.contains("3 of 3 files done"), "{stderr}");
    assert_eq!(names(&at("out")), ["a.png", "deep/er/b.tif", "scan"]);
    for (name, out) in [("a.png", "1.png"), ("deep/er/b.tif", "2.tif")] {
        let input = format!("in/{name}");
        run(root.path(), &["normalize", &input, out], &[]);
        assert!(
            fs::read(at("out").join(name)).expect("many") == fs::read(at(out)).expect("one"),
            "{name} is another alone"
        );
    }
    // Every verb; a file into a folder; a folder of results among the inputs.
    for args in [
        &["transpose", "in/a.png", "in/scan", "t"][..],
        &["rotate", "90", "in", "in/turned"],
        &["flip", "horizontal", "in", "--exclude", "turned", "f"],
    ] {
        let Run { code, stderr, .. } = run(root.path(), args, &[]);
        assert_eq!(code, 0, "{args:?}: {stderr}");
    }
    assert_eq!(names(&at("t")), ["a.png", "scan"]);
    assert_eq!(names(&at("in/turned")), ["a.png", "deep/er/b.tif", "scan"]);
    assert_eq!(names(&at("f")), ["a.png", "deep/er/b.tif", "scan"]);
    fs::create_dir(at("e")).expect("folder");
    run(root.path(), &["transpose", "in/scan", "e"], &[]);
    assert_eq!(names(&at("e")), ["scan"]);
}

#[test]
fn what_is_taken_and_how_it_is_called() {
    let root = folder(&[
        ("in/a.pgm", &pgm(3, 2, 1)),
        ("in/b.pgm", &pgm(3, 2, 2)),
        ("in/old/b.pgm", &pgm(3, 2, 3)),
        ("list", b"in/a.pgm\nin/old/b.pgm\n"),
        ("nul", b"in/b.pgm\0./in/a.pgm\0"),
    ]);
    let mut out = 0;
    let mut taken = |args: &[&str]| {
        out += 1;
        let folder = format!("out{out}");
        let mut args = args.to_vec();
        args.push(&folder);
        let Run { code, stderr, .. } = run(root.path(), &args, &[]);
        assert_eq!(code, 0, "{args:?}: {stderr}");
        names(&root.path().join(&folder))
    };
    assert_eq!(taken(&["normalize", "--include", "a.*", "in"]), ["a.pgm"]);
    assert_eq!(
        taken(&["normalize", "--exclude", "old", "in"]),
        ["a.pgm", "b.pgm"]
    );
    let args = [
        "normalize",
        "--include",
        "old/*",
        "--name",
        "{stem}_n.{ext}",
        "in",
    ];
    assert_eq!(taken(&args), ["old/b_n.pgm"]);
    let args = ["normalize", "--format", "tiff", "in/a.pgm", "in/b.pgm"];
    assert_eq!(taken(&args), ["a.tif", "b.tif"]);
    let args = ["normalize", "--files-from", "list"];
    assert_eq!(taken(&args), ["in/a.pgm", "in/old/b.pgm"]);
    assert_eq!(
        taken(&["normalize", "--files-from", "nul"]),
        ["in/a.pgm", "in/b.pgm"]
    );
    let Run { code, stderr, .. } = run(
        root.path(),
        &["normalize", "in/b.pgm", "in/old/b.pgm", "x"],
        &[],
    );
    assert_eq!(code, 2);
    assert!(
        stderr.contains("in/b.pgm and in/old/b.pgm would both become x/b.pgm"),
        "{stderr}"
    );
    assert!(!root.path().join("x").exists());
}

#[test]
fn every_part_does_its_own() {
    let (root, expected) = series(40);
    for index in 1..=3 {
        let shard = format!("{index}/3");
        let args = [
            "normalize",
            "--format",
            "png",
            "--shard",
            &shard,
            "in",
            "out",
        ];
        assert_eq!(run(root.path(), &args, &[]).code, 0);
    }
    assert!(tree(&root.path().join("out")) == expected);
    let environment = [
        ("SLURM_ARRAY_TASK_ID", "2"),
        ("SLURM_ARRAY_TASK_MIN", "1"),
        ("SLURM_ARRAY_TASK_COUNT", "3"),
    ];
    let args = [
        "normalize",
        "--format",
        "png",
        "--shard",
        "auto",
        "in",
        "auto",
    ];
    assert_eq!(run(root.path(), &args, &environment).code, 0);
    let args = [
        "normalize",
        "--format",
        "png",
        "--shard",
        "2/3",
        "in",
        "two",
    ];
    assert_eq!(run(root.path(), &args, &[]).code, 0);
    assert!(tree(&root.path().join("auto")) == tree(&root.path().join("two")));
    // A part without a file is done.
    let args = ["normalize", "--shard", "7/100000", "in", "none"];
    assert_eq!(run(root.path(), &args, &[]).code, 0);
    assert!(names(&root.path().join("none")).is_empty());
}

#[test]
fn bad_files_are_named_and_the_rest_goes_on() {
    let (root, expected) = series(40);
    // Every tenth is cut short.
    for i in (0..40).step_by(10) {
        let path = root.path().join(format!("in/{}/{i:03}.pgm", i % 3));
        fs::write(path, &pgm(160, 120, 0)[..1000]).expect("file");
    }
    let args = [
        "normalize",
        "--format",
        "png",
        "in",
        "out",
        "--report",
        "report.jsonl",
    ];
    let Run { code, stderr, .. } = run(root.path(), &args, &[]);
    assert_eq!(code, 1);
    assert_eq!(
        stderr.matches("gpuimg: cannot read in/").count(),
        4,
        "{stderr}"
    );
    assert!(stderr.contains("36 of 40 files done, 4 failed"), "{stderr}");
    let found = tree(&root.path().join("out"));
    assert_eq!(found.len(), 36);
    assert!(found.iter().all(|(name, bytes)| expected[name] == *bytes));

    let report = fs::read_to_string(root.path().join("report.jsonl")).expect("report");
    let lines: Vec<Value> = report
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 40);
    for line in &lines {
        assert_eq!(line["schema"], 1);
        match line["status"].as_str() {
            Some("failed") => assert!(line["error"].as_str().expect("why").contains("truncated")),
            Some("done") => {
                assert_eq!(
                    (&line["width"], &line["height"]),
                    (&160.into(), &120.into())
                );
                assert_eq!(line["ranges"], serde_json::json!([[0, 16191]]));
                assert!(line["stages"]["decode"].as_f64().expect("seconds") > 0.0);
            }
            other => panic!("{other:?}"),
        }
    }
    // Mended, and gone on with.
    fs::write(root.path().join("in/0/000.pgm"), pgm(160, 120, 0)).expect("file");
    let args = ["normalize", "--format", "png", "in", "out", "--resume"];
    let Run { code, stderr, .. } = run(root.path(), &args, &[]);
    assert_eq!(code, 1);
    assert!(
        stderr.contains("1 of 40 files done, 36 were done before, 3 failed"),
        "{stderr}"
    );
}

#[test]
fn going_on_redoes_what_has_changed() {
    let (root, expected) = series(12);
    let out = root.path().join("out");
    let go = |more: &[&str]| {
        let mut args = vec!["normalize", "--format", "png", "in", "out"];
        args.extend(more);
        run(root.path(), &args, &[])
    };
    assert_eq!(go(&[]).code, 0);
    assert!(tree(&out) == expected);
    // Without a word nothing is replaced, not even our own.
    let Run { code, stderr, .. } = go(&[]);
    assert_eq!(code, 1);
    assert_eq!(stderr.matches("it exists already").count(), 12, "{stderr}");
    assert!(
        go(&["--resume"])
            .stderr
            .contains("0 of 12 files done, 12 were done before")
    );
    // Another input, another output, a missing output.
    fs::write(root.path().join("in/0/000.pgm"), pgm(99, 7, 3)).expect("file");
    fs::write(out.join("1/001.png"), b"spoilt").expect("file");
    fs::remove_file(out.join("2/002.png")).expect("remove");
    let Run { stderr, .. } = go(&["--resume"]);
    assert!(
        stderr.contains("3 of 12 files done, 9 were done before"),
        "{stderr}"
    );
    let found = tree(&out);
    let same = found
        .iter()
        .filter(|(name, bytes)| expected[*name] == **bytes);
    assert_eq!(same.count(), 11);
    // Other options make other outputs.
    let Run { stderr, .. } = go(&["--resume", "--range", "0:9000"]);
    assert!(stderr.contains("12 of 12 files done"), "{stderr}");
    // What is not ours is not touched.
    let args = ["normalize", "--format", "png", "in", "new", "--resume"];
    fs::create_dir_all(root.path().join("new/0")).expect("folder");
    fs::write(root.path().join("new/0/003.png"), b"another's").expect("file");
    assert_eq!(run(root.path(), &args, &[]).code, 1);
    assert_eq!(
        fs::read(root.path().join("new/0/003.png")).expect("file"),
        b"another's"
    );
}

fn start(root: &Path, args: &[&str]) -> Child {
    Command::new(binary())
        .args(args)
        .current_dir(root)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs")
}

#[test]
fn killed_at_any_moment_and_gone_on_with() {
    let (root, expected) = series(60);
    let args = ["normalize", "--format", "png", "in", "out", "-j", "2"];
    let out = root.path().join("out");
    let begun = Instant::now();
    assert!(start(root.path(), &args).wait().expect("run").success());
    let whole = begun.elapsed();
    let mut numbers = Numbers::new(7);
    for _ in 0..20 {
        fs::remove_dir_all(&out).expect("remove");
        let mut child = start(root.path(), &args);
        thread::sleep(whole.mul_f64((numbers.next() >> 11) as f64 / (1u64 << 53) as f64));
        child.kill().expect("kill");
        child.wait().expect("wait");
        if out.exists() {
            for (name, bytes) in tree(&out) {
                assert!(
                    expected.get(&name) == Some(&bytes),
                    "{} is not whole",
                    name.display()
                );
            }
        }
        let mut again = args.to_vec();
        again.push("--resume");
        let Run { code, stderr, .. } = run(root.path(), &again, &[]);
        assert_eq!(code, 0, "{stderr}");
        assert!(tree(&out) == expected);
    }
}

#[test]
fn interrupted_it_leaves_whole_files_and_says_130() {
    let (root, expected) = series(60);
    // Large enough that it is under way when the signal comes.
    for i in 0..40 {
        fs::write(
            root.path().join(format!("in/big{i}.pgm")),
            pgm(1500, 1500, i),
        )
        .expect("file");
    }
    let child = start(root.path(), &["normalize", "--format", "png", "in", "out"]);
    let out = root.path().join("out");
    while !out.exists() || tree(&out).len() < 5 {
        thread::sleep(Duration::from_millis(2));
    }
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .expect("kill")
            .success()
    );
    let output = child.wait_with_output().expect("wait");
    assert_eq!(output.status.code(), Some(130));
    assert!(String::from_utf8_lossy(&output.stderr).contains("interrupted"));
    let found = tree(&out);
    assert!(found.len() < 100);
    for (name, bytes) in found {
        if let Some(whole) = expected.get(&name) {
            assert!(*whole == bytes, "{} is not whole", name.display());
        } else {
            let name = name.to_string_lossy().into_owned();
            assert!(name.starts_with("big"), "{name} was left behind");
        }
    }
}

#[test]
fn two_runs_into_one_folder() {
    let (root, expected) = series(60);
    let args = ["normalize", "--format", "png", "in", "out"];
    let children = [start(root.path(), &args), start(root.path(), &args)];
    let done: usize = children
        .map(|child| {
            let output = child.wait_with_output().expect("wait");
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            let count = stderr
                .split("gpuimg: ")
                .last()
                .expect("summary")
                .split(' ')
                .next();
            count.expect("a number").parse::<usize>().expect(&stderr)
        })
        .iter()
        .sum();
    assert_eq!(done, 60, "each file is done once");
    assert!(tree(&root.path().join("out")) == expected);
}

#[test]
fn a_disk_that_gets_full() {
    let (root, expected) = series(60);
    fs::create_dir(root.path().join("small")).expect("folder");
    let script = "mount -t tmpfs -o size=400k none small || exit 99; \"$0\" normalize --format png in small/out; \
                  status=$?; cp -r small/out kept; exit $status";
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
        .arg(binary())
        .current_dir(root.path())
        .output();
    match output {
        Ok(output)
            if output.status.code() != Some(99) && !output.stderr.starts_with(b"unshare") =>
        {
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{stderr}");
            assert!(stderr.contains("no space left on the disk"), "{stderr}");
            let kept = tree(&root.path().join("kept"));
            assert!(!kept.is_empty() && kept.len() < 60);
            assert!(kept.iter().all(|(name, bytes)| expected[name] == *bytes));
        }
        _ => skipped("the disk that gets full: no mount namespaces here, so no small disk"),
    }
}

#[test]
fn one_range_for_a_whole_set() {
    // The same scene, ever darker: a series.
    let scene: Vec<u16> = (0..400u32).map(|i| (i * i % 977 * 40) as u16).collect();
    let root = folder(&[("in/x", b"")]);
    let file = |divisor: u16| {
        let mut file = b"P5\n20 20\n65535\n".to_vec();
        file.extend(
            scene
                .iter()
                .flat_map(|value| (value / divisor).to_be_bytes()),
        );
        file
    };
    fs::remove_file(root.path().join("in/x")).expect("remove");
    for divisor in 1..=9 {
        fs::write(root.path().join(format!("in/{divisor}.pgm")), file(divisor)).expect("file");
    }
    let ok = |args: &[&str]| {
        let Run { code, stderr, .. } = run(root.path(), args, &[]);
        assert_eq!(code, 0, "{args:?}: {stderr}");
    };
    ok(&["normalize", "--across", "in", "across"]);
    let across = tree(&root.path().join("across"));
    let top = u64::from(*scene.iter().max().expect("values"));
    for divisor in 1..=9u16 {
        let samples = &across[Path::new(&format!("{divisor}.pgm"))][15..];
        for (pair, value) in samples.chunks_exact(2).zip(&scene) {
            let found = u64::from(u16::from_be_bytes([pair[0], pair[1]]));
            let value = u64::from(value / divisor);
            assert_eq!(
                found,
                (value * 65535 + top / 2) / top,
                "relative brightness is kept"
            );
        }
    }
    // The same from three parts, whoever measures them; clipped too.
    for part in 1..=3 {
        let (shard, out) = (format!("{part}/3"), format!("{part}.hist"));
        ok(&["histogram", "in", "--shard", &shard, "-o", &out]);
    }
    ok(&["merge", "2.hist", "3.hist", "1.hist", "-o", "all.hist"]);
    for part in 1..=3 {
        let shard = format!("{part}/3");
        ok(&[
            "normalize",
            "--range-from",
            "all.hist",
            "--shard",
            &shard,
            "in",
            "parts",
        ]);
        ok(&[
            "normalize",
            "--range-from",
            "all.hist",
            "--clip",
            "1:98",
            "--shard",
            &shard,
            "in",
            "clipped",
        ]);
    }
    assert!(tree(&root.path().join("parts")) == across);
    ok(&["normalize", "--across", "--clip", "1:98", "in", "across2"]);
    assert!(tree(&root.path().join("clipped")) == tree(&root.path().join("across2")));
    assert!(tree(&root.path().join("clipped")) != across);

    let refused = |args: &[&str], sentence: &str| {
        let Run { code, stderr, .. } = run(root.path(), args, &[]);
        assert_ne!(code, 0, "{args:?}");
        assert!(stderr.contains(sentence), "{args:?}: {stderr}");
    };
    refused(
        &["merge", "1.hist", "1.hist", "-o", "x"],
        "part 1 of 3 is in it and in another file",
    );
    refused(
        &["merge", "1.hist", "3.hist", "-o", "x"],
        "part 2 of 3 is missing",
    );
    refused(
        &["normalize", "--range-from", "1.hist", "in", "x"],
        "part 2, 3 of 3 is missing",
    );
    fs::write(root.path().join("bytes.pgm"), b"P5 2 1 255\n\x07\x08").expect("file");
    refused(
        &[
            "normalize",
            "--range-from",
            "all.hist",
            "bytes.pgm",
            "x.pgm",
        ],
        "images of another kind",
    );
    refused(
        &["histogram", "in", "bytes.pgm", "-o", "x"],
        "no range in common",
    );
    assert!(!root.path().join("x").exists() && !root.path().join("x.pgm").exists());
}

#[test]
fn a_hot_pixel_is_clipped() {
    let mut file = b"P5\n100 10\n65535\n".to_vec();
    file.extend((0..1000u16).flat_map(|i| if i == 500 { 65_000 } else { i % 100 }.to_be_bytes()));
    let root = folder(&[("in.pgm", &file)]);
    let Run { code, stderr, .. } = run(
        root.path(),
        &["normalize", "--clip", "0:99.8", "in.pgm", "out.pgm"],
        &[],
    );
    assert_eq!(code, 0, "{stderr}");
    let out = fs::read(root.path().join("out.pgm")).expect("out");
    let value = |i: usize| u16::from_be_bytes([out[16 + 2 * i], out[17 + 2 * i]]);
    assert_eq!((value(0), value(99), value(500)), (0, 65_535, 65_535));
    assert_eq!(value(50), ((50 * 65_535 + 49) / 99) as u16);
}

#[test]
fn a_plan_changes_nothing() {
    let (root, _) = series(9);
    fs::write(root.path().join("in/bad.png"), b"no pixels").expect("file");
    let args = ["normalize", "--dry-run", "in", "out", "--report", "r.jsonl"];
    let Run { code, stdout, .. } = run(root.path(), &args, &[]);
    assert_eq!(code, 1);
    assert!(
        stdout.contains("in/0/000.pgm → out/0/000.pgm: 160×120 grey, 16 bits"),
        "{stdout}"
    );
    assert!(
        stdout.contains("10 files (1 unreadable), 0.000 Gpx"),
        "{stdout}"
    );
    assert_eq!(listing(root.path()), ["expected", "in"]);
}

#[test]
fn sums_of_a_folder_come_in_order() {
    let (root, _) = series(30);
    let Run { code, stdout, .. } = run(root.path(), &["sum", "in", "-q"], &[]);
    assert_eq!(code, 0);
    let files: Vec<&str> = stdout
        .lines()
        .map(|line| &line[..line.find(':').expect("a name")])
        .collect();
    let mut sorted = files.clone();
    sorted.sort_unstable();
    assert_eq!(files.len(), 30);
    assert_eq!(files, sorted);
    // Who stops listening is no error.
    let script = "\"$0\" sum in in in in -q | head -1; test ${PIPESTATUS[0]} = 0";
    let status = Command::new("bash")
        .args(["-c", script])
        .arg(binary())
        .current_dir(root.path())
        .output();
    let output = status.expect("bash");
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
}

#[test]
fn the_gpu_gives_the_same_files() {
    if crate::support::gpu(60).is_none() {
        return;
    }
    let (root, expected) = series(60);
    // Images of every kind, some large enough to be pinned.
    for (name, channels, depth) in [
        ("grey", 1, Depth::Sixteen),
        ("rgb", 3, Depth::Sixteen),
        ("bytes", 4, Depth::Eight),
    ] {
        let image = image(640, 511, channels, depth, Kind::Noise);
        let path = root.path().join(format!("in/{name}.png"));
        let target = gpuimg::files::Target::create(&path, false).expect("target");
        let len = gpuimg::codec::png::encode(&image, gpuimg::codec::png::Mode::Fast, &target)
            .expect("png");
        target.commit(len).expect("commit");
    }
    for verb in [
        &["normalize"][..],
        &["rotate", "90"],
        &["normalize", "--clip", "1:99"],
    ] {
        let mut results = Vec::new();
        for device in ["cpu", "gpu"] {
            let out = format!("{}{device}", verb.concat());
            let mut args = verb.to_vec();
            args.extend(["--format", "png", "--device", device, "in", &out]);
            let Run { code, stderr, .. } = run(root.path(), &args, &[]);
            assert_eq!(code, 0, "{stderr}");
            results.push(tree(&root.path().join(out)));
        }
        assert_eq!(results[0].len(), 63);
        assert!(results[0] == results[1], "{verb:?}");
        if verb == ["normalize"] {
            assert!(
                expected
                    .iter()
                    .all(|(name, bytes)| results[0][name] == *bytes)
            );
        }
    }
}
