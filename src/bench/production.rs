//! The program's own kernels at several image sizes, each compared with the GPU's copy or read of
//! about as many bytes: GB/s read plus written, or read.

mod frames;
mod preview;
mod wide;

use super::case::{Case, Ceiling, Measured};
use super::ceilings::copied;
use super::context::{BenchContext, Sizes};
use super::figure::Time;
use super::table::Table;
use super::{minmax, normalize, reduce};
use crate::engine::executor;
use crate::gpu::driver::{self, Grid};
use crate::gpu::launch::papers::launch::Empty;
use crate::gpu::launch::transpose::Transpose;
use crate::image::{Depth, Image, Samples, Shape};
use crate::ops::OpResult;
use crate::ops::symmetry::{self, Symmetry};
use crate::timing::Timeline;
use anyhow::{Result, bail};
use std::rc::Rc;

const TOPIC: &str = "production-sizes";

/// Sizes of images on which copy and read are measured, a row each for every size of a row below:
/// KiB, and the ids of the two rows.
#[rustfmt::skip]
const KIB: [(usize, &str, &str); 17] = [
    (128, "production/copy-128K", "production/read-128K"),
    (2 << 10, "production/copy-2M", "production/read-2M"),
    (8 << 10, "production/copy-8M", "production/read-8M"),
    (12 << 10, "production/copy-12M", "production/read-12M"),
    (16 << 10, "production/copy-16M", "production/read-16M"),
    (20 << 10, "production/copy-20M", "production/read-20M"),
    (32 << 10, "production/copy-32M", "production/read-32M"),
    (40 << 10, "production/copy-40M", "production/read-40M"),
    (64 << 10, "production/copy-64M", "production/read-64M"),
    (96 << 10, "production/copy-96M", "production/read-96M"),
    (128 << 10, "production/copy-128M", "production/read-128M"),
    (192 << 10, "production/copy-192M", "production/read-192M"),
    (256 << 10, "production/copy-256M", "production/read-256M"),
    (320 << 10, "production/copy-320M", "production/read-320M"),
    (384 << 10, "production/copy-384M", "production/read-384M"),
    (512 << 10, "production/copy-512M", "production/read-512M"),
    (1024 << 10, "production/copy-1024M", "production/read-1024M"),
];

/// The ceilings measured on as many bytes: of 8191² the nearest size, of 8192².
fn ceilings(bytes: usize) -> (Ceiling, Ceiling) {
    let distance = |&&(kib, ..): &&(usize, &str, &str)| (kib << 10).abs_diff(bytes);
    let (_, copy, read) = KIB.iter().min_by_key(distance).unwrap_or(&KIB[0]);
    (Ceiling::Measured(copy), Ceiling::Measured(read))
}

pub(super) fn cases(sizes: Sizes) -> Vec<Case> {
    let mut cases = vec![empty()];
    for (kib, copy, read) in KIB {
        let len = sizes.scaled(kib << 10);
        let id = |row: &'static str| row.trim_start_matches("production/");
        let name = |what| match kib {
            ..1024 => format!("GPU: {what}, {kib} KiB"),
            _ => format!("GPU: {what}, {} MiB", kib >> 10),
        };
        cases.push(gpu(id(copy), name("copy"), 2 * len, move |context| {
            copied(context, &*large(context, sizes)?, len)
        }));
        cases.push(gpu(id(read), name("read"), len, move |context| {
            let sum = context.host.repeated_sum(len);
            super::ceilings::read(context, &*large(context, sizes)?, len, sum)
        }));
    }
    for (pixels, name) in [
        (1 << 16, "256²"),
        (1 << 20, "1024²"),
        (4 << 20, "2048², 4 Mpx"),
        (16 << 20, "16 Mpx"),
        (64 << 20, "64 Mpx"),
        (512 << 20, "512 Mpx"),
    ] {
        let (len, (copy, read)) = (sizes.scaled(2 * pixels), ceilings(2 * pixels));
        let id = |what| format!("{what}-{}k", pixels >> 10);
        let scale = |both| {
            move |context: &BenchContext| {
                normalize::own(context, &*large(context, sizes)?, len, both)
            }
        };
        let name = |what| format!("{what}, {name}");
        cases.extend([
            gpu(id("minmax"), name("minmax"), len, move |context| {
                minmax::own(context, &*large(context, sizes)?, len)
            })
            .under(read),
            gpu(id("scale"), name("scale"), 2 * len, scale(false)).under(copy),
            gpu(id("normalize"), name("normalize"), 2 * len, scale(true)).under(copy),
            gpu(
                id("fused"),
                name("normalize in one launch"),
                2 * len,
                move |context| normalize::fused(context, &*large(context, sizes)?, len),
            )
            .topic("fused")
            .under(copy),
            gpu(id("sum"), name("sum"), len, move |context| {
                reduce::own(context, &*large(context, sizes)?, "u16_c1", len / 2)
            })
            .under(read),
        ]);
    }
    cases.push(
        gpu(
            "sum-u32",
            "sum of 2^22 integers of 32 bits",
            sizes.scaled(16 << 20),
            move |context| {
                reduce::own(
                    context,
                    &*large(context, sizes)?,
                    "u32",
                    sizes.scaled(16 << 20) / 4,
                )
            },
        )
        .under(ceilings(16 << 20).1),
    );
    for (side, channels, depth) in [
        (8192, 1, Depth::Sixteen),
        (8191, 1, Depth::Sixteen),
        (16384, 1, Depth::Sixteen),
        (8192, 1, Depth::Eight),
        (8191, 1, Depth::Eight),
        (8192, 3, Depth::Sixteen),
        (8191, 3, Depth::Sixteen),
        (8192, 4, Depth::Sixteen),
        (8191, 4, Depth::Sixteen),
    ] {
        for (op, what) in [
            (Symmetry::Transpose, "transpose"),
            (Symmetry::Rotate90, "rotate 90"),
        ] {
            let shape = |side| Shape {
                width: side,
                height: side,
                channels,
                depth,
            };
            let bytes = shape(side).bytes();
            let id = format!(
                "{}-{side}-c{channels}-{}",
                what.replace(' ', "-"),
                depth.bits()
            );
            let name = format!("{what}, {}", shape(side));
            let shape = shape(sizes.scaled(side));
            cases.push(
                gpu(id, name, 2 * shape.bytes(), move |context| {
                    turned(context, sizes, op, shape)
                })
                .under(ceilings(bytes).0),
            );
        }
    }
    cases.extend(frames::cases(sizes));
    cases.extend(preview::cases(sizes));
    cases.extend(wide::cases(sizes));
    cases
}

fn gpu<R: Into<Measured>>(
    id: impl Into<String>,
    name: impl Into<String>,
    bytes: usize,
    work: impl Fn(&BenchContext) -> Result<R> + 'static,
) -> Case {
    Case::gpu(Table::Production, id, name, TOPIC, bytes as u64, work)
}

/// The minimal cost of every launch below.
fn empty() -> Case {
    gpu("empty", "an empty launch, queued", 0, |context| {
        let empty = context.kernel::<Empty>()?;
        let one = Grid::new(1, 1);
        context.time(|| context.gpu.launch_grid(&empty, one, Empty {}))
    })
}

/// The main input, repeated to the size of the largest image.
fn large(context: &BenchContext, sizes: Sizes) -> Result<Rc<driver::Buffer>> {
    context.kept("large", || {
        context.host.repeated_words(sizes.scaled(1 << 30)).collect()
    })
}

/// Times a symmetry; the expected result comes from the CPU version, which the tests compare with
/// the definition.
fn turned(context: &BenchContext, sizes: Sizes, op: Symmetry, shape: Shape) -> Result<Time> {
    let words: Vec<u32> = context
        .host
        .repeated_words(shape.bytes().next_multiple_of(4))
        .collect();
    let mut samples = Samples::any(&shape)?;
    let bytes = samples.as_bytes_mut();
    bytes.copy_from_slice(&bytemuck::cast_slice(&words)[..bytes.len()]);
    let image = Image::new(shape, samples);
    let OpResult::Image(expected) = executor::on_cpu(&op, image, &mut Timeline::default())?.result
    else {
        bail!("no image");
    };
    let input = large(context, sizes)?;
    let expected = context.gpu.words(expected.samples().as_bytes())?;
    let out = context.poisoned(expected.len())?;
    let pixel = shape.pixel_bytes();
    let kernel = context.gpu.kernel::<Transpose>(&format!("b{pixel}"))?;
    let grid = symmetry::grid(shape.width, shape.height, pixel, true);
    context.check_and_time(out, &expected, |out| {
        let arguments = Transpose {
            src: input.view(),
            dst: out.view_mut(),
            width: shape.width as u64,
            height: shape.height as u64,
            reverse_x: 0,
            reverse_y: (op == Symmetry::Rotate90).into(),
        };
        context.gpu.launch(&kernel, grid, arguments)
    })
}
