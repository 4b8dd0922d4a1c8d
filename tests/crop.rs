//! Regions: what the metadata say of them, and that nothing else of a file is decoded.

use crate::support::contract::text;
use crate::support::formats::{format, formats_of_files, read, small_files, written};
use crate::support::{Kind, Numbers, axes, folder, image, run, tiff};
use gpuimg::internals::formats::Reader;
use gpuimg::internals::formats::Reading;
use gpuimg::internals::image::metadata::{Chunk, Metadata, Own, Value};
use gpuimg::internals::image::{Depth, Image, Region, Shape};
use gpuimg::internals::os::Source;
use std::fs;
use std::path::Path;

/// Crops `a.EXTENSION` to `b.EXTENSION`, and returns the metadata of the result and what was printed.
fn cropped(extension: &str, file: &[u8], region: &str) -> (Metadata, String) {
    changed(extension, file, ["crop", region])
}

/// The same after another verb with one argument.
fn changed(extension: &str, file: &[u8], verb: [&str; 2]) -> (Metadata, String) {
    let names = ["a", "b"].map(|name| format!("{name}.{extension}"));
    let root = folder(&[(&names[0], file)]);
    let words = [verb[0], verb[1], &names[0], &names[1]];
    let done = run(root.path(), &words, &[]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let (_, metadata, _) =
        read(&fs::read(root.path().join(&names[1])).expect("file")).expect("image");
    (metadata, done.stderr)
}

/// A FITS file of 4 × 3 bytes.
fn fits(records: &[&str]) -> Vec<u8> {
    let layout = [
        "SIMPLE  =                    T",
        "BITPIX  =                    8",
        "NAXIS   =                    2",
        "NAXIS1  =                    4",
        "NAXIS2  =                    3",
    ];
    let mut file: Vec<u8> = Vec::new();
    for record in layout.iter().chain(records).chain(&["END"]) {
        file.extend(format!("{record:<80}").bytes());
    }
    file.resize(file.len().next_multiple_of(2880), b' ');
    file.extend(0..12);
    file.resize(file.len().next_multiple_of(2880), 0);
    file
}

fn records(metadata: &Metadata) -> Vec<String> {
    let Own::Fits(records) = &metadata.own else {
        panic!("no records");
    };
    let text = |record: &[u8; 80]| String::from_utf8_lossy(record).trim_end().into();
    records.iter().map(text).collect()
}

/// A crop left out all coordinates, and units and the gain beside. astropy's Cutout2D and IRAF's imcopy move the reference
/// pixel by the columns and rows that are gone.
#[test]
fn a_crop_lost_the_sky_coordinates_and_the_unit() {
    let file = fits(&[
        "CTYPE1  = 'RA---TAN'",
        "CTYPE2  = 'DEC--TAN'",
        "CRPIX1  =                512.5 / column of the centre",
        "CRPIX2  =                    7",
        "CD1_1   =                -0.01",
        "A_ORDER =                    2",
        "CTYPE1B = 'LINEAR'",
        "LTV2    =                -10.5",
        "BUNIT   = 'ADU'",
        "GAIN    =                  2.5",
        "DATAMAX =                   11",
        "TRIMSEC = '[1:4,1:3]'",
        "BAYERPAT= 'RGGB'",
        "YBAYROFF=                    1",
    ]);
    let (metadata, said) = cropped("fits", &file, "1,2,2x1");
    assert_eq!(
        records(&metadata),
        [
            "CTYPE1  = 'RA---TAN'",
            "CTYPE2  = 'DEC--TAN'",
            "CRPIX1  =                511.5 / column of the centre",
            "CRPIX2  =                    5",
            "CD1_1   =                -0.01",
            "A_ORDER =                    2",
            "CTYPE1B = 'LINEAR'",
            "LTV2    =                -12.5",
            "BUNIT   = 'ADU'",
            "GAIN    =                  2.5",
            "BAYERPAT= 'RGGB'",
            "YBAYROFF=                    1",
            "CRPIX1B =                   -1",
            "LTV1    =                   -1",
            "XBAYROFF=                    1",
        ]
    );
    assert!(
        said.contains(
            "1 record of the header describes the previous values and is left out (DATAMAX)"
        ),
        "{said}"
    );
    assert!(
        said.contains(
            "1 record of the header describes the previous positions and is left out (TRIMSEC)"
        ),
        "{said}"
    );
    // Coordinates that cannot be moved are left out, as before.
    let (metadata, said) = cropped(
        "fits",
        &fits(&["CRPIX1  = 'centre'", "CDELT1  = 2"]),
        "1,2,2x1",
    );
    assert!(matches!(metadata.own, Own::None), "{metadata:?}");
    assert!(
        said.contains("2 records of the header describe the previous positions"),
        "{said}"
    );
}

/// The values of a TIFF's field, as bytes.
fn field(metadata: &Metadata, tag: u16) -> Option<Vec<u8>> {
    let Own::Tiff { fields, .. } = &metadata.own else {
        panic!("no fields");
    };
    let field = fields.iter().find(|field| field.tag == tag)?;
    match &field.value {
        Value::Bytes(bytes) => Some(bytes.clone()),
        Value::Directory(_) => None,
    }
}

fn two_longs(first: u32, second: u32) -> Option<Vec<u8>> {
    Some([first.to_le_bytes(), second.to_le_bytes()].concat())
}

/// XPosition and YPosition are lengths on the page: half an inch and two columns of a quarter inch are one inch.
#[test]
fn the_position_on_the_page_stayed_that_of_the_whole_image() {
    // The numerator comes first in the file, and is the low half of a little-endian number.
    let fraction = |n: u64, d: u64| [n | d << 32];
    let page = image(4, 3, 1, Depth::Eight, Kind::Noise);
    let build = tiff::Build::default()
        .tag(282, 5, &fraction(4, 1))
        .tag(283, 5, &fraction(3, 1))
        .tag(286, 5, &fraction(1, 2))
        .tag(287, 5, &fraction(0, 1));
    let (metadata, _) = cropped("tif", &build.file(&page), "2,1,2x2");
    assert_eq!(field(&metadata, 286), two_longs(1, 1));
    assert_eq!(field(&metadata, 287), two_longs(1, 3));
    // Without a usable resolution no length is known.
    let file = build.tag(282, 5, &fraction(0, 1)).file(&page);
    let (metadata, _) = cropped("tif", &file, "2,1,2x2");
    assert_eq!(
        (field(&metadata, 286), field(&metadata, 287)),
        (None, two_longs(1, 3))
    );
}

/// Red, green and blue of a filter array of 2 × 2 begin elsewhere after an odd number of columns or rows.
#[test]
fn the_colour_filter_pattern_stayed_that_of_the_whole_image() {
    let page = image(4, 3, 1, Depth::Eight, Kind::Noise);
    let build = tiff::Build::default()
        .tag(33421, 3, &[2, 2])
        .tag(33422, 1, &[0, 1, 1, 2]);
    for (region, pattern) in [
        ("1,0,2x2", [1, 0, 2, 1]),
        ("0,1,2x2", [1, 2, 0, 1]),
        ("1,1,2x2", [2, 1, 1, 0]),
        ("2,0,2x2", [0, 1, 1, 2]),
    ] {
        let (metadata, _) = cropped("tif", &build.file(&page), region);
        assert_eq!(field(&metadata, 33422), Some(pattern.into()), "{region}");
    }
}

/// The colours of a mosaic's corner are others after a turn.
#[test]
fn a_turned_mosaic_kept_its_filter_pattern() {
    let page = image(4, 3, 1, Depth::Eight, Kind::Noise);
    let file = tiff::Build::default()
        .tag(33421, 3, &[2, 2])
        .tag(33422, 1, &[0, 1, 1, 2])
        .file(&page);
    for verb in [["rotate", "90"], ["flip", "horizontal"]] {
        let (metadata, _) = changed("tif", &file, verb);
        assert_eq!(field(&metadata, 33421), None, "{verb:?}");
        assert_eq!(field(&metadata, 33422), None, "{verb:?}");
        let records = ["OBJECT  = 'M 31'", "BAYERPAT= 'RGGB'", "XBAYROFF= 1"];
        let (metadata, said) = changed("fits", &fits(&records), verb);
        let kept = self::records(&metadata);
        assert!(
            kept.iter().all(|record| record.starts_with("OBJECT")),
            "{kept:?}"
        );
        assert!(said.contains("2 records of the header describe the previous positions"));
    }
}

#[test]
fn the_origin_of_imagej_stayed_that_of_the_whole_image() {
    let page = image(4, 3, 1, Depth::Eight, Kind::Noise);
    let text = b"ImageJ=1.54f\nunit=um\nxorigin=10.5\nyorigin=2.0\n\0".map(u64::from);
    let file = tiff::Build::default().tag(270, 2, &text).file(&page);
    let (metadata, _) = cropped("tif", &file, "2,1,2x2");
    let text = field(&metadata, 270).map(|text| String::from_utf8_lossy(&text).into_owned());
    assert_eq!(
        text.as_deref(),
        Some("ImageJ=1.54f\nunit=um\nxorigin=8.5\nyorigin=1.0\n\0")
    );
}

/// oFFs was left out; in pixels it can be moved, in micrometres not.
#[test]
fn the_offset_of_a_png_was_lost() {
    let page = image(4, 3, 1, Depth::Eight, Kind::Noise);
    let offset =
        |x: i32, y: i32, unit: u8| [&x.to_be_bytes()[..], &y.to_be_bytes(), &[unit]].concat();
    let file = |data: Vec<u8>| {
        let chunk = Chunk {
            kind: *b"oFFs",
            behind: false,
            data,
        };
        let own = Own::Png(vec![chunk]);
        let metadata = Metadata {
            own,
            ..Metadata::default()
        };
        written(format("png"), std::slice::from_ref(&page), &metadata).expect("a file")
    };
    let after = |data: Vec<u8>| match cropped("png", &file(data), "2,1,2x2").0.own {
        Own::Png(chunks) => chunks.into_iter().map(|chunk| chunk.data).next(),
        _ => None,
    };
    assert_eq!(after(offset(-1, 5, 0)), Some(offset(1, 6, 0)));
    assert_eq!(after(offset(7, 5, 1)), None);
    assert_eq!(after(offset(i32::MAX, 5, 0)), None);
}

/// The rectangle of an image, sample by sample.
fn expected(whole: &Image, region: &Region) -> Vec<u8> {
    let shape = whole.shape();
    let pixel = shape.pixel_bytes();
    let mut bytes = Vec::new();
    for y in region.top..region.top + region.height {
        for x in region.left..region.left + region.width {
            let start = (y * shape.width + x) * pixel;
            bytes.extend_from_slice(&whole.samples().as_bytes()[start..start + pixel]);
        }
    }
    bytes
}

fn region(text: &str) -> Region {
    text.parse().expect("a region")
}

/// Compares regions that a reader decodes alone with those of the whole image; returns how many.
fn compare(file: &[u8], what: &str) -> usize {
    let source = Source::memory(file.to_vec());
    let mut reader = Reader::open(&source, &Reading::default()).expect(what);
    assert!(reader.gives_regions(), "{what}");
    let Shape { width, height, .. } = reader.shape();
    let mut regions = vec![
        region("0,0,1x1"),
        region(&format!("0,0,{width}x{height}")),
        region(&format!("{},{},1x1", width - 1, height - 1)),
        region(&format!("0,{},{width}x{}", height / 3, height.div_ceil(3))),
        region(&format!("{},0,{}x{height}", width / 3, width.div_ceil(3))),
    ];
    let mut numbers = Numbers::new(width as u64);
    let mut below = |most: usize| (numbers.next() >> 20) as usize % most;
    for _ in 0..6 {
        let (left, top) = (below(width), below(height));
        regions.push(Region {
            left,
            top,
            width: 1 + below(width - left),
            height: 1 + below(height - top),
        });
    }
    let found: Vec<Image> = regions
        .iter()
        .map(|region| reader.decode_region(region).expect(what))
        .collect();
    let whole = reader.decode().expect(what);
    for (region, found) in regions.iter().zip(&found) {
        assert_eq!(
            found.shape(),
            region.output(whole.shape()),
            "{what}: {region}"
        );
        assert!(
            found.samples().as_bytes() == expected(&whole, region),
            "{what}: {region}"
        );
    }
    regions.len()
}

/// Every layout × compression × byte order × predictor × depth × channels.
#[test]
fn regions_of_a_tiff_are_those_of_the_whole() {
    let mut cases = 0;
    for (channels, depth) in [
        (1, Depth::Eight),
        (3, Depth::Eight),
        (1, Depth::Sixteen),
        (4, Depth::Sixteen),
        (1, Depth::ThirtyTwo),
        (1, Depth::Float),
        (3, Depth::Float),
        (1, Depth::Double),
    ] {
        let page = image(53, 37, channels, depth, Kind::Narrow);
        for compression in [1, 5, 8, 32773, 50000] {
            for big_endian in [false, true] {
                for predictor in [0, 2, 3] {
                    if predictor == 3 && !depth.is_float() {
                        continue;
                    }
                    for (strip, tile) in [
                        (usize::MAX, None),
                        (5, None),
                        (1, None),
                        (0, Some((16, 16))),
                        (0, Some((64, 48))),
                    ] {
                        let build = tiff::Build {
                            big_endian,
                            strip,
                            tile,
                            compression,
                            predictor: predictor > 0,
                            bytewise: predictor == 3,
                            ..tiff::Build::default()
                        };
                        let sample = match depth {
                            Depth::Float | Depth::Double => 3,
                            _ => 1,
                        };
                        let formats = vec![sample; channels];
                        let file = build.tag(339, 3, &formats).file(&page);
                        let what = format!(
                            "{channels} × {depth}, {compression}, {big_endian}, {predictor}, {strip}, {tile:?}"
                        );
                        cases += compare(&file, &what);
                    }
                }
            }
        }
    }
    assert_eq!(cases, (5 * 2 * 5 * 11) * (5 * 2 + 3 * 3));
}

/// Planes, compressed or not; and 12 and 1 bits, whose samples begin within a byte.
#[test]
fn regions_of_planes_and_of_packed_samples_are_those_of_the_whole() {
    let mut numbers = Numbers::new(3);
    let mut noise =
        |count: usize| -> Vec<u8> { (0..count).map(|_| (numbers.next() >> 20) as u8).collect() };
    let colours = image(53, 37, 3, Depth::Sixteen, Kind::Noise);
    let grey = image(53, 37, 1, Depth::Sixteen, Kind::Noise);
    let mut cases = 0;
    for compression in [1, 8] {
        let packed = |strip: Vec<u8>| match compression {
            8 => tiff::libdeflate::<6>(&strip),
            _ => strip,
        };
        let build = tiff::Build {
            compression,
            ..tiff::Build::default()
        };
        for (image, bits, planes, row) in [
            (&colours, 16, 3, 53 * 2),
            (&colours, 12, 3, 80),
            (&colours, 12, 1, 239),
            (&grey, 12, 1, 80),
            (&grey, 1, 1, 7),
        ] {
            // Strips of 10, 10, 10 and 7 rows for each plane.
            let heights = [10, 10, 10, 7].repeat(planes);
            let strips: Vec<Vec<u8>> = heights
                .iter()
                .map(|rows| packed(noise(rows * row)))
                .collect();
            let strips: Vec<&[u8]> = strips.iter().map(Vec::as_slice).collect();
            let bits_of_all = vec![bits; image.shape().channels];
            let planar = if planes == 1 { 1 } else { 2 };
            let file = build
                .clone()
                .tag(258, 3, &bits_of_all)
                .tag(278, 4, &[10])
                .tag(284, 3, &[planar])
                .with_strips(image, &strips);
            cases += compare(
                &file,
                &format!("{bits} bits, {planes} planes, {compression}"),
            );
        }
    }
    assert_eq!(cases, 2 * 5 * 11);
}

/// Every other format that gives regions: both byte orders, rows from below, samples as text.
#[test]
fn regions_of_other_formats_are_those_of_the_whole() {
    let mut seen = Vec::new();
    for format in formats_of_files() {
        if format.id == "tiff" {
            continue;
        }
        let channels = if format.capabilities.channels.contains(&1) {
            1
        } else {
            4
        };
        for depth in [Depth::Eight, Depth::Sixteen, Depth::Float] {
            if !format.capabilities.depths.contains(&depth) {
                continue;
            }
            let page = image(53, 37, channels, depth, Kind::Noise);
            let Ok(file) = written(format, &[page], &Metadata::default()) else {
                continue;
            };
            let source = Source::memory(file.clone());
            let reader = Reader::open(&source, &Reading::default()).expect(format.id);
            if reader.gives_regions() {
                compare(&file, format.id);
                seen.push(format.id);
            }
        }
    }
    for (name, file) in small_files() {
        let source = Source::memory(file.clone());
        let Ok(reader) = Reader::open(&source, &Reading::default()) else {
            continue;
        };
        if reader.gives_regions() {
            compare(&file, &name);
            seen.push(reader.format().id);
        }
    }
    for id in ["pnm", "pam", "npy", "fits", "nrrd", "metaimage", "pfm"] {
        assert!(seen.contains(&id), "{id} is not among {seen:?}");
    }
}

/// The files of all kinds, cropped by the command: the same as the crop of the converted file.
#[test]
fn a_crop_of_a_small_file_of_any_kind_is_that_of_its_pixels() {
    let mut cases = 0;
    for (name, file) in small_files() {
        let Ok((whole, ..)) = read(&file) else {
            continue;
        };
        let shape = whole.shape();
        let part = Region {
            left: shape.width / 2,
            top: shape.height / 2,
            width: shape.width - shape.width / 2,
            height: 1,
        };
        let root = folder(&[(&name, &file)]);
        let args = ["crop", &part.to_string(), &name, "out.npy"];
        let done = run(root.path(), &args, &[]);
        if done.code != 0 {
            continue;
        }
        let out = fs::read(root.path().join("out.npy")).expect("file");
        let (found, ..) = read(&out).expect("an image");
        assert!(
            found.samples().as_bytes() == expected(&whole, &part),
            "{name}"
        );
        cases += 1;
    }
    assert!(cases >= 8, "{cases}");
}

/// 64 deflated tiles of 16 × 16. A crop reads the tiles that it touches, and no other.
#[test]
fn tiles_outside_the_region_are_not_read() {
    let page = image(128, 128, 1, Depth::Sixteen, Kind::Noise);
    let build = tiff::Build {
        tile: Some((16, 16)),
        compression: 8,
        ..tiff::Build::default()
    };
    let file = build.file(&page);
    let root = folder(&[("a.tif", &file)]);
    let reads = |args: &[&str]| {
        let calls = root.path().join("calls");
        let _ = fs::remove_file(&calls);
        let env = [("GPUIMG_FAULT_COUNT", calls.to_str().expect("text"))];
        let done = run(root.path(), args, &env);
        assert_eq!(done.code, 0, "{}", done.stderr);
        let calls = fs::read_to_string(calls).expect("calls");
        calls.lines().filter(|line| *line == "read a.tif").count()
    };
    let one = reads(&["crop", "16,16,16x16", "a.tif", "b.npy"]);
    let four = reads(&["crop", "20,20,16x16", "a.tif", "c.npy"]);
    let all = reads(&["convert", "a.tif", "d.npy"]);
    assert_eq!((four - one, all - one), (3, 63));
    let of = |name: &str| fs::read(root.path().join(name)).expect("file");
    let found = read(&of("c.npy")).expect("an image").0;
    assert!(found.samples().as_bytes() == expected(&page, &region("20,20,16x16")));
    let dry = ["crop", "20,20,16x16", "a.tif", "e.npy", "--dry-run", "-v"];
    let plan = run(root.path(), &dry, &[]).stdout;
    assert!(plan.contains("    decode    4 of 64 tiles\n"), "{plan}");
    assert!(plan.contains("    memory    the region\n"), "{plan}");
}

/// The first tile is damaged: a region beside it comes out right, one that touches it is refused.
#[test]
fn damage_counts_where_the_region_is() {
    let page = image(64, 64, 1, Depth::Sixteen, Kind::Noise);
    let build = tiff::Build {
        tile: Some((16, 16)),
        compression: 8,
        ..tiff::Build::default()
    };
    let mut file = build.file(&page);
    // The file begins with its 8 bytes of head, then the first tile.
    file[8..40].fill(0xFF);
    let root = folder(&[("a.tif", &file)]);
    let go = |region: &str, more: &[&str]| {
        let args = [&["crop", region, "a.tif", "b.npy", "--overwrite"], more].concat();
        run(root.path(), &args, &[])
    };
    let done = go("16,0,48x64", &[]);
    assert_eq!((done.code, &*done.stderr), (0, ""));
    let found = read(&fs::read(root.path().join("b.npy")).expect("file"))
        .expect("an image")
        .0;
    assert!(found.samples().as_bytes() == expected(&page, &region("16,0,48x64")));
    let done = go("15,0,48x64", &[]);
    assert_eq!(done.code, 1);
    assert!(done.stderr.contains("tile 0"), "{}", done.stderr);
    // With --keep-going all of the page is decoded, and its damage is reported.
    let done = go("16,0,48x64", &["--keep-going"]);
    assert!(done.stderr.contains("tile 0"), "{}", done.stderr);
}

/// A sparse array of words, all 0, and the offset of the first of them.
fn sparse(path: &Path, width: u64, height: u64) -> (fs::File, u64) {
    let dictionary =
        format!("{{'descr': '<u2', 'fortran_order': False, 'shape': ({height}, {width}), }}   \n");
    let head = crate::support::formats::npy(1, &dictionary, &[]);
    let file = fs::File::create(path).expect("file");
    std::os::unix::fs::FileExt::write_all_at(&file, &head, 0).expect("head");
    let start = head.len() as u64;
    file.set_len(start + 2 * width * height).expect("length");
    (file, start)
}

/// A sparse file of 40 GB: a crop takes no more memory than its region.
#[test]
fn a_region_of_a_file_larger_than_memory() {
    let root = folder(&[]);
    let (width, height) = (100_000u64, 200_000u64);
    let (file, start) = sparse(&root.path().join("a.npy"), width, height);
    let at = start + 2 * (150_000 * width + 70_000);
    std::os::unix::fs::FileExt::write_all_at(&file, &[1, 2, 3, 4], at).expect("samples");
    let go = |region: &str| {
        let args = [
            "crop",
            region,
            "a.npy",
            "b.npy",
            "--max-pixels",
            "100000000000",
            "--mem-limit",
            "64M",
            "--overwrite",
        ];
        let done = run(root.path(), &args, &[]);
        assert_eq!((done.code, &*done.stderr), (0, ""), "{region}");
        read(&fs::read(root.path().join("b.npy")).expect("file"))
            .expect("an image")
            .0
    };
    let found = go("70000,150000,3x2");
    assert_eq!(
        found.samples().as_bytes(),
        [1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0]
    );
}

/// A step after the crop sees the region alone, and one before it the whole.
#[test]
fn steps_after_a_crop_see_the_region() {
    let page = image(64, 48, 1, Depth::Sixteen, Kind::Noise);
    let build = tiff::Build {
        tile: Some((16, 16)),
        ..tiff::Build::default()
    };
    let root = folder(&[("a.tif", &build.file(&page))]);
    let go = |args: &[&str]| {
        let done = run(root.path(), args, &[]);
        assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
    };
    go(&["crop", "7,5,40x30", "a.tif", "b.tif"]);
    go(&["normalize", "b.tif", "c.npy"]);
    go(&["run", "crop 7,5,40x30 + normalize", "a.tif", "d.npy"]);
    go(&["normalize", "a.tif", "e.tif"]);
    go(&["crop", "7,5,40x30", "e.tif", "f.npy"]);
    go(&["run", "normalize + crop 7,5,40x30", "a.tif", "g.npy"]);
    let file = |name: &str| fs::read(root.path().join(name)).expect("file");
    assert!(file("c.npy") == file("d.npy"));
    assert!(file("f.npy") == file("g.npy"));
    assert!(file("c.npy") != file("f.npy"));
}

/// Sides whose sum or product overflows are refused, also where the size of a page is asked before.
#[test]
fn regions_of_impossible_sizes_are_refused() {
    let page = image(8, 6, 1, Depth::Eight, Kind::Noise);
    let file = tiff::Build::default().file(&page);
    let root = folder(&[("a.tif", &file), ("b.tif", &file)]);
    for region in [
        "18446744073709551615,0,18446744073709551615x1",
        "0,0,18446744073709551615x18446744073709551615",
        "0,4,8x3",
    ] {
        for args in [
            &["crop", region, "a.tif", "c.npy"][..],
            &["crop", region, "a.tif", "b.tif", "c.tif", "--stack"],
            &["crop", region, "a.tif", "out", "--split"],
        ] {
            let done = run(root.path(), args, &[]);
            assert_eq!(done.code, 1, "{args:?}: {}", done.stderr);
            let reason = "reaches beyond the image, which has 8×6 pixels";
            assert!(done.stderr.contains(reason), "{args:?}: {}", done.stderr);
        }
    }
}

/// The whole image, of 5.6 GB, was counted in place of the region, so the result was a BigTIFF, which many programs do not
/// read.
#[test]
fn a_small_crop_of_a_large_image_became_a_bigtiff() {
    let root = folder(&[]);
    sparse(&root.path().join("a.npy"), 70_000, 40_000);
    for args in [
        &["crop", "5,6,3x2", "a.npy", "b.tif"][..],
        &[
            "run",
            "flip horizontal + crop 5,6,3x2",
            "a.npy",
            "c.tif",
            "--dry-run",
        ],
        &["crop", "5,6,3x2", "a.npy", "a.npy", "d.tif", "--stack"],
    ] {
        let done = run(root.path(), args, &[]);
        assert_eq!((done.code, &*done.stderr), (0, ""), "{args:?}");
    }
    for name in ["b.tif", "d.tif"] {
        let file = fs::read(root.path().join(name)).expect("file");
        assert_eq!(file[..4], *b"II*\0", "{name}");
    }
}

/// MaxSampleValue is 1023, and a sample of 2000 outside the region contradicts it. 500 of 1023 are 125 of 255, and of 65535
/// they are 2.
#[test]
fn a_maximum_that_only_samples_outside_the_region_exceed() {
    let page = crate::support::grey([[500, 1000], [0, 2000]]);
    let file = tiff::Build::default().tag(281, 3, &[1023]).file(&page);
    let root = folder(&[("a.tif", &file)]);
    let first_row = |args: &[&str]| {
        let done = run(root.path(), args, &[]);
        assert_eq!((done.code, &*done.stderr), (0, ""), "{args:?}");
        let file = fs::read(root.path().join("out.npy")).expect("file");
        let image = read(&file).expect("an image").0;
        [image.samples().at(0), image.samples().at(1)]
    };
    let more = ["a.tif", "out.npy", "--depth", "8", "--overwrite"];
    assert_eq!(
        first_row(&[&["crop", "0,0,2x1"], &more[..]].concat()),
        [125, 249]
    );
    assert_eq!(first_row(&[&["convert"], &more[..]].concat()), [2, 4]);
}

/// tifffile takes the pages of its own files from between the first two directories, if they fit there. In a small result, all
/// pages but the first had the bytes after the first page.
#[test]
fn tifffile_read_other_samples_of_small_pages() {
    let stack = |size: usize| {
        let description = format!("{{\"shape\": [4, {size}, {size}], \"truncated\": true}}\0");
        let description: Vec<u64> = description.bytes().map(u64::from).collect();
        let rows = size as u64;
        let build = (tiff::Build::default().tag(270, 2, &description))
            .tag(257, 4, &[rows])
            .tag(278, 4, &[rows])
            .tag(279, 4, &[2 * rows * rows]);
        build.file(&image(size, 4 * size, 1, Depth::Sixteen, Kind::Noise))
    };
    let root = folder(&[("small.tif", &stack(5)), ("large.tif", &stack(50))]);
    for (input, region, more, kept) in [
        ("small.tif", "1,1,4x4", "--tiff=none", None),
        (
            "small.tif",
            "1,1,4x4",
            "--tiff=lzw",
            Some("{\"shape\":[4,4,4]}"),
        ),
        (
            "large.tif",
            "1,1,44x44",
            "--tiff=none",
            Some("{\"shape\":[4,44,44]}"),
        ),
    ] {
        let done = run(
            root.path(),
            &["crop", region, input, "out.tif", "-f", more],
            &[],
        );
        assert_eq!((done.code, &*done.stderr), (0, ""));
        let file = fs::read(root.path().join("out.tif")).expect("a file");
        assert_eq!(text(&file, 270).as_deref(), kept, "{input} {more}");
    }
}

/// tifffile takes the pages of an ImageJ stack from the samples of the first one on, if all fit before the second directory: the
/// bytes that align it were read as the other pages.
#[test]
fn tifffile_read_other_samples_of_small_imagej_stacks() {
    let place = folder(&[("in.tif", &axes::file(12, axes::HYPERSTACK))]);
    for (region, options, pages, bytes, has_description) in [
        ("1,0,1x1", &[][..], 12, 2, true),
        ("0,0,1x2", &["--depth", "8"], 12, 2, true),
        ("0,0,3x1", &["--axes", "Z=1,T=1"], 2, 6, true),
        // No directory may begin at an odd offset.
        (
            "1,0,1x1",
            &["--depth", "8", "--axes", "Z=1,T=1"],
            2,
            1,
            false,
        ),
    ] {
        let args = [&["crop", region, "in.tif", "out.tif", "-f"], options].concat();
        let done = run(place.path(), &args, &[]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        let file = fs::read(place.path().join("out.tif")).expect("a file");
        let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().expect("4 bytes"));
        let directory = word(4) as usize;
        let entries = usize::from(u16::from_le_bytes([file[directory], file[directory + 1]]));
        let next = word(directory + 2 + 12 * entries);
        let samples = (0..entries).map(|i| directory + 2 + 12 * i);
        let samples = samples.filter(|&at| file[at..at + 2] == 273u16.to_le_bytes());
        let samples = samples.map(|at| word(at + 8)).next().expect("StripOffsets");
        let description = text(&file, 270);
        assert_eq!(description.is_some(), has_description, "{args:?}");
        assert!(
            !has_description || samples + pages * bytes > next,
            "{args:?}"
        );
        assert!(next % 2 == 0, "{args:?}");
    }
}
