//! gpuimg's PNG codec in pairs with the libraries that others use, in MB/s (10⁶ bytes of samples per second):
//! on one core by processor time, and elapsed time for one image where both may use all cores.
//!
//!     pip install isal rapidgzip && apt-get install libspng0
//!     cd benches/peers/codecs && cargo run --release [-- KIND] [SIDE]
//!
//! PYTHON names the interpreter that has the wheels (python3); libraries that are missing are named and left
//! out. Of Rust's libraries Cargo takes the newest that the lock file names: `cargo update` for newer ones. fpnge is not
//! here: no registry has it. Kinds are those of `benches/common/kinds.rs`; noisy, smooth and rgb of 4096² by default.
//!
//! Three tables a kind: files decoded (by gpuimg, and by the png crate with adaptive filters), the image encoded, and a zlib stream
//! alone inflated, of Up's bytes. gpuimg's time for the stream is that of the whole PNG, with CRCs and filters, from a file.

#[allow(dead_code, reason = "not every bench takes every part")]
#[path = "../../../common/mod.rs"]
mod common;
mod wheels;

use common::arguments::Arguments;
use common::clock::busy;
use common::kinds::Kind;
use common::others::{big_endian, deflate, image_data, inflate, png_decode, png_encode, scanlines};
use gpuimg::internals::formats::{self, FORMATS, Format, Options};
use gpuimg::internals::os::{Source, Target};
use gpuimg::internals::image::{Image, Shape};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;
use wheels::Wheels;
use zune_core::bit_depth::BitDepth;
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::{DecoderOptions, EncoderOptions};

/// Pairs of measurements, after one for warm-up.
const PAIRS: usize = 7;

/// What a piece of work took, and the length of its result.
#[derive(Clone, Copy)]
pub struct Times {
    cpu: f64,
    wall: f64,
    len: usize,
}

/// Work of a number of threads, if it can use them; gives the length of its result.
type Work<'a> = Box<dyn FnMut(usize) -> Times + 'a>;

struct Bench {
    /// A pool of one thread, and one of all.
    pools: [ThreadPool; 2],
    wheels: Wheels,
    folder: tempfile::TempDir,
}

fn main() {
    let words = Arguments::new();
    let side = words.find(|word| word.parse().ok()).unwrap_or(4096);
    let kinds = match words.kinds() {
        none if none.is_empty() => vec![Kind::Noisy, Kind::Smooth, Kind::Rgb],
        some => some,
    };
    let pool = |threads| {
        ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap()
    };
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let bench = Bench {
        pools: [pool(1), pool(0)],
        wheels: Wheels::start(),
        folder: folder.unwrap(),
    };
    let missing = ["ISA-L", "rapidgzip", "libspng"].map(|name| (!bench.has(name)).then_some(name));
    println!(
        "left out: fpnge {}",
        missing.into_iter().flatten().collect::<Vec<_>>().join(" ")
    );
    println!(
        "{} cores; MB/s, and gpuimg's speed as a multiple, median [least–most] of {PAIRS} pairs",
        bench.cores()
    );
    for kind in kinds {
        bench.kind(&kind.name(), &kind.image(side, side));
    }
}

impl Bench {
    fn kind(&self, name: &str, image: &Image) {
        let shape = image.shape();
        println!("\n{name} {shape}");
        let png = *FORMATS.iter().find(|format| format.id == "png").unwrap();
        let own = self.write("own.png", &[]);
        let encode = || encode(image, png, &own);
        encode();
        self.decode(
            "decode, gpuimg's file",
            &std::fs::read(&own).unwrap(),
            shape,
        );
        let file = png_encode(image, png::Compression::Balanced, None);
        self.decode(
            "decode, png crate's file (Balanced, adaptive)",
            &file,
            shape,
        );
        self.encode(image, encode);
        let file = png_encode(image, png::Compression::Balanced, Some(png::Filter::Up));
        self.inflate(&file, shape);
    }

    fn decode(&self, title: &str, file: &[u8], shape: Shape) {
        let path = self.write("file.png", file);
        let mut rivals = vec![
            ("png crate", work(|| png_decode(file))),
            (
                "zune-png",
                work(|| {
                    let options = DecoderOptions::new_fast()
                        .set_max_width(1 << 20)
                        .set_max_height(1 << 20);
                    zune_png::PngDecoder::new_with_options(ZCursor::new(file), options)
                        .decode()
                        .unwrap()
                }),
            ),
        ];
        if self.has("libspng") {
            rivals.push(("libspng", self.wheel("libspng", "decode", &path, shape)));
        }
        self.table(title, shape, || drop(black_box(decode(&path))), rivals);
    }

    fn encode(&self, image: &Image, ours: impl Fn() -> usize + Sync) {
        let shape = image.shape();
        let bytes = big_endian(image);
        let zune = || {
            let colour = [
                ColorSpace::Luma,
                ColorSpace::LumaA,
                ColorSpace::RGB,
                ColorSpace::RGBA,
            ][shape.channels - 1];
            let options = EncoderOptions::new(shape.width, shape.height, colour, BitDepth::Sixteen);
            let mut out = Vec::new();
            zune_png::PngEncoder::new(&bytes, options)
                .encode(&mut out)
                .unwrap();
            out
        };
        // Deflate alone, of Up's bytes.
        let up = scanlines(&png_encode(
            image,
            png::Compression::Fastest,
            Some(png::Filter::Up),
        ));
        let mut rivals = vec![
            (
                "png crate, Fastest (fdeflate)",
                sized(|| png_encode(image, png::Compression::Fastest, None)),
            ),
            (
                "png crate, Fast",
                sized(|| png_encode(image, png::Compression::Fast, None)),
            ),
            ("zune-png (stores)", sized(zune)),
        ];
        let raw = self.write("raw", image.samples().as_bytes());
        if self.has("libspng") {
            rivals.push(("libspng, 1", self.wheel("libspng", "encode", &raw, shape)));
        }
        let path = self.write("up", &up);
        rivals.push(("fdeflate alone", sized(|| fdeflate::compress_to_vec(&up))));
        rivals.push(("libdeflate 1 alone", sized(|| deflate(&up, 1))));
        if self.has("ISA-L") {
            rivals.push((
                "ISA-L 1 alone",
                self.wheel("ISA-L", "deflate", &path, shape),
            ));
        }
        self.sized_table("encode, fast", shape, ours, rivals);
    }

    fn inflate(&self, file: &[u8], shape: Shape) {
        let path = self.write("up.png", file);
        let stream = image_data(file);
        let len = scanlines(file).len();
        let zlib = self.write("zlib", &stream);
        // A gzip file of the same deflate data.
        let mut crc = flate2::Crc::new();
        crc.update(&scanlines(file));
        let deflate = &stream[2..stream.len() - 4];
        let gzip = [
            &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255],
            deflate,
            &crc.sum().to_le_bytes(),
            &(len as u32).to_le_bytes(),
        ];
        let gzip = self.write("gzip", &gzip.concat());
        let mut rivals = vec![
            ("libdeflate", work(|| inflate(&stream, len))),
            (
                "fdeflate",
                work(|| {
                    let bytes = fdeflate::decompress_to_vec_bounded(&stream, len);
                    assert!(bytes.is_ok_and(|bytes| bytes.len() == len));
                }),
            ),
        ];
        for (name, verb, path) in [("ISA-L", "inflate", &zlib), ("rapidgzip", "gunzip", &gzip)] {
            if self.has(name) {
                let work = move |threads| self.wheels.ask(name, verb, path, threads, len, shape);
                rivals.push((name, Box::new(work)));
            }
        }
        self.table(
            "inflate, the png crate's stream (Balanced, Up)",
            shape,
            || drop(black_box(decode(&path))),
            rivals,
        );
    }

    fn table(&self, title: &str, shape: Shape, ours: impl Fn() + Sync, rivals: Vec<(&str, Work)>) {
        let ours = || {
            ours();
            0
        };
        self.sized_table(title, shape, ours, rivals);
    }

    /// Measures all rivals of a piece of work in pairs with it.
    fn sized_table(
        &self,
        title: &str,
        shape: Shape,
        ours: impl Fn() -> usize + Sync,
        rivals: Vec<(&str, Work)>,
    ) {
        let cores = self.cores();
        println!(
            "{title:50}{:>8}{:>24}{:>8}{:>24}{:>8}",
            "1 core",
            "",
            format!("{cores} cores"),
            "",
            "size"
        );
        let bytes = shape.bytes() as f64;
        let speed = |seconds: f64| bytes / 1e6 / seconds;
        let size = |len: usize| {
            if len == 0 {
                String::new()
            } else {
                format!("{:.4}", len as f64 / bytes)
            }
        };
        let (mut own, mut lines) = ([Vec::new(), Vec::new()], Vec::new());
        let mut length = 0;
        for (name, mut rival) in rivals {
            let mut runs = [Vec::new(), Vec::new()];
            let mut len = 0;
            for round in 0..=PAIRS {
                for (k, threads) in [(0, 1), (1, cores)] {
                    let mine = self.pools[k].install(|| timed(&ours));
                    let theirs = rival(threads);
                    (length, len) = (mine.len, theirs.len);
                    if round > 0 {
                        let of = |times: Times| if k == 0 { times.cpu } else { times.wall };
                        runs[k].push((of(mine), of(theirs)));
                        own[k].push(of(mine));
                    }
                }
            }
            let part = runs.map(|runs| {
                let ratios = runs.iter().map(|(mine, theirs)| theirs / mine);
                let [least, middle, most] = spread(ratios);
                let theirs = spread(runs.iter().map(|run| run.1))[1];
                format!(
                    "{:>8.0}{:>24}",
                    speed(theirs),
                    format!("{middle:.2} [{least:.2}–{most:.2}]")
                )
            });
            lines.push(format!("  {name:48}{}{}{:>8}", part[0], part[1], size(len)));
        }
        let own = own.map(|times| format!("{:>8.0}{:24}", speed(spread(times.into_iter())[1]), ""));
        println!("  {:48}{}{}{:>8}", "gpuimg", own[0], own[1], size(length));
        println!("{}", lines.join("\n"));
    }

    fn wheel<'a>(&'a self, name: &'a str, verb: &'a str, path: &Path, shape: Shape) -> Work<'a> {
        let path = path.to_owned();
        let decoded = verb == "decode";
        Box::new(move |threads| {
            let times = self
                .wheels
                .ask(name, verb, &path, threads, shape.bytes(), shape);
            Times {
                len: if decoded { 0 } else { times.len },
                ..times
            }
        })
    }

    fn has(&self, name: &str) -> bool {
        self.wheels.found.iter().any(|found| found == name)
    }

    fn cores(&self) -> usize {
        self.pools[1].current_num_threads()
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

fn decode(path: &Path) -> Image {
    formats::decode(&Source::open(path).unwrap()).unwrap()
}

fn encode(image: &Image, format: &'static Format, path: &Path) -> usize {
    let target = Target::create(path, true).unwrap();
    let len = formats::encode(image, format, &Options::default(), &target).unwrap();
    target.commit(len).unwrap();
    len as usize
}

fn timed(work: impl FnOnce() -> usize) -> Times {
    let (cpu, wall) = (busy(), Instant::now());
    let len = work();
    Times {
        cpu: (busy() - cpu).as_secs_f64(),
        wall: wall.elapsed().as_secs_f64(),
        len,
    }
}

/// Work of one thread whose result has no length of interest.
fn work<'a, T>(mut run: impl FnMut() -> T + 'a) -> Work<'a> {
    Box::new(move |_| {
        timed(|| {
            black_box(run());
            0
        })
    })
}

/// Work of one thread that makes bytes.
fn sized<'a>(mut run: impl FnMut() -> Vec<u8> + 'a) -> Work<'a> {
    Box::new(move |_| timed(|| run().len()))
}

/// The least, the median and the most.
fn spread(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    [
        values[0],
        values[values.len() / 2],
        values[values.len() - 1],
    ]
}
