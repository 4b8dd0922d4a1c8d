//! The six systems of "Transposing a matrix" (Kalgin and Baldin, Linux Format Russia): the
//! sequential host, three variants, the sweep of block shapes, local memory.

use super::{Paper, Topic, described, published};

pub(super) static TOPICS: &[Topic] = &[
    Topic::of(
        Paper::Lxf,
        "transpose-host",
        "sequential host, a double loop",
        "A →→→→   for i, for j: B[j][i] = A[i][j]\nB ↓ ↓    one of the two goes down columns",
        "A processor core moves a matrix element by element, and misses its cache at each.",
        published(
            "transpose/host-paper",
            "transpose/padded-16-paper",
            9.0 / 0.26,
        ),
    ),
    Topic::of(
        Paper::Lxf,
        "transpose-naive",
        "variant 1: one thread an element, directly",
        "warp reads   A ▪ · · ·     writes  B ▪▪▪▪\n               ▪ · · ·\n               ▪ · · ·     a line each, or a line for all",
        "One of the two accesses is scattered: a memory transaction for every thread.",
        published("transpose/naive-4x128", "transpose/padded-16", 0.45 / 0.26),
    ),
    Topic::of(
        Paper::Lxf,
        "transpose-tile",
        "variant 2: through a square in shared memory",
        "A ▪▪▪▪ → square ▪▪▪▪ → B ▪▪▪▪\n    rows in, columns out of the square: bank conflicts",
        "Both accesses to memory go along rows; the scattered one happens where it is cheap.",
        published("transpose/naive-4x128", "transpose/tile-16", 0.45 / 0.28),
    ),
    Topic::of(
        Paper::Lxf,
        "transpose-padded",
        "variant 3: the square's rows one element longer",
        "bank 0 1 2 3 │ 0        ▪ · · · ·\n     0 1 2 3 │ 1   →    · ▪ · · ·   a column lies in\n     0 1 2 3 │ 2        · · ▪ · ·   different banks",
        "One unused column removes the bank conflicts.",
        published("transpose/tile-32", "transpose/padded-32", 0.28 / 0.26),
    ),
    Topic::of(
        Paper::Lxf,
        "transpose-sweep",
        "variant 1 over all block shapes of 64 to 512 threads",
        "block 32 × 16  ▪▪▪▪▪▪▪▪▪▪▪▪     block 4 × 128  ▪▪\n               ▪▪▪▪▪▪▪▪▪▪▪▪                    ▪▪ …",
        "The shape of a block decides which threads are neighbours, and so which access is scattered.",
        published(
            "transpose/naive-32x16",
            "transpose/naive-4x128",
            2.70 / 0.45,
        ),
    ),
    Topic::of(
        Paper::Lxf,
        "local-memory",
        "an array l[N] of each thread's own",
        "N = 4    registers  ▪▪▪▪\nN = 256  device memory  ▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪ … a thread",
        "A small array is unrolled into registers; a large one is device memory under another name.",
        described("memory/local-256", "memory/local-4"),
    ),
];
