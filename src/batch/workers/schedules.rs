//! The workers of a batch under every schedule.

use super::{Cores, Next, Workers, numbers};
use crate::engine::Resources;
use crate::formats::Reading;
use crate::gpu::Choice;
use crate::os::sync::atomic::{AtomicUsize, Ordering};
use crate::os::sync::explore::explore;

/// As many results as a worker may have waiting, and more.
const ITEMS: usize = 7;

fn workers() -> Workers {
    Workers::new(Choice::Cpu, 3, 1 << 20, Reading::default(), (1, false))
}

/// Every item is processed once, and every result arrives.
#[test]
fn each_item_is_done_once() {
    explore(500, || {
        let (workers, next) = (workers(), numbers(ITEMS));
        let mut done = Vec::new();
        let work = |item, _: &Resources| item;
        let all = workers.each(3, Cores::AllForFirst, |_| next(), work, |it| done.push(it));
        all.expect("threads");
        done.sort_unstable();
        assert!(done.iter().copied().eq(0..ITEMS), "{done:?}");
    });
}

/// GPUs that one worker gives up are left by all, and no item is lost on the way to other ones.
#[test]
fn no_item_is_lost_when_gpus_are_left() {
    explore(500, || {
        let (workers, next) = (workers(), numbers(ITEMS));
        let mut done = Vec::new();
        let work = |item, _: &Resources| {
            if item == 2 {
                workers.leave_gpus();
            }
            item
        };
        let all = workers.each(3, Cores::AllForFirst, |_| next(), work, |it| done.push(it));
        all.expect("threads");
        done.sort_unstable();
        assert!(done.iter().copied().eq(0..ITEMS), "{done:?}");
    });
}

/// After `stop`, what is in progress arrives, and nothing is begun.
#[test]
fn a_stop_lets_those_in_progress_finish() {
    explore(500, || {
        let (workers, begun) = (workers(), AtomicUsize::new(0));
        let (mut taken, mut at_stop) = (0, None);
        let next = |_| Next::Item(());
        let work = |(), _: &Resources| begun.fetch_add(1, Ordering::SeqCst);
        let all = workers.each(3, Cores::AllForFirst, next, work, |_| {
            taken += 1;
            if taken == 2 {
                workers.stop();
                at_stop = Some(begun.load(Ordering::SeqCst));
            }
        });
        all.expect("threads");
        let begun = begun.into_inner();
        assert_eq!(taken, begun);
        // Each of the three may have been between its look at the stop and the item.
        assert!(begun <= at_stop.expect("stopped") + 3);
    });
}
