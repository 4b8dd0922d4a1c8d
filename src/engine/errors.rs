//! Describes what failed: reading, processing or writing a file. Messages and the library's errors are built from it.

use crate::gpu::Unusable;
use crate::os::name::Shown;
use anyhow::Error;
use std::fmt;
use std::path::{Path, PathBuf};

/// What failed. It is the context of an error that says why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// `read`, `write`, or the verb: `normalize`.
    pub operation: String,
    /// The file, `-` for a standard stream, or nothing for pixels in memory.
    pub path: PathBuf,
}

impl Failure {
    /// A failure of an operation on a file.
    pub fn new(operation: &str, path: &Path) -> Failure {
        Failure {
            operation: operation.into(),
            path: path.into(),
        }
    }

    /// What failed according to an error, and the reason; `None` if the error does not begin with what failed.
    pub fn find_in(error: &Error) -> Option<(&Failure, String)> {
        let failure = error.downcast_ref::<Failure>()?;
        let reasons: Vec<String> = error.chain().skip(1).map(ToString::to_string).collect();
        let is_outermost = error.to_string() == failure.to_string();
        (is_outermost && !reasons.is_empty()).then(|| (failure, reasons.join(": ")))
    }
}

/// `cannot normalize scan.tif`
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let shown = self.path.shown();
        let name = match &*shown {
            "-" if self.operation == "write" => "standard output",
            "-" => "standard input",
            "" => "the image",
            name => name,
        };
        write!(f, "cannot {} {name}", self.operation)
    }
}

/// Makes the failures of one input from its path and the verb.
#[derive(Clone, Copy, Debug)]
pub struct Messages<'a> {
    /// The subcommand's name.
    pub verb: &'static str,
    /// The input's path, or `-` for standard input.
    pub input: &'a Path,
}

impl Messages<'_> {
    /// `cannot read scan.tif`
    pub fn cannot_read(&self) -> Failure {
        self.cannot("read")
    }

    /// `cannot normalize scan.tif`
    pub fn cannot_process(&self) -> Failure {
        self.cannot(self.verb)
    }

    /// `cannot rotate scan.tif`, for one of several operations.
    pub fn cannot(&self, verb: &str) -> Failure {
        Failure::new(verb, self.input)
    }

    /// Adds `cannot normalize scan.tif` to an error. An error about a GPU that cannot be used at all stays as it is, because it
    /// is not about a file.
    pub fn add_context(&self, error: Error) -> Error {
        if error.is::<Unusable>() {
            error
        } else {
            error.context(self.cannot_process())
        }
    }
}

/// `cannot write out.png`
pub fn cannot_write(output: &Path) -> Failure {
    Failure::new("write", output)
}

/// Whether an error is that of writing this output.
pub fn is_write_error(error: &Error, path: &Path) -> bool {
    error.downcast_ref() == Some(&cannot_write(path))
}
