//! The systems of "Transposing a matrix" (Kalgin and Baldin, Linux Format Russia): the sequential
//! host, three variants, the sweep of block shapes, and what its series teaches of threads and
//! memories.

use super::{Paper, Topic};

pub(super) static TOPICS: &[Topic] = &[
    Topic::new(
        Paper::Transposing,
        "transpose-host",
        "sequential host, a double loop",
        "A →→→→   for i, for j: B[j][i] = A[i][j]\nB ↓ ↓    one of the two goes down columns",
        "A processor core moves a matrix element by element, and misses its cache at each.",
    ),
    Topic::new(
        Paper::Transposing,
        "transpose-tile",
        "variant 2: through a square in shared memory",
        "A ▪▪▪▪ → square ▪▪▪▪ → B ▪▪▪▪\n    rows in, columns out of the square: bank conflicts",
        "Both accesses to memory go along rows; the scattered one happens where it is cheap.",
    ),
    Topic::new(
        Paper::Transposing,
        "transpose-padded",
        "variant 3: the square's rows one element longer",
        "bank 0 1 2 3 │ 0        ▪ · · · ·\n     0 1 2 3 │ 1   →    · ▪ · · ·   a column lies in\n     0 1 2 3 │ 2        · · ▪ · ·   different banks",
        "One unused column removes the bank conflicts.",
    ),
    Topic::new(
        Paper::Transposing,
        "transpose-sweep",
        "variant 1: one thread an element, directly, over all block shapes of 64 to 512 threads",
        "block 32 × 16  ▪▪▪▪▪▪▪▪▪▪▪▪     block 4 × 128  ▪▪\n               ▪▪▪▪▪▪▪▪▪▪▪▪                    ▪▪ …",
        "One of the two accesses is scattered, a memory transaction for every thread: the shape of a block decides which threads are neighbours, and so which.",
    ),
    Topic::new(
        Paper::Transposing,
        "transpose-mirrored",
        "variant 1 with x and y exchanged, over the same shapes",
        "listed     i from x, j from y: neighbours in x write side by side\nmirrored   j from x, i from y: neighbours in x read side by side",
        "The text's formulas for memory transactions fit this form: a block one thread wide makes the writes coalesce.",
    ),
    Topic::new(
        Paper::Transposing,
        "local-memory",
        "an array l[N] of each thread's own",
        "registers      l[16] ▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪   loops unrolled\ndevice memory  l[16] ▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪   indexed at run time",
        "A small array is unrolled into registers; a large one is device memory under another name.",
    ),
    Topic::new(
        Paper::Transposing,
        "divergence",
        "two branches, taken by whole warps and inside warps",
        "warp  A A A A │ B B B B     each warp one branch\nwarp  A B A B │ A B A B     each warp both, one after the other",
        "A warp whose threads part takes the time of both branches.",
    ),
    Topic::new(
        Paper::Transposing,
        "uneven",
        "threads that work unequally long",
        "lane ▪▪▪▪▪▪▪▪\n     ▪▪▪▪         a warp lasts as long as its longest thread\n     ▪▪",
        "Give the threads of a warp the same amount of work.",
    ),
    Topic::new(
        Paper::Transposing,
        "banks",
        "shared memory, so many words from lane to lane",
        "bank   0 1 2 … 31    stride 1: every lane a bank of its own\nbank   0 0 0 …  0    stride 32: all lanes the same",
        "32 banks of 4 bytes: lanes that meet in one take turns.",
    ),
    Topic::new(
        Paper::Transposing,
        "side-by-side",
        "small kernels in one stream and in several",
        "one stream   ▪ ▪ ▪ ▪\nfour         ▪\n             ▪\n             ▪\n             ▪",
        "A kernel of one block leaves the GPU idle: several fit beside each other.",
    ),
    Topic::new(
        Paper::Transposing,
        "enough-threads",
        "100 000 threads in all",
        "░▪░▪░▪░▪ … a hundred thousand wait in turns",
        "So many threads are said to hide the latency of memory.",
    ),
    Topic::new(
        Paper::Transposing,
        "constant",
        "constant memory: one word for a warp, and a word for each lane",
        "warp   ▪ → all lanes\nlanes  ▪ ▪ ▪ ▪ → one after the other",
        "The constant cache serves a warp that reads one word; lanes that read several take turns.",
    ),
    Topic::new(
        Paper::Transposing,
        "arithmetic",
        "multiply-adds for each word that is loaded",
        "load ▪ → × + × + × + …",
        "While a kernel waits for memory, arithmetic costs nothing: give every loaded byte much of it.",
    ),
];
