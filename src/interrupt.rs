//! Ctrl-C and other requests to end: what is unfinished is removed, what is finished stays.

use crate::files;
use std::process;

/// Exit status after Ctrl-C, as shells count it: 128 + SIGINT.
const INTERRUPTED: i32 = 130;

/// From now on the process ends by itself when it is asked to. Without this it ends all the same,
/// only that temporary files of file systems that need them may stay.
pub fn listen() {
    let _ = ctrlc::set_handler(|| {
        files::forget_unfinished();
        eprintln!("\ngpuimg: interrupted; files that were finished are whole and stay");
        process::exit(INTERRUPTED);
    });
}
