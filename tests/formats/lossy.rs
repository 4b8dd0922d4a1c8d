//! JPEG, which is lossy, and what files of libraries say beside their samples.

use crate::support::formats::webp;
use crate::support::formats::{format, read, refused, written};
use crate::support::{folder, run};
use gpuimg::internals::formats::{Options, Writer};
use gpuimg::internals::image::metadata::{
    Diagnostics, Effect, Embedded, Metadata, Own, Resolution, Unit,
};
use gpuimg::internals::image::{Depth, Image, Samples, Shape};
use gpuimg::internals::os::Target;

/// A smooth image, which a JPEG holds nearly.
fn smooth(width: u64, height: u64, channels: usize) -> Image {
    let shape = Shape::checked(width, height, channels, Depth::Eight).unwrap();
    let samples: Vec<u8> = (0..shape.samples())
        .map(|i| {
            let (pixel, channel) = (i / channels, i % channels);
            let (x, y) = (pixel % shape.width, pixel / shape.width);
            (x * 2 + y + 40 * channel).min(255) as u8
        })
        .collect();
    Image::new(shape, samples.into())
}

fn bytes(image: &Image) -> &[u8] {
    match image.samples() {
        Samples::U8(samples) => samples,
        _ => panic!("8 bits were expected"),
    }
}

fn most_different(a: &Image, b: &Image) -> u8 {
    assert_eq!(a.shape(), b.shape());
    let pairs = bytes(a).iter().zip(bytes(b));
    pairs.map(|(a, b)| a.abs_diff(*b)).max().unwrap()
}

#[test]
fn jpeg_comes_back_nearly() {
    for (width, height) in [(1, 1), (7, 1), (1, 7), (8, 8), (31, 17), (64, 33)] {
        for channels in [1, 3] {
            let image = smooth(width, height, channels);
            let file = written(
                format("jpeg"),
                std::slice::from_ref(&image),
                &Metadata::default(),
            )
            .unwrap();
            let (back, ..) = read(&file).unwrap();
            let most = most_different(&image, &back);
            assert!(most <= 12, "{width}×{height}×{channels}: {most}");
        }
    }
}

/// A better quality is nearer and longer.
#[test]
fn quality() {
    let image = smooth(64, 64, 3);
    let root = folder(&[(
        "a.png",
        &written(
            format("png"),
            std::slice::from_ref(&image),
            &Metadata::default(),
        )
        .unwrap(),
    )]);
    let mut found = Vec::new();
    for quality in ["5", "90", "100"] {
        let name = format!("{quality}.jpg");
        let made = run(
            root.path(),
            &["flip", "vertical", "a.png", &name, "--quality", quality],
            &[],
        );
        assert_eq!(made.code, 0, "{}", made.stderr);
        let file = std::fs::read(root.path().join(name)).unwrap();
        let made = run(
            root.path(),
            &[
                "flip",
                "vertical",
                &format!("{quality}.jpg"),
                "b.png",
                "--overwrite",
            ],
            &[],
        );
        assert_eq!(made.code, 0, "{}", made.stderr);
        let (back, ..) = read(&std::fs::read(root.path().join("b.png")).unwrap()).unwrap();
        found.push((file.len(), most_different(&image, &back)));
    }
    assert!(
        found.is_sorted_by(|a, b| a.0 < b.0 && a.1 > b.1),
        "{found:?}"
    );
    assert!(found[2].1 <= 3, "{found:?}");
}

/// A profile, a resolution and an orientation: from PNG to JPEG, and from JPEG to TIFF and PNG. A
/// turn keeps the orientation true.
#[test]
fn what_a_jpeg_says_is_kept() {
    let exif = b"MM\0*\0\0\0\x08\0\x02\x01\x0F\0\x02\0\0\0\x04abc\0\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0".to_vec();
    let metadata = Metadata {
        orientation: Some(6),
        resolution: Some(Resolution {
            x: (300, 1),
            y: (150, 1),
            unit: Unit::Inch,
        }),
        own: Own::Embedded(Embedded {
            profile: Some((0..=255).cycle().take(70_000).collect()),
            exif: Some(exif),
            xmp: Some(b"<x:xmpmeta/>".to_vec()),
        }),
        ..Metadata::default()
    };
    let image = smooth(32, 16, 3);
    let file = written(format("jpeg"), std::slice::from_ref(&image), &metadata).unwrap();
    let (_, known, _) = read(&file).unwrap();
    assert_eq!(
        (known.orientation, known.resolution),
        (Some(6), metadata.resolution)
    );
    let Own::Embedded(Embedded { profile, exif, xmp }) = &known.own else {
        panic!("{:?}", known.own)
    };
    let Own::Embedded(given) = &metadata.own else {
        unreachable!()
    };
    // XMP has no place in what the library writes, and that is said.
    assert_eq!((profile, exif, xmp), (&given.profile, &given.exif, &None));

    let root = folder(&[("a.jpg", &file)]);
    for (to, again) in [("b.png", "c.jpg"), ("b.tif", "c.jpg"), ("b.jpg", "c.png")] {
        for line in [
            ["rotate", "90", "a.jpg", to],
            ["flip", "vertical", to, again],
        ] {
            let made = run(
                root.path(),
                &[&line[..], &["--overwrite", "-v"]].concat(),
                &[],
            );
            assert_eq!(made.code, 0, "{}", made.stderr);
        }
        let (turned, known, _) = read(&std::fs::read(root.path().join(to)).unwrap()).unwrap();
        assert_eq!((turned.shape().width, turned.shape().height), (16, 32));
        // Rotated by 90, orientation 6 stays itself; the sides' resolutions are exchanged.
        assert_eq!(known.orientation, Some(6), "{to}");
        assert!(!matches!(known.own, Own::None), "{to}");
        let (_, known, _) = read(&std::fs::read(root.path().join(again)).unwrap()).unwrap();
        assert_eq!(known.orientation, Some(8), "{to} {again}");
        if again == "c.jpg" {
            let Own::Embedded(Embedded { profile, .. }) = &known.own else {
                panic!()
            };
            assert_eq!(profile, &given.profile, "{to}");
        }
        if let Some(found) = known.resolution.and_then(|found| found.per_metre()) {
            let near = |a: u32, b: u32| a.abs_diff(b) < 40;
            assert!(
                near(found.0, 5906) && near(found.1, 11811),
                "{to}: {found:?}"
            );
        }
    }
}

/// The directory after that of the image shows the image as it was.
#[test]
fn the_thumbnail_is_left_out() {
    let mut exif =
        b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x01\0\0\0\x1A\0\0\0\0\0".to_vec();
    let metadata = Metadata {
        own: Own::Embedded(Embedded {
            exif: Some(exif.clone()),
            ..Embedded::default()
        }),
        ..Metadata::default()
    };
    let file = written(format("jpeg"), &[smooth(8, 8, 1)], &metadata).unwrap();
    let root = folder(&[("a.jpg", &file)]);
    let made = run(root.path(), &["normalize", "a.jpg", "b.jpg", "-v"], &[]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    assert!(
        made.stderr.contains("the thumbnail is left out"),
        "{}",
        made.stderr
    );
    let (_, known, _) = read(&std::fs::read(root.path().join("b.jpg")).unwrap()).unwrap();
    exif[22..26].fill(0);
    let Own::Embedded(found) = known.own else {
        panic!("{:?}", known.own)
    };
    assert_eq!(found.exif, Some(exif));
}

#[test]
fn kinds_of_jpeg_that_are_not_supported() {
    let file = written(format("jpeg"), &[smooth(8, 8, 3)], &Metadata::default()).unwrap();
    let frame = file
        .windows(2)
        .position(|pair| pair == b"\xFF\xC0")
        .unwrap();
    for (at, value, why) in [
        (1, 0xC3, "lossless JPEG of YCbCr colours is not supported"),
        (1, 0xCB, "arithmetically coded JPEG is not supported"),
        (1, 0xC9, "arithmetically coded JPEG is not supported"),
        (1, 0xC5, "hierarchical JPEG is not supported"),
        (4, 12, "JPEG of 12 bits is not supported"),
        (9, 2, "2 components are not supported"),
    ] {
        let mut other = file.clone();
        other[frame + at] = value;
        refused(&other, why);
    }
    refused(b"\xFF\xD8\xFF\xD9", "it ends before the image data");
    refused(b"\xFF\xD8\xFF\xE0\0\x01", "a segment of 1 bytes");
    refused(b"\xFF\xD8\xFFABCD", "truncated");
    // A byte of image data that no code stands for, and a file that continues after its end.
    let mut more = file.clone();
    more.extend(b"\xFF\xD8 another image");
    assert_eq!(read(&more).unwrap().0, read(&file).unwrap().0);
}

/// An image of more pixels a side than JPEG has bits for, and than programs read.
#[test]
fn what_a_jpeg_cannot_hold() {
    let metadata = Metadata::default();
    let long = smooth(65_536, 1, 1);
    let error = written(format("jpeg"), &[long], &metadata).unwrap_err();
    assert_eq!(
        error.to_string(),
        "65536×1 grey, 8 bits is too large for a JPEG: most programs read at most 65500 pixels per side (PNG and TIFF hold \
         more)"
    );
    let folder = tempfile::tempdir().unwrap();
    let target = Target::create(&folder.path().join("a.jpg"), false).unwrap();
    let image = smooth(3, 2, 1);
    let mut writer = Writer::new(
        format("jpeg"),
        &Options::default(),
        &target,
        &[image.shape().into()],
    )
    .unwrap();
    let own = Own::Embedded(Embedded {
        exif: Some(vec![0; 70_000]),
        xmp: Some(b"<x:xmpmeta/>".to_vec()),
        profile: Some(vec![0; 255 * 65_519 + 1]),
    });
    let metadata = Metadata { own, ..metadata };
    let mut said = Diagnostics::default();
    writer
        .page(image, metadata, Effect::Numbers, &mut said)
        .unwrap();
    assert_eq!(
        said.notes,
        [
            "the XMP packet is left out: JPEG cannot store it",
            "Exif data of more than 64 KiB is left out: JPEG cannot store it",
            "an ICC profile of more than 16.6 MB is left out: JPEG cannot store it"
        ]
    );
}

#[test]
fn webp_of_both_kinds() {
    for channels in [3, 4] {
        let (image, ..) = read(&webp(channels)).unwrap();
        let expected =
            crate::support::image(5, 4, channels, Depth::Eight, crate::support::Kind::Noise);
        assert_eq!(image, expected);
    }
}
