//! The systems of "Methods of effective organisation of parallel computing on GPUs" (lecture
//! notes, ticket 40): statements of the lecture, shown as measurements.

use super::{Paper, Topic};

pub(super) static TOPICS: &[Topic] = &[
    Topic::new(
        Paper::Lecture,
        "latency-hiding",
        "bandwidth against resident threads",
        "threads  ░ wait ░▪    ░ wait ░▪\nthreads   ░ wait ░▪    ░ wait ░▪     the more wait at once,\nthreads    ░ wait ░▪    ░ wait ░▪    the less is waited for",
        "A GPU hides the wait for memory behind other threads, not behind caches.",
    ),
    Topic::new(
        Paper::Lecture,
        "asynchrony",
        "what returns before it is done",
        "host  call┐returns…      or   call┐░░░░░░░░░┐returns\ncard      └──── works ────        └─ works ─┘",
        "Launches, copies inside the GPU, memset and small uploads return at once; know which calls wait.",
    ),
    Topic::new(
        Paper::Lecture,
        "few-blocks",
        "rate against the number of blocks",
        "multiprocessor ▪ ▪ ▪ · · · · ·   a block each, the rest idle",
        "Fewer blocks than multiprocessors leave some of them idle.",
    ),
    Topic::new(
        Paper::Lecture,
        "pitch",
        "rows of 120 words: 480 bytes, or padded to 512",
        "│▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪│▪▪▪▪ …   a warp's 128 bytes straddle two lines\n│▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪░│▪▪▪ …   or fill one, for 6 % more memory",
        "Rows that begin at a line's start need one transaction instead of two.",
    ),
    Topic::new(
        Paper::Lecture,
        "records",
        "array of structures against structure of arrays: c = a + b",
        "abcabcabcabc   a warp's a's lie in three lines\naaaa bbbb cccc and here in one",
        "Keep apart what is not used together.",
    ),
    Topic::new(
        Paper::Lecture,
        "carveout",
        "the same kernel with level-1 cache or shared memory preferred",
        "fast memory of a multiprocessor: [ L1 ██████████│ shared ]\n                                 [ L1 █│ shared          ]",
        "Cache and shared memory are one memory: give it to the one in use.",
    ),
    Topic::new(
        Paper::Lecture,
        "indirect",
        "A[i][j] through an index array: in order, and scattered",
        "index ▪▪▪▪ → data ▪▪▪▪         two reads\nindex ▪▪▪▪ → data ▪ · ▪ ·· ▪   the second scattered",
        "Indirection adds a read; scattered, it wastes most of every transaction.",
    ),
    Topic::new(
        Paper::Lecture,
        "pointers",
        "A[i][j] through an array of pointers to rows",
        "pointers ▪ ▪ ▪ → rows ▪▪▪▪ ▪▪▪▪ ▪▪▪▪   two reads, the second where the first says",
        "A pointer to each row costs a read; down a column it scatters the second.",
    ),
    Topic::new(
        Paper::Lecture,
        "column",
        "a warp down a column of a row-major matrix, and along a row of its transposed store",
        "▪ · · ·        ▪▪▪▪\n▪ · · ·        · · · ·\n▪ · · ·        · · · ·\n32 lines       1 line",
        "One transaction a thread against one a warp: store what is read together side by side.",
    ),
    Topic::new(
        Paper::Lecture,
        "scattered",
        "32 words out of 1, 2, 3 … lines of 128 bytes, with and without the level-1 cache",
        "1 line   ▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪\n4 lines  ▪▪▪▪···· ▪▪▪▪···· ▪▪▪▪···· ▪▪▪▪····\n32       ▪······· ▪······· ▪······· …",
        "On Fermi a load through the L1 fetched 128 bytes, past it 32. Today both fetch sectors of 32.",
    ),
];
