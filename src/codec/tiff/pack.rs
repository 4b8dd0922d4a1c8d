//! Compresses one strip.

use super::lzw;
use crate::deflate::zlib;
use anyhow::Result;

/// How a TIFF file is compressed when written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
pub enum Compression {
    /// Not at all: the fastest, and every program reads it
    #[default]
    None,
    /// Deflate: small, and most programs read it
    Deflate,
    /// LZW: for old programs
    Lzw,
    /// Zstandard: small and fast, for programs that know it (GDAL, tifffile; OpenCV does not)
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

/// The compressor of one worker; its state is reused from strip to strip.
pub enum Packer {
    /// No compression.
    None,
    /// LZW.
    Lzw,
    /// zlib.
    Deflate(Box<zlib::Encoder>),
    /// Zstandard.
    Zstd(Option<zstd::bulk::Compressor<'static>>),
}

impl Packer {
    /// A compressor for this compression.
    pub fn new(compression: Compression) -> Packer {
        match compression {
            Compression::None => Packer::None,
            Compression::Lzw => Packer::Lzw,
            Compression::Deflate => Packer::Deflate(Box::default()),
            Compression::Zstd => Packer::Zstd(None),
        }
    }

    /// Compresses a strip.
    pub fn pack(&mut self, raw: &[u8]) -> Result<Vec<u8>> {
        match self {
            Packer::None => Ok(raw.to_vec()),
            Packer::Lzw => Ok(lzw::pack(raw)),
            Packer::Deflate(encoder) => Ok(encoder.encode(raw)),
            Packer::Zstd(compressor) => {
                let compressor = match compressor {
                    Some(compressor) => compressor,
                    none => none.insert(zstd::bulk::Compressor::new(1)?),
                };
                Ok(compressor.compress(raw)?)
            }
        }
    }
}
