//! The outcome of a run that completed, and errors of usage.

use clap::error::ErrorKind;

/// The outcome of a run that did not stop at an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything was done.
    Done,
    /// Some files failed, and were named on standard error.
    SomeFailed,
}

/// Marks an error as wrong usage, for exit status 2.
pub fn usage(error: anyhow::Error) -> anyhow::Error {
    clap::Error::raw(ErrorKind::ValueValidation, format!("{error:#}")).into()
}
