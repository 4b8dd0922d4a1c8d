//! gpuimg: 16-bit images from file to file, on an NVIDIA GPU or on the CPU.
//!
//! A pixel's way, and the files in the order it meets them:
//!
//! ```text
//!   file ──► codec ──► Image ──► exec: ops on a device ──► Image ──► codec ──► file
//!  files.rs  codec/   image.rs   exec/, ops/*.rs on cuda.rs (kernels/*.cu) or cpu.rs (rayon)
//! ```
//!
//! `pipeline::one_image` opens a file, and the page processor (`pipeline/page.rs`) names every step of
//! a page in order: read them first. `exec` runs an operation: whole, in bands, and for a PNG deflated on
//! the GPU. `batch` does it to many files at once. Arrows run one way:
//! `main → lib → cli, batch → pipeline → exec → codec, ops → device → stats, image`. Operations never
//! print and never touch files, codecs know no device, operations no codec, devices neither, and only
//! `main` exits, or `interrupt` when asked to.
//! All that is printed goes through `console`; what the process may use of the machine is asked in
//! `limits`.
//! An operation is defined once, by its naive version; the CPU's and the GPU's give the same bytes.

pub mod batch;
pub mod bench;
pub mod cli;
pub mod codec;
mod commands;
pub mod console;
mod deflate;
pub mod device;
pub mod doctor;
pub mod exec;
pub mod files;
pub mod image;
mod interrupt;
mod limits;
pub mod memory_budget;
pub mod metadata;
pub mod ops;
mod outcome;
pub mod pipeline;
pub mod timing;
pub mod verify;

use anyhow::{Result, anyhow};
use cli::Cli;
pub use outcome::{Outcome, Usage};

/// Does what was typed.
///
/// # Errors
/// What keeps it from being done; `status` says with which exit status it ends.
pub fn run(cli: &Cli) -> Result<Outcome> {
    interrupt::listen()?;
    start_threads()?;
    commands::run(cli)
}

/// Starts the threads that all work shares: as many as this process may use, or as the user says.
fn start_threads() -> Result<()> {
    // 0 leaves it to rayon, which asks its variable.
    let threads = match std::env::var_os("RAYON_NUM_THREADS") {
        Some(_) => 0,
        None => limits::cores(),
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build_global()
        .map_err(|_| anyhow!(interrupt::NO_THREAD))
}

/// Prints an error, once, in one line.
pub fn print_error(error: &anyhow::Error) {
    console::tell(&format!("gpuimg: {error:#}"));
}

/// The exit status that an error stands for: 2 wrong usage, 3 the GPU asked for cannot be used, 1
/// anything else.
pub fn status(error: &anyhow::Error) -> u8 {
    if error.is::<device::Unusable>() {
        3
    } else if error.is::<Usage>() {
        2
    } else {
        1
    }
}
