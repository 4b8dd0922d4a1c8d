//! A whole zlib stream (RFC 1950) in memory, for formats that have many small ones.

use super::codes::Fault;
use super::deflate::Inflate;
use super::inflate::is_zlib;

/// Inflates zlib streams one after the other.
#[derive(Default)]
pub struct Unzip {
    inflate: Inflate,
}

impl Unzip {
    /// Inflates `packed` to the start of `out`, checks the Adler-32 and says how many bytes there
    /// are; none if `out` is too small. What follows the stream does not matter.
    pub fn unzip(&mut self, packed: &[u8], out: &mut [u8]) -> Result<Option<usize>, Fault> {
        const SHORT: Fault = "they end too early";
        let (head, mut input) = packed.split_first_chunk().ok_or(SHORT)?;
        if !is_zlib(head) {
            return Err("not a zlib stream");
        }
        self.inflate.restart(Default::default());
        let mut filled = 0;
        while !self.inflate.is_done() {
            let step = if filled < out.len() {
                self.inflate.read(input, out, filled)?
            } else if self.inflate.is_in_match() {
                return Ok(None);
            } else {
                // Only the end of a block fits now; whatever else comes, it is too much.
                match self.inflate.read(input, &mut [0u8], 0) {
                    Ok(step) if step.made == 0 => step,
                    _ => return Ok(None),
                }
            };
            input = &input[step.used..];
            filled += step.made;
            if step.hungry && input.is_empty() {
                return Err(SHORT);
            }
        }
        let stated = self.inflate.rest().word(&mut input.iter()).ok_or(SHORT)?;
        if stated != simd_adler32::adler32(&&out[..filled]) {
            return Err("wrong Adler-32");
        }
        Ok(Some(filled))
    }
}
