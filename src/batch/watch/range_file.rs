//! `--follow`: the range of a histogram that another process replaces.

use crate::batch::histogram::Set;
use crate::ops::Operation;
use crate::ops::set_range::SetRange;
use crate::os::Identity;
use crate::os::name::Shown;
use anyhow::{Context, Result};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// An operation with the range of a histogram, as the file of it is now.
pub struct RangeFile<'a> {
    path: PathBuf,
    op: &'a dyn Operation,
    now: Mutex<Now<'a>>,
}

struct Now<'a> {
    /// The file that was read last, whether it was a histogram or not.
    identity: Option<Identity>,
    set_range: Arc<SetRange<'a>>,
}

impl fmt::Debug for RangeFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "RangeFile({})", self.path.shown())
    }
}

impl<'a> RangeFile<'a> {
    /// Reads the histogram at `path` for the first time.
    ///
    /// # Errors
    /// It cannot be read, or does not fit the operation.
    pub fn new(path: &Path, op: &'a dyn Operation) -> Result<RangeFile<'a>> {
        let identity = Identity::at(path);
        let set_range = Arc::new(read(path, op)?);
        Ok(RangeFile {
            path: path.into(),
            op,
            now: Mutex::new(Now {
                identity,
                set_range,
            }),
        })
    }

    /// The operation for a file that is begun now, and a message if it is another than before. Reads the
    /// histogram again if its file has changed; if it cannot be read, the previous range is kept.
    pub fn current(&self) -> (Arc<dyn Operation + '_>, Option<String>) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let identity = Identity::at(&self.path);
        let mut news = None;
        if identity != now.identity {
            now.identity = identity;
            match read(&self.path, self.op) {
                Ok(set_range) => {
                    now.set_range = Arc::new(set_range);
                    let path = self.path.shown();
                    news = Some(format!(
                        "gpuimg: {path} was replaced; using its range from now on"
                    ));
                }
                Err(error) => {
                    news = Some(format!("gpuimg: {error:#}; keeping the previous range"));
                }
            }
        }
        (now.set_range.clone(), news)
    }
}

fn read<'a>(path: &Path, op: &'a dyn Operation) -> Result<SetRange<'a>> {
    let set = Set::read(path)?;
    set.into_counts()
        .and_then(|counts| SetRange::new(op, counts))
        .with_context(|| format!("cannot use the range of {}", path.shown()))
}
