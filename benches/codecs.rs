//! Codecs in MB/s (10⁶ bytes of samples a second) and file size by size of samples, beside the
//! libraries that others use: `cargo bench --bench codecs -- [side of the image] [kind]`.
//! One core is a pool of one thread; every figure is the best of several runs.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod kinds;
mod png_encode;

use gpuimg::files::Target;
use gpuimg::image::Image;
use kinds::Kind;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A line of the table.
pub struct Row {
    /// Whose codec.
    pub name: String,
    /// Seconds on one core.
    pub one: f64,
    /// Seconds on all cores, if the codec can use them.
    pub all: Option<f64>,
    /// Bytes of the file.
    pub len: usize,
}

fn main() {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with("--"))
        .collect();
    let side = words
        .iter()
        .find_map(|word| word.parse().ok())
        .unwrap_or(2048);
    for kind in Kind::ALL {
        let name = format!("{kind:?}").to_lowercase();
        if words
            .iter()
            .any(|word| word.parse::<usize>().is_err() && *word != name)
        {
            continue;
        }
        let image = kind.image(side, side);
        println!("\n{name} {side}×{side}: PNG encode        1 core  all cores   size");
        for row in png_encode::rows(&image) {
            print_row(&row, image.shape().bytes());
        }
    }
}

fn print_row(row: &Row, bytes: usize) {
    let speed = |seconds: f64| format!("{:.0}", bytes as f64 / 1e6 / seconds);
    println!(
        "{:32} {:>8} {:>10} {:>6.3}",
        row.name,
        speed(row.one),
        row.all.map(speed).unwrap_or_default(),
        row.len as f64 / bytes as f64
    );
}

/// The best time of several runs within about half a second, and the last result.
pub fn best<T>(mut run: impl FnMut() -> T) -> (f64, T) {
    let begin = Instant::now();
    let mut least = Duration::MAX;
    loop {
        let start = Instant::now();
        let result = run();
        least = least.min(start.elapsed());
        if begin.elapsed() > Duration::from_millis(500) {
            return (least.as_secs_f64(), result);
        }
    }
}

/// Runs in a pool of one thread, then in one of all cores.
pub fn on_one_and_all<T: Send>(mut run: impl FnMut() -> T + Send) -> (f64, f64, T) {
    let pool = |threads| {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap()
    };
    let (one, _) = pool(1).install(|| best(&mut run));
    let (all, result) = pool(0).install(|| best(&mut run));
    (one, all, result)
}

/// Encodes into a file in memory, where there is one, and gives back its length.
pub fn to_file(encode: impl Fn(&Image, &Target) -> anyhow::Result<u64>, image: &Image) -> u64 {
    let shm = PathBuf::from("/dev/shm");
    let folder = if shm.is_dir() {
        shm
    } else {
        std::env::temp_dir()
    };
    let target = Target::create(&folder.join("gpuimg-bench"), true).unwrap();
    encode(image, &target).unwrap()
}
