//! Detects inputs that change during a run: their state, as reported by the system, is compared at the end
//! of every pass with that of the first opening.

use super::source::Source;
use super::state::{CHANGED, FileState};
use crate::os::sync::{Mutex, PoisonError};
use anyhow::{Result, ensure};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};

/// The inputs of a run that reads them several times, as its first pass saw them.
#[derive(Debug, Default)]
pub struct Passes(Mutex<HashMap<PathBuf, Vec<FileState>>>);

impl Passes {
    /// Checks at the end of a pass that an input has not changed since it was opened, nor since the first
    /// pass.
    ///
    /// # Errors
    /// It has changed.
    pub fn check(&self, path: &Path, source: &Source) -> Result<()> {
        source.check_unchanged()?;
        let states = source.states();
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match seen.entry(path.into()) {
            Entry::Vacant(entry) => {
                entry.insert(states);
            }
            Entry::Occupied(first) => {
                let first = first.get();
                let mut pairs = states.iter().zip(first);
                let same = pairs.all(|(now, first)| now.is_still(first));
                ensure!(same && states.len() == first.len(), CHANGED);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::thread;
    use std::time::Duration;

    #[test]
    fn a_file_is_what_it_was_until_its_content_may_have_changed() {
        let folder = tempfile::tempdir().expect("folder");
        let (path, other) = (folder.path().join("a"), folder.path().join("b"));
        fs::write(&path, b"one").expect("file");
        let check = |passes: &Passes| passes.check(&path, &Source::open(&path).expect("opens"));
        let linked = Passes::default();
        check(&linked).expect("the first pass");
        check(&linked).expect("the same file");
        fs::hard_link(&path, &other).expect("link");
        check(&linked).expect("another name changes no content");
        let passes = Passes::default();
        check(&passes).expect("the first pass");
        let about = fs::metadata(&path).expect("file");
        let source = Source::open(&path).expect("opens");
        // So that the system's clock continues.
        thread::sleep(Duration::from_millis(20));
        fs::write(&path, b"two").expect("file");
        fs::File::options()
            .write(true)
            .open(&path)
            .and_then(|file| file.set_modified(about.modified()?))
            .expect("time");
        assert!(
            source.check_unchanged().is_err(),
            "its old time does not hide it"
        );
        assert!(check(&passes).is_err());
    }
}
