//! Stacks whose pages lie along axes: places on them that are taken, what the description then says, and
//! channels that are pages of their own.

use crate::support::axes::{HYPERSTACK, file, images};
use crate::support::contract::{made, outcome};
use crate::support::stacks::{pages, range, stretched};
use crate::support::{folder, listing, run};
use gpuimg::internals::image::{Image, Samples};
use std::fs;

const OME: &str = "<OME><Image><Pixels DimensionOrder=\"XYCZT\" SizeX=\"3\" SizeY=\"2\" SizeC=\"2\" SizeZ=\"3\" SizeT=\"2\" Type=\"uint16\"><Channel Name=\"red\"/><Channel Name=\"blue\"/><TiffData/><Plane TheC=\"0\" TheZ=\"0\" TheT=\"0\"/></Pixels></Image></OME>";

fn words(image: &Image) -> Vec<u16> {
    match image.samples() {
        Samples::U16(words) => words.to_vec(),
        _ => unreachable!(),
    }
}

/// The pages that a run takes, and the description of the first.
fn taken(file: &[u8], options: &[&str]) -> (Vec<usize>, String) {
    let args = [&["rotate", "180"], options].concat();
    let (done, written) = outcome("in.tif", file, &args, "out.tif");
    assert_eq!(done.code, 0, "{}", done.stderr);
    let found = pages(&written.expect("an output"));
    // Turned by 180°, the first sample, which is the page's number, comes last.
    let numbers = found.iter().map(|page| usize::from(page.1[5])).collect();
    (numbers, found[0].2.clone().unwrap_or_default())
}

#[test]
fn places_on_axes_are_taken() {
    for description in [HYPERSTACK, OME] {
        let file = file(12, description);
        for (options, expected) in [
            (&["--axes", "C=2"][..], vec![1, 3, 5, 7, 9, 11]),
            (&["--axes", "c=1,z=2-3"], vec![2, 4, 8, 10]),
            (&["--axes", "T=2,C=2,Z=1"], vec![7]),
            (&["--axes", "C=1-2"], (0..12).collect()),
            (&["--pages", "3-6"], vec![2, 3, 4, 5]),
        ] {
            assert_eq!(taken(&file, options).0, expected, "{options:?}");
        }
    }
}

/// A region of some places: the first two samples of each page, of which the first is the page's number.
#[test]
fn a_crop_takes_places_on_axes() {
    for description in [HYPERSTACK, OME] {
        for (option, expected) in [
            (["--axes", "c=1,z=2-3"], vec![2, 4, 8, 10]),
            (["--axes", "T=2,C=2,Z=1"], vec![7]),
            (["--pages", "3-6"], vec![2, 3, 4, 5]),
        ] {
            let args = [&["crop", "0,0,2x1"][..], &option].concat();
            let (done, written) = outcome("in.tif", &file(12, description), &args, "out.tif");
            assert_eq!(done.code, 0, "{}", done.stderr);
            let found = pages(&written.expect("an output"));
            let numbers: Vec<usize> = found.iter().map(|page| page.1[0].into()).collect();
            assert_eq!(numbers, expected, "{option:?}");
            assert!(found.iter().all(|page| page.1.len() == 2), "{option:?}");
        }
    }
}

/// `--pages` made every page a slice, whatever its axis was, and dropped OME-XML.
#[test]
fn pages_of_a_hyperstack_became_slices() {
    let has = |text: &str, lines: &[&str]| {
        lines
            .iter()
            .all(|line| text.lines().any(|known| known == *line))
    };
    let file_of = |description| file(12, description);
    let text = taken(&file_of(HYPERSTACK), &["--pages", "3-6"]).1;
    assert!(
        has(
            &text,
            &[
                "images=4",
                "channels=2",
                "slices=2",
                "hyperstack=true",
                "spacing=0.5"
            ]
        ),
        "{text}"
    );
    assert!(!text.contains("frames"), "{text}");
    let text = taken(&file_of(HYPERSTACK), &["--axes", "C=2,T=1"]).1;
    assert!(has(&text, &["images=3", "slices=3"]), "{text}");
    assert!(
        !text.contains("channels") && !text.contains("hyperstack") && !text.contains("mode"),
        "{text}"
    );
    let text = taken(&file_of(HYPERSTACK), &["--axes", "C=2,T=1,Z=1"]).1;
    assert!(
        !text.contains("images=") && text.contains("unit=um"),
        "{text}"
    );
    // Pages 2 to 4 are no range of places on the axes: slices, as before.
    let text = taken(&file_of(HYPERSTACK), &["--pages", "2-4"]).1;
    assert!(has(&text, &["images=3", "slices=3"]), "{text}");

    let text = taken(&file_of(OME), &["--axes", "C=2,Z=2-3"]).1;
    for part in [
        "SizeC=\"1\"",
        "SizeZ=\"2\"",
        "SizeT=\"2\"",
        "Name=\"blue\"",
        "<TiffData/>",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("red") && !text.contains("Plane"), "{text}");
    let text = taken(&file_of(OME), &["--pages", "1-6"]).1;
    assert!(
        text.contains("SizeT=\"1\"") && text.contains("SizeZ=\"3\""),
        "{text}"
    );
    // What is left can be taken apart again, and projected.
    let once = made(
        "in.tif",
        &file_of(OME),
        &["rotate", "180", "--axes", "C=2,Z=2-3"],
        "out.tif",
    );
    assert_eq!(taken(&once, &["--axes", "Z=2"]).0.len(), 2);
    let place = folder(&[("in.tif", &file_of(HYPERSTACK))]);
    let args = [
        "project", "max", "in.tif", "out.tif", "--axis", "z", "--axes", "C=2",
    ];
    let done = run(place.path(), &args, &[]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let found = pages(&fs::read(place.path().join("out.tif")).unwrap());
    assert_eq!(
        found.iter().map(|page| page.1[0]).collect::<Vec<_>>(),
        [5, 11]
    );
}

#[test]
fn places_that_are_not_there_are_named() {
    let file = file(12, HYPERSTACK);
    let plain = crate::support::axes::file(3, "a description");
    for (file, places, words) in [
        (&file, "C=3", "c has only 2 positions, not 3"),
        (&file, "Z=2-4", "z has only 3 positions, not 4"),
        (&plain, "C=1", "its metadata describe no axes"),
        (
            &crate::support::axes::file(11, HYPERSTACK),
            "C=1",
            "does not match",
        ),
    ] {
        let args = ["rotate", "180", "--axes", places];
        crate::support::contract::refused("in.tif", file, &args, "out.tif", words);
    }
    for wrong in ["", "C", "X=1", "C=0", "C=1,C=2", "Z=3-2", "C=1;Z=2"] {
        let (done, _) = outcome(
            "in.tif",
            &file,
            &["rotate", "180", "--axes", wrong],
            "out.tif",
        );
        assert_eq!(done.code, 2, "{wrong}");
    }
    let both = ["rotate", "180", "--axes", "C=1", "--pages", "2"];
    assert_eq!(outcome("in.tif", &file, &both, "out.tif").0.code, 2);
}

/// The channels of a hyperstack are pages; with one range for all a faint one stays dark.
#[test]
fn channels_that_are_pages_have_ranges_of_their_own() {
    let images = images();
    for description in [HYPERSTACK, OME] {
        let file = file(12, description);
        let found = pages(&made(
            "in.tif",
            &file,
            &["normalize", "--per-channel"],
            "out.tif",
        ));
        assert_eq!(found.len(), 12);
        for (number, page) in found.iter().enumerate() {
            let same = images.iter().skip(number % 2).step_by(2);
            let all: Vec<u16> = same.flat_map(words).collect();
            let expected = stretched(&words(&images[number]), range(&all), 65535);
            assert_eq!(page.1, expected, "{number}");
        }
        let ranges: Vec<_> = (0..2)
            .map(|c| {
                range(
                    &images
                        .iter()
                        .skip(c)
                        .step_by(2)
                        .flat_map(words)
                        .collect::<Vec<_>>(),
                )
            })
            .collect();
        assert_ne!(ranges[0], ranges[1]);
        // Only with that option.
        let all: Vec<u16> = images.iter().flat_map(words).collect();
        let found = pages(&made("in.tif", &file, &["normalize", "-q"], "out.tif"));
        assert_eq!(
            found[3].1,
            stretched(&words(&images[3]), range(&all), 65535)
        );
        // Of one channel alone, and of one page.
        let args = ["normalize", "--per-channel", "--axes", "C=2"];
        let found = pages(&made("in.tif", &file, &args, "out.tif"));
        assert_eq!(found[1].1, stretched(&words(&images[3]), ranges[1], 65535));
    }
}

/// `project max` of a hyperstack made one image of all its channels, slices and frames without a word.
#[test]
fn a_projection_mixed_channels_with_slices_and_frames() {
    let lines = |lines: &str| format!("ImageJ=1.54f\nimages=12\n{lines}hyperstack=true\n");
    let all = "its pages have the axes 2 c × 3 z × 2 t, which one projection would mix: use --axis c or --axis z or --axis t to project";
    for (description, refused) in [
        (HYPERSTACK, all),
        (OME, all),
        (&lines("channels=12\n"), "its pages have the axes 12 c"),
        (
            &lines("slices=3\nframes=4\n"),
            "its pages have the axes 3 z × 4 t",
        ),
        (&lines("slices=12\n"), ""),
        (&lines("frames=12\n"), ""),
        ("no axes", ""),
    ] {
        let (file, plain) = (file(12, description), file(12, "no axes"));
        let place = folder(&[("in/a.tif", &file), ("in/b.tif", &plain)]);
        for how in ["max", "mean", "median"] {
            for input in ["in/a.tif", "in"] {
                let args = ["project", how, input, "out.tif", "--overwrite", "-q"];
                let done = run(place.path(), &args, &[]);
                let (code, there) = (done.code, place.path().join("out.tif").exists());
                assert_eq!(code != 0, !refused.is_empty(), "{args:?}: {}", done.stderr);
                assert_eq!(there, refused.is_empty(), "{args:?}");
                assert!(done.stderr.contains(refused), "{args:?}: {}", done.stderr);
            }
        }
        // Frames of `calibrate` are projected, too.
        let args = [
            "calibrate",
            "--dark",
            "in/a.tif",
            "in/b.tif",
            "out.tif",
            "--overwrite",
            "-q",
        ];
        let done = run(place.path(), &args, &[]);
        assert_eq!(done.code != 0, !refused.is_empty(), "{}", done.stderr);
        assert!(done.stderr.contains(refused), "{}", done.stderr);
        // Places on all axes but one, and all pages, where that is meant.
        for options in [&["--pages", "1-12"][..], &["--axes", "C=1,T=1"]] {
            if options[0] == "--axes" && refused != all {
                continue;
            }
            let args = ["project", "max", "in/a.tif", "some.tif", "--overwrite"];
            let done = run(place.path(), &[&args, options].concat(), &[]);
            assert_eq!(done.code, 0, "{options:?}: {}", done.stderr);
        }
    }
}

/// A resumed run knows the places.
#[test]
fn places_belong_to_what_was_done() {
    let place = folder(&[("in.tif", &file(12, HYPERSTACK))]);
    let with = |places: &str| {
        let args = [
            "rotate", "180", "in.tif", "out/", "--resume", "--axes", places,
        ];
        let done = run(place.path(), &args, &[]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        (
            done.stderr,
            pages(&fs::read(place.path().join("out/in.tif")).unwrap()).len(),
        )
    };
    assert_eq!(with("C=1").1, 6);
    assert!(with("C=1").0.contains("1 already done"));
    assert_eq!(with("C=1,Z=1").1, 2);
}

/// Each page to a file of its own, with the range of its stack and a description of itself.
#[test]
fn every_page_has_a_file_of_its_own() {
    let images = images();
    for description in [HYPERSTACK, OME] {
        let place = folder(&[("in.tif", &file(12, description))]);
        let args = ["normalize", "--per-channel", "in.tif", "out/", "--split"];
        let named = [&args[..], &["--name", "{stem}_t{t}_z{z:02}_c{c}.{ext}"]].concat();
        let done = run(place.path(), &named, &[]);
        assert_eq!((done.code, done.stderr.as_str()), (0, ""));
        let out = place.path().join("out");
        assert_eq!(listing(&out).len(), 12);
        for (number, image) in images.iter().enumerate() {
            let (c, z, t) = (number % 2, number / 2 % 3, number / 6);
            let name = format!("in_t{}_z{:02}_c{}.tif", t + 1, z + 1, c + 1);
            let found = pages(&fs::read(out.join(name)).unwrap());
            let same = images.iter().skip(c).step_by(2).flat_map(words);
            let expected = stretched(&words(image), range(&same.collect::<Vec<_>>()), 65535);
            assert_eq!((found.len(), &found[0].1), (1, &expected));
            let text = found[0].2.clone().unwrap_or_default();
            assert!(
                !text.contains("images=") && !text.contains("SizeZ=\"3\""),
                "{text}"
            );
        }
        // The default name, as PNG, of places on the axes.
        let args = [
            "rotate", "90", "in.tif", "few/", "--split", "--format", "png", "--axes", "C=2,T=1",
        ];
        assert_eq!(run(place.path(), &args, &[]).code, 0);
        assert_eq!(
            listing(&place.path().join("few")),
            ["in-0002.png", "in-0004.png", "in-0006.png"]
        );
    }
}

#[test]
fn pages_of_one_name_are_not_split() {
    let place = folder(&[("in.tif", &file(12, HYPERSTACK)), ("bad.tif", b"II*\0")]);
    let with = |args: &[&str]| {
        let all = [&["flip", "h"], args, &["--split"]].concat();
        run(place.path(), &all, &[])
    };
    let done = with(&["in.tif", "out/", "--name", "{z}.tif"]);
    assert_eq!(done.code, 1);
    assert!(
        done.stderr
            .contains("pages 1 and 2 would both be named out/1.tif"),
        "{}",
        done.stderr
    );
    assert!(!place.path().join("out").exists());
    // A bad file is named, and the others are done; files that are there stay.
    let done = with(&["bad.tif", "in.tif", "out/"]);
    assert_eq!(
        (done.code, done.stderr.lines().count()),
        (1, 1),
        "{}",
        done.stderr
    );
    assert!(done.stderr.contains("bad.tif"), "{}", done.stderr);
    assert_eq!(listing(&place.path().join("out")).len(), 12);
    let done = with(&["in.tif", "out/"]);
    assert_eq!(
        (done.code, done.stderr.lines().count()),
        (1, 12),
        "{}",
        done.stderr
    );
    assert_eq!(with(&["in.tif", "out/", "--overwrite"]).code, 0);
    for wrong in [
        &["in.tif", "out/", "--resume"][..],
        &["in.tif", "out.tif"],
        &["in.tif", "-"],
    ] {
        assert_eq!(with(wrong).code, 2, "{wrong:?}");
    }
    let done = run(
        place.path(),
        &["flip", "h", "in.tif", "out/", "--name", "{page}.tif"],
        &[],
    );
    assert_eq!(done.code, 2, "{}", done.stderr);
}

/// Single images and stacks become one, in one range; `sum` and the other programs see all pages.
#[test]
fn many_files_become_one_stack() {
    let images = images();
    let one = |number: usize| {
        let image = std::slice::from_ref(&images[number]);
        crate::support::stacks::stack(
            image,
            &gpuimg::internals::image::metadata::Metadata::default(),
        )
    };
    let place = folder(&[
        ("in/a.tif", &one(5)),
        ("in/b.tif", &file(3, "ImageJ=1.54f\nimages=3\nslices=3\n")),
        ("in/c.tif", &one(7)),
    ]);
    let with = |args: &[&str]| {
        run(
            place.path(),
            &[&["normalize", "--stack"], args].concat(),
            &[],
        )
    };
    let done = with(&["in/", "out.tif"]);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
    let order = [5, 0, 1, 2, 7];
    let all: Vec<u16> = order
        .iter()
        .flat_map(|&number| words(&images[number]))
        .collect();
    let written = |name: &str| pages(&fs::read(place.path().join(name)).unwrap());
    let found = written("out.tif");
    assert_eq!(found.len(), 5);
    for (page, number) in found.iter().zip(order) {
        assert_eq!(
            page.1,
            stretched(&words(&images[number]), range(&all), 65535)
        );
    }
    // Inputs in the order in which they are named; each page in its own range; verbs one after the other.
    let done = with(&["in/c.tif", "in/a.tif", "two.tif", "--scope", "page"]);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
    let expected = [7, 5].map(|number| {
        let values = words(&images[number]);
        stretched(&values, range(&values), 65535)
    });
    assert_eq!(
        [
            written("two.tif")[0].1.clone(),
            written("two.tif")[1].1.clone()
        ],
        expected
    );
    let args = [
        "run",
        "rotate 180 + normalize",
        "in/",
        "three.tif",
        "--stack",
    ];
    assert_eq!(run(place.path(), &args, &[]).code, 0);
    let turned: Vec<Vec<u16>> = found
        .iter()
        .map(|page| page.1.iter().rev().copied().collect())
        .collect();
    assert_eq!(
        written("three.tif")
            .iter()
            .map(|page| page.1.clone())
            .collect::<Vec<_>>(),
        turned
    );
    // In place: the inputs are read before the output has its name.
    assert_eq!(with(&["in/a.tif", "in/c.tif", "in/a.tif"]).code, 1);
    assert_eq!(
        with(&["in/a.tif", "in/c.tif", "in/a.tif", "--overwrite"]).code,
        0
    );
    assert_eq!(written("in/a.tif").len(), 2);
}

#[test]
fn a_bad_file_makes_no_stack() {
    let place = folder(&[
        ("a.tif", &file(2, "x")),
        ("bad.tif", b"II*\0"),
        ("-.pgm", b"P5 1 1 9 a"),
    ]);
    let with = |args: &[&str]| {
        run(
            place.path(),
            &[&["rotate", "90", "--stack"], args].concat(),
            &[],
        )
    };
    let done = with(&["a.tif", "bad.tif", "out.tif"]);
    assert_eq!(
        (done.code, done.stderr.lines().count()),
        (1, 1),
        "{}",
        done.stderr
    );
    assert!(done.stderr.contains("bad.tif"), "{}", done.stderr);
    let done = with(&["a.tif", "out.png"]);
    assert_eq!(done.code, 1, "{}", done.stderr);
    for wrong in [
        &["a.tif", "out.tif", "--resume"][..],
        &["a.tif", "-", "out.tif"],
        &["a.tif", "-"],
        &["a.tif", "out.tif", "--split"],
        &["a.tif", "out.tif", "--name", "{stem}.tif"],
    ] {
        let done = with(wrong);
        assert_eq!(done.code, 2, "{wrong:?}: {}", done.stderr);
    }
    assert_eq!(listing(place.path()).len(), 3);
}

#[test]
fn a_stack_in_the_folder_of_its_inputs_was_stacked_the_next_time() {
    let image = |number: u8| [b"P5\n2 1\n255\n".as_slice(), &[number, 7]].concat();
    let root = folder(&[("in/a.pgm", &image(1)), ("in/b.pgm", &image(2))]);
    let args = ["normalize", "--stack", "--overwrite", "in", "in/all.tif"];
    let first = run(root.path(), &args, &[]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    let all = || fs::read(root.path().join("in/all.tif")).expect("the stack");
    let before = all();
    let second = run(root.path(), &args, &[]);
    assert_eq!(second.code, 2, "{}", second.stderr);
    let sentence = "the stack would replace the input in/all.tif";
    assert!(second.stderr.contains(sentence), "{}", second.stderr);
    assert!(all() == before);
}

/// Pages that are no part of the axes, such as all but the first and the last, had one range for all channels.
#[test]
fn channels_of_scattered_pages_shared_a_range() {
    let images = images();
    for description in [HYPERSTACK, OME] {
        let args = ["normalize", "--per-channel", "--pages", "2-11", "-q"];
        let found = pages(&made("in.tif", &file(12, description), &args, "out.tif"));
        assert_eq!(found.len(), 10);
        for (page, number) in found.iter().zip(1..) {
            let same = (1..11).filter(|other| other % 2 == number % 2);
            let all: Vec<u16> = same.flat_map(|other| words(&images[other])).collect();
            let expected = stretched(&words(&images[number]), range(&all), 65535);
            assert_eq!(page.1, expected, "{number}");
        }
    }
}

/// The range of a set has no channels that are pages: with `--per-channel` they shared one without a word.
#[test]
fn channels_that_are_pages_shared_the_range_of_a_set() {
    let place = folder(&[
        ("in/a.tif", &file(12, HYPERSTACK)),
        ("in/b.tif", &file(12, OME)),
    ]);
    let root = place.path();
    let counted = run(root, &["histogram", "in/a.tif", "-o", "h.hist", "-q"], &[]);
    assert_eq!(counted.code, 0, "{}", counted.stderr);
    for args in [
        &["--across", "in", "out"][..],
        &["--range-from", "h.hist", "in/a.tif", "out.tif"],
        &["--range-from", "h.hist", "in/a.tif", "pages", "--split"],
        &[
            "--range-from",
            "h.hist",
            "--stack",
            "in/a.tif",
            "in/b.tif",
            "all.tif",
        ],
        &[
            "--range-from",
            "h.hist",
            "--pages",
            "2-11",
            "in/a.tif",
            "some.tif",
        ],
    ] {
        let done = run(root, &[&["normalize", "--per-channel"], args].concat(), &[]);
        let told = "its 2 channels are pages";
        assert!(
            done.code == 1 && done.stderr.contains(told),
            "{args:?}: {}",
            done.stderr
        );
    }
    let left = ["h.hist", "in", "out", "pages"];
    assert!(
        listing(root)
            .iter()
            .all(|name| left.contains(&name.as_str()))
    );
    let args = [
        "normalize",
        "--per-channel",
        "--range-from",
        "h.hist",
        "--axes",
        "C=2",
    ];
    let one = run(root, &[&args[..], &["in/a.tif", "one.tif"]].concat(), &[]);
    assert_eq!(one.code, 0, "{}", one.stderr);
}
