//! The seven steps of "GPGPU optimisation by the example of a sum" (after Mark Harris), and sums of
//! any length.

use super::{Paper, Topic};

pub(super) static TOPICS: &[Topic] = &[
    Topic::new(
        Paper::Sum,
        "reduce-1",
        "step 1: interleaved addressing, every 2·stride-th thread works",
        "thread 0 1 2 3 4 5 6 7\n       ▪←▪ ▪←▪ ▪←▪ ▪←▪\n       ▪←──▪   ▪←──▪      every warp runs to the end",
        "Where threads of one warp part, the warp goes both ways.",
    ),
    Topic::new(
        Paper::Sum,
        "reduce-2",
        "step 2: interleaved addressing, the first threads work",
        "thread 0   1   2   3\n       ▪←▪ ▪←▪ ▪←▪ ▪←▪    whole warps drop out,\n       ▪←──▪   ▪←──▪      but strides of 2ᵏ meet in banks",
        "Consecutive threads keep warps together.",
    ),
    Topic::new(
        Paper::Sum,
        "reduce-3",
        "step 3: sequential addressing",
        "thread 0 1 2 3\n       ▪ ▪ ▪ ▪ │ ▪ ▪ ▪ ▪\n       ↑←──────┘            neighbours add neighbours",
        "Consecutive addresses keep banks apart.",
    ),
    Topic::new(
        Paper::Sum,
        "reduce-4",
        "step 4: the first addition happens during the load",
        "load  a[i] + a[i + n]   half the blocks, none idle from the start",
        "Half of the threads did nothing but load: let each load two.",
    ),
    Topic::new(
        Paper::Sum,
        "reduce-5",
        "step 5: the last warp unrolled, no barriers of the block there",
        "256 ─barrier─ 128 ─barrier─ 64 │ 32 16 8 4 2 1   one warp",
        "A warp needs no barrier of the block. Since Volta it needs one of its own.",
    ),
    Topic::new(
        Paper::Sum,
        "reduce-6",
        "step 6: block size known at compile time, no loop left",
        "for (stride …)  →  s[t] += s[t+128]; s[t] += s[t+64]; …",
        "Loop and address arithmetic are instructions too.",
    ),
    Topic::new(
        Paper::Sum,
        "reduce-7",
        "step 7: several elements a thread before the tree",
        "thread 0 1 2 3 … │ 0 1 2 3 … │ 0 1 2 3 … → register → tree",
        "Most of a sum needs no cooperation at all.",
    ),
    Topic::new(
        Paper::Sum,
        "reduce-any",
        "any length: the partial sums are reduced by a further pass",
        "n → n/512 → n/512² → … → 1    missing elements count as 0",
        "A bounds check at the load is all that an odd length costs.",
    ),
    Topic::new(
        Paper::Sum,
        "reduce-sizes",
        "step 6 with other sizes of block",
        "32 │ 64 │ 128 │ 256 │ 512 │ 1024 threads",
        "The size is a parameter of a template; the text allows 512 threads, GPUs of today 1024.",
    ),
    Topic::new(
        Paper::Sum,
        "wide",
        "16 bytes an access",
        "thread 0           thread 1\n▪▪▪▪▪▪▪▪           ▪▪▪▪▪▪▪▪     8 samples each",
        "The text's advice: the memory is built for accesses of 128 bits. Wide accesses keep more bytes under way with the same threads.",
    ),
    Topic::new(
        Paper::Sum,
        "latency",
        "one thread goes from word to word in each kind of memory",
        "▪ ─► ▪ ─► ▪ ─► …   each load tells where the next is",
        "Shared memory answers sooner than device memory; only many threads, or reuse, hide the difference.",
    ),
];
