//! Double and triple indexing of "CUDA: performance aspects of typical tasks": data[index[j] + i],
//! where j is the element and i the number of its piece, so that an index is loaded for every
//! element. GB/s of the data, without the indices.

use super::{GPU, READ};
use crate::bench::case::Case;
use crate::bench::context::BenchContext;
use crate::bench::figure::Time;
use crate::bench::pieces::{PIECE, Threads, pieces};
use crate::bench::table::Table;
use crate::gpu::launch::papers::memory::{DoubleIndex, ReadScattered, TripleIndex};
use anyhow::Result;
use rayon::prelude::*;

/// Where the elements lie.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Places {
    /// Element after element.
    InOrder,
    /// Scattered, but inside a piece.
    InPiece,
    /// Scattered over the whole image.
    Anywhere,
}

/// An odd number: multiplied by it, the numbers below a power of two are permuted, and neighbours
/// come far apart.
const FACTOR: u32 = 0x9E37_79B1;

impl Places {
    /// The place of element `j` of `n`, a power of two.
    fn index(self, j: u32, n: u32) -> u32 {
        let piece = PIECE as u32;
        match self {
            Places::InOrder => j,
            Places::InPiece => j / piece * piece + (j.wrapping_mul(FACTOR) & (piece - 1)),
            Places::Anywhere => j.wrapping_mul(FACTOR) & (n - 1),
        }
    }

    /// The element whose place anywhere is `k`.
    fn element(k: u32, n: u32) -> u32 {
        // Newton's iteration for the inverse modulo 2³²: each step doubles the right bits, from 3.
        let inverse = (0..4).fold(FACTOR, |x, _| {
            x.wrapping_mul(2u32.wrapping_sub(FACTOR.wrapping_mul(x)))
        });
        k.wrapping_mul(inverse) & (n - 1)
    }
}

pub(super) fn cases(bytes: u64, threads: Threads) -> Vec<Case> {
    const BEST: &str = "at best 25 % slower than direct";
    const DOUBLE: &str = "10–30 GB/s by the indices";
    const ARBITRARY: &str = "10–30 GB/s by the indices, arbitrary ones included";
    const TRIPLE: &str = "40–60 % slower than direct";
    let rows = [
        ("double", "double index, in order", 2, Places::InOrder, BEST),
        (
            "double-in-piece",
            "double index, scattered in 8 KiB",
            2,
            Places::InPiece,
            DOUBLE,
        ),
        (
            "double-scattered",
            "double index, scattered",
            2,
            Places::Anywhere,
            ARBITRARY,
        ),
        (
            "triple",
            "triple index, in order",
            3,
            Places::InOrder,
            TRIPLE,
        ),
        (
            "triple-scattered",
            "triple index, scattered",
            3,
            Places::Anywhere,
            TRIPLE,
        ),
    ];
    let mut cases = vec![scattered(bytes, threads)];
    let case = |(id, name, levels, order, words): (&str, &str, u64, Places, &'static str)| {
        let topic = match levels {
            2 => "double-index",
            _ => "triple-index",
        };
        Case::gpu(
            Table::Memory,
            threads.id(id),
            threads.name(name),
            topic,
            bytes,
            move |context| indexed(context, threads, levels == 3, order),
        )
        // An index of 4 bytes for every element of 2.
        .touching(bytes + 2 * bytes * (levels - 1))
        .stated(words, GPU)
        .under(READ)
    };
    cases.extend(rows.into_iter().map(case));
    cases
}

/// Every element read once, in an order that is computed instead of loaded.
fn scattered(bytes: u64, threads: Threads) -> Case {
    Case::gpu(
        Table::Memory,
        threads.id("read-scattered"),
        threads.name("read, scattered, no index"),
        "double-index",
        bytes,
        move |context| {
            let kernel = context.kernel::<ReadScattered>()?;
            let grid = threads.grid(context);
            let [pieces, piece] = pieces(context, PIECE);
            context.summed(grid, context.host.sample_sum, |sums| {
                let arguments = ReadScattered {
                    data: context.input.view(),
                    pieces,
                    piece,
                    sums,
                    factor: FACTOR,
                };
                context.gpu.launch_grid(&kernel, grid, arguments)
            })
        },
    )
    .stated("up to twice as slow", GPU)
    .under(READ)
}

fn indexed(context: &BenchContext, threads: Threads, triple: bool, order: Places) -> Result<Time> {
    let n = (context.input.len() / 2) as u32;
    // What is added to the number of the piece.
    let offset = |j: u32| order.index(j, n).wrapping_sub(j / PIECE as u32);
    let scattered = triple && order == Places::Anywhere;
    // With three levels, the index of element j is itself at the element's place.
    let element = |k: u32| if scattered { Places::element(k, n) } else { k };
    let index = context.kept(&format!("index {order:?} {scattered}"), || {
        (0..n)
            .into_par_iter()
            .map(|k| offset(element(k)))
            .collect::<Vec<u32>>()
    })?;
    let grid = threads.grid(context);
    let [pieces, piece] = pieces(context, PIECE);
    let sum = context.host.sample_sum;
    if triple {
        let order = context.kept(&format!("order {order:?}"), || {
            (0..n)
                .into_par_iter()
                .map(|j| order.index(j, n))
                .collect::<Vec<u32>>()
        })?;
        let kernel = context.kernel::<TripleIndex>()?;
        context.summed(grid, sum, |sums| {
            let arguments = TripleIndex {
                data: context.input.view(),
                pieces,
                piece,
                sums,
                index: index.view(),
                order: order.view(),
            };
            // SAFETY: every order is the number of an index, and the sum of an index and the number of a piece is the place of
            // an element.
            unsafe { context.gpu.launch_trusting(&kernel, grid, arguments) }
        })
    } else {
        let kernel = context.kernel::<DoubleIndex>()?;
        context.summed(grid, sum, |sums| {
            let arguments = DoubleIndex {
                data: context.input.view(),
                pieces,
                piece,
                sums,
                index: index.view(),
            };
            // SAFETY: the sum of an index and the number of a piece is the place of an element.
            unsafe { context.gpu.launch_trusting(&kernel, grid, arguments) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_permutations_and_elements_are_found_again() {
        let n = 1 << 14;
        for order in [Places::InOrder, Places::InPiece, Places::Anywhere] {
            let mut places: Vec<u32> = (0..n).map(|j| order.index(j, n)).collect();
            places.sort_unstable();
            assert!(places.into_iter().eq(0..n), "{order:?}");
        }
        let element = |j| Places::element(Places::Anywhere.index(j, n), n);
        assert!((0..n).all(|j| element(j) == j));
    }
}
