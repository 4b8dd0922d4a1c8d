//! What the documents name exists: paths, links, tests, commands and their options.

use crate::support::{repository, run};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The documents, and the folder that their links start from. The changelog is about the past and is left out.
fn documents() -> Vec<(String, String)> {
    let mut names = vec!["README.md".to_string(), "CONTRIBUTING.md".to_string()];
    for folder in ["docs", "docs/guide"] {
        let entries = fs::read_dir(repository(folder)).expect("a folder of documents");
        for entry in entries {
            let name = entry.expect("an entry").file_name();
            let name = name.into_string().expect("a name in UTF-8");
            if name.ends_with(".md") {
                names.push(format!("{folder}/{name}"));
            }
        }
    }
    names.sort();
    let read = |name: String| {
        let text = fs::read_to_string(repository(&name)).expect("a document");
        (name, text)
    };
    names.into_iter().map(read).collect()
}

/// The words in backticks outside of blocks of code.
fn quoted(text: &str) -> Vec<&str> {
    let mut quoted = Vec::new();
    for part in text.split("```").step_by(2) {
        quoted.extend(part.split('`').skip(1).step_by(2));
    }
    quoted
}

/// The lines in blocks of code, except for sessions, which `transcript::the_guide_is_true` runs.
fn code(text: &str) -> impl Iterator<Item = &str> {
    let blocks = text.split("```").skip(1).step_by(2);
    let unchecked = blocks.filter(|block| !block.starts_with("console"));
    unchecked.flat_map(str::lines)
}

/// Every file of these folders below the repository, as a path from its root.
fn files(folders: &[&str]) -> Vec<String> {
    fn visit(folder: &Path, found: &mut Vec<PathBuf>) {
        let Ok(entries) = fs::read_dir(folder) else {
            return;
        };
        for entry in entries {
            let path = entry.expect("an entry").path();
            let is_output = path.ends_with("target") || path.ends_with("tests/fuzz/corpus");
            if path.is_dir() && !is_output {
                visit(&path, found);
            }
            found.push(path);
        }
    }
    let root = repository(".");
    let mut found = Vec::new();
    for folder in folders {
        visit(&root.join(folder), &mut found);
    }
    let name = |path: PathBuf| {
        let below = path.strip_prefix(&root).expect("below the root");
        below.to_str().expect("a name in UTF-8").to_string()
    };
    found.into_iter().map(name).collect()
}

/// Whether `name` is `pattern`, in which `*` stands for any text and a part in braces for one of its alternatives.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => {
            let Some(name) = name.strip_prefix(start) else {
                return false;
            };
            (0..=name.len())
                .filter(|&at| name.is_char_boundary(at))
                .any(|at| matches(rest, &name[at..]))
        }
    }
}

/// The folders whose files documents name by their whole path.
const FOLDERS: [&str; 10] = [
    ".ci",
    "benches",
    "docs",
    "examples",
    "kernels",
    "packaging",
    "python",
    "samples",
    "src",
    "tests",
];

#[test]
fn paths_in_documents_exist() {
    let files = files(&FOLDERS);
    let mut checked = 0;
    let mut missing = BTreeSet::new();
    for (document, text) in documents() {
        for word in quoted(&text).into_iter().flat_map(str::split_whitespace) {
            let path = word.trim_end_matches(['/', ',', ';', ':', '.', ')']);
            let Some((folder, _)) = path.split_once('/') else {
                continue;
            };
            // A capital word stands for a name that a user chooses, and an ellipsis for a part of one.
            let is_placeholder = path.contains('…') || path.split(['/', '.']).any(is_capitals);
            if !FOLDERS.contains(&folder) || is_placeholder {
                continue;
            }
            checked += 1;
            if !files.iter().any(|file| matches(path, file)) {
                missing.insert(format!("{document}: {path}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(checked > 100, "{checked}");
}

fn is_capitals(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|letter| letter.is_ascii_uppercase())
}

#[test]
fn links_in_documents_lead_somewhere() {
    let mut checked = 0;
    let mut missing = BTreeSet::new();
    for (document, text) in documents() {
        let name = repository(&document);
        let folder = name.parent().expect("a folder");
        for link in text.split("](").skip(1) {
            let link = link.split(')').next().unwrap_or_default();
            if link.starts_with("https://") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => name.clone(),
                path => folder.join(path),
            };
            let has_anchor = || {
                let text = fs::read_to_string(&target).unwrap_or_default();
                let headings = text.lines().filter(|line| line.starts_with('#'));
                headings.map(heading_anchor).any(|known| known == anchor)
            };
            checked += 1;
            if !target.exists() || (!anchor.is_empty() && !has_anchor()) {
                missing.insert(format!("{document}: {link}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(checked > 20, "{checked}");
}

#[test]
fn the_site_has_every_page() {
    let summary = fs::read_to_string(repository("docs/SUMMARY.md")).expect("a document");
    let is_chapter = |page: &str| summary.contains(&format!("]({page})"));
    let mut checked = 0;
    for (document, _) in documents() {
        let page = document.strip_prefix("docs/");
        if let Some(page) = page.filter(|page| *page != "SUMMARY.md") {
            assert!(is_chapter(page), "docs/SUMMARY.md has no {page}");
            checked += 1;
        }
    }
    assert!(checked > 20, "{checked}");
}

/// The anchor that renderers of Markdown give a heading.
fn heading_anchor(line: &str) -> String {
    let heading = line.trim_start_matches('#').trim().to_lowercase();
    let kept = heading.chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        letter if letter.is_alphanumeric() || "-_".contains(letter) => Some(letter),
        _ => None,
    });
    kept.collect()
}

/// The functions of each module of `tests` and of the unit tests in `src`, by the path that `cargo test` prints.
fn tests() -> Vec<String> {
    let mut names = Vec::new();
    for file in files(&["src", "tests"]) {
        let Some(module) = file.strip_suffix(".rs") else {
            continue;
        };
        let is_unit = module.starts_with("src/");
        let module = module
            .trim_start_matches("src/")
            .trim_start_matches("tests/");
        let module = module.trim_end_matches("/mod").replace('/', "::");
        let text = fs::read_to_string(repository(&file)).expect("a source");
        for line in text.lines() {
            let line = line.trim_start();
            let function = line.strip_prefix("fn ").or(line.strip_prefix("pub fn "));
            let Some(function) = function else { continue };
            let name = function.split(['(', '<']).next().unwrap_or_default();
            let tests = if is_unit && !module.ends_with("::tests") {
                "::tests"
            } else {
                ""
            };
            names.push(format!("{module}{tests}::{name}"));
        }
    }
    names
}

#[test]
fn tests_in_documents_exist() {
    let tests = tests();
    let scripts = files(&["tests", "benches", "packaging"]);
    let is_module = |name: &str| {
        let path = repository("tests").join(name);
        !name.is_empty() && (path.is_dir() || path.with_extension("rs").exists())
    };
    let mut checked = 0;
    let mut missing = BTreeSet::new();
    for (document, text) in documents() {
        for word in quoted(&text) {
            let is_script = word.ends_with(".py") && !word.contains(['/', ' ']);
            let first = word.split("::").next().unwrap_or_default();
            let is_test = word.contains("::")
                && !word.contains([' ', '<', '{', '('])
                && (is_module(first) || word.contains("tests::"));
            let found = if is_script {
                let end = format!("/{word}");
                scripts.iter().any(|script| script.ends_with(&end))
            } else if is_test {
                let pattern = match word.strip_suffix("::") {
                    Some(module) => format!("{module}::*"),
                    None => word.to_string(),
                };
                // Unit tests are named from the module that a reader knows, and not from the root.
                tests.iter().any(|test| {
                    let starts = test.match_indices("::").map(|(at, _)| at + 2);
                    std::iter::once(0)
                        .chain(starts)
                        .any(|at| matches(&pattern, &test[at..]))
                })
            } else {
                continue;
            };
            checked += 1;
            if !found {
                missing.insert(format!("{document}: {word}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(checked > 200, "{checked}");
}

#[test]
fn commands_in_documents_exist() {
    let mut helps: BTreeMap<String, String> = BTreeMap::new();
    let mut help = |verb: &str| {
        let ask = || run(Path::new("/"), &[verb, "--help"], &[]);
        let known = helps.entry(verb.to_string());
        known.or_insert_with(|| ask().stdout).clone()
    };
    let mut checked = 0;
    let mut missing = BTreeSet::new();
    for (document, text) in documents() {
        let lines = code(&text).chain(quoted(&text));
        for line in lines {
            let line = line.trim_start().trim_start_matches("$ ");
            let Some(command) = line.strip_prefix("gpuimg ") else {
                continue;
            };
            // An explanation stands after two spaces, and another command after a pipe.
            let command = command.split("  ").next().unwrap_or_default();
            let command = command.split(['|', '#']).next().unwrap_or_default();
            let mut words = command.split_whitespace();
            let verb = words.next().unwrap_or_default();
            if verb.starts_with('-') || is_capitals(verb) || verb.starts_with('[') {
                continue;
            }
            let help = help(verb);
            checked += 1;
            if help.is_empty() {
                missing.insert(format!("{document}: gpuimg {verb}"));
                continue;
            }
            // The options of a chain's verbs are between quotation marks.
            for word in words.filter(|_| !command.contains('\'')) {
                let Some(option) = word.strip_prefix("--") else {
                    continue;
                };
                let option = option
                    .split(['=', '…', ',', ')'])
                    .next()
                    .unwrap_or_default();
                let option = format!("--{option}");
                let known = |word: &str| {
                    let word = word.trim_matches(['[', ']', ',', '.', ':']);
                    word.split(['=', '[', '<']).next() == Some(&*option)
                };
                if !help.split_whitespace().any(known) {
                    missing.insert(format!("{document}: gpuimg {verb} {option}"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(checked > 50, "{checked}");
}

#[test]
fn cargo_targets_in_documents_exist() {
    let tests = tests();
    let mut checked = 0;
    let mut missing = BTreeSet::new();
    for (document, text) in documents() {
        // Indented lines are code, too.
        let indented = text.lines().filter(|line| line.starts_with("    cargo "));
        for line in code(&text).chain(quoted(&text)).chain(indented) {
            let Some((_, command)) = line.split_once("cargo ") else {
                continue;
            };
            let words: Vec<&str> = command.split_whitespace().collect();
            let found = match words[..] {
                ["bench", "--bench", name, ..] => repository("benches")
                    .join(name)
                    .with_extension("rs")
                    .exists(),
                ["test", .., filter] if filter.ends_with("::") => tests
                    .iter()
                    .any(|test| test.starts_with(filter) || test.contains(&format!("::{filter}"))),
                _ => continue,
            };
            checked += 1;
            if !found {
                missing.insert(format!("{document}: cargo {command}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(checked > 5, "{checked}");
}
