//! The structure of `src`: imports run one way, and no files import each other.

use crate::support::{counted, repository};
use std::collections::{BTreeMap, BTreeSet};
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

/// The text of each file, by the path of its module: `ops/wide/sum`, or nothing for `lib.rs`.
type Sources = BTreeMap<String, String>;

/// The modules that the file of each module imports. A module may also use what its parents define, which is not listed.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// The paths that a source names.
#[derive(Default)]
struct Names<'a> {
    /// Those of its `use` declarations, each with the name that it introduces.
    used: Vec<(&'a str, Vec<&'a str>)>,
    /// Those in its code.
    paths: Vec<Vec<&'a str>>,
}

/// Reads the files below a folder, except those of tests, which may import everything.
fn read_sources(root: &Path, folder: &Path, sources: &mut Sources) {
    for entry in fs::read_dir(folder).expect("src") {
        let path = entry.expect("an entry").path();
        let is_test = path.ends_with("tests.rs") || path.ends_with("schedules.rs");
        if path.is_dir() {
            read_sources(root, &path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !is_test {
            let module = path
                .strip_prefix(root)
                .expect("below src")
                .with_extension("");
            let module = module.to_string_lossy().replace('\\', "/");
            let module = if module == "lib" {
                String::new()
            } else {
                module
            };
            sources.insert(module, fs::read_to_string(&path).expect("a source"));
        }
    }
}

/// Bytes of the comment, text or character at the beginning of a source; `None` if there is none.
fn skipped(source: &str) -> Option<usize> {
    let end = |mark: &str, from: usize| {
        let found = source[from..].find(mark);
        found.map_or(source.len(), |at| from + at + mark.len())
    };
    if source.starts_with("//") {
        return Some(end("\n", 0));
    }
    if source.starts_with("r#\"") {
        return Some(end("\"#", 3));
    }
    let quote = source
        .chars()
        .next()
        .filter(|first| "\"'".contains(*first))?;
    let is_character = source.starts_with("'\\") || source.chars().nth(2) == Some('\'');
    if quote == '\'' && !is_character {
        // A lifetime.
        return Some(1);
    }
    let mut escaped = false;
    for (at, letter) in source.char_indices().skip(1) {
        if letter == quote && !escaped {
            return Some(at + 1);
        }
        escaped = letter == '\\' && !escaped;
    }
    Some(source.len())
}

fn is_in_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The words and punctuation of a source, without comments, texts, and the tests at its end.
fn tokens(source: &str) -> Vec<&str> {
    let code = source.split("#[cfg(test)]\nmod tests {").next();
    let mut rest = code.unwrap_or_default();
    let mut tokens = Vec::new();
    while let Some(first) = rest.chars().next() {
        let skip = skipped(rest);
        let word = rest.find(|letter| !is_in_word(letter));
        let mark = if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        let length = skip.unwrap_or(word.unwrap_or(rest.len()).max(mark));
        let (token, after) = rest.split_at(length);
        if skip.is_none() && !token.trim().is_empty() {
            tokens.push(token);
        }
        rest = after;
    }
    tokens
}

/// Reads the tree of a `use` declaration below the path `parent`, from the token `at` on; returns where it ends.
fn read_use<'a>(
    tokens: &[&'a str],
    mut at: usize,
    parent: &[&'a str],
    used: &mut Vec<(&'a str, Vec<&'a str>)>,
) -> usize {
    let mut path = parent.to_vec();
    while !matches!(tokens[at], "," | ";" | "}" | "as" | "{") {
        if tokens[at] != "::" {
            path.push(tokens[at]);
        }
        at += 1;
    }
    if tokens[at] == "{" {
        at += 1;
        while tokens[at] != "}" {
            at = read_use(tokens, at, &path, used);
            at += usize::from(tokens[at] == ",");
        }
        return at + 1;
    }
    if path.last() == Some(&"self") && path.len() > 1 {
        path.pop();
    }
    let mut name = *path.last().expect("a name");
    if tokens[at] == "as" {
        name = tokens[at + 1];
        at += 2;
    }
    used.push((name, path));
    at
}

fn names(source: &str) -> Names<'_> {
    let tokens = tokens(source);
    let mut names = Names::default();
    let mut at = 0;
    while at < tokens.len() {
        let is_path = tokens[at].starts_with(is_in_word) && tokens.get(at + 1) == Some(&"::");
        // `use<'a>` of a type imports nothing.
        if tokens[at] == "use" && tokens[at + 1] != "<" {
            at = read_use(&tokens, at + 1, &[], &mut names.used);
        } else if is_path {
            let mut path = vec![tokens[at]];
            while tokens.get(at + 1) == Some(&"::") && tokens[at + 2].starts_with(is_in_word) {
                path.push(tokens[at + 2]);
                at += 2;
            }
            names.paths.push(path);
        }
        at += 1;
    }
    names
}

fn child(module: &str, name: &str) -> String {
    match module {
        "" => name.into(),
        _ => format!("{module}/{name}"),
    }
}

fn parent(module: &str) -> String {
    let parent = module.rsplit_once('/').map(|(parent, _)| parent);
    parent.unwrap_or_default().into()
}

/// The module in which a path of the module `own` ends; `None` if it is not in the crate.
fn resolve(path: &[&str], own: &str, files: &BTreeMap<&str, Names>) -> Option<String> {
    let (&first, rest) = path.split_first()?;
    let mut module = match first {
        "crate" => String::new(),
        "self" => own.into(),
        "super" => parent(own),
        _ if files.contains_key(&*child(own, first)) => child(own, first),
        _ => {
            let mut used = files[own].used.iter();
            let (_, used) = used.find(|(name, path)| *name == first && path[0] != first)?;
            return resolve(&[used, rest].concat(), own, files);
        }
    };
    for name in rest {
        let next = match *name {
            "super" => parent(&module),
            _ => child(&module, name),
        };
        if !files.contains_key(&*next) {
            break;
        }
        module = next;
    }
    Some(module)
}

fn imports(sources: &Sources) -> Imports {
    let files = sources
        .iter()
        .map(|(module, source)| (module.as_str(), names(source)));
    let files: BTreeMap<&str, Names> = files.collect();
    let imported = files.iter().map(|(&own, names)| {
        let used = names.used.iter().map(|(_, path)| path);
        let paths = used.chain(&names.paths);
        let modules = paths.filter_map(|path| resolve(path, own, &files));
        let is_parent = |module: &str| module.is_empty() || own.starts_with(&child(module, ""));
        let modules = modules.filter(|module| module != own && !is_parent(module));
        (own.to_string(), modules.collect())
    });
    imported.collect()
}

/// Modules whose files import each other: each imports the next one, and the last is the first. Empty if there are none.
fn cycle(imports: &Imports) -> Vec<String> {
    fn visit(
        module: &str,
        imports: &Imports,
        path: &mut Vec<String>,
        finished: &mut BTreeSet<String>,
    ) -> Option<Vec<String>> {
        if finished.contains(module) {
            return None;
        }
        let start = path.iter().position(|above| above == module);
        path.push(module.into());
        if let Some(start) = start {
            return Some(path[start..].to_vec());
        }
        for next in &imports[module] {
            if let Some(cycle) = visit(next, imports, path, finished) {
                return Some(cycle);
            }
        }
        path.pop();
        finished.insert(module.into());
        None
    }
    let mut finished = BTreeSet::new();
    let mut modules = imports.keys();
    let cycle = modules.find_map(|module| visit(module, imports, &mut Vec::new(), &mut finished));
    cycle.unwrap_or_default()
}

fn sources() -> Sources {
    let root = repository("src");
    let mut sources = Sources::new();
    read_sources(&root, &root, &mut sources);
    sources
}

#[test]
fn imports_run_one_way() {
    let sources = sources();
    let top = |module: &str| {
        let top = module.split('/').next().unwrap_or_default();
        if top.is_empty() { "lib" } else { top }.to_string()
    };
    let (mut upwards, mut cases) = (BTreeSet::new(), 0);
    for (own, imported) in imports(&sources) {
        for module in imported {
            cases += 1;
            if layer(&top(&module)) < layer(&top(&own)) {
                upwards.insert(format!("{own} imports {module}"));
            }
        }
    }
    assert!(upwards.is_empty(), "{upwards:#?}");
    counted(&format!("{cases} imports of {} files", sources.len()));
    assert!(cases > 1500);
}

/// A call of one system outside `os/system` would not compile for another.
#[test]
fn what_differs_between_systems_is_in_one_place() {
    let of_one_system = [
        "std::os::unix",
        "std::os::fd",
        "std::os::windows",
        "rustix::",
    ];
    let (mut elsewhere, mut inside) = (Vec::new(), 0);
    for (module, text) in sources() {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let code = code.split("#[cfg(all(test").next().unwrap_or_default();
        let named = of_one_system.iter().filter(|path| code.contains(**path));
        match module.starts_with("os/system/") {
            true => inside += named.count(),
            false => elsewhere.extend(named.map(|path| format!("{module} names {path}"))),
        }
    }
    assert!(elsewhere.is_empty(), "{elsewhere:#?}");
    assert!(inside >= 4, "{inside}");
}

#[test]
fn no_files_import_each_other() {
    let imports = imports(&sources());
    assert_eq!(cycle(&imports), Vec::<String>::new());
    counted(&format!("{} files", imports.len()));
}

#[test]
fn a_planted_cycle_of_files_is_found() {
    let plant = |module: &str, source: &str| {
        let mut sources = sources();
        sources
            .entry(module.into())
            .or_default()
            .insert_str(0, source);
        cycle(&imports(&sources))
    };
    let cycle = plant("os/utc", "use super::{count, source::Source};\n");
    assert_eq!(cycle, Vec::<String>::new(), "one import is not a cycle");
    // `source` imports `state`, which imports `digest`.
    let cycle = plant(
        "os/digest",
        "use super::{count, source::{self as from, Source}};\n",
    );
    assert_eq!(cycle, ["os/digest", "os/source", "os/digest"]);
    let cycle = plant(
        "os/digest",
        "use super as os;\nfn f() { os::source::g(\"'\"); }\n",
    );
    assert_eq!(cycle, ["os/digest", "os/source", "os/digest"]);
    let cycle = plant(
        "os/digest",
        "// use super::source;\nconst A: &str = \"crate::os::source::B\";\n",
    );
    assert_eq!(
        cycle,
        Vec::<String>::new(),
        "comments and texts import nothing"
    );
}

#[test]
fn imports_are_read_as_rust_reads_them() {
    let sources = [
        ("", "mod a;\npub use a::A;"),
        (
            "a",
            "mod b;\nmod c;\nuse b::B;\nuse serde::{Serialize, c};\nfn f(x: c::X) {}",
        ),
        (
            "a/b",
            "use super::c::{self, d::{D as E, F}};\nuse super::G;\nfn f() -> E { c::d::f(); crate::h::i() }",
        ),
        (
            "a/c",
            "mod d;\npub(super) use d::{D, F};\nconst A: char = '\"'; // crate::h\nfn f<'a>(x: &'a str) { crate::h::i('\\'') }",
        ),
        ("a/c/d", "use super::super::b::B;\nuse std::h::I;"),
        ("h", "#[cfg(test)]\nmod tests { use crate::a::b::B; }"),
    ];
    let sources = sources.map(|(module, source)| (module.to_string(), source.to_string()));
    let imports = imports(&Sources::from(sources));
    let expected: [(&str, &[&str]); 6] = [
        ("", &["a"]),
        ("a", &["a/b", "a/c"]),
        ("a/b", &["a/c", "a/c/d", "h"]),
        ("a/c", &["a/c/d", "h"]),
        ("a/c/d", &["a/b"]),
        ("h", &[]),
    ];
    let expected = expected.map(|(module, imported)| {
        let imported = imported.iter().map(|module| module.to_string());
        (module.to_string(), imported.collect())
    });
    assert_eq!(imports, Imports::from(expected));
    assert_eq!(cycle(&imports), ["a/b", "a/c", "a/c/d", "a/b"]);
}
