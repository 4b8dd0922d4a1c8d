//! The lock of a journal. A run that writes to a journal shares its lock; a run that replaces the
//! journal holds the lock alone for a moment. Whoever may read the file may lock it, so no run waits
//! forever.

use crate::batch::options::seconds_from;
use crate::os::console;
use crate::os::name::Shown;
use crate::os::system;
use anyhow::{Result, bail};
use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// The time between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// How long a run waits before it reports that.
const SILENT: Duration = Duration::from_secs(1);

/// How long a run waits before it gives up; `GPUIMG_LOCK_WAIT` sets it for tests.
const PATIENCE: Duration = Duration::from_secs(30);

/// Shares the lock of the journal `file`, which was opened at `path`. On a file system without locks no
/// journal is ever replaced, and none is needed.
///
/// # Errors
/// Another process holds the lock for too long.
pub fn share(file: &File, path: &Path) -> Result<()> {
    let patience = seconds_from("GPUIMG_LOCK_WAIT").unwrap_or(PATIENCE);
    let silent = SILENT.min(patience / 2);
    let (begun, mut has_spoken) = (Instant::now(), false);
    while !try_share(file) {
        let waited = begun.elapsed();
        if waited >= patience {
            bail!(
                "{} has held the lock for {} s (stop that process, or write to another folder)",
                holder(file),
                patience.as_secs_f64()
            );
        }
        if waited >= silent && !has_spoken {
            has_spoken = true;
            console::tell(&format!(
                "gpuimg: waiting at most {2} s for {0}, which has locked {1}",
                holder(file),
                path.shown(),
                patience.as_secs_f64()
            ));
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Shares the lock if nobody holds it alone; whether that is so, or there are no locks here.
pub fn try_share(file: &File) -> bool {
    !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// The process that holds the lock alone, as far as the system reports it.
fn holder(file: &File) -> String {
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let Some(pid) =
        system::name_in_lock_table(file).and_then(|place| pid_of_holder(&locks, &place))
    else {
        return "another process".into();
    };
    match fs::read_to_string(format!("/proc/{pid}/comm")) {
        Ok(name) => format!("process {pid} ({})", name.trim_end()),
        Err(_) => format!("process {pid}"),
    }
}

/// The process that `/proc/locks` has for an exclusive `flock` of the file at `place`; none for a process
/// of another container, which has no number here.
fn pid_of_holder(locks: &str, place: &str) -> Option<u32> {
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        match fields[..] {
            [_, "FLOCK", _, "WRITE", pid, at, ..] if at == place => pid.parse().ok(),
            _ => None,
        }
        .filter(|pid| *pid > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_lock() {
        let locks = "1: POSIX  ADVISORY  WRITE 11 fe:01:5 0 EOF\n\
                     2: FLOCK  ADVISORY  READ 12 fe:01:5 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 13 fe:01:5 0 EOF\n\
                     3: -> FLOCK  ADVISORY  WRITE 14 fe:01:6 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 0 fe:01:7 0 EOF\n\
                     5: FLOCK  ADVISORY  WRITE -1 fe:01:8 0 EOF\n";
        assert_eq!(pid_of_holder(locks, "fe:01:5"), Some(13));
        for place in ["fe:01:6", "fe:01:7", "fe:01:8", "fe:01:9", ""] {
            assert_eq!(pid_of_holder(locks, place), None, "{place}");
        }
    }
}
