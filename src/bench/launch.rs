//! The cost of a launch: the empty kernel of "CUDA: performance aspects of typical tasks" (2011); the same with launches that
//! wait, by the driver's variable of "Methods of effective organisation of parallel computing on GPUs"; recorded launches; and
//! launches that overlap.

use super::case::{Case, Needs};
use super::context::BenchContext;
use super::figure::{Figure, Time};
use super::table::Table;
use crate::gpu::driver::{self, Grid, Kernel};
use crate::gpu::launch::papers::launch::{Empty, Mark};
use anyhow::{Context, Result, ensure};
use std::env;
use std::process::Command;

const GPU: &str = "GTX 460";
/// The paper's grid: 160 blocks of 96 threads.
pub(super) const PAPER: Grid = Grid::new(160, 96);

pub(super) fn cases() -> Vec<Case> {
    let one = Grid::new(1, 1);
    let launch = |id, name, topic, grid: Grid, synchronised: bool| {
        Case::gpu(Table::Launch, id, name, topic, 0, move |context| {
            if !synchronised {
                return queued(context, grid);
            }
            let empty = context.kernel::<Empty>()?;
            context.host.time(|| {
                context.gpu.launch_grid(&empty, grid, Empty {})?;
                context.gpu.wait()
            })
        })
    };
    vec![
        launch(
            "sync",
            "160 × 96, waited for each time",
            "empty-sync",
            PAPER,
            true,
        )
        .published(Figure::Calls(15_000.0), GPU),
        launch(
            "async",
            "160 × 96, queued, one wait at the end",
            "empty-async",
            PAPER,
            false,
        )
        .published(Figure::Calls(73_100.0), GPU),
        launch(
            "async-1x1",
            "1 × 1, queued, one wait at the end",
            "empty-one",
            one,
            false,
        )
        .stated("73 000–73 500 calls/s", GPU),
        Case::gpu(
            Table::Launch,
            "blocking",
            "160 × 96, queued, CUDA_LAUNCH_BLOCKING=1",
            "launch-blocking",
            0,
            blocking,
        ),
        Case::gpu(
            Table::Launch,
            "graph",
            "160 × 96, a graph of 1000 launches, one wait at the end",
            "graphs",
            0,
            |context| {
                let empty = context.kernel::<Empty>()?;
                let graph = context.gpu.record(|| launches(context, &empty, PAPER))?;
                let time = context.host.time(|| {
                    // SAFETY: empty kernels use no memory.
                    unsafe { graph.launch() }?;
                    context.gpu.wait()
                })?;
                Ok(per_call(time, CALLS as f64))
            },
        ),
        Case::gpu(
            Table::Launch,
            "marks",
            "160 × 96, each stores a word of its own, queued",
            "graphs",
            0,
            |context| {
                let mark = context.kernel::<Mark>()?;
                marked(context, |marks, _| {
                    (0..CALLS as u32).try_for_each(|i| {
                        let marks = marks.view_mut();
                        context.gpu.launch_grid(&mark, PAPER, Mark { marks, i })
                    })
                })
            },
        ),
        Case::gpu(
            Table::Launch,
            "graph-updated",
            "160 × 96, a graph of 1000 launches, each given its word anew",
            "graphs",
            0,
            updated,
        ),
        Case::gpu(
            Table::Launch,
            "programmatic",
            "160 × 96, queued, each starts while the one before ends",
            "programmatic",
            0,
            |context| {
                let mark = context.kernel::<Mark>()?;
                marked(context, |marks, _| {
                    (0..CALLS as u32).try_for_each(|i| {
                        let marks = marks.view_mut();
                        // SAFETY: the kernel waits for the launch before it, and only then stores.
                        unsafe {
                            context
                                .gpu
                                .launch_overlapping(&mark, PAPER, Mark { marks, i })
                        }
                    })
                })
            },
        )
        .needing(Needs::Capability(9, 0)),
    ]
}

/// Checks that a pass of 1000 launches stores all words, and times passes. Each pass stores another number.
fn marked(
    context: &BenchContext,
    mut pass: impl FnMut(&mut driver::Buffer, usize) -> Result<()>,
) -> Result<Time> {
    let words: Vec<u32> = (0..CALLS as u32).collect();
    let expected = context.gpu.words(&words)?;
    let mut marks = context.poisoned(4 * CALLS)?;
    context.check(&mut marks, &expected, |marks| pass(marks, 1))?;
    let mut number = 1;
    let time = context.host.time(|| {
        number += 1;
        pass(&mut marks, number)?;
        context.gpu.wait()
    })?;
    Ok(per_call(time, CALLS as f64))
}

/// A graph whose launches get other words before each pass: recorded with word 0 for all of them.
fn updated(context: &BenchContext) -> Result<Time> {
    let mark = context.kernel::<Mark>()?;
    let mut recorded = context.poisoned(4 * CALLS)?;
    let mut graph = context.gpu.record(|| {
        (0..CALLS).try_for_each(|_| {
            let marks = recorded.view_mut();
            context.gpu.launch_grid(&mark, PAPER, Mark { marks, i: 0 })
        })
    })?;
    marked(context, |marks, number| {
        for launch in 0..CALLS {
            let arguments = Mark {
                marks: marks.view_mut(),
                i: ((launch + number) % CALLS) as u32,
            };
            graph.update(launch, &mark, PAPER, arguments)?;
        }
        // SAFETY: both buffers live longer than the graph's work, which `check` and the clock wait for.
        unsafe { graph.launch() }
    })
}

/// Launches in a row, as in the loop of "CUDA: performance aspects of typical tasks".
const CALLS: usize = 1000;

fn launches(context: &BenchContext, empty: &Kernel<Empty>, grid: Grid) -> Result<()> {
    (0..CALLS).try_for_each(|_| context.gpu.launch_grid(empty, grid, Empty {}))
}

/// A thousand launches and one wait, which counts.
fn queued(context: &BenchContext, grid: Grid) -> Result<Time> {
    let empty = context.kernel::<Empty>()?;
    let time = context.host.time(|| {
        launches(context, &empty, grid)?;
        context.gpu.wait()
    })?;
    Ok(per_call(time, CALLS as f64))
}

/// The driver reads this variable when it starts.
const BLOCKING: &str = "CUDA_LAUNCH_BLOCKING";

/// Queued launches in a process with the variable: this one, or several in turn that are started here.
fn blocking(context: &BenchContext) -> Result<Time> {
    if env::var_os(BLOCKING).is_some() {
        return queued(context, PAPER);
    }
    let program = env::current_exe()?;
    let device = format!("gpu:{}", context.ordinal);
    let run = |_| -> Result<f64> {
        let output = Command::new(&program)
            .args(["bench", "launch", "--small", "--json", "--device", &device])
            .env(BLOCKING, "1")
            .output()
            .context("cannot start gpuimg again")?;
        ensure!(
            output.status.success(),
            "gpuimg bench, started again, fails"
        );
        let run: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let rows = run["rows"].as_array().context("no rows")?;
        let row = rows.iter().find(|row| row["id"] == "launch/blocking");
        let micros = row.and_then(|row| row["time_us"].as_f64());
        Ok(micros.context("no time")? / 1e6)
    };
    let seconds = (0..context.host.sizes.runs.min(3)).map(run);
    Ok(Time::from_seconds(seconds.collect::<Result<_>>()?))
}

/// The time of one call of `calls`.
pub(super) fn per_call(time: Time, calls: f64) -> Time {
    Time {
        median: time.median / calls,
        fastest: time.fastest / calls,
        ..time
    }
}
