//! A driver that fails: the program on `tests/driver/libcuda.c`, which stands for NVIDIA's driver, answers every call that
//! gpuimg makes, and fails at the requested call. Each run is made again and again, so that each of its calls fails
//! once, in each of the ways that a GPU fails.

use crate::support::batch::{pgm, tree};
use crate::support::png::{Plain, zlib};
use crate::support::schema::faults;
use crate::support::stacks::stack;
use crate::support::{Kind, binary, folder, image, repository, skipped};
use crate::zarr_gpu::gzip;
use gpuimg::internals::image::metadata::Metadata;
use gpuimg::internals::image::{Depth, Image};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// How a GPU fails: the driver's error, and what fails with the call.
const FAILURES: [(&str, &str); 3] = [
    // Out of memory, or a limit: this call alone.
    ("2", "once"),
    // A launch that failed: the context is of no use any more.
    ("719", "context"),
    // A GPU that fell off the bus: nothing works until the host is started again.
    ("999", "device"),
];

/// What the driver counts that the caller must give back.
const HELD: [&str; 6] = [
    "memory",
    "streams",
    "events",
    "modules",
    "registrations",
    "contexts",
];

/// The result of a run on the driver.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    /// What the driver has written down.
    pub log: BTreeMap<String, u64>,
    pub violation: Option<String>,
}

impl Ran {
    pub fn count(&self, what: &str) -> u64 {
        self.log.get(what).copied().unwrap_or(0)
    }

    /// That the run ended by itself, without a panic, used the driver as it is to be used, and gave all back.
    pub fn is_sound(&self, what: &str) {
        assert_eq!(self.violation, None, "{what}: {}", self.stderr);
        let ended = self.code.is_some_and(|code| [0, 1, 3].contains(&code));
        assert!(ended, "{what}: {:?}: {}", self.code, self.stderr);
        assert!(!self.stderr.contains("panicked"), "{what}: {}", self.stderr);
        for held in HELD {
            // The binding keeps a context whose properties it cannot ask for right after it was opened.
            if held == "contexts" && self.stderr.contains("cannot be opened") {
                continue;
            }
            assert_eq!(
                self.count(held),
                0,
                "{what}: {held} are left, {}",
                self.stderr
            );
        }
    }
}

/// The folder with the driver; `None`, said loudly, where no C compiler is.
pub fn driver() -> Option<&'static Path> {
    static DRIVER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let built = DRIVER.get_or_init(|| {
        let source = repository("tests/driver/libcuda.c");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("driver");
        fs::create_dir_all(&folder).ok()?;
        // Under both names, of which the program tries the shorter one first.
        let library = folder.join("libcuda.so");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"])
            .arg(&library)
            .arg(source)
            .args(["-lm", "-lpthread"])
            .status();
        if !built.ok()?.success() {
            return None;
        }
        fs::copy(&library, folder.join("libcuda.so.1")).ok()?;
        Some(folder)
    });
    if built.is_none() {
        skipped("a driver that fails: no C compiler here");
    }
    built.as_deref()
}

/// Runs the program on the driver in `folder`, and ends it after a minute.
pub fn ran(driver: &Path, folder: &Path, line: &str, env: &[(&str, &str)]) -> Ran {
    let log = tempfile::NamedTempFile::new().expect("temporary file");
    let output = Command::new("timeout")
        .args(["-s", "KILL", "60"])
        .arg(binary())
        .args(line.split(' '))
        .current_dir(folder)
        .env_remove("GPUIMG_DEVICE")
        .env_remove("CUDA_VISIBLE_DEVICES")
        .env("LD_LIBRARY_PATH", driver)
        .env("STUB_LOG", log.path())
        .envs(env.iter().copied())
        .output()
        .expect("the program runs");
    let written = fs::read_to_string(log.path()).expect("log");
    let (mut counts, mut violation) = (BTreeMap::new(), None);
    for line in written.lines() {
        let (name, value) = line.split_once(' ').expect("a name and a value");
        match value.parse() {
            Ok(number) => drop(counts.insert(name.to_string(), number)),
            Err(_) => drop(violation.get_or_insert(value.to_string())),
        }
    }
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Ran {
        code: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
        log: counts,
        violation,
    }
}

/// A frame of samples from 256·`least` on, which differ a little.
fn frame(width: usize, height: usize, least: u8) -> Vec<u8> {
    let mut file = format!("P5\n{width} {height}\n65535\n").into_bytes();
    file.extend((0..width * height).flat_map(|i| [least, (i * 7 % 251) as u8]));
    file
}

/// A folder of images; frames for `calibrate` are in `frames`.
pub fn images() -> tempfile::TempDir {
    folder(&[
        ("in/a.pgm", &pgm(190, 181, 1)),
        ("in/b.pgm", &pgm(190, 181, 2)),
        ("in/c.pgm", &pgm(190, 181, 3)),
        ("frames/dark.pgm", &frame(190, 181, 1)),
        ("frames/flat.pgm", &frame(190, 181, 120)),
    ])
}

/// Runs that make one image, or print numbers, through each operation on the GPU.
const RUNS: [&str; 12] = [
    "normalize in/a.pgm out.pgm",
    "normalize in/a.pgm out.pgm --clip 1:99 --stats",
    "transpose in/a.pgm out.pgm",
    "flip horizontal in/a.pgm out.pgm",
    "rotate 90 in/a.pgm out.pgm --stats",
    "rotate 180 in/a.pgm out.pgm",
    "sum in/a.pgm",
    "histogram in/a.pgm -o out.hist -q",
    "calibrate --dark frames/dark.pgm --flat frames/flat.pgm in/a.pgm out.pgm",
    "project mean in/a.pgm in/b.pgm in/c.pgm out.pgm -q",
    "project max in/a.pgm in/b.pgm in/c.pgm out.pgm -q",
    "project median in/a.pgm in/b.pgm in/c.pgm out.pgm -q",
];

/// What a run leaves in its folder, and prints.
type Made = (BTreeMap<PathBuf, Vec<u8>>, String);

fn made(folder: &Path, ran: &Ran) -> Made {
    (tree(folder), ran.stdout.clone())
}

#[test]
fn the_stand_in_driver_gives_what_the_cpu_gives() {
    let Some(driver) = driver() else { return };
    for line in RUNS {
        let run = |device: &str| {
            let folder = images();
            let ran = ran(
                driver,
                folder.path(),
                &format!("{line} --device {device}"),
                &[],
            );
            assert_eq!(ran.code, Some(0), "{line}: {}", ran.stderr);
            ran.is_sound(line);
            (made(folder.path(), &ran), ran)
        };
        let ((gpu, on_gpu), (cpu, on_cpu)) = (run("gpu"), run("cpu"));
        assert!(on_gpu.count("launches") > 0, "{line}");
        assert_eq!(on_gpu.count("unknown_launches"), 0, "{line}");
        assert_eq!(on_cpu.count("calls"), 0, "{line}");
        assert!(gpu == cpu, "{line}");
        if line.contains("--stats") {
            let says = |ran: &Ran, words: &str| ran.stderr.contains(words);
            assert!(says(&on_gpu, "; the GPU was used.\n"), "{}", on_gpu.stderr);
            assert!(says(&on_gpu, "\nGPU: copies over the link "), "{line}");
            assert!(says(&on_cpu, "; the GPU was not used, as requested.\n"));
            assert!(!says(&on_cpu, "copies over the link"), "{line}");
        }
    }
}

/// What `doctor --json` says of a GPU is what its text says, and fits the schema.
#[test]
fn the_doctor_says_the_same_in_json() {
    let Some(driver) = driver() else { return };
    let folder = images();
    let go = |line: &str| {
        let ran = ran(driver, folder.path(), line, &[]);
        assert_eq!(ran.code, Some(0), "{line}: {}", ran.stderr);
        ran.is_sound(line);
        ran.stdout
    };
    let (text, json) = (go("doctor"), go("doctor --json"));
    let health: Value = serde_json::from_str(&json).expect("JSON");
    let schema = fs::read_to_string(repository("docs/schemas/doctor.json")).expect("schema");
    let schema = serde_json::from_str(&schema).expect("JSON");
    assert_eq!(faults(&schema, &health), [""; 0], "{json}");
    assert_eq!(health["gpu_problem"], Value::Null);
    let gpu = &health["gpu"];
    let mib = |key: &str| gpu[key].as_u64().expect(key) >> 20;
    let words = |key: &str| gpu[key].as_str().expect(key);
    for line in [
        format!(
            "\nGPU {}           {}, compute capability {}, {} multiprocessors, {} MiB of level-2 cache; opened in ",
            gpu["number"],
            words("name"),
            words("compute_capability"),
            gpu["multiprocessors"],
            mib("level_2_cache_bytes")
        ),
        format!(
            "\nmemory          {} MiB, {} free\n",
            mib("memory_bytes"),
            mib("free_bytes")
        ),
        format!("supports CUDA {}\n", words("cuda")),
    ] {
        assert!(text.contains(&line), "{line}{text}");
    }
    let copies = &gpu["copies"];
    assert_eq!(copies["pinned"], true);
    assert!(copies["up_gb_per_s"].as_f64() > Some(0.0), "{json}");
}

/// Every call of every run fails by itself; and for good, all of the first run and a part of the others, since what
/// follows is much the same. With `--device gpu` the result is right, or there is none, and one message says why.
#[test]
fn a_call_that_fails_is_one_sentence_and_no_file() {
    let Some(driver) = driver() else { return };
    let mut cases = 0;
    for (index, line) in RUNS.into_iter().enumerate() {
        let asked = format!("{line} --device gpu");
        let folder = images();
        let before = (tree(folder.path()), String::new());
        let all = ran(driver, folder.path(), &asked, &[]);
        let right = made(folder.path(), &all);
        assert!(right != before, "{line}: {}", all.stderr);
        let calls = all.count("calls") as usize;
        assert!(calls > 40, "{line}: {calls} calls");
        let asked: Vec<String> = FAILURES
            .into_iter()
            .flat_map(|(code, how)| {
                let step = if index == 0 || how == "once" { 1 } else { 9 };
                let failing = (1 + index % step..=calls).step_by(step);
                failing.map(move |nth| format!("*:{nth}:{code}:{how}"))
            })
            .collect();
        for fail in asked {
            restore(folder.path(), &before.0);
            let line = format!("{line} --device gpu");
            let ran = ran(driver, folder.path(), &line, &[("STUB_FAIL", &fail)]);
            let what = format!("{fail} {line}");
            ran.is_sound(&what);
            cases += ran.count("failed");
            let made = made(folder.path(), &ran);
            if ran.code == Some(0) {
                assert!(made == right, "{what}: another result");
                continue;
            }
            assert!(made == before, "{what}: something is left");
            is_a_sentence(&ran.stderr, &what);
            let is_open = ran.count("launches") > 0 || ran.stderr.contains("the GPU failed");
            if !is_open || fail.ends_with("context") || fail.ends_with("device") {
                assert_eq!(ran.code, Some(3), "{what}: {}", ran.stderr);
            }
        }
    }
    assert!(cases > 1000, "{cases} cases");
}

/// Removes what a run has made.
fn restore(folder: &Path, before: &BTreeMap<PathBuf, Vec<u8>>) {
    for name in tree(folder)
        .keys()
        .filter(|name| !before.contains_key(*name))
    {
        fs::remove_file(folder.join(name)).expect("remove");
    }
}

/// That a text is one line, which says what the driver says in its words, and nothing twice.
fn is_a_sentence(said: &str, what: &str) {
    assert_eq!(said.lines().count(), 1, "{what}: {said}");
    assert!(said.starts_with("gpuimg: "), "{what}: {said}");
    assert!(!said.contains("DriverError"), "{what}: {said}");
    assert!(said.matches("the GPU failed").count() < 2, "{what}: {said}");
}

/// The results that a run in a folder of images makes of them without a GPU.
fn on_cpu(driver: &Path, folder: &Path, line: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let line = format!("{line} in expected --device cpu");
    let right = ran(driver, folder, &line, &[]);
    assert_eq!(right.code, Some(0), "{}", right.stderr);
    let expected = tree(&folder.join("expected"));
    fs::remove_dir_all(folder.join("expected")).expect("remove");
    expected
}

/// Removes what a run has made; returns it.
fn taken(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let out = folder.join("out");
    if !out.exists() {
        return BTreeMap::new();
    }
    let made = tree(&out);
    fs::remove_dir_all(&out).expect("remove");
    made
}

/// In a batch with `--device gpu`, what is there is whole, and each file that is not is named; or the GPU is of no use,
/// and one message says so.
#[test]
fn a_call_that_fails_costs_a_batch_one_file() {
    let Some(driver) = driver() else { return };
    let folder = images();
    let expected = on_cpu(driver, folder.path(), "normalize");
    let (mut lost, mut some) = (0, 0);
    for (code, how) in FAILURES {
        let step = if how == "once" { 1 } else { 7 };
        for nth in (1..).step_by(step) {
            let fail = format!("*:{nth}:{code}:{how}");
            let line = "normalize in out --device gpu -j 2";
            let ran = ran(driver, folder.path(), line, &[("STUB_FAIL", &fail)]);
            ran.is_sound(&fail);
            let made = taken(folder.path());
            assert!(
                made.iter()
                    .all(|(name, bytes)| expected.get(name) == Some(bytes)),
                "{fail}"
            );
            let missing = expected.keys().filter(|name| !made.contains_key(*name));
            let missing: Vec<String> = missing.map(|name| name.display().to_string()).collect();
            let said = &ran.stderr;
            match ran.code {
                Some(0) => assert_eq!(missing.len(), 0, "{fail}: {said}"),
                Some(3) => {
                    lost += 1;
                    let lines = said.lines();
                    let unusable = lines.filter(|line| line.contains("the GPU is not usable"));
                    assert_eq!(unusable.count(), 1, "{fail}: {said}");
                }
                _ => {
                    some += 1;
                    assert!(!missing.is_empty(), "{fail}: {said}");
                    // All files that fail for the same reason have one line.
                    let all = format!("cannot normalize {} files (first: in/", missing.len());
                    if missing.len() == expected.len() && said.contains(&all) {
                        assert!(said.contains("): the GPU failed"), "{fail}: {said}");
                        continue;
                    }
                    let sentences = said.matches("cannot normalize").count();
                    assert_eq!(sentences, missing.len(), "{fail}: {said}");
                    let named =
                        |name: &String| said.contains(&format!("in/{name}: the GPU failed"));
                    assert!(missing.iter().all(named), "{fail}: {said}");
                }
            }
            if ran.count("failed") == 0 {
                break;
            }
        }
    }
    assert!(
        lost > 0 && some > 0,
        "{lost} lost, {some} with a file that failed"
    );
}

/// Images enough for a batch with `auto` to start the GPU before the last.
fn many() -> tempfile::TempDir {
    let files: Vec<(String, Vec<u8>)> = (0..40)
        .map(|number| (format!("in/{number}.pgm"), pgm(190, 181, number)))
        .chain([
            ("frames/dark.pgm".into(), frame(190, 181, 1)),
            ("frames/flat.pgm".into(), frame(190, 181, 120)),
        ])
        .collect();
    let files: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(name, bytes)| (&**name, &**bytes))
        .collect();
    folder(&files)
}

/// Four GPUs share a batch, each with a context of its own, and a GPU that fails costs the others nothing.
#[test]
fn four_gpus_share_a_batch() {
    let Some(driver) = driver() else { return };
    let folder = many();
    let expected = on_cpu(driver, folder.path(), "normalize");
    let four = ("STUB_DEVICES", "4");
    let run = |device: &str, env: &[(&str, &str)]| {
        let line = format!("normalize in out --device {device} -j 8");
        let env = [env, &[four, ("GPUIMG_GPU_START", "0")]].concat();
        let ran = ran(driver, folder.path(), &line, &env);
        ran.is_sound(&format!("{env:?}"));
        (ran, taken(folder.path()))
    };
    let launches = |ran: &Ran| [0, 1, 2, 3].map(|gpu| ran.count(&format!("launches_of_{gpu}")));

    let (right, made) = run("gpu", &[]);
    assert_eq!(right.code, Some(0), "{}", right.stderr);
    assert!(made == expected);
    // Kernels that take longer than a thread to start: each GPU has its part.
    let (slow, made) = run("gpu", &[("STUB_KERNEL", "10000")]);
    assert_eq!(made.len(), expected.len());
    assert_eq!(launches(&slow).iter().sum::<u64>(), 80);
    assert!(launches(&slow).iter().all(|count| *count > 0), "{slow:?}");
    // Without the second, the others do the work.
    let (without, made) = run(
        "gpu",
        &[("STUB_FAIL", "cuDevicePrimaryCtxRetain:2:46:once")],
    );
    assert!(
        made == expected && launches(&without)[1] == 0,
        "{without:?}"
    );

    // The files may be done before the GPUs are there.
    let mut failed = 0;
    for nth in (1..right.count("launches")).step_by(7).cycle().take(200) {
        if failed == 10 {
            break;
        }
        let fail = format!("cuLaunchKernel:{nth}:719:context");
        let (ran, made) = run("auto", &[("STUB_FAIL", &fail)]);
        assert_eq!(ran.code, Some(0), "{fail}: {}", ran.stderr);
        assert!(made == expected, "{fail}: {}", ran.stderr);
        failed += ran.count("failed").min(1);
    }
    assert_eq!(failed, 10);
}

/// A launch works on all images that wait for it, and an image takes few calls of the driver: there were 23, and 50 for a PNG.
#[test]
fn images_share_launches() {
    let Some(driver) = driver() else { return };
    let few = many();
    let run = |folder: &Path, line: &str| {
        // The work of a GPU takes longer than a worker takes to come back.
        let ran = ran(driver, folder, line, &[("STUB_WAIT", "20000")]);
        ran.is_sound(line);
        assert_eq!(ran.code, Some(0), "{line}: {}", ran.stderr);
        (ran, taken(folder))
    };
    for verb in ["normalize", "rotate 90", "normalize --clip 1:99"] {
        let expected = on_cpu(driver, few.path(), verb);
        let line = format!("{verb} in out --device gpu -j 40");
        let (ran, made) = run(few.path(), &line);
        assert!(made == expected, "{verb}: {}", ran.stderr);
        assert!(ran.count("set_launches") > 0, "{verb}: {ran:?}");
    }

    let more: Vec<(String, Vec<u8>)> = (0..400)
        .map(|number| (format!("in/{number}.pgm"), pgm(190, 181, number % 40)))
        .collect();
    let more: Vec<(&str, &[u8])> = more
        .iter()
        .map(|(name, bytes)| (&**name, &**bytes))
        .collect();
    let more = folder(&more);
    let line = "normalize in out --device gpu -j 40";
    let [(few, _), (more, _)] = [few.path(), more.path()].map(|folder| run(folder, line));
    let calls = more.count("calls") - few.count("calls");
    // 2.9 to 3.8 calls each, by how the workers meet.
    assert!(calls <= 6 * 360, "{calls} calls for 360 images");
}

/// A launch for several images that the driver refuses is made again for each of them: the call that fails costs no file, and one
/// that fails for good costs every file its own line.
#[test]
fn a_launch_that_fails_costs_no_other_image() {
    let Some(driver) = driver() else { return };
    let folder = many();
    let line = "normalize in out --device gpu -j 40";
    let expected = on_cpu(driver, folder.path(), "normalize");
    let mut failed = 0;
    for nth in 1..40 {
        let fail = format!("cuLaunchKernel:{nth}:719:once");
        let env = [("STUB_WAIT", "2000"), ("STUB_FAIL", &*fail)];
        let ran = ran(driver, folder.path(), line, &env);
        ran.is_sound(&fail);
        failed += ran.count("failed");
        let made = taken(folder.path());
        // A launch for one image has no second attempt.
        assert!(expected.len() - made.len() <= 1, "{fail}: {}", ran.stderr);
        assert!(
            made.iter()
                .all(|(name, bytes)| expected.get(name) == Some(bytes)),
            "{fail}"
        );
    }
    assert!(failed > 5, "{failed}");
}

/// Where an event could not be recorded after a launch for several images, the kernel ran again for each of them, and sums were
/// doubled.
#[test]
fn an_event_that_failed_ran_a_kernel_twice() {
    let Some(driver) = driver() else { return };
    let folder = many();
    let right = ran(driver, folder.path(), "sum in -q --device cpu", &[]).stdout;
    let right: BTreeSet<&str> = right.lines().collect();
    assert_eq!(right.len(), 40);
    let mut failed = 0;
    for nth in (1..300).step_by(7) {
        let fail = format!("cuEventRecord:{nth}:999:once");
        let env = [("STUB_WAIT", "2000"), ("STUB_FAIL", &*fail)];
        let line = "sum in -q --device gpu --stats -j 40";
        let ran = ran(driver, folder.path(), line, &env);
        ran.is_sound(&fail);
        failed += ran.count("failed");
        let is_right = ran.stdout.lines().all(|line| right.contains(line));
        assert!(is_right, "{fail}: {}", ran.stdout);
    }
    assert!(failed > 5, "{failed}");
}

/// With `auto` the CPU takes over, whatever fails: every result is right, and a line says why.
#[test]
fn a_call_that_fails_leaves_a_batch_to_the_cpu() {
    let Some(driver) = driver() else { return };
    let folder = many();
    let expected = on_cpu(driver, folder.path(), "normalize");
    let env = ("GPUIMG_GPU_START", "0");
    let line = "normalize in out --device auto -j 1";
    // The files may be done before the GPU is there.
    let used = (0..20).find_map(|_| {
        let right = ran(driver, folder.path(), line, &[env]);
        assert!(taken(folder.path()) == expected);
        (right.count("launches") > 0).then_some(right)
    });
    let right = used.expect("the GPU is used");
    let (mut told, mut failed) = (0, 0);
    for (code, how) in FAILURES {
        // The first 70 or so open the GPU and make it ready; kernels that could not be loaded then are loaded later.
        for nth in (1..200)
            .step_by(5)
            .chain((200..right.count("calls")).step_by(41))
        {
            let fail = format!("*:{nth}:{code}:{how}");
            let ran = ran(driver, folder.path(), line, &[env, ("STUB_FAIL", &fail)]);
            assert_eq!(
                (ran.code, &ran.violation),
                (Some(0), &None),
                "{fail}: {}",
                ran.stderr
            );
            assert!(taken(folder.path()) == expected, "{fail}: {}", ran.stderr);
            failed += ran.count("failed");
            let warnings = ran.stderr.lines().filter(|line| line.contains("warning: "));
            for line in warnings {
                let why = ": processed on the CPU because the GPU failed: ";
                assert!(
                    line.contains(why) && !line.contains("DriverError"),
                    "{fail}: {line}"
                );
                told += 1;
            }
        }
    }
    assert!(failed > 60 && told > 8, "{failed} failed, {told} lines");
}

/// A watch whose GPU fails: every result is right. Tells whether the GPU was opened again and used; it may be there
/// only after the last file, so several attempts are made where that is expected.
fn opened_again(verb: &str, fail: &str, expected_again: bool) -> Option<bool> {
    let driver = driver()?;
    let folder = many();
    let expected = on_cpu(driver, folder.path(), verb);
    let line = format!("{verb} in out --watch --settle 0.01 --idle 0 --device auto -j 1");
    let env = [
        ("GPUIMG_GPU_START", "0"),
        ("GPUIMG_GPU_REST", "0"),
        ("STUB_FAIL", fail),
    ];
    for _ in 0..if expected_again { 20 } else { 1 } {
        let ran = ran(driver, folder.path(), &line, &env);
        assert_eq!(ran.violation, None, "{fail}: {}", ran.stderr);
        assert_eq!(ran.code, Some(0), "{fail}: {}", ran.stderr);
        assert!(taken(folder.path()) == expected, "{fail}: {}", ran.stderr);
        let said = "the GPU failed; continuing on the CPU, and trying the GPU again in 0 s";
        let told = ran
            .stderr
            .contains(": processed on the CPU because the GPU failed: ");
        assert_eq!(ran.stderr.contains(said), told, "{fail}: {}", ran.stderr);
        if ran.count("launches_after") > 0 {
            return Some(true);
        }
    }
    Some(false)
}

#[test]
fn a_watch_gives_a_gpu_up_and_opens_it_again() {
    for call in ["cuLaunchKernel", "cuMemAllocAsync", "cuStreamSynchronize"] {
        for (code, how) in FAILURES {
            let (fail, again) = (format!("{call}:2:{code}:{how}"), how != "device");
            let Some(opened) = opened_again("normalize", &fail, again) else {
                return;
            };
            assert_eq!(opened, again, "{fail}");
        }
    }
}

#[test]
fn a_watch_ends_where_its_gpu_is_lost() {
    let Some(driver) = driver() else { return };
    let folder = images();
    let line = "normalize in out --watch --settle 0.01 --idle 0 --device gpu -j 1";
    for (fail, code) in [
        ("cuLaunchKernel:2:719:context", 3),
        ("cuLaunchKernel:2:999:device", 3),
        ("cuLaunchKernel:2:2:once", 1),
    ] {
        let ran = ran(driver, folder.path(), line, &[("STUB_FAIL", fail)]);
        ran.is_sound(fail);
        assert_eq!(ran.code, Some(code), "{fail}: {}", ran.stderr);
        let unusable = ran.stderr.matches("the GPU is not usable").count();
        assert_eq!(unusable, usize::from(code == 3), "{fail}: {}", ran.stderr);
        assert_eq!(taken(folder.path()).len(), if code == 3 { 0 } else { 2 });
    }
}

/// They kept that context alive, so that the GPU never worked again.
#[test]
fn a_gpu_opened_again_had_the_frames_of_its_old_context() {
    let verb = "calibrate --dark frames/dark.pgm --flat frames/flat.pgm";
    let fail = "cuLaunchKernel:2:719:context";
    let Some(opened) = opened_again(verb, fail, true) else {
        return;
    };
    assert!(opened, "the GPU is not used again");
}

/// With `auto` a median on a GPU that failed was not a median at all.
#[test]
fn a_median_failed_with_its_gpu() {
    let Some(driver) = driver() else { return };
    let line = "project median in/a.pgm in/b.pgm in/c.pgm out.pgm --device";
    let made = |device: &str, env: &[(&str, &str)]| {
        let folder = images();
        let ran = ran(driver, folder.path(), &format!("{line} {device}"), env);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        (tree(folder.path()), ran)
    };
    let (expected, _) = made("cpu", &[]);
    let start = ("GPUIMG_GPU_START", "0");
    let (found, ran) = made(
        "auto",
        &[start, ("STUB_FAIL", "cuLaunchKernel:1:719:context")],
    );
    assert!(found == expected);
    assert_eq!(ran.count("failed"), 1);
    let said = "median: processed on the CPU because the GPU failed: unspecified launch failure";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}

/// The result of a run on one image of which a call fails.
fn failed(line: &str, fail: &str) -> Option<Ran> {
    let folder = images();
    let line = format!("{line} --device gpu");
    Some(ran(driver()?, folder.path(), &line, &[("STUB_FAIL", fail)]))
}

/// The binding keeps the error of a call whose failure is not reported, and returns it from the next call: that was
/// giving back memory, which then stayed taken, or page-locked while it was used for something else.
#[test]
fn memory_was_kept_where_another_call_had_failed() {
    for nth in 1..60 {
        let fail = format!("cuCtxGetCurrent:{nth}:2:once");
        let Some(ran) = failed(RUNS[0], &fail) else {
            return;
        };
        ran.is_sound(&fail);
    }
}

#[test]
fn one_image_on_a_lost_gpu_ended_with_status_1() {
    for how in ["context", "device"] {
        let fail = format!("cuLaunchKernel:1:719:{how}");
        let Some(ran) = failed(RUNS[0], &fail) else {
            return;
        };
        let said = "gpuimg: the GPU is not usable: cannot normalize in/a.pgm: \
            the GPU failed: minmax: unspecified launch failure\n";
        assert_eq!((ran.code, &*ran.stderr), (Some(3), said));
    }
}

#[test]
fn errors_of_the_driver_were_told_as_the_binding_writes_them() {
    for (fail, code, said) in [
        (
            "cuInit:1:3:once",
            3,
            "the GPU is not usable: the NVIDIA driver does not start: initialization error",
        ),
        (
            "cuDevicePrimaryCtxRetain:1:46:once",
            3,
            "the GPU is not usable: GPU 0 cannot be opened: CUDA-capable device(s) is/are busy or unavailable",
        ),
        (
            "cuDeviceGet:1:101:once",
            3,
            "the GPU is not usable: GPU 0 cannot be opened: invalid device ordinal",
        ),
        (
            "cuStreamCreate:1:2:once",
            3,
            "the GPU is not usable: out of memory",
        ),
        (
            "cuLaunchKernel:2:2:once",
            1,
            "cannot normalize in/a.pgm: the GPU failed: scale: out of memory",
        ),
        (
            "cuMemcpyDtoHAsync:1:2:once",
            1,
            "cannot normalize in/a.pgm: the GPU failed: download: out of memory",
        ),
    ] {
        let Some(ran) = failed(RUNS[0], fail) else {
            return;
        };
        let said = format!("gpuimg: {said}\n");
        assert_eq!((ran.code, &ran.stderr), (Some(code), &said), "{fail}");
    }
}

/// Pinning the memory of a page of 8192² took 26 ms, many times as long as its kernels.
#[test]
fn each_page_of_a_stack_pinned_its_memory_anew() {
    let Some(driver) = driver() else { return };
    let page = || image(1100, 1000, 1, Depth::Sixteen, Kind::Noise);
    let pinned = |pages: usize| {
        let pages: Vec<Image> = (0..pages).map(|_| page()).collect();
        let folder = folder(&[("in.tif", &stack(&pages, &Metadata::default()))]);
        let on_cpu = "convert in.tif deflate.tif --tiff deflate --device cpu";
        assert_eq!(ran(driver, folder.path(), on_cpu, &[]).code, Some(0));
        let line = "sum deflate.tif --device gpu";
        let ran = ran(driver, folder.path(), line, &[]);
        ran.is_sound(line);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.count("all_registrations")
    };
    let (few, many) = (pinned(4), pinned(12));
    assert!(few > 0 && many <= few + 2, "{few} and {many}");
}

/// PNG is encoded and decoded by kernels that the stand-in does not know, so that no result is inspected.
#[test]
fn a_call_that_fails_while_png_is_made_leaves_no_file() {
    let Some(driver) = driver() else { return };
    let folder = images();
    for name in ["a", "b"] {
        let line = format!("rotate 90 in/{name}.pgm png/{name}.png --device cpu");
        fs::create_dir_all(folder.path().join("png")).expect("folder");
        assert_eq!(ran(driver, folder.path(), &line, &[]).code, Some(0));
    }
    let mut cases = 0;
    for (line, most) in [
        ("flip vertical in/a.pgm out/a.png --device gpu", 1),
        ("normalize png out --device gpu -j 1", 2),
    ] {
        fs::create_dir_all(folder.path().join("out")).expect("folder");
        let calls = ran(driver, folder.path(), line, &[]).count("calls");
        assert!(calls > 60, "{line}: {calls} calls");
        taken(folder.path());
        for (code, how) in FAILURES {
            for nth in (1..=calls).step_by(if how == "once" { 2 } else { 11 }) {
                let fail = format!("*:{nth}:{code}:{how}");
                fs::create_dir_all(folder.path().join("out")).expect("folder");
                let ran = ran(driver, folder.path(), line, &[("STUB_FAIL", &fail)]);
                ran.is_sound(&format!("{fail} {line}"));
                cases += ran.count("failed");
                let made = taken(folder.path()).len();
                assert!(made <= most, "{fail} {line}: {made} files");
                assert_eq!(
                    made == most,
                    ran.code == Some(0),
                    "{fail} {line}: {}",
                    ran.stderr
                );
            }
        }
    }
    assert!(cases > 100, "{cases} cases");
}

/// An image that a GPU decodes, with a key for transparency where it is not grey with 16 bits or RGB.
fn png(bits: u8, colour: u8) -> Vec<u8> {
    let mut plain = Plain::noisy(1100, 1000, bits, colour);
    match (bits, colour) {
        (8, 3) => plain
            .before
            .push((*b"PLTE", (0..768u32).map(|i| i as u8).collect())),
        (8, 0) => plain.before.push((*b"tRNS", vec![0, 7])),
        _ => (),
    }
    let scanlines = plain.scanlines(|y| (y * 7 % 5) as u8);
    plain.file([&zlib(&scanlines, 1)[..]])
}

/// Nobody compared the lengths of device memory with what a kernel needs: a call with a wrong count wrote past its end.
/// Every kernel of the program is launched here with the sizes that the program gives it, but for those of `LEFT_OUT`;
/// those of the papers are launched by `bench`.
#[test]
fn a_kernel_was_launched_whatever_the_lengths_of_its_buffers() {
    // The library launches `cast`, and the sizes of the others follow from what other kernels make.
    const LEFT_OUT: [&str; 3] = ["cast", "png_crc", "png_pack"];
    let Some(driver) = driver() else { return };
    let mut floats = b"Pf\n64 48\n-1.0\n".to_vec();
    floats.extend((0..64 * 48).flat_map(|i| (i as f32).to_le_bytes()));
    // Deflate stores what it cannot compress: the host finds such blocks by itself.
    let mut noise = b"P5\n1100 1000\n255\n".to_vec();
    let mixed = |i: u64| {
        let i = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((i ^ i >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40) as u8
    };
    let header = noise.len();
    noise.extend((0..1_100_000).map(mixed));
    // Half of the rows in each of two chunks.
    let chunk = gzip(&noise[header..][..550_000], |raw| zlib(raw, 0));
    const GZIP_ARRAY: &str = r#"{"zarr_format": 2, "shape": [1000, 1100], "chunks": [500, 1100], "dtype": "|u1",
        "compressor": {"id": "gzip", "level": 1}, "fill_value": 0, "order": "C", "filters": null}"#;
    let folder = folder(&[
        ("in/a.pgm", &pgm(190, 181, 1)),
        ("in/b.pgm", &pgm(190, 181, 2)),
        ("in/c.pgm", &pgm(190, 181, 3)),
        ("frames/dark.pgm", &frame(190, 181, 1)),
        ("frames/flat.pgm", &frame(190, 181, 120)),
        ("noise/1.pgm", &noise),
        ("noise/2.pgm", &noise),
        ("noise/3.pgm", &noise),
        ("gzip/1.zarr/.zarray", GZIP_ARRAY.as_bytes()),
        ("gzip/1.zarr/0.0", &chunk),
        ("gzip/1.zarr/1.0", &chunk),
        ("gzip/2.zarr/.zarray", GZIP_ARRAY.as_bytes()),
        ("gzip/2.zarr/0.0", &chunk),
        ("gzip/2.zarr/1.0", &chunk),
        ("in/dark.pgm", &frame(190, 181, 1)),
        ("in/f.pfm", &floats),
        ("png/1.png", &png(8, 0)),
        ("png/2.png", &png(8, 3)),
        ("png/3.png", &png(16, 2)),
        ("png/4.png", &png(8, 0)),
        ("png/5.png", &png(8, 3)),
        ("png/6.png", &png(16, 2)),
    ]);
    for compression in ["deflate", "lzw"] {
        let on_cpu = format!(
            "rotate 180 noise {compression} --format tiff --tiff {compression} --device cpu -q"
        );
        assert_eq!(ran(driver, folder.path(), &on_cpu, &[]).code, Some(0));
    }
    let mut launched = BTreeSet::new();
    for line in RUNS.into_iter().chain([
        "calibrate --dark in/dark.pgm --hot 9 in/a.pgm hot.pgm",
        "project min in/a.pgm in/dark.pgm least.pgm -q",
        "rotate 90 in/a.pgm small.pgm --fit 50",
        "normalize in/a.pgm narrow.pgm --depth 8",
        "normalize in/a.pgm curve.pgm --curve gamma:2 --range 0:200",
        "normalize in/a.pgm zscale.pgm --range zscale",
        "lut fire in/a.pgm lut.ppm",
        "lut fire in/a.pgm lut16.ppm --depth 16",
        "debayer RGGB in/a.pgm rgb.ppm",
        "normalize in/f.pfm f.pgm",
        "normalize in/f.pfm clipped.pgm --clip 1:99",
        "sum in/f.pfm",
        "transpose png png-out -j 1 -q",
        "transpose deflate deflate-out -j 1 -q",
        "transpose lzw lzw-out -j 1 -q",
        "transpose gzip gzip-out -j 1 -q",
    ]) {
        let _ = fs::remove_file(folder.path().join("out.pgm"));
        // Kernels that do nothing leave images to the CPU, or wrong ones.
        let ran = ran(driver, folder.path(), &format!("{line} --device gpu"), &[]);
        ran.is_sound(line);
        assert!(
            !ran.stderr.contains("internal error"),
            "{line}: {}",
            ran.stderr
        );
        let kernels = ran
            .log
            .keys()
            .filter_map(|name| name.strip_prefix("kernel_"));
        launched.extend(kernels.map(str::to_string));
    }
    let source = fs::read_to_string(repository("src/gpu/launch.rs")).expect("launch.rs");
    let kernels: BTreeSet<&str> = (source.lines())
        .filter(|line| {
            line.trim_start().starts_with("checked ") || line.trim_start().starts_with("trusting ")
        })
        .filter(|line| !line.contains("\"papers/"))
        .flat_map(|line| {
            line.split_once('[')
                .map(|(_, names)| names.split('"').skip(1).step_by(2))
        })
        .flatten()
        .filter(|name| name.starts_with(|letter: char| letter.is_ascii_lowercase()))
        .collect();
    assert!(kernels.len() > 40, "{kernels:?}");
    let is_launched = |kernel: &&&str| {
        let form = format!("{kernel}_");
        launched
            .iter()
            .any(|name| name == **kernel || name.starts_with(&form))
    };
    let missing: Vec<&&str> = kernels
        .iter()
        .filter(|kernel| !is_launched(kernel))
        .collect();
    assert_eq!(missing, LEFT_OUT.iter().collect::<Vec<_>>());
}
