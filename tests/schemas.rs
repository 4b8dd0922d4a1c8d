//! Every JSON that is printed or written, against the schemas in `docs/schemas`; and the document,
//! `docs/SCHEMAS.md`, against both.

use crate::support::axes::{HYPERSTACK, file};
use crate::support::batch::{JOURNAL, pgm};
use crate::support::schema::faults;
use crate::support::stacks::stack;
use crate::support::watch::Watch;
use crate::support::{Kind, folder, image, repository, run};
use gpuimg::internals::image::Depth;
use gpuimg::internals::image::metadata::Metadata;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const SCHEMAS: [&str; 12] = [
    "bench",
    "doctor",
    "formats",
    "histogram",
    "info",
    "journal",
    "projection",
    "report",
    "stats",
    "sum",
    "usage",
    "verify",
];

/// Objects with keys that are not the schema's business.
const FREE: [&str; 1] = ["/key/op"];

/// Keys that are not always there.
const OPTIONAL: [(&str, &str); 21] = [
    ("verify", "page"),
    ("journal", "axes"),
    ("journal", "fit"),
    ("journal", "level"),
    ("journal", "preview"),
    ("journal", "raw_type"),
    ("journal", "zarr"),
    ("journal", "damaged"),
    ("journal", "follow"),
    ("journal", "samples"),
    ("report", "latency"),
    ("report", "clamped"),
    ("report", "float"),
    ("report", "output_sha256"),
    ("report", "position"),
    ("report", "inputs"),
    ("report", "reads"),
    ("report", "samples_sha256"),
    ("sum", "float"),
    ("stats", "clamped"),
    ("stats", "watch"),
];

fn documents(name: &str) -> String {
    fs::read_to_string(repository("docs").join(name)).expect("a document")
}

fn schema(name: &str) -> Value {
    serde_json::from_str(&documents(&format!("schemas/{name}.json"))).expect("JSON")
}

/// The JSON lines of a text; what else is said beside them is left out.
fn objects(text: &str) -> Vec<Value> {
    let lines = text.lines().filter(|line| line.starts_with('{'));
    let objects = lines.map(|line| serde_json::from_str(line).expect("JSON"));
    objects.collect()
}

/// What the program prints and writes, each with the schema that it is to fit.
fn printed() -> Vec<(&'static str, Value)> {
    let page = |width| image(width, 20, 1, Depth::Sixteen, Kind::Noise);
    let pages = |widths: &[usize]| {
        let images: Vec<_> = widths.iter().map(|&width| page(width)).collect();
        stack(&images, &Metadata::default())
    };
    let mut other = pgm(30, 20, 1);
    *other.last_mut().expect("samples") ^= 1;
    let root = folder(&[
        ("in/a.pgm", &pgm(30, 20, 1)),
        ("in/b.pgm", &pgm(30, 20, 2)),
        ("in/cut.pgm", &pgm(30, 20, 3)[..900]),
        ("in/none.pgm", b"P5\n9 9"),
        ("other.pgm", &other),
        ("w/a.pgm", &pgm(30, 20, 1)),
        ("tall.pgm", &pgm(20, 30, 1)),
        ("colour.ppm", &[&b"P6\n1 1\n255\n"[..], &[1, 2, 3]].concat()),
        ("real.pfm", b"Pf\n1 2\n1\n\x3F\x80\0\0\xC0\0\0\0"),
        ("nan.pfm", b"Pf\n1 2\n1\n\x3F\x80\0\0\x7F\xC0\0\0"),
        ("two.tif", &pages(&[30, 30])),
        ("unlike.tif", &pages(&[30, 31])),
        ("three.tif", &pages(&[30, 30, 30])),
    ]);
    let root = root.path();
    let mut all = Vec::new();
    let mut go = |code: i32, line: &str, stdout: &'static str, stderr: &'static str| {
        let args: Vec<&str> = line.split(' ').collect();
        let run = run(root, &args, &[]);
        assert_eq!(run.code, code, "{line}: {}", run.stderr);
        for (name, text) in [(stdout, run.stdout), (stderr, run.stderr)] {
            let objects = objects(&text);
            assert_eq!(objects.is_empty(), name.is_empty(), "{line}: {text}");
            all.extend(objects.into_iter().map(|object| (name, object)));
        }
    };
    go(
        0,
        "normalize in/a.pgm a.png --device cpu --stats=json",
        "",
        "stats",
    );
    go(0, "sum tall.pgm --stats=json", "", "stats");
    go(
        1,
        "normalize in out --keep-going --report r.jsonl --stats=json",
        "",
        "stats",
    );
    go(0, "normalize two.tif deep.tif --stats=json", "", "stats");
    go(
        0,
        "normalize colour.ppm two.tif out3 --report - --per-channel",
        "report",
        "",
    );
    go(1, "sum in --json", "sum", "");
    go(1, "sum in/none.pgm --json", "sum", "");
    go(
        1,
        "normalize in out --keep-going --report r.jsonl --resume",
        "",
        "",
    );
    go(0, "sum in/a.pgm in/b.pgm --report sums.jsonl", "", "");
    go(
        0,
        "normalize in/a.pgm in/b.pgm out2 --across --pages 1",
        "",
        "",
    );
    go(0, "sum in/a.pgm colour.ppm --json -q", "sum", "");
    go(0, "sum two.tif --all --json", "sum", "");
    go(0, "sum real.pfm --json", "sum", "");
    go(
        0,
        "calibrate --dark two.tif two.tif dark.tif --stats=json",
        "",
        "stats",
    );
    go(
        0,
        "calibrate --flat-start in/a.pgm --flat-end in/b.pgm in/a.pgm in/b.pgm out6 --report -",
        "report",
        "",
    );
    let projected = "project mean in/a.pgm in/b.pgm mean.pgm --report -";
    go(0, projected, "report", "");
    go(0, "sum real.pfm --all --json", "sum", "");
    go(0, "normalize real.pfm real.png --report -", "report", "");
    go(1, "verify --json real.pfm nan.pfm", "verify", "");
    go(0, "formats --json", "formats", "");
    go(0, "--json-usage", "usage", "");
    go(0, "doctor --json --device cpu", "doctor", "");
    go(3, "doctor --json --device gpu:99", "doctor", "");
    go(0, "info --json --range in/a.pgm real.pfm", "info", "");
    go(0, "info --json two.tif", "info", "");
    go(0, "verify --json in/a.pgm in/a.pgm", "verify", "");
    go(1, "verify --json in/a.pgm other.pgm", "verify", "");
    go(1, "verify --json in/a.pgm tall.pgm", "verify", "");
    go(1, "verify --json two.tif unlike.tif", "verify", "");
    go(1, "verify --json two.tif three.tif", "verify", "");
    go(0, "histogram in/a.pgm in/b.pgm -o all.hist", "", "");
    go(0, "histogram colour.ppm -o colour.hist", "", "");
    go(0, "histogram in/a.pgm --shard 2/2 -o empty.hist", "", "");
    go(
        0,
        "normalize w out3 --watch --idle 0 --settle 0 --range-from all.hist --follow --stats=json --report w.jsonl",
        "",
        "stats",
    );
    go(
        0,
        "bench transpose --small --device cpu --json",
        "bench",
        "",
    );
    let ranged = "normalize in/a.pgm ranged.pgm --range-from all.hist --report ranged.jsonl";
    go(0, ranged, "", "");
    came(root);
    for (name, file) in [
        ("report", "r.jsonl"),
        ("report", "sums.jsonl"),
        ("report", "ranged.jsonl"),
        ("report", "w.jsonl"),
        ("report", "came.jsonl"),
        ("histogram", "all.hist"),
        ("histogram", "colour.hist"),
        ("histogram", "empty.hist"),
    ] {
        let objects = objects(&fs::read_to_string(root.join(file)).expect(file));
        all.extend(objects.into_iter().map(|object| (name, object)));
    }
    for (code, line, name) in [
        (0, "project mean two.tif p.partial --partial", "p.partial"),
        (
            0,
            "project sum in/a.pgm e.partial --partial --scale --shard 2/2",
            "e.partial",
        ),
        (
            1,
            "project max in pgm.partial --partial --keep-going",
            "pgm.partial",
        ),
    ] {
        let run = run(root, &line.split(' ').collect::<Vec<_>>(), &[]);
        assert_eq!(run.code, code, "{line}: {}", run.stderr);
        let file = fs::read(root.join(name)).expect(name);
        let line = file.split(|&byte| byte == b'\n').next().expect("a line");
        all.push(("projection", serde_json::from_slice(line).expect("JSON")));
    }
    let mhd = "ObjectType = Image\nNDims = 2\nDimSize = 3 1\nElementType = MET_UCHAR\nElementDataFile = v.raw\n";
    fs::create_dir(root.join("volumes")).expect("folder");
    fs::write(root.join("volumes/v.mhd"), mhd).expect("file");
    fs::write(root.join("volumes/v.raw"), "abc").expect("file");
    let args = "rotate 180 volumes out5 --format pnm --report -";
    let turned = run(root, &args.split(' ').collect::<Vec<_>>(), &[]);
    assert_eq!(turned.code, 0, "{}", turned.stderr);
    all.extend(
        objects(&turned.stdout)
            .into_iter()
            .map(|line| ("report", line)),
    );
    fs::create_dir(root.join("stacks")).expect("folder");
    fs::write(root.join("stacks/s.tif"), file(12, HYPERSTACK)).expect("file");
    for line in [
        "rotate 180 stacks out7 --format zarr --zarr-levels 2 --fit 2 --raw-type be -q",
        "rotate 180 out7 out8 --format tiff --level 1 -q",
        "rotate 180 stacks out9 --format pnm --axes C=1,Z=2,T=1 -q",
        "preview stacks out10 -q",
    ] {
        let run = run(root, &line.split(' ').collect::<Vec<_>>(), &[]);
        assert_eq!(run.code, 0, "{line}: {}", run.stderr);
    }
    for folder in [
        "out", "out2", "out3", "out5", "out7", "out8", "out9", "out10",
    ] {
        let journal = fs::read_to_string(root.join(folder).join(JOURNAL)).expect("journal");
        all.extend(objects(&journal).into_iter().map(|line| ("journal", line)));
    }
    all
}

/// Has a watch of `w` report a file that comes while it runs, to `came.jsonl`.
fn came(root: &Path) {
    let args = "normalize w out4 --watch --until-file end --report came.jsonl";
    let watch = Watch::start(root, &args.split(' ').collect::<Vec<_>>());
    fs::write(root.join("w/b.pgm"), pgm(30, 20, 2)).expect("file");
    fs::write(root.join("w/end"), b"").expect("file");
    assert_eq!(watch.ended().code, 0);
}

/// Of an object and all objects in it: each with a key more, and with each key less in turn.
fn spoiled(name: &str, object: &Value) -> Vec<(String, Value)> {
    let mut spoiled = Vec::new();
    let mut places = vec![String::new()];
    while let Some(at) = places.pop() {
        if FREE.contains(&at.as_str()) {
            continue;
        }
        let there = object.pointer(&at).expect("a place");
        let keys: Vec<String> = match there {
            Value::Object(map) => map.keys().cloned().collect(),
            Value::Array(items) => (0..items.len().min(2)).map(|i| i.to_string()).collect(),
            _ => continue,
        };
        places.extend(keys.iter().map(|key| format!("{at}/{key}")));
        if !there.is_object() {
            continue;
        }
        let mut spoil = |what: String, change: &dyn Fn(&mut serde_json::Map<String, Value>)| {
            let mut copy = object.clone();
            let map = copy.pointer_mut(&at).and_then(Value::as_object_mut);
            change(map.expect("an object"));
            spoiled.push((what, copy));
        };
        spoil(format!("{at} with a key more"), &|map| {
            map.insert("unknown".into(), json!(1));
        });
        for key in keys {
            if !OPTIONAL.contains(&(name, &key)) {
                spoil(format!("{at} without {key}"), &|map| {
                    map.remove(&key);
                });
            }
        }
    }
    spoiled
}

#[test]
fn what_is_printed_fits_its_schema() {
    let printed = printed();
    let names: BTreeSet<&str> = printed.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, BTreeSet::from(SCHEMAS), "each schema has its cases");
    let statuses = printed.iter().filter(|(name, _)| *name == "report");
    let statuses: BTreeSet<&str> = statuses
        .filter_map(|(_, line)| line["status"].as_str())
        .collect();
    assert_eq!(
        statuses,
        BTreeSet::from(["damaged", "done", "failed", "skipped"])
    );
    for (name, optional) in OPTIONAL {
        let has = |(of, object): &(&str, Value)| {
            let parts = ["/key", "/pages/0"].map(|part| object.pointer(part));
            let mut all = parts.into_iter().flatten().chain([object]);
            *of == name && all.any(|part| part.get(optional).is_some())
        };
        assert!(printed.iter().any(has), "{name} with {optional}");
    }
    let mut noticed = 0;
    for (name, object) in &printed {
        let schema = schema(name);
        assert_eq!(faults(&schema, object), [""; 0], "{name}: {object}");
        for (what, spoiled) in spoiled(name, object) {
            assert!(!faults(&schema, &spoiled).is_empty(), "{name}{what}");
            noticed += 1;
        }
    }
    assert!(noticed > 300, "{noticed}");
}

/// The section of the document on a schema, from its heading to the next.
fn section<'a>(document: &'a str, name: &str) -> &'a str {
    let link = format!("(schemas/{name}.json)");
    let mut sections = document.split("\n## ").filter(|text| text.contains(&link));
    sections.next().expect(name)
}

#[test]
fn the_document_has_every_field_and_true_examples() {
    fn fields(schema: &Value, names: &mut BTreeSet<String>) {
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            names.extend(properties.keys().cloned());
        }
        let inner = schema.as_object().into_iter().flatten();
        inner.for_each(|(_, schema)| fields(schema, names));
    }
    let document = documents("SCHEMAS.md");
    for name in SCHEMAS {
        let (schema, section) = (schema(name), section(&document, name));
        let mut names = BTreeSet::new();
        fields(&schema, &mut names);
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
        let told: BTreeSet<String> = rows
            .filter_map(|row| row.split('`').next())
            .map(|path| path.rsplit(['.', ']']).next().unwrap_or(path).into())
            .collect();
        assert_eq!(told, names, "{name}");
        let blocks = section.split("```json\n").skip(1);
        let examples: Vec<Value> = blocks
            .filter_map(|block| block.split("```").next())
            .flat_map(|block| serde_json::Deserializer::from_str(block).into_iter())
            .map(|value| value.expect("JSON"))
            .collect();
        assert!(!examples.is_empty(), "{name} has an example");
        for example in examples {
            assert_eq!(faults(&schema, &example), [""; 0], "{name}: {example}");
        }
    }
}
