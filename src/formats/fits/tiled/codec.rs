//! Decompresses tiles by the method that the header names.

use super::columns::{Columns, Storage, Stored};
use super::quantized::{self, Method};
use super::{hcompress, plio, rice};
use crate::deflate::MAX_EXPANSION;
use crate::formats::fits::header::Header;
use crate::formats::raw::{self, Order};
use crate::image::Depth;
use anyhow::{Context, Result, anyhow, bail, ensure};
use libdeflater::{DecompressionError, Decompressor};
use std::fmt;

/// How tiles are compressed, and how their integers become samples.
#[derive(Clone, Copy, Debug)]
pub struct Codec {
    compression: Compression,
    /// How floating-point samples were rounded to the integers that are compressed; `None` if samples are compressed as they are.
    quantized: Option<Method>,
    depth: Depth,
}

/// The compressions of tiles (standard, section 10.4).
#[derive(Clone, Copy, Debug)]
enum Compression {
    /// Integers of so many bytes, in blocks of so many.
    Rice {
        bytes: usize,
        block: usize,
    },
    /// The samples as a gzip file; `shuffled`: the first bytes of all of them, then the second ones and so on.
    Gzip {
        shuffled: bool,
    },
    Plio,
    Hcompress {
        smooth: bool,
    },
    None,
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self.compression {
            Compression::Rice { .. } => "RICE_1",
            Compression::Gzip { shuffled: false } => "GZIP_1",
            Compression::Gzip { shuffled: true } => "GZIP_2",
            Compression::Plio => "PLIO_1",
            Compression::Hcompress { .. } => "HCOMPRESS_1",
            Compression::None => "samples without compression",
        })
    }
}

impl Codec {
    /// The codec of an image with samples of this depth.
    ///
    /// # Errors
    /// Methods that are not supported.
    pub fn new(header: &Header, columns: &Columns, depth: Depth) -> Result<Codec> {
        let name = header
            .text("ZCMPTYPE")
            .context("the header has no ZCMPTYPE")?;
        let compression = match name.trim() {
            "RICE_1" | "RICE_ONE" => Compression::Rice {
                bytes: parameter(header, "BYTEPIX", 4, 1..=8)?,
                block: parameter(header, "BLOCKSIZE", 32, 1..=4096)?,
            },
            "GZIP_1" => Compression::Gzip { shuffled: false },
            "GZIP_2" => Compression::Gzip { shuffled: true },
            "PLIO_1" => Compression::Plio,
            "HCOMPRESS_1" => Compression::Hcompress {
                smooth: parameter(header, "SMOOTH", 0, 0..=usize::MAX)? > 0,
            },
            "NOCOMPRESS" => Compression::None,
            other => bail!(
                "an image compressed by {other} is not supported (RICE_1, GZIP_1, GZIP_2, PLIO_1 and HCOMPRESS_1 are; \
                 funpack unpacks the file)"
            ),
        };
        let method = header.text("ZQUANTIZ").map(str::trim);
        let is_quantized = columns.are_scaled && method != Some("NONE");
        ensure!(
            depth.is_float() || !columns.are_scaled,
            "compressed integers with a scale (ZSCALE) are not supported: funpack unpacks the file"
        );
        let keeps_floats = matches!(compression, Compression::Gzip { .. } | Compression::None);
        ensure!(
            is_quantized || keeps_floats || !depth.is_float(),
            "floating point that is compressed by {} has no scale (ZSCALE)",
            name.trim()
        );
        let method = is_quantized.then(|| Method::new(method, header.integer("ZDITHER0")));
        Ok(Codec {
            compression,
            quantized: method.transpose()?,
            depth,
        })
    }

    /// Whether samples were rounded before they were compressed.
    pub fn is_lossy(&self) -> bool {
        self.quantized.is_some()
    }

    /// The most samples that a byte of the file makes.
    pub fn expansion(&self) -> u64 {
        match self.compression {
            Compression::Gzip { .. } | Compression::None => MAX_EXPANSION,
            // A block of equal samples takes at least three bits.
            Compression::Rice { block, .. } => MAX_EXPANSION.max(block as u64 * 8 / 3),
            // An instruction of two bytes fills up to 4095 samples.
            Compression::Plio => 2048,
            // A tile of equal samples has no coefficients but one.
            Compression::Hcompress { .. } => 1 << 16,
        }
    }

    /// The samples of a tile of this number and shape, as in the file but in the machine's byte order.
    ///
    /// # Errors
    /// Damage.
    pub fn decode(&self, stored: &Stored, tile: u64, shape: &[usize]) -> Result<Vec<u8>> {
        let samples: usize = shape.iter().product();
        let data = &stored.data[..];
        let mut integers = vec![0; samples];
        match (stored.storage, self.compression) {
            (Storage::Plain, _) => return self.plain(data.into(), samples),
            (Storage::Gzipped, _) => return self.plain(gunzip(data, samples)?, samples),
            (_, Compression::Gzip { .. } | Compression::None) => {
                let bytes = match self.compression {
                    Compression::Gzip { shuffled: true } => {
                        unshuffle(&gunzip(data, samples)?, samples)
                    }
                    Compression::Gzip { shuffled: false } => gunzip(data, samples)?,
                    _ => data.into(),
                };
                if self.quantized.is_none() {
                    return self.plain(bytes, samples);
                }
                integers = whole_numbers(&bytes, samples)?;
            }
            (_, Compression::Rice { bytes, block }) => {
                rice::decode(data, bytes, block, &mut integers)?
            }
            (_, Compression::Plio) => plio::decode(data, &mut integers)?,
            (_, Compression::Hcompress { smooth }) => {
                hcompress::decode(data, smooth, shape, &mut integers)?;
            }
        }
        let Some(method) = self.quantized else {
            return integer_bytes(&integers, self.depth);
        };
        let mut bytes = Vec::with_capacity(samples * self.depth.bytes());
        let scale = stored.scale;
        match self.depth {
            Depth::Double => quantized::restore(&integers, scale, method, tile, |value| {
                bytes.extend(value.to_ne_bytes());
            }),
            _ => quantized::restore(&integers, scale, method, tile, |value| {
                bytes.extend((value as f32).to_ne_bytes());
            }),
        }
        Ok(bytes)
    }

    /// Samples that are stored as in an uncompressed file.
    fn plain(&self, mut bytes: Vec<u8>, samples: usize) -> Result<Vec<u8>> {
        if bytes.len() == samples * self.depth.bytes() {
            raw::reorder(&mut bytes, self.depth, Order::Big);
            return Ok(bytes);
        }
        ensure!(
            !self.depth.is_float(),
            "its data make {} bytes instead of {}",
            bytes.len(),
            samples * self.depth.bytes()
        );
        integer_bytes(&whole_numbers(&bytes, samples)?, self.depth)
    }
}

/// A parameter of the compression (ZNAMEn, ZVALn).
fn parameter(
    header: &Header,
    name: &str,
    default: usize,
    range: std::ops::RangeInclusive<usize>,
) -> Result<usize> {
    let is_named = |number: &i32| {
        let known = header.text(&format!("ZNAME{number}"));
        known.is_some_and(|known| known.trim() == name)
    };
    let Some(number) = (1..=20).find(is_named) else {
        return Ok(default);
    };
    let value = header.real(&format!("ZVAL{number}"))?;
    let value = value
        .filter(|value| value.fract() == 0.0 && *value >= 0.0)
        .map(|value| value as usize);
    let value = value.filter(|value| range.contains(value));
    value.with_context(|| {
        format!("the header's {name} (ZVAL{number}) is not a number that it can be")
    })
}

/// The bytes of a gzip file of so many samples, of up to 8 bytes each.
fn gunzip(packed: &[u8], samples: usize) -> Result<Vec<u8>> {
    // The last four bytes are the length modulo 2³².
    let length = packed
        .last_chunk()
        .map(|&length| u32::from_le_bytes(length) as usize);
    let length = length.context("its gzip data end too early")?;
    ensure!(
        length <= samples.saturating_mul(8) && length.is_multiple_of(samples),
        "its gzip data make {length} bytes for {samples} samples"
    );
    let mut bytes = vec![0; length];
    let filled = Decompressor::new().gzip_decompress(packed, &mut bytes);
    let filled = filled.map_err(|error| match error {
        DecompressionError::BadData => anyhow!("its gzip data are damaged, or end too early"),
        DecompressionError::InsufficientSpace => {
            anyhow!("its gzip data make more than {length} bytes")
        }
    })?;
    ensure!(
        filled == length,
        "its gzip data make {filled} bytes instead of {length}"
    );
    Ok(bytes)
}

/// Puts the bytes of each sample together again, of which all first ones come first.
fn unshuffle(bytes: &[u8], samples: usize) -> Vec<u8> {
    let size = bytes.len() / samples;
    let mut joined = vec![0; bytes.len()];
    for (place, plane) in bytes.chunks_exact(samples).enumerate() {
        let out = joined[place..].iter_mut().step_by(size);
        out.zip(plane).for_each(|(out, &byte)| *out = byte);
    }
    joined
}

/// The integers of samples that are stored with the most significant byte first. Those of one byte have no sign.
fn whole_numbers(bytes: &[u8], samples: usize) -> Result<Vec<i32>> {
    match bytes.len() / samples {
        size if size * samples != bytes.len() => {}
        1 => return Ok(bytes.iter().map(|&byte| byte.into()).collect()),
        2 => {
            let pairs = bytes.as_chunks().0.iter();
            return Ok(pairs.map(|&pair| i16::from_be_bytes(pair).into()).collect());
        }
        4 => {
            let words = bytes.as_chunks().0.iter();
            return Ok(words.map(|&word| i32::from_be_bytes(word)).collect());
        }
        _ => {}
    }
    bail!("its data make {} bytes for {samples} samples", bytes.len())
}

/// The bytes of integers of a depth, in the machine's order.
fn integer_bytes(integers: &[i32], depth: Depth) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(integers.len() * depth.bytes());
    for &integer in integers {
        let fits = match depth {
            Depth::Eight => u8::try_from(integer)
                .map(|sample| bytes.push(sample))
                .is_ok(),
            Depth::Sixteen => i16::try_from(integer)
                .map(|sample| bytes.extend(sample.to_ne_bytes()))
                .is_ok(),
            _ => {
                bytes.extend(integer.to_ne_bytes());
                true
            }
        };
        ensure!(
            fits,
            "its sample {integer} does not fit in {} bits",
            depth.bits()
        );
    }
    Ok(bytes)
}
