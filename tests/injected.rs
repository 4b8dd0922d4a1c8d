//! An error at every single system call: of the files that are opened, inspected, read, written, linked,
//! renamed and listed, by every format and verb. A run either makes the same bytes as without the
//! error, or ends with a status and a message, and every file is what it was or what it was to become.

use crate::support::batch::{pgm, tree};
use crate::support::formats::small_files;
use crate::support::stacks::stack;
use crate::support::tiff::Build;
use crate::support::tiff_images::picture;
use crate::support::{binary, counted, skipped};
use gpuimg::internals::image::Depth;
use gpuimg::internals::image::metadata::Metadata;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

type Files = BTreeMap<PathBuf, Vec<u8>>;

/// A run that is disturbed.
#[derive(Clone)]
struct Scenario {
    files: Files,
    /// What another run does first, undisturbed.
    first: Option<&'static str>,
    args: Vec<String>,
    env: Vec<(&'static str, &'static str)>,
    stdin: Option<Vec<u8>>,
    /// Whether a run that says what it could not read may leave a result without it.
    leaves_out: bool,
    /// Whether a run that failed is resumed, with `--resume`.
    resumes: bool,
}

/// What a run leaves.
struct Left {
    code: Option<i32>,
    files: Files,
    stdout: Vec<u8>,
    stderr: String,
}

/// The files of a folder that are the same in every run.
fn files(folder: &Path) -> Files {
    let mut files = tree(folder);
    // Which names the first image with its folder.
    let here = folder.as_os_str().as_encoded_bytes();
    for (_, file) in files
        .iter_mut()
        .filter(|(path, _)| path.extension() == Some("partial".as_ref()))
    {
        if let Some(at) = file.windows(here.len()).position(|part| part == here) {
            file[at..at + here.len()].fill(b'x');
        }
    }
    // Lines with times in them.
    files.retain(|path, _| path.extension().is_none_or(|it| it != "jsonl"));
    files
}

fn scenario(files: &[(&str, &[u8])], args: &str) -> Scenario {
    let files = files.iter();
    Scenario {
        files: files
            .map(|(name, file)| (name.into(), file.to_vec()))
            .collect(),
        args: args.split(' ').map(String::from).collect(),
        first: None,
        env: Vec::new(),
        stdin: None,
        leaves_out: args.contains("--keep-going"),
        resumes: false,
    }
}

impl Scenario {
    fn with(mut self, name: &'static str, value: &'static str) -> Scenario {
        self.env.push((name, value));
        self
    }

    fn resuming(mut self) -> Scenario {
        self.resumes = true;
        self
    }

    /// Its inputs in a folder.
    fn placed(&self) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("folder");
        for (name, file) in &self.files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("parent")).expect("folder");
            fs::write(path, file).expect("file");
        }
        if let Some(first) = self.first {
            let mut command = Command::new(binary());
            let made = command.args(first.split(' ')).current_dir(folder.path());
            let made = made
                .stderr(Stdio::null())
                .status()
                .expect("the program runs");
            assert!(made.success(), "{first}");
        }
        folder
    }

    fn command(&self, program: &str, before: &[&str]) -> Command {
        let mut command = Command::new(program);
        // In one order.
        command
            .args(before)
            .args(&self.args)
            .env("RAYON_NUM_THREADS", "1")
            .env("GPUIMG_DEVICE", "cpu")
            .envs(self.env.iter().copied());
        command
    }

    /// Runs `command` in `folder`.
    fn run(&self, command: &mut Command, folder: &Path) -> Left {
        let stdin = match &self.stdin {
            None => Stdio::null(),
            Some(bytes) => {
                let mut file = tempfile::NamedTempFile::new().expect("file");
                std::io::Write::write_all(&mut file, bytes).expect("file");
                File::open(file.path()).expect("file").into()
            }
        };
        let output = command.current_dir(folder).stdin(stdin).output();
        let output = output.expect("the program runs");
        let files = files(folder);
        Left {
            code: output.status.code(),
            files,
            stdout: output.stdout,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// What is wrong with the end of a disturbed run.
    fn complaint(&self, before: &Files, left: &Left, whole: &Left) -> Option<String> {
        let told = || format!(" (status {:?}, {:?})", left.code, left.stderr);
        match left.code {
            Some(0) if left.files != whole.files => {
                return Some("other files".to_owned() + &told());
            }
            Some(0) if left.stdout != whole.stdout => {
                return Some("another standard output".to_owned() + &told());
            }
            Some(0) => return None,
            Some(1..=3) if !left.stderr.is_empty() => {}
            _ => return Some("no sentence".to_owned() + &told()),
        }
        let lost = before.keys().find(|name| !left.files.contains_key(*name));
        if let Some(name) = lost {
            return Some(format!("{} is gone{}", name.display(), told()));
        }
        if self.leaves_out && left.code == Some(1) {
            return None;
        }
        // What another run continues.
        let is_kept = |name: &Path| self.resumes && name.starts_with("out.zarr.partial");
        let partial = left.files.iter().find(|(name, file)| {
            if is_kept(name) {
                return false;
            }
            let known = [before.get(*name), whole.files.get(*name)];
            !known.contains(&Some(*file))
        });
        partial.map(|(name, _)| format!("{} is neither old nor new{}", name.display(), told()))
    }
}

/// A TIFF of one page with everything that one may say.
fn described() -> Vec<u8> {
    let text = |text: &str| -> Vec<u64> { text.bytes().chain([0]).map(u64::from).collect() };
    let doubles = |values: &[f64]| -> Vec<u64> { values.iter().map(|it| it.to_bits()).collect() };
    let build = Build {
        big_endian: true,
        strip: 3,
        ..Build::default()
    };
    let build = build
        .tag(270, 2, &text("patient 17, left"))
        .tag(282, 5, &[300, 1])
        .tag(283, 5, &[300, 1])
        .tag(305, 2, &text("a program"))
        .tag(700, 1, &text("<x:xmpmeta xmlns:x='adobe:ns:meta/'/>"))
        .tag(33550, 12, &doubles(&[1.0, 1.0, 0.0]))
        .tag(33922, 12, &doubles(&[0.0, 0.0, 0.0, 5.0, 6.0, 0.0]))
        .tag(34675, 7, &[b'x'.into(); 200])
        .tag(34735, 3, &[1, 1, 0, 1, 1025, 0, 1, 1])
        .tag(42113, 2, &text("-9999"))
        .tag(65000, 1, &[7; 20]);
    build.file(&picture(9, 8, 1, Depth::Sixteen))
}

/// An ImageJ stack of four images after one directory.
fn imagej() -> Vec<u8> {
    let told = "ImageJ=1.54f\nimages=4\nslices=4\nloop=false\n";
    let told: Vec<u64> = told.bytes().chain([0]).map(u64::from).collect();
    let build = Build::default().tag(270, 2, &told);
    let build = build.tag(257, 4, &[5]).tag(278, 4, &[5]).tag(279, 4, &[60]);
    build.file(&picture(6, 5 * 4, 1, Depth::Sixteen))
}

/// A PNG with metadata before and after its image data.
fn png() -> Vec<u8> {
    let mut plain = crate::support::png::Plain::noisy(30, 20, 16, 2);
    plain
        .before
        .push((*b"pHYs", vec![0, 0, 11, 19, 0, 0, 11, 19, 1]));
    plain.before.push((*b"tEXt", b"Comment\0before".to_vec()));
    let mut file = plain.encoded(1);
    let end = file.len() - 12;
    let mut behind = Vec::new();
    crate::support::png::chunk(&mut behind, b"tEXt", b"Title\0behind");
    file.splice(end..end, behind);
    file
}

/// Every verb, option and kind of file, once.
fn scenarios() -> Vec<Scenario> {
    let (tiff, stacked, png) = (described(), imagej(), png());
    let pages: Vec<_> = (0..3)
        .map(|i| picture(7, 5 + i, 1, Depth::Sixteen))
        .collect();
    let pages = stack(&pages, &Metadata::default());
    let equal: Vec<_> = (0..3).map(|_| picture(7, 5, 1, Depth::Sixteen)).collect();
    let equal = stack(&equal, &Metadata::default());
    let mut all = Vec::new();
    for (id, file) in small_files() {
        all.push(scenario(&[("in", &file)], "flip horizontal in out.tif"));
        let id = id.split('-').next().unwrap_or_default();
        let written = gpuimg::internals::formats::FORMATS
            .iter()
            .find(|format| format.id == id);
        if written.is_some_and(|format| format.is_written()) {
            let args = format!("transpose in out --format {id}");
            all.push(scenario(&[("in", &file)], &args));
        }
    }
    for compression in ["none", "deflate"] {
        let args = format!("flip vertical a.tif out.tif --tiff-layout cog --tiff {compression}");
        all.push(scenario(&[("a.tif", &tiff)], &args));
    }
    for file in [&tiff, &equal] {
        let args = "flip vertical a.tif out.zarr --sync";
        all.push(scenario(&[("a.tif", file)], args));
        let resumed = scenario(&[("a.tif", file)], &format!("{args} --resume"));
        all.push(resumed.resuming());
    }
    for (name, file) in [
        ("a.tif", &tiff),
        ("a.tif", &stacked),
        ("a.tif", &pages),
        ("a.png", &png),
    ] {
        let files: &[(&str, &[u8])] = &[(name, file)];
        for verb in [
            "normalize",
            "normalize --low-memory",
            "normalize --undo",
            "transpose --keep-going",
            "rotate 90",
            "rotate 90 --auto-orient --fit 4",
            "flip vertical --sync",
        ] {
            all.push(scenario(files, &format!("{verb} {name} out.tif")));
        }
        all.push(scenario(
            files,
            &format!("normalize {name} - --format tiff"),
        ));
        all.push(scenario(
            files,
            &format!("flip vertical --overwrite {name} {name}"),
        ));
        all.push(scenario(
            files,
            &format!("rotate 90 --overwrite --sync {name} {name}"),
        ));
        let named = scenario(files, &format!("flip vertical --overwrite {name} {name}"));
        all.push(named.with("GPUIMG_NO_TMPFILE", "1"));
        let named = scenario(files, &format!("flip vertical {name} out.png --pages 1"));
        all.push(named.with("GPUIMG_NO_TMPFILE", "1"));
        all.push(scenario(files, &format!("sum --all {name}")));
        all.push(scenario(files, &format!("sum --json {name}")));
        all.push(scenario(files, &format!("verify {name} {name}")));
        all.push(scenario(files, &format!("histogram {name} -o all.hist")));
        all.push(Scenario {
            stdin: Some(file.clone()),
            ..scenario(&[], "transpose - out.tif")
        });
    }
    let files: &[(&str, &[u8])] = &[("a.tif", &equal)];
    for how in ["max", "mean", "sum --scale", "median"] {
        all.push(scenario(files, &format!("project {how} a.tif out.tif")));
    }
    all.push(scenario(
        &[("a.tif", &stacked)],
        "project max a.tif out.tif",
    ));
    all.push(scenario(
        &[("a.tif", &stacked)],
        "flip vertical --axes Z=2-3 a.tif out.tif",
    ));
    all.push(scenario(
        &[("a.tif", &stacked)],
        "normalize --split a.tif out/",
    ));
    all.push(scenario(files, "run normalize+rotate+90 a.tif out.tif"));
    let grey = [pgm(8, 5, 1), pgm(8, 5, 2), pgm(8, 5, 3)];
    // A flat field that is brighter than any dark frame.
    let bright = [&b"P5\n8 5\n65535\n"[..], &[0xf0; 80]].concat();
    let set: &[(&str, &[u8])] = &[
        ("in/a.pgm", &grey[0]),
        ("in/b/b.pgm", &grey[1]),
        ("in/b/c", &grey[2]),
        ("in/notes.txt", b"no image"),
        ("list", b"in/a.pgm\nin/b/b.pgm\n"),
        ("d.pgm", &grey[0]),
        ("f.pgm", &bright),
    ];
    for verb in [
        "normalize in out --format png",
        "normalize --stack in out.tif",
        "normalize --across in out --format png",
        "flip vertical in in --overwrite",
        "rotate 90 in new/out --sync --report r.jsonl",
        "rotate 90 --files-from list out --report r.jsonl --overwrite",
        "transpose in out --shard 1/2 --name {stem}-x.{ext}",
    ] {
        let args = format!("{verb} -j 1 -q");
        all.push(scenario(set, &args));
        if !verb.contains("--stack") && !verb.contains("in in") {
            all.push(scenario(set, &(args + " --resume")).resuming());
        }
    }
    for args in [
        "project mean in out.tif -q",
        "project median in out.tif -q",
        "project mean in p/1.partial --partial --shard 1/2 -q",
        "histogram in -o all.hist -q",
        "sum in -q",
        "calibrate --dark d.pgm --flat f.pgm in out -q -j 1",
        "calibrate --dark in/b --flat f.pgm in/a.pgm out.pgm -q",
        "run normalize+rotate+90 in out -q -j 1",
    ] {
        all.push(scenario(set, args));
    }
    let stream = [&grey[0][..], &grey[1], &grey[2]].concat();
    all.push(Scenario {
        stdin: Some(stream),
        ..scenario(&[], "normalize - out --name {n}.png -q")
    });
    // What other runs make.
    for (first, args) in [
        (
            "histogram in -o all.hist -q",
            "normalize --range-from all.hist in out -q -j 1",
        ),
        (
            "histogram in -o all.hist -q",
            "merge all.hist -o whole.hist",
        ),
        ("normalize --undo in/a.pgm u.png", "restore u.png again.pgm"),
        (
            "project mean in 1.partial --partial --shard 1/1 -q",
            "merge 1.partial -o mean.tif",
        ),
    ] {
        all.push(Scenario {
            first: Some(first),
            ..scenario(set, args)
        });
    }
    for scenario in &mut all {
        // Verbs with blanks in one argument.
        for arg in &mut scenario.args {
            if arg.contains('+') {
                *arg = arg
                    .replace("rotate+90", "rotate 90")
                    .replace("+rotate", " + rotate");
            }
        }
    }
    all
}

/// The system calls of a run by their kind, and what it leaves.
fn undisturbed(scenario: &Scenario, program: &str) -> (BTreeMap<String, usize>, Left) {
    let folder = scenario.placed();
    let calls = tempfile::NamedTempFile::new().expect("file");
    let mut command = scenario.command(program, &[]);
    command.env("GPUIMG_FAULT_COUNT", calls.path());
    let left = scenario.run(&mut command, folder.path());
    let mut kinds = BTreeMap::new();
    let lines = fs::read(calls.path()).expect("calls");
    for line in lines
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        let kind = line.split(|&byte| byte == b' ').next().unwrap_or_default();
        *kinds
            .entry(String::from_utf8_lossy(kind).into())
            .or_insert(0) += 1;
    }
    (kinds, left)
}

/// The errors that a call of a kind is given.
fn errors(kind: &str) -> &'static [&'static str] {
    match kind {
        "write" | "create" => &["EIO", "ENOSPC"],
        "open" => &["EIO", "EACCES"],
        _ => &["EIO"],
    }
}

#[test]
fn an_error_of_the_disk_was_taken_for_something_absent() {
    // `GPUIMG_INJECTED=merge` tries only the runs in whose command that stands.
    let wanted = std::env::var("GPUIMG_INJECTED").unwrap_or_default();
    let mut scenarios = scenarios();
    scenarios.retain(|scenario| scenario.args.join(" ").contains(&wanted));
    let program = binary();
    let program = program.to_string_lossy();
    let next = AtomicUsize::new(0);
    let (cases, seen, wrong) = (
        AtomicUsize::new(0),
        Mutex::new(BTreeSet::new()),
        Mutex::new(Vec::new()),
    );
    let work = || {
        while let Some(scenario) = scenarios.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (calls, whole) = undisturbed(scenario, &program);
            let shown = scenario.args.join(" ");
            if whole.code != Some(0) {
                let line = format!("{shown}, undisturbed: {}", whole.stderr);
                wrong.lock().unwrap().push(line);
                continue;
            }
            seen.lock().unwrap().extend(calls.keys().cloned());
            for (kind, count) in calls {
                for (number, error) in (1..=count)
                    .flat_map(|number| errors(&kind).iter().map(move |error| (number, error)))
                {
                    let folder = scenario.placed();
                    let before = files(folder.path());
                    let mut command = scenario.command(&program, &[]);
                    let fault = format!("{kind}:{number}={error}");
                    command.env("GPUIMG_FAULT", &fault);
                    let left = scenario.run(&mut command, folder.path());
                    cases.fetch_add(1, Ordering::Relaxed);
                    let complaint = scenario.complaint(&before, &left, &whole).or_else(|| {
                        if left.code == Some(0) || !scenario.resumes {
                            return None;
                        }
                        let again =
                            scenario.run(&mut scenario.command(&program, &[]), folder.path());
                        (again.code != Some(0) || again.files != whole.files).then(|| {
                            format!("cannot be gone on with: {:?} {}", again.code, again.stderr)
                        })
                    });
                    if let Some(complaint) = complaint {
                        let line = format!("{shown}, {fault}: {complaint}");
                        wrong.lock().unwrap().push(line);
                    }
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, |count| count.get()) {
            scope.spawn(work);
        }
    });
    let wrong = wrong.into_inner().unwrap();
    let cases = cases.into_inner();
    counted(&format!(
        "{} runs, each system call of each failed: {cases} cases",
        scenarios.len()
    ));
    assert!(
        wrong.is_empty(),
        "{} of {cases}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    if !wanted.is_empty() {
        return;
    }
    let seen = seen.into_inner().unwrap();
    for kind in [
        "create", "link", "mkdir", "open", "read", "readdir", "rename", "stat", "sync", "write",
    ] {
        assert!(seen.contains(kind), "no call of the kind {kind}");
    }
    assert!(cases > 3000, "{cases} cases");
}

/// The same by the kernel's own hand: that the points are where the system calls are.
#[test]
fn the_kernel_s_errors_end_as_those_of_the_points() {
    let tried = Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .status();
    if !tried.is_ok_and(|status| status.success()) {
        return skipped("errors injected by strace: it is not here, or may not trace");
    }
    let (tiff, stacked) = (described(), imagej());
    let mut cases = 0;
    for (file, calls) in [
        (&tiff, "pread64"),
        (&stacked, "pread64"),
        (&tiff, "pwrite64,pwritev"),
        (&tiff, "linkat,renameat2,rename"),
        (&tiff, "ftruncate"),
    ] {
        let scenario = scenario(&[("a.tif", file)], "flip vertical --overwrite a.tif a.tif");
        let (_, whole) = undisturbed(&scenario, &binary().to_string_lossy());
        for number in 1.. {
            let folder = scenario.placed();
            let before = files(folder.path());
            let log = tempfile::NamedTempFile::new().expect("file");
            let (log, program) = (log.path().to_string_lossy(), binary());
            let trace = format!("trace={calls}");
            let inject = format!("inject={calls}:error=EIO:when={number}");
            let flags = ["-f", "-o", &*log, "-e", &trace, "-e", &inject];
            let program = program.to_string_lossy();
            let mut command = scenario.command("strace", &[&flags[..], &[&*program]].concat());
            let left = scenario.run(&mut command, folder.path());
            if !fs::read_to_string(&*log)
                .expect("a log")
                .contains("INJECTED")
            {
                break;
            }
            // The dynamic linker reads with the same call.
            if left.code == Some(127) {
                continue;
            }
            cases += 1;
            let complaint = scenario.complaint(&before, &left, &whole);
            assert_eq!(complaint, None, "{calls}, {number}");
        }
    }
    counted(&format!("{cases} errors injected by strace"));
    assert!(cases > 30, "{cases} cases");
}
