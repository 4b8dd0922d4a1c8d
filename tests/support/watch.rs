//! A watch that runs beside a test, which waits for a result or a line and never for a time.

use crate::support::{Run, binary};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// A watch that runs.
pub struct Watch {
    pub child: Child,
    pub stdout: Arc<Mutex<String>>,
    pub stderr: Arc<Mutex<String>>,
}

/// Collects what a stream says while it runs.
pub fn collected(mut stream: impl Read + Send + 'static) -> Arc<Mutex<String>> {
    let text = Arc::new(Mutex::new(String::new()));
    let all = text.clone();
    thread::spawn(move || {
        let mut some = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut some) {
            let part = String::from_utf8_lossy(&some[..count]).into_owned();
            all.lock().expect("lock").push_str(&part);
        }
    });
    text
}

/// Waits until it is so, which must not take for ever.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(120), "never: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

impl Watch {
    pub fn start(root: &Path, args: &[&str]) -> Watch {
        Watch::start_by(&[], root, args)
    }

    /// As `start`, by another program that runs it.
    pub fn start_by(runner: &[&str], root: &Path, args: &[&str]) -> Watch {
        // Whoever started the tests may ignore signals.
        let mut child = Command::new("env")
            .arg("--default-signal=INT,TERM,HUP")
            .args(runner)
            .arg(binary())
            .args(args)
            .current_dir(root)
            .env_remove("GPUIMG_DEVICE")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let stdout = collected(child.stdout.take().expect("pipe"));
        let stderr = collected(child.stderr.take().expect("pipe"));
        let watch = Watch {
            child,
            stdout,
            stderr,
        };
        watch.says("watching");
        watch
    }

    pub fn stderr(&self) -> String {
        self.stderr.lock().expect("lock").clone()
    }

    pub fn says(&self, text: &str) {
        until(&format!("it says {text}"), || self.stderr().contains(text));
    }

    pub fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("kill");
    }

    /// How it ends by itself.
    pub fn ended(mut self) -> Run {
        let mut status = None;
        until("it ends", || {
            status = self.child.try_wait().expect("wait");
            status.is_some()
        });
        // The readers see the end of the streams soon after.
        until("all is read", || Arc::strong_count(&self.stderr) == 1);
        until("all is read", || Arc::strong_count(&self.stdout) == 1);
        Run {
            code: status.and_then(|it| it.code()).expect("an exit status"),
            stdout: self.stdout.lock().expect("lock").clone(),
            stderr: self.stderr(),
        }
    }

    pub fn end(self) -> Run {
        self.send(Signal::TERM);
        self.ended()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
