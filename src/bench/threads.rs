//! How threads share the work, and the memories on the chip: divergence, uneven load, bank
//! conflicts, constant and texture caches and arithmetic per byte of "Transposing a matrix"; the
//! latencies of the kinds of memory of "GPGPU optimisation by the example of a sum".

use super::case::{Case, Ceiling};
use super::context::{BenchContext, Sizes, wrapping_sum};
use super::figure::Time;
use super::launch::per_call;
use super::table::Table;
use crate::gpu::driver::{self, Grid};
use crate::gpu::launch::papers::memory::ReadWords;
use crate::gpu::launch::papers::onchip::{
    Banks, Chase, ChaseConstant, ChaseRegisters, ChaseTexture, Constant, GlobalLanes,
};
use crate::gpu::launch::papers::threads::{Fma, Work};
use anyhow::{Result, ensure};
use rayon::prelude::*;

const READ: Ceiling = Ceiling::Measured("ceilings/read");

/// Words between the words of neighbouring lanes.
pub(super) const STRIDES: [u32; 9] = [1, 2, 3, 4, 8, 16, 31, 32, 33];
/// Multiply-adds for each word that is loaded, with the kernels' names.
pub(super) const TIMES: [(u32, &str); 9] = [
    (1, "fma_1"),
    (2, "fma_2"),
    (4, "fma_4"),
    (8, "fma_8"),
    (16, "fma_16"),
    (32, "fma_32"),
    (64, "fma_64"),
    (128, "fma_128"),
    (256, "fma_256"),
];

pub(super) fn cases(sizes: Sizes) -> Vec<Case> {
    let mut cases: Vec<Case> = [
        (
            "even",
            "all threads the same way, equally long",
            0,
            "divergence",
        ),
        ("diverge-warps", "two ways, by warps", 1, "divergence"),
        (
            "diverge-lanes",
            "two ways, inside each warp",
            2,
            "divergence",
        ),
        (
            "uneven-lanes",
            "unequally long inside each warp",
            3,
            "uneven",
        ),
        (
            "uneven-warps",
            "unequally long, by warps of a block",
            4,
            "uneven",
        ),
        ("uneven-blocks", "unequally long, by blocks", 5, "uneven"),
    ]
    .map(|(id, name, mode, topic)| {
        Case::gpu(Table::Threads, id, name, topic, 0, move |context| {
            worked(context, mode)
        })
    })
    .into();
    cases.extend([false, true].map(|apart| side_by_side(sizes, apart)));
    cases.extend(STRIDES.map(banks));
    cases.push(banks(0));
    cases.extend([
        table(
            "constant-same",
            "constant memory, a warp reads one word",
            "constant_same",
            false,
        ),
        table(
            "constant-lanes",
            "constant memory, each lane another",
            "constant_lanes",
            false,
        ),
        table(
            "global-lanes",
            "device memory in the L1, each lane another",
            "global_lanes",
            true,
        ),
    ]);
    cases.extend([
        chase("global", "device memory", "chase_l1", Ring::Input),
        chase("l2", "L2 cache", "chase_l2", Ring::Small(8192)),
        chase("l1", "L1 cache", "chase_l1", Ring::Small(4096)),
        chase("texture", "texture object", "", Ring::Texture),
        chase("shared", "shared memory", "chase_shared", Ring::Small(1024)),
        chase("constant", "constant memory", "", Ring::Constant),
        chase("local", "local memory", "chase_local", Ring::Small(1024)),
        registers(),
    ]);
    let float = TIMES.map(|(times, kernel)| arithmetic(sizes, times, kernel, "arithmetic"));
    cases.extend(float);
    cases.push(arithmetic(sizes, 256, "fma_double_256", "precision"));
    cases
}

/// Steps of each thread's arithmetic.
const ROUNDS: u32 = 1024;

/// What thread `t` of a grid computes: `work` in `threads.cu`, in the same words.
fn computed(t: u32, grid: Grid, mode: u32, rounds: u32) -> u32 {
    let (threads, blocks) = (grid.threads[0], grid.blocks[0]);
    let (lane, warp, warps) = (t % 32, t % threads / 32, threads / 32);
    let other = match mode {
        1 => warp % 2 == 1,
        2 => lane % 2 == 1,
        _ => false,
    };
    let mine = match mode {
        3 => 2 * rounds * lane / 31,
        4 => 2 * rounds * warp / (warps - 1),
        5 => 2 * rounds * (t / threads) / (blocks - 1),
        _ => rounds,
    };
    (0..mine).fold(t, |x, _| {
        if other {
            x.wrapping_mul(22_695_477) ^ 0x2545_f491
        } else {
            x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)
        }
    })
}

fn worked(context: &BenchContext, mode: u32) -> Result<Time> {
    let rounds = context.host.sizes.scaled(ROUNDS as usize) as u32;
    let grid = context.filled();
    let expected: Vec<u32> = (0..grid.blocks[0] * grid.threads[0])
        .into_par_iter()
        .map(|t| computed(t, grid, mode, rounds))
        .collect();
    let (expected, out) = (
        context.gpu.words(&expected)?,
        context.poisoned(4 * expected.len())?,
    );
    let kernel = context.kernel::<Work>()?;
    context.check_and_time(out, &expected, |out| {
        let arguments = Work {
            out: out.view_mut(),
            mode,
            rounds,
        };
        context.gpu.launch_grid(&kernel, grid, arguments)
    })
}

/// Kernels of one block each, in one stream or in as many.
fn side_by_side(sizes: Sizes, apart: bool) -> Case {
    const KERNELS: usize = 16;
    let bytes = sizes.scaled(1 << 20);
    let (id, name) = if apart {
        (
            "small-kernels-16-streams",
            "16 kernels of one block, 16 streams",
        )
    } else {
        (
            "small-kernels-1-stream",
            "16 kernels of one block, one stream",
        )
    };
    Case::gpu(
        Table::Threads,
        id,
        name,
        "side-by-side",
        (KERNELS * bytes) as u64,
        move |context| {
            let streams = (0..if apart { KERNELS } else { 1 })
                .map(|_| context.gpu.with_stream(false))
                .collect::<Result<Vec<_>>>()?;
            let kernel = context.kernel::<ReadWords>()?;
            let grid = Grid::new(1, 256);
            let mut sums = context.gpu.alloc(KERNELS * 4 * 256)?;
            let round = |sums: &mut driver::Buffer| -> Result<()> {
                let mut rest = sums.view_mut();
                for k in 0..KERNELS {
                    let (own, others) = rest.split_at(4 * 256)?;
                    rest = others;
                    let arguments = ReadWords {
                        data: (context.input.view()).from(k * bytes % context.input.len())?,
                        n: bytes as u64 / 4,
                        sums: own,
                    };
                    streams[k % streams.len()].launch_grid(&kernel, grid, arguments)?;
                }
                streams.iter().try_for_each(|stream| stream.wait())
            };
            let words = context.host.words();
            let part = |k: usize| wrapping_sum(&words[k * bytes / 4 % words.len()..][..bytes / 4]);
            let expected = (0..KERNELS).map(part).fold(0, u32::wrapping_add);
            // The streams do not wait for the check's own.
            context.check_sum(&mut sums, expected, |sums| {
                context.gpu.wait()?;
                round(sums)
            })?;
            context.host.time(|| round(&mut sums))
        },
    )
}

/// Turns of the kernels that read tables on the chip.
const TURNS: u32 = 512;

/// The sum modulo 2³² over a grid whose warps all do the same, from the sums of the lanes.
fn all_warps(grid: Grid, lane: impl Fn(u32) -> u32) -> u32 {
    let warps = grid.blocks[0] * grid.threads[0] / 32;
    (0..32)
        .map(lane)
        .fold(0, u32::wrapping_add)
        .wrapping_mul(warps)
}

fn banks(stride: u32) -> Case {
    let (id, name) = match stride {
        0 => (
            "broadcast".into(),
            "shared memory, all lanes the same word".into(),
        ),
        _ => (
            format!("banks-{stride}"),
            format!("shared memory, {stride} words from lane to lane"),
        ),
    };
    let work = move |context: &BenchContext| {
        let turns = context.host.sizes.scaled(TURNS as usize) as u32;
        let kernel = context.kernel::<Banks>()?;
        let grid = context.filled();
        let lane = |lane| {
            let first = lane * stride % 1024;
            let words = (first..first + 8).map(|i: u32| i.wrapping_mul(0x9E37_79B1));
            words.fold(0, u32::wrapping_add).wrapping_mul(turns)
        };
        let expected = all_warps(grid, lane);
        context.summed(grid, expected, |sums| {
            let arguments = Banks {
                stride,
                turns,
                sums,
            };
            context.gpu.launch_grid(&kernel, grid, arguments)
        })
    };
    Case::gpu(Table::Threads, id, name, "banks", 0, work)
}

/// Word `i` of the table in constant memory: `TABLE` in `onchip.cu`.
fn entry(i: u32) -> u32 {
    (77 * i + 97) % 256
}

fn table(id: &'static str, name: &'static str, kernel: &'static str, global: bool) -> Case {
    Case::gpu(Table::Threads, id, name, "constant", 0, move |context| {
        let turns = 4 * context.host.sizes.scaled(TURNS as usize) as u32;
        let entries: Vec<u32> = (0..256).map(entry).collect();
        let table = context.gpu.words(&entries)?;
        let step = if kernel == "constant_same" { 0 } else { 8 };
        let lane = |lane| {
            let words = (0..turns).map(|turn| entry((turn + lane * step) % 256));
            words.fold(0, u32::wrapping_add)
        };
        let grid = context.filled();
        let expected = all_warps(grid, lane);
        if global {
            let kernel = context.kernel::<GlobalLanes>()?;
            context.summed(grid, expected, |sums| {
                let arguments = GlobalLanes {
                    table: table.view(),
                    turns,
                    sums,
                };
                context.gpu.launch_grid(&kernel, grid, arguments)
            })
        } else {
            let kernel = context.kernel_named::<Constant>(kernel)?;
            context.summed(grid, expected, |sums| {
                let arguments = Constant { turns, sums };
                context.gpu.launch_grid(&kernel, grid, arguments)
            })
        }
    })
}

/// What one thread walks through, word after word.
#[derive(Clone, Copy)]
enum Ring {
    /// As many words as the main input.
    Input,
    /// So many words.
    Small(usize),
    /// The table in constant memory.
    Constant,
    /// A texture object of 64 × 64 words.
    Texture,
}

/// The word after word `at` in a ring of `n` words, a power of two: a full cycle, since the factor
/// minus one is a multiple of four and the summand is odd.
fn next(at: u32, n: usize) -> u32 {
    at.wrapping_mul(0x9E37_79B1).wrapping_add(0x1234_5677) & (n as u32 - 1)
}

/// Goes from the word at the position.
type Walk<'w> = Box<dyn Fn(&mut driver::Buffer) -> Result<()> + 'w>;

/// One thread goes from word to word: a step takes a load's latency.
fn chase(id: &str, name: &str, kernel: &'static str, ring: Ring) -> Case {
    let (id, name) = (format!("latency-{id}"), format!("one load, {name}"));
    Case::gpu(Table::Threads, id, name, "latency", 0, move |context| {
        let (n, steps) = match ring {
            Ring::Input => (context.input.len() / 4, 1 << 12),
            // A thread that fills the ring alone takes a while.
            Ring::Small(n) if kernel == "chase_local" => (n, 1 << 16),
            Ring::Small(n) => (n, 1 << 14),
            Ring::Constant => (256, 1 << 14),
            Ring::Texture => (64 * 64, 1 << 14),
        };
        let steps = context.host.sizes.scaled(steps);
        let words: Vec<u32> = (0..n as u32)
            .into_par_iter()
            .map(|at| next(at, n))
            .collect();
        let words = context.gpu.words(&words[..])?;
        let step = |at| match ring {
            Ring::Constant => entry(at),
            _ => next(at, n),
        };
        let expected = (0..steps).fold(0, |at, _| step(at));
        let mut position = context.gpu.words(&[0u32])?;
        // The threads of a block fill its shared memory; one goes through it.
        let threads = if kernel == "chase_shared" { 256 } else { 1 };
        let one = Grid::new(1, threads);
        let walk: Walk = match ring {
            Ring::Constant => {
                let kernel = context.kernel::<ChaseConstant>()?;
                Box::new(move |position| {
                    let arguments = ChaseConstant {
                        steps: steps as u32,
                        position: position.view_mut(),
                    };
                    // SAFETY: the position, 0 at first, is always one of the ring of 256 words.
                    unsafe { context.gpu.launch_trusting(&kernel, one, arguments) }
                })
            }
            Ring::Texture => {
                let kernel = context.kernel::<ChaseTexture>()?;
                let texture = context.gpu.texture(&words, 64, 64)?;
                Box::new(move |position| {
                    let arguments = ChaseTexture {
                        texture: texture.object(),
                        steps: steps as u32,
                        position: position.view_mut(),
                    };
                    // SAFETY: every word of the texture is the number of one of its words, and so is the position, 0 at first.
                    unsafe { context.gpu.launch_trusting(&kernel, one, arguments) }
                })
            }
            Ring::Input | Ring::Small(_) => {
                let kernel = context.kernel_named::<Chase>(kernel)?;
                let next = words.view();
                Box::new(move |position| {
                    let arguments = Chase {
                        next,
                        steps: steps as u32,
                        position: position.view_mut(),
                    };
                    // SAFETY: every word of the ring is the number of one of its words, and so is the position, 0 at first;
                    // the rings of `chase_shared` and `chase_local` have 1024 words.
                    unsafe { context.gpu.launch_trusting(&kernel, one, arguments) }
                })
            }
        };
        walk(&mut position)?;
        context.spoilt(&mut position)?;
        let found = context.gpu.read_words::<u32>(&position)?[0];
        ensure!(
            found == expected,
            "arrived at {found}, and not at {expected}"
        );
        let time = context.time(|| walk(&mut position))?;
        Ok(per_call(time, steps as f64))
    })
}

/// One thread computes from register to register: a step takes the latency of a multiply-add, its operands included.
fn registers() -> Case {
    let name = "one multiply-add, registers";
    Case::gpu(
        Table::Threads,
        "latency-registers",
        name,
        "latency",
        0,
        |context| {
            const FACTOR: u32 = 0x9E37_79B1;
            let steps = context.host.sizes.scaled(1 << 14) as u32;
            let kernel = context.kernel::<ChaseRegisters>()?;
            let mut position = context.gpu.words(&[0u32])?;
            let walk = |position: &mut driver::Buffer| {
                let arguments = ChaseRegisters {
                    factor: FACTOR,
                    steps,
                    position: position.view_mut(),
                };
                context.gpu.launch_grid(&kernel, Grid::new(1, 1), arguments)
            };
            let step = |at: u32, _| at.wrapping_mul(FACTOR).wrapping_add(1);
            let expected = (0..steps).fold(0, step);
            walk(&mut position)?;
            context.spoilt(&mut position)?;
            let found = context.gpu.read_words::<u32>(&position)?[0];
            ensure!(found == expected, "computed {found}, and not {expected}");
            let time = context.time(|| walk(&mut position))?;
            Ok(per_call(time, f64::from(steps)))
        },
    )
}

/// Reads the main input, and computes for each word so many multiply-adds.
fn arithmetic(sizes: Sizes, times: u32, kernel: &'static str, topic: &'static str) -> Case {
    let name = match (times, topic) {
        (1, _) => "read, 1 multiply-add a word".into(),
        (_, "precision") => format!("read, {times} multiply-adds a word, in double precision"),
        _ => format!("read, {times} multiply-adds a word"),
    };
    let bytes = sizes.bytes as u64;
    Case::gpu(
        Table::Threads,
        kernel.replace('_', "-"),
        name,
        topic,
        bytes,
        move |context| {
            let words = context.host.words();
            let low = words.par_iter().map(|word| word & 0xffff);
            let expected = low
                .reduce(|| 0, u32::wrapping_add)
                .wrapping_add((words.len() as u32).wrapping_mul(times));
            let kernel = context.kernel_named::<Fma>(kernel)?;
            let grid = context.filled();
            context.summed(grid, expected, |sums| {
                let arguments = Fma {
                    data: context.input.view(),
                    n: context.input.len() as u64 / 16,
                    a: 1.0,
                    b: 1.0,
                    sums,
                };
                context.gpu.launch_grid(&kernel, grid, arguments)
            })
        },
    )
    .under(READ)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_go_through_all_their_words() {
        for n in [1024, 4096, 8192] {
            let mut at = 0;
            let length = (1..=n).find(|_| {
                at = next(at, n);
                at == 0
            });
            assert_eq!(length, Some(n));
        }
        let mut at = 0;
        let length = (1..=256).find(|_| {
            at = entry(at);
            at == 0
        });
        assert_eq!(length, Some(256));
    }
}
