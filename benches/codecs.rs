//! Codecs in MB/s (10⁶ bytes of samples a second) and file size by size of samples, beside the
//! libraries that others use: `cargo bench --bench codecs -- [side of the image] [kind] [own]`,
//! where `own` leaves the others out.
//! One core is a pool of one thread, by processor time; all cores by the clock on the wall. Every
//! figure is the best of several runs.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod kinds;
mod png_encode;

use gpuimg::files::Target;
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
    let peers = !words.iter().any(|word| word == "own");
    let name = |kind: &Kind| format!("{kind:?}").to_lowercase();
    let all = !Kind::ALL.iter().any(|kind| words.contains(&name(kind)));
    for kind in Kind::ALL {
        let name = name(&kind);
        if !all && !words.contains(&name) {
            continue;
        }
        let image = kind.image(side, side);
        println!("\n{name} {side}×{side}: PNG encode        1 core  all cores   size");
        for row in png_encode::rows(&image, peers) {
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

/// Time that this process ran, on all cores together: on a machine busy with other work it tells
/// what one core would need better than the clock on the wall.
fn busy() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The least processor time of several runs within about half a second, and the last result.
pub fn best<T>(run: impl FnMut() -> T) -> (f64, T) {
    best_by(busy, run)
}

/// The same of the time on the wall.
fn best_on_the_wall<T>(run: impl FnMut() -> T) -> (f64, T) {
    let start = Instant::now();
    best_by(move || start.elapsed(), run)
}

fn best_by<T>(clock: impl Fn() -> Duration, mut run: impl FnMut() -> T) -> (f64, T) {
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

/// Runs in a pool of one thread, then in one of all cores.
pub fn on_one_and_all<T: Send>(mut run: impl FnMut() -> T + Send) -> (f64, f64, T) {
    let pool = |threads| {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap()
    };
    let (one, _) = pool(1).install(|| best(&mut run));
    let (all, result) = pool(0).install(|| best_on_the_wall(&mut run));
    (one, all, result)
}

/// A file in memory, where there is such a place, to be written again and again.
pub fn target() -> Target {
    let shm = PathBuf::from("/dev/shm");
    let folder = if shm.is_dir() {
        shm
    } else {
        std::env::temp_dir()
    };
    Target::create(&folder.join("gpuimg-bench"), true).unwrap()
}
