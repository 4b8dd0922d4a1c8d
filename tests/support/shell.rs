//! Runs by a shell, and named pipes.

use crate::support::{Run, binary, told};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a shell's `script` in `folder`, with the program as `$0`.
pub fn shell(folder: &Path, script: &str) -> Run {
    let mut command = Command::new("bash");
    command.args(["-c", script]).arg(binary());
    told(command.current_dir(folder).output().expect("a shell"))
}

/// A named pipe in `folder`.
pub fn pipe(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    let made = Command::new("mkfifo").arg(&path).status().expect("mkfifo");
    assert!(made.success());
    path
}
