//! The outcome of a run that completed, and errors of usage.

use thiserror::Error;

/// The outcome of a run that did not stop at an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything was done.
    Done,
    /// Some files failed, and were named on standard error.
    SomeFailed,
}

/// An error that the user fixes by typing something else: exit status 2. It reads as the error in it.
#[derive(Debug, Error)]
#[error(transparent)]
pub struct Usage(anyhow::Error);

/// Marks an error as wrong usage.
pub fn usage(error: anyhow::Error) -> anyhow::Error {
    Usage(error).into()
}
