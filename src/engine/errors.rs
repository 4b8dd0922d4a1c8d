//! The messages for a file that cannot be read, processed or written.

use crate::gpu::Unusable;
use crate::os::name::Shown;
use anyhow::Error;
use std::fmt;
use std::path::Path;

/// The messages about one input: what was to be done with which file.
#[derive(Clone, Copy, Debug)]
pub struct Messages<'a> {
    /// The subcommand's name.
    pub verb: &'static str,
    /// The input's path, or `-` for standard input.
    pub input: &'a Path,
}

impl Messages<'_> {
    /// `cannot read scan.tif`
    pub fn cannot_read(&self) -> String {
        format!("cannot read {}", name(self.input, "standard input"))
    }

    /// `cannot normalize scan.tif`
    pub fn cannot_process(&self) -> String {
        self.cannot(self.verb)
    }

    /// `cannot rotate scan.tif`, for one of several operations.
    pub fn cannot(&self, verb: &str) -> String {
        format!("cannot {verb} {}", name(self.input, "standard input"))
    }

    /// Adds `cannot normalize scan.tif` to an error, unless the GPU cannot be used at all, which concerns no file.
    pub fn add_context(&self, error: Error) -> Error {
        if error.is::<Unusable>() {
            error
        } else {
            error.context(self.cannot_process())
        }
    }
}

/// The operation that failed: writing an output. Its text is `cannot write out.png`.
#[derive(Debug)]
pub struct CannotWrite(String);

impl fmt::Display for CannotWrite {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "cannot write {}", self.0)
    }
}

/// The context of an error of writing this output.
pub fn cannot_write(output: &Path) -> CannotWrite {
    CannotWrite(name(output, "standard output"))
}

/// A file's name for people: `-` is the standard `stream`.
fn name(path: &Path, stream: &str) -> String {
    if path == Path::new("-") {
        stream.into()
    } else {
        path.shown().into_owned()
    }
}

/// Whether an error is that of writing an output.
pub fn is_write_error(error: &Error) -> bool {
    error.is::<CannotWrite>()
}
