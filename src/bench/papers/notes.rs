//! NOTES' eight systems: statements of the lecture, shown as measurements.

use super::{Claim, Paper, Topic};

const fn system(
    key: &'static str,
    system: &'static str,
    picture: &'static str,
    lesson: &'static str,
    claim: (&'static str, &'static str, Option<f64>),
) -> Topic {
    let (slow, fast, then) = claim;
    Topic {
        key,
        paper: Paper::Notes,
        system,
        picture,
        lesson,
        claim: Some(Claim { slow, fast, then }),
    }
}

pub(super) static TOPICS: &[Topic] = &[
    system(
        "latency-hiding",
        "bandwidth against resident threads",
        "threads  ░ wait ░▪    ░ wait ░▪\nthreads   ░ wait ░▪    ░ wait ░▪     the more wait at once,\nthreads    ░ wait ░▪    ░ wait ░▪    the less is waited for",
        "A card hides the wait for memory behind other threads, not behind caches.",
        ("memory/threads-64", "memory/threads-2048", None),
    ),
    system(
        "asynchrony",
        "what returns before it is done",
        "host  call┐returns…      or   call┐░░░░░░░░░┐returns\ncard      └──── works ────        └─ works ─┘",
        "Launches, copies inside the card, memset and small uploads return at once; know which calls wait.",
        (
            "transfer/returns-up-pageable-1M",
            "transfer/returns-launch",
            None,
        ),
    ),
    system(
        "pitch",
        "rows of 120 words: 480 bytes, or padded to 512",
        "│▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪│▪▪▪▪ …   a warp's 128 bytes straddle two lines\n│▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪░│▪▪▪ …   or fill one, for 6 % more memory",
        "Rows that begin at a line's start need one transaction instead of two.",
        ("memory/rows-480", "memory/rows-512", Some(2.0)),
    ),
    system(
        "records",
        "array of structures against structure of arrays: c = a + b",
        "abcabcabcabc   a warp's a's lie in three lines\naaaa bbbb cccc and here in one",
        "Keep apart what is not used together.",
        ("memory/records", "memory/arrays", Some(3.0)),
    ),
    system(
        "carveout",
        "the same kernel with level-1 cache or shared memory preferred",
        "fast memory of a multiprocessor: [ L1 ██████████│ shared ]\n                                 [ L1 █│ shared          ]",
        "Cache and shared memory are one memory: give it to the one in use.",
        ("memory/window-shared", "memory/window-l1", None),
    ),
    system(
        "indirect",
        "A[i][j] through an index array: in order, and scattered",
        "index ▪▪▪▪ → data ▪▪▪▪         two reads\nindex ▪▪▪▪ → data ▪ · ▪ ·· ▪   the second scattered",
        "Indirection adds a read; scattered, it wastes most of every transaction.",
        ("memory/gather-shuffled", "memory/gather-ordered", None),
    ),
    system(
        "column",
        "a warp down a column of a row-major matrix, and along a row of its transposed store",
        "▪ · · ·        ▪▪▪▪\n▪ · · ·        · · · ·\n▪ · · ·        · · · ·\n32 lines       1 line",
        "One transaction a thread against one a warp: store what is read together side by side.",
        ("memory/column", "memory/column-transposed", Some(32.0)),
    ),
    system(
        "scattered",
        "32 words out of 1, 2, 3 … lines of 128 bytes, with and without the level-1 cache",
        "1 line   ▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪\n4 lines  ▪▪▪▪···· ▪▪▪▪···· ▪▪▪▪···· ▪▪▪▪····\n32       ▪······· ▪······· ▪······· …",
        "On Fermi a load through the L1 fetched 128 bytes, past it 32. Today both fetch sectors of 32.",
        (
            "memory/scattered-l1-32",
            "memory/scattered-l2-32",
            Some(4.0),
        ),
    ),
];
