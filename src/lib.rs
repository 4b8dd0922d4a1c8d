//! gpuimg: 16-bit images from file to file, on an NVIDIA GPU or on the CPU.
//!
//! `docs/ARCHITECTURE.md` follows a page through the modules: `cli` has the command line, `batch` processes many files at
//! the same time, `engine` plans a page and executes the plan, `ops` and `formats` have an operation or a file format each,
//! `gpu` has the driver and the launches, `os` everything that asks the operating system, and `image` the samples and
//! their metadata. Imports run in this order only.

pub mod batch;
pub mod bench;
pub mod cli;
mod deflate;
pub mod doctor;
pub mod engine;
pub mod formats;
pub mod gpu;
pub mod image;
pub mod ops;
pub mod os;
pub mod timing;
mod verify;

/// What the project's own tests and benchmarks use. It may change at any time.
#[doc(hidden)]
pub mod internals {
    pub use crate::{batch, bench, doctor, engine, formats, gpu, image, ops, os, timing};
}

use anyhow::{Result, anyhow};
use cli::Cli;
pub use os::outcome::{Outcome, Usage};

/// Runs the command that was typed.
///
/// # Errors
/// The cause that stopped the command; `status` gives the exit status for it.
pub fn run(cli: &Cli) -> Result<Outcome> {
    image::simd::check().map_err(os::outcome::usage)?;
    os::interrupt::listen()?;
    start_threads()?;
    cli::verbs::run(cli)
}

/// Starts the global thread pool: one thread for each core that this process may use, or
/// `RAYON_NUM_THREADS`.
fn start_threads() -> Result<()> {
    // With 0 threads rayon reads the variable itself.
    let threads = match std::env::var_os("RAYON_NUM_THREADS") {
        Some(_) => 0,
        None => os::limits::cores(),
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build_global()
        .map_err(|_| anyhow!(os::interrupt::NO_THREAD))
}

/// Prints an error on standard error, in one line.
pub fn print_error(error: &anyhow::Error) {
    os::console::tell(&format!("gpuimg: {error:#}"));
}

/// The exit status for an error: 2 for wrong usage, 3 if the requested GPU cannot be used, 1 for
/// everything else.
pub fn status(error: &anyhow::Error) -> u8 {
    if error.is::<gpu::Unusable>() {
        3
    } else if error.is::<Usage>() {
        2
    } else {
        1
    }
}
