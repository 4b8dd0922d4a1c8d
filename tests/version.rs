use crate::support::run;
use std::collections::BTreeSet;
use std::path::Path;

/// What the program prints when it ends with status 0 and nothing on standard error.
fn printed(args: &[&str]) -> String {
    let run = run(Path::new("/"), args, &[]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{args:?}");
    run.stdout
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[test]
fn a_plain_version_is_one_line() {
    let line = concat!("gpuimg ", env!("CARGO_PKG_VERSION"), "\n");
    for option in ["--version", "-V"] {
        assert_eq!(printed(&[option]), line);
    }
}

#[test]
fn a_verbose_version_says_what_was_built() {
    let text = printed(&["--version", "--verbose"]);
    for args in [&["--version", "-v"][..], &["-Vv"], &["-V", "-v"]] {
        assert_eq!(printed(args), text, "{args:?}");
    }
    let lines: Vec<(&str, &str)> = text
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(": "))
        .collect();
    let names: Vec<&str> = lines.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["commit", "target", "GPU code"], "{text}");
    assert!(text.starts_with(&printed(&["--version"])));
    let (_, commit) = lines[0];
    let hash = commit.split(' ').next().is_some_and(|hash| {
        hash.len() == 40 && hash.bytes().all(|digit| digit.is_ascii_hexdigit())
    });
    assert!(hash || commit.starts_with("not recorded"), "{commit}");
    assert!(lines[1].1.contains(std::env::consts::ARCH), "{text}");
}

#[test]
fn the_gpu_code_named_is_the_gpu_code_embedded() {
    let targets = |text: &str| -> BTreeSet<String> {
        let words = text.split(|c| !is_word(c)).map(String::from);
        words
            .filter(|word| word.starts_with("sm_") || word.starts_with("compute_"))
            .collect()
    };
    let embedded = targets(include_str!("../kernels/compiled/list.rs"));
    assert!(embedded.len() >= 3);
    assert_eq!(targets(&printed(&["--version", "--verbose"])), embedded);
}

/// `packaging/crates.py licenses --check` compares the texts too, where Python and the crates' sources are.
#[test]
fn licences_name_the_crates_of_cargo_lock() {
    let text = printed(&["--licenses"]);
    let lock = include_str!("../Cargo.lock");
    let mut named = 0;
    let (section_rule, licence_rule) = ("=".repeat(80), "-".repeat(80));
    for section in text.split(&section_rule).skip(1) {
        let (names, licence) = section.split_once(&licence_rule).expect("a rule");
        assert!(licence.trim().len() > 300, "no licence of {names}");
        for name in names
            .split(',')
            .map(str::trim)
            .filter(|name| *name != "gpuimg")
        {
            let (name, version) = name.split_once(' ').expect("a version");
            let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
            assert!(
                lock.contains(&entry),
                "Cargo.lock has no {name} {version}: run packaging/crates.py licenses"
            );
            named += 1;
        }
    }
    assert!(named > 50, "{named} crates");
    for part in [
        "libdeflate-sys ",
        "zstd-sys ",
        "cudarc ",
        "Eric Biggers",
        "Copyright (c) 2026",
        "Apache License",
    ] {
        assert!(text.contains(part), "no {part}");
    }
}

#[test]
fn every_place_that_names_the_version_names_this_one() {
    let version = env!("CARGO_PKG_VERSION");
    let changes = include_str!("../CHANGELOG.md");
    assert!(changes.contains(&format!("\n## {version}")), "CHANGELOG.md");
    // Once for the folder of `cargo install`, twice for its man pages.
    let module = include_str!(concat!(
        "../samples/modules/gpuimg/",
        env!("CARGO_PKG_VERSION")
    ));
    assert_eq!(module.matches(&format!("gpuimg/{version}")).count(), 3);
    let python = include_str!("../python/Cargo.toml");
    assert!(
        python.contains(&format!("\nversion = \"{version}\"\n")),
        "python/Cargo.toml"
    );
    let recipe = include_str!("../packaging/conda/recipe.yaml");
    assert!(
        recipe.contains(&format!("\n  version: \"{version}\"\n")),
        "packaging/conda/recipe.yaml"
    );
}
