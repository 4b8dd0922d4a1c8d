//! Copies between host and GPU: those of "CUDA: performance aspects of typical tasks", at every
//! size, pinned and pageable, in each direction and in both at once; and a question from "Methods
//! of effective organisation of parallel computing on GPUs": which calls return before their work
//! is done.

use super::case::{Case, Ceiling, Measured};
use super::context::{BenchContext, Host, POISON, Sizes};
use super::figure::{Figure, Time};
use super::table::Table;
use crate::device::cuda::{self, Arg, Gpu, Grid, Pinned};
use crate::image::buffer::Buffer;
use anyhow::{Result, ensure};
use std::time::Instant;

/// The direction of a copy and the kind of host memory.
#[derive(Clone, Copy, PartialEq)]
enum CopyKind {
    UpPageable,
    DownPageable,
    UpPinned,
    DownPinned,
    UpQueued,
}

impl CopyKind {
    fn id(self) -> &'static str {
        match self {
            CopyKind::UpPageable => "up-pageable",
            CopyKind::DownPageable => "down-pageable",
            CopyKind::UpPinned => "up-pinned",
            CopyKind::DownPinned => "down-pinned",
            CopyKind::UpQueued => "up-queued",
        }
    }

    fn text(self) -> &'static str {
        match self {
            CopyKind::UpPageable => "host to GPU, pageable",
            CopyKind::DownPageable => "GPU to host, pageable",
            CopyKind::UpPinned => "host to GPU, pinned",
            CopyKind::DownPinned => "GPU to host, pinned",
            CopyKind::UpQueued => "host to GPU, pinned, 4 queued",
        }
    }
}

pub(super) fn cases(sizes: Sizes) -> Vec<Case> {
    let mut cases = Vec::new();
    let steps: [usize; 6] = [4, 4 << 10, 64 << 10, 1 << 20, 16 << 20, 128 << 20];
    let all: Vec<usize> = steps
        .into_iter()
        .filter(|&size| size < sizes.transfer)
        .chain([sizes.transfer])
        .collect();
    for way in [
        CopyKind::UpPageable,
        CopyKind::DownPageable,
        CopyKind::UpPinned,
        CopyKind::DownPinned,
    ] {
        for &size in &all {
            let topic = match size {
                4 if way == CopyKind::UpPageable => "tiny-copy",
                size if size == sizes.transfer => "large-copy",
                _ => "transfer-sizes",
            };
            let case = transfer(way, size, sizes, topic);
            cases.push(match (topic, way) {
                ("tiny-copy", _) => case.published(Figure::Rate(88e-6), "GTX 460"),
                ("large-copy", _) => case.published(Figure::Rate(2.0), "GTX 460"),
                _ => case,
            });
        }
    }
    cases.push(
        transfer(CopyKind::UpQueued, sizes.transfer, sizes, "async-copy")
            .published(Figure::Rate(2.0), "GTX 460"),
    );
    cases.push(both_ways(sizes.bytes));
    cases.extend(returns());
    cases
}

fn transfer(way: CopyKind, size: usize, sizes: Sizes, topic: &'static str) -> Case {
    let label = if size == sizes.transfer {
        "large".into()
    } else {
        amount(size).replace([' ', 'i', 'B'], "")
    };
    let ceiling = match way {
        CopyKind::DownPageable | CopyKind::DownPinned => "ceilings/down",
        _ => "ceilings/up",
    };
    let (id, name) = (
        format!("{}-{label}", way.id()),
        format!("{}, {}", way.text(), amount(size)),
    );
    let bytes = size as u64 * if way == CopyKind::UpQueued { 4 } else { 1 };
    Case::gpu(Table::Transfer, id, name, topic, bytes, move |context| {
        Ok(timed(context, way, size)?.into())
    })
    .touching(size as u64)
    .under(Ceiling::Measured(ceiling))
    .pageable(matches!(way, CopyKind::UpPageable | CopyKind::DownPageable))
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
    let time = match way {
        CopyKind::UpPageable => {
            let time = context.host.time(|| gpu.send(&sent, &device))?;
            gpu.fetch(&device, &mut back)?;
            time
        }
        CopyKind::DownPageable => {
            gpu.send(&sent, &device)?;
            context.host.time(|| gpu.fetch(&device, &mut back))?
        }
        CopyKind::UpPinned | CopyKind::UpQueued => {
            let copies = if way == CopyKind::UpQueued { 4 } else { 1 };
            let time = gpu.with_pinned(&mut sent, |pinned| {
                context.host.time(|| {
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
            gpu.send(&sent, &device)?;
            gpu.with_pinned(&mut back, |pinned| {
                context.host.time(|| {
                    pinned.download(&device)?;
                    gpu.wait()
                })
            })?
        }
    };
    ensure!(sent[..] == back[..], "other bytes came back");
    Ok(time)
}

fn both_ways(size: usize) -> Case {
    let name = format!("both ways at once, pinned, {} each", amount(size));
    Case::gpu(
        Table::Transfer,
        "both-ways",
        name,
        "both-ways",
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
            Ok(time.into())
        },
    )
    .touching(size as u64)
    .under(Ceiling::Measured("ceilings/up"))
}

/// A call for which the lecture notes say, or leave open, whether it returns at once.
#[derive(Clone, Copy)]
enum Call {
    Launch,
    CopyInside,
    Fill,
    Send(usize),
    Upload,
}

const BYTE: u8 = 0x5c;
const MIB: usize = 1 << 20;
/// Nanoseconds for which the stream is kept busy before each call.
const BUSY: u64 = 2_000_000;

fn returns() -> Vec<Case> {
    let calls = [
        (Call::Launch, "returns-launch", "launch"),
        (
            Call::CopyInside,
            "returns-copy-inside",
            "copy inside the GPU, 1 MiB",
        ),
        (Call::Fill, "returns-memset", "memset, 1 MiB"),
        (
            Call::Send(64 << 10),
            "returns-up-pageable-64K",
            "upload, pageable, 64 KiB",
        ),
        (
            Call::Send(MIB),
            "returns-up-pageable-1M",
            "upload, pageable, 1 MiB",
        ),
        (
            Call::Upload,
            "returns-up-pinned-1M",
            "upload, pinned, asynchronous, 1 MiB",
        ),
    ];
    let case = |(call, id, name): (Call, &str, &str)| {
        let name = format!("returns after: {name}");
        Case::gpu(Table::Transfer, id, name, "asynchrony", 0, move |context| {
            returned(context, call)
        })
    };
    calls.into_iter().map(case).collect()
}

/// Keeps the stream busy, makes the call, and records whether it returns at once or after the
/// queued work.
fn returned(context: &BenchContext, call: Call) -> Result<Measured> {
    let gpu = Gpu::open(context.ordinal)?.on_default_stream();
    let spin = gpu.kernel("papers/launch", "spin", "")?;
    let one = Grid {
        blocks: [1, 1],
        threads: [1, 1],
    };
    // SAFETY: the kernel has a number for its argument and touches no memory.
    let busy = |nanoseconds| unsafe { gpu.launch_grid(&spin, one, &[Arg::U64(nanoseconds)]) };
    let source = pattern(context.host, MIB)?;
    let mut host = source.clone();
    let (from, mut to) = (gpu.words(&source)?, gpu.alloc(MIB)?);

    let (mut until_return, mut until_done) = (Vec::new(), Vec::new());
    gpu.with_pinned(&mut host, |pinned| -> Result<()> {
        for _ in 0..context.host.sizes.runs.clamp(1, 9) {
            gpu.fill(&to, POISON)?;
            gpu.wait()?;
            busy(BUSY)?;
            let start = Instant::now();
            make(call, &gpu, busy, &source, &from, &mut to, pinned)?;
            until_return.push(start.elapsed().as_secs_f64());
            gpu.wait()?;
            until_done.push(start.elapsed().as_secs_f64());
            checked(call, &gpu, &source, &to)?;
        }
        Ok(())
    })?;
    let (time, done) = (Time::of(until_return), Time::of(until_done).median);
    let verdict = if time.median < done / 4.0 {
        "returns at once"
    } else {
        "waits for its turn"
    };
    let remark = format!("{verdict} ({:.2} ms until done)", done * 1e3);
    Ok(Measured {
        time,
        remark: Some(remark),
    })
}

fn make(
    call: Call,
    gpu: &Gpu,
    busy: impl Fn(u64) -> Result<()>,
    source: &[u8],
    from: &cuda::Buffer,
    to: &mut cuda::Buffer,
    pinned: &mut Pinned,
) -> Result<()> {
    match call {
        Call::Launch => busy(1000),
        Call::CopyInside => gpu.copy(from, to),
        Call::Fill => gpu.fill(to, BYTE),
        Call::Send(len) => gpu.send(&source[..len], to),
        Call::Upload => pinned.upload(to),
    }
}

fn checked(call: Call, gpu: &Gpu, source: &[u8], to: &cuda::Buffer) -> Result<()> {
    let found = gpu.read_words::<u8>(to)?;
    let right = match call {
        Call::Launch => true,
        Call::Fill => found.iter().all(|&byte| byte == BYTE),
        Call::Send(len) => found[..len] == source[..len],
        Call::CopyInside | Call::Upload => found == source,
    };
    ensure!(right, "other bytes arrived");
    Ok(())
}
