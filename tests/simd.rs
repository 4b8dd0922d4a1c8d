//! Levels of vector instructions: the same bytes at all of them, and what `GPUIMG_SIMD` takes.

use crate::support::{folder, repository, run};
use gpuimg::internals::image::simd::Level;
use std::fs;
use std::path::Path;

/// Every file that a folder's verbs make, at one level.
fn made(folder: &Path, level: &str) -> Vec<Vec<u8>> {
    let env = [("GPUIMG_SIMD", level)];
    let samples = repository("samples");
    let mut all = Vec::new();
    for entry in fs::read_dir(samples).expect("samples") {
        let path = entry.expect("a name").path();
        let is_image = (path.extension()).is_some_and(|it| it == "png" || it == "tif");
        // No PNG holds its pages.
        if !is_image || path.ends_with("nuclei-stack.tif") {
            continue;
        }
        let path = path.to_str().expect("a name in ASCII");
        for (verb, name) in [
            (&["normalize"][..], "out.png"),
            (&["normalize", "--depth", "8"], "out.tif"),
            (&["transpose"], "out.pam"),
            (&["rotate", "180"], "out.png"),
            (&["flip", "horizontal"], "out.tif"),
        ] {
            let mut args = verb.to_vec();
            args.extend([path, name, "--overwrite", "--tiff", "deflate"]);
            let out = run(folder, &args, &env);
            assert_eq!(out.code, 0, "{args:?}: {}", out.stderr);
            all.push(fs::read(folder.join(name)).expect("an output"));
        }
        let sums = run(folder, &["sum", "--all", path], &env);
        all.push(sums.stdout.into_bytes());
    }
    all
}

#[test]
fn every_level_gives_the_same_bytes() {
    let folder = folder(&[]);
    let levels: Vec<Level> = Level::all().collect();
    let highest = Level::highest().name();
    let expected = made(folder.path(), highest);
    assert!(expected.len() >= 18, "{} outputs", expected.len());
    for level in &levels[..levels.len() - 1] {
        let found = made(folder.path(), level.name());
        assert_eq!(found.len(), expected.len());
        let differs = expected.iter().zip(&found).position(|(a, b)| a != b);
        assert_eq!(differs, None, "{} against {highest}", level.name());
    }
}

#[test]
fn a_level_that_is_none_is_wrong_usage() {
    let folder = folder(&[]);
    for name in ["sse4", "", "AVX2"] {
        let out = run(folder.path(), &["doctor"], &[("GPUIMG_SIMD", name)]);
        assert_eq!(out.code, 2, "{name}: {}", out.stderr);
        let start = format!("gpuimg: GPUIMG_SIMD={name}: ");
        assert!(out.stderr.starts_with(&start), "{}", out.stderr);
        assert!(out.stderr.contains("(expected scalar, "), "{}", out.stderr);
    }
}

#[test]
fn the_doctor_names_the_level_in_use() {
    let folder = folder(&[]);
    let args = ["doctor", "--device", "cpu"];
    let highest = Level::highest().name();
    let line = |env: &[(&str, &str)]| {
        let out = run(folder.path(), &args, env).stdout;
        let line = out.lines().find(|line| line.starts_with("CPU vectors"));
        line.expect("a line of vectors").to_string()
    };
    assert!(line(&[("GPUIMG_SIMD", highest)]).contains(&format!("{highest} used")));
    let scalar = line(&[("GPUIMG_SIMD", "scalar")]);
    let lowered = format!("scalar used (this CPU supports {highest}) (GPUIMG_SIMD=scalar)");
    assert!(scalar.ends_with(&lowered), "{scalar}");
}
