//! The command `gpuimg`.

use std::process::ExitCode;

fn main() -> ExitCode {
    // SAFETY: this is the only thread, since nothing has run before.
    unsafe { gpuimg::cli::main() }
}
