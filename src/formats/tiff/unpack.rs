//! The compression methods of TIFF, and the unpacking of one strip or tile.

use super::lzw;
use crate::deflate::zlib;
use anyhow::{Context, Result, anyhow, bail, ensure};
use std::fmt;
use zstd::zstd_safe::{self, DCtx, zstd_sys::ZSTD_ErrorCode};

/// The code that zstd returns if the output is too small: it returns its error codes negated.
const OUT_IS_TOO_SMALL: usize =
    (ZSTD_ErrorCode::ZSTD_error_dstSize_tooSmall as usize).wrapping_neg();

/// The compression of strips and tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// No compression.
    None,
    /// LZW, TIFF 6.0, section 13.
    Lzw,
    /// A zlib stream (RFC 1950): Adobe's code 8 or the older 32946.
    Deflate,
    /// Byte runs, TIFF 6.0, section 9.
    PackBits,
    /// Zstandard frames (RFC 8878).
    Zstd,
    /// A JPEG image, with tables in the directory (TIFF Technical Note 2).
    Jpeg,
    /// JPEG data of several forms (TIFF 6.0, section 22).
    OldJpeg,
    /// Runs of modified Huffman codes, TIFF 6.0, section 10.
    Huffman,
    /// Group 3 of ITU-T T.4.
    Fax3,
    /// Group 4 of ITU-T T.6.
    Fax4,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Method::None => "uncompressed",
            Method::Lzw => "LZW",
            Method::Deflate => "deflate",
            Method::PackBits => "PackBits",
            Method::Zstd => "zstd",
            Method::Jpeg => "JPEG by the crate zune-jpeg",
            Method::OldJpeg => "old-style JPEG",
            Method::Huffman => "modified Huffman",
            Method::Fax3 => "fax group 3 by the crate fax",
            Method::Fax4 => "fax group 4 by the crate fax",
        })
    }
}

impl Method {
    /// The method for a value of the Compression tag; refuses unsupported ones by name.
    pub fn of_tag(value: u64) -> Result<Method> {
        let name = match value {
            1 => return Ok(Method::None),
            5 => return Ok(Method::Lzw),
            8 | 32946 => return Ok(Method::Deflate),
            32773 => return Ok(Method::PackBits),
            50000 => return Ok(Method::Zstd),
            2 => return Ok(Method::Huffman),
            3 => return Ok(Method::Fax3),
            4 => return Ok(Method::Fax4),
            6 => return Ok(Method::OldJpeg),
            7 => return Ok(Method::Jpeg),
            34712 => "JPEG 2000",
            34887 => "LERC",
            34925 => "LZMA",
            50001 => "WebP",
            50002 => "JPEG XL",
            _ => bail!("compression {value} is not supported"),
        };
        bail!("{name} compression is not supported")
    }

    /// The most bytes that one packed byte can expand to.
    pub fn expansion(self) -> u64 {
        match self {
            Method::None => 1,
            // 12 bits stand for a string of up to 4096 − 257 bytes.
            Method::Lzw => 2560,
            // Two bits, a length and a distance, stand for 258 bytes.
            Method::Deflate => 1032,
            // Two bytes stand for one byte repeated 128 times.
            Method::PackBits => 64,
            // A block of 4 bytes stands for one byte repeated 128 KiB times.
            Method::Zstd => 32768,
            // A block of 64 pixels of up to 4 samples takes a bit at least.
            Method::Jpeg | Method::OldJpeg => 8 * 64 * 4,
            // A row of up to 65535 pixels takes a bit at least.
            Method::Huffman | Method::Fax3 | Method::Fax4 => 65536,
        }
    }
}

/// The decompressor of one worker; its state is reused from chunk to chunk.
pub struct Unpacker {
    method: Method,
    deflate: zlib::Decoder,
    zstd: Option<DCtx<'static>>,
    spare: Vec<u8>,
}

impl Unpacker {
    /// A decompressor for this method.
    pub fn new(method: Method) -> Unpacker {
        Unpacker {
            method,
            deflate: zlib::Decoder::default(),
            zstd: None,
            spare: Vec::new(),
        }
    }

    /// Fills `out` from the packed bytes. `whole` is the size of a chunk that the image's end does
    /// not cut: some writers pad the last strip to that size, and bytes beyond `out` are dropped.
    pub fn unpack(&mut self, packed: &[u8], out: &mut [u8], whole: usize) -> Result<()> {
        let filled = match self.method {
            Method::None => {
                let size = out.len().min(packed.len());
                out[..size].copy_from_slice(&packed[..size]);
                size
            }
            Method::PackBits => unpack_bits(packed, out),
            Method::Lzw => lzw::unpack(packed, out)?,
            Method::Jpeg | Method::OldJpeg | Method::Huffman | Method::Fax3 | Method::Fax4 => {
                bail!("it is unpacked as an image")
            }
            Method::Deflate | Method::Zstd => match self.block(packed, out)? {
                Some(filled) => filled,
                None if whole > out.len() => {
                    let mut spare = std::mem::take(&mut self.spare);
                    // Nothing of an earlier chunk remains, wherever this one ends.
                    spare.clear();
                    spare.resize(whole, 0);
                    let filled = self.block(packed, &mut spare)?;
                    out.copy_from_slice(&spare[..out.len()]);
                    self.spare = spare;
                    filled.context("it unpacks to more than its size")?
                }
                None => bail!("it unpacks to more than its {} bytes", out.len()),
            },
        };
        ensure!(
            filled >= out.len(),
            "it unpacks to {filled} of {} bytes",
            out.len()
        );
        Ok(())
    }

    /// Unpacks with one call and returns the number of bytes; `None` if `out` is too small.
    fn block(&mut self, packed: &[u8], out: &mut [u8]) -> Result<Option<usize>> {
        if self.method == Method::Deflate {
            let filled = self.deflate.decode(packed, out);
            return filled.map_err(|fault| anyhow!("its deflate data are damaged: {fault}"));
        }
        let zstd = match &mut self.zstd {
            Some(zstd) => zstd,
            none => none.insert(DCtx::try_create().context("no memory for zstd")?),
        };
        match zstd.decompress(out, packed) {
            Ok(filled) => Ok(Some(filled)),
            Err(OUT_IS_TOO_SMALL) => Ok(None),
            Err(code) => {
                let name = zstd_safe::get_error_name(code).to_lowercase();
                let what = match name.as_str() {
                    name if name.contains("checksum") => "a checksum is wrong",
                    name if name.contains("frame descriptor") => "not a zstd frame",
                    name if name.contains("src size") => "they end too early",
                    name if name.contains("memory") => "they need more memory than there is",
                    _ => "an impossible code",
                };
                Err(anyhow!("its zstd data are damaged: {what}"))
            }
        }
    }
}

/// PackBits (TIFF 6.0, section 9): a count byte n, then n + 1 literal bytes (n from 0 to 127), or
/// one byte to repeat 257 − n times (n from 129 on); 128 is skipped. Returns the number of bytes
/// written.
pub fn unpack_bits(mut packed: &[u8], out: &mut [u8]) -> usize {
    let mut filled = 0;
    while let Some((&count, rest)) = packed.split_first() {
        let free = &mut out[filled..];
        if free.is_empty() {
            break;
        }
        packed = rest;
        if count < 128 {
            let size = (usize::from(count) + 1).min(rest.len()).min(free.len());
            free[..size].copy_from_slice(&rest[..size]);
            packed = &rest[size..];
            filled += size;
        } else if let (129.., Some((&byte, rest))) = (count, rest.split_first()) {
            let size = (257 - usize::from(count)).min(free.len());
            free[..size].fill(byte);
            packed = rest;
            filled += size;
        }
    }
    filled
}
