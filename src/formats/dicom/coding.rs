//! The compressions of DICOM files.

use anyhow::{Result, bail};

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
}

impl Coding {
    /// The compression of a transfer syntax; refuses others by name.
    pub fn from_syntax(syntax: &str) -> Result<Coding> {
        let name = match syntax {
            "1.2.840.10008.1.2"
            | "1.2.840.10008.1.2.1"
            | "1.2.840.10008.1.2.1.99"
            | "1.2.840.10008.1.2.2" => {
                return Ok(Coding::None);
            }
            "1.2.840.10008.1.2.5" => return Ok(Coding::Rle),
            "1.2.840.10008.1.2.4.50" | "1.2.840.10008.1.2.4.51" => return Ok(Coding::Jpeg),
            "1.2.840.10008.1.2.4.57" | "1.2.840.10008.1.2.4.70" => return Ok(Coding::Lossless),
            "1.2.840.10008.1.2.4.80" | "1.2.840.10008.1.2.4.81" => "JPEG-LS",
            "1.2.840.10008.1.2.4.90" | "1.2.840.10008.1.2.4.91" => "JPEG 2000",
            other => bail!("the transfer syntax {other} is not supported"),
        };
        bail!("{name} compression is not supported (gdcmconv --raw or dcmdjpeg unpacks it first)")
    }
}
