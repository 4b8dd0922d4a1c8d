//! The budget under every schedule.

use super::MemoryBudget;
use crate::os::sync::atomic::{AtomicU64, Ordering};
use crate::os::sync::explore::explore;
use crate::os::sync::mpsc::channel;
use crate::os::sync::thread;

/// At most the budget is reserved, or one image is alone; and everybody gets a part.
#[test]
fn the_budget_is_kept_and_nobody_is_stuck() {
    explore(2000, || {
        let (budget, taken) = (MemoryBudget::new(10), AtomicU64::new(0));
        thread::scope(|scope| {
            for bytes in [4, 7, 25, 3, 10] {
                let (budget, taken) = (&budget, &taken);
                scope.spawn(move || {
                    for _ in 0..2 {
                        let reservation = budget.reserve(bytes);
                        let all = taken.fetch_add(bytes, Ordering::SeqCst) + bytes;
                        assert!(all <= 10 || all == bytes, "{all} of 10 bytes");
                        taken.fetch_sub(bytes, Ordering::SeqCst);
                        drop(reservation);
                    }
                });
            }
        });
        assert_eq!(*budget.taken.lock().expect("lock"), 0);
    });
}

/// A part that fits is given, also while somebody waits for more than there is.
#[test]
fn who_fits_is_not_kept_waiting_by_who_does_not() {
    explore(2000, || {
        let budget = MemoryBudget::new(10);
        let (leaves, stays) = (budget.reserve(5), budget.reserve(5));
        let (send, small_is_in) = channel();
        thread::scope(|scope| {
            scope.spawn(|| drop(budget.reserve(10)));
            scope.spawn(|| {
                let small = budget.reserve(5);
                send.send(()).expect("receiver");
                drop(small);
            });
            drop(leaves);
            small_is_in.recv().expect("sender");
            drop(stays);
        });
    });
}
