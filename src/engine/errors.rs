//! The sentences for a file that cannot be read, processed or written.

use crate::gpu::Unusable;
use crate::os::name::Shown;
use anyhow::Error;
use std::path::Path;

/// The sentences about one input: what was to be done with which file.
#[derive(Clone, Copy, Debug)]
pub struct Sentences<'a> {
    /// The subcommand's name.
    pub verb: &'static str,
    /// The input's path, or `-` for standard input.
    pub input: &'a Path,
}

impl Sentences<'_> {
    /// `cannot read scan.tif`
    pub fn unread(&self) -> String {
        format!("cannot read {}", name(self.input, "standard input"))
    }

    /// `cannot normalize scan.tif`
    pub fn undone(&self) -> String {
        self.not(self.verb)
    }

    /// `cannot rotate scan.tif`, for one of several operations.
    pub fn not(&self, verb: &str) -> String {
        format!("cannot {verb} {}", name(self.input, "standard input"))
    }

    /// Adds `undone` to an error, unless the GPU cannot be used at all, which concerns no file.
    pub fn failed(&self, error: Error) -> Error {
        match error.is::<Unusable>() {
            true => error,
            false => error.context(self.undone()),
        }
    }
}

/// `cannot write out.png`
pub fn unwritten(output: &Path) -> String {
    format!("cannot write {}", name(output, "standard output"))
}

/// A file's name for people: `-` is the standard `stream`.
fn name(path: &Path, stream: &str) -> String {
    if path == Path::new("-") {
        stream.into()
    } else {
        path.shown().into_owned()
    }
}

/// Whether an error is that of writing this output.
pub fn is_unwritten(error: &Error, path: &Path) -> bool {
    error.to_string() == unwritten(path)
}
