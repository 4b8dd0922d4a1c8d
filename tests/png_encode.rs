//! What the PNG encoder writes, read by other decoders and taken apart by its own description.

use crate::support::png_encode::{KINDS, encoded, image, random, tiled};
use gpuimg::internals::formats::png::{Mode, encode};
use gpuimg::internals::image::{Depth, Image, Samples, Shape};
use gpuimg::internals::os::Target;
use std::io::Read;

const MODES: [Mode; 3] = [Mode::Fast, Mode::Small, Mode::Store];

/// Decodes with the png crate and compares; then takes the file apart.
fn check(image: &Image, bytes: &[u8], what: &str) {
    let shape = image.shape();
    let wanted: Vec<u8> = match image.samples() {
        Samples::U8(samples) => samples.to_vec(),
        Samples::U16(samples) => samples.iter().flat_map(|s| s.to_be_bytes()).collect(),
        Samples::U32(_) | Samples::U64(_) => panic!("8 or 16 bits were expected"),
    };
    let mut decoder = png::Decoder::new(std::io::Cursor::new(bytes));
    decoder.ignore_checksums(false);
    decoder.set_transformations(png::Transformations::IDENTITY);
    let mut reader = decoder
        .read_info()
        .unwrap_or_else(|e| panic!("{what}: {e}"));
    let mut out = vec![0xa5; reader.output_buffer_size().unwrap()];
    let info = reader
        .next_frame(&mut out)
        .unwrap_or_else(|e| panic!("{what}: {e}"));
    reader.finish().unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(
        (info.width as usize, info.height as usize),
        (shape.width, shape.height),
        "{what}"
    );
    assert_eq!(info.color_type.samples(), shape.channels, "{what}");
    assert_eq!(info.bit_depth as u32, shape.depth.bits(), "{what}");
    assert!(out == wanted, "{what}: other samples");
    take_apart(image, bytes, &wanted, what);
}

/// Checks every chunk, then inflates and unfilters each segment separately, by other code than the
/// encoder's: flate2 and the filters as the specification words them.
fn take_apart(image: &Image, bytes: &[u8], wanted: &[u8], what: &str) {
    let mut chunks = vec![];
    let mut at = 8;
    while at < bytes.len() {
        let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        let len = number(at) as usize;
        let body = &bytes[at + 4..at + 8 + len];
        assert_eq!(number(at + 8 + len), crc32fast::hash(body), "{what}: CRC");
        chunks.push((&body[..4], &body[4..]));
        at += 12 + len;
    }
    let shape = image.shape();
    let row = shape.row() * shape.depth.bytes();
    let pixel = shape.channels * shape.depth.bytes();
    let idats: Vec<_> = chunks.iter().filter(|(kind, _)| *kind == b"IDAT").collect();
    let (rows, lens): (usize, Vec<usize>) = match chunks[1] {
        (b"gpIS", index) => {
            let numbers: Vec<usize> = index[1..]
                .as_chunks::<4>()
                .0
                .iter()
                .map(|n| u32::from_be_bytes(*n) as usize)
                .collect();
            assert_eq!((index[0], index.len() % 4), (1, 1), "{what}");
            assert!(numbers.len() > 2, "{what}: an index of one segment");
            (numbers[0], numbers[1..].to_vec())
        }
        _ => (shape.height, vec![idats[0].1.len() - 6]),
    };
    assert_eq!(idats.len(), lens.len(), "{what}");
    assert_eq!(shape.height.div_ceil(rows), lens.len(), "{what}");
    let stream: Vec<u8> = idats
        .iter()
        .flat_map(|(_, data)| data.iter().copied())
        .collect();
    let mut at = 2;
    let mut decoded = vec![];
    for (index, len) in lens.iter().enumerate() {
        let mut part = stream[at..at + len].to_vec();
        at += len;
        // A final empty block, so that a decoder finds an end; the last one has its own.
        part.extend([3, 0]);
        let mut filtered = vec![];
        flate2::read::DeflateDecoder::new(&part[..])
            .read_to_end(&mut filtered)
            .unwrap();
        let height = rows.min(shape.height - index * rows);
        assert_eq!(
            filtered.len(),
            height * (row + 1),
            "{what}: segment {index}"
        );
        assert!(
            filtered[0] < 2,
            "{what}: segment {index} refers to the row above it"
        );
        let mut above = vec![0; row];
        for line in filtered.chunks(row + 1) {
            let mut now = vec![0; row];
            for x in 0..row {
                let left = |row: &[u8]| {
                    if x < pixel {
                        0
                    } else {
                        i32::from(row[x - pixel])
                    }
                };
                let (a, b, c) = (left(&now), i32::from(above[x]), left(&above));
                let p = a + b - c;
                let guess = match line[0] {
                    0 => 0,
                    1 => a,
                    2 => b,
                    3 => (a + b) / 2,
                    4 if (p - a).abs() <= (p - b).abs() && (p - a).abs() <= (p - c).abs() => a,
                    4 if (p - b).abs() <= (p - c).abs() => b,
                    4 => c,
                    other => panic!("{what}: filter {other}"),
                };
                now[x] = line[x + 1].wrapping_add(guess as u8);
            }
            decoded.extend_from_slice(&now);
            above = now;
        }
    }
    assert_eq!(at + 4, stream.len(), "{what}");
    assert!(decoded == wanted, "{what}: segments hold other samples");
}

/// Also leaves the files and their samples in the folder named by PNG_OUT, for foreign_png.py.
fn keep(image: &Image, bytes: &[u8], name: &str) {
    if let Some(folder) = std::env::var_os("PNG_OUT").map(std::path::PathBuf::from) {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{name}.png")), bytes).unwrap();
        std::fs::write(
            folder.join(format!("{name}.raw")),
            image.samples().as_bytes(),
        )
        .unwrap();
    }
}

/// `Mode::Fast` finds matches where there are some, and loses nothing by it on noise. The bounds lie
/// between what literals alone need (0.42, 0.045 and 0.66) and what is reached.
#[test]
fn noiseless_images_are_matched() {
    let size = 2048;
    let wave = |x: usize, y: usize| {
        let (u, v) = (x as f32 / size as f32, y as f32 / size as f32);
        20000.0 + 15000.0 * (7.0 * u).sin() * (5.0 * v).cos()
    };
    let cell = |x: usize, y: usize| {
        let (dx, dy) = ((x % 51).abs_diff(25), (y % 51).abs_diff(25));
        let inside = dx * dx + dy * dy < 300;
        if inside {
            1 + x / 51 + 40 * (y / 51)
        } else {
            0
        }
    };
    let image = |sample: &dyn Fn(usize, usize) -> u16| {
        let shape = Shape {
            width: size,
            height: size,
            channels: 1,
            depth: Depth::Sixteen,
        };
        let samples: Vec<u16> = (0..size * size)
            .map(|i| sample(i % size, i / size))
            .collect();
        Image::new(shape, samples.into())
    };
    let smooth = image(&|x, y| wave(x, y) as u16);
    let labels = image(&|x, y| cell(x, y) as u16);
    let tiles = image(&|x, y| tiled(x, y, 300));
    for (image, most, name) in [
        (smooth, 0.25, "smooth"),
        (labels, 0.035, "labels"),
        (tiles, 0.12, "tiles"),
    ] {
        let bytes = encoded(&image, Mode::Fast);
        let ratio = bytes.len() as f64 / image.shape().bytes() as f64;
        assert!(ratio < most, "{name}: {ratio}");
        check(&image, &bytes, name);
    }
}

#[test]
fn every_kind_depth_and_size_survives() {
    let sizes = [(1, 1), (1, 37), (37, 1), (3, 2), (31, 17), (101, 103)];
    let mut cases = 0;
    for kind in KINDS {
        for depth in [Depth::Eight, Depth::Sixteen] {
            for channels in 1..=4 {
                for (width, height) in sizes {
                    let image = image(kind, width, height, channels, depth);
                    for mode in MODES {
                        let what = format!(
                            "{kind}-{width}x{height}x{channels}-{}-{mode:?}",
                            depth.bits()
                        );
                        let bytes = encoded(&image, mode);
                        check(&image, &bytes, &what);
                        keep(&image, &bytes, &what);
                        cases += 1;
                    }
                }
            }
        }
    }
    assert_eq!(cases, KINDS.len() * 2 * 4 * sizes.len() * MODES.len());
}

#[test]
fn segments_stand_alone() {
    for (kind, width, height, channels, depth) in [
        ("field", 700, 1501, 1, Depth::Sixteen),
        ("background", 1031, 2053, 1, Depth::Sixteen),
        ("fibonacci", 1009, 1201, 3, Depth::Eight),
        ("sparse", 600, 701, 4, Depth::Sixteen),
        ("noise", 1024, 1025, 1, Depth::Sixteen),
        ("zero", 3001, 1000, 2, Depth::Eight),
        // One row is more than a segment.
        ("field", 600_011, 3, 1, Depth::Sixteen),
        ("extreme", 1_300_001, 2, 1, Depth::Eight),
    ] {
        let image = image(kind, width, height, channels, depth);
        for mode in MODES {
            let bytes = encoded(&image, mode);
            let what = format!(
                "{kind}-{width}x{height}x{channels}-{}-{mode:?}",
                depth.bits()
            );
            check(&image, &bytes, &what);
            keep(&image, &bytes, &what);
        }
    }
}

#[test]
fn bytes_do_not_depend_on_threads() {
    let image = image("field", 1500, 2500, 1, Depth::Sixteen);
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        MODES.map(|mode| pool.install(|| encoded(&image, mode)))
    };
    let one = on(1);
    for threads in [2, 3, 7] {
        assert!(on(threads) == one, "{threads} threads");
    }
}

#[test]
fn image_crate_reads_it() {
    let image = image("field", 301, 211, 3, Depth::Sixteen);
    for mode in MODES {
        let read = image::load_from_memory(&encoded(&image, mode)).unwrap();
        assert!(read.into_rgb16().as_raw() == image_samples(&image));
    }
}

fn image_samples(image: &Image) -> &[u16] {
    match image.samples() {
        Samples::U16(samples) => samples,
        _ => panic!("16 bits were asked for"),
    }
}

#[test]
fn sizes_are_what_entropy_allows() {
    // Up leaves differences of about ±700, triangular: some 10.2 bits of 16, coded byte by byte.
    let field = image("field", 2000, 1000, 1, Depth::Sixteen);
    let ratio =
        |image: &Image, mode| encoded(image, mode).len() as f64 / image.shape().bytes() as f64;
    let noise = image("noise", 2000, 1000, 1, Depth::Sixteen);
    assert!(
        ratio(&field, Mode::Fast) < 0.78,
        "{}",
        ratio(&field, Mode::Fast)
    );
    assert!(ratio(&noise, Mode::Fast) < 1.001);
    assert!(ratio(&noise, Mode::Store) < 1.001);
    let zero = image("zero", 2000, 1000, 1, Depth::Sixteen);
    assert!(
        ratio(&zero, Mode::Fast) < 0.002,
        "{}",
        ratio(&zero, Mode::Fast)
    );
    assert!(ratio(&zero, Mode::Small) < 0.002);
}

/// Parts of a segment are searched by themselves: what comes again in the next part is found there too, at every part's
/// beginning and across it, on any number of threads.
#[test]
fn matches_reach_into_the_part_before() {
    for depth in [Depth::Eight, Depth::Sixteen] {
        let mut state = 5;
        let tile: Vec<u8> = (0..29_000).map(|_| random(&mut state) as u8).collect();
        let (width, height) = (999, 1000 / depth.bytes());
        let shape = Shape {
            width,
            height,
            channels: 1,
            depth,
        };
        let bytes: Vec<u8> = (0..shape.bytes()).map(|at| tile[at % tile.len()]).collect();
        let samples = match depth {
            Depth::Eight => bytes.into(),
            _ => Samples::from(
                bytes
                    .as_chunks::<2>()
                    .0
                    .iter()
                    .map(|&two| u16::from_le_bytes(two))
                    .collect::<Vec<u16>>(),
            ),
        };
        let image = Image::new(shape, samples);
        let made = [1, 2, 5].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.unwrap().install(|| encoded(&image, Mode::Small))
        });
        assert!(made[0] == made[1] && made[0] == made[2], "{depth:?}");
        check(&image, &made[0], "parts");
        // The tile once, and a match of 258 bytes costs less than three. Four parts by themselves: the tile four times.
        let most = 29_000 + 3 * shape.bytes() / 258 + 8_000;
        assert!(made[0].len() < most, "{depth:?}: {}", made[0].len());
    }
}

/// Copies of all lengths from all distances, among literals that no filter makes smaller.
#[test]
fn small_codes_every_length_and_distance() {
    let mut state = 3;
    let mut bytes: Vec<u8> = Vec::new();
    let mut copied = 0;
    while bytes.len() < 900_000 {
        let (len, distance) = (
            4 + random(&mut state) as usize % 290,
            1 + random(&mut state) as usize % 33_000,
        );
        if distance <= bytes.len() {
            // Each byte may be one that this copy made itself.
            for _ in 0..len {
                bytes.push(bytes[bytes.len() - distance]);
            }
            copied += len;
        }
        bytes.extend(
            (0..3)
                .map(|_| (random(&mut state) % 41) as u8)
                .map(|byte| byte.wrapping_sub(20)),
        );
    }
    let shape = Shape {
        width: bytes.len(),
        height: 1,
        channels: 1,
        depth: Depth::Eight,
    };
    let image = Image::new(shape, bytes.into());
    let png = encoded(&image, Mode::Small);
    check(&image, &png, "copies");
    // A copy of about 149 bytes and 3 literals need some 5 bytes.
    assert!(
        copied > 0 && png.len() < shape.bytes() / 20,
        "{} of {}",
        png.len(),
        shape.bytes()
    );
}

#[test]
fn a_png_that_cannot_be_written_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let target = Target::create(&folder.path().join("a.png"), false).unwrap();
    let shape = Shape {
        width: (1 << 30) + 1,
        height: 1,
        channels: 1,
        depth: Depth::Eight,
    };
    let image = Image::new(shape, Samples::zeroed(&shape).unwrap());
    let error = encode(&image, Mode::Fast, &target).unwrap_err();
    assert!(
        error.to_string().contains("more than a PNG can store"),
        "{error}"
    );
}

#[test]
fn small_is_never_larger_than_fast() {
    // 12 bits in the upper part of 16, as cameras give them: `small` was the larger one here.
    let mut state = 3;
    let values = (0..700 * 900u64).map(|i| {
        let field = 900 + i / 700 + (i % 700) / 3;
        ((field + random(&mut state) % 64) << 4) as u16
    });
    let shape = Shape {
        width: 700,
        height: 900,
        channels: 1,
        depth: Depth::Sixteen,
    };
    let image = Image::new(shape, values.collect::<Vec<u16>>().into());
    let (fast, small) = (encoded(&image, Mode::Fast), encoded(&image, Mode::Small));
    assert!(
        small.len() <= fast.len(),
        "{} against {}",
        small.len(),
        fast.len()
    );
    assert!(
        gpuimg::internals::formats::decode(&gpuimg::internals::os::Source::memory(small)).unwrap()
            == image
    );
}
