//! Fails if a codec or an operation has become much slower: `cargo bench --bench ratios`. Each row is
//! our speed as a multiple of a library's, or of a plain copy's, for the same bytes, on one thread. Both
//! take turns in one process, and a ratio is the median of those of neighbouring measurements, in
//! processor time: all this holds on a busy machine, where a time alone says nothing.

#![allow(
    clippy::disallowed_macros,
    reason = "a bench prints to whoever started it"
)]
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program for the developer"
)]

#[allow(dead_code, reason = "not every bench takes every part")]
mod common;

use common::clock::busy;
use common::kinds::Kind;
use common::others::{deflate, image_data, inflate, png_decode, png_encode, scanlines};
use gpuimg::internals::engine::executor;
use gpuimg::internals::formats::{self, FORMATS, Options, tiff};
use gpuimg::internals::image::{Image, Samples};
use gpuimg::internals::ops::Operation;
use gpuimg::internals::ops::calibrate::{Calibrate, Frame};
use gpuimg::internals::ops::normalize::Normalize;
use gpuimg::internals::ops::sum::Sum;
use gpuimg::internals::ops::symmetry::Symmetry;
use gpuimg::internals::os::{Source, Target};
use gpuimg::internals::timing::Timeline;
use png::{Compression, Filter};
use std::hint::black_box;
use std::io::Cursor;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use weezl::BitOrder::Msb;

/// What is measured, what it was on the slower of two quiet machines (a Xeon, and an EPYC, whose plain copies
/// are twice as fast), and what it must not fall below: about half of that, and of what is there without
/// AVX-512 where that is less.
const FLOORS: &[(&str, f64, f64)] = &[
    ("PNG written, noisy: png crate, Fastest", 2.94, 1.10),
    ("PNG read, noisy, own: png crate", 1.06, 0.53),
    ("PNG read, noisy, Paeth: png crate", 1.38, 0.70),
    ("PNG written, smooth: png crate, Fastest", 0.31, 0.15),
    ("PNG read, smooth, own: png crate", 1.57, 0.80),
    ("PNG read, smooth, Paeth: png crate", 1.97, 1.00),
    ("PNG written, rgb: png crate, Fastest", 3.43, 1.30),
    ("PNG read, rgb, own: png crate", 1.09, 0.55),
    ("PNG read, rgb, Paeth: png crate", 1.09, 0.55),
    ("PNG read, noisy, adaptive: png crate", 1.10, 0.55),
    (
        "PNG written, small, labels: libdeflate, level 6",
        0.53,
        0.26,
    ),
    (
        "PNG written, small, smooth: libdeflate, level 6",
        0.68,
        0.34,
    ),
    ("PNG read, noisy, Up: libdeflate", 0.66, 0.33),
    ("PNG read, smooth, Up: libdeflate", 0.52, 0.26),
    ("TIFF read, noisy, deflate: libdeflate", 1.57, 0.78),
    ("TIFF read, smooth, deflate: libdeflate", 0.50, 0.25),
    ("TIFF read, noisy, LZW: weezl", 3.50, 1.70),
    ("TIFF read, smooth, LZW: weezl", 1.60, 0.80),
    ("TIFF read, uncompressed: copy, fresh memory", 0.40, 0.20),
    ("normalize: copy", 0.20, 0.10),
    ("transpose: copy", 0.21, 0.10),
    ("flip horizontal: copy", 1.22, 0.60),
    ("rotate 90, rgb: copy", 0.12, 0.06),
    ("calibrate: copy", 0.04, 0.02),
    ("sum: copy", 1.79, 0.90),
];

/// Pairs of measurements of a row.
const PAIRS: usize = 15;

/// The least processor time of a measurement: short work is repeated.
const LEAST: Duration = Duration::from_millis(4);

/// Width and height of the images.
const SIDE: usize = 1024;

fn main() -> ExitCode {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    pool.unwrap().install(|| {
        let mut bench = Bench::new();
        println!(
            "{:50}{:>8}{:>8}{:>8}",
            "speed, as a multiple", "now", "quiet", "floor"
        );
        bench.png();
        bench.tiff();
        bench.memory();
        assert!(bench.rows.is_empty(), "no measurement of {:?}", bench.rows);
        if bench.slow.is_empty() {
            return ExitCode::SUCCESS;
        }
        println!(
            "Slower than the floor in benches/ratios.rs allows: {}.",
            bench.slow.join("; ")
        );
        ExitCode::FAILURE
    })
}

struct Bench {
    folder: tempfile::TempDir,
    /// The rows that have not been measured yet.
    rows: Vec<(&'static str, f64, f64)>,
    /// Those under their floors, for the message at the end.
    slow: Vec<String>,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        Bench {
            folder: folder.unwrap(),
            rows: FLOORS.to_vec(),
            slow: Vec::new(),
        }
    }

    fn png(&mut self) {
        for kind in [Kind::Noisy, Kind::Smooth, Kind::Rgb] {
            let (image, kind) = (kind.image(SIDE, SIDE), kind.name());
            let encode = self.encoder(&image, "png", Options::default());
            let theirs = || png_encode(&image, Compression::Fastest, None);
            self.row(
                &format!("PNG written, {kind}: png crate, Fastest"),
                timing(&encode),
                timing(theirs),
            );
            let path = self.path("own");
            std::fs::copy(encode(), &path).unwrap();
            self.png_read(
                &format!("PNG read, {kind}, own"),
                &std::fs::read(path).unwrap(),
            );
            let foreign = png_encode(&image, Compression::Balanced, Some(Filter::Paeth));
            self.png_read(&format!("PNG read, {kind}, Paeth"), &foreign);
        }
        let image = Kind::Noisy.image(SIDE, SIDE);
        let adaptive = png_encode(&image, Compression::Balanced, Some(Filter::Adaptive));
        self.png_read("PNG read, noisy, adaptive", &adaptive);
        for kind in [Kind::Labels, Kind::Smooth] {
            let image = kind.image(SIDE, SIDE);
            let small = Options {
                png: formats::png::Mode::Small,
                ..Options::default()
            };
            let encode = self.encoder(&image, "png", small);
            let rows = scanlines(&std::fs::read(encode()).unwrap());
            let name = format!("PNG written, small, {}: libdeflate, level 6", kind.name());
            self.row(&name, timing(encode), timing(|| deflate(&rows, 6)));
        }
        for kind in [Kind::Noisy, Kind::Smooth] {
            let image = kind.image(SIDE, SIDE);
            let file = png_encode(&image, Compression::Balanced, Some(Filter::Up));
            let (stream, len) = (image_data(&file), scanlines(&file).len());
            let ours = self.decoder(&file);
            let name = format!("PNG read, {}, Up: libdeflate", kind.name());
            self.row(&name, timing(ours), timing(|| inflate(&stream, len)));
        }
    }

    fn png_read(&mut self, name: &str, file: &[u8]) {
        let ours = self.decoder(file);
        self.row(
            &format!("{name}: png crate"),
            timing(ours),
            timing(|| png_decode(file)),
        );
    }

    fn tiff(&mut self) {
        for kind in [Kind::Noisy, Kind::Smooth] {
            let image = kind.image(SIDE, SIDE);
            let (name, length) = (kind.name(), image.shape().bytes());
            self.tiff_read(
                &format!("TIFF read, {name}, deflate: libdeflate"),
                self.encoder(&image, "tiff", packed(tiff::Compression::Deflate))(),
                |strip| inflate(strip, length),
            );
            self.tiff_read(
                &format!("TIFF read, {name}, LZW: weezl"),
                self.encoder(&image, "tiff", packed(tiff::Compression::Lzw))(),
                |strip| {
                    let mut decoder = weezl::decode::Decoder::with_tiff_size_switch(Msb, 8);
                    black_box(decoder.decode(strip).unwrap());
                },
            );
        }
    }

    /// Our time for a file, and that of a library which only unpacks its strips.
    fn tiff_read(&mut self, name: &str, path: PathBuf, unpack: impl Fn(&[u8])) {
        let file = std::fs::read(path).unwrap();
        let (ours, strips) = (self.decoder(&file), strips(&file));
        let theirs = || strips.iter().for_each(|strip| unpack(strip));
        self.row(name, timing(ours), timing(theirs));
    }

    fn memory(&mut self) {
        let image = Kind::Noisy.image(SIDE, SIDE);
        let path = self.encoder(&image, "tiff", Options::default())();
        let ours = self.decoder(&std::fs::read(path).unwrap());
        let from = image.samples();
        // To memory that is touched for the first time, as what is read.
        let theirs = || {
            let mut to = Samples::zeroed(&image.shape()).unwrap();
            to.as_bytes_mut().copy_from_slice(from.as_bytes());
            to
        };
        self.row(
            "TIFF read, uncompressed: copy, fresh memory",
            timing(ours),
            timing(theirs),
        );
        let sum = Sum {
            all: false,
            nan: None,
        };
        self.operation("normalize", &Normalize::default(), &image);
        self.operation("transpose", &Symmetry::Transpose, &image);
        self.operation("flip horizontal", &Symmetry::FlipHorizontal, &image);
        self.operation("sum", &sum, &image);
        let colours = Kind::Rgb.image(SIDE, SIDE);
        self.operation("rotate 90, rgb", &Symmetry::Rotate90, &colours);
        let frame = |kind: Kind| Some(Frame::new("a frame", kind.image(SIDE, SIDE), false));
        let calibrate = Calibrate::new(frame(Kind::Ct), frame(Kind::Smooth), 100, None).unwrap();
        self.operation("calibrate", &calibrate, &image);
    }

    /// The speed of an operation as a multiple of that of a copy of the image.
    fn operation(&mut self, name: &str, op: &dyn Operation, image: &Image) {
        let from = image.samples();
        let mut to = from.clone();
        // The clone that it works on is not timed.
        let ours = || {
            let image = image.clone();
            let start = busy();
            black_box(executor::on_cpu(op, image, &mut Timeline::default()).is_ok());
            busy() - start
        };
        let theirs = timing(|| {
            to.as_bytes_mut()
                .copy_from_slice(black_box(from.as_bytes()))
        });
        self.row(&format!("{name}: copy"), ours, theirs);
    }

    /// Measures a row, prints it, and notes it if it is under its floor.
    fn row(
        &mut self,
        name: &str,
        mut ours: impl FnMut() -> Duration,
        mut theirs: impl FnMut() -> Duration,
    ) {
        let at = self.rows.iter().position(|row| row.0 == name);
        let (_, quiet, floor) = self.rows.remove(at.expect(name));
        let mut ratio = median(&mut ours, &mut theirs);
        if ratio < floor {
            // A busy moment can fall on all of a row; a slow program stays slow.
            ratio = ratio.max(median(&mut ours, &mut theirs));
        }
        println!("{name:50}{ratio:>8.2}{quiet:>8.2}{floor:>8.2}");
        if ratio < floor {
            self.slow.push(format!(
                "{name} ({ratio:.2}, floor {floor:.2}, once {quiet:.2})"
            ));
        }
    }

    /// Writes an image again and again; gives the path of the last.
    fn encoder<'a>(
        &self,
        image: &'a Image,
        id: &str,
        options: Options,
    ) -> impl Fn() -> PathBuf + use<'a> {
        let format = *FORMATS.iter().find(|format| format.id == id).unwrap();
        let path = self.path(id);
        move || {
            let target = Target::create(&path, true).unwrap();
            let len = formats::encode(image, format, &options, &target).unwrap();
            target.commit(len).unwrap();
            path.clone()
        }
    }

    /// Reads a file of these bytes again and again.
    fn decoder(&self, file: &[u8]) -> impl FnMut() -> Image + use<> {
        let path = self.path("input");
        std::fs::write(&path, file).unwrap();
        move || formats::decode(&Source::open(&path).unwrap()).unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The options of a TIFF with this compression.
fn packed(tiff: tiff::Compression) -> Options {
    Options {
        tiff,
        ..Options::default()
    }
}

/// The strips of a TIFF file's first page, as they are stored.
fn strips(file: &[u8]) -> Vec<&[u8]> {
    use ::tiff::{decoder::Decoder, tags::Tag};
    let mut decoder = Decoder::new(Cursor::new(file)).unwrap();
    let mut numbers = |tag| decoder.get_tag_u64_vec(tag).unwrap();
    let (offsets, lengths) = (numbers(Tag::StripOffsets), numbers(Tag::StripByteCounts));
    let strips = offsets.into_iter().zip(lengths);
    strips
        .map(|(at, len)| &file[at as usize..][..len as usize])
        .collect()
}

/// Work with its processor time; what it makes is dropped in that time, too.
fn timing<T>(mut work: impl FnMut() -> T) -> impl FnMut() -> Duration {
    move || {
        let start = busy();
        black_box(work());
        busy() - start
    }
}

/// The median of how often our time goes into the other's. Who begins a pair alternates.
fn median(ours: &mut impl FnMut() -> Duration, theirs: &mut impl FnMut() -> Duration) -> f64 {
    let (a, b) = (times(ours), times(theirs));
    let mut ratios: Vec<f64> = (0..PAIRS)
        .map(|pair| {
            let (ours, theirs) = if pair % 2 == 0 {
                let ours = average(ours, a);
                (ours, average(theirs, b))
            } else {
                let theirs = average(theirs, b);
                (average(ours, a), theirs)
            };
            theirs / ours
        })
        .collect();
    ratios.sort_unstable_by(f64::total_cmp);
    ratios[PAIRS / 2]
}

/// How often something is done in a measurement, after a few for warm-up.
fn times(measure: &mut impl FnMut() -> Duration) -> u32 {
    let least = (0..3).map(|_| measure()).min().unwrap_or_default();
    (LEAST.as_secs_f64() / least.as_secs_f64().max(1e-7)).ceil() as u32
}

fn average(measure: &mut impl FnMut() -> Duration, times: u32) -> f64 {
    let total: Duration = (0..times).map(|_| measure()).sum();
    total.as_secs_f64() / f64::from(times)
}
