//! The plan of a page, as `--dry-run --verbose` and `--verbose` print it.

use crate::support::formats::{format, written};
use crate::support::{Kind, folder, image, run};
use gpuimg::internals::image::Depth;
use gpuimg::internals::image::metadata::Metadata;

/// The plan that a run prints for `a.EXTENSION`, without the line of the file.
fn plan(extension: &str, width: usize, height: usize, args: &[&str]) -> String {
    let page = image(width, height, 1, Depth::Sixteen, Kind::Noise);
    let file = written(format(extension), &[page], &Metadata::default()).expect("a file");
    let name = format!("a.{extension}");
    let root = folder(&[(&name, &file)]);
    let args = [args, &["--device", "cpu", "--dry-run", "-v"]].concat();
    let env = [("RAYON_NUM_THREADS", "2")];
    let done = run(root.path(), &args, &env);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let lines = done.stdout.lines().filter(|line| line.starts_with("  "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_plan_names_every_step() {
    let all = [
        "rotate", "90", "a.png", "b.png", "--depth", "8", "--fit", "10",
    ];
    assert_eq!(
        plan("png", 30, 20, &all),
        "  page 1: 30×20 grey, 16 bits, PNG
    device    CPU (2 threads), as requested
    decode    one deflate stream, in order
    steps     rotate, 16 to 8 bits, reduce
    memory    whole image (rotate needs it)
    output    7×10 grey, 8 bits"
    );
    let chain = [
        "run",
        "normalize --clip 1:99 + flip horizontal",
        "a.png",
        "b.tif",
    ];
    assert_eq!(
        plan("png", 30, 20, &chain),
        "  page 1: 30×20 grey, 16 bits, PNG
    device    CPU (2 threads), as requested
    decode    one deflate stream, in order
    measure   percentiles of the page
    steps     normalize, flip
    memory    whole image
    output    30×20 grey, 16 bits"
    );
}

#[test]
fn a_plan_says_how_a_page_passes_through_memory() {
    let large = |args: &[&str]| {
        let plan = plan("tiff", 2000, 1100, args);
        let line = plan.lines().find_map(|line| line.split_once("memory    "));
        line.expect("a line about memory").1.to_string()
    };
    let little = ["normalize", "a.tiff", "b.tiff", "--low-memory"];
    assert_eq!(large(&little), "bands of 585 rows, decoded twice");
    assert_eq!(large(&["sum", "a.tiff"]), "blocks of rows, in any order");
    let turned = ["transpose", "a.tiff", "b.tiff", "--low-memory"];
    assert_eq!(large(&turned), "whole image (transpose needs it)");
}

#[test]
fn the_plan_of_a_run_is_printed_with_verbose() {
    let page = image(5, 4, 1, Depth::Sixteen, Kind::Noise);
    let file = written(format("pnm"), &[page], &Metadata::default()).expect("a file");
    let root = folder(&[("a.pgm", &file)]);
    let done = run(
        root.path(),
        &[
            "flip", "vertical", "a.pgm", "b.pgm", "-v", "--device", "cpu",
        ],
        &[],
    );
    let expected = "gpuimg: a.pgm, page 1: 5×4 grey, 16 bits, PNM";
    assert!(done.stderr.contains(expected), "{}", done.stderr);
    assert!(done.stderr.contains("steps     flip"), "{}", done.stderr);
}

/// The plan said that the range of a stack was that of each page.
#[test]
fn the_plan_of_a_stack_named_another_range() {
    let stack = std::fs::read(crate::support::sample("nuclei-stack.tif")).expect("a sample");
    let root = folder(&[("a.tif", &stack)]);
    for (scope, expected) in [
        ("stack", "minimum and maximum of all pages"),
        ("page", "minimum and maximum of the page"),
    ] {
        let args = ["normalize", "a.tif", "b.tif", "--scope", scope];
        let args = [&args[..], &["--dry-run", "-v"]].concat();
        let done = run(root.path(), &args, &[]);
        let found = done.stdout.matches(expected).count();
        assert_eq!(found, 31, "{}", done.stdout);
    }
}

#[test]
fn stats_print_the_plan() {
    let page = image(5, 4, 1, Depth::Sixteen, Kind::Noise);
    let file = written(format("pnm"), &[page], &Metadata::default()).expect("a file");
    let root = folder(&[("a.pgm", &file)]);
    let args = ["rotate", "90", "a.pgm", "b.png", "--device", "cpu"];
    let shown = |form: &str| {
        let args = [&args[..], &[form, "-f"]].concat();
        let done = run(root.path(), &args, &[("RAYON_NUM_THREADS", "2")]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        done.stderr + &done.stdout
    };
    let text = "page 1: 5×4 grey, 16 bits, PNM\n  device    CPU (2 threads), as requested\n  decode    samples without compression\n  steps     rotate\n";
    assert!(shown("--stats").contains(text), "{}", shown("--stats"));
    let json = shown("--stats=json");
    assert!(
        json.contains("\"plan\":\"page 1: 5×4 grey, 16 bits, PNM\\n"),
        "{json}"
    );
}
