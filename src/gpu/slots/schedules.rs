//! The slots of a GPU under every schedule.

use super::Slots;
use crate::os::sync::atomic::{AtomicUsize, Ordering};
use crate::os::sync::explore::explore;
use crate::os::sync::thread;

/// Never more images than slots, and every image gets one.
#[test]
fn no_slot_is_given_twice_and_none_is_lost() {
    explore(2000, || {
        let (slots, inside) = (Slots::new(2), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                let (slots, inside) = (&slots, &inside);
                scope.spawn(move || {
                    for _ in 0..3 {
                        let slot = slots.acquire();
                        assert!(inside.fetch_add(1, Ordering::SeqCst) < 2);
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(slot);
                    }
                });
            }
        });
        // A lost slot would be waited for without end, which is reported as a deadlock.
        let _both = (slots.acquire(), slots.acquire());
        assert_eq!(slots.free(), 0);
    });
}
