//! The highest rates of this GPU and this host, with which every other row is compared.

use super::case::{Case, Ceiling};
use super::context::{BenchContext, Host, Sizes};
use super::figure::Time;
use super::table::Table;
use crate::gpu::driver::{self, Grid};
use crate::gpu::launch::papers::memory::{CopyWide, ReadWide, WriteWide};
use crate::image::buffer::Buffer;
use crate::timing::Limit;
use anyhow::{Result, ensure};
use rayon::prelude::*;

/// Bytes that a core copies or reads at a time.
const CHUNK: usize = 1 << 20;

pub(super) fn cases(sizes: Sizes) -> Vec<Case> {
    let bytes = sizes.bytes as u64;
    let memory = Ceiling::Stated(Limit::DeviceMemory);
    let link = Ceiling::Stated(Limit::Pcie);
    let gpu = |id, name, bytes, work: fn(&BenchContext) -> Result<Time>| {
        Case::gpu(Table::Ceilings, id, name, "ceiling", bytes, work)
    };
    let host = |id, name, bytes, work: fn(&Host) -> Result<Time>| {
        Case::host(Table::Ceilings, id, name, "ceiling", bytes, work)
    };
    vec![
        gpu("read", "GPU: read, 16 bytes an access", bytes, read_wide).under(memory),
        gpu("write", "GPU: write, 16 bytes an access", bytes, write_wide).under(memory),
        gpu(
            "copy",
            "GPU: copy, 16 bytes an access",
            2 * bytes,
            copy_wide,
        )
        .under(memory),
        gpu(
            "copy-driver",
            "GPU: the driver's own copy",
            2 * bytes,
            |context| {
                let out = context.poisoned(context.input.len())?;
                let input = &context.input;
                context.check_and_time(out, input, |out| context.gpu.copy(input, out))
            },
        )
        .under(memory),
        gpu("up", "link: host to GPU, pinned", bytes, |context| {
            link_time(context, true)
        })
        .under(link),
        gpu("down", "link: GPU to host, pinned", bytes, |context| {
            link_time(context, false)
        })
        .under(link),
        host("host-copy-one", "host: copy, one core", 2 * bytes, |host| {
            host_copy(host, host.noise.len())
        }),
        host("host-copy", "host: copy, all cores", 2 * bytes, |host| {
            host_copy(host, CHUNK / 2)
        }),
        host("host-read", "host: read, all cores", bytes, |host| {
            let mut sum = 0;
            let time = host.time(|| {
                sum = super::context::wrapping_sum(host.words());
                Ok(())
            })?;
            ensure!(sum == host.word_sum, "another sum");
            Ok(time)
        }),
    ]
}

/// Copies the main input in pieces of `piece` samples, which the cores share.
fn host_copy(host: &Host, piece: usize) -> Result<Time> {
    let mut out = Buffer::<u16>::zeroed(host.noise.len())?;
    let time = host.time(|| {
        out.par_chunks_mut(piece)
            .zip(host.noise.par_chunks(piece))
            .for_each(|(out, from)| out.copy_from_slice(from));
        Ok(())
    })?;
    ensure!(out == host.noise, "other samples");
    Ok(time)
}

/// A grid of blocks of 256 threads, one 16-byte vector for each thread.
pub(super) fn one_vector_each(bytes: usize) -> Grid {
    Grid::new((bytes / 16).div_ceil(256) as u32, 256)
}

pub(super) fn read_wide(context: &BenchContext) -> Result<Time> {
    read(
        context,
        &context.input,
        context.input.len(),
        context.host.word_sum,
    )
}

/// Times reading the first `len` bytes of a buffer, whose words add up to `sum` modulo 2³².
pub(super) fn read(
    context: &BenchContext,
    from: &driver::Buffer,
    len: usize,
    sum: u32,
) -> Result<Time> {
    let kernel = context.kernel::<ReadWide>()?;
    let grid = context.filled();
    context.summed(grid, sum, |sums| {
        let arguments = ReadWide {
            data: from.view(),
            n: len as u64 / 16,
            sums,
        };
        context.gpu.launch_grid(&kernel, grid, arguments)
    })
}

pub(super) fn copy_wide(context: &BenchContext) -> Result<Time> {
    copied(context, &context.input, context.input.len())
}

/// Times copying the first `len` bytes of a buffer.
pub(super) fn copied(context: &BenchContext, from: &driver::Buffer, len: usize) -> Result<Time> {
    let kernel = context.kernel::<CopyWide>()?;
    let (out, mut expected) = (context.poisoned(len)?, context.gpu.alloc(len)?);
    context.gpu.copy(from, &mut expected)?;
    context.check_and_time(out, &expected, |out| {
        let arguments = CopyWide {
            src: from.view(),
            dst: out.view_mut(),
            n: len as u64 / 16,
        };
        let grid = one_vector_each(len);
        context.gpu.launch_grid(&kernel, grid, arguments)
    })
}

fn write_wide(context: &BenchContext) -> Result<Time> {
    let kernel = context.kernel::<WriteWide>()?;
    let (word, out) = (0x1234_5678, context.poisoned(context.input.len())?);
    let expected = context.gpu.words(&vec![word; out.len() / 4])?;
    context.check_and_time(out, &expected, |out| {
        let grid = one_vector_each(out.len());
        let arguments = WriteWide {
            n: out.len() as u64 / 16,
            dst: out.view_mut(),
            word,
        };
        context.gpu.launch_grid(&kernel, grid, arguments)
    })
}

fn link_time(context: &BenchContext, up: bool) -> Result<Time> {
    let mut host = context.host.noise.clone();
    let mut device = context.poisoned(context.input.len())?;
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut host);
    if !up {
        bytes.fill(super::context::POISON);
    }
    let time = context.gpu.with_pinned(bytes, |pinned| {
        context.time(|| {
            if up {
                pinned.upload(&mut device)
            } else {
                pinned.download(&context.input)
            }
        })
    })?;
    if up {
        host.copy_from_slice(&context.gpu.read_words::<u16>(&device)?);
    }
    ensure!(host == context.host.noise, "other bytes arrived");
    Ok(time)
}
