//! The cost of a launch: the empty kernel of "CUDA: performance aspects of typical tasks" (2011).

use super::case::Case;
use super::figure::{Figure, Time};
use super::table::Table;
use crate::gpu::driver::Grid;
use crate::gpu::launch::papers::launch::Empty;

const GPU: &str = "GTX 460";
/// The paper's grid: 160 blocks of 96 threads.
pub(super) const PAPER: Grid = Grid::new(160, 96);

pub(super) fn cases() -> Vec<Case> {
    let one = Grid::new(1, 1);
    let launch = |id, name, topic, grid, synchronised| {
        Case::gpu(Table::Launch, id, name, topic, 0, move |context| {
            let empty = context.kernel::<Empty>()?;
            let time = if synchronised {
                context.host.time(|| {
                    context.gpu.launch_grid(&empty, grid, Empty {})?;
                    context.gpu.wait()
                })?
            } else {
                // A thousand launches at a time, as in the paper's loop; the wait at the end
                // counts.
                context.host.time(|| {
                    for _ in 0..1000 {
                        context.gpu.launch_grid(&empty, grid, Empty {})?;
                    }
                    context.gpu.wait()
                })?
            };
            Ok(per_call(time, if synchronised { 1.0 } else { 1000.0 }))
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
    ]
}

/// The time of one call of `calls`.
pub(super) fn per_call(time: Time, calls: f64) -> Time {
    Time {
        median: time.median / calls,
        fastest: time.fastest / calls,
        ..time
    }
}
