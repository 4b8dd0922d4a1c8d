//! Asynchronous calls by the kind of host memory and the state of the stream: when the call returns, whether the source
//! of an upload may be overwritten then, and when the data have landed. One row for each combination.

use super::returns::{BUSY, BYTE, MIB};
use crate::bench::case::{Case, Measured, Needs};
use crate::bench::context::{BenchContext, POISON};
use crate::bench::figure::{Time, short};
use crate::bench::table::Table;
use crate::gpu::driver::{Grid, HostKind};
use crate::gpu::launch::papers::launch::Spin;
use anyhow::{Result, ensure};
use std::time::Instant;

#[derive(Clone, Copy, PartialEq)]
enum Call {
    /// cuMemcpyHtoDAsync.
    Upload,
    /// cuMemcpyDtoHAsync.
    Download,
    /// cuMemsetD8Async of the host's memory, by the GPU.
    Memset,
}

const CALLS: [(Call, &str); 3] = [
    (Call::Upload, "upload"),
    (Call::Download, "download"),
    (Call::Memset, "memset"),
];

const KINDS: [(HostKind, &str); 4] = [
    (HostKind::Pageable, "pageable"),
    (HostKind::Pinned, "pinned"),
    (HostKind::Managed, "managed"),
    (HostKind::Mapped, "mapped"),
];

/// The byte that overwrites a source.
const OTHER: u8 = 0x3a;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (call, name) in CALLS {
        for (kind, memory) in KINDS {
            // The GPU has no address for pageable memory.
            if call == Call::Memset && kind == HostKind::Pageable {
                continue;
            }
            for (busy, stream) in [(false, "idle"), (true, "busy")] {
                let case = Case::gpu(
                    Table::Transfer,
                    format!("{name}-{memory}-{stream}"),
                    format!("{name}, asynchronous, {memory}, 1 MiB, {stream} stream: returns"),
                    "asynchrony-matrix",
                    0,
                    move |context| asked(context, call, kind, busy),
                );
                cases.push(match kind {
                    HostKind::Managed => case.needing(Needs::ManagedMemory),
                    _ => case.pageable(kind == HostKind::Pageable),
                });
            }
        }
    }
    cases
}

/// Makes the call several times. Of every two calls of an upload, the second has its source overwritten as soon as it returns.
fn asked(context: &BenchContext, call: Call, kind: HostKind, busy: bool) -> Result<Measured> {
    let gpu = context.gpu.with_stream(false)?;
    let spin = gpu.kernel::<Spin>("")?;
    let (mut host, mut device) = (gpu.host_memory(kind, MIB)?, gpu.alloc(MIB)?);
    let (mut until_return, mut until_landed) = (Vec::new(), Vec::new());
    let (mut overwritten, mut kept) = (0, 0);
    let runs = context.host.sizes.runs;
    for round in 0..2 * if busy { runs.min(9) } else { 5 * runs } {
        let overwrites = call == Call::Upload && round % 2 == 1;
        let (here, there) = match call {
            Call::Upload => (BYTE, POISON),
            Call::Download => (POISON, BYTE),
            Call::Memset => (POISON, POISON),
        };
        host.overwrite(here);
        gpu.fill(&mut device, there)?;
        gpu.wait()?;
        if busy {
            gpu.launch_grid(&spin, Grid::new(1, 1), Spin { nanoseconds: BUSY })?;
        }
        let start = Instant::now();
        match call {
            Call::Upload => host.upload(&mut device),
            Call::Download => host.download(&device),
            Call::Memset => host.fill(BYTE),
        }?;
        until_return.push(start.elapsed().as_secs_f64());
        if overwrites {
            host.overwrite(OTHER);
        } else {
            while !gpu.is_idle()? {}
            until_landed.push(start.elapsed().as_secs_f64());
        }
        gpu.wait()?;
        let arrived = match call {
            Call::Upload => gpu.read_words::<u8>(&device)?,
            Call::Download | Call::Memset => host.bytes()?.to_vec(),
        };
        let is_whole = arrived.iter().all(|&byte| byte == BYTE);
        if overwrites {
            (overwritten, kept) = (overwritten + 1, kept + usize::from(is_whole));
        }
        let is_known = |byte: &u8| *byte == BYTE || overwrites && *byte == OTHER;
        ensure!(arrived.iter().all(is_known), "other bytes arrived");
    }
    let landed = Time::from_seconds(until_landed).median;
    let mut remark = format!("landed after {} µs", short(landed * 1e6));
    if call == Call::Upload {
        remark += &match kept {
            _ if kept == overwritten => "; the source may be overwritten at once".into(),
            _ => format!(
                "; overwriting the source at once changed {} of {overwritten} copies",
                overwritten - kept
            ),
        };
    }
    Ok(Measured {
        time: Time::from_seconds(until_return),
        remark: Some(remark),
    })
}
