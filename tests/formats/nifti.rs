//! NIfTI: headers by hand.

use crate::support::formats::{nifti, read, read_pages, refused};
use crate::support::{folder, run};
use gpuimg::internals::image::metadata::{Resolution, Unit};
use gpuimg::internals::image::{Depth, Samples};

/// The file with other bytes at an offset.
fn with(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut file = nifti(false);
    file[at..at + bytes.len()].copy_from_slice(bytes);
    file
}

/// 3 × 2 × 2 words from −6 to 5, also compressed: each slice is a page, in the order of the file.
#[test]
fn slices_are_pages() {
    for compressed in [false, true] {
        let (pages, metadata, said) = read_pages(&nifti(compressed)).unwrap();
        let words = |first: u16| Samples::U16((first..first + 6).collect::<Vec<u16>>().into());
        assert_eq!(pages[0].samples(), &words(0x8000 - 6));
        assert_eq!(pages[1].samples(), &words(0x8000));
        assert_eq!(pages.len(), 2);
        assert!(metadata.signed && said.warnings.is_empty());
        let half_a_millimetre = Resolution {
            x: (10_000_000, 500_000),
            y: (10_000_000, 250_000),
            unit: Unit::Centimetre,
        };
        assert_eq!(metadata.resolution, Some(half_a_millimetre));
        assert_eq!(said.notes[0], "the distance of slices is left out: 2 mm");
    }
}

/// Version 2, whose fields are wider, with the most significant byte first: RGB, and floating point of 64 bits.
#[test]
fn version_two() {
    let header = |datatype: i16, axes: &[i64]| {
        let mut file = vec![0; 544];
        let mut set = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        set(0, &540i32.to_be_bytes());
        set(4, b"n+2\0\r\n\x1A\n");
        set(12, &datatype.to_be_bytes());
        set(16, &(axes.len() as i64).to_be_bytes());
        for (axis, length) in axes.iter().enumerate() {
            set(24 + 8 * axis, &length.to_be_bytes());
        }
        set(168, &544i64.to_be_bytes());
        file
    };
    let colours = [&header(128, &[2, 1])[..], b"abcdef"].concat();
    let (image, ..) = read(&colours).unwrap();
    assert_eq!(
        (image.shape().channels, image.samples().as_bytes()),
        (3, &b"abcdef"[..])
    );
    let numbers = [-1.5f64, 2.5].map(f64::to_be_bytes).concat();
    let (image, ..) = read(&[header(64, &[2, 1, 1, 1]), numbers].concat()).unwrap();
    assert_eq!(image.shape().depth, Depth::Double);
    let Samples::U64(keys) = image.samples() else {
        panic!("64 bits were expected")
    };
    let values = keys
        .iter()
        .map(|&key| f64::from_bits(gpuimg::internals::image::number::bits64(key)));
    assert_eq!(values.collect::<Vec<f64>>(), [-1.5, 2.5]);
    refused(&header(64, &[1 << 40, 1 << 40]), "do not fit in memory");
    refused(&header(64, &[-2, 1]), "the lengths of its axes (dim) are");
    refused(&header(64, &[2]), "a volume of one axis is not supported");
    refused(
        &header(1024, &[2, 1]),
        "samples of 64-bit integers (datatype 1024) are not supported",
    );
}

/// The scale and the orientation are not applied, which a message says.
#[test]
fn scale_and_orientation_are_reported() {
    let mut file = with(112, &2f32.to_le_bytes());
    file[116..120].copy_from_slice(&(-1f32).to_le_bytes());
    file[254] = 1;
    for (at, value) in [(280, -2f32), (292, 90.0), (300, 2.0), (320, 3.5)] {
        file[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    let (image, _, said) = read(&file).unwrap();
    assert_eq!(image.samples().at(0), 0x8000 - 6);
    assert_eq!(
        said.warnings[0],
        "samples are read as stored: scl_slope (2) and scl_inter (-1) are not applied"
    );
    assert_eq!(
        said.notes[1],
        "the orientation is not applied, and left out: sform 1, -2 0 0 90; 0 2 0 0; 0 0 3.5 0"
    );
}

/// Slices, frames and values of a voxel are axes that can be selected.
#[test]
fn axes_are_selected() {
    let mut file = with(40, &5i16.to_le_bytes());
    for (at, length) in [(42, 3i16), (44, 1), (46, 2), (48, 2), (50, 1)] {
        file[at..at + 2].copy_from_slice(&length.to_le_bytes());
    }
    let root = folder(&[("a.nii", &file)]);
    let args = ["flip", "horizontal", "a.nii", "b.tif", "--axes", "Z=2,T=1"];
    let selected = run(root.path(), &args, &[]);
    assert_eq!(selected.code, 0, "{}", selected.stderr);
    let (pages, ..) = read_pages(&std::fs::read(root.path().join("b.tif")).unwrap()).unwrap();
    assert_eq!(pages.len(), 1);
    assert_eq!(
        pages[0].samples(),
        &Samples::U16(vec![0x7FFF, 0x7FFE, 0x7FFD].into())
    );
    let info = run(root.path(), &["info", "a.nii"], &[]);
    assert!(info.stdout.contains("2 z × 2 t"), "{}", info.stdout);
}

/// A slope that is not a number means that there is no scale (NIfTI-1, `nifti1.h`, and nibabel).
#[test]
fn a_slope_that_is_not_a_number_was_taken_for_a_scale() {
    let (_, _, said) = read(&with(112, &f32::NAN.to_le_bytes())).unwrap();
    assert!(said.warnings.is_empty(), "{:?}", said.warnings);
}

/// A file of single pixels with these numbers of slices, frames and values, from 0 on.
fn of_axes(lengths: [i16; 3]) -> Vec<u8> {
    let mut file = with(40, &5i16.to_le_bytes());
    for (at, length) in (42..).step_by(2).zip([1, 1].into_iter().chain(lengths)) {
        file[at..at + 2].copy_from_slice(&length.to_le_bytes());
    }
    file.truncate(352);
    let pages = lengths.iter().product();
    file.extend((0..pages).flat_map(i16::to_le_bytes));
    file
}

/// Slices and frames became pages without axes, which only -v said.
#[test]
fn slices_and_frames_became_pages_without_axes() {
    let converted = |lengths: [i16; 3], more: &[&str]| {
        let root = folder(&[("a.nii", &of_axes(lengths))]);
        let args = [&["convert", "a.nii", "b.tif"], more].concat();
        let done = run(root.path(), &args, &[]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        let file = std::fs::read(root.path().join("b.tif")).unwrap();
        let text = crate::support::contract::text(&file, 270);
        let info = run(root.path(), &["info", "b.tif"], &[]).stdout;
        let axes = info.split_once(" pages").map(|(_, rest)| rest.to_string());
        let axes = axes.and_then(|rest| Some(rest.split_once(',')?.0.trim().to_string()));
        (text.unwrap_or_default(), axes, done.stderr)
    };
    let (text, axes, said) = converted([3, 2, 1], &[]);
    assert_eq!(
        text,
        "ImageJ=1.11a\nimages=6\nslices=3\nframes=2\nhyperstack=true\n"
    );
    assert_eq!((axes.as_deref(), &*said), (Some("(3 z × 2 t)"), ""));
    for (lengths, expected) in [
        ([1, 2, 1], "ImageJ=1.11a\nimages=2\nframes=2\n"),
        ([1, 1, 2], "ImageJ=1.11a\nimages=2\nchannels=2\n"),
        ([1, 1, 1], ""),
    ] {
        assert_eq!(converted(lengths, &[]).0, expected, "{lengths:?}");
    }
    // Those that are selected.
    let (text, axes, _) = converted([3, 2, 1], &["--axes", "Z=2-3"]);
    assert!(text.contains("images=4\nslices=2\nframes=2\n"), "{text}");
    assert_eq!(axes.as_deref(), Some("(2 z × 2 t)"));
    let (text, ..) = converted([3, 2, 1], &["--pages", "2-4"]);
    assert_eq!(text, "");
    // ImageJ has no order in which the values of a voxel come last.
    let (text, axes, said) = converted([3, 1, 2], &[]);
    assert_eq!((&*text, axes.as_deref()), ("", Some("")));
    assert!(
        said.contains("which pages are slices, frames and channels is left out")
            && said.contains("the order of these pages is 3 z × 2 c"),
        "{said}"
    );
}

/// A projection lost the other axes, too.
#[test]
fn a_projection_of_slices_lost_the_frames() {
    let root = folder(&[("a.nii", &of_axes([3, 2, 1]))]);
    let args = ["project", "max", "--axis", "z", "a.nii", "b.tif"];
    let done = run(root.path(), &args, &[]);
    assert_eq!((done.code, &*done.stderr), (0, ""));
    let file = std::fs::read(root.path().join("b.tif")).unwrap();
    let text = crate::support::contract::text(&file, 270);
    assert_eq!(text.as_deref(), Some("ImageJ=1.11a\nimages=2\nframes=2\n"));
    let (pages, ..) = read_pages(&file).unwrap();
    let found = pages.iter().map(|page| page.samples().at(0));
    // The largest of 0, 1, 2 and of 3, 4, 5, as signed words are in memory.
    assert_eq!(found.collect::<Vec<u64>>(), [0x8002, 0x8005]);
}

#[test]
fn refusals() {
    refused(
        &with(0, &349i32.to_le_bytes()),
        "its header does not begin with its size, 348",
    );
    refused(
        &with(40, &8i16.to_le_bytes()),
        "its number of axes (dim[0]) is 8",
    );
    refused(
        &with(40, &0i16.to_le_bytes()),
        "its number of axes (dim[0]) is 0",
    );
    refused(&with(42, &0i16.to_le_bytes()), "the image is empty");
    refused(
        &with(46, &i16::MAX.to_le_bytes()),
        "truncated at byte 376 of",
    );
    refused(
        &with(70, &32i16.to_le_bytes()),
        "samples of complex numbers (datatype 32) are not supported",
    );
    refused(&with(108, &1.5f32.to_le_bytes()), "its vox_offset is 1.5");
    refused(
        &with(108, &100f32.to_le_bytes()),
        "its samples begin within its header, at byte 100",
    );
    refused(&with(108, &f32::NAN.to_le_bytes()), "its vox_offset is NaN");
    refused(&with(344, b"ni1\0"), "it is a NIfTI header without samples");
    refused(&nifti(false)[..348], "truncated at byte 348 of 376");
    // A gzip file of something else, and one whose header claims more than it has.
    refused(
        b"\x1F\x8B\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0",
        "it is a gzip file, which is not supported",
    );
    let huge = with(42, &[0xFF, 0x7F, 0xFF, 0x7F, 0xFF, 0x7F]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut gzip, &huge).unwrap();
    refused(&gzip.finish().unwrap(), "bytes are too few for");
    let slices = with(42, &[1, 0, 1, 0, 0xFF, 0x7F]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut gzip, &slices).unwrap();
    refused(&gzip.finish().unwrap(), "bytes are too few for 32767 pages");
}
