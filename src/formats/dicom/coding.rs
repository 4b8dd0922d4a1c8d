//! The compressions of DICOM files.

use crate::formats::jpeg::ls;
#[cfg(feature = "jpeg2000")]
use crate::formats::jpeg2000;
use anyhow::{Result, bail};
use std::fmt;

/// How pixel data are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// No compression.
    None,
    /// Runs of bytes (PS3.5, annex G).
    Rle,
    /// JPEG, baseline and extended, of 8 bits.
    Jpeg,
    /// Lossless JPEG (T.81, annex H), of up to 16 bits.
    Lossless,
    /// JPEG-LS of up to 16 bits, lossless or not.
    JpegLs,
    /// JPEG 2000 of up to 16 bits.
    #[cfg(feature = "jpeg2000")]
    Jpeg2000,
}

impl fmt::Display for Coding {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Coding::None => "no compression",
            Coding::Rle => "byte runs",
            Coding::Jpeg => "JPEG, by the crate zune-jpeg",
            Coding::Lossless => "lossless JPEG",
            Coding::JpegLs => "JPEG-LS",
            #[cfg(feature = "jpeg2000")]
            Coding::Jpeg2000 => "JPEG 2000, by the crate dicom-toolkit-jpeg2000",
        })
    }
}

impl Coding {
    /// The most pixels that a byte of compressed data makes.
    pub fn expansion(self) -> u64 {
        match self {
            #[cfg(feature = "jpeg2000")]
            Coding::Jpeg2000 => jpeg2000::EXPANSION,
            Coding::JpegLs => ls::EXPANSION,
            _ => 8 * 64,
        }
    }

    /// Bytes of memory for a sample that is decoded, beside the frame.
    pub fn memory_for_sample(self) -> u64 {
        match self {
            #[cfg(feature = "jpeg2000")]
            Coding::Jpeg2000 => jpeg2000::SAMPLE,
            Coding::JpegLs => ls::SAMPLE,
            _ => 0,
        }
    }

    /// The compression of a transfer syntax; refuses others by name.
    pub fn from_syntax(syntax: &str) -> Result<Coding> {
        Ok(match syntax {
            "1.2.840.10008.1.2"
            | "1.2.840.10008.1.2.1"
            | "1.2.840.10008.1.2.1.99"
            | "1.2.840.10008.1.2.2" => Coding::None,
            "1.2.840.10008.1.2.5" => Coding::Rle,
            "1.2.840.10008.1.2.4.50" | "1.2.840.10008.1.2.4.51" => Coding::Jpeg,
            "1.2.840.10008.1.2.4.57" | "1.2.840.10008.1.2.4.70" => Coding::Lossless,
            "1.2.840.10008.1.2.4.80" | "1.2.840.10008.1.2.4.81" => Coding::JpegLs,
            #[cfg(feature = "jpeg2000")]
            "1.2.840.10008.1.2.4.90" | "1.2.840.10008.1.2.4.91" => Coding::Jpeg2000,
            other => bail!(
                "the transfer syntax {other} is not supported (gdcmconv --raw or dcmdjpeg unpacks it first)"
            ),
        })
    }
}
