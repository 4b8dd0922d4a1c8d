//! How a run ends that did not stop at an error, and the errors that are the user's.

use clap::error::ErrorKind;

/// What became of a run that did not stop at an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All was done.
    Done,
    /// Some files failed, and were named on standard error.
    SomeFailed,
}

/// Marks an error as wrong usage: exit status 2.
pub fn usage(error: anyhow::Error) -> anyhow::Error {
    clap::Error::raw(ErrorKind::ValueValidation, format!("{error:#}")).into()
}
