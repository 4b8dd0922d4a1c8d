//! The systems that the program adds to the papers': its own kernels, its passes on the CPU, and
//! ceilings.

use super::{Paper, Topic};

pub(super) static TOPICS: &[Topic] = &[
    Topic::new(
        Paper::Own,
        "ceiling",
        "the most that this machine moves",
        "▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪  16 bytes a thread, everything at once",
        "Nothing that reads or writes as much can be faster: all other rows are held against these.",
    ),
    Topic::new(
        Paper::Own,
        "transfer-sizes",
        "transfers of every size, pinned and pageable",
        "pageable  host ▪ → staging ▪ ══► GPU ▪\npinned    host ▪ ══════════════► GPU ▪",
        "Pinned memory is reached directly; the call's cost fades from a few MiB on.",
    ),
    Topic::new(
        Paper::Own,
        "both-ways",
        "up and down at once, on two streams",
        "host ══════► GPU\nhost ◄══════ GPU",
        "The link has two lanes: uploads and downloads need not take turns.",
    ),
    Topic::new(
        Paper::Own,
        "exact",
        "exact rounding by an integer division, an element at a time",
        "▪ → ((p − min)·span + d/2) / d → ▪",
        "Exact rounding need not be slower than f32, but a division for each element costs more than + 0.5.",
    ),
    Topic::new(
        Paper::Own,
        "production-scale",
        "the program's scale pass: exact, 8 samples a thread, no division",
        "▪▪▪▪▪▪▪▪ → two floats' product → ▪▪▪▪▪▪▪▪",
        "The paper's idea at the memory's rate.",
    ),
    Topic::new(
        Paper::Own,
        "minmax-registers",
        "each thread's values in registers, as compilers of today keep them",
        "register ▪ → after the last element → shared ▪▪▪▪",
        "Shared memory is for what threads share.",
    ),
    Topic::new(
        Paper::Own,
        "minmax-tree",
        "the serial scan replaced by a tree",
        "▪▪▪▪▪▪▪▪ → ▪▪▪▪ → ▪▪ → ▪",
        "log n steps instead of n, once a block.",
    ),
    Topic::new(
        Paper::Own,
        "minmax-warp",
        "the tree replaced by shuffles",
        "lane 0 ← 16, 0 ← 8, 0 ← 4, 0 ← 2, 0 ← 1   from register to register",
        "Inside a warp, values need no shared memory.",
    ),
    Topic::new(
        Paper::Own,
        "production-minmax",
        "the program's pass: packed pairs, 16 bytes an access",
        "▪▪│▪▪│▪▪│▪▪ → two samples an instruction",
        "The paper's one pass at the memory's rate.",
    ),
    Topic::new(
        Paper::Own,
        "production-transpose",
        "the program's transposition: tiles of words",
        "▪▪▪▪ → blocks turned in registers → padded tile → ▪▪▪▪",
        "Variant 3 with whole words and whole sectors.",
    ),
    Topic::new(
        Paper::Own,
        "production-sum",
        "the program's sum: 64-bit totals in one launch",
        "▪▪▪▪▪▪▪▪ → register → shuffles → one atomic a block",
        "Step 7 with wide loads and without the further pass.",
    ),
    Topic::new(
        Paper::Own,
        "production-sizes",
        "the program's kernels from 256² to 512 megapixels, beside a copy of as many bytes",
        "▪ │ ▪▪▪▪ │ ▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪",
        "A small image costs the launches, one of some megapixels the cache, a large one the memory.",
    ),
    Topic::new(
        Paper::Own,
        "cpu",
        "the program's operations on the CPU",
        "chunk │ chunk │ chunk │ …   a core each, vector instructions",
        "What the GPU has to beat, its transfers included.",
    ),
];
