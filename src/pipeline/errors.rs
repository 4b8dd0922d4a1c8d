//! The sentences for a file that cannot be read, processed or written.

use crate::device::Unusable;
use crate::ops::Operation;
use anyhow::Error;
use std::path::Path;

/// A file's name for people: `-` is standard input or output.
fn name(path: &Path) -> String {
    if path == Path::new("-") {
        "the standard stream".into()
    } else {
        path.display().to_string()
    }
}

pub fn unread(input: &Path) -> String {
    format!("cannot read {}", name(input))
}

pub fn undone(op: &dyn Operation, input: &Path) -> String {
    format!("cannot {} {}", op.name(), name(input))
}

/// Adds to an error the operation and the file that it concerns, unless the GPU cannot be used at
/// all.
pub fn failed(error: Error, op: &dyn Operation, input: &Path) -> Error {
    match error.is::<Unusable>() {
        true => error,
        false => error.context(undone(op, input)),
    }
}

pub fn unwritten(output: &Path) -> String {
    format!("cannot write {}", name(output))
}
