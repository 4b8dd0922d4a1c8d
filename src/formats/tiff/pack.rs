//! Compresses one strip.

use super::lzw;
use crate::deflate::zlib;
use anyhow::Result;
use libdeflater::{CompressionLvl, Compressor};

/// How a TIFF file is compressed when written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
pub enum Compression {
    /// No compression: fastest, and every program reads it
    #[default]
    None,
    /// Small, and most programs read it
    Deflate,
    /// For old programs
    Lzw,
    /// Zstandard: small and fast, but not read by every program (GDAL and tifffile do, OpenCV does not)
    Zstd,
}

impl Compression {
    /// The value of the Compression tag (TIFF 6.0, section 8).
    pub fn tag(self) -> u64 {
        match self {
            Compression::None => 1,
            Compression::Lzw => 5,
            Compression::Deflate => 8,
            Compression::Zstd => 50000,
        }
    }

    /// An upper bound for the compressed length of a strip of `raw` bytes.
    pub fn worst(self, raw: u64) -> u64 {
        match self {
            Compression::None => raw,
            // At most one 12-bit code a byte, and a Clear code every 3837 codes.
            Compression::Lzw => raw + raw / 2 + raw / 1024 + 16,
            // The overhead of stored blocks, by the bounds that both formats give.
            Compression::Deflate | Compression::Zstd => raw + raw / 256 + 1024,
        }
    }
}

/// How much is tried to make strips small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// Gigabytes per second.
    #[default]
    Little,
    /// A quick search for repetitions.
    Some,
    /// A search as other programs have it.
    Much,
}

/// The compressor of one worker; its state is reused from strip to strip.
pub enum Packer {
    /// No compression.
    None,
    /// LZW.
    Lzw,
    /// zlib, with little effort.
    Quick(Box<zlib::Encoder>),
    /// zlib.
    Deflate(Compressor),
    /// Zstandard.
    Zstd(zstd::bulk::Compressor<'static>),
}

impl Packer {
    /// A compressor for this compression.
    ///
    /// # Errors
    /// No memory.
    pub fn new(compression: Compression, effort: Effort) -> Result<Packer> {
        let zlib = |level| {
            let level = CompressionLvl::new(level).unwrap_or_default();
            Packer::Deflate(Compressor::new(level))
        };
        let zstd = |level| zstd::bulk::Compressor::new(level).map(Packer::Zstd);
        Ok(match (compression, effort) {
            (Compression::None, _) => Packer::None,
            (Compression::Lzw, _) => Packer::Lzw,
            (Compression::Deflate, Effort::Little) => Packer::Quick(Box::default()),
            (Compression::Deflate, Effort::Some) => zlib(1),
            (Compression::Deflate, Effort::Much) => zlib(6),
            (Compression::Zstd, Effort::Little) => zstd(1)?,
            (Compression::Zstd, Effort::Some) => zstd(3)?,
            (Compression::Zstd, Effort::Much) => zstd(5)?,
        })
    }

    /// Compresses a strip.
    ///
    /// # Errors
    /// No memory.
    pub fn pack(&mut self, raw: &[u8]) -> Result<Vec<u8>> {
        match self {
            Packer::None => Ok(raw.to_vec()),
            Packer::Lzw => Ok(lzw::pack(raw)),
            Packer::Quick(encoder) => Ok(encoder.encode(raw)),
            Packer::Deflate(compressor) => {
                let mut packed = vec![0; compressor.zlib_compress_bound(raw.len())];
                let len = compressor.zlib_compress(raw, &mut packed)?;
                packed.truncate(len);
                Ok(packed)
            }
            Packer::Zstd(compressor) => Ok(compressor.compress(raw)?),
        }
    }
}
