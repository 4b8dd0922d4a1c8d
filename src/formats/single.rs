//! Refuses several images in one file of a format that stores a single image. On standard input, they are a stream of frames
//! (`os/frames.rs`), which gpuimg processes only if each frame has its own output.

use crate::os::Source;
use anyhow::{Result, ensure};

/// The first bytes of a PNG. PNM and PAM begin with `P1` to `P7`.
const PNG: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// Refuses a file that has another image after the first, which ends at `end`. `format` is the first image's name for `--format`.
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
