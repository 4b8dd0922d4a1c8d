//! `verify`: compares two images, or the results of both devices for one image.

use crate::gpu::Choice;
use crate::os::outcome::{Outcome, usage};
use crate::verify;
use anyhow::{Result, anyhow};
use std::path::PathBuf;

/// Compares the given images, or the devices.
pub fn run(images: &[PathBuf], devices: bool, json: bool, choice: Choice) -> Result<Outcome> {
    match (images, devices) {
        ([a, b], false) => verify::files(a, b, json),
        ([image], true) => verify::devices(image, choice.ordinal()),
        _ => Err(usage(anyhow!(
            "verify takes two images (or one with --devices)"
        ))),
    }
}
