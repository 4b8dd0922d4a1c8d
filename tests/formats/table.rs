//! The contract's tables: formats by sample types, from the list of formats alone, and sample types by
//! verbs, each tried on a file of every format.

use crate::support::formats::small_files;
use crate::support::formats::{format, formats_of_files, written};
use crate::support::{Kind, folder, image, repository, run};
use gpuimg::internals::formats::FORMATS;
use gpuimg::internals::formats::format::Capabilities;
use gpuimg::internals::image::Depth;
use gpuimg::internals::image::metadata::Metadata;
use std::fs;

/// The sample types: name, depth, sign.
const TYPES: [(&str, Depth, bool); 8] = [
    ("u8", Depth::Eight, false),
    ("i8", Depth::Eight, true),
    ("u16", Depth::Sixteen, false),
    ("i16", Depth::Sixteen, true),
    ("u32", Depth::ThirtyTwo, false),
    ("i32", Depth::ThirtyTwo, true),
    ("f32", Depth::Float, false),
    ("f64", Depth::Double, false),
];

fn holds(can: &Capabilities, depth: Depth, signed: bool) -> bool {
    can.depths.contains(&depth) && (can.signed || !signed)
}

/// The samples of 32 and 64 bits that most verbs take.
const WIDE: &[Depth] = &[Depth::ThirtyTwo, Depth::Float, Depth::Double];

/// The verbs of the second table, with what stands before and after the input, and which samples of
/// 32 and 64 bits are taken.
const VERBS: [(&str, &str, &str, &[Depth]); 10] = [
    ("rotate", "rotate 90", "out.tif", WIDE),
    ("flip", "flip vertical", "out.tif", WIDE),
    ("transpose", "transpose", "out.tif", WIDE),
    ("normalize", "normalize", "out.tif", WIDE),
    ("sum", "sum", "", WIDE),
    ("verify", "verify", "IN", WIDE),
    ("histogram", "histogram -o a.hist --overwrite", "", &[]),
    ("project", "project mean", "out.tif", &[Depth::Float]),
    ("calibrate", "calibrate --dark IN", "out.tif", &[]),
    (
        "calibrate --to f32",
        "calibrate --to f32 --dark IN",
        "out.tif",
        &[Depth::Float],
    ),
];

fn contract() -> String {
    fs::read_to_string(repository("docs/CONTRACT.md")).unwrap()
}

/// A line for each format: what is read and written of each type.
#[test]
fn the_contract_has_the_table_of_formats_and_types() {
    let contract = contract();
    let names = TYPES.map(|(name, ..)| name).join(" | ");
    let mut lines = vec![format!("| format | {names} |")];
    for format in FORMATS {
        let can = format.capabilities;
        let cell = |&(_, depth, signed): &(&str, Depth, bool)| match holds(&can, depth, signed) {
            false => "–",
            true if format.is_written() => "rw",
            true => "r",
        };
        let cells: Vec<&str> = TYPES.iter().map(cell).collect();
        lines.push(format!("| {} | {} |", format.name, cells.join(" | ")));
    }
    let missing: Vec<&String> = lines
        .iter()
        .filter(|line| !contract.contains(*line))
        .collect();
    assert!(missing.is_empty(), "docs/CONTRACT.md lacks:\n{missing:#?}");
}

/// A line for each verb, and each cell tried: on a file of every format that is written and holds the
/// type, and on a small file of every format that is only read.
#[test]
fn each_verb_takes_each_type_of_each_format_as_the_contract_says() {
    let contract = contract();
    for (verb, _, _, wide) in VERBS {
        let cells = TYPES.map(
            |(_, depth, _)| match depth.is_wide() && !wide.contains(&depth) {
                true => "refused",
                false => "yes",
            },
        );
        let line = format!("| `{verb}` | {} |", cells.join(" | "));
        assert!(contract.contains(&line), "docs/CONTRACT.md lacks: {line}");
    }
    let mut files: Vec<(String, Depth, Vec<u8>)> = Vec::new();
    for format in formats_of_files() {
        let can = format.capabilities;
        let channels = can.channels[0];
        for (name, depth, signed) in TYPES {
            if holds(&can, depth, signed) {
                let metadata = Metadata {
                    signed,
                    ..Metadata::default()
                };
                let page = image(5, 3, channels, depth, Kind::Narrow);
                let file = written(format, &[page], &metadata).unwrap();
                files.push((format!("{}-{name}", format.id), depth, file));
            }
        }
    }
    for (id, file) in small_files() {
        let format = format(id.split('-').next().unwrap());
        if !format.is_written() {
            let depth = super::read(&file).unwrap().0.shape().depth;
            files.push((id, depth, file));
        }
    }
    let named: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(name, _, file)| (&**name, &**file))
        .collect();
    let root = folder(&named);
    let mut cases = 0;
    for (name, depth, _) in &files {
        for (verb, before, behind, wide) in VERBS {
            // The GIF of the small files has transparent pixels, and a dark frame of itself is as good.
            let line = format!("{before} {name} {behind}").replace("IN", name);
            let mut args: Vec<&str> = line.split_whitespace().collect();
            if behind == "out.tif" {
                args.push("--overwrite");
            }
            let run = run(root.path(), &args, &[]);
            let expected = i32::from(depth.is_wide() && !wide.contains(depth));
            assert_eq!(run.code, expected, "{verb} {name}: {}", run.stderr);
            cases += 1;
        }
    }
    assert!(cases > 350, "{cases}");
}
