//! What `gpuimg --version --verbose`, `gpuimg --licenses` and `gpuimg --json-usage` print.

use super::usage;
use crate::gpu::modules;
use std::ffi::{OsStr, OsString};

/// The licences of the program and of everything that is compiled into it; `packaging/crates.py` writes the list.
const LICENSES: &str = include_str!("../../packaging/licenses.txt");

/// The text for a command line at whose `--version`, `--licenses` or `--json-usage` clap has stopped, if it is not
/// the plain version, which clap has ready.
pub fn text(args: &[OsString]) -> Option<String> {
    let args = args.get(1..)?;
    if args.iter().any(|arg| arg == "--licenses") {
        return Some(LICENSES.into());
    }
    if args.iter().any(|arg| arg == "--json-usage") {
        return Some(usage::lines());
    }
    args.iter().any(|arg| is_verbose(arg)).then(verbose)
}

/// Whether an argument is `--verbose`, `-v`, or short options with v among them, as in `-vV`.
fn is_verbose(arg: &OsStr) -> bool {
    let arg = arg.as_encoded_bytes();
    arg == b"--verbose" || (arg.starts_with(b"-") && !arg.starts_with(b"--") && arg.contains(&b'v'))
}

/// The version, what it was built from and for, and the GPUs that it has code for; a line each.
fn verbose() -> String {
    format!(
        "gpuimg {}\ncommit: {}\ntarget: {}\nGPU code: {}\n",
        env!("CARGO_PKG_VERSION"),
        env!("GPUIMG_BUILT_FROM"),
        env!("GPUIMG_TARGET"),
        modules::embedded_targets(),
    )
}
