//! What the journals of a folder say of earlier runs, and what that means for an output.

use super::line::{Line, Marker};
use super::{Replace, Sight, Verdict, open};
use crate::batch::key::Job;
use crate::batch::naming::JOURNAL;
use crate::files::Identity;
use anyhow::{Context, Result};
use rustix::fs::OFlags;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Bytes of a line at most; a longer one is none of ours.
const LONGEST: u64 = 1 << 16;

const ACROSS: &str = "the range of all inputs cannot be measured once some of them are normalized in place (measure it before, with gpuimg histogram, and give it with --range-from)";
const OTHER_OPTIONS: &str = "an earlier run did it in place with other options, so this one cannot go on with it (without --resume it is done to what is there now)";
const NEITHER: &str = "it is neither what an earlier run in place began with nor what it wrote, so whether it is done is not known (look at it; without --resume it is done to what is there now)";
const DAMAGED: &str = "an earlier run in place found it damaged, and has written what could be read (without --resume it is done to that)";

/// The journals of a folder, as far as they have been read.
#[derive(Debug)]
pub struct History {
    journals: Vec<Journal>,
    records: HashMap<PathBuf, Vec<Record>>,
    /// Whether anything had been done before this run.
    is_new: bool,
    across: bool,
}

#[derive(Debug)]
struct Journal {
    /// Not kept open: a folder may have more journals than a process may open files.
    path: PathBuf,
    /// How many bytes of whole lines have been read.
    read: u64,
    /// How many runs have begun that went on with no other.
    runs: usize,
}

/// A file that was about to get an output's name.
#[derive(Debug)]
struct Record {
    made: Identity,
    input: Option<Identity>,
    damaged: bool,
    /// Whether the verb was the same as now; the verb with all its options; the program.
    same: (bool, bool, bool),
    /// In which journal it stands, and in which of its runs.
    run: (usize, usize),
}

/// What a file is to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Made,
    Input,
    Neither,
}

impl Record {
    /// What a file that was both input and output is now. Where the inode is no longer the same,
    /// length and time decide, if they tell the two apart.
    fn role(&self, there: &Identity) -> Role {
        let made = self.made.resembles(there);
        let input = self.input.is_some_and(|input| input.resembles(there));
        match (made, input) {
            _ if self.made == *there => Role::Made,
            _ if self.input == Some(*there) => Role::Input,
            (true, false) => Role::Made,
            (false, true) => Role::Input,
            _ => Role::Neither,
        }
    }

    /// Whether a file that lies apart from its input is done, and both are as they were.
    fn is_done(&self, there: &Identity, input: Option<Identity>) -> bool {
        let (_, same_options, same_program) = self.same;
        let same_input = (self.input.zip(input)).is_some_and(|(then, now)| then.resembles(&now));
        self.made.resembles(there) && same_options && same_program && same_input && !self.damaged
    }
}

impl History {
    /// Reads all journals of a folder.
    pub fn read(folder: &Path, job: &Job) -> Result<History> {
        let mut history = History {
            journals: Vec::new(),
            records: HashMap::new(),
            is_new: true,
            across: job.across,
        };
        let unread = || format!("cannot read {}", folder.display());
        for entry in fs::read_dir(folder).with_context(unread)? {
            let name = entry.with_context(unread)?.file_name();
            if is_journal(&name) {
                history.journals.push(Journal {
                    path: folder.join(name),
                    read: 0,
                    runs: 0,
                });
            }
        }
        history.refresh(job)?;
        history.is_new = history.records.is_empty();
        Ok(history)
    }

    /// Reads what was added to the journals. A line that is not whole, or not of this program, is
    /// passed over by itself.
    pub fn refresh(&mut self, job: &Job) -> Result<()> {
        let History {
            journals, records, ..
        } = self;
        for (index, journal) in journals.iter_mut().enumerate() {
            let Journal { path, read, runs } = journal;
            if fs::symlink_metadata(&*path)
                .is_ok_and(|about| about.is_file() && about.len() == *read)
            {
                continue;
            }
            let mut take = |line: &[u8]| {
                if let Some((name, line)) = Line::parse(line) {
                    records.entry(name).or_default().push(Record {
                        made: line.made,
                        input: line.input,
                        damaged: line.damaged,
                        same: line.compared(job),
                        run: (index, *runs),
                    });
                } else if serde_json::from_slice(line).is_ok_and(|it: Marker| it == Marker::ANEW) {
                    *runs += 1;
                }
            };
            let unread = || format!("cannot read {}", path.display());
            let mut file = open(path, OFlags::RDONLY).with_context(unread)?;
            *read = lines(&mut file, *read, &mut take).with_context(unread)?;
        }
        Ok(())
    }

    /// What is to become of the output called `name`.
    pub fn verdict(&self, name: &Path, sight: &Sight, overwrite: bool) -> Verdict {
        let (Some(there), Some(records)) = (&sight.output, self.records.get(name)) else {
            return match sight.in_place && self.across && !self.is_new {
                true => Verdict::Refused(ACROSS),
                false => sight.verdict(overwrite),
            };
        };
        if sight.in_place {
            return self.in_place(there, records, sight, overwrite);
        }
        if records.iter().any(|it| it.is_done(there, sight.input)) {
            Verdict::Done
        } else if records.iter().any(|it| it.made == *there) {
            // Our own, but of another input, or with other options.
            Verdict::Make(Replace::Only(*there))
        } else {
            sight.verdict(overwrite)
        }
    }

    /// In place, what is there decides whether it is done, and must never be done twice: only what
    /// the run that is gone on with has begun with is done, and whatever else is left alone.
    fn in_place(
        &self,
        there: &Identity,
        records: &[Record],
        sight: &Sight,
        overwrite: bool,
    ) -> Verdict {
        let current = |it: &&Record| it.same.0 && it.run.1 == self.journals[it.run.0].runs;
        let records: Vec<&Record> = records.iter().filter(current).collect();
        let of_role = |role| records.iter().filter(move |it| it.role(there) == role);
        if let Some(record) = of_role(Role::Made).find(|it| it.same.1) {
            return match record.damaged {
                true => Verdict::Refused(DAMAGED),
                false => Verdict::Done,
            };
        }
        if self.across && !self.is_new {
            return Verdict::Refused(ACROSS);
        }
        if of_role(Role::Made).next().is_some() {
            return Verdict::Refused(OTHER_OPTIONS);
        }
        if records.is_empty() || of_role(Role::Input).next().is_some() {
            return sight.verdict(overwrite);
        }
        Verdict::Refused(NEITHER)
    }
}

/// Whether a file is called as a journal, of all or of a part.
fn is_journal(name: &OsStr) -> bool {
    let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(JOURNAL)) else {
        return false;
    };
    let part = rest.strip_prefix('.').and_then(|it| it.split_once("-of-"));
    let number = |text: &str| text.parse::<u64>().is_ok_and(|n| n.to_string() == text);
    rest.is_empty() || part.is_some_and(|(index, of)| number(index) && number(of))
}

/// Hands out the lines of a file from byte `start` on, and says where the last whole one ends: what
/// comes after it is handed out, too, but may be longer the next time.
fn lines(file: &mut File, start: u64, mut take: impl FnMut(&[u8])) -> std::io::Result<u64> {
    file.seek(SeekFrom::Start(start))?;
    let mut reader = BufReader::new(file);
    let (mut line, mut end, mut at, mut too_long) = (Vec::new(), start, start, false);
    loop {
        line.clear();
        let count = reader.by_ref().take(LONGEST).read_until(b'\n', &mut line)?;
        at += count as u64;
        let whole = line.last() == Some(&b'\n');
        if !too_long && (whole || (count as u64) < LONGEST) && line.len() > 1 {
            take(&line);
        }
        too_long = !whole;
        if whole {
            end = at;
        }
        if count == 0 {
            return Ok(end);
        }
    }
}
