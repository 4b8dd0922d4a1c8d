//! The tables of `bench`: every system of the papers, counted; runs, comparisons, and the page in
//! a real browser.

use crate::support::browser::looked_at;
use crate::support::{folder, gpu, run, skipped};
use gpuimg::internals::bench::case::{Ceiling, Measured, Outcome, Row, Work};
use gpuimg::internals::bench::figure::Time;
use gpuimg::internals::bench::papers::topics;
use gpuimg::internals::bench::report::{Machine, Report};
use gpuimg::internals::bench::{Table, all_cases, compare, html, record::RunRecord};
use serde_json::Value;
use std::collections::HashSet;
use std::process::Command;
use std::time::Duration;

/// A report of all rows, each with a time of its own, as if measured.
fn report() -> Report {
    let row = |(i, case): (usize, gpuimg::internals::bench::case::Case)| {
        // Irrational, so that no time or ratio lies on the edge between two printed numbers.
        let us = 10.0 + 10.0 * std::f64::consts::SQRT_2 * (i * 37 % 101) as f64;
        let time = Time::from_seconds(vec![us / 1e6; 3]);
        Row {
            about: case.about,
            fits_l2: i % 7 == 0,
            ceiling: Some(3000.0),
            peak: Some(3350.0),
            outcome: Outcome::Measured(Measured { time, remark: None }),
        }
    };
    Report {
        machine: Machine {
            gpu: Some("A GPU <of the tests>".into()),
            details: Some("none".into()),
            driver: Some("580.65.06".into()),
            memory_peak: Some(3350.0),
            threads: 2,
            input: 256 << 20,
            date: "2026-11-22".into(),
            version: "0.0".into(),
            commit: "none".into(),
        },
        rows: all_cases().into_iter().enumerate().map(row).collect(),
        left_out: None,
        wall: Duration::from_secs(1),
    }
}

#[test]
fn rows_have_names_of_their_own_and_claims_name_rows() {
    let cases = all_cases();
    let ids: HashSet<&str> = cases.iter().map(|case| case.about.id.as_str()).collect();
    assert_eq!(ids.len(), cases.len(), "an id twice");
    let keys: HashSet<&str> = topics().map(|topic| topic.key).collect();
    assert_eq!(keys.len(), topics().count(), "a system twice");
    for topic in topics() {
        let of = |case: &&gpuimg::internals::bench::case::Case| case.about.topic.key == topic.key;
        assert!(
            cases.iter().any(|case| of(&case)),
            "{} has no rows",
            topic.key
        );
        assert!(!topic.picture.is_empty() && !topic.lesson.is_empty());
    }
}

/// Each of the program's kernels is compared with a copy or a read of as many bytes.
#[test]
fn production_is_compared_with_as_many_bytes() {
    let cases = all_cases();
    let mut compared = 0;
    for case in &cases {
        let Ceiling::Measured(id) = case.ceiling else {
            continue;
        };
        let ceiling = cases.iter().find(|case| case.about.id == id);
        let ceiling = ceiling.unwrap_or_else(|| panic!("no row {id}"));
        if case.about.table != Table::Production {
            continue;
        }
        let ratio = case.about.bytes as f64 / ceiling.about.bytes as f64;
        // 8191² pixels stand for 8192².
        assert!((0.999..=1.0).contains(&ratio), "{}: {ratio}", case.about.id);
        compared += 1;
    }
    assert_eq!(compared, 6 * 5 + 1 + 9 * 2 + 7 + 2 + 6);
}

/// `bench link` is a small table of five rows, and the first of all and of the page.
#[test]
fn the_link_is_a_table_of_five_rows_and_comes_first() {
    let report = report();
    let (first, rows) = report.tables().next().expect("a table");
    assert_eq!(first, Table::Link);
    let ids: Vec<&str> = rows.iter().map(|row| row.about.id.as_str()).collect();
    let expected = [
        "link/up-pinned",
        "link/down-pinned",
        "link/up-pageable",
        "link/down-pageable",
        "link/both-ways",
    ];
    assert_eq!(ids, expected);
    let page = html::page(&report);
    let at = |what: &str| page.find(what).expect(what);
    assert!(at("<section id=\"link\">") < at("<section id=\"verdicts\">"));
}

/// A time whose measurements differ by 5 % of it is called unstable, in the table and on the page.
#[test]
fn unstable_rows_are_flagged_and_the_spread_is_defined() {
    let mut report = report();
    let count =
        |text: &str| text.matches("; unstable").count() + text.matches("  unstable").count();
    let defined = "±: the interquartile range of a row's measurements, divided by their median";
    assert!(report.text().contains(defined) && html::page(&report).contains(defined));
    assert_eq!(count(&report.text()), 0);
    let wide = vec![1e-3, 1e-3, 1.02e-3, 1.06e-3, 1.06e-3];
    report.rows[1].outcome = Outcome::Measured(Time::from_seconds(wide).into());
    assert_eq!(count(&report.text()), 1, "{}", report.text());
    assert!(html::page(&report).contains(" · unstable"));
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
    let json: Value = serde_json::from_str(&RunRecord::new(&report).json().unwrap()).unwrap();
    assert_eq!(json["rows"][5]["state"], "FAILED");
    assert_eq!(json["rows"][5]["time_us"], Value::Null);
    assert!(html::page(&report).contains("FAILED"));
}

/// What --json prints can be drawn again: the same text, page and verdicts.
#[test]
fn a_recorded_run_is_drawn_again() {
    let report = report();
    let json = RunRecord::new(&report).json().unwrap();
    let again = RunRecord::parse(&json).unwrap().into_report();
    assert_eq!(again.text(), report.text());
    assert_eq!(html::page(&again), html::page(&report));

    let folder = folder(&[("run.json", json.as_bytes())]);
    let drawn = run(
        folder.path(),
        &["bench", "--from", "run.json", "--html", "p.html"],
        &[],
    );
    assert_eq!(
        (drawn.code, drawn.stdout),
        (0, report.text()),
        "{}",
        drawn.stderr
    );
    assert!(folder.path().join("p.html").exists());
    // A variable is a default, and no conflict.
    let variable = run(
        folder.path(),
        &["bench", "--from", "run.json"],
        &[("GPUIMG_DEVICE", "cpu")],
    );
    assert_eq!(
        (variable.code, variable.stdout),
        (0, report.text()),
        "{}",
        variable.stderr
    );
    let both = run(
        folder.path(),
        &["bench", "memory", "--from", "run.json"],
        &[],
    );
    assert_eq!(both.code, 2, "{}", both.stderr);
    let unknown = json.replacen("memory/read\"", "memory/unheard-of\"", 1);
    let unknown = RunRecord::parse(&unknown).unwrap().into_report();
    assert!(unknown.left_out.unwrap().contains("memory/unheard-of"));
    assert!(RunRecord::parse("{\"schema\": 2}").is_err());
}

#[test]
fn a_comparison_counts_what_became_slower() {
    let before = report();
    let earlier = RunRecord::parse(&RunRecord::new(&before).json().unwrap()).unwrap();
    let same = compare::Comparison::new(&earlier, &before, 10.0);
    assert_eq!(same.slower(), 0, "{}", same.text());

    let mut now = before.clone();
    let slower = |row: &mut Row, factor: f64| {
        let time = row.time().unwrap().median * factor;
        row.outcome = Outcome::Measured(Time::from_seconds(vec![time; 3]).into());
    };
    let long = |row: &&mut Row| row.time().unwrap().median > 1e-4;
    let mut rows = now.rows.iter_mut().filter(long);
    slower(rows.next().unwrap(), 1.25);
    slower(rows.next().unwrap(), 1.05);
    let short = |row: &&mut Row| row.time().unwrap().median < 3e-5;
    slower(now.rows.iter_mut().find(short).unwrap(), 1.5);
    let comparison = compare::Comparison::new(&earlier, &now, 10.0);
    assert_eq!(comparison.slower(), 1, "{}", comparison.text());
    assert_eq!(compare::Comparison::new(&earlier, &now, 1.0).slower(), 2);
    assert!(RunRecord::parse("{\"schema\": 99}").is_err());
    assert!(RunRecord::parse("[]").is_err());
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
    assert!(text.stdout.contains("double loop") && text.stdout.contains("sequential host"));
    // All texts are named, and the CPU alone says nothing about their claims.
    for title in [
        "CUDA: performance aspects of typical tasks",
        "Kalgin and Baldin, \"Transposing a matrix\"",
        "GPGPU optimisation by the example of a sum",
        "Methods of effective organisation of parallel computing on GPUs",
    ] {
        assert!(text.stdout.contains(title), "{}", text.stdout);
    }
    assert!(!text.stdout.contains("verdicts"), "{}", text.stdout);
    assert_eq!(json["verdicts"].as_array().map(Vec::len), Some(0));
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
    assert!(rows.len() + 36 > cases, "{} of {cases}", rows.len());
    for row in rows {
        let remark = row["remark"].as_str().unwrap_or_default();
        let is_left_out = remark.starts_with("left out: needs compute capability");
        assert!(row["state"] == "checked" || is_left_out, "{row}");
    }
}

/// A kernel that stores nothing: its row says FAILED, and no other, and the exit status is 1.
#[test]
fn a_wrong_kernel_fails_its_row_alone() {
    const ROWS: [&str; 11] = [
        "memory/double-scattered",
        "threads/latency-shared",
        "ceilings/read",
        "normalize/truncating-filled",
        "transpose/tile-16-8192",
        "production/transpose-8191-c1-16",
        "threads/latency-texture",
        "memory/copy-by-8",
        "transpose/async-32-8192",
        "production/fused-1024k",
        "launch/graph-updated",
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
fn the_doctor_prints_the_plan_of_an_example() {
    let folder = folder(&[]);
    let out = run(folder.path(), &["doctor", "--device", "cpu"], &[]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    assert!(out.stdout.contains("CPU vectors"));
    // The same command for such a file: the doctor adds nothing and leaves nothing out.
    let page = gpuimg::Image::new(2048, 2048, 1, vec![0u16; 1 << 22]).expect("an image");
    gpuimg::write(folder.path().join("in.png"), &page).expect("a file");
    let args = [
        "normalize",
        "in.png",
        "out.png",
        "--device",
        "cpu",
        "--dry-run",
        "-v",
    ];
    let dry = run(folder.path(), &args, &[]).stdout;
    let planned: Vec<&str> = dry.lines().filter(|line| line.starts_with("  ")).collect();
    assert_eq!(planned.len(), 7, "{dry}");
    assert!(
        out.stdout.ends_with(&(planned.join("\n") + "\n")),
        "{}\n{dry}",
        out.stdout
    );
    let json = run(
        folder.path(),
        &["doctor", "--device", "cpu", "--json"],
        &[("RAYON_NUM_THREADS", "3")],
    );
    let health: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(health["cpu"]["threads"], 3);
    let reason = "not checked (--device or GPUIMG_DEVICE is cpu)";
    assert_eq!(health["gpu_problem"], reason);
    let plan = health["plan"].as_str().expect("a plan").lines();
    assert_eq!(
        plan.last().map(str::trim),
        planned.last().map(|line| line.trim())
    );
    if gpu(1).is_some() {
        let out = run(folder.path(), &["doctor"], &[]);
        assert_eq!(out.code, 0, "{}", out.stderr);
        for what in ["driver", "link", "pinned memory", "kernels"] {
            assert!(out.stdout.contains(what), "{}", out.stdout);
        }
    }
}

/// What a test asks the page about itself, once it is laid out: the widest it gets, its bars of no
/// width, its cells, links that lead nowhere, and what is outside of a chart's drawing.
const PROBE: &str = "<script>addEventListener('load', () => {
  const all = selector => [...document.querySelectorAll(selector)];
  all('details').forEach(details => details.open = true);
  const bars = all('.fill'), flat = bars.filter(bar => bar.getBoundingClientRect().width < 1);
  const outside = all('svg circle').filter(dot => { const b = dot.getBoundingClientRect(), s = dot.closest('svg').getBoundingClientRect();
    return b.left < s.left || b.right > s.right + 1 || b.top < s.top - 4 || b.bottom > s.bottom });
  document.title = JSON.stringify({ wide: document.documentElement.scrollWidth, window: innerWidth,
    bars: bars.length, flat: flat.length, cells: all('.map td[style]').length, best: all('.map .best').length, rows: all('.row').length,
    claims: all('#verdicts .claim[id]').length, charts: all('svg').length, outside: outside.length,
    lost: all('a').filter(a => !document.querySelector(a.getAttribute('href'))).length });
})</script></head>";

#[test]
fn the_page_is_whole_in_a_browser() {
    let report = report();
    let page = html::page(&report);
    assert!(page.contains("A GPU &lt;of the tests&gt;"));
    for fetched in ["http://", "https://", "src=", "@import", "<script", "url("] {
        assert!(!page.contains(fetched), "the page has {fetched}");
    }
    for there in [
        "580.65.06",
        "2026-11-22",
        "gpuimg 0.0",
        "commit none",
        "Kalgin and Baldin",
    ] {
        assert!(page.contains(there), "the page has no {there}");
    }
    let Some(browser) = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok())
    else {
        return skipped("the page in a browser: no Chromium is installed");
    };
    let folder = folder(&[("page.html", page.replace("</head>", PROBE).as_bytes())]);
    for width in [500, 1100] {
        let seen = looked_at(browser, folder.path(), width);
        let wide = |key: &str| seen[key].as_u64().unwrap();
        assert!(wide("wide") <= wide("window"), "scrolls sideways: {seen}");
        assert_eq!(
            (wide("flat"), wide("lost"), wide("outside")),
            (0, 0, 0),
            "{seen}"
        );
        // Four sweeps of 32 shapes here, two in the paper, and one of 42 launches.
        assert_eq!(seen["cells"], 6 * 32 + 42, "{seen}");
        assert!(wide("best") >= 7, "{seen}");
        assert_eq!(wide("rows") as usize, report.rows.len(), "{seen}");
        assert_eq!(wide("claims") as usize, report.judgements().len(), "{seen}");
        assert!(wide("charts") >= 13, "{seen}");
    }
}
