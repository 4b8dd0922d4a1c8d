//! The budget of device memory under every schedule.

use super::Budget;
use crate::os::sync::atomic::{AtomicUsize, Ordering};
use crate::os::sync::explore::explore;
use crate::os::sync::thread;

/// No more is taken than there is, and all of it comes back.
#[test]
fn no_byte_of_the_device_is_given_twice() {
    explore(2000, || {
        let (budget, taken) = (Budget::new(10), AtomicUsize::new(0));
        thread::scope(|scope| {
            for bytes in [4, 7, 3, 5] {
                let (budget, taken) = (&budget, &taken);
                scope.spawn(move || {
                    for _ in 0..3 {
                        if budget.take(bytes) {
                            assert!(taken.fetch_add(bytes, Ordering::SeqCst) + bytes <= 10);
                            taken.fetch_sub(bytes, Ordering::SeqCst);
                            budget.give_back(bytes);
                        }
                    }
                });
            }
        });
        assert!(budget.take(10) && !budget.take(1));
    });
}
