//! Signals, lost terminals and lost outputs: each test is named after what went wrong.

use crate::support::batch::pgm;
use crate::support::shell::{pipe, shell};
use crate::support::{Run, binary, folder, listing, own_copy, run, told};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::fs::{self, File, OpenOptions};
use std::io::{self, PipeWriter, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How a run ended, which must not take for ever.
fn code(child: &mut Child) -> Option<i32> {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(60) {
        if let Some(status) = child.try_wait().expect("wait") {
            return status.code();
        }
        thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("kill");
    panic!("it does not end");
}

/// A run that waits for its input, so that it is under way and has its handlers. Whoever started the
/// tests may ignore signals (`nohup`, a shell's background job), and no shell can undo that: `env` does.
fn waiting(folder: &Path, stderr: Stdio, before: &str) -> (Child, File) {
    waiting_with(folder, stderr, before, "sum in")
}

/// As `waiting`, with these arguments, which name the input `in`.
fn waiting_with(folder: &Path, stderr: Stdio, before: &str, args: &str) -> (Child, File) {
    let path = pipe(folder, "in");
    let mut child = Command::new("env")
        .args(["--default-signal=INT,TERM,HUP", "sh", "-c"])
        .arg(format!("{before} exec \"$0\" {args}"))
        .arg(binary())
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(stderr)
        .spawn()
        .expect("the program runs");
    // There is no opening it before there is one who reads.
    let mut options = OpenOptions::new();
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    options.write(true).custom_flags(flags);
    loop {
        if let Ok(input) = options.open(&path) {
            return (child, input);
        }
        let ended = child.try_wait().expect("wait");
        assert_eq!(ended, None, "it ended before it read");
        thread::sleep(Duration::from_millis(5));
    }
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("kill");
}

/// A pipe that nobody reads.
fn unread() -> PipeWriter {
    io::pipe().expect("pipe").1
}

/// A terminal whose window has been closed.
fn closed_terminal() -> File {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let window = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("pty");
    grantpt(&window).expect("pty");
    unlockpt(&window).expect("pty");
    let name = ptsname(&window, Vec::new()).expect("pty");
    let flags = rustix::fs::OFlags::NOCTTY.bits() as i32;
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(flags);
    options.open(name.to_str().expect("text")).expect("pty")
}

#[test]
fn after_a_lost_terminal_signals_did_nothing() {
    let full = || OpenOptions::new().write(true).open("/dev/full").expect("");
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        for lost in [
            Stdio::from(unread()),
            Stdio::from(full()),
            Stdio::from(closed_terminal()),
        ] {
            let folder = folder(&[]);
            let (mut child, _input) = waiting(folder.path(), lost, "");
            send(&child, signal);
            assert_eq!(code(&mut child), Some(status), "{signal:?}");
        }
    }
}

#[test]
fn a_full_pipe_of_messages_kept_signals_waiting() {
    let folder = folder(&[]);
    let (_reader, mut writer) = io::pipe().expect("pipe");
    rustix::io::ioctl_fionbio(&writer, true).expect("a pipe");
    while writer.write(&[b'.'; 4096]).is_ok() {}
    rustix::io::ioctl_fionbio(&writer, false).expect("a pipe");
    let (mut child, _input) = waiting(folder.path(), writer.into(), "");
    send(&child, Signal::TERM);
    assert_eq!(code(&mut child), Some(143));
}

/// Failures that are alike are held back to be counted, and so are outputs that exist.
#[test]
fn an_interrupted_batch_did_not_print_the_failures_that_it_had_held_back() {
    for (args, told) in [
        (
            "sum 1.pgm 2.pgm in",
            "gpuimg: cannot read 2 files (first: 1.pgm): ",
        ),
        (
            "normalize a.pgm b.pgm in out/ --format png",
            "gpuimg: 2 outputs already exist (first: out/a.png): ",
        ),
    ] {
        let folder = folder(&[
            ("1.pgm", b"P5 cut"),
            ("2.pgm", b"P5 cut"),
            ("a.pgm", &pgm(3, 2, 1)),
            ("b.pgm", &pgm(3, 2, 1)),
            ("out/a.png", b"there"),
            ("out/b.png", b"there"),
        ]);
        let root = folder.path();
        let args = format!("{args} -j 1 --report r.jsonl");
        let (mut child, _input) = waiting_with(root, Stdio::piped(), "", &args);
        let recorded = || fs::read_to_string(root.join("r.jsonl")).unwrap_or_default();
        let begun = Instant::now();
        while recorded().lines().count() < 2 {
            assert!(begun.elapsed() < Duration::from_secs(60), "{}", recorded());
            thread::sleep(Duration::from_millis(5));
        }
        // A line of the report is written just before a failure is counted.
        thread::sleep(Duration::from_millis(200));
        send(&child, Signal::INT);
        assert_eq!(code(&mut child), Some(130));
        let mut said = String::new();
        let mut errors = child.stderr.take().expect("a pipe");
        errors.read_to_string(&mut said).expect("text");
        let lines: Vec<&str> = said.lines().collect();
        let [.., held, last] = &lines[..] else {
            panic!("{said}")
        };
        assert!(held.starts_with(told), "{said}");
        assert!(last.starts_with("gpuimg: interrupted"), "{said}");
        assert_eq!(said.matches("first: ").count(), 1, "{said}");
    }
}

#[test]
fn nohup_was_not_honoured() {
    for (name, signal) in [("HUP", Signal::HUP), ("INT", Signal::INT)] {
        let folder = folder(&[]);
        let ignoring = format!("trap '' {name};");
        let (mut child, mut input) = waiting(folder.path(), Stdio::null(), &ignoring);
        send(&child, signal);
        thread::sleep(Duration::from_millis(100));
        input.write_all(&pgm(3, 2, 1)).expect("pipe");
        drop(input);
        assert_eq!(code(&mut child), Some(0), "{name}");
    }
}

#[test]
fn a_lost_standard_output_was_a_success() {
    let folder = folder(&[("a.pgm", &pgm(30, 20, 1))]);
    for (script, cause) in [
        ("\"$0\" sum a.pgm >&-", "it is closed"),
        ("\"$0\" sum a.pgm a.pgm >&-", "it is closed"),
        ("\"$0\" sum a.pgm 1</dev/null", "bad file descriptor"),
        ("\"$0\" sum a.pgm >/dev/full", "no space left"),
        ("\"$0\" normalize a.pgm - --format png >&-", "it is closed"),
        (
            "\"$0\" normalize a.pgm - --format png >/dev/full",
            "no space left",
        ),
        ("\"$0\" verify a.pgm a.pgm >&-", "it is closed"),
        ("\"$0\" --version >&-", "it is closed"),
        ("\"$0\" completions bash >/dev/full", "no space left"),
    ] {
        let Run { code, stderr, .. } = shell(folder.path(), script);
        assert_eq!(code, 1, "{script}: {stderr}");
        assert!(stderr.contains(cause), "{script}: {stderr}");
    }
    // Into what is open and takes everything, all is well.
    for script in ["\"$0\" sum a.pgm >/dev/null", "\"$0\" sum a.pgm 2>&-"] {
        assert_eq!(shell(folder.path(), script).code, 0, "{script}");
    }
    assert_eq!(listing(folder.path()), ["a.pgm"]);
}

#[test]
fn a_reader_that_leaves_an_image_was_a_success() {
    let folder = folder(&[("a.pgm", &pgm(400, 400, 1))]);
    let out = pipe(folder.path(), "out");
    let reader = thread::spawn(move || {
        let mut some = [0; 8];
        let mut out = File::open(out).expect("pipe");
        out.read_exact(&mut some).expect("its beginning");
    });
    let args = ["normalize", "a.pgm", "out", "--format", "png"];
    let Run { code, stderr, .. } = run(folder.path(), &args, &[]);
    reader.join().expect("reader");
    assert_eq!(
        (code, &*stderr),
        (1, "gpuimg: cannot write out: its reader has closed it\n")
    );
    let script =
        "\"$0\" normalize a.pgm - --format png | head -c 8 >/dev/null; exit ${PIPESTATUS[0]}";
    assert_eq!(shell(folder.path(), script).code, 1);
    // Lines are another matter: who reads them may have had enough.
    let script = "exec 3> >(:); sleep 0.2; \"$0\" sum a.pgm >&3";
    let Run { code, stderr, .. } = shell(folder.path(), script);
    assert_eq!((code, &*stderr), (0, ""));
}

#[test]
fn a_report_into_a_closed_pipe_was_a_success() {
    let folder = folder(&[]);
    let (input, report) = (pipe(folder.path(), "in.pgm"), pipe(folder.path(), "report"));
    // Without waiting for the one who writes.
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let reader = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(report);
    let reader = reader.expect("pipe");
    let args = [
        "normalize",
        "in.pgm",
        "out.pgm",
        "--overwrite",
        "--report",
        "report",
    ];
    let mut child = Command::new(binary())
        .args(args)
        .current_dir(folder.path())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program runs");
    thread::spawn(move || {
        // When the input is opened, the report is.
        let mut input = OpenOptions::new().write(true).open(input).expect("pipe");
        drop(reader);
        let _ = input.write_all(&pgm(3, 2, 1));
    });
    assert_ne!(code(&mut child), Some(0));
}

#[test]
fn a_limit_on_threads_was_a_panic() {
    let folder = folder(&[("a.pgm", &pgm(3, 2, 1)), ("b.pgm", &pgm(3, 2, 2))]);
    let program = own_copy(folder.path());
    for path in [folder.path(), &program] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("mode");
    }
    for most in [1, 2] {
        let script = format!("ulimit -u {most}; exec ./gpuimg sum a.pgm b.pgm");
        let mut command = Command::new("bash");
        command.args(["-c", &script]).current_dir(folder.path());
        // Root is not limited, so root asks as somebody who runs nothing else.
        if rustix::process::getuid().is_root() {
            command.uid(54321).gid(54321);
        }
        let Run { code, stderr, .. } = told(command.output().expect("a shell"));
        assert_eq!(code, 1, "{stderr}");
        assert!(
            stderr.starts_with("gpuimg: cannot start a thread"),
            "{stderr}"
        );
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}

#[test]
fn a_limit_on_file_sizes_killed_the_process() {
    let folder = folder(&[("a.pgm", &pgm(400, 400, 1))]);
    for name in ["out.png", "out.tif", "out.pgm"] {
        let script = format!("ulimit -f 4; exec \"$0\" normalize a.pgm {name}");
        let Run { code, stderr, .. } = shell(folder.path(), &script);
        assert_eq!(code, 1, "{stderr}");
        assert!(stderr.contains("a limit (ulimit -f)"), "{stderr}");
    }
    assert_eq!(listing(folder.path()), ["a.pgm"]);
}

/// Stops `prove` while its temporary folder exists, and ends it by each signal.
#[test]
fn prove_left_its_temporary_folder_when_it_was_interrupted() {
    let root = folder(&[("in/a.pgm", &pgm(30, 20, 1)), ("tmp/other", b"")]);
    let made = run(
        root.path(),
        &["normalize", "in", "out", "--report", "r.jsonl"],
        &[],
    );
    assert_eq!(made.code, 0, "{}", made.stderr);
    let temporary = root.path().join("tmp");
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let mut child = Command::new("env")
            .arg("--default-signal=INT,TERM,HUP")
            .arg(binary())
            .args(["prove", "r.jsonl"])
            .current_dir(root.path())
            .env("TMPDIR", &temporary)
            .env("GPUIMG_NO_TMPFILE", "1")
            .env("GPUIMG_FAULT", "rename:gpuimg-prove:1=stop")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program runs");
        let id = Pid::from_child(&child);
        let until = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let state = waitid(WaitId::Pid(id), until).expect("a child");
        assert!(state.expect("a status").stopped());
        assert_eq!(fs::read_dir(&temporary).expect("a folder").count(), 2);
        send(&child, signal);
        send(&child, Signal::CONT);
        assert_eq!(code(&mut child), Some(status));
        assert_eq!(listing(&temporary), ["other"]);
    }
}
