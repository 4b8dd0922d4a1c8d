//! The budget of device memory under every schedule.

use super::Budget;
use crate::os::sync::atomic::{AtomicUsize, Ordering};
use crate::os::sync::explore::explore;
use crate::os::sync::thread;

/// No more is reserved than there is, and all of it comes back.
#[test]
fn no_byte_of_the_device_is_given_twice() {
    explore(2000, || {
        let (budget, reserved) = (Budget::new(10), AtomicUsize::new(0));
        thread::scope(|scope| {
            for bytes in [4, 7, 3, 5] {
                let (budget, reserved) = (&budget, &reserved);
                scope.spawn(move || {
                    for _ in 0..3 {
                        if budget.reserve(bytes) {
                            assert!(reserved.fetch_add(bytes, Ordering::SeqCst) + bytes <= 10);
                            reserved.fetch_sub(bytes, Ordering::SeqCst);
                            budget.give_back(bytes);
                        }
                    }
                });
            }
        });
        assert!(budget.reserve(10) && !budget.reserve(1));
    });
}
