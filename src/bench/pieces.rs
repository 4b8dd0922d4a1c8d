//! How the kernels of "CUDA: performance aspects of typical tasks" are launched: the input is cut
//! into pieces, which the threads take in turns.

use super::context::BenchContext;
use super::launch::PAPER;
use crate::gpu::driver::Grid;

/// Elements of a piece in the loop of "CUDA: performance aspects of typical tasks".
pub(super) const PIECE: usize = 4096;

/// The kernels of "CUDA: performance aspects of typical tasks" run as the paper launched them, and
/// again with a grid that fills today's GPUs.
#[derive(Clone, Copy)]
pub(super) enum Threads {
    Paper,
    Filled,
}

impl Threads {
    pub(super) const BOTH: [Threads; 2] = [Threads::Paper, Threads::Filled];

    pub(super) fn grid(self, context: &BenchContext) -> Grid {
        match self {
            Threads::Paper => PAPER,
            Threads::Filled => context.filled(),
        }
    }

    pub(super) fn id(self, id: &str) -> String {
        match self {
            Threads::Paper => id.into(),
            Threads::Filled => format!("{id}-filled"),
        }
    }

    pub(super) fn name(self, name: &str) -> String {
        match self {
            Threads::Paper => format!("{name}, 160 × 96"),
            Threads::Filled => format!("{name}, GPU filled"),
        }
    }
}

/// The number of pieces and their length, as arguments of these kernels.
pub(super) fn pieces(context: &BenchContext, piece: usize) -> [u32; 2] {
    let count = context.input.len() / 2 / piece;
    [count as u32, piece as u32]
}
