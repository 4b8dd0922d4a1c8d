//! The operating system's errors in the user's words.

use std::io;
use thiserror::Error;

/// An operating system's error in plain words, without its number.
#[derive(Debug, Error)]
#[error("{text}")]
pub struct SystemError {
    /// What kind of error it is.
    pub kind: io::ErrorKind,
    text: String,
}

/// An operating system's error in plain words, without its number.
pub fn plain(error: io::Error) -> anyhow::Error {
    let (kind, text) = (error.kind(), reason(&error));
    SystemError { kind, text }.into()
}

/// The error for an output whose name another file has.
pub fn exists() -> anyhow::Error {
    plain(io::ErrorKind::AlreadyExists.into())
}

/// The reason why an existing output is not written, found before the input is read.
#[derive(Debug, Error)]
#[error("it already exists (use --overwrite to replace it)")]
pub struct Exists;

/// The text of an operating system's error, in plain words.
pub fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        io::ErrorKind::StorageFull => "no space left on the disk".into(),
        io::ErrorKind::FileTooLarge => {
            "larger than the file system or a limit (ulimit -f) allows".into()
        }
        io::ErrorKind::BrokenPipe => "its reader has closed it".into(),
        io::ErrorKind::AlreadyExists => "it already exists (use --overwrite to replace it)".into(),
        _ => {
            let text = error.to_string();
            text.split(" (os error")
                .next()
                .unwrap_or(&text)
                .to_lowercase()
        }
    }
}

/// Whether an error means that a file does not exist. Other errors, such as those of network file systems, do
/// not mean that.
pub fn is_absence(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}
