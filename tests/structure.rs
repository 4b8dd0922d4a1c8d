//! The structure of `src`: imports run one way.

use crate::support::{counted, repository};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The modules at the top of `src`, from the command line down. A module imports from those in later rows, and from those
/// beside it in its own row.
const LAYERS: &[&[&str]] = &[
    &["main"],
    &["lib"],
    &["cli"],
    &["batch", "bench", "doctor", "verify"],
    &["api"],
    &["engine"],
    &["ops", "formats"],
    &["gpu", "deflate", "timing"],
    &["os"],
    &["image"],
];

fn layer(module: &str) -> usize {
    let found = LAYERS.iter().position(|layer| layer.contains(&module));
    found.unwrap_or_else(|| panic!("the module {module} has no layer"))
}

/// The Rust files below a folder.
fn sources(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).expect("src") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The modules that a source names with `crate::`.
fn imports(text: &str) -> BTreeSet<String> {
    let names = text.split("crate::").skip(1);
    let names = names.map(|rest| {
        let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
        rest[..end.unwrap_or(rest.len())].to_string()
    });
    names.filter(|name| !name.is_empty()).collect()
}

#[test]
fn imports_run_one_way() {
    let root = repository("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let known: BTreeSet<&str> = LAYERS.iter().copied().flatten().copied().collect();
    let (mut upwards, mut cases) = (BTreeSet::new(), 0);
    for path in &files {
        let below = path.strip_prefix(&root).expect("below src");
        let first = below.components().next().expect("a name").as_os_str();
        let own = first.to_string_lossy().trim_end_matches(".rs").to_string();
        let text = fs::read_to_string(path).expect("a source");
        // Tests inside of a module may use everything.
        let code = text
            .split("#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or_default();
        if path.ends_with("tests.rs") || path.ends_with("schedules.rs") {
            continue;
        }
        for name in imports(code) {
            if name == own || !known.contains(name.as_str()) {
                continue;
            }
            cases += 1;
            if layer(&name) < layer(&own) {
                upwards.insert(format!(
                    "{own} imports {name} ({})",
                    below.to_string_lossy()
                ));
            }
        }
    }
    assert!(upwards.is_empty(), "{upwards:#?}");
    counted(&format!("{cases} imports of {} files", files.len()));
    assert!(cases > 500);
}
