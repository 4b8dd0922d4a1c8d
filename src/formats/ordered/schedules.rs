//! The ordered writer under every schedule, its workers on threads instead of in a pool.

use super::OrderedWriter;
use crate::os::sync::atomic::{AtomicUsize, Ordering};
use crate::os::sync::explore::explore;
use crate::os::sync::{Mutex, thread};
use anyhow::{Result, ensure};

const THREADS: usize = 3;

/// The largest allowed distance of a piece that is begun from the next one in order.
const AHEAD: usize = 4;

/// Pieces `0..count`, of `index + 1` bytes each, by workers of which each fails at `bad`. Returns what
/// was written, in the order of its place, and how many workers failed.
fn run(count: usize, bad: Option<usize>) -> (Vec<(u64, Vec<u8>)>, usize) {
    let (mut seen, passed) = (Vec::new(), AtomicUsize::new(0));
    let pass = |piece: &mut Vec<u8>, _| {
        seen.push(piece[0]);
        passed.fetch_add(1, Ordering::SeqCst);
    };
    let writer = OrderedWriter::new(count, 100, AHEAD, pass);
    let (written, failed) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let make = |index: usize, piece: &mut Vec<u8>| -> Result<()> {
                    let before = passed.load(Ordering::SeqCst);
                    assert!(index < before + AHEAD, "{index} is begun after {before}");
                    ensure!(bad != Some(index), "piece {index}");
                    piece.clear();
                    piece.resize(index + 1, index as u8);
                    Ok(())
                };
                let write = |piece: &[u8], offset| {
                    let mut written = written.lock().expect("lock");
                    written.push((offset, piece.to_vec()));
                    Ok(())
                };
                if writer.work(Vec::new, make, write).is_err() {
                    failed.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    drop(writer);
    assert!(seen.iter().map(|&it| usize::from(it)).eq(0..seen.len()));
    let mut written = written.into_inner().expect("lock");
    written.sort_unstable();
    (written, failed.into_inner())
}

/// Every piece is passed once, in order, and written at its place.
#[test]
fn pieces_lie_in_order_whoever_made_them() {
    explore(1000, || {
        let (written, failed) = run(9, None);
        assert_eq!((written.len(), failed), (9, 0));
        let mut end = 100;
        for (index, (offset, piece)) in written.iter().enumerate() {
            assert_eq!(
                (*offset, &piece[..]),
                (end, &vec![index as u8; index + 1][..])
            );
            end += piece.len() as u64;
        }
    });
}

/// A worker that fails ends the others, also those that wait for its piece.
#[test]
fn a_failure_wakes_everyone() {
    explore(1000, || {
        let (written, failed) = run(40, Some(2));
        assert_eq!(failed, 1);
        assert!(written.len() <= 2);
    });
}
