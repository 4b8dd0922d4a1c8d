//! Samples that are compressed as one stream, or written as text: decoded as a whole once they are wanted.

use super::{Data, Layout};
use crate::deflate::zlib;
use crate::image::Depth;
use crate::os::Source;
use anyhow::{Context, Result, anyhow, ensure};
use libdeflater::{DecompressionError, Decompressor};
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

/// The most bytes that one byte of deflate data expands to.
const EXPANSION: u64 = 1032;

/// How samples are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// A zlib stream (RFC 1950).
    Zlib,
    /// A gzip file (RFC 1952).
    Gzip,
    /// Numbers with white space between them.
    Text,
}

impl fmt::Display for Coding {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Coding::Zlib => "zlib",
            Coding::Gzip => "gzip",
            Coding::Text => "ascii",
        })
    }
}

impl fmt::Display for Coded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "one stream of {}, in order", self.coding)
    }
}

/// Samples in a file, and their bytes once they are decoded.
pub struct Coded<'a> {
    data: Data<'a>,
    /// Offset of the first coded byte.
    start: u64,
    coding: Coding,
    /// The type of numbers in text, and whether integers have a sign.
    samples: (Depth, bool),
    /// Bytes that they decode to.
    bytes: u64,
    decoded: OnceLock<Source>,
}

impl<'a> Coded<'a> {
    /// Samples from an offset on, which decode to the bytes of this layout.
    ///
    /// # Errors
    /// A file that is too short for them.
    pub(super) fn new(
        data: Data<'a>,
        start: u64,
        coding: Coding,
        layout: &Layout,
    ) -> Result<Coded<'a>> {
        let (bytes, len) = (layout.end()?, data.source()?.len());
        let there = len.saturating_sub(start);
        let most = match coding {
            Coding::Zlib | Coding::Gzip => there.saturating_mul(EXPANSION),
            // A digit and a space each, but for the last one.
            Coding::Text => there.div_ceil(2) * layout.shape.depth.bytes() as u64,
        };
        ensure!(
            bytes <= most,
            "truncated: {len} bytes are too few for {bytes} of samples"
        );
        ensure!(
            layout.pages as u64 <= len,
            "truncated: {len} bytes are too few for {} pages",
            layout.pages
        );
        Ok(Coded {
            data,
            start,
            coding,
            samples: (layout.shape.depth, layout.metadata.signed),
            bytes,
            decoded: OnceLock::new(),
        })
    }

    /// Bytes of memory that the decoded samples take.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The decoded samples.
    ///
    /// # Errors
    /// Damage, and more or fewer samples than the header has.
    pub fn decoded(&self) -> Result<&Source> {
        if let Some(known) = self.decoded.get() {
            return Ok(known);
        }
        let source = self.data.source()?;
        let mut coded = vec![0; source.len().saturating_sub(self.start) as usize];
        source.read_at(&mut coded, self.start)?;
        let bytes = match self.coding {
            Coding::Zlib => self.unzlib(&coded),
            Coding::Gzip => self.gunzip(&coded),
            Coding::Text => self.numbers(&coded),
        }?;
        Ok(self.decoded.get_or_init(|| Source::memory(bytes)))
    }

    fn unzlib(&self, packed: &[u8]) -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(self.bytes)?];
        let filled = zlib::Decoder::default().decode(packed, &mut bytes);
        let filled = filled.map_err(|fault| anyhow!("its deflate data are damaged: {fault}"))?;
        self.check_filled(filled)?;
        Ok(bytes)
    }

    fn gunzip(&self, packed: &[u8]) -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(self.bytes)?];
        let filled = match Decompressor::new().gzip_decompress(packed, &mut bytes) {
            Ok(filled) => Some(filled),
            Err(DecompressionError::InsufficientSpace) => None,
            Err(DecompressionError::BadData) => {
                return Err(anyhow!("its gzip data are damaged, or end too early"));
            }
        };
        self.check_filled(filled)?;
        Ok(bytes)
    }

    /// Refuses another number of bytes than that of all samples; `None` is more.
    fn check_filled(&self, filled: Option<usize>) -> Result<()> {
        ensure!(
            filled.is_some_and(|filled| filled as u64 == self.bytes),
            "its deflate data make {} than the {} bytes of its samples",
            if filled.is_some() { "less" } else { "more" },
            self.bytes
        );
        Ok(())
    }

    fn numbers(&self, text: &[u8]) -> Result<Vec<u8>> {
        let (depth, signed) = self.samples;
        let number = match (depth, signed) {
            (Depth::Eight, false) => |word: &str| u8::from_str(word).ok().map(u64::from),
            (Depth::Eight, true) => |word: &str| i8::from_str(word).ok().map(|n| n as u64),
            (Depth::Sixteen, false) => |word: &str| u16::from_str(word).ok().map(u64::from),
            (Depth::Sixteen, true) => |word: &str| i16::from_str(word).ok().map(|n| n as u64),
            (Depth::ThirtyTwo, false) => |word: &str| u32::from_str(word).ok().map(u64::from),
            (Depth::ThirtyTwo, true) => |word: &str| i32::from_str(word).ok().map(|n| n as u64),
            (Depth::Float, _) => |word: &str| f32::from_str(word).ok().map(|n| n.to_bits().into()),
            (Depth::Double, _) => |word: &str| f64::from_str(word).ok().map(f64::to_bits),
        };
        let mut bytes = Vec::with_capacity(usize::try_from(self.bytes)?);
        let words = text.split(u8::is_ascii_whitespace);
        for word in words.filter(|word| !word.is_empty()) {
            let known = str::from_utf8(word).ok().and_then(number);
            let known = known.with_context(|| {
                let word = String::from_utf8_lossy(&word[..word.len().min(40)]);
                format!("{word:?} is not a sample of its type")
            })?;
            ensure!(
                (bytes.len() as u64) < self.bytes,
                "its text has more numbers than samples"
            );
            bytes.extend_from_slice(&known.to_le_bytes()[..depth.bytes()]);
        }
        let count = bytes.len() / depth.bytes();
        ensure!(
            bytes.len() as u64 == self.bytes,
            "its text ends after {count} of {} numbers",
            self.bytes / depth.bytes() as u64
        );
        Ok(bytes)
    }
}
