//! Stacks projected along one of their axes: which pages belong together, what remains of the
//! description, and metadata that are not true of the pages.

use crate::support::axes::{HYPERSTACK, file, images};
use crate::support::stacks::{Page, pages};
use crate::support::{Run, folder, run};
use gpuimg::internals::image::Image;
use std::fs;

fn words(image: &Image) -> Vec<u16> {
    match image.samples() {
        gpuimg::internals::image::Samples::U16(words) => words.to_vec(),
        _ => unreachable!(),
    }
}

/// The largest sample at each place of these pages.
fn largest(group: &[usize]) -> Vec<u16> {
    let images = images();
    let each = (0..6).map(|i| group.iter().map(|&page| words(&images[page])[i]).max());
    each.map(Option::unwrap).collect()
}

fn projected(file: &[u8], axis: &str) -> Result<Vec<Page>, Run> {
    let place = folder(&[("in.tif", file)]);
    let args = ["project", "max", "in.tif", "out.tif", "--axis", axis];
    let done = run(place.path(), &args, &[]);
    match done.code {
        0 => Ok(pages(&fs::read(place.path().join("out.tif")).unwrap())),
        _ => {
            assert!(!place.path().join("out.tif").exists());
            Err(done)
        }
    }
}

/// Pages of a hyperstack lie channel by channel, then slice by slice, then frame by frame.
#[test]
fn hyperstacks_of_imagej() {
    let file = file(12, HYPERSTACK);
    for (axis, groups, kept, gone) in [
        (
            "z",
            vec![vec![0, 2, 4], vec![1, 3, 5], vec![6, 8, 10], vec![7, 9, 11]],
            &[
                "images=4",
                "channels=2",
                "frames=2",
                "hyperstack=true",
                "finterval=2.0",
            ][..],
            &["slices", "spacing"][..],
        ),
        (
            "c",
            (0..6).map(|first| vec![2 * first, 2 * first + 1]).collect(),
            &[
                "images=6",
                "slices=3",
                "frames=2",
                "hyperstack=true",
                "spacing=0.5",
            ],
            &["channels", "mode"],
        ),
        (
            "t",
            (0..6).map(|first| vec![first, first + 6]).collect(),
            &["images=6", "channels=2", "slices=3", "hyperstack=true"],
            &["frames", "finterval"],
        ),
    ] {
        let found = projected(&file, axis).unwrap_or_else(|run| panic!("{}", run.stderr));
        let expected: Vec<Vec<u16>> = groups.iter().map(|group| largest(group)).collect();
        let found_words: Vec<Vec<u16>> = found.iter().map(|page| page.1.clone()).collect();
        assert_eq!(found_words, expected, "{axis}");
        let text = found[0].2.clone().expect("a description");
        assert!(
            kept.iter()
                .all(|line| text.lines().any(|known| known == *line)),
            "{axis}: {text}"
        );
        assert!(!gone.iter().any(|key| text.contains(key)), "{axis}: {text}");
        assert!(text.contains("unit=um"), "{text}");
    }
    // What is made has the axes that it says.
    let place = folder(&[("in.tif", &file)]);
    for (input, output, axis) in [
        ("in.tif", "z.tif", "z"),
        ("z.tif", "zt.tif", "t"),
        ("zt.tif", "all.tif", "c"),
    ] {
        let args = ["project", "max", input, output, "--axis", axis];
        let done = run(place.path(), &args, &[]);
        assert_eq!(done.code, 0, "{}", done.stderr);
    }
    let all = pages(&fs::read(place.path().join("all.tif")).unwrap());
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].1, largest(&(0..12).collect::<Vec<_>>()));
    let text = all[0].2.clone().unwrap_or_default();
    assert!(
        !text.contains("images=") && !text.contains("hyperstack"),
        "{text}"
    );
    // Of a stack without axes ImageJ takes pages for slices.
    let plain = self::file(5, "ImageJ=1.54f\nimages=5\n");
    assert_eq!(projected(&plain, "z").ok().expect("slices").len(), 1);
}

fn ome(order: &str, sizes: (usize, usize, usize), inside: &str) -> String {
    let (z, c, t) = sizes;
    format!(
        "<?xml version=\"1.0\"?><OME xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\"><Image ID=\"Image:0\">\
         <Pixels ID=\"Pixels:0\" DimensionOrder=\"{order}\" Type=\"uint16\" SizeX=\"3\" SizeY=\"2\" SizeZ=\"{z}\" SizeC=\"{c}\" SizeT=\"{t}\" PhysicalSizeZ=\"2\">\
         {inside}</Pixels></Image></OME>"
    )
}

#[test]
fn stacks_of_ome() {
    let channels =
        "<Channel ID=\"Channel:0:0\"><LightPath/></Channel><Channel ID=\"Channel:0:1\"/>";
    let all = format!("{channels}<TiffData IFD=\"0\" PlaneCount=\"12\"/>");
    let file = |order, inside: &str| file(12, &ome(order, (3, 2, 2), inside));
    for (order, groups) in [
        (
            "XYCZT",
            vec![vec![0, 2, 4], vec![1, 3, 5], vec![6, 8, 10], vec![7, 9, 11]],
        ),
        (
            "XYZCT",
            vec![vec![0, 1, 2], vec![3, 4, 5], vec![6, 7, 8], vec![9, 10, 11]],
        ),
        (
            "XYTCZ",
            vec![vec![0, 4, 8], vec![1, 5, 9], vec![2, 6, 10], vec![3, 7, 11]],
        ),
    ] {
        let found =
            projected(&file(order, &all), "z").unwrap_or_else(|run| panic!("{}", run.stderr));
        let expected: Vec<Vec<u16>> = groups.iter().map(|group| largest(group)).collect();
        let words: Vec<Vec<u16>> = found.iter().map(|page| page.1.clone()).collect();
        assert_eq!(words, expected, "{order}");
        let text = found[0].2.clone().expect("a description");
        for part in [
            "SizeZ=\"1\"",
            "SizeC=\"2\"",
            "SizeT=\"2\"",
            "<TiffData/>",
            "Channel:0:1",
            "LightPath",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(
            !text.contains("PhysicalSizeZ") && !text.contains("PlaneCount"),
            "{text}"
        );
    }
    // A TiffData for each plane, and what is known of it.
    let planes: String = (0..12)
        .map(|ifd| {
            let (c, z, t) = (ifd % 2, ifd / 2 % 3, ifd / 6);
            format!("<TiffData FirstC=\"{c}\" FirstZ=\"{z}\" FirstT=\"{t}\" IFD=\"{ifd}\" PlaneCount=\"1\"><UUID FileName=\"a\">x</UUID></TiffData>")
        })
        .collect();
    let planes = format!("{channels}{planes}<Plane TheC=\"0\"/><Plane TheC=\"1\"/>");
    let found =
        projected(&file("XYCZT", &planes), "c").unwrap_or_else(|run| panic!("{}", run.stderr));
    assert_eq!(found.len(), 6);
    let text = found[0].2.clone().expect("a description");
    assert!(
        text.contains("SizeC=\"1\"") && text.matches("<TiffData/>").count() == 1,
        "{text}"
    );
    assert!(
        !text.contains("Plane") && !text.contains("Channel:0:1") && !text.contains("UUID"),
        "{text}"
    );
}

#[test]
fn axes_that_are_not_there_or_not_true_are_refused_by_name() {
    let imagej = |lines: &str| format!("ImageJ=1.54f\nimages=12\n{lines}");
    let plane = "<TiffData FirstZ=\"1\" IFD=\"0\"/>";
    for (count, text, axis, expected) in [
        (
            12,
            imagej("slices=12\n"),
            "t",
            "it has no axis t; its axes are 12 z",
        ),
        (
            12,
            imagej("channels=2\nslices=6\n"),
            "t",
            "it has no axis t; its axes are 2 c × 6 z",
        ),
        (
            12,
            imagej("channels=2\nslices=5\n"),
            "z",
            "its description (2 c × 5 z) does not match its 12 pages",
        ),
        (
            12,
            imagej("channels=0\nslices=5\n"),
            "z",
            "its description has no number of channels",
        ),
        (
            12,
            imagej("slices=18446744073709551615\nframes=9\n"),
            "z",
            "does not match",
        ),
        (
            12,
            imagej("slices=99999999999999999999999\n"),
            "z",
            "no number of slices",
        ),
        (12, imagej("slices=-1\n"), "z", "no number of slices"),
        (12, "a scan".into(), "z", "its metadata describe no axes"),
        (
            12,
            "{\"shape\": [12, 2, 3]}".into(),
            "z",
            "its metadata describe no axes",
        ),
        (
            12,
            ome("XYCZT", (3, 2, 3), ""),
            "z",
            "its description (2 c × 3 z × 3 t) does not match",
        ),
        (12, ome("XYCZT", (0, 2, 2), ""), "z", "not well-formed"),
        (12, ome("XYCZZ", (3, 2, 2), ""), "z", "not well-formed"),
        (12, ome("XYCZ", (3, 2, 2), ""), "z", "not well-formed"),
        (
            12,
            ome("XYCZT", (3, 2, 2), plane),
            "z",
            "lists the pages in an unusual order",
        ),
        (
            12,
            ome("XYCZT", (3, 2, 2), "<Pixels DimensionOrder=\"XYCZT\"/>"),
            "z",
            "describes several images",
        ),
        (
            12,
            "<OME><Pixels SizeX=3></OME>".into(),
            "z",
            "not well-formed",
        ),
        (12, "<OME></OME>".into(), "z", "describes no image"),
        (
            1,
            "ImageJ=1.54f\nimages=1\n".into(),
            "z",
            "it has no axis z",
        ),
    ] {
        let run = projected(&file(count, &text), axis).expect_err(&text);
        assert_eq!(run.code, 1, "{text}: {}", run.stderr);
        assert!(run.stderr.contains(expected), "{text}: {}", run.stderr);
        assert!(
            run.stderr.contains("cannot project in.tif along"),
            "{}",
            run.stderr
        );
    }
    let place = folder(&[
        ("a.tif", &file(12, HYPERSTACK)),
        ("b.tif", &file(12, HYPERSTACK)),
    ]);
    for (code, args, expected) in [
        (
            1,
            &["a.tif", "b.tif", "o.tif", "--axis", "z"][..],
            "--axis projects the pages of one file",
        ),
        (
            2,
            &["a.tif", "o.tif", "--axis", "z", "--pages", "1-4"],
            "cannot be combined",
        ),
        (
            2,
            &["a.tif", "o.partial", "--axis", "z", "--partial"],
            "cannot be combined",
        ),
        (
            2,
            &["a.tif", "o.tif", "--axis", "y"],
            "--axis y: expected z, t or c",
        ),
        (1, &["a.tif", "o.png", "--axis", "z"], "cannot write o.png"),
    ] {
        let done = run(place.path(), &[&["project", "mean"], args].concat(), &[]);
        assert_eq!(done.code, code, "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains(expected), "{args:?}: {}", done.stderr);
    }
    // A median along an axis, with a limit on memory.
    let args = [
        "project",
        "median",
        "a.tif",
        "m.tif",
        "--axis",
        "z",
        "--mem-limit",
        "1M",
    ];
    let done = run(place.path(), &args, &[]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let median = pages(&fs::read(place.path().join("m.tif")).unwrap());
    assert_eq!(
        median.iter().map(|page| page.1[0]).collect::<Vec<_>>(),
        [2, 3, 8, 9]
    );
}
