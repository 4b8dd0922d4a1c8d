//! The transposition of "Transposing a matrix" (Kalgin and Baldin): the sequential host version,
//! variant 1 for all block shapes (`shapes`), variants 2 and 3, two ways of today, and the program's own kernel. GB/s of
//! bytes read plus written. The paper's matrix fits into today's level-2 caches; the large matrix
//! does not.

use super::case::{Case, Ceiling, Needs};
use super::context::{BenchContext, Host, Sizes, transposed};
use super::cpu::{cpu_passes, image};
use super::figure::{Figure, Time};
use super::table::Table;
use crate::gpu::driver::{self, Grid};
use crate::gpu::launch::papers::transpose::{Tma32, Transposition};
use crate::gpu::launch::transpose::Transpose;
use crate::image::Samples;
use crate::ops::symmetry::{self, Symmetry};
use anyhow::{Context, Result, bail, ensure};
use std::rc::Rc;

pub(super) mod shapes;

const COPY: Ceiling = Ceiling::Measured("ceilings/copy");
/// Bytes of the paper's task: 1024² floats read and written.
const MOVED: u64 = 2 * 4 * 1024 * 1024;

/// The paper's size and one that is larger than today's caches: the name in ids, and the side.
fn matrices(sizes: Sizes) -> [(&'static str, usize); 2] {
    [("1024", sizes.side), ("8192", sizes.large_side())]
}

/// Variants 2 and 3: id, name, topic, kernel, side of the square, published ms on the Quadro and on
/// the GeForce 8800. Their GPUs allowed 512 threads per block, so that theirs are squares of 16.
type Variant = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    u32,
    Option<(f64, f64)>,
);

#[rustfmt::skip]
const VARIANTS: [Variant; 4] = [
    ("tile-16", "variant 2, tile 16 × 16", "transpose-tile", "tile_16", 16, Some((0.28, 0.44))),
    ("tile-32", "variant 2, tile 32 × 32", "transpose-tile", "tile_32", 32, None),
    ("padded-16", "variant 3, tile 16 × 17", "transpose-padded", "padded_16", 16, Some((0.26, 0.43))),
    ("padded-32", "variant 3, tile 32 × 33", "transpose-padded", "padded_32", 32, None),
];

pub(super) fn cases(sizes: Sizes) -> Vec<Case> {
    let mut cases =
        vec![on_host(sizes.side, "host-1024").published(Figure::Millis(9.0, MOVED), "Core i7")];
    for (tag, n) in matrices(sizes) {
        for (id, name, topic, kernel, side, published) in VARIANTS {
            let (id, name) = (format!("{id}-{tag}"), format!("{name}, {n}²"));
            let square = [side, side];
            let case = variant(id, &name, topic, kernel, square, square, n);
            cases.push(match published {
                // The paper's times are of 1024².
                Some((quadro, geforce)) if tag == "1024" => case
                    .published(Figure::Millis(quadro, MOVED), "Quadro")
                    .published(Figure::Millis(geforce, MOVED), "GeForce 8800"),
                _ => case,
            });
        }
    }
    for (tag, n) in matrices(sizes) {
        let (id, name) = (
            format!("async-32-{tag}"),
            format!("tile 32 × 33, copied by cp.async, {n}²"),
        );
        let topic = "transpose-async";
        cases.push(variant(id, &name, topic, "async_32", [128, 32], [32, 8], n));
    }
    for (tag, n) in matrices(sizes) {
        cases.push(by_tensor_map(format!("tma-32-{tag}"), n));
    }
    for (tag, n) in matrices(sizes) {
        cases.extend(shapes::cases(tag, n));
    }
    cases.extend(production(sizes));
    cases
}

/// A kernel whose blocks of `threads` move x × y elements each.
fn variant(
    id: String,
    name: &str,
    topic: &'static str,
    kernel: &'static str,
    [x, y]: [u32; 2],
    threads: [u32; 2],
    n: usize,
) -> Case {
    let bytes = 8 * (n * n) as u64;
    Case::gpu(Table::Transpose, id, name, topic, bytes, move |context| {
        let (kernel, side) = (context.kernel_named::<Transposition>(kernel)?, n as u32);
        let (expected, out) = (turned(context, n)?, context.poisoned(4 * n * n)?);
        let grid = Grid {
            blocks: [side.div_ceil(x), side.div_ceil(y)],
            threads,
        };
        context.check_and_time(out, &expected, |out| {
            let arguments = Transposition {
                a: context.input.view(),
                b: out.view_mut(),
                n: side,
            };
            context.gpu.launch_grid(&kernel, grid, arguments)
        })
    })
    .under(COPY)
}

/// Squares that the copy engine moves and swizzles.
fn by_tensor_map(id: String, n: usize) -> Case {
    let name = format!("tile 32 × 32, copied and swizzled by a tensor map, {n}²");
    let (topic, bytes) = ("transpose-tensor", 8 * (n * n) as u64);
    Case::gpu(Table::Transpose, id, name, topic, bytes, move |context| {
        let (kernel, side) = (context.kernel::<Tma32>()?, n as u32);
        let (expected, out) = (turned(context, n)?, context.poisoned(4 * n * n)?);
        let grid = Grid {
            blocks: [side.div_ceil(128), side.div_ceil(32)],
            threads: [32, 8],
        };
        let a = context.gpu.tensor_map(&context.input, n)?;
        context.check_and_time(out, &expected, |out| {
            let arguments = Tma32 {
                a,
                b: out.view_mut(),
                n: side,
            };
            context.gpu.launch_grid(&kernel, grid, arguments)
        })
    })
    .under(COPY)
    .needing(Needs::Capability(9, 0))
}

/// The first n² words of the input, transposed.
fn turned(context: &BenchContext, n: usize) -> Result<Rc<driver::Buffer>> {
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
            Ok(time)
        },
    )
}

fn production(sizes: Sizes) -> Vec<Case> {
    let n = sizes.large_side();
    let bytes = 2 * sizes.bytes as u64;
    vec![
        Case::gpu(
            Table::Transpose,
            "production-1024",
            format!("gpuimg: 4-byte pixels, {}²", sizes.side),
            "production-transpose",
            8 * (sizes.side * sizes.side) as u64,
            move |context| own(context, sizes.side, sizes.side, 4),
        )
        .under(COPY),
        Case::gpu(
            Table::Transpose,
            "production-8192",
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
fn own(context: &BenchContext, width: usize, height: usize, pixel: usize) -> Result<Time> {
    let len = width * height * pixel;
    let expected = match pixel {
        4 => turned(context, width)?,
        _ => context.kept("turned samples", || {
            transposed(&context.host.noise[..len / 2], width)
        })?,
    };
    let out = context.poisoned(len)?;
    let kernel = context.gpu.kernel::<Transpose>(&format!("b{pixel}"))?;
    let grid = symmetry::grid(width, height, pixel, true);
    context.check_and_time(out, &expected, |out| {
        let arguments = Transpose {
            src: context.input.view(),
            dst: out.view_mut(),
            width: width as u64,
            height: height as u64,
            reverse_x: 0,
            reverse_y: 0,
        };
        context.gpu.launch(&kernel, grid, arguments)
    })
}

fn on_cpu(host: &Host) -> Result<Time> {
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
    Ok(time)
}
