//! Many files: what is taken, where it goes, what becomes of bad ones, and runs that are stopped.

use crate::support::batch::{names, pgm, series, tree};
use crate::support::png::Plain;
use crate::support::{Kind, Run, binary, folder, image, listing, run, sample};
use gpuimg::internals::image::Depth;
use serde_json::Value;
use std::fs;
use std::process::Command;

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
    let passed = "skipped 1 × not an image (in/deep/notes.txt), 1 × hidden (in/.hidden.png)";
    assert!(stderr.contains(passed), "{stderr}");
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
        stderr.contains("in/b.pgm and in/old/b.pgm would both be written to x/b.pgm"),
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
        assert_eq!(line["schema"], 2);
        match line["status"].as_str() {
            Some("failed") => assert!(line["error"].as_str().expect("why").contains("truncated")),
            Some("done") => {
                assert_eq!(
                    (&line["width"], &line["height"]),
                    (&160.into(), &120.into())
                );
                let range = serde_json::json!([{"channel": "grey", "min": 0, "max": 16191}]);
                assert_eq!(line["pages"][0]["ranges"], range);
                let decode = &line["stages"][1];
                assert_eq!(decode["name"], "decode");
                assert!(decode["seconds"].as_f64().expect("seconds") > 0.0);
            }
            other => panic!("{other:?}"),
        }
    }
    // Repaired, and resumed.
    fs::write(root.path().join("in/0/000.pgm"), pgm(160, 120, 0)).expect("file");
    let args = ["normalize", "--format", "png", "in", "out", "--resume"];
    let Run { code, stderr, .. } = run(root.path(), &args, &[]);
    assert_eq!(code, 1);
    assert!(
        stderr.contains("1 of 40 files done, 36 already done, 3 failed"),
        "{stderr}"
    );
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
        stdout.contains("10 files: 9 to do, 1 would fail; 9 pages, 0.000 Gpx"),
        "{stdout}"
    );
    assert_eq!(listing(root.path()), ["expected", "in"]);
}

#[test]
fn a_plan_named_the_time_of_other_work() {
    let png = Plain::noisy(64, 64, 16, 0).encoded(0);
    let root = folder(&[
        ("png/a.png", &png),
        ("mixed/a.png", &png),
        ("mixed/b.pgm", &pgm(64, 64, 1)),
    ]);
    let named_a_time = |args: &[&str]| {
        let Run { code, stdout, .. } = run(root.path(), &[args, &["--dry-run"]].concat(), &[]);
        assert_eq!(code, 0, "{args:?}: {stdout}");
        stdout.contains(" s if the disk keeps up")
    };
    assert!(named_a_time(&["normalize", "png", "out"]));
    for args in [
        &["normalize", "png", "out", "--png", "small"][..],
        &["normalize", "png", "out", "--format", "tiff"],
        &["normalize", "mixed", "out", "--format", "png"],
        &["sum", "png"],
    ] {
        assert!(!named_a_time(args), "{args:?}");
    }
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
    // Who stops listening is not an error.
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
        let target = gpuimg::internals::os::Target::create(&path, false).expect("target");
        let len = gpuimg::internals::formats::png::encode(
            &image,
            gpuimg::internals::formats::png::Mode::Fast,
            &target,
        )
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

#[test]
fn one_file_takes_the_options_of_many() {
    let root = folder(&[("a.pgm", &pgm(160, 120, 1)), ("bytes", b"P5 1 1 255\n\x07")]);
    let go = |args: &[&str]| run(root.path(), args, &[]);
    let read = |name: &str| fs::read(root.path().join(name)).expect(name);
    assert_eq!(go(&["normalize", "a.pgm", "alone.png"]).code, 0);
    let Run { code, stderr, .. } = go(&["normalize", "a.pgm", "b.png", "--report", "r.jsonl"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("1 file, 1 thread, up to "), "{stderr}");
    assert!(read("b.png") == read("alone.png"));
    let line: Value = serde_json::from_slice(&read("r.jsonl")).expect("JSON");
    assert_eq!(
        (&line["input"], &line["output"]),
        (&"a.pgm".into(), &"b.png".into())
    );
    // No journal beside a single file, unless it is asked for.
    assert_eq!(
        listing(root.path()),
        ["a.pgm", "alone.png", "b.png", "bytes", "r.jsonl"]
    );
    let resumed = ["normalize", "a.pgm", "c.tif", "--resume", "--no-progress"];
    assert!(go(&resumed).stderr.contains("1 of 1 file done;"));
    assert!(go(&resumed).stderr.contains("1 already done"));
    // The format that is asked for, whatever the name; and the plan.
    let args = [
        "normalize",
        "a.pgm",
        "d",
        "--format",
        "png",
        "--report",
        "d.jsonl",
    ];
    assert_eq!(go(&args).code, 0);
    assert!(read("d") == read("alone.png"));
    let plan = go(&["normalize", "a.pgm", "e.png", "--dry-run"]).stdout;
    assert!(
        plan.starts_with("a.pgm → e.png: 160×120 grey, 16 bits\n1 file: 1 to do; 1 page,"),
        "{plan}"
    );
    // Standard output, and a name that can only be a folder's.
    let args = [
        "normalize",
        "a.pgm",
        "-",
        "--format",
        "pnm",
        "--report",
        "f.jsonl",
    ];
    let output = Command::new(binary())
        .args(args)
        .current_dir(root.path())
        .output();
    assert!(
        output
            .expect("run")
            .stdout
            .starts_with(b"P5\n160 120\n65535\n")
    );
    assert_eq!(
        go(&["normalize", "a.pgm", "g", "--report", "g.jsonl"]).code,
        0
    );
    assert_eq!(names(&root.path().join("g")), ["a.pgm"]);
}

#[test]
fn a_batch_says_what_it_takes_before_it_begins() {
    let (root, _) = series(5);
    let go = |args: &[&str]| {
        let Run { code, stderr, .. } = run(root.path(), args, &[]);
        assert_eq!(code, 0, "{stderr}");
        stderr
    };
    let begins = |stderr: &str, words: &str| {
        let first = stderr.lines().next().unwrap_or_default();
        assert_eq!(first, format!("gpuimg: {words}"));
    };
    let args = ["-j", "2", "--mem-limit", "64M", "in"];
    let said = go(&[&["normalize", "--across"], &args[..], &["out"]].concat());
    begins(&said, "5 files, 2 threads, up to 67.1 MB of memory");
    // Measured first, and then processed: reported once.
    assert_eq!(said.matches(" of memory").count(), 1, "{said}");
    let said = go(&[&["sum"], &args[..]].concat());
    begins(&said, "5 files, 2 threads, up to 67.1 MB of memory");
    assert_eq!(go(&[&["sum", "-q"], &args[..]].concat()), "");
    assert_eq!(go(&["flip", "vertical", "-q", "in", "quiet"]), "");
    // One image is none's batch.
    assert_eq!(go(&["normalize", "in/0/000.pgm", "one.pgm"]), "");
}
