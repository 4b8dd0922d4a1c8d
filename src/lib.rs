//! gpuimg: 16-bit images from file to file, on an NVIDIA GPU or on the CPU.
//!
//! The path of a pixel, with the files in the order in which they take part:
//!
//! ```text
//!   file ──► codec ──► Image ──► exec: ops on a device ──► Image ──► codec ──► file
//!  files.rs  codec/   image.rs   exec/, ops/*.rs on cuda.rs (kernels/*.cu) or cpu.rs (rayon)
//! ```
//!
//! `pipeline::one_image` opens a file, and the page processor (`pipeline/page.rs`) names every step
//! of a page in order: read these two first. `exec` runs an operation on a whole image or in bands,
//! and decodes and deflates a PNG on the GPU. `batch` processes many files at the same time. Dependencies run
//! one way: `main → lib → cli, commands → batch → pipeline → exec → ops, codec → deflate, device → image,
//! metadata, timing`; `options` are those of every verb. Operations never print and never touch files; codecs and devices know neither each other
//! nor the operations; only `main` exits, or `interrupt` after a signal. All output to the terminal
//! goes through `console`; `limits` asks the system how much memory, how many cores and how many
//! open files the process may use; `simd` chooses among the forms of a loop for the processor's vector
//! instructions; `sync` has the locks of the code whose schedules are explored.
//! An operation is defined once, by its naive version; the CPU version and the GPU version give the
//! same bytes.

pub mod batch;
pub mod bench;
pub mod cli;
pub mod codec;
mod commands;
pub mod console;
mod count;
mod deflate;
pub mod device;
pub mod doctor;
pub mod exec;
pub mod files;
mod html;
pub mod image;
mod interrupt;
mod limits;
pub mod memory_budget;
pub mod metadata;
mod name;
pub mod ops;
pub mod options;
mod outcome;
pub mod pipeline;
mod reason;
pub mod simd;
mod sync;
pub mod timing;
pub mod verify;
pub mod version;

use anyhow::{Result, anyhow};
use cli::Cli;
pub use outcome::{Outcome, Usage};

/// Runs the command that was typed.
///
/// # Errors
/// The cause that stopped the command; `status` gives the exit status for it.
pub fn run(cli: &Cli) -> Result<Outcome> {
    simd::check()?;
    interrupt::listen()?;
    start_threads()?;
    commands::run(cli)
}

/// Starts the global thread pool: one thread for each core that this process may use, or
/// `RAYON_NUM_THREADS`.
fn start_threads() -> Result<()> {
    // With 0 threads rayon reads the variable itself.
    let threads = match std::env::var_os("RAYON_NUM_THREADS") {
        Some(_) => 0,
        None => limits::cores(),
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build_global()
        .map_err(|_| anyhow!(interrupt::NO_THREAD))
}

/// Prints an error on standard error, in one line.
pub fn print_error(error: &anyhow::Error) {
    console::tell(&format!("gpuimg: {error:#}"));
}

/// The exit status for an error: 2 for wrong usage, 3 if the requested GPU cannot be used, 1 for
/// everything else.
pub fn status(error: &anyhow::Error) -> u8 {
    if error.is::<device::Unusable>() {
        3
    } else if error.is::<Usage>() {
        2
    } else {
        1
    }
}
