//! Records what `gpuimg --version --verbose` says of the build: the target, and the commit if `GPUIMG_COMMIT` names it. Git
//! is not asked: everything would be compiled anew after each commit, and changes not committed would pass for it.

#![allow(
    clippy::disallowed_macros,
    reason = "cargo reads a build script's standard output"
)]

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=GPUIMG_COMMIT");
    let target = env::var("TARGET").unwrap_or_default();
    println!("cargo::rustc-env=GPUIMG_TARGET={target}");
    let commit = env::var("GPUIMG_COMMIT").unwrap_or_default();
    let commit = match commit.is_empty() {
        true => {
            "not recorded: built by cargo alone (GPUIMG_COMMIT=$(git rev-parse HEAD) cargo build records it)"
        }
        false => &commit,
    };
    println!("cargo::rustc-env=GPUIMG_BUILT_FROM={commit}");
}
