//! `kill -9` at random moments, and going on: whatever is made and however, the results are those of a
//! run that nothing disturbed, and nothing is left after. 24 kills; `GPUIMG_KILLS=240` has more.

use crate::support::batch::{pgm, tree};
use crate::support::stacks::stack;
use crate::support::{Kind, Numbers, Run, binary, image, run};
use gpuimg::internals::image::Depth;
use gpuimg::internals::image::metadata::Metadata;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

type Files = BTreeMap<PathBuf, Vec<u8>>;

/// What is made of which inputs.
struct Case {
    name: &'static str,
    verb: &'static [&'static str],
    inputs: Files,
}

/// Images enough that a run lasts.
const COUNT: usize = 24;

fn cases() -> [Case; 4] {
    let named = |extension: &str, make: &dyn Fn(usize) -> Vec<u8>| {
        let one = |i| (format!("{}/{i:02}.{extension}", i % 2).into(), make(i));
        (0..COUNT).map(one).collect()
    };
    let page = |i, page| image(120 + i, 90 + page, 1, Depth::Sixteen, Kind::Noise);
    let pages = |i: usize, count: usize| {
        let images: Vec<_> = (0..count).map(|number| page(i, number)).collect();
        stack(&images, &Metadata::default())
    };
    let made = |files: Files, args: &[&str]| {
        let root = tempfile::tempdir().expect("folder");
        write(&root.path().join("in"), &files);
        let args = [args, &["-q", "in", "out"]].concat();
        assert_eq!(run(root.path(), &args, &[]).code, 0);
        tree(&root.path().join("out"))
    };
    let anymaps = named("pgm", &|i| pgm(300, 200 + i, i as u64));
    [
        Case {
            name: "PNG",
            verb: &["rotate", "90", "--png", "small"],
            inputs: made(anymaps, &["flip", "vertical", "--format", "png"]),
        },
        Case {
            name: "TIFF",
            verb: &["transpose", "--tiff", "deflate"],
            inputs: named("tif", &|i| pages(i, 1)),
        },
        Case {
            name: "stacks",
            verb: &["normalize", "--to", "5:60000"],
            inputs: named("tif", &|i| pages(i, 4)),
        },
        Case {
            name: "chains",
            verb: &[
                "run",
                "normalize --to 5:60000 + rotate 90 + flip horizontal",
            ],
            inputs: named("tif", &|i| pages(i, 2)),
        },
    ]
}

fn write(folder: &Path, files: &Files) {
    for (name, bytes) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("parent")).expect("folder");
        fs::write(path, bytes).expect("file");
    }
}

/// How a run is killed and resumed.
struct Way<'a> {
    case: &'a Case,
    in_place: bool,
    nameless: bool,
}

impl Way<'_> {
    fn args(&self) -> Vec<&str> {
        let places: &[&str] = match self.in_place {
            true => &["out", "out", "--overwrite"],
            false => &["in", "out"],
        };
        [self.case.verb, &["-j", "2"], places].concat()
    }

    fn env(&self) -> &[(&'static str, &'static str)] {
        match self.nameless {
            true => &[],
            false => &[("GPUIMG_NO_TMPFILE", "1")],
        }
    }

    fn prepare(&self, root: &Path) {
        for folder in ["in", "out"] {
            if root.join(folder).exists() {
                fs::remove_dir_all(root.join(folder)).expect("remove");
            }
        }
        let place = if self.in_place { "out" } else { "in" };
        write(&root.join(place), &self.case.inputs);
    }

    /// Runs for as long as it may; says whether it had come to its end.
    fn killed(&self, root: &Path, args: &[&str], after: Duration) -> bool {
        let mut child = Command::new(binary())
            .args(args)
            .envs(self.env().iter().copied())
            .current_dir(root)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program runs");
        thread::sleep(after);
        let ended = child.try_wait().expect("wait").is_some();
        child.kill().expect("kill");
        child.wait().expect("wait");
        ended
    }
}

#[test]
fn killed_at_random_moments_nothing_is_lost_and_nothing_left_behind() {
    let kills: usize = match env::var("GPUIMG_KILLS") {
        Ok(count) => count.parse().expect("GPUIMG_KILLS is a number"),
        Err(_) => 24,
    };
    let cases = cases();
    let mut ways = Vec::new();
    for case in &cases {
        for (in_place, nameless) in [(false, true), (false, false), (true, true), (true, false)] {
            ways.push(Way {
                case,
                in_place,
                nameless,
            });
        }
    }
    let mut numbers =
        Numbers::new(env::var("GPUIMG_SEED").map_or(1, |it| it.parse().expect("seed")));
    let mut part = || (numbers.next() >> 11) as f64 / (1u64 << 53) as f64;
    let (mut done, mut amid, mut left) = (0, 0, 0);
    for (index, way) in ways.iter().enumerate() {
        let root = tempfile::tempdir().expect("folder");
        let (root, args) = (root.path(), way.args());
        let what = |text: &str| {
            format!(
                "{} in place {} O_TMPFILE {}: {text}",
                way.case.name, way.in_place, way.nameless
            )
        };
        way.prepare(root);
        let begun = Instant::now();
        let undisturbed = run(root, &args, way.env());
        let whole = begun.elapsed();
        assert_eq!(undisturbed.code, 0, "{}", what(&undisturbed.stderr));
        let expected = tree(&root.join("out"));
        assert_eq!(expected.len(), COUNT);
        let again = [&args[..], &["--resume"]].concat();
        // The kills are shared out among the ways.
        let mut rest = (kills + ways.len() - 1 - index) / ways.len();
        while rest > 0 {
            way.prepare(root);
            let mut args = &args;
            // Every third time what continues is killed as well.
            for _ in 0..if rest % 3 == 2 { 2 } else { 1 } {
                let ended = way.killed(root, args, whole.mul_f64(0.8 * part()));
                (done, amid) = (done + 1, amid + usize::from(!ended));
                rest -= 1;
                args = &again;
                if !root.join("out").exists() {
                    continue;
                }
                for (name, bytes) in tree(&root.join("out")) {
                    if name.to_string_lossy().contains(".gpuimg-tmp-") {
                        left += 1;
                        continue;
                    }
                    let untouched = way.in_place && way.case.inputs.get(&name) == Some(&bytes);
                    let whole = expected.get(&name) == Some(&bytes);
                    assert!(whole || untouched, "{}", what(&name.to_string_lossy()));
                }
            }
            let Run { code, stderr, .. } = run(root, &again, way.env());
            assert_eq!(code, 0, "{}", what(&stderr));
            assert!(tree(&root.join("out")) == expected, "{}", what(&stderr));
            let Run { stderr, .. } = run(root, &again, way.env());
            let all = format!("0 of {COUNT} files done, {COUNT} already done");
            assert!(stderr.contains(&all), "{}", what(&stderr));
        }
    }
    let _ = writeln!(
        std::io::stderr(),
        "{done} kills, {amid} of them amid the work, {left} unfinished files found and removed"
    );
    assert!(done >= kills && amid > 0);
}
