//! `--follow`: the range of a histogram that another process replaces.

use crate::batch::histogram::Set;
use crate::files::Identity;
use crate::name::Shown;
use crate::ops::Operation;
use crate::ops::of_set::OfSet;
use anyhow::{Context, Result};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// An operation that may be another one for every file.
pub trait Current: fmt::Debug + Sync {
    /// The operation for a file that is begun now, and a sentence if it is another than before.
    fn current(&self) -> (Arc<dyn Operation + '_>, Option<String>);
}

/// An operation with the range of a histogram, as the file of it is now.
pub struct Follow<'a> {
    path: PathBuf,
    op: &'a dyn Operation,
    now: Mutex<Now<'a>>,
}

struct Now<'a> {
    /// The file that was read last, whether it was a histogram or not.
    identity: Option<Identity>,
    of_set: Arc<OfSet<'a>>,
}

impl fmt::Debug for Follow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Follow({})", self.path.shown())
    }
}

impl<'a> Follow<'a> {
    /// Reads the histogram at `path` for the first time.
    ///
    /// # Errors
    /// It cannot be read, or does not fit the operation.
    pub fn new(path: &Path, op: &'a dyn Operation) -> Result<Follow<'a>> {
        let identity = Identity::of(path);
        let of_set = Arc::new(read(path, op)?);
        Ok(Follow {
            path: path.into(),
            op,
            now: Mutex::new(Now { identity, of_set }),
        })
    }
}

impl Current for Follow<'_> {
    /// Reads the histogram again if its file has changed. One that cannot be read changes nothing: the
    /// range before is kept.
    fn current(&self) -> (Arc<dyn Operation + '_>, Option<String>) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let identity = Identity::of(&self.path);
        let mut news = None;
        if identity != now.identity {
            now.identity = identity;
            match read(&self.path, self.op) {
                Ok(of_set) => {
                    now.of_set = Arc::new(of_set);
                    let path = self.path.shown();
                    news = Some(format!(
                        "gpuimg: {path} was replaced, and its range is taken"
                    ));
                }
                Err(error) => {
                    news = Some(format!("gpuimg: {error:#}; the range before is kept"));
                }
            }
        }
        (now.of_set.clone(), news)
    }
}

fn read<'a>(path: &Path, op: &'a dyn Operation) -> Result<OfSet<'a>> {
    let set = Set::read(path)?;
    set.into_counts()
        .and_then(|counts| OfSet::new(op, counts))
        .with_context(|| format!("no range from {}", path.shown()))
}
