//! HABR's fifteen systems.

use super::{Claim, Paper, Topic};

const fn system(
    key: &'static str,
    system: &'static str,
    picture: &'static str,
    lesson: &'static str,
    claim: (&'static str, &'static str, f64),
) -> Topic {
    let (slow, fast, then) = claim;
    Topic {
        key,
        paper: Paper::Habr,
        system,
        picture,
        lesson,
        claim: Some(Claim {
            slow,
            fast,
            then: Some(then),
        }),
    }
}

pub(super) static TOPICS: &[Topic] = &[
    system(
        "empty-sync",
        "empty kernel, synchronised after each call",
        "host  launch──wait │ launch──wait │ …\ncard         ▪            ▪",
        "A launch that is waited for costs the way to the card and back: fuse kernels.",
        ("launch/sync", "launch/async", 73_100.0 / 15_000.0),
    ),
    system(
        "empty-async",
        "empty kernel, not synchronised",
        "host  launch launch launch … wait\ncard        ▪      ▪      ▪",
        "Queued launches overlap with the card's work; wait once, at the end.",
        ("launch/sync", "launch/async", 73_100.0 / 15_000.0),
    ),
    system(
        "empty-one",
        "empty kernel, one block of one thread, not synchronised",
        "host  launch launch launch … wait\ncard        ·      ·      ·",
        "Setting up threads is not what a launch costs.",
        ("launch/async", "launch/async-1x1", 1.0),
    ),
    system(
        "large-copy",
        "host to device and back, blocks over 100 MB",
        "host ████████████ ══ link ══► ████████████ card",
        "The link is far slower than the card's memory: move much at once, and seldom.",
        ("transfer/up-pageable-large", "memory/copy-filled", 15.0),
    ),
    system(
        "async-copy",
        "asynchronous copy",
        "host  copy─┐ (goes on)      …  wait\nlink       └══════════════►",
        "An asynchronous copy is no faster than one that is waited for: it leaves the host free meanwhile.",
        ("transfer/up-pinned-large", "transfer/up-queued-large", 1.0),
    ),
    system(
        "tiny-copy",
        "host to device, 4 bytes",
        "host ▪──call──►▪ card   ▪──call──►▪   …",
        "A small copy costs the call, not the bytes.",
        (
            "transfer/up-pageable-4",
            "transfer/up-pageable-large",
            2e9 / 88e3,
        ),
    ),
    system(
        "read",
        "every element loaded, one value stored",
        "thread 0 1 2 3 …      each 2 bytes, side by side\nmemory ▪ ▪ ▪ ▪ ▪ ▪ ▪ ▪  → sum",
        "Reading alone is faster than reading and writing.",
        ("memory/copy-filled", "memory/read-filled", 42.0 / 30.0),
    ),
    system(
        "copy",
        "every element loaded and stored",
        "thread 0 1 2 3 …\nmemory ▪ ▪ ▪ ▪ ▪ ▪ ▪ ▪\n       ↓ ↓ ↓ ↓\nmemory ▪ ▪ ▪ ▪ ▪ ▪ ▪ ▪",
        "The rate of a copy is the rate that any change of an image can reach.",
        ("memory/copy-filled", "memory/read-filled", 42.0 / 30.0),
    ),
    system(
        "normalize-truncating",
        "(float(p) − sub)·factor, the integer part stored in place",
        "▪ → (float − sub)·factor → ⌊ ⌋ → ▪   the same place",
        "A little arithmetic hides behind the memory.",
        (
            "normalize/truncating-filled",
            "memory/copy-filled",
            30.0 / 26.0,
        ),
    ),
    system(
        "normalize-round",
        "the same, rounded by the library's round()",
        "▪ → (float − sub)·factor → round() → ▪",
        "round() is a chain of instructions: do not call it for every element.",
        (
            "normalize/rounding-filled",
            "normalize/half-up-filled",
            26.0 / 20.0,
        ),
    ),
    system(
        "normalize-half",
        "the same, + 0.5 and then the integer part",
        "▪ → (float − sub)·factor → + 0.5 → ⌊ ⌋ → ▪",
        "One addition rounds half up, for nothing.",
        (
            "normalize/half-up-filled",
            "normalize/truncating-filled",
            1.0,
        ),
    ),
    system(
        "minmax",
        "minimum and maximum in one pass, the block's scanned by one thread each",
        "thread   0 1 2 3 … n      each its own min, max\nshared  [▪▪▪▪▪▪▪▪▪▪▪▪]\nthread 0 →→→→→→→→→→→ min ┐ atomics\nthread 1 →→→→→→→→→→→ max ┘",
        "Both in one pass cost one read. The paper folds blocks without atomics, which loses results; here they are folded with them.",
        ("minmax/serial-filled", "memory/read-filled", 42.0 / 29.0),
    ),
    system(
        "nested",
        "an `if` inside an `if`, to depth 4, before the minimum and maximum",
        "if ─┬─ if ─┬─ if ─┬─ if ─┬─\n    └      └      └      └      a warp goes every way that one of its threads goes",
        "Branches cost little until they nest deep.",
        ("minmax/nested-4-filled", "minmax/serial-filled", 2.0),
    ),
    system(
        "double-index",
        "double indexing: data[index[j] + i]",
        "index [3 0 2 1 …]\n       │ └─────┐\ndata  ▪▪▪▪│▪▪▪▪│▪▪▪▪│   the address waits for a load",
        "Indirection costs a quarter at best; far more where the pieces lie scattered.",
        ("memory/double-filled", "memory/read-filled", 1.0 / 0.75),
    ),
    system(
        "triple-index",
        "triple indexing: data[index[order[j]] + i]",
        "order [2 0 1 …] → index [3 0 2 1 …] → data ▪▪▪▪│▪▪▪▪│",
        "Each further level makes every access wait for one more.",
        ("memory/triple-filled", "memory/read-filled", 1.0 / 0.5),
    ),
];
