//! How a run ends that did not stop at an error, and the errors that are the user's.

use std::error::Error;
use std::fmt;

/// What became of a run that did not stop at an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All was done.
    Done,
    /// Some files failed, and were named on standard error.
    SomeFailed,
}

/// Wrong usage that the parser of arguments cannot see: exit status 2.
#[derive(Debug)]
pub struct WrongUsage(String);

impl Error for WrongUsage {}

impl fmt::Display for WrongUsage {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Marks an error as wrong usage.
pub fn usage(error: anyhow::Error) -> anyhow::Error {
    WrongUsage(format!("{error:#}")).into()
}
