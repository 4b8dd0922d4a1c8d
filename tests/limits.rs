//! What a process may use, and hostile inputs: each test is named after what went wrong.

use crate::support::batch::pgm;
use crate::support::png::Plain;
use crate::support::shell::{pipe, shell};
use crate::support::{Run, binary, folder, listing, run, skipped, told};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use rustix::fs::{XattrFlags, getxattr, setxattr};
use rustix::io::Errno;
use std::fs::{self, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::process::{Command, Stdio};

/// A folder with so many images, `in/0.pgm` and so on.
fn images(count: u64) -> tempfile::TempDir {
    let root = folder(&[("in/0.pgm", &pgm(9, 7, 0))]);
    for seed in 1..count {
        fs::write(root.path().join(format!("in/{seed}.pgm")), pgm(9, 7, seed)).expect("file");
    }
    root
}

#[test]
fn a_job_of_400_mb_took_the_memory_of_the_machine() {
    let root = images(3);
    let group = root.path().join("groups/job_7/step_0");
    fs::create_dir_all(&group).expect("folder");
    let above = root.path().join("groups/job_7");
    fs::write(above.join("memory.max"), "419430400\n").expect("file");
    fs::write(above.join("memory.current"), "0\n").expect("file");
    fs::write(group.join("memory.max"), "max\n").expect("file");
    fs::write(group.join("cpu.max"), "100000 100000\n").expect("file");
    let mounts = root.path().join("groups");
    let mounts = format!("25 1 0:22 / {} rw - cgroup2 cgroup2 rw\n", mounts.display());
    fs::write(root.path().join("mountinfo"), mounts).expect("file");
    fs::write(root.path().join("cgroup"), "0::/job_7/step_0\n").expect("file");
    // The process that is to see them is this very shell, later.
    let script = "mount --bind cgroup /proc/$$/cgroup && mount --bind mountinfo /proc/$$/mountinfo \
                  || exit 99; exec \"$0\" sum in";
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
        .arg(binary())
        .current_dir(root.path())
        .output()
        .expect("unshare");
    if output.status.code() == Some(99) || output.stderr.starts_with(b"unshare") {
        skipped("the control group's memory: no mount namespaces here");
        return;
    }
    let Run { code, stderr, .. } = told(output);
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("3 files, 1 thread, up to 209.7 MB of memory"),
        "{stderr}"
    );
}

#[test]
fn slurms_share_of_a_node_was_not_asked_for() {
    let root = images(3);
    let job = [("SLURM_CPUS_PER_TASK", "1"), ("SLURM_MEM_PER_NODE", "400")];
    let Run { stderr, .. } = run(root.path(), &["sum", "in"], &job);
    assert!(
        stderr.contains("3 files, 1 thread, up to 209.7 MB of memory"),
        "{stderr}"
    );
}

#[test]
fn a_limit_on_addresses_was_not_asked_for() {
    let root = images(3);
    let Run { code, stderr, .. } = shell(root.path(), "ulimit -v 1000000; exec \"$0\" sum in");
    assert_eq!(code, 0, "{stderr}");
    let within = stderr.split("up to ").nth(1).expect("the memory");
    let (mb, _) = within.split_once(" MB").expect("less than a GB");
    assert!(mb.parse::<f64>().expect("a number") < 512.0, "{stderr}");
}

/// The threads of 16 cores reserved more addresses than there were.
#[test]
fn a_limit_on_addresses_ended_the_program() {
    let root = images(3);
    let Run { code, stderr, .. } = shell(root.path(), "ulimit -v 500000; exec \"$0\" sum in");
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("3 files, 1 thread, "), "{stderr}");
}

#[test]
fn metadata_were_not_counted_as_memory() {
    let mut plain = Plain::noisy(3, 2, 16, 0);
    let text = [b"Notes\0".to_vec(), vec![b'x'; 30_000_000]].concat();
    plain.before.push((*b"tEXt", text));
    let root = folder(&[("in/a.png", &plain.encoded(0))]);
    let Run { stdout, .. } = run(root.path(), &["sum", "in", "--dry-run"], &[]);
    assert!(stdout.contains("at most 90.0 MB of memory"), "{stdout}");
}

#[test]
fn compressed_metadata_took_six_times_what_they_were_unpacked_to() {
    let mut plain = Plain::noisy(3, 2, 16, 0);
    let profile = |len: usize| {
        let mut packed = ZlibEncoder::new(b"name\0\0".to_vec(), Compression::best());
        packed.write_all(&vec![b'x'; len]).expect("in memory");
        packed.finish().expect("in memory")
    };
    for (len, kept, counted) in [(1 << 20, true, "3.2 MB"), (1 << 27, false, "50.3 MB")] {
        plain.before = vec![(*b"iCCP", profile(len))];
        let root = folder(&[("in/a.png", &plain.encoded(0))]);
        let line = "sum in --dry-run".split(' ').collect::<Vec<_>>();
        let Run { stdout, .. } = run(root.path(), &line, &[]);
        assert!(
            stdout.contains(&format!("at most {counted} of memory")),
            "{stdout}"
        );
        let line = "rotate 90 in/a.png a.tif -v".split(' ').collect::<Vec<_>>();
        let Run { code, stderr, .. } = run(root.path(), &line, &[]);
        assert_eq!(code, 0, "{stderr}");
        assert_eq!(stderr.contains("chunk iCCP is left out"), !kept, "{stderr}");
        let written = fs::metadata(root.path().join("a.tif"))
            .expect("the output")
            .len();
        assert_eq!(written > len as u64, kept, "{written} bytes");
    }
}

/// A histogram file of one grey channel.
fn histogram(parts: &str, of: u64, bins: &str) -> String {
    format!(
        r#"{{"gpuimg_histogram":1,"images":1,"depth":16,"signed":false,"parts":{parts},"of":{of},"channels":[{bins}]}}"#
    )
}

#[test]
fn a_hostile_histogram_was_believed() {
    let half = format!("[[7,{}]]", 1u64 << 63);
    for (file, cause) in [
        (histogram("[1]", 1_000_000_000, "[[7,3]]"), "the limit is"),
        (histogram("[1]", u64::MAX, "[[7,3]]"), "the limit is"),
        (histogram("[1,1]", 2, "[[7,3]]"), "lists a part twice"),
        (histogram("[1]", 1, "[[7,3],[7,4]]"), "appears twice"),
        (histogram("[1]", 1, &half), "too many samples to count"),
        (
            histogram("[1]", 1, "[[7,3]],[[7,3]],[[7,4]]"),
            "its channels have different numbers",
        ),
        (
            histogram("[1]", 1 << 22, "[[7,3]]"),
            "and 4194295 more of 4194304",
        ),
    ] {
        let root = folder(&[("a.hist", file.as_bytes()), ("b.hist", file.as_bytes())]);
        let args = ["merge", "a.hist", "b.hist", "-o", "all.hist"];
        // The same part of a set twice would be refused for that.
        let args = match cause.starts_with("and") {
            true => vec!["merge", "a.hist", "-o", "all.hist"],
            false => args.to_vec(),
        };
        let Run { code, stderr, .. } = run(root.path(), &args, &[]);
        assert_eq!(code, 1, "{stderr}");
        assert!(stderr.contains(cause), "{cause}: {stderr}");
        assert_eq!(listing(root.path()), ["a.hist", "b.hist"]);
    }
    // Not a file at all, and one that would take all memory.
    let root = folder(&[("a.pgm", &pgm(3, 2, 1)), ("long.hist", b"")]);
    let long = OpenOptions::new()
        .write(true)
        .open(root.path().join("long.hist"));
    long.expect("file").set_len(1 << 40).expect("a long file");
    for (file, cause) in [("/dev/zero", "a device"), ("long.hist", "too large")] {
        let args = ["normalize", "--range-from", file, "a.pgm", "b.pgm"];
        let Run { code, stderr, .. } = run(root.path(), &args, &[]);
        assert_eq!(code, 1, "{stderr}");
        assert!(
            stderr.contains(cause) || stderr.contains("another device"),
            "{stderr}"
        );
    }
}

#[test]
fn a_shard_of_18446744073709551615_was_taken() {
    let root = images(1);
    for shard in ["1/18446744073709551615", "1/1000000000"] {
        let args = ["sum", "in", "--shard", shard];
        let Run { code, stderr, .. } = run(root.path(), &args, &[]);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains("the limit is"), "{stderr}");
    }
}

#[test]
fn control_characters_in_names_reached_the_terminal() {
    let name = "in/a\u{1b}[2J\n\u{9b}b.pgm";
    let root = folder(&[(name, &pgm(3, 2, 1)), ("in/bad\u{1b}.pgm", b"P5\n9 9")]);
    let plain = |text: &str| !text.contains(|c: char| c.is_control() && c != '\n');
    for args in [
        &["sum", "in", "-v"][..],
        &["sum", name, "--stats"],
        &["sum", "in", "--dry-run"],
        &["sum", "in", "--json"],
        &["normalize", "in", "out\u{1b}", "--report", "r.jsonl", "-v"],
        &["normalize", name, "in/\u{1b}/x.png"],
        &["verify", name, "in/none\u{1b}.png"],
    ] {
        let Run { stdout, stderr, .. } = run(root.path(), args, &[]);
        assert!(plain(&stdout) && plain(&stderr), "{stdout:?} {stderr:?}");
        let said = stdout + &stderr;
        let escaped = ["\\u001b", "\\x1B"];
        assert!(escaped.iter().any(|it| said.contains(it)), "{args:?}");
    }
    // One line an image, that which failed among them, and JSON that names it.
    let Run { stdout, .. } = run(root.path(), &["sum", "in", "--json"], &[]);
    assert_eq!(stdout.lines().count(), 2);
    let first = stdout.lines().next().expect("a line");
    let object: serde_json::Value = serde_json::from_str(first).expect("JSON");
    assert_eq!(object["file"], name);
    let report = fs::read_to_string(root.path().join("r.jsonl")).expect("report");
    let lines = report
        .lines()
        .map(serde_json::from_str::<serde_json::Value>);
    assert_eq!(lines.filter(Result::is_ok).count(), 2);
}

#[test]
fn overwriting_kept_setuid_and_lost_mode_owner_and_acl() {
    let root = folder(&[("a.pgm", &pgm(9, 7, 1)), ("out.pgm", b"old")]);
    let out = root.path().join("out.pgm");
    let args = ["normalize", "a.pgm", "out.pgm", "--overwrite"];
    let is_root = rustix::process::getuid().is_root();
    for (before, after) in [
        (0o6755, 0o755),
        (0o666, 0o666),
        (0o1600, 0o600),
        (0o2770, 0o770),
    ] {
        fs::write(&out, b"old").expect("file");
        if is_root {
            chown(&out, Some(1234), Some(2345)).expect("owner");
        }
        fs::set_permissions(&out, Permissions::from_mode(before)).expect("mode");
        assert_eq!(run(root.path(), &args, &[]).code, 0);
        let about = fs::metadata(&out).expect("file");
        assert!(about.len() > 3, "it is replaced");
        assert_eq!(about.mode() & 0o7777, after, "{before:o}");
        if is_root {
            assert_eq!((about.uid(), about.gid()), (1234, 2345));
        }
    }
    // acl(5), as Linux keeps it: version 2, then tag, permissions and ID of each entry.
    let entries: [(u16, u16, u32); 5] = [
        (0x01, 6, u32::MAX),
        (0x02, 4, 4321),
        (0x04, 0, u32::MAX),
        (0x10, 4, u32::MAX),
        (0x20, 0, u32::MAX),
    ];
    let mut list = 2u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        list.extend(tag.to_le_bytes());
        list.extend(permissions.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    let name = "system.posix_acl_access";
    match setxattr(&out, name, &list, XattrFlags::empty()) {
        Err(Errno::OPNOTSUPP) => skipped("access control lists: this file system has none"),
        other => {
            other.expect("a list");
            assert_eq!(run(root.path(), &args, &[]).code, 0);
            let mut found = [0; 256];
            let size = getxattr(&out, name, &mut found[..]).expect("the list");
            assert_eq!(found[..size], list);
        }
    }
}

#[test]
fn an_endless_device_was_read_until_memory_ended() {
    let root = folder(&[]);
    for script in [
        "ulimit -v 4000000; \"$0\" normalize /dev/zero out.png",
        "ulimit -v 4000000; \"$0\" normalize - out.png </dev/zero",
        "ulimit -v 4000000; \"$0\" sum /dev/zero /dev/zero",
    ] {
        let Run { code, stderr, .. } = shell(root.path(), script);
        assert_eq!(code, 1, "{stderr}");
        assert!(stderr.contains("another device"), "{stderr}");
    }
    // A pipe may be endless, too.
    let script = "ulimit -v 1000000; cat /dev/zero | \"$0\" normalize - out.png";
    let Run { code, stderr, .. } = shell(root.path(), script);
    assert_eq!(code, 1, "{stderr}");
    // Where half of the free memory is more than the limit, the system refuses first.
    let refused = ["it is longer than", "out of memory"];
    assert!(refused.iter().any(|why| stderr.contains(why)), "{stderr}");
    // What has an end is read, as before.
    fs::write(root.path().join("a.pgm"), pgm(9, 7, 1)).expect("file");
    for script in [
        "\"$0\" sum - <a.pgm",
        "cat a.pgm | \"$0\" sum -",
        "cat a.pgm | \"$0\" sum /dev/stdin",
        "\"$0\" sum <(cat a.pgm) a.pgm",
    ] {
        assert_eq!(shell(root.path(), script).code, 0, "{script}");
    }
}

#[test]
fn an_input_that_became_a_pipe_was_waited_for() {
    let root = images(2);
    let first = pipe(root.path(), "first");
    let mut child = Command::new(binary())
        .args(["sum", "first", "in", "-j", "1"])
        .current_dir(root.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    // The first input is opened when all are listed, and the only thread waits for it.
    let mut input = OpenOptions::new().write(true).open(first).expect("pipe");
    fs::remove_file(root.path().join("in/1.pgm")).expect("remove");
    pipe(root.path(), "in/1.pgm");
    input.write_all(&pgm(3, 2, 5)).expect("pipe");
    drop(input);
    for _ in 0..6000 {
        if child.try_wait().expect("wait").is_some() {
            let Run {
                code,
                stdout,
                stderr,
            } = told(child.wait_with_output().expect("wait"));
            assert_eq!(code, 1, "{stderr}");
            assert_eq!(stdout.lines().count(), 2, "the others are done: {stdout}");
            let told = "cannot read in/1.pgm: it is no longer a file";
            assert!(stderr.contains(told), "{stderr}");
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    child.kill().expect("kill");
    panic!("it does not end");
}

#[test]
fn a_memory_limit_of_one_byte_was_accepted() {
    let folder = images(1);
    for limit in ["1", "8", "1023K"] {
        for verb in [&["sum", "in"][..], &["project", "max", "in", "o.tif"]] {
            let done = run(
                folder.path(),
                &[verb, &["--mem-limit", limit]].concat(),
                &[],
            );
            assert_eq!(done.code, 2, "{}", done.stderr);
            assert!(done.stderr.contains("the minimum is 1M"), "{}", done.stderr);
        }
    }
}
