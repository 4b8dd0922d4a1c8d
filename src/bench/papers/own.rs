//! What the program adds to the papers: its own kernels, its passes on the CPU, and ceilings.

use super::{Claim, Paper, Topic};

const fn own(
    key: &'static str,
    system: &'static str,
    picture: &'static str,
    lesson: &'static str,
    claim: Option<(&'static str, &'static str)>,
) -> Topic {
    Topic {
        key,
        paper: Paper::Own,
        system,
        picture,
        lesson,
        claim: match claim {
            Some((slow, fast)) => Some(Claim {
                slow,
                fast,
                then: None,
            }),
            None => None,
        },
    }
}

pub(super) static TOPICS: &[Topic] = &[
    own(
        "ceiling",
        "the most that this machine moves",
        "▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪  16 bytes a thread, everything at once",
        "Nothing that reads or writes as much can be faster: all other rows are held against these.",
        None,
    ),
    own(
        "transfer-sizes",
        "transfers of every size, pinned and pageable",
        "pageable  host ▪ → staging ▪ ══► card ▪\npinned    host ▪ ══════════════► card ▪",
        "Pinned memory is reached directly; the call's cost fades from a few MiB on.",
        Some(("transfer/up-pageable-large", "transfer/up-pinned-large")),
    ),
    own(
        "both-ways",
        "up and down at once, on two queues",
        "host ══════► card\nhost ◄══════ card",
        "The link has two lanes: uploads and downloads need not take turns.",
        Some(("transfer/up-pinned-large", "transfer/both-ways")),
    ),
    own(
        "wide",
        "16 bytes an access",
        "thread 0           thread 1\n▪▪▪▪▪▪▪▪           ▪▪▪▪▪▪▪▪     8 samples each",
        "Wide accesses keep more bytes under way with the same threads.",
        Some(("memory/copy-filled", "memory/copy-wide")),
    ),
    own(
        "exact",
        "exact rounding by an integer division, an element at a time",
        "▪ → ((p − min)·span + d/2) / d → ▪",
        "Exact rounding need not be slower than f32, but a division for each element costs more than + 0.5.",
        Some(("normalize/exact-filled", "normalize/half-up-filled")),
    ),
    own(
        "production-scale",
        "the program's scale pass: exact, 8 samples a thread, no division",
        "▪▪▪▪▪▪▪▪ → two floats' product → ▪▪▪▪▪▪▪▪",
        "The paper's idea at the memory's rate.",
        Some(("normalize/exact-filled", "normalize/production")),
    ),
    own(
        "minmax-tree",
        "the serial scan replaced by a tree",
        "▪▪▪▪▪▪▪▪ → ▪▪▪▪ → ▪▪ → ▪",
        "log n steps instead of n, once a block.",
        Some(("minmax/serial", "minmax/tree")),
    ),
    own(
        "minmax-warp",
        "the tree replaced by shuffles",
        "lane 0 ← 16, 0 ← 8, 0 ← 4, 0 ← 2, 0 ← 1   from register to register",
        "Inside a warp, values need no shared memory.",
        Some(("minmax/tree", "minmax/warp")),
    ),
    own(
        "production-minmax",
        "the program's pass: packed pairs, 16 bytes an access",
        "▪▪│▪▪│▪▪│▪▪ → two samples an instruction",
        "The paper's one pass at the memory's rate.",
        Some(("minmax/serial-filled", "minmax/production")),
    ),
    own(
        "production-transpose",
        "the program's transposition: tiles of words",
        "▪▪▪▪ → blocks turned in registers → padded tile → ▪▪▪▪",
        "Variant 3 with whole words and whole sectors.",
        Some(("transpose/padded-32", "transpose/production")),
    ),
    own(
        "production-sum",
        "the program's sum: 64-bit totals in one launch",
        "▪▪▪▪▪▪▪▪ → register → shuffles → one atomic a block",
        "Step 7 with wide loads and without the further pass.",
        Some(("reduce/step-7", "reduce/production")),
    ),
    own(
        "cpu",
        "the program's operations on the CPU",
        "chunk │ chunk │ chunk │ …   a core each, vector instructions",
        "What the card has to beat, its transfers included.",
        None,
    ),
];
