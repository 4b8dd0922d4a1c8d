//! A disk that keeps only what was synced: files and folders as programs see them, and as they are after a power cut, of
//! which there are many. What was not synced may be there or not, each change separately, in any order: less than any
//! file system promises.

use super::trace::Call;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fs, mem};

/// A file by its number, or a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    File(usize),
    Folder,
}

/// A file's bytes as programs see them, and as they are on the disk.
#[derive(Clone, Debug, Default)]
struct Content {
    seen: Vec<u8>,
    kept: Vec<u8>,
}

/// A change of a folder's entries: a name that is given, taken away, or both at once.
#[derive(Clone, Debug)]
struct Change {
    gone: Option<PathBuf>,
    come: Option<(PathBuf, Node)>,
}

/// The disk of a run, all paths below its folder.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    /// The run's folder, which calls may name or not.
    root: PathBuf,
    files: Vec<Content>,
    /// What programs see.
    names: BTreeMap<PathBuf, Node>,
    /// What is on the disk, and what is not there for sure yet, by folder.
    kept: BTreeMap<PathBuf, Node>,
    pending: Vec<(PathBuf, Change)>,
    /// Open files and folders: by descriptor the node or path, and where the next write goes.
    open: HashMap<i64, (Opened, usize)>,
    /// When each of the files that were there at the beginning was changed.
    pub times: HashMap<Vec<u8>, SystemTime>,
}

#[derive(Clone, Debug)]
enum Opened {
    File(usize, bool),
    Folder(PathBuf),
}

/// How much there is of bytes that were not synced.
#[derive(Clone, Copy, Debug)]
pub enum Unsynced {
    Lost,
    Kept,
    /// Half of what came after the end, the rest as it was.
    Torn,
    /// The length, but no byte.
    Zeros,
}

/// The files after a power cut.
pub type State = BTreeMap<PathBuf, Vec<u8>>;

impl Disk {
    /// All that is in a folder, safely on the disk.
    pub fn of(root: &Path) -> Disk {
        let mut disk = Disk {
            root: fs::canonicalize(root).expect("folder"),
            ..Disk::default()
        };
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(root.join(&folder)).expect("folder") {
                let entry = entry.expect("entry");
                let path = folder.join(entry.file_name());
                if entry.path().is_dir() {
                    disk.names.insert(path.clone(), Node::Folder);
                    folders.push(path);
                } else {
                    let bytes = fs::read(entry.path()).expect("file");
                    disk.remember_time(&entry.path(), &bytes);
                    let number = disk.file(bytes.clone());
                    disk.files[number].kept = bytes;
                    disk.names.insert(path, Node::File(number));
                }
            }
        }
        disk.kept = disk.names.clone();
        disk
    }

    /// Remembers when a file of these bytes was changed: a file that survives keeps its time.
    pub fn remember_time(&mut self, path: &Path, bytes: &[u8]) {
        let about = fs::metadata(path).and_then(|about| about.modified());
        self.times.insert(bytes.to_vec(), about.expect("time"));
    }

    /// A path of a call, below the run's folder.
    fn path(&self, call: &Call, place: usize) -> PathBuf {
        let path = Path::new(call.text(place));
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        let is_relative = call.name.ends_with("at") || call.name.ends_with("at2");
        let number = call.words.get(place).and_then(|word| word.parse().ok());
        match number
            .filter(|_| is_relative)
            .and_then(|it: i64| self.open.get(&it))
        {
            Some((Opened::Folder(folder), _)) => match folder.join(below).components().collect() {
                path if path == PathBuf::new() => PathBuf::from("."),
                path => path,
            },
            _ => below.to_path_buf(),
        }
    }

    fn file(&mut self, seen: Vec<u8>) -> usize {
        let kept = Vec::new();
        self.files.push(Content { seen, kept });
        self.files.len() - 1
    }

    fn change(&mut self, change: Change) {
        let path = change
            .gone
            .iter()
            .chain(change.come.iter().map(|(path, _)| path))
            .next();
        let folder = path
            .and_then(|path| path.parent())
            .expect("a path")
            .to_path_buf();
        if let Some(path) = &change.gone {
            self.names.remove(path);
        }
        if let Some((path, node)) = &change.come {
            self.names.insert(path.clone(), *node);
        }
        self.pending.push((folder, change));
    }

    /// Does what a call has done; says whether anything on the disk could be another now.
    pub fn act(&mut self, call: &Call) -> bool {
        match call.name.as_str() {
            "openat" | "open" => self.open(call),
            "write" | "writev" | "pwrite64" | "pwritev" | "pwritev2" => self.write(call),
            "ftruncate" => {
                if let Some((Opened::File(number, _), _)) = self.open.get(&call.number(0)) {
                    self.files[*number].seen.resize(call.number(1) as usize, 0);
                }
                true
            }
            "fallocate" => {
                if let Some((Opened::File(number, _), _)) = self.open.get(&call.number(0)) {
                    let end = (call.number(2) + call.number(3)) as usize;
                    let seen = &mut self.files[*number].seen;
                    seen.resize(seen.len().max(end), 0);
                }
                true
            }
            "fsync" | "fdatasync" => self.sync(call),
            "linkat" | "link" => {
                let node = match call.text(0).strip_prefix("/proc/self/fd/") {
                    None => self.names[&self.path(call, 0)],
                    Some(number) => match self.open.get(&number.parse().expect("a number")) {
                        Some((Opened::File(file, _), _)) => Node::File(*file),
                        other => panic!("a link to {other:?}: {call:?}"),
                    },
                };
                let come = Some((self.path(call, 1), node));
                self.change(Change { gone: None, come });
                true
            }
            "rename" | "renameat" | "renameat2" => {
                let from = self.path(call, 0);
                let node = self.names[&from];
                let come = Some((self.path(call, 1), node));
                let gone = Some(from);
                self.change(Change { gone, come });
                true
            }
            "unlink" | "unlinkat" => {
                let gone = self.path(call, 0);
                if self.names.contains_key(&gone) {
                    let gone = Some(gone);
                    self.change(Change { gone, come: None });
                }
                true
            }
            "mkdir" | "mkdirat" => {
                let come = Some((self.path(call, 0), Node::Folder));
                self.change(Change { gone: None, come });
                true
            }
            "close" => {
                self.open.remove(&call.number(0));
                false
            }
            // Nothing of the kind is done to files of the run; a copy would be missed.
            name => {
                let known = self.open.contains_key(&call.number(0));
                assert!(!known, "{name} is not understood: {call:?}");
                false
            }
        }
    }

    fn open(&mut self, call: &Call) -> bool {
        let path = self.path(call, 0);
        let opened = match self.names.get(&path) {
            _ if call.has("O_TMPFILE") => Some(Opened::File(self.file(Vec::new()), false)),
            Some(Node::Folder) => Some(Opened::Folder(path)),
            Some(Node::File(number)) => Some(Opened::File(*number, call.has("O_APPEND"))),
            None if path == Path::new(".") => Some(Opened::Folder(PathBuf::new())),
            None if call.has("O_CREAT") && path.is_relative() => {
                let number = self.file(Vec::new());
                let come = Some((path, Node::File(number)));
                self.change(Change { gone: None, come });
                Some(Opened::File(number, call.has("O_APPEND")))
            }
            None => None,
        };
        self.open.remove(&call.result);
        if let Some(opened) = opened {
            if let (Opened::File(number, _), true) = (&opened, call.has("O_TRUNC")) {
                self.files[*number].seen.clear();
            }
            self.open.insert(call.result, (opened, 0));
        }
        call.has("O_CREAT") || call.has("O_TRUNC")
    }

    fn write(&mut self, call: &Call) -> bool {
        let Some((Opened::File(number, appends), at)) = self.open.get_mut(&call.number(0)) else {
            return false;
        };
        let bytes = &call.texts.concat()[..call.result as usize];
        let seen = &mut self.files[*number].seen;
        let start = match call.name.as_str() {
            "pwrite64" | "pwritev" => call.words.last().and_then(|word| word.parse().ok()),
            "pwritev2" => call
                .words
                .iter()
                .rev()
                .nth(1)
                .and_then(|word| word.parse().ok()),
            _ if *appends => Some(seen.len()),
            _ => Some(mem::replace(at, *at + bytes.len())),
        };
        let start = start.expect("an offset");
        seen.resize(seen.len().max(start + bytes.len()), 0);
        seen[start..start + bytes.len()].copy_from_slice(bytes);
        true
    }

    fn sync(&mut self, call: &Call) -> bool {
        match self.open.get(&call.number(0)) {
            Some((Opened::File(number, _), _)) => {
                let content = &mut self.files[*number];
                content.kept = content.seen.clone();
            }
            Some((Opened::Folder(folder), _)) => {
                let (folder, pending) = (folder.clone(), mem::take(&mut self.pending));
                for (of, change) in pending {
                    match of == folder {
                        true => made(&mut self.kept, &change),
                        false => self.pending.push((of, change)),
                    }
                }
            }
            None => panic!("a sync of what is not known: {call:?}"),
        }
        true
    }

    /// What may be there after a power cut now: nothing that was not synced, all, or all but one change, or one alone,
    /// with bytes in each of the ways.
    pub fn states(&self) -> Vec<State> {
        let count = self.pending.len();
        let mut chosen: Vec<Vec<bool>> = vec![vec![false; count], vec![true; count]];
        for one in 0..count {
            chosen.push((0..count).map(|it| it == one).collect());
            chosen.push((0..count).map(|it| it != one).collect());
        }
        // Of three at least: what comes first, without the rest.
        chosen.extend((2..count).map(|first| (0..count).map(|it| it < first).collect()));
        let ways = [
            Unsynced::Lost,
            Unsynced::Kept,
            Unsynced::Torn,
            Unsynced::Zeros,
        ];
        let mut states: Vec<State> = Vec::new();
        for chosen in chosen {
            let mut names = self.kept.clone();
            for ((_, change), _) in self.pending.iter().zip(chosen).filter(|(_, it)| *it) {
                made(&mut names, change);
            }
            for way in ways {
                let state = self.state(&names, way);
                if !states.contains(&state) {
                    states.push(state);
                }
            }
        }
        states
    }

    fn state(&self, names: &BTreeMap<PathBuf, Node>, way: Unsynced) -> State {
        let mut state = State::new();
        for (path, node) in names {
            // What is in a folder that is gone is gone.
            let is_missing =
                |folder: &&Path| !folder.as_os_str().is_empty() && !names.contains_key(*folder);
            let (Node::File(number), None) = (node, path.ancestors().skip(1).find(is_missing))
            else {
                continue;
            };
            let Content { seen, kept } = &self.files[*number];
            state.insert(
                path.clone(),
                match way {
                    Unsynced::Kept => seen.clone(),
                    _ if seen == kept => kept.clone(),
                    Unsynced::Lost => kept.clone(),
                    Unsynced::Torn => {
                        let end = kept.len() + seen.len().saturating_sub(kept.len()) / 2;
                        let mut torn = kept.clone();
                        torn.extend(seen.get(kept.len()..end).unwrap_or_default());
                        torn
                    }
                    Unsynced::Zeros => {
                        let mut zeros = kept.clone();
                        zeros.resize(seen.len(), 0);
                        zeros
                    }
                },
            );
        }
        state
    }
}

/// Makes a change of names.
fn made(names: &mut BTreeMap<PathBuf, Node>, change: &Change) {
    if let Some(path) = &change.gone {
        names.remove(path);
    }
    if let Some((path, node)) = &change.come {
        names.insert(path.clone(), *node);
    }
}
