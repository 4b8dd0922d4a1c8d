//! Shared by the tests: images of every shape, runs of the program, and the GPU if there is one.

pub mod axes;
pub mod batch;
pub mod browser;
pub mod contract;
pub mod dicom;
pub mod formats;
pub mod gpu_pages;
pub mod jpeg;
pub mod lossless;
pub mod png;
pub mod png_encode;
pub mod png_gpu_decode;
pub mod schema;
#[cfg(feature = "remote")]
pub mod server;
pub mod shell;
pub mod stacks;
pub mod stopped;
pub mod tiff;
pub mod tiff_images;
pub mod tiled;
pub mod watch;

use gpuimg::internals::engine::executor;
use gpuimg::internals::gpu::driver::Gpu;
use gpuimg::internals::image::{Depth, Image, Samples, Shape, number};
use gpuimg::internals::ops::{OpResult, Operation};
use gpuimg::internals::timing::Timeline;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Sizes that go wrong: single pixels, rows and columns, primes, odd pitches, whole and broken
/// tiles, more than one chunk.
pub const SIZES: [(usize, usize); 13] = [
    (1, 1),
    (1, 7),
    (7, 1),
    (2, 3),
    (3, 2),
    (31, 33),
    (64, 64),
    (65, 63),
    (127, 129),
    (257, 1),
    (1, 257),
    (4097, 33),
    (640, 511),
];

/// The distribution of an image's samples.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Uniform noise over all values.
    Noise,
    /// A narrow band of values.
    Narrow,
    /// Only 0 and the largest value.
    Extremes,
    /// The same value everywhere.
    Flat,
}

pub const KINDS: [Kind; 4] = [Kind::Noise, Kind::Narrow, Kind::Extremes, Kind::Flat];

/// A repeatable sequence of numbers (xorshift64).
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Numbers {
        Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

pub fn image(width: usize, height: usize, channels: usize, depth: Depth, kind: Kind) -> Image {
    let shape = Shape {
        width,
        height,
        channels,
        depth,
    };
    let mut numbers = Numbers::new((width * 31 + height * 7 + channels) as u64);
    if depth == Depth::Double {
        let one = number::key64(1f64.to_bits());
        let values: Vec<u64> = (0..shape.samples())
            .map(|_| match kind {
                Kind::Noise => numbers.next(),
                Kind::Narrow => one + numbers.next() % (1 << 50),
                Kind::Extremes => [f64::MIN, f64::MAX].map(|end| number::key64(end.to_bits()))
                    [(numbers.next() >> 20) as usize & 1],
                Kind::Flat => one,
            })
            .collect();
        return Image::new(shape, Samples::from(values));
    }
    if depth.is_wide() {
        // Of floating point, keys of every bit pattern: NaNs and infinities too.
        let values: Vec<u32> = (0..shape.samples())
            .map(|_| {
                let number = (numbers.next() >> 20) as u32;
                match kind {
                    Kind::Noise => number,
                    Kind::Narrow => key(0.5) + number % 1_000_003,
                    Kind::Extremes => [key(f32::MIN), key(f32::MAX)][number as usize & 1],
                    Kind::Flat => key(77.0),
                }
            })
            .collect();
        return Image::new(shape, Samples::from(values));
    }
    let full = depth.full();
    let values: Vec<u16> = (0..shape.samples())
        .map(|_| {
            let number = (numbers.next() >> 20) as u16;
            match kind {
                Kind::Noise => number & full,
                Kind::Narrow => 90 + number % 117,
                Kind::Extremes => (number & 1) * full,
                Kind::Flat => 77,
            }
        })
        .collect();
    Image::new(shape, samples(values, depth))
}

/// The sample in memory of a floating-point number.
pub fn key(value: f32) -> u32 {
    number::key(value.to_bits())
}

pub fn samples(values: Vec<u16>, depth: Depth) -> Samples {
    match depth {
        Depth::Eight => values
            .into_iter()
            .map(|value| value as u8)
            .collect::<Vec<u8>>()
            .into(),
        Depth::Sixteen => Samples::from(values),
        Depth::ThirtyTwo | Depth::Float => values
            .into_iter()
            .map(u32::from)
            .collect::<Vec<u32>>()
            .into(),
        Depth::Double => panic!("samples of 32 bits at most"),
    }
}

/// A 16-bit grey image from its rows.
pub fn grey<const W: usize, const H: usize>(rows: [[u16; W]; H]) -> Image {
    let shape = Shape {
        width: W,
        height: H,
        channels: 1,
        depth: Depth::Sixteen,
    };
    Image::new(shape, Samples::from(rows.concat()))
}

/// The image that `op` makes on the CPU.
pub fn on_cpu(op: &dyn Operation, image: &Image) -> Image {
    match executor::on_cpu(op, image.clone(), &mut Timeline::default())
        .expect("memory")
        .result
    {
        OpResult::Image(image) => image,
        _ => panic!("an image was expected"),
    }
}

/// GPU 0; without one, prints loudly how many cases are skipped, or fails if a GPU is required
/// (`GPUIMG_REQUIRE_GPU=1`).
pub fn gpu(cases: usize) -> Option<&'static Gpu> {
    static GPU: OnceLock<Result<Gpu, String>> = OnceLock::new();
    match GPU.get_or_init(|| Gpu::open(0).map_err(|error| format!("{error:#}"))) {
        Ok(gpu) => Some(gpu),
        Err(why) => {
            assert!(
                std::env::var_os("GPUIMG_REQUIRE_GPU").is_none(),
                "a GPU is required: {why}"
            );
            skipped(&format!("{cases} GPU cases: {why}"));
            None
        }
    }
}

/// Prints loudly which tests are skipped: past the test harness, which would hide it.
pub fn skipped(what: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED {what}");
}

/// Prints how many cases a test has run: past the test harness, which would hide it.
pub fn counted(cases: &str) {
    let _ = writeln!(std::io::stderr(), "COUNTED {cases}");
}

/// The program under test: where cargo built it, or at `GPUIMG_BIN` on a machine without Rust.
pub fn binary() -> PathBuf {
    match std::env::var_os("GPUIMG_BIN") {
        Some(path) => PathBuf::from(path).canonicalize().expect("GPUIMG_BIN"),
        None => env!("CARGO_BIN_EXE_gpuimg").into(),
    }
}

/// A copy of the program in `folder`, for one who may not go where it lies. Made by another process: a
/// program that is still open for writing in one that has just been forked here cannot be run.
pub fn own_copy(folder: &Path) -> PathBuf {
    let program = folder.join("gpuimg");
    let copied = Command::new("cp").arg(binary()).arg(&program).status();
    assert!(copied.expect("cp").success());
    program
}

/// The path of a file or folder of the repository: of the one that was built, or of the one at
/// `GPUIMG_ROOT` on a machine where that is not.
pub fn repository(name: &str) -> PathBuf {
    let root = std::env::var_os("GPUIMG_ROOT");
    let root = root.map_or(env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    root.join(name)
        .canonicalize()
        .expect("a file of the repository")
}

/// The path of a file of `samples/`.
pub fn sample(name: &str) -> PathBuf {
    repository("samples").join(name)
}

/// A temporary folder that holds `files`.
pub fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("temporary folder");
    for (name, bytes) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("parent")).expect("folder");
        std::fs::write(path, bytes).expect("file");
    }
    folder
}

/// As `folder`, of files that a test has made.
pub fn placed(files: &[(String, Vec<u8>)]) -> tempfile::TempDir {
    let files = files.iter().map(|(name, bytes)| (&**name, &**bytes));
    folder(&files.collect::<Vec<(&str, &[u8])>>())
}

/// The names in a folder, including hidden ones, sorted.
pub fn listing(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("folder");
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

/// The result of a run of the program.
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Runs the program in `folder`, on the device that `auto` chooses unless `env` or `args` name one.
pub fn run(folder: &Path, args: &[&str], env: &[(&str, &str)]) -> Run {
    let mut command = Command::new(binary());
    command
        .args(args)
        .current_dir(folder)
        .env_remove("GPUIMG_DEVICE")
        .envs(env.iter().copied());
    told(command.output().expect("the program runs"))
}

/// Runs the program in `folder` on the CPU.
pub fn run_on_cpu(folder: &Path, args: &[&str]) -> Run {
    run(folder, args, &[("GPUIMG_DEVICE", "cpu")])
}

/// Runs a shell's `script`, with the program as `$0`, in `folder`, whose folder `small` is a file system
/// of so many KiB; in a mount namespace of its own, so that no privilege is needed. Where there are
/// none, says loudly that `what` is skipped.
pub fn on_small_disk(folder: &Path, kib: usize, script: &str, what: &str) -> Option<Run> {
    let mount = format!("mount -t tmpfs -o size={kib}k none small || exit 99; {script}");
    std::fs::create_dir_all(folder.join("small")).expect("folder");
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", &mount])
        .arg(binary())
        .current_dir(folder)
        .output();
    match output {
        Ok(output)
            if output.status.code() != Some(99) && !output.stderr.starts_with(b"unshare") =>
        {
            Some(told(output))
        }
        _ => {
            skipped(&format!(
                "{what}: no mount namespaces here, so no small disk"
            ));
            None
        }
    }
}

/// The result of a run, with its streams as text.
pub fn told(output: Output) -> Run {
    Run {
        code: output.status.code().expect("an exit status"),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}
