//! The operating system's errors in the user's words.

use std::io;

/// An operating system's error in plain words, without its number.
pub fn plain(error: io::Error) -> anyhow::Error {
    anyhow::anyhow!(reason(&error))
}

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
