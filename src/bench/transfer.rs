//! Copies between host and GPU: those of "CUDA: performance aspects of typical tasks", by the driver's
//! synchronous and asynchronous calls, at every size, pinned and pageable, in each direction and in
//! both at once. Which calls return before their work is done is asked in `returns`, and by the kind of memory in `matrix`.

mod matrix;
mod returns;

use super::case::{Case, Ceiling};
use super::context::{BenchContext, Host, POISON, Sizes};
use super::figure::{Figure, Time};
use super::table::Table;
use crate::gpu::driver::Gpu;
use crate::image::buffer::Buffer;
use crate::timing::Limit;
use anyhow::{Result, ensure};

pub(super) use returns::AT_ONCE;

/// The direction of a copy, the call, and the kind of host memory.
#[derive(Clone, Copy, Debug, PartialEq)]
enum CopyKind {
    /// cuMemcpyHtoD, pageable: the paper's.
    UpSync,
    /// cuMemcpyDtoH, pageable: the paper's.
    DownSync,
    /// cuMemcpyHtoDAsync, pageable, and a wait.
    UpAsync,
    /// cuMemcpyDtoHAsync, pageable, and a wait.
    DownAsync,
    /// cuMemcpyHtoDAsync, pinned, and a wait.
    UpPinned,
    /// cuMemcpyDtoHAsync, pinned, and a wait.
    DownPinned,
    /// Four of them, and one wait.
    UpQueued,
}

impl CopyKind {
    fn id(self) -> &'static str {
        match self {
            CopyKind::UpSync => "up-sync",
            CopyKind::DownSync => "down-sync",
            CopyKind::UpAsync => "up-async",
            CopyKind::DownAsync => "down-async",
            CopyKind::UpPinned => "up-pinned",
            CopyKind::DownPinned => "down-pinned",
            CopyKind::UpQueued => "up-queued",
        }
    }

    fn text(self) -> &'static str {
        match self {
            CopyKind::UpSync => "host to GPU, pageable, synchronous",
            CopyKind::DownSync => "GPU to host, pageable, synchronous",
            CopyKind::UpAsync => "host to GPU, pageable, asynchronous",
            CopyKind::DownAsync => "GPU to host, pageable, asynchronous",
            CopyKind::UpPinned => "host to GPU, pinned",
            CopyKind::DownPinned => "GPU to host, pinned",
            CopyKind::UpQueued => "host to GPU, pinned, 4 queued",
        }
    }

    fn is_up(self) -> bool {
        !matches!(
            self,
            CopyKind::DownSync | CopyKind::DownAsync | CopyKind::DownPinned
        )
    }

    fn is_pageable(self) -> bool {
        matches!(
            self,
            CopyKind::UpSync | CopyKind::DownSync | CopyKind::UpAsync | CopyKind::DownAsync
        )
    }
}

const GPU: &str = "GTX 460";
/// Bytes of the copies, and how ids call them; the largest is `large`.
pub(super) const STEPS: [(usize, &str); 6] = [
    (4, "4"),
    (4 << 10, "4K"),
    (64 << 10, "64K"),
    (1 << 20, "1M"),
    (16 << 20, "16M"),
    (128 << 20, "128M"),
];

pub(super) fn cases(sizes: Sizes) -> Vec<Case> {
    let mut cases = Vec::new();
    let all: Vec<(usize, &str)> = STEPS
        .into_iter()
        .filter(|&(size, _)| size < sizes.transfer)
        .chain([(sizes.transfer, "large")])
        .collect();
    for way in [
        CopyKind::UpSync,
        CopyKind::DownSync,
        CopyKind::UpAsync,
        CopyKind::DownAsync,
        CopyKind::UpPinned,
        CopyKind::DownPinned,
    ] {
        for &(size, label) in &all {
            let synchronous = matches!(way, CopyKind::UpSync | CopyKind::DownSync);
            let topic = match label {
                "4" if way == CopyKind::UpSync => "tiny-copy",
                "large" if synchronous => "large-copy",
                "large" if way.is_pageable() => "async-copy",
                _ => "transfer-sizes",
            };
            let case = transfer(way, size, label, topic);
            cases.push(match topic {
                "tiny-copy" => case.stating(
                    Some(Figure::Calls(22_000.0)),
                    Some("22 000 calls/s, 88 kB/s"),
                    GPU,
                ),
                "large-copy" => case.stating(Some(Figure::Rate(2.0)), Some("about 2 GB/s"), GPU),
                "async-copy" => case.stated("no different from synchronous", GPU),
                _ => case,
            });
        }
    }
    cases.push(transfer(
        CopyKind::UpQueued,
        sizes.transfer,
        "large",
        "transfer-sizes",
    ));
    let link = Ceiling::Measured("ceilings/up");
    cases.push(both_ways(Table::Transfer, "both-ways", sizes.bytes).under(link));
    cases.extend(returns::cases());
    cases.extend(matrix::cases());
    cases
}

/// The link in five rows: large copies, pinned and pageable.
pub(super) fn link(sizes: Sizes) -> Vec<Case> {
    let ways = [
        ("up-pinned", CopyKind::UpPinned),
        ("down-pinned", CopyKind::DownPinned),
        ("up-pageable", CopyKind::UpSync),
        ("down-pageable", CopyKind::DownSync),
    ];
    let row = |(id, way): (&str, CopyKind)| {
        let size = sizes.transfer;
        let name = format!("{}, {}", way.text(), amount(size));
        let work = move |context: &BenchContext| timed(context, way, size);
        Case::gpu(Table::Link, id, name, "link", size as u64, work).pageable(way.is_pageable())
    };
    let mut cases: Vec<Case> = ways.into_iter().map(row).collect();
    cases.push(both_ways(Table::Link, "link", sizes.bytes));
    let stated = Ceiling::Stated(Limit::Pcie);
    cases.into_iter().map(|case| case.under(stated)).collect()
}

fn transfer(way: CopyKind, size: usize, label: &str, topic: &'static str) -> Case {
    let ceiling = if way.is_up() {
        "ceilings/up"
    } else {
        "ceilings/down"
    };
    let (id, name) = (
        format!("{}-{label}", way.id()),
        format!("{}, {}", way.text(), amount(size)),
    );
    let bytes = match way {
        CopyKind::UpQueued => 4 * size as u64,
        // The paper counts calls.
        CopyKind::UpSync if label == "4" => 0,
        _ => size as u64,
    };
    let case = Case::gpu(Table::Transfer, id, name, topic, bytes, move |context| {
        timed(context, way, size)
    });
    case.touching(size as u64)
        .under(Ceiling::Measured(ceiling))
        .pageable(way.is_pageable())
}

/// `4 B`, `64 KiB`, `1 GiB`.
fn amount(bytes: usize) -> String {
    match bytes {
        bytes if bytes >= 1 << 30 => format!("{} GiB", bytes >> 30),
        bytes if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} B"),
    }
}

/// The beginning of the main input, repeated to `len` bytes.
fn pattern(host: &Host, len: usize) -> Result<Buffer<u8>> {
    let mut bytes = Buffer::zeroed(len)?;
    let noise: &[u8] = bytemuck::cast_slice(&host.noise);
    for chunk in bytes.chunks_mut(noise.len()) {
        chunk.copy_from_slice(&noise[..chunk.len()]);
    }
    Ok(bytes)
}

fn timed(context: &BenchContext, way: CopyKind, size: usize) -> Result<Time> {
    let gpu = context.gpu;
    let mut sent = pattern(context.host, size)?;
    let mut back = Buffer::<u8>::zeroed(size)?;
    back.fill(POISON);
    let mut device = context.poisoned(size)?;
    gpu.wait()?;
    // One copy to the GPU and one back; one of the two is this row's, the other a plain one.
    let host = context.host;
    let time = match way {
        CopyKind::UpSync => {
            let time = host.time(|| gpu.send_waiting(&sent, &mut device))?;
            // In the same stream, after the last of them.
            gpu.fetch_waiting(&device, &mut back)?;
            time
        }
        CopyKind::DownSync => {
            gpu.send_waiting(&sent, &mut device)?;
            host.time(|| gpu.fetch_waiting(&device, &mut back))?
        }
        CopyKind::UpAsync => {
            let time = host.time(|| {
                gpu.send(&sent, &mut device)?;
                gpu.wait()
            })?;
            gpu.fetch(&device, &mut back)?;
            time
        }
        CopyKind::DownAsync => {
            gpu.send(&sent, &mut device)?;
            host.time(|| gpu.fetch(&device, &mut back))?
        }
        CopyKind::UpPinned | CopyKind::UpQueued => {
            let copies = if way == CopyKind::UpQueued { 4 } else { 1 };
            let time = gpu.with_pinned(&mut sent, |pinned| {
                host.time(|| {
                    for _ in 0..copies {
                        pinned.upload(&mut device)?;
                    }
                    gpu.wait()
                })
            })?;
            gpu.fetch(&device, &mut back)?;
            time
        }
        CopyKind::DownPinned => {
            gpu.send(&sent, &mut device)?;
            gpu.with_pinned(&mut back, |pinned| {
                host.time(|| {
                    pinned.download(&device)?;
                    gpu.wait()
                })
            })?
        }
    };
    ensure!(sent[..] == back[..], "other bytes came back");
    Ok(time)
}

fn both_ways(table: Table, topic: &'static str, size: usize) -> Case {
    let name = format!("both ways at once, pinned, {} each", amount(size));
    Case::gpu(
        table,
        "both-ways",
        name,
        topic,
        2 * size as u64,
        move |context| {
            // A second handle for the GPU has a stream of its own.
            let other = Gpu::open(context.ordinal)?;
            let mut sent = pattern(context.host, size)?;
            let mut back = Buffer::<u8>::zeroed(size)?;
            back.fill(POISON);
            let mut arrived = context.poisoned(size)?;
            context.gpu.wait()?;
            let time = context.gpu.with_pinned(&mut sent, |up| {
                other.with_pinned(&mut back, |down| {
                    context.host.time(|| {
                        up.upload(&mut arrived)?;
                        down.download(&context.input)?;
                        context.gpu.wait()?;
                        other.wait()
                    })
                })
            })?;
            let noise: &[u8] = bytemuck::cast_slice(&context.host.noise);
            ensure!(back[..] == *noise, "other bytes came down");
            context.gpu.fetch(&arrived, &mut back)?;
            ensure!(back[..] == sent[..], "other bytes went up");
            Ok(time)
        },
    )
    .touching(size as u64)
}
