//! Parallel work whose results are placed in order.

use gpuimg::codec::ordered::ordered;
use std::sync::Mutex;
use std::time::Duration;

/// Early items take longest, and are still placed first; every result is written where it was
/// placed.
#[test]
fn in_order() {
    for count in [0, 1, 2, 3, 100] {
        let mut placed = Vec::new();
        let written = Mutex::new(vec![usize::MAX; count]);
        let made = ordered(
            count,
            || 0,
            |_, i| {
                std::thread::sleep(Duration::from_micros((i as u64 * 7919) % 500));
                Ok(10 * i)
            },
            |i, &result| {
                assert_eq!(result, 10 * i);
                placed.push(i);
                i
            },
            |place, result| {
                written.lock().unwrap()[place] = result;
                Ok(())
            },
        );
        made.unwrap();
        assert!(placed.into_iter().eq(0..count));
        assert!(
            written
                .into_inner()
                .unwrap()
                .into_iter()
                .eq((0..count).map(|i| 10 * i))
        );
    }
}

/// An error in making or in writing ends the work and is the one returned.
#[test]
fn ends_at_an_error() {
    for (bad_make, bad_write) in [(50, usize::MAX), (usize::MAX, 50), (0, usize::MAX)] {
        let fail = |bad, i| -> anyhow::Result<()> {
            anyhow::ensure!(i != bad, "item {i}");
            Ok(())
        };
        let result = ordered(
            100_000,
            || (),
            |(), i| fail(bad_make, i).map(|()| i),
            |i, _| i,
            |place, _| fail(bad_write, place),
        );
        let expected = format!("item {}", bad_make.min(bad_write));
        assert_eq!(result.unwrap_err().to_string(), expected);
    }
}
