//! The transposition of "Transposing a matrix" (Kalgin and Baldin): the sequential host version,
//! variant 1 for all block shapes, variants 2 and 3, and the program's own kernel. GB/s of bytes
//! read plus written. The paper's matrix fits into today's level-2 caches; the large matrix does
//! not.

use super::case::{Case, Ceiling, Measured};
use super::context::{BenchContext, Host, Sizes, transposed};
use super::cpu::{cpu_passes, image};
use super::figure::Figure;
use super::table::Table;
use crate::device::cuda::{self, Arg, Grid};
use crate::image::Samples;
use crate::ops::symmetry::{self, Symmetry};
use anyhow::{Context, Result, bail, ensure};
use std::rc::Rc;

const COPY: Ceiling = Ceiling::Measured("ceilings/copy");
/// Bytes of the paper's task: 1024² floats read and written.
const MOVED: u64 = 2 * 4 * 1024 * 1024;

/// Published times of variant 1 on a Quadro by block shape: (threads along x, along y, ms).
pub(super) const QUADRO: [(u32, u32, f64); 32] = [
    (64, 1, 2.75),
    (128, 1, 2.73),
    (256, 1, 2.60),
    (32, 2, 2.78),
    (64, 2, 2.75),
    (128, 2, 2.73),
    (256, 2, 2.60),
    (16, 4, 1.94),
    (32, 4, 2.76),
    (64, 4, 2.75),
    (128, 4, 2.75),
    (8, 8, 0.99),
    (16, 8, 1.90),
    (32, 8, 2.73),
    (64, 8, 2.75),
    (4, 16, 0.60),
    (8, 16, 1.02),
    (16, 16, 1.87),
    (32, 16, 2.70),
    (2, 32, 0.51),
    (4, 32, 0.66),
    (8, 32, 0.99),
    (16, 32, 1.79),
    (1, 64, 0.82),
    (2, 64, 0.56),
    (4, 64, 0.64),
    (8, 64, 0.95),
    (1, 128, 0.96),
    (2, 128, 0.56),
    (4, 128, 0.45),
    (1, 256, 1.32),
    (2, 256, 0.72),
];

/// Published times of variant 1 on a GeForce 8800.
pub(super) const GEFORCE: [(u32, u32, f64); 32] = [
    (64, 1, 3.20),
    (128, 1, 3.20),
    (256, 1, 3.13),
    (32, 2, 3.15),
    (64, 2, 3.18),
    (128, 2, 3.18),
    (256, 2, 3.13),
    (16, 4, 3.20),
    (32, 4, 3.18),
    (64, 4, 3.20),
    (128, 4, 3.22),
    (8, 8, 3.55),
    (16, 8, 3.18),
    (32, 8, 3.20),
    (64, 8, 3.26),
    (4, 16, 3.25),
    (8, 16, 3.50),
    (16, 16, 3.16),
    (32, 16, 3.28),
    (2, 32, 3.25),
    (4, 32, 3.24),
    (8, 32, 3.41),
    (16, 32, 3.15),
    (1, 64, 1.36),
    (2, 64, 3.26),
    (4, 64, 3.20),
    (8, 64, 3.50),
    (1, 128, 1.81),
    (2, 128, 2.68),
    (4, 128, 2.90),
    (1, 256, 2.73),
    (2, 256, 3.21),
];

/// GB/s of the paper's task for a time in milliseconds.
pub(super) fn rate_of_ms(ms: f64) -> f64 {
    MOVED as f64 / ms / 1e6
}

/// A variant: id, name, topic, kernel, block, published time on the Quadro in ms.
type Variant = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    (u32, u32),
    Option<f64>,
);

const VARIANTS: [Variant; 5] = [
    (
        "naive-paper",
        "variant 1, 4 × 128 (the Quadro's best)",
        "transpose-naive",
        "naive",
        (4, 128),
        Some(0.45),
    ),
    (
        "tile-16",
        "variant 2, tile 16 × 16",
        "transpose-tile",
        "tile_16",
        (16, 16),
        Some(0.28),
    ),
    (
        "tile-32",
        "variant 2, tile 32 × 32",
        "transpose-tile",
        "tile_32",
        (32, 32),
        None,
    ),
    (
        "padded-16",
        "variant 3, tile 16 × 17",
        "transpose-padded",
        "padded_16",
        (16, 16),
        Some(0.26),
    ),
    (
        "padded-32",
        "variant 3, tile 32 × 33",
        "transpose-padded",
        "padded_32",
        (32, 32),
        None,
    ),
];

pub(super) fn cases(sizes: Sizes) -> Vec<Case> {
    let mut cases = vec![
        on_host(sizes.side, "host-paper").published(Figure::Millis(9.0, MOVED), "Core i7"),
        on_host(sizes.large_side(), "host"),
    ];
    for (id, name, topic, kernel, block, published) in VARIANTS {
        for (n, id) in [
            (
                sizes.side,
                format!("{}-paper", id.trim_end_matches("-paper")),
            ),
            (sizes.large_side(), id.trim_end_matches("-paper").into()),
        ] {
            // For the large matrix, variant 1 is measured by the sweep.
            if id == "naive" {
                continue;
            }
            let case = variant(id, &format!("{name}, {n}²"), topic, kernel, block, n);
            cases.push(match published {
                Some(ms) => case.published(Figure::Millis(ms, MOVED), "Quadro"),
                None => case,
            });
        }
    }
    for (x, y, ms) in QUADRO {
        let n = sizes.large_side();
        let (id, name) = (
            format!("naive-{x}x{y}"),
            format!("variant 1, block {x} × {y}, {n}²"),
        );
        cases.push(
            variant(id, &name, "transpose-sweep", "naive", (x, y), n)
                .published(Figure::Millis(ms, MOVED), "Quadro"),
        );
    }
    cases.extend(production(sizes));
    cases
}

fn variant(
    id: String,
    name: &str,
    topic: &'static str,
    kernel: &'static str,
    (x, y): (u32, u32),
    n: usize,
) -> Case {
    let bytes = 8 * (n * n) as u64;
    Case::gpu(Table::Transpose, id, name, topic, bytes, move |context| {
        let (kernel, side) = (context.kernel("papers/transpose", kernel)?, n as u32);
        let (expected, out) = (turned(context, n)?, context.poisoned(4 * n * n)?);
        let args = [
            Arg::Buffer(&context.input),
            Arg::Buffer(&out),
            Arg::U32(side),
        ];
        let grid = Grid {
            blocks: [side.div_ceil(x), side.div_ceil(y)],
            threads: [x, y],
        };
        // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
        let launch = || unsafe { context.gpu.launch_grid(&kernel, grid, &args) };
        context.check(&out, &expected, launch)?;
        Ok(context.time(launch)?.into())
    })
    .under(COPY)
}

/// The first n² words of the input, transposed.
fn turned(context: &BenchContext, n: usize) -> Result<Rc<cuda::Buffer>> {
    let words = &context.host.words()[..n * n];
    context.kept(&format!("turned {n}"), || transposed(words, n))
}

fn on_host(n: usize, id: &str) -> Case {
    let bytes = 8 * (n * n) as u64;
    let name = format!("host, one core, double loop, {n}²");
    Case::host(
        Table::Transpose,
        id,
        name,
        "transpose-host",
        bytes,
        move |host| {
            let a = &host.words()[..n * n];
            let mut b = vec![0xa5a5_a5a5; n * n];
            let time = host.time(|| {
                for i in 0..n {
                    for j in 0..n {
                        b[j * n + i] = a[i * n + j];
                    }
                }
                Ok(())
            })?;
            ensure!(b == transposed(a, n), "other elements");
            Ok(time.into())
        },
    )
}

fn production(sizes: Sizes) -> Vec<Case> {
    let n = sizes.large_side();
    let bytes = 2 * sizes.bytes as u64;
    vec![
        Case::gpu(
            Table::Transpose,
            "production-paper",
            format!("gpuimg: 4-byte pixels, {}²", sizes.side),
            "production-transpose",
            8 * (sizes.side * sizes.side) as u64,
            move |context| own(context, sizes.side, sizes.side, 4),
        )
        .under(COPY),
        Case::gpu(
            Table::Transpose,
            "production",
            format!("gpuimg: 4-byte pixels, {n}²"),
            "production-transpose",
            bytes,
            move |context| own(context, n, n, 4),
        )
        .under(COPY),
        Case::gpu(
            Table::Transpose,
            "production-u16",
            format!("gpuimg: 2-byte pixels, {n} × {}", 2 * n),
            "production-transpose",
            bytes,
            move |context| own(context, n, 2 * n, 2),
        )
        .under(COPY),
        Case::host(
            Table::Transpose,
            "cpu",
            "gpuimg on the CPU: transpose, 2-byte pixels",
            "cpu",
            bytes,
            on_cpu,
        )
        .under(Ceiling::Measured("ceilings/host-copy")),
    ]
}

/// Times the program's kernel on an image of the first width × height pixels.
fn own(context: &BenchContext, width: usize, height: usize, pixel: usize) -> Result<Measured> {
    let len = width * height * pixel;
    let expected = match pixel {
        4 => turned(context, width)?,
        _ => context.kept("turned samples", || {
            transposed(&context.host.noise[..len / 2], width)
        })?,
    };
    let out = context.poisoned(len)?;
    let kernel = context
        .gpu
        .kernel("transpose", "transpose", &format!("b{pixel}"))?;
    let args = [
        Arg::Buffer(&context.input),
        Arg::Buffer(&out),
        Arg::U64(width as u64),
        Arg::U64(height as u64),
        Arg::U32(0),
        Arg::U32(0),
    ];
    let grid = symmetry::grid(width, height, pixel, true);
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    let launch = || unsafe { context.gpu.launch(&kernel, grid, &args) };
    context.check(&out, &expected, launch)?;
    Ok(context.time(launch)?.into())
}

fn on_cpu(host: &Host) -> Result<Measured> {
    let (time, out) = cpu_passes(host, &Symmetry::Transpose)?;
    let out = out.context("no image")?;
    let Samples::U16(samples) = out.samples() else {
        bail!("another depth");
    };
    let width = image(host).shape().width;
    ensure!(
        samples[..] == transposed(&host.noise[..], width),
        "other samples"
    );
    Ok(time.into())
}
