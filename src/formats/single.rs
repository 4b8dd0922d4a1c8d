//! Refuses files of several images of formats whose files have one. Such files are streams of frames (`os/frames.rs`), which the verbs
//! process only where each frame gets an output of its own.

use crate::os::Source;
use anyhow::{Result, ensure};

/// The first bytes of a PNG; those of PNM and PAM are `P1` to `P7`.
const PNG: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// Refuses a file with another image at `end`. `format` is the name for `--format` of the first.
///
/// # Errors
/// Such a file.
pub fn check_single(source: &Source, end: u64, format: &str) -> Result<()> {
    let mut after = [0; PNG.len()];
    source.read_up_to(&mut after, end.min(source.len()))?;
    let is_netpbm = matches!(after, [b'P', b'1'..=b'7', ..]);
    ensure!(
        !is_netpbm && after != PNG,
        "it holds several images (gpuimg normalize - - --format {format} processes such a stream frame by frame)"
    );
    Ok(())
}
