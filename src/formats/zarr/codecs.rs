//! The codecs that turn the bytes of a chunk into those of a file (Zarr v3, codecs; numcodecs for v2).

use super::blosc;
use super::json::{self, Object};
use crate::formats::raw::Order;
use anyhow::{Context, Result, anyhow, bail, ensure};
use libdeflater::Decompressor;

/// A codec from bytes to bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// gzip (RFC 1952).
    Gzip,
    /// zlib (RFC 1950).
    Zlib,
    /// Zstandard (RFC 8878).
    Zstd,
    /// Blosc 1.
    Blosc,
    /// A CRC-32C after the bytes.
    Crc32c,
}

/// Bytes that a codec may add to those that it gets, beside a quarter of them.
const OVERHEAD: usize = 64 << 10;

impl Codec {
    /// The codec with a name of Zarr v3 or an identifier of numcodecs.
    ///
    /// # Errors
    /// A codec that is not supported, with its name.
    pub fn from_name(name: &str) -> Result<Codec> {
        Ok(match name.strip_prefix("numcodecs.").unwrap_or(name) {
            "gzip" => Codec::Gzip,
            "zlib" => Codec::Zlib,
            "zstd" => Codec::Zstd,
            "blosc" => Codec::Blosc,
            "crc32c" => Codec::Crc32c,
            other => bail!(
                "the codec {other:?} of its chunks is not supported (gzip, zlib, zstd, blosc and crc32c are)"
            ),
        })
    }

    /// The bytes before this codec encoded them, `most` at most.
    fn decode(self, bytes: &[u8], most: usize) -> Result<Vec<u8>> {
        match self {
            Codec::Blosc => blosc::decode(bytes, most),
            Codec::Crc32c => {
                let end = bytes.len().checked_sub(4);
                let (data, sum) = bytes.split_at(end.context("its checksum is missing")?);
                ensure!(
                    Order::Little.number(sum) == u64::from(crc32c(data)),
                    "its checksum (CRC-32C) is wrong"
                );
                ensure!(data.len() <= most, "it has more than {most} bytes");
                Ok(data.to_vec())
            }
            Codec::Gzip | Codec::Zlib | Codec::Zstd => {
                let mut decoded = vec![0; most];
                let length = match self {
                    Codec::Gzip => Decompressor::new().gzip_decompress(bytes, &mut decoded),
                    Codec::Zlib => Decompressor::new().zlib_decompress(bytes, &mut decoded),
                    _ => {
                        let length = zstd::bulk::decompress_to_buffer(bytes, &mut decoded[..]);
                        let length = length.map_err(|error| anyhow!("it is damaged: {error}"));
                        decoded.truncate(length?);
                        return Ok(decoded);
                    }
                };
                let length = length.map_err(|error| anyhow!("it is damaged: {error}"))?;
                decoded.truncate(length);
                Ok(decoded)
            }
        }
    }
}

/// Decodes bytes that these codecs encoded, one after the other, from `size` bytes.
///
/// # Errors
/// Damage, and another number of bytes.
pub fn decode(codecs: &[Codec], bytes: Vec<u8>, size: usize) -> Result<Vec<u8>> {
    let mut bytes = bytes;
    for (index, codec) in codecs.iter().enumerate().rev() {
        let most = match index {
            0 => size,
            _ => size + size / 4 + OVERHEAD,
        };
        bytes = codec.decode(&bytes, most)?;
    }
    ensure!(
        bytes.len() == size,
        "it has {} bytes, not {size}",
        bytes.len()
    );
    Ok(bytes)
}

/// The codecs of Zarr v3 from samples to the bytes of a chunk.
#[derive(Debug)]
pub struct Pipeline {
    /// The byte order of samples.
    pub order: Order,
    /// The codecs after that.
    pub codecs: Vec<Codec>,
    /// The division of a chunk into inner chunks, each encoded by itself.
    pub sharding: Option<Sharding>,
}

/// A chunk that has inner chunks, and an index of them.
#[derive(Debug)]
pub struct Sharding {
    /// The lengths of an inner chunk along the axes.
    pub chunk: Vec<u64>,
    /// How an inner chunk is encoded.
    pub inner: Box<Pipeline>,
    /// Whether the index has a checksum.
    pub has_checksum: bool,
    /// The byte order of the index.
    pub index_order: Order,
    /// Whether the index is the last part of the file, not the first.
    pub is_at_end: bool,
}

impl Pipeline {
    /// Reads a list of codecs: those of an array, or of the inner chunks or the index of its shards (`is_inner`).
    ///
    /// # Errors
    /// A codec that is not supported, with its name.
    pub fn from_json(list: &[serde_json::Value], axes: usize, is_inner: bool) -> Result<Pipeline> {
        let mut pipeline = Pipeline {
            order: Order::Little,
            codecs: Vec::new(),
            sharding: None,
        };
        let mut has_bytes = false;
        for codec in list {
            let name = json::name(codec, "a codec")?;
            let options = json::configuration(codec);
            match name {
                "transpose" => check_transpose(&options, axes)?,
                "bytes" if !has_bytes => {
                    has_bytes = true;
                    pipeline.order = order(&options)?;
                }
                "sharding_indexed" if !has_bytes => {
                    ensure!(!is_inner, "shards in shards are not supported");
                    has_bytes = true;
                    pipeline.sharding = Some(Sharding::from_json(&options, axes)?);
                }
                other => {
                    ensure!(has_bytes, "its codecs do not begin with bytes");
                    pipeline.codecs.push(Codec::from_name(other)?);
                }
            }
        }
        ensure!(has_bytes, "its codecs have no bytes");
        ensure!(
            pipeline.sharding.is_none() || pipeline.codecs.is_empty(),
            "shards that are compressed as a whole are not supported"
        );
        Ok(pipeline)
    }
}

impl Sharding {
    fn from_json(options: &Object, axes: usize) -> Result<Sharding> {
        let chunk = json::sizes(options.get("chunk_shape"), "the shape of its inner chunks")?;
        ensure!(
            chunk.len() == axes,
            "its inner chunks have {} axes, not {axes}",
            chunk.len()
        );
        let codecs = json::list(options.get("codecs"), "the codecs of its shards")?;
        let index = json::list(options.get("index_codecs"), "the codecs of its index")?;
        let index = Pipeline::from_json(index, axes, true)?;
        let has_checksum = match index.codecs[..] {
            [] => false,
            [Codec::Crc32c] => true,
            _ => bail!("a compressed index of shards is not supported"),
        };
        let location = options.get("index_location").and_then(|it| it.as_str());
        Ok(Sharding {
            chunk,
            inner: Box::new(Pipeline::from_json(codecs, axes, true)?),
            has_checksum,
            index_order: index.order,
            is_at_end: match location {
                None | Some("end") => true,
                Some("start") => false,
                Some(other) => bail!("its index is at {other:?}, not at the start or the end"),
            },
        })
    }
}

/// The byte order of the codec `bytes`.
fn order(options: &Object) -> Result<Order> {
    Ok(match options.get("endian").and_then(|it| it.as_str()) {
        None | Some("little") => Order::Little,
        Some("big") => Order::Big,
        Some(other) => bail!("the byte order {other:?} is neither little nor big"),
    })
}

/// Refuses a codec that exchanges axes.
fn check_transpose(options: &Object, axes: usize) -> Result<()> {
    let order = json::sizes_from_zero(options.get("order"), "the order of its codec transpose")?;
    ensure!(
        order.into_iter().eq(0..axes as u64),
        "the codec \"transpose\" of its chunks is not supported"
    );
    Ok(())
}

/// The polynomial of CRC-32C (RFC 9260, appendix A), its bits reversed.
const CASTAGNOLI: u32 = 0x82f6_3b78;

/// The remainders of all bytes.
const REMAINDERS: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            remainder = (remainder >> 1) ^ ((remainder & 1) * CASTAGNOLI);
            bit += 1;
        }
        table[byte] = remainder;
        byte += 1;
    }
    table
};

/// The CRC-32C of bytes.
pub fn crc32c(bytes: &[u8]) -> u32 {
    let add = |crc: u32, byte: &u8| (crc >> 8) ^ REMAINDERS[usize::from(crc as u8 ^ byte)];
    !bytes.iter().fold(!0, add)
}

/// The numbers of an index, whose checksum is checked.
///
/// # Errors
/// A wrong checksum.
pub fn decode_index(sharding: &Sharding, bytes: Vec<u8>) -> Result<Vec<u64>> {
    let length = bytes.len();
    let bytes = if sharding.has_checksum {
        Codec::Crc32c.decode(&bytes, length)?
    } else {
        bytes
    };
    let numbers = bytes.as_chunks::<8>().0.iter();
    Ok(numbers
        .map(|eight| sharding.index_order.number(eight))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value of the catalogue of CRC algorithms, and the example of RFC 3720, B.4.
    #[test]
    fn checksums() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    }

    #[test]
    fn codecs_are_undone_from_the_last_to_the_first() {
        let bytes = b"12345678".to_vec();
        let sum = crc32c(&bytes).to_le_bytes();
        let checked = [&bytes[..], &sum].concat();
        let packed = zstd::bulk::compress(&checked, 1).expect("zstd");
        let codecs = [Codec::Crc32c, Codec::Zstd];
        assert_eq!(decode(&codecs, packed.clone(), 8).expect("decoded"), bytes);
        assert!(decode(&codecs, packed.clone(), 9).is_err());
        assert!(decode(&codecs, packed[1..].to_vec(), 8).is_err());
        assert!(decode(&[Codec::Crc32c], bytes, 4).is_err());
        assert!(decode(&[Codec::Gzip], vec![1, 2, 3], 4).is_err());
        assert!(Codec::from_name("numcodecs.zlib").is_ok());
        let error = Codec::from_name("lzma").expect_err("unknown").to_string();
        assert!(error.contains("\"lzma\""), "{error}");
    }
}
