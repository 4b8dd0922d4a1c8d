//! A question from "Methods of effective organisation of parallel computing on GPUs": which calls
//! return before their work is done. For calls on a busy stream, the stream is kept busy and the call
//! is timed until it returns. For uploads on an idle stream two times are taken: until the call
//! returns, and until the data have landed.

use super::pattern;
use crate::bench::case::{Case, Measured};
use crate::bench::context::{BenchContext, POISON};
use crate::bench::figure::Time;
use crate::bench::table::Table;
use crate::gpu::driver::{self, Gpu, Grid, Pinned};
use crate::gpu::launch::papers::launch::Spin;
use anyhow::{Result, ensure};
use std::time::Instant;

/// A call for which the lecture notes say, or leave open, whether it returns at once.
#[derive(Clone, Copy)]
enum Call {
    Launch,
    /// cuMemcpyDtoD.
    CopySync,
    /// cuMemcpyDtoDAsync.
    CopyAsync,
    /// cuMemsetD8.
    FillSync,
    /// cuMemsetD8Async.
    FillAsync,
    /// cuMemcpyHtoD of so many bytes of pageable memory.
    SendSync(usize),
    /// cuMemcpyHtoDAsync of so many bytes of pageable memory.
    SendAsync(usize),
    /// cuMemcpyHtoDAsync of pinned memory.
    Upload,
    /// cuMemcpyDtoH of pageable memory.
    FetchSync,
}

pub(super) const BYTE: u8 = 0x5c;
pub(super) const MIB: usize = 1 << 20;
/// Nanoseconds for which the stream is kept busy before each call.
pub(super) const BUSY: u64 = 2_000_000;
/// Seconds: a call that takes less has not waited for the busy stream.
pub(in crate::bench) const AT_ONCE: f64 = BUSY as f64 / 1e9 / 4.0;

/// KiB of the uploads: below, at and above the 64 of the notes.
const KIB: [usize; 8] = [1, 16, 32, 63, 64, 65, 128, 1024];

pub(super) fn cases() -> Vec<Case> {
    let mut calls: Vec<(Call, String, String)> = [
        (Call::Launch, "launch", "launch"),
        (
            Call::CopySync,
            "copy-inside-sync",
            "copy inside the GPU, synchronous, 1 MiB",
        ),
        (
            Call::CopyAsync,
            "copy-inside-async",
            "copy inside the GPU, asynchronous, 1 MiB",
        ),
        (Call::FillSync, "memset-sync", "memset, synchronous, 1 MiB"),
        (
            Call::FillAsync,
            "memset-async",
            "memset, asynchronous, 1 MiB",
        ),
    ]
    .map(|(call, id, name)| (call, id.into(), name.into()))
    .into();
    for kib in KIB {
        let call = Call::SendSync(kib << 10);
        let name = format!("upload, synchronous, {kib} KiB");
        calls.push((call, format!("up-sync-{kib}K"), name));
    }
    for kib in KIB {
        let call = Call::SendAsync(kib << 10);
        let name = format!("upload, asynchronous, pageable, {kib} KiB");
        calls.push((call, format!("up-async-{kib}K"), name));
    }
    let pinned = "upload, asynchronous, pinned, 1 MiB".into();
    calls.push((Call::Upload, "up-pinned-1024K".into(), pinned));
    let down = "download, synchronous, 1 MiB".into();
    calls.push((Call::FetchSync, "down-sync-1024K".into(), down));
    let case = |(call, id, name): (Call, String, String)| {
        let (id, name) = (format!("returns-{id}"), format!("returns after: {name}"));
        let pageable = matches!(
            call,
            Call::SendSync(_) | Call::SendAsync(_) | Call::FetchSync
        );
        Case::gpu(Table::Transfer, id, name, "asynchrony", 0, move |context| {
            returned(context, call)
        })
        .pageable(pageable)
    };
    let mut cases: Vec<Case> = calls.into_iter().map(case).collect();
    for kib in KIB {
        for landed in [false, true] {
            cases.push(on_idle_stream(kib, landed));
        }
    }
    cases
}

/// A synchronous upload of pageable memory on an idle stream, timed until the call returns or until
/// the data have landed.
fn on_idle_stream(kib: usize, landed: bool) -> Case {
    let (id, event) = if landed {
        ("landed", "data landed")
    } else {
        ("idle", "call returned")
    };
    Case::gpu(
        Table::Transfer,
        format!("{id}-up-sync-{kib}K"),
        format!("{event}: upload on an idle stream, {kib} KiB"),
        "asynchrony",
        0,
        move |context| uploaded_on_idle_stream(context, kib << 10, landed),
    )
    .pageable(true)
}

fn uploaded_on_idle_stream(context: &BenchContext, len: usize, landed: bool) -> Result<Measured> {
    let gpu = Gpu::open(context.ordinal)?.on_default_stream();
    let mut source = pattern(context.host, MIB)?;
    let source = &mut source[..len];
    let mut to = gpu.alloc(len)?;
    let mut seconds = Vec::new();
    let mut early = 0;
    // Hundreds of calls of some microseconds each: a single one is disturbed too easily.
    for _ in 0..50 * context.host.sizes.runs {
        gpu.fill(&mut to, POISON)?;
        gpu.wait()?;
        let start = Instant::now();
        gpu.send_waiting(source, &mut to)?;
        let mut time = start.elapsed().as_secs_f64();
        // The first question comes after the clock was read, so that it costs nothing if the data
        // have landed with the call.
        if !gpu.is_idle()? {
            early += 1;
            while !gpu.is_idle()? {}
            if landed {
                time = start.elapsed().as_secs_f64();
            }
        }
        seconds.push(time);
    }
    // The source is overwritten as soon as the call returns.
    let sent = source.to_vec();
    gpu.fill(&mut to, POISON)?;
    gpu.wait()?;
    gpu.send_waiting(source, &mut to)?;
    source.fill(POISON);
    ensure!(
        gpu.read_words::<u8>(&to)?[..] == sent[..],
        "other bytes arrived"
    );
    let calls = seconds.len();
    Ok(Measured {
        time: Time::from_seconds(seconds),
        remark: Some(format!(
            "{early} of {calls} calls returned before the data had landed; the source may be overwritten then"
        )),
    })
}

/// Keeps the stream busy, makes the call, and records whether it returns at once or after the
/// queued work.
fn returned(context: &BenchContext, call: Call) -> Result<Measured> {
    // The stream on which the synchronous calls work.
    let gpu = Gpu::open(context.ordinal)?.on_default_stream();
    let spin = gpu.kernel::<Spin>("")?;
    let one = Grid::new(1, 1);
    let busy = |nanoseconds| gpu.launch_grid(&spin, one, Spin { nanoseconds });
    let mut source = pattern(context.host, MIB)?;
    let mut host = source.clone();
    let (from, mut to) = (gpu.words(&source)?, gpu.alloc(MIB)?);

    let (mut until_return, mut until_done) = (Vec::new(), Vec::new());
    gpu.with_pinned(&mut host, |pinned| -> Result<()> {
        for _ in 0..context.host.sizes.runs.clamp(1, 9) {
            gpu.fill(&mut to, POISON)?;
            gpu.wait()?;
            busy(BUSY)?;
            let start = Instant::now();
            match call {
                Call::Launch => busy(1000),
                Call::CopySync => gpu.copy_waiting(&from, &mut to),
                Call::CopyAsync => gpu.copy(&from, &mut to),
                Call::FillSync => gpu.fill_waiting(&mut to, BYTE),
                Call::FillAsync => gpu.fill(&mut to, BYTE),
                Call::SendSync(len) => gpu.send_waiting(&source[..len], &mut to),
                Call::SendAsync(len) => gpu.send(&source[..len], &mut to),
                Call::Upload => Pinned::upload(pinned, &mut to),
                Call::FetchSync => gpu.fetch_waiting(&from, &mut source),
            }?;
            until_return.push(start.elapsed().as_secs_f64());
            gpu.wait()?;
            until_done.push(start.elapsed().as_secs_f64());
            checked(call, &gpu, &source, &to)?;
        }
        Ok(())
    })?;
    let (time, done) = (
        Time::from_seconds(until_return),
        Time::from_seconds(until_done).median,
    );
    let verdict = if time.median < AT_ONCE {
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

fn checked(call: Call, gpu: &Gpu, source: &[u8], to: &driver::Buffer) -> Result<()> {
    let found = gpu.read_words::<u8>(to)?;
    let right = match call {
        Call::Launch | Call::FetchSync => true,
        Call::FillSync | Call::FillAsync => found.iter().all(|&byte| byte == BYTE),
        Call::SendSync(len) | Call::SendAsync(len) => found[..len] == source[..len],
        Call::CopySync | Call::CopyAsync | Call::Upload => found == source,
    };
    ensure!(right, "other bytes arrived");
    Ok(())
}
