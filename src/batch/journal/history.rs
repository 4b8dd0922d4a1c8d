//! Reads the journals of a folder and derives verdicts on outputs.

use super::line::{Line, Marker};
use super::{Contents, Replace, Sight, Verdict, open};
use crate::batch::key::Job;
use crate::batch::naming::JOURNAL;
use crate::os::fault::{self, Kind, Reads};
use crate::os::name::Shown;
use crate::os::{Compared, FileRecord, FileState, Identity, InputRecord, Samples};
use anyhow::{Context, Result};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The longest line in bytes; longer lines are not from this program.
const LONGEST: u64 = 1 << 16;

const ACROSS: &str = "the range of all inputs cannot be measured after some of them were normalized in place (measure it first with gpuimg histogram, then use --range-from)";
const OTHER_OPTIONS: &str = "an earlier run processed it in place with different options (run without --resume to process its current content)";
const NEITHER: &str = "it is neither the input nor the result of an earlier run in place, so it is unknown whether it is done (check it; run without --resume to process its current content)";
const DAMAGED: &str = "an earlier run in place found it damaged and wrote what could be read (run without --resume to process that)";

/// The journals of a folder, as far as they have been read.
#[derive(Debug)]
pub struct History {
    journals: Vec<Journal>,
    records: HashMap<PathBuf, Vec<Record>>,
    /// Whether there was no journal before this run.
    is_new: bool,
    across: bool,
}

#[derive(Debug)]
struct Journal {
    /// The path and no open file: a folder may have more journals than a process may open files.
    path: PathBuf,
    /// Bytes of complete lines read so far.
    read: u64,
    /// The number of runs so far that did not resume another.
    runs: usize,
}

/// A record of a file that was about to get an output's name.
#[derive(Debug)]
struct Record {
    output: Identity,
    input: Option<FileRecord>,
    /// Boxed, since few inputs have one.
    samples: Option<Box<Samples>>,
    damaged: bool,
    /// Whether these are the same as now: the subcommand; the subcommand with all options; the
    /// program's version.
    same: (bool, bool, bool),
    /// The index of the journal, and of the run in it.
    run: (usize, usize),
}

/// The role of a file in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Made,
    Input,
    Neither,
}

impl Record {
    /// The role of a file that was both input and output. If the inode has changed, length and time
    /// decide, if they differ between the two.
    fn role(&self, there: &Identity) -> Role {
        let resembles_output = self.output.resembles(there);
        let input = self.input.map(|input| input.identity());
        let resembles_input = input.is_some_and(|input| input.resembles(there));
        match (resembles_output, resembles_input) {
            _ if self.output == *there => Role::Made,
            _ if input == Some(*there) => Role::Input,
            (true, false) => Role::Made,
            (false, true) => Role::Input,
            _ => Role::Neither,
        }
    }

    /// Whether an output apart from its input is finished, and both are unchanged. Where the content of
    /// the input decides and is not known, it is missing in `contents`.
    fn is_done(
        &self,
        there: &Identity,
        input: (&Path, Option<FileState>),
        contents: &mut Contents,
    ) -> bool {
        let (_, same_options, same_program) = self.same;
        if !self.output.resembles(there) || !same_options || !same_program || self.damaged {
            return false;
        }
        let (path, now) = input;
        let Some((then, now)) = self.input.zip(now) else {
            return false;
        };
        let Some(file) = unchanged(&then, path, &now, contents) else {
            return false;
        };
        // Both files one by one: either may have been replaced by an older one.
        let samples = self.samples.as_ref().map(|samples| {
            let path = path.with_file_name(&samples.name);
            let file = unchanged(&samples.file, &path, &FileState::at(&path)?, contents)?;
            Some(Samples {
                name: samples.name.clone(),
                file,
            })
        });
        let samples = match samples {
            Some(None) => return false,
            Some(unchanged) => unchanged,
            None => None,
        };
        let same = file == then && samples.as_ref() == self.samples.as_deref();
        contents.done = (!same).then_some((self.output, InputRecord { file, samples }));
        true
    }
}

/// The record of a file as it is now, if it has the content that it had.
fn unchanged(
    then: &FileRecord,
    path: &Path,
    now: &FileState,
    contents: &mut Contents,
) -> Option<FileRecord> {
    match then.compare(now) {
        Compared::Same => Some(*then),
        Compared::Changed => None,
        Compared::IfItHas(digest) => {
            (contents.digest(path)? == digest).then(|| FileRecord::new(now, digest))
        }
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
        let unread = || format!("cannot read {}", folder.shown());
        let entries = fault::point(Kind::Readdir, folder).and_then(|()| fs::read_dir(folder));
        for entry in entries.with_context(unread)? {
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

    /// Forgets all lines: the next refresh reads them again.
    pub fn forget(&mut self) {
        self.records = HashMap::new();
        for journal in &mut self.journals {
            (journal.read, journal.runs) = (0, 0);
        }
    }

    /// Reads the lines added to the journals. A line that is incomplete or from another program is
    /// skipped.
    pub fn refresh(&mut self, job: &Job) -> Result<()> {
        let History {
            journals, records, ..
        } = self;
        for (index, journal) in journals.iter_mut().enumerate() {
            let Journal { path, read, runs } = journal;
            match fault::symlink_metadata(path) {
                Ok(about) if about.is_file() && about.len() == *read => continue,
                // It was removed, with its folder or alone: a new one is read from its beginning.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    (*read, *runs) = (0, 0);
                    continue;
                }
                _ => {}
            }
            let mut take = |line: &[u8]| {
                if let Some((name, line)) = Line::parse(line) {
                    let of_name = records.entry(name).or_default();
                    // Nearly all outputs have one, and there may be millions.
                    of_name.reserve_exact(1);
                    of_name.push(Record {
                        output: line.made,
                        input: line.input,
                        samples: line.samples.clone().map(Box::new),
                        damaged: line.damaged,
                        same: line.compared(job),
                        run: (index, *runs),
                    });
                } else if serde_json::from_slice(line).is_ok_and(|it: Marker| it == Marker::ANEW) {
                    *runs += 1;
                }
            };
            let unread = || format!("cannot read {}", path.shown());
            let mut file = open(path, File::options().read(true)).with_context(unread)?;
            *read = lines(&mut file, path, *read, &mut take).with_context(unread)?;
        }
        Ok(())
    }

    /// The verdict on the output with this name and its input. It is final if it is `Done`, or if nothing
    /// is missing in `contents`.
    pub fn verdict(
        &self,
        name: &Path,
        input: &Path,
        sight: &Sight,
        overwrite: bool,
        contents: &mut Contents,
    ) -> Verdict {
        let (Some(there), Some(records)) = (&sight.output, self.records.get(name)) else {
            return if sight.in_place && self.across && !self.is_new {
                Verdict::Refused(ACROSS)
            } else {
                sight.verdict(overwrite)
            };
        };
        if sight.in_place {
            return self.in_place(there, records, sight, overwrite);
        }
        // The last one first: the file of an earlier one need not be read.
        let input = (input, sight.input);
        if (records.iter().rev()).any(|it| it.is_done(there, input, contents)) {
            Verdict::Done
        } else if records.iter().any(|it| it.output == *there) {
            // A file of this program, but from another input or with other options.
            Verdict::Make(Replace::Only(*there))
        } else {
            sight.verdict(overwrite)
        }
    }

    /// In place, the file itself shows whether it is done, and it must never be processed twice:
    /// only a file that the resumed run recorded is done, and any other file is left alone.
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
            return if record.damaged {
                Verdict::Refused(DAMAGED)
            } else {
                Verdict::Done
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

/// Whether a name is that of a journal, of a whole batch or of a shard.
fn is_journal(name: &OsStr) -> bool {
    let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(JOURNAL)) else {
        return false;
    };
    let part = rest.strip_prefix('.').and_then(|it| it.split_once("-of-"));
    let number = |text: &str| text.parse::<u64>().is_ok_and(|n| n.to_string() == text);
    rest.is_empty() || part.is_some_and(|(index, of)| number(index) && number(of))
}

/// Passes the lines of the file at `path` from offset `start` on to `take`, and returns the end of the last
/// complete line; the rest after it is passed as well, but may grow later.
pub fn lines(
    file: &mut File,
    path: &Path,
    start: u64,
    take: impl FnMut(&[u8]),
) -> std::io::Result<u64> {
    file.seek(SeekFrom::Start(start))?;
    lines_of(BufReader::new(Reads::new(file, path)), start, take)
}

fn lines_of(
    mut reader: impl BufRead,
    start: u64,
    mut take: impl FnMut(&[u8]),
) -> std::io::Result<u64> {
    let (mut line, mut end, mut at, mut too_long) = (Vec::new(), start, start, false);
    loop {
        line.clear();
        let count = reader.by_ref().take(LONGEST).read_until(b'\n', &mut line)?;
        at += count as u64;
        let whole = line.last() == Some(&b'\n');
        let at_end = !whole && (count as u64) < LONGEST;
        if !too_long && (whole || at_end) && line.len() > 1 {
            take(&line);
        }
        if whole {
            end = at;
        }
        // Not a byte more: another run may be in the middle of this line, and its second half alone
        // would be mistaken for the end of a line that is too long.
        if at_end {
            return Ok(end);
        }
        too_long = !whole;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journals_are_told_by_their_names() {
        let of = |rest: &str| is_journal(OsStr::new(&format!("{JOURNAL}{rest}")));
        assert!(of("") && of(".1-of-3") && of(".12-of-100"));
        for rest in [
            "x", ".old", ".1-of-", ".-of-3", ".x-of-3", ".1-of-x", ".01-of-3", "1-of-3",
        ] {
            assert!(!of(rest), "{rest}");
        }
        assert!(!is_journal(OsStr::new("gpuimg-journal")));
    }

    /// A file that another run appends to: each part is there after the end before it was seen.
    struct Growing(Vec<&'static [u8]>);

    impl Read for Growing {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let Some(part) = self.0.first_mut() else {
                return Ok(0);
            };
            let count = part.read(into)?;
            if count == 0 {
                self.0.remove(0);
            }
            Ok(count)
        }
    }

    #[test]
    fn a_line_read_while_it_was_written_was_lost() {
        let mut seen = Vec::new();
        let growing = BufReader::new(Growing(vec![b"one\ntw", b"o\nthree\n"]));
        let end = lines_of(growing, 7, |line| seen.push(line.to_vec())).expect("read");
        assert_eq!(seen, [b"one\n".to_vec(), b"tw".to_vec()]);
        assert_eq!(end, 7 + 4, "the line that was incomplete is read again");

        // A line that is too long is skipped with its end.
        let mut text = vec![b'x'; 2 * LONGEST as usize + 5];
        text.extend_from_slice(b"\nnext\n");
        let (mut seen, len) = (Vec::new(), text.len() as u64);
        let end = lines_of(&text[..], 0, |line| seen.push(line.to_vec())).expect("read");
        assert_eq!((seen, end), (vec![b"next\n".to_vec()], len));
    }
}
