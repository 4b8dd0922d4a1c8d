//! Codecs in MB/s (10⁶ bytes of samples per second) and file size by size of samples, beside the
//! libraries that others use: `cargo bench --bench codecs [-- png|tiff|pnm] [KIND] [SIDE] [own]`,
//! where a kind is a name of `kinds::Kind`, SIDE the image's width and height, and `own` leaves the
//! others out.
//!
//! The time on one core is the processor time of a pool of one thread, which is meaningful even on
//! a busy machine; the time on all cores is elapsed time. Every figure is the best of several runs.
//! Files are in memory (/dev/shm) if the system has it.

#![allow(
    clippy::disallowed_macros,
    reason = "a bench prints to whoever started it"
)]
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program for the developer"
)]

mod common;
mod libraries;

use common::arguments::Arguments;
use common::clock::busy;
use common::kinds::Kind;
use gpuimg::internals::formats::{self, FORMATS, Format, Options, png, tiff};
use gpuimg::internals::image::Image;
use gpuimg::internals::os::{Source, Target};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The measured image, and the destination of the results.
struct Bench {
    /// A pool of one thread, and one of all.
    pools: [ThreadPool; 2],
    folder: tempfile::TempDir,
    /// Bytes of samples of the image.
    bytes: usize,
}

/// Seconds on one core and, if a codec can use them, on all.
type Times = (f64, Option<f64>);

fn main() {
    let words = Arguments::new();
    let side = words.side();
    let kinds = match words.kinds() {
        none if none.is_empty() => Kind::ALL.to_vec(),
        some => some,
    };
    let named = FORMATS.iter().any(|format| words.names(format.id));
    let formats = FORMATS
        .iter()
        .filter(|format| !named || words.names(format.id));
    let shm = Path::new("/dev/shm");
    let pool = |threads| {
        let builder = ThreadPoolBuilder::new().num_threads(threads);
        builder.build().unwrap()
    };
    let mut bench = Bench {
        pools: [pool(1), pool(0)],
        folder: match shm.is_dir() {
            true => tempfile::tempdir_in(shm).unwrap(),
            false => tempfile::tempdir().unwrap(),
        },
        bytes: 0,
    };
    let cores = bench.pools[1].current_num_threads();
    for kind in kinds {
        let image = kind.image(side, side);
        bench.bytes = image.shape().bytes();
        println!("\n{} {}", kind.name(), image.shape());
        println!(
            "{:34}{:>16}{:>16}\n{:34}{:>8}{:>8}{:>8}{:>8}{:>9}",
            "", "encode", "decode", "MB/s on cores:", 1, cores, 1, cores, "size"
        );
        for &format in formats.clone() {
            let (can, shape) = (format.capabilities, image.shape());
            let takes = can.channels.contains(&shape.channels) && can.depths.contains(&shape.depth);
            if !takes || !format.is_written() {
                continue;
            }
            bench.format(&image, format);
            if !words.names("own") {
                libraries::rows(&bench, &image, format);
            }
        }
    }
}

impl Bench {
    /// Our own codec of a format, in all its modes.
    fn format(&self, image: &Image, format: &'static Format) {
        let with = |png, tiff| Options {
            png,
            tiff,
            ..Options::default()
        };
        let (fast, none) = (png::Mode::Fast, tiff::Compression::None);
        let modes = match format.id {
            "png" => [fast, png::Mode::Small, png::Mode::Store]
                .map(|mode| (format!("png {mode:?}"), with(mode, none)))
                .to_vec(),
            "tiff" => {
                use tiff::Compression::*;
                [None, Deflate, Lzw, Zstd]
                    .map(|mode| (format!("tiff {mode:?}"), with(fast, mode)))
                    .to_vec()
            }
            other => vec![(other.into(), with(fast, none))],
        };
        for (name, options) in modes {
            let encode =
                |target: &Target| formats::encode(image, format, &options, target).unwrap();
            let target = self.target();
            let encoding = self.times(|| encode(&target));
            // A separate file: the one that is written repeatedly has been replaced.
            let path = self.path();
            let target = self.target();
            let len = encode(&target);
            target.commit(len).unwrap();
            let decoding = self.times(|| self.decode(&path));
            self.print(
                &format!("gpuimg {}", name.to_lowercase()),
                Some(encoding),
                Some(decoding),
                len,
            );
        }
    }

    /// A peer's codec: its file is read by itself and by this program.
    pub fn library(
        &self,
        name: &str,
        encode: impl Fn() -> Vec<u8> + Sync,
        decode: impl Fn(&[u8]) + Sync,
    ) {
        let file = self.library_part(name, encode, decode);
        let len = file.len() as u64;
        std::fs::write(self.path(), &file).unwrap();
        let here = self.times(|| self.decode(&self.path()));
        self.print("  decoded by gpuimg", None, Some(here), len);
    }

    /// As `library`, for a peer's output that is no image file; returns it.
    pub fn library_part(
        &self,
        name: &str,
        encode: impl Fn() -> Vec<u8> + Sync,
        decode: impl Fn(&[u8]) + Sync,
    ) -> Vec<u8> {
        let (encoding, file) = self.once(&encode);
        let (decoding, ()) = self.once(|| decode(&file));
        let len = file.len() as u64;
        self.print(name, Some((encoding, None)), Some((decoding, None)), len);
        file
    }

    fn decode(&self, path: &Path) -> Image {
        formats::decode(&Source::open(path).unwrap()).unwrap()
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    fn target(&self) -> Target {
        Target::create(&self.path(), true).unwrap()
    }

    /// Seconds on one core and on all.
    fn times<T: Send>(&self, mut run: impl FnMut() -> T + Send) -> Times {
        let [one, all] = &self.pools;
        let (one, _) = one.install(|| best(busy, &mut run));
        let start = Instant::now();
        let (all, _) = all.install(|| best(|| start.elapsed(), &mut run));
        (one, Some(all))
    }

    /// Seconds on one core, and the result.
    fn once<T: Send>(&self, run: impl FnMut() -> T + Send) -> (f64, T) {
        self.pools[0].install(|| best(busy, run))
    }

    fn print(&self, name: &str, encoding: Option<Times>, decoding: Option<Times>, len: u64) {
        let speed = |seconds: Option<f64>| {
            seconds.map_or(String::new(), |seconds| {
                format!("{:.0}", self.bytes as f64 / 1e6 / seconds)
            })
        };
        let both = |times: Option<Times>| {
            let one = speed(times.map(|times| times.0));
            let all = speed(times.and_then(|times| times.1));
            format!("{one:>8}{all:>8}")
        };
        let size = len as f64 / self.bytes as f64;
        println!("{name:34}{}{}{size:>9.4}", both(encoding), both(decoding));
    }
}

/// The least time of several runs within about half a second, and the last result.
fn best<T>(clock: impl Fn() -> Duration, mut run: impl FnMut() -> T) -> (f64, T) {
    let begin = Instant::now();
    let mut least = Duration::MAX;
    loop {
        let start = clock();
        let result = run();
        least = least.min(clock() - start);
        if begin.elapsed() > Duration::from_millis(500) {
            return (least.as_secs_f64(), result);
        }
    }
}
