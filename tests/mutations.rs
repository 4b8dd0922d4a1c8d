//! What the program keeps for itself between runs, changed as a mistake or malice would: histograms, parts of a
//! projection, journals. The JSON stays JSON, and a value, a key or an element is another; or bytes are. Whatever is
//! read, nothing panics, and no file is damaged.

use crate::support::batch::{JOURNAL, pgm, tree};
use crate::support::{Numbers, folder, run};
use gpuimg::internals::batch::histogram::Set;
use gpuimg::internals::batch::project::Partial;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// The places of all values in one, as JSON pointers.
fn places(value: &Value, at: &str, places: &mut Vec<String>) {
    places.push(at.to_string());
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                self::places(value, &format!("{at}/{name}"), places);
            }
        }
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                self::places(value, &format!("{at}/{index}"), places);
            }
        }
        _ => {}
    }
}

/// A line of JSON with one or two things changed.
fn changed(line: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut pick = |count: usize| (numbers.next() >> 20) as usize % count.max(1);
    let Ok(mut value) = serde_json::from_slice::<Value>(line) else {
        return line.to_vec();
    };
    for _ in 0..=pick(2) {
        let mut all = Vec::new();
        places(&value, "", &mut all);
        let place = all[pick(all.len())].clone();
        let other = value.pointer(&all[pick(all.len())]).cloned();
        let Some(there) = value.pointer_mut(&place) else {
            continue;
        };
        let hostile = [
            json!(0),
            json!(-1),
            json!(u64::MAX),
            json!(i64::MIN),
            json!(1e300),
            json!(0.5),
            json!(65536),
            Value::Null,
            json!(true),
            json!(""),
            json!("../../x"),
            json!("%00%FF"),
            json!("n".repeat(5000)),
            json!([]),
            json!({}),
            other.unwrap_or(Value::Null),
        ];
        match (pick(6), there) {
            (0, Value::Object(members)) => {
                if let Some(name) = members.keys().nth(pick(members.len())).cloned() {
                    members.remove(&name);
                }
            }
            (0 | 1, Value::Array(values)) if !values.is_empty() => {
                let (a, b) = (pick(values.len()), pick(values.len()));
                values.swap(a, b);
                values.push(values[a].clone());
            }
            (2, Value::Number(number)) => {
                let near = number.as_u64().unwrap_or(7).wrapping_add(1);
                *number = near.into();
            }
            (_, there) => *there = hostile[pick(hostile.len())].clone(),
        }
    }
    value.to_string().into_bytes()
}

/// Bytes with some replaced, or without their end.
fn damaged(bytes: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let mut pick = |count: usize| (numbers.next() >> 20) as usize % count.max(1);
    match pick(3) {
        0 => bytes.truncate(pick(bytes.len())),
        1 => bytes.extend_from_slice(&[0xff; 9][..1 + pick(9)]),
        _ => {
            for _ in 0..=pick(4) {
                let at = pick(bytes.len());
                bytes[at] = pick(256) as u8;
            }
        }
    }
    bytes
}

/// One file with its first line changed, or with its bytes damaged.
fn mutated(file: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    if numbers.next() >> 62 == 0 {
        return damaged(file, numbers);
    }
    let end = file.iter().position(|&byte| byte == b'\n');
    let (line, rest) = file.split_at(end.unwrap_or(file.len()));
    [&changed(line, numbers)[..], rest].concat()
}

fn made(root: &Path, line: &str, output: &str) -> Vec<u8> {
    let args: Vec<&str> = line.split(' ').collect();
    let made = run(root, &args, &[]);
    assert_eq!(made.code, 0, "{line}: {}", made.stderr);
    fs::read(root.join(output)).expect("output")
}

#[test]
fn histograms() {
    let root = folder(&[("a.pgm", &pgm(9, 7, 1)), ("b.pgm", &pgm(5, 4, 2))]);
    let root = root.path();
    let file = made(root, "histogram a.pgm b.pgm -o a.hist -q", "a.hist");
    let part = made(
        root,
        "histogram a.pgm b.pgm -o p.hist -q --shard 1/2",
        "p.hist",
    );
    let mut numbers = Numbers::new(26);
    let mut read = 0;
    for case in 0..3000 {
        let file = if case % 3 == 0 { &part } else { &file };
        let path = root.join("x.hist");
        fs::write(&path, mutated(file, &mut numbers)).expect("file");
        // What is read can be joined, completed and used.
        if let Ok(mut set) = Set::read(&path) {
            read += 1;
            let _ = set.join(&set.clone());
            let known = set.counts.clone();
            if let Some(counts) = &known {
                let _ = set.add(counts, set.images);
            }
            let _ = set.complete().and_then(Set::into_counts);
        }
    }
    assert!((30..2900).contains(&read), "{read} are read");
}

#[test]
fn parts_of_projections() {
    let root = folder(&[("a.pgm", &pgm(9, 7, 1)), ("b.pgm", &pgm(9, 7, 2))]);
    let root = root.path();
    let mut numbers = Numbers::new(27);
    let mut read = 0;
    for how in ["mean", "max"] {
        let line = |part| {
            format!("project {how} a.pgm b.pgm {how}{part}.partial --partial --shard {part}/2 -q")
        };
        let (one, two) = (format!("{how}1.partial"), format!("{how}2.partial"));
        let file = made(root, &line(1), &one);
        made(root, &line(2), &two);
        for _ in 0..1500 {
            let path = root.join("x.partial");
            fs::write(&path, mutated(&file, &mut numbers)).expect("file");
            let Ok(mut part) = Partial::read(&path) else {
                continue;
            };
            read += 1;
            let other = Partial::read(&root.join(&two)).expect("whole");
            if part.join(other).is_ok() {
                let _ = part.finish();
            }
        }
    }
    assert!((30..2900).contains(&read), "{read} are read");
}

/// A journal tells whose files may be replaced, and which are done.
#[test]
fn journals() {
    let inputs: [(&str, &[u8]); 3] = [
        ("in/a.pgm", &pgm(9, 7, 1)),
        ("in/b.pgm", &pgm(8, 5, 2)),
        ("in/c.pgm", &pgm(7, 9, 3)),
    ];
    let root = folder(&inputs);
    let root = root.path();
    let args = ["transpose", "in", "out", "-q"];
    assert_eq!(run(root, &args, &[]).code, 0);
    let expected = tree(root);
    let journal = root.join("out").join(JOURNAL);
    let lines = fs::read(&journal).expect("journal");
    let lines: Vec<&[u8]> = lines.split_inclusive(|&byte| byte == b'\n').collect();
    assert!(lines.len() > 3);
    // Somebody's own file has taken the place of a result, and another result is gone.
    let own = root.join("out/b.pgm");
    let mut numbers = Numbers::new(28);
    for _ in 0..150 {
        fs::write(&own, "somebody's own").expect("file");
        let _ = fs::remove_file(root.join("out/c.pgm"));
        let changed: Vec<Vec<u8>> = lines
            .iter()
            .map(|line| match numbers.next() >> 63 {
                0 => mutated(line, &mut numbers),
                _ => line.to_vec(),
            })
            .collect();
        fs::write(&journal, changed.concat()).expect("journal");
        let again = run(root, &[&args[..], &["--resume"]].concat(), &[]);
        assert!(
            again.code < 2 && !again.stderr.contains("panicked"),
            "{}",
            again.stderr
        );
        assert_eq!(
            fs::read(&own).expect("file"),
            b"somebody's own",
            "{}",
            again.stderr
        );
        let mut there = tree(root);
        there.insert("out/b.pgm".into(), expected[Path::new("out/b.pgm")].clone());
        assert!(there == expected, "{}", again.stderr);
    }
}
