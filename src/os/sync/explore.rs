//! Runs a law under many schedules. A deadlock, or a panic in the law, fails the test, and the schedule
//! that led to it is printed: with `GPUIMG_SCHEDULE` set to it, the test runs that one alone.

use shuttle::scheduler::{PctScheduler, RandomScheduler, ReplayScheduler, Scheduler};
use shuttle::{Config, Runner};
use std::env;
use std::sync::Arc;

/// Each thread's stack, in bytes: what an unoptimized inflater takes, and ample.
const STACK: usize = 1 << 20;

/// The changes of priority of the PCT scheduler: it finds every bug that needs no more of them with a
/// probability that is known ("A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs",
/// Burckhardt and others, ASPLOS 2010).
const DEPTH: usize = 4;

/// Runs `law` under `count` random schedules and as many of the PCT scheduler, times
/// `GPUIMG_SCHEDULES` if that is set. Both are seeded anew by every run.
pub fn explore(count: usize, law: impl Fn() + Send + Sync + 'static) {
    let law = Arc::new(law);
    if let Ok(schedule) = env::var("GPUIMG_SCHEDULE") {
        return run(ReplayScheduler::new_from_encoded(&schedule), move || law());
    }
    let times = env::var("GPUIMG_SCHEDULES").map_or(1, |times| {
        times.parse().expect("GPUIMG_SCHEDULES is a number")
    });
    let same = law.clone();
    run(RandomScheduler::new(count * times), move || same());
    run(PctScheduler::new(DEPTH, count * times), move || law());
}

fn run(scheduler: impl Scheduler + 'static, law: impl Fn() + Send + Sync + 'static) {
    let mut config = Config::new();
    config.stack_size = STACK;
    // Its atomics are sequentially consistent; without this, it prints a warning about that in every test.
    config.silence_warnings = true;
    let ran = Runner::new(scheduler, config).run(law);
    assert!(ran > 0, "no schedule was run");
}
