//! Signals: SIGINT, SIGTERM and SIGHUP end the run; unfinished outputs are removed, finished ones
//! remain. A signal that was ignored when the process started (`nohup`, background jobs of a shell)
//! stays ignored.

use crate::os;
use crate::os::console;
use crate::os::count::plural;
use crate::os::system::{self, Signals};
use anyhow::{Result, anyhow, bail};
use std::mem;
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

/// Installs the handlers: from now on a signal ends the process in order, with exit status 128 +
/// its number, and a write beyond the limit on file sizes (`ulimit -f`) fails like any other write.
///
/// # Errors
/// No thread can be started.
pub fn listen() -> Result<()> {
    // The thread that serves the handlers also installs them: if it cannot start, signals keep
    // their default action.
    let (ready, installed) = mpsc::channel();
    let serve = move || {
        let signals = Signals::install();
        let failed = signals.as_ref().err().map(|error| error.to_string());
        // The other end waits for this.
        let _ = ready.send(failed);
        if let Some(signal) = signals.ok().and_then(Signals::wait) {
            let in_order = IN_ORDER
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            match in_order {
                Some(end_in_order) => {
                    console::tell_without_waiting(
                        "gpuimg: stopping after the files in progress (send the signal again to stop at once)",
                    );
                    end_in_order();
                }
                None => end(signal),
            }
        }
    };
    thread::Builder::new()
        .name("signals".into())
        .spawn(serve)
        .map_err(|_| anyhow!(NO_THREAD))?;
    match installed.recv()? {
        None => Ok(()),
        Some(error) => bail!("cannot install a signal handler: {error}"),
    }
}

/// What a first signal does instead of ending the process.
type InOrder = Box<dyn FnOnce() + Send>;
static IN_ORDER: Mutex<Option<InOrder>> = Mutex::new(None);

/// Has the first signal call `end`, which is to end the run soon; a second one ends the process.
pub fn end_in_order(end: impl FnOnce() + Send + 'static) {
    *IN_ORDER.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(end));
}

/// The files of the batch that is under way, if another run can continue it, or 0; and those of them that are done.
static FILES: AtomicUsize = AtomicUsize::new(0);
static DONE: AtomicUsize = AtomicUsize::new(0);

/// Begins a batch of so many files that `--resume` can continue; 0 ends it.
pub fn expect(files: usize) {
    DONE.store(0, Ordering::Relaxed);
    FILES.store(files, Ordering::Relaxed);
}

/// Counts a file of the batch that is done.
pub fn one_done() {
    DONE.fetch_add(1, Ordering::Relaxed);
}

/// The lines that a signal prints before it ends the process.
static HELD: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Has a signal print these lines before it ends the process, in place of those of an earlier call.
pub fn hold(lines: impl IntoIterator<Item = String>) {
    *HELD.lock().unwrap_or_else(PoisonError::into_inner) = lines.into_iter().collect();
}

/// The message for a thread that cannot be started.
pub const NO_THREAD: &str =
    "cannot start a thread (a limit on processes or memory, as ulimit -u or -v?)";

fn end(signal: i32) {
    os::forget_unfinished();
    os::remove_temporary_folders();
    for address in os::unfinished_uploads() {
        console::tell_without_waiting(&format!(
            "gpuimg: {address} is unfinished: write it again with --overwrite, or delete its objects"
        ));
    }
    let held = mem::take(&mut *HELD.lock().unwrap_or_else(PoisonError::into_inner));
    for line in held {
        console::tell_without_waiting(&format!("gpuimg: {line}"));
    }
    let name = system::signal_name(signal);
    let (done, files) = (DONE.load(Ordering::Relaxed), FILES.load(Ordering::Relaxed));
    let stay = match files {
        0 => "finished files are complete".into(),
        files => format!(
            "{done} of {} done; run the same command with --resume to continue",
            plural(files, "file")
        ),
    };
    console::tell_without_waiting(&format!("gpuimg: interrupted{name}; {stay}"));
    process::exit(128 + signal);
}
