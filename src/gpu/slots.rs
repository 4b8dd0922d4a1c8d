//! How many images use a GPU at the same time: enough to keep it busy, and few enough for its memory.

#[cfg(all(test, feature = "schedules"))]
mod schedules;

use crate::os::sync::{Condvar, Mutex, PoisonError};
use std::sync::Arc;

/// Bytes of device memory for each image in use: a PNG of 2048² takes 0.1 GB to be decoded, changed and compressed.
const BYTES: usize = 1 << 30;

/// The fewest and the most images that use one GPU at the same time.
const LEAST: usize = 12;
const MOST: usize = 128;

/// The number of images that use a GPU with so many bytes of memory at the same time.
pub fn images(memory: usize) -> usize {
    (memory / BYTES).clamp(LEAST, MOST)
}

/// The slots for images on one GPU.
#[derive(Debug)]
pub struct Slots {
    free: Mutex<usize>,
    freed: Condvar,
}

/// One of a GPU's slots, given back when dropped.
#[derive(Debug)]
pub struct Slot(Arc<Slots>);

impl Slots {
    /// `count` slots, all free.
    pub fn new(count: usize) -> Arc<Slots> {
        Arc::new(Slots {
            free: Mutex::new(count),
            freed: Condvar::new(),
        })
    }

    /// How many are free.
    #[cfg(test)]
    fn free(&self) -> usize {
        *self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A slot, as soon as one is free.
    pub fn acquire(self: &Arc<Slots>) -> Slot {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let free = self.freed.wait_while(free, |free| *free == 0);
        *free.unwrap_or_else(PoisonError::into_inner) -= 1;
        Slot(self.clone())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut free = self.0.free.lock().unwrap_or_else(PoisonError::into_inner);
        *free += 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn never_more_images_than_slots() {
        let (slots, inside, most) = (Slots::new(3), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let slot = slots.acquire();
                        let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                        most.fetch_max(now, Ordering::SeqCst);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(slot);
                    }
                });
            }
        });
        assert!((1..=3).contains(&most.into_inner()));
        assert_eq!(slots.free(), 3);
    }
}
