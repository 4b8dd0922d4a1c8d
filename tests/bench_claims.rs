//! What the papers claim: nothing that they describe is left out, each verdict is made from the
//! right pair of rows, and the verdicts of a recorded run follow from its times.

use crate::support::{sample, skipped};
use gpuimg::internals::bench::case::{Measured, Outcome, Row};
use gpuimg::internals::bench::claims::{
    By, CLAIMS, Claim, Origin, Pick, Test, Then, Verdict, judge, judged, statements,
};
use gpuimg::internals::bench::figure::Time;
use gpuimg::internals::bench::papers::Paper;
use gpuimg::internals::bench::{Table, all_cases, compare, html, record::RunRecord};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::fs;

/// Everything that the papers describe, measure or announce, and a row that shows it.
const COVERAGE: &[(Paper, &str, &str)] = &[
    (
        Paper::TypicalTasks,
        "empty kernel, synchronised",
        "launch/sync",
    ),
    (
        Paper::TypicalTasks,
        "empty kernel, not synchronised",
        "launch/async",
    ),
    (
        Paper::TypicalTasks,
        "empty kernel, one thread",
        "launch/async-1x1",
    ),
    (
        Paper::TypicalTasks,
        "copy of a large block up",
        "transfer/up-sync-large",
    ),
    (
        Paper::TypicalTasks,
        "copy of a large block down",
        "transfer/down-sync-large",
    ),
    (
        Paper::TypicalTasks,
        "asynchronous pageable copy up",
        "transfer/up-async-large",
    ),
    (
        Paper::TypicalTasks,
        "asynchronous pageable copy down",
        "transfer/down-async-large",
    ),
    (Paper::TypicalTasks, "copy of 4 bytes", "transfer/up-sync-4"),
    (Paper::TypicalTasks, "read", "memory/read"),
    (Paper::TypicalTasks, "copy", "memory/copy"),
    (
        Paper::TypicalTasks,
        "normalize, truncating",
        "normalize/truncating",
    ),
    (
        Paper::TypicalTasks,
        "normalize, round()",
        "normalize/rounding",
    ),
    (
        Paper::TypicalTasks,
        "normalize, + 0.5f",
        "normalize/half-up",
    ),
    (
        Paper::TypicalTasks,
        "normalize, + 0.5 as written",
        "normalize/half-up-double",
    ),
    (Paper::TypicalTasks, "min/max", "minmax/serial"),
    (Paper::TypicalTasks, "min and max apart", "minmax/apart"),
    (
        Paper::TypicalTasks,
        "conditionals, depth 1",
        "minmax/nested-1",
    ),
    (
        Paper::TypicalTasks,
        "conditionals, depth 2",
        "minmax/nested-2",
    ),
    (
        Paper::TypicalTasks,
        "conditionals, depth 3",
        "minmax/nested-3",
    ),
    (
        Paper::TypicalTasks,
        "conditionals, depth 4",
        "minmax/nested-4",
    ),
    (Paper::TypicalTasks, "double index", "memory/double"),
    (
        Paper::TypicalTasks,
        "double index, arbitrary",
        "memory/double-scattered",
    ),
    (
        Paper::TypicalTasks,
        "arbitrary access without an index",
        "memory/read-scattered",
    ),
    (Paper::TypicalTasks, "triple index", "memory/triple"),
    (
        Paper::TypicalTasks,
        "its launch, 160 × 96",
        "memory/launch-160x96",
    ),
    (Paper::Transposing, "sequential host", "transpose/host-1024"),
    (
        Paper::Transposing,
        "variant 1, best on the Quadro",
        "transpose/naive-1024-4x128",
    ),
    (
        Paper::Transposing,
        "variant 1, best on the GeForce",
        "transpose/naive-1024-1x64",
    ),
    (
        Paper::Transposing,
        "variant 1 of the text's formulas",
        "transpose/mirrored-1024-1x64",
    ),
    (Paper::Transposing, "variant 2", "transpose/tile-16-1024"),
    (Paper::Transposing, "variant 3", "transpose/padded-16-1024"),
    (
        Paper::Transposing,
        "local memory, registers",
        "memory/local-registers-16",
    ),
    (
        Paper::Transposing,
        "local memory, spilled",
        "memory/local-spilled-16",
    ),
    (
        Paper::Transposing,
        "bank conflicts by stride",
        "threads/banks-32",
    ),
    (
        Paper::Transposing,
        "divergence inside a warp",
        "threads/diverge-lanes",
    ),
    (
        Paper::Transposing,
        "divergence between warps",
        "threads/diverge-warps",
    ),
    (
        Paper::Transposing,
        "10⁵ threads",
        "memory/threads-100k-in-all",
    ),
    (Paper::Transposing, "uneven load", "threads/uneven-lanes"),
    (Paper::Transposing, "arithmetic per byte", "threads/fma-8"),
    (
        Paper::Transposing,
        "small kernels side by side",
        "threads/small-kernels-16-streams",
    ),
    (
        Paper::Transposing,
        "constant cache",
        "threads/constant-lanes",
    ),
    (Paper::Sum, "texture memory", "threads/latency-texture"),
    (Paper::Sum, "constant memory", "threads/latency-constant"),
    (
        Paper::Sum,
        "latency of shared memory",
        "threads/latency-shared",
    ),
    (
        Paper::Sum,
        "latency of device memory",
        "threads/latency-global",
    ),
    (Paper::Sum, "latency of the L2", "threads/latency-l2"),
    (Paper::Sum, "step 1", "reduce/step-1-paper"),
    (Paper::Sum, "step 2", "reduce/step-2-paper"),
    (Paper::Sum, "step 3", "reduce/step-3-paper"),
    (Paper::Sum, "step 4", "reduce/step-4-paper"),
    (Paper::Sum, "step 5", "reduce/step-5-paper"),
    (Paper::Sum, "step 6", "reduce/step-6-paper"),
    (Paper::Sum, "step 7", "reduce/step-7-paper"),
    (Paper::Sum, "any length", "reduce/any-length"),
    (Paper::Sum, "smallest block", "reduce/block-32"),
    (Paper::Sum, "its largest block", "reduce/block-512"),
    (Paper::Sum, "today's largest block", "reduce/block-1024"),
    (Paper::Sum, "128-bit accesses", "memory/copy-by-16"),
    (Paper::Lecture, "latency hiding", "memory/threads-64"),
    (Paper::Lecture, "rate against blocks", "memory/blocks-1"),
    (Paper::Lecture, "launch returns", "transfer/returns-launch"),
    (
        Paper::Lecture,
        "copy inside the GPU returns",
        "transfer/returns-copy-inside-sync",
    ),
    (
        Paper::Lecture,
        "its asynchronous form",
        "transfer/returns-copy-inside-async",
    ),
    (
        Paper::Lecture,
        "memset returns",
        "transfer/returns-memset-sync",
    ),
    (
        Paper::Lecture,
        "its asynchronous form",
        "transfer/returns-memset-async",
    ),
    (
        Paper::Lecture,
        "uploads below 64 KB",
        "transfer/returns-up-sync-63K",
    ),
    (Paper::Lecture, "at 64 KB", "transfer/returns-up-sync-64K"),
    (
        Paper::Lecture,
        "above 64 KB",
        "transfer/returns-up-sync-65K",
    ),
    (
        Paper::Lecture,
        "an idle stream: the call returns",
        "transfer/idle-up-sync-63K",
    ),
    (
        Paper::Lecture,
        "an idle stream: the data have landed",
        "transfer/landed-up-sync-63K",
    ),
    (
        Paper::Lecture,
        "*Async copies",
        "transfer/returns-up-pinned-1024K",
    ),
    (Paper::Lecture, "pitch", "memory/rows-480"),
    (Paper::Lecture, "pitch, padded", "memory/rows-512"),
    (Paper::Lecture, "array of structures", "memory/records"),
    (Paper::Lecture, "structure of arrays", "memory/arrays"),
    (Paper::Lecture, "L1 preferred", "memory/window-l1"),
    (Paper::Lecture, "half and half", "memory/window-equal"),
    (
        Paper::Lecture,
        "shared memory preferred",
        "memory/window-shared",
    ),
    (
        Paper::Lecture,
        "indirect by index",
        "memory/gather-shuffled",
    ),
    (Paper::Lecture, "pointer to pointer", "memory/pointer-rows"),
    (
        Paper::Lecture,
        "pointer to pointer, column",
        "memory/pointer-column",
    ),
    (Paper::Lecture, "column access", "memory/column"),
    (
        Paper::Lecture,
        "column, stored transposed",
        "memory/column-transposed",
    ),
    (Paper::Lecture, "scattered, L1", "memory/scattered-l1-32"),
    (
        Paper::Lecture,
        "scattered, past the L1",
        "memory/scattered-l2-32",
    ),
    (
        Paper::TypicalTasks,
        "the read with only its last value stored",
        "memory/read-last",
    ),
    (
        Paper::TypicalTasks,
        "min and max apart, a small image",
        "minmax/apart-small",
    ),
    (
        Paper::Transposing,
        "double precision",
        "threads/fma-double-256",
    ),
    (
        Paper::Transposing,
        "registers that spill",
        "memory/pressure-spilled",
    ),
    (
        Paper::Transposing,
        "lanes permuted in a segment",
        "memory/lanes-permuted",
    ),
    (
        Paper::Transposing,
        "broadcast, stride 0",
        "threads/broadcast",
    ),
    (
        Paper::Transposing,
        "uneven load by blocks",
        "threads/uneven-blocks",
    ),
    (Paper::Transposing, "shuffles", "minmax/warp"),
    (Paper::Sum, "partial sums on the host", "reduce/step-7-host"),
    (Paper::Sum, "texture fetch", "memory/read-texture"),
    (Paper::Sum, "latency of the L1", "threads/latency-l1"),
    (
        Paper::Sum,
        "latency of local memory",
        "threads/latency-local",
    ),
    (
        Paper::Sum,
        "latency of registers",
        "threads/latency-registers",
    ),
    (
        Paper::Sum,
        "32-bit accesses in the same loop",
        "memory/copy-by-4",
    ),
    (Paper::Lecture, "CUDA_LAUNCH_BLOCKING=1", "launch/blocking"),
    (
        Paper::Lecture,
        "rows that are no multiple of 32 bytes",
        "memory/rows-484",
    ),
    (
        Paper::Lecture,
        "misaligned contiguous words",
        "memory/misaligned",
    ),
    (
        Paper::Lecture,
        "scaling with multiprocessors",
        "memory/multiprocessors-8",
    ),
    // What no paper has: the experiments continued.
    (Paper::Own, "an updated graph", "launch/graph-updated"),
    (Paper::Own, "overlapping launches", "launch/programmatic"),
    (Paper::Own, "clusters", "reduce/further-13-paper"),
    (Paper::Own, "a tensor map", "transpose/tma-32-8192"),
    (
        Paper::Own,
        "managed memory, busy stream",
        "transfer/upload-managed-busy",
    ),
    (
        Paper::Own,
        "download on an idle stream",
        "transfer/download-pinned-idle",
    ),
    (
        Paper::Own,
        "memset of mapped memory",
        "transfer/memset-mapped-busy",
    ),
];

#[test]
fn everything_that_the_papers_describe_has_a_row() {
    let cases = all_cases();
    for (paper, what, id) in COVERAGE {
        let case = cases.iter().find(|case| case.about.id == *id);
        let case = case.unwrap_or_else(|| panic!("{what}: no row {id}"));
        assert_eq!(case.about.topic.paper, *paper, "{what}: {id}");
    }
    let count = |part: &str| {
        let of = cases.iter().filter(|case| case.about.id.contains(part));
        of.count()
    };
    assert_eq!(
        count("/naive-1024-"),
        32,
        "block shapes of 64 to 512 threads"
    );
    assert_eq!(count("/naive-8192-"), 32);
    assert_eq!(count("/mirrored-1024-"), 32);
    assert_eq!(count("/mirrored-8192-"), 32);
    assert_eq!(count("/returns-up-sync-"), 8);
    // Three calls × four kinds of memory × two states of the stream, without memset of pageable memory.
    let matrix = cases
        .iter()
        .filter(|case| case.about.topic.key == "asynchrony-matrix");
    assert_eq!(matrix.count(), 3 * 4 * 2 - 2);
}

/// The published figures, as the papers print them, and nothing that was computed from them.
#[test]
fn published_figures_are_those_of_the_papers() {
    let cases = all_cases();
    let published = |id: &str| {
        let case = cases.iter().find(|case| case.about.id == id);
        let case = case.unwrap_or_else(|| panic!("no row {id}"));
        let texts = case.about.published.iter().map(|it| it.text());
        texts.collect::<Vec<_>>().join(", ")
    };
    for (id, text) in [
        ("launch/sync", "15000 calls/s (GTX 460)"),
        ("launch/async", "73100 calls/s (GTX 460)"),
        ("launch/async-1x1", "73 000–73 500 calls/s (GTX 460)"),
        ("transfer/up-sync-4", "22 000 calls/s, 88 kB/s (GTX 460)"),
        ("transfer/up-sync-large", "about 2 GB/s (GTX 460)"),
        ("transfer/up-pinned-large", ""),
        ("transfer/up-queued-large", ""),
        ("memory/read", "42 GB/s (GTX 460)"),
        ("memory/copy-filled", "30 GB/s (GTX 460)"),
        ("memory/triple", "40–60 % slower than direct (GTX 460)"),
        ("normalize/truncating", "26 GB/s (GTX 460)"),
        ("normalize/rounding", "20 GB/s (GTX 460)"),
        ("normalize/half-up", "26 GB/s (GTX 460)"),
        ("minmax/serial", "29 GB/s (GTX 460)"),
        (
            "minmax/nested-4",
            "about 2× slower, at depth 4 only (GTX 460)",
        ),
        ("transpose/host-1024", "9 ms (Core i7)"),
        // The published times of variant 1 fit the mirrored kernel, and are printed beside the listed one.
        ("transpose/naive-1024-4x128", ""),
        ("transpose/naive-1024-1x64", ""),
        ("transpose/naive-8192-1x64", ""),
        ("transpose/mirrored-1024-1x64", ""),
        (
            "transpose/tile-16-1024",
            "0.28 ms (Quadro), 0.44 ms (GeForce 8800)",
        ),
        (
            "transpose/padded-16-1024",
            "0.26 ms (Quadro), 0.43 ms (GeForce 8800)",
        ),
        ("transpose/padded-32-1024", ""),
        ("reduce/step-1-paper", "8.054 ms, 2.083 GB/s (G80)"),
        (
            "reduce/step-7-paper",
            "0.268 ms, 62.671 GB/s, 30.04× step 1 (G80)",
        ),
        ("reduce/step-7", ""),
        ("reduce/any-length", ""),
    ] {
        assert_eq!(published(id), text, "{id}");
    }
}

/// Copy and normalize are compared by the time for an image, whatever bytes their rows count.
#[test]
fn an_image_is_counted_once() {
    let case = all_cases().into_iter();
    let case = case
        .into_iter()
        .find(|case| case.about.id == "memory/copy-filled");
    let about = case.expect("the row").about;
    let image = about.bytes / 2;
    let seconds = image as f64 / 30e9;
    let row = Row {
        about,
        fits_l2: false,
        ceiling: None,
        peak: None,
        outcome: Outcome::Measured(Time::from_seconds(vec![seconds; 3]).into()),
    };
    assert!((row.ratio().expect("a ratio") - 1.0).abs() < 1e-9);
    assert!((row.rate().expect("a rate") - 60.0).abs() < 1e-6);
}

/// The pairs, written out from the papers a second time: what is said to be slower, what faster, and
/// the least and the most of the paper's ratio (1 1: no difference; –: no ratio of speeds).
const PAIRS: &str = "
launch-queued | launch/sync | launch/async | 4.873 4.873
launch-threads | launch/async | launch/async-1x1 | 1 1
link-slow | transfer/up-sync-large | memory/copy-filled | 15 15
async-up | transfer/up-async-large | transfer/up-sync-large | 1 1
async-down | transfer/down-async-large | transfer/down-sync-large | 1 1
tiny-copy | transfer/up-sync-4K | transfer/up-sync-4 | 1 1
read-copy | memory/copy-filled | memory/read-filled | 1.4 1.4
normalize-copy | normalize/truncating-filled | memory/copy-filled | 1.154 1.154
normalize-round | normalize/rounding-filled | normalize/truncating-filled | 1.3 1.3
normalize-half | normalize/half-up-filled | normalize/truncating-filled | 1 1
normalize-half-double | normalize/half-up-double-filled | normalize/truncating-filled | 1 1
normalize-half-round | normalize/rounding-filled | normalize/half-up-double-filled | 1.3 1.3
minmax-read | minmax/serial-filled | memory/read-filled | 1.448 1.448
minmax-normalize | normalize/truncating-filled | minmax/serial-filled | 1.115 1.115
minmax-apart | minmax/apart-filled | minmax/serial-filled | –
nested-3 | minmax/nested-3-filled | minmax/serial-filled | 1 1
nested-4 | minmax/nested-4-filled | minmax/serial-filled | 2 2
double-index | memory/double-in-piece-filled | memory/read-filled | 1.333 inf
scattered-read | memory/read-scattered-filled | memory/read-filled | 0 2
triple-index | memory/triple-filled | memory/read-filled | 1.667 2.5
transpose-host-naive | transpose/host-1024 | best of transpose/naive-1024-* | 6.6 20
transpose-host-tile | transpose/host-1024 | transpose/tile-16-1024 | 20 32
transpose-host | transpose/host-1024 | transpose/padded-16-1024 | 21 34
transpose-tile-1024 | best of transpose/naive-1024-* | transpose/tile-16-1024 | 1.607 3.091
transpose-tile-8192 | best of transpose/naive-8192-* | transpose/tile-16-8192 | 1.607 3.091
transpose-padded-1024 | transpose/tile-32-1024 | transpose/padded-32-1024 | 1.023 1.077
transpose-padded-8192 | transpose/tile-32-8192 | transpose/padded-32-8192 | 1.023 1.077
transpose-sweep-1024 | worst of transpose/naive-1024-* | best of transpose/naive-1024-* | 2.610 6.178
transpose-sweep-8192 | worst of transpose/naive-8192-* | best of transpose/naive-8192-* | 2.610 6.178
transpose-tall-1024 | best of transpose/naive-1024-* with x ≥ y | best of transpose/naive-1024-* with y > x | 2.2 2.301
transpose-tall-8192 | best of transpose/naive-8192-* with x ≥ y | best of transpose/naive-8192-* with y > x | 2.2 2.301
transpose-writes-listed | transpose/naive-8192-64x1 | transpose/naive-8192-1x64 | –
transpose-writes-mirrored | transpose/mirrored-8192-64x1 | transpose/mirrored-8192-1x64 | –
transpose-tall-mirrored | best of transpose/mirrored-8192-* with x ≥ y | best of transpose/mirrored-8192-* with y > x | –
local-16 | memory/local-spilled-16 | memory/local-registers-16 | –
local-64 | memory/local-spilled-64 | memory/local-registers-64 | –
enough-threads | memory/threads-100k-in-all | memory/threads-2048 | 1 1
divergence | threads/diverge-lanes | threads/diverge-warps | 2 2
uneven-load | threads/uneven-lanes | threads/even | –
bank-conflicts | threads/banks-16 | threads/banks-1 | 16 16
bank-conflicts-32 | threads/banks-32 | threads/banks-1 | –
bank-padding | threads/banks-33 | threads/banks-1 | 1 1
side-by-side | threads/small-kernels-1-stream | threads/small-kernels-16-streams | –
constant-cache | threads/constant-lanes | threads/constant-same | –
arithmetic-free | threads/fma-8 | threads/fma-1 | 1 1
sum-2 | reduce/step-1-paper | reduce/step-2-paper | 2.33 2.33
sum-3 | reduce/step-2-paper | reduce/step-3-paper | 2.01 2.01
sum-4 | reduce/step-3-paper | reduce/step-4-paper | 1.78 1.78
sum-5 | reduce/step-4-paper | reduce/step-5-paper | 1.8 1.8
sum-6 | reduce/step-5-paper | reduce/step-6-paper | 1.41 1.41
sum-7 | reduce/step-6-paper | reduce/step-7-paper | 1.42 1.42
sum-total | reduce/step-1 | reduce/step-7 | 30.04 30.04
sum-total-paper | reduce/step-1-paper | reduce/step-7-paper | 30.04 30.04
sum-any-length | reduce/any-length | reduce/step-7 | 1 1
wide-copy | memory/copy-by-2 | memory/copy-by-16 | –
latency-shared | threads/latency-global | threads/latency-shared | 100 100
latency-hiding | memory/threads-64 | memory/threads-2048 | –
few-blocks | memory/blocks-1 | memory/blocks-1024 | –
returns-1K | transfer/landed-up-sync-1K | transfer/idle-up-sync-1K | –
returns-16K | transfer/landed-up-sync-16K | transfer/idle-up-sync-16K | –
returns-32K | transfer/landed-up-sync-32K | transfer/idle-up-sync-32K | –
returns-63K | transfer/landed-up-sync-63K | transfer/idle-up-sync-63K | –
returns-65K | transfer/landed-up-sync-65K | transfer/idle-up-sync-65K | 1 1
returns-128K | transfer/landed-up-sync-128K | transfer/idle-up-sync-128K | 1 1
returns-1024K | transfer/landed-up-sync-1024K | transfer/idle-up-sync-1024K | 1 1
pitch | memory/rows-480 | memory/rows-512 | –
records | memory/records | memory/arrays | –
carveout | memory/window-shared | memory/window-l1 | –
indirect | memory/gather-shuffled | memory/gather-ordered | –
pointer-rows | memory/pointer-rows | memory/direct-rows | –
pointer-column | memory/pointer-column | memory/column | –
column | memory/column | memory/column-transposed | –
scattered-lines | memory/scattered-l1-32 | memory/scattered-l1-1 | –
scattered-l1 | memory/scattered-l1-32 | memory/scattered-l2-32 | –
minmax-apart-small | minmax/apart-small | minmax/serial-small | –
pressure | memory/pressure-spilled | memory/pressure-none | –
permuted | memory/lanes-permuted | memory/lanes-ordered | 1 1
precision | threads/fma-double-256 | threads/fma-256 | –
shuffles | minmax/tree | minmax/warp | –
broadcast | threads/broadcast | threads/banks-1 | 1 1
uneven-blocks | threads/uneven-blocks | threads/even | –
sum-host | reduce/step-7-host | reduce/step-7-paper | –
latency-registers | threads/latency-shared | threads/latency-registers | –
launch-blocking | launch/blocking | launch/async | –
multiprocessors | memory/multiprocessors-1 | memory/multiprocessors-8 | –
misaligned | memory/misaligned | memory/lanes-ordered | –
pitch-484 | memory/rows-484 | memory/rows-512 | –
";

/// The claims whose pair, or whose ratio, is not that of `PAIRS`, and those that are missing on one side.
fn wrong_pairs(claims: &[Claim]) -> Vec<String> {
    let mut pairs = HashMap::new();
    for line in PAIRS.lines().filter(|line| !line.is_empty()) {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        pairs.insert(fields[0], (fields[1], fields[2], fields[3]));
    }
    let mut wrong = Vec::new();
    for claim in claims {
        let Test::Pair(slow, fast, _, then) = claim.test else {
            continue;
        };
        if claim.topic().paper == Paper::Own {
            if then != Then::Slower {
                wrong.push(claim.key.into());
            }
            continue;
        }
        let near = |text: &str, number: f64| {
            let expected: f64 = text.parse().expect("a number");
            expected == number || (expected / number - 1.0).abs() < 1e-3
        };
        let right = pairs
            .remove(claim.key)
            .is_some_and(|(slower, faster, bounds)| {
                let bounded = match (bounds.split_once(' '), then.bounds()) {
                    (None, None) => true,
                    (Some((low, high)), Some(found)) => near(low, found.0) && near(high, found.1),
                    _ => false,
                };
                bounded && slow.text() == slower && fast.text() == faster
            });
        if !right {
            wrong.push(claim.key.into());
        }
    }
    wrong.extend(pairs.keys().map(|key| format!("not claimed: {key}")));
    wrong
}

#[test]
fn each_claim_is_judged_by_its_own_pair() {
    assert_eq!(wrong_pairs(CLAIMS), [""; 0]);
    let pairs = CLAIMS
        .iter()
        .filter(|claim| matches!(claim.test, Test::Pair(..)));
    assert!(pairs.count() > 70);
}

/// Every pair exchanged, given the next claim's row, or with another figure, is noticed.
#[test]
fn planted_wrong_pairs_are_noticed() {
    let mut planted = 0;
    for (at, claim) in CLAIMS.iter().enumerate() {
        let Test::Pair(slow, fast, by, then) = claim.test else {
            continue;
        };
        if claim.topic().paper == Paper::Own {
            continue;
        }
        let other = match (slow, fast) {
            (Pick::Row("memory/read-filled"), _) | (_, Pick::Row("memory/read-filled")) => {
                "memory/read"
            }
            _ => "memory/read-filled",
        };
        let figure = match then {
            Then::Slower | Then::Count(_) => Then::Stated(1.5, ""),
            Then::Same(_) => Then::Slower,
            _ => Then::Same(""),
        };
        for test in [
            Test::Pair(fast, slow, by, then),
            Test::Pair(slow, Pick::Row(other), by, then),
            Test::Pair(slow, fast, by, figure),
        ] {
            let mut claims = CLAIMS.to_vec();
            claims[at].test = test;
            assert_eq!(wrong_pairs(&claims), [claim.key], "{test:?}");
            planted += 1;
        }
    }
    assert!(planted > 200, "{planted}");
}

/// Rows that are compared do the same work, and are launched alike.
#[test]
fn like_is_compared_with_like() {
    let cases = all_cases();
    let keys: HashSet<&str> = CLAIMS.iter().map(|claim| claim.key).collect();
    assert_eq!(keys.len(), CLAIMS.len(), "a claim twice");
    let rows = |pick: Pick| {
        let of = cases.iter().filter(move |case| match pick {
            Pick::Row(id) => case.about.id == id,
            Pick::Best(prefix, _) | Pick::Worst(prefix, _) => case.about.id.starts_with(prefix),
        });
        let of: Vec<_> = of.map(|case| &case.about).collect();
        assert!(!of.is_empty(), "no row {}", pick.id());
        of
    };
    let filled = |id: &str| id.ends_with("-filled") || id.ends_with("/production");
    let size = |id: &str| {
        ["1024", "8192"]
            .into_iter()
            .find(|size| id.contains(&format!("-{size}")))
    };
    for claim in CLAIMS {
        let picks = claim.picks();
        picks.iter().for_each(|pick| drop(rows(*pick)));
        let Test::Pair(slow, fast, by, _) = claim.test else {
            continue;
        };
        let (slow, fast) = (rows(slow)[0], rows(fast)[0]);
        let table = |id: &str| id.split('/').next().map(String::from);
        if by == By::Rate {
            assert!(slow.bytes > 0 && fast.bytes > 0, "{}", claim.key);
            continue;
        }
        // A copy moves an image twice, a read once; 4 KiB and 4 bytes are the claim itself.
        let images = [slow, fast].map(|about| match about.id.as_str() {
            id if id.starts_with("memory/copy") || id.starts_with("normalize/") => about.bytes / 2,
            _ => about.bytes,
        });
        if claim.key != "tiny-copy" {
            assert_eq!(images[0], images[1], "{}: other work", claim.key);
        }
        if ["minmax", "normalize"]
            .map(String::from)
            .contains(&table(&slow.id).unwrap_or_default())
            && table(&slow.id) == table(&fast.id)
        {
            assert_eq!(
                filled(&slow.id),
                filled(&fast.id),
                "{}: other launches",
                claim.key
            );
        }
        if table(&slow.id).as_deref() == Some("transpose") {
            assert_eq!(size(&slow.id), size(&fast.id), "{}: other sizes", claim.key);
        }
    }
}

#[test]
fn verdicts_follow_the_ratio() {
    let verdict = |here, then| judged(here, then, 0.02);
    let twice = Then::Stated(2.0, "");
    assert_eq!(verdict(2.0, twice), Verdict::Holds);
    assert_eq!(verdict(1.2, twice), Verdict::Weaker);
    assert_eq!(verdict(1.01, twice), Verdict::NoLonger);
    assert_eq!(verdict(0.7, twice), Verdict::Reversed);
    assert_eq!(verdict(9.0, twice), Verdict::Stronger);
    assert_eq!(verdict(1.01, Then::Same("")), Verdict::StillSame);
    assert_eq!(verdict(4.0, Then::Same("")), Verdict::Differs);
    assert_eq!(verdict(0.5, Then::Same("")), Verdict::Differs);
    assert_eq!(verdict(4.0, Then::Slower), Verdict::HoldsHere);
    assert_eq!(verdict(1.04, Then::Between(1.02, 1.08, "")), Verdict::Holds);
    assert_eq!(verdict(1.01, Then::Count("")), Verdict::NoLonger);
}

/// 15.5 times as slow was shown as confirming "up to twice as slow".
#[test]
fn an_exceeded_bound_was_called_confirmed() {
    let verdict = |here, then| judged(here, then, 0.02);
    assert_eq!(verdict(15.5, Then::AtMost(2.0, "")), Verdict::OutOfBound);
    assert_eq!(verdict(2.03, Then::AtMost(2.0, "")), Verdict::Holds);
    assert_eq!(verdict(0.9, Then::AtMost(2.0, "")), Verdict::Holds);
    assert_eq!(verdict(1.49, Then::AtLeast(1.333, "")), Verdict::Holds);
    assert_eq!(verdict(1.1, Then::AtLeast(1.333, "")), Verdict::OutOfBound);
    assert_eq!(Verdict::OutOfBound.class(), "against");
}

/// 3.01 times as slow was shown as confirming "40–60 % slower", which is 1.67 to 2.5 times.
#[test]
fn a_ratio_outside_a_stated_range_was_called_confirmed() {
    let verdict = |here| judged(here, Then::Within(1.667, 2.5, ""), 0.02);
    assert_eq!(verdict(3.01), Verdict::OutOfBound);
    assert_eq!(verdict(1.5), Verdict::OutOfBound);
    assert_eq!(verdict(2.52), Verdict::Holds);
    assert_eq!(verdict(1.01), Verdict::NoLonger);
    assert_eq!(verdict(0.7), Verdict::Reversed);
}

/// A fixed band of 15 % hid that `+ 0.5` of doubles is slower than `round()`: 345.6 against 336.6 µs.
#[test]
fn a_repeatable_difference_was_called_none() {
    let here = 345.6 / 336.6;
    assert_eq!(judged(here, Then::Same(""), 0.012), Verdict::Differs);
    assert_eq!(judged(here, Then::Same(""), 0.05), Verdict::StillSame);
    let claimed = Then::Computed(26.0 / 20.0, "");
    assert_eq!(judged(1.0 / here, claimed, 0.012), Verdict::Reversed);
}

/// The 64 KB message counted seven times, and claims that no text makes counted as the texts'.
#[test]
fn only_statements_of_the_papers_count_and_each_once() {
    let rows = rows(&[
        ("transfer/idle-up-sync-1K", 3.0),
        ("transfer/landed-up-sync-1K", 6.0),
        ("transfer/idle-up-sync-63K", 8.0),
        ("transfer/landed-up-sync-63K", 9.0),
        ("transfer/idle-up-sync-128K", 20.0),
        ("transfer/landed-up-sync-128K", 20.0),
        ("transfer/up-async-large", 100.0),
        ("transfer/up-pinned-large", 50.0),
    ]);
    let judgements = judge(&rows);
    let keys = |origin: Origin| {
        let of = judgements.iter().filter(|it| it.claim.origin == origin);
        of.map(|it| it.claim.key).collect::<Vec<_>>()
    };
    assert_eq!(
        keys(Origin::Quoted),
        ["async-up", "returns-1K", "returns-63K"]
    );
    assert_eq!(keys(Origin::Inferred), ["returns-128K"]);
    assert_eq!(keys(Origin::Ours), ["pinned", "both-ways"]);
    let counted = statements(&judgements);
    let counted: Vec<&str> = counted.iter().map(|it| it.claim.statement).collect();
    assert_eq!(counted, ["async-copy", "returns-small"]);
    // What the program says of itself is never the papers'.
    for claim in CLAIMS {
        let own = claim.topic().paper == Paper::Own;
        assert_eq!(own, claim.origin == Origin::Ours, "{}", claim.key);
    }
}

/// Rows with these times, in µs.
fn rows(times: &[(&str, f64)]) -> Vec<Row> {
    let mut cases = all_cases();
    let row = |&(id, us): &(&str, f64)| {
        let at = cases.iter().position(|case| case.about.id == id);
        let time = Time::from_seconds(vec![us / 1e6; 3]);
        Row {
            about: cases
                .swap_remove(at.unwrap_or_else(|| panic!("no row {id}")))
                .about,
            fits_l2: false,
            ceiling: None,
            peak: Some(3350.0),
            outcome: Outcome::Measured(Measured { time, remark: None }),
        }
    };
    times.iter().map(row).collect()
}

#[test]
fn one_table_judges_what_it_can_and_names_what_the_rest_needs() {
    let rows = rows(&[
        ("minmax/serial-filled", 200.0),
        ("minmax/nested-4-filled", 400.0),
        ("transfer/returns-launch", 5.0),
        ("transfer/returns-copy-inside-sync", 2000.0),
        ("transpose/naive-8192-8x32", 270.0),
        ("transpose/naive-8192-1x256", 1100.0),
    ]);
    let judgements = judge(&rows);
    let of = |key: &str| {
        let found = judgements.iter().find(|it| it.claim.key == key);
        found.unwrap_or_else(|| panic!("no verdict on {key}"))
    };
    assert_eq!(of("nested-4").verdict, Verdict::Holds);
    assert_eq!(of("minmax-read").verdict, Verdict::NotJudged);
    assert_eq!(of("minmax-read").needs, [Table::Memory]);
    assert!(
        of("minmax-read")
            .verdict_text()
            .contains("needs the table memory")
    );
    assert_eq!(of("minmax-normalize").needs, [Table::Normalize]);
    assert_eq!(of("returns-launch").verdict, Verdict::Holds);
    assert_eq!(of("returns-copy-inside").verdict, Verdict::Differs);
    let sweep = of("transpose-sweep-8192");
    assert_eq!(
        sweep.rows,
        ["transpose/naive-8192-1x256", "transpose/naive-8192-8x32"]
    );
    assert!((sweep.here.expect("a ratio") - 1100.0 / 270.0).abs() < 1e-9);
    assert!(
        !judgements
            .iter()
            .any(|it| it.claim.topic().paper == Paper::Sum)
    );
}

/// The recorded run of an H200: its verdicts follow from its times, and its page and text are what
/// this version draws from it.
#[test]
fn the_recorded_verdicts_follow_from_the_recorded_times() {
    let folder = sample("bench");
    let Ok(text) = fs::read_to_string(folder.join("h200.json")) else {
        return skipped("the verdicts of a recorded run: samples/bench/h200.json is not there");
    };
    let json: Value = serde_json::from_str(&text).expect("JSON");
    let rows = json["rows"].as_array().expect("rows");
    assert!(rows.iter().all(|row| row["state"] == "checked"));
    let of = |id: &Value, field: &str| {
        let row = rows.iter().find(|row| row["id"] == *id);
        row.and_then(|row| row[field].as_f64()).expect("a number")
    };
    let mut recomputed = 0;
    for verdict in json["verdicts"].as_array().expect("verdicts") {
        let key = verdict["claim"].as_str().expect("a name");
        let claim: &Claim = CLAIMS.iter().find(|claim| claim.key == key).expect(key);
        if verdict["verdict"] == "Not judged" {
            continue;
        }
        let (ids, here) = (&verdict["rows"], verdict["here"].as_f64().expect(key));
        let expected = match claim.test {
            Test::Pair(.., By::Time, _) => of(&ids[0], "time_us") / of(&ids[1], "time_us"),
            Test::Pair(.., By::Rate, _) => of(&ids[1], "gb_per_s") / of(&ids[0], "gb_per_s"),
            Test::Returns(..) => of(&ids[0], "time_us") / 1e6,
            Test::Share(..) => {
                of(&ids[0], "gb_per_s") / json["memory_peak_gb_per_s"].as_f64().expect("a peak")
            }
        };
        assert!(
            (expected / here - 1.0).abs() < 1e-6,
            "{key}: {expected} and {here}"
        );
        if let Test::Pair(.., then) = claim.test {
            let spread = |id: &Value| of(id, "spread_percent") / 100.0;
            let uncertainty = 0.01 + spread(&ids[0]) + spread(&ids[1]);
            let expected = judged(expected, then, uncertainty);
            assert_eq!(verdict["verdict"], expected.text(), "{key}");
        }
        recomputed += 1;
    }
    // A run from before the uploads on an idle stream and the scattered read were measured.
    let without_rows = CLAIMS.iter().filter(|claim| {
        let measured = |pick: &Pick| {
            rows.iter().any(|row| {
                row["id"]
                    .as_str()
                    .is_some_and(|id| id.starts_with(pick.id()))
            })
        };
        !claim.picks().iter().all(measured)
    });
    assert_eq!(CLAIMS.len() - recomputed, without_rows.count());

    let report = RunRecord::parse(&text).expect("a report").into_report();
    let again: Value =
        serde_json::from_str(&RunRecord::new(&report).json().expect("JSON")).expect("JSON");
    // Times are read back to the last bit or so. A run from before a row was measured does not judge its claims.
    let verdicts = |json: &Value| {
        let verdicts = json["verdicts"].as_array().expect("verdicts").iter();
        let judged = verdicts.filter(|it| it["verdict"] != "Not judged");
        let of = judged.map(|it| [&it["claim"], &it["rows"], &it["verdict"]].map(Value::clone));
        of.collect::<Vec<_>>()
    };
    assert_eq!(verdicts(&again), verdicts(&json));
    let drawn = |name: &str| fs::read_to_string(folder.join(name)).expect(name);
    assert_eq!(
        html::page(&report),
        drawn("h200.html"),
        "gpuimg bench --from h200.json --html h200.html"
    );
    assert_eq!(
        report.text(),
        drawn("h200.txt"),
        "gpuimg bench --from h200.json > h200.txt"
    );
    for it in report.judgements() {
        assert!(report.text().contains(it.claim.says), "{}", it.claim.key);
    }
}

/// Two runs on that GPU agree within 5 % on rows of 50 µs and more that leave pageable memory and
/// the host alone.
#[test]
fn two_recorded_runs_agree() {
    let folder = sample("bench");
    if !folder.join("h200-again.json").exists() {
        return skipped("two recorded runs: samples/bench/h200-again.json is not there");
    }
    let read = |name: &str| {
        let text = fs::read_to_string(folder.join(name)).expect(name);
        (
            RunRecord::parse(&text).expect(name),
            RunRecord::parse(&text).expect(name).into_report(),
        )
    };
    let (_, first) = read("h200.json");
    let (earlier, _) = read("h200-again.json");
    let mut rows = first;
    rows.rows.retain(|row| !row.about.pageable);
    let comparison = compare::Comparison::new(&earlier, &rows, 5.0);
    assert_eq!(comparison.slower(), 0, "{}", comparison.text());
}
