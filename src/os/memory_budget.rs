//! A bounded memory budget that images processed at the same time share; threads wait for their
//! part.

#[cfg(all(test, feature = "schedules"))]
mod schedules;

use crate::os::sync::{Condvar, Mutex, PoisonError};

/// A number of bytes shared by all images in progress: a thread that needs more than is left waits
/// for the others. An image that needs more than the whole budget is processed alone.
#[derive(Debug)]
pub struct MemoryBudget {
    most: u64,
    taken: Mutex<u64>,
    given_back: Condvar,
}

/// A reserved part of a `MemoryBudget`, returned when dropped.
#[derive(Debug)]
pub struct Reservation<'a> {
    budget: &'a MemoryBudget,
    bytes: u64,
}

impl MemoryBudget {
    /// A budget of `most` bytes.
    pub fn new(most: u64) -> MemoryBudget {
        MemoryBudget {
            most,
            taken: Mutex::new(0),
            given_back: Condvar::new(),
        }
    }

    /// The bytes of the budget.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// Waits until `bytes` are available, or the whole budget is, and reserves them.
    pub fn reserve(&self, bytes: u64) -> Reservation<'_> {
        // A lock is poisoned only by a panic while it is held, and no code under it can panic.
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |taken: &mut u64| *taken > 0 && taken.saturating_add(bytes) > self.most;
        let mut taken = self
            .given_back
            .wait_while(taken, full)
            .unwrap_or_else(PoisonError::into_inner);
        *taken += bytes;
        Reservation {
            budget: self,
            bytes,
        }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        *self
            .budget
            .taken
            .lock()
            .unwrap_or_else(PoisonError::into_inner) -= self.bytes;
        self.budget.given_back.notify_all();
    }
}

/// The least that `--mem-limit` takes: with less, even small images are processed one at a time, and a number without
/// its unit is more likely.
const LEAST: u64 = 1 << 20;

/// Parses a limit on memory, as `size` does.
pub fn limit(text: &str) -> Result<u64, String> {
    match size(text)? {
        bytes if bytes >= LEAST => Ok(bytes),
        _ => Err("the minimum is 1M (8G is 8 GiB, 500M is 500 MiB)".into()),
    }
}

/// Parses a size as 8G, 500M, 64K or bytes; units are powers of 1024.
pub fn size(text: &str) -> Result<u64, String> {
    let digits = text
        .trim_end_matches(['B', 'b'])
        .trim_end_matches(['i', 'I']);
    let (number, unit) = match digits.char_indices().last() {
        Some((at, 'k' | 'K')) => (&digits[..at], 10),
        Some((at, 'm' | 'M')) => (&digits[..at], 20),
        Some((at, 'g' | 'G')) => (&digits[..at], 30),
        Some((at, 't' | 'T')) => (&digits[..at], 40),
        _ => (digits, 0),
    };
    number
        .parse::<u64>()
        .ok()
        .filter(|&number| number > 0)
        .and_then(|number| number.checked_mul(1 << unit))
        .ok_or_else(|| "expected a size, e.g. 8G, 500M or 65536".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(not(feature = "schedules"))]
    fn who_does_not_fit_waits_until_the_others_are_done() {
        let budget = MemoryBudget::new(10);
        // Alone, as large as it likes; what fits beside another is not kept waiting.
        drop(budget.reserve(20));
        let (first, second) = (budget.reserve(6), budget.reserve(4));
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let third = budget.reserve(7);
                sender.send(()).expect("the test waits");
                drop(third);
            });
            let waits = || {
                receiver
                    .recv_timeout(std::time::Duration::from_millis(100))
                    .is_err()
            };
            assert!(waits());
            drop(second);
            assert!(waits(), "6 and 7 are more than 10");
            drop(first);
            receiver.recv().expect("it goes on");
        });
        assert_eq!(*budget.taken.lock().expect("no panic"), 0);
    }

    #[test]
    fn a_limit_of_one_byte_was_accepted() {
        for (text, bytes) in [("1M", 1 << 20), ("1048576", 1 << 20), ("2G", 2 << 30)] {
            assert_eq!(limit(text), Ok(bytes), "{text}");
        }
        for text in ["1", "8", "2048", "1023K", "0", "x"] {
            assert!(limit(text).is_err(), "{text}");
        }
        assert!(
            limit("1")
                .expect_err("too little")
                .contains("the minimum is 1M")
        );
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("8G", 8 << 30),
            ("500M", 500 << 20),
            ("7", 7),
            ("2KiB", 2048),
            ("3T", 3 << 40),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "G", "-1", "0", "1.5G", "9999999999T"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
