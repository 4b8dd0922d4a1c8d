//! The library's errors.

use crate::engine::Failure;
use crate::gpu;
use crate::os::reason::{Exists, SystemError};
use std::fmt;
use std::io;
use std::path::Path;

/// A result of this library.
pub type Result<T> = std::result::Result<T, Error>;

/// What failed, with which file, and why.
///
/// It displays as the sentence that the command line prints after `gpuimg: `.
///
/// ```
/// let error = gpuimg::read("missing.tif").unwrap_err();
/// assert_eq!(error.to_string(), "cannot read missing.tif: no such file");
/// assert_eq!(error.operation(), Some("read"));
/// assert_eq!(error.path().unwrap(), std::path::Path::new("missing.tif"));
/// assert_eq!(error.reason(), "no such file");
/// assert_eq!(error.io_kind(), Some(std::io::ErrorKind::NotFound));
/// ```
pub struct Error(anyhow::Error);

impl Error {
    pub(crate) fn new(cause: anyhow::Error) -> Error {
        Error(cause)
    }

    /// An argument that cannot be used, for this reason.
    pub(crate) fn argument(why: impl fmt::Display) -> Error {
        Error(anyhow::anyhow!("{why}"))
    }

    fn failure(&self) -> Option<&Failure> {
        self.0.downcast_ref()
    }

    /// What failed: `read`, `write`, or an operation, such as `normalize` (`process` for several of them). `None` for an
    /// argument that cannot be used, and for a device that cannot be used at all.
    pub fn operation(&self) -> Option<&str> {
        self.failure().map(|failure| &*failure.operation)
    }

    /// The file that was read, processed or written; `None` if there is none, as for pixels that were made in memory.
    pub fn path(&self) -> Option<&Path> {
        let path = self.failure().map(|failure| &*failure.path);
        path.filter(|path| !path.as_os_str().is_empty())
    }

    /// The cause alone, without the operation and the file: `no such file`.
    pub fn reason(&self) -> String {
        let all = self.0.chain().map(|cause| cause.to_string());
        match self.failure() {
            Some(failure) => {
                let failure = failure.to_string();
                let causes = all.skip_while(|cause| *cause != failure).skip(1);
                causes.collect::<Vec<String>>().join(": ")
            }
            None => all.collect::<Vec<String>>().join(": "),
        }
    }

    /// The kind of the operating system's error, if it is one: `NotFound`, `AlreadyExists`, `PermissionDenied`, `OutOfMemory` and
    /// others.
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        if self.0.is::<Exists>() {
            return Some(io::ErrorKind::AlreadyExists);
        }
        let mut causes = self.0.chain();
        causes.find_map(|cause| {
            let system = cause.downcast_ref::<SystemError>().map(|error| error.kind);
            let memory = || cause.downcast_ref::<io::Error>().map(io::Error::kind);
            system.or_else(|| memory().filter(|kind| *kind == io::ErrorKind::OutOfMemory))
        })
    }

    /// Whether a GPU failed, or cannot be used although it was asked for.
    pub fn is_gpu(&self) -> bool {
        self.0.is::<gpu::Unusable>() || self.0.is::<gpu::Failed>()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Error")
            .field("operation", &self.operation())
            .field("path", &self.path())
            .field("reason", &self.reason())
            .finish()
    }
}

/// The whole chain is in the sentence, so there is no further source.
impl std::error::Error for Error {}
