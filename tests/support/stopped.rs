//! Runs that stop before a system call, so that a test changes something there.

use crate::support::{Run, binary, told};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs the program, which stops before the call that `fault` names (KIND:TEXT:N, as `GPUIMG_FAULT` has it), and
/// lets it go on after `change`; `None` if it makes no such call.
pub fn run_with_change(
    root: &Path,
    args: &[&str],
    fault: &str,
    change: impl FnOnce(),
) -> Option<Run> {
    let child = Command::new(binary())
        .args(args)
        .current_dir(root)
        .env("GPUIMG_DEVICE", "cpu")
        .env("GPUIMG_FAULT", format!("{fault}=stop"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let id = Pid::from_child(&child);
    let until = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(id), until)
        .expect("a child")
        .expect("a status");
    let stopped = status.stopped();
    if stopped {
        change();
        kill_process(id, Signal::CONT).expect("it goes on");
    }
    let result = told(child.wait_with_output().expect("it ends"));
    stopped.then_some(result)
}
