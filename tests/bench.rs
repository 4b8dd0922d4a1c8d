//! The tables of `bench`: every system of the papers, counted; runs, comparisons, and the page in
//! a real browser.

use crate::support::{folder, gpu, run, skipped};
use gpuimg::bench::case::{Measured, Outcome, Row, Work};
use gpuimg::bench::figure::Time;
use gpuimg::bench::papers::{Paper, judged, topics};
use gpuimg::bench::report::{Machine, Report};
use gpuimg::bench::{Table, all_cases, compare, html};
use serde_json::Value;
use std::collections::HashSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A report of all rows, each with a time of its own, as if measured.
fn report() -> Report {
    let row = |(i, case): (usize, gpuimg::bench::case::Case)| {
        let time = Time::of(vec![1e-5 * (1.0 + (i * 37 % 101) as f64); 3]);
        Row {
            about: case.about,
            fits_l2: i % 7 == 0,
            ceiling: Some(3000.0),
            outcome: Outcome::Measured(Measured { time, remark: None }),
        }
    };
    Report {
        machine: Machine {
            gpu: Some("A GPU <of the tests>".into()),
            details: Some("none".into()),
            threads: 2,
            input: 256 << 20,
        },
        rows: all_cases().into_iter().enumerate().map(row).collect(),
        left_out: None,
        wall: Duration::from_secs(1),
    }
}

/// What the papers describe, written out from them: HABR's table has 15 systems; LXF has three
/// variants, the sweep, the host and local memory; REDUCE seven steps and any length; NOTES eight
/// facts.
const SYSTEMS: [(Paper, usize, &str); 4] = [
    (
        Paper::Habr,
        15,
        "empty-sync empty-async empty-one large-copy async-copy tiny-copy read copy \
         normalize-truncating normalize-round normalize-half minmax nested double-index triple-index",
    ),
    (
        Paper::Lxf,
        6,
        "transpose-host transpose-naive transpose-tile transpose-padded transpose-sweep local-memory",
    ),
    (
        Paper::Reduce,
        8,
        "reduce-1 reduce-2 reduce-3 reduce-4 reduce-5 reduce-6 reduce-7 reduce-any",
    ),
    (
        Paper::Notes,
        8,
        "latency-hiding asynchrony pitch records carveout indirect column scattered",
    ),
];

#[test]
fn every_system_of_the_papers_has_rows() {
    let cases = all_cases();
    for (paper, count, keys) in SYSTEMS {
        let of: Vec<_> = topics().filter(|topic| topic.paper == paper).collect();
        let names: Vec<&str> = of.iter().map(|topic| topic.key).collect();
        assert_eq!(names, keys.split_whitespace().collect::<Vec<_>>());
        assert_eq!(of.len(), count, "{paper:?}");
        for topic in of {
            let rows = cases
                .iter()
                .filter(|case| std::ptr::eq(case.about.topic, topic));
            assert!(rows.count() > 0, "{paper:?}: {}", topic.system);
            assert!(
                !topic.picture.is_empty() && !topic.lesson.is_empty(),
                "{}",
                topic.key
            );
        }
    }
    let published = |paper| {
        let rows = cases
            .iter()
            .filter(|case| case.about.topic.paper == paper && case.about.published.is_some());
        rows.map(|case| case.about.topic.key)
            .collect::<HashSet<_>>()
            .len()
    };
    // Figures are published for all of HABR's, all of LXF's but local memory, and the seven steps.
    assert_eq!(published(Paper::Habr), 15);
    assert_eq!(published(Paper::Lxf), 5);
    assert_eq!(published(Paper::Reduce), 7);
    let sweep = cases
        .iter()
        .filter(|case| case.about.topic.key == "transpose-sweep");
    assert_eq!(sweep.count(), 32, "block shapes of 64 to 512 threads");
    // Depth 4, where the paper saw them slow down, and beyond.
    for depth in [1, 2, 3, 4, 8] {
        let id = format!("normalize/nested-{depth}-filled");
        assert!(cases.iter().any(|case| case.about.id == id), "{id}");
    }
}

#[test]
fn rows_have_names_of_their_own_and_claims_name_rows() {
    let cases = all_cases();
    let ids: HashSet<&str> = cases.iter().map(|case| case.about.id.as_str()).collect();
    assert_eq!(ids.len(), cases.len(), "an id twice");
    let keys: HashSet<&str> = topics().map(|topic| topic.key).collect();
    assert_eq!(keys.len(), topics().count(), "a system twice");
    let mut claims = 0;
    for claim in topics().filter_map(|topic| topic.claim.as_ref()) {
        assert!(ids.contains(claim.slow), "no row {}", claim.slow);
        assert!(ids.contains(claim.fast), "no row {}", claim.fast);
        claims += 1;
    }
    assert!(claims >= 36, "{claims}");
}

#[test]
fn verdicts_follow_the_ratio() {
    assert_eq!(judged(2.0, Some(2.0)), "Still holds");
    assert_eq!(judged(1.2, Some(2.0)), "Still holds, but weaker");
    assert_eq!(judged(1.02, Some(2.0)), "No longer matters here");
    assert_eq!(judged(0.7, Some(2.0)), "Reversed");
    assert_eq!(judged(1.1, Some(1.0)), "Still no difference");
    assert_eq!(judged(4.0, Some(1.0)), "There is a difference now");
    assert_eq!(judged(4.0, None), "Holds here");
}

#[test]
fn a_failed_row_says_so() {
    let mut report = report();
    report.rows[5].outcome = Outcome::Failed("3 of 8 words are wrong".into());
    assert_eq!(report.failures(), 1);
    let text = report.text();
    assert!(
        text.contains("FAILED") && text.contains("3 of 8 words are wrong"),
        "{text}"
    );
    let json: Value = serde_json::from_str(&report.json().unwrap()).unwrap();
    assert_eq!(json["rows"][5]["state"], "FAILED");
    assert_eq!(json["rows"][5]["time_us"], Value::Null);
    assert!(html::page(&report).contains("FAILED"));
}

#[test]
fn a_comparison_counts_what_became_slower() {
    let before = report();
    let earlier = compare::parse(&before.json().unwrap()).unwrap();
    let same = compare::Comparison::of(&earlier, &before, 10.0);
    assert_eq!(same.slower(), 0, "{}", same.text());

    let mut now = before.clone();
    let slower = |row: &mut Row, factor: f64| {
        let time = row.time().unwrap().median * factor;
        row.outcome = Outcome::Measured(Time::of(vec![time; 3]).into());
    };
    let long = |row: &&mut Row| row.time().unwrap().median > 1e-4;
    let mut rows = now.rows.iter_mut().filter(long);
    slower(rows.next().unwrap(), 1.25);
    slower(rows.next().unwrap(), 1.05);
    let short = |row: &&mut Row| row.time().unwrap().median < 3e-5;
    slower(now.rows.iter_mut().find(short).unwrap(), 1.5);
    let comparison = compare::Comparison::of(&earlier, &now, 10.0);
    assert_eq!(comparison.slower(), 1, "{}", comparison.text());
    assert_eq!(compare::Comparison::of(&earlier, &now, 1.0).slower(), 2);
    assert!(compare::parse("{\"schema\": 99}").is_err());
    assert!(compare::parse("[]").is_err());
}

#[test]
fn without_a_gpu_the_cpu_rows_run_and_the_rest_is_named() {
    let folder = folder(&[]);
    let host = all_cases()
        .iter()
        .filter(|case| matches!(case.work, Work::Host(_)))
        .count();
    let run = |args: &[&str]| run(folder.path(), args, &[]);
    let out = run(&["bench", "--small", "--device", "cpu", "--json"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    let json: Value = serde_json::from_str(&out.stdout).unwrap();
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), host);
    assert!(rows.iter().all(|row| row["state"] == "checked"), "{json}");
    assert!(
        json["left_out"]
            .as_str()
            .unwrap()
            .contains("rows that need a GPU")
    );

    let text = run(&[
        "bench",
        "transpose",
        "--small",
        "--device",
        "cpu",
        "--describe",
        "--html",
        "page.html",
    ]);
    assert_eq!(text.code, 0, "{}", text.stderr);
    assert!(text.stdout.contains("double loop") && text.stdout.contains("LXF: sequential host"));
    assert!(!text.stdout.contains("ceilings:"), "{}", text.stdout);
    assert!(folder.path().join("page.html").exists());

    // An earlier run that was a thousand times as fast, but of rows that count.
    let mut earlier = json.clone();
    for row in earlier["rows"].as_array_mut().unwrap() {
        row["fastest_us"] = 1e-3.into();
    }
    std::fs::write(folder.path().join("fast.json"), earlier.to_string()).unwrap();
    for row in earlier["rows"].as_array_mut().unwrap() {
        row["fastest_us"] = 1e9.into();
    }
    std::fs::write(folder.path().join("slow.json"), earlier.to_string()).unwrap();
    let against = |name: &str| {
        let args = ["bench", "ceilings", "--device", "cpu", "--compare", name];
        run(&args)
    };
    assert_eq!(against("fast.json").code, 1);
    assert_eq!(against("slow.json").code, 0);
    assert_eq!(against("missing.json").code, 1);
}

/// Every kernel of the tables, each result checked: small enough to run under a checker of memory
/// accesses and races too, as `gpuimg bench --small`.
#[test]
fn every_bench_kernel_on_small_inputs() {
    let cases = all_cases().len();
    let Some(_) = gpu(cases) else { return };
    let folder = folder(&[]);
    let out = run(folder.path(), &["bench", "--small", "--json"], &[]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    let json: Value = serde_json::from_str(&out.stdout).unwrap();
    let rows = json["rows"].as_array().unwrap();
    // Fewer sizes of transfer, and no image larger than the input.
    assert!(rows.len() + 24 > cases, "{} of {cases}", rows.len());
    for row in rows {
        assert_eq!(row["state"], "checked", "{row}");
    }
}

/// A kernel that stores nothing: its row says FAILED, and no other, and the exit status is 1.
#[test]
fn a_wrong_kernel_fails_its_row_alone() {
    const ROWS: [&str; 4] = [
        "ceilings/read",
        "normalize/truncating-filled",
        "transpose/tile-16",
        "production/transpose-8191-c1-16",
    ];
    let cases = all_cases();
    assert!(
        ROWS.iter()
            .all(|id| cases.iter().any(|case| case.about.id == *id))
    );
    let Some(_) = gpu(ROWS.len()) else { return };
    let folder = folder(&[]);
    for row in ROWS {
        let args = ["bench", "--small", "--json", "--spoil", row];
        let out = run(folder.path(), &args, &[]);
        assert_eq!(out.code, 1, "{row}: {}", out.stderr);
        let json: Value = serde_json::from_str(&out.stdout).unwrap();
        let failed: Vec<&str> = json["rows"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|row| row["state"] == "FAILED")
            .map(|row| row["id"].as_str().unwrap())
            .collect();
        assert_eq!(failed, [row]);
    }
}

#[test]
fn limits_of_control_groups() {
    let of = |files: &[(&str, &str)]| {
        gpuimg::doctor::limits(&|path| {
            let file = files.iter().find(|(name, _)| *name == path)?;
            Some(file.1.to_string())
        })
    };
    let (memory, cpu) = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/cpu.max");
    assert_eq!(of(&[]), None);
    assert_eq!(of(&[(memory, "max\n"), (cpu, "max 100000\n")]), None);
    assert_eq!(
        of(&[(memory, "8589934592\n"), (cpu, "150000 100000\n")]).unwrap(),
        "a control group allows 8192 MiB of memory and 1.5 cores' time"
    );
    let old = "/sys/fs/cgroup/memory/memory.limit_in_bytes";
    assert_eq!(of(&[(old, "9223372036854771712\n")]), None);
    let quota = "/sys/fs/cgroup/cpu/cpu.cfs_quota_us";
    let period = "/sys/fs/cgroup/cpu/cpu.cfs_period_us";
    assert_eq!(of(&[(quota, "-1\n"), (period, "100000\n")]), None);
    assert_eq!(
        of(&[(quota, "200000\n"), (period, "100000\n")]).unwrap(),
        "a control group allows 2.0 cores' time"
    );
}

#[test]
fn the_doctor_tells_of_cpu_and_choice() {
    let folder = folder(&[]);
    let out = run(folder.path(), &["doctor", "--device", "cpu"], &[]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    assert_eq!(out.stdout.matches("auto  ").count(), 1, "{}", out.stdout);
    assert!(out.stdout.contains("CPU features"));
    if gpu(1).is_some() {
        let out = run(folder.path(), &["doctor"], &[]);
        assert_eq!(out.code, 0, "{}", out.stderr);
        for what in ["driver", "link", "pinned memory", "kernels"] {
            assert!(out.stdout.contains(what), "{}", out.stdout);
        }
    }
}

/// What a test asks the page about itself, once it is laid out: the widest it gets, its bars of no
/// width, its cells, and what an error handler heard.
const PROBE: &str = "<script>addEventListener('load', () => {
  const all = selector => [...document.querySelectorAll(selector)];
  const bars = all('.fill'), flat = bars.filter(bar => bar.getBoundingClientRect().width < 1);
  document.title = JSON.stringify({ wide: document.documentElement.scrollWidth, window: innerWidth,
    bars: bars.length, flat: flat.length, cells: all('.map td[style]').length, rows: all('.row').length,
    then: all('.then').length });
})</script></head>";

#[test]
fn the_page_is_whole_in_a_browser() {
    let report = report();
    let page = html::page(&report);
    assert!(page.contains("A GPU &lt;of the tests&gt;"));
    for fetched in ["http://", "https://", "src=", "@import", "<script"] {
        assert!(!page.contains(fetched), "the page has {fetched}");
    }
    let Some(browser) = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok())
    else {
        return skipped("the page in a browser: no Chromium is installed");
    };
    let folder = folder(&[("page.html", page.replace("</head>", PROBE).as_bytes())]);
    for width in [500, 1200] {
        let seen = looked_at(browser, folder.path(), width);
        let wide = |key: &str| seen[key].as_u64().unwrap();
        assert!(wide("wide") <= wide("window"), "scrolls sideways: {seen}");
        assert_eq!(seen["flat"], 0, "{seen}");
        // The sweep's 32 rows are cells of three maps, not charts.
        assert_eq!(seen["cells"], 3 * 32, "{seen}");
        assert_eq!(wide("rows") as usize, report.rows.len() - 32, "{seen}");
        let published = report.rows.iter().filter(|row| {
            row.about.published.is_some() && row.about.topic.key != "transpose-sweep"
        });
        assert_eq!(wide("then") as usize, published.count(), "{seen}");
    }
    assert!(Table::Transpose.title().contains("transpose"));
}

/// Opens the page in a window so wide; fails on any word on the browser's console.
pub fn looked_at(browser: &str, folder: &Path, width: u32) -> Value {
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .args(["--enable-logging=stderr", "--virtual-time-budget=2000"])
        .arg(format!("--window-size={width},900"))
        .arg(format!(
            "--user-data-dir={}",
            folder.join("profile").display()
        ))
        .arg(folder.join("page.html"))
        .output()
        .expect("the browser runs");
    let (dom, log) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(!log.contains("CONSOLE"), "{log}");
    let title = dom
        .split_once("<title>")
        .and_then(|(_, rest)| rest.split_once("</title>"))
        .unwrap_or_else(|| panic!("no page: {log}"))
        .0;
    serde_json::from_str(title).unwrap_or_else(|_| panic!("the page did not answer: {title}"))
}
