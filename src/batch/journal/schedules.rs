//! The journal under every schedule.

use super::{Journal, Sight, Verdict};
use crate::batch::item::Item;
use crate::batch::key::Job;
use crate::engine::CompleteOutput;
use crate::os::sync::explore::explore;
use crate::os::sync::thread;
use crate::os::{Identity, Source};
use serde_json::value::RawValue;
use std::fs;
use std::path::Path;

const WORKERS: usize = 3;
const EACH: usize = 2;

fn job() -> Job {
    Job {
        verb: "normalize",
        across: false,
        key: RawValue::from_string("{}".into()).expect("JSON"),
    }
}

/// An input and an output of a few bytes, both there.
fn item(folder: &Path, index: usize) -> Item {
    let name = format!("{index}.pgm");
    let (input, output) = (folder.join("in"), folder.join(&name));
    fs::write(&output, name.as_bytes()).expect("file");
    Item {
        output: Some(output),
        ..Item::new(input, name.into())
    }
}

/// Lines that workers add while the journal is made shorter are all kept, whole, and once.
#[test]
fn no_line_is_lost_while_the_journal_is_shortened() {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let folder = folder.expect("folder");
    fs::write(folder.path().join("in"), b"in").expect("file");
    let items: Vec<Item> = (0..WORKERS * EACH)
        .map(|index| item(folder.path(), index))
        .collect();
    explore(200, move || {
        let _ = fs::remove_file(folder.path().join(".gpuimg-journal"));
        let open = |resume| Journal::open(folder.path(), None, job(), resume, false);
        let journal = open(true).expect("journal");
        let announce = |item: &Item| {
            let output = item.output.as_ref().expect("named");
            let mut input = Source::open_file(&item.input).expect("there");
            input.keep_digest();
            let finished = CompleteOutput {
                output: Identity::at(output).expect("there"),
                input: input.record().expect("read"),
                damaged: false,
            };
            journal.announce(item, &finished).expect("line");
        };
        // Twice the same: one of the lines is superfluous.
        announce(&items[0]);
        announce(&items[0]);
        thread::scope(|scope| {
            for items in items.chunks(EACH) {
                let announce = &announce;
                scope.spawn(move || items.iter().for_each(announce));
            }
            journal.compact();
            journal.compact();
        });
        let text = fs::read_to_string(folder.path().join(".gpuimg-journal")).expect("journal");
        for line in text.lines() {
            serde_json::from_str::<serde_json::Value>(line).expect("a whole line");
        }
        drop(journal);
        let journal = open(true).expect("journal");
        for item in &items {
            let verdict = journal.verdict(item, &Sight::inspect(item), false);
            assert_eq!(verdict.expect("journal"), Verdict::Done, "{:?}", item.key);
        }
    });
}
