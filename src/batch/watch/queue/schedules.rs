//! The queue of a watch under every schedule. Here no wait ends by its time limit, so a wake-up that is
//! lost, which costs a user a second, is a deadlock.

use super::{Arrivals, End};
use crate::batch::item::Item;
use crate::batch::workers::Next;
use crate::os::sync::explore::explore;
use crate::os::sync::{Mutex, thread};
use std::path::PathBuf;
use std::time::Duration;

const FILES: usize = 4;

/// A name where no file is: what the queue knows of a file's state does not matter here.
fn item(index: usize) -> Item {
    let name = PathBuf::from(format!("{index}.pgm"));
    Item::listed(PathBuf::from("/nonexistent").join(&name), name)
}

/// Three workers take every file once and end, while files come, one is refused, and the watch ends.
#[test]
fn each_file_is_taken_once_and_no_wake_up_is_lost() {
    explore(2000, || {
        let arrivals = Arrivals::new(Duration::ZERO);
        let taken = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for worker in 0..3 {
                let (arrivals, taken) = (&arrivals, &taken);
                scope.spawn(move || {
                    loop {
                        match arrivals.next(worker) {
                            Next::Item(arrival) => {
                                let name = arrival.item.key.clone();
                                taken.lock().expect("lock").push(name);
                                arrivals.finished(&arrival, true);
                            }
                            Next::Idle => {}
                            Next::End => break,
                        }
                    }
                });
            }
            for index in 0..FILES {
                arrivals.push(item(index), None);
                // Pushed again while it waits or is in progress: it is one file.
                arrivals.push(item(0), None);
            }
            arrivals.refuse(item(FILES), "not wanted".into());
            arrivals.end(End::Drained);
        });
        let mut taken = taken.into_inner().expect("lock");
        taken.sort_unstable();
        // The first may be done before it is pushed again.
        taken.dedup();
        assert_eq!(taken.len(), FILES + 1);
        assert_eq!(arrivals.waiting(), 0);
    });
}

/// A file that comes alone is taken, by the first worker, without another event.
#[test]
fn a_file_that_comes_alone_is_not_left() {
    explore(2000, || {
        let arrivals = Arrivals::new(Duration::ZERO);
        thread::scope(|scope| {
            for worker in 0..3 {
                let arrivals = &arrivals;
                scope.spawn(move || {
                    while let Next::Item(arrival) = arrivals.next(worker) {
                        arrivals.finished(&arrival, true);
                        // What a keeper does when all is done.
                        arrivals.end(End::Drained);
                    }
                });
            }
            arrivals.push(item(0), None);
        });
    });
}

/// An end at once is seen by every worker, and leaves what waits.
#[test]
fn an_end_at_once_reaches_all() {
    explore(2000, || {
        let arrivals = Arrivals::new(Duration::ZERO);
        thread::scope(|scope| {
            for worker in 0..3 {
                let arrivals = &arrivals;
                scope.spawn(move || {
                    while let Next::Item(arrival) = arrivals.next(worker) {
                        arrivals.finished(&arrival, true);
                    }
                });
            }
            arrivals.push(item(0), None);
            arrivals.push(item(1), None);
            arrivals.end(End::AtOnce);
        });
    });
}
