//! Variant 1 of "Transposing a matrix" over all block shapes of 64 to 512 threads: as listed in the
//! paper, and with x and y exchanged, to which the formulas of its text apply.

use super::variant;
use crate::bench::case::Case;

/// Published times of variant 1 by block shape: threads along x, along y, ms on a Quadro, ms on a
/// GeForce 8800.
#[rustfmt::skip]
pub(in crate::bench) const PUBLISHED: [(u32, u32, f64, f64); 32] = [
    (64, 1, 2.75, 3.20), (128, 1, 2.73, 3.20), (256, 1, 2.60, 3.13), (32, 2, 2.78, 3.15),
    (64, 2, 2.75, 3.18), (128, 2, 2.73, 3.18), (256, 2, 2.60, 3.13), (16, 4, 1.94, 3.20),
    (32, 4, 2.76, 3.18), (64, 4, 2.75, 3.20), (128, 4, 2.75, 3.22), (8, 8, 0.99, 3.55),
    (16, 8, 1.90, 3.18), (32, 8, 2.73, 3.20), (64, 8, 2.75, 3.26), (4, 16, 0.60, 3.25),
    (8, 16, 1.02, 3.50), (16, 16, 1.87, 3.16), (32, 16, 2.70, 3.28), (2, 32, 0.51, 3.25),
    (4, 32, 0.66, 3.24), (8, 32, 0.99, 3.41), (16, 32, 1.79, 3.15), (1, 64, 0.82, 1.36),
    (2, 64, 0.56, 3.26), (4, 64, 0.64, 3.20), (8, 64, 0.95, 3.50), (1, 128, 0.96, 1.81),
    (2, 128, 0.56, 2.68), (4, 128, 0.45, 2.90), (1, 256, 1.32, 2.73), (2, 256, 0.72, 3.21),
];

/// The kernel's name in ids, its name in tables, its topic, its entry point.
const KERNELS: [(&str, &str, &str, &str); 2] = [
    ("naive", "variant 1", "transpose-sweep", "naive"),
    (
        "mirrored",
        "variant 1 mirrored",
        "transpose-mirrored",
        "mirrored",
    ),
];

/// All shapes of both kernels for one matrix.
pub(super) fn cases(tag: &'static str, n: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    for (id, name, topic, kernel) in KERNELS {
        for (x, y, ..) in PUBLISHED {
            let (id, name) = (
                format!("{id}-{tag}-{x}x{y}"),
                format!("{name}, block {x} × {y}, {n}²"),
            );
            let case = variant(id, &name, topic, kernel, [x, y], [x, y], n);
            cases.push(case);
        }
    }
    cases
}
