//! The pages of `info --html` and `--report x.html`: what is on them, and that names cannot change them.

use crate::support::{Kind, Run, folder, image, placed, run};
use gpuimg::internals::image::{Depth, Image};
use std::fs;
use std::path::Path;

fn pgm(values: &[u16]) -> Vec<u8> {
    let head = format!("P5 {} 1 65535\n", values.len()).into_bytes();
    let samples = values.iter().flat_map(|value| value.to_be_bytes());
    head.into_iter().chain(samples).collect()
}

/// The page for a folder `in`, and how the run ended.
fn sheet(root: &Path) -> (String, Run) {
    let done = run(root, &["info", "in", "--html", "sheet.html"], &[]);
    let page = fs::read_to_string(root.join("sheet.html")).expect("a page");
    (page, done)
}

/// The attributes of the files on the page, in order.
fn attributes(page: &str, key: &str) -> Vec<Option<String>> {
    let name = format!(" data-{key}=\"");
    let files = page.split("<div class=\"file\"").skip(1);
    let value = |file: &str| {
        let head = file.split('>').next()?;
        Some(head.split(&*name).nth(1)?.split('"').next()?.to_string())
    };
    files.map(value).collect()
}

fn some(values: &[&str]) -> Vec<Option<String>> {
    values.iter().map(|value| Some(value.to_string())).collect()
}

/// Every section but the last has the same number of files: the buttons fill them by the number in the first.
#[test]
fn many_files_are_in_sections() {
    let root = folder(&[]);
    fs::create_dir(root.path().join("in")).expect("a folder");
    for number in 0..101 {
        let name = format!("in/{number:03}.pgm");
        fs::write(root.path().join(name), pgm(&[number, 9])).expect("a file");
    }
    let (page, done) = sheet(root.path());
    assert_eq!(done.code, 0, "{}", done.stderr);
    let sections = page.split("<section>").skip(1);
    let files: Vec<usize> = sections
        .map(|section| {
            let (own, _) = section.split_once("</section>").expect("an end");
            own.matches("<div class=\"file\"").count()
        })
        .collect();
    assert_eq!(files, [50, 50, 1]);
    let expected: Vec<String> = (0..101)
        .map(|number| format!("in/{number:03}.pgm"))
        .collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    assert_eq!(attributes(&page, "name"), some(&expected));
}

#[test]
fn a_page_has_the_facts_of_each_file() {
    let root = folder(&[
        ("in/a.pgm", &pgm(&[0, 100, 200, 300])),
        ("in/b.pgm", &pgm(&[5, 5])),
        ("in/bad.png", b"\x89PNG\r\n\x1a\n damaged"),
        ("in/c.pgm", &pgm(&[65535, 1, 2])),
    ]);
    let (page, done) = sheet(root.path());
    assert_eq!((done.code, &*done.stdout), (1, ""));
    assert!(
        done.stderr.contains("cannot read in/bad.png"),
        "{}",
        done.stderr
    );
    assert!(page.contains("<p>4 files, 1 that cannot be read, 2 with warnings.</p>"));
    let none = || None::<String>;
    let with_bad = |values: &[&str]| {
        let mut all = some(values);
        all.insert(2, none());
        all
    };
    assert_eq!(
        attributes(&page, "name"),
        some(&["in/a.pgm", "in/b.pgm", "in/bad.png", "in/c.pgm"])
    );
    assert_eq!(attributes(&page, "min"), with_bad(&["0", "5", "1"]));
    assert_eq!(attributes(&page, "max"), with_bad(&["300", "5", "65535"]));
    assert_eq!(attributes(&page, "mean"), with_bad(&["150", "5", "21846"]));
    assert_eq!(attributes(&page, "pixels"), with_bad(&["4", "2", "3"]));
    assert_eq!(attributes(&page, "bytes"), with_bad(&["21", "17", "19"]));
    assert_eq!(attributes(&page, "warnings"), with_bad(&["0", "1", "1"]));
    assert!(page.contains("flat: all values are 5"));
    assert!(page.contains("saturated: 33.3 % of the samples are 65535"));
    assert!(page.contains("cannot be read: "));
    assert_eq!(page.matches("src=\"data:image/jpeg;base64,").count(), 3);
    // Whatever is loaded is on the page itself.
    for word in [
        "http:",
        "https:",
        "<link rel=\"stylesheet",
        "@import",
        "url(",
    ] {
        assert!(!page.contains(word), "{word}");
    }
    let (again, _) = sheet(root.path());
    assert!(page == again);
}

/// Names with the characters of HTML, of attributes and of a script's end.
#[test]
fn names_are_text() {
    let names = [
        "in/<img src=x onerror=alert(1)>.pgm",
        "in/\"><script>alert(2)<!--.pgm",
        "in/' onload='alert(3).pgm",
        "in/&lt;b&gt;.pgm",
    ];
    let files: Vec<(String, Vec<u8>)> = names
        .iter()
        .map(|name| (name.to_string(), pgm(&[1, 2])))
        .chain([(
            "in/<script>bad.png".to_string(),
            b"\x89PNG\r\n\x1a\n".to_vec(),
        )])
        .collect();
    let root = placed(&files);
    let (page, _) = sheet(root.path());
    assert_eq!(page.matches("<script>").count(), 1);
    assert_eq!(page.matches("</script>").count(), 1);
    assert_eq!(page.matches("<img ").count(), 4);
    assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;.pgm"));
    assert!(page.contains("&amp;lt;b&amp;gt;.pgm"));
    assert_eq!(attributes(&page, "name").len(), 5);
    assert_eq!(page.matches("data-warnings=").count(), 4);
}

/// Six dark frames, of which one is brighter: by 40 times the usual difference.
#[test]
fn one_of_a_series_is_far_from_the_others() {
    let frame = |level: u16| pgm(&[level, level + 100, level + 50, level + 50]);
    let names = ["a", "b", "c", "d", "e", "f"];
    let levels = [1000, 1002, 998, 1001, 999, 1040];
    let files: Vec<(String, Vec<u8>)> = names
        .iter()
        .zip(levels)
        .map(|(name, level)| (format!("in/{name}.pgm"), frame(level)))
        .collect();
    let root = placed(&files);
    let (page, done) = sheet(root.path());
    assert_eq!((done.code, &*done.stderr), (0, ""));
    assert_eq!(
        attributes(&page, "warnings"),
        some(&["0", "0", "0", "0", "0", "1"])
    );
    assert!(
        page.contains("outlier: its mean is 1090, and the median of the folder is 1050.5"),
        "{page}"
    );
}

/// Pictures of every kind of pixel: floating point, colours, alpha, and shapes of one pixel.
#[test]
fn every_kind_of_image_has_a_picture() {
    use crate::support::formats::{format, written};
    let mut files = Vec::new();
    for depth in [
        Depth::Eight,
        Depth::Sixteen,
        Depth::ThirtyTwo,
        Depth::Float,
        Depth::Double,
    ] {
        for channels in 1..=4 {
            for (width, height) in [(1, 1), (300, 2)] {
                let page: Image = image(width, height, channels, depth, Kind::Narrow);
                let file = written(format("tiff"), &[page], &Default::default()).expect("a file");
                files.push((
                    format!("in/{depth}_{channels}_{width}.tif").replace(' ', "_"),
                    file,
                ));
            }
        }
    }
    let count = files.len();
    let root = placed(&files);
    let (page, done) = sheet(root.path());
    assert_eq!((done.code, &*done.stderr), (0, ""));
    assert_eq!(page.matches("<img loading=\"lazy\"").count(), count);
    assert!(!page.contains("class=\"error\""));
}

#[test]
fn a_page_replaces_only_a_page() {
    let root = folder(&[
        ("in/a.pgm", &pgm(&[1, 2])),
        ("sheet.html", b"<!DOCTYPE html>mine"),
    ]);
    let done = run(root.path(), &["info", "in", "--html", "sheet.html"], &[]);
    assert_eq!(done.code, 1);
    let words = "it exists but is not a page of info --html: choose another name";
    assert!(done.stderr.contains(words), "{}", done.stderr);
    let file = fs::read(root.path().join("sheet.html")).expect("file");
    assert_eq!(file, b"<!DOCTYPE html>mine");
}

#[test]
fn standard_output_was_a_file_named_with_a_dash() {
    let root = folder(&[("in/a.pgm", &pgm(&[1, 2]))]);
    let done = run(root.path(), &["info", "in", "--html", "-"], &[]);
    assert_eq!((done.code, &*done.stderr), (0, ""));
    let (page, _) = sheet(root.path());
    assert!(done.stdout == page);
    assert!(!root.path().join("-").exists());
}

/// The damage of the image is not reported, since nothing is decoded.
#[test]
fn a_page_that_cannot_be_written_was_refused_after_all_images() {
    let root = folder(&[("in/a.png", b"\x89PNG\r\n\x1a\n damaged")]);
    for (page, words) in [
        ("in", "cannot write in: it is a folder: name a file in it"),
        (
            "no/sheet.html",
            "cannot write no/sheet.html: there is no folder no: create it first",
        ),
    ] {
        let done = run(root.path(), &["info", "in", "--html", page], &[]);
        assert_eq!((done.code, done.stderr), (1, format!("gpuimg: {words}\n")));
    }
}

/// The page of a run with these words, and how it ended.
fn report(root: &Path, words: &[&str]) -> (String, Run) {
    let done = run(root, &[words, &["--report", "r.html"]].concat(), &[]);
    let page = fs::read_to_string(root.join("r.html")).unwrap_or_default();
    (page, done)
}

/// Results are on the page with their status; a file that failed has its error.
#[test]
fn a_report_is_a_page_about_the_results() {
    let root = folder(&[
        ("in/a.pgm", &pgm(&[0, 100, 200, 300])),
        ("in/bad.png", b"\x89PNG\r\n\x1a\n damaged"),
        ("in/<b>.pgm", &pgm(&[5, 5])),
    ]);
    let words = ["normalize", "in", "out", "--range", "0:300"];
    let (page, done) = report(root.path(), &words);
    assert_eq!(done.code, 1);
    assert!(page.starts_with("<!DOCTYPE html>\n<!-- gpuimg --report -->"));
    assert!(
        page.contains("<p>3 files, 2 done, 1 failed, 2 with warnings.</p>"),
        "{page}"
    );
    let mut status = attributes(&page, "name")
        .into_iter()
        .zip(attributes(&page, "status"))
        .collect::<Vec<_>>();
    status.sort();
    let pair = |name: &str, status: &str| (Some(name.to_string()), Some(status.to_string()));
    assert_eq!(
        status,
        [
            pair("in/bad.png", "failed"),
            pair("out/&lt;b&gt;.pgm", "done"),
            pair("out/a.pgm", "done"),
        ]
    );
    // The values are those of the results: 0, 21845, 43690, 65535.
    let maxima = attributes(&page, "max");
    assert!(maxima.contains(&Some("65535".into())) && maxima.contains(&Some("1092".into())));
    assert!(page.contains("done from in/a.pgm in "));
    assert!(page.contains("failed: cannot read in/bad.png: "));
    assert_eq!(page.matches("src=\"data:image/jpeg;base64,").count(), 2);
    assert_eq!(attributes(&page, "seconds").iter().flatten().count(), 3);
    for word in ["http:", "https:", "@import", "url("] {
        assert!(!page.contains(word), "{word}");
    }
    // The next page replaces it.
    let (page, done) = report(
        root.path(),
        &["normalize", "in", "out", "--range", "0:300", "--resume"],
    );
    assert_eq!(done.code, 1);
    assert!(page.contains("1 failed, 2 skipped"), "{page}");
}

/// Numbers have no result, so the inputs are on the page, decoded with the options of the run. A result that cannot be decoded has
/// its status.
#[test]
fn a_report_of_numbers_shows_the_inputs() {
    let root = folder(&[("a.bin", &[1, 2, 3, 4]), ("in/a.pgm", &pgm(&[1, 2]))]);
    let (page, done) = report(root.path(), &["sum", "a.bin", "--raw", "2x2:u8"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(attributes(&page, "name"), some(&["a.bin"]));
    assert_eq!(attributes(&page, "max"), some(&["4"]));
    let (page, done) = report(
        root.path(),
        &["convert", "in", "out", "--format", "raw", "-q"],
    );
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(attributes(&page, "status"), some(&["done"]));
    assert!(page.contains("cannot be shown: "));
}

#[test]
fn a_report_replaces_only_a_report() {
    let root = folder(&[
        ("in/a.pgm", &pgm(&[1, 2])),
        ("r.html", b"<!DOCTYPE html>mine"),
    ]);
    for more in [&[][..], &["--overwrite"], &["--dry-run"]] {
        let (page, done) = report(
            root.path(),
            &[&["flip", "h", "in", "out"][..], more].concat(),
        );
        assert_eq!(done.code, 1);
        let words = "it exists but is not a page of --report: choose another name";
        // A dry run prints what would fail on standard output.
        let told = [&*done.stdout, &*done.stderr].concat();
        assert!(told.contains(words), "{told}");
        assert_eq!(page, "<!DOCTYPE html>mine");
        assert!(!root.path().join("out/a.pgm").exists());
    }
}
