//! Reports, statistics and sums as programs read them.

use crate::support::batch::pgm;
use crate::support::stacks::{range, stack};
use crate::support::{Kind, Run, folder, image, run, sample, skipped};
use gpuimg::internals::image::metadata::Metadata;
use gpuimg::internals::image::{Depth, Image, Samples};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

fn lines(text: &str) -> Vec<Value> {
    let lines = text.lines().filter(|line| line.starts_with('{'));
    lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

fn report(folder: &Path, name: &str) -> Vec<Value> {
    lines(&fs::read_to_string(folder.join(name)).expect(name))
}

fn pages() -> [Image; 3] {
    [30, 31, 32].map(|width| image(width, 20, 1, Depth::Sixteen, Kind::Narrow))
}

/// A stack whose pages have ranges of their own.
fn three_pages() -> Vec<u8> {
    stack(&pages(), &Metadata::default())
}

#[test]
fn a_report_lost_all_pages_but_the_last() {
    let root = folder(&[("three.tif", &three_pages())]);
    let args = [
        "normalize",
        "three.tif",
        "out.tif",
        "--scope",
        "page",
        "--report",
        "r.jsonl",
    ];
    let Run { code, stderr, .. } = run(root.path(), &args, &[]);
    assert_eq!(code, 0, "{stderr}");
    let [line] = &report(root.path(), "r.jsonl")[..] else {
        panic!("one line");
    };
    let stages = line["stages"].as_array().expect("stages");
    for stage in ["decode", "minmax", "scale", "encode"] {
        let named = stages.iter().filter(|span| span["name"] == stage);
        let pages: Vec<u64> = named.filter_map(|span| span["page"].as_u64()).collect();
        assert_eq!(pages, [1, 2, 3], "{stage}");
    }
    let found = line["pages"].as_array().expect("pages");
    assert_eq!(found.len(), 3);
    assert_eq!(found[1]["page"], 2);
    for (page, image) in found.iter().zip(pages()) {
        let Samples::U16(values) = image.samples() else {
            panic!("16 bits");
        };
        let (min, max) = range(values);
        let ranges = json!([{"channel": "grey", "min": min, "max": max}]);
        assert_eq!(page["ranges"], ranges);
    }
}

#[test]
fn ranges_did_not_say_of_which_channel() {
    let colours = [&b"P6\n2 1\n255\n"[..], &[1, 20, 3, 4, 5, 60]].concat();
    let root = folder(&[("c.ppm", &colours)]);
    let ranges = |more: &[&str]| {
        let args = [
            &["normalize", "c.ppm", "o.png", "-f", "--report", "-", "-q"][..],
            more,
        ];
        let Run {
            code,
            stdout,
            stderr,
        } = run(root.path(), &args.concat(), &[]);
        assert_eq!(code, 0, "{stderr}");
        lines(&stdout)[0]["pages"][0]["ranges"].clone()
    };
    assert_eq!(
        ranges(&[]),
        json!([{"channel": "all", "min": 1, "max": 60}])
    );
    let each = json!([
        {"channel": "red", "min": 1, "max": 4},
        {"channel": "green", "min": 5, "max": 20},
        {"channel": "blue", "min": 3, "max": 60},
    ]);
    assert_eq!(ranges(&["--per-channel"]), each);
}

#[test]
fn a_report_is_continued_and_another_file_is_not() {
    let root = folder(&[
        ("in/a.pgm", &pgm(30, 20, 1)),
        ("notes", b"precious\n"),
        (
            "cut.jsonl",
            b"{\"schema\":2,\"input\":\"x\",\"status\":\"done\"}\n{\"sch",
        ),
    ]);
    let go = |out: &str, report: &str, more: &[&str]| {
        let args = [&["flip", "v", "in", out, "--report", report, "-q"], more].concat();
        run(root.path(), &args, &[])
    };
    let count = |name| report(root.path(), name).len();
    assert_eq!(go("o1", "r.jsonl", &[]).code, 0);
    assert_eq!(go("o2", "r.jsonl", &[]).code, 0);
    assert_eq!(count("r.jsonl"), 2);
    // With images that are replaced, the report is too.
    assert_eq!(go("o2", "r.jsonl", &["--overwrite"]).code, 0);
    assert_eq!(count("r.jsonl"), 1);
    // After a line that a killed run has left.
    assert_eq!(go("o3", "cut.jsonl", &[]).code, 0);
    let text = fs::read_to_string(root.path().join("cut.jsonl")).expect("report");
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.lines().last().expect("a line").contains("o3/a.pgm"));
    let Run { code, stderr, .. } = go("o4", "notes", &[]);
    let told = "gpuimg: cannot write notes: it exists but is not a report: choose another name\n";
    assert_eq!((code, stderr.as_str()), (1, told));
    let plan = go("o5", "notes", &["--dry-run"]);
    assert_eq!(plan.code, 1, "{}", plan.stdout);
    assert_eq!(go("o5", "r.jsonl", &["--dry-run"]).code, 0);
    let notes = fs::read(root.path().join("notes")).expect("notes");
    assert_eq!(notes, b"precious\n");
}

#[test]
fn a_report_on_standard_output_is_alone_there() {
    let root = folder(&[("in/a.pgm", &pgm(30, 20, 1)), ("in/b.pgm", b"P5\n9 9")]);
    let args = ["normalize", "in", "out", "--report", "-"];
    let Run { code, stdout, .. } = run(root.path(), &args, &[]);
    assert_eq!(code, 1);
    let found = lines(&stdout);
    assert_eq!((found.len(), stdout.lines().count()), (2, 2), "{stdout}");
    for args in [
        &["sum", "in", "--report", "-"][..],
        &[
            "normalize",
            "in/a.pgm",
            "-",
            "--format",
            "png",
            "--report",
            "-",
        ],
    ] {
        let Run {
            code,
            stdout,
            stderr,
        } = run(root.path(), args, &[]);
        assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
        assert!(stderr.contains("both use standard output"), "{stderr}");
    }
    // A reader that leaves has not had the report: the run has failed.
    let script = "exec 3> >(:); sleep 0.2; \"$0\" normalize in/a.pgm lost/ --report - >&3";
    assert_eq!(crate::support::shell::shell(root.path(), script).code, 1);
}

#[test]
fn one_file_and_many_have_the_same_keys() {
    let root = folder(&[("in/a.pgm", &pgm(30, 20, 1)), ("in/b.pgm", &pgm(30, 20, 2))]);
    let keys = |args: &[&str]| {
        let Run { code, stderr, .. } = run(root.path(), args, &[]);
        assert_eq!(code, 0, "{stderr}");
        let stats = lines(&stderr).pop().expect("an object");
        assert_eq!(stats["schema"], 2);
        let keys = stats.as_object().expect("an object").keys().cloned();
        (keys.collect::<BTreeSet<String>>(), stats)
    };
    let (one, single) = keys(&["normalize", "in/a.pgm", "a.png", "--stats=json"]);
    let (many, batch) = keys(&["normalize", "in", "out", "--stats=json"]);
    assert_eq!(one, many);
    assert_eq!((&single["files"], &batch["files"]), (&json!(1), &json!(2)));
    let count = |stats: &Value| stats["stages"][1]["count"].clone();
    assert_eq!((count(&single), count(&batch)), (json!(1), json!(2)));
    assert_eq!(batch["spans"], json!([]));
}

#[test]
fn the_measuring_pass_was_called_decoding_of_the_first_page() {
    let root = folder(&[("three.tif", &three_pages())]);
    let args = ["normalize", "three.tif", "out.tif", "--stats=json"];
    let Run { code, stderr, .. } = run(root.path(), &args, &[]);
    assert_eq!(code, 0, "{stderr}");
    let stats = &lines(&stderr)[0];
    let stages = stats["stages"].as_array().expect("stages").iter();
    let counts: Vec<(&str, u64)> = stages
        .map(|stage| {
            (
                stage["name"].as_str().unwrap(),
                stage["count"].as_u64().unwrap(),
            )
        })
        .collect();
    let expected = [
        "measure read",
        "measure decode",
        "measure minmax",
        "read",
        "decode",
        "scale",
        "encode",
        "write",
    ];
    assert_eq!(counts, expected.map(|name| (name, 3)));
    // As text: a line a stage, and not one a page.
    let args = ["normalize", "three.tif", "out.tif", "--stats", "-f"];
    let text = run(root.path(), &args, &[]).stderr;
    assert_eq!(text.matches("\ndecode ").count(), 1, "{text}");
    assert_eq!(text.matches("\nmeasure decode ").count(), 1, "{text}");
    assert!(text.contains("a page"), "{text}");
}

#[test]
fn sums_have_schema_sign_page_and_a_line_for_a_failure() {
    let root = folder(&[("three.tif", &three_pages()), ("cut.pgm", b"P5\n9 9")]);
    let go = |args: &[&str]| run(root.path(), &[&["sum", "--json", "-q"], args].concat(), &[]);
    let Run { code, stdout, .. } = go(&["cut.pgm", "three.tif"]);
    let found = lines(&stdout);
    assert_eq!((code, found.len()), (1, 4));
    assert_eq!(found[0]["status"], "failed");
    assert_eq!(found[0]["file"], "cut.pgm");
    assert!(
        found[0]["error"]
            .as_str()
            .expect("why")
            .contains("truncated")
    );
    for (line, page) in found[1..].iter().zip(1..) {
        assert_eq!(
            (
                &line["schema"],
                &line["page"],
                &line["signed"],
                &line["status"]
            ),
            (&json!(2), &json!(page), &json!(false), &json!("done"))
        );
    }
    // One page of a stack keeps its number; and one file that fails has its line too.
    assert_eq!(
        lines(&go(&["three.tif", "--pages", "3"]).stdout)[0]["page"],
        3
    );
    let Run { code, stdout, .. } = go(&["cut.pgm"]);
    assert_eq!((code, &lines(&stdout)[0]["status"]), (1, &json!("failed")));
    let nuclei = sample("nuclei.tif").to_string_lossy().into_owned();
    assert_eq!(lines(&go(&[&nuclei]).stdout)[0]["page"], 1);
}

/// What a test asks the page about itself, once it is laid out.
const PROBE: &str = "<script>addEventListener('load', () => {
  const boxes = [...document.querySelectorAll('.track i')];
  document.title = JSON.stringify({ wide: document.documentElement.scrollWidth, window: innerWidth,
    boxes: boxes.length, flat: boxes.filter(box => box.getBoundingClientRect().width < 1).length });
})</script></head>";

#[test]
fn the_page_of_a_run_has_a_lane_for_each_worker_and_needs_no_network() {
    let files: Vec<(String, Vec<u8>)> = (0..6)
        .map(|index| (format!("in/<{index}>.pgm"), pgm(300, 200, index)))
        .collect();
    let files: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
        .collect();
    let root = folder(&files);
    let go = |args: &[&str]| {
        let Run { code, stderr, .. } = run(root.path(), args, &[]);
        assert_eq!(code, 0, "{stderr}");
    };
    go(&["normalize", "in", "out", "-j", "2", "--stats=many.html"]);
    go(&["sum", "in/<1>.pgm", "--stats=one.html"]);
    let page = |name: &str| fs::read_to_string(root.path().join(name)).expect(name);
    for (name, boxes) in [("many.html", 6 * 6), ("one.html", 3)] {
        let page = page(name);
        assert_eq!(page.matches("<i class=").count(), boxes, "{name}");
        for fetched in ["http://", "https://", "src=", "@import", "<script", "<1>"] {
            assert!(!page.contains(fetched), "{name} has {fetched}");
        }
        for there in [
            "&lt;1&gt;.pgm",
            ">host",
            "wall clock",
            "<td>decode</td>",
            "</html>",
        ] {
            assert!(page.contains(there), "{name} has no {there}");
        }
        // Boxes stay within their lanes.
        for place in page.split("style=\"left:").skip(1) {
            let left: f64 = place.split('%').next().unwrap().parse().unwrap();
            assert!((0.0..=100.0).contains(&left), "{name}: {left}");
        }
    }
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let there = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    match names.into_iter().find(there) {
        None => skipped("the page of --stats in a browser: no Chromium is installed"),
        Some(browser) => {
            let many = page("many.html").replace("</head>", PROBE);
            fs::write(root.path().join("page.html"), many).expect("page");
            for width in [400, 1200] {
                let seen = crate::support::browser::looked_at(browser, root.path(), width);
                let wide = |key: &str| seen[key].as_u64().unwrap();
                assert!(wide("wide") <= wide("window"), "scrolls sideways: {seen}");
                assert_eq!((wide("boxes"), wide("flat")), (36, 0), "{seen}");
            }
        }
    }
    // A page is drawn anew; another file is not touched, and nothing is done before that is said.
    go(&["sum", "in/<1>.pgm", "--stats=one.html"]);
    let mine = root.path().join("mine.html");
    fs::write(&mine, "precious").expect("a file");
    let args = ["normalize", "in", "other", "--stats=mine.html"];
    let Run { code, stderr, .. } = run(root.path(), &args, &[]);
    assert_eq!(code, 1, "{stderr}");
    assert!(
        stderr.contains("it exists but is not a --stats page"),
        "{stderr}"
    );
    assert_eq!(fs::read(&mine).expect("a file"), b"precious");
    assert!(!root.path().join("other").exists());
}
