//! The seven steps of "GPGPU optimisation by the example of a sum" (after Mark Harris), and sums of
//! any length.

use super::{Paper, Topic, published};

pub(super) static TOPICS: &[Topic] = &[
    Topic::of(
        Paper::Reduce,
        "reduce-1",
        "step 1: interleaved addressing, every 2·stride-th thread works",
        "thread 0 1 2 3 4 5 6 7\n       ▪←▪ ▪←▪ ▪←▪ ▪←▪\n       ▪←──▪   ▪←──▪      every warp runs to the end",
        "Where threads of one warp part, the warp goes both ways.",
        None,
    ),
    Topic::of(
        Paper::Reduce,
        "reduce-2",
        "step 2: interleaved addressing, the first threads work",
        "thread 0   1   2   3\n       ▪←▪ ▪←▪ ▪←▪ ▪←▪    whole warps drop out,\n       ▪←──▪   ▪←──▪      but strides of 2ᵏ meet in banks",
        "Consecutive threads keep warps together.",
        published("reduce/step-1", "reduce/step-2", 2.33),
    ),
    Topic::of(
        Paper::Reduce,
        "reduce-3",
        "step 3: sequential addressing",
        "thread 0 1 2 3\n       ▪ ▪ ▪ ▪ │ ▪ ▪ ▪ ▪\n       ↑←──────┘            neighbours add neighbours",
        "Consecutive addresses keep banks apart.",
        published("reduce/step-2", "reduce/step-3", 2.01),
    ),
    Topic::of(
        Paper::Reduce,
        "reduce-4",
        "step 4: the first addition happens during the load",
        "load  a[i] + a[i + n]   half the blocks, none idle from the start",
        "Half of the threads did nothing but load: let each load two.",
        published("reduce/step-3", "reduce/step-4", 1.78),
    ),
    Topic::of(
        Paper::Reduce,
        "reduce-5",
        "step 5: the last warp unrolled, no barriers of the block there",
        "256 ─barrier─ 128 ─barrier─ 64 │ 32 16 8 4 2 1   one warp",
        "A warp needs no barrier of the block. Since Volta it needs one of its own.",
        published("reduce/step-4", "reduce/step-5", 1.8),
    ),
    Topic::of(
        Paper::Reduce,
        "reduce-6",
        "step 6: block size known at compile time, no loop left",
        "for (stride …)  →  s[t] += s[t+128]; s[t] += s[t+64]; …",
        "Loop and address arithmetic are instructions too.",
        published("reduce/step-5", "reduce/step-6", 1.41),
    ),
    Topic::of(
        Paper::Reduce,
        "reduce-7",
        "step 7: several elements a thread before the tree",
        "thread 0 1 2 3 … │ 0 1 2 3 … │ 0 1 2 3 … → register → tree",
        "Most of a sum needs no cooperation at all.",
        published("reduce/step-6", "reduce/step-7", 1.42),
    ),
    Topic::of(
        Paper::Reduce,
        "reduce-any",
        "any length: the partial sums are reduced by a further pass",
        "n → n/512 → n/512² → … → 1    missing elements count as 0",
        "A bounds check at the load is all that an odd length costs.",
        published("reduce/any-length", "reduce/step-7", 1.0),
    ),
];
