//! Runs that stop before a system call, so that a test changes something there.

use crate::support::{Run, binary, told};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::path::Path;
use std::process::{Child, Command, Stdio};

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
    let stopped = has_stopped(&child);
    if stopped {
        change();
        kill_process(Pid::from_child(&child), Signal::CONT).expect("it goes on");
    }
    let result = told(child.wait_with_output().expect("it ends"));
    stopped.then_some(result)
}

/// Runs the program on one thread until it stops before the call that `fault` names; `None` if it ends without such a call.
pub fn stop_at(root: &Path, args: &[&str], fault: &str) -> Option<Child> {
    let mut child = Command::new("env")
        .args(["--default-signal=INT,TERM,HUP"])
        .arg(binary())
        .args(args)
        .current_dir(root)
        .env("GPUIMG_DEVICE", "cpu")
        .env("RAYON_NUM_THREADS", "1")
        .env("GPUIMG_FAULT", format!("{fault}=stop"))
        .stderr(Stdio::null())
        .spawn()
        .expect("the program runs");
    if has_stopped(&child) {
        return Some(child);
    }
    child.wait().expect("it ends");
    None
}

/// Runs the program, which is killed before the call that `fault` names; returns whether it makes such a call.
pub fn kill_at(root: &Path, args: &[&str], fault: &str) -> bool {
    let Some(mut child) = stop_at(root, args, fault) else {
        return false;
    };
    child.kill().expect("it is killed");
    child.wait().expect("it ends");
    true
}

/// Waits until a run stops or ends; returns whether it stopped.
fn has_stopped(child: &Child) -> bool {
    let until = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(Pid::from_child(child)), until);
    status.expect("a child").expect("a status").stopped()
}
